//! Scoring of completions: four scorers side by side.
use super::answer::{AnswerForm, ReferenceMarker, StrictAnswer, extract_paper, extract_reference, extract_strict};
use crate::suite::{Answered, ByName, FailureClass, Item, Score, read_final};
use earnest_answer::number::Number;
use earnest_answer::reader::{Answer, Form, Reading};
use earnest_answer::split_thinking;

use super::options::{Adapter, NupaOptions, PromptStyle, Scorer};
use super::{DigitSet, Metrics, TaskId, measure};

/// Scores a completion of one of the suite's items. No scorer sees thinking: the paper had no models that think first.
pub(super) fn score(options: &NupaOptions, item: &Item, answered: &Answered<'_>) -> Score {
    let Some(task) = TaskId::find(&item.task) else {
        // Only an item of another suite can get here; it has no metrics and is never right.
        return Score { failure: Some(FailureClass::UnknownTask), ..Score::default() };
    };
    let form = task.answer_form();
    let parts = split_thinking(answered.completion);
    let visible = parts.visible.as_ref();
    let strict = extract_strict(form, visible);
    let paper = extract_paper(form, visible);
    let reference = match (options.style, options.adapter) {
        (PromptStyle::RuleFollowing, _) => extract_reference(form, ReferenceMarker::SoTheAnswerIs, visible),
        (PromptStyle::Direct, Adapter::Chat) => extract_reference(form, ReferenceMarker::TheAnswerIs, visible),
        (PromptStyle::Direct, Adapter::Completion) => {
            // Worked examples are left out: they hold the marker, and the reference has none to read over.
            let prompt = &item.segments.question;
            extract_reference(form, ReferenceMarker::Equals, &format!("{prompt}{visible}"))
        }
    };
    let reading = read_final(item, form_asked(form), answered);
    let final_text = reading.text().filter(|text| is_written_as(form, text));
    let reference_gold = item.covariates.get("reference_gold").and_then(|gold| gold.as_str()).unwrap_or(&item.gold);
    let chosen = options.scorer.name();
    let mut score = Score::default();
    let mut deciding = None;
    for scorer in Scorer::ALL {
        let measured = match scorer {
            Scorer::Strict => measure(form, DigitSet::Ascii, &item.gold, strict.answer.as_deref().unwrap_or_default()),
            Scorer::Paper => measure(form, DigitSet::Python, &item.gold, paper.unwrap_or_default()),
            Scorer::Ref => measure(form, DigitSet::Python, reference_gold, &reference),
            Scorer::Final => measure(form, DigitSet::Ascii, &item.gold, final_text.unwrap_or_default()),
        };
        let right = measured.is_some_and(|metrics| metrics.exact);
        match scorer {
            Scorer::Strict => score.add_scorer(chosen, scorer.name(), right, strict.answer.clone()),
            Scorer::Paper => score.add_scorer(chosen, scorer.name(), right, paper.map(String::from)),
            Scorer::Ref => {
                let read = Some(reference.clone()).filter(|text| !text.is_empty());
                score.add_scorer(chosen, scorer.name(), right, read);
            }
            Scorer::Final => score.add_final(chosen, right, &reading),
        }
        if let Some(measured) = measured {
            record(&mut score.metrics, scorer, measured);
        }
        if scorer == options.scorer {
            deciding = measured;
        }
    }
    let mut metric = |name: &str, value: bool| score.metrics.insert(name, f64::from(value));
    metric("empty", score.answer.is_none());
    metric("marker", strict.marker);
    metric("not_anchored", strict.answer.is_some() && !strict.anchored);
    metric("negative", strict.negative);
    if !score.correct {
        let class = match (options.scorer, &score.answer) {
            _ if answered.truncated => FailureClass::Truncated,
            (Scorer::Final, _) => final_failure(task, item, &reading, deciding),
            (_, extracted) => failure(task, item, &strict, extracted.as_deref(), deciding),
        };
        score.failure = Some(class);
    }
    score
}

fn failure(
    task: TaskId,
    item: &Item,
    strict: &StrictAnswer,
    extracted: Option<&str>,
    measured: Option<Metrics>,
) -> FailureClass {
    match extracted {
        None if strict.negative => FailureClass::Negative,
        None => FailureClass::Empty,
        Some(extracted) if same_value(task, extracted, &item.gold) => FailureClass::Form,
        Some(_) => wrong_digits(measured),
    }
}

fn final_failure(task: TaskId, item: &Item, reading: &Reading, measured: Option<Metrics>) -> FailureClass {
    let same = |answer: &Answer| answer.is_same_as(&item.gold) || same_value(task, &answer.text, &item.gold);
    match &reading.answer {
        Err(none) => (*none).into(),
        Ok(answer) if same(answer) => FailureClass::Form,
        Ok(answer) if answer.text.starts_with('-') => FailureClass::Negative,
        Ok(_) => wrong_digits(measured),
    }
}

fn wrong_digits(measured: Option<Metrics>) -> FailureClass {
    match measured {
        Some(metrics) if metrics.dlength > 0 => FailureClass::WrongLength,
        _ => FailureClass::WrongDigits,
    }
}

/// The form of numbers in the words of the reader.
fn form_asked(form: AnswerForm) -> Form {
    match form {
        AnswerForm::Integer => Form::Integer,
        AnswerForm::Float => Form::Float,
        AnswerForm::Fraction => Form::Fraction,
        AnswerForm::Scientific => Form::Scientific,
    }
}

/// True for digits in the form, without any sign: the test has no negative numbers, and [`measure`] would not see one.
fn is_written_as(form: AnswerForm, text: &str) -> bool {
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let pair =
        |text: &str, between: char| text.split_once(between).is_some_and(|(one, two)| digits(one) && digits(two));
    match form {
        AnswerForm::Integer => digits(text),
        AnswerForm::Float => pair(text, '.'),
        AnswerForm::Fraction => pair(text, '/'),
        AnswerForm::Scientific => {
            text.split_once('e').is_some_and(|(significand, exponent)| pair(significand, '.') && digits(exponent))
        }
    }
}

fn record(metrics: &mut ByName<f64>, scorer: Scorer, measured: Metrics) {
    let name = scorer.name();
    metrics.insert(format!("{name}_digit_match"), measured.digit_match);
    // The reference's dlength is the difference of totals; the paper's is a sum over parts.
    let dlength = if scorer == Scorer::Ref { measured.dlength_total } else { measured.dlength };
    metrics.insert(format!("{name}_dlength"), dlength as f64);
    if scorer != Scorer::Ref {
        metrics.insert(format!("{name}_dlength_total"), measured.dlength_total as f64);
    }
}

/// The right value in a wrong form: surplus zeros, a fraction that is not reduced.
fn same_value(task: TaskId, extracted: &str, gold: &str) -> bool {
    use earnest_answer::number::Notation;
    let notation = match task.answer_form() {
        AnswerForm::Integer => Notation::Integer,
        AnswerForm::Float => Notation::Decimal,
        AnswerForm::Fraction => Notation::Fraction,
        AnswerForm::Scientific => Notation::Scientific,
    };
    match (Number::parse(notation, extracted), Number::parse(notation, gold)) {
        (Ok(extracted), Ok(gold)) => extracted == gold,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::super::NupaSuite;
    use super::*;
    use crate::suite::Scoring;

    fn score(task: &str, a: &str, b: Option<&str>, completion: &str) -> Score {
        by(Scorer::Strict, task, a, b, completion)
    }

    fn by(scorer: Scorer, task: &str, a: &str, b: Option<&str>, completion: &str) -> Score {
        let suite = NupaSuite::new(NupaOptions { scorer, ..NupaOptions::default() }).unwrap();
        let item = suite.item_from_operands(task.parse().unwrap(), a, b).unwrap();
        suite.score(&item, &Answered { completion, truncated: false })
    }

    fn failure(task: &str, a: &str, b: Option<&str>, completion: &str) -> String {
        score(task, a, b, completion).failure.map_or_else(String::new, |class| class.to_string())
    }

    #[test]
    fn profiles_stand_side_by_side() {
        let score = score("add_Integer", "744", Some("543"), "1287");
        assert!(score.correct);
        assert_eq!(score.scorers, ByName::from([("strict", true), ("paper", true), ("ref", false), ("final", true)]));
        let negative = self::score("add_Integer", "744", Some("543"), " -1287");
        assert!(!negative.scorers["strict"]);
        assert!(negative.scorers["paper"]);
    }

    #[test]
    fn no_profile_sees_thinking() {
        let thought = "<think>700+500=1200, 44+43=87</think>\n\n1287";
        for scorer in Scorer::ALL {
            let score = by(scorer, "add_Integer", "744", Some("543"), thought);
            assert!(score.scorers["strict"] && score.scorers["paper"] && score.scorers["final"], "{score:?}");
            assert_eq!(score.correct, scorer != Scorer::Ref);
            assert_eq!(score.evidence.readings.len(), 3);
        }
        let marked = "<think>The answer is 700.</think>The answer is 1287";
        assert!(by(Scorer::Paper, "add_Integer", "744", Some("543"), marked).correct);
    }

    #[test]
    fn the_final_answer_is_the_value_in_the_form_asked_for() {
        let failure = |task, a, b, completion| {
            by(Scorer::Final, task, a, b, completion).failure.map_or_else(String::new, |class| class.to_string())
        };
        let (a, b) = ("744", Some("543"));
        assert_eq!(failure("add_Integer", a, b, "1287"), "");
        assert_eq!(failure("add_Integer", a, b, "-1287"), "negative");
        assert_eq!(failure("add_Integer", a, b, "12870"), "wrong_length");
        assert_eq!(failure("add_Integer", a, b, "1288"), "wrong_digits");
        assert_eq!(failure("add_Integer", a, b, "Alas."), "no_number");
        let score = by(Scorer::Final, "add_Integer", a, b, "1288");
        assert_eq!((score.answer.as_deref(), score.metrics["final_digit_match"]), (Some("1288"), 0.75));
        for (form, text, written) in [
            (AnswerForm::Integer, "1287", true),
            (AnswerForm::Integer, "-1287", false),
            (AnswerForm::Integer, "1.287e3", false),
            (AnswerForm::Integer, "12/87", false),
            (AnswerForm::Float, "3", false),
            (AnswerForm::Float, "3.0", true),
            (AnswerForm::Fraction, "2", false),
            (AnswerForm::Fraction, "2/1", true),
            (AnswerForm::Scientific, "1287", false),
            (AnswerForm::Scientific, "1.2e-3", false),
            (AnswerForm::Scientific, "1e3", false),
            (AnswerForm::Scientific, "1.287e3", true),
        ] {
            assert_eq!(is_written_as(form, text), written, "{text}");
        }
    }

    #[test]
    fn the_right_value_in_another_form_is_wrong() {
        let suite = NupaSuite::new(NupaOptions { scorer: Scorer::Final, ..NupaOptions::default() }).unwrap();
        let class = |task: &str, a: &str, b: Option<&str>, text: &str| {
            let task: TaskId = task.parse().unwrap();
            let item = suite.item_from_operands(task, a, b).unwrap();
            let answer = Answer { text: text.to_owned(), span: 0..0, mark: earnest_answer::reader::Mark::Bold };
            let written = Some(text).filter(|text| is_written_as(task.answer_form(), text)).unwrap_or_default();
            let measured = measure(task.answer_form(), DigitSet::Ascii, &item.gold, written);
            if measured.is_some_and(|metrics| metrics.exact) {
                return "right".to_owned();
            }
            final_failure(task, &item, &Reading::of(answer), measured).to_string()
        };
        assert_eq!(class("add_Fraction", "3/8", Some("2/5"), "31/40"), "right");
        assert_eq!(class("add_Fraction", "3/8", Some("2/5"), "62/80"), "form");
        assert_eq!(class("add_Fraction", "3/8", Some("2/5"), "0.775"), "form");
        assert_eq!(class("add_Float", "1.5", Some("1.5"), "3"), "form");
        assert_eq!(class("add_Float", "1.5", Some("1.5"), "3.0"), "right");
        assert_eq!(class("add_Integer", "744", Some("543"), "1287.00"), "form");
        assert_eq!(class("add_Integer", "744", Some("543"), "1.287e3"), "form");
        assert_eq!(class("add_Integer", "744", Some("543"), "01287"), "form");
    }

    #[test]
    fn reference_truth_of_significant_figures() {
        let exact = score("sig_Integer", "15501", Some("2"), " 1.6e4");
        assert!(exact.scorers["strict"] && exact.scorers["paper"] && !exact.scorers["ref"]);
        let biased = score("sig_Integer", "15501", Some("2"), " 1.5e4");
        assert!(!biased.scorers["strict"] && biased.scorers["ref"]);
    }

    #[test]
    fn failure_classes() {
        assert_eq!(failure("add_Integer", "744", Some("543"), "I cannot"), "empty");
        assert_eq!(failure("add_Integer", "744", Some("543"), "-1287"), "negative");
        assert_eq!(failure("add_Integer", "744", Some("543"), "01287"), "form");
        assert_eq!(failure("add_Fraction", "3/8", Some("2/5"), "62/80"), "form");
        assert_eq!(failure("add_Integer", "744", Some("543"), "12870"), "wrong_length");
        assert_eq!(failure("add_Integer", "744", Some("543"), "1288"), "wrong_digits");
        let suite = NupaSuite::new(NupaOptions::default()).unwrap();
        let item = suite.item_by_id("add_Integer_Integer_Integer:744,543").unwrap().unwrap();
        let cut = suite.score(&item, &Answered { completion: "12", truncated: true });
        assert_eq!(cut.failure, Some(FailureClass::Truncated));
        let foreign = Item { task: "other".into(), ..item };
        assert!(!suite.score(&foreign, &Answered { completion: "", truncated: false }).correct);
    }
}
