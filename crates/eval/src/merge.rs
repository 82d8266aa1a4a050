//! Merging of results: runs of other folders are copied, then the parts of sharded runs are joined.
//!
//! Runs and parts that were merged before are recognised, so that merging twice changes nothing the second time.
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::EvalError;

use earnest_results::store::{BULK_ROWS, Filter, RunRecord, Store};
use earnest_results::suites::LocalHost;
use earnest_results::{Manifest, Reporter, RunError, RunEvent, Sample, Status, folder, results_option, suites};

/// Number of differing samples that an error names.
const SHOWN: usize = 3;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MergeSettings {
    /// Results folder to merge into; its own parts are joined.
    pub results: PathBuf,
    /// Other results folders, whose runs are copied first.
    pub folders: Vec<PathBuf>,
    /// Host on which programs of copied runs are scored again.
    pub host: LocalHost,
}

impl MergeSettings {
    /// Joins the parts in a results folder; copies nothing.
    pub fn new(results: impl Into<PathBuf>) -> Self {
        MergeSettings { results: results.into(), folders: Vec::new(), host: LocalHost::default() }
    }
}

/// A step of a merge.
#[derive(Debug, Clone, Copy)]
pub enum MergeEvent<'a> {
    /// Samples of a run were copied from another store.
    Copied { run: &'a str, samples: usize, from: &'a Path },
    /// All samples of another store's run are here already: in the run of its name, or in `whole`, the run it is a part of.
    NothingToCopy { run: &'a str, samples: usize, from: &'a Path, whole: Option<&'a str> },
    /// The store has no parts, and no other folders were named.
    NoParts { store: &'a Path },
    /// The parts of a run were joined and removed.
    Joined { run: &'a str, parts: usize, samples: usize },
    /// Parts were removed, because a finished whole run has their samples.
    AlreadyJoined { run: &'a str, parts: &'a [&'a str] },
    /// Parts of a run, as `--shard` names them, are missing or unfinished: it is not joined.
    PartsMissing { run: &'a str, parts: &'a [String] },
    /// A message or warning about a run that is copied.
    Store(&'a RunEvent<'a>),
}

/// A consumer of merge events.
pub type OnMerge<'a> = dyn FnMut(MergeEvent<'_>) + 'a;

/// Passes the messages about runs on.
struct StoreEvents<'a, 'b>(&'a mut OnMerge<'b>);

impl Reporter for StoreEvents<'_, '_> {
    fn event(&mut self, event: &RunEvent<'_>) {
        (self.0)(MergeEvent::Store(event));
    }
}

/// Copies the runs of other folders, then joins the parts of sharded runs.
///
/// # Errors
/// [`EvalError::PartsMissing`] if a run could not be joined; every other run is joined then. Other errors end the merge at once;
/// nothing is copied from a run that is damaged or contradicts the rows that are here.
pub fn merge(settings: &MergeSettings, on_event: &mut OnMerge<'_>) -> Result<(), EvalError> {
    let store = Store::create(&settings.results)?;
    for folder in &settings.folders {
        copy_folder(folder, &store, &settings.host, on_event)?;
    }
    let mut groups: BTreeMap<(String, usize), Vec<RunRecord>> = BTreeMap::new();
    for run in store.runs()? {
        if let Some(shard) = run.manifest.shard {
            groups.entry((run.manifest.settings_sha256.clone(), shard.of)).or_default().push(run);
        }
    }
    if groups.is_empty() && settings.folders.is_empty() {
        // Not an error: merging a second time has nothing left to do.
        on_event(MergeEvent::NoParts { store: store.path() });
    }
    // Complete groups first: a run may be sharded in two ways, and the whole run has the other shards' samples then.
    let (complete, others): (Vec<_>, Vec<_>) =
        groups.into_iter().partition(|((_, of), parts)| missing(*of, parts).is_empty());
    let mut runs = 0;
    for ((_, of), parts) in complete.into_iter().chain(others) {
        runs += usize::from(!join(&store, of, &parts, on_event)?);
    }
    if runs == 0 { Ok(()) } else { Err(EvalError::PartsMissing { runs }) }
}

/// Joins the `of` parts of one run.
///
/// # Errors
/// [`EvalError::PartsMissing`] if a part is missing or unfinished.
pub fn join_run(folder: &Path, settings_sha256: &str, of: usize, on_event: &mut OnMerge<'_>) -> Result<(), EvalError> {
    let store = Store::create(folder)?;
    let is_part = |run: &RunRecord| run.manifest.shard.is_some_and(|shard| shard.of == of);
    let parts: Vec<RunRecord> = store.with_settings(settings_sha256)?.into_iter().filter(is_part).collect();
    match !parts.is_empty() && join(&store, of, &parts, on_event)? {
        true => Ok(()),
        false => Err(EvalError::PartsMissing { runs: 1 }),
    }
}

/// Copies the runs of another folder, each only if it is not damaged.
fn copy_folder(folder: &Path, store: &Store, host: &LocalHost, on_event: &mut OnMerge<'_>) -> Result<(), EvalError> {
    let other = Store::open(folder)?;
    if same_file(&other, store) {
        return Err(EvalError::setting(format!("{} is the results folder itself", folder.display()))
            .hint("name the other folders; parts in the results folder are joined without being named"));
    }
    for run in other.runs()? {
        let suite = folder::known_suite(host, &other, &run, &mut StoreEvents(on_event))?;
        if let Some(fault) = other.examine(&run, suite.as_ref())?.first() {
            let message = format!("{} in {} is damaged: {fault}", run.manifest.run, other.path().display());
            return Err(EvalError::results(message).hint(format!(
                "`earnest runs verify{}` shows all damage; nothing of this run was copied",
                results_option(folder)
            )));
        }
        copy(&other, &run, store, on_event)?;
    }
    Ok(())
}

fn same_file(one: &Store, other: &Store) -> bool {
    match (one.path().canonicalize(), other.path().canonicalize()) {
        (Ok(one), Ok(other)) => one == other,
        _ => one.path() == other.path(),
    }
}

/// Copies a run, or the rows that the equal run lacks.
fn copy(from: &Store, run: &RunRecord, to: &Store, on_event: &mut OnMerge<'_>) -> Result<(), EvalError> {
    let manifest = &run.manifest;
    let with_settings = || to.with_settings(&manifest.settings_sha256);
    if manifest.shard.is_some()
        && let Some(whole) = with_settings()?.iter().find(|other| is_whole(other))
    {
        check_agreement(from, run, to, whole)?;
        on_event(MergeEvent::NothingToCopy {
            run: &manifest.run,
            samples: from.count(run)?,
            from: from.path(),
            whole: Some(&whole.manifest.run),
        });
        return Ok(());
    }
    // A copy got a numbered name if its own was taken; it has the original's start time.
    let numbered = format!("{}.", manifest.run);
    let copied_before =
        |other: &&RunRecord| other.manifest.run.starts_with(&numbered) && other.manifest.started == manifest.started;
    let equal = || -> Result<Option<RunRecord>, RunError> {
        let all = with_settings()?;
        let same_shard = || all.iter().filter(|other| other.manifest.shard == manifest.shard);
        let same_name = same_shard().find(|other| other.manifest.run == manifest.run);
        Ok(same_name.or_else(|| same_shard().find(copied_before)).cloned())
    };
    let planned = run.planned;
    let (_lock, target) = match equal()? {
        Some(equal) => (to.lock(&equal.manifest.run)?, equal),
        None => {
            let lock = to.lock(&manifest.run)?;
            // Read again: another process may have copied it before we got the lock.
            match equal()? {
                Some(equal) if equal.manifest.run == manifest.run => (lock, equal),
                Some(equal) => (to.lock(&equal.manifest.run)?, equal),
                None if to.exactly(&manifest.run)?.is_none() => (lock, to.begin(manifest, planned)?),
                None => {
                    let (lock, name) = folder::free_name(to, &manifest.run)?;
                    (lock, to.begin(&Manifest { run: name, ..manifest.clone() }, planned)?)
                }
            }
        }
    };
    check_agreement(from, run, to, &target)?;
    let samples = copy_missing(from, run, to, &target)?;
    let summary = from.summary(run)?;
    if manifest.status == Status::Finished && target.manifest.status != Status::Finished {
        let name = target.manifest.run.clone();
        to.update(target.id, &Manifest { run: name, ..manifest.clone() }, planned)?;
    }
    if let Some(summary) = summary
        && manifest.status == Status::Finished
        && (samples > 0 || to.summary(&target)?.is_none())
    {
        to.keep_summary(&target, &summary)?;
    }
    on_event(match samples {
        0 => {
            MergeEvent::NothingToCopy { run: &manifest.run, samples: from.count(run)?, from: from.path(), whole: None }
        }
        _ => MergeEvent::Copied { run: &target.manifest.run, samples, from: from.path() },
    });
    Ok(())
}

/// Returns true for a finished run that is not a part.
fn is_whole(run: &RunRecord) -> bool {
    run.manifest.shard.is_none() && run.manifest.status == Status::Finished
}

/// Copies questions, and the rows that the target lacks; returns the number of rows.
fn copy_missing(from: &Store, run: &RunRecord, to: &Store, target: &RunRecord) -> Result<usize, EvalError> {
    to.copy_questions(from, run, target)?;
    let progress = to.progress(target)?;
    let mut writer = to.writer(target).batches_of(BULK_ROWS);
    let mut copied = 0;
    for sample in from.samples(run, Filter::default()).indexed() {
        let (index, sample) = sample?;
        if !progress.is_settled(index) {
            copied += 1;
            writer.push(index, Sample { run: target.manifest.run.clone(), ..sample })?;
        }
    }
    writer.write()?;
    Ok(copied)
}

/// Checks, before the first row is copied, that the rows which both runs have are equal. Retryable failures may differ.
fn check_agreement(from: &Store, run: &RunRecord, to: &Store, target: &RunRecord) -> Result<(), EvalError> {
    let retryable = |sample: &Sample| sample.failure.as_ref().is_some_and(|failure| failure.retryable);
    let (mut common, mut differing, mut named) = (0_usize, 0_usize, Vec::new());
    let mut theirs = from.samples(run, Filter::default()).indexed().peekable();
    for mine in to.samples(target, Filter::default()).indexed() {
        let (index, mine) = mine?;
        while theirs.next_if(|other| other.as_ref().is_ok_and(|(other, _)| *other < index)).is_some() {}
        let same = theirs.next_if(|other| other.as_ref().map_or(true, |(other, _)| *other == index));
        let Some((_, other)) = same.transpose()? else { continue };
        if retryable(&mine) || retryable(&other) {
            continue;
        }
        common += 1;
        let differences = mine.differences(&other);
        if !differences.is_empty() {
            differing += 1;
            if named.len() < SHOWN {
                named.push(format!("sample {} of {} in {}", mine.sample, mine.item, differences.join(", ")));
            }
        }
    }
    if differing == 0 {
        return Ok(());
    }
    let more = if differing > named.len() { "; ..." } else { "" };
    let message = format!(
        "{differing} of {common} samples of {} that both have differ between {} and {}: {}{more}",
        target.manifest.run,
        to.path().display(),
        from.path().display(),
        named.join("; ")
    );
    Err(EvalError::results(message).hint(
        "a row was edited, or one machine computes otherwise; `earnest runs verify` examines each folder, and nothing of this \
         run was copied",
    ))
}

fn part(run: &RunRecord) -> usize {
    run.manifest.shard.map_or(0, |shard| shard.part)
}

/// Returns the finished part with this number.
fn finished(parts: &[RunRecord], number: usize) -> Option<&RunRecord> {
    parts.iter().find(|run| part(run) == number && run.manifest.status == Status::Finished)
}

/// Returns the parts that are missing or unfinished, as `--shard` names them.
fn missing(of: usize, parts: &[RunRecord]) -> Vec<String> {
    (1..=of).filter(|&number| finished(parts, number).is_none()).map(|number| format!("{number}/{of}")).collect()
}

/// Joins the parts of a run and removes them; returns false if some are missing or unfinished. Parts of a run that is whole
/// already are only removed.
fn join(store: &Store, of: usize, parts: &[RunRecord], on_event: &mut OnMerge<'_>) -> Result<bool, EvalError> {
    let Some(first) = parts.first() else { return Ok(true) };
    let wholes = store.with_settings(&first.manifest.settings_sha256)?;
    if let Some(whole) = wholes.iter().find(|run| is_whole(run)) {
        for part in parts {
            check_agreement(store, part, store, whole)?;
        }
        for part in parts {
            store.delete(part)?;
        }
        let parts: Vec<&str> = parts.iter().map(|run| run.manifest.run.as_str()).collect();
        on_event(MergeEvent::AlreadyJoined { run: &whole.manifest.run, parts: &parts });
        return Ok(true);
    }
    let suffix = format!("-{}of{of}", part(first));
    let base = first.manifest.run.split(&suffix).next().unwrap_or(&first.manifest.run).to_owned();
    let missing = missing(of, parts);
    if !missing.is_empty() {
        on_event(MergeEvent::PartsMissing { run: &base, parts: &missing });
        return Ok(false);
    }
    let chosen: Vec<&RunRecord> = (1..=of).filter_map(|number| finished(parts, number)).collect();
    let whole = Manifest { shard: None, ..first.manifest.clone() };
    let suite = suites::stored(&first.manifest.settings).ok();
    let planned = match &suite {
        Some(suite) => whole.plan().len(suite),
        None => chosen.iter().map(|part| part.planned).sum(),
    };
    // An unfinished whole run takes the parts' rows in.
    let (_lock, target) = match folder::claim(store, &base, &first.manifest.settings_sha256, None)? {
        folder::Claimed::Equal(lock, run) => (lock, *run),
        folder::Claimed::New(lock, name) => {
            let manifest = Manifest {
                run: name,
                status: Status::Running,
                started: chosen.iter().map(|run| run.manifest.started.clone()).min().unwrap_or_default(),
                ended: chosen.iter().filter_map(|run| run.manifest.ended.clone()).max(),
                sessions: chosen.iter().map(|run| run.manifest.sessions).sum(),
                generation_s: chosen.iter().map(|run| run.manifest.generation_s).sum(),
                ..whole
            };
            (lock, store.begin(&manifest, planned)?)
        }
    };
    for run in &chosen {
        check_agreement(store, run, store, &target)?;
    }
    for run in &chosen {
        copy_missing(store, run, store, &target)?;
    }
    let name = &target.manifest.run;
    let samples = store.count(&target)?;
    if samples != planned {
        store.update(target.id, &Manifest { status: Status::Interrupted, ..target.manifest.clone() }, planned)?;
        let message = format!("{name} has {samples} of {planned} samples although all parts are finished");
        return Err(EvalError::results(message).hint("`earnest runs verify` examines the parts"));
    }
    let manifest = Manifest { status: Status::Finished, ..target.manifest.clone() };
    store.update(target.id, &manifest, planned)?;
    if let Some(suite) = suite {
        folder::keep_document(store, &RunRecord { manifest, ..target.clone() }, &suite)?;
    }
    for run in &chosen {
        store.delete(run)?;
    }
    on_event(MergeEvent::Joined { run: name, parts: of, samples });
    Ok(true)
}
