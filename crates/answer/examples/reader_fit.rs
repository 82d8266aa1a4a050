//! Fits the weights of the reader's evidence on labelled completions: `cargo run --release -p earnest-answer --example reader_fit FILE...`.
//!
//! A conditional logit with a ridge penalty: of a completion's numbers and "no answer", the labelled ones are to have the most evidence.
//! `--leave` leaves one style out at a time and prints what is read wrong where nothing was fitted; `--write PATH` writes the weights; `--test FILE` reads another file.
use std::collections::{BTreeMap, BTreeSet};
use std::error::Error;

use earnest_answer::reader::{Asked, Feature, Form, evidence, same_number};
use serde_json::Value;

struct Row {
    id: String,
    style: String,
    /// Features of the mentions, then those of no answer.
    candidates: Vec<Vec<usize>>,
    right: Vec<bool>,
    texts: Vec<String>,
    /// By candidate the first one of its value.
    values: Vec<usize>,
    label: Option<String>,
    completion: String,
    prompt: String,
}

fn rows(file: &str) -> Result<Vec<Row>, Box<dyn Error>> {
    let mut rows = Vec::new();
    for line in std::fs::read_to_string(file)?.lines() {
        let row: Value = serde_json::from_str(line)?;
        let field = |name: &str| row[name].as_str().unwrap_or_default();
        let form = match field("form") {
            "integer" => Form::Integer,
            "float" => Form::Float,
            "fraction" => Form::Fraction,
            "scientific" => Form::Scientific,
            _ => Form::Number,
        };
        let (mentions, none) =
            evidence(&Asked { prompt: field("prompt"), form }, field("completion"), field("finish") == "length");
        let mut labels = vec![row["answer"].as_str()];
        labels.extend(row["also"].as_array().into_iter().flatten().map(Value::as_str));
        let indices = |features: &[Feature]| features.iter().map(|&feature| feature as usize).collect::<Vec<_>>();
        let mut candidates: Vec<Vec<usize>> = mentions.iter().map(|(_, features)| indices(features)).collect();
        let mut right: Vec<bool> =
            mentions.iter().map(|(text, _)| labels.iter().flatten().any(|label| same_number(text, label))).collect();
        let mut texts: Vec<String> = mentions.into_iter().map(|(text, _)| text).collect();
        candidates.push(indices(&none));
        right.push(labels.contains(&None));
        texts.push("none".to_owned());
        let values = (0..texts.len())
            .map(|index| (0..index).find(|&other| same_number(&texts[other], &texts[index])).unwrap_or(index))
            .collect();
        rows.push(Row {
            values,
            id: field("id").to_owned(),
            style: row["tags"][0].as_str().unwrap_or("-").to_owned(),
            candidates,
            right,
            texts,
            label: labels[0].map(str::to_owned),
            completion: field("completion").to_owned(),
            prompt: field("prompt").to_owned(),
        });
    }
    Ok(rows)
}

fn score(weights: &[f64], features: &[usize]) -> f64 {
    features.iter().map(|&feature| weights[feature]).sum()
}

/// The choice of a set of weights: of the values that are mentioned, and of no answer, the one with the most evidence.
fn choice(weights: &[f64], row: &Row) -> usize {
    let scores: Vec<f64> = row.candidates.iter().map(|features| score(weights, features).exp()).collect();
    let sum = |index: usize| {
        (0..scores.len())
            .filter(|&other| row.values[other] == row.values[index])
            .map(|other| scores[other])
            .sum::<f64>()
    };
    let sums: Vec<f64> = (0..scores.len()).map(sum).collect();
    let mut best = 0;
    for index in 1..scores.len() {
        if (sums[index], scores[index]) >= (sums[best], scores[best]) {
            best = index;
        }
    }
    best
}

fn fit(rows: &[&Row], ridge: f64) -> Vec<f64> {
    const STEPS: usize = 600;
    let size = Feature::ALL.len();
    let (mut weights, mut mean, mut square) = (vec![0.0; size], vec![0.0; size], vec![0.0; size]);
    for step in 1..=STEPS {
        let mut gradient: Vec<f64> = weights.iter().map(|weight| ridge * weight).collect();
        for row in rows.iter().filter(|row| row.right.iter().any(|&right| right)) {
            let scores: Vec<f64> = row.candidates.iter().map(|features| score(&weights, features)).collect();
            let most = scores.iter().copied().fold(f64::MIN, f64::max);
            let all: Vec<f64> = scores.iter().map(|score| (score - most).exp()).collect();
            let total: f64 = all.iter().sum();
            let good: f64 = all.iter().zip(&row.right).filter(|(_, right)| **right).map(|(p, _)| p).sum();
            for (index, features) in row.candidates.iter().enumerate() {
                let slope = all[index] / total - if row.right[index] { all[index] / good } else { 0.0 };
                for &feature in features {
                    gradient[feature] += slope;
                }
            }
        }
        let rate = 0.1 / (1.0 + step as f64 / 150.0);
        for index in 0..size {
            mean[index] = 0.9 * mean[index] + 0.1 * gradient[index];
            square[index] = 0.999 * square[index] + 0.001 * gradient[index] * gradient[index];
            let (m, v) =
                (mean[index] / (1.0 - 0.9f64.powi(step as i32)), square[index] / (1.0 - 0.999f64.powi(step as i32)));
            weights[index] -= rate * m / (v.sqrt() + 1e-8);
        }
    }
    weights
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut files = Vec::new();
    let (mut leave, mut show, mut write, mut test, mut ridge) = (false, false, None, Vec::new(), 0.3);
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--leave" => leave = true,
            "--show" => show = true,
            "--write" => write = arguments.next(),
            "--ridge" => ridge = arguments.next().ok_or("a number follows --ridge")?.parse()?,
            "--test" => test.push(arguments.next().ok_or("a file follows --test")?),
            file => files.push(file.to_owned()),
        }
    }
    let mut all = Vec::new();
    for file in &files {
        all.extend(rows(file)?);
    }
    let unreachable: Vec<&Row> = all.iter().filter(|row| !row.right.iter().any(|&right| right)).collect();
    println!("{} rows, {} whose label is not among the mentions", all.len(), unreachable.len());
    if show {
        for row in &unreachable {
            println!(
                "unreachable {} {} want {:?} of {:?}\n   Q {:?}\n   A {:?}",
                row.id,
                row.style,
                row.label,
                row.texts,
                row.prompt.chars().rev().take(100).collect::<Vec<_>>().iter().rev().collect::<String>(),
                row.completion
            );
        }
    }
    let tell = |row: &Row, chosen: usize, weights: &[f64]| {
        println!(
            "{} {} want {:?} got {}\n   Q {:?}\n   A {:?}",
            row.id,
            row.style,
            row.label,
            row.texts[chosen],
            row.prompt.chars().rev().take(120).collect::<Vec<_>>().iter().rev().collect::<String>(),
            row.completion
        );
        if std::env::var("WHY").is_ok() {
            for (index, features) in row.candidates.iter().enumerate() {
                let names: Vec<String> = features
                    .iter()
                    .map(|&feature| format!("{} {:.1}", Feature::ALL[feature].name(), weights[feature]))
                    .collect();
                println!("      {:>10} {:6.2} {}", row.texts[index], score(weights, features), names.join(", "));
            }
        }
    };
    let everything: Vec<&Row> = all.iter().collect();
    let weights = fit(&everything, ridge);
    let right = all.iter().filter(|row| row.right[choice(&weights, row)]).count();
    println!("fitted: {right}/{} read as labelled", all.len());
    if show && !leave {
        for row in &all {
            let chosen = choice(&weights, row);
            if !row.right[chosen] {
                tell(row, chosen, &weights);
            }
        }
    }
    if leave {
        let styles: BTreeSet<&str> = all.iter().map(|row| row.style.as_str()).collect();
        let mut by: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
        for style in styles {
            let rest: Vec<&Row> = all.iter().filter(|row| row.style != style).collect();
            let weights = fit(&rest, ridge);
            for row in all.iter().filter(|row| row.style == style) {
                let chosen = choice(&weights, row);
                let counts = by.entry(style).or_default();
                counts.1 += 1;
                if row.right[chosen] {
                    counts.0 += 1;
                } else if show && row.right.iter().any(|&right| right) {
                    tell(row, chosen, &weights);
                }
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
                tell(row, chosen, &weights);
            }
        }
        println!("{file}: {right}/{} ({:.1} %)", rows.len(), 100.0 * right as f64 / rows.len() as f64);
    }
    if let Some(path) = write {
        let lines: Vec<String> = Feature::ALL
            .iter()
            .map(|&feature| format!("{}\t{:.3}", feature.name(), weights[feature as usize]))
            .collect();
        std::fs::write(
            path,
            format!("# {} rows, ridge {ridge}: examples/reader_fit.rs\n{}\n", all.len(), lines.join("\n")),
        )?;
    }
    Ok(())
}
