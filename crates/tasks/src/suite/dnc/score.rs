//! From a completion to a score.

use super::expression::{Expression, exact, plain};
use super::measure::{drop_match, equation, paper_equation, round_half_up, same_value};
use super::options::Scorer;
use super::problem::Dataset;
use super::problem::Scale;
use super::target::{Target, labelled, parse_equation, restored};
use super::tatqa_metric::tatqa_match;
use super::written::{Convention, ParsedNumber, leading, parse_number_as};
use crate::suite::{Answered, FINAL, FailureClass, Item, Score, read_final};
use earnest_answer::number::Fraction;
use earnest_answer::reader::{Answer, Form};
use earnest_answer::split_thinking;

/// Names of the scorers.
pub(super) const ANSWER: &str = "answer";
pub(super) const ACC_EQ: &str = "acc_eq";
pub(super) const ACC_ANS: &str = "acc_ans";
pub(super) const EQ_VALUE: &str = "eq_value";
pub(super) const EQUIVALENT: &str = "eq_equivalent";
pub(super) const DROP: &str = "drop";
pub(super) const TATQA: &str = "tatqa_em";
pub(super) const TATQA_VALUE: &str = "tatqa_value";

/// An item's gold text: `left=answer` of ASDiv-a (`248/16=15.5, rounded up to 16` where it is rounded), the number of
/// DROP, the number of TAT-QA.
pub(super) struct Gold<'a> {
    left: &'a str,
    pub(super) answer: &'a str,
}

impl<'a> Gold<'a> {
    pub(super) fn of(text: &'a str) -> Self {
        let (left, answer) = text.rsplit_once('=').unwrap_or(("", text));
        let answer = answer.rsplit_once(" to ").map_or(answer, |(_, rounded)| rounded);
        Gold { left, answer }
    }

    fn value(&self) -> Option<Fraction> {
        match self.answer.split_once('/') {
            Some(_) => Fraction::parse(self.answer).ok(),
            None => exact(self.answer),
        }
    }
}

/// The scorer that decides.
pub(super) fn chosen(scorer: Scorer, dataset: Dataset, target: Target) -> &'static str {
    if scorer == Scorer::Final && target.has_answer() { FINAL } else { own_scorer(dataset, target) }
}

/// The scorer of the data set and of what is asked for.
pub fn own_scorer(dataset: Dataset, target: Target) -> &'static str {
    match (dataset, target) {
        (Dataset::TatqaA, _) => TATQA,
        (_, Target::Equation) => EQUIVALENT,
        _ => ANSWER,
    }
}

/// Scores the visible part of a completion; `final` strips thinking by itself.
///
/// * `scorers`: `answer` (the number has the exact gold value, or is a correct rounding of one without a finite decimal);
///   `acc_eq` and `acc_ans` (the paper's: identical strings; Python values within 1e-4, of the unrounded quotient where a
///   remainder is); `eq_value` (exact value of the equation); `eq_equivalent` (the same formula whatever the numbers); `drop`
///   and `tatqa_em` (those data sets' own scorers); `tatqa_value` (the same quantity under its sign and scale: `(128)` is -128,
///   `12500` is 12.5 thousand, to the gold's two decimals); `final` (the reader's answer, compared as by `answer`, of TAT-QA as
///   by `tatqa_value`). By its own scorer an equation alone is right by `eq_equivalent`, TAT-QA by `tatqa_em`, everything else by
///   `answer`; under `final` so is everything but an equation alone.
/// * `metrics`: `unparsed` (1 where a line that decides is missing or cannot be read, which is never right), `equation_unparsed`
///   (the same of the equation beside an answer), `normalised` (1 where something had to be removed or translated), `faithful` (1 or 0 where the equation is right: whether the answer beside it is too).
/// * `failure`: `truncated`, `empty`, `unparsed`, `scale` (the right number under a wrong scale word), `wrong`.
pub(super) fn score(scorer: Scorer, dataset: Dataset, target: Target, item: &Item, answered: &Answered<'_>) -> Score {
    let parts = split_thinking(answered.completion);
    let text = parts.visible.as_ref();
    let chosen = chosen(scorer, dataset, target);
    let mut lines = Lines::of(target, item, text);
    let equation_right = target.has_equation().then(|| lines.score_equation());
    if target.has_answer() {
        let right = lines.score_answer(dataset);
        if let Some(true) = equation_right {
            lines.score.metrics.insert("faithful", f64::from(right));
        }
    }
    let Lines { gold, mut score, unparsed, normalised, mut scale_wrong, extracted, .. } = lines;
    // The reader needs no line with a label.
    let mut unparsed_decides = true;
    let mut none = None;
    let own = own_scorer(dataset, target);
    // A data set has no such target where its own scorer is missing; then nothing is right.
    if let Ok(right) = score.scorer(own) {
        score.add_scorer(chosen, own, right, extracted);
    }
    if target.has_answer() {
        let reading = read_final(item, Form::Number, answered);
        let read = reading.answer.as_ref().ok().map(|answer| final_right(dataset, item, &gold, text, answered, answer));
        score.add_final(chosen, read.is_some_and(|read| read.right), &reading);
        if chosen == FINAL {
            scale_wrong = read.is_some_and(|read| read.number && !read.right);
            unparsed_decides = false;
            none = reading.answer.err();
        }
    }
    score.metrics.insert("unparsed", f64::from(unparsed));
    score.metrics.insert("normalised", f64::from(normalised));
    if !score.correct {
        let class = if answered.truncated {
            FailureClass::Truncated
        } else if let Some(none) = none {
            none.into()
        } else if text.trim().is_empty() {
            FailureClass::Empty
        } else if unparsed && unparsed_decides {
            FailureClass::Unparsed
        } else if scale_wrong {
            FailureClass::Scale
        } else {
            FailureClass::Wrong
        };
        score.failure = Some(class);
    }
    score
}

/// The labelled lines of a completion with the scores of what they say.
struct Lines<'a> {
    target: Target,
    item: &'a Item,
    gold: Gold<'a>,
    text: &'a str,
    score: Score,
    /// A line that decides is missing or cannot be read.
    unparsed: bool,
    /// Something had to be removed or translated.
    normalised: bool,
    /// The right number stands under a wrong scale word.
    scale_wrong: bool,
    /// The answer, or the equation where there is none.
    extracted: Option<String>,
}

impl<'a> Lines<'a> {
    fn of(target: Target, item: &'a Item, text: &'a str) -> Self {
        Lines {
            target,
            item,
            gold: Gold::of(&item.gold),
            text,
            score: Score::default(),
            unparsed: false,
            normalised: false,
            scale_wrong: false,
            extracted: None,
        }
    }

    /// Scores the equation; true if it is the right one.
    fn score_equation(&mut self) -> bool {
        let (target, text) = (self.target, self.text);
        let line =
            labelled(text, "equation").or_else(|| (target == Target::Equation).then(|| lone_line(text)).flatten());
        let numbers: Vec<String> = self
            .item
            .covariates
            .get("numbers")
            .and_then(|numbers| serde_json::from_value(numbers.clone()).ok())
            .unwrap_or_default();
        let line = line.map(|line| if numbers.is_empty() { line.to_owned() } else { restored(line, &numbers) });
        let parsed = line.as_deref().and_then(parse_equation);
        self.unparsed |= target == Target::Equation && parsed.is_none();
        let score = &mut self.score;
        if target == Target::EquationAnswer {
            score.metrics.insert("equation_unparsed", f64::from(parsed.is_none()));
        }
        let written = parsed.as_ref().map(|(_, side, _)| side.clone()).or(line).unwrap_or_default();
        let paper = paper_equation(written.trim(), self.gold.left);
        score.scorers.insert(ACC_EQ, paper.equation);
        score.scorers.insert(ACC_ANS, paper.answer);
        let ours = parsed.as_ref().and_then(|(expression, side, _)| {
            let left = Expression::parse(self.gold.left).ok()?;
            Some(equation(expression, side, &left, self.gold.left))
        });
        self.normalised |= parsed.as_ref().is_some_and(|(.., normalised)| *normalised);
        score.scorers.insert(EQ_VALUE, ours.is_some_and(|found| found.value));
        score.scorers.insert(EQUIVALENT, ours.is_some_and(|found| found.equivalent));
        if target == Target::Equation && !written.is_empty() {
            self.extracted = Some(written);
        }
        ours.is_some_and(|found| found.equivalent)
    }

    /// Scores the answer; true if its number is right.
    fn score_answer(&mut self, dataset: Dataset) -> bool {
        let (target, text) = (self.target, self.text);
        let line = labelled(text, "answer").or_else(|| (target == Target::Answer).then(|| lone_line(text)).flatten());
        let convention = if dataset == Dataset::TatqaA { Convention::Financial } else { Convention::Plain };
        let parsed = line.and_then(|line| parse_number_as(line, convention));
        self.unparsed |= parsed.is_none();
        self.normalised |= parsed.as_ref().is_some_and(|number| number.normalised);
        let right = number_is_right(&self.gold, parsed.as_ref());
        self.score.scorers.insert(ANSWER, right);
        self.extracted =
            line.map(|line| parsed.as_ref().map_or_else(|| line.to_owned(), |number| plain(&number.value)));
        match dataset {
            Dataset::AsdivA => {}
            Dataset::DropNum => {
                let prediction = parsed.as_ref().map_or(line.unwrap_or_default(), |number| number.written.as_str());
                self.score.scorers.insert(DROP, drop_match(prediction, self.gold.answer));
            }
            Dataset::TatqaA => self.score_scale(line.unwrap_or_default(), parsed.as_ref(), right),
        }
        right
    }

    /// Scores the answer of TAT-QA with its scale.
    fn score_scale(&mut self, line: &str, parsed: Option<&ParsedNumber>, right: bool) {
        // A line that says something else than a scale is no scale, and counted.
        let said = labelled(self.text, "scale").filter(|said| !said.trim().is_empty());
        let read = said.and_then(Scale::said);
        self.unparsed |= said.is_some() && read.is_none();
        self.normalised |= said.is_some_and(|said| Scale::parse(said).is_none()) && read.is_some();
        let said = read.map_or("", Scale::word);
        let wanted = self.item.covariates.get("scale").and_then(serde_json::Value::as_str).unwrap_or_default();
        let found = tatqa_match(self.gold.answer, wanted, &line.into(), said);
        let exact = found.exact && !self.unparsed;
        self.score.scorers.insert(TATQA, exact);
        let value = parsed.is_some_and(|number| {
            let scale = number.scale.or_else(|| Scale::parse(said)).unwrap_or(Scale::None);
            same_quantity(&self.gold, Scale::parse(wanted).unwrap_or(Scale::None), &number.value, scale)
        });
        self.score.scorers.insert(TATQA_VALUE, value);
        self.scale_wrong = right && !exact && !value;
    }
}

/// Correctness of the reader's answer, and of its number whatever its scale.
#[derive(Clone, Copy)]
struct FinalRight {
    right: bool,
    number: bool,
}

fn final_right(
    dataset: Dataset,
    item: &Item,
    gold: &Gold<'_>,
    visible: &str,
    answered: &Answered<'_>,
    answer: &Answer,
) -> FinalRight {
    let number = leading(&answer.text).filter(|number| number.end == answer.text.len());
    let Some((value, written)) = number.map(|number| (number.value, number.written)) else {
        return FinalRight { right: false, number: false };
    };
    let same = |value: &Fraction| gold.value().is_some_and(|gold| same_value(value, Some(&written), &gold));
    if dataset != Dataset::TatqaA {
        let right = same(&value);
        return FinalRight { right, number: right };
    }
    let before = answered.completion.get(..answer.span.start).unwrap_or_default();
    let behind = answered.completion.get(answer.span.end..).unwrap_or_default();
    // Financial reports write negative numbers in brackets.
    let negated = !answer.text.starts_with('-')
        && before.trim_end_matches(['$', '€', '£', '¥', ' ']).ends_with('(')
        && behind.trim_start().starts_with(')');
    let value = if negated { &Fraction::from(num_bigint::BigInt::from(0)) - &value } else { value };
    let wanted = item.covariates.get("scale").and_then(serde_json::Value::as_str).unwrap_or_default();
    let said = || labelled(visible, "scale").filter(|said| !said.trim().is_empty()).and_then(Scale::said);
    let scale = scale_behind(behind).or_else(said).unwrap_or(Scale::None);
    let right = same_quantity(gold, Scale::parse(wanted).unwrap_or(Scale::None), &value, scale);
    FinalRight { right, number: same(&value) }
}

/// The scale word or per cent sign behind a number.
fn scale_behind(text: &str) -> Option<Scale> {
    let text = text.trim_start_matches([')', '*', '`', '}', '$', '\\', ' ']);
    if text.starts_with('%') || text.get(..8).is_some_and(|words| words.eq_ignore_ascii_case("per cent")) {
        return Some(Scale::Percent);
    }
    let end = text.find(|c: char| !c.is_alphabetic()).unwrap_or(text.len());
    Scale::parse(&text[..end]).filter(|scale| *scale != Scale::None)
}

fn number_is_right(gold: &Gold<'_>, parsed: Option<&ParsedNumber>) -> bool {
    match (gold.value(), parsed) {
        (Some(gold), Some(number)) => same_value(&number.value, Some(&number.written), &gold),
        _ => false,
    }
}

/// True if a number with its scale is the gold one with its own, to two decimals in the gold's scale.
fn same_quantity(gold: &Gold<'_>, gold_scale: Scale, value: &Fraction, scale: Scale) -> bool {
    let in_gold_scale = (value * &scale.factor()).divided_by(&gold_scale.factor());
    match (gold.value().and_then(|gold| round_half_up(&gold, 2)), in_gold_scale) {
        (Some(gold), Ok(ours)) => round_half_up(&ours, 2) == Some(gold),
        _ => false,
    }
}

/// A completion of one line without its label, as base models after examples write it.
fn lone_line(text: &str) -> Option<&str> {
    let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let first = lines.next()?;
    lines.next().is_none().then_some(first)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::suite::{Budget, Segments};

    fn item(gold: &str) -> Item {
        Item {
            id: "i".into(),
            task: "t".into(),
            cluster: "c".into(),
            covariates: BTreeMap::new(),
            segments: Segments::default(),
            gold: gold.into(),
            budget: Budget { answer: 1, thinking: 1 },
            stop_strings: Vec::new(),
            keep_stop: false,
            continuations: Vec::new(),
        }
    }

    fn score(dataset: Dataset, target: Target, item: &Item, answered: &Answered<'_>) -> Score {
        super::score(Scorer::Own, dataset, target, item, answered)
    }

    fn last(dataset: Dataset, target: Target, item: &Item, completion: &str) -> Score {
        super::score(Scorer::Final, dataset, target, item, &Answered { completion, truncated: false })
    }

    #[test]
    fn the_final_answer_needs_no_label() {
        let rounded = item("248/16=15.5, rounded up to 16");
        let of = |completion: &str| last(Dataset::AsdivA, Target::Answer, &rounded, completion);
        let right = of("It is 15.5.\nThat makes 16");
        assert!(right.correct && right.answer.as_deref() == Some("16"), "{right:?}");
        assert!(!right.scorers[ANSWER] && right.evidence.readings.contains_key(ANSWER));
        assert_eq!(of("15").failure.as_ref().map(FailureClass::as_str), Some("wrong"));
        assert_eq!(of("Alas.").failure.as_ref().map(FailureClass::as_str), Some("no_number"));
        assert!(!of("<think>16</think>").correct);
        let equation = last(Dataset::AsdivA, Target::Equation, &rounded, "Equation: 248/16");
        assert!(equation.correct && !equation.scorers.contains(FINAL));
        assert_eq!(chosen(Scorer::Final, Dataset::AsdivA, Target::Equation), EQUIVALENT);
        let own = asdiv(Target::Answer, "Answer: 16");
        assert!(own.scorers[FINAL] && own.evidence.readings.contains_key(FINAL));
    }

    #[test]
    fn the_final_quantity_has_its_scale() {
        let answer = |text: &str, completion: &str| {
            let start = completion.find(text.trim_start_matches('-')).unwrap();
            let span = start..start + text.trim_start_matches('-').len();
            Answer { text: text.to_owned(), span, mark: earnest_answer::reader::Mark::Sentence }
        };
        let of = |gold: &str, scale: &str, text: &str, completion: &str| {
            let mut asked = item(gold);
            asked.covariates.insert("scale".into(), serde_json::json!(scale));
            let answered = Answered { completion, truncated: false };
            let found = answer(text, completion);
            let read = final_right(Dataset::TatqaA, &asked, &Gold::of(&asked.gold), completion, &answered, &found);
            (read.right, read.number)
        };
        assert_eq!(of("12.5", "million", "12.5", "It is 12.5 million."), (true, true));
        assert_eq!(of("12.5", "million", "12.5", "Answer: 12.5\nScale: million (USD)"), (true, true));
        assert_eq!(of("12.5", "million", "12.5", "Answer: 12.5"), (false, true));
        assert_eq!(of("12.5", "thousand", "12500", "$12500"), (true, false));
        assert_eq!(of("20.46", "percent", "20.46", "**20.46**%"), (true, true));
        assert_eq!(of("-128", "", "128", "$(128) then"), (true, true));
        assert_eq!(of("-128", "", "-128", "so (-128)"), (true, true));
        assert_eq!(of("128", "", "1.28e2", "1.28e2"), (true, true));
    }

    fn asdiv(target: Target, completion: &str) -> Score {
        score(
            Dataset::AsdivA,
            target,
            &item("248/16=15.5, rounded up to 16"),
            &Answered { completion, truncated: false },
        )
    }

    #[test]
    fn answers_and_failures() {
        for (completion, failure) in [
            ("Answer: 16", None),
            ("16", None),
            ("It is so.\n**Answer: $16.00**", None),
            ("Answer: sixteen", None),
            ("<think>Answer: 3</think>Answer: 16 days", None),
            ("Answer: 15.5", Some("wrong")),
            ("Answer: 248/16", Some("unparsed")),
            ("Answer: 1.6e1", None),
            ("Answer: 16 - 0", Some("unparsed")),
            ("Answer: 16 x 1", Some("unparsed")),
            ("Answer: 16 thousand", Some("unparsed")),
            ("Answer: 31/2", Some("wrong")),
            ("I think it is 16, but\nwho knows", Some("unparsed")),
            ("", Some("empty")),
        ] {
            let score = asdiv(Target::Answer, completion);
            assert_eq!(score.failure.as_ref().map(FailureClass::as_str), failure, "{completion:?}");
        }
        assert_eq!(asdiv(Target::Answer, "Answer: sixteen").metrics["normalised"], 1.0);
    }

    #[test]
    fn equations_are_read_four_ways() {
        let of = |completion| {
            let score = asdiv(Target::Equation, completion);
            [ACC_EQ, ACC_ANS, EQ_VALUE, EQUIVALENT].map(|scorer| score.scorers[scorer])
        };
        assert_eq!(of("Equation: 248/16"), [true; 4]);
        assert_eq!(of("Equation: 248.0 / 16 = 15.5"), [false, true, true, true]);
        assert_eq!(of("Equation: 15.5"), [false, true, true, false]);
        assert_eq!(of("Equation: 16"), [false; 4]);
        assert_eq!(of("no idea\nat all"), [false; 4]);
        let both = asdiv(Target::EquationAnswer, "Equation: 248/16\nAnswer: 15");
        assert!(!both.correct && both.metrics["faithful"] == 0.0);
        let half = asdiv(Target::EquationAnswer, "Equation: so be it\nAnswer: 16");
        assert!(half.correct && half.metrics["unparsed"] == 0.0 && half.metrics["equation_unparsed"] == 1.0);
    }

    #[test]
    fn exact_fractions_are_answers() {
        let of = |completion| {
            score(Dataset::AsdivA, Target::Answer, &item("15.3/2.9=153/29"), &Answered { completion, truncated: false })
        };
        assert!(
            of("Answer: 153/29").correct && of("Answer: \\frac{153}{29} acres").correct && of("Answer: 5.28").correct
        );
        assert!(!of("Answer: 153").correct && !of("Answer: 29/153").correct && !of("Answer: 5.2").correct);
        assert_eq!(of("Answer: 15.3/2.9").failure.as_ref().map(FailureClass::as_str), Some("unparsed"));
    }

    #[test]
    fn placeholders_are_restored() {
        let mut masked = item("20-8=12");
        masked.covariates.insert("numbers".into(), serde_json::json!(["20", "8"]));
        let of = |completion| {
            score(Dataset::AsdivA, Target::Equation, &masked, &Answered { completion, truncated: false }).correct
        };
        assert!(of("Equation: [NUM1]-[NUM2]") && !of("Equation: [NUM2]-[NUM1]") && !of("Equation: [NUM1]-[NUM3]"));
    }

    #[test]
    fn tatqa_needs_the_scale() {
        let mut gold = item("12.5");
        gold.covariates.insert("scale".into(), serde_json::json!("million"));
        let of = |completion: &str| {
            score(Dataset::TatqaA, Target::Answer, &gold, &Answered { completion, truncated: false })
        };
        assert!(of("Answer: 12.5\nScale: million").correct);
        assert_eq!(of("Answer: 12.5\nScale: none").failure.as_ref().map(FailureClass::as_str), Some("scale"));
        assert!(of("Answer: 12.5").scorers[ANSWER]);
        for line in ["million (USD)", "Millions of dollars", "US$ million", "**million**", "in millions", "mn"] {
            let text = format!("Answer: 12.5\nScale: {line}");
            let found = of(&text);
            assert!(found.correct && found.metrics["unparsed"] == 0.0, "{line}");
        }
        for line in ["dozen", "thousand or million", "not million", "10^6", "hundred million"] {
            let text = format!("Answer: 12.5\nScale: {line}");
            let found = of(&text);
            assert_eq!(
                (found.failure.as_ref().map(FailureClass::as_str), found.metrics["unparsed"]),
                (Some("unparsed"), 1.0),
                "{line}"
            );
        }
        for (line, scale) in
            [("% points", Some(Scale::Percent)), ("no scale", Some(Scale::None)), ("in %", Some(Scale::Percent))]
        {
            assert_eq!(Scale::said(line), scale, "{line}");
        }
        assert_eq!(of("Answer: 12.5\nScale: dollars").failure.as_ref().map(FailureClass::as_str), Some("scale"));
        // What cannot be read is never right, even where no scale is; what says that there is none is read.
        let mut bare = item("12.5");
        bare.covariates.insert("scale".into(), serde_json::json!(""));
        for (line, right) in [
            ("-", true),
            ("—", true),
            ("one", true),
            ("years", true),
            ("dozen", false),
            ("10^6", false),
            ("M", false),
            ("000s", false),
        ] {
            let text = format!("Answer: 12.5\nScale: {line}");
            let found =
                score(Dataset::TatqaA, Target::Answer, &bare, &Answered { completion: &text, truncated: false });
            assert_eq!(found.correct, right, "{line}");
            assert_eq!(found.scorers[TATQA], right, "{line}");
            assert!(!(found.correct && found.metrics["unparsed"] == 1.0), "{line}");
        }
        for (line, scale) in [
            ("per cent", Some(Scale::Percent)),
            ("percents", Some(Scale::Percent)),
            ("pct", Some(Scale::Percent)),
            ("000s", Some(Scale::Thousand)),
            ("$'000", Some(Scale::Thousand)),
            ("in 000's of dollars", Some(Scale::Thousand)),
            ("1,000", None),
            ("000,000s", None),
            ("M", None),
            ("m", None),
        ] {
            assert_eq!(Scale::said(line), scale, "{line}");
        }
        gold.gold = "-128".into();
        gold.covariates.insert("scale".into(), serde_json::json!("thousand"));
        let of = |completion| {
            let found = score(Dataset::TatqaA, Target::Answer, &gold, &Answered { completion, truncated: false });
            [ANSWER, TATQA, TATQA_VALUE].map(|scorer| found.scorers[scorer])
        };
        assert_eq!(of("Answer: (128)\nScale: thousand"), [true; 3]);
        assert_eq!(of("Answer: $(128)\nScale: thousand"), [true; 3]);
        assert_eq!(of("Answer: 128\nScale: thousand"), [false; 3]);
        // The official pattern does not see a scale word behind a bracket.
        assert_eq!(of("Answer: (128) thousand"), [true, false, true]);
        assert!(of("Answer: (128,000)\nScale: none")[2]);
        assert!(!of("Answer: (128)\nScale: million")[2]);
    }
}
