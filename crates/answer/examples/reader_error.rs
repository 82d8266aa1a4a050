//! The error of the reader on labelled completions: `cargo run --release -p earnest-answer --example reader_error [FILE...]`.
use std::collections::BTreeMap;
use std::error::Error;

use earnest_answer::reader::{Asked, Form, read};
use serde_json::Value;

fn main() -> Result<(), Box<dyn Error>> {
    let wrong = std::env::args().any(|a| a == "--wrong");
    let files: Vec<String> = std::env::args().skip(1).filter(|a| !a.starts_with("--")).collect();
    for file in files {
        let text = std::fs::read_to_string(&file)?;
        let mut kinds: BTreeMap<String, (usize, usize)> = BTreeMap::new();
        let (mut right, mut total, mut nulls, mut false_answers) = (0, 0, 0, 0);
        for line in text.lines() {
            let row: Value = serde_json::from_str(line)?;
            let field = |name: &str| row[name].as_str().unwrap_or_default();
            let form = match field("form") {
                "integer" => Form::Integer,
                "float" => Form::Float,
                "fraction" => Form::Fraction,
                "scientific" => Form::Scientific,
                _ => Form::Number,
            };
            let reading =
                read(&Asked { prompt: field("prompt"), form }, field("completion"), field("finish") == "length");
            let mut labels = vec![row["answer"].as_str()];
            labels.extend(row["also"].as_array().into_iter().flatten().map(Value::as_str));
            let ok = labels.iter().any(|label| match (label, &reading.answer) {
                (None, Err(_)) => true,
                (Some(label), Ok(answer)) => answer.is_same_as(label),
                _ => false,
            });
            total += 1;
            right += usize::from(ok);
            nulls += usize::from(labels[0].is_none());
            false_answers += usize::from(labels[0].is_none() && !ok);
            let tag = row["tags"][0].as_str().unwrap_or("-").to_owned();
            let counts = kinds.entry(tag).or_default();
            counts.0 += usize::from(ok);
            counts.1 += 1;
            if !ok && wrong {
                let got = reading.answer.as_ref().map_or_else(|e| format!("({})", e.name()), |a| a.text.clone());
                println!(
                    "{} {} want {:?} got {got}\n   Q {:?}\n   A {:?}",
                    field("id"),
                    row["tags"],
                    labels,
                    field("prompt").chars().rev().take(110).collect::<Vec<_>>().iter().rev().collect::<String>(),
                    field("completion")
                );
            }
        }
        for (kind, (right, all)) in &kinds {
            if right < all {
                println!("  {kind:24} {right}/{all}");
            }
        }
        println!("{file}: {right}/{total}, false answers {false_answers}/{nulls}");
    }
    Ok(())
}
