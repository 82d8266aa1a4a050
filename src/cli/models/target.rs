//! What a text names: a file or folder, an entry of the list, or a commit of a repository.
use std::path::{Path, PathBuf};

use super::HubArgs;
use crate::cli::Exit;
use crate::cli::error::CliError;
use crate::hub::{Cache, Commit, Entry, Environment, HubError, Reference, Registry, RepoId};

impl From<HubError> for CliError {
    fn from(error: HubError) -> Self {
        let exit = match &error {
            HubError::NotARepository { .. }
            | HubError::NotPinned { .. }
            | HubError::NoRevision { .. }
            | HubError::BadEndpoint { .. }
            | HubError::Registry { .. } => Exit::Usage,
            _ => Exit::Model,
        };
        CliError { exit, message: error.to_string(), help: error.help() }
    }
}

/// A commit that was named, and by which entry.
#[derive(Debug, Clone)]
pub struct Target {
    pub repo: RepoId,
    pub commit: Commit,
    pub entry: Option<Entry>,
    /// Why it is not run here, by the list.
    pub not_runnable: Option<String>,
    /// As it was named, for commands in messages.
    pub named: String,
}

/// The user's folder of settings.
fn config_folder() -> Option<PathBuf> {
    let variable = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    variable("XDG_CONFIG_HOME")
        .or_else(|| std::env::home_dir().map(|home| home.join(".config")))
        .map(|folder| folder.join("earnest"))
}

/// Where `models resolve` keeps commits.
pub fn resolved_file() -> Result<PathBuf, CliError> {
    config_folder().map(|folder| folder.join("resolved.toml")).ok_or_else(|| {
        CliError::new(Exit::Model, "there is no place for resolved.toml: no home folder is known")
            .help("set XDG_CONFIG_HOME")
    })
}

/// The list: built in, then resolved commits, then the user's models.toml, then `--models`.
pub fn registry(args: &HubArgs) -> Result<Registry, CliError> {
    let found: Vec<PathBuf> = config_folder()
        .map(|folder| ["resolved.toml", "models.toml"].map(|name| folder.join(name)).to_vec())
        .unwrap_or_default();
    Ok(Registry::read(&found, args.models.as_deref())?)
}

impl Target {
    fn of_entry(entry: &Entry) -> Result<Target, CliError> {
        Ok(Target {
            repo: entry.repo.clone(),
            commit: entry.pinned()?.clone(),
            entry: Some(entry.clone()),
            not_runnable: entry.not_runnable.clone(),
            named: entry.name.clone(),
        })
    }

    /// What a text names, if it is no path: a file or folder of that name comes first.
    pub fn find(text: &str, args: &HubArgs) -> Result<Option<Target>, CliError> {
        if Path::new(text).exists() {
            return Ok(None);
        }
        match Reference::parse(text)? {
            Reference::Path => Ok(None),
            Reference::Pinned(repo, commit) => {
                // An entry of the same commit lends its notes.
                let list = registry(args)?;
                let not_runnable = list.not_runnable(&repo).map(|(_, reason)| reason.to_owned());
                let entry = list.entries.into_iter().find(|e| e.repo == repo && e.commit.as_ref() == Some(&commit));
                Ok(Some(Target { repo, commit, entry, not_runnable, named: text.to_owned() }))
            }
            Reference::Moving(repo, revision, why) => {
                let slip = Commit::is_meant(&revision);
                // A name of the list with a revision: its repository is what has one.
                let repo = if repo.is_bare() {
                    registry(args)?.find(repo.as_str()).map_or(repo, |entry| entry.repo.clone())
                } else {
                    repo
                };
                Err(HubError::NotPinned { repo: repo.to_string(), revision, why, slip }.into())
            }
            Reference::Bare(repo) => {
                let list = registry(args)?;
                let pinned = list.of_repo(&repo).filter(|entry| entry.commit.is_some());
                let entry = pinned.map(|entry| entry.name.clone());
                Err(HubError::NoRevision { repo: repo.to_string(), entry }.into())
            }
            Reference::Word(name) => {
                let list = registry(args)?;
                let entry = list.get(&name)?;
                Ok(Some(Target::of_entry(entry)?))
            }
        }
    }

    /// The same, where a path has no meaning.
    pub fn of_hub(text: &str, args: &HubArgs) -> Result<Target, CliError> {
        // A folder that happens to have the name of a model is no reason to refuse it here.
        let found = match Reference::parse(text)? {
            Reference::Word(name) if Path::new(text).exists() => {
                let list = registry(args)?;
                Some(Target::of_entry(list.get(&name)?)?)
            }
            _ => Target::find(text, args)?,
        };
        found.ok_or_else(|| {
            CliError::usage(format!("'{text}' is a path, not a model of the hub"))
                .help("give a name of `earnest models list`, or org/repo@<40 digits>")
        })
    }

    /// Refuses what the list says cannot be run, by name or by repository, pinned or not, before anybody resolves or fetches
    /// it in vain. A file or folder of that name is none of the list's.
    pub fn refuse_unrunnable(text: &str, args: &HubArgs) -> Result<(), CliError> {
        if Path::new(text).exists() {
            return Ok(());
        }
        let list = registry(args)?;
        let found = match Reference::parse(text)? {
            Reference::Word(name) => list.find(&name).and_then(|entry| Some((entry, entry.not_runnable.as_deref()?))),
            Reference::Bare(repo) | Reference::Moving(repo, ..) | Reference::Pinned(repo, _) => {
                list.not_runnable(&repo)
            }
            Reference::Path => None,
        };
        found.map_or(Ok(()), |(entry, reason)| {
            Err(HubError::NotRunnable { name: entry.name.clone(), reason: reason.to_owned() }.into())
        })
    }

    /// The folder of the commit, if every file is there; of a tokenizer, if its own files are.
    pub fn folder(&self, args: &HubArgs, with_weights: bool) -> Result<PathBuf, CliError> {
        let cache = Cache::of(&Environment::read(args.offline))?;
        Ok(if with_weights {
            cache.ready(&self.repo, &self.commit, &self.named)?
        } else {
            cache.ready_to_tokenise(&self.repo, &self.commit, &self.named)?
        })
    }
}
