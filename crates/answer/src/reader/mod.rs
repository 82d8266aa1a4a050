//! The final answer of a completion, read as a careful person would. `docs/answers.md` has the rule in a page.
//!
//! [`read`] takes thinking out, divides what is left into tokens (`token`), asks the prompt what was asked (`question`), finds
//! what every sentence states (`statement`) and follows the statements to the last one that commits (`decide`).

mod choice;
mod decide;
mod declaration;
mod equation;
mod language;
mod lexer;
mod markup;
mod numeral;
mod piece;
mod question;
mod reading;
mod roles;
mod sentence;
mod statement;
mod token;
mod units;
mod value;
mod vocabulary;
mod words;

#[cfg(test)]
mod tests;

pub use reading::{Answer, Asked, Form, Mark, NoAnswer, Reading};

use super::thinking::{Visible, opened_by, visible};

/// Reads the final answer that a completion gives to what was asked. Linear in the two texts.
///
/// `truncated` says that the token budget ended the completion, so that its last number may be cut.
pub fn read(asked: &Asked<'_>, completion: &str, truncated: bool) -> Reading {
    match opened_by(asked.prompt) {
        // The prompt opened the thinking: the completion begins inside it.
        Some(marker) => {
            let whole = format!("{marker}{completion}");
            let mut reading = read_whole(asked, &whole, truncated);
            if let Ok(answer) = &mut reading.answer {
                answer.span =
                    answer.span.start.saturating_sub(marker.len())..answer.span.end.saturating_sub(marker.len());
            }
            reading
        }
        None => read_whole(asked, completion, truncated),
    }
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
    let has_digits = |text: &str| text.chars().any(|c| numeral::digit(c).is_some());
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
