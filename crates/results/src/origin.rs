//! Origin of a run's answers and scores, and what is known of runs by it. The kind of a stored run is read here alone; the registry of suites, below, finds
//! a log's suite by the same key.
use serde_json::Value;

use crate::{FileRecord, IMPORT_ENGINE, RunSettings};
use earnest_tasks::suite::{log, task};

/// Origin of a run's answers and scores.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Origin {
    /// An engine of this program, or an endpoint that it asked.
    #[default]
    Evaluated,
    /// Completions that another engine generated and this program scored; their decoding, budget and stop strings are unknown.
    Completions,
    /// A log of another tool: questions, answers and scores are the tool's.
    Log,
}

impl RunSettings {
    /// Origin of the run's answers and scores.
    pub fn origin(&self) -> Origin {
        if self.engine != IMPORT_ENGINE {
            return Origin::Evaluated;
        }
        if self.suite_options.get(log::STORED_KEY).is_some() { Origin::Log } else { Origin::Completions }
    }

    /// The card of an imported log as it is stored; none for other runs.
    pub fn stored_card(&self) -> Option<&Value> {
        self.suite_options.get(log::STORED_KEY).filter(|_| self.origin() == Origin::Log)
    }

    /// True if the questions are the user's own, of a task file or another tool's log, and not a suite's.
    pub fn asks_own_questions(&self) -> bool {
        self.suite_options.get(task::STORED_KEY).is_some() || self.origin() == Origin::Log
    }

    /// Name of the scorer that was chosen for the run; none for the suite's own.
    pub fn chosen_scorer(&self) -> Option<&str> {
        self.suite_options.get("profile").and_then(Value::as_str)
    }

    /// Returns the files of the model; none where they are unknown. Those of an import are of its answers: two of them are of one
    /// model if they name it alike.
    pub fn files_of_model(&self) -> Option<&[FileRecord]> {
        (self.origin() == Origin::Evaluated).then_some(&self.model_files)
    }
}
