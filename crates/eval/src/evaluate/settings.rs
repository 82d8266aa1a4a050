//! Settings of an evaluation.
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use earnest_tasks::suite::registry::Choice;
use earnest_tasks::suite::{Suite, ThinkingText};

use super::GenerationSettings;
use crate::EvalError;
use crate::model::{EngineSettings, ModelSource, TrafficSettings};
use crate::prompt::ModeRequest;
use crate::run::store::RunRecord;
use crate::run::{Generation, Manifest, Plan};

/// Everything that an evaluation is told.
pub struct EvaluationSettings {
    pub questions: Questions,
    pub plan: Plan,
    /// Source of completions.
    pub model: ModelSource,
    pub prompt: ModeRequest,
    /// Value of the chat template's thinking switch.
    pub thinking: Option<bool>,
    /// Use of the model's thinking in scoring.
    pub thinking_text: ThinkingText,
    pub decoding: Decoding,
    /// Folder of results.
    pub results: PathBuf,
    pub run: RunChoice,
    pub engine: EngineSettings,
    pub traffic: TrafficSettings,
    /// Largest share of samples that may fail in the session, 0 to 1.
    pub fail_on_error: Option<f64>,
    /// Set by somebody else, it ends the session after the rows in flight.
    pub stop: Arc<AtomicBool>,
}

impl EvaluationSettings {
    /// A new or continued run of a suite with default settings: all items once, greedy, prompts as the checkpoint has them.
    pub fn new(suite: Box<dyn Suite>, model: ModelSource, results: impl Into<PathBuf>) -> Self {
        EvaluationSettings {
            questions: Questions::Suite(suite),
            plan: Plan { limit: None, samples: 1, shard: None },
            model,
            prompt: ModeRequest::Auto,
            thinking: None,
            thinking_text: ThinkingText::default(),
            decoding: Decoding::Asked(GenerationSettings::default()),
            results: results.into(),
            run: RunChoice::Continue,
            engine: EngineSettings::default(),
            traffic: TrafficSettings::default(),
            fail_on_error: None,
            stop: Arc::default(),
        }
    }

    /// Refuses values that no session can keep.
    pub fn check(&self) -> Result<(), EvalError> {
        if let Some(fraction) = self.fail_on_error
            && !(0.0..=1.0).contains(&fraction)
        {
            return Err(EvalError::setting(format!("--fail-on-error {fraction} is no fraction: take 0 to 1")));
        }
        self.engine.check()
    }
}

/// Source of a run's items.
pub enum Questions {
    /// A suite that depends on the channel to the model, which the checkpoint decides.
    Chosen(Box<dyn Choice>),
    /// A suite as it is.
    Suite(Box<dyn Suite>),
}

/// Generation of a run.
pub enum Decoding {
    /// As asked, over the checkpoint's defaults.
    Asked(GenerationSettings),
    /// As a manifest has it.
    Stored(Generation),
}

/// The run to work on.
pub enum RunChoice {
    /// The newest with the same settings, or a new one.
    Continue,
    /// The same in a command that works on several runs and cannot begin one again.
    Gather,
    /// A new one.
    New,
    /// A new one with the settings of this one.
    Repeat(Box<Manifest>),
    /// This one, whose settings must be the same.
    Resume(Box<RunRecord>),
}
