//! Tests of equal models on pairs of simulated models: with one curve, and with limits some octaves apart.
use std::collections::BTreeMap;

use earnest_stats::psychometric::{Curves, Measured, Posterior, ladder};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use rayon::prelude::*;

use super::model::Model;
use earnest_stats::Z95;

use super::share;
use super::shared::{self, Pair};

/// Levels at which tests are counted: alone, and the first step of Holm's procedure over 72 skills.
const LEVELS: [f64; 3] = [0.05, 0.01, 0.05 / 72.0];

/// Octaves between the medians of the two models.
const APART: [f64; 4] = [0.0, 0.5, 1.0, 2.0];

/// Right and all answers of two models in a stratum.
type Stratum = [(u64, u64); 2];

fn ln_choose(n: u64, k: u64) -> f64 {
    (1..=k).map(|i| (((n - k + i) as f64) / i as f64).ln()).sum()
}

/// Exact Mantel-Haenszel test: the right answers of the first model given the margins of all strata; twice the smaller tail.
fn mantel_haenszel(strata: impl IntoIterator<Item = Stratum>) -> f64 {
    let (mut observed, mut total) = (0, vec![1.0]);
    for [(first, first_asked), (second, second_asked)] in strata {
        let right = first + second;
        let (fewest, most) = (right.saturating_sub(second_asked), right.min(first_asked));
        let probability = |k| {
            let ways = ln_choose(first_asked, k) + ln_choose(second_asked, right - k);
            (ways - ln_choose(first_asked + second_asked, right)).exp()
        };
        let probabilities: Vec<f64> = (fewest..=most).map(probability).collect();
        observed += first - fewest;
        let mut sums = vec![0.0; total.len() + probabilities.len() - 1];
        for (index, one) in total.iter().enumerate() {
            for (more, other) in probabilities.iter().enumerate() {
                sums[index + more] += one * other;
            }
        }
        total = sums;
    }
    let index = observed as usize;
    let (below, above): (f64, f64) = (total[..=index].iter().sum(), total[index..].iter().sum());
    (2.0 * below.min(above)).min(1.0)
}

fn by_octave(pair: [&Measured; 2]) -> f64 {
    let mut strata: BTreeMap<u32, Stratum> = BTreeMap::new();
    for (which, measured) in pair.into_iter().enumerate() {
        for count in &measured.counts {
            let of = &mut strata.entry(count.length.ilog2()).or_default()[which];
            *of = (of.0 + count.right as u64, of.1 + count.asked as u64);
        }
    }
    mantel_haenszel(strata.into_values())
}

fn likelihood_ratio(model: Model, pair: [&Measured; 2]) -> f64 {
    let curves = Curves::new(&ladder(1, model.last), model.chance).expect("lengths ascend");
    let [one, other] = pair.map(|measured| {
        let mut posterior = Posterior::new(&curves);
        for count in &measured.counts {
            let index = curves.lengths().iter().position(|&length| length == count.length).expect("asked of the grid");
            posterior.add(index, count.right, count.asked - count.right);
        }
        posterior
    });
    one.same_curve(&other).expect("the same lengths")
}

/// Measures pairs of models whose limits are so many octaves apart.
fn measured(
    pairs: usize,
    apart: f64,
    seed: u64,
    draw: impl Fn(&mut ChaCha8Rng, usize, usize) -> Model + Sync,
) -> Vec<Pair> {
    let pair = |number: usize| {
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        random.set_stream(number as u64);
        let last = if number.is_multiple_of(2) { 20 } else { 100 };
        // The kinds that fall.
        let model = draw(&mut random, number / 2 % 4, last);
        let other = Model { truth: model.truth.shifted(-apart), ..model };
        let curves = Curves::new(&ladder(1, last), model.chance).expect("lengths ascend");
        let measured = [model.adaptive(&curves, &mut random).1, other.adaptive(&curves, &mut random).1];
        let p = likelihood_ratio(model, measured.each_ref());
        Pair { models: [model, other], measured, p }
    };
    (0..pairs).into_par_iter().map(pair).collect()
}

/// Prints how often each test rejects, by distance: `pairs` at each, and `equal` of one curve; then how often differences hold in comparisons over
/// the skills of a profile.
pub fn main(mut arguments: impl Iterator<Item = String>) {
    let mut number = |default| arguments.next().and_then(|text| text.parse().ok()).unwrap_or(default);
    let (equal, pairs, seed, comparisons) = (number(1_500), number(300), number(1) as u64, number(2_000));
    println!(
        "{equal} pairs with one curve and {pairs} at each distance, seed {seed}; per cent with p below the level.\n"
    );
    println!("| octaves apart | test | p < 0.05 | p < 0.01 | p < 0.05 / 72 |\n|---:|---|---:|---:|---:|");
    let mut pools: Vec<(f64, Vec<Pair>)> = Vec::new();
    for apart in APART {
        let pairs = if apart == 0.0 { equal } else { pairs };
        let found = measured(pairs, apart, seed, Model::draw);
        let p: Vec<[f64; 2]> = found.iter().map(|pair| [pair.p, by_octave(pair.measured.each_ref())]).collect();
        for (index, test) in ["likelihood ratio", "Mantel-Haenszel by octave"].into_iter().enumerate() {
            let cells = LEVELS.map(|level| share(p.iter().filter(|p| p[index] < level).count(), pairs, Z95));
            println!("| {apart} | {test} | {} |", cells.join(" | "));
        }
        pools.push((apart, found));
    }
    let floor = measured(pairs, 0.0, seed + 1, |random, _, last| shared::below(random, last));
    let (_, equal) = pools.remove(0);
    shared::main(comparisons, seed, &equal, &floor, &pools);
}
