//! Properties of fits beyond the golden numbers: intervals, tests, diagnoses, invariances.
use std::path::Path;

use earnest_stats::glmm::{
    Diagnosis, Disagreement, GlmmData, GlmmError, GlmmFit, GlmmOptions, Objective, Parameter, disagreement, fit,
    likelihood_ratio, profile_interval, variance_ratio,
};

struct Columns {
    correct: Vec<f64>,
    variant: Vec<f64>,
    gamma: Vec<f64>,
    id: Vec<u64>,
}

/// A golden set, without the rows where gamma is missing.
fn golden(name: &str) -> Columns {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/glmm").join(format!("{name}.csv"));
    let mut columns = Columns { correct: vec![], variant: vec![], gamma: vec![], id: vec![] };
    for record in csv::Reader::from_path(path).unwrap().records() {
        let record = record.unwrap();
        let Ok(gamma) = record[2].parse() else { continue };
        columns.id.push(record[0].parse().unwrap());
        columns.variant.push(record[1].parse().unwrap());
        columns.gamma.push(gamma);
        columns.correct.push(record[3].parse().unwrap());
    }
    columns
}

impl Columns {
    fn glmm1(&self) -> GlmmData {
        GlmmData::bernoulli(&self.correct, &[("variant", &self.variant)], &self.id).unwrap()
    }

    fn glmm2(&self) -> GlmmData {
        let fixed: [(&str, &[f64]); 2] = [("variant", &self.variant), ("gamma_c", &self.gamma)];
        GlmmData::bernoulli(&self.correct, &fixed, &self.id).unwrap()
    }
}

fn laplace(data: &GlmmData) -> GlmmFit {
    fit(data, &GlmmOptions::default()).unwrap()
}

fn close(actual: f64, expected: f64, tolerance: f64) {
    assert!((actual - expected).abs() <= tolerance, "{actual} is not {expected}");
}

// Independent: numpy (adaptive Gauss-Hermite by hermgauss(25), modes by damped Newton), scipy.optimize.minimize
// (Nelder-Mead) over the other parameters, brentq on deviance(value) - minimum - chi2.ppf(.95, 1); file
// real_llama32_1b_floor.csv with all rows.
#[test]
fn profile_intervals_equal_an_independent_computation() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/glmm/real_llama32_1b_floor.csv");
    let (mut correct, mut variant, mut id) = (vec![], vec![], vec![]);
    for record in csv::Reader::from_path(path).unwrap().records() {
        let record = record.unwrap();
        id.push(record[0].parse().unwrap());
        variant.push(record[1].parse().unwrap());
        correct.push(record[3].parse().unwrap());
    }
    let data = GlmmData::bernoulli(&correct, &[("variant", &variant)], &id).unwrap();
    let fitted = fit(&data, &GlmmOptions::quadrature(25)).unwrap();
    for (parameter, low, high) in [
        (Parameter::Coefficient("variant"), -2.3599488324457125, 0.8666449887584414),
        (Parameter::Coefficient("(Intercept)"), -6.846762735369912, -3.214826178401334),
        (Parameter::RandomSd, 0.41909558781135164, 2.5112772403361427),
    ] {
        let found = profile_interval(&data, &fitted, parameter, 0.95).unwrap();
        assert!(found.low_open.is_none() && found.high_open.is_none());
        close(found.low.unwrap(), low, 2e-5);
        close(found.high.unwrap(), high, 2e-5);
    }
    // A lower level gives a shorter interval inside.
    let inner = profile_interval(&data, &fitted, Parameter::Coefficient("variant"), 0.5).unwrap();
    assert!(inner.low.unwrap() > -2.0 && inner.high.unwrap() < 0.5);
    assert!(profile_interval(&data, &fitted, Parameter::Coefficient("gamma_c"), 0.95).is_err());
    assert!(profile_interval(&data, &fitted, Parameter::RandomSd, 1.0).is_err());
}

#[test]
fn a_profile_is_close_to_wald_where_the_likelihood_is_quadratic() {
    let data = golden("01_typical").glmm2();
    let fitted = laplace(&data);
    for name in ["(Intercept)", "variant", "gamma_c"] {
        let coefficient = fitted.coefficient(name).unwrap();
        let (estimate, error) = (coefficient.estimate.unwrap(), coefficient.standard_error.unwrap());
        let found = profile_interval(&data, &fitted, Parameter::Coefficient(name), 0.95).unwrap();
        close(found.low.unwrap(), estimate - 1.96 * error, 0.1 * error);
        close(found.high.unwrap(), estimate + 1.96 * error, 0.1 * error);
    }
}

#[test]
fn a_separated_coefficient_has_one_finite_end() {
    for (name, upper) in [("11_base_all_correct", true), ("12_base_all_wrong", false)] {
        let data = golden(name).glmm2();
        let fitted = laplace(&data);
        let found = profile_interval(&data, &fitted, Parameter::Coefficient("variant"), 0.95).unwrap();
        assert_eq!((found.low.is_some(), found.high.is_some()), (!upper, upper), "{found:?}");
        // The likelihood-ratio test at the finite end has just the nominal level.
        let end = found.high.or(found.low).unwrap();
        assert!(end.abs() > 1.0 && end.abs() < 10.0 && (end < 0.0) == upper, "{found:?}");
    }
}

#[test]
fn a_singular_fit_has_a_profile_from_zero() {
    let data = golden("14_tiny_5x4").glmm1();
    let fitted = laplace(&data);
    assert!(fitted.is("singular") && fitted.is("few-groups"));
    assert_eq!((fitted.random_sd, fitted.random_sd_error), (Some(0.0), None));
    let found = profile_interval(&data, &fitted, Parameter::RandomSd, 0.95).unwrap();
    assert_eq!(found.low, Some(0.0));
    assert!(found.high.unwrap() > 0.5, "{found:?}");
    assert_eq!(variance_ratio(&data, &fitted).unwrap().p, 1.0);
}

#[test]
fn nested_fits_are_compared_and_others_refused() {
    let columns = golden("18_gamma_dominant");
    let (small, large) = (laplace(&columns.glmm1()), laplace(&columns.glmm2()));
    let test = likelihood_ratio(&small, &large).unwrap();
    // The difference of the exact files' -2 log L, except that both fits use the same rows here.
    close(test.statistic, small.minus_two_log_likelihood.unwrap() - large.minus_two_log_likelihood.unwrap(), 1e-12);
    assert!(test.statistic > 40.0 && test.degrees_of_freedom == 1 && test.p < 1e-9);
    let z = large.coefficient("gamma_c").unwrap().z.unwrap();
    close(test.statistic.sqrt(), z.abs(), 0.1);
    assert!(matches!(likelihood_ratio(&large, &small), Err(GlmmError::Incomparable { .. })));
    let other = laplace(&golden("15_missing_rows").glmm2());
    assert!(likelihood_ratio(&small, &other).unwrap_err().to_string().contains("rows"));
    let quadrature = fit(&columns.glmm2(), &GlmmOptions::quadrature(9)).unwrap();
    assert!(likelihood_ratio(&small, &quadrature).unwrap_err().to_string().contains("objectives"));
    let test = variance_ratio(&columns.glmm2(), &large).unwrap();
    assert!(test.statistic > 100.0 && test.p < 1e-20);
}

#[test]
fn order_labels_and_units_do_not_matter() {
    let columns = golden("real_llama31_8b");
    let reference = laplace(&columns.glmm2());
    let reverse = |values: &[f64]| values.iter().rev().copied().collect::<Vec<_>>();
    let gamma: Vec<f64> = reverse(&columns.gamma).iter().map(|gamma| 1e6 * gamma + 3e7).collect();
    let id: Vec<u64> = columns.id.iter().rev().map(|id| u64::MAX - id * 12_345).collect();
    let (correct, variant) = (reverse(&columns.correct), reverse(&columns.variant));
    let data = GlmmData::bernoulli(&correct, &[("gamma_c", &gamma), ("variant", &variant)], &id).unwrap();
    let moved = laplace(&data);
    let pair = |name: &str| (reference.coefficient(name).unwrap(), moved.coefficient(name).unwrap());
    let (before, after) = pair("variant");
    close(after.estimate.unwrap(), before.estimate.unwrap(), 1e-7);
    close(after.standard_error.unwrap(), before.standard_error.unwrap(), 1e-7);
    let (before, after) = pair("gamma_c");
    close(after.estimate.unwrap() * 1e6, before.estimate.unwrap(), 1e-7);
    close(after.z.unwrap(), before.z.unwrap(), 1e-5);
    close(moved.random_sd.unwrap(), reference.random_sd.unwrap(), 1e-7);
}

#[test]
fn counts_and_their_single_trials_give_one_fit() {
    let columns = golden("32_clean_twin_seed1004");
    let single = laplace(&columns.glmm1());
    // One row a template and condition.
    let mut cells: std::collections::BTreeMap<(u64, u64), (f64, f64)> = std::collections::BTreeMap::new();
    for row in 0..columns.id.len() {
        let cell = cells.entry((columns.id[row], columns.variant[row] as u64)).or_default();
        cell.0 += columns.correct[row];
        cell.1 += 1.0;
    }
    let successes: Vec<f64> = cells.values().map(|cell| cell.0).collect();
    let trials: Vec<f64> = cells.values().map(|cell| cell.1).collect();
    let variant: Vec<f64> = cells.keys().map(|key| key.1 as f64).collect();
    let id: Vec<u64> = cells.keys().map(|key| key.0).collect();
    let counts = laplace(&GlmmData::binomial(&successes, &trials, &[("variant", &variant)], &id).unwrap());
    let variant = |fit: &GlmmFit| fit.coefficient("variant").unwrap().clone();
    close(variant(&counts).estimate.unwrap(), variant(&single).estimate.unwrap(), 1e-8);
    close(variant(&counts).standard_error.unwrap(), variant(&single).standard_error.unwrap(), 1e-8);
    assert!(counts.minus_two_log_likelihood.unwrap() < single.minus_two_log_likelihood.unwrap());
}

#[test]
fn groups_with_one_row_and_rows_without_trials_are_fine() {
    let mut columns = golden("real_llama31_8b");
    let groups = columns.glmm2().groups();
    columns.correct.push(1.0);
    columns.variant.push(1.0);
    columns.gamma.push(0.0);
    columns.id.push(99_999);
    let fitted = laplace(&columns.glmm2());
    assert!(fitted.diagnoses.is_empty() && fitted.groups == groups + 1, "{:?}", fitted.diagnoses);
    // Every group has one row: the variance cannot be told from the noise, and the fit says so or ends at a boundary.
    let response: Vec<f64> = (0..40).map(|row| f64::from(u8::from(row % 3 == 0))).collect();
    let group: Vec<u64> = (0..40).collect();
    let x: Vec<f64> = (0..40).map(|row| f64::from((row * 7) % 11)).collect();
    let fitted =
        fit(&GlmmData::bernoulli(&response, &[("x", &x)], &group).unwrap(), &GlmmOptions::quadrature(25)).unwrap();
    assert!(!fitted.diagnoses.is_empty(), "{fitted:#?}");
    let data = GlmmData::binomial(&[1.0, 0.0, 2.0, 1.0], &[2.0, 0.0, 4.0, 3.0], &[], &[0, 1, 2, 2]).unwrap();
    assert_eq!((data.rows(), data.groups()), (3, 2));
}

#[test]
fn diagnoses_replace_numbers() {
    let no_numbers = |fitted: &GlmmFit| {
        fitted.random_sd.is_none() && fitted.coefficients.iter().all(|c| c.estimate.is_none() && c.p.is_none())
    };
    let constant = laplace(&golden("21_constant_response").glmm1());
    assert_eq!(constant.diagnoses, [Diagnosis::ConstantResponse { value: 1 }]);
    let single = laplace(&golden("22_one_template").glmm1());
    assert_eq!(single.diagnoses, [Diagnosis::SingleGroup]);
    let groups = laplace(&golden("13_all_or_nothing").glmm1());
    assert_eq!(groups.diagnoses, [Diagnosis::GroupSeparation { constant_groups: 98, groups: 100 }]);
    assert!([&constant, &single, &groups].iter().all(|fitted| no_numbers(fitted) && fitted.diagnoses[0].is_fatal()));
    // Complete separation by a fixed effect.
    let x = [-2.0, -1.0, 1.0, 2.0, 3.0, -3.0];
    let data = GlmmData::bernoulli(&[0.0, 0.0, 1.0, 1.0, 1.0, 0.0], &[("x", &x)], &[0, 0, 1, 1, 2, 2]).unwrap();
    let complete = laplace(&data);
    assert!(no_numbers(&complete) && complete.is("separation") && complete.diagnoses[0].is_fatal(), "{complete:?}");
    // Quasi-complete separation leaves what can be estimated.
    let quasi = laplace(&golden("23_one_success").glmm2());
    assert!(quasi.is("separation") && quasi.coefficient("variant").unwrap().estimate.is_none(), "{quasi:?}");
}

#[test]
fn laplace_and_quadrature_are_compared() {
    let floor = golden("real_llama32_1b_floor").glmm1();
    let judged = disagreement(&laplace(&floor), &fit(&floor, &GlmmOptions::quadrature(25)).unwrap());
    assert!(matches!(judged, Some(Disagreement { points: 25, .. })), "{judged:?}");
    let typical = golden("01_typical").glmm1();
    assert_eq!(disagreement(&laplace(&typical), &fit(&typical, &GlmmOptions::quadrature(25)).unwrap()), None);
}

/// The study's artefact: a converged fit beside lme4's objective on the same rows (specification, section 6.1).
#[test]
fn the_artefact_appears_only_with_the_lme4_objective() {
    for name in ["30_degenerate_both_seed1141", "real_llama31_8b_instruct"] {
        let data = golden(name).glmm1();
        let (honest, artefact) = (laplace(&data), fit(&data, &GlmmOptions::lme4()).unwrap());
        assert!(honest.diagnoses.is_empty());
        let error = |fitted: &GlmmFit| fitted.coefficient("variant").unwrap().standard_error.unwrap();
        assert!(error(&honest) > 0.2 && error(&artefact) < 1e-3);
        let Some(Diagnosis::DegenerateErrors { standard_error, jump }) =
            artefact.diagnoses.iter().find(|diagnosis| diagnosis.word() == "degenerate-errors")
        else {
            panic!("{:?}", artefact.diagnoses)
        };
        // SE = 1e-4 sqrt(2 / jump), the same for every coefficient.
        close(*standard_error / (1e-4 * (2.0 / jump).sqrt()), 1.0, 1e-2);
        // The minimum itself is hardly moved: the errors are wrong, not the estimates.
        let estimate = |fitted: &GlmmFit| fitted.coefficient("variant").unwrap().estimate.unwrap();
        close(estimate(&artefact), estimate(&honest), 1e-2);
    }
}

#[test]
fn unusable_options_are_errors() {
    let data = golden("14_tiny_5x4").glmm1();
    for points in [0, 2, 24, 103] {
        let options = GlmmOptions { objective: Objective::Converged { points }, restarts: 0 };
        assert!(matches!(fit(&data, &options), Err(GlmmError::Points { .. })), "{points}");
    }
}
