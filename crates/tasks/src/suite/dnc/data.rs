//! Questions of DNC from the user's folder: found by name, pinned by content in the manifest, and read again with a stored run.
use crate::{agreeing, counted};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::{
    Asked, Data, Dataset, Malformed, Options, PinnedFile, Problem, Source, Split, malformed_rows, read,
    read_annotations,
};
use crate::suite::registry::{DATA_VARIABLE, Host, OptionError};

/// Files as they are read.
#[derive(Default)]
pub(super) struct Files {
    data: Data,
    malformed: Vec<(String, Malformed)>,
}

impl Files {
    /// Finds and reads what the options need.
    pub(super) fn find(
        options: &mut Options,
        folder: &Path,
        annotations: Option<&Path>,
        host: &dyn Host,
    ) -> Result<Data, OptionError> {
        options.source = Source {
            folder: absolute(folder, host)?,
            skip_malformed: options.source.skip_malformed,
            ..Source::default()
        };
        let mut files = Files::default();
        let mut wanted = options.splits.clone();
        if options.demonstrations > 0 {
            wanted.push(Split::Train);
        }
        for (name, split) in locate(options.dataset, folder, &wanted, host)? {
            let (bytes, sha256) = read_pinned(&folder.join(&name), host)?;
            let pinned = PinnedFile { name, sha256, split };
            files.add(options, pinned.clone(), &bytes)?;
            options.source.files.push(pinned);
        }
        if options.kinds.iter().any(|kind| kind.is_annotated()) {
            let dataset = options.dataset;
            let usual = [format!("{dataset}.annotations.jsonl"), format!("{dataset}.order_logic.DRAFT.jsonl")];
            let found = match annotations {
                Some(path) => {
                    let path = host.absolute(path).map_err(|reason| {
                        OptionError::usage(format!("setting `annotations = {}`: {reason}", path.display()))
                    })?;
                    Some(path.to_string_lossy().into_owned())
                }
                None => usual.into_iter().find(|name| host.is_file(&folder.join(name))),
            };
            if let Some(name) = found {
                let (bytes, sha256) = read_pinned(&folder.join(&name), host)?;
                let elsewhere = other_questions(dataset, folder, &options.source.files, host);
                files.annotate(&name, &bytes, Some(&elsewhere))?;
                options.source.annotations = Some(PinnedFile { name, sha256, split: None });
            }
        } else if annotations.is_some() {
            return Err(OptionError::usage(
                "the setting `annotations` holds Logic and Order, and the setting `kinds` has neither",
            ));
        }
        files.finish(options)
    }

    /// Reads the files of a stored run again.
    ///
    /// # Errors
    /// If one is missing or changed.
    pub(super) fn again(options: &Options, host: &dyn Host) -> Result<Data, OptionError> {
        let source = &options.source;
        let mut files = Files::default();
        for pinned in &source.files {
            let bytes = reread_pinned(&source.folder, pinned, host)?;
            files.add(options, pinned.clone(), &bytes)?;
        }
        if let Some(pinned) = &source.annotations {
            let bytes = reread_pinned(&source.folder, pinned, host)?;
            // The parts that were not asked are not read again: an annotation of none of these questions is of one of those.
            files.annotate(&pinned.name, &bytes, None)?;
        }
        files.finish(options)
    }

    fn add(&mut self, options: &Options, pinned: PinnedFile, bytes: &[u8]) -> Result<(), OptionError> {
        let read = read(options.dataset, bytes).map_err(|error| {
            OptionError::usage(format!("{}: {error}", Path::new(&options.source.folder).join(&pinned.name).display()))
        })?;
        self.malformed.extend(read.malformed.into_iter().map(|row| (pinned.name.clone(), row)));
        if read.other_questions > 0 {
            let note = format!(
                "{}: {} {} than {} has.",
                pinned.name,
                counted(read.other_questions, "question"),
                agreeing(read.other_questions, "is of another kind", "are of other kinds"),
                options.dataset.title()
            );
            self.data.notes.push(note);
        }
        for problem in read.problems {
            // Questions on one passage stay in one part.
            let split = pinned.split.unwrap_or_else(|| Split::of(&problem.body));
            self.data.parts.entry(split).or_default().push(problem);
        }
        Ok(())
    }

    /// Reads annotations of the questions that were read. `elsewhere` are questions of the folder that are not asked; without
    /// it every other question is taken to be one of them.
    fn annotate(&mut self, name: &str, bytes: &[u8], elsewhere: Option<&BTreeSet<String>>) -> Result<(), OptionError> {
        let questions: BTreeMap<&str, &Problem> =
            self.data.parts.values().flatten().map(|problem| (problem.id.as_str(), problem)).collect();
        let question = |id: &str| match questions.get(id) {
            Some(problem) => Asked::Here(problem),
            None if elsewhere.is_none_or(|others| others.contains(id)) => Asked::Elsewhere,
            None => Asked::Nowhere,
        };
        let (annotations, malformed) =
            read_annotations(bytes, question).map_err(|error| OptionError::usage(format!("{name}: {error}")))?;
        self.malformed.extend(malformed.into_iter().map(|row| (name.to_owned(), row)));
        self.data.annotations = annotations;
        Ok(())
    }

    /// Refuses malformed rows, or passes over them with a note.
    fn finish(mut self, options: &Options) -> Result<Data, OptionError> {
        if self.malformed.is_empty() {
            return Ok(self.data);
        }
        let text = malformed_rows(&self.malformed);
        if !options.source.skip_malformed {
            let message = format!("{text} in {}", options.source.folder);
            return Err(
                OptionError::usage(message).help("mend them, or leave them out with the setting `malformed = skip`")
            );
        }
        self.data.notes.push(format!("Left out: {text}."));
        Ok(self.data)
    }
}

/// Ids of the folder's questions in unused files: an annotation may belong to one of them. Files that cannot be read are skipped.
fn other_questions(dataset: Dataset, folder: &Path, used: &[PinnedFile], host: &dyn Host) -> BTreeSet<String> {
    let mut ids = BTreeSet::new();
    for name in Split::ALL.into_iter().flat_map(|split| part_names(dataset, split)) {
        if used.iter().any(|file| file.name == name) {
            continue;
        }
        if let Ok(bytes) = host.read(&folder.join(&name))
            && let Ok(found) = read(dataset, &bytes)
        {
            ids.extend(found.problems.into_iter().map(|problem| problem.id));
        }
    }
    ids
}

/// The files of the wanted parts: those that hold a part each, or the data set's own files, which are divided here.
fn locate(
    dataset: Dataset,
    folder: &Path,
    wanted: &[Split],
    host: &dyn Host,
) -> Result<Vec<(String, Option<Split>)>, OptionError> {
    let mut found = Vec::new();
    let mut missing = Vec::new();
    let mut wanted = wanted.to_vec();
    wanted.sort_unstable();
    wanted.dedup();
    for &split in &wanted {
        let names = part_names(dataset, split);
        match names.iter().find(|name| host.is_file(&folder.join(name))) {
            Some(name) => found.push((name.clone(), Some(split))),
            None => missing.push((split, names)),
        }
    }
    let Some((split, names)) = missing.into_iter().next() else { return Ok(found) };
    let own: &[&str] = match dataset {
        Dataset::AsdivA => &[],
        Dataset::DropNum => &["drop_dataset_train.json", "drop_dataset_dev.json"],
        Dataset::TatqaA => &["tatqa_dataset_train.json", "tatqa_dataset_dev.json"],
    };
    let whole: Vec<(String, Option<Split>)> =
        own.iter().filter(|name| host.is_file(&folder.join(name))).map(|name| ((*name).to_owned(), None)).collect();
    if found.is_empty() && !whole.is_empty() {
        return Ok(whole);
    }
    let mut looked = names;
    looked.extend(own.iter().map(|name| (*name).to_owned()));
    let message = format!("{} has no {split} part of {dataset}: looked for {}", folder.display(), looked.join(", "));
    Err(OptionError::usage(message).help("docs/dnc.md tells where the data come from and describes the folder"))
}

fn part_names(dataset: Dataset, split: Split) -> Vec<String> {
    vec![
        format!("{dataset}/{split}set.json"),
        format!("{dataset}/{split}.json"),
        format!("{dataset}/{split}.jsonl"),
        format!("{dataset}.{split}.jsonl"),
        format!("{dataset}.{split}.json"),
        format!("{split}set.json"),
    ]
}

/// Next step where the data folder is missing.
const FOLDER: &str = "name the folder that holds the data; docs/dnc.md describes it";

/// A file's bytes and their SHA-256.
fn read_pinned(path: &Path, host: &dyn Host) -> Result<(Vec<u8>, String), OptionError> {
    let bytes =
        host.read(path).map_err(|error| OptionError::usage(format!("cannot read {}: {error}", path.display())))?;
    let hash = earnest_digest::hex(&earnest_digest::sha256(&bytes));
    Ok((bytes, hash))
}

/// The absolute form of a folder, for a manifest.
fn absolute(folder: &Path, host: &dyn Host) -> Result<String, OptionError> {
    let found = host
        .absolute(folder)
        .map_err(|error| OptionError::usage(format!("setting `data = {}`: {error}", folder.display())).help(FOLDER))?;
    if !host.is_folder(&found) {
        return Err(
            OptionError::usage(format!("the setting `data = {}` is not a folder", folder.display())).help(FOLDER)
        );
    }
    found.to_str().map(str::to_owned).ok_or_else(|| {
        OptionError::usage(format!(
            "setting `data = {}`: its name is not UTF-8, and manifests are text",
            found.display()
        ))
    })
}

/// A stored run's file, if it is still what it was. [`DATA_VARIABLE`] names the folder it was moved to.
fn reread_pinned(folder: &str, file: &PinnedFile, host: &dyn Host) -> Result<Vec<u8>, OptionError> {
    let (name, sha256, moved) = (&file.name, &file.sha256, host.moved());
    // A file given by itself has an absolute name; moved, it is looked for under its last part.
    let path = match (&moved, Path::new(name).is_absolute()) {
        (Some(moved), true) => moved.join(Path::new(name).file_name().unwrap_or_default()),
        (Some(moved), false) => moved.join(name),
        (None, _) => Path::new(folder).join(name),
    };
    let help = format!(
        "set {DATA_VARIABLE} to the folder that holds the files of this run; `earnest run ... --data DIR` begins a new run"
    );
    let bytes = host.read(&path).map_err(|error| {
        let message = format!("the run's data file {} cannot be read: {error}", path.display());
        OptionError::data(message).help(help.clone())
    })?;
    let now = earnest_digest::hex(&earnest_digest::sha256(&bytes));
    if now != *sha256 {
        let message =
            format!("the run's data file {} has changed: its SHA-256 was {sha256} and is {now}", path.display());
        return Err(OptionError::data(message).help(help));
    }
    Ok(bytes)
}
