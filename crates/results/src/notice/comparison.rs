//! Notices of comparisons.
use std::fmt;

use earnest_tasks::{agreeing, counted};
use serde::Serialize;

use super::Level;
use crate::SettingChange;

/// A fact that limits a comparison of runs or logs.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "code", rename_all = "kebab-case")]
pub enum ComparisonNotice {
    /// The runs differ in more than their models.
    OtherSettings { baseline: String, run: String, settings: Vec<SettingChange> },
    /// Runs with different scorers of their own are compared by one.
    ReadAlike { baseline: String, run: String, scorers: [String; 2], by: String },
    /// The runs saw different prompts for some of the items.
    OtherPrompts { baseline: String, run: String, questions: usize, items: usize },
    /// Items name originals, such as this one, that the other run lacks.
    OriginalsNotThere { run: String, other: String, items: usize, original: String },
    /// Models of one name have different files.
    OtherModelFiles { runs: [String; 2], model: String, files: Vec<String> },
    /// The questions of the runs depend on their answers.
    NumeracyProfiles { runs: [String; 2] },
    /// The runs were scored by different versions of the suite.
    OtherSuiteVersion { runs: [String; 2], versions: [String; 2] },
    /// The questions of a run cannot be compared.
    QuestionsUnread { run: String, reason: String },
    /// Samples of a run without an answer.
    WithoutAnswer { run: String, samples: usize },
    /// Samples of a model's logs without a score.
    WithoutScore { model: String, samples: usize },
    /// A log that cannot be read.
    LogLeftOut { problem: String },
    /// Samples of a model's logs that cannot be read, with the first problem.
    SamplesLeftOut { model: String, samples: usize, first: String },
    /// Logs that are named twice.
    NamedTwice { model: String },
    /// Tasks that one model alone has.
    OwnTasks { model: String, tasks: Vec<String> },
    /// A run of a study that is not finished, or is a part.
    UnfinishedLeftOut { run: String },
    /// A run of a study that is older than another with the same model and prompt.
    OlderLeftOut { run: String, model: String, prompt: String },
    /// Different models of a study have one name.
    NamedAlike { model: String },
}

impl ComparisonNotice {
    pub(super) fn level(&self) -> Level {
        match self {
            ComparisonNotice::UnfinishedLeftOut { .. }
            | ComparisonNotice::OlderLeftOut { .. }
            | ComparisonNotice::NamedAlike { .. } => Level::Message,
            ComparisonNotice::OtherSettings { .. }
            | ComparisonNotice::ReadAlike { .. }
            | ComparisonNotice::OtherPrompts { .. }
            | ComparisonNotice::OriginalsNotThere { .. }
            | ComparisonNotice::OtherModelFiles { .. }
            | ComparisonNotice::NumeracyProfiles { .. }
            | ComparisonNotice::OtherSuiteVersion { .. }
            | ComparisonNotice::QuestionsUnread { .. }
            | ComparisonNotice::WithoutAnswer { .. }
            | ComparisonNotice::WithoutScore { .. }
            | ComparisonNotice::LogLeftOut { .. }
            | ComparisonNotice::SamplesLeftOut { .. }
            | ComparisonNotice::NamedTwice { .. }
            | ComparisonNotice::OwnTasks { .. } => Level::Warning,
        }
    }
}

impl fmt::Display for ComparisonNotice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ComparisonNotice::OriginalsNotThere { run, other, items, original } => write!(
                f,
                "{} of {run} {} an original in `pair`, such as {original}, and {other} has none of them",
                counted(*items, "item"),
                agreeing(*items, "names", "name")
            ),
            ComparisonNotice::WithoutAnswer { run, samples } => write!(
                f,
                "{} of {run} {} in no comparison",
                counted(*samples, "sample"),
                agreeing(*samples, "has no answer and is", "have no answer and are")
            ),
            ComparisonNotice::WithoutScore { model, samples } => write!(
                f,
                "{} of {model} {} in no comparison",
                counted(*samples, "sample"),
                agreeing(*samples, "has no score and is", "have no score and are")
            ),
            ComparisonNotice::LogLeftOut { problem } => f.write_str(problem),
            ComparisonNotice::SamplesLeftOut { model, samples, first } => {
                write!(f, "{} of {model} could not be read: {first}", counted(*samples, "sample"))
            }
            ComparisonNotice::NamedTwice { model } => {
                write!(f, "the logs of {model} are named twice: they are not compared with themselves")
            }
            ComparisonNotice::OwnTasks { model, tasks } => {
                write!(f, "{model} alone has {}: not compared", tasks.join(", "))
            }
            ComparisonNotice::UnfinishedLeftOut { run } => {
                write!(f, "{run} is left out because it is unfinished or a part; name it to include it")
            }
            ComparisonNotice::OlderLeftOut { run, model, prompt } => {
                write!(f, "{run} is left out for {model} on {prompt}: there is a newer finished run")
            }
            ComparisonNotice::NamedAlike { model } => write!(
                f,
                "different models are named {model}; they are labelled by their weights or files, or by the setting `with = NAME=RUN`"
            ),
            ComparisonNotice::OtherSettings { baseline, run, settings } => {
                let named = settings.iter().map(SettingChange::in_both).collect::<Vec<_>>().join(", ");
                write!(
                    f,
                    "{baseline} (A) and {run} (B) have different settings, so a difference need not be the models': {named}"
                )
            }
            ComparisonNotice::ReadAlike { baseline, run, scorers: [mine, theirs], by } => write!(
                f,
                "{baseline} (A) is scored by {mine} and {run} (B) by {theirs} of their own, both are compared by {by}"
            ),
            ComparisonNotice::OtherPrompts { baseline, run, questions, items } => write!(
                f,
                "{baseline} (A) and {run} (B) saw different prompts for {questions} of {}, so a difference need not be the models'",
                counted(*items, "question")
            ),
            ComparisonNotice::OtherModelFiles { runs: [one, other], model, files } => write!(
                f,
                "{one} and {other} name their models alike ({model}), but the files differ: {}",
                files.join(", ")
            ),
            ComparisonNotice::NumeracyProfiles { runs: [one, other] } => write!(
                f,
                "{one} and {other} are numeracy profiles, whose questions are near the limits of their models; only those that both \
                 asked are compared here. `earnest profile --compare {one} {other}` compares the limits"
            ),
            ComparisonNotice::OtherSuiteVersion { runs: [one, other], versions: [mine, theirs] } => write!(
                f,
                "{one} was scored with version {mine} of the suite, {other} with {theirs}; `earnest score --save` scores them alike"
            ),
            ComparisonNotice::QuestionsUnread { run, reason } => write!(
                f,
                "the runs have different options, and the questions of {run} cannot be read: its items are compared by id and \
                 expected answer alone: {reason}"
            ),
        }
    }
}
