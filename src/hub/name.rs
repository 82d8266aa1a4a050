//! How a model of the hub is written: a name of the list, or `org/repo@<40 hexadecimal digits>`.
use std::fmt;

use serde::{Deserialize, Serialize};

use super::HubError;

/// A repository of the hub, `organisation/name`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(transparent)]
pub struct RepoId(String);

impl RepoId {
    /// Checks the form by the hub's own rules, so that no name leads out of the cache folder.
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
        match text.split_once('/') {
            Some((organisation, name)) if part(organisation) && part(name) => Ok(RepoId(text.to_owned())),
            _ => Err(HubError::NotARepository { given: text.to_owned() }),
        }
    }

    /// `organisation/name`.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The part after the slash.
    pub fn name(&self) -> &str {
        self.0.split_once('/').map_or(self.0.as_str(), |(_, name)| name)
    }
}

impl fmt::Display for RepoId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A commit: 40 hexadecimal digits in lower case. It can not change what it names.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Commit(String);

impl Commit {
    /// Takes 40 hexadecimal digits; the error is the reason alone.
    pub fn parse(text: &str) -> Result<Commit, &'static str> {
        let hex = !text.is_empty() && text.chars().all(|c| c.is_ascii_hexdigit());
        match text.len() {
            40 if hex => Ok(Commit(text.to_ascii_lowercase())),
            0 => Err("there is nothing after the @"),
            4..40 if hex => Err("a hash of fewer than 40 digits can come to name several commits"),
            _ if hex => Err("a commit has 40 hexadecimal digits"),
            _ => Err("a branch or a tag can be moved to other files"),
        }
    }

    /// The digits.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for Commit {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Commit, &'static str> {
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

/// What a text that is no file can mean.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reference {
    /// `org/repo@<commit>`.
    Pinned(RepoId, Commit),
    /// `org/repo@<anything else>`: a revision that has to be resolved first, and why.
    Moving(RepoId, String, &'static str),
    /// `org/repo` alone.
    Bare(RepoId),
    /// A word without a slash: a name of the list, if it is there.
    Word(String),
    /// None of these: a path.
    Path,
}

impl Reference {
    /// Reads a text. Only `org/repo@...` with a malformed repository is an error.
    pub fn parse(text: &str) -> Result<Reference, HubError> {
        if let Some((repo, revision)) = text.split_once('@') {
            // A path may contain an @, too; it then has another form than two words and a slash.
            if repo.starts_with(['.', '/', '~']) || repo.matches('/').count() != 1 {
                return if repo.contains('/') { Ok(Reference::Path) } else { RepoId::parse(repo).map(Reference::Bare) };
            }
            let repo = RepoId::parse(repo)?;
            return Ok(match Commit::parse(revision) {
                Ok(commit) => Reference::Pinned(repo, commit),
                Err(why) => Reference::Moving(repo, revision.to_owned(), why),
            });
        }
        let file = [".gguf", ".safetensors", ".json"].iter().any(|ending| text.ends_with(ending));
        if file || text.is_empty() || text.contains('\\') {
            return Ok(Reference::Path);
        }
        if !text.contains('/') {
            return Ok(Reference::Word(text.to_owned()));
        }
        Ok(RepoId::parse(text).map_or(Reference::Path, Reference::Bare))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const COMMIT: &str = "810d367871c1d460086d9f82db8696f2e0a0fcd0";

    #[test]
    fn only_forty_digits_are_a_commit() {
        assert_eq!(Commit::parse(COMMIT).unwrap().as_str(), COMMIT);
        assert_eq!(Commit::parse(&COMMIT.to_uppercase()).unwrap().as_str(), COMMIT);
        for wrong in ["", "main", "v1.0", &COMMIT[..7], &COMMIT[..39], &format!("{COMMIT}0"), "refs/pr/1"] {
            assert!(Commit::parse(wrong).is_err(), "{wrong}");
        }
        // Forty characters, one of which is no digit.
        assert!(Commit::parse(&format!("{}g", &COMMIT[..39])).is_err());
    }

    #[test]
    fn repositories_never_lead_out_of_the_cache() {
        assert_eq!(RepoId::parse("microsoft/Phi-3.5-mini-instruct").unwrap().name(), "Phi-3.5-mini-instruct");
        for wrong in
            ["phi-2", "a/b/c", "../b", "a/..", "a/.b", "/b", "a/", "a/b c", "a--b/c", "a/b--c", "a/b\0", "-a/b"]
        {
            assert!(RepoId::parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn what_a_text_can_mean() {
        let repo = RepoId::parse("microsoft/phi-2").unwrap();
        let parse = |text: &str| Reference::parse(text).unwrap();
        let pinned = Reference::Pinned(repo.clone(), Commit::parse(COMMIT).unwrap());
        assert_eq!(parse(&format!("microsoft/phi-2@{COMMIT}")), pinned);
        assert!(matches!(parse("microsoft/phi-2@main"), Reference::Moving(_, revision, _) if revision == "main"));
        assert!(matches!(parse("microsoft/phi-2@refs/pr/3"), Reference::Moving(..)));
        assert!(matches!(parse("microsoft/phi-2@810d367"), Reference::Moving(..)));
        assert!(matches!(parse("microsoft/phi-2@"), Reference::Moving(..)));
        assert_eq!(parse("microsoft/phi-2"), Reference::Bare(repo));
        assert_eq!(parse("phi-2"), Reference::Word("phi-2".to_owned()));
        for path in ["./phi-2", "/m/phi-2", "a/b/c", "model.gguf", "models/x.gguf", "a/b/c@main", "./a@b", "~/m"] {
            assert_eq!(parse(path), Reference::Path, "{path}");
        }
        assert!(Reference::parse("phi-2@main").is_err());
        assert!(Reference::parse("a..b/c@main").is_err());
    }
}
