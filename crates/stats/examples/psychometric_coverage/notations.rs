//! Verdicts on notations: false positives and power of a first look at 32 pairs and, where it decides nothing, of 112.
use earnest_stats::mcnemar::{PairedCounts, early_look, mcnemar};
use earnest_stats::{Z95, holm, paired_score_interval};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rayon::prelude::*;

use super::share;

/// Notations beside plain digits, pairs of the first look and of all, what the first look spends, and the difference that counts as none: those of
/// `earnest profile`.
const NOTATIONS: usize = 8;
const FIRST: usize = 32;
const PAIRS: usize = 112;
const SPENT: f64 = 0.001 / 8.0;
const ALIKE: f64 = 0.2;

/// Share of right answers in plain digits, and losses of the notation that is looked at.
const PLAIN: f64 = 0.9;
const LOSSES: [f64; 6] = [0.0, 0.05, 0.1, 0.2, 0.3, 0.5];

#[derive(Clone, Copy, PartialEq)]
enum Verdict {
    Differs,
    Alike,
    NotDecided,
}

/// p value, interval of the difference and pairs of a notation, whose answers are right independently of those in plain digits.
fn asked(right: f64, plain: &[bool], random: &mut ChaCha8Rng) -> (f64, (f64, f64), usize) {
    let answers: Vec<(bool, bool)> = plain.iter().map(|&plain| (plain, random.random_bool(right))).collect();
    let first = PairedCounts::of(answers[..FIRST].iter().copied());
    let early = mcnemar(&first).exact_p <= SPENT;
    let counts = if early { first } else { PairedCounts::of(answers.iter().copied()) };
    let interval = paired_score_interval(&counts, 0.95).expect("there are pairs");
    (early_look(&first, &counts, SPENT), interval, if early { FIRST } else { PAIRS })
}

/// Prints how often a loss is found, and how often one of eight notations that lose nothing is said to differ.
pub fn main(mut arguments: impl Iterator<Item = String>) {
    let mut number = |default| arguments.next().and_then(|text| text.parse().ok()).unwrap_or(default);
    let (studies, seed) = (number(4_000), number(1) as u64);
    println!(
        "{studies} studies a row, seed {seed}: {NOTATIONS} notations, {:.0} % right in plain digits, one that loses and seven that do not.\n",
        100.0 * PLAIN
    );
    println!(
        "| loss, points | differs | alike | not decided | pairs | one of the others differs |\n|---:|---:|---:|---:|---:|---:|"
    );
    for (row, loss) in LOSSES.into_iter().enumerate() {
        let found: Vec<(Verdict, usize, bool)> = (0..studies)
            .into_par_iter()
            .map(|study| {
                let mut random = ChaCha8Rng::seed_from_u64(seed);
                random.set_stream((row * studies + study) as u64);
                let plain: Vec<bool> = (0..PAIRS).map(|_| random.random_bool(PLAIN)).collect();
                let right = |index: usize| if index == 0 { PLAIN - loss } else { PLAIN };
                let notations: Vec<_> = (0..NOTATIONS).map(|index| asked(right(index), &plain, &mut random)).collect();
                let p: Vec<f64> = notations.iter().map(|one| one.0).collect();
                let holds: Vec<bool> =
                    holm(&p).expect("they are probabilities").into_iter().map(|p| p < 0.05).collect();
                let (low, high) = notations[0].1;
                let verdict = match holds[0] {
                    true => Verdict::Differs,
                    false if low >= -ALIKE && high <= ALIKE => Verdict::Alike,
                    false => Verdict::NotDecided,
                };
                (verdict, notations[0].2, holds[1..].contains(&true))
            })
            .collect();
        let verdicts = [Verdict::Differs, Verdict::Alike, Verdict::NotDecided];
        let cells = verdicts.map(|verdict| share(found.iter().filter(|one| one.0 == verdict).count(), studies, Z95));
        let pairs = super::mean(found.iter().map(|one| one.1 as f64));
        let others = share(found.iter().filter(|one| one.2).count(), studies, Z95);
        println!("| {:.0} | {} | {pairs:.0} | {others} |", 100.0 * loss, cells.join(" | "));
    }
}
