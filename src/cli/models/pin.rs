//! `earnest models use`.
use serde::Serialize;

use super::args::UseArgs;
use crate::cli::Exit;
use crate::cli::error::CliError;
use crate::cli::printer::Printer;
use earnest_models::hub::{
    Cache, Commit, Environment, HubError, Reference, Registry, RepoId, resolved_file, save_commit,
};

/// A pinned commit.
#[derive(Debug, Serialize)]
struct Used {
    /// Name of the entry, for `--model`.
    name: String,
    repo: String,
    commit: String,
    /// The same as one reference.
    model: String,
    /// True if the cache has a snapshot of it.
    cached: bool,
    /// File in which the commit was kept.
    saved: String,
}

/// Pins a commit in the user's list.
pub fn execute(args: &UseArgs, printer: Printer) -> Result<Exit, CliError> {
    let plain = |name: &str| !name.is_empty() && !name.contains(['/', '@', '\\']) && !name.starts_with(['-', '.']);
    if let Some(name) = args.name.as_deref().filter(|name| !plain(name)) {
        let message = format!("--name '{name}' is not a valid name");
        return Err(CliError::usage(message).help("it must not contain /, @ or \\ nor begin with - or ."));
    }
    let list = args.hub.settings().registry()?;
    let environment = Environment::read(args.hub.offline);
    let cache = Cache::from_environment(&environment)?;
    let (repo, commit, listed) = match Reference::parse(&args.model)? {
        Reference::Name(name) => {
            let entry = list.get(&name)?;
            let commit = only_commit(&cache, &entry.repo)?;
            (entry.repo.clone(), commit, Some(entry.name.clone()))
        }
        Reference::Repository(repo) => {
            let commit = only_commit(&cache, &repo)?;
            (repo, commit, None)
        }
        Reference::Pinned(repo, commit) => (repo, commit, None),
        Reference::Unpinned(repo, revision, reason) => {
            return Err(HubError::NotPinned { repo: repo.to_string(), revision, reason }.into());
        }
        Reference::Path => return Err(HubError::IsAPath { text: args.model.clone() }.into()),
    };
    // An entry of the repository that has no commit yet, or that an earlier call wrote.
    let of_repo = || {
        let open = |entry: &&_| is_open(entry);
        list.entries.iter().filter(|entry| entry.repo == repo).find(open).map(|entry| entry.name.clone())
    };
    let name = args.name.clone().or(listed).or_else(of_repo).unwrap_or_else(|| repo.name().to_owned());
    check_name(&list, &name, &repo, &commit)?;
    let path = resolved_file()?;
    save_commit(&path, &name, &repo, &commit)?;
    let cached = cache.snapshot(&repo, &commit).is_dir();
    let used = Used {
        model: format!("{repo}@{commit}"),
        name,
        repo: repo.to_string(),
        commit: commit.to_string(),
        cached,
        saved: path.display().to_string(),
    };
    let fetch = if cached { String::new() } else { format!("; `earnest models fetch {}` fetches it", used.name) };
    printer.message(&format!("{} is now {}; kept in {}{fetch}", used.name, used.model, used.saved));
    if args.json {
        printer.json(&used)?;
    } else {
        printer.result(&format!("{}\n", used.model))?;
    }
    Ok(Exit::Success)
}

/// The only commit of a repository in the cache.
fn only_commit(cache: &Cache, repo: &RepoId) -> Result<Commit, CliError> {
    let commits = cache.commits(repo);
    match commits.as_slice() {
        [only] => Ok(only.clone()),
        [] => Err(CliError::new(Exit::Model, format!("no commit of {repo} is in the cache {}", cache.folder().display()))
            .help(format!(
                "`earnest models resolve {repo}@main` prints the current commit; `earnest models fetch {repo}@<40 digits>` fetches it"
            ))),
        several => {
            let commits = several.iter().map(Commit::to_string).collect();
            Err(HubError::SeveralCommits { repo: repo.to_string(), commits }.into())
        }
    }
}

/// True for an entry whose commit may change: it has none, or `resolved.toml` has it.
fn is_open(entry: &earnest_models::hub::Entry) -> bool {
    let resolved = resolved_file().ok();
    entry.commit.is_none() || (entry.from.is_some() && entry.from == resolved)
}

/// Checks that the name is free or the repository's own, and that no other list pins it.
fn check_name(list: &Registry, name: &str, repo: &RepoId, commit: &Commit) -> Result<(), CliError> {
    let Some(entry) = list.entries.iter().find(|entry| entry.name == name) else { return Ok(()) };
    let other = format!("--name OTHER-NAME keeps {repo}@{commit} under another name");
    if entry.repo != *repo {
        return Err(CliError::usage(format!("{name} is the list's name of {}", entry.repo)).help(other));
    }
    match &entry.commit {
        Some(pinned) if pinned != commit && !is_open(entry) => {
            let place = entry.from.as_ref().map_or("the built-in list".to_owned(), |path| path.display().to_string());
            Err(CliError::usage(format!("{name} is already pinned by {place}: {repo}@{pinned}")).help(other))
        }
        _ => Ok(()),
    }
}
