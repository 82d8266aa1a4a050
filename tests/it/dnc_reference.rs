//! DNC's reference behaviour on inputs that the golden files do not have: tests/fixtures/dnc_reference says where each expected
//! value comes from.
use std::path::Path;

use earnest_tasks::suite::dnc::{
    Kind, Mention, Problem, PythonValue, ReferenceRandom, Remainder, is_simple, paper_equation, python_eval,
    raw_reference_mentions, reference_mentions, reference_perturb, tatqa_match,
};
use proptest::prelude::*;
use serde_json::{Value, json};

fn rows(name: &str) -> Vec<Value> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/dnc_reference").join(name);
    let text = std::fs::read_to_string(path).unwrap();
    let rows: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(rows.len() > 200, "{name} has {} rows", rows.len());
    rows
}

/// Text, start and end in characters.
fn in_characters(source: &str, mentions: &[Mention]) -> Value {
    let at = |byte: usize| source[..byte].chars().count();
    mentions.iter().map(|mention| json!([mention.text, at(mention.start), at(mention.end)])).collect()
}

#[test]
fn mentions_are_the_reference_s() {
    for row in rows("mentions.jsonl") {
        let text = row["text"].as_str().unwrap();
        assert_eq!(in_characters(text, &raw_reference_mentions(text)), row["mentions"], "{row}");
        assert_eq!(in_characters(text, &reference_mentions(text)), row["edited"], "{row}");
    }
}

#[test]
fn expressions_have_the_values_of_cpython() {
    for row in rows("values.jsonl") {
        let ours = python_eval(row["expression"].as_str().unwrap()).and_then(|value| value.text());
        let ours = ours.map_err(|error| error.class());
        let expected = row["text"].as_str().map(str::to_owned).ok_or(row["exception"].as_str().unwrap_or_default());
        assert_eq!(ours, expected, "{row}");
    }
}

#[test]
fn equations_are_right_where_cpython_s_eval_says_so() {
    for row in rows("equations.jsonl") {
        let ours = paper_equation(row["prediction"].as_str().unwrap(), row["gold"].as_str().unwrap());
        assert_eq!(json!([ours.answer, ours.exception]), json!([row["answer"], row["exception"]]), "{row}");
    }
}

#[test]
fn tatqa_s_exact_match_is_the_official_one() {
    for row in rows("tatqa.jsonl") {
        let text = |name: &str| row[name].as_str().unwrap();
        let prediction = PythonValue::from_json(&row["prediction"]);
        let ours = tatqa_match(text("gold"), text("gold_scale"), &prediction, text("scale"));
        let found = json!({"exact": ours.exact, "gold": ours.gold, "prediction": ours.prediction});
        let expected = json!({"exact": row["exact"], "gold": row["gold_text"], "prediction": row["prediction_text"]});
        assert_eq!(found, expected, "{row}");
    }
}

#[test]
fn perturbations_are_the_reference_s() {
    for row in rows("perturbations.jsonl") {
        let text = |name: &str| row[name].as_str().unwrap().to_owned();
        let problem = Problem {
            id: "q".into(),
            body: text("body"),
            question: "How many?".into(),
            table: None,
            formula: Some(text("formula")),
            answer: text("answer"),
            remainder: Remainder::Exact,
            scale: None,
            solution_type: String::new(),
        };
        assert_eq!(Some(is_simple(&problem)), row["is_simple"].as_bool(), "{row}");
        let kind: Kind = text("perturbation").parse().unwrap();
        let seed = u32::try_from(row["seed"].as_u64().unwrap()).unwrap();
        let ours = reference_perturb(kind, &problem, &mut ReferenceRandom::new(seed));
        let ours = ours.map(|found| json!([found.problem.body, found.problem.formula, found.problem.answer]));
        assert_eq!(ours.unwrap_or_default(), row["perturbed"], "{row}");
    }
}

proptest! {
    /// Any completion is scored without a panic, and always the same.
    #[test]
    fn any_prediction_is_judged(
        prediction in r#"([0-9.,eEjx_%$()\[\]{}+*/&|^~<>=!:; -]|\*\*|//|abs\(|round\(|sum\(|int\(|if | else |lambda x:|for x in |"|\n|\PC){0,24}"#,
        scale in prop::sample::select(vec!["", "thousand", "million", "percent"]),
    ) {
        let of = || {
            let mentions = raw_reference_mentions(&prediction);
            let matched = tatqa_match("12.5", "million", &prediction.as_str().into(), scale);
            (paper_equation(&prediction, "5+7"), matched, mentions)
        };
        let found = of();
        for mention in &found.2 {
            prop_assert_eq!(&prediction[mention.start..mention.end], mention.text.as_str());
        }
        prop_assert_eq!(of(), found);
    }

    /// Sums and products are those of integers, however large.
    #[test]
    fn integers_are_exact(a in any::<i64>(), b in any::<i64>()) {
        let (a, b) = (i128::from(a), i128::from(b));
        for (expression, value) in [
            (format!("{a}+{b}"), a + b),
            (format!("{a}-{b}"), a - b),
            (format!("{a}*{b}"), a * b),
            (format!("sum([{a},{b}])"), a + b),
            (format!("({a})//1"), a),
        ] {
            prop_assert_eq!(python_eval(&expression).and_then(|found| found.text()), Ok(value.to_string()));
        }
    }
}
