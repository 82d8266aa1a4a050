//! Coverage of the intervals of digit limits, and questions needed, on simulated models with known curves.
//!
//! `cargo run --release -p earnest-stats --example psychometric_coverage -- [curves] [seed]` prints the Markdown of `benches/results/profile.md`
//! from so many curves of each kind; the file has the results of the defaults. Every curve is measured by the adaptive procedure of `earnest profile`, and by a grid: every
//! length of the same ladder as often as needed for intervals that are as narrow. `pairs` instead of a number compares models with one curve and with others, `notations` has the
//! verdicts on notations, `grid` reads the answers of a grid that was asked.
use std::collections::BTreeMap;
use std::sync::Arc;

use earnest_stats::psychometric::{Curves, LEVELS, Limit, Measured, ladder};
use earnest_stats::{Z95, wilson};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use rayon::prelude::*;

mod grid;
mod model;
mod notations;
mod pairs;
mod shared;

use model::{KINDS, Model, RISING};

/// Skills of a profile by their longest length and chance; the two with other lengths are left out.
const MIX: [(usize, f64, usize); 5] = [(20, 0.0, 24), (20, 0.5, 2), (100, 0.0, 30), (100, 0.1, 2), (100, 0.5, 12)];

const BUDGET: usize = 48;
const WIDTH: f64 = 1.5;

/// Quantile of the normal distribution of intervals of 99 %.
const Z99: f64 = 2.575_829_303_548_901;

/// Octaves of an interval, with ends outside the range half an octave from it.
fn octaves((low, high): (f64, f64), last: usize) -> f64 {
    let beyond = (last as f64).log2() + 0.5;
    high.log2().clamp(-0.5, beyond) - low.log2().clamp(-0.5, beyond)
}

/// True of an interval that ends the procedure.
fn narrow(low: f64, high: f64, last: usize) -> bool {
    let (below, beyond) = (0.5_f64.sqrt(), last as f64 * 2.0_f64.sqrt());
    let (low, high) = (low.clamp(below, beyond), high.clamp(below, beyond));
    high <= low * WIDTH || high - low <= 1.0
}

/// True if an interval has one of the lengths at which the curve is at the level, but for rounding.
fn covers(limit: &Limit, (shortest, longest): (f64, f64)) -> bool {
    limit.low <= longest + 1e-6 && shortest <= limit.high + 1e-6
}

fn share(hits: usize, of: usize, z: f64) -> String {
    match wilson(hits as f64, of as f64, z) {
        Some(found) => format!("{:.1} ({:.1}-{:.1})", 100.0 * found.value, 100.0 * found.low, 100.0 * found.high),
        None => "-".to_owned(),
    }
}

fn mean(values: impl Iterator<Item = f64> + Clone) -> f64 {
    values.clone().sum::<f64>() / values.count().max(1) as f64
}

struct Studied {
    kind: usize,
    model: Model,
    asked: usize,
    measured: Measured,
    /// Ends of the interval of the 50 % limit by questions a length; of curves that fall.
    grid: Vec<(f64, f64)>,
}

impl Studied {
    fn half(&self) -> (f64, f64) {
        (self.measured.limits[1].low, self.measured.limits[1].high)
    }

    fn is_narrow(&self) -> bool {
        let (low, high) = self.half();
        narrow(low, high, self.model.last)
    }
}

/// Most questions a length of the grid.
const MOST: usize = 30;

fn main() {
    let mut arguments = std::env::args_os().skip(1).map(|word| word.to_string_lossy().into_owned()).peekable();
    if arguments.next_if(|first| first == "pairs").is_some() {
        return pairs::main(arguments);
    }
    if arguments.next_if(|first| first == "notations").is_some() {
        return notations::main(arguments);
    }
    if arguments.next_if(|first| first == "grid").is_some() {
        return grid::main();
    }
    let each: usize = arguments.next().and_then(|text| text.parse().ok()).unwrap_or(1_000);
    let seed: u64 = arguments.next().and_then(|text| text.parse().ok()).unwrap_or(1);
    let mut grids: BTreeMap<(usize, u64), Arc<Curves>> = BTreeMap::new();
    for last in [20, 100] {
        for chance in [0.0_f64, 0.1, 0.5] {
            let curves = Curves::new(&ladder(1, last), chance).expect("lengths ascend");
            grids.insert((last, chance.to_bits()), curves);
        }
    }
    let studied: Vec<Studied> = (0..each * KINDS.len())
        .into_par_iter()
        .map(|number| {
            let mut random = ChaCha8Rng::seed_from_u64(seed);
            random.set_stream(number as u64);
            let (kind, last) = (number % KINDS.len(), [20, 100][number / KINDS.len() % 2]);
            let model = Model::draw(&mut random, kind, last);
            let (asked, measured) = model.adaptive(&grids[&(last, model.chance.to_bits())], &mut random);
            let grid = if kind < RISING { model.grid(MOST, &mut random) } else { Vec::new() };
            Studied { kind, model, asked, measured, grid }
        })
        .collect();
    println!(
        "{each} curves of each kind, seed {seed}; at most {BUDGET} questions, intervals of a factor of {WIDTH} or one digit. \
         Per cent of the curves, with 99 % intervals.\n"
    );
    coverage(&studied);
    savings(&studied);
}

/// A row a kind: how often limits are covered, and what the checks of the shape say.
fn coverage(studied: &[Studied]) {
    println!(
        "| curve | questions | narrow enough | 90 % limit covered | 50 % | 10 % | said to have another shape | said not to fall |"
    );
    println!("|---|---:|---:|---:|---:|---:|---:|---:|");
    for (kind, name) in KINDS.into_iter().enumerate() {
        let of: Vec<&Studied> = studied.iter().filter(|one| one.kind == kind).collect();
        let count = |is: &dyn Fn(&Studied) -> bool| share(of.iter().filter(|one| is(one)).count(), of.len(), Z99);
        let covered = [0, 1, 2].map(|index| {
            count(&|one: &Studied| {
                covers(&one.measured.limits[index], one.model.truth.crossing(LEVELS[index], one.model.last as f64))
            })
        });
        println!(
            "| {name} | {:.1} | {} | {} | {} | {} |",
            mean(of.iter().map(|one| one.asked as f64)),
            count(&|one| one.is_narrow()),
            covered.join(" | "),
            count(&|one| one.measured.falls && !one.measured.fits),
            count(&|one| !one.measured.falls),
        );
    }
}

/// Questions of the procedure beside those of a grid of the same lengths, of curves that fall inside the range; then the sums over a profile.
fn savings(studied: &[Studied]) {
    let (mut skills, mut sums) = (0, [0.0; 3]);
    println!(
        "\n| range | lengths | chance | models | adaptive questions | narrow enough | mean width, octaves | grid questions for as many narrow | ratio | for that mean width | ratio |"
    );
    println!("|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|");
    for last in [20, 100] {
        let lengths = ladder(1, last).len();
        for chance in [0.0, 0.1, 0.5] {
            let inside = |one: &&Studied| {
                let (shortest, longest) = one.model.truth.crossing(0.5, last as f64);
                let of = one.kind < RISING && one.model.last == last && one.model.chance == chance;
                of && shortest > 0.0 && longest.is_finite()
            };
            let of: Vec<&Studied> = studied.iter().filter(inside).collect();
            let asked = mean(of.iter().map(|one| one.asked as f64));
            let width = mean(of.iter().map(|one| octaves(one.half(), last)));
            let enough = of.iter().filter(|one| one.is_narrow()).count();
            let as_narrow = |each: &usize| {
                let grid = of.iter().map(|one| one.grid[*each]);
                grid.filter(|&(low, high)| narrow(low, high, last)).count() >= enough
            };
            let as_wide = |each: &usize| mean(of.iter().map(|one| octaves(one.grid[*each], last))) <= width;
            let needed = [(0..MOST).find(as_narrow), (0..MOST).find(as_wide)];
            if let Some((_, _, count)) = MIX.iter().find(|(range, floor, _)| (*range, *floor) == (last, chance)) {
                skills += count;
                let grids = needed.map(|each| (each.map_or(MOST, |each| each + 1) * lengths) as f64);
                for (sum, questions) in sums.iter_mut().zip([asked, grids[0], grids[1]]) {
                    *sum += *count as f64 * questions;
                }
            }
            let said = |each: Option<usize>| {
                let (over, each) = each.map_or(("over ", MOST), |each| ("", each + 1));
                let questions = each * lengths;
                format!("{over}{questions} | {over}{:.1}", questions as f64 / asked)
            };
            println!(
                "| 1-{last} | {lengths} | {chance} | {} | {asked:.1} | {} | {width:.2} | {} | {} |",
                of.len(),
                share(enough, of.len(), Z95),
                said(needed[0]),
                said(needed[1])
            );
        }
    }
    println!(
        "\nOver {skills} skills as a profile has them: {:.0} adaptive questions, {:.0} of a grid of the same lengths for as many narrow intervals (1/{:.1}), {:.0} for the \
         mean widths (1/{:.1}).",
        sums[0],
        sums[1],
        sums[1] / sums[0],
        sums[2],
        sums[2] / sums[0]
    );
}
