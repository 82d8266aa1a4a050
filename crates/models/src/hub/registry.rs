//! The list of models: `models.toml`, extended and overridden by the user's files.
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::{Commit, CommitError, HubError, RepoId, own};
use earnest_digest::toml_file;

/// The built-in list.
const BUILT_IN: &str = include_str!("../../../../models.toml");

/// The value of `commit` for an entry without one.
const UNRESOLVED: &str = "unresolved";

/// A model's kind of training.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// Pretrained on text; prompted without a chat template.
    Base,
    /// Tuned to follow instructions.
    Instruct,
    /// Trained to reason before it answers.
    Reasoning,
}

/// Access restriction of a repository.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Gate {
    /// A licence must be accepted first.
    Licence,
    /// Public.
    None,
    Unknown,
}

/// Sampling settings that a model's authors recommend.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Decoding {
    pub temperature: f32,
    pub top_p: Option<f32>,
    pub top_k: Option<usize>,
    pub repetition_penalty: Option<f32>,
}

/// A field of an entry that may lack a source.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Claim {
    Licence,
    Gate,
    Decoding,
}

/// An entry of a file. When it overrides another one, all fields except the name are optional.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    name: String,
    repo: Option<String>,
    commit: Option<String>,
    family: Option<String>,
    shape: Option<String>,
    parameters: Option<u64>,
    kind: Option<Kind>,
    licence: Option<String>,
    gate: Option<Gate>,
    decoding: Option<Decoding>,
    papers: Option<Vec<String>>,
    sources: Option<Vec<String>>,
    unverified: Option<Vec<Claim>>,
    notes: Option<Vec<String>>,
    not_runnable: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    format: u32,
    #[serde(default)]
    model: Vec<Row>,
}

/// A model of the list, merged from all files.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Entry {
    /// Name for `--model`.
    pub name: String,
    pub repo: RepoId,
    /// None if no source gives a commit and none was resolved or chosen.
    pub commit: Option<Commit>,
    /// `model_type` of the configuration.
    pub family: Option<String>,
    /// Key of [`super::shape`].
    pub shape: Option<String>,
    pub parameters: Option<u64>,
    pub kind: Option<Kind>,
    pub licence: Option<String>,
    pub gate: Gate,
    /// None for greedy decoding.
    pub decoding: Option<Decoding>,
    /// Suites of the papers that evaluated the model.
    pub papers: Vec<String>,
    /// Sources of size, context and licence: public files by repository, path and commit.
    pub sources: Vec<String>,
    /// Fields that no source confirms.
    pub unverified: Vec<Claim>,
    pub notes: Vec<String>,
    /// Reason why the native engine does not support the model.
    pub not_runnable: Option<String>,
    /// The last file with an entry of this name; none for the built-in list.
    pub from: Option<PathBuf>,
}

impl Entry {
    /// Returns the pinned commit.
    ///
    /// # Errors
    /// [`HubError::Unresolved`].
    pub fn pinned(&self) -> Result<&Commit, HubError> {
        self.commit
            .as_ref()
            .ok_or_else(|| HubError::Unresolved { name: self.name.clone(), repo: self.repo.to_string() })
    }
}

/// Fault of an entry of a file.
#[derive(Debug, thiserror::Error)]
enum RowFault {
    #[error("a name must not contain /, @ or \\ or begin with - or .")]
    Name,
    #[error("it is listed twice")]
    Twice,
    #[error("{0}")]
    Repo(Box<HubError>),
    #[error("commit is '{text}', expected 40 hexadecimal digits or \"{UNRESOLVED}\": {error}")]
    Commit { text: String, error: CommitError },
    #[error("a new model needs a repo")]
    NoRepo,
}

/// The list of models, in the order of the files.
#[derive(Debug, Clone, PartialEq)]
pub struct Registry {
    pub entries: Vec<Entry>,
    /// Files that were read in addition to the built-in list.
    pub files: Vec<PathBuf>,
}

impl Registry {
    /// Returns the built-in list alone.
    pub fn built_in() -> Registry {
        let mut registry = Registry { entries: Vec::new(), files: Vec::new() };
        registry.add(BUILT_IN, None).expect("the list is part of the program and a test reads it");
        registry
    }

    /// Reads the built-in list and files that override it, later ones taking precedence. Files of `defaults` may be missing; the
    /// file `named` by the user may not.
    ///
    /// # Errors
    /// [`HubError::Registry`], [`HubError::Io`].
    pub fn read(defaults: &[PathBuf], named: Option<&Path>) -> Result<Registry, HubError> {
        let mut registry = Registry::built_in();
        let files = defaults.iter().map(|path| (path.as_path(), false)).chain(named.map(|path| (path, true)));
        for (path, required) in files {
            match own::read_text(path) {
                Ok(text) => {
                    registry.add(&text, Some(path))?;
                    registry.files.push(path.to_owned());
                }
                Err(error) if own::is_absent(&error) && !required => {}
                Err(source) => return Err(HubError::io("read", path, source)),
            }
        }
        Ok(registry)
    }

    fn add(&mut self, text: &str, from: Option<&Path>) -> Result<(), HubError> {
        let failed =
            |what: String| HubError::Registry { path: from.unwrap_or(Path::new("models.toml")).to_owned(), what };
        let file: File = toml_file::read(text).map_err(|error| failed(error.sentence()))?;
        if file.format != 1 {
            return Err(failed(format!("format {} is not supported; this version reads format 1", file.format)));
        }
        let mut seen: Vec<String> = Vec::new();
        for row in file.model {
            let name = row.name.clone();
            let wrong = |fault: RowFault| failed(format!("model '{name}': {fault}"));
            if name.is_empty() || name.contains(['/', '@', '\\']) || name.starts_with(['-', '.']) {
                return Err(wrong(RowFault::Name));
            }
            if seen.contains(&name) {
                return Err(wrong(RowFault::Twice));
            }
            self.merge(row, from).map_err(wrong)?;
            seen.push(name);
        }
        Ok(())
    }

    fn merge(&mut self, row: Row, from: Option<&Path>) -> Result<(), RowFault> {
        let repo = row.repo.as_deref().map(RepoId::parse).transpose().map_err(|error| RowFault::Repo(error.into()))?;
        let commit = match row.commit.as_deref() {
            None => None,
            Some(UNRESOLVED) => Some(None),
            Some(text) => {
                let wrong = |error| RowFault::Commit { text: text.to_owned(), error };
                Some(Some(Commit::parse(text).map_err(wrong)?))
            }
        };
        let index = match self.entries.iter().position(|entry| entry.name == row.name) {
            Some(index) => index,
            None => {
                let repo = repo.clone().ok_or(RowFault::NoRepo)?;
                self.entries.push(Entry {
                    name: row.name.clone(),
                    repo,
                    commit: None,
                    family: None,
                    shape: None,
                    parameters: None,
                    kind: None,
                    licence: None,
                    gate: Gate::Unknown,
                    decoding: None,
                    papers: Vec::new(),
                    sources: Vec::new(),
                    unverified: Vec::new(),
                    notes: Vec::new(),
                    not_runnable: None,
                    from: None,
                });
                self.entries.len() - 1
            }
        };
        let Some(entry) = self.entries.get_mut(index) else { return Ok(()) };
        if let Some(repo) = repo {
            // A commit belongs to its repository.
            if repo != entry.repo {
                entry.commit = None;
            }
            entry.repo = repo;
        }
        if let Some(commit) = commit {
            entry.commit = commit;
        }
        // A field that a later file sets counts as verified unless that file says otherwise.
        let overridden = [
            (Claim::Licence, row.licence.is_some()),
            (Claim::Gate, row.gate.is_some()),
            (Claim::Decoding, row.decoding.is_some()),
        ];
        entry.unverified.retain(|claim| !overridden.contains(&(*claim, true)));
        entry.unverified = row.unverified.unwrap_or(std::mem::take(&mut entry.unverified));
        entry.family = row.family.or(entry.family.take());
        entry.shape = row.shape.or(entry.shape.take());
        entry.parameters = row.parameters.or(entry.parameters);
        entry.kind = row.kind.or(entry.kind);
        entry.licence = row.licence.or(entry.licence.take());
        entry.gate = row.gate.unwrap_or(entry.gate);
        entry.decoding = row.decoding.or(entry.decoding);
        entry.papers = row.papers.unwrap_or(std::mem::take(&mut entry.papers));
        entry.sources = row.sources.unwrap_or(std::mem::take(&mut entry.sources));
        entry.notes = row.notes.unwrap_or(std::mem::take(&mut entry.notes));
        // An empty text removes the reason.
        entry.not_runnable = row.not_runnable.or(entry.not_runnable.take()).filter(|reason| !reason.is_empty());
        entry.from = from.map(Path::to_owned);
        Ok(())
    }

    /// Finds an entry by name, ignoring case where that is unambiguous.
    pub fn find(&self, name: &str) -> Option<&Entry> {
        self.entries.iter().find(|entry| entry.name == name).or_else(|| {
            let mut alike = self.entries.iter().filter(|entry| entry.name.eq_ignore_ascii_case(name));
            alike.next().filter(|_| alike.next().is_none())
        })
    }

    /// Returns the reason why a repository is not runnable, with its entry, at any commit; none if one of its entries is runnable.
    /// A repository without an organisation is matched by name, because the hub has moved such repositories to organisations.
    pub fn not_runnable(&self, repo: &RepoId) -> Option<(&Entry, &str)> {
        let of_repo = |entry: &&Entry| entry.repo == *repo || (repo.is_bare() && entry.repo.name() == repo.as_str());
        let mut entries = self.entries.iter().filter(of_repo);
        let runnable = entries.clone().any(|entry| entry.not_runnable.is_none());
        let first = entries.next().filter(|_| !runnable)?;
        Some((first, first.not_runnable.as_deref()?))
    }

    /// Finds an entry by name.
    ///
    /// # Errors
    /// [`HubError::UnknownModel`], with the most similar names.
    pub fn get(&self, name: &str) -> Result<&Entry, HubError> {
        self.find(name).ok_or_else(|| HubError::UnknownModel {
            name: name.to_owned(),
            near: near(name, self.entries.iter().map(|entry| entry.name.as_str())),
        })
    }
}

/// Most names in an error.
const MOST_NEAR: usize = 3;

/// Returns the most similar names, the nearest first: those that contain the text, or begin with one that differs in few letters.
pub(super) fn near<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Vec<String> {
    let wanted = name.to_ascii_lowercase();
    let most = 1 + wanted.len() / 5;
    let mut found: Vec<(usize, usize, &str)> = known
        .filter_map(|entry| {
            let known = entry.to_ascii_lowercase();
            // An organisation in front is often left out.
            let (_, short) = known.rsplit_once('/').unwrap_or(("", &known));
            let inside = wanted.len() >= 4 && known.contains(&wanted);
            let whole = strsim::levenshtein(&wanted, &known).min(strsim::levenshtein(&wanted, short));
            let away = if inside { 0 } else { whole.min(1 + beginning(&wanted, short)) };
            (away <= most).then_some((away, whole, entry))
        })
        .collect();
    found.sort();
    found.into_iter().take(MOST_NEAR).map(|(.., entry)| entry.to_owned()).collect()
}

/// Returns the smallest number of letters in which a text differs from a beginning of a name that ends with a part of it: `gemma` of `gemma-2-2b`.
fn beginning(wanted: &str, name: &str) -> usize {
    let ends = name.char_indices().filter(|(_, letter)| !letter.is_alphanumeric()).map(|(at, _)| at);
    ends.map(|end| strsim::levenshtein(wanted, &name[..end])).min().unwrap_or(usize::MAX - 1)
}

/// Saves a commit in `resolved.toml`, a list of models that only this function writes; its other entries are kept.
///
/// # Errors
/// [`HubError::Registry`], [`HubError::Io`].
pub fn save_commit(path: &Path, name: &str, repo: &RepoId, commit: &Commit) -> Result<(), HubError> {
    let failed = |what: String| HubError::Registry { path: path.to_owned(), what };
    let mut table: toml::Table = match own::read_text(path) {
        Ok(text) => toml_file::read(&text).map_err(|error| failed(error.sentence()))?,
        Err(error) if own::is_absent(&error) => toml::Table::new(),
        Err(source) => return Err(HubError::io("read", path, source)),
    };
    table.insert("format".into(), toml::Value::Integer(1));
    let models = table.entry("model").or_insert_with(|| toml::Value::Array(Vec::new()));
    let models = models.as_array_mut().ok_or_else(|| failed("`model` is not a list of tables".into()))?;
    models.retain(|model| model.get("name").and_then(toml::Value::as_str) != Some(name));
    let mut row = toml::Table::new();
    for (key, value) in [("name", name), ("repo", repo.as_str()), ("commit", commit.as_str())] {
        row.insert(key.into(), toml::Value::String(value.to_owned()));
    }
    models.push(toml::Value::Table(row));
    let text = toml::to_string(&table).map_err(|error| failed(error.to_string()))?;
    let text =
        format!("# Commits that `earnest models resolve` asked the hub for, or `earnest models use` chose.\n{text}");
    super::snapshot::write_atomically(path, text.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn from(text: &str) -> Result<Registry, HubError> {
        let mut registry = Registry::built_in();
        registry.add(text, Some(Path::new("mine.toml"))).map(|()| registry)
    }

    #[test]
    fn the_built_in_list_holds_the_papers_models() {
        let list = Registry::built_in();
        let of = |paper: &str| list.entries.iter().filter(|entry| entry.papers.iter().any(|p| p == paper)).count();
        assert_eq!(of("gsm-symbolic"), 20);
        assert_eq!(of("nupa"), 6);
        // Table 4 without the three closed models.
        assert_eq!(of("arithmetic-bench"), 18);
        assert_eq!(of("dnc"), 4);
        for entry in &list.entries {
            let gsm = entry.papers.iter().any(|paper| paper == "gsm-symbolic");
            assert_eq!(entry.commit.is_some(), gsm, "{}: only that paper gives commits", entry.name);
            assert_eq!(entry.name, entry.repo.name());
            assert!(entry.kind.is_some() && entry.licence.is_some() && entry.family.is_some());
            if entry.papers.is_empty() {
                // Each claim has its source; what is recommended for decoding is read from the files alone.
                let has = |what: &str| entry.sources.iter().any(|source| source.starts_with(what));
                assert_eq!(entry.shape.is_some(), has("size and context: "), "{}", entry.name);
                assert_eq!(!entry.unverified.contains(&Claim::Licence), has("licence: "), "{}", entry.name);
                assert_eq!(entry.shape.is_some(), entry.not_runnable.is_none(), "{}", entry.name);
                assert!(entry.parameters.is_none() && entry.decoding.is_none(), "{}", entry.name);
                continue;
            }
            assert!(entry.parameters.is_some());
            // A shape is what makes a model runnable; the test of the table says that native takes it.
            assert_eq!(entry.shape.is_some(), entry.not_runnable.is_none(), "{}", entry.name);
        }
        let today = list.entries.iter().filter(|entry| entry.papers.is_empty()).count();
        assert!(today > 40, "{today}");
        // Of the papers, one gives licences.
        for entry in &list.entries {
            let claims = |claim| entry.unverified.contains(&claim);
            let is_of_paper = !entry.papers.is_empty();
            assert!(!is_of_paper || claims(Claim::Licence) == entry.commit.is_none(), "{}", entry.name);
            assert_eq!(claims(Claim::Gate), entry.gate != Gate::Unknown, "{}", entry.name);
            assert_eq!(claims(Claim::Decoding), entry.decoding.is_some(), "{}", entry.name);
        }
        let llama = list.get("Meta-Llama-3-8B-Instruct").unwrap();
        assert_eq!(llama.commit.as_ref().unwrap().as_str(), "8afb486c1db24fe5011ec46dfbe5b5dccdb575c2");
        assert!(llama.notes.iter().any(|note| note.contains("8afb486c1db24fe5011ec46dfbe5b5dccb575c2")));
    }

    #[test]
    fn models_of_today_are_runnable_where_native_has_their_architecture() {
        use crate::checkpoint::{CheckpointError, DecoderConfig};
        for entry in Registry::built_in().entries.iter().filter(|entry| entry.papers.is_empty()) {
            let keys = match entry.family.as_deref() {
                // Around a text model of its own.
                Some("mistral3") => json!({"model_type": "mistral3", "text_config": {"model_type": "mistral"}}),
                // Published with Mamba layers.
                Some("granitemoehybrid") if entry.name.contains("-h-") => json!({"model_type": "mamba"}),
                family => json!({"model_type": family}),
            };
            let keys = keys.as_object().cloned().unwrap_or_default();
            // Other errors are about keys that are missing here.
            let read = DecoderConfig::from_config_keys(Path::new("config.json"), &keys);
            let known = !matches!(read, Err(CheckpointError::UnknownArchitecture { .. }));
            assert_eq!(entry.not_runnable.is_none(), known, "{} of {:?}", entry.name, entry.family);
        }
    }

    #[test]
    fn users_extend_and_override() {
        let commit = "b".repeat(40);
        let list = from(&format!(
            "format = 1\n[[model]]\nname = \"Qwen2-7B\"\ncommit = \"{commit}\"\n[[model]]\nname = \"mine\"\nrepo = \"me/mine\"\n"
        ))
        .unwrap();
        let qwen = list.get("qwen2-7b").unwrap();
        assert_eq!(qwen.commit.as_ref().unwrap().as_str(), commit);
        assert_eq!((qwen.repo.as_str(), qwen.parameters), ("Qwen/Qwen2-7B", Some(7_615_616_512)));
        assert_eq!(qwen.unverified, [Claim::Licence, Claim::Gate]);
        let checked = from("format = 1\n[[model]]\nname = \"Qwen2-7B\"\nlicence = \"apache-2.0\"\n").unwrap();
        assert_eq!(checked.get("Qwen2-7B").unwrap().unverified, [Claim::Gate]);
        let mine = list.get("mine").unwrap();
        assert!(matches!(mine.pinned(), Err(HubError::Unresolved { .. })));
        // Another repository does not keep the first one's commit.
        let moved = from("format = 1\n[[model]]\nname = \"phi-2\"\nrepo = \"me/phi-2\"\n").unwrap();
        assert_eq!(moved.get("phi-2").unwrap().commit, None);
    }

    #[test]
    fn wrong_lists_are_named() {
        for (text, part) in [
            ("", "format"),
            ("format = 2", "format 2"),
            ("format = 1\n[[model]]\nname = \"x\"\n", "needs a repo"),
            ("format = 1\n[[model]]\nname = \"x\"\nrepo = \"a/b\"\ncommit = \"main\"\n", "branch"),
            ("format = 1\n[[model]]\nname = \"x\"\nrepo = \"../b\"\n", "../b"),
            ("format = 1\n[[model]]\nname = \"a/x\"\nrepo = \"a/b\"\n", "name"),
            ("format = 1\n[[model]]\nname = \"x\"\nrepo = \"a/b\"\nrevision = \"y\"\n", "revision"),
            ("format = 1\n[[model]]\nname = \"phi-2\"\n[[model]]\nname = \"phi-2\"\n", "twice"),
            ("format = 1\n[[model", "mine.toml"),
        ] {
            let error = from(text).unwrap_err().to_string();
            assert!(error.contains(part) && error.contains("mine.toml"), "{text}: {error}");
        }
    }

    #[test]
    fn slips_are_recognised() {
        let list = Registry::built_in();
        let near = |name: &str| match list.get(name) {
            Err(HubError::UnknownModel { near, .. }) => near,
            other => panic!("{other:?}"),
        };
        assert_eq!(near("gema-2b").first().map(String::as_str), Some("gemma-2b"));
        assert_eq!(near("Mathstral"), ["Mathstral-7B-v0.1"]);
        assert!(near("gemmma").iter().all(|name| name.starts_with("gemma-")) && near("gemmma").len() == 3);
        assert!(near("something-else-entirely").is_empty());
        let cached = ["Qwen/Qwen2.5-0.5B", "HuggingFaceTB/SmolLM2-135M"];
        assert_eq!(super::near("smolm2-135M", cached.into_iter()), ["HuggingFaceTB/SmolLM2-135M"]);
    }

    #[test]
    fn resolved_commits_are_kept_beside_each_other() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("config/resolved.toml");
        let repo = |text: &str| RepoId::parse(text).unwrap();
        let commit = |digit: &str| Commit::parse(&digit.repeat(40)).unwrap();
        save_commit(&path, "Qwen2-7B", &repo("Qwen/Qwen2-7B"), &commit("a")).unwrap();
        save_commit(&path, "QwQ-32B", &repo("Qwen/QwQ-32B"), &commit("b")).unwrap();
        save_commit(&path, "Qwen2-7B", &repo("Qwen/Qwen2-7B"), &commit("c")).unwrap();
        let list = Registry::read(&[path, folder.path().join("none.toml")], None).unwrap();
        assert_eq!(list.get("Qwen2-7B").unwrap().commit, Some(commit("c")));
        assert_eq!(list.get("QwQ-32B").unwrap().commit, Some(commit("b")));
        assert_eq!(list.files.len(), 1);
        assert!(Registry::read(&[], Some(&folder.path().join("none.toml"))).is_err());
    }
}
