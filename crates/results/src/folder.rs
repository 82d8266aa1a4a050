//! A results folder and the parts of a stored run: its document, suite, items and deciding scorers.
use crate::suites::{LocalHost, start_programs};
use crate::{Document, Origin, Reporter, ResultsError, RunError, RunEvent, RunNotice, Shard, Status, suites};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use earnest_tasks::suite::registry::{OptionError, ProgramsRecord};
use earnest_tasks::suite::{Item, Items, Suite};

use crate::outcomes::results_of;
use crate::store::{FILE_NAME, RunLock, RunRecord, Store, StoredItems, did_you_mean};

/// Time for which an import waits for another one of the same log.
const LONGEST_WAIT: Duration = Duration::from_secs(600);

/// Time between two tries to lock a run.
const BETWEEN_TRIES: Duration = Duration::from_millis(50);

/// Returns true if the folder has results, also as outcome files.
pub fn has_results(folder: &Path) -> Result<bool, ResultsError> {
    Ok(results_of(folder)?.join(FILE_NAME).exists())
}

/// Opens existing results, also those of outcome files.
pub fn open(folder: &Path) -> Result<Store, ResultsError> {
    Ok(Store::open(&results_of(folder)?)?)
}

/// Finds a stored run: `FOLDER/RUN`, or a run in the first of these folders that has it.
pub fn find_run(name: &str, folders: &[PathBuf]) -> Result<RunRecord, ResultsError> {
    if let Some((folder, name)) = name.rsplit_once(['/', std::path::MAIN_SEPARATOR]) {
        let folder = if folder.is_empty() { "/" } else { folder };
        return Ok(open(Path::new(folder))?.run(name)?);
    }
    let (first, others) = folders.split_first().ok_or_else(|| ResultsError::setting("name a results folder"))?;
    if others.iter().all(|other| other == first) {
        return Ok(open(first)?.run(name)?);
    }
    let mut known = Vec::new();
    for folder in folders {
        if has_results(folder)? {
            match open(folder)?.run(name) {
                Err(RunError::NoRun { runs, .. }) => known.extend(runs),
                run => return Ok(run?),
            }
        }
    }
    let listed: Vec<String> = folders.iter().map(|folder| folder.display().to_string()).collect();
    Err(ResultsError::setting(format!("there is no run {name} in {}", listed.join(" or ")))
        .hint(format!("{}add the run's folder: the setting `from = FOLDER/RUN`", did_you_mean(name, &known))))
}

/// A run that a process may write, and its lock.
pub enum Claimed {
    /// A run with the wanted settings is there already, possibly since a moment.
    Equal(RunLock, Box<RunRecord>),
    /// There is none, and the name is free.
    New(RunLock, String),
}

/// Locks the run with these settings and this part of a plan, or a free name for a new one. Processes that begin the same run look under the
/// lock of the same name, so that only one of them makes it.
///
/// # Errors
/// [`RunError::Locked`] if another process is making or writing the run.
pub fn claim(store: &Store, base: &str, settings_sha256: &str, shard: Option<Shard>) -> Result<Claimed, RunError> {
    let equal = || -> Result<Option<RunRecord>, RunError> {
        let all = store.with_settings(settings_sha256)?;
        Ok(all.into_iter().rfind(|run| run.manifest.shard == shard))
    };
    let base_lock = match equal()? {
        Some(_) => None,
        None => Some(store.lock(base)?),
    };
    // Read again: another process may have made it before we got the lock.
    match (equal()?, base_lock) {
        (Some(run), Some(lock)) if run.manifest.run == base => Ok(Claimed::Equal(lock, Box::new(run))),
        (Some(run), _) => {
            let lock = store.lock(&run.manifest.run)?;
            // And again, because another process may have finished it, or removed it.
            match store.exactly(&run.manifest.run)? {
                Some(run) => Ok(Claimed::Equal(lock, Box::new(run))),
                None => Ok(Claimed::New(lock, run.manifest.run)),
            }
        }
        (None, Some(lock)) if store.exactly(base)?.is_none() => Ok(Claimed::New(lock, base.to_owned())),
        // Two hashes with the same first digits, or the equal run was deleted in this instant.
        (None, _) => free_name(store, base).map(|(lock, name)| Claimed::New(lock, name)),
    }
}

/// Claims a run as [`claim`] does, and waits while another process is writing it: for imports, which are short.
pub fn claim_in_turn(store: &Store, base: &str, settings_sha256: &str) -> Result<Claimed, RunError> {
    let begun = Instant::now();
    loop {
        match claim(store, base, settings_sha256, None) {
            Err(RunError::Locked { .. }) if begun.elapsed() < LONGEST_WAIT => std::thread::sleep(BETWEEN_TRIES),
            claimed => return claimed,
        }
    }
}

/// Returns an unused name (`base`, `base.2`, `base.3`, ...) and its lock: for runs that are made although there is an equal one.
pub fn free_name(store: &Store, base: &str) -> Result<(RunLock, String), RunError> {
    for number in 1_usize.. {
        let name = if number == 1 { base.to_owned() } else { format!("{base}.{number}") };
        if store.exactly(&name)?.is_some() {
            continue;
        }
        let lock = match store.lock(&name) {
            Ok(lock) => lock,
            Err(RunError::Locked { .. }) => continue,
            Err(error) => return Err(error),
        };
        // Another process may have started and finished it in the meantime.
        if store.exactly(&name)?.is_none() {
            return Ok((lock, name));
        }
    }
    unreachable!("the numbers do not end")
}

/// Returns a run's document: the stored one of a finished run, else one made from its rows, without reading their texts.
pub fn document(store: &Store, run: &RunRecord) -> Result<Document, ResultsError> {
    store.check_seal(run)?;
    if let Some(kept) = Document::kept(store, run)? {
        return Ok(kept);
    }
    match suite_of(store, run) {
        Ok(suite) => Ok(Document::stored(store, run, &suite)?),
        Err(error) if store.has_questions(run)? => Ok(Document::without_suite(store, run, &error.message)?),
        Err(error) => Err(error.into()),
    }
}

/// Returns the suite of a stored run: that of its options, with the stored items where they are another tool's, or were chosen by the
/// answers.
///
/// # Errors
/// As [`suites::stored`].
pub fn suite_of(store: &Store, run: &RunRecord) -> Result<Suite, OptionError> {
    suite_on(&LocalHost::default(), store, run)
}

/// Returns the suite of a stored run, as [`suite_of`], whose model-written programs run by the policy of a host.
///
/// # Errors
/// As [`suites::stored`].
pub fn suite_on(host: &LocalHost, store: &Store, run: &RunRecord) -> Result<Suite, OptionError> {
    let suite = host.stored(&run.manifest.settings)?;
    if run.manifest.settings.origin() != Origin::Log && suite.items.chooser().is_none() {
        return Ok(suite);
    }
    let samples = run.manifest.settings.samples.max(1) as usize;
    let items = run.planned / samples;
    let items =
        StoredQuestions { results: store.results().to_owned(), run: run.clone(), items, unread: OnceLock::new() };
    Ok(Suite { items: Arc::new(items), ..suite })
}

/// Items of a stored run.
struct StoredQuestions {
    results: PathBuf,
    run: RunRecord,
    /// Number of items that were planned.
    items: usize,
    /// Reason for the items having ended too early.
    unread: OnceLock<String>,
}

impl Items for StoredQuestions {
    fn iter(&self) -> Box<dyn Iterator<Item = Item> + Send + '_> {
        let keep = |error: RunError| {
            // The first reason stays.
            let _ = self.unread.set(error.to_string());
        };
        match StoredItems::open(&self.results, &self.run) {
            Ok(items) => Box::new(items.map_while(move |item| item.map_err(keep).ok())),
            Err(error) => {
                keep(error);
                Box::new(std::iter::empty())
            }
        }
    }

    fn unread(&self) -> Option<String> {
        self.unread.get().cloned()
    }

    fn len(&self) -> usize {
        self.items
    }
}

/// Stores the document of a finished run with the run; does nothing for an unfinished one.
pub fn keep_document(store: &Store, run: &RunRecord, suite: &Suite) -> Result<(), ResultsError> {
    if run.manifest.status == Status::Finished {
        Document::stored(store, run, suite)?.keep(store, run)?;
    }
    Ok(())
}

/// Returns the suite of a stored run, with its programs started; none, with a warning, if it cannot be built or its programs cannot run
/// here as they ran then, but the run has its questions stored.
pub fn known_suite(
    host: &LocalHost,
    store: &Store,
    run: &RunRecord,
    reporter: &mut dyn Reporter,
) -> Result<Option<Suite>, ResultsError> {
    // The scores of a log are another tool's.
    if run.manifest.settings.origin() == Origin::Log {
        return Ok(None);
    }
    let error = match suite_on(host, store, run) {
        // Without its programs every answer that is one would seem to have lost its score.
        Ok(suite) => match start_programs(&suite, reporter) {
            // An isolation of the user's that does not start is to be mended, and no reason to check less.
            Err(error) if host.has_command() => return Err(error.into()),
            Err(error) => error,
            Ok(now) => match same_interpreter(run, now) {
                Ok(()) => return Ok(Some(suite)),
                Err(error) => error,
            },
        },
        Err(error) => error,
    };
    if !store.has_questions(run)? {
        return Err(error.into());
    }
    let reason = error.help.map_or(error.message.clone(), |help| format!("{}; {help}", error.message));
    let run = run.manifest.run.clone();
    reporter.event(&RunEvent::notice(RunNotice::NotScoredAgain { run, reason }));
    Ok(None)
}

/// Checks that programs run by the interpreter that ran those of a stored run, wherever that was: another one may give other values.
fn same_interpreter(run: &RunRecord, now: Option<ProgramsRecord>) -> Result<(), OptionError> {
    let (Some(then), Some(now)) = (&run.manifest.sandbox, now) else { return Ok(()) };
    // Behind the version of a CPython is its path.
    let version = |name: &str| name.split(" (").next().unwrap_or_default().to_owned();
    let (then, now) = (version(&then.interpreter), version(&now.interpreter));
    match then == now {
        true => Ok(()),
        false => Err(OptionError::programs(format!("its programs were run by {then}, and would now be run by {now}"))),
    }
}

/// Calls `each` with every item of a run: as stored, or as the suite generates it for runs without questions, such as those of outcome files.
pub fn each_item(store: &Store, run: &RunRecord, mut each: impl FnMut(Item)) -> Result<(), ResultsError> {
    if store.has_questions(run)? {
        return store.questions(run).all().try_for_each(|stored| {
            each(stored?.item);
            Ok(())
        });
    }
    let suite = suites::stored(&run.manifest.settings)?;
    suite.items.iter().take(run.manifest.plan().items(&suite)).for_each(each);
    Ok(())
}

/// Returns the deciding scorers of a run; none if neither this version nor the stored document knows them.
pub fn chosen_scorers(store: &Store, run: &RunRecord) -> Result<Vec<String>, ResultsError> {
    let scorers = suites::chosen(&run.manifest.settings);
    if !scorers.is_empty() {
        return Ok(scorers);
    }
    let readings = Document::kept(store, run)?.and_then(|kept| kept.readings);
    Ok(readings.map(|readings| readings.chosen).unwrap_or_default())
}
