//! `earnest models resolve`.
use std::path::Path;

use serde::Serialize;

use super::args::ResolveArgs;
use crate::cli::Exit;
use crate::cli::error::CliError;
use crate::cli::printer::Printer;
use earnest_models::hub::{Environment, HubError, Reference, Remote, RepoId, resolved_file, save_commit};

/// What a revision is.
#[derive(Debug, Serialize)]
struct Resolved {
    repo: String,
    revision: String,
    commit: String,
    /// What `--model` takes.
    model: String,
    licence: Option<String>,
    gated: bool,
    /// Where the commit was kept.
    saved: Option<String>,
}

/// Asks the hub.
pub fn execute(args: &ResolveArgs, quiet: bool, printer: Printer) -> Result<Exit, CliError> {
    let (repo, revision, name) = asked(args)?;
    let environment = Environment::read(args.hub.offline);
    let remote = Remote::new(&environment, &format!("asking the hub for the commit of {repo}@{revision}"))?;
    let found = remote.revision(&repo, &revision)?;
    let commit = found.listing.commit;
    let mut saved = None;
    if let Some(name) = &name {
        let path = resolved_file()?;
        save_commit(&path, name, &repo, &commit)?;
        saved = Some(path.display().to_string());
        if !quiet {
            printer.message(&format!("{name} is now {commit}, the {revision} of today; kept in {}", path.display()));
        }
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

/// The repository, the revision, and the name under which the commit is kept.
fn asked(args: &ResolveArgs) -> Result<(RepoId, String, Option<String>), CliError> {
    let plain = |name: &str| !name.is_empty() && !name.contains(['/', '@', '\\']) && !name.starts_with(['-', '.']);
    if let Some(name) = args.save.as_deref().filter(|name| !plain(name)) {
        return Err(CliError::usage(format!(
            "--save '{name}' is no name: it has no /, @ or \\ and begins with neither - nor ."
        )));
    }
    let list = args.hub.settings().registry()?;
    Ok(match Reference::parse(&args.model)? {
        Reference::Name(name) => {
            let entry = list.get(&name)?;
            if let Some(commit) = entry.commit.as_ref().filter(|_| args.save.is_none()) {
                let message = format!("{name} is pinned already: {}@{commit}", entry.repo);
                let help =
                    format!("`earnest models resolve {}@main --save OTHER-NAME` keeps today's beside it", entry.repo);
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
