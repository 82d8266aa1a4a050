//! The released GSM_p2 rows from their templates: every drawn value is read back from the question, the conditions are
//! checked and the worked answer is written again. Runs when `EARNEST_DATA` names a folder with `templates/` and
//! `GSM_p2.jsonl`.
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::PathBuf;

use serde_json::Value as Json;

use super::document::{Draw, Template};
use super::evaluate::{Precision, Scope};
use super::render::Piece;
use super::value::Value;

fn data() -> Option<PathBuf> {
    let folder = std::env::var_os("EARNEST_DATA").map(PathBuf::from);
    if folder.is_none() {
        eprintln!("skipped: EARNEST_DATA names no folder with GSM-Symbolic data");
    }
    folder
}

fn templates(folder: &std::path::Path, set: &str) -> BTreeMap<String, Template> {
    let mut found = BTreeMap::new();
    for entry in std::fs::read_dir(folder.join("templates").join(set)).unwrap() {
        let path = entry.unwrap().path();
        let name = format!("{set}/{}", path.file_stem().unwrap().to_string_lossy());
        let template = Template::parse(&std::fs::read_to_string(&path).unwrap());
        found.insert(name.clone(), template.unwrap_or_else(|error| panic!("{name}: {error}")));
    }
    found
}

#[test]
fn every_template_is_understood() {
    let Some(folder) = data() else { return };
    let counts = ["symbolic", "p1", "p2"].map(|set| templates(&folder, set).len());
    assert_eq!(counts, [100, 100, 50]);
}

#[test]
fn released_rows_are_reproduced() {
    let Some(folder) = data() else { return };
    let templates = templates(&folder, "p2");
    let by_id: BTreeMap<u64, &Template> =
        templates.values().map(|template| (u64::from(template.id), template)).collect();
    let rows = std::fs::read_to_string(folder.join("GSM_p2.jsonl")).unwrap();
    let mut misses: BTreeMap<u64, (usize, String)> = BTreeMap::new();
    let (mut total, mut exactly) = (0, 0);
    for line in rows.lines() {
        let row: Json = serde_json::from_str(line).unwrap();
        let id = row["id"].as_u64().unwrap();
        let (question, answer) = (row["question"].as_str().unwrap(), row["answer"].as_str().unwrap());
        total += 1;
        match reproduce(by_id[&id], (question, answer)) {
            Ok(same) => exactly += usize::from(same),
            Err(reason) => {
                let place = row["instance"].to_string();
                misses.entry(id).or_insert_with(|| (0, format!("instance {place}: {reason}"))).0 += 1;
            }
        }
    }
    let list = misses.iter().fold(String::new(), |mut list, (id, (count, reason))| {
        writeln!(list, "template {id}: {count} rows, e.g. {reason}").unwrap();
        list
    });
    eprintln!("{total} rows, {exactly} to the byte\n{list}");
    // Without a single miss, and white space included.
    assert_eq!((total, exactly, misses.len()), (2500, 2500, 0), "{list}");
}

/// True if the answer is the same to the byte, false if only its white space differs.
fn reproduce(template: &Template, row: (&str, &str)) -> Result<bool, String> {
    let known = read_back(template, row.0)?;
    let matters = |index: usize| {
        let reads = |expression: &super::expression::Expression| {
            let mut found = Vec::new();
            expression.walk(&mut found);
            found.contains(&index)
        };
        template.conditions.iter().any(|condition| condition.reads.contains(&index))
            || template.answer.iter().any(|piece| matches!(piece, Piece::Expression(expression) if reads(expression)))
    };
    let mut pools: Vec<Vec<Value>> = Vec::new();
    for index in 0..template.names.len() {
        let draw = template.draws.iter().find(|draw| draw.targets.contains(&index)).unwrap();
        let mut pool: Vec<Value> = Vec::new();
        for value in &draw.pool {
            let fits = known.get(&index).is_none_or(|shown| value.shown().to_lowercase() == shown.to_lowercase());
            if fits && !pool.contains(value) {
                pool.push(value.clone());
            }
        }
        if !matters(index) {
            pool.truncate(1);
        }
        pools.push(pool);
    }
    let mut values: Vec<Option<Value>> = vec![None; pools.len()];
    let mut closest = "no values satisfy the conditions".to_owned();
    search(template, &pools, 0, &mut values, row, &mut closest).ok_or(closest)
}

fn search(
    template: &Template,
    pools: &[Vec<Value>],
    index: usize,
    values: &mut Vec<Option<Value>>,
    row: (&str, &str),
    closest: &mut String,
) -> Option<bool> {
    if let Some(pool) = pools.get(index) {
        for value in pool {
            values[index] = Some(value.clone());
            let scope = Scope { variables: values, precision: Precision::Python };
            let ready = |reads: &[usize]| reads.contains(&index) && reads.iter().all(|&read| read <= index);
            let fails = template
                .conditions
                .iter()
                .any(|condition| ready(&condition.reads) && scope.truth(&condition.expression) != Ok(true));
            if !fails && let Some(found) = search(template, pools, index + 1, values, row, closest) {
                return Some(found);
            }
        }
        return None;
    }
    let written = template.instance(values.clone()).ok()?;
    let written = (written.question.as_str(), written.answer.as_str());
    if written == row {
        return Some(true);
    }
    let plain = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    if plain(written.0) == plain(row.0) && plain(written.1) == plain(row.1) {
        return Some(false);
    }
    let lines = |(question, answer): (&str, &str)| format!("{question}\n{answer}").lines().map(str::to_owned).collect();
    let (ours, theirs): (Vec<String>, Vec<String>) = (lines(written), lines(row));
    *closest = format!("ours, theirs: {:?}", ours.iter().zip(&theirs).find(|(ours, theirs)| ours != theirs));
    None
}

/// The drawn texts of a question.
fn read_back(template: &Template, question: &str) -> Result<BTreeMap<usize, String>, String> {
    let draw = |index: usize| -> &Draw { template.draws.iter().find(|draw| draw.targets.contains(&index)).unwrap() };
    let mut pattern = String::from("^");
    let mut indices = Vec::new();
    for piece in &template.question {
        match piece {
            Piece::Text(text) => {
                let mut spaces = false;
                for letter in text.chars() {
                    if letter != ' ' || !spaces {
                        let part = if letter == ' ' { " *".to_owned() } else { regex::escape(&letter.to_string()) };
                        pattern.push_str(&part);
                    }
                    spaces = letter == ' ';
                }
            }
            Piece::Variable(index) => {
                let mut texts: Vec<String> = draw(*index).pool.iter().map(Value::shown).collect();
                texts.sort_by_key(|text| std::cmp::Reverse(text.len()));
                texts.dedup();
                let texts: Vec<String> = texts.iter().map(|text| regex::escape(text)).collect();
                write!(pattern, "((?i:{}))", texts.join("|")).unwrap();
                indices.push(*index);
            }
            Piece::Expression(_) => unreachable!("questions have variables only"),
        }
    }
    pattern.push_str(" *$");
    let found = regex::Regex::new(&pattern).unwrap().captures(question).ok_or("the question does not match")?;
    let mut known: BTreeMap<usize, String> = BTreeMap::new();
    for (group, index) in indices.into_iter().enumerate() {
        let text = found[group + 1].to_owned();
        match known.get(&index) {
            Some(earlier) if earlier.to_lowercase() != text.to_lowercase() => {
                return Err(format!("{} is both {earlier} and {text}", template.names[index]));
            }
            _ => drop(known.insert(index, text)),
        }
    }
    Ok(known)
}

#[test]
fn own_originals_follow_their_templates() {
    for template in super::super::mini::own_templates().unwrap() {
        let original = (template.original_question.as_str(), template.original_answer.as_str());
        assert_eq!(reproduce(&template, original), Ok(true), "template {}", template.id);
    }
}
