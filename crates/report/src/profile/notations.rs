//! The same numbers in several notations, paired.
use std::collections::BTreeMap;

use serde::Serialize;

use earnest_stats::mcnemar::PairedCounts;
use earnest_stats::{holm, paired_score_interval};
use earnest_tasks::suite::profile::{Notation, NotationQuestion, notation_p};

use crate::ReportError;
use earnest_eval::PromptRenderer;
use earnest_results::Sample;
use earnest_results::store::{RunRecord, Store};

/// Level at which a difference holds.
const LEVEL: f64 = 0.05;

/// Largest difference of shares that counts as none.
const ALIKE: f64 = 0.2;

/// Share of right answers in plain digits below which there is too little to lose.
const ENOUGH: f64 = 0.5;

/// Verdict of the answers on a notation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum NotationVerdict {
    /// The difference to plain digits holds.
    Differs,
    /// No difference holds, and the interval is within 20 points.
    Alike,
    /// Neither: a difference of 20 points may be there.
    NotDecided,
}

/// Answers in a notation, beside those to the same numbers in plain digits.
#[derive(Debug, Clone, Serialize)]
pub struct NotationResult {
    pub notation: Notation,
    /// Question about the numbers.
    pub question: NotationQuestion,
    /// Digits of the numbers.
    pub length: usize,
    pub right: usize,
    pub asked: usize,
    /// Difference to plain digits, paired by the operands, with Tango's 95 % interval; none for plain digits themselves.
    pub difference: Option<f64>,
    pub low: Option<f64>,
    pub high: Option<f64>,
    /// Exact p value of McNemar's test after Holm's adjustment over the notations.
    pub p_holm: Option<f64>,
    /// True if it is below 5 %.
    pub holds: bool,
    /// None for plain digits themselves.
    pub verdict: Option<NotationVerdict>,
    /// An example of the operands, as asked.
    pub example: String,
    /// Tokens of the example, bytes of a part of a character as `<E0>`; none if the model's tokenizer is not at hand.
    pub tokens: Option<Vec<String>>,
}

/// Answers as they are read.
#[derive(Default)]
pub(super) struct Notations {
    /// By notation: correctness by the number of the question.
    right: BTreeMap<Notation, BTreeMap<usize, bool>>,
    length: usize,
    question: NotationQuestion,
    /// The first sample of each notation with its index in the plan.
    first: BTreeMap<Notation, (usize, Sample)>,
}

impl Notations {
    pub(super) fn add(&mut self, notation: Notation, index: usize, sample: Sample) {
        let number = |name: &str| sample.covariates.get(name).and_then(serde_json::Value::as_u64);
        let (Some(pair), Some(score)) = (number("pair"), &sample.score) else { return };
        self.length = number("length").map_or(self.length, |length| length as usize);
        self.question = NotationQuestion::of(&sample.covariates);
        self.right.entry(notation).or_default().insert(pair as usize, score.correct);
        self.first.entry(notation).or_insert((index, sample));
    }

    /// Results of all notations that were asked.
    pub(super) fn results(&self, store: &Store, run: &RunRecord) -> Result<Vec<NotationResult>, ReportError> {
        let plain = self.right.get(&Notation::Plain);
        let renderer = if self.right.is_empty() { None } else { PromptRenderer::open(&run.manifest) };
        let mut questions = store.questions(run);
        let mut found = Vec::new();
        let mut p_values = Vec::new();
        for (&notation, answers) in &self.right {
            let (mut example, mut tokens) = (String::new(), None);
            if let Some((index, sample)) = self.first.get(&notation)
                && let Some(asked) = questions.of_sample(*index, sample)?
            {
                example = operands(&asked.item.segments.question).unwrap_or_default();
                let prompt = renderer.as_ref().and_then(|renderer| renderer.prompt_tokens(&asked.item, sample));
                tokens = prompt.and_then(|tokens| within(&tokens, &example));
            }
            let mut result = NotationResult {
                notation,
                question: self.question,
                length: self.length,
                right: answers.values().filter(|right| **right).count(),
                asked: answers.len(),
                difference: None,
                low: None,
                high: None,
                p_holm: None,
                holds: false,
                verdict: None,
                example,
                tokens,
            };
            if let Some(plain) = plain.filter(|_| notation != Notation::Plain) {
                let paired = |(index, right): (&usize, &bool)| Some((*index, (*plain.get(index)?, *right)));
                let pairs: BTreeMap<usize, (bool, bool)> = answers.iter().filter_map(paired).collect();
                let counts = PairedCounts::of(pairs.values().copied());
                if let Some((low, high)) = paired_score_interval(&counts, 0.95) {
                    let gained = counts.second_only as f64 - counts.first_only as f64;
                    (result.difference, result.low, result.high) =
                        (Some(gained / pairs.len() as f64), Some(low), Some(high));
                    p_values.push(notation_p(&pairs));
                }
            }
            found.push(result);
        }
        let adjusted = holm(&p_values).unwrap_or(p_values);
        let enough = found.first().is_some_and(has_enough);
        let compared = found.iter_mut().filter(|result| result.difference.is_some());
        for (result, p) in compared.zip(adjusted) {
            (result.p_holm, result.holds) = (Some(p), p < LEVEL);
            result.verdict = Some(verdict(result, enough));
        }
        Ok(found)
    }
}

fn verdict(result: &NotationResult, enough: bool) -> NotationVerdict {
    let within = |end: Option<f64>| end.is_some_and(|end| end.abs() <= ALIKE);
    match result.holds {
        true => NotationVerdict::Differs,
        false if enough && within(result.low) && within(result.high) => NotationVerdict::Alike,
        false => NotationVerdict::NotDecided,
    }
}

/// True if so much is right in plain digits that a loss would show.
pub(super) fn has_enough(plain: &NotationResult) -> bool {
    plain.right as f64 >= ENOUGH * plain.asked as f64
}

/// The numbers of a question as they are written there.
fn operands(question: &str) -> Option<String> {
    let question = question.split(", example:").next()?;
    Some(question.rsplit_once(": ")?.1.trim_end_matches('=').trim().to_owned())
}

/// The tokens of a prompt that make up a part of its text.
fn within(tokens: &[Vec<u8>], part: &str) -> Option<Vec<String>> {
    let text = tokens.concat();
    let part = part.as_bytes();
    let from = text.windows(part.len().max(1)).rposition(|window| window == part)?;
    let to = from + part.len();
    let mut at = 0;
    let mut found = Vec::new();
    for token in tokens {
        let end = at + token.len();
        if end > from && at < to {
            found.push(shown(token));
        }
        at = end;
    }
    Some(found)
}

/// The text of a token; bytes that are no whole character as `<E0>`.
fn shown(token: &[u8]) -> String {
    let mut text = String::new();
    for chunk in token.utf8_chunks() {
        text.push_str(chunk.valid());
        chunk.invalid().iter().for_each(|byte| text += &format!("<{byte:02X}>"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_of_the_operands_are_found() {
        let tokens = ["Add", " two", ":", " 48", "21", " +", " 7", " ="].map(|text| text.as_bytes().to_vec());
        assert_eq!(within(&tokens, "4821 + 7").unwrap(), [" 48", "21", " +", " 7"]);
        assert_eq!(within(&tokens, "99"), None);
        // Devanagari four and eight, of which the tokenizer knows the bytes only.
        let tokens = [&b"Add: "[..], b"\xe0", b"\xa5", b"\xaa", b"\xe0\xa5", b"\xae", b" ="].map(<[u8]>::to_vec);
        assert_eq!(within(&tokens, "\u{96a}\u{96e}").unwrap(), ["<E0>", "<A5>", "<AA>", "<E0><A5>", "<AE>"]);
        assert_eq!(operands("Put the number in parentheses only: one, two, example: (number)").unwrap(), "one, two");
    }

    #[test]
    fn verdicts_need_a_narrow_interval_and_something_to_lose() {
        let result = |holds, low, high| NotationResult {
            notation: Notation::Words,
            question: NotationQuestion::Sum,
            length: 4,
            right: 16,
            asked: 32,
            difference: Some(0.0),
            low: Some(low),
            high: Some(high),
            p_holm: Some(0.5),
            holds,
            verdict: None,
            example: String::new(),
            tokens: None,
        };
        assert_eq!(verdict(&result(true, -0.9, -0.5), true), NotationVerdict::Differs);
        assert_eq!(verdict(&result(false, -0.12, 0.08), true), NotationVerdict::Alike);
        assert_eq!(verdict(&result(false, -0.12, 0.08), false), NotationVerdict::NotDecided);
        assert_eq!(verdict(&result(false, -0.25, 0.01), true), NotationVerdict::NotDecided);
        let plain = |right| NotationResult { right, ..result(false, 0.0, 0.0) };
        assert!(!has_enough(&plain(15)) && has_enough(&plain(16)));
    }
}
