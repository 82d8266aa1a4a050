//! Execution of a study: its runs in the plan's order, every model loaded at most once.
use std::sync::atomic::Ordering;

use earnest_engine::endpoint::Api;

use super::outcome::{RunEnd, Scope, StudyOutcome};
use super::{PlannedRun, StudyPlan};
use crate::EvalError;
use crate::evaluate::{Evaluated, EvaluationSettings, ModelSession};
use earnest_results::store::{RunRecord, Store};
use earnest_results::{Reporter, RunEvent, RunNotice};

/// Receiver of a study's events; those of a run come between its begin and its end.
pub trait Watcher: Reporter {
    /// Called before a run.
    fn begins(&mut self, plan: &StudyPlan, run: PlannedRun);

    /// Called after a run, with its rows or its error.
    fn ends(&mut self, plan: &StudyPlan, run: PlannedRun, end: Result<&Evaluated, &EvalError>);
}

/// Decision on a model's further runs.
#[derive(Debug, Clone, PartialEq)]
pub struct Decision {
    /// False leaves the model's further runs out.
    pub continues: bool,
    /// The reason, for the user.
    pub reason: Option<RunNotice>,
}

impl Decision {
    /// Continues without a word.
    pub const CONTINUE: Decision = Decision { continues: true, reason: None };
}

/// Condition of a study: decides after a finished run whether its model's further runs follow.
pub type Condition<'c> = dyn FnMut(PlannedRun, &Store, &RunRecord) -> Result<Decision, EvalError> + 'c;

/// Models that stay open until their runs; more than that are opened again.
const MOST_OPEN: usize = 100;

/// Opened models, without weights until a run needs them.
#[derive(Default)]
pub struct Sessions {
    open: Vec<(usize, Option<Api>, ModelSession)>,
}

impl Sessions {
    /// Returns the session of a run's model, opening it if needed; its warnings are events.
    pub fn of(
        &mut self,
        plan: &StudyPlan,
        run: PlannedRun,
        settings: &EvaluationSettings,
        reporter: &mut dyn Reporter,
    ) -> Result<&mut ModelSession, EvalError> {
        let api = plan.api(run)?;
        let index = match self.open.iter().position(|(model, own, _)| (*model, *own) == (run.model, api)) {
            Some(index) => index,
            None => {
                let session = ModelSession::open(settings)?;
                for warning in session.warnings() {
                    reporter.event(&RunEvent::Notice(warning));
                }
                self.open.push((run.model, api, session));
                self.open.len() - 1
            }
        };
        Ok(&mut self.open[index].2)
    }

    /// Drops a model if many are open: without weights, one has its tokenizer and names of tensors, up to some hundred megabytes.
    pub(super) fn close_beyond(&mut self, model: usize) {
        if self.open.len() > MOST_OPEN {
            self.close(model);
        }
    }

    /// Drops a model with its weights.
    fn close(&mut self, model: usize) {
        self.open.retain(|(open, ..)| *open != model);
    }
}

/// Executes the runs of a study that are not finished and gathers those that are. A model that fails does not keep the others
/// from their runs.
pub fn execute(
    plan: &StudyPlan,
    mut sessions: Sessions,
    condition: &mut Condition<'_>,
    watcher: &mut dyn Watcher,
) -> StudyOutcome {
    let mut outcome = StudyOutcome { runs: Vec::with_capacity(plan.runs.len()), ended_by: None };
    let mut failed: Option<usize> = None;
    let mut left: Option<usize> = None;
    for (index, &run) in plan.runs.iter().enumerate() {
        if index > 0 && plan.runs[index - 1].model != run.model {
            sessions.close(plan.runs[index - 1].model);
        }
        let end = if outcome.ended_by.is_some() || plan.settings.stop.load(Ordering::Relaxed) {
            RunEnd::NotReached
        } else if failed == Some(run.model) {
            RunEnd::ModelFailed
        } else if left == Some(run.model) {
            RunEnd::LeftOut
        } else {
            watcher.begins(plan, run);
            let evaluated = evaluate(plan, run, &mut sessions, watcher);
            watcher.ends(plan, run, evaluated.as_ref());
            match evaluated {
                Ok(Evaluated { store, run: record }) => {
                    match condition(run, &store, &record) {
                        Ok(decision) => {
                            if let Some(reason) = decision.reason {
                                watcher.event(&RunEvent::notice(reason));
                            }
                            left = (!decision.continues).then_some(run.model);
                        }
                        Err(error) => outcome.ended_by = Some(error),
                    }
                    RunEnd::Finished(Box::new(record))
                }
                Err(error) => match Scope::of(&error) {
                    Scope::Run => RunEnd::Failed(error),
                    Scope::Model => {
                        // An engine that failed is not asked again.
                        sessions.close(run.model);
                        failed = Some(run.model);
                        RunEnd::Failed(error)
                    }
                    Scope::Study => {
                        outcome.ended_by = Some(error);
                        RunEnd::NotReached
                    }
                },
            }
        };
        outcome.runs.push((run, end));
    }
    outcome
}

fn evaluate(
    plan: &StudyPlan,
    run: PlannedRun,
    sessions: &mut Sessions,
    watcher: &mut dyn Watcher,
) -> Result<Evaluated, EvalError> {
    let settings = plan.evaluation(run)?;
    sessions.of(plan, run, &settings, watcher)?.evaluate(&settings, watcher)
}
