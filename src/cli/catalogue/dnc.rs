//! DNC at the command line: its options, and its data from the user's folder.
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use clap::builder::PossibleValuesParser;
use clap::{Args, ValueEnum};
use serde_json::Value;

use super::data::{absolute, read_pinned, reread_pinned};
use super::{Channel, Choice, Entry, Registered, Unusable, profile};
use crate::cli::Exit;
use crate::cli::args::SuiteArgs;
use crate::cli::error::CliError;
use crate::cli::values::Prompts;
use crate::prompt::Mode as PromptMode;
use crate::suite::Suite;
use crate::suite::dnc::{
    Asked, Data, Dataset, Dnc, Kind, Malformed, Mode, Numbers, Options, PinnedFile, Problem, Profile, PromptShape,
    Source, Split, Target, VERSION, kinds, read, read_annotations, shortened,
};

const NAME: &str = "dnc";
const PROMPTS: [&str; 5] = ["answer", "equation", "equation-answer", "cot", "all"];

/// The suite's place in the catalogue.
pub struct Registration;

/// Options of the DNC suite. None of them has a default here: what is not given is the suite's own.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "DNC (questions from --data)")]
pub struct DncArgs {
    /// Which data set of the folder [default: asdiv-a]
    #[arg(long, value_name = "NAME", value_parser = PossibleValuesParser::new(Dataset::ALL.map(Dataset::name)))]
    pub dataset: Option<String>,

    /// Perturbations, separated by commas: language, type, noise, distribution, verbosity, extra, logic, order,
    /// language-to-digits; `all` is the first eight [default: all]
    #[arg(long, value_name = "KINDS", value_delimiter = ',')]
    pub kinds: Option<Vec<String>>,

    /// Perturbations as they were meant, or bit for bit as the authors' program makes them [default: fixed]
    #[arg(long, value_name = "MODE", value_enum)]
    pub mode: Option<ModeArg>,

    /// Parts of the data to ask, separated by commas: train, valid, test [default: test]
    #[arg(long, value_name = "PARTS", value_delimiter = ',', value_parser = PossibleValuesParser::new(Split::ALL.map(Split::name)))]
    pub splits: Option<Vec<String>>,

    /// Numbers in prompts as digits (token), or as [NUM1], [NUM2] whose values the model does not see [default: token]
    #[arg(long, value_name = "HOW", value_enum)]
    pub numbers: Option<NumbersArg>,

    /// Worked examples from the train part before each question: 0 to 16 [default: 0]
    #[arg(long, value_name = "K")]
    pub demonstrations: Option<usize>,

    /// Independent choices of the examples; several tell an effect from the luck of a choice [default: 1]
    #[arg(long, value_name = "N")]
    pub demonstration_sets: Option<u32>,

    /// Ask also with perturbed examples: adaptation from demonstrations
    #[arg(long)]
    pub defence: bool,

    /// Independent draws of each random perturbation of a question [default: 1]
    #[arg(long, value_name = "N")]
    pub draws: Option<u32>,

    /// File of Logic and Order annotations (docs/dnc.md) [default: one in the folder]
    #[arg(long, value_name = "FILE")]
    pub annotations: Option<PathBuf>,

    /// Rows of the data that cannot be read: refuse to run, or skip and count them [default: refuse]
    #[arg(long, value_name = "WHAT", value_enum)]
    pub malformed: Option<MalformedArg>,
}

/// `--mode`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ModeArg {
    Fixed,
    Reference,
}

impl From<ModeArg> for Mode {
    fn from(arg: ModeArg) -> Self {
        match arg {
            ModeArg::Fixed => Mode::Fixed,
            ModeArg::Reference => Mode::Reference,
        }
    }
}

/// `--numbers`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum NumbersArg {
    Token,
    Replace,
}

/// `--malformed`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum MalformedArg {
    Refuse,
    Skip,
}

impl Registered for Registration {
    fn name(&self) -> &'static str {
        NAME
    }

    fn entry(&self) -> Result<Entry, CliError> {
        Ok(Entry {
            name: NAME,
            version: VERSION,
            paper: "Towards Robust Numerical Question Answering: Diagnosing Numerical Capabilities of NLP Systems (EMNLP 2022)",
            about: "Eight perturbations of ASDiv-a, DROP or TAT-QA questions, attack and in-context defence, paired by question",
            tasks: std::iter::once("original").chain(Kind::ALL.map(Kind::name)).map(str::to_owned).collect(),
            items: None,
            options: &[
                "--data",
                "--dataset",
                "--kinds",
                "--mode",
                "--splits",
                "--prompt",
                "--numbers",
                "--demonstrations",
                "--demonstration-sets",
                "--defence",
                "--draws",
                "--annotations",
                "--malformed",
                "--seed",
                "--profile",
            ],
        })
    }

    fn given(&self, args: &SuiteArgs) -> Vec<&'static str> {
        let dnc = &args.dnc;
        [
            args.data.data.as_ref().map(|_| "--data"),
            dnc.dataset.as_ref().map(|_| "--dataset"),
            dnc.kinds.as_ref().map(|_| "--kinds"),
            dnc.mode.map(|_| "--mode"),
            dnc.splits.as_ref().map(|_| "--splits"),
            dnc.numbers.map(|_| "--numbers"),
            dnc.demonstrations.map(|_| "--demonstrations"),
            dnc.demonstration_sets.map(|_| "--demonstration-sets"),
            dnc.defence.then_some("--defence"),
            dnc.draws.map(|_| "--draws"),
            dnc.annotations.as_ref().map(|_| "--annotations"),
            dnc.malformed.map(|_| "--malformed"),
        ]
        .into_iter()
        .flatten()
        .collect()
    }

    fn prompts(&self) -> &'static [&'static str] {
        &PROMPTS
    }

    fn choose(&self, args: &SuiteArgs, prompts: &Prompts) -> Result<Box<dyn Choice>, CliError> {
        let mut options = options(args, prompts)?;
        options.check().map_err(|error| CliError::usage(error.to_string()))?;
        let profile = profile(NAME, args, &options.profiles())?;
        let Some(folder) = &args.data.data else {
            return Err(CliError::usage(
                "dnc asks questions of data that cannot be shipped: --data DIR names their folder",
            )
            .help("docs/dnc.md says where ASDiv-a, DROP and TAT-QA come from and how the folder looks"));
        };
        let data = Files::find(&mut options, folder, args.dnc.annotations.as_deref())?;
        Ok(Box::new(Chosen { options, profile, data }))
    }

    fn primary(&self, options: &Value) -> Vec<&'static str> {
        serde_json::from_value(options.clone()).map_or_else(|_| Vec::new(), |options: Options| options.primary())
    }

    fn stored(&self, options: &Value) -> Result<Box<dyn Suite>, Unusable> {
        let options: Options = serde_json::from_value(options.clone()).map_err(|error| error.to_string())?;
        let source = &options.source;
        let mut files = Files::default();
        for pinned in &source.files {
            let bytes = reread_pinned(&source.folder, &pinned.name, &pinned.sha256).map_err(Unusable::Data)?;
            files.add(&options, pinned.clone(), &bytes).map_err(Unusable::Data)?;
        }
        if let Some(pinned) = &source.annotations {
            let bytes = reread_pinned(&source.folder, &pinned.name, &pinned.sha256).map_err(Unusable::Data)?;
            // The parts that were not asked are not read again: an annotation of none of these questions is of one of those.
            files.annotate(&pinned.name, &bytes, None).map_err(Unusable::Data)?;
        }
        let data = files.finish(&options).map_err(Unusable::Data)?;
        Ok(Box::new(Dnc::new(options, data).map_err(|error| error.to_string())?))
    }
}

struct Chosen {
    options: Options,
    /// As asked for.
    profile: Option<Profile>,
    data: Data,
}

impl Choice for Chosen {
    fn suite(&self, channel: Channel) -> Result<Box<dyn Suite>, CliError> {
        let answers = self.options.targets.iter().any(|target| target.has_answer());
        let last = if answers { Profile::Final } else { Profile::Own };
        let profile = channel.profile(self.profile, last, Profile::Own);
        let shape = match channel.mode {
            PromptMode::Chat => PromptShape::Chat,
            PromptMode::Raw => PromptShape::Raw,
        };
        let options = Options { shape, profile, ..self.options.clone() };
        Ok(Box::new(Dnc::new(options, self.data.clone()).map_err(|error| CliError::usage(error.to_string()))?))
    }

    fn task(&self, name: &str) -> Result<String, CliError> {
        match name {
            "original" => Ok(name.to_owned()),
            _ => name
                .parse()
                .map(|kind: Kind| kind.name().to_owned())
                .map_err(|error| CliError::usage(error.to_string())),
        }
    }
}

fn options(args: &SuiteArgs, prompts: &Prompts) -> Result<Options, CliError> {
    let usage = |error: String| CliError::usage(error);
    for (given, option) in [
        (args.tasks.is_some(), "--tasks"),
        (args.lengths.is_some(), "--lengths"),
        (args.per_length.is_some(), "--per-length"),
    ] {
        if given {
            return Err(CliError::usage(format!("dnc has no {option}"))
                .help("--kinds chooses perturbations, --limit questions"));
        }
    }
    let dnc = &args.dnc;
    let mut options = Options { seed: args.seed, ..Options::default() };
    if let Some(name) = &dnc.dataset {
        options.dataset = name.parse().map_err(usage)?;
    }
    if let Some(names) = &dnc.kinds {
        options.kinds = kinds(names).map_err(|error| usage(error.to_string()))?;
    }
    if let Some(names) = &dnc.splits {
        options.splits = Split::ALL.into_iter().filter(|split| names.iter().any(|name| name == split.name())).collect();
    }
    if !prompts.names.is_empty() {
        options.targets =
            Target::ALL.into_iter().filter(|target| prompts.names.iter().any(|name| name == target.name())).collect();
        if prompts.names.iter().any(|name| name == "all") {
            options.targets = Target::ALL.into_iter().filter(|target| target.applies_to(options.dataset)).collect();
        }
    }
    options.mode = dnc.mode.map_or(options.mode, Mode::from);
    options.numbers = match dnc.numbers {
        Some(NumbersArg::Replace) => Numbers::Replace,
        _ => Numbers::Token,
    };
    options.demonstrations = dnc.demonstrations.unwrap_or(options.demonstrations);
    options.demonstration_sets = dnc.demonstration_sets.unwrap_or(options.demonstration_sets);
    options.defence = dnc.defence;
    options.draws = dnc.draws.unwrap_or(options.draws);
    options.source.skip_malformed = dnc.malformed == Some(MalformedArg::Skip);
    if options.mode == Mode::Reference && u32::try_from(options.seed).is_err() {
        return Err(CliError::usage(
            "--mode reference seeds the generators of its day: --seed must be below 4294967296",
        ));
    }
    Ok(options)
}

/// Files as they are read.
#[derive(Default)]
struct Files {
    data: Data,
    malformed: Vec<(String, Malformed)>,
}

impl Files {
    /// Finds and reads what the options need.
    fn find(options: &mut Options, folder: &Path, annotations: Option<&Path>) -> Result<Data, CliError> {
        options.source =
            Source { folder: absolute(folder)?, skip_malformed: options.source.skip_malformed, ..Source::default() };
        let mut files = Files::default();
        let mut wanted = options.splits.clone();
        if options.demonstrations > 0 {
            wanted.push(Split::Train);
        }
        for (name, split) in locate(options.dataset, folder, &wanted)? {
            let (bytes, sha256) = read_pinned(&folder.join(&name))?;
            let pinned = PinnedFile { name, sha256, split };
            files.add(options, pinned.clone(), &bytes)?;
            options.source.files.push(pinned);
        }
        if options.kinds.iter().any(|kind| kind.is_annotated()) {
            let dataset = options.dataset;
            let usual = [format!("{dataset}.annotations.jsonl"), format!("{dataset}.order_logic.DRAFT.jsonl")];
            let found = match annotations {
                Some(path) => {
                    let path = std::fs::canonicalize(path)
                        .map_err(|error| CliError::usage(format!("--annotations {}: {error}", path.display())))?;
                    Some(path.to_string_lossy().into_owned())
                }
                None => usual.into_iter().find(|name| folder.join(name).is_file()),
            };
            if let Some(name) = found {
                let (bytes, sha256) = read_pinned(&folder.join(&name))?;
                let elsewhere = other_questions(dataset, folder, &options.source.files);
                files.annotate(&name, &bytes, Some(&elsewhere))?;
                options.source.annotations = Some(PinnedFile { name, sha256, split: None });
            }
        } else if annotations.is_some() {
            return Err(CliError::usage("--annotations holds Logic and Order, and --kinds has neither"));
        }
        files.finish(options)
    }

    fn add(&mut self, options: &Options, pinned: PinnedFile, bytes: &[u8]) -> Result<(), CliError> {
        let read = read(options.dataset, bytes).map_err(|error| {
            CliError::usage(format!("{}: {error}", Path::new(&options.source.folder).join(&pinned.name).display()))
        })?;
        self.malformed.extend(read.malformed.into_iter().map(|row| (pinned.name.clone(), row)));
        if read.other_questions > 0 {
            let note = format!(
                "{}: {} questions are of other kinds than {} has.",
                pinned.name,
                read.other_questions,
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
    fn annotate(&mut self, name: &str, bytes: &[u8], elsewhere: Option<&BTreeSet<String>>) -> Result<(), CliError> {
        let questions: BTreeMap<&str, &Problem> =
            self.data.parts.values().flatten().map(|problem| (problem.id.as_str(), problem)).collect();
        let question = |id: &str| match questions.get(id) {
            Some(problem) => Asked::Here(problem),
            None if elsewhere.is_none_or(|others| others.contains(id)) => Asked::Elsewhere,
            None => Asked::Nowhere,
        };
        let (annotations, malformed) =
            read_annotations(bytes, question).map_err(|error| CliError::usage(format!("{name}: {error}")))?;
        self.malformed.extend(malformed.into_iter().map(|row| (name.to_owned(), row)));
        self.data.annotations = annotations;
        Ok(())
    }

    /// Refuses malformed rows, or passes over them with a note.
    fn finish(mut self, options: &Options) -> Result<Data, CliError> {
        if self.malformed.is_empty() {
            return Ok(self.data);
        }
        let text = malformed_rows(&self.malformed);
        if !options.source.skip_malformed {
            let message = format!("{text} in {}", options.source.folder);
            return Err(CliError::new(Exit::Usage, message).help("mend them, or leave them out with --malformed skip"));
        }
        self.data.notes.push(format!("Left out: {text}."));
        Ok(self.data)
    }
}

/// Ids of the folder's questions in files that are not used: an annotation may be of one of them. What cannot be read there is
/// of no concern here.
fn other_questions(dataset: Dataset, folder: &Path, used: &[PinnedFile]) -> BTreeSet<String> {
    let mut ids = BTreeSet::new();
    for name in Split::ALL.into_iter().flat_map(|split| part_names(dataset, split)) {
        if used.iter().any(|file| file.name == name) {
            continue;
        }
        if let Ok(bytes) = std::fs::read(folder.join(&name))
            && let Ok(found) = read(dataset, &bytes)
        {
            ids.extend(found.problems.into_iter().map(|problem| problem.id));
        }
    }
    ids
}

/// Malformed rows in a sentence: how many, each by name, and the reasons of the first five.
pub fn malformed_rows(rows: &[(String, Malformed)]) -> String {
    let mut text = format!("{} malformed row{}", rows.len(), if rows.len() == 1 { "" } else { "s" });
    for (place, (file, row)) in rows.iter().take(5).enumerate() {
        text.push_str(if place == 0 { ": " } else { "; " });
        text.push_str(&format!("{file}, {}: {}", row.place, shortened(&row.why, 160)));
    }
    if rows.len() > 5 {
        // Every row is named; for the reason of one of these, mend those before it.
        let places: Vec<String> = rows[5..].iter().map(|(file, row)| format!("{file}, {}", row.place)).collect();
        text.push_str(&format!("; and {} more: {}", places.len(), places.join("; ")));
    }
    text
}

/// The files of the wanted parts: those that hold a part each, or the data set's own files, which are divided here.
fn locate(dataset: Dataset, folder: &Path, wanted: &[Split]) -> Result<Vec<(String, Option<Split>)>, CliError> {
    let mut found = Vec::new();
    let mut missing = Vec::new();
    let mut wanted = wanted.to_vec();
    wanted.sort_unstable();
    wanted.dedup();
    for &split in &wanted {
        let names = part_names(dataset, split);
        match names.iter().find(|name| folder.join(name).is_file()) {
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
        own.iter().filter(|name| folder.join(name).is_file()).map(|name| ((*name).to_owned(), None)).collect();
    if found.is_empty() && !whole.is_empty() {
        return Ok(whole);
    }
    let mut looked = names;
    looked.extend(own.iter().map(|name| (*name).to_owned()));
    let message = format!("{} has no {split} part of {dataset}: looked for {}", folder.display(), looked.join(", "));
    Err(CliError::usage(message).help("docs/dnc.md says where the data come from and how the folder looks"))
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
