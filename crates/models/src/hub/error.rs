//! What can go wrong with models of the hub, and what to do then.
use std::io;
use std::path::PathBuf;

/// An error of this room. The message names the thing and the place, [`HubError::help`] the next step.
#[derive(Debug, thiserror::Error)]
pub enum HubError {
    /// A file of the cache or of the list could not be read or written.
    #[error("cannot {action} {}: {source}", path.display())]
    Io { action: &'static str, path: PathBuf, source: io::Error },
    /// The disk is full.
    #[error("the disk is full: cannot write {}", path.display())]
    DiskFull { path: PathBuf },
    /// No home folder and no variable says where the cache is.
    #[error("there is no place for the model cache: neither HF_HUB_CACHE, HF_HOME nor a home folder is known")]
    NoCacheFolder,
    /// No place for the user's resolved commits.
    #[error("there is no place for resolved.toml: no home folder is known")]
    NoConfigFolder,
    /// A path where a model of the hub is asked for.
    #[error("'{text}' is a path, not a model of the hub")]
    IsAPath { text: String },
    /// A repository's name has another form.
    #[error("'{given}' is no repository of the hub: it has to be ORGANISATION/NAME, or NAME alone")]
    NotARepository { given: String },
    /// A revision that is no commit.
    #[error("{repo}@{revision} is not pinned: {why}{}", if *slip { "" } else { ", so two runs on it need not be on the same model" })]
    NotPinned { repo: String, revision: String, why: String, slip: bool },
    /// A repository without a revision.
    #[error("{repo} is neither a file nor a folder here, and as a repository of the hub it names no commit")]
    NoRevision { repo: String, entry: Option<String> },
    /// A name that the list does not have.
    #[error("'{name}' is neither a file, a folder nor a model of the list")]
    UnknownModel { name: String, near: Option<String> },
    /// An entry without a commit.
    #[error("{name} has no pinned commit: its paper gives none for {repo}")]
    Unresolved { name: String, repo: String },
    /// An entry that the engine does not run.
    #[error("{name} cannot be run here: {reason}")]
    NotRunnable { name: String, reason: String },
    /// A list can not be read.
    #[error("cannot use the list of models {}: {what}", path.display())]
    Registry { path: PathBuf, what: String },
    /// A commit that is not in the cache.
    #[error("{repo}@{commit} is not in the cache {}", cache.display())]
    NotCached { repo: String, commit: String, cache: PathBuf, fetch: String },
    /// A file of a snapshot that is not there.
    #[error("{file} of {repo} is missing in {}", folder.display())]
    MissingFile { file: String, repo: String, folder: PathBuf, fetch: String },
    /// A snapshot of GGUF files, which are models each.
    #[error("{repo} has GGUF files and no safetensors in the cache, and a GGUF file is named by its path")]
    OnlyGguf { repo: String, file: PathBuf },
    /// A file of the cache has other bytes than the commit has.
    #[error("{} is damaged: its {algorithm} is {found}, and that of the commit's file is {expected}", path.display())]
    Damaged { path: PathBuf, algorithm: &'static str, found: String, expected: String, named: Option<String> },
    /// A connection would be needed.
    #[error("{what} needs the network, and {because}")]
    Offline { what: String, because: &'static str },
    /// `HF_ENDPOINT` is no address.
    #[error("HF_ENDPOINT is '{endpoint}', which is no http or https address")]
    BadEndpoint { endpoint: String },
    /// The licence has to be accepted, or a token is needed.
    #[error("{repo} is gated{}: the hub answered {status}{}", if *certain { "" } else { ", private or not there" }, if *with_token { " although a token was sent" } else { " (no token was sent)" })]
    Gated { repo: String, status: u16, with_token: bool, page: String, certain: bool },
    /// The token was refused.
    #[error("the hub does not accept the token (HF_TOKEN or the token file): it answered 401 to {repo}")]
    BadToken { repo: String },
    /// The hub knows no such repository, or hides it.
    #[error("the hub has no repository {repo}{}", if *with_token { ", or the token may not see it" } else { ", or it is private" })]
    NoRepository { repo: String, with_token: bool },
    /// The repository has no such revision.
    #[error("{repo} has no revision {revision}")]
    NoSuchRevision { repo: String, revision: String },
    /// The revision has no such file.
    #[error("{repo}@{revision} has no file {file}")]
    NoSuchFile { repo: String, revision: String, file: String },
    /// The hub answered for another commit than was asked for.
    #[error("the hub answered for {repo}@{asked} with commit {got}")]
    WrongCommit { repo: String, asked: String, got: String },
    /// Another status.
    #[error("{url} answered {status}")]
    Status { url: String, status: u16 },
    /// No answer, or one that broke off before its beginning.
    #[error("cannot reach {url}: {what}")]
    Unreachable { url: String, what: String },
    /// An answer that has another form than the hub's.
    #[error("{url} answered with something else than a listing: {what}")]
    BadListing { url: String, what: String },
    /// A file name that leads out of the snapshot.
    #[error("{repo} names a file {name:?}, which would lie outside its folder")]
    UnsafeName { repo: String, name: String },
    /// A download broke off too often.
    #[error("{file} broke off {attempts} times in a row without a byte more, at byte {got} of {size}: {what}")]
    Cut { file: String, attempts: u32, got: u64, size: u64, what: String },
    /// A download has other bytes than the hub announced.
    #[error(
        "{file} was fetched, but its {algorithm} is {got}, not {expected}: it was changed on the way, or the hub is inconsistent"
    )]
    WrongHash { file: String, algorithm: &'static str, got: String, expected: String },
    /// Nothing of the revision is what the engine reads.
    #[error("{repo}@{revision} has no safetensors weights; it has {found}")]
    NoWeights { repo: String, revision: String, found: String },
    /// Another process holds the lock for too long.
    #[error("another process is fetching {file}: {} is locked", path.display())]
    Busy { file: String, path: PathBuf },
}

impl HubError {
    /// Names an I/O error; a full disk is told apart.
    pub fn io(action: &'static str, path: impl Into<PathBuf>, source: io::Error) -> Self {
        let path = path.into();
        match source.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge => {
                HubError::DiskFull { path }
            }
            _ => HubError::Io { action, path, source },
        }
    }

    /// The next step.
    pub fn help(&self) -> Option<String> {
        Some(match self {
            HubError::Io { .. } => "check the path and its permissions, or choose another cache with HF_HUB_CACHE".into(),
            HubError::DiskFull { .. } => {
                "free some space and repeat the command: it continues; HF_HUB_CACHE chooses another folder".into()
            }
            HubError::NoCacheFolder => "set HF_HUB_CACHE to a folder".into(),
            HubError::NoConfigFolder => "set XDG_CONFIG_HOME".into(),
            HubError::IsAPath { .. } => "give a name of `earnest models list`, or org/repo@<40 digits>".into(),
            HubError::NotARepository { .. } => "for example microsoft/phi-2".into(),
            HubError::NotPinned { repo, slip: true, .. } => {
                format!("correct it; `earnest models resolve {repo}@main` names today's commit")
            }
            HubError::NotPinned { repo, revision, .. } => {
                let revision = if revision.is_empty() { "main" } else { revision };
                format!("`earnest models resolve {repo}@{revision}` asks the hub for the commit; name that after the @")
            }
            HubError::NoRevision { repo, entry: Some(entry) } => {
                format!("the list has it at its paper's commit as {entry}; `earnest models resolve {repo}@main` asks the hub for today's")
            }
            HubError::NoRevision { repo, entry: None } => {
                format!("`earnest models resolve {repo}@main` asks the hub for the commit; name it as {repo}@<40 digits>")
            }
            HubError::UnknownModel { near: Some(near), .. } => {
                format!("did you mean {near}? `earnest models list` names them all; a file or folder is named by its path")
            }
            HubError::UnknownModel { near: None, .. } => {
                "give --model a Hugging Face folder, a GGUF file, a name of `earnest models list`, or org/repo@<40 digits>"
                    .into()
            }
            HubError::Unresolved { name, repo } => {
                format!("`earnest models resolve {name}` pins today's commit of {repo}; or name one yourself as {repo}@<40 digits>")
            }
            HubError::NotRunnable { .. } => "`earnest models list` says which ones can be run".into(),
            HubError::Registry { .. } => "models.toml in the sources of earnest is an example; docs/models.md has the fields".into(),
            HubError::NotCached { fetch, .. } | HubError::MissingFile { fetch, .. } => {
                format!("`{fetch}` fetches it; a run never does")
            }
            HubError::OnlyGguf { file, .. } => format!("for example --model {}", file.display()),
            HubError::Damaged { named: Some(named), .. } => {
                format!("`earnest models fetch {named}` fetches it again; `earnest models verify {named}` hashes every file")
            }
            HubError::Damaged { named: None, .. } => {
                "`earnest models verify` hashes every file of the cache; `earnest models fetch` fetches a damaged one again".into()
            }
            HubError::Offline { .. } => "fetch on a machine with a network and copy the cache folder, or leave offline mode".into(),
            HubError::BadEndpoint { .. } => "for example https://huggingface.co, which is the default".into(),
            HubError::Gated { page, with_token: false, .. } => format!(
                "read and accept the licence at {page} while logged in, make a token with read access at \
                 https://huggingface.co/settings/tokens, and set HF_TOKEN to it"
            ),
            HubError::Gated { page, with_token: true, .. } => format!(
                "the token's account has not been granted access: accept the licence at {page} (some are granted by hand and \
                 take a while), or let a fine-grained token read gated repositories"
            ),
            HubError::BadToken { .. } => {
                "make a new token at https://huggingface.co/settings/tokens, or unset HF_TOKEN for a public repository".into()
            }
            HubError::NoRepository { .. } => "check the spelling; for a private one set HF_TOKEN".into(),
            HubError::NoSuchRevision { repo, .. } => {
                format!("check the digits; `earnest models resolve {repo}@main` names today's commit")
            }
            HubError::NoSuchFile { repo, revision, .. } => {
                format!("`earnest models show {repo}@{revision} --remote` lists the files")
            }
            HubError::WrongCommit { .. } | HubError::BadListing { .. } => {
                "a proxy or a mirror may be in between: check HF_ENDPOINT".into()
            }
            HubError::Status { status: 429, .. } => "the hub asks for fewer requests: wait some minutes; a token raises the limit".into(),
            HubError::Status { status: 500.., .. } => "the hub has a problem of its own: try again later".into(),
            HubError::Status { .. } => "check HF_ENDPOINT and the name".into(),
            HubError::Unreachable { .. } => "check the connection, a proxy (HTTPS_PROXY), and HF_ENDPOINT".into(),
            HubError::UnsafeName { .. } => "do not use this repository".into(),
            HubError::Cut { .. } => "repeat the command: it continues where the download broke off".into(),
            HubError::WrongHash { .. } => "nothing of it was kept; repeat the command".into(),
            HubError::NoWeights { .. } => "name a GGUF file of it with --file, or another repository".into(),
            HubError::Busy { .. } => "wait until it is done and repeat the command".into(),
        })
    }
}
