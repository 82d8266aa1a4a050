//! Limits from the answers of a grid of lengths: questions until the interval is as narrow as a profile's.
use std::collections::BTreeMap;

use earnest_stats::psychometric::{Counted, crossing, ladder};

use super::narrow;

/// Reads lines `task length right` (right is 0 or 1) in the order in which they were asked, of tasks without chance, and prints a row a task. Of the
/// lengths those of a profile's ladder count.
pub fn main() {
    let mut answers: BTreeMap<String, BTreeMap<usize, Vec<bool>>> = BTreeMap::new();
    for line in std::io::stdin().lines().map_while(Result::ok) {
        let parts: Vec<&str> = line.split_whitespace().collect();
        if let [task, length, right] = parts[..]
            && let Ok(length) = length.parse()
        {
            answers.entry(task.to_owned()).or_default().entry(length).or_default().push(right == "1");
        }
    }
    println!("| task | questions a length | questions | 50 % limit | narrow enough |\n|---|---:|---:|---:|---|");
    for (task, mut by_length) in answers {
        let ends = by_length.keys().next().copied().zip(by_length.keys().last().copied());
        let Some((first, last)) = ends else { continue };
        let lengths = ladder(first, last);
        by_length.retain(|length, _| lengths.contains(length));
        let most = by_length.values().map(Vec::len).min().unwrap_or(0);
        for each in 1..=most {
            let counted = |(&length, of): (&usize, &Vec<bool>)| Counted {
                length,
                right: of[..each].iter().filter(|right| **right).count(),
                asked: each,
            };
            let counts: Vec<Counted> = by_length.iter().map(counted).collect();
            let limit = crossing(&counts, 0.5, (first, last));
            let enough = narrow(limit.low, limit.high, last);
            if enough || each == most {
                let (asked, said) = (each * counts.len(), if enough { "yes" } else { "no" });
                let (estimate, low, high) = (limit.estimate, limit.low, limit.high);
                println!("| {task} | {each} | {asked} | {estimate:.1} ({low:.1}-{high:.1}) | {said} |");
                break;
            }
        }
    }
}
