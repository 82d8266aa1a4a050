//! Properties of fits beyond the golden numbers: intervals, tests, diagnoses, invariances.
use std::path::Path;

use earnest_stats::mixed::lme4::{Lme4Options, fit as fit_as_lme4};
use earnest_stats::mixed::{
    Disagreement, IntegralChoice, MixedData, MixedDiagnosis, MixedError, MixedFit, MixedOptions, disagreement, fit,
    limit, profile_deviation, profile_interval, profile_separated, variance_test,
};

use crate::golden_subjects::files;

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
    for record in csv::Reader::from_reader(files::read(&path).unwrap().as_bytes()).records() {
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
    fn glmm1(&self) -> MixedData {
        MixedData::of_columns(&self.correct, &[("variant", &self.variant)], &self.id).unwrap()
    }

    fn glmm2(&self) -> MixedData {
        let fixed: [(&str, &[f64]); 2] = [("variant", &self.variant), ("gamma_c", &self.gamma)];
        MixedData::of_columns(&self.correct, &fixed, &self.id).unwrap()
    }
}

fn by(integral: IntegralChoice) -> MixedOptions {
    MixedOptions { integral, ..MixedOptions::default() }
}

fn laplace(data: &MixedData) -> MixedFit {
    fit(data, &by(IntegralChoice::Laplace)).unwrap()
}

fn quadrature(data: &MixedData) -> MixedFit {
    fit(data, &by(IntegralChoice::QUADRATURE)).unwrap()
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
    for record in csv::Reader::from_reader(files::read(&path).unwrap().as_bytes()).records() {
        let record = record.unwrap();
        id.push(record[0].parse().unwrap());
        variant.push(record[1].parse().unwrap());
        correct.push(record[3].parse().unwrap());
    }
    let data = MixedData::of_columns(&correct, &[("variant", &variant)], &id).unwrap();
    let fitted = quadrature(&data);
    let of = |name: &str| profile_interval(&data, &fitted, name, 0.95).unwrap();
    for (found, low, high) in [
        (of("variant"), -2.3599488324457125, 0.8666449887584414),
        (of("(Intercept)"), -6.846762735369912, -3.214826178401334),
        (profile_deviation(&data, &fitted, 0.95).unwrap(), 0.41909558781135164, 2.5112772403361427),
    ] {
        assert!(found.low_open.is_none() && found.high_open.is_none());
        close(found.low.unwrap(), low, 2e-5);
        close(found.high.unwrap(), high, 2e-5);
    }
    // A lower level gives a shorter interval inside.
    let inner = profile_interval(&data, &fitted, "variant", 0.5).unwrap();
    assert!(inner.low.unwrap() > -2.0 && inner.high.unwrap() < 0.5);
    assert!(profile_interval(&data, &fitted, "gamma_c", 0.95).is_err());
    assert!(profile_deviation(&data, &fitted, 1.0).is_err());
}

#[test]
fn a_profile_is_close_to_wald_where_the_likelihood_is_quadratic() {
    let data = golden("01_typical").glmm2();
    let fitted = laplace(&data);
    for name in ["(Intercept)", "variant", "gamma_c"] {
        let coefficient = fitted.coefficient(name).unwrap();
        let (estimate, error) = (coefficient.estimate.unwrap(), coefficient.standard_error.unwrap());
        let found = profile_interval(&data, &fitted, name, 0.95).unwrap();
        close(found.low.unwrap(), estimate - 1.96 * error, 0.1 * error);
        close(found.high.unwrap(), estimate + 1.96 * error, 0.1 * error);
    }
}

#[test]
fn a_separated_coefficient_has_one_finite_end() {
    for (name, upper) in [("11_base_all_correct", true), ("12_base_all_wrong", false)] {
        let data = golden(name).glmm2();
        let fitted = laplace(&data);
        let MixedDiagnosis::Separation { unbounded, .. } = &fitted.diagnoses[0] else { panic!("{fitted:?}") };
        let limit = limit(&data, &by(IntegralChoice::Laplace)).unwrap().unwrap();
        let variant = unbounded.iter().find(|one| one.name == "variant").unwrap();
        let found = profile_separated(&data, Some(&limit.fit), variant, 0.95).unwrap();
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
    assert_eq!((fitted.deviation(), fitted.deviation_error()), (Some(0.0), None));
    let found = profile_deviation(&data, &fitted, 0.95).unwrap();
    assert_eq!(found.low, Some(0.0));
    assert!(found.high.unwrap() > 0.5, "{found:?}");
    assert_eq!(variance_test(&data, &fitted).unwrap().p, 1.0);
}

#[test]
fn a_variance_that_is_there_is_tested() {
    let data = golden("18_gamma_dominant").glmm2();
    let test = variance_test(&data, &laplace(&data)).unwrap();
    assert!(test.statistic > 100.0 && test.p < 1e-20, "{test:?}");
}

#[test]
fn order_labels_and_units_do_not_matter() {
    let columns = golden("real_llama31_8b");
    let reference = laplace(&columns.glmm2());
    let reverse = |values: &[f64]| values.iter().rev().copied().collect::<Vec<_>>();
    let gamma: Vec<f64> = reverse(&columns.gamma).iter().map(|gamma| 1e6 * gamma + 3e7).collect();
    let id: Vec<u64> = columns.id.iter().rev().map(|id| u64::MAX - id * 12_345).collect();
    let (correct, variant) = (reverse(&columns.correct), reverse(&columns.variant));
    let data = MixedData::of_columns(&correct, &[("gamma_c", &gamma), ("variant", &variant)], &id).unwrap();
    let moved = laplace(&data);
    let pair = |name: &str| (reference.coefficient(name).unwrap(), moved.coefficient(name).unwrap());
    let (before, after) = pair("variant");
    close(after.estimate.unwrap(), before.estimate.unwrap(), 1e-7);
    close(after.standard_error.unwrap(), before.standard_error.unwrap(), 1e-7);
    let (before, after) = pair("gamma_c");
    close(after.estimate.unwrap() * 1e6, before.estimate.unwrap(), 1e-7);
    close(after.z.unwrap(), before.z.unwrap(), 1e-5);
    close(moved.deviation().unwrap(), reference.deviation().unwrap(), 1e-6);
}

#[test]
fn groups_with_one_row_are_fine() {
    let mut columns = golden("real_llama31_8b");
    let groups = columns.glmm2().first_groups();
    columns.correct.push(1.0);
    columns.variant.push(1.0);
    columns.gamma.push(0.0);
    columns.id.push(99_999);
    let data = columns.glmm2();
    let fitted = laplace(&data);
    assert!(fitted.diagnoses.is_empty() && data.first_groups() == groups + 1, "{:?}", fitted.diagnoses);
    // Every group has one row: the variance cannot be told from the noise.
    let response: Vec<f64> = (0..40).map(|row| f64::from(u8::from(row % 3 == 0))).collect();
    let group: Vec<u64> = (0..40).collect();
    let error = MixedData::of_columns(&response, &[], &group).unwrap_err();
    assert!(matches!(error, MixedError::GroupEachRow { groups: 40, rows: 40, .. }), "{error}");
}

#[test]
fn diagnoses_replace_numbers() {
    let no_numbers = |fitted: &MixedFit| {
        fitted.random.is_empty() && fitted.coefficients.iter().all(|c| c.estimate.is_none() && c.p.is_none())
    };
    let constant = laplace(&golden("21_constant_response").glmm1());
    assert!(matches!(constant.diagnoses[0], MixedDiagnosis::ConstantResponse { value: 1.0 }), "{constant:?}");
    let single = golden("22_one_template");
    let error = MixedData::of_columns(&single.correct, &[("variant", &single.variant)], &single.id).unwrap_err();
    assert!(matches!(error, MixedError::OneGroup { .. }), "{error}");
    let groups = laplace(&golden("13_all_or_nothing").glmm1());
    let MixedDiagnosis::GroupSeparation { constant_groups, groups: all, .. } = groups.diagnoses[0] else {
        panic!("{groups:?}")
    };
    assert_eq!((constant_groups, all), (98, 100));
    assert!([&constant, &groups].iter().all(|fitted| no_numbers(fitted) && fitted.diagnoses[0].is_fatal()));
    // Complete separation by a fixed effect.
    let x = [-2.0, -1.0, 1.0, 2.0, 3.0, -3.0];
    let data = MixedData::of_columns(&[0.0, 0.0, 1.0, 1.0, 1.0, 0.0], &[("x", &x)], &[0, 0, 1, 1, 2, 2]).unwrap();
    let complete = laplace(&data);
    assert!(no_numbers(&complete) && complete.is("separation") && complete.diagnoses[0].is_fatal(), "{complete:?}");
    assert!(limit(&data, &MixedOptions::default()).unwrap().is_none());
    // Quasi-complete separation leaves what can be estimated.
    let data = golden("23_one_success").glmm2();
    let quasi = laplace(&data);
    assert!(quasi.is("separation") && quasi.coefficient("variant").unwrap().estimate.is_none(), "{quasi:?}");
}

#[test]
fn laplace_and_quadrature_are_compared() {
    let floor = golden("real_llama32_1b_floor").glmm1();
    let judged = disagreement(&laplace(&floor), &quadrature(&floor));
    assert!(
        matches!(judged, Some(MixedDiagnosis::ApproximationsDisagree(Disagreement { points: 25, .. }))),
        "{judged:?}"
    );
    let typical = golden("01_typical").glmm1();
    assert_eq!(disagreement(&laplace(&typical), &quadrature(&typical)), None);
}

/// The study's artefact: a converged fit beside lme4's objective on the same rows (specification, section 6.1).
#[test]
fn the_artefact_appears_only_with_the_lme4_objective() {
    for name in ["30_degenerate_both_seed1141", "real_llama31_8b_instruct"] {
        let data = golden(name).glmm1();
        let (honest, artefact) = (laplace(&data), fit_as_lme4(&data, Lme4Options::default()).unwrap());
        assert!(honest.diagnoses.is_empty());
        let error = |fitted: &MixedFit| fitted.coefficient("variant").unwrap().standard_error.unwrap();
        assert!(error(&honest) > 0.2 && error(&artefact) < 1e-3);
        let Some(MixedDiagnosis::DegenerateErrors { standard_error, jump }) =
            artefact.diagnoses.iter().find(|diagnosis| diagnosis.word() == "degenerate-errors")
        else {
            panic!("{:?}", artefact.diagnoses)
        };
        // SE = 1e-4 sqrt(2 / jump), the same for every coefficient.
        close(*standard_error / (1e-4 * (2.0 / jump).sqrt()), 1.0, 1e-2);
        // The minimum itself is hardly moved: the errors are wrong, not the estimates.
        let estimate = |fitted: &MixedFit| fitted.coefficient("variant").unwrap().estimate.unwrap();
        close(estimate(&artefact), estimate(&honest), 1e-2);
    }
}

#[test]
fn unusable_options_are_errors() {
    let data = golden("14_tiny_5x4").glmm1();
    for points in [0, 2, 24, 103] {
        let options = by(IntegralChoice::Quadrature { points });
        assert!(matches!(fit(&data, &options), Err(MixedError::Points { .. })), "{points}");
    }
}
