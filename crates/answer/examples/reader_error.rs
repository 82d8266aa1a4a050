//! The reader's error on styles that its weights were not fitted on: `cargo run --release -p earnest-answer --example reader_error [FILE...]`.
//!
//! Without files all labelled rows of the repository are taken. The weights are fitted anew for each style, on the rows of all others. The
//! tables compare the share that is not read as labelled with that of two scorers which take the last number. `--wrong` prints what is read
//! wrong (`WHY=1` with the evidence), `--all` every style. `--shipped` takes the weights that the reader has, for rows that had no part in them.
use std::collections::{BTreeMap, BTreeSet};
use std::error::Error;
use std::sync::LazyLock;

use earnest_answer::{opened_by, split_thinking};
use regex::Regex;

mod fit;

use fit::{Row, choice, fit, left_out, rows};

/// Ridge penalty, as in the fit of the reader's own weights.
const RIDGE: f64 = 0.3;

/// Fewest rows of a style or language that has a line of its own.
const FEWEST: usize = 20;

/// Misreadings of the three scorers.
#[derive(Default, Clone, Copy)]
struct Wrong {
    reader: usize,
    last_number: usize,
    flexible: usize,
    rows: usize,
}

impl Wrong {
    fn add(&mut self, other: Wrong) {
        self.reader += other.reader;
        self.last_number += other.last_number;
        self.flexible += other.flexible;
        self.rows += other.rows;
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let (options, files): (Vec<String>, Vec<String>) = std::env::args().skip(1).partition(|a| a.starts_with("--"));
    let has = |option: &str| options.iter().any(|given| given == option);
    let files = if files.is_empty() { fit::files()? } else { files };
    let mut all: Vec<Row> = Vec::new();
    let mut stated: Vec<&str> = Vec::new();
    for file in &files {
        let rows = rows(file)?;
        let mut pairs = BTreeSet::new();
        stated.extend(rows.iter().map(|row| what_is_stated(row, &mut pairs)));
        all.extend(rows);
    }
    let mut counted: Vec<(&Row, Wrong)> = Vec::new();
    let chosen = if has("--shipped") { Vec::new() } else { left_out(&all, RIDGE) };
    for (index, row) in all.iter().enumerate() {
        let is_wrong = match chosen.get(index) {
            Some((chosen, _)) => !row.right[*chosen],
            None => !row.is_labelled(row.read.as_deref()),
        };
        counted.push((
            row,
            Wrong {
                reader: usize::from(is_wrong),
                last_number: usize::from(!row.is_labelled(last_number(row).as_deref())),
                flexible: usize::from(!row.is_labelled(flexible_extract(&row.completion).as_deref())),
                rows: 1,
            },
        ));
        if has("--wrong") && is_wrong {
            match chosen.get(index) {
                Some((chosen, weights)) => row.tell(*chosen, weights),
                None => println!(
                    "{} {} want {:?} got {:?}\n   Q {:?}\n   A {:?}",
                    row.id,
                    row.style(),
                    row.labels[0],
                    row.read,
                    row.prompt,
                    row.completion
                ),
            }
        }
    }
    table("all", &counted, 1, |_, _| "all rows");
    table("what is stated", &counted, 1, |index, _| stated[index]);
    table("language", &counted, FEWEST, |_, row| language(&row.tags));
    table("style", &counted, if has("--all") { 1 } else { FEWEST }, |_, row| row.style());
    let everything: Vec<&Row> = all.iter().collect();
    let weights = fit(&everything, RIDGE);
    let fitted = all.iter().filter(|row| row.right[choice(&weights, row)]).count();
    let shipped = all.iter().filter(|row| row.is_labelled(row.read.as_deref())).count();
    println!(
        "Fitted on all rows, {fitted} of {} are read as labelled; with the reader's own weights {shipped}. Neither says how unseen rows are read.",
        all.len()
    );
    Ok(())
}

/// The kind of number that a row states: of the rows of a pair the first has the right one.
fn what_is_stated<'a>(row: &'a Row, pairs: &mut BTreeSet<&'a str>) -> &'static str {
    let pair = row.tags.iter().find(|tag| tag.starts_with("pair:"));
    match (&row.labels[0], pair) {
        (None, _) => "no answer",
        (Some(_), None) => "a number, not in a pair",
        (Some(_), Some(pair)) if pairs.insert(pair) => "the right number, of a pair",
        (Some(_), Some(_)) => "a wrong number, of a pair",
    }
}

/// Language by tags: a code, a name, or English where none is named.
fn language(tags: &[String]) -> &'static str {
    const NAMES: [(&str, &str); 9] = [
        ("english", "en"),
        ("german", "de"),
        ("french", "fr"),
        ("spanish", "es"),
        ("chinese", "zh"),
        ("arabic", "ar"),
        ("hindi", "hi"),
        ("russian", "ru"),
        ("japanese", "ja"),
    ];
    const CODES: [&str; 16] =
        ["en", "de", "fr", "es", "zh", "ar", "hi", "ru", "ja", "pt", "it", "nl", "tr", "pl", "ko", "cs"];
    for tag in tags {
        let tag = tag.strip_prefix("lang_").unwrap_or(tag);
        if let Some(code) = CODES.into_iter().find(|&code| code == tag) {
            return code;
        }
        if let Some(&(_, code)) = NAMES.iter().find(|(name, _)| *name == tag) {
            return code;
        }
    }
    // A row that is about languages and does not say which is in none of the groups.
    if tags.iter().any(|tag| tag.starts_with("lang")) { "other" } else { "en" }
}

/// Prints a table by some property of the rows; groups that are too small are one.
fn table<'a>(heading: &str, counted: &[(&'a Row, Wrong)], fewest: usize, of: impl Fn(usize, &'a Row) -> &'a str) {
    let mut groups: BTreeMap<&str, Wrong> = BTreeMap::new();
    for (index, (row, wrong)) in counted.iter().enumerate() {
        groups.entry(of(index, row)).or_default().add(*wrong);
    }
    let (mut small, mut sum) = (0, Wrong::default());
    println!(
        "| {heading} | rows | reader, % wrong | last number, % wrong | flexible extract, % wrong |\n|---|---|---|---|---|"
    );
    let mut groups: Vec<(&str, Wrong)> = groups.into_iter().collect();
    groups.sort_by_key(|(_, wrong)| std::cmp::Reverse(wrong.rows));
    for (name, wrong) in &groups {
        if wrong.rows < fewest {
            small += 1;
            sum.add(*wrong);
        } else {
            line(name, *wrong);
        }
    }
    if small > 0 {
        line(&format!("{small} others, each of fewer than {fewest} rows"), sum);
    }
    println!();
}

fn line(name: &str, wrong: Wrong) {
    let share = |count: usize| {
        let (low, high) = wilson(count, wrong.rows);
        let value = 100.0 * count as f64 / wrong.rows as f64;
        format!("{value:.1} ({:.1} to {:.1})", 100.0 * low, 100.0 * high)
    };
    let shares = [wrong.reader, wrong.last_number, wrong.flexible].map(share);
    println!("| {name} | {} | {} |", wrong.rows, shares.join(" | "));
}

/// Wilson's 95 % interval of a share.
fn wilson(count: usize, of: usize) -> (f64, f64) {
    const Z: f64 = 1.959_963_984_540_054;
    let (n, p) = (of as f64, count as f64 / of as f64);
    let centre = p + Z * Z / (2.0 * n);
    let half = Z * (p * (1.0 - p) / n + Z * Z / (4.0 * n * n)).sqrt();
    let scale = 1.0 + Z * Z / n;
    (((centre - half) / scale).max(0.0), ((centre + half) / scale).min(1.0))
}

/// The last number behind the thinking: digits with their sign, commas and decimals.
fn last_number(row: &Row) -> Option<String> {
    static NUMBER: LazyLock<Regex> =
        LazyLock::new(|| Regex::new(r"-?[0-9][0-9,]*(\.[0-9]+)?").expect("the pattern is constant"));
    let completion = format!("{}{}", opened_by(&row.prompt).unwrap_or_default(), row.completion);
    let visible = split_thinking(&completion).visible;
    NUMBER.find_iter(&visible).last().map(|found| found.as_str().replace(',', ""))
}

/// lm-evaluation-harness's flexible extract for GSM8K: the last match of its pattern, without commas, dollar signs and a final stop.
fn flexible_extract(completion: &str) -> Option<String> {
    static PATTERN: LazyLock<Regex> =
        LazyLock::new(|| Regex::new(r"(-?[$0-9.,]{2,})|(-?[0-9]+)").expect("the pattern is constant"));
    let found = PATTERN.find_iter(completion).last()?.as_str().replace([',', '$'], "");
    let number = found.strip_suffix('.').unwrap_or(&found);
    number.contains(|c: char| c.is_ascii_digit()).then(|| number.to_owned())
}
