//! The final answer of a completion, read as a careful person would. `docs/answers.md` has the rule in a page.
//!
//! [`read`] takes thinking out, divides what is left into tokens (`token`), asks the prompt what was asked (`question`), finds
//! what every sentence says of its numbers (`mention`), and takes the number with the most evidence (`decide`).

use std::borrow::Cow;

mod alone;
mod asks;
mod clause;
mod compared;
mod cue;
mod decide;
mod equation;
mod expression;
mod feature;
mod language;
mod lexer;
mod mark;
mod markup;
mod mention;
mod nothing;
mod numeral;
mod pair;
mod piece;
mod question;
mod reading;
mod refusal;
mod relate;
mod roles;
mod scan;
mod token;
mod units;
mod value;
mod vocabulary;
mod words;

#[cfg(test)]
mod tests;

pub use feature::Feature;
pub use reading::{Answer, Asked, Form, Mark, NoAnswer, Reading};

/// True if two spellings denote one number.
pub fn same_number(a: &str, b: &str) -> bool {
    value::same(a, b)
}

use super::thinking::{opened_by, visible};

/// Reads the final answer that a completion gives to what was asked. Linear in the two texts.
///
/// `truncated` says that the token budget ended the completion, so that its last number may be cut.
pub fn read(asked: &Asked<'_>, completion: &str, truncated: bool) -> Reading {
    let (whole, before) = whole(asked, completion);
    let shown = visible(&whole);
    let text = shown.text(&whole);
    let question = question::Question::new(asked, &text);
    // Text behind which thinking goes on is whole, whatever the budget did to the thinking.
    let mut reading = decide::decide(&question, &text, truncated && !shown.unclosed);
    let has_digits = |text: &str| text.contains(numeral::is_digit);
    if shown.has_thinking && reading.answer.is_err() && !has_digits(&text) {
        reading.only_in_thinking = has_digits(&whole);
        if text.trim().is_empty() {
            reading.answer = Err(NoAnswer::OnlyThinking);
        }
    }
    if let Ok(Answer { span, .. }) = &mut reading.answer {
        // Where each piece begins in the text that is read: a line end stands between two.
        let mut start = 0;
        for piece in &shown.pieces {
            if span.start <= start + piece.len() {
                let shift = |at: usize| (at - start + piece.start).saturating_sub(before);
                *span = shift(span.start)..shift(span.end);
                break;
            }
            start += piece.len() + 1;
        }
    }
    reading
}

/// A completion with the marker by which the prompt opened its thinking, and the marker's length.
fn whole<'c>(asked: &Asked<'_>, completion: &'c str) -> (Cow<'c, str>, usize) {
    match opened_by(asked.prompt) {
        Some(marker) => (Cow::Owned(format!("{marker}{completion}")), marker.len()),
        None => (Cow::Borrowed(completion), 0),
    }
}

/// Evidence in a completion: features of every number, by its spelling, and those of there being no answer. For those who fit the weights.
pub fn evidence(asked: &Asked<'_>, completion: &str, truncated: bool) -> (Vec<(String, Vec<Feature>)>, Vec<Feature>) {
    let (whole, _) = whole(asked, completion);
    let shown = visible(&whole);
    let text = shown.text(&whole);
    let question = question::Question::new(asked, &text);
    let tokens = token::Tokens::new(&text, question.style, question.language);
    let scan = scan::Scan::new(&question, &tokens, truncated && !shown.unclosed);
    let evidence = decide::evidence(&scan);
    let read = |mention: &mention::Mention| (decide::canonical(&scan, mention.at), mention.features.iter().collect());
    let mentions = evidence.mentions.iter().map(read).collect();
    (mentions, evidence.none.iter().collect())
}
