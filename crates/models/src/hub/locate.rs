//! A model reference and the files it names: a list entry or a commit, in the local cache.
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::registry::near;
use super::{Cache, Commit, Entry, Environment, HubError, Reference, Registry, RepoId};

/// Settings of model references.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HubSettings {
    /// A list of models that extends and overrides the built-in one and the user's own.
    pub list: Option<PathBuf>,
    /// No connections except to this machine.
    pub offline: bool,
    /// Unknown keys of config.json that are let through, and `tokenizer.ggml.pre=NAME` for a GGUF file that names none.
    pub allow_config: Vec<String>,
    /// Entries of the same kind that are given for several models: each counts for the models that it fits, the others leave it out.
    pub shared_config: Vec<String>,
}

impl HubSettings {
    /// Reads the list of models: built in, then resolved commits, then the user's models.toml, then [`HubSettings::list`].
    ///
    /// # Errors
    /// [`HubError::Registry`], [`HubError::Io`].
    pub fn registry(&self) -> Result<Registry, HubError> {
        let files: Vec<PathBuf> = config_folder()
            .map(|folder| ["resolved.toml", "models.toml"].map(|name| folder.join(name)).to_vec())
            .unwrap_or_default();
        Registry::read(&files, self.list.as_deref())
    }

    /// Returns the commit for a repository that was named without one, and a note if nothing but the cache says it: the commit of
    /// the user's own lists, else the only one in the cache.
    ///
    /// # Errors
    /// [`HubError::NoRevision`], [`HubError::SeveralCommits`].
    pub fn commit_of(&self, repo: &RepoId, list: &Registry) -> Result<(Commit, Option<String>), HubError> {
        let of_repo = || list.entries.iter().filter(|entry| entry.repo == *repo);
        let own: BTreeSet<&Commit> =
            of_repo().filter(|entry| entry.from.is_some()).filter_map(|entry| entry.commit.as_ref()).collect();
        if let (Some(commit), 1) = (own.first(), own.len()) {
            return Ok(((*commit).clone(), None));
        }
        let cached = Cache::from_environment(&self.environment()).map(|cache| cache.commits(repo)).unwrap_or_default();
        match cached.as_slice() {
            [only] => {
                let note = format!(
                    "{repo} is taken at {only}, its only commit in the cache; `earnest models use {repo}` pins it in your list"
                );
                Ok((only.clone(), Some(note)))
            }
            [] => {
                let entry = of_repo().find(|entry| entry.commit.is_some()).map(|entry| entry.name.clone());
                // A repository of the list is spelt right; only its commit is missing.
                let near = if of_repo().next().is_none() { self.near(repo.as_str(), list) } else { Vec::new() };
                Err(HubError::NoRevision { repo: repo.to_string(), entry, near })
            }
            several => Err(HubError::SeveralCommits {
                repo: repo.to_string(),
                commits: several.iter().map(Commit::to_string).collect(),
            }),
        }
    }

    /// Returns the most similar names of the list, its repositories and those of the cache.
    fn near(&self, name: &str, list: &Registry) -> Vec<String> {
        let cached = Cache::from_environment(&self.environment()).map(|cache| cache.repos()).unwrap_or_default();
        let listed =
            list.entries.iter().map(|entry| if name.contains('/') { entry.repo.as_str() } else { &entry.name });
        near(name, cached.iter().map(RepoId::as_str).chain(listed))
    }

    /// Reads the hub's environment variables, with this offline setting.
    pub fn environment(&self) -> Environment {
        Environment::read(self.offline)
    }
}

/// A commit of a repository, as a model reference names it.
#[derive(Debug, Clone)]
pub struct CommitReference {
    pub repo: RepoId,
    pub commit: Commit,
    /// The list's entry for this commit, if any.
    pub entry: Option<Entry>,
    /// The list's reason why the native engine does not support it.
    pub not_runnable: Option<String>,
    /// The reference as the user wrote it, for commands in messages.
    pub given: String,
    /// Note for the user on how the commit was chosen, if the reference does not name it.
    pub note: Option<String>,
}

/// Returns the user's configuration folder.
fn config_folder() -> Option<PathBuf> {
    let variable = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    variable("XDG_CONFIG_HOME")
        .or_else(|| std::env::home_dir().map(|home| home.join(".config")))
        .map(|folder| folder.join("earnest"))
}

/// Returns the path of the file of resolved commits.
///
/// # Errors
/// [`HubError::NoConfigFolder`].
pub fn resolved_file() -> Result<PathBuf, HubError> {
    config_folder().map(|folder| folder.join("resolved.toml")).ok_or(HubError::NoConfigFolder)
}

/// The list's entry of a name, and a note where a file or folder is called like it.
fn listed(text: &str, hub: &HubSettings) -> Result<Option<(Entry, Option<String>)>, HubError> {
    let path = Path::new(text);
    // Malformed references that exist are paths.
    let Ok(Reference::Name(name)) = Reference::parse(text) else { return Ok(None) };
    let Some(entry) = hub.registry()?.find(&name).cloned() else { return Ok(None) };
    Ok(Some((entry, path.exists().then(|| beside(text)))))
}

/// The note on a file or folder that is called like a model.
pub fn beside(name: &str) -> String {
    format!("{name} is the model of that name; the file or folder here is ./{name}")
}

impl CommitReference {
    /// The commit of an entry; of one without a commit the only one in the cache.
    fn from_entry(entry: &Entry, hub: &HubSettings) -> Result<CommitReference, HubError> {
        let (commit, note) = match (&entry.commit, hub.registry()) {
            (None, Ok(list)) => match hub.commit_of(&entry.repo, &list) {
                Err(HubError::NoRevision { .. }) => (entry.pinned()?.clone(), None),
                found => found?,
            },
            _ => (entry.pinned()?.clone(), None),
        };
        Ok(CommitReference {
            repo: entry.repo.clone(),
            commit,
            entry: Some(entry.clone()),
            not_runnable: entry.not_runnable.clone(),
            given: entry.name.clone(),
            note,
        })
    }

    fn of_repo(repo: RepoId, commit: Commit, list: Registry, given: &str) -> CommitReference {
        let not_runnable = list.not_runnable(&repo).map(|(_, reason)| reason.to_owned());
        let entry = list.entries.into_iter().find(|e| e.repo == repo && e.commit.as_ref() == Some(&commit));
        CommitReference { repo, commit, entry, not_runnable, given: given.to_owned(), note: None }
    }

    /// Returns the commit that a model reference names; none for a path. A name of the list is never a path: a file or folder of that name
    /// is `./NAME`. Anything else that exists is a path.
    ///
    /// # Errors
    /// The reference is malformed, not pinned or not in the list.
    pub fn find(text: &str, hub: &HubSettings) -> Result<Option<CommitReference>, HubError> {
        if let Some((entry, beside)) = listed(text, hub)? {
            let found = CommitReference::from_entry(&entry, hub)?;
            return Ok(Some(CommitReference { note: beside.or(found.note.clone()), ..found }));
        }
        if Path::new(text).exists() {
            return Ok(None);
        }
        match Reference::parse(text)? {
            Reference::Path => Ok(None),
            Reference::Pinned(repo, commit) => {
                let list = hub.registry()?;
                Ok(Some(CommitReference::of_repo(repo, commit, list, text)))
            }
            Reference::Unpinned(repo, revision, reason) => {
                // A bare word may be a name of the list, whose repository has the revision.
                let repo = if repo.is_bare() {
                    hub.registry()?.find(repo.as_str()).map_or(repo, |entry| entry.repo.clone())
                } else {
                    repo
                };
                Err(HubError::NotPinned { repo: repo.to_string(), revision, reason })
            }
            Reference::Repository(repo) => {
                let list = hub.registry()?;
                let (commit, note) = hub.commit_of(&repo, &list)?;
                let given = format!("{repo}@{commit}");
                Ok(Some(CommitReference { note, ..CommitReference::of_repo(repo, commit, list, &given) }))
            }
            Reference::Name(name) => {
                let list = hub.registry()?;
                Err(HubError::UnknownModel { near: hub.near(&name, &list), name })
            }
        }
    }

    /// Returns the commit that a model reference names, where a path is not accepted.
    ///
    /// # Errors
    /// [`HubError::IsAPath`], and those of [`CommitReference::find`].
    pub fn require(text: &str, hub: &HubSettings) -> Result<CommitReference, HubError> {
        // A folder with a name that no list has does not matter here.
        if let Reference::Name(name) = Reference::parse(text)?
            && Path::new(text).exists()
        {
            return CommitReference::from_entry(hub.registry()?.get(&name)?, hub);
        }
        CommitReference::find(text, hub)?.ok_or_else(|| HubError::IsAPath { text: text.to_owned() })
    }

    /// Checks that the list does not mark the name or repository as not runnable, pinned or not. A path always passes.
    ///
    /// # Errors
    /// [`HubError::NotRunnable`].
    pub fn check_runnable(text: &str, hub: &HubSettings) -> Result<(), HubError> {
        if Path::new(text).exists() && listed(text, hub)?.is_none() {
            return Ok(());
        }
        let list = hub.registry()?;
        let marked = match Reference::parse(text)? {
            Reference::Name(name) => list.find(&name).and_then(|entry| Some((entry, entry.not_runnable.as_deref()?))),
            Reference::Repository(repo) | Reference::Unpinned(repo, ..) | Reference::Pinned(repo, _) => {
                list.not_runnable(&repo)
            }
            Reference::Path => None,
        };
        marked.map_or(Ok(()), |(entry, reason)| {
            let family = entry.family.clone().unwrap_or_default();
            Err(HubError::NotRunnable { name: entry.name.clone(), reason: reason.to_owned(), family })
        })
    }

    /// Returns the commit's folder in the cache. Without weights, the files of its tokenizer suffice.
    ///
    /// # Errors
    /// [`HubError::NotCached`], [`HubError::MissingFile`], [`HubError::OnlyGguf`].
    pub fn folder(&self, hub: &HubSettings, with_weights: bool) -> Result<PathBuf, HubError> {
        let cache = Cache::from_environment(&hub.environment())?;
        if with_weights {
            cache.checkpoint_folder(&self.repo, &self.commit, &self.given)
        } else {
            cache.tokenizer_folder(&self.repo, &self.commit, &self.given)
        }
    }
}
