//! Time of one fit of GLMM 2 on data of the study's size: 5,100 rows, 100 groups; and of models from formulas. Single-threaded.
//!
//! `cargo bench --bench glmm`; the aims are 50 ms (Laplace), 300 ms (25 points), 2 s (20,000 rows), 30 s (a million).
use std::path::Path;

use divan::Bencher;
use earnest_stats::mixed::{Family, Frame, IntegralChoice, MixedData, MixedOptions, fit};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

#[path = "../tests/golden_subjects/files.rs"]
mod files;

fn typical() -> MixedData {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/glmm/01_typical.csv");
    let table = files::read(&path).expect("the golden set is part of the repository");
    let (mut correct, mut variant, mut gamma, mut id) = (vec![], vec![], vec![], vec![]);
    for record in csv::Reader::from_reader(table.as_bytes()).records() {
        let record = record.expect("a golden set is valid CSV");
        let number = |column: usize| record[column].parse::<f64>().expect("a golden set holds numbers");
        id.push(number(0) as u64);
        variant.push(number(1));
        gamma.push(number(2));
        correct.push(number(3));
    }
    MixedData::of_columns(&correct, &[("variant", &variant), ("gamma_c", &gamma)], &id).expect("a golden set is valid")
}

fn of_one_intercept(bencher: Bencher, integral: IntegralChoice) {
    let data = typical();
    bencher.bench(|| fit(&data, &MixedOptions { integral, ..MixedOptions::default() }));
}

#[divan::bench(sample_count = 20)]
fn laplace(bencher: Bencher) {
    of_one_intercept(bencher, IntegralChoice::Laplace);
}

#[divan::bench(sample_count = 20)]
fn agq25(bencher: Bencher) {
    of_one_intercept(bencher, IntegralChoice::QUADRATURE);
}

/// Answers to items of 100 templates under two variants, with a slope; one numeric covariate a row if wanted.
fn simulated(rows: usize, items: usize, covariate: bool) -> Frame {
    let mut random = ChaCha8Rng::seed_from_u64(1);
    let mut normal = || (0..12).map(|_| random.random::<f64>()).sum::<f64>() - 6.0;
    let templates: Vec<(f64, f64)> = (0..100).map(|_| (normal(), 0.6 * normal())).collect();
    let levels: Vec<f64> = (0..items).map(|_| 0.7 * normal()).collect();
    let (mut template, mut item, mut variant, mut gamma, mut correct) = (vec![], vec![], vec![], vec![], vec![]);
    for row in 0..rows {
        let (t, v, i) = (row % 100, row / 100 % 2, row / 200 % items);
        let x = if covariate { normal() } else { 0.0 };
        let eta = 0.3 - 0.4 * v as f64 + templates[t].0 + templates[t].1 * v as f64 + levels[i] + 0.2 * x;
        template.push(t as u32);
        variant.push(v as u32);
        item.push(i as u32);
        gamma.push(x);
        // A logistic variable is nearly 1.7 normal ones.
        correct.push(f64::from(u8::from(eta + 1.7 * normal() > 0.0)));
    }
    let names = |count: usize| (0..count).map(|index| format!("l{index:05}")).collect::<Vec<_>>();
    let mut frame = Frame::new();
    for (name, codes, count) in [("template", template, 100), ("item", item, items), ("variant", variant, 2)] {
        frame.labels(name, codes, names(count)).expect("codes are levels");
    }
    for (name, values) in [("gamma", gamma), ("correct", correct)] {
        frame.number(name, values).expect("simulated numbers are finite");
    }
    frame
}

fn from_formula(bencher: Bencher, formula: &str, frame: &Frame) {
    let formula = formula.parse().expect("the formula is valid");
    bencher.bench(|| {
        let data = MixedData::new(&formula, frame, Family::Binomial)?;
        fit(&data, &MixedOptions::default())
    });
}

#[divan::bench(sample_count = 5)]
fn crossed_20_000(bencher: Bencher) {
    from_formula(bencher, "correct ~ variant + (1+variant|template) + (1|item)", &simulated(20_000, 100, false));
}

#[divan::bench(sample_count = 1)]
fn million(bencher: Bencher) {
    from_formula(bencher, "correct ~ variant + gamma + (1+variant|template)", &simulated(1_000_000, 1, true));
}

fn main() {
    divan::main();
}
