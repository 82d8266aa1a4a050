//! Completions read per second, one thread: the labelled corpus, each row with its prompt.
use std::path::Path;

use divan::counter::ItemsCount;
use earnest_answer::reader::{Asked, Form, read};
use serde_json::Value;

#[path = "../tests/golden_subjects/files.rs"]
mod files;

struct Row {
    prompt: String,
    completion: String,
    form: Form,
    truncated: bool,
}

fn corpus() -> Vec<Row> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/answers/answers.jsonl");
    let corpus = files::read(&path).expect("the corpus is part of the repository");
    let row = |line: &str| {
        let row: Value = serde_json::from_str(line).expect("the corpus is JSON lines");
        let text = |field: &str| row[field].as_str().expect("a text").to_owned();
        let form = match row["form"].as_str() {
            Some("integer") => Form::Integer,
            Some("float") => Form::Float,
            Some("fraction") => Form::Fraction,
            Some("scientific") => Form::Scientific,
            _ => Form::Number,
        };
        Row { prompt: text("prompt"), completion: text("completion"), form, truncated: row["finish"] == "length" }
    };
    corpus.lines().map(row).collect()
}

fn main() {
    divan::main();
}

#[divan::bench(sample_count = 50, sample_size = 5)]
fn labelled_corpus(bencher: divan::Bencher<'_, '_>) {
    let rows = corpus();
    bencher.counter(ItemsCount::new(rows.len())).bench_local(|| {
        let answered = |row: &&Row| {
            read(&Asked { prompt: &row.prompt, form: row.form }, &row.completion, row.truncated).answer.is_ok()
        };
        rows.iter().filter(answered).count()
    });
}

/// A long chain of thought and its answer, as thinking models write it.
#[divan::bench(sample_count = 50, sample_size = 5)]
fn long_thinking(bencher: divan::Bencher<'_, '_>) {
    let working =
        "So 744 + 543: 700 + 500 = 1200, 44 + 43 = 87, together 1287. Wait, let me check that again. ".repeat(100);
    let completion = format!("<think>\n{working}</think>\n\n744 + 543 = **1287**");
    let asked = Asked { prompt: "Add two numbers: 744 + 543 =", form: Form::Integer };
    bencher.counter(ItemsCount::new(1usize)).bench_local(|| read(&asked, &completion, false).answer.is_ok());
}
