//! Coverage of the intervals of digit limits, and questions needed, on simulated models with known curves.
//!
//! `cargo run --release -p earnest-stats --example psychometric_coverage -- [curves] [seed]` prints the Markdown of `benches/results/profile.md`;
//! the file has the results of the defaults. Every curve is measured by the adaptive procedure of `earnest profile`, and by a grid: every
//! length of the range as often as needed for intervals that are as narrow. `pairs` instead of a number compares models with one curve and with others, `grid` reads the
//! answers of a grid that was asked.
use earnest_stats::Z95;
use earnest_stats::psychometric::{LEVELS, Limit, Measured};
use earnest_stats::wilson;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use rayon::prelude::*;

mod grid;
mod model;
mod pairs;
mod shared;

use model::Model;

/// Skills of a profile by their longest length and chance; the two with other lengths are left out.
const MIX: [(usize, f64, usize); 5] = [(20, 0.0, 24), (20, 0.5, 2), (100, 0.0, 30), (100, 0.1, 2), (100, 0.5, 12)];

const BUDGET: usize = 48;
const WIDTH: f64 = 1.5;

/// Octaves of an interval, with ends outside the range half an octave from it.
fn octaves(limit: &Limit, last: usize) -> f64 {
    let beyond = (last as f64).log2() + 0.5;
    limit.high.log2().clamp(-0.5, beyond) - limit.low.log2().clamp(-0.5, beyond)
}

/// True of an interval that ends the procedure.
fn narrow(limit: &Limit, last: usize) -> bool {
    let (below, beyond) = (0.5_f64.sqrt(), last as f64 * 2.0_f64.sqrt());
    let (low, high) = (limit.low.clamp(below, beyond), limit.high.clamp(below, beyond));
    high <= low * WIDTH || high - low <= 1.0
}

fn covers(limit: &Limit, truth: f64) -> bool {
    (limit.low <= truth || limit.low <= 1.0 && truth == 0.0) && truth <= limit.high
}

fn share(hits: usize, of: usize) -> String {
    match wilson(hits as f64, of as f64, Z95) {
        Some(found) => format!("{:.1} ({:.1}-{:.1})", 100.0 * found.value, 100.0 * found.low, 100.0 * found.high),
        None => "-".to_owned(),
    }
}

fn mean(values: impl Iterator<Item = f64> + Clone) -> f64 {
    values.clone().sum::<f64>() / values.count().max(1) as f64
}

struct Studied {
    model: Model,
    asked: usize,
    measured: Measured,
    grid: Vec<Limit>,
}

/// Most questions a length of the grid.
const MOST: usize = 24;

fn main() {
    let mut arguments = std::env::args_os().skip(1).map(|word| word.to_string_lossy().into_owned()).peekable();
    if arguments.next_if(|first| first == "pairs").is_some() {
        return pairs::main(arguments);
    }
    if arguments.next_if(|first| first == "grid").is_some() {
        return grid::main();
    }
    let curves: usize = arguments.next().and_then(|text| text.parse().ok()).unwrap_or(1_000);
    let seed: u64 = arguments.next().and_then(|text| text.parse().ok()).unwrap_or(1);
    let studied: Vec<Studied> = (0..curves)
        .into_par_iter()
        .map(|number| {
            let mut random = ChaCha8Rng::seed_from_u64(seed);
            random.set_stream(number as u64);
            let last = if number % 2 == 0 { 20 } else { 100 };
            // Four of six fall.
            let model = Model::draw(&mut random, number / 2 % 6, last);
            let (asked, measured) = model.adaptive(&mut random);
            let grid = if number / 2 % 6 < 4 { model.grid(MOST, &mut random) } else { Vec::new() };
            Studied { model, asked, measured, grid }
        })
        .collect();
    println!(
        "{curves} curves, seed {seed}; at most {BUDGET} questions, intervals of a factor of {WIDTH} or one digit.\n"
    );
    println!("| curve | models | questions | narrow enough | 90 % limit covered | 50 % | 10 % | said not to fall |");
    println!("|---|---:|---:|---:|---:|---:|---:|---:|");
    let names = [
        "logistic in log length",
        "Weibull",
        "logistic in length",
        "cut",
        "all that fall",
        "bump (not falling)",
        "dip (not falling)",
    ];
    for name in names {
        let falls = |one: &&Studied| one.model.truth.falls();
        let of: Vec<&Studied> = studied
            .iter()
            .filter(|one| if name == "all that fall" { falls(one) } else { one.model.truth.name() == name })
            .collect();
        let count = |is: &dyn Fn(&Studied) -> bool| of.iter().filter(|one| is(one)).count();
        let covered = |index: usize| {
            if !of.iter().all(falls) {
                return String::new();
            }
            let is = |one: &Studied| {
                covers(&one.measured.limits[index], one.model.truth.crossing(LEVELS[index], one.model.last as f64))
            };
            share(count(&is), of.len())
        };
        println!(
            "| {name} | {} | {:.1} | {} | {} | {} | {} | {} |",
            of.len(),
            mean(of.iter().map(|one| one.asked as f64)),
            share(count(&|one| one.measured.narrow), of.len()),
            covered(0),
            covered(1),
            covered(2),
            share(count(&|one| !one.measured.falls), of.len()),
        );
    }
    // The sums over the skills of a profile: adaptive questions, and those of the two grids.
    let (mut skills, mut sums) = (0, [0.0; 3]);
    println!(
        "\n| range | chance | models | adaptive questions | narrow enough | mean width, octaves | grid questions for as many narrow | ratio | for that mean width | ratio |"
    );
    println!("|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|");
    for last in [20, 100] {
        for chance in [0.0, 0.1, 0.5] {
            let inside = |one: &&Studied| {
                let crossing = one.model.truth.crossing(0.5, last as f64);
                !one.grid.is_empty()
                    && one.model.last == last
                    && one.model.chance == chance
                    && crossing > 0.0
                    && crossing.is_finite()
            };
            let of: Vec<&Studied> = studied.iter().filter(inside).collect();
            let asked = mean(of.iter().map(|one| one.asked as f64));
            let width = mean(of.iter().map(|one| octaves(&one.measured.limits[1], last)));
            let enough = of.iter().filter(|one| narrow(&one.measured.limits[1], last)).count();
            let as_narrow =
                (0..MOST).find(|&each| of.iter().filter(|one| narrow(&one.grid[each], last)).count() >= enough);
            let as_wide = (0..MOST).find(|&each| mean(of.iter().map(|one| octaves(&one.grid[each], last))) <= width);
            if let Some((_, _, count)) = MIX.iter().find(|(range, floor, _)| (*range, *floor) == (last, chance)) {
                skills += count;
                let grids = [as_narrow, as_wide].map(|each| ((each.unwrap_or(MOST) + 1) * last) as f64);
                for (sum, questions) in sums.iter_mut().zip([asked, grids[0], grids[1]]) {
                    *sum += *count as f64 * questions;
                }
            }
            let needed = |each: Option<usize>| match each {
                Some(each) => format!("{} | 1/{:.1}", (each + 1) * last, ((each + 1) * last) as f64 / asked),
                None => format!("over {} | under 1/{:.1}", MOST * last, (MOST * last) as f64 / asked),
            };
            println!(
                "| 1-{last} | {chance} | {} | {asked:.1} | {enough} | {width:.2} | {} | {} |",
                of.len(),
                needed(as_narrow),
                needed(as_wide)
            );
        }
    }
    println!(
        "\nOver {skills} skills as a profile has them: {:.0} adaptive questions, {:.0} of a grid for as many narrow intervals (1/{:.1}), {:.0} for the \
         mean widths (1/{:.1}).",
        sums[0],
        sums[1],
        sums[1] / sums[0],
        sums[2],
        sums[2] / sums[0]
    );
}
