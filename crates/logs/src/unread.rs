//! Files of tools in layouts that are not read, which are refused by name: their scores would be lost without a word.
use std::path::Path;

use crate::LogError;

/// Layouts of files that are known and not read. Where the user names their columns, each is a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Unread {
    /// Write-out file of lm-evaluation-harness 0.3 (`--write_out`), a row for each document.
    LmEvalWriteOut,
    /// Details of lighteval before the columns `doc`, `metric` and `model_response`.
    LightevalEarlier,
    /// Details of lighteval, by their name, with columns that no known version has.
    LightevalUnknown,
}

impl Unread {
    /// The error of such a file.
    pub fn error(self, path: &Path) -> LogError {
        let (what, next) = match self {
            Unread::LmEvalWriteOut => (
                "it is a write-out file of lm-evaluation-harness 0.3 (prompt_0, logit_0, truth), which is not read; the samples of 0.4.0 and \
                 later are",
                "log the samples again with lm_eval 0.4.6 or later and `--log_samples`, or name the columns of its scores as those of a \
                 table: the setting `columns = id=doc_id,prompt=prompt_0,target=truth,score=acc`, the setting `task = TASK` and the \
                 setting `model_name = NAME`",
            ),
            Unread::LightevalEarlier => (
                "it has lighteval's details in an earlier layout (columns full_prompt, metrics, predictions), which is not read; that with \
                 the columns doc, metric and model_response is",
                "evaluate again with a newer lighteval, or name the columns of its scores as those of a table: the \
                 setting `columns = id=...,score=...`",
            ),
            Unread::LightevalUnknown => (
                "by its name it has lighteval's details, but not their columns doc, metric and model_response: a layout of lighteval that \
                 is not known",
                "docs/logs.md has the layouts that are read; a table of your own is read with the setting `columns = id=...,score=...`",
            ),
        };
        LogError::unread(path, what).hint(next)
    }
}

/// Returns true for the members of a document in a write-out file of lm-evaluation-harness 0.3: `doc_id`, and numbered prompts or logits.
pub(super) fn is_write_out<'a>(mut keys: impl Iterator<Item = &'a str>) -> bool {
    keys.any(|key| {
        let number = key.strip_prefix("prompt_").or_else(|| key.strip_prefix("logit_"));
        number.is_some_and(|number| !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()))
    })
}
