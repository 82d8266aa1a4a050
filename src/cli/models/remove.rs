//! `earnest models remove`.
use serde::Serialize;

use super::args::RemoveArgs;
use super::opened::files;
use crate::cli::Exit;
use crate::cli::error::CliError;
use crate::cli::printer::Printer;
use earnest_models::hub::{Cache, CommitReference, Environment, HubError, Removal};
use earnest_models::memory::human_bytes;

/// A removed commit.
#[derive(Debug, Serialize)]
struct Line {
    model: String,
    #[serde(flatten)]
    removed: Removal,
}

/// Removes commits from the cache.
pub fn execute(args: &RemoveArgs, printer: Printer) -> Result<Exit, CliError> {
    let cache = Cache::from_environment(&Environment::read(args.hub.offline))?;
    let targets = args
        .names
        .iter()
        .map(|name| CommitReference::require(name, &args.hub.settings()))
        .collect::<Result<Vec<_>, _>>()?;
    for target in &targets {
        if !cache.snapshot(&target.repo, &target.commit).is_dir() {
            let error = HubError::NotCached {
                repo: target.repo.to_string(),
                commit: target.commit.to_string(),
                cache: cache.folder().to_owned(),
                fetch: String::new(),
            };
            return Err(
                CliError::new(Exit::Model, error.to_string()).help("`earnest models list --cached` lists the cache")
            );
        }
    }
    if !args.yes {
        let all: Vec<String> = targets
            .iter()
            .map(|target| {
                let found = cache.inspect(&target.repo, &target.commit);
                format!("{}@{} ({}, {})", target.repo, target.commit, files(found.files), human_bytes(found.size))
            })
            .collect();
        return Err(CliError::usage(format!("this would remove {}", all.join(", "))).help("repeat it with --yes"));
    }
    let mut lines = Vec::new();
    for target in targets {
        let removed = cache.remove(&target.repo, &target.commit)?;
        lines.push(Line { model: format!("{}@{}", target.repo, target.commit), removed });
    }
    if args.json {
        printer.json(&lines)?;
    } else {
        for line in &lines {
            let kept = match line.removed.kept {
                0 => String::new(),
                1 => "; 1 file kept, because another commit uses it".to_owned(),
                kept => format!("; {kept} files kept, because another commit uses them"),
            };
            let orphans = match line.removed.orphans {
                0 => String::new(),
                count => format!(", and {count} unused ones"),
            };
            printer.result(&format!(
                "{}: {} removed{orphans}, {} freed{kept}\n",
                line.model,
                files(line.removed.files),
                human_bytes(line.removed.freed)
            ))?;
        }
    }
    Ok(Exit::Success)
}
