//! From a completion to a score.
use std::sync::LazyLock;

use regex::Regex;

use super::{Scorer, Task, brackets};
use crate::suite::{Answered, FINAL, FailureClass, Item, Score, read_final};
use earnest_answer::reader::{Answer, Form, Reading};
use earnest_answer::{Candidates, Expected, Matches, Normalised, Shape, contains_number, distinct, split_thinking};

/// Names of the suite's own scorers; with thinking, each has a second entry with the suffix [`WITH_THINKING`].
pub(super) const COMPAT: &str = "compat";
pub(super) const BOUNDARY: &str = "boundary";
pub(super) const LAST_NUMBER: &str = "last_number";
pub(super) const WITH_THINKING: &str = "_with_thinking";

/// All scorers, the given one first.
pub(super) fn scorers(chosen: Scorer) -> Vec<&'static str> {
    let mut scorers = vec![BOUNDARY, COMPAT, LAST_NUMBER, FINAL];
    scorers.sort_by_key(|name| *name != chosen.name());
    scorers
}

/// Openings of refusals, in the models' own words.
static REFUSAL: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(
        r"(?i)\b(?:i\s+(?:can(?:no|['’])?t|am\s+(?:unable|not\s+able)|(?:do\s+not|don['’]t)\s+have\s+the\s+ability)|i['’]m\s+(?:unable|not\s+able|sorry)|as\s+an\s+ai\b|(?:unable|not\s+able)\s+to\s+(?:help|assist|compute|calculate|perform|process))",
    )
    .expect("the pattern is a constant and the tests use it")
});

/// Scores the visible answer by the three scorers of [`Matches`] and by the reader; the chosen one decides.
///
/// * `scorers`: `compat`, `boundary`, `last_number`, `final`; where the completion has thinking, also each of the first three
///   `..._with_thinking`, on the whole completion (the paper does not say which it scored).
/// * `answer`: the reader's answer under `final`; otherwise the last number of the expected answer's shape, but that answer
///   itself where `boundary` (or `compat`, if that decides) found it.
/// * `metrics`, on the visible answer: `digit_match` (share of the expected digits that `answer` has at the same place
///   from the right; surplus digits are free), `length_error` (digits too many or too few; all of them without an
///   answer), `distinct_candidates` (different numbers of the answer's shape that are not operands), `echo` (1 if every
///   operand is repeated), `thinking` (1 if the completion has thinking).
/// * `failure`, the first that applies: `truncated` (the budget ended it), `empty`, `format` (the right digits, written
///   in another form), `sign`, `refusal`, `echo` (no numbers but the operands), `no_number`, `wrong`; under `final` the reader's
///   own reasons where it found nothing; `malformed_gold` if the item's expected answer is none, which a stored item cannot have
///   unless it was damaged.
pub(super) fn score(scorer: Scorer, item: &Item, answered: &Answered<'_>) -> Score {
    let mut score = Score { failure: Some(FailureClass::MalformedGold), ..Score::default() };
    let Ok(expected) = Expected::parse(&item.gold) else { return score };
    let parts = split_thinking(answered.completion);
    let text = Normalised::new(&parts.visible);
    let chosen = scorer.name();

    let matches = Matches::of(&expected, &parts.visible, &text);
    let last = Candidates::new(&text, expected.shape()).last().map(str::to_owned);
    let found = |found: bool| if found { Some(expected.text().to_owned()) } else { last.clone() };
    for (name, right) in [(COMPAT, matches.compat), (BOUNDARY, matches.boundary)] {
        score.add_scorer(chosen, name, right, found(right));
        // They look for the expected answer and read none: there is nothing to show beside another scorer's.
        score.evidence.readings.remove(name);
    }
    score.add_scorer(chosen, LAST_NUMBER, matches.final_number, last.clone());
    if parts.has_thinking {
        let whole = Normalised::new(answered.completion);
        let whole = Matches::of(&expected, answered.completion, &whole);
        for (name, right) in [(COMPAT, whole.compat), (BOUNDARY, whole.boundary), (LAST_NUMBER, whole.final_number)] {
            score.scorers.insert(format!("{name}{WITH_THINKING}"), right);
        }
    }
    let reading = read_final(item, Form::Integer, answered);
    let is_right = |answer: &Answer| match expected.shape() {
        // The brackets of `(7)` are the prompt's, and no part of the number, except where they are all that was asked for: without
        // them `box` would be another `copy`.
        Shape::Parenthesised => {
            let digits = expected.digits();
            answer.is_same_as(&digits) && (item.task != Task::Box.id() || brackets::hold(&parts.visible, &digits))
        }
        Shape::Integer | Shape::Spaced => answer.is_same_as(expected.text()),
    };
    score.add_final(chosen, reading.answer.as_ref().is_ok_and(is_right), &reading);

    let operands: Vec<&str> = ["a", "b"].iter().filter_map(|name| item.covariates.get(*name)?.as_str()).collect();
    let (digit_match, length_error) = digit_metrics(&expected, score.answer.as_deref());
    let mut metric = |name: &str, value: f64| score.metrics.insert(name, value);
    metric("digit_match", digit_match);
    metric("length_error", length_error);
    // In a repeated `a-b` the second operand reads as a negative number. An operand that is the answer is a candidate.
    let negated: Vec<String> = operands.iter().map(|operand| format!("-{operand}")).collect();
    let known = operands.iter().copied().chain(negated.iter().map(String::as_str));
    let known: Vec<&str> = known.filter(|number| *number != expected.text()).collect();
    metric("distinct_candidates", distinct(&text, expected.shape(), &known) as f64);
    metric("thinking", f64::from(parts.has_thinking));
    // An item without recorded operands has no echo, neither present nor absent.
    if !operands.is_empty() {
        let echo = operands.iter().all(|operand| contains_number(&text, operand));
        metric("echo", f64::from(echo));
    }

    let class = match scorer {
        Scorer::Final => final_failure(&expected, answered, &reading, &operands),
        _ => failure(&expected, answered, &text, &operands),
    };
    score.failure = (!score.correct).then_some(class);
    score
}

/// Failure class of the reader's answer.
fn final_failure(
    expected: &Expected<'_>,
    answered: &Answered<'_>,
    reading: &Reading,
    operands: &[&str],
) -> FailureClass {
    let answer = match &reading.answer {
        _ if answered.truncated => return FailureClass::Truncated,
        Err(none) => return (*none).into(),
        Ok(answer) => answer,
    };
    let magnitude = |text: &str| {
        let digits: String = text.chars().filter(char::is_ascii_digit).collect();
        digits.trim_start_matches('0').to_owned()
    };
    if magnitude(&answer.text) == magnitude(expected.text()) {
        let sign = |text: &str| text.starts_with('-');
        let same_sign = sign(&answer.text) == sign(expected.text());
        return if same_sign { FailureClass::Format } else { FailureClass::Sign };
    }
    let echo = operands.contains(&answer.text.trim_start_matches('-'));
    if echo { FailureClass::Echo } else { FailureClass::Wrong }
}

/// Share of expected digits matched from the right, and the difference of the numbers of digits.
fn digit_metrics(expected: &Expected<'_>, extracted: Option<&str>) -> (f64, f64) {
    let truth = expected.digits();
    // Of a decimal number the digits before the point count.
    let given = extracted.and_then(|text| text.split('.').next()).unwrap_or_default();
    let given: Vec<u8> = given.bytes().filter(u8::is_ascii_digit).collect();
    let equal = truth.bytes().rev().zip(given.iter().rev()).filter(|(t, g)| t == *g).count();
    (equal as f64 / truth.len() as f64, truth.len().abs_diff(given.len()) as f64)
}

fn failure(expected: &Expected<'_>, answered: &Answered<'_>, text: &Normalised, operands: &[&str]) -> FailureClass {
    if answered.truncated {
        return FailureClass::Truncated;
    }
    if text.as_str().trim().is_empty() {
        return FailureClass::Empty;
    }
    let truth = expected.digits();
    let last = Candidates::new(text, Shape::Integer).last();
    if let Some(last) = last {
        let magnitude = |digits: &str| digits.trim_start_matches('0').to_owned();
        let same = magnitude(last.trim_start_matches('-')) == magnitude(&truth);
        let negative = expected.text().starts_with('-');
        if same && last.starts_with('-') != negative {
            return FailureClass::Sign;
        }
        let all_digits = text.as_str().bytes().filter(u8::is_ascii_digit);
        if same || (!negative && all_digits.eq(truth.bytes())) {
            return FailureClass::Format;
        }
    }
    let only_operands = Candidates::new(text, Shape::Integer).all(|n| operands.contains(&n.trim_start_matches('-')));
    match (only_operands, last) {
        (true, _) if REFUSAL.is_match(text.as_str()) => FailureClass::Refusal,
        (true, Some(_)) => FailureClass::Echo,
        (_, None) => FailureClass::NoNumber,
        _ => FailureClass::Wrong,
    }
}

#[cfg(test)]
mod tests {
    use super::super::{ArithmeticBench, Options, Question, Task};
    use super::*;
    use crate::suite::Scoring;

    fn item(task: Task, a: &str, b: Option<&str>) -> Item {
        let question = Question::new(task, a, b).unwrap();
        let bench = ArithmeticBench::new(Options::default()).unwrap();
        let mut item = bench.item(task, question.length(), 0);
        item.gold = question.answer();
        item.covariates.insert("a".into(), a.into());
        if let Some(b) = b {
            item.covariates.insert("b".into(), b.into());
        }
        item
    }

    fn score(item: &Item, completion: &str) -> Score {
        let bench = ArithmeticBench::new(Options::default()).unwrap();
        bench.score(item, &Answered { completion, truncated: false })
    }

    fn failures(task: Task, a: &str, b: Option<&str>, cases: &[(&str, Option<&str>)]) {
        let item = item(task, a, b);
        for (completion, failure) in cases {
            let score = score(&item, completion);
            assert_eq!(score.failure.as_ref().map(FailureClass::as_str), *failure, "{completion:?}");
            assert_eq!(score.correct, failure.is_none());
        }
    }

    #[test]
    fn failures_are_told_apart() {
        failures(
            Task::Sub,
            "47",
            Some("95"),
            &[
                ("-48", None),
                ("\\boxed{\u{2212}48}", None),
                ("47-95 = -48.", None),
                ("48", Some("sign")),
                ("", Some("empty")),
                (" \n", Some("empty")),
                ("47-95=?", Some("echo")),
                ("-49", Some("wrong")),
                ("minus forty-eight", Some("no_number")),
                ("I cannot compute 47-95.", Some("refusal")),
                ("I'm sorry, I can't.", Some("refusal")),
                ("I can't be sure, but 12", Some("wrong")),
            ],
        );
        failures(
            Task::Count,
            "100",
            None,
            &[
                ("(2)", None),
                ("2", Some("format")),
                ("(**2**)", Some("format")),
                ("(1)", Some("wrong")),
                ("100", Some("echo")),
            ],
        );
        failures(
            Task::Space,
            "123",
            None,
            &[("1 2 3", None), ("1, 2, 3", Some("format")), ("1  2  3", Some("format")), ("1 2", Some("wrong"))],
        );
        failures(Task::Rev, "2100", None, &[("0012", None), ("12", Some("format")), ("2100", Some("echo"))]);
        failures(Task::D2b, "18", None, &[("0b10010", None), ("1001 0", Some("format"))]);
    }

    #[test]
    fn truncation_counts_unless_the_answer_was_there() {
        let item = item(Task::Add, "12", Some("30"));
        let bench = ArithmeticBench::new(Options::default()).unwrap();
        let score = |completion| bench.score(&item, &Answered { completion, truncated: true });
        assert_eq!(score("12+30 = 4").failure, Some(FailureClass::Truncated));
        assert_eq!(score("").failure, Some(FailureClass::Truncated));
        assert!(score("12+30 = 42. Check").correct);
    }

    #[test]
    fn thinking_is_scored_apart() {
        let item = item(Task::Add, "12", Some("30"));
        let wrong = score(&item, "<think>12+30 = 42</think>It is 43.");
        assert!(!wrong.correct && !wrong.scorers["compat"] && wrong.scorers["boundary_with_thinking"]);
        assert!(!wrong.scorers["last_number_with_thinking"]);
        assert_eq!((wrong.scorers.len(), wrong.answer.as_deref()), (7, Some("43")));
        assert_eq!(wrong.metrics["thinking"], 1.0);
        let unclosed = score(&item, "<think>it must be 42");
        assert_eq!(unclosed.failure, Some(FailureClass::Empty));
        let plain = score(&item, "42");
        assert_eq!((plain.scorers.len(), plain.metrics["thinking"]), (4, 0.0));
    }

    #[test]
    fn the_final_answer_is_the_readers() {
        let of = |item: &Item, completion: &str, truncated: bool| {
            let bench = ArithmeticBench::new(Options { scorer: Scorer::Final, ..Options::default() }).unwrap();
            let score = bench.score(item, &Answered { completion, truncated });
            assert_eq!(score.correct, score.scorers["final"]);
            (score.failure.map_or_else(String::new, |class| class.to_string()), score.answer)
        };
        let sum = item(Task::Add, "12", Some("30"));
        assert_eq!(of(&sum, "42", false), (String::new(), Some("42".to_owned())));
        assert_eq!(of(&sum, "<think>12+30 = 43</think>42", false).0, "");
        assert_eq!(of(&sum, "-42", false).0, "sign");
        assert_eq!(of(&sum, "43", false).0, "wrong");
        assert_eq!(of(&sum, "Alas.", false), ("no_number".to_owned(), None));
        assert_eq!(of(&sum, "so 12 and then", true).0, "truncated");
        // Brackets are the prompt's, leading zeros are digits.
        assert_eq!(of(&item(Task::Count, "100", None), "2", false).0, "");
        // To put them is all of `box`.
        let boxed = item(Task::Box, "4070", None);
        for (completion, failure) in [
            ("(4070)", ""),
            ("Here it is: (4,070).", ""),
            ("$(4070)$", ""),
            ("4070", "format"),
            ("The answer is 4070.", "format"),
            ("\\(4070\\)", "format"),
            ("<think>(4070)</think>4070", "format"),
            ("(4071)", "wrong"),
        ] {
            assert_eq!(of(&boxed, completion, false).0, failure, "{completion}");
        }
        let reversed = item(Task::Rev, "2100", None);
        assert_eq!(
            (of(&reversed, "0012", false).0, of(&reversed, "12", false).0),
            (String::new(), "format".to_owned())
        );
        let boundary = score(&sum, "42");
        assert_eq!(boundary.evidence.readings.keys().collect::<Vec<_>>(), ["final", "last_number"]);
    }

    #[test]
    fn the_rule_that_decides_comes_first() {
        assert_eq!(scorers(Scorer::Boundary), ["boundary", "compat", "last_number", "final"]);
        assert_eq!(scorers(Scorer::Final), ["final", "boundary", "compat", "last_number"]);
        for (scorer, correct) in [(Scorer::Boundary, true), (Scorer::Compat, true), (Scorer::LastNumber, false)] {
            let bench = ArithmeticBench::new(Options { scorer, ..Options::default() }).unwrap();
            let completion = "42, or rather 43";
            let found = bench.score(&item(Task::Add, "12", Some("30")), &Answered { completion, truncated: false });
            assert_eq!((found.correct, bench.chosen()), (correct, vec![scorer.name()]));
        }
    }

    #[test]
    fn metrics() {
        let item = item(Task::Add, "99", Some("33"));
        for (completion, digit_match, length_error, candidates, echo) in [
            ("132", 1.0, 0.0, 1.0, 0.0),
            ("99+33 = 132", 1.0, 0.0, 1.0, 1.0),
            ("133 or 142", 2.0 / 3.0, 0.0, 2.0, 0.0),
            ("32", 2.0 / 3.0, 1.0, 1.0, 0.0),
            ("99+33", 1.0 / 3.0, 1.0, 0.0, 1.0),
            ("131.5", 2.0 / 3.0, 0.0, 1.0, 0.0),
            ("none", 0.0, 3.0, 0.0, 0.0),
            ("990132", 1.0, 3.0, 1.0, 0.0),
        ] {
            let metrics = score(&item, completion).metrics;
            let got = ["digit_match", "length_error", "distinct_candidates", "echo"].map(|name| metrics[name]);
            assert_eq!(got, [digit_match, length_error, candidates, echo], "{completion}");
        }
    }

    #[test]
    fn operands_are_candidates_only_where_they_are_the_answer() {
        let candidates = |item: &Item, completion| score(item, completion).metrics["distinct_candidates"];
        assert_eq!(candidates(&item(Task::Sub, "47", Some("95")), "47-95=-48"), 1.0);
        assert_eq!(candidates(&item(Task::Copy, "47", None), "47"), 1.0);
        assert_eq!(candidates(&item(Task::Mul1, "47", Some("1")), "47*1 = 47"), 1.0);
    }

    #[test]
    fn damaged_items_are_named() {
        let mut item = item(Task::Add, "1", Some("1"));
        item.gold = String::new();
        assert_eq!(score(&item, "2").failure, Some(FailureClass::MalformedGold));
        item.gold = "2".into();
        item.covariates.clear();
        assert!(!score(&item, "2").metrics.contains("echo"));
    }
}
