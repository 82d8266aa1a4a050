//! False positives, coverage and power of the verdict on paired differences, by simulation: a line of JSON a cell.
//!
//! `cargo run --release -p earnest-stats --example verdicts -- SETS [CELL...]`
use earnest_stats::distribution::normal_quantile;
use earnest_stats::holm;
use earnest_stats::verdict::{Answers, PairedAnswers, PairedVerdict, paired_verdict};
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
    /// Runs that are compared with the baseline, as one family; with variants, models that are each compared with themselves.
    comparisons: usize,
    /// Standard deviation of the effects that questions of one index share over all clusters: the prompts that all items are asked with.
    crossed: f64,
}

impl Cell {
    const fn of_family(self, comparisons: usize) -> Cell {
        Cell { comparisons, ..self }
    }

    const fn crossed(self, crossed: f64) -> Cell {
        Cell { crossed, ..self }
    }
}

const fn same(name: &'static str, clusters: usize, questions: usize, shares: [f64; 2], deviations: [f64; 3]) -> Cell {
    let questions = [questions, questions];
    Cell { name, clusters, questions, same: true, shares, deviations, comparisons: 1, crossed: 0.0 }
}

const fn variants(
    name: &'static str,
    clusters: usize,
    questions: [usize; 2],
    shares: [f64; 2],
    deviations: [f64; 3],
) -> Cell {
    Cell { name, clusters, questions, same: false, shares, deviations, comparisons: 1, crossed: 0.0 }
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
    same("300 items, 3 runs, 1.5 %", 300, 1, [0.015, 0.015], [1.5, 0.0, 0.0]).of_family(2),
    same("300 items, 3 runs, 50 %", 300, 1, [0.5, 0.5], [1.5, 0.0, 0.0]).of_family(2),
    same("25 clusters x 10, 3 runs, 50 %, slopes", 25, 10, [0.5, 0.5], [1.5, 1.0, 0.7]).of_family(2),
    variants("100 x (1 + 10), 2 models, 1.5 %", 100, [1, 10], [0.015, 0.015], [1.5, 0.0, 0.0]).of_family(2),
    same("100 items x 4 prompts, 2 %", 100, 4, [0.02, 0.02], [1.5, 1.0, 0.0]).crossed(1.0),
    same("100 items x 4 prompts, 50 %", 100, 4, [0.5, 0.5], [1.5, 1.0, 0.7]).crossed(1.0),
    same("25 items x 10 prompts, 5 %", 25, 10, [0.05, 0.05], [1.5, 1.0, 0.5]).crossed(1.0),
    same("100 items x 4 prompts, 3 runs, 50 %", 100, 4, [0.5, 0.5], [1.5, 1.0, 0.7]).crossed(1.0).of_family(2),
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
    variants("100 x (1 + 10), 2 to 0.2 %", 100, [1, 10], [0.02, 0.002], [1.5, 0.0, 0.0]),
    variants("100 x (1 + 10), 4 to 0.2 %", 100, [1, 10], [0.04, 0.002], [1.5, 0.0, 0.0]),
    variants("100 x (1 + 10), 2 to 6.4 %", 100, [1, 10], [0.02, 0.064], [1.5, 0.0, 0.0]),
    variants("100 x (1 + 50), 2 to 0.2 %", 100, [1, 50], [0.02, 0.002], [1.5, 0.0, 0.0]),
    variants("100 x (1 + 10), 50 to 40 %", 100, [1, 10], [0.5, 0.4], [1.5, 0.0, 0.5]),
    variants("12 x (1 + 10), 30 to 10 %", 12, [1, 10], [0.3, 0.1], [1.5, 0.0, 0.5]),
    same("300 items, 3 runs, 50 to 40 %", 300, 1, [0.5, 0.4], [1.5, 0.0, 0.0]).of_family(2),
    variants("100 x (1 + 10), 2 models, 8 to 0.6 %", 100, [1, 10], [0.08, 0.006], [1.5, 0.0, 0.0]).of_family(2),
    same("100 items x 4 prompts, 5 to 2 %", 100, 4, [0.05, 0.02], [1.5, 1.0, 0.5]).crossed(1.0),
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

/// The log odds whose share, averaged over normal deviations and some effects, is this one.
fn log_odds(share: f64, deviation: f64, effects: &[f64]) -> f64 {
    let nodes: Vec<f64> = (0..2001).map(|node| deviation * normal_quantile((f64::from(node) + 0.5) / 2001.0)).collect();
    let averaged = |centre: f64| {
        let of = |effect: &f64| nodes.iter().map(|node| logistic(centre + effect + node)).sum::<f64>();
        effects.iter().map(of).sum::<f64>() / (nodes.len() * effects.len()) as f64
    };
    let (mut low, mut high) = (-30.0, 30.0);
    for _ in 0..60 {
        let middle = 0.5 * (low + high);
        if averaged(middle) < share { low = middle } else { high = middle }
    }
    0.5 * (low + high)
}

/// A set's verdicts as one family: is one significant by Holm's adjustment, do all simultaneous intervals hold the truth, the mean width
/// of these, is one by exchange, is one significant by the t test.
struct Found {
    significant: bool,
    covers: bool,
    width: f64,
    is_exchange: bool,
    by_t: bool,
}

impl Cell {
    /// The effects that questions of one index share: prompts are the same in all sets, as in all runs.
    fn of_index(&self) -> Vec<f64> {
        let count = self.questions[0];
        (0..count).map(|index| self.crossed * normal_quantile((index as f64 + 0.5) / count as f64)).collect()
    }

    /// The answers of a set, by comparison.
    fn set(&self, seed: u64, centres: [f64; 2]) -> Vec<Vec<PairedAnswers>> {
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        let [between, own, slope] = self.deviations;
        let mut comparisons = vec![Vec::new(); self.comparisons];
        for cluster in 0..self.clusters {
            let shared = between * normal(&mut random);
            // Half of the variance of the sides' difference on each side.
            let sides = if self.same { 1 + self.comparisons } else { 2 };
            let slopes: Vec<f64> = (0..sides)
                .map(|side| if side == 0 { 0.5 } else { -0.5 })
                .map(|half| half * slope * normal(&mut random) * 2.0_f64.sqrt())
                .collect();
            let answer = |side: usize, question: f64, random: &mut ChaCha8Rng| {
                let centre = centres[side.min(1)] + shared + slopes[side];
                Answers { sum: f64::from(u8::from(uniform(random) < logistic(centre + question))), count: 1 }
            };
            if self.same {
                for index in self.of_index() {
                    let question = index + own * normal(&mut random);
                    let first = answer(0, question, &mut random);
                    for (other, pairs) in comparisons.iter_mut().enumerate() {
                        let second = answer(1 + other, question, &mut random);
                        pairs.push(PairedAnswers::single(cluster as u64, first, second));
                    }
                }
            } else {
                for pairs in &mut comparisons {
                    let [first, second] = [0, 1].map(|side| -> Vec<Answers> {
                        (0..self.questions[side])
                            .map(|_| {
                                let question = own * normal(&mut random);
                                answer(side, question, &mut random)
                            })
                            .collect()
                    });
                    pairs.push(PairedAnswers { cluster: cluster as u64, first, second });
                }
            }
        }
        comparisons
    }

    /// The verdicts of a set; none if one of them is missing.
    fn found(&self, seed: u64, centres: [f64; 2]) -> Option<Found> {
        let truth = self.shares[1] - self.shares[0];
        let level = 1.0 - 0.05 / self.comparisons as f64;
        let sets = self.set(seed, centres);
        let verdicts = sets.iter().map(|set| paired_verdict(set).ok()).collect::<Option<Vec<_>>>()?;
        let intervals = verdicts.iter().map(|verdict| verdict.interval(level)).collect::<Option<Vec<_>>>()?;
        let smallest = |p_values: Vec<f64>| holm(&p_values).into_iter().flatten().fold(1.0, f64::min);
        let p = smallest(verdicts.iter().map(|verdict| verdict.p).collect());
        let excludes_0 = intervals.iter().any(|(low, high)| *low > 0.0 || *high < 0.0);
        assert_eq!(p < 0.05, excludes_0, "{} {seed}: {verdicts:?} {intervals:?}", self.name);
        Some(Found {
            significant: p < 0.05,
            covers: intervals.iter().all(|(low, high)| *low <= truth && truth <= *high),
            width: intervals.iter().map(|(low, high)| high - low).sum::<f64>() / intervals.len() as f64,
            is_exchange: verdicts.iter().any(PairedVerdict::is_exchange),
            by_t: smallest(verdicts.iter().map(|verdict| verdict.robust.p()).collect()) < 0.05,
        })
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
        let centres = cell.shares.map(|share| log_odds(share, deviation, &cell.of_index()));
        let found: Vec<Found> = (0..sets).into_par_iter().filter_map(|set| cell.found(set, centres)).collect();
        let count = found.len() as f64;
        let share = |of: &dyn Fn(&Found) -> bool| found.iter().filter(|one| of(one)).count() as f64 / count;
        println!(
            "{{\"cell\": \"{}\", \"sets\": {sets}, \"verdicts\": {}, \"p_below_5\": {:.4}, \"coverage\": {:.4}, \"mean_width\": {:.4}, \"by_exchange\": {:.4}, \"t_below_5\": {:.4}}}",
            cell.name,
            found.len(),
            share(&|one| one.significant),
            share(&|one| one.covers),
            found.iter().map(|one| one.width).sum::<f64>() / count,
            share(&|one| one.is_exchange),
            share(&|one| one.by_t)
        );
    }
}
