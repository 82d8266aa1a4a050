//! `earnest models fetch`.
use std::io::IsTerminal;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde::Serialize;

use super::args::{FetchArgs, HubArgs};
use super::opened::files;
use crate::cli::Exit;
use crate::cli::error::CliError;
use crate::cli::printer::Printer;
use earnest_digest::DigestCache;
use earnest_models::hub::{
    self, Cache, CommitReference, Environment, FetchEvent, FetchReport, HubError, Listing, Remote, RepoId,
};
use earnest_models::memory::human_bytes;

/// Time between plain lines.
const PLAIN_PERIOD: Duration = Duration::from_secs(10);

/// A fetched model.
#[derive(Debug, Serialize)]
struct Fetched {
    model: String,
    folder: String,
    #[serde(flatten)]
    report: FetchReport,
}

/// Fetches one model after the other. A model that cannot be fetched does not keep the others from it.
pub fn execute(args: &FetchArgs, printer: Printer) -> Result<Exit, CliError> {
    let environment = Environment::read(args.hub.offline);
    let cache = Cache::from_environment(&environment)?;
    let settings = args.hub.settings();
    let mut names = args.names.clone();
    if let Some(paper) = &args.paper {
        let of_paper = super::list::of_paper(&settings.registry()?, paper)?;
        names.extend(of_paper.into_iter().map(|entry| entry.name));
    }
    // All names are resolved first, so that a typo does not show up after an hour of downloads.
    let mut targets = Vec::new();
    let mut failed: Vec<(String, CliError)> = Vec::new();
    for name in &names {
        match CommitReference::require(name, &settings) {
            Ok(target) => targets.push(target),
            Err(error @ HubError::Unresolved { .. }) if args.paper.is_some() => {
                failed.push((name.clone(), error.into()))
            }
            Err(error) => return Err(error.into()),
        }
    }
    let several = names.len() > 1;
    let mut fetched = Vec::new();
    for target in targets {
        match fetch_one(args, &environment, &cache, &target, printer) {
            Ok(done) => {
                if !args.json {
                    printer.result(&line(&done))?;
                }
                fetched.push(done);
            }
            Err(error) if several => failed.push((target.given.clone(), error)),
            Err(error) => return Err(error),
        }
    }
    if args.json {
        printer.json(&fetched)?;
    }
    for (name, error) in &failed {
        printer.warning(&format!("{name} was not fetched: {}", error.message));
        if let Some(help) = &error.help {
            printer.remark(&format!("help: {help}"));
        }
    }
    let missing: Vec<String> = failed.iter().map(|(name, _)| name.clone()).collect();
    match failed.into_iter().next() {
        None => Ok(Exit::Success),
        Some((_, first)) => Err(CliError::new(
            first.exit,
            format!("{} of {} models were not fetched: {}", missing.len(), names.len(), missing.join(", ")),
        )
        .help("the same command fetches what is missing")),
    }
}

/// Fetches a model that a study lacks and says so on standard error; a name without a commit is pinned to the hub's current one first.
///
/// # Errors
/// Those of the hub and the cache; a name that is not a model of the hub.
pub(in crate::cli) fn bring(name: &str, hub: &HubArgs, printer: Printer) -> Result<(), CliError> {
    let environment = Environment::read(hub.offline);
    let cache = Cache::from_environment(&environment)?;
    let settings = hub.settings();
    let target = match CommitReference::require(name, &settings) {
        Err(HubError::Unresolved { name, .. }) => {
            super::resolve::pin(&name, hub, printer)?;
            CommitReference::require(&name, &settings)?
        }
        found => found?,
    };
    let args = FetchArgs { names: Vec::new(), paper: None, files: Vec::new(), hub: hub.clone(), json: false };
    let done = fetch_one(&args, &environment, &cache, &target, printer)?;
    printer.message(&format!("{}: {}", done.model, described(&done.report)));
    Ok(())
}

fn fetch_one(
    args: &FetchArgs,
    environment: &Environment,
    cache: &Cache,
    target: &CommitReference,
    printer: Printer,
) -> Result<Fetched, CliError> {
    let model = format!("{}@{}", target.repo, target.commit);
    if let Some(reason) = &target.not_runnable {
        printer.warning(&format!("{} can be fetched but not run: {reason}", target.given));
    }
    if environment.offline.is_some()
        && args.files.is_empty()
        && let Ok(folder) = cache.checkpoint_folder(&target.repo, &target.commit, &target.given)
    {
        printer.remark(&format!("{model} is complete in the cache; the hub was not contacted"));
        let found = cache.inspect(&target.repo, &target.commit);
        let report =
            FetchReport { files: found.files, size: found.size, present: found.files, ..FetchReport::default() };
        return Ok(Fetched { model, folder: folder.display().to_string(), report });
    }
    let remote = Remote::new(environment, &format!("fetching {model}"))?;
    printer.message(&format!("asking {} for the files of {model}", environment.endpoint));
    let found = remote.revision(&target.repo, target.commit.as_str())?;
    if let Some(name) = &found.moved {
        let old = &target.repo;
        printer.remark(&format!("{old} has moved to {name}; the commit is the same, and the cache keeps it as {old}"));
    }
    let all = found.listing;
    let listing = if args.files.is_empty() { all.for_native()? } else { all.only(&args.files)? };
    if args.files.is_empty() && !listing.files.iter().any(|file| file.path == "tokenizer.json") {
        printer.warning(&format!("{model} has no tokenizer.json and cannot be run without one"));
    }
    let (folder, report) = download(cache, &remote, &target.repo, &listing, printer)?;
    Ok(Fetched { model, folder, report })
}

/// Downloads the files of a listing with progress; returns their folder.
pub(in crate::cli) fn download(
    cache: &Cache,
    remote: &Remote,
    repo: &RepoId,
    listing: &Listing,
    printer: Printer,
) -> Result<(String, FetchReport), CliError> {
    let mut progress = FetchProgress::new(printer, listing.size());
    let report =
        hub::fetch(cache, remote, repo, listing, &DigestCache::for_user(), &mut |event| progress.event(&event))?;
    progress.end();
    Ok((cache.snapshot(repo, &listing.commit).display().to_string(), report))
}

fn line(done: &Fetched) -> String {
    format!("{}\n  {}\n  {}\n", done.model, described(&done.report), done.folder)
}

/// A report in words.
pub(in crate::cli) fn described(r: &FetchReport) -> String {
    let mut parts = vec![format!("{}, {}", files(r.files), human_bytes(r.size))];
    parts.push(format!("{} over the network", human_bytes(r.transferred)));
    for (count, what) in
        [(r.present, "already present"), (r.resumed, "resumed"), (r.repaired, "damaged and fetched again")]
    {
        if count > 0 {
            parts.push(format!("{count} {what}"));
        }
    }
    format!("{}; all sizes and hashes match", parts.join(", "))
}

/// Progress: a bar on a terminal, otherwise a line every few seconds.
struct FetchProgress {
    printer: Printer,
    bar: Option<ProgressBar>,
    plain: bool,
    total: u64,
    last: Instant,
}

impl FetchProgress {
    fn new(printer: Printer, total: u64) -> FetchProgress {
        let terminal = std::io::stderr().is_terminal();
        let bar = (terminal && !printer.is_quiet()).then(|| {
            let bar = ProgressBar::with_draw_target(Some(total), ProgressDrawTarget::stderr_with_hz(5));
            let style = "{bar:24} {binary_bytes}/{binary_total_bytes} {binary_bytes_per_sec} {eta} {wide_msg}";
            bar.set_style(ProgressStyle::with_template(style).unwrap_or_else(|_| ProgressStyle::default_bar()));
            bar
        });
        FetchProgress { printer, bar, plain: !terminal, total, last: Instant::now() }
    }

    fn line(&self, text: &str) {
        match &self.bar {
            Some(bar) => bar.suspend(|| self.printer.message(text)),
            None if self.plain => self.printer.message(text),
            None => {}
        }
    }

    fn event(&mut self, event: &FetchEvent<'_>) {
        match event {
            FetchEvent::Started { file, have } => {
                let from = if *have > 0 { format!(", resumed at {}", human_bytes(*have)) } else { String::new() };
                match &self.bar {
                    Some(bar) => bar.set_message(file.path.clone()),
                    None => self.line(&format!("fetching {} ({}{from})", file.path, human_bytes(file.size))),
                }
            }
            FetchEvent::Progress { done } => {
                if let Some(bar) = &self.bar {
                    bar.set_position(*done);
                } else if self.plain && self.last.elapsed() >= PLAIN_PERIOD {
                    self.last = Instant::now();
                    self.line(&format!("{} of {}", human_bytes(*done), human_bytes(self.total)));
                }
            }
            FetchEvent::Checking { file } => {
                if let Some(bar) = &self.bar {
                    bar.set_message(format!("checking {}", file.path));
                }
            }
            FetchEvent::Waiting { file } => {
                self.line(&format!("another process is fetching {}; waiting for it", file.path))
            }
            FetchEvent::Retrying { file, what } => {
                self.line(&format!("{} was interrupted ({what}); resuming", file.path))
            }
            FetchEvent::Damaged { file } => {
                self.line(&format!("{} in the cache is damaged; fetching it again", file.path));
            }
        }
    }

    fn end(self) {
        if let Some(bar) = self.bar {
            bar.finish_and_clear();
        }
    }
}
