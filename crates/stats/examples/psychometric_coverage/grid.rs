//! Limits from the answers of a grid of all lengths: questions until the interval is as narrow as a profile's.
use std::collections::BTreeMap;

use earnest_stats::psychometric::{Curves, Posterior};

use super::narrow;

/// Reads lines `task length right` (right is 0 or 1) in the order in which they were asked, of tasks without chance, and prints a row a task.
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
    for (task, by_length) in answers {
        let lengths: Vec<usize> = by_length.keys().copied().collect();
        let last = lengths.last().copied().unwrap_or(1);
        let curves = Curves::new(&lengths, 0.0).expect("lengths ascend from 1");
        let mut posterior = Posterior::new(&curves);
        let most = by_length.values().map(Vec::len).min().unwrap_or(0);
        for each in 0..most {
            for (index, of) in by_length.values().enumerate() {
                posterior.add(index, usize::from(of[each]), usize::from(!of[each]));
            }
            let limit = posterior.limits(&[0.5])[0];
            let enough = narrow(limit.low, limit.high, last);
            if enough || each + 1 == most {
                let (asked, said) = ((each + 1) * lengths.len(), if enough { "yes" } else { "no" });
                let (estimate, low, high) = (limit.estimate, limit.low, limit.high);
                println!("| {task} | {} | {asked} | {estimate:.1} ({low:.1}-{high:.1}) | {said} |", each + 1);
                break;
            }
        }
    }
}
