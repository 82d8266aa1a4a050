//! Worked solutions read by their last step: `cargo run --release -p earnest-answer --example reader_steps -- FILE [MISSES]`.
//!
//! FILE is GSM8K's in JSONL: `question`, and `answer`, a solution that ends with `#### N`. Each is read without that line, as it is and
//! without its calculator's notes (`<<2*3=6>>`); what is not read as N goes to MISSES.
use std::error::Error;
use std::fmt::Write;

use earnest_answer::reader::{Asked, Form, read};
use serde_json::Value;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let file = arguments.next().ok_or("name a file of solutions")?;
    let rows: Vec<Value> = std::fs::read_to_string(file)?.lines().map(serde_json::from_str).collect::<Result<_, _>>()?;
    let mut misses = String::new();
    for (name, with_notes) in [("as they are", true), ("without notes", false)] {
        let mut right = 0;
        for (number, row) in rows.iter().enumerate() {
            let field = |name: &str| row[name].as_str().unwrap_or_default();
            let (solution, answer) = field("answer").rsplit_once("\n#### ").ok_or("a solution has no line with ####")?;
            let solution = if with_notes { solution.to_owned() } else { without_notes(solution) };
            let asked = Asked { prompt: field("question"), form: Form::Number };
            let reading = read(&asked, &solution, false);
            let answer = answer.trim().replace(',', "");
            if reading.answer.as_ref().is_ok_and(|read| read.is_same_as(&answer)) {
                right += 1;
                continue;
            }
            let read = reading.answer.map_or_else(|none| format!("({})", none.name()), |answer| answer.text);
            writeln!(misses, "{name}, row {}: want {answer}, read {read}\n  Q {:?}\n  A {solution:?}", number + 1, asked.prompt)?;
        }
        println!("{name}: {right} of {} are read by their last step ({:.2} %)", rows.len(), 100.0 * f64::from(right) / rows.len() as f64);
    }
    if let Some(path) = arguments.next() {
        std::fs::write(path, misses)?;
    }
    Ok(())
}

fn without_notes(solution: &str) -> String {
    let mut text = String::new();
    let mut rest = solution;
    while let Some((before, note)) = rest.split_once("<<") {
        text.push_str(before);
        rest = note.split_once(">>").map_or("", |(_, behind)| behind);
    }
    text + rest
}
