//! `earnest merge`: parts become a run, folders become one.
use std::collections::BTreeMap;

use super::error::CliError;
use super::printer::Printer;
use super::result_args::MergeArgs;
use super::{Exit, catalogue, results};
use earnest_eval::evaluate::free_name;
use earnest_eval::run::store::{BULK_ROWS, Filter, RunRecord, Store};
use earnest_eval::run::{Manifest, Sample, Status};

/// Most differing samples that are named.
const SHOWN: usize = 3;

/// Copies other folders' runs, then joins parts. What was merged before is recognised, so the same command changes nothing
/// the second time.
pub fn execute(args: &MergeArgs, printer: Printer) -> Result<Exit, CliError> {
    let store = results::create(&args.results.folder, printer)?;
    for folder in &args.folders {
        let other = Store::open(folder)?;
        if same_file(&other, &store) {
            return Err(CliError::usage(format!("{} is the results folder itself", folder.display()))
                .help("name the other folders; parts in the results folder are joined without being named"));
        }
        for run in other.runs()? {
            let suite = results::suite(&other, &run, printer)?;
            let faults = other.examine(&run, suite.as_deref())?;
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
        // No error: the same command a second time has nothing left to do.
        printer.message(&format!(
            "{} has no parts of runs to join; `earnest run --shard I/N` works on a part",
            store.path().display()
        ));
    }
    // Complete groups first: a run may be split in two ways, and parts of the other way are in the whole then.
    let (complete, others): (Vec<_>, Vec<_>) =
        groups.into_iter().partition(|((_, of), parts)| missing(*of, parts).is_empty());
    let mut incomplete = 0;
    for ((_, of), parts) in complete.into_iter().chain(others) {
        incomplete += usize::from(!join(&store, of, &parts, printer)?);
    }
    if incomplete == 0 {
        return Ok(Exit::Success);
    }
    let runs = if incomplete == 1 { "1 run is" } else { &format!("{incomplete} runs are") };
    Err(CliError::new(Exit::Results, format!("{runs} not joined, because parts are missing"))
        .help("finish the parts (`earnest resume`) or name the folders that have them"))
}

fn same_file(one: &Store, other: &Store) -> bool {
    match (one.path().canonicalize(), other.path().canonicalize()) {
        (Ok(one), Ok(other)) => one == other,
        _ => one.path() == other.path(),
    }
}

/// Copies a run, or the rows that an equal one lacks.
fn copy(from: &Store, run: &RunRecord, to: &Store, printer: Printer) -> Result<(), CliError> {
    let manifest = &run.manifest;
    let equal = to.with_settings(&manifest.settings_sha256)?;
    if manifest.shard.is_some()
        && let Some(whole) = equal.iter().find(|other| is_whole(other))
    {
        agree(from, run, to, whole)?;
        printer.message(&format!(
            "{} in {}: nothing to copy, its {} samples are in {} already",
            manifest.run,
            from.path().display(),
            from.count(run)?,
            whole.manifest.run
        ));
        return Ok(());
    }
    let alike = || equal.iter().filter(|other| other.manifest.shard == manifest.shard);
    // A copy got another name (a number after it) if its own was taken; it has the original's beginning.
    let numbered = format!("{}.", manifest.run);
    let copied_before =
        |other: &&RunRecord| other.manifest.run.starts_with(&numbered) && other.manifest.started == manifest.started;
    let equal =
        alike().find(|other| other.manifest.run == manifest.run).or_else(|| alike().find(copied_before)).cloned();
    let planned = run.planned.unwrap_or_default();
    let (_lock, target) = match equal {
        Some(equal) => (to.lock(&equal.manifest.run)?, equal),
        None => {
            let (lock, name) = free_name(to, &manifest.run)?;
            let target = to.begin(&Manifest { run: name, ..manifest.clone() }, planned)?;
            (lock, target)
        }
    };
    agree(from, run, to, &target)?;
    let copied = fill(from, run, to, &target)?;
    let summary = from.summary(run)?;
    if manifest.status == Status::Finished && target.manifest.status != Status::Finished {
        let name = target.manifest.run.clone();
        to.update(target.id, &Manifest { run: name, ..manifest.clone() }, planned)?;
    }
    if let Some(summary) = summary.filter(|_| copied > 0 && manifest.status == Status::Finished) {
        to.keep_summary(&target, &summary)?;
    }
    printer.message(&match copied {
        0 => format!(
            "{} in {}: nothing to copy, its {} samples are here already",
            manifest.run,
            from.path().display(),
            from.count(run)?
        ),
        _ => format!("{}: {copied} samples copied from {}", target.manifest.run, from.path().display()),
    });
    Ok(())
}

/// True for a finished run that is no part.
fn is_whole(run: &RunRecord) -> bool {
    run.manifest.shard.is_none() && run.manifest.status == Status::Finished
}

/// Copies questions, and the rows that the target lacks; says how many.
fn fill(from: &Store, run: &RunRecord, to: &Store, target: &RunRecord) -> Result<usize, CliError> {
    to.copy_questions(from, run, target)?;
    let progress = to.progress(target)?;
    let mut writer = to.writer(target).batches_of(BULK_ROWS);
    let mut copied = 0;
    for sample in from.samples(run, Filter::default()).placed() {
        let (place, sample) = sample?;
        if !progress.is_settled(place) {
            copied += 1;
            writer.push(place, Sample { run: target.manifest.run.clone(), ..sample })?;
        }
    }
    writer.write()?;
    Ok(copied)
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

fn part(run: &RunRecord) -> usize {
    run.manifest.shard.map_or(0, |shard| shard.part)
}

/// The finished one of the parts with this number.
fn finished(parts: &[RunRecord], number: usize) -> Option<&RunRecord> {
    parts.iter().find(|run| part(run) == number && run.manifest.status == Status::Finished)
}

/// The parts that are not finished or not here, as `--shard` names them.
fn missing(of: usize, parts: &[RunRecord]) -> Vec<String> {
    (1..=of).filter(|&number| finished(parts, number).is_none()).map(|number| format!("{number}/{of}")).collect()
}

/// Joins the parts of a run; false if some are missing or unfinished. Parts whose rows a finished whole run has are not
/// needed: they are removed.
fn join(store: &Store, of: usize, parts: &[RunRecord], printer: Printer) -> Result<bool, CliError> {
    let Some(first) = parts.first() else { return Ok(true) };
    let wholes = store.with_settings(&first.manifest.settings_sha256)?;
    if let Some(whole) = wholes.iter().find(|run| is_whole(run)) {
        for part in parts {
            agree(store, part, store, whole)?;
        }
        for part in parts {
            store.delete(part)?;
        }
        let names: Vec<&str> = parts.iter().map(|run| run.manifest.run.as_str()).collect();
        printer.result(&format!("{}: has the rows of {} already\n", whole.manifest.run, names.join(", ")))?;
        return Ok(true);
    }
    let suffix = |run: &RunRecord| format!("-{}of{of}", part(run));
    let base = first.manifest.run.split(&suffix(first)).next().unwrap_or(&first.manifest.run).to_owned();
    let missing = missing(of, parts);
    if !missing.is_empty() {
        printer.warning(&format!("{base}: not finished or not here: {}", missing.join(", ")));
        return Ok(false);
    }
    let chosen: Vec<&RunRecord> = (1..=of).filter_map(|number| finished(parts, number)).collect();
    let whole = Manifest { shard: None, ..first.manifest.clone() };
    let suite = catalogue::stored(&first.manifest.settings).ok();
    let planned = match &suite {
        Some(suite) => whole.plan().len(suite.as_ref()),
        None => chosen.iter().map(|part| part.planned.unwrap_or_default()).sum(),
    };
    // A whole run that was begun and not finished takes the parts' rows in.
    let begun = wholes.into_iter().find(|run| run.manifest.shard.is_none());
    let (_lock, target) = match begun {
        Some(run) => (store.lock(&run.manifest.run)?, run),
        None => {
            let (lock, name) = free_name(store, &base)?;
            let sum = |value: fn(&Manifest) -> f64| chosen.iter().map(|run| value(&run.manifest)).sum::<f64>();
            let manifest = Manifest {
                run: name,
                status: Status::Running,
                started: chosen.iter().map(|run| run.manifest.started.clone()).min().unwrap_or_default(),
                ended: chosen.iter().filter_map(|run| run.manifest.ended.clone()).max(),
                sessions: chosen.iter().map(|run| run.manifest.sessions).sum(),
                generation_s: sum(|manifest| manifest.generation_s),
                ..whole
            };
            (lock, store.begin(&manifest, planned)?)
        }
    };
    for run in &chosen {
        agree(store, run, store, &target)?;
    }
    for run in &chosen {
        fill(store, run, store, &target)?;
    }
    let name = &target.manifest.run;
    let rows = store.count(&target)?;
    if rows != planned {
        store.update(target.id, &Manifest { status: Status::Interrupted, ..target.manifest.clone() }, planned)?;
        let message = format!("{name} has {rows} of {planned} samples although all parts are finished");
        return Err(CliError::new(Exit::Results, message).help("`earnest runs verify` examines the parts"));
    }
    let manifest = Manifest { status: Status::Finished, ..target.manifest.clone() };
    store.update(target.id, &manifest, planned)?;
    if let Some(suite) = suite {
        results::conclude(store, &RunRecord { manifest, ..target.clone() }, suite.as_ref())?;
    }
    // The rows are all in the whole run now.
    for run in &chosen {
        store.delete(run)?;
    }
    printer.result(&format!("{name}: {of} parts joined, {rows} samples\n"))?;
    Ok(true)
}
