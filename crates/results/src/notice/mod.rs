//! Notices of a run or an operation on its way: facts, with the sentence about them as `Display`.
mod comparison;
mod files;
mod log;
mod model;
mod run;

use std::fmt;

use serde::Serialize;

pub use comparison::ComparisonNotice;
pub use files::FilesNotice;
pub use log::LogNotice;
pub use model::ModelNotice;
pub use run::{Repetition, RunNotice};

/// A notice by its subject. As JSON an object of a `code` and the facts.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Notice {
    Run(RunNotice),
    Model(ModelNotice),
    Log(LogNotice),
    Files(FilesNotice),
    Comparison(ComparisonNotice),
    Told(Told),
}

/// Weight of a notice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Level {
    /// Information for the user.
    Message,
    /// A warning for the user.
    Warning,
    /// A problem of the engine that does not end the session.
    Engine,
}

/// Origin of a text that is told whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Teller {
    /// The engine at work.
    Engine,
    /// The engine while it loads the weights.
    Loading,
    /// The choice of the device.
    Device,
    /// The model's files, and where they were found.
    Model,
    /// The card of a log, which is stored with its run.
    Log,
}

/// A text that comes whole from elsewhere.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "code", rename = "told")]
pub struct Told {
    pub origin: Teller,
    /// The run that it is about, where there may be several.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run: Option<String>,
    pub text: String,
}

impl Notice {
    pub fn level(&self) -> Level {
        match self {
            Notice::Run(notice) => notice.level(),
            Notice::Model(notice) => notice.level(),
            Notice::Log(notice) => notice.level(),
            Notice::Files(notice) => notice.level(),
            Notice::Comparison(notice) => notice.level(),
            Notice::Told(told) if told.origin == Teller::Engine => Level::Engine,
            Notice::Told(_) => Level::Warning,
        }
    }

    /// Creates the notice of a text from elsewhere.
    pub fn told(origin: Teller, text: impl Into<String>) -> Self {
        Notice::Told(Told { origin, run: None, text: text.into() })
    }
}

impl fmt::Display for Notice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Notice::Run(notice) => fmt::Display::fmt(notice, f),
            Notice::Model(notice) => fmt::Display::fmt(notice, f),
            Notice::Log(notice) => fmt::Display::fmt(notice, f),
            Notice::Files(notice) => fmt::Display::fmt(notice, f),
            Notice::Comparison(notice) => fmt::Display::fmt(notice, f),
            Notice::Told(Told { run: Some(run), text, .. }) => write!(f, "{run}: {text}"),
            Notice::Told(Told { run: None, text, .. }) => f.write_str(text),
        }
    }
}

macro_rules! subjects {
    ($($subject:ident($notice:ident))*) => {
        $(impl From<$notice> for Notice {
            fn from(notice: $notice) -> Self {
                Notice::$subject(notice)
            }
        })*
    };
}

subjects! { Run(RunNotice) Model(ModelNotice) Log(LogNotice) Files(FilesNotice) Comparison(ComparisonNotice) }

#[cfg(test)]
mod tests {
    use serde_json::{json, to_value};

    use super::*;

    #[test]
    fn facts_have_a_code_and_a_sentence() {
        let notice = Notice::from(RunNotice::PartlyPaired { run: "a-1".into(), paired: 1, items: 3 });
        let facts = json!({ "code": "partly-paired", "run": "a-1", "paired": 1, "items": 3 });
        assert_eq!((notice.level(), to_value(&notice).unwrap()), (Level::Warning, facts));
        let said = "1 of 3 items is in a-1; the others are asked, but do not count for the decision";
        assert_eq!(notice.to_string(), said);
        let told = Notice::told(Teller::Engine, "asked again");
        assert_eq!((told.level(), told.to_string().as_str()), (Level::Engine, "asked again"));
        let facts = json!({ "code": "told", "origin": "engine", "text": "asked again" });
        assert_eq!(to_value(&told).unwrap(), facts);
        let of_log = Notice::Told(Told { origin: Teller::Log, run: Some("b-2".into()), text: "invalid".into() });
        assert_eq!((of_log.level(), of_log.to_string().as_str()), (Level::Warning, "b-2: invalid"));
    }
}
