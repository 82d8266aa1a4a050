//! Tests of fits that are refused: few right answers that agree within questions, and variances that run away.
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::fit::unrefused;
use super::tests::data;
use super::*;

/// Answers of runs to one original and ten variants of 100 templates; log odds `level` with deviations of templates and of questions.
pub(crate) fn rare(runs: usize, level: f64, deviations: (f64, f64), seed: u64) -> Frame {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let (mut cluster, mut item, mut run, mut variant, mut correct) = (vec![], vec![], vec![], vec![], vec![]);
    let normal = |random: &mut ChaCha8Rng| (0..12).map(|_| random.random::<f64>()).sum::<f64>() - 6.0;
    for t in 0..100 {
        let template = level + deviations.0 * normal(&mut random);
        for i in 0..11 {
            let eta = template + deviations.1 * normal(&mut random);
            for r in 0..runs {
                cluster.push(format!("t{t}"));
                item.push(format!("t{t}q{i}"));
                run.push(format!("r{r}"));
                variant.push(if i == 0 { "original" } else { "variant" });
                correct.push(f64::from(u8::from(random.random::<f64>() < 1.0 / (1.0 + (-eta).exp()))));
            }
        }
    }
    let mut frame = Frame::new();
    for (name, texts) in [("cluster", &cluster), ("item", &item), ("run", &run)] {
        frame.texts(name, texts.iter().map(String::as_str)).unwrap();
    }
    frame.texts("variant", variant.iter().copied()).unwrap();
    frame.number("correct", correct).unwrap();
    frame
}

pub(crate) fn observed(frame: &Frame) -> f64 {
    let Ok(Column::Number(values)) = frame.column("correct") else { panic!("no numbers") };
    values.iter().sum::<f64>() / values.len() as f64
}

/// The model's accuracy over all rows with its interval.
pub(crate) fn averaged(data: &MixedData, fit: &MixedFit) -> MarginalLevel {
    marginal(data, fit, None, 0.95).unwrap().levels.remove(0)
}

#[test]
fn a_fit_that_misses_the_observed_share_has_no_numbers() {
    let frame = rare(4, -10.0, (1.5, 4.0), 2);
    let share = observed(&frame);
    assert!((0.003..0.02).contains(&share), "{share}");
    let data = data("correct ~ run + (1 | cluster) + (1 | item)", &frame, Family::Binomial).unwrap();
    // Laplace's approximation makes another share of it, several times as large or as small.
    let kept = unrefused(&data, &MixedOptions::default()).unwrap();
    let wrong = averaged(&data, &kept).mean / share;
    assert!(kept.is_usable() && !(0.6..1.6).contains(&wrong), "{wrong} {:?}", kept.random);
    let refused = fit(&data, &MixedOptions::default()).unwrap();
    assert!(!refused.is_usable() && refused.random.is_empty() && refused.aic.is_none());
    let said: Vec<String> = refused.diagnoses.iter().filter(|one| one.is_fatal()).map(ToString::to_string).collect();
    assert!(
        said.iter().any(|text| text.starts_with("the fit misses the data") || text.starts_with("very large")),
        "{said:?}"
    );
    assert!(said.iter().all(|text| text.contains("test the paired difference")), "{said:?}");
    assert!(term_tests(data.formula(), &frame, &refused, &[]).is_err());
}

#[test]
fn right_fits_are_not_refused() {
    // Half of the answers right, and few of them but without agreement within questions; templates of very different sizes.
    for (level, deviations) in [(0.0, (1.0, 1.0)), (-4.5, (1.2, 0.3)), (2.0, (2.0, 1.0))] {
        let frame = rare(3, level, deviations, 5);
        let data = data("correct ~ run + variant + (1 | cluster)", &frame, Family::Binomial).unwrap();
        let fitted = fit(&data, &MixedOptions::default()).unwrap();
        assert!(fitted.is_usable(), "{level}: {:?}", fitted.diagnoses);
        let ratio = averaged(&data, &fitted).mean / observed(&frame);
        assert!((0.9..1.1).contains(&ratio), "{level}: {ratio}");
    }
    // Large groups are right, small ones wrong: the mean of new groups is not the share of the rows.
    let mut frame = Frame::new();
    let sizes: Vec<usize> = (0..30).map(|group| if group % 3 == 0 { 60 } else { 6 }).collect();
    let groups: Vec<String> =
        sizes.iter().enumerate().flat_map(|(group, size)| std::iter::repeat_n(format!("g{group}"), *size)).collect();
    frame.texts("group", groups.iter().map(String::as_str)).unwrap();
    let right = sizes.iter().enumerate().flat_map(|(group, size)| {
        (0..*size).map(move |row| {
            f64::from(u8::from(if group % 3 == 0 { (row + group) % 5 > 0 } else { (row + group) % 4 == 0 }))
        })
    });
    frame.number("correct", right.collect()).unwrap();
    let data = data("correct ~ 1 + (1 | group)", &frame, Family::Binomial).unwrap();
    let fitted = fit(&data, &MixedOptions::default()).unwrap();
    assert!(fitted.is_usable(), "{:?}", fitted.diagnoses);
    assert!(averaged(&data, &fitted).mean < observed(&frame) - 0.1);
}

#[test]
fn a_slope_that_ran_away_steps_down() {
    // Variants turn templates from all right to all wrong, or back.
    let (mut cluster, mut variant, mut correct) = (vec![], vec![], vec![]);
    for t in 0..40 {
        for row in 0..12 {
            let side = row % 2 == 1;
            cluster.push(format!("t{t}"));
            variant.push(if side { "symbolic" } else { "base" });
            correct.push(f64::from(u8::from((t % 2 == 0) != side)));
        }
    }
    // One answer is otherwise, so that nothing is separated.
    correct[0] = 1.0 - correct[0];
    correct[13] = 1.0 - correct[13];
    let mut frame = Frame::new();
    frame.texts("cluster", cluster.iter().map(String::as_str)).unwrap();
    frame.texts("variant", variant.iter().copied()).unwrap();
    frame.number("correct", correct).unwrap();
    let formula: Formula = "correct ~ variant + (1 + variant | cluster)".parse().unwrap();
    let data = MixedData::new(&formula, &frame, Family::Binomial).unwrap();
    let refused = fit(&data, &MixedOptions::default()).unwrap();
    let slope =
        |one: &MixedDiagnosis| matches!(one, MixedDiagnosis::LargeVariance { term, .. } if term == "variantsymbolic");
    assert!(!refused.is_usable() && refused.diagnoses.iter().any(slope), "{:?}", refused.diagnoses);
    let chosen = crate::analysis::fit_stepping_down(&formula, &frame, Family::Binomial).unwrap();
    assert_eq!(chosen.formula.to_string(), "correct ~ variant + (1 | cluster)", "{:?}", chosen.steps);
    assert!(chosen.fit.is_usable(), "{:?}", chosen.fit.diagnoses);
}

#[test]
fn linear_models_without_residuals_are_an_error() {
    let of = |noise: f64| {
        let mut random = ChaCha8Rng::seed_from_u64(3);
        let mut frame = Frame::new();
        let groups: Vec<String> = (0..120).map(|row| format!("g{}", row / 6)).collect();
        frame.texts("group", groups.iter().map(String::as_str)).unwrap();
        frame.number("x", (0..120).map(|row| f64::from(row % 2)).collect()).unwrap();
        let value = |row: i32| {
            1.5 * f64::from(row % 2) + f64::from((row / 6) * (row / 6) % 7) + noise * (random.random::<f64>() - 0.5)
        };
        frame.number("y", (0..120).map(value).collect()).unwrap();
        fit(&data("y ~ x + (1 | group)", &frame, Family::Gaussian).unwrap(), &MixedOptions::default())
    };
    for noise in [0.0, 1e-14, 1e-9, 1e-6] {
        let said = of(noise).unwrap_err().to_string();
        assert!(said.contains("fits every row without error"), "{noise}: {said}");
    }
    for noise in [1e-3, 1.0] {
        let fitted = of(noise).unwrap();
        let residual = fitted.residual_sd.unwrap() / noise;
        assert!(fitted.is_usable() && (0.2..0.4).contains(&residual), "{noise}: {residual} {:?}", fitted.diagnoses);
    }
}
