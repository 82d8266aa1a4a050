//! Fits the weights of the reader's evidence on labelled completions: `cargo run --release -p earnest-answer --example reader_fit [FILE...]`.
//!
//! Without files all labelled rows of the repository are taken. Of a completion's numbers and "no answer", the labelled ones are to have the
//! most evidence. `--leave` leaves one style out at a time, `--show` prints what is read wrong (`WHY=1` with the evidence), `--write PATH`
//! writes the weights, `--test FILE` reads another file with them, `--ridge X` sets the penalty.
use std::collections::BTreeMap;
use std::error::Error;

use earnest_answer::reader::Feature;

mod fit;

use fit::{Row, choice, fit, left_out, rows};

fn main() -> Result<(), Box<dyn Error>> {
    let mut files = Vec::new();
    let (mut leave, mut show, mut write, mut test, mut ridge) = (false, false, None, Vec::new(), 0.3);
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--leave" => leave = true,
            "--show" => show = true,
            "--write" => write = Some(arguments.next().ok_or("a file follows --write")?),
            "--ridge" => ridge = arguments.next().ok_or("a number follows --ridge")?.parse()?,
            "--test" => test.push(arguments.next().ok_or("a file follows --test")?),
            file => files.push(file.to_owned()),
        }
    }
    if files.is_empty() {
        files = fit::files()?;
    }
    let mut all = Vec::new();
    for file in &files {
        all.extend(rows(file)?);
    }
    let unreachable: Vec<&Row> = all.iter().filter(|row| !row.right.iter().any(|&right| right)).collect();
    println!("{} rows, {} whose label is not among the mentions", all.len(), unreachable.len());
    if show {
        for row in &unreachable {
            println!("not among {:?}:", row.texts);
            row.tell(row.texts.len() - 1, &vec![0.0; Feature::ALL.len()]);
        }
    }
    let everything: Vec<&Row> = all.iter().collect();
    let weights = fit(&everything, ridge);
    let right = all.iter().filter(|row| row.right[choice(&weights, row)]).count();
    let shipped = all.iter().filter(|row| row.is_labelled(row.read.as_deref())).count();
    println!("fitted: {right}/{} read as labelled, {shipped} with the reader's own weights", all.len());
    if show && !leave {
        for row in &all {
            let chosen = choice(&weights, row);
            if !row.right[chosen] {
                row.tell(chosen, &weights);
            }
        }
    }
    if leave {
        let mut by: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
        for (row, (chosen, weights)) in all.iter().zip(left_out(&all, ridge)) {
            let counts = by.entry(row.style()).or_default();
            counts.1 += 1;
            if row.right[chosen] {
                counts.0 += 1;
            } else if show && row.right.iter().any(|&right| right) {
                row.tell(chosen, &weights);
            }
        }
        for (style, (right, all)) in &by {
            if right < all {
                println!("  {style:24} {right}/{all}");
            }
        }
        let (right, all) = by.values().fold((0, 0), |sum, counts| (sum.0 + counts.0, sum.1 + counts.1));
        println!("one style left out at a time: {right}/{all} ({:.1} %)", 100.0 * right as f64 / all as f64);
    }
    for file in &test {
        let rows = rows(file)?;
        let mut right = 0;
        for row in &rows {
            let chosen = choice(&weights, row);
            if row.right[chosen] {
                right += 1;
            } else {
                row.tell(chosen, &weights);
            }
        }
        println!("{file}: {right}/{} ({:.1} %)", rows.len(), 100.0 * right as f64 / rows.len() as f64);
    }
    if let Some(path) = write {
        let line =
            |&feature: &Feature| format!("{}\t{:.3}\t{}\n", feature.name(), weights[feature as usize], feature.says());
        let lines: String = Feature::ALL.iter().map(line).collect();
        std::fs::write(path, format!("# {} rows, ridge {ridge}: examples/reader_fit.rs\n{lines}", all.len()))?;
    }
    Ok(())
}
