//! Fits a binomial mixed model: answers to questions and to their variants, with a random intercept for each question.
//! `cargo run --release -p earnest-stats --example mixed_model`
use earnest_stats::glmm::{GlmmData, GlmmError, GlmmOptions, fit};

/// Right answers of ten to each question: the original, its variant.
const RIGHT: [(f64, f64); 12] = [
    (9.0, 8.0),
    (7.0, 4.0),
    (10.0, 9.0),
    (3.0, 1.0),
    (6.0, 6.0),
    (8.0, 5.0),
    (2.0, 2.0),
    (9.0, 7.0),
    (5.0, 3.0),
    (7.0, 7.0),
    (4.0, 1.0),
    (8.0, 6.0),
];

fn main() -> Result<(), GlmmError> {
    let (mut right, mut variant, mut question) = (Vec::new(), Vec::new(), Vec::new());
    for (number, (original, changed)) in (0..).zip(RIGHT) {
        right.extend([original, changed]);
        variant.extend([0.0, 1.0]);
        question.extend([number, number]);
    }
    let asked = vec![10.0; right.len()];
    let data = GlmmData::binomial(&right, &asked, &[("variant", &variant)], &question)?;
    let found = fit(&data, &GlmmOptions::default())?;
    for coefficient in &found.coefficients {
        let (Some(estimate), Some(error)) = (coefficient.estimate, coefficient.standard_error) else { continue };
        println!("{:<12} {estimate:>8.4}  standard error {error:.4}", coefficient.name);
    }
    if let Some(deviation) = found.random_sd {
        println!("questions differ by a standard deviation of {deviation:.4} on the logit scale");
    }
    Ok(())
}
