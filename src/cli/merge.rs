//! `earnest merge`: parts become a run, folders become one.
use std::collections::BTreeMap;

use super::error::CliError;
use super::printer::Printer;
use super::result_args::MergeArgs;
use super::{Exit, catalogue, results};
use crate::run::store::{BULK_ROWS, Filter, RunRecord, Store};
use crate::run::{Manifest, Sample, Status};

/// Most differing samples that are named.
const SHOWN: usize = 3;

/// Copies other folders' runs, then joins parts.
pub fn execute(args: &MergeArgs, printer: Printer) -> Result<Exit, CliError> {
    let store = results::create(&args.results.folder, printer)?;
    for folder in &args.folders {
        let other = Store::open(folder)?;
        for run in other.runs()? {
            let faults = other.examine(&run, catalogue::stored(&run.manifest.settings)?.as_ref())?;
            if let Some(first) = faults.first() {
                let message = format!("{} in {} is damaged: {first}", run.manifest.run, other.path().display());
                return Err(CliError::new(Exit::Results, message)
                    .help("`earnest runs verify` says everything; nothing of this run was copied"));
            }
            copy(&other, &run, &store, printer)?;
        }
    }
    let mut groups: BTreeMap<(String, usize), Vec<RunRecord>> = BTreeMap::new();
    for run in store.runs()? {
        if let Some(shard) = run.manifest.shard {
            groups.entry((run.manifest.settings_sha256.clone(), shard.of)).or_default().push(run);
        }
    }
    if groups.is_empty() && args.folders.is_empty() {
        return Err(CliError::usage(format!("{} has no parts of runs to join", store.path().display()))
            .help("`earnest run --shard I/N` works on a part"));
    }
    let mut incomplete = 0;
    for ((_, of), parts) in groups {
        incomplete += usize::from(!join(&store, of, &parts, printer)?);
    }
    if incomplete == 0 {
        return Ok(Exit::Success);
    }
    Err(CliError::new(Exit::Results, format!("{incomplete} runs are not joined, because parts are missing"))
        .help("finish the parts (`earnest resume`) or name the folders that have them"))
}

/// Copies a run, or the rows that an equal one lacks.
fn copy(from: &Store, run: &RunRecord, to: &Store, printer: Printer) -> Result<(), CliError> {
    let manifest = &run.manifest;
    let equal = to.with_settings(&manifest.settings_sha256)?;
    let equal =
        equal.into_iter().find(|other| other.manifest.shard == manifest.shard && other.manifest.run == manifest.run);
    let planned = run.planned.unwrap_or_default();
    let (_lock, target) = match equal {
        Some(equal) => (to.lock(&equal.manifest.run)?, equal),
        None => {
            let (lock, name) = results::free_name(to, &manifest.run)?;
            let target = to.begin(&Manifest { run: name, ..manifest.clone() }, planned)?;
            (lock, target)
        }
    };
    let standing = to.standing(&target)?;
    agree(from, run, to, &target)?;
    let mut writer = to.writer(&target).batches_of(BULK_ROWS);
    let mut copied = 0;
    for sample in from.samples(run, Filter::default()).placed() {
        let (place, sample) = sample?;
        if !standing.settles(place) {
            copied += 1;
            writer.push(place, sample)?;
        }
    }
    writer.write()?;
    if manifest.status == Status::Finished && target.manifest.status != Status::Finished {
        let name = target.manifest.run.clone();
        to.update(target.id, &Manifest { run: name, ..manifest.clone() }, planned)?;
    }
    printer.message(&format!("{}: {copied} samples copied from {}", target.manifest.run, from.path().display()));
    Ok(())
}

/// Checks, before the first row is copied, that rows which both runs have say the same. Failures that are worth another
/// try may differ.
fn agree(from: &Store, run: &RunRecord, to: &Store, target: &RunRecord) -> Result<(), CliError> {
    let retryable = |sample: &Sample| sample.failure.as_ref().is_some_and(|failure| failure.retryable);
    let (mut common, mut differing, mut named) = (0_usize, 0_usize, Vec::new());
    let mut theirs = from.samples(run, Filter::default()).placed().peekable();
    for mine in to.samples(target, Filter::default()).placed() {
        let (place, mine) = mine?;
        while theirs.next_if(|other| other.as_ref().is_ok_and(|(other, _)| *other < place)).is_some() {}
        let same_place = theirs.next_if(|other| other.as_ref().map_or(true, |(other, _)| *other == place));
        let Some((_, other)) = same_place.transpose()? else { continue };
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
    Err(CliError::new(Exit::Results, message).help(
        "one of them is not what these settings give: an edited row, or a machine that computes otherwise; `earnest runs \
         verify` examines each, and nothing of this run was copied",
    ))
}

/// Joins the parts of a run; false if some are missing or unfinished.
fn join(store: &Store, of: usize, parts: &[RunRecord], printer: Printer) -> Result<bool, CliError> {
    let Some(first) = parts.first() else { return Ok(true) };
    let part = |run: &RunRecord| run.manifest.shard.map_or(0, |shard| shard.part);
    let finished =
        |number: &usize| parts.iter().find(|run| part(run) == *number && run.manifest.status == Status::Finished);
    let suffix = |run: &RunRecord| format!("-{}of{of}", part(run));
    let base = first.manifest.run.split(&suffix(first)).next().unwrap_or(&first.manifest.run).to_owned();
    let missing: Vec<String> =
        (1..=of).filter(|number| finished(number).is_none()).map(|number| format!("{number}/{of}")).collect();
    if !missing.is_empty() {
        printer.warning(&format!("{base}: not finished or not here: {}", missing.join(", ")));
        return Ok(false);
    }
    let chosen: Vec<&RunRecord> = (1..=of).filter_map(|number| finished(&number)).collect();
    let suite = catalogue::stored(&first.manifest.settings)?;
    let whole = Manifest { shard: None, ..first.manifest.clone() };
    let planned = whole.plan().len(suite.as_ref());
    let (_lock, name) = results::free_name(store, &base)?;
    let sum = |value: fn(&Manifest) -> f64| chosen.iter().map(|run| value(&run.manifest)).sum::<f64>();
    let manifest = Manifest {
        run: name.clone(),
        status: Status::Running,
        started: chosen.iter().map(|run| run.manifest.started.clone()).min().unwrap_or_default(),
        ended: chosen.iter().filter_map(|run| run.manifest.ended.clone()).max(),
        sessions: chosen.iter().map(|run| run.manifest.sessions).sum(),
        generation_s: sum(|manifest| manifest.generation_s),
        ..whole
    };
    let target = store.begin(&manifest, planned)?;
    let mut writer = store.writer(&target).batches_of(BULK_ROWS);
    for run in &chosen {
        for sample in store.samples(run, Filter::default()).placed() {
            let (place, sample) = sample?;
            writer.push(place, Sample { run: name.clone(), ..sample })?;
        }
    }
    writer.write()?;
    let rows = store.count(&target)?;
    if rows != planned {
        store.update(target.id, &Manifest { status: Status::Interrupted, ..manifest }, planned)?;
        let message = format!("{name} has {rows} of {planned} samples although all parts are finished");
        return Err(CliError::new(Exit::Results, message).help("`earnest runs verify` examines the parts"));
    }
    store.update(target.id, &Manifest { status: Status::Finished, ..manifest }, planned)?;
    // The rows are all in the whole run now.
    for run in &chosen {
        store.delete(run)?;
    }
    printer.result(&format!("{name}: {of} parts joined, {rows} samples\n"))?;
    Ok(true)
}
