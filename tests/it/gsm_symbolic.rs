//! Templates and questions of GSM-Symbolic: ours always, Apple's where `EARNEST_DATA` names a folder that has `templates/`
//! and `gsm_base.jsonl`.
use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};
use std::time::Instant;

use earnest_stats::{KsMethod, kolmogorov_smirnov};
use earnest_tasks::suite::gsm_symbolic::large_numbers::{binned, gamma, integers};
use earnest_tasks::suite::gsm_symbolic::template::Template;
use earnest_tasks::suite::gsm_symbolic::{DrawnRow, Identity, Row, draw, parse};

use crate::exact_expression::{Exact, evaluate};

fn data() -> Option<PathBuf> {
    let folder = std::env::var_os("EARNEST_DATA").map(PathBuf::from);
    if folder.is_none() {
        eprintln!("skipped: EARNEST_DATA names no folder with GSM-Symbolic data");
    }
    folder
}

/// The drawn values as the other evaluator reads them.
fn variables(row: &DrawnRow) -> BTreeMap<String, Exact> {
    let value = |json: &serde_json::Value| match json {
        serde_json::Value::Number(number) => Exact::read(&number.to_string()),
        serde_json::Value::String(text) if text.chars().all(|c| c.is_ascii_digit() || c == '/') => Exact::read(text),
        serde_json::Value::String(text) => Exact::Text(text.clone()),
        other => panic!("{other}"),
    };
    row.variables.iter().map(|(name, json)| (name.clone(), value(json.get("value").unwrap_or(json)))).collect()
}

/// Draws from every template of a folder and checks each question with the other evaluator: its conditions, and that the number
/// after #### is the exact value of the expression there.
fn check(folder: &Path, count: usize) -> usize {
    let mut files: Vec<PathBuf> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    let mut checked = 0;
    for path in files {
        let name = path.display().to_string();
        let text = std::fs::read_to_string(&path).unwrap();
        let template = Template::parse(&text).unwrap_or_else(|error| panic!("{name}: {error}"));
        let json: serde_json::Value = serde_json::from_str(&text).unwrap();
        let annotated = json["question_annotated"].as_str().unwrap();
        let conditions: Vec<&str> = template.conditions().collect();
        let written = annotated.lines().skip_while(|line| !line.starts_with("#conditions"));
        let written = written.skip(1).take_while(|line| !line.starts_with('#')).filter(|line| line.starts_with('-'));
        assert_eq!(conditions, written.map(|line| line[1..].trim()).collect::<Vec<_>>(), "{name}");
        let last = json["answer_annotated"].as_str().unwrap().rsplit("####").next().unwrap().trim().to_owned();
        let rows = draw(&template, 1, count).unwrap_or_else(|error| panic!("{name}: {error}"));
        let questions: HashSet<&str> = rows.iter().map(|row| row.row.question.as_str()).collect();
        assert_eq!((rows.len(), questions.len()), (count, count), "{name}");
        for row in &rows {
            let variables = variables(row);
            for condition in &conditions {
                let holds = evaluate(condition, &variables);
                assert_ne!(holds, Exact::Number(0, 1), "{name}: {condition} with {:?}", row.variables);
            }
            let expression = last.trim_start_matches(['$', '€']);
            let expected = evaluate(
                expression.strip_prefix('{').and_then(|e| e.strip_suffix('}')).unwrap_or(expression),
                &variables,
            );
            assert_eq!(Exact::read(&row.row.gold()), expected, "{name}: {}", row.row.answer);
            assert_eq!((row.row.id, row.row.original_id), (template.id, template.original_id));
            assert_eq!(row.row.original_question, json["question"].as_str().unwrap());
            checked += 1;
        }
    }
    checked
}

#[test]
fn own_questions_satisfy_their_conditions_and_have_exact_answers() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("prompts/gsm-mini");
    assert_eq!(check(&folder, 200), 16 * 200);
}

#[test]
fn drawn_questions_satisfy_their_conditions_and_have_exact_answers() {
    let Some(folder) = data() else { return };
    let begun = Instant::now();
    assert_eq!(check(&folder.join("templates/symbolic"), 50), 5000);
    let seconds = begun.elapsed().as_secs_f64();
    eprintln!("100 symbolic templates, 50 questions each, drawn and checked in {seconds:.1} s");
    assert!(seconds < 60.0, "{seconds} s");
    assert_eq!(check(&folder.join("templates/p1"), 20), 2000);
    assert_eq!(check(&folder.join("templates/p2"), 50), 2500);
}

#[test]
fn numbers_of_the_originals_are_those_of_the_study() {
    let Some(folder) = data() else { return };
    let rows = parse(&std::fs::read_to_string(folder.join("gsm_base.jsonl")).unwrap()).unwrap();
    let missing: Vec<u32> = rows.iter().filter(|row| gamma(&row.question).is_none()).map(|row| row.id).collect();
    assert_eq!(missing, [55, 98]);
    let originals: Vec<f64> = rows.iter().flat_map(|row| integers(&row.question)).collect();
    assert_eq!(originals.len(), 337);
    let percent = binned(&originals).map(|share| (10_000.0 * share).round() / 100.0);
    assert_eq!(percent, [1.19, 6.82, 8.01, 10.09, 4.15, 16.91, 15.43, 16.62, 10.39, 7.72, 2.67]);
    let Ok(text) = std::fs::read_to_string(folder.join("gsm_variants_regenerated.jsonl")) else { return };
    let variants: Vec<Row> = parse(&text).unwrap();
    let drawn: Vec<f64> = variants.iter().flat_map(|row| integers(&row.question)).collect();
    let test = kolmogorov_smirnov(&originals, &drawn, KsMethod::Auto).unwrap();
    assert_eq!(drawn.len(), 18_296);
    assert!((test.statistic - 0.1231).abs() < 5e-5, "{test:?}");
    // Same templates, other draws: this is not the published set, and it is said.
    let identity = Identity::of(&rows, &variants);
    assert!(!identity.is_published() && identity.known == 98 && identity.matching < 98, "{identity:?}");
}

#[test]
fn broken_templates_are_refused_by_name() {
    let template = |init: &str, conditions: &str, answer: &str| {
        serde_json::json!({
            "question": "How many?", "answer": "#### 1", "id_orig": 1, "id_shuffled": 7,
            "question_annotated": format!("{{n,1}} and {{m,2}}?\n\n#init:\n{init}\n\n#conditions:\n{conditions}\n\n#answer: n"),
            "answer_annotated": answer,
        })
        .to_string()
    };
    let (init, answer) = ("- $n = range(1, 9)\n- $m = range(1, 9)", "#### {n}");
    let drawn = |init: &str, conditions: &str, answer: &str, count| {
        let template = Template::parse(&template(init, conditions, answer)).map_err(|error| error.to_string())?;
        draw(&template, 1, count).map_err(|error| error.to_string())
    };
    assert_eq!(drawn(init, "- n < m", answer, 28).unwrap().len(), 28);
    let too_many = drawn(init, "- n < m", answer, 29).unwrap_err();
    assert!(too_many.starts_with("template 7: only 28 different questions"), "{too_many}");
    let impossible = drawn(init, "- n < m\n- m < n", answer, 1).unwrap_err();
    assert!(impossible.contains("no values satisfy") && impossible.contains("n < m"), "{impossible}");
    // One solution in ten thousand million is found, because conditions are used to look for it.
    let wide = "- $n = range(100000)\n- $m = range(100000)";
    assert_eq!(drawn(wide, "- n == 99999\n- m == n - 1", answer, 1).unwrap()[0].row.question, "99999 and 99998?");
    for (init, conditions, answer, what) in [
        ("- $n = range(1, 9)", "", answer, "\"m\" is not defined"),
        ("- n, m = sample([1])", "", answer, "2 variables"),
        ("- n, m = sample([1], 2)", "", answer, "2 draws from 1 things"),
        ("- $n = range(9)\n- $m = nonsense(3)", "", answer, "there is no function nonsense"),
        (init, "- n <", answer, "ends too early"),
        (init, "- q > 1", answer, "q is not defined"),
        (init, "", "The end {n}", "####"),
        (init, "", "#### {n", "is not closed"),
        (init, "- n < \"a\"", answer, "no order"),
        (init, "", "#### {n / 0}", "division by zero"),
        (init, "", "#### {int(0.29 * 100) + 0 * n}", "no answer was exact"),
    ] {
        let error = drawn(init, conditions, answer, 1).unwrap_err();
        assert!(error.contains(what), "{what}: {error}");
    }
    assert!(Template::parse("{}").is_err() && Template::parse("no json").is_err());
}
