//! Time of one fit of GLMM 2 on data of the study's size: 5,100 rows, 100 groups. Single-threaded.
//!
//! `cargo bench --bench glmm`; the aims are 50 ms (Laplace) and 300 ms (25 points).
use std::path::Path;

use divan::Bencher;
use earnest_stats::glmm::{GlmmData, GlmmOptions, fit};

fn typical() -> GlmmData {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/glmm/01_typical.csv");
    let (mut correct, mut variant, mut gamma, mut id) = (vec![], vec![], vec![], vec![]);
    for record in csv::Reader::from_path(path).expect("the golden set is part of the repository").records() {
        let record = record.expect("a golden set is valid CSV");
        let number = |column: usize| record[column].parse::<f64>().expect("a golden set holds numbers");
        id.push(number(0) as u64);
        variant.push(number(1));
        gamma.push(number(2));
        correct.push(number(3));
    }
    GlmmData::bernoulli(&correct, &[("variant", &variant), ("gamma_c", &gamma)], &id).expect("a golden set is valid")
}

#[divan::bench(sample_count = 20)]
fn laplace(bencher: Bencher) {
    let data = typical();
    bencher.bench(|| fit(&data, &GlmmOptions::default()));
}

#[divan::bench(sample_count = 20)]
fn agq25(bencher: Bencher) {
    let data = typical();
    bencher.bench(|| fit(&data, &GlmmOptions::quadrature(25)));
}

fn main() {
    divan::main();
}
