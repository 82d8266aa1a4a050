//! Outcome of a study's runs.
use crate::EvalError;
use earnest_results::RunError;
use earnest_results::store::RunRecord;

use super::PlannedRun;

/// Outcome of an executed study.
pub struct StudyOutcome {
    /// In the order of the plan.
    pub runs: Vec<(PlannedRun, RunEnd)>,
    /// The error that ended the study before its last run: an interruption, or results that cannot be written.
    pub ended_by: Option<EvalError>,
}

pub enum RunEnd {
    /// Every sample has a row.
    Finished(Box<RunRecord>),
    /// The run failed; earlier rows are stored.
    Failed(EvalError),
    /// Not begun: the model failed in an earlier run.
    ModelFailed,
    /// The study's condition left it out.
    LeftOut,
    /// The study ended before.
    NotReached,
}

impl RunEnd {
    /// The finished run.
    pub fn run(&self) -> Option<&RunRecord> {
        match self {
            RunEnd::Finished(run) => Some(run),
            _ => None,
        }
    }

    /// Word for tables and documents.
    pub fn word(&self) -> &'static str {
        match self {
            RunEnd::Finished(_) => "finished",
            RunEnd::Failed(_) => "failed",
            RunEnd::ModelFailed => "not run",
            RunEnd::LeftOut => "left out",
            RunEnd::NotReached => "not reached",
        }
    }
}

impl StudyOutcome {
    /// Finished runs in the order of the plan.
    pub fn finished(&self) -> impl Iterator<Item = (PlannedRun, &RunRecord)> {
        self.runs.iter().filter_map(|(planned, end)| Some((*planned, end.run()?)))
    }

    /// Runs that failed themselves, with their errors.
    pub fn failures(&self) -> impl Iterator<Item = (PlannedRun, &EvalError)> {
        self.runs.iter().filter_map(|(planned, end)| match end {
            RunEnd::Failed(error) => Some((*planned, error)),
            _ => None,
        })
    }
}

/// Part of a study that an error concerns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Scope {
    /// The run: other runs of the model may succeed.
    Run,
    /// All runs of the model.
    Model,
    /// All runs.
    Study,
}

impl Scope {
    pub(super) fn of(error: &EvalError) -> Scope {
        match error {
            EvalError::Interrupted { .. } | EvalError::Results(_) | EvalError::Rows(_) => Scope::Study,
            EvalError::Run(error) => match error {
                RunError::Engine(_) | RunError::LostRequests(_) | RunError::UnknownRequest(_) => Scope::Model,
                RunError::Locked { .. } | RunError::RepeatedItem { .. } => Scope::Run,
                _ => Scope::Study,
            },
            EvalError::Model(_) | EvalError::Engine(_) | EvalError::Hub(_) => Scope::Model,
            _ => Scope::Run,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_ends_no_more_than_it_concerns() {
        assert_eq!(Scope::of(&EvalError::model("damaged")), Scope::Model);
        assert_eq!(Scope::of(&EvalError::setting("no template")), Scope::Run);
        assert_eq!(Scope::of(&EvalError::results("disk full")), Scope::Study);
        assert_eq!(Scope::of(&RunError::LostRequests(1).into()), Scope::Model);
        assert_eq!(Scope::of(&RunError::Locked { run: "a".into() }.into()), Scope::Run);
    }
}
