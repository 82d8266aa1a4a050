//! The DNC vectors: number words, mentions, perturbations as the reference makes them, the proposed Extra rule, both scorings.
use std::path::Path;

use earnest_answer::number::words::number_words;
use earnest_tasks::suite::dnc::{
    Donor, DonorPool, Kind, Mention, Problem, PythonValue, ReferenceRandom, Remainder, inserted, insertion_offset,
    is_simple, paper_equation, raw_reference_mentions, reference_mentions, reference_perturb, tatqa_match,
};
use serde_json::{Map, Value};

use super::files;
use super::report::{FileReport, check_json_lines, flag, require_equal as same, text};

type Row = Map<String, Value>;

/// Checks the subject's files.
pub fn check(root: &Path) -> Vec<FileReport> {
    let mut reports = vec![
        check_json_lines(root, "dnc/num2words.jsonl", words_row),
        check_json_lines(root, "dnc/mentions.jsonl", mentions_row),
        check_json_lines(root, "dnc/perturb.jsonl", perturb_row),
        check_json_lines(root, "dnc/asdiv_scoring.jsonl", asdiv_row),
        check_json_lines(root, "dnc/tatqa_metric.jsonl", tatqa_row),
    ];
    match golden_pool(root) {
        None => {
            reports.push(FileReport::absent(POOL));
            // Without the pool the places of the donors mean nothing.
            let wanted = |_: &Row| Err(format!("{POOL} is absent, and the rows count in it"));
            reports.push(check_json_lines(root, EXTRA, wanted));
        }
        Some(Err(error)) => reports.push(FileReport::unreadable(POOL, error)),
        Some(Ok(pool)) => {
            let seen = std::cell::RefCell::new(Vec::new());
            reports.push(check_json_lines(root, EXTRA, |row| {
                seen.borrow_mut().push(problem(field(row, "orig")?, text(row, "id")?)?);
                extra_row(row, &DonorPool::of(pool.clone()))
            }));
            reports.push(check_pool(&pool, &seen.into_inner()));
        }
    }
    reports
}

const EXTRA: &str = "dnc/extra_proposed.jsonl";
const POOL: &str = "dnc/extra_pool.test.json";

fn golden_pool(root: &Path) -> Option<Result<Vec<Donor>, String>> {
    let path = root.join(POOL);
    if !files::is_there(&path) {
        return None;
    }
    let read = files::read(&path).map_err(|error| error.to_string());
    let rows = read.and_then(|text| serde_json::from_str::<Vec<Value>>(&text).map_err(|error| error.to_string()));
    let donor = |row: &Value| {
        let text = |name: &str| row[name].as_str().map(str::to_owned).ok_or_else(|| format!("a row has no `{name}`"));
        Ok(Donor { id: text("id")?, sentence: text("sentence")? })
    };
    Some(rows.and_then(|rows| rows.iter().map(donor).collect()))
}

fn field<'a>(row: &'a Row, name: &str) -> Result<&'a Row, String> {
    row.get(name).and_then(Value::as_object).ok_or_else(|| format!("field `{name}` is missing or no object"))
}

fn list<'a>(row: &'a Row, name: &str) -> Result<&'a Vec<Value>, String> {
    row.get(name).and_then(Value::as_array).ok_or_else(|| format!("field `{name}` is missing or no list"))
}

fn problem(row: &Row, id: &str) -> Result<Problem, String> {
    Ok(Problem {
        id: id.to_owned(),
        body: text(row, "Body")?.to_owned(),
        question: text(row, "Question")?.to_owned(),
        table: None,
        formula: Some(text(row, "Formula")?.to_owned()),
        answer: text(row, "Answer")?.to_owned(),
        remainder: Remainder::Exact,
        scale: None,
        solution_type: String::new(),
    })
}

fn words_row(row: &Row) -> Result<(), String> {
    let input = text(row, "input")?;
    same("words", number_words(input).as_deref(), row.get("python_0_5_14").and_then(Value::as_str))?;
    let kept = number_words(input).unwrap_or_else(|| input.to_owned());
    same("text after Language", kept.as_str(), text(row, "dnc_language_output")?)
}

/// Mentions as the golden files have them: text, start, end in characters.
fn in_characters(source: &str, mentions: &[Mention]) -> Value {
    let at = |byte: usize| source[..byte].chars().count();
    Value::Array(mentions.iter().map(|m| serde_json::json!([m.text, at(m.start), at(m.end)])).collect())
}

fn mentions_row(row: &Row) -> Result<(), String> {
    let source = text(row, "text")?;
    let golden = |name: &str| row.get(name).cloned().ok_or_else(|| format!("field `{name}` is missing"));
    same("find_numbers", in_characters(source, &raw_reference_mentions(source)), golden("find_numbers")?)?;
    same("find_num", in_characters(source, &reference_mentions(source)), golden("find_num")?)
}

fn perturb_row(row: &Row) -> Result<(), String> {
    let kind: Kind = text(row, "perturbation")?.parse().map_err(|error| format!("{error}"))?;
    let before = problem(field(row, "orig")?, text(row, "id")?)?;
    same("mentions", in_characters(&before.body, &reference_mentions(&before.body)), row["body_mentions"].clone())?;
    let operands = list(field(row, "filter")?, "operands")?;
    same(
        "operands",
        before.reference_operands(),
        operands.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
    )?;
    if let Some(simple) = field(row, "filter")?.get("is_simple") {
        same("filter", Some(is_simple(&before)), simple.as_bool())?;
    }
    // The generators are seeded with the row's seed; the draws must follow from it.
    let seed = row.get("seed").and_then(Value::as_u64).and_then(|seed| u32::try_from(seed).ok()).ok_or("no seed")?;
    let after = reference_perturb(kind, &before, &mut ReferenceRandom::new(seed));
    same("applied", after.is_some(), flag(row, "applied")?)?;
    let Some(after) = after.map(|after| after.problem) else {
        return same("perturbed", &Value::Null, &row["perturbed"]);
    };
    let golden = field(row, "perturbed")?;
    same("body", after.body.as_str(), text(golden, "Body")?)?;
    same("question", after.question.as_str(), text(golden, "Question")?)?;
    same("answer", after.answer.as_str(), text(golden, "Answer")?)?;
    same("formula", after.formula.as_deref().unwrap_or_default(), text(golden, "Formula")?)?;
    same("text changed", before.body != after.body, flag(row, "text_changed")?)?;
    same("formula changed", before.formula != after.formula, flag(row, "formula_changed")?)?;
    let value = after.expression().ok_or("the formula is unreadable")?.value().map_err(|error| error.to_string())?;
    same("exact value", value.to_string().as_str(), text(field(row, "exact_value")?, "fraction")?)?;
    draws(row, seed)
}

/// The values that were drawn, one by one.
fn draws(row: &Row, seed: u32) -> Result<(), String> {
    let mut random = ReferenceRandom::new(seed);
    for draw in list(row, "draws")? {
        let number = |name: &str| draw[name].as_f64().ok_or_else(|| format!("a draw has no `{name}`"));
        match draw["kind"].as_str() {
            Some("choice") => same("choice", Some(u64::from(random.digit())), draw["value"].as_u64())?,
            Some("normal") => {
                let drawn = random.normal(number("mu")?, number("sigma")?);
                same(
                    "bits",
                    format!("{:016x}", drawn.to_bits()).as_str(),
                    draw["f64_bits"].as_str().unwrap_or_default(),
                )?;
                same("offset", Some(drawn as i64), draw["int"].as_i64())?;
            }
            other => return Err(format!("a draw of kind {other:?} is unknown")),
        }
    }
    Ok(())
}

fn asdiv_row(row: &Row) -> Result<(), String> {
    let scored = paper_equation(text(row, "pred")?, text(row, "gold_lhs")?);
    same("acc_eq", scored.equation, flag(row, "acc_eq")?)?;
    same("acc_ans", scored.answer, flag(row, "acc_ans")?)?;
    same("exception", scored.exception, row.get("exception").and_then(Value::as_str))
}

fn tatqa_row(row: &Row) -> Result<(), String> {
    let gold = field(row, "gold")?;
    let answer = PythonValue::from_json(&gold["answer"]).text().map_err(|error| error.to_string())?;
    let prediction = PythonValue::from_json(row.get("pred").ok_or("no prediction")?);
    let ours = tatqa_match(&answer, text(gold, "scale")?, &prediction, text(row, "pred_scale")?);
    let failed = row.get("error").is_some_and(|error| !error.is_null());
    let em = row.get("em").and_then(Value::as_f64).or(failed.then_some(0.0)).ok_or("no em")?;
    same("exact match", ours.exact, em == 1.0)?;
    same("gold string", ours.gold.as_deref(), row["gold_string"][0].as_str())?;
    same("prediction string", ours.prediction.as_deref(), row["pred_string"][0].as_str())
}

fn extra_row(row: &Row, donors: &DonorPool) -> Result<(), String> {
    let before = problem(field(row, "orig")?, text(row, "id")?)?;
    let golden: Vec<usize> =
        list(row, "eligible")?.iter().filter_map(Value::as_u64).map(|index| index as usize).collect();
    let eligible = donors.eligible(&before);
    same("eligible", &eligible, &golden)?;
    let seed = row.get("seed").and_then(Value::as_u64).and_then(|seed| u32::try_from(seed).ok()).ok_or("no seed")?;
    let drawn = ReferenceRandom::new(seed).below(eligible.len() as u32) as usize;
    same("draw", Some(drawn as u64), row["draw"]["value"].as_u64())?;
    let donor = &donors.donors()[eligible[drawn]];
    same("donor", Some(donor.sentence.as_str()), row["donor"]["sentence"].as_str())?;
    let mut body = before.body.clone();
    body.insert_str(insertion_offset(&before.body), &inserted(&before.body, &donor.sentence));
    let golden = field(row, "perturbed")?;
    same("body", body.as_str(), text(golden, "Body")?)?;
    same("question", before.question.as_str(), text(golden, "Question")?)
}

/// Every question whose body is known gives the sentence that the pool has, and no other question gives one.
fn check_pool(pool: &[Donor], questions: &[Problem]) -> FileReport {
    let ours = DonorPool::new(questions);
    let given = |id: &str| ours.donors().iter().find(|donor| donor.id == id).map(|donor| donor.sentence.as_str());
    let golden = |donor: &Donor| {
        if questions.iter().any(|question| question.id == donor.id) {
            return same("sentence", given(&donor.id), Some(donor.sentence.as_str()));
        }
        // Without the question's body the sentence itself must pass as a donor.
        let row = serde_json::json!({"Body": donor.sentence, "Question": "", "Answer": "", "Formula": ""});
        let alone = problem(row.as_object().ok_or("no object")?, &donor.id)?;
        same("sentence alone", DonorPool::new([&alone]).donors(), std::slice::from_ref(donor))
    };
    let surplus = ours.donors().iter().find(|donor| pool.iter().all(|golden| golden.id != donor.id));
    let complete = surplus.map_or(Ok(()), |donor| Err(format!("{} gives a sentence that the pool has not", donor.id)));
    FileReport::checked(POOL, pool.iter().map(golden).chain([complete]))
}
