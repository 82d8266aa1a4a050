//! Notices of runs.
use std::fmt;

use earnest_tasks::{agreeing, counted};
use serde::Serialize;

use super::Level;
use crate::{Decision, Shard, Until};

/// A fact about a run: its beginning, its rows, its end.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "code", rename_all = "kebab-case")]
pub enum RunNotice {
    /// Nobody named a model.
    BuiltInModel,
    /// Items that are asked where nobody says how many.
    FirstItems { limit: usize },
    /// The run was finished by an earlier session.
    AlreadyFinished { run: String, ended: Option<String>, next: Repetition },
    /// Smallest detectable difference of the plan: in points with independent and with equal answers within clusters.
    Detectable {
        items: usize,
        clusters: usize,
        /// Items without a label, each a cluster.
        unlabelled: usize,
        independent: Option<f64>,
        correlated: Option<f64>,
    },
    /// The condition of the run was met, or was not.
    Decided { decision: Box<Decision>, until: Until },
    /// A repeat has other settings.
    Inexact { run: String, differences: Vec<String> },
    /// Parts of the run are finished, and all of it is run.
    PartsFinished { parts: Vec<Shard> },
    /// The other run of the condition lacks items.
    PartlyPaired { run: String, paired: usize, items: usize },
    /// Programs that a model writes are not confined.
    Unconfined { missing: Vec<String> },
    /// The suite cannot be built, but the questions are stored.
    NotScoredAgain { run: String, reason: String },
    /// A name was read as the only run with answers.
    ReadAs { name: String, run: String, unanswered: Vec<String> },
    /// A file of completions has questions of its own.
    OwnQuestions { items: usize },
    /// A file of completions lacks some.
    WithoutCompletion { samples: usize, planned: usize },
    /// A request failed and is sent again.
    Retried { item: String, error: String },
    /// A model was selected by its drop of accuracy, or was not; the log odds with their p value, or why there are none.
    Selected {
        model: String,
        selected: bool,
        log_odds: Option<f64>,
        p: Option<f64>,
        #[serde(skip_serializing_if = "Option::is_none")]
        problem: Option<String>,
    },
}

/// Next step after a run that is finished already.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Repetition {
    /// Its rows are used.
    Used,
    /// The command that names it repeats it.
    ByName,
    /// The setting for new runs repeats it.
    AsNew,
}

impl RunNotice {
    pub(super) fn level(&self) -> Level {
        match self {
            RunNotice::BuiltInModel
            | RunNotice::FirstItems { .. }
            | RunNotice::AlreadyFinished { .. }
            | RunNotice::Detectable { .. }
            | RunNotice::Decided { .. }
            | RunNotice::ReadAs { .. }
            | RunNotice::OwnQuestions { .. }
            | RunNotice::Selected { .. } => Level::Message,
            RunNotice::Retried { .. } => Level::Engine,
            RunNotice::Inexact { .. }
            | RunNotice::PartsFinished { .. }
            | RunNotice::PartlyPaired { .. }
            | RunNotice::Unconfined { .. }
            | RunNotice::NotScoredAgain { .. }
            | RunNotice::WithoutCompletion { .. } => Level::Warning,
        }
    }
}

impl fmt::Display for RunNotice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RunNotice::BuiltInModel => f.write_str(
                "no setting `model` given: evaluating earnest-abacus-1.4m, the model inside this program. It learnt most NUPA tasks on \
                 numbers of up to 5 digits and nothing else; expect floor performance on longer numbers and word problems",
            ),
            RunNotice::FirstItems { limit } => write!(
                f,
                "asking {limit} items, every task with its lengths in their proportions; the setting `limit` changes their number"
            ),
            RunNotice::Detectable { items, clusters, unlabelled, independent, correlated } => {
                let said = detectable([*items, *clusters, *unlabelled], *independent, *correlated);
                f.write_str(&said)
            }
            RunNotice::PartsFinished { parts } => {
                let parts: Vec<String> = parts.iter().map(ToString::to_string).collect();
                write!(
                    f,
                    "parts {} of this run are already finished, but this command runs all items again; the setting `shard` runs \
                     single parts",
                    parts.join(", ")
                )
            }
            RunNotice::PartlyPaired { run, paired, items } => write!(
                f,
                "{paired} of {} {} in {run}; the others are asked, but do not count for the decision",
                counted(*items, "item"),
                agreeing(*paired, "is", "are")
            ),
            RunNotice::OwnQuestions { items } => write!(
                f,
                "some operands are not among the generated questions: the run consists of the file's own {items}"
            ),
            RunNotice::WithoutCompletion { samples, planned } => write!(
                f,
                "{samples} of {} {} no completion in the file",
                counted(*planned, "sample"),
                agreeing(*samples, "has", "have")
            ),
            RunNotice::Unconfined { missing } => write!(
                f,
                "model-written Python runs unconfined, as the setting `unconfined` permits: missing {}. It may read and delete files, \
                 use the network and see the environment of other processes",
                missing.join(", ")
            ),
            RunNotice::AlreadyFinished { run, ended, next } => {
                let ended = ended.as_deref().unwrap_or("an earlier session");
                write!(f, "this run was finished at {ended}; {}", next.of(run))
            }
            RunNotice::Decided { decision, until } => f.write_str(&decision.sentence(until)),
            RunNotice::Inexact { run, differences } => write!(
                f,
                "this is not an exact repeat of {run}; these settings differ: {}",
                differences.join(", ")
            ),
            RunNotice::NotScoredAgain { run, reason } => {
                write!(f, "{run} is checked against its stored questions and not scored again: {reason}")
            }
            RunNotice::ReadAs { name, run, unanswered } => write!(
                f,
                "{name} is read as {run}: {} {} no answers",
                unanswered.join(", "),
                agreeing(unanswered.len(), "has", "have")
            ),
            RunNotice::Retried { item, error } => write!(f, "{item} failed ({error}); retrying once"),
            RunNotice::Selected { model, selected, log_odds, p, problem } => {
                f.write_str(&selection(model, *selected, log_odds.zip(*p), problem.as_deref()))
            }
        }
    }
}

impl Repetition {
    /// Clause on what becomes of a run.
    fn of(self, run: &str) -> String {
        match self {
            Repetition::Used => format!("{run} is used"),
            Repetition::ByName => format!("`earnest run --from {run}` repeats it"),
            Repetition::AsNew => "the setting `new` repeats it".to_owned(),
        }
    }
}

/// Sentence on the selection of a model by its log odds with their p value.
fn selection(model: &str, selected: bool, estimate: Option<(f64, f64)>, problem: Option<&str>) -> String {
    let estimate = match estimate {
        Some((log_odds, p)) => format!("log odds {log_odds:.2}, p {p:.3}"),
        None => format!("no estimate: {}", problem.unwrap_or("no answers")),
    };
    let said = match selected {
        true => ["accuracy drops significantly", "continuing with"],
        false => ["no significant drop", "skipping"],
    };
    format!("{model}: {} on the GSM prompt ({estimate}); {} the other prompts", said[0], said[1])
}

/// Sentence on the smallest detectable difference.
fn detectable([items, clusters, unlabelled]: [usize; 3], independent: Option<f64>, correlated: Option<f64>) -> String {
    let own = match unlabelled {
        0 => String::new(),
        count => format!(" ({count} without a label, each its own)"),
    };
    let of_clusters = match clusters < items {
        true => format!(" in {}{own}", counted(clusters, "cluster")),
        false => String::new(),
    };
    let items_said = counted(items, "item");
    let Some(independent) = independent else {
        return format!("{items_said}{of_clusters}: too few to detect a difference between two models");
    };
    let correlated = match correlated {
        _ if clusters == items => String::new(),
        Some(points) => format!(" ({points:.1} points if the items of a cluster are fully correlated)"),
        None => " (none if the items of a cluster are fully correlated)".to_owned(),
    };
    format!(
        "{items_said}{of_clusters}: smallest detectable difference between two models: {independent:.1} points{correlated}, 80 % power"
    )
}
