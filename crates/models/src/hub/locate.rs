//! A model reference and the files it names: a list entry or a commit, in the local cache.
use std::path::{Path, PathBuf};

use super::{Cache, Commit, Entry, Environment, HubError, Reference, Registry, RepoId};

/// Settings of model references.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HubSettings {
    /// A list of models that extends and overrides the built-in one and the user's.
    pub list: Option<PathBuf>,
    /// No connection but to this machine.
    pub offline: bool,
}

impl HubSettings {
    /// The list of models: built in, then resolved commits, then the user's models.toml, then [`HubSettings::list`].
    pub fn registry(&self) -> Result<Registry, HubError> {
        let found: Vec<PathBuf> = config_folder()
            .map(|folder| ["resolved.toml", "models.toml"].map(|name| folder.join(name)).to_vec())
            .unwrap_or_default();
        Registry::read(&found, self.list.as_deref())
    }

    /// The variables of the hub, with this offline setting.
    pub fn environment(&self) -> Environment {
        Environment::read(self.offline)
    }
}

/// A commit of a repository, as a model reference names it.
#[derive(Debug, Clone)]
pub struct CommitReference {
    pub repo: RepoId,
    pub commit: Commit,
    pub entry: Option<Entry>,
    /// The list's reason why it is not run here.
    pub not_runnable: Option<String>,
    /// The reference as given, for commands in messages.
    pub named: String,
}

/// The user's configuration folder.
fn config_folder() -> Option<PathBuf> {
    let variable = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    variable("XDG_CONFIG_HOME")
        .or_else(|| std::env::home_dir().map(|home| home.join(".config")))
        .map(|folder| folder.join("earnest"))
}

/// The file in which resolved commits are kept.
pub fn resolved_file() -> Result<PathBuf, HubError> {
    config_folder().map(|folder| folder.join("resolved.toml")).ok_or(HubError::NoConfigFolder)
}

impl CommitReference {
    fn of_entry(entry: &Entry) -> Result<CommitReference, HubError> {
        Ok(CommitReference {
            repo: entry.repo.clone(),
            commit: entry.pinned()?.clone(),
            entry: Some(entry.clone()),
            not_runnable: entry.not_runnable.clone(),
            named: entry.name.clone(),
        })
    }

    /// The commit that a model reference names; none for a path. An existing file or folder of that name comes first.
    pub fn find(text: &str, hub: &HubSettings) -> Result<Option<CommitReference>, HubError> {
        if Path::new(text).exists() {
            return Ok(None);
        }
        match Reference::parse(text)? {
            Reference::Path => Ok(None),
            Reference::Pinned(repo, commit) => {
                // An entry of the same commit lends its notes.
                let list = hub.registry()?;
                let not_runnable = list.not_runnable(&repo).map(|(_, reason)| reason.to_owned());
                let entry = list.entries.into_iter().find(|e| e.repo == repo && e.commit.as_ref() == Some(&commit));
                Ok(Some(CommitReference { repo, commit, entry, not_runnable, named: text.to_owned() }))
            }
            Reference::Moving(repo, revision, why) => {
                let slip = Commit::is_meant(&revision);
                // A name of the list with a revision: its repository is what has one.
                let repo = if repo.is_bare() {
                    hub.registry()?.find(repo.as_str()).map_or(repo, |entry| entry.repo.clone())
                } else {
                    repo
                };
                Err(HubError::NotPinned { repo: repo.to_string(), revision, why, slip })
            }
            Reference::Bare(repo) => {
                let list = hub.registry()?;
                let pinned = list.of_repo(&repo).filter(|entry| entry.commit.is_some());
                let entry = pinned.map(|entry| entry.name.clone());
                Err(HubError::NoRevision { repo: repo.to_string(), entry })
            }
            Reference::Word(name) => {
                let list = hub.registry()?;
                let entry = list.get(&name)?;
                Ok(Some(CommitReference::of_entry(entry)?))
            }
        }
    }

    /// The commit that a model reference names where paths have no meaning.
    pub fn of_hub(text: &str, hub: &HubSettings) -> Result<CommitReference, HubError> {
        // A folder that happens to have the name of a model is no reason to refuse it here.
        let found = match Reference::parse(text)? {
            Reference::Word(name) if Path::new(text).exists() => {
                let list = hub.registry()?;
                Some(CommitReference::of_entry(list.get(&name)?)?)
            }
            _ => CommitReference::find(text, hub)?,
        };
        found.ok_or_else(|| HubError::IsAPath { text: text.to_owned() })
    }

    /// Refuses what the list says cannot be run, by name or by repository, pinned or not. A file or folder of that name is none
    /// of the list's.
    pub fn refuse_unrunnable(text: &str, hub: &HubSettings) -> Result<(), HubError> {
        if Path::new(text).exists() {
            return Ok(());
        }
        let list = hub.registry()?;
        let found = match Reference::parse(text)? {
            Reference::Word(name) => list.find(&name).and_then(|entry| Some((entry, entry.not_runnable.as_deref()?))),
            Reference::Bare(repo) | Reference::Moving(repo, ..) | Reference::Pinned(repo, _) => {
                list.not_runnable(&repo)
            }
            Reference::Path => None,
        };
        found.map_or(Ok(()), |(entry, reason)| {
            Err(HubError::NotRunnable { name: entry.name.clone(), reason: reason.to_owned() })
        })
    }

    /// The commit's folder in the cache, once every file is there; without weights the files of its tokenizer are enough.
    pub fn folder(&self, hub: &HubSettings, with_weights: bool) -> Result<PathBuf, HubError> {
        let cache = Cache::of(&hub.environment())?;
        if with_weights {
            cache.ready(&self.repo, &self.commit, &self.named)
        } else {
            cache.ready_to_tokenise(&self.repo, &self.commit, &self.named)
        }
    }
}
