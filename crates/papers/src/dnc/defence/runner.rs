//! Runner of the trained defence: one model after the other is trained, merged and asked; whatever is there is not made again.
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::DefenceError;
use super::asking::ask;
use super::file::{DefenceExperiment, TrainedModel};
use super::results::{DefenceResults, ModelOutcomes};
use super::training::{BaseModel, Folders, merge_adapters, train};
use earnest_eval::EvalError;
use earnest_eval::model::{EngineSettings, LocatedModel, short_name};
use earnest_eval::study::Watcher;
use earnest_models::checkpoint::WeightFormat;
use earnest_models::hub::HubSettings;
use earnest_train::{Base, BaseRecord, Retrofit, TrainError, TrainEvent, lock_folder};

/// Settings of a session, which change no result but by the device.
pub struct DefenceSettings {
    /// Folder of the experiment.
    pub out: PathBuf,
    pub engine: EngineSettings,
    pub hub: HubSettings,
    /// Stops the session when another thread sets it.
    pub stop: Arc<AtomicBool>,
}

/// Event of a session; those of asking go to its watcher.
pub enum DefenceEvent<'a> {
    /// A training begins, or goes on after these steps.
    Trains {
        model: TrainedModel,
        /// Number among the models, from 1, and how many there are.
        number: (usize, usize),
        steps_done: u64,
        /// Rows, and how many of them are perturbed.
        examples: (usize, usize),
    },
    /// Event of the current training.
    Training(&'a TrainEvent),
}

/// End of a session.
pub enum DefenceEnd {
    /// All models are trained and asked.
    Complete(Box<DefenceResults>),
    /// Stopped on request.
    Stopped,
}

/// Trains, merges and asks the models that are missing, and writes the results after each.
///
/// # Errors
/// The first failure; what was made before it is kept.
pub fn run(
    experiment: &DefenceExperiment,
    settings: &DefenceSettings,
    report: &mut dyn FnMut(DefenceEvent<'_>),
    watcher: &mut dyn Watcher,
) -> Result<DefenceEnd, DefenceError> {
    let failed =
        |source: TrainError| DefenceError::Training { model: experiment.model.clone(), source: Box::new(source) };
    let target = experiment.target()?;
    let _lock = lock_folder(&settings.out).map_err(failed)?;
    let located = LocatedModel::find(Path::new(&experiment.model), &settings.hub, WeightFormat::default())?;
    if !located.path().exists() {
        let message = format!("there is no model {}", experiment.model);
        let hint = "name a model of `earnest models list`, org/repo@<40-digit commit>, a Hugging Face folder or a GGUF file; \
                    paths are relative to the experiment file";
        return Err(EvalError::model(message).hint(hint).into());
    }
    let path = located.path().to_owned();
    let base = Base::open_allowing(&path, &settings.hub.allow_config, Retrofit::default()).map_err(failed)?;
    let record = BaseRecord {
        model: experiment.model.clone(),
        path: std::path::absolute(&path).unwrap_or(path),
        files: base.digests().map_err(failed)?,
        allow_config: settings.hub.allow_config.clone(),
    };
    let base = BaseModel { record, positions: base.checkpoint().config.max_positions };
    let name = short_name(located.path());
    let mut results = DefenceResults::new(experiment, target, name, base.record.files.clone());
    let models = experiment.models();
    for (index, &model) in models.iter().enumerate() {
        if settings.stop.load(Ordering::Relaxed) {
            return Ok(DefenceEnd::Stopped);
        }
        let folders = Folders::of(&settings.out, model, experiment.training.store);
        let report = std::cell::RefCell::new(&mut *report);
        let mut begins = |steps_done, rows: &super::pairs::TrainingRows| {
            let (number, examples) = ((index + 1, models.len()), (rows.count, rows.perturbed));
            (*report.borrow_mut())(DefenceEvent::Trains { model, number, steps_done, examples });
        };
        let mut trains = |event: &TrainEvent| (*report.borrow_mut())(DefenceEvent::Training(event));
        let trained = train(experiment, model, &base, &folders, &settings.stop, &mut begins, &mut trains)?;
        let Some(training) = trained else { return Ok(DefenceEnd::Stopped) };
        merge_adapters(experiment, model, &base, &folders)?;
        let Some(asked) = ask(experiment, settings, model, &folders.merged, watcher)? else {
            return Ok(DefenceEnd::Stopped);
        };
        results.questions = asked.questions;
        results.models.push(ModelOutcomes {
            kind: model.kind,
            seed: model.seed,
            examples: training.rows.count,
            perturbed_examples: training.rows.perturbed,
            seconds: training.seconds.round(),
            kept_step: training.kept_step,
            held_out: training.held_out,
            original: asked.original,
            perturbed: asked.perturbed,
        });
        results.write(&settings.out)?;
    }
    Ok(DefenceEnd::Complete(Box::new(results)))
}
