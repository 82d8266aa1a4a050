//! References to models: names of the list, repositories and commits of the hub.
use std::fmt;

use serde::{Deserialize, Serialize};

use super::HubError;

/// A repository of the hub, `organisation/name`, or `name` alone: the oldest ones have no organisation.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(transparent)]
pub struct RepoId(String);

/// Beginning of the hub's addresses of data sets; no organisation has a name with a slash.
const DATASETS: &str = "datasets/";

impl RepoId {
    /// Parses a repository by the hub's own rules, so that no name leads out of the cache folder.
    ///
    /// # Errors
    /// [`HubError::NotARepository`].
    pub fn parse(text: &str) -> Result<RepoId, HubError> {
        let part = |part: &str| {
            let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
            !part.is_empty()
                && part.len() <= 96
                && part.chars().all(plain)
                && !part.starts_with(['-', '.'])
                && !part.ends_with(['-', '.'])
                && !part.contains("--")
                && !part.contains("..")
        };
        let valid = match text.split_once('/') {
            Some((organisation, name)) => part(organisation) && part(name),
            None => part(text),
        };
        if valid { Ok(RepoId(text.to_owned())) } else { Err(HubError::NotARepository { given: text.to_owned() }) }
    }

    /// A repository of data sets, named alike.
    ///
    /// # Errors
    /// [`HubError::NotARepository`].
    pub fn dataset(text: &str) -> Result<RepoId, HubError> {
        RepoId::parse(text).map(|RepoId(name)| RepoId(format!("{DATASETS}{name}")))
    }

    /// True for a repository of data sets.
    pub fn is_dataset(&self) -> bool {
        self.0.starts_with(DATASETS)
    }

    /// Path of the repository in the hub's programming interface: `models/organisation/name` or `datasets/...`.
    pub(super) fn in_api(&self) -> String {
        if self.is_dataset() { self.0.clone() } else { format!("models/{}", self.0) }
    }

    /// Parses the name of a cache folder (`models--organisation--name`, `models--name`).
    pub fn of_folder(folder: &str) -> Option<RepoId> {
        RepoId::parse(&folder.strip_prefix("models--")?.replacen("--", "/", 1)).ok()
    }

    /// `organisation/name`, or `name`.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// True if it has no organisation.
    pub fn is_bare(&self) -> bool {
        !self.0.contains('/')
    }

    /// The part after the last slash.
    pub fn name(&self) -> &str {
        self.0.rsplit_once('/').map_or(self.0.as_str(), |(_, name)| name)
    }
}

impl fmt::Display for RepoId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A commit: 40 hexadecimal digits in lower case. Unlike a branch or tag, it always names the same files.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Commit(String);

impl Commit {
    /// Parses 40 hexadecimal digits.
    ///
    /// # Errors
    /// [`CommitError`].
    pub fn parse(text: &str) -> Result<Commit, CommitError> {
        let hex = text.chars().all(|c| c.is_ascii_hexdigit());
        Err(match text.len() {
            40 if hex => return Ok(Commit(text.to_ascii_lowercase())),
            0 => CommitError::Empty,
            4..40 if hex => CommitError::Abbreviated,
            digits if hex => CommitError::WrongLength { digits },
            _ => mistyped(text).unwrap_or(CommitError::BranchOrTag),
        })
    }

    /// The digits.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Reasons why a text is not a commit.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CommitError {
    /// No text.
    #[error("there is no revision after the @")]
    Empty,
    /// Fewer than 40 digits.
    #[error("an abbreviated hash can become ambiguous; a commit has 40 hexadecimal digits")]
    Abbreviated,
    /// Hexadecimal digits, but far too few or too many.
    #[error("a commit has 40 hexadecimal digits, not {digits}")]
    WrongLength {
        /// Number of digits.
        digits: usize,
    },
    /// About 40 characters, a few of which are not hexadecimal digits.
    #[error(
        "a commit has 40 hexadecimal digits (0-9, a-f); not hexadecimal: {}{}",
        wrong.iter().map(|(index, c)| format!("{c:?} at position {}", index + 1)).collect::<Vec<_>>().join(", "),
        if *characters == 40 { String::new() } else { format!(" ({characters} characters)") }
    )]
    Mistyped {
        /// Index and character of each one that is not hexadecimal.
        wrong: Vec<(usize, char)>,
        /// Length of the text.
        characters: usize,
    },
    /// Any other revision.
    #[error("a branch or tag can be moved to other files")]
    BranchOrTag,
}

impl CommitError {
    /// True if the text was probably meant as a commit, not as a branch, tag or abbreviation.
    pub fn is_typo(&self) -> bool {
        match self {
            CommitError::Mistyped { .. } => true,
            CommitError::WrongLength { digits } => *digits > 40,
            CommitError::Empty | CommitError::Abbreviated | CommitError::BranchOrTag => false,
        }
    }
}

/// The error for a mistyped commit. Nobody names a branch with about 40 characters of which almost all are hexadecimal digits.
fn mistyped(text: &str) -> Option<CommitError> {
    let characters = text.chars().count();
    let wrong: Vec<(usize, char)> = text.chars().enumerate().filter(|(_, c)| !c.is_ascii_hexdigit()).collect();
    let close = (36..=44).contains(&characters) && (1..=4).contains(&wrong.len());
    close.then_some(CommitError::Mistyped { wrong, characters })
}

impl TryFrom<String> for Commit {
    type Error = CommitError;

    fn try_from(text: String) -> Result<Commit, CommitError> {
        Commit::parse(&text)
    }
}

impl From<Commit> for String {
    fn from(commit: Commit) -> String {
        commit.0
    }
}

impl fmt::Display for Commit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A model reference that is not an existing file: a list entry, a repository or a commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reference {
    /// `org/repo@<commit>`, `repo@<commit>`.
    Pinned(RepoId, Commit),
    /// The same with a revision that is not a commit, and the reason.
    Unpinned(RepoId, String, CommitError),
    /// `org/repo` without a revision.
    Repository(RepoId),
    /// A word without a slash: a name of the list, if it has it.
    Name(String),
    /// Anything else.
    Path,
}

impl Reference {
    /// Parses a reference.
    ///
    /// # Errors
    /// [`HubError::NotARepository`] for `org/repo@...` with an invalid repository.
    pub fn parse(text: &str) -> Result<Reference, HubError> {
        if let Some((repo, revision)) = text.split_once('@') {
            // A path may contain an @, too, but does not look like a repository.
            if repo.starts_with(['.', '/', '~']) || repo.matches('/').count() > 1 {
                return if repo.contains('/') {
                    Ok(Reference::Path)
                } else {
                    RepoId::parse(repo).map(Reference::Repository)
                };
            }
            let repo = RepoId::parse(repo)?;
            return Ok(match Commit::parse(revision) {
                Ok(commit) => Reference::Pinned(repo, commit),
                Err(error) => Reference::Unpinned(repo, revision.to_owned(), error),
            });
        }
        let file = [".gguf", ".safetensors", ".json"].iter().any(|ending| text.ends_with(ending));
        if file || text.is_empty() || text.contains('\\') {
            return Ok(Reference::Path);
        }
        if !text.contains('/') {
            return Ok(Reference::Name(text.to_owned()));
        }
        Ok(RepoId::parse(text).map_or(Reference::Path, Reference::Repository))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const COMMIT: &str = "810d367871c1d460086d9f82db8696f2e0a0fcd0";

    #[test]
    fn data_sets_are_repositories_of_their_own() {
        let repo = RepoId::dataset("apple/GSM-Symbolic").unwrap();
        assert!(repo.is_dataset() && repo != RepoId::parse("apple/GSM-Symbolic").unwrap());
        assert_eq!((repo.as_str(), repo.name()), ("datasets/apple/GSM-Symbolic", "GSM-Symbolic"));
        assert_eq!(repo.in_api(), "datasets/apple/GSM-Symbolic");
        assert_eq!(RepoId::parse("gpt2").unwrap().in_api(), "models/gpt2");
        assert!(RepoId::dataset("datasets/apple/GSM-Symbolic").is_err() && RepoId::parse("datasets/a/b").is_err());
    }

    #[test]
    fn only_forty_digits_are_a_commit() {
        assert_eq!(Commit::parse(COMMIT).unwrap().as_str(), COMMIT);
        assert_eq!(Commit::parse(&COMMIT.to_uppercase()).unwrap().as_str(), COMMIT);
        for wrong in ["", "main", "v1.0", &COMMIT[..7], &COMMIT[..39], &format!("{COMMIT}0"), "refs/pr/1"] {
            assert!(Commit::parse(wrong).is_err(), "{wrong}");
        }
        // A typo is distinguished from a branch.
        for (text, part) in [
            (format!("{}g", &COMMIT[..39]), "'g' at position 40"),
            (COMMIT.replacen('0', "O", 1), "'O' at position 3"),
            (format!("{} ", &COMMIT[..39]), "' ' at position 40"),
            (format!("{}ü", &COMMIT[..39]), "'ü' at position 40"),
            (format!("l{}g", &COMMIT[..39]), "'l' at position 1, 'g' at position 41 (41 characters)"),
        ] {
            let error = Commit::parse(&text).unwrap_err();
            assert!(error.to_string().contains(part) && error.is_typo(), "{text}: {error}");
        }
        for branch in ["release-of-the-model-for-the-second-paper", "main", "v2", &COMMIT[..7]] {
            assert!(!Commit::parse(branch).unwrap_err().is_typo(), "{branch}");
        }
        assert_eq!(Commit::parse(&format!("{COMMIT}0")), Err(CommitError::WrongLength { digits: 41 }));
        assert!(CommitError::WrongLength { digits: 41 }.is_typo());
    }

    #[test]
    fn repositories_never_lead_out_of_the_cache() {
        assert_eq!(RepoId::parse("microsoft/Phi-3.5-mini-instruct").unwrap().name(), "Phi-3.5-mini-instruct");
        for wrong in [
            "a/b/c", "..", ".a", "a b", "a--b", "../b", "a/..", "a/.b", "/b", "a/", "a/b c", "a--b/c", "a/b--c",
            "a/b\0", "-a/b",
        ] {
            assert!(RepoId::parse(wrong).is_err(), "{wrong}");
        }
        for (folder, repo) in [
            ("models--microsoft--phi-2", Some("microsoft/phi-2")),
            ("models--gpt2", Some("gpt2")),
            ("models--a--b--c", None),
            ("models--", None),
            ("datasets--gsm8k", None),
        ] {
            assert_eq!(RepoId::of_folder(folder).as_ref().map(RepoId::as_str), repo, "{folder}");
        }
    }

    #[test]
    fn references_are_parsed() {
        let repo = RepoId::parse("microsoft/phi-2").unwrap();
        let parse = |text: &str| Reference::parse(text).unwrap();
        let pinned = Reference::Pinned(repo.clone(), Commit::parse(COMMIT).unwrap());
        assert_eq!(parse(&format!("microsoft/phi-2@{COMMIT}")), pinned);
        assert!(matches!(parse("microsoft/phi-2@main"), Reference::Unpinned(_, revision, _) if revision == "main"));
        assert!(matches!(parse("microsoft/phi-2@refs/pr/3"), Reference::Unpinned(..)));
        assert!(matches!(parse("microsoft/phi-2@810d367"), Reference::Unpinned(..)));
        assert!(matches!(parse("microsoft/phi-2@"), Reference::Unpinned(..)));
        assert_eq!(parse("microsoft/phi-2"), Reference::Repository(repo));
        assert_eq!(parse("phi-2"), Reference::Name("phi-2".to_owned()));
        for path in ["./phi-2", "/m/phi-2", "a/b/c", "model.gguf", "models/x.gguf", "a/b/c@main", "./a@b", "~/m"] {
            assert_eq!(parse(path), Reference::Path, "{path}");
        }
        assert!(matches!(parse("gpt2@main"), Reference::Unpinned(repo, ..) if repo.is_bare() && repo.name() == "gpt2"));
        assert!(matches!(parse(&format!("gpt2@{COMMIT}")), Reference::Pinned(repo, _) if repo.is_bare()));
        assert!(Reference::parse("a b@main").is_err());
        assert!(Reference::parse("a..b/c@main").is_err());
    }
}
