//! The answer among the mentions of a completion: evidence is weighed, and the number with the most of it is the answer, unless there is
//! more evidence for there being none.
use std::collections::HashMap;

use super::feature::{Feature as F, Features};
use super::mention::Mention;
use super::nothing::nothing;
use super::piece::{Piece, pieces};
use super::question::Question;
use super::reading::{Answer, Mark, NoAnswer, Reading};
use super::refusal;
use super::relate::{keys, relate};
use super::scan::Scan;
use super::token::{Kind, Tokens};
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
    let evidence = evidence(&scan);
    conclude(&scan, &evidence)
}

/// Gathers the evidence of a text.
pub(super) fn evidence(scan: &Scan<'_>) -> Evidence {
    let pieces = pieces(scan.tokens);
    let refusals = refusal::undetermined(scan.tokens.text);
    let mut mentions: Vec<Mention> = Vec::new();
    let mut none = Features::default();
    let mut ended = false;
    let mut last_piece = 0;
    let (mut section, mut headed, mut corrected_at): (bool, bool, Vec<usize>) = (false, false, Vec::new());
    let mut answered = false;
    let mut chosen = None;
    let mut given = false;
    let mut asked_done = false;
    let (mut depth, mut explained, mut refused): (usize, bool, Option<usize>) = (0, false, None);
    for (index, piece) in pieces.iter().enumerate() {
        if scan.begins_another_question(piece, answered) || asked_done && scan.is_next_exercise(piece) {
            ended = true;
            break;
        }
        last_piece = index;
        let range = &piece.range;
        let title = piece.heading
            || piece.begins_line && scan.kind(range.end - 1) == Kind::Colon
            || piece.begins_line && scan.kind(range.start) == Kind::Bold;
        if title {
            let checks = scan.opens_with(range, 3, Meaning::CHECKS);
            if piece.heading || checks {
                section = answered && checks;
            }
        }
        if title {
            given = scan.is_about_givens(range);
        }
        if scan.corrects(range) {
            corrected_at.push(index);
        }
        let mut found = scan.mentions(index, &pieces);
        let explains = answered
            && piece.begins_line
            && scan.words(range).any(|at| scan.tokens.means(at, Meaning::EXPLAINS))
            && found.iter().all(|mention| mention.features.tier() < 2);
        explained |= explains;
        let (from, to) = (scan.tokens.tokens[range.start].start, scan.tokens.tokens[range.end - 1].end);
        let first = refusals.partition_point(|&at| at < from);
        if refusals.get(first).is_some_and(|&at| at < to) {
            refused = Some(index);
        }
        if piece.begins_line {
            depth = 0;
        }
        for mention in &mut found {
            if given {
                mention.features.add(F::Restates);
            }
            // "If she also worked on Sunday, it would be $240." behind the answer
            if (answered || refused.is_some_and(|at| at < index)) && mention.features.has(F::IfWould) {
                mention.features.add(F::Hypothetical);
            }
            mention.features.set(F::Explained, explained);
            if depth > 0 {
                mention.features.add(F::InBrackets);
            }
            mention.features.set(F::CheckSection, section);
            mention.features.set(F::Headed, headed && piece.begins_line);
            if headed && piece.begins_line {
                mention.mark = if mention.mark == Mark::Boxed { Mark::Boxed } else { Mark::Marker };
            }
        }
        let choice = scan.chosen_option(range);
        chosen = choice.or(chosen);
        headed = choice.is_none()
            && found.is_empty()
            && (headed && scan.words(range).next().is_none() || heads(scan, piece));
        for at in range.clone() {
            match scan.kind(at) {
                Kind::Open => depth += 1,
                Kind::Close => depth = depth.saturating_sub(1),
                _ => {}
            }
        }
        asked_done |= scan.question.instructs
            && found.iter().any(|mention| {
                !mention.features.any(&[F::RivalBehind, F::RivalBefore, F::InList])
                    && mention.features.any(&[F::Continues, F::Whole])
                    && mention.features.has(F::InForm)
                    || mention.features.has(F::AskedEquation) && mention.features.has(F::EqualsLast)
            });
        answered |= found.iter().any(|mention| {
            let tier = mention.features.tier();
            tier >= 2 || tier == 1 && mention.features.any(&[F::OnlyOfSentence, F::EndsSentence])
        });
        mentions.extend(found);
    }
    for mention in mentions.iter_mut().filter(|mention| Some(mention.at) == chosen) {
        mention.features.remove(&[F::Choice]);
        mention.features.add(F::Chosen);
        mention.mark = Mark::Marker;
    }
    let range = ..pieces.len().min(last_piece + 1);
    relate(scan, &pieces[range], &mut mentions, &corrected_at, scan.truncated && !ended);
    none.set(F::NoneAnswered, asked_done);
    nothing(scan, &pieces[..pieces.len().min(last_piece + 1)], &mentions, ended, !refusals.is_empty(), &mut none);
    Evidence { mentions, none, ended }
}

/// A line that says that the answer stands on the next one: "**Answer:**", "### Final answer".
fn heads(scan: &Scan<'_>, piece: &Piece) -> bool {
    let range = &piece.range;
    let working = scan.words(range).any(|at| scan.is(at, "solution lösung solución solução soluzione step steps"));
    let names = scan.words(range).any(|at| scan.tokens.means(at, Meaning::ANSWER));
    let sought = scan.words(range).any(|at| scan.tokens.means(at, Meaning::SEEKS));
    piece.begins_line && !piece.asks && names && !working && !sought && scan.words(range).count() <= 6
}

/// The reading that the evidence comes to.
fn conclude(scan: &Scan<'_>, evidence: &Evidence) -> Reading {
    let text = |mention: &Mention| scan.number(mention.at).map(|number| number.text.clone());
    let mut reading = Reading::none(NoAnswer::NoNumber);
    let stated = evidence
        .mentions
        .iter()
        .filter(|mention| mention.features.tier() >= 3 || mention.features.any(&[F::RivalBehind, F::RivalBefore]));
    reading.example_echoed =
        stated.clone().any(|mention| mention.features.has(F::Example) && mention.mark != Mark::Sentence);
    // The evidence for a value is that of all its mentions.
    let keys = keys(scan, &evidence.mentions);
    let weights: Vec<f64> = evidence.mentions.iter().map(|mention| mention.features.score().exp()).collect();
    let mut sums: HashMap<usize, f64> = HashMap::new();
    for (key, weight) in keys.iter().zip(&weights) {
        *sums.entry(*key).or_default() += weight;
    }
    let best = (0..weights.len()).map(|index| (&evidence.mentions[index], sums[&keys[index]], weights[index])).fold(
        None,
        |best: Option<(&Mention, f64, f64)>, new| match best {
            Some(best) if (best.1, best.2) > (new.1, new.2) => Some(best),
            _ => Some(new),
        },
    );
    let best = best.map(|(mention, sum, _)| (mention, sum));
    let none = evidence.none.score().exp();
    let chosen = best
        .filter(|(_, score)| *score > none)
        .map(|(mention, _)| mention)
        .filter(|mention| !mention.features.has(F::Cut));
    reading.answers_example = chosen.is_some_and(|mention| mention.features.has(F::Example));
    let answered = chosen.and_then(text);
    for rival in stated.filter(|mention| !mention.features.has(F::Example)).filter_map(text) {
        let known =
            reading.rivals.contains(&rival) || answered.as_ref().is_some_and(|answer| value::same(answer, &rival));
        if !known && reading.rivals.len() < MOST_RIVALS {
            reading.rivals.push(rival);
        }
    }
    reading.answer = match chosen {
        Some(mention) => match scan.number(mention.at) {
            Some(number) => {
                Ok(Answer { text: canonical(scan, mention.at), span: number.start..number.end, mark: mention.mark })
            }
            None => Err(NoAnswer::NoNumber),
        },
        None => Err(reason(scan, evidence, best.map(|(mention, _)| mention))),
    };
    reading
}

/// The reason for there being no answer.
fn reason(scan: &Scan<'_>, evidence: &Evidence, best: Option<&Mention>) -> NoAnswer {
    let rivals = best
        .is_some_and(|mention| mention.features.any(&[F::RivalBefore, F::RivalBehind, F::Contradicted, F::OtherLines]));
    match () {
        () if evidence.none.has(F::NoneRefused) => NoAnswer::Refused,
        () if rivals => NoAnswer::Rivals,
        () if scan.truncated && !evidence.ended => NoAnswer::Truncated,
        () if refusal::is_refusal(scan.tokens.text) => NoAnswer::Refused,
        () if !scan.tokens.numbers.is_empty() => NoAnswer::Unevaluated,
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
        && let Some(power) = scale(scan.tokens.slice(at + 1))
        && !scan.question.states_scale(power)
        && let Some(scaled) = scaled(&number.text, power)
    {
        return scaled;
    }
    number.text.clone()
}
