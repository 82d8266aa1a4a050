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

use super::thinking::{Parts, Visible, opened_by, split_thinking, visible};

/// Reads the final answer that a completion gives to what was asked. Linear in the two texts.
///
/// `truncated` says that the token budget ended the completion, so that its last number may be cut.
pub fn read(asked: &Asked<'_>, completion: &str, truncated: bool) -> Reading {
    let (whole, before) = whole(asked, completion);
    let mut reading = read_whole(asked, &whole, truncated);
    if let Ok(Answer { span, .. }) = &mut reading.answer {
        *span = span.start.saturating_sub(before)..span.end.saturating_sub(before);
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
    let Parts { visible: text, unclosed, .. } = split_thinking(&whole);
    let question = question::Question::new(asked, &text);
    let tokens = token::Tokens::new(&text, question.style, question.language);
    let scan = scan::Scan::new(&question, &tokens, truncated && !unclosed);
    let evidence = decide::evidence(&scan);
    let mentions = evidence
        .mentions
        .iter()
        .map(|mention| (decide::canonical(&scan, mention.at), mention.features.iter().collect()))
        .collect();
    (mentions, evidence.none.iter().collect())
}

fn read_whole(asked: &Asked<'_>, completion: &str, truncated: bool) -> Reading {
    let Visible { pieces, has_thinking, unclosed } = visible(completion);
    let mut text = String::new();
    // Where each piece begins in the text that is read.
    let mut starts = Vec::with_capacity(pieces.len());
    for piece in &pieces {
        if !text.is_empty() {
            text.push('\n');
        }
        starts.push(text.len());
        text.push_str(&completion[piece.clone()]);
    }
    // Text behind which thinking goes on is whole, whatever the budget did to the thinking.
    let truncated = truncated && !unclosed;
    let question = question::Question::new(asked, &text);
    let mut reading = decide::decide(&question, &text, truncated);
    let has_digits = |text: &str| text.contains(numeral::is_digit);
    if has_thinking && reading.answer.is_err() && !has_digits(&text) {
        reading.only_in_thinking = has_digits(completion);
        if text.trim().is_empty() {
            reading.answer = Err(NoAnswer::OnlyThinking);
        }
    }
    if let Ok(answer) = &mut reading.answer {
        let piece = starts.iter().rposition(|&start| start <= answer.span.start).unwrap_or(0);
        let shift =
            |at: usize| at - starts.get(piece).copied().unwrap_or(0) + pieces.get(piece).map_or(0, |piece| piece.start);
        answer.span = shift(answer.span.start)..shift(answer.span.end);
    }
    reading
}
