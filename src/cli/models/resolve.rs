//! `earnest models resolve`.
use std::path::Path;

use serde::Serialize;

use super::args::{HubArgs, ResolveArgs};
use crate::cli::Exit;
use crate::cli::error::CliError;
use crate::cli::printer::Printer;
use earnest_models::hub::{Environment, HubError, Reference, Remote, RepoId, resolved_file, save_commit};

/// A resolved revision.
#[derive(Debug, Serialize)]
struct Resolved {
    repo: String,
    revision: String,
    commit: String,
    /// Reference for `--model`.
    model: String,
    licence: Option<String>,
    gated: bool,
    /// File in which the commit was kept.
    saved: Option<String>,
}

/// Asks the hub for a commit.
pub fn execute(args: &ResolveArgs, printer: Printer) -> Result<Exit, CliError> {
    let (repo, revision, name) = target(args)?;
    let environment = Environment::read(args.hub.offline);
    let remote = Remote::new(&environment, &format!("asking the hub for the commit of {repo}@{revision}"))?;
    let found = remote.revision(&repo, &revision)?;
    let commit = found.listing.commit;
    let mut saved = None;
    if let Some(name) = &name {
        let path = resolved_file()?;
        save_commit(&path, name, &repo, &commit)?;
        saved = Some(path.display().to_string());
        printer.message(&format!("{name} is now {commit}, the current {revision}; kept in {}", path.display()));
    }
    let resolved = Resolved {
        model: format!("{repo}@{commit}"),
        repo: repo.to_string(),
        revision,
        commit: commit.to_string(),
        licence: found.licence,
        gated: found.gated,
        saved,
    };
    if args.json {
        printer.json(&resolved)?;
    } else {
        printer.result(&format!("{}\n", resolved.model))?;
    }
    Ok(Exit::Success)
}

/// Pins a model of the list that has no commit to the hub's current one, in the user's list.
///
/// # Errors
/// Those of the hub; a list that cannot be written.
pub(super) fn pin(name: &str, hub: &HubArgs, printer: Printer) -> Result<(), CliError> {
    let repo = hub.settings().registry()?.get(name)?.repo.clone();
    let environment = Environment::read(hub.offline);
    let remote = Remote::new(&environment, &format!("asking the hub for the commit of {repo}@main"))?;
    let commit = remote.revision(&repo, "main")?.listing.commit;
    let path = resolved_file()?;
    save_commit(&path, name, &repo, &commit)?;
    printer.message(&format!("{name} is now {repo}@{commit}, the current main; kept in {}", path.display()));
    Ok(())
}

/// The repository, the revision, and the name under which the commit is kept.
fn target(args: &ResolveArgs) -> Result<(RepoId, String, Option<String>), CliError> {
    let plain = |name: &str| !name.is_empty() && !name.contains(['/', '@', '\\']) && !name.starts_with(['-', '.']);
    if let Some(name) = args.save.as_deref().filter(|name| !plain(name)) {
        return Err(CliError::usage(format!(
            "--save '{name}' is not a valid name: it must not contain /, @ or \\ nor begin with - or ."
        )));
    }
    let list = args.hub.settings().registry()?;
    Ok(match Reference::parse(&args.model)? {
        Reference::Name(name) => {
            let entry = list.get(&name)?;
            if let Some(commit) = entry.commit.as_ref().filter(|_| args.save.is_none()) {
                let message = format!("{name} is already pinned: {}@{commit}", entry.repo);
                let help = format!(
                    "`earnest models resolve {}@main --save OTHER-NAME` keeps the current one under another name",
                    entry.repo
                );
                return Err(CliError::usage(message).help(help));
            }
            (entry.repo.clone(), "main".to_owned(), Some(args.save.clone().unwrap_or(entry.name.clone())))
        }
        Reference::Repository(repo) => (repo, "main".to_owned(), args.save.clone()),
        Reference::Unpinned(repo, revision, reason) if reason.is_typo() => {
            return Err(HubError::NotPinned { repo: repo.to_string(), revision, reason }.into());
        }
        Reference::Unpinned(repo, revision, _) => {
            let revision = if revision.is_empty() { "main".to_owned() } else { revision };
            (repo, revision, args.save.clone())
        }
        Reference::Pinned(repo, commit) => (repo, commit.to_string(), args.save.clone()),
        Reference::Path => {
            let what = if Path::new(&args.model).exists() { "a path" } else { "neither a name nor org/repo@REVISION" };
            return Err(CliError::usage(format!("'{}' is {what}", args.model)).help("for example microsoft/phi-2@main"));
        }
    })
}
