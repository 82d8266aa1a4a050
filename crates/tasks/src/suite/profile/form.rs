//! Forms of prompts.
use std::fmt;
use std::str::FromStr;

use serde_json::json;

use crate::suite::registry::{Mode, OptionError, Takes};

/// Worked examples of the forms that have some, where no number is asked for.
const SHOTS: usize = 3;

/// Worked examples at most, as NUPA has them.
pub(super) const MOST_SHOTS: usize = 8;

/// Begins the tasks of the screening's items.
const TASK: &str = "screening_";

/// Form of the prompts: conversation or raw text, with so many worked examples before the question.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PromptForm {
    pub mode: Mode,
    pub shots: usize,
}

impl PromptForm {
    /// The forms that a model takes, conversations first; without a number of examples, each mode has a form with none and one with some. If
    /// the model takes none of them, the form is that of the run, whose first prompt says why.
    pub fn of(mode: Mode, takes: Takes, shots: Option<usize>) -> Vec<PromptForm> {
        let counts = shots.map_or_else(|| vec![0, SHOTS], |shots| vec![shots]);
        let forms = [Mode::Chat, Mode::Raw].into_iter().flat_map(|mode| {
            let of_mode = counts.iter().map(move |&shots| PromptForm { mode, shots });
            of_mode.filter(|form| form.is_taken(takes))
        });
        let forms: Vec<PromptForm> = forms.collect();
        if forms.is_empty() { vec![PromptForm { mode, shots: shots.unwrap_or(0) }] } else { forms }
    }

    fn is_taken(self, takes: Takes) -> bool {
        match (self.mode, self.shots) {
            (Mode::Raw, _) => takes.raw,
            (Mode::Chat, 0) => takes.chat,
            (Mode::Chat, _) => takes.turns,
        }
    }

    /// Name for people.
    pub fn title(self) -> String {
        let mode = match self.mode {
            Mode::Chat => "by chat",
            Mode::Raw => "as raw text",
        };
        match self.shots {
            0 => mode.to_owned(),
            1 => format!("{mode} with 1 worked example"),
            shots => format!("{mode} with {shots} worked examples"),
        }
    }

    /// Task of its items in the screening.
    pub fn task(self) -> String {
        format!("{TASK}{}", self.to_string().replace('+', "_"))
    }

    /// The form of a task; none of other tasks.
    pub fn of_task(task: &str) -> Option<Self> {
        task.strip_prefix(TASK)?.replace('_', "+").parse().ok()
    }
}

/// `chat`, `raw`, `chat+3` or `raw+3`, as in options and JSON.
impl fmt::Display for PromptForm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.shots {
            0 => self.mode.fmt(f),
            shots => write!(f, "{}+{shots}", self.mode),
        }
    }
}

impl FromStr for PromptForm {
    type Err = OptionError;

    fn from_str(text: &str) -> Result<Self, OptionError> {
        let unknown = || OptionError::unreadable(format!("{text} is no form of prompts"));
        let (mode, shots) = text.split_once('+').map_or((text, Some(0)), |(mode, shots)| (mode, shots.parse().ok()));
        let mode = match mode {
            "chat" => Mode::Chat,
            "raw" => Mode::Raw,
            _ => return Err(unknown()),
        };
        Ok(PromptForm { mode, shots: shots.filter(|shots| *shots <= MOST_SHOTS).ok_or_else(unknown)? })
    }
}

/// Reads the forms of stored options.
pub(super) fn read_forms(stored: &[String]) -> Result<Vec<PromptForm>, OptionError> {
    let forms: Vec<PromptForm> = stored.iter().map(|form| form.parse()).collect::<Result<_, _>>()?;
    let mut distinct = forms.clone();
    distinct.sort_unstable();
    distinct.dedup();
    if forms.is_empty() || distinct.len() < forms.len() {
        return Err(OptionError::unreadable(format!("forms is {}", json!(stored))));
    }
    Ok(forms)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: Takes = Takes { chat: true, turns: true, raw: true };

    fn forms(texts: &[&str]) -> Vec<PromptForm> {
        texts.iter().map(|text| text.parse().unwrap()).collect()
    }

    #[test]
    fn forms_are_those_that_the_model_takes() {
        let of = |takes, shots| PromptForm::of(Mode::Chat, takes, shots);
        assert_eq!(of(ALL, None), forms(&["chat", "chat+3", "raw", "raw+3"]));
        assert_eq!(of(Takes { turns: false, ..ALL }, None), forms(&["chat", "raw", "raw+3"]));
        assert_eq!(of(Takes::only(Mode::Raw), None), forms(&["raw", "raw+3"]));
        assert_eq!(of(ALL, Some(5)), forms(&["chat+5", "raw+5"]));
        assert_eq!(of(Takes { turns: false, raw: false, ..ALL }, Some(0)), forms(&["chat"]));
        let none = Takes { chat: false, turns: false, raw: false };
        assert_eq!(of(none, None), forms(&["chat"]), "the first prompt says why");
        for form in of(ALL, None) {
            assert_eq!(PromptForm::of_task(&form.task()), Some(form));
        }
        for wrong in ["", "chat+", "chat+9", "raw 3", "both"] {
            assert!(wrong.parse::<PromptForm>().is_err(), "{wrong}");
        }
        assert_eq!(PromptForm::of_task("screening_"), None);
        assert!(read_forms(&["raw".to_owned(), "raw".to_owned()]).is_err() && read_forms(&[]).is_err());
        assert_eq!(forms(&["raw+3"])[0].title(), "as raw text with 3 worked examples");
    }
}
