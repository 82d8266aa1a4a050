//! How a model of the hub is written: a name of the list, or `org/repo@<40 hexadecimal digits>`.
use std::fmt;

use serde::{Deserialize, Serialize};

use super::HubError;

/// A repository of the hub, `organisation/name`, or `name` alone: the oldest ones have no organisation.
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
        let good = match text.split_once('/') {
            Some((organisation, name)) => part(organisation) && part(name),
            None => part(text),
        };
        if good { Ok(RepoId(text.to_owned())) } else { Err(HubError::NotARepository { given: text.to_owned() }) }
    }

    /// The repository of a folder of the cache (`models--organisation--name`, `models--name`).
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
    pub fn parse(text: &str) -> Result<Commit, String> {
        let hex = !text.is_empty() && text.chars().all(|c| c.is_ascii_hexdigit());
        let why = match text.len() {
            40 if hex => return Ok(Commit(text.to_ascii_lowercase())),
            0 => "there is nothing after the @",
            4..40 if hex => "a hash of fewer than 40 digits can come to name several commits",
            _ if hex => return Err(format!("a commit has 40 hexadecimal digits, and this has {}", text.len())),
            _ => match slip(text) {
                Some(slip) => return Err(slip),
                None => "a branch or a tag can be moved to other files",
            },
        };
        Err(why.to_owned())
    }

    /// True if a text that is no commit was meant as one: almost all of it are digits of a commit.
    pub fn is_meant(text: &str) -> bool {
        slip(text).is_some() || (text.len() > 40 && text.chars().all(|c| c.is_ascii_hexdigit()))
    }

    /// The digits.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// What is wrong with a commit that was written with a slip: about 40 characters, of which few are no digits. Nobody names a
/// branch like that.
fn slip(text: &str) -> Option<String> {
    let count = text.chars().count();
    let wrong: Vec<(usize, char)> = text.chars().enumerate().filter(|(_, c)| !c.is_ascii_hexdigit()).collect();
    if !(36..=44).contains(&count) || wrong.is_empty() || wrong.len() > 4 {
        return None;
    }
    let named: Vec<String> = wrong.iter().map(|(place, c)| format!("{c:?} at place {}", place + 1)).collect();
    let (verb, noun) = if wrong.len() == 1 { ("is", "digit") } else { ("are", "digits") };
    let length = if count == 40 { String::new() } else { format!(" (and it has {count} characters)") };
    Some(format!(
        "a commit has 40 hexadecimal digits, 0 to 9 and a to f; {} {verb} no such {noun}{length}",
        named.join(", ")
    ))
}

impl TryFrom<String> for Commit {
    type Error = String;

    fn try_from(text: String) -> Result<Commit, String> {
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
    /// `org/repo@<commit>`, `repo@<commit>`.
    Pinned(RepoId, Commit),
    /// The same with anything else after the @: a revision that has to be resolved first, and why.
    Moving(RepoId, String, String),
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
            // A path may contain an @, too; it then has another form than a word, or two and a slash.
            if repo.starts_with(['.', '/', '~']) || repo.matches('/').count() > 1 {
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
        // A slip is told from a branch, and named.
        for (text, part) in [
            (format!("{}g", &COMMIT[..39]), "'g' at place 40 is no such digit"),
            (COMMIT.replacen('0', "O", 1), "'O' at place 3 is"),
            (format!("{} ", &COMMIT[..39]), "' ' at place 40"),
            (format!("{}ü", &COMMIT[..39]), "'ü' at place 40"),
            (
                format!("l{}g", &COMMIT[..39]),
                "'l' at place 1, 'g' at place 41 are no such digits (and it has 41 characters)",
            ),
        ] {
            let why = Commit::parse(&text).unwrap_err();
            assert!(why.contains(part) && Commit::is_meant(&text), "{text}: {why}");
        }
        for branch in ["release-of-the-model-for-the-second-paper", "main", "v2", &COMMIT[..7]] {
            assert!(!Commit::is_meant(branch), "{branch}");
        }
        assert!(Commit::is_meant(&format!("{COMMIT}0")));
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
        assert!(matches!(parse("gpt2@main"), Reference::Moving(repo, ..) if repo.is_bare() && repo.name() == "gpt2"));
        assert!(matches!(parse(&format!("gpt2@{COMMIT}")), Reference::Pinned(repo, _) if repo.is_bare()));
        assert!(Reference::parse("a b@main").is_err());
        assert!(Reference::parse("a..b/c@main").is_err());
    }
}
