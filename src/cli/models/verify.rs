//! `earnest models verify`.
use std::fmt::Write;

use serde::Serialize;

use super::args::VerifyArgs;
use crate::cli::Exit;
use crate::cli::error::CliError;
use crate::cli::printer::Printer;
use earnest_models::hub::{
    self, Cache, CheckedFile, Commit, CommitReference, Environment, FileState, HubError, Remote, RepoId,
};
use earnest_models::memory::human_bytes;

/// A commit that was checked.
#[derive(Debug, Serialize)]
struct Verified {
    model: String,
    /// False if the commit is not in the cache.
    cached: bool,
    /// True if the expected hash of some files is known and all of those match.
    good: bool,
    files: Vec<CheckedFile>,
}

/// Hashes cached commits and compares them.
pub fn execute(args: &VerifyArgs, printer: Printer) -> Result<Exit, CliError> {
    let environment = Environment::read(args.hub.offline);
    let cache = Cache::from_environment(&environment)?;
    let asked: Vec<(RepoId, Commit, String)> = if args.names.is_empty() {
        cache
            .scan()
            .into_iter()
            .map(|found| (found.repo.clone(), found.commit.clone(), format!("{}@{}", found.repo, found.commit)))
            .collect()
    } else {
        let find = |name: &String| {
            CommitReference::require(name, &args.hub.settings())
                .map(|target| (target.repo, target.commit, target.given))
        };
        args.names.iter().map(find).collect::<Result<_, _>>()?
    };
    if asked.is_empty() {
        printer.remark(&format!("{} holds no models", cache.folder().display()));
    }
    let (mut verified, mut unknown, mut absent) = (Vec::new(), Vec::new(), Vec::new());
    let only = asked.len() == 1;
    for (repo, commit, named) in asked {
        if !cache.snapshot(&repo, &commit).is_dir() {
            if only {
                return Err(HubError::NotCached {
                    repo: repo.to_string(),
                    commit: commit.to_string(),
                    cache: cache.folder().to_owned(),
                    fetch: format!("earnest models fetch {named}"),
                }
                .into());
            }
            absent.push(named.clone());
            let model = format!("{repo}@{commit}");
            verified.push((named, Verified { model, cached: false, good: false, files: Vec::new() }));
            continue;
        }
        let mut listing = None;
        if args.remote {
            let remote = Remote::new(&environment, &format!("asking the hub for the hashes of {repo}"))?;
            let mut today = remote.revision(&repo, commit.as_str())?.listing;
            // Only fetched files count; a partial download is fine.
            let here = cache.inspect(&repo, &commit);
            let fetched = cache.listing(&repo, &commit).map(|listing| listing.files).unwrap_or_default();
            today.files.retain(|file| {
                here.folder.join(&file.path).symlink_metadata().is_ok()
                    || fetched.iter().any(|known| known.path == file.path)
            });
            listing = Some(today);
        }
        printer.message(&format!("hashing {repo}@{commit}"));
        let files = hub::verify(&cache, &repo, &commit, listing.as_ref(), &mut |_| {})?;
        let some_known = files.iter().any(|file| file.state != FileState::Unknown);
        let good = some_known && files.iter().all(|file| matches!(file.state, FileState::Good | FileState::Unknown));
        if !some_known {
            unknown.push(named.clone());
        }
        verified.push((named, Verified { model: format!("{repo}@{commit}"), cached: true, good, files }));
    }
    let bad = verified.iter().filter(|(named, commit)| commit.cached && !commit.good && !unknown.contains(named));
    let bad = bad.map(|(named, _)| named.clone()).collect::<Vec<_>>();
    let verified: Vec<Verified> = verified.into_iter().map(|(_, commit)| commit).collect();
    if args.json {
        printer.json(&verified)?;
    } else {
        printer.result(&verified.iter().map(screen).collect::<Vec<_>>().join("\n"))?;
    }
    if bad.is_empty() && unknown.is_empty() && absent.is_empty() {
        return Ok(Exit::Success);
    }
    if !absent.is_empty() {
        let mut message = format!("{} of {} commits are not in the cache", absent.len(), verified.len());
        if !bad.is_empty() {
            message.push_str(&format!(", and {} are damaged or incomplete", bad.len()));
        }
        let fetch = [absent, bad].concat().join(" ");
        return Err(CliError::new(Exit::Model, message).help(format!("`earnest models fetch {fetch}` fetches them")));
    }
    if bad.is_empty() {
        let message = format!("no hashes are known for the files of {}", unknown.join(", "));
        return Err(CliError::new(Exit::Model, message)
            .help(format!("`earnest models verify --remote {}` asks the hub", unknown.join(" "))));
    }
    Err(CliError::new(Exit::Model, format!("{} of {} commits are damaged or incomplete", bad.len(), verified.len()))
        .help(format!("`earnest models fetch {}` fetches the wrong files again", bad.join(" "))))
}

fn screen(verified: &Verified) -> String {
    let mut text = format!("{}\n", verified.model);
    for file in &verified.files {
        let state = match &file.state {
            FileState::Good => format!("ok, {}", file.algorithm.unwrap_or_default()),
            FileState::Missing => "MISSING".to_owned(),
            FileState::WrongSize { found, expected } => format!("WRONG SIZE: {found} bytes instead of {expected}"),
            FileState::Damaged { found, expected } => format!("DAMAGED: hash {found} instead of {expected}"),
            FileState::Unknown => "no known hash".to_owned(),
        };
        writeln!(text, "  {:>10}  {}  {state}", human_bytes(file.size), file.file)
            .expect("writing to a String cannot fail");
    }
    if verified.files.is_empty() {
        text.push_str(if verified.cached { "  no files\n" } else { "  not in the cache\n" });
    }
    text
}
