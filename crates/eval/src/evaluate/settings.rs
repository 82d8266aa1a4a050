//! Settings of an evaluation.
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use earnest_tasks::suite::registry::Choice;
use earnest_tasks::suite::{Suite, ThinkingText};

use super::GenerationSettings;
use crate::EvalError;
use crate::model::{EngineSettings, ModelSource, TrafficSettings};
use earnest_results::store::RunRecord;
use earnest_results::{Generation, Manifest, ModeRequest, Plan, Until};

pub struct EvaluationSettings {
    pub questions: Questions,
    pub plan: Plan,
    /// Condition on which the run ends before its plan does.
    pub until: Option<Until>,
    /// Source of completions.
    pub model: ModelSource,
    pub prompt: ModeRequest,
    /// Value for the chat template's thinking switch.
    pub thinking: Option<bool>,
    /// Use of the model's thinking in scoring, whatever the suite's is.
    pub thinking_text: ThinkingText,
    pub decoding: Decoding,
    /// Folder of results.
    pub results: PathBuf,
    pub run: RunChoice,
    pub engine: EngineSettings,
    pub traffic: TrafficSettings,
    /// Largest share of samples that may fail in the session, 0 to 1.
    pub fail_on_error: Option<f64>,
    /// Stops the session when another thread sets it; completed rows are written.
    pub stop: Arc<AtomicBool>,
}

impl EvaluationSettings {
    /// Returns default settings: all items once, greedy, the checkpoint's prompt mode, thinking scored as by the suite, new or continued run.
    pub fn new(suite: Suite, model: ModelSource, results: impl Into<PathBuf>) -> Self {
        EvaluationSettings {
            thinking_text: suite.thinking,
            questions: Questions::Suite(suite),
            plan: Plan { limit: None, samples: 1, shard: None },
            until: None,
            model,
            prompt: ModeRequest::Auto,
            thinking: None,
            decoding: Decoding::Asked(GenerationSettings::default()),
            results: results.into(),
            run: RunChoice::Continue,
            engine: EngineSettings::default(),
            traffic: TrafficSettings::default(),
            fail_on_error: None,
            stop: Arc::default(),
        }
    }

    /// Checks the ranges of all values.
    pub fn check(&self) -> Result<(), EvalError> {
        if let Some(fraction) = self.fail_on_error
            && !(0.0..=1.0).contains(&fraction)
        {
            return Err(EvalError::setting(format!(
                "the setting `fail_on_error = {fraction}` is not a fraction from 0 to 1"
            )));
        }
        if let (Some(_), Some(shard)) = (&self.until, self.plan.shard) {
            let message = format!(
                "the setting `until` cannot end part {shard} of a run: a decision needs the clusters of all parts"
            );
            return Err(EvalError::setting(message)
                .hint("leave the setting `shard` out, or run the whole plan without the setting `until`"));
        }
        self.plan.check_limits()?;
        self.traffic.check()?;
        self.engine.check()
    }
}

/// Source of a run's items.
pub enum Questions {
    /// A suite that depends on the channel to the model.
    Chosen(Box<dyn Choice>),
    /// A fixed suite.
    Suite(Suite),
}

/// Generation of a run.
pub enum Decoding {
    /// A request over the checkpoint's defaults.
    Asked(GenerationSettings),
    /// Generation of a manifest.
    Stored(Generation),
}

impl Decoding {
    /// Seed of items and sampling.
    pub(super) fn seed(&self) -> u64 {
        match self {
            Decoding::Asked(asked) => asked.seed,
            Decoding::Stored(generation) => generation.seed,
        }
    }
}

/// The run to work on.
pub enum RunChoice {
    /// The newest with the same settings, or a new one.
    Continue,
    /// As [`RunChoice::Continue`], in commands over several runs that cannot start one again.
    Gather,
    /// A new run.
    New,
    /// A new run with the settings of this one.
    Repeat(Box<Manifest>),
    /// This run, which must have the same settings.
    Resume(Box<RunRecord>),
}
