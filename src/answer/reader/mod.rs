//! The final answer of a completion, read as a careful person would. `docs/answers.md` has the rule in a page.
mod reading;
mod value;

pub use reading::{Answer, Asked, Form, Mark, NoAnswer, Reading};

/// Reads the final answer that a completion gives to what was asked. Linear in the two texts.
///
/// `truncated` says that the token budget ended the completion, so that its last number may be cut.
pub fn read(asked: &Asked<'_>, completion: &str, truncated: bool) -> Reading {
    let _ = asked;
    let visible = super::split_thinking(completion).visible;
    let normalised = super::Normalised::new(&visible);
    let last = super::Candidates::new(&normalised, super::Shape::Integer).last();
    let complete = last.filter(|last| !truncated || !normalised.as_str().ends_with(last));
    match complete {
        Some(text) => Reading::of(Answer { text: text.to_owned(), span: 0..completion.len(), mark: Mark::Sentence }),
        None => Reading::none(NoAnswer::NoNumber),
    }
}
