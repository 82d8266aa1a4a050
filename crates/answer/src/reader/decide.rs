//! The answer among the mentions of a completion: evidence is weighed, and the number with the most of it is the answer, unless there is
//! more evidence for there being none.
use std::cmp::Ordering;
use std::collections::HashMap;

use super::feature::{Feature as F, Features, these};
use super::mention::Mention;
use super::nothing::nothing;
use super::piece::{Piece, pieces};
use super::question::Question;
use super::reading::{Answer, Mark, NoAnswer, Reading};
use super::refusal;
use super::relate::{keys, relate};
use super::scan::Scan;
use super::token::{Kind, Number, Tokens};
use super::value;
use super::vocabulary::Meaning;
use crate::number::words::{scale, scaled};

/// Most rivals that are told.
const MOST_RIVALS: usize = 8;

/// A completion's mentions with what speaks for each, and what speaks for there being no answer.
#[derive(Debug)]
pub(super) struct Evidence {
    pub(super) mentions: Vec<Mention>,
    pub(super) none: Features,
    /// Another question follows: the answer to the first is whole.
    ended: bool,
}

/// The answer of a text without thinking.
pub(super) fn decide(question: &Question, text: &str, truncated: bool) -> Reading {
    if text.trim().is_empty() {
        return Reading::none(NoAnswer::Empty);
    }
    let tokens = Tokens::new(text, question.style, question.language);
    let scan = Scan::new(question, &tokens, truncated);
    conclude(&scan, &evidence(&scan))
}

/// Gathers the evidence of a text.
pub(super) fn evidence(scan: &Scan<'_>) -> Evidence {
    let pieces = pieces(scan.tokens);
    let refusals = refusal::undetermined(scan.text);
    let (mut mentions, mut corrected_at, mut none) = (Vec::new(), Vec::new(), Features::default());
    let (mut so_far, mut ended, mut last_piece) = (SoFar::default(), false, 0);
    for (index, piece) in pieces.iter().enumerate() {
        if scan.begins_another_question(piece, so_far.answered) || so_far.done && scan.is_next_exercise(piece) {
            ended = true;
            break;
        }
        last_piece = index;
        if scan.corrects(&piece.range) {
            corrected_at.push(index);
        }
        let mut found = scan.mentions(index, &pieces);
        so_far.enter(scan, piece, &found);
        let tokens = &scan.tokens.tokens[piece.range.clone()];
        let first = refusals.partition_point(|&at| at < tokens[0].start);
        let refuses = refusals.get(first).is_some_and(|&at| at < tokens[tokens.len() - 1].end);
        // "If she also worked on Sunday, it would be $240." behind the answer
        let settled = so_far.answered || so_far.refused && !refuses;
        so_far.refused |= refuses;
        for mention in &mut found {
            so_far.mark(mention, piece, settled);
        }
        so_far.leave(scan, piece, &found);
        mentions.extend(found);
    }
    for mention in mentions.iter_mut().filter(|mention| Some(mention.at) == so_far.chosen) {
        mention.features.remove(these![Choice]);
        mention.mark_as(F::Chosen);
    }
    let read = &pieces[..pieces.len().min(last_piece + 1)];
    relate(scan, read, &mut mentions, &corrected_at, scan.truncated && !ended);
    none.set(F::NoneAnswered, so_far.done);
    nothing(scan, read, &mentions, ended, !refusals.is_empty(), &mut none);
    Evidence { mentions, none, ended }
}

/// The state of a text up to one of its pieces: what they have said.
#[derive(Default)]
struct SoFar {
    /// A number was stated as the answer.
    answered: bool,
    /// The result of an instruction was given.
    done: bool,
    /// It was said that there is no answer.
    refused: bool,
    /// An explanation has begun.
    explained: bool,
    /// The last heading stands over what the question gives.
    given: bool,
    /// The last heading stands over a check.
    section: bool,
    /// The line before says that the answer stands on this one.
    headed: bool,
    /// Brackets that are open in the line.
    depth: usize,
    /// The option that was chosen.
    chosen: Option<usize>,
}

impl SoFar {
    /// Takes in the beginning of a piece.
    fn enter(&mut self, scan: &Scan<'_>, piece: &Piece, found: &[Mention]) {
        let range = &piece.range;
        let marked = scan.kind(range.end - 1) == Kind::Colon || scan.kind(range.start) == Kind::Bold;
        if piece.heading || piece.begins_line && marked {
            let checks = scan.opens_with(range, 3, Meaning::CHECKS);
            if piece.heading || checks {
                self.section = self.answered && checks;
            }
            self.given = scan.is_about_givens(range);
        }
        self.explained |= self.answered
            && piece.begins_line
            && scan.words(range).any(|at| scan.means(at, Meaning::EXPLAINS))
            && found.iter().all(|mention| mention.features.tier() < 2);
        if piece.begins_line {
            self.depth = 0;
        }
    }

    /// Marks a number with what was said before its piece.
    fn mark(&self, mention: &mut Mention, piece: &Piece, settled: bool) {
        let (headed, features) = (self.headed && piece.begins_line, &mut mention.features);
        for (feature, holds) in [
            (F::Restates, self.given),
            (F::Hypothetical, settled && features.has(F::IfWould)),
            (F::Explained, self.explained),
            (F::InBrackets, self.depth > 0),
            (F::CheckSection, self.section),
            (F::Headed, headed),
        ] {
            features.set(feature, holds);
        }
        if headed && mention.mark != Mark::Boxed {
            mention.mark = Mark::Marker;
        }
    }

    /// Takes in what a piece says.
    fn leave(&mut self, scan: &Scan<'_>, piece: &Piece, found: &[Mention]) {
        let range = &piece.range;
        let choice = scan.chosen_option(range);
        self.chosen = choice.or(self.chosen);
        let goes_on = self.headed && scan.words(range).next().is_none();
        self.headed = choice.is_none() && found.is_empty() && (goes_on || heads(scan, piece));
        for at in range.clone() {
            match scan.kind(at) {
                Kind::Open => self.depth += 1,
                Kind::Close => self.depth = self.depth.saturating_sub(1),
                _ => {}
            }
        }
        let results = |features: &Features| {
            let alone = !features.any(these![RivalBehind RivalBefore InList])
                && features.any(these![Continues Whole])
                && features.has(F::InForm);
            alone || features.has(F::AskedEquation) && features.has(F::EqualsLast)
        };
        let answers = |features: &Features| match features.tier() {
            1 => features.any(these![OnlyOfSentence EndsSentence]),
            tier => tier >= 2,
        };
        self.done |= scan.question.instructs && found.iter().any(|mention| results(&mention.features));
        self.answered |= found.iter().any(|mention| answers(&mention.features));
    }
}

/// A line that says that the answer stands on the next one: "**Answer:**", "### Final answer".
fn heads(scan: &Scan<'_>, piece: &Piece) -> bool {
    let range = &piece.range;
    let any = |says: &dyn Fn(usize) -> bool| scan.words(range).any(says);
    let working = any(&|at| scan.is(at, "solution lösung solución solução soluzione step steps"));
    let (names, sought) = (any(&|at| scan.means(at, Meaning::ANSWER)), any(&|at| scan.means(at, Meaning::SEEKS)));
    piece.begins_line && !piece.asks && names && !working && !sought && scan.words(range).count() <= 6
}

/// The reading that the evidence comes to.
fn conclude(scan: &Scan<'_>, evidence: &Evidence) -> Reading {
    let text = |mention: &Mention| scan.number(mention.at).map(|number| number.text.clone());
    let mut reading = Reading::none(NoAnswer::NoNumber);
    let states = |features: &Features| features.tier() >= 3 || features.any(these![RivalBehind RivalBefore]);
    let stated = evidence.mentions.iter().filter(|mention| states(&mention.features));
    reading.example_echoed =
        stated.clone().any(|mention| mention.features.has(F::Example) && mention.mark != Mark::Sentence);
    // The evidence for a value is that of all its mentions.
    let keys = keys(scan, &evidence.mentions);
    let weights: Vec<f64> = evidence.mentions.iter().map(|mention| mention.features.score().exp()).collect();
    let mut sums: HashMap<usize, f64> = HashMap::new();
    for (key, weight) in keys.iter().zip(&weights) {
        *sums.entry(*key).or_default() += weight;
    }
    let score = |index: usize| (sums[&keys[index]], weights[index]);
    let best = (0..weights.len()).max_by(|&a, &b| score(a).partial_cmp(&score(b)).unwrap_or(Ordering::Equal));
    let best = best.map(|index| (&evidence.mentions[index], score(index).0));
    let none = evidence.none.score().exp();
    let taken = best.filter(|(mention, score)| *score > none && !mention.features.has(F::Cut));
    let chosen = taken.map(|(mention, _)| mention);
    reading.answers_example = chosen.is_some_and(|mention| mention.features.has(F::Example));
    let answered = chosen.and_then(text);
    for rival in stated.filter(|mention| !mention.features.has(F::Example)).filter_map(text) {
        let known =
            reading.rivals.contains(&rival) || answered.as_ref().is_some_and(|answer| value::same(answer, &rival));
        if !known && reading.rivals.len() < MOST_RIVALS {
            reading.rivals.push(rival);
        }
    }
    reading.answer = match chosen.and_then(|mention| Some((mention, scan.number(mention.at)?))) {
        Some((mention, Number { start, end, .. })) => {
            Ok(Answer { text: canonical(scan, mention.at), span: *start..*end, mark: mention.mark })
        }
        None => Err(reason(scan, evidence, best.map(|(mention, _)| mention))),
    };
    reading
}

/// The reason for there being no answer.
fn reason(scan: &Scan<'_>, evidence: &Evidence, best: Option<&Mention>) -> NoAnswer {
    let rivals =
        best.is_some_and(|mention| mention.features.any(these![RivalBefore RivalBehind Contradicted OtherLines]));
    match () {
        () if evidence.none.has(F::NoneRefused) => NoAnswer::Refused,
        () if rivals => NoAnswer::Rivals,
        () if scan.truncated && !evidence.ended => NoAnswer::Truncated,
        () if refusal::is_refusal(scan.text) => NoAnswer::Refused,
        () if !scan.numbers.is_empty() => NoAnswer::Unevaluated,
        () => NoAnswer::NoNumber,
    }
}

/// A number's text with a power of ten in words behind it multiplied in, unless the question's own numbers are in it.
pub(super) fn canonical(scan: &Scan<'_>, at: usize) -> String {
    let Some(number) = scan.number(at) else { return String::new() };
    // "5 degrees below zero"
    let below = (at + 1..at + 4).any(|word| scan.is(word, "below") && scan.is(word + 1, "zero"));
    if below && !number.text.starts_with('-') {
        return format!("-{}", number.text);
    }
    if let Kind::Word(_) = scan.kind(at + 1)
        && let Some(power) = scale(scan.slice(at + 1))
        && !scan.question.scales.contains(&power)
        && let Some(scaled) = scaled(&number.text, power)
    {
        return scaled;
    }
    number.text.clone()
}
