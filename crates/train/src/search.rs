//! Search of the learning rate by short trials.
use std::path::Path;
use std::sync::atomic::AtomicBool;

use serde::{Deserialize, Serialize};

use super::folder::write_atomic;
use super::{TrainError, TrainEvent, TrainOutcome, TrainSettings, Trainer};

/// Learning rates that are tried.
pub const TRIAL_RATES: [f64; 6] = [5e-4, 1e-3, 2e-3, 5e-3, 1e-2, 2e-2];

/// Name of the search's record in a model's folder.
const FILE: &str = "search.json";

/// Difference of the trials' seed from the training's, so that the rate is not chosen by the training's own result.
const TRIAL_SEED: u64 = 1 << 32;

/// Short training with one learning rate.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct RateTrial {
    /// Peak learning rate.
    pub rate: f64,
    /// Loss of the last validation, in nats per token; `None` if the trial diverged.
    pub loss: Option<f64>,
}

/// Search of the learning rate.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RateSearch {
    /// Settings of the trials, but for their rate.
    pub settings: TrainSettings,
    pub trials: Vec<RateTrial>,
    /// Rate of the lowest loss.
    pub rate: f64,
}

/// Trains `steps` steps, with warm-up and decay, at every rate of [`TRIAL_RATES`], and keeps the record in the folder, where a later
/// call with the same settings finds it. `None` if it is stopped.
///
/// # Errors
/// [`TrainError`]; a trial that diverges is no error, unless all do.
pub fn search_rate(
    settings: &TrainSettings,
    steps: u64,
    folder: &Path,
    stop: &AtomicBool,
    report: &mut dyn FnMut(&RateTrial),
) -> Result<Option<RateSearch>, TrainError> {
    let settings = TrainSettings {
        steps,
        warm_up: settings.warm_up.min(steps / 10),
        seed: settings.seed.wrapping_add(TRIAL_SEED),
        then: None,
        until: None,
        validate_every: steps,
        ..settings.clone()
    };
    let path = folder.join(FILE);
    if let Some(known) = read(&path)?
        && known.settings == settings
    {
        known.trials.iter().for_each(report);
        return Ok(Some(known));
    }
    let mut trials = Vec::new();
    for rate in TRIAL_RATES {
        let trial = folder.join("trial");
        // What an interrupted search left is not continued: a trial is short.
        remove(&trial)?;
        let mut trainer = Trainer::open(TrainSettings { learning_rate: rate, ..settings.clone() }, &trial)?;
        let mut loss = None;
        let ended = trainer.run(stop, &mut |event| {
            if let TrainEvent::Validated(validation) = event {
                loss = Some(validation.loss).filter(|loss| loss.is_finite());
            }
        });
        match ended {
            Ok(TrainOutcome::Stopped) => return Ok(None),
            Ok(TrainOutcome::Finished) => {}
            Err(TrainError::Diverged { .. }) => loss = None,
            Err(error) => return Err(error),
        }
        remove(&trial)?;
        let trial = RateTrial { rate, loss };
        report(&trial);
        trials.push(trial);
    }
    let loss = |trial: &RateTrial| trial.loss.unwrap_or(f64::INFINITY);
    let best = trials.iter().min_by(|a, b| loss(a).total_cmp(&loss(b))).filter(|trial| trial.loss.is_some());
    let Some(rate) = best.map(|trial| trial.rate) else {
        let problem = "every rate of the search diverges; name a smaller one".to_owned();
        return Err(TrainError::Setting { setting: "learning_rate", problem });
    };
    let search = RateSearch { settings, trials, rate };
    let text = serde_json::to_string_pretty(&search).expect("numbers and text are JSON");
    write_atomic(&path, format!("{text}\n").as_bytes())?;
    Ok(Some(search))
}

/// Reads the record of a search, if there is one.
fn read(path: &Path) -> Result<Option<RateSearch>, TrainError> {
    let text = match earnest_digest::input::read_text(path, earnest_digest::input::MOST_DOCUMENT) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(source) => return Err(TrainError::File { path: path.to_owned(), source }),
    };
    let unusable = |error: serde_json::Error| TrainError::Resume {
        path: path.to_owned(),
        problem: format!("{error}; delete the file to search again"),
    };
    serde_json::from_str(&text).map(Some).map_err(unusable)
}

/// Removes a folder, if it is there.
fn remove(folder: &Path) -> Result<(), TrainError> {
    match std::fs::remove_dir_all(folder) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(TrainError::File { path: folder.to_owned(), source: error })
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;

    use super::*;
    use crate::criterion::tests::tiny;

    #[test]
    fn the_rate_of_the_lowest_loss_is_chosen_and_kept() {
        let place = tempfile::tempdir().unwrap();
        let never = AtomicBool::new(false);
        let mut reported = Vec::new();
        let mut search = |settings: &TrainSettings, stop: &AtomicBool| {
            reported.clear();
            search_rate(settings, 24, place.path(), stop, &mut |trial| reported.push(*trial)).unwrap()
        };
        assert_eq!(search(&tiny(), &AtomicBool::new(true)), None);
        let found = search(&tiny(), &never).unwrap();
        let lowest = found.trials.iter().min_by(|a, b| a.loss.unwrap().total_cmp(&b.loss.unwrap())).unwrap();
        assert_eq!((found.rate, found.trials.len()), (lowest.rate, TRIAL_RATES.len()));
        // So short a training of so small a model is far from its end at the lowest rate.
        assert!(found.rate > TRIAL_RATES[0]);
        assert_eq!((found.settings.steps, found.settings.warm_up), (24, 2));
        assert_ne!(found.settings.seed, tiny().seed);
        assert!(!place.path().join("trial").exists());

        // Known without a training: a stop would be noticed.
        assert_eq!(search(&tiny(), &AtomicBool::new(true)), Some(found.clone()));
        assert_eq!(reported, found.trials);
        let other = TrainSettings { batch: 4, ..tiny() };
        assert_eq!(search_rate(&other, 24, place.path(), &AtomicBool::new(true), &mut |_| ()).unwrap(), None);
    }
}
