//! How a completion is judged: three profiles side by side.
use std::collections::BTreeMap;

use crate::answer::nupa::{ReferenceMarker, extract_paper, extract_reference, extract_strict};
use crate::number::Number;
use crate::suite::{Answered, Item, Verdict};

use super::options::{Adapter, NupaOptions, Profile, PromptStyle};
use super::{DigitSet, Metrics, TaskId, measure};

/// Judges a completion of one of the suite's items.
pub(super) fn score(options: &NupaOptions, item: &Item, answered: &Answered<'_>) -> Verdict {
    let Ok(task) = item.task.parse::<TaskId>() else {
        // Only an item of another suite can get here; it has no metrics and is never right.
        return Verdict { failure: Some("unknown_task".into()), ..Verdict::default() };
    };
    let form = task.answer_form();
    let completion = answered.completion;
    let strict = extract_strict(form, completion);
    let paper = extract_paper(form, completion);
    let reference = match (options.style, options.adapter) {
        (PromptStyle::RuleFollowing, _) => extract_reference(form, ReferenceMarker::SoTheAnswerIs, completion),
        (PromptStyle::Direct, Adapter::Chat) => extract_reference(form, ReferenceMarker::TheAnswerIs, completion),
        (PromptStyle::Direct, Adapter::Completion) => {
            // Worked examples are left out: they hold the marker, and the reference has none to read over.
            let prompt = &item.segments.question;
            extract_reference(form, ReferenceMarker::Equals, &format!("{prompt}{completion}"))
        }
    };
    let reference_gold = item.covariates.get("reference_gold").and_then(|gold| gold.as_str()).unwrap_or(&item.gold);
    let strict_answer = strict.answer.as_deref().unwrap_or_default();
    let measured = [
        measure(form, DigitSet::Ascii, &item.gold, strict_answer),
        measure(form, DigitSet::Python, &item.gold, paper.unwrap_or_default()),
        measure(form, DigitSet::Python, reference_gold, &reference),
    ];
    let mut matchers = BTreeMap::new();
    let mut metrics = BTreeMap::new();
    for (profile, measured) in [Profile::Strict, Profile::Paper, Profile::Ref].into_iter().zip(measured) {
        matchers.insert(profile.name().to_string(), measured.is_some_and(|metrics| metrics.exact));
        if let Some(measured) = measured {
            record(&mut metrics, profile, measured);
        }
    }
    let flag = |value: bool| f64::from(u8::from(value));
    metrics.insert("empty".into(), flag(strict.answer.is_none()));
    metrics.insert("marker".into(), flag(strict.marker));
    metrics.insert("not_anchored".into(), flag(strict.answer.is_some() && !strict.anchored));
    metrics.insert("negative".into(), flag(strict.negative));
    let (extracted, primary) = match options.profile {
        Profile::Strict => (strict.answer.clone(), measured[0]),
        Profile::Paper => (paper.map(String::from), measured[1]),
        Profile::Ref => (Some(reference).filter(|text| !text.is_empty()), measured[2]),
    };
    let correct = primary.is_some_and(|metrics| metrics.exact);
    let failure = (!correct).then(|| {
        let class = match (&extracted, primary) {
            _ if answered.truncated => "truncated",
            (None, _) if strict.negative => "negative",
            (None, _) => "empty",
            (Some(extracted), _) if same_value(task, extracted, &item.gold) => "form",
            (_, Some(metrics)) if metrics.dlength > 0 => "wrong_length",
            _ => "wrong_digits",
        };
        class.to_string()
    });
    Verdict { correct, extracted, matchers, metrics, failure, ..Verdict::default() }
}

fn record(metrics: &mut BTreeMap<String, f64>, profile: Profile, measured: Metrics) {
    let name = profile.name();
    metrics.insert(format!("{name}_digit_match"), measured.digit_match);
    // The reference's dlength is the difference of totals; the paper's is a sum over parts.
    let dlength = if profile == Profile::Ref { measured.dlength_total } else { measured.dlength };
    metrics.insert(format!("{name}_dlength"), dlength as f64);
    if profile != Profile::Ref {
        metrics.insert(format!("{name}_dlength_total"), measured.dlength_total as f64);
    }
}

/// The right value in a wrong form: surplus zeros, a fraction that is not reduced.
fn same_value(task: TaskId, extracted: &str, gold: &str) -> bool {
    use crate::answer::nupa::AnswerForm;
    use crate::number::Notation;
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
    use crate::suite::Suite;

    fn verdict(task: &str, a: &str, b: Option<&str>, completion: &str) -> Verdict {
        let suite = NupaSuite::new(NupaOptions::default()).unwrap();
        let item = suite.item_from_operands(task.parse().unwrap(), a, b).unwrap();
        suite.score(&item, &Answered { completion, truncated: false })
    }

    fn failure(task: &str, a: &str, b: Option<&str>, completion: &str) -> String {
        verdict(task, a, b, completion).failure.unwrap_or_default()
    }

    #[test]
    fn profiles_stand_side_by_side() {
        let verdict = verdict("add_Integer", "744", Some("543"), "1287");
        assert!(verdict.correct);
        assert_eq!(
            verdict.matchers,
            BTreeMap::from([("strict".into(), true), ("paper".into(), true), ("ref".into(), false)])
        );
        let negative = self::verdict("add_Integer", "744", Some("543"), " -1287");
        assert!(!negative.matchers["strict"]);
        assert!(negative.matchers["paper"]);
    }

    #[test]
    fn reference_truth_of_significant_figures() {
        let exact = verdict("sig_Integer", "15501", Some("2"), " 1.6e4");
        assert!(exact.matchers["strict"] && exact.matchers["paper"] && !exact.matchers["ref"]);
        let biased = verdict("sig_Integer", "15501", Some("2"), " 1.5e4");
        assert!(!biased.matchers["strict"] && biased.matchers["ref"]);
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
        assert_eq!(cut.failure.as_deref(), Some("truncated"));
        let foreign = Item { task: "other".into(), ..item };
        assert!(!suite.score(&foreign, &Answered { completion: "", truncated: false }).correct);
    }
}
