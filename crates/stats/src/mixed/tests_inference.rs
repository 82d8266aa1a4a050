//! Tests of what is said about a fit.
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::tests::{data, paired, simulated};
use super::*;
use crate::distribution::student_two_sided;

#[test]
fn profile_ends_are_where_the_likelihood_says() {
    let frame = simulated(20, 3, 11);
    let data = data("correct ~ variant + gamma + (1+variant|template)", &frame, Family::Binomial).unwrap();
    let fitted = fit(&data, &MixedOptions::default()).unwrap();
    for name in ["variantsymbolic", "gamma", "(Intercept)"] {
        let found = profile_interval(&data, &fitted, name, 0.95).unwrap();
        let one = fitted.coefficient(name).unwrap();
        let (estimate, error) = (one.estimate.unwrap(), one.standard_error.unwrap());
        let reach = [estimate - found.low.unwrap(), found.high.unwrap() - estimate];
        // Near the Wald interval, not equal to it.
        assert!(reach.iter().all(|reach| (reach / error - 1.96).abs() < 0.25), "{name} {reach:?} {error}");
    }
    // An offset at the end of the interval leaves the other parameters to a fit of their own.
    let end = profile_interval(&data, &fitted, "gamma", 0.95).unwrap().high.unwrap();
    let test = term_tests(data.formula(), &frame, &fitted, &["gamma".to_owned()]).unwrap();
    assert!(end > 0.0 && test[0].statistic > 3.85, "{end} {test:?}");
    let error = profile_interval(&data, &fitted, "delta", 0.95).unwrap_err().to_string();
    assert!(error.contains("no estimate of `delta`; there are: (Intercept)"), "{error}");
    assert!(matches!(profile_interval(&data, &fitted, "gamma", 1.0), Err(MixedError::Confidence { .. })));
}

#[test]
fn a_profile_through_zero_is_the_likelihood_ratio() {
    let frame = simulated(20, 3, 12);
    let data = data("correct ~ model + gamma + (1|template)", &frame, Family::Binomial).unwrap();
    let fitted = fit(&data, &MixedOptions::default()).unwrap();
    let test = term_tests(data.formula(), &frame, &fitted, &["gamma".to_owned()]).unwrap();
    // The level at which the interval's lower end is 0 has the test's p value.
    let level = 1.0 - test[0].p;
    let found = profile_interval(&data, &fitted, "gamma", level).unwrap();
    assert!(found.low.unwrap().abs() < 1e-4, "{found:?} {test:?}");
}

/// Three runs of which one is always wrong: the finite end of its profile is where -2 log L, over a grid of the other parameters, exceeds the limit by the
/// quantile.
#[test]
fn a_separated_end_is_where_the_likelihood_says() {
    (0..12).for_each(separated_end);
}

fn separated_end(seed: u64) {
    let (mut right, mut run, mut item) = (vec![], vec![], vec![]);
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    for question in 0..100 {
        let own = 4.0 * random.random::<f64>() - 2.0;
        for (name, effect) in [("a", 0.0), ("b", f64::NEG_INFINITY), ("c", 0.3)] {
            right.push(f64::from(u8::from(random.random::<f64>() < 1.0 / (1.0 + (-own - effect).exp()))));
            run.push(name);
            item.push(format!("q{question}"));
        }
    }
    let mut frame = Frame::new();
    frame.number("right", right).unwrap();
    frame.texts("run", run.iter().copied()).unwrap();
    frame.texts("item", item.iter().map(String::as_str)).unwrap();
    let data = data("right ~ run + (1|item)", &frame, Family::Binomial).unwrap();
    let options = MixedOptions { integral: IntegralChoice::QUADRATURE, ..MixedOptions::default() };
    let limit = limit(&data, &options).unwrap().unwrap();
    let one = Unbounded { name: "runb".to_owned(), increasing: false };
    let found = profile_separated(&data, Some(&limit.fit), &one, 0.95).unwrap();
    let end = found.high.unwrap();
    let lowest = limit.fit.minus_two_log_likelihood.unwrap();
    // Cyclic descent with ever smaller steps, from two deviations.
    let best = |from: f64| {
        let value = |at: [f64; 3]| minus_two_log_likelihood(&data, at[0].abs(), &[at[1], end, at[2]], 101).unwrap();
        let mut at = [from, 0.0, 0.0];
        let (mut lowest, mut step) = (value(at), 1.0);
        while step > 1e-4 {
            let mut moved = false;
            for index in 0..3 {
                for sign in [-1.0, 1.0] {
                    let mut next = at;
                    next[index] += sign * step;
                    let found = value(next);
                    if found < lowest {
                        (at, lowest, moved) = (next, found, true);
                    }
                }
            }
            step *= if moved { 1.0 } else { 0.5 };
        }
        lowest
    };
    let excess = best(0.05).min(best(4.0)) - lowest;
    assert!((excess - 3.8415).abs() < 0.02, "{seed}: {end}: {excess}, limit {lowest}");
}

/// A fit without variation between groups: values far from the estimate have some.
#[test]
fn a_profile_of_a_singular_fit_is_the_likelihood_ratio() {
    let (mut right, mut x, mut group) = (Vec::new(), Vec::new(), Vec::new());
    for (index, count) in [1, 2, 2, 3, 4, 4, 5, 6, 6, 7].into_iter().enumerate() {
        for answer in 0..8 {
            right.push(f64::from(u8::from(answer < count)));
            x.push(index as f64);
            group.push(format!("g{index}"));
        }
    }
    let mut frame = Frame::new();
    frame.number("right", right).unwrap();
    frame.number("x", x).unwrap();
    frame.texts("group", group.iter().map(String::as_str)).unwrap();
    let data = data("right ~ x + (1|group)", &frame, Family::Binomial).unwrap();
    let fitted = fit(&data, &MixedOptions::default()).unwrap();
    assert!(fitted.singular, "{fitted:?}");
    let test = term_tests(data.formula(), &frame, &fitted, &["x".to_owned()]).unwrap();
    let without: Formula = "right ~ 1 + (1|group)".parse().unwrap();
    let without = fit(&MixedData::new(&without, &frame, Family::Binomial).unwrap(), &MixedOptions::default()).unwrap();
    assert!(without.deviation().unwrap() > 0.5, "{without:?}");
    let found = profile_interval(&data, &fitted, "x", 1.0 - test[0].p).unwrap();
    assert!(found.low.unwrap().abs() < 1e-3, "{found:?} {test:?}");
}

/// Terms are compared by the integral of the fit that is printed: likelihoods by two integrals differ by more than effects do.
#[test]
fn a_term_without_effect_is_not_found_by_another_integral() {
    let (mut right, mut run, mut noise, mut group) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for (question, outcome) in
        [[1.0, 1.0]; 40].into_iter().chain([[0.0, 0.0]; 30]).chain([[1.0, 0.0]; 8]).chain([[0.0, 1.0]; 12]).enumerate()
    {
        for (index, value) in outcome.into_iter().enumerate() {
            right.push(value);
            run.push(["a", "b"][index]);
            noise.push((question * 7 % 5) as f64);
            group.push(format!("q{question}"));
        }
    }
    let mut frame = Frame::new();
    frame.number("right", right).unwrap();
    frame.texts("run", run).unwrap();
    frame.number("noise", noise).unwrap();
    frame.texts("group", group.iter().map(String::as_str)).unwrap();
    let data = data("right ~ run + noise + (1|group)", &frame, Family::Binomial).unwrap();
    for integral in [IntegralChoice::Laplace, IntegralChoice::QUADRATURE] {
        let fitted = fit(&data, &MixedOptions { integral, ..MixedOptions::default() }).unwrap();
        let test = &term_tests(data.formula(), &frame, &fitted, &["noise".to_owned()]).unwrap()[0];
        let wald = fitted.coefficient("noise").unwrap().z.unwrap().powi(2);
        assert!((test.statistic - wald).abs() < 0.3 * wald.max(0.2), "{test:?} {wald}");
    }
}

#[test]
fn terms_are_tested_where_no_interaction_holds_them() {
    let frame = simulated(15, 3, 13);
    let formula: Formula = "correct ~ model*variant + gamma + (1|template)".parse().unwrap();
    let of = |formula: &Formula, family| {
        fit(&MixedData::new(formula, &frame, family).unwrap(), &MixedOptions::default()).unwrap()
    };
    let fitted = of(&formula, Family::Binomial);
    let all = term_tests(&formula, &frame, &fitted, &[]).unwrap();
    let named: Vec<(&str, usize)> = all.iter().map(|test| (test.term.as_str(), test.degrees_of_freedom)).collect();
    assert_eq!(named, [("gamma", 1), ("model:variant", 3)]);
    let one = term_tests(&formula, &frame, &fitted, &["variant:model".to_owned()]).unwrap();
    assert_eq!(one[0].statistic, all[1].statistic);
    let error = term_tests(&formula, &frame, &fitted, &["size".to_owned()]).unwrap_err().to_string();
    assert!(error.contains("no term `size`; its terms are: model, variant, gamma, model:variant"), "{error}");
    let held = term_tests(&formula, &frame, &fitted, &["model".to_owned()]).unwrap_err().to_string();
    assert!(held.contains("test the interaction instead"), "{held}");
    let linear: Formula = "latency ~ variant + (1|template)".parse().unwrap();
    assert_eq!(term_tests(&linear, &frame, &of(&linear, Family::Gaussian), &[]).unwrap()[0].degrees_of_freedom, 1);
}

#[test]
fn contrasts_are_differences_of_coefficients() {
    let frame = simulated(15, 3, 14);
    let data = data("correct ~ model + (1|template)", &frame, Family::Binomial).unwrap();
    let fitted = fit(&data, &MixedOptions::default()).unwrap();
    let wanted = vec![
        ("2-1".to_owned(), vec![("modelm2".to_owned(), 1.0), ("modelm1".to_owned(), -1.0)]),
        ("1".to_owned(), vec![("modelm1".to_owned(), 1.0)]),
    ];
    let found = contrasts(&fitted, &wanted, 0.95).unwrap();
    let estimate = |name: &str| fitted.coefficient(name).unwrap().estimate.unwrap();
    assert!((found[0].estimate - estimate("modelm2") + estimate("modelm1")).abs() < 1e-12);
    // The same comparison among all pairs.
    let pairs = marginal(&data, &fitted, Some("model"), 0.95).unwrap().differences;
    let pair = pairs.iter().find(|one| (one.level.as_str(), one.against.as_str()) == ("m2", "m1")).unwrap();
    assert!((pair.log_odds - found[0].estimate).abs() < 1e-9);
    // z and p are those of the difference beside them.
    assert!(
        (pair.z - pair.difference / pair.standard_error).abs() < 1e-9 && (pair.z - found[0].z).abs() < 0.2,
        "{pair:?}"
    );
    let one = fitted.coefficient("modelm1").unwrap();
    assert!((found[1].p - one.p.unwrap()).abs() < 1e-12 && found[1].holm >= found[1].p);
    let p_values: Vec<f64> = found.iter().map(|one| one.p).collect();
    let adjusted = crate::benjamini_hochberg(&p_values).unwrap();
    assert!(found.iter().zip(adjusted).all(|(one, p)| one.benjamini_hochberg == p && one.family_size == found.len()));
    assert!(contrasts(&fitted, &[("x".to_owned(), vec![("x".to_owned(), 1.0)])], 0.95).is_err());
}

#[test]
fn a_missing_slope_shows_in_the_robust_error() {
    let frame = simulated(60, 12, 15);
    let fitted = |formula: &str| {
        let data = data(formula, &frame, Family::Binomial).unwrap();
        let fitted = fit(&data, &MixedOptions::default()).unwrap();
        (fitted.clone(), with_robust_errors(&data, fitted), data)
    };
    let (model, robust, data) = fitted("correct ~ variant + (1|template)");
    let (one, other) = (&model.coefficients[1], &robust.coefficients[1]);
    assert_eq!((model.errors, robust.errors), (Errors::Model, Errors::Robust));
    assert_eq!((other.estimate, other.standard_error_model), (one.estimate, one.standard_error));
    let error = other.standard_error.unwrap();
    assert!(error > 1.2 * one.standard_error.unwrap(), "{one:?} {other:?}");
    let basis = robust.robust.as_ref().unwrap();
    assert_eq!((basis.clusters, basis.degrees_of_freedom, basis.group.as_str()), (60, 59.0, "template"));
    assert!(basis.reason.starts_with("variantsymbolic has"), "{}", basis.reason);
    // Student's t with 59 degrees of freedom: the quantile from a table is 2.0010.
    let (low, high) = robust.wald_interval(other, 0.95).unwrap();
    assert!(((high - low) / (2.0 * error) - 2.0010).abs() < 1e-4);
    let p = student_two_sided(other.estimate.unwrap() / error, 59.0);
    assert!((other.p.unwrap() - p).abs() < 1e-12 && other.p > one.p);
    // Everything made from the fit has these errors: contrasts, and differences of accuracies.
    let contrast = contrasts(&robust, &[("x".to_owned(), vec![("variantsymbolic".to_owned(), 1.0)])], 0.95).unwrap();
    assert!((contrast[0].standard_error - error).abs() < 1e-12 && (contrast[0].p - p).abs() < 1e-12);
    let difference =
        |fit: &MixedFit| marginal(&data, fit, Some("variant"), 0.95).unwrap().differences[0].standard_error;
    assert!(difference(&robust) > 1.2 * difference(&model));
    // A slope is what varies: with it the model's errors stand.
    let (_, with_slope, _) = fitted("correct ~ variant + (1+variant|template)");
    assert_eq!((with_slope.errors, &with_slope.robust), (Errors::Model, &None));
}

/// Questions that nearly always agree: a Gauss rule made 0.61 points of the 0.81 that are there, with an error twenty times too large.
#[test]
fn averages_over_large_deviations_are_those_of_the_answers() {
    for counts in [[2000, 1500, 80, 110], [300, 200, 9, 25], [120, 66, 9, 25]] {
        let data = data("correct ~ run + (1 | item)", &paired(counts, 10), Family::Binomial).unwrap();
        let fitted = fit(&data, &MixedOptions::default()).unwrap();
        let found = &marginal(&data, &fitted, Some("run"), 0.95).unwrap().differences[0];
        let questions = counts.iter().sum::<usize>() as f64;
        let [a, b] = [counts[2], counts[3]].map(|count| count as f64 / questions);
        // The error of a difference of paired shares.
        let error = ((a + b - (b - a).powi(2)) / questions).sqrt();
        assert!((found.difference / (b - a) - 1.0).abs() < 0.02, "{counts:?}: {found:?}");
        assert!((found.standard_error / error - 1.0).abs() < 0.05, "{counts:?}: {error} {found:?}");
        let means = predictions(&data, &fitted).unwrap();
        let of = |run: &str| means.iter().find(|one| one.values.iter().any(|value| value == run)).unwrap().population;
        assert!((of("b") - of("a") - found.difference).abs() < 1e-12, "{found:?}");
    }
}

#[test]
fn predictions_are_calibrated() {
    let frame = simulated(20, 4, 16);
    let data = data("correct ~ variant + (1+variant|template) + (1|template:item)", &frame, Family::Binomial).unwrap();
    let fitted = fit(&data, &MixedOptions::default()).unwrap();
    let found = predictions(&data, &fitted).unwrap();
    assert_eq!(found.len(), data.cells());
    assert_eq!(found.iter().map(|one| one.rows).sum::<usize>(), frame.rows());
    let mean = |value: &dyn Fn(&Prediction) -> f64| {
        found.iter().map(|one| one.rows as f64 * value(one)).sum::<f64>() / frame.rows() as f64
    };
    let (observed, conditional) = (mean(&|one| one.observed), mean(&|one| one.conditional));
    assert!((observed - conditional).abs() < 0.01, "{observed} {conditional}");
    // The population's probabilities are those of the marginal means.
    let levels = marginal(&data, &fitted, Some("variant"), 0.95).unwrap().levels;
    let base = found.iter().find(|one| one.values[0] == "base").unwrap();
    assert!((base.population - levels[0].mean).abs() < 1e-9);
}

#[test]
fn robust_errors_are_over_the_widest_groups_or_none() {
    let clusters = |formula: &str, templates: usize| {
        let data = data(formula, &simulated(templates, 10, 8), Family::Binomial).unwrap();
        data.clusters().map(|(name, _)| name.to_owned())
    };
    let nested = "correct ~ model + variant + (1|template) + (1|template:item)";
    assert_eq!(clusters(nested, 25).as_deref(), Some("template"));
    // Questions of ten templates are not independent, and ten templates are too few.
    assert_eq!(clusters(nested, 10), None);
    // Groups that cross are no wider ones.
    assert_eq!(
        clusters("correct ~ model + variant + (1|template:item) + (1|prompt)", 25).as_deref(),
        Some("template:item")
    );
}

/// Reference: own Python (numpy, scipy), the likelihood of each group by 100 Gauss-Hermite points, its scores and Hessian in (intercept, effect,
/// SD) by differences, sandwich with G / (G - 1), `scipy.stats.t` with G - 1 degrees of freedom.
#[test]
fn robust_errors_are_the_sandwich_of_the_groups_scores() {
    let (mut group, mut x, mut correct) = (vec![], vec![], vec![]);
    for g in 0..24 {
        for r in 0..10 {
            let shift = if r % 2 == 0 {
                0
            } else if g % 3 == 0 {
                -3
            } else {
                5
            };
            group.push(format!("g{g}"));
            x.push(f64::from(r % 2));
            correct.push(f64::from(u8::from((7 * r + 3 * g * g) % 11 < 3 + g % 5 + shift)));
        }
    }
    assert_eq!(correct.iter().sum::<f64>(), 139.0);
    let mut frame = Frame::new();
    frame.texts("group", group.iter().map(String::as_str)).unwrap();
    frame.number("x", x).unwrap();
    frame.number("correct", correct).unwrap();
    let data = data("correct ~ x + (1|group)", &frame, Family::Binomial).unwrap();
    let options = MixedOptions { integral: IntegralChoice::QUADRATURE, ..MixedOptions::default() };
    let found = with_robust_errors(&data, fit(&data, &options).unwrap());
    let near =
        |found: f64, reference: f64, reach: f64| assert!((found - reference).abs() < reach, "{found} {reference}");
    let effect = &found.coefficients[1];
    near(effect.estimate.unwrap(), 0.91328318, 1e-5);
    near(effect.standard_error_model.unwrap(), 0.28991249, 1e-5);
    near(effect.standard_error.unwrap(), 0.35333502, 1e-5);
    near(effect.p.unwrap(), 0.01656521, 1e-5);
    let (low, high) = found.wald_interval(effect, 0.95).unwrap();
    near(low, 0.18235399, 1e-4);
    near(high, 1.64421236, 1e-4);
}
