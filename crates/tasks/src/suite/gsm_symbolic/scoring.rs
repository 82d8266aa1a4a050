//! Scores a completion: by the study's scorers first, by ours beside them.
use super::answer::code::{classify, program};
use super::answer::{Label, correct, flexible, is_babbling, strict, text};
use super::clean_up::clean_up;
use super::options::{Options, Scorer};
use super::prompt::Prompt;
use crate::suite::{Answered, FINAL, FailureClass, Item, Score, read_final};
use earnest_answer::reader::Form;
use earnest_answer::split_thinking;
use earnest_answer::{CodeOutcome, CodeRunner};

/// Names of the suite's own scorers.
pub(super) const STUDY: &str = "study";
/// Right by the study and without another question behind the answer.
pub(super) const STUDY_STRICT: &str = "study_strict";
/// The last statement of a final answer, with its sign and unit.
pub(super) const STRICT: &str = "strict";
/// The last number, wherever it stands.
pub(super) const FLEXIBLE: &str = "flexible";
/// Metric and reason: the completion goes on with another question.
pub(super) const BABBLING: &str = "babbling";

/// All scorers, the given one first.
pub(super) fn scorers(chosen: Scorer) -> Vec<&'static str> {
    let mut scorers = vec![STUDY, STUDY_STRICT, STRICT, FLEXIBLE, FINAL];
    scorers.sort_by_key(|name| *name != chosen.name());
    scorers
}

/// Result of an extraction.
struct Found {
    value: Option<f64>,
    text: Option<String>,
    label: Label,
    /// Reason for a function returning no number, in words.
    reason: Option<String>,
}

/// The score. Completions of conversations are scored without their thinking; nothing else is cut, since the study's scorers cut
/// themselves. `final` never sees thinking.
pub(super) fn score(options: &Options, item: &Item, answered: &Answered<'_>, runner: &dyn CodeRunner) -> Score {
    let truth: f64 = item.gold.parse().unwrap_or(f64::NAN);
    let visible = if options.chat { split_thinking(answered.completion).visible } else { answered.completion.into() };
    // As the study decodes; its extractor never sees the spaces.
    let response = clean_up(&visible);
    let code = item.task.parse::<Prompt>().is_ok_and(Prompt::is_code);
    let found = if code { run(&response, runner) } else { read(&response) };
    let study = correct(found.value, truth);
    let babbling = is_babbling(&response);
    let chosen = options.scorer.name();
    let mut score = Score::default();
    score.add_scorer(chosen, STUDY, study, found.text.clone());
    score.add_scorer(chosen, STUDY_STRICT, study && !babbling, found.text.clone());
    // It reads what the study reads.
    score.evidence.readings.remove(STUDY_STRICT);
    let mut none = None;
    if code {
        // A function has one value, whoever reads it; what differs is how a text is read.
        for name in [STRICT, FLEXIBLE, FINAL] {
            score.add_scorer(chosen, name, study, found.text.clone());
            score.evidence.readings.remove(name);
        }
    } else {
        for (name, value) in [(STRICT, strict::read(&visible)), (FLEXIBLE, flexible::read(&visible))] {
            score.add_scorer(chosen, name, correct(value, truth), value.map(|value| value.to_string()));
        }
        let reading = read_final(item, Form::Number, answered);
        let value = reading.answer.as_ref().ok().and_then(|answer| answer.to_f64());
        score.add_final(chosen, correct(value, truth), &reading);
        none = reading.answer.err();
    }
    score.evidence.reason = found.reason.clone();
    score.metrics.insert(BABBLING, f64::from(babbling));
    score.failure = (!score.correct).then(|| match (options.scorer, none) {
        (Scorer::StudyStrict, _) if study => FailureClass::Babbling,
        (Scorer::Final, Some(none)) => none.into(),
        (Scorer::Strict | Scorer::Flexible, _) if !code && score.answer.is_none() => FailureClass::NoNumber,
        (Scorer::Strict | Scorer::Flexible | Scorer::Final, _) if !code => FailureClass::Wrong,
        // The class of Figures 9 to 11.
        _ => found.label.into(),
    });
    score
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

/// Reason for a function returning no number.
fn reason(outcome: &CodeOutcome) -> Option<String> {
    match outcome {
        CodeOutcome::Number(_) | CodeOutcome::None | CodeOutcome::TimeLimit | CodeOutcome::MemoryLimit => None,
        CodeOutcome::Other(class) => Some(format!("it returned a value of type {class}")),
        CodeOutcome::Raised { message, .. } => Some(message.clone()),
        CodeOutcome::Crashed(how) => Some(how.clone()),
        CodeOutcome::Unavailable(why) => Some(why.clone()),
    }
}
