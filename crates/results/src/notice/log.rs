//! Notices of other tools' logs.
use std::fmt;

use earnest_tasks::{agreeing, counted};
use serde::Serialize;

use super::Level;
use crate::Tool;
use crate::store::PACK_ITEMS;

/// A fact about a log that is read or imported; `run` is the run that it becomes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "code", rename_all = "kebab-case")]
pub enum LogNotice {
    /// Logs of one tool are by several versions of it.
    SeveralVersions {
        tool: Tool,
        versions: Vec<String>,
    },
    /// Results without the samples that they are about.
    WithoutSamples {
        problem: String,
    },
    /// The log is stored already, with other choices of the user.
    OtherChoices {
        run: String,
        stored: String,
        settings: Vec<String>,
    },
    ToolFailed {
        run: String,
        reason: String,
    },
    ToolCancelled {
        run: String,
    },
    ToolUnfinished {
        run: String,
    },
    /// Documents with the id of an earlier one.
    Renamed {
        run: String,
        documents: usize,
    },
    /// Prompts that are too long together to be stored.
    PromptsNotStored {
        run: String,
        documents: usize,
    },
    /// Questions that are too long together to be stored whole.
    QuestionsCut {
        run: String,
        documents: usize,
    },
    /// Completions without an expected answer.
    NoExpectedAnswer {
        run: String,
        completions: usize,
    },
    /// Documents without a label of their cluster, where others have one.
    NoClusterLabel {
        run: String,
        field: String,
        documents: usize,
    },
    /// A scorer of the results of which no sample has a score.
    NoScoreBy {
        run: String,
        scorer: String,
    },
    /// A scorer whose scores are texts, with one of them.
    TextScores {
        run: String,
        scorer: String,
        example: String,
    },
    NoScores {
        run: String,
    },
}

impl LogNotice {
    pub(super) fn level(&self) -> Level {
        match self {
            LogNotice::SeveralVersions { .. } | LogNotice::WithoutSamples { .. } | LogNotice::OtherChoices { .. } => {
                Level::Message
            }
            LogNotice::ToolFailed { .. }
            | LogNotice::ToolCancelled { .. }
            | LogNotice::ToolUnfinished { .. }
            | LogNotice::Renamed { .. }
            | LogNotice::PromptsNotStored { .. }
            | LogNotice::QuestionsCut { .. }
            | LogNotice::NoExpectedAnswer { .. }
            | LogNotice::NoClusterLabel { .. }
            | LogNotice::NoScoreBy { .. }
            | LogNotice::TextScores { .. }
            | LogNotice::NoScores { .. } => Level::Warning,
        }
    }
}

impl fmt::Display for LogNotice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LogNotice::SeveralVersions { tool, versions } => {
                write!(f, "logs of {} are by several of its versions: {}", tool.name(), versions.join(", "))
            }
            LogNotice::WithoutSamples { problem } => f.write_str(problem),
            LogNotice::OtherChoices { run, stored, settings } => write!(
                f,
                "{run}: the log is already there as {stored}, with another {}",
                settings.join(" and another ")
            ),
            LogNotice::ToolFailed { run, reason } => write!(f, "{run}: the tool stopped with an error: {reason}"),
            LogNotice::ToolCancelled { run } => write!(f, "{run}: the tool was cancelled"),
            LogNotice::ToolUnfinished { run } => write!(f, "{run}: the tool had not finished"),
            LogNotice::NoScoreBy { run, scorer } => {
                write!(f, "{run}: no sample has a score by {scorer}, which is in the log's results")
            }
            LogNotice::TextScores { run, scorer, example } => {
                write!(f, "{run}: scores of {scorer} are texts, such as \"{example}\": they are kept, and in no mean")
            }
            LogNotice::NoScores { run } => {
                write!(f, "{run}: the log has no scores; the setting `answers = FILE` reads its completions as answers")
            }
            LogNotice::Renamed { run, documents } => write!(
                f,
                "{run}: {} {} the id of an earlier one; {} numbered (ID#2)",
                counted(*documents, "document"),
                agreeing(*documents, "has", "have"),
                agreeing(*documents, "it is", "they are")
            ),
            LogNotice::PromptsNotStored { run, documents } => write!(
                f,
                "{run}: {} {} not stored, because those of {PACK_ITEMS} documents are too long together",
                counted(*documents, "prompt"),
                agreeing(*documents, "is", "are")
            ),
            LogNotice::QuestionsCut { run, documents } => write!(
                f,
                "{run}: {} {} stored without {} end, because those of {PACK_ITEMS} documents are too long together",
                counted(*documents, "question"),
                agreeing(*documents, "is", "are"),
                agreeing(*documents, "its", "their")
            ),
            LogNotice::NoExpectedAnswer { run, completions } => write!(
                f,
                "{run}: {} {} no expected answer and no score",
                counted(*completions, "completion"),
                agreeing(*completions, "has", "have")
            ),
            LogNotice::NoClusterLabel { run, field, documents } => write!(
                f,
                "{run}: {} {} no {field}, {} a cluster of its own",
                counted(*documents, "document"),
                agreeing(*documents, "has", "have"),
                agreeing(*documents, "which is", "each of them is")
            ),
        }
    }
}
