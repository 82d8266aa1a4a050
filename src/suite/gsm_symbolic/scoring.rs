//! Judges a completion: by the study's rules first, by ours beside them.
use std::collections::BTreeMap;

use super::clean_up::clean_up;
use super::prompt::Prompt;
use crate::answer::gsm::code::{classify, program};
use crate::answer::gsm::{CodeOutcome, CodeRunner, Label, correct, flexible, is_babbling, strict, text};
use crate::answer::split_thinking;
use crate::suite::{Answered, Evidence, Item, Verdict};

/// Names of the rules, the primary one first.
pub(super) const STUDY: &str = "study";
/// Right by the study and without another question behind the answer.
pub(super) const STUDY_STRICT: &str = "study_strict";
/// The last statement of a final answer, with its sign and unit.
pub(super) const STRICT: &str = "strict";
/// The last number, wherever it stands.
pub(super) const FLEXIBLE: &str = "flexible";
/// Metric: 1 where the completion goes on with another question.
pub(super) const BABBLING: &str = "babbling";

/// What an extraction found.
struct Found {
    value: Option<f64>,
    text: Option<String>,
    label: Label,
    /// What a function did instead of returning a number, in words.
    reason: Option<String>,
}

/// The verdict. `chat` completions are judged without their thinking; nothing else is cut, since the study's rules cut
/// themselves.
pub(super) fn score(item: &Item, answered: &Answered<'_>, chat: bool, runner: &dyn CodeRunner) -> Verdict {
    let truth: f64 = item.gold.parse().unwrap_or(f64::NAN);
    let visible = if chat { split_thinking(answered.completion).visible } else { answered.completion.into() };
    // As the study decodes; its extractor never sees the spaces.
    let response = clean_up(&visible);
    let code = item.task.parse::<Prompt>().is_ok_and(Prompt::is_code);
    let found = if code { run(&response, runner) } else { read(&response) };
    let study = correct(found.value, truth);
    let failure = (!study).then(|| failure(&found));
    let babbling = is_babbling(&response);
    // A function has one value, whoever reads it; what differs is how a text is read.
    let mut evidence = Evidence { reason: found.reason, ..Evidence::default() };
    let (strict, flexible) = if code {
        (study, study)
    } else {
        let mut judged = |rule: &str, value: Option<f64>| {
            evidence.readings.insert(rule.to_owned(), value.map(|value| value.to_string()));
            correct(value, truth)
        };
        (judged(STRICT, strict::read(&visible)), judged(FLEXIBLE, flexible::read(&visible)))
    };
    Verdict {
        correct: study,
        extracted: found.text,
        matchers: BTreeMap::from([
            (STUDY.to_owned(), study),
            (STUDY_STRICT.to_owned(), study && !babbling),
            (STRICT.to_owned(), strict),
            (FLEXIBLE.to_owned(), flexible),
        ]),
        metrics: BTreeMap::from([(BABBLING.to_owned(), f64::from(u8::from(babbling)))]),
        failure,
        evidence,
    }
}

fn read(response: &str) -> Found {
    let found = text::extract(response);
    Found { value: found.value, text: found.value.map(|value| value.to_string()), label: found.label, reason: None }
}

fn run(response: &str, runner: &dyn CodeRunner) -> Found {
    match program(response) {
        Err(label) => Found { value: None, text: None, label, reason: None },
        Ok(program) => {
            let outcome = runner.run(&program);
            let text = match &outcome {
                CodeOutcome::Number(number) => Some(number.text.clone()),
                _ => None,
            };
            Found { value: outcome.value(), text, label: classify(&outcome), reason: reason(&outcome) }
        }
    }
}

/// What a function did instead of returning a number.
fn reason(outcome: &CodeOutcome) -> Option<String> {
    match outcome {
        CodeOutcome::Number(_) | CodeOutcome::None | CodeOutcome::TimeLimit | CodeOutcome::MemoryLimit => None,
        CodeOutcome::Other(class) => Some(format!("it returned a value of type {class}")),
        CodeOutcome::Raised { message, .. } => Some(message.clone()),
        CodeOutcome::Crashed(how) => Some(how.clone()),
        CodeOutcome::Unavailable(why) => Some(why.clone()),
    }
}

/// The class of Figures 9 to 11 that a wrong answer belongs to.
fn failure(found: &Found) -> String {
    match (found.value, found.label) {
        (Some(_), Label::LastNumber) => "wrong_last_number".to_owned(),
        (Some(_), _) => "wrong".to_owned(),
        (None, Label::Crash) => "crashed".to_owned(),
        (None, label) => label.name().to_lowercase(),
    }
}
