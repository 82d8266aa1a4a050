//! False positives, coverage and power of the verdict on paired differences, by simulation: a line of JSON a cell.
//!
//! `cargo run --release -p earnest-stats --example verdicts -- SETS [CELL...]`
use earnest_stats::distribution::normal_quantile;
use earnest_stats::verdict::{Answers, PairedAnswers, paired_verdict};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rayon::prelude::*;

/// A design of two sides.
#[derive(Debug, Clone, Copy)]
struct Cell {
    name: &'static str,
    clusters: usize,
    /// Questions of a cluster on the first and the second side; equal numbers are the same questions.
    questions: [usize; 2],
    /// Are the questions of both sides the same?
    same: bool,
    /// Shares of right answers.
    shares: [f64; 2],
    /// Standard deviations in log odds: between clusters, questions, and of the sides' difference between clusters.
    deviations: [f64; 3],
}

const fn same(name: &'static str, clusters: usize, questions: usize, shares: [f64; 2], deviations: [f64; 3]) -> Cell {
    Cell { name, clusters, questions: [questions, questions], same: true, shares, deviations }
}

const fn variants(
    name: &'static str,
    clusters: usize,
    questions: [usize; 2],
    shares: [f64; 2],
    deviations: [f64; 3],
) -> Cell {
    Cell { name, clusters, questions, same: false, shares, deviations }
}

const CELLS: &[Cell] = &[
    same("300 items, 0.5 %", 300, 1, [0.005, 0.005], [1.5, 0.0, 0.0]),
    same("300 items, 1.5 %", 300, 1, [0.015, 0.015], [1.5, 0.0, 0.0]),
    same("300 items, 5 %", 300, 1, [0.05, 0.05], [1.5, 0.0, 0.0]),
    same("300 items, 50 %", 300, 1, [0.5, 0.5], [1.5, 0.0, 0.0]),
    same("300 items, 98 %", 300, 1, [0.98, 0.98], [1.5, 0.0, 0.0]),
    same("100 items, 1.5 %", 100, 1, [0.015, 0.015], [1.5, 0.0, 0.0]),
    same("100 items, 50 %", 100, 1, [0.5, 0.5], [2.0, 0.0, 0.0]),
    same("25 items, 50 %", 25, 1, [0.5, 0.5], [2.0, 0.0, 0.0]),
    same("12 clusters x 10, 2 %", 12, 10, [0.02, 0.02], [1.5, 1.0, 0.0]),
    same("12 clusters x 10, 2 %, slopes", 12, 10, [0.02, 0.02], [1.5, 1.0, 0.7]),
    same("12 clusters x 10, 50 %, slopes", 12, 10, [0.5, 0.5], [1.5, 1.0, 0.7]),
    same("6 clusters x 10, 50 %, slopes", 6, 10, [0.5, 0.5], [1.5, 1.0, 0.7]),
    same("6 clusters x 10, 5 %", 6, 10, [0.05, 0.05], [1.5, 1.0, 0.5]),
    same("25 clusters x 10, 5 %, slopes", 25, 10, [0.05, 0.05], [1.5, 1.0, 0.7]),
    same("100 clusters x 2, 5 %", 100, 2, [0.05, 0.05], [1.5, 1.0, 0.5]),
    same("100 clusters x 10, 98 %, slopes", 100, 10, [0.98, 0.98], [1.5, 1.0, 0.7]),
    variants("100 x (1 + 10), 0.5 %", 100, [1, 10], [0.005, 0.005], [1.5, 0.0, 0.0]),
    variants("100 x (1 + 10), 1.5 %", 100, [1, 10], [0.015, 0.015], [1.5, 0.0, 0.0]),
    variants("100 x (1 + 10), 5 %", 100, [1, 10], [0.05, 0.05], [1.5, 0.0, 0.0]),
    variants("100 x (1 + 10), 50 %", 100, [1, 10], [0.5, 0.5], [1.5, 0.0, 0.0]),
    variants("100 x (1 + 10), 50 %, slopes", 100, [1, 10], [0.5, 0.5], [1.5, 0.0, 0.7]),
    variants("25 x (1 + 10), 50 %", 25, [1, 10], [0.5, 0.5], [1.5, 0.0, 0.0]),
    variants("12 x (1 + 10), 5 %", 12, [1, 10], [0.05, 0.05], [1.5, 0.0, 0.0]),
    variants("100 x (1 + 10), 98 %", 100, [1, 10], [0.98, 0.98], [1.5, 0.0, 0.0]),
    same("300 items, 1.5 to 5 %", 300, 1, [0.015, 0.05], [1.5, 0.0, 0.0]),
    same("300 items, 5 to 1.5 %", 300, 1, [0.05, 0.015], [1.5, 0.0, 0.0]),
    same("300 items, 50 to 40 %", 300, 1, [0.5, 0.4], [1.5, 0.0, 0.0]),
    same("12 clusters x 10, 2 to 10 %", 12, 10, [0.02, 0.1], [1.5, 1.0, 0.5]),
    same("12 clusters x 10, 50 to 30 %", 12, 10, [0.5, 0.3], [1.5, 1.0, 0.5]),
    same("25 clusters x 10, 5 to 10 %", 25, 10, [0.05, 0.1], [1.5, 1.0, 0.5]),
    same("6 clusters x 10, 50 to 20 %", 6, 10, [0.5, 0.2], [1.0, 1.0, 0.5]),
    variants("100 x (1 + 10), 1.5 to 5 %", 100, [1, 10], [0.015, 0.05], [1.5, 0.0, 0.0]),
    variants("100 x (1 + 10), 5 to 1.5 %", 100, [1, 10], [0.05, 0.015], [1.5, 0.0, 0.0]),
    variants("100 x (1 + 10), 8 to 0.6 %", 100, [1, 10], [0.08, 0.006], [1.5, 0.0, 0.0]),
    variants("100 x (1 + 10), 50 to 40 %", 100, [1, 10], [0.5, 0.4], [1.5, 0.0, 0.5]),
    variants("12 x (1 + 10), 30 to 10 %", 12, [1, 10], [0.3, 0.1], [1.5, 0.0, 0.5]),
];

fn normal(random: &mut ChaCha8Rng) -> f64 {
    normal_quantile(uniform(random))
}

fn uniform(random: &mut ChaCha8Rng) -> f64 {
    ((random.next_u64() >> 11) as f64 + 0.5) / (1_u64 << 53) as f64
}

fn logistic(x: f64) -> f64 {
    1.0 / (1.0 + (-x).exp())
}

/// The log odds whose share, averaged over normal deviations, is this one.
fn log_odds(share: f64, deviation: f64) -> f64 {
    let averaged = |centre: f64| {
        let nodes = 2001;
        (0..nodes)
            .map(|node| logistic(centre + deviation * normal_quantile((node as f64 + 0.5) / nodes as f64)))
            .sum::<f64>()
            / nodes as f64
    };
    let (mut low, mut high) = (-30.0, 30.0);
    for _ in 0..60 {
        let middle = 0.5 * (low + high);
        if averaged(middle) < share { low = middle } else { high = middle }
    }
    0.5 * (low + high)
}

/// A set's verdict: significant, containing the truth, width of its interval, by exchange, significant by the t test.
type Found = (bool, bool, f64, bool, bool);

impl Cell {
    fn set(&self, seed: u64, centres: [f64; 2]) -> Vec<PairedAnswers> {
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        let [between, own, slope] = self.deviations;
        let mut pairs = Vec::new();
        for cluster in 0..self.clusters {
            let shared = between * normal(&mut random);
            let slopes = [0.5, -0.5].map(|half| half * slope * normal(&mut random) * 2.0_f64.sqrt());
            let answer = |side: usize, question: f64, random: &mut ChaCha8Rng| {
                let right = uniform(random) < logistic(centres[side] + shared + slopes[side] + question);
                Answers { sum: f64::from(u8::from(right)), count: 1 }
            };
            if self.same {
                for _ in 0..self.questions[0] {
                    let question = own * normal(&mut random);
                    let [first, second] = [0, 1].map(|side| answer(side, question, &mut random));
                    pairs.push(PairedAnswers::single(cluster as u64, first, second));
                }
            } else {
                let mut side = |side: usize| -> Vec<Answers> {
                    (0..self.questions[side])
                        .map(|_| {
                            let question = own * normal(&mut random);
                            answer(side, question, &mut random)
                        })
                        .collect()
                };
                let (first, second) = (side(0), side(1));
                pairs.push(PairedAnswers { cluster: cluster as u64, first, second });
            }
        }
        pairs
    }
}

fn main() {
    let mut words = std::env::args().skip(1);
    let sets: u64 = words.next().and_then(|word| word.parse().ok()).expect("the number of sets");
    let names: Vec<String> = words.collect();
    for cell in
        CELLS.iter().filter(|cell| names.is_empty() || names.iter().any(|name| cell.name.contains(name.as_str())))
    {
        let [between, own, slope] = cell.deviations;
        // Half of the slope's variance on each side.
        let deviation = (between * between + own * own + 0.5 * slope * slope).sqrt();
        let centres = cell.shares.map(|share| log_odds(share, deviation));
        let truth = cell.shares[1] - cell.shares[0];
        let found: Vec<Found> = (0..sets)
            .into_par_iter()
            .filter_map(|set| {
                let verdict = paired_verdict(&cell.set(set, centres)).ok()?;
                let (low, high) = verdict.interval(0.95)?;
                assert_eq!(verdict.p < 0.05, low > 0.0 || high < 0.0, "{} {set}: {verdict:?} {low} {high}", cell.name);
                let covers = low <= truth && truth <= high;
                Some((verdict.p < 0.05, covers, high - low, verdict.is_exchange(), verdict.robust.p() < 0.05))
            })
            .collect();
        let count = found.len() as f64;
        let share = |of: &dyn Fn(&Found) -> bool| found.iter().filter(|one| of(one)).count() as f64 / count;
        let width = found.iter().map(|one| one.2).sum::<f64>() / count;
        println!(
            "{{\"cell\": \"{}\", \"sets\": {sets}, \"verdicts\": {}, \"p_below_5\": {:.4}, \"coverage\": {:.4}, \"mean_width\": {:.4}, \"by_exchange\": {:.4}, \"t_below_5\": {:.4}}}",
            cell.name,
            found.len(),
            share(&|one| one.0),
            share(&|one| one.1),
            width,
            share(&|one| one.3),
            share(&|one| one.4)
        );
    }
}
