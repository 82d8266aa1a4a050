//! Errors of the hub, each with its next step.
use std::io;
use std::path::PathBuf;

use super::{CommitError, OfflineReason};
use crate::address::AddressError;

/// What is wrong with `HF_ENDPOINT`, without a secret that it may hold.
fn of_endpoint(reason: &AddressError) -> String {
    match reason {
        AddressError::Malformed(text) => format!("is '{text}', which is not an http or https address"),
        AddressError::Query => "ends in a query or a fragment, which an address of a hub has not".to_owned(),
        AddressError::Credentials | AddressError::Key => {
            "holds a user name or a password: a token belongs into HF_TOKEN".to_owned()
        }
    }
}

/// An error of the hub, its cache or the list of models. [`HubError::help`] is the next step.
#[derive(Debug, thiserror::Error)]
pub enum HubError {
    /// A file of the cache or of the list could not be read or written.
    #[error("cannot {action} {}: {source}", path.display())]
    Io { action: &'static str, path: PathBuf, source: io::Error },
    #[error("the disk is full: cannot write {}", path.display())]
    DiskFull { path: PathBuf },
    /// The cache has no location: neither a home folder nor a variable is set.
    #[error("the model cache has no location: neither HF_HUB_CACHE, HF_HOME nor a home folder is set")]
    NoCacheFolder,
    /// The user's resolved commits have no location.
    #[error("resolved.toml has no location: no home folder is set")]
    NoConfigFolder,
    /// A path where only a model of the hub is accepted.
    #[error("'{text}' is a path, not a model of the hub")]
    IsAPath { text: String },
    /// An invalid repository name.
    #[error("'{given}' is not a repository of the hub: expected ORGANISATION/NAME, or NAME alone")]
    NotARepository { given: String },
    /// A revision that is not a commit.
    #[error("{repo}@{revision} is not pinned: {reason}{}", if reason.is_typo() { "" } else { ", so two runs could use different models" })]
    NotPinned { repo: String, revision: String, reason: CommitError },
    /// A repository without a revision.
    #[error("{repo} is not a file or folder, and as a repository of the hub it names no commit")]
    NoRevision { repo: String, entry: Option<String>, near: Vec<String> },
    /// A repository without a revision, of which the cache has several.
    #[error("{repo} names no commit, and {} of it are in the cache: {}", commits.len(), commits.join(", "))]
    SeveralCommits { repo: String, commits: Vec<String> },
    /// A name that is not in the list.
    #[error("'{name}' is not a file, a folder or a model of the list")]
    UnknownModel { name: String, near: Vec<String> },
    /// An entry without a commit.
    #[error("{name} has no pinned commit: no source gives one for {repo}")]
    Unresolved { name: String, repo: String },
    /// An entry that the native engine does not support.
    #[error("{name} cannot be run here: {reason}")]
    NotRunnable { name: String, reason: String, family: String },
    /// A list of models that cannot be read.
    #[error("cannot use the list of models {}: {what}", path.display())]
    Registry { path: PathBuf, what: String },
    /// A commit that is not in the cache.
    #[error("{repo}@{commit} is not in the cache {}", cache.display())]
    NotCached { repo: String, commit: String, cache: PathBuf, fetch: String },
    /// A missing file of a snapshot.
    #[error("{file} of {repo} is missing in {}", folder.display())]
    MissingFile { file: String, repo: String, folder: PathBuf, fetch: String },
    /// A snapshot of GGUF files, each of which is a model.
    #[error("{repo} has only GGUF files in the cache; name one by its path")]
    OnlyGguf { repo: String, file: PathBuf },
    /// A file of the cache whose content is not the commit's.
    #[error("{} is damaged: its {algorithm} is {found}, expected {expected}", path.display())]
    Damaged { path: PathBuf, algorithm: &'static str, found: String, expected: String, named: Option<String> },
    /// A connection that offline mode forbids.
    #[error("{purpose} needs the network, which {reason} forbids")]
    Offline { purpose: String, reason: OfflineReason },
    /// `HF_ENDPOINT` is not an address, or holds a secret.
    #[error("HF_ENDPOINT {}", of_endpoint(reason))]
    BadEndpoint { reason: AddressError },
    /// Files that need an accepted licence or a token.
    #[error("{repo} is gated{}: the hub answered {status}{}", if *certain { "" } else { ", private or missing" }, if *with_token { " although a token was sent" } else { " (no token was sent)" })]
    Gated { repo: String, status: u16, with_token: bool, page: String, certain: bool },
    /// A rejected token.
    #[error("the hub rejected the token (HF_TOKEN or the token file): it answered 401 for {repo}")]
    BadToken { repo: String },
    /// A repository that does not exist or is hidden.
    #[error("the hub has no repository {repo}{}", if *with_token { ", or the token has no access to it" } else { ", or it is private" })]
    NoRepository { repo: String, with_token: bool },
    /// A revision that the repository does not have.
    #[error("{repo} has no revision {revision}")]
    NoSuchRevision { repo: String, revision: String },
    /// A file that the revision does not have.
    #[error("{repo}@{revision} has no file {file}")]
    NoSuchFile { repo: String, revision: String, file: String },
    /// An answer for another commit than the requested one.
    #[error("the hub answered a request for {repo}@{requested} with commit {got}")]
    WrongCommit { repo: String, requested: String, got: String },
    /// Any other HTTP status.
    #[error("{url} answered {status}")]
    Status { url: String, status: u16 },
    /// No answer.
    #[error("cannot reach {url}: {what}")]
    Unreachable { url: String, what: String },
    /// An answer that is not a listing of files.
    #[error("{url} did not answer with a listing of files: {what}")]
    BadListing { url: String, what: String },
    /// A file name outside the snapshot.
    #[error("{repo} lists the file {name:?}, which would be outside its folder")]
    UnsafeName { repo: String, name: String },
    /// A download that was interrupted too often.
    #[error("{file}: {attempts} attempts in a row transferred nothing, at byte {got} of {size}: {what}")]
    Cut { file: String, attempts: u32, got: u64, size: u64, what: String },
    /// A download whose content is not what the hub announced.
    #[error(
        "the {algorithm} of {file} is {got}, expected {expected}: it was changed in transit, or the hub is inconsistent"
    )]
    WrongHash { file: String, algorithm: &'static str, got: String, expected: String },
    /// A revision without weights that the engine reads.
    #[error("{repo}@{revision} has no safetensors weights; it has {found}")]
    NoWeights { repo: String, revision: String, found: String },
    /// A link, a folder or a device in the cache where a file or folder of earnest's is written.
    #[error("{} is {what}: nothing is written through it", path.display())]
    NotOurs { path: PathBuf, what: &'static str },
    /// A lock that another process holds.
    #[error("another process is fetching {file}: {} is locked", path.display())]
    Busy { file: String, path: PathBuf },
}

impl HubError {
    /// Wraps an I/O error; a full disk has its own variant.
    pub fn io(action: &'static str, path: impl Into<PathBuf>, source: io::Error) -> Self {
        let path = path.into();
        match source.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge => {
                HubError::DiskFull { path }
            }
            _ => HubError::Io { action, path, source },
        }
    }

    /// Returns the next step for the user.
    pub fn help(&self) -> Option<String> {
        Some(match self {
            HubError::Io { .. } => "check the path and its permissions, or set HF_HUB_CACHE to another folder".into(),
            HubError::DiskFull { .. } => {
                "free some space and repeat the command, which continues the download; or set HF_HUB_CACHE to another folder".into()
            }
            HubError::NoCacheFolder => "set HF_HUB_CACHE to a folder".into(),
            HubError::NoConfigFolder => "set XDG_CONFIG_HOME".into(),
            HubError::IsAPath { .. } => "name a model of `earnest models list`, or org/repo@<40 digits>".into(),
            HubError::NotARepository { .. } => "for example microsoft/phi-2".into(),
            HubError::NotPinned { repo, reason, .. } if reason.is_typo() => {
                format!("correct it; `earnest models resolve {repo}@main` prints the current commit")
            }
            HubError::NotPinned { repo, revision, .. } => {
                let revision = if revision.is_empty() { "main" } else { revision };
                format!("`earnest models resolve {repo}@{revision}` prints the commit to name after the @")
            }
            HubError::NoRevision { repo, entry: Some(entry), .. } => {
                format!("the list has it at its paper's commit as {entry}; `earnest models resolve {repo}@main` prints the current commit")
            }
            HubError::NoRevision { near, .. } if !near.is_empty() => {
                format!("did you mean {}? `earnest models list` lists models and the cache", near.join(" or "))
            }
            HubError::NoRevision { repo, .. } => {
                format!("`earnest models resolve {repo}@main` prints the current commit; name it as {repo}@<40 digits>")
            }
            HubError::SeveralCommits { repo, commits } => {
                let first = commits.first().map_or("<40 digits>", String::as_str);
                format!("name one as {repo}@{first}; `earnest models use {repo}@{first}` pins it in your list")
            }
            HubError::UnknownModel { near, .. } if !near.is_empty() => {
                let near = near.join(" or ");
                format!("did you mean {near}? `earnest models list` lists all models; a file or folder is named by its path")
            }
            HubError::UnknownModel { .. } => {
                "give the setting `model` a Hugging Face folder, a GGUF file, a name of `earnest models list`, or org/repo@<40 digits>"
                    .into()
            }
            HubError::Unresolved { name, repo } => {
                format!(
                    "`earnest models resolve {name}` pins the current commit of {repo}, `earnest models use {name}` the one in the \
                     cache; or name one yourself as {repo}@<40 digits>"
                )
            }
            HubError::NotRunnable { name, family, .. } => {
                let elsewhere = crate::checkpoint::next_step(name, family);
                format!("`earnest models list` shows which models can be run; for this one: {elsewhere}")
            }
            HubError::Registry { .. } => "docs/models.md describes the fields; models.toml in earnest's repository is an example".into(),
            HubError::NotCached { fetch, .. } | HubError::MissingFile { fetch, .. } => {
                format!("`{fetch}` fetches it; a run never does")
            }
            HubError::OnlyGguf { file, .. } => format!("for example the setting `model = {}`", file.display()),
            HubError::Damaged { named: Some(named), .. } => {
                format!("`earnest models fetch {named}` fetches it again; `earnest models verify {named}` hashes every file")
            }
            HubError::Damaged { named: None, .. } => {
                "`earnest models verify` hashes every file of the cache; `earnest models fetch` fetches a damaged one again".into()
            }
            HubError::Offline { .. } => "fetch it on a machine with a network and copy the cache folder, or turn offline mode off".into(),
            HubError::BadEndpoint { .. } => "for example https://huggingface.co, which is the default".into(),
            HubError::Gated { page, with_token: false, .. } => format!(
                "accept the licence at {page} while logged in, create a token with read access at \
                 https://huggingface.co/settings/tokens, and set HF_TOKEN to it"
            ),
            HubError::Gated { page, with_token: true, .. } => format!(
                "the token's account has not been granted access: accept the licence at {page} (manual approval can take a \
                 while), or let a fine-grained token read gated repositories"
            ),
            HubError::BadToken { .. } => {
                "create a new token at https://huggingface.co/settings/tokens, or unset HF_TOKEN for a public repository".into()
            }
            HubError::NoRepository { .. } => "check the spelling; for a private repository set HF_TOKEN".into(),
            HubError::NoSuchRevision { repo, .. } if repo.starts_with("datasets/") => {
                "check the digits; without the setting `revision` the newest commit is taken".into()
            }
            HubError::NoSuchRevision { repo, .. } => {
                format!("check the digits; `earnest models resolve {repo}@main` prints the current commit")
            }
            HubError::NoSuchFile { repo, revision, .. } => {
                format!("`earnest models show {repo}@{revision} --remote` lists the files")
            }
            HubError::WrongCommit { .. } | HubError::BadListing { .. } => {
                "a proxy or mirror may have answered: check HF_ENDPOINT".into()
            }
            HubError::Status { status: 429, .. } => "too many requests: wait a few minutes; a token raises the limit".into(),
            HubError::Status { status: 500.., .. } => "the hub failed: try again later".into(),
            HubError::Status { .. } => "check HF_ENDPOINT and the name".into(),
            HubError::Unreachable { .. } => "check the connection, the proxy (HTTPS_PROXY) and HF_ENDPOINT".into(),
            HubError::UnsafeName { .. } => "do not use this repository".into(),
            HubError::Cut { .. } => "repeat the command: it continues the download".into(),
            HubError::WrongHash { .. } => "the file was discarded; repeat the command".into(),
            HubError::NoWeights { .. } => "fetch one of its GGUF files with the setting `file`, or name another repository".into(),
            HubError::NotOurs { .. } => {
                "remove it if you did not put it there, or set HF_HUB_CACHE to another folder; a whole cache may be behind a link".into()
            }
            HubError::Busy { .. } => "wait until it has finished and repeat the command".into(),
        })
    }
}
