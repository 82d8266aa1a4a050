//! Training and merging of one model of the defence.
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use super::file::{DefenceExperiment, TrainedModel};
use super::pairs::{TrainingRows, training_rows, write_rows};
use super::{DefenceError, ExperimentProblem};
use earnest_train::experiment::events;
use earnest_train::{
    AdamWSettings, AdapterFolder, Base, BaseRecord, LoraData, LoraSettings, LoraTrainer, Retrofit, StoredType,
    TrainError, TrainEvent, TrainOutcome, merge,
};

/// What is known of a finished training.
pub(super) struct Training {
    pub(super) rows: TrainingRows,
    pub(super) seconds: f64,
    pub(super) kept_step: u64,
    pub(super) held_out: (usize, usize),
}

/// Checkpoint that is trained.
pub(super) struct BaseModel {
    pub(super) record: BaseRecord,
    /// Its longest context in tokens.
    pub(super) positions: usize,
}

/// Folders of a model.
pub(super) struct Folders {
    pub(super) adapters: PathBuf,
    pub(super) merged: PathBuf,
    rows: PathBuf,
}

impl Folders {
    /// The folders of a model below the experiment's; checkpoints of other element types are other models.
    pub(super) fn of(out: &Path, model: TrainedModel, stored: StoredType) -> Self {
        Folders {
            adapters: out.join("adapters").join(model.name()),
            merged: out.join("models").join(format!("{}-{}", model.name(), stored.name())),
            rows: out.join("questions").join(format!("{}.jsonl", model.questions())),
        }
    }
}

/// Trains a model unless its adapters are there; `begins` is called with the completed steps before the first one. None if it was
/// stopped.
///
/// # Errors
/// [`DefenceError::Training`], [`DefenceError::Eval`].
pub(super) fn train(
    experiment: &DefenceExperiment,
    model: TrainedModel,
    base: &BaseModel,
    folders: &Folders,
    stop: &AtomicBool,
    begins: &mut dyn FnMut(u64, &TrainingRows),
    report: &mut dyn FnMut(&TrainEvent),
) -> Result<Option<Training>, DefenceError> {
    let failed = |source: TrainError| DefenceError::Training { model: model.name(), source: Box::new(source) };
    let rows = training_rows(experiment, model.kind)?;
    for folder in [folders.rows.parent(), folders.merged.parent()].into_iter().flatten() {
        std::fs::create_dir_all(folder).map_err(|source| DefenceError::Folder { path: folder.to_owned(), source })?;
    }
    write_rows(&folders.rows, &rows)?;
    let settings = settings(experiment, model, base, &folders.rows, &rows)?;
    settings.check().map_err(failed)?;
    if !is_trained(folders, &settings, &failed)? {
        let mut trainer = LoraTrainer::open(settings.clone(), &folders.adapters).map_err(failed)?;
        begins(trainer.steps_done(), &rows);
        if trainer.run(stop, report).map_err(failed)? == TrainOutcome::Stopped {
            return Ok(None);
        }
    }
    let log = events(&folders.adapters).map_err(Box::new)?;
    let (mut seconds, mut kept_step, mut held_out) = (0.0, 0, (0, 0));
    for event in &log {
        match event {
            TrainEvent::Step { seconds: step, .. } => seconds += step,
            // The trainer keeps the last of the best, and none of the checkpoint as loaded.
            TrainEvent::Validated(found) if found.step > 0 => {
                let exact: usize = found.cells.iter().map(|cell| cell.exact).sum();
                let count: usize = found.cells.iter().map(|cell| cell.questions).sum();
                if kept_step == 0 || exact >= held_out.0 {
                    (kept_step, held_out) = (found.step, (exact, count));
                }
            }
            // LoRA trains once, without restarts.
            TrainEvent::Validated(_) | TrainEvent::Restarted { .. } | TrainEvent::Saved { .. } => {}
        }
    }
    Ok(Some(Training { rows, seconds, kept_step, held_out }))
}

/// True if the adapters are finished.
///
/// # Errors
/// They are those of other settings.
fn is_trained(
    folders: &Folders,
    settings: &LoraSettings,
    failed: &dyn Fn(TrainError) -> DefenceError,
) -> Result<bool, DefenceError> {
    let folder = &folders.adapters;
    if folder.join("state.json").exists() || !folder.join("adapter_model.safetensors").exists() {
        return Ok(false);
    }
    let adapters = AdapterFolder::open(folder).map_err(failed)?;
    let portable = |settings: &LoraSettings| {
        let mut settings = settings.clone();
        (settings.base.path, settings.base.model) = (PathBuf::new(), String::new());
        if let LoraData::Pairs { file, .. } = &mut settings.data {
            *file = PathBuf::new();
        }
        settings
    };
    if adapters.settings().map(portable) != Some(portable(settings)) {
        let problem = "it holds a training with other settings or questions than the experiment file; name another out";
        return Err(failed(TrainError::Resume { path: folder.clone(), problem: problem.to_owned() }));
    }
    // A training that was killed between its first adapters and its first state has both to come.
    let last = |event: &TrainEvent| matches!(event, TrainEvent::Saved { step } if *step == settings.steps);
    Ok(events(folder).map_err(Box::new)?.iter().any(last))
}

fn settings(
    experiment: &DefenceExperiment,
    model: TrainedModel,
    base: &BaseModel,
    file: &Path,
    rows: &TrainingRows,
) -> Result<LoraSettings, ExperimentProblem> {
    let training = &experiment.training;
    Ok(LoraSettings {
        base: base.record.clone(),
        retrofit: Retrofit::default(),
        adapters: training.adapters(),
        data: LoraData::Pairs {
            file: file.to_owned(),
            sha256: earnest_digest::hex(&earnest_digest::sha256(rows.text.as_bytes())),
            held_out: training.held_out,
            prompt_field: None,
            completion_field: None,
            system: rows.system.clone(),
            separator: " ".to_owned(),
        },
        prompt: experiment.form()?,
        seed: model.seed,
        batch: training.batch,
        accumulate: training.accumulate,
        parts: training.parts,
        steps: training.steps,
        learning_rate: training.learning_rate,
        warm_up: training.warm_up,
        optimiser: AdamWSettings {
            clip: training.clip,
            weight_decay: training.weight_decay,
            beta2: training.beta2,
            ..AdamWSettings::default()
        },
        validate_every: training.validate_every,
        validation: training.validation,
        context: training.context.min(base.positions),
    })
}

/// Merges a model's adapters unless that was done. The folder appears under its name once it is complete.
///
/// # Errors
/// [`DefenceError::Training`], [`DefenceError::Folder`].
pub(super) fn merge_adapters(
    experiment: &DefenceExperiment,
    model: TrainedModel,
    base: &BaseModel,
    folders: &Folders,
) -> Result<(), DefenceError> {
    if folders.merged.exists() {
        return Ok(());
    }
    let failed = |source: TrainError| DefenceError::Training { model: model.name(), source: Box::new(source) };
    let part = folders.merged.with_extension("part");
    let io = |source| DefenceError::Folder { path: part.clone(), source };
    if part.exists() {
        std::fs::remove_dir_all(&part).map_err(io)?;
    }
    let base =
        Base::open_allowing(&base.record.path, &base.record.allow_config, Retrofit::default()).map_err(failed)?;
    let adapters = AdapterFolder::open(&folders.adapters).map_err(failed)?;
    merge(&base, Some(&adapters), &part, experiment.training.store).map_err(failed)?;
    std::fs::rename(&part, &folders.merged).map_err(io)
}
