//! The other run of a condition ([`Until`]) and what its rows say about the items of a plan.
use std::path::Path;

use earnest_tasks::suite::Suite;

use crate::EvalError;
use crate::run::Decider;
use earnest_results::scores::answers;
use earnest_results::store::{RunProgress, RunRecord, Store};
use earnest_results::{Plan, Reporter, RunEvent, RunNotice, RunSettings, Status, Until, folder};

/// Checks that the run of a condition can be compared with, and returns the condition with its whole name.
///
/// # Errors
/// There is no such run, it is not finished, it ended early itself, or it is of another suite.
pub(super) fn resolved(until: &Until, suite: &Suite, folder: &Path) -> Result<Until, EvalError> {
    let store = folder::open(folder)?;
    let run = store.run(&until.difference_to)?;
    let name = run.manifest.run.clone();
    let refused =
        |why: &str, hint: String| Err(EvalError::setting(format!("setting `until`: {name} {why}")).hint(hint));
    if run.manifest.status != Status::Finished || run.manifest.shard.is_some() {
        let why = "is not finished, so that not every item would be compared with it";
        return refused(why, format!("`earnest resume {name}` finishes it; parts are joined by `earnest merge`"));
    }
    if run.manifest.decision.as_ref().is_some_and(|decision| decision.is_early()) {
        let why = "ended early itself: its answers are those on which its own difference was decided";
        return refused(why, "compare with a run that asked all its items".to_owned());
    }
    if run.manifest.settings.suite != suite.scoring.name() {
        let why = format!("is a run of {}, not of {}", run.manifest.settings.suite, suite.scoring.name());
        return refused(&why, "`earnest runs list` lists the runs".to_owned());
    }
    let mine: Vec<String> = suite.scoring.chosen().into_iter().map(str::to_owned).collect();
    let theirs = folder::chosen_scorers(&store, &run)?;
    if !mine.is_empty() && !theirs.is_empty() && mine != theirs {
        let why = format!(
            "is scored by {}, this run would be by {}: their difference says nothing about the models",
            theirs.join(" and "),
            mine.join(" and ")
        );
        return refused(&why, format!("`earnest score {name} --save --scorer NAME` scores it by another scorer"));
    }
    Ok(Until { difference_to: name, ..until.clone() })
}

/// Creates the decider of a plan, with the rows of earlier sessions.
///
/// # Errors
/// The other run has no item of the plan, or cannot be read.
pub(super) fn decider(
    until: &Until,
    settings: &RunSettings,
    suite: &Suite,
    plan: Plan,
    store: &Store,
    earlier: Option<(&RunRecord, &RunProgress)>,
    reporter: &mut dyn Reporter,
) -> Result<Decider, EvalError> {
    let other = store.run(&until.difference_to)?;
    let answers = answers(store, &other, settings, &mut |notice| reporter.event(&RunEvent::Notice(notice)))?;
    let items = plan.asked(suite).map(|(_, item)| {
        let share = answers.share_of(&item);
        (item.cluster, share)
    });
    let mut decider = Decider::new(until, plan.samples, items);
    let (paired, all) = (decider.paired(), decider.items());
    if paired == 0 {
        let message = format!("setting `until`: none of the {all} items of this run is in {}", other.manifest.run);
        return Err(EvalError::setting(message).hint(
            "items are paired by id and question: use the options, the seed and the setting `limit` of that run",
        ));
    }
    if paired < all {
        let run = other.manifest.run;
        reporter.event(&RunEvent::notice(RunNotice::PartlyPaired { run, paired, items: all }));
    }
    if let Some((run, progress)) = earlier {
        store.outcomes(run, |outcome| -> Result<(), EvalError> {
            // What failed and may succeed is asked again.
            if progress.is_settled(outcome.index) {
                decider.add(outcome.index, outcome.score.as_ref().map(|score| score.correct));
            }
            Ok(())
        })?;
    }
    Ok(decider)
}
