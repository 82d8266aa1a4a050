//! Labelled completions and the weights that are fitted on them; for the examples here.
use std::error::Error;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use earnest_answer::reader::{Asked, Feature, Form, evidence, read, same_number};
use flate2::read::MultiGzDecoder;
use serde_json::Value;

/// A labelled completion with the evidence that the reader sees in it.
pub struct Row {
    pub id: String,
    pub tags: Vec<String>,
    /// Features of the mentions, then those of no answer.
    pub candidates: Vec<Vec<usize>>,
    pub right: Vec<bool>,
    pub texts: Vec<String>,
    /// By candidate the first one of its value.
    pub values: Vec<usize>,
    /// Number read with the shipped weights.
    pub read: Option<String>,
    /// The label, then others that one could defend.
    pub labels: Vec<Option<String>>,
    pub completion: String,
    pub prompt: String,
}

/// The folders of labelled rows, as seen from any working directory.
fn folders() -> [PathBuf; 2] {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    [here.join("labelled"), here.join("../../tests/golden/answers")]
}

/// Rows that no weight is fitted on.
const HELD_OUT: &str = "styles.jsonl";

/// The files of labelled rows in the repository, but for those that are held out.
///
/// # Errors
/// If a folder cannot be read.
pub fn files() -> Result<Vec<String>, Box<dyn Error>> {
    let mut files = Vec::new();
    for folder in folders() {
        for entry in std::fs::read_dir(folder)? {
            let path = entry?.path();
            let file = path.display().to_string();
            let plain = file.strip_suffix(".gz").unwrap_or(&file);
            if plain.ends_with(".jsonl") && !Path::new(plain).ends_with(HELD_OUT) {
                files.push(file);
            }
        }
    }
    files.sort();
    Ok(files)
}

/// The text of a file, which is compressed if its name ends in `.gz`.
fn text(file: &str) -> std::io::Result<String> {
    if !file.ends_with(".gz") {
        return std::fs::read_to_string(file);
    }
    let mut text = String::new();
    MultiGzDecoder::new(File::open(file)?).read_to_string(&mut text)?;
    Ok(text)
}

/// The rows of a file.
///
/// # Errors
/// If it cannot be read or a line is no JSON.
pub fn rows(file: &str) -> Result<Vec<Row>, Box<dyn Error>> {
    let mut rows = Vec::new();
    for line in text(file)?.lines() {
        let row: Value = serde_json::from_str(line)?;
        let field = |name: &str| row[name].as_str().unwrap_or_default();
        let form = match field("form") {
            "integer" => Form::Integer,
            "float" => Form::Float,
            "fraction" => Form::Fraction,
            "scientific" => Form::Scientific,
            _ => Form::Number,
        };
        let asked = Asked { prompt: field("prompt"), form };
        let (mentions, none) = evidence(&asked, field("completion"), field("finish") == "length");
        let read = read(&asked, field("completion"), field("finish") == "length").text().map(str::to_owned);
        let mut labels = vec![row["answer"].as_str()];
        labels.extend(row["also"].as_array().into_iter().flatten().map(Value::as_str));
        let indices = |features: &[Feature]| features.iter().map(|&feature| feature as usize).collect::<Vec<_>>();
        let is_labelled = |text: &str| labels.iter().flatten().any(|label| same_number(text, label));
        let mut candidates: Vec<Vec<usize>> = mentions.iter().map(|(_, features)| indices(features)).collect();
        let mut right: Vec<bool> = mentions.iter().map(|(text, _)| is_labelled(text)).collect();
        let mut texts: Vec<String> = mentions.into_iter().map(|(text, _)| text).collect();
        candidates.push(indices(&none));
        right.push(labels.contains(&None));
        texts.push("none".to_owned());
        let first_of_value = |index: usize| (0..index).find(|&other| same_number(&texts[other], &texts[index]));
        let values = (0..texts.len()).map(|index| first_of_value(index).unwrap_or(index)).collect();
        let tags = row["tags"].as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect();
        rows.push(Row {
            values,
            read,
            id: field("id").to_owned(),
            tags,
            candidates,
            right,
            texts,
            labels: labels.iter().map(|label| label.map(str::to_owned)).collect(),
            completion: field("completion").to_owned(),
            prompt: field("prompt").to_owned(),
        });
    }
    Ok(rows)
}

impl Row {
    /// Its first tag.
    pub fn style(&self) -> &str {
        self.tags.first().map_or("-", String::as_str)
    }

    /// True if a reading is one of the labels; none is a reading too.
    pub fn is_labelled(&self, read: Option<&str>) -> bool {
        self.labels.iter().any(|label| match (label, read) {
            (None, None) => true,
            (Some(label), Some(read)) => same_number(read, label),
            _ => false,
        })
    }

    /// Prints what was read and what was to be read.
    pub fn tell(&self, chosen: usize, weights: &[f64]) {
        let end: String = self.prompt.chars().rev().take(120).collect::<Vec<_>>().into_iter().rev().collect();
        println!(
            "{} {} want {:?} got {}\n   Q {end:?}\n   A {:?}",
            self.id,
            self.style(),
            self.labels[0],
            self.texts[chosen],
            self.completion
        );
        if std::env::var("WHY").is_ok() {
            for (index, features) in self.candidates.iter().enumerate() {
                let name = |feature: usize| format!("{} {:.1}", Feature::ALL[feature].name(), weights[feature]);
                let names: Vec<String> = features.iter().map(|&feature| name(feature)).collect();
                println!("      {:>10} {:6.2} {}", self.texts[index], score(weights, features), names.join(", "));
            }
        }
    }
}

pub fn score(weights: &[f64], features: &[usize]) -> f64 {
    features.iter().map(|&feature| weights[feature]).sum()
}

/// The choice of a set of weights: of the values that are mentioned, and of no answer, the one with the most evidence.
pub fn choice(weights: &[f64], row: &Row) -> usize {
    let scores: Vec<f64> = row.candidates.iter().map(|features| score(weights, features).exp()).collect();
    let of_value = |index: usize| (0..scores.len()).filter(move |&other| row.values[other] == row.values[index]);
    let sums: Vec<f64> = (0..scores.len()).map(|index| of_value(index).map(|other| scores[other]).sum()).collect();
    let mut best = 0;
    for index in 1..scores.len() {
        if (sums[index], scores[index]) >= (sums[best], scores[best]) {
            best = index;
        }
    }
    // A number that the budget cut is no answer, as in the reader.
    if row.candidates[best].contains(&(Feature::Cut as usize)) { scores.len() - 1 } else { best }
}

/// The weights that give the labelled candidates the most evidence: a conditional logit with a ridge penalty, by Adam.
pub fn fit(rows: &[&Row], ridge: f64) -> Vec<f64> {
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
            let m = mean[index] / (1.0 - 0.9f64.powi(step as i32));
            let v = square[index] / (1.0 - 0.999f64.powi(step as i32));
            weights[index] -= rate * m / (v.sqrt() + 1e-8);
        }
    }
    weights
}

/// By row the choice of weights that no row of its style had a part in.
pub fn left_out(rows: &[Row], ridge: f64) -> Vec<(usize, Vec<f64>)> {
    let styles: std::collections::BTreeSet<&str> = rows.iter().map(Row::style).collect();
    let styles: Vec<&str> = styles.into_iter().collect();
    let threads = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let weights: std::collections::BTreeMap<&str, Vec<f64>> = std::thread::scope(|scope| {
        let work = |thread: usize| {
            let mine = styles.iter().skip(thread).step_by(threads);
            let without = |style: &str| rows.iter().filter(|row| row.style() != style).collect::<Vec<_>>();
            mine.map(|&style| (style, fit(&without(style), ridge))).collect::<Vec<_>>()
        };
        let running: Vec<_> = (0..threads).map(|thread| scope.spawn(move || work(thread))).collect();
        running.into_iter().flat_map(|thread| thread.join().expect("a fit does not panic")).collect()
    });
    rows.iter()
        .map(|row| {
            let weights = &weights[row.style()];
            (choice(weights, row), weights.clone())
        })
        .collect()
}
