//! Runner of memory files: searches learning rates and trains the perceptrons, several at a time, and resumes.
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::facts::{facts, shape};
use super::file::MemoryFile;
use super::network::{Fact, Network};
use super::recipe::{CycleRecall, PhaseKey, cycle, train};
use super::results::{
    KindResults, KindSettings, MEMORY_FORMAT, MemoryModel, MemoryResults, PhaseResult, Search, SourceRecall, Trial,
};
use crate::{TrainError, lock_folder, write_atomic};

/// Event of a session.
#[derive(Debug, Clone, PartialEq)]
pub enum MemoryEvent {
    /// The learning rate of a kind was chosen.
    Searched(String, Search),
    /// A cycle of a training ended: kind, seed, phase from 0 and recall.
    Cycle(String, u64, usize, CycleRecall),
    /// A training ended.
    Trained(String, MemoryModel),
}

/// Content of a result file: what was trained, and the result.
#[derive(Serialize, Deserialize)]
struct Stored<T> {
    settings: KindSettings,
    result: T,
}

/// One computation.
#[derive(Clone, Copy)]
enum Job<'a> {
    Search(&'a KindSettings),
    Train(&'a KindSettings, u64, f64),
}

/// Searches and trains what the folder lacks, up to `threads` trainings at a time; each has one thread, so the results do not depend on
/// their number. Returns true when all is done, false after a stop.
///
/// # Errors
/// [`TrainError::Resume`] if the folder holds results of other settings, [`TrainError::Busy`], and the first failure of a training.
pub fn run(
    file: &MemoryFile,
    folder: &Path,
    threads: usize,
    stop: &AtomicBool,
    report: &mut dyn FnMut(&MemoryEvent),
) -> Result<bool, TrainError> {
    std::fs::create_dir_all(folder).map_err(|source| TrainError::File { path: folder.to_owned(), source })?;
    let _lock = lock_folder(folder)?;
    // Everything is read before anything is written: the folder may hold other results.
    gather(file, folder)?;
    let searches = file.kinds.iter().filter_map(|kind| match search_of(kind, folder) {
        Ok(Some(_)) => None,
        Ok(None) => Some(Ok(Job::Search(kind))),
        Err(error) => Some(Err(error)),
    });
    if !in_parallel(&searches.collect::<Result<Vec<Job<'_>>, _>>()?, folder, threads, stop, report)? {
        return Ok(false);
    }
    let mut jobs = Vec::new();
    for kind in &file.kinds {
        let Some(search) = search_of(kind, folder)? else { continue };
        for &seed in &kind.seeds {
            if model_of(kind, seed, folder)?.is_none() {
                jobs.push(Job::Train(kind, seed, search.rate));
            }
        }
    }
    in_parallel(&jobs, folder, threads, stop, report)
}

/// Collects the results so far; kinds without a chosen learning rate are left out.
///
/// # Errors
/// [`TrainError::Resume`] if the folder holds results of other settings.
pub fn gather(file: &MemoryFile, folder: &Path) -> Result<MemoryResults, TrainError> {
    let mut kinds = Vec::new();
    for kind in &file.kinds {
        let Some(search) = search_of(kind, folder)? else { continue };
        let models = kind.seeds.iter().filter_map(|&seed| model_of(kind, seed, folder).transpose());
        kinds.push(KindResults { settings: kind.clone(), search, models: models.collect::<Result<_, _>>()? });
    }
    Ok(MemoryResults { format: MEMORY_FORMAT, title: file.title.clone(), planned: file.trainings(), kinds })
}

/// Trains the model of a kind and seed with a learning rate; `None` if it is stopped.
///
/// # Errors
/// [`TrainError::Diverged`]; a tensor operation that fails.
pub fn train_model(
    kind: &KindSettings,
    seed: u64,
    rate: f64,
    stop: &AtomicBool,
    report: &mut dyn FnMut(usize, CycleRecall),
) -> Result<Option<MemoryModel>, TrainError> {
    let mut network = network(kind, seed)?;
    let mut phases = Vec::new();
    for phase in 0..kind.learn.len() {
        let key = PhaseKey { seed, phase };
        let learnt = phase_facts(kind, phase);
        let course = train(&mut network, &learnt, &kind.recipe, rate, key, stop, &mut |recall| report(phase, recall))?;
        let Some(course) = course else { return Ok(None) };
        let sources = kind.sources();
        let recall = sources.iter().map(|&source| {
            let all = facts(source, &sources, kind.digits);
            let recall = CycleRecall::new(network.recall(&all), all.len());
            SourceRecall { source: source.to_string(), facts: all.len(), recall }
        });
        let recall = recall.collect();
        phases.push(PhaseResult { cycles: course.cycles, kept: course.best + 1, ending: course.ending, recall });
    }
    Ok(Some(MemoryModel { seed, phases }))
}

fn network(kind: &KindSettings, seed: u64) -> Result<Network, TrainError> {
    Network::new(shape(&kind.sources(), kind.digits, kind.width, kind.recipe.hidden_layers), seed)
}

fn phase_facts(kind: &KindSettings, phase: usize) -> Vec<Fact> {
    let sources = kind.sources();
    kind.sources_of(phase).into_iter().flat_map(|source| facts(source, &sources, kind.digits)).collect()
}

/// Trains one cycle of the first phase with every rate; `None` if it is stopped.
fn search(kind: &KindSettings, stop: &AtomicBool) -> Result<Option<Search>, TrainError> {
    let learnt = phase_facts(kind, 0);
    let seed = kind.recipe.trial_seed;
    let mut trials = Vec::new();
    for &rate in &kind.recipe.rates {
        let mut network = network(kind, seed)?;
        if !cycle(&mut network, &learnt, &kind.recipe, rate, PhaseKey { seed, phase: 0 }, 0, stop) {
            return Ok(None);
        }
        let recall = network.recall(&learnt);
        let recall = recall.nats.is_finite().then(|| CycleRecall::new(recall, learnt.len()));
        trials.push(Trial { rate, recall });
    }
    let bits = |trial: &Trial| trial.recall.map_or(f64::INFINITY, |recall| recall.bits);
    let best = trials.iter().min_by(|a, b| bits(a).total_cmp(&bits(b)));
    let Some(rate) = best.filter(|trial| trial.recall.is_some()).map(|trial| trial.rate) else {
        let problem = format!("all of them diverge for {}; add a smaller one", kind.name());
        return Err(TrainError::Setting { setting: "rates", problem });
    };
    Ok(Some(Search { trials, rate }))
}

/// Does the jobs in order, up to `threads` at a time; false after a stop.
fn in_parallel(
    jobs: &[Job<'_>],
    folder: &Path,
    threads: usize,
    stop: &AtomicBool,
    report: &mut dyn FnMut(&MemoryEvent),
) -> Result<bool, TrainError> {
    let next = AtomicUsize::new(0);
    let failed = AtomicBool::new(false);
    // Without a buffer: a stop that an event leads to takes effect before the next one.
    let (sender, receiver) = mpsc::sync_channel(0);
    let (next, failed) = (&next, &failed);
    std::thread::scope(|scope| {
        for number in 0..threads.clamp(1, jobs.len().max(1)) {
            let sender = sender.clone();
            let thread = std::thread::Builder::new().spawn_scoped(scope, move || {
                while !stop.load(Ordering::Relaxed) && !failed.load(Ordering::Relaxed) {
                    let Some(&job) = jobs.get(next.fetch_add(1, Ordering::Relaxed)) else { break };
                    // The receiver is there until all senders are gone.
                    let done = do_job(job, folder, stop, &mut |event| drop(sender.send(Ok(event))));
                    if let Err(error) = done {
                        failed.store(true, Ordering::Relaxed);
                        drop(sender.send(Err(error)));
                    }
                }
            });
            match thread {
                Ok(_) => {}
                Err(error) if number == 0 => return Err(TrainError::thread(&error)),
                // Those that were started do its jobs.
                Err(_) => break,
            }
        }
        drop(sender);
        let mut first = None;
        for event in receiver {
            match event {
                Ok(event) => report(&event),
                Err(error) => first = first.or(Some(error)),
            }
        }
        match first {
            Some(error) => Err(error),
            None => Ok(!stop.load(Ordering::Relaxed)),
        }
    })
}

/// Computes and stores a result, unless it is stopped.
fn do_job(job: Job<'_>, folder: &Path, stop: &AtomicBool, send: &mut dyn FnMut(MemoryEvent)) -> Result<(), TrainError> {
    match job {
        Job::Search(kind) => {
            if let Some(result) = search(kind, stop)? {
                write(&search_path(kind, folder), kind, &result)?;
                send(MemoryEvent::Searched(kind.name(), result));
            }
        }
        Job::Train(kind, seed, rate) => {
            let trained = train_model(kind, seed, rate, stop, &mut |phase, recall| {
                send(MemoryEvent::Cycle(kind.name(), seed, phase, recall));
            })?;
            if let Some(result) = trained {
                write(&model_path(kind, seed, folder), kind, &result)?;
                send(MemoryEvent::Trained(kind.name(), result));
            }
        }
    }
    Ok(())
}

fn search_path(kind: &KindSettings, folder: &Path) -> PathBuf {
    folder.join(format!("{}-search.json", kind.name()))
}

fn model_path(kind: &KindSettings, seed: u64, folder: &Path) -> PathBuf {
    folder.join(format!("{}-seed{seed}.json", kind.name()))
}

fn search_of(kind: &KindSettings, folder: &Path) -> Result<Option<Search>, TrainError> {
    read(&search_path(kind, folder), kind)
}

fn model_of(kind: &KindSettings, seed: u64, folder: &Path) -> Result<Option<MemoryModel>, TrainError> {
    read(&model_path(kind, seed, folder), kind)
}

/// Settings that determine a result: more seeds, or another name of the experiment, do not change it.
fn determining(kind: &KindSettings) -> KindSettings {
    KindSettings { experiment: String::new(), seeds: Vec::new(), ..kind.clone() }
}

fn write(path: &Path, kind: &KindSettings, result: &impl Serialize) -> Result<(), TrainError> {
    let stored = Stored { settings: determining(kind), result };
    let text = serde_json::to_string(&stored).expect("numbers and text are JSON");
    write_atomic(path, format!("{text}\n").as_bytes())
}

/// Reads a result; `None` if there is none yet.
fn read<T: DeserializeOwned>(path: &Path, kind: &KindSettings) -> Result<Option<T>, TrainError> {
    let unusable = |problem: String| TrainError::Resume { path: path.to_owned(), problem };
    let text = match earnest_digest::input::read_text(path, earnest_digest::input::MOST_DOCUMENT) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(source) => return Err(TrainError::File { path: path.to_owned(), source }),
    };
    let stored: Stored<T> = serde_json::from_str(&text)
        .map_err(|error| unusable(format!("{error}; delete the file to compute it again")))?;
    if stored.settings != determining(kind) {
        let problem = "it holds a result of other settings than the file's; choose another folder, setting `out`";
        return Err(unusable(problem.to_owned()));
    }
    Ok(Some(stored.result))
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = r#"
title = "a test"

[training]
seeds = [1, 2]
rates = [0.001, 0.03]
batch = 20
cycle = 60
patience = 2
gain = 0.01
most_cycles = 4

[[experiment]]
name = "forgetting"
learn = ["pi", "e"]
digits = [30]
width = [12]
"#;

    #[test]
    fn a_stopped_session_continues_to_the_same_results() {
        let file = MemoryFile::parse(FILE).unwrap();
        let (place, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let never = AtomicBool::new(false);
        assert!(run(&file, other.path(), 2, &never, &mut |_| ()).unwrap());
        let expected = gather(&file, other.path()).unwrap();
        assert_eq!(expected.kinds[0].models.len(), 2);
        // The higher of the two rates learns more in a short trial.
        assert_eq!(expected.kinds[0].search.rate, 0.03);
        let stored = |phase, source| expected.kinds[0].stored(phase, source).unwrap().right.mean;
        assert!(stored(0, "pi") > 0.8 && stored(0, "e") < 0.5 && stored(1, "e") > 0.8, "{expected:?}");

        let stop = AtomicBool::new(false);
        let done = run(&file, place.path(), 1, &stop, &mut |event| {
            stop.fetch_or(matches!(event, MemoryEvent::Cycle(_, 2, ..)), Ordering::Relaxed);
        });
        assert!(!done.unwrap());
        assert_eq!(gather(&file, place.path()).unwrap().kinds[0].models.len(), 1);
        let mut trained = 0;
        let mut count = |event: &MemoryEvent| trained += usize::from(matches!(event, MemoryEvent::Trained(..)));
        assert!(run(&file, place.path(), 1, &never, &mut count).unwrap());
        assert_eq!(trained, 1, "only the one that was stopped is trained again");
        assert_eq!(gather(&file, place.path()).unwrap(), expected);

        let changed = MemoryFile::parse(&FILE.replace("cycle = 60", "cycle = 61")).unwrap();
        let error = run(&changed, place.path(), 1, &never, &mut |_| ()).unwrap_err().to_string();
        assert!(error.contains("other settings"), "{error}");
        // A further seed leaves the others as they are.
        let more = MemoryFile::parse(&FILE.replace("[1, 2]", "[1, 2, 3]")).unwrap();
        assert_eq!(gather(&more, place.path()).unwrap().kinds[0].models, expected.kinds[0].models);
    }
}
