//! Notices of files that are read or written.
use std::fmt;

use serde::Serialize;

use super::Level;

/// A fact about files or their rows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "code", rename_all = "kebab-case")]
pub enum FilesNotice {
    /// Files that are no logs, with the first of them.
    NoLogs { count: usize, first: Vec<String> },
    /// Links out of the folder or to nowhere, with the first of them.
    LinksLeftOut { count: usize, first: Vec<String> },
    /// Pipes, devices and the like, with the first of them.
    NotRegular { count: usize, first: Vec<String> },
    /// Rows that are no questions, and what is wrong with them.
    MalformedLeftOut { rows: usize, problems: String },
    /// Rows that cannot be read, and what is wrong with some.
    UnreadableLeftOut { rows: usize, problems: Vec<String> },
    /// An export has prompts that are made of items.
    PromptsRebuilt,
    /// Documents of an export that have no score.
    DocumentsUnscored { documents: usize },
    /// An export has the mean of so many samples, at most, of a document.
    MeansOfSamples { samples: usize },
}

impl FilesNotice {
    pub(super) fn level(&self) -> Level {
        match self {
            FilesNotice::MalformedLeftOut { .. }
            | FilesNotice::UnreadableLeftOut { .. }
            | FilesNotice::PromptsRebuilt => Level::Warning,
            FilesNotice::NoLogs { .. }
            | FilesNotice::LinksLeftOut { .. }
            | FilesNotice::NotRegular { .. }
            | FilesNotice::DocumentsUnscored { .. }
            | FilesNotice::MeansOfSamples { .. } => Level::Message,
        }
    }
}

impl fmt::Display for FilesNotice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FilesNotice::NoLogs { count: 1, first } => write!(f, "{} is no log", first.join(", ")),
            FilesNotice::NoLogs { count, first } => {
                write!(f, "{count} files are no logs: {}", shown(first, *count))
            }
            FilesNotice::LinksLeftOut { count: 1, first } => write!(
                f,
                "{} is left out: it is a link that does not lead to something in the folder",
                first.join(", ")
            ),
            FilesNotice::LinksLeftOut { count, first } => write!(
                f,
                "{count} links that do not lead to something in the folder are left out: {}",
                shown(first, *count)
            ),
            FilesNotice::NotRegular { count: 1, first } => {
                write!(f, "{} is left out: it is no regular file", first.join(", "))
            }
            FilesNotice::NotRegular { count, first } => {
                write!(f, "{count} files that are no regular ones are left out: {}", shown(first, *count))
            }
            FilesNotice::MalformedLeftOut { problems, .. } => write!(f, "left out {problems}"),
            FilesNotice::UnreadableLeftOut { rows, problems } => {
                write!(f, "left out {rows} unreadable rows: {}", problems.join("; "))
            }
            FilesNotice::PromptsRebuilt => {
                f.write_str("the prompts were not stored: they are rebuilt from the items, without the chat template")
            }
            FilesNotice::DocumentsUnscored { documents } => {
                write!(f, "{documents} documents have no score: their metrics are null, and no mean has them")
            }
            FilesNotice::MeansOfSamples { samples } => write!(
                f,
                "the format has one score of a document: the mean of its samples, up to {samples}; METRIC_repeats has each"
            ),
        }
    }
}

/// The first names of so many.
fn shown(first: &[String], count: usize) -> String {
    let others = if first.len() < count { " and others" } else { "" };
    format!("{}{others}", first.join(", "))
}
