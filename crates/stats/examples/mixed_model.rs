//! Fits a binomial mixed model: answers to questions and to their variants, with a random intercept for each question.
//! `cargo run --release -p earnest-stats --example mixed_model`
use earnest_stats::mixed::{Family, Formula, Frame, MixedData, MixedError, MixedOptions, fit};

/// Right answers of ten to each question: the original, its variant.
const RIGHT: [(usize, usize); 12] =
    [(9, 8), (7, 4), (10, 9), (3, 1), (6, 6), (8, 5), (2, 2), (9, 7), (5, 3), (7, 7), (4, 1), (8, 6)];

fn main() -> Result<(), MixedError> {
    let (mut right, mut variant, mut question) = (Vec::new(), Vec::new(), Vec::new());
    for (number, (original, changed)) in RIGHT.into_iter().enumerate() {
        for (form, count) in [("original", original), ("variant", changed)] {
            for answer in 0..10 {
                right.push(f64::from(u8::from(answer < count)));
                variant.push(form);
                question.push(format!("q{number}"));
            }
        }
    }
    let mut frame = Frame::new();
    frame.number("right", right)?;
    frame.texts("form", variant)?;
    frame.texts("question", question.iter().map(String::as_str))?;
    let formula: Formula = "right ~ form + (1 | question)".parse()?;
    let data = MixedData::new(&formula, &frame, Family::Binomial)?;
    let found = fit(&data, &MixedOptions::default())?;
    for coefficient in &found.coefficients {
        let (Some(estimate), Some(error)) = (coefficient.estimate, coefficient.standard_error) else { continue };
        println!("{:<12} {estimate:>8.4}  standard error {error:.4}", coefficient.name);
    }
    if let Some(deviation) = found.deviation() {
        println!("questions differ by a standard deviation of {deviation:.4} on the logit scale");
    }
    Ok(())
}
