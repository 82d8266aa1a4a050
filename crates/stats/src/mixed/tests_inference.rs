//! Tests of what is said about a fit.
use super::tests::{data, simulated};
use super::*;

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
    let test = term_tests(data.formula(), &frame, Family::Binomial, &["gamma".to_owned()]).unwrap();
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
    let test = term_tests(data.formula(), &frame, Family::Binomial, &["gamma".to_owned()]).unwrap();
    // The level at which the interval's lower end is 0 has the test's p value.
    let level = 1.0 - test[0].p;
    let found = profile_interval(&data, &fitted, "gamma", level).unwrap();
    assert!(found.low.unwrap().abs() < 1e-4, "{found:?} {test:?}");
}

#[test]
fn terms_are_tested_where_no_interaction_holds_them() {
    let frame = simulated(15, 3, 13);
    let formula: Formula = "correct ~ model*variant + gamma + (1|template)".parse().unwrap();
    let all = term_tests(&formula, &frame, Family::Binomial, &[]).unwrap();
    let named: Vec<(&str, usize)> = all.iter().map(|test| (test.term.as_str(), test.degrees_of_freedom)).collect();
    assert_eq!(named, [("gamma", 1), ("model:variant", 3)]);
    let one = term_tests(&formula, &frame, Family::Binomial, &["variant:model".to_owned()]).unwrap();
    assert_eq!(one[0].statistic, all[1].statistic);
    let error = term_tests(&formula, &frame, Family::Binomial, &["size".to_owned()]).unwrap_err().to_string();
    assert!(error.contains("no term `size`; its terms are: model, variant, gamma, model:variant"), "{error}");
    let held = term_tests(&formula, &frame, Family::Binomial, &["model".to_owned()]).unwrap_err().to_string();
    assert!(held.contains("test the interaction instead"), "{held}");
    let linear: Formula = "latency ~ variant + (1|template)".parse().unwrap();
    assert_eq!(term_tests(&linear, &frame, Family::Gaussian, &[]).unwrap()[0].degrees_of_freedom, 1);
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
    let warned = |formula: &str| {
        let data = data(formula, &frame, Family::Binomial).unwrap();
        let fitted = fit(&data, &MixedOptions::default()).unwrap();
        let warnings: Vec<String> = small_errors(&data, &fitted).iter().map(ToString::to_string).collect();
        (fitted.coefficient("variantsymbolic").unwrap().standard_error.unwrap(), warnings)
    };
    let (small, warnings) = warned("correct ~ variant + (1|template)");
    assert!(warnings.iter().any(|text| text.contains("variantsymbolic has")), "{warnings:?}");
    let (large, warnings) = warned("correct ~ variant + (1+variant|template)");
    assert!(large > 1.3 * small && warnings.is_empty(), "{small} {large} {warnings:?}");
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
fn the_maximal_model_has_slopes_of_what_repeats() {
    let frame = simulated(20, 3, 17);
    let fixed = Terms::intercept().with("variant").with("gamma");
    let (formula, notes) = maximal_formula(&frame, "correct", &fixed, &["template"]).unwrap();
    assert_eq!(formula.to_string(), "correct ~ variant + gamma + (1 + variant | template)");
    assert!(notes.iter().any(|note| note.contains("gamma does not vary by template: it is a covariate")), "{notes:?}");
    // Many levels vary by groups of their own.
    let (formula, _) = maximal_formula(&frame, "correct", &Terms::intercept().with("model"), &["template"]).unwrap();
    assert_eq!(formula.to_string(), "correct ~ model + (1 | template) + (1 | model:template)");
    let chosen = fit_stepping_down(&formula, &frame, Family::Binomial).unwrap();
    assert!(chosen.fit.is_usable() && !chosen.fit.singular, "{:?}", chosen.steps);
    // One base question and many variants of it: the study's own design keeps its random intercept.
    let mut study = Frame::new();
    let rows = 40 * 11;
    let ids: Vec<String> = (0..rows).map(|row| format!("t{}", row / 11)).collect();
    study.texts("cluster", ids.iter().map(String::as_str)).unwrap();
    study.number("variant", (0..rows).map(|row| f64::from(u8::from(row % 11 > 0))).collect()).unwrap();
    study.number("correct", (0..rows).map(|row| f64::from(u8::from(row * row % 7 < 4))).collect()).unwrap();
    let (formula, notes) =
        maximal_formula(&study, "correct", &Terms::intercept().with("variant"), &["cluster"]).unwrap();
    assert_eq!(formula.to_string(), "correct ~ variant + (1 | cluster)", "{notes:?}");
    // Nothing repeats.
    let mut once = Frame::new();
    let items: Vec<String> = (0..50).map(|row| format!("q{row}")).collect();
    once.texts("item", items.iter().map(String::as_str)).unwrap();
    let error = maximal_formula(&once, "correct", &Terms::intercept(), &["item"]).unwrap_err().to_string();
    assert!(error.contains("nothing repeats within item"), "{error}");
}

#[test]
fn a_singular_model_steps_down_and_says_so() {
    // Variants do not differ between templates: no slope.
    let mut frame = Frame::new();
    let rows = 30 * 40;
    let templates: Vec<String> = (0..rows).map(|row| format!("t{}", row / 40)).collect();
    frame.texts("template", templates.iter().map(String::as_str)).unwrap();
    frame.texts("variant", (0..rows).map(|row| if row % 40 < 20 { "base" } else { "symbolic" })).unwrap();
    // As many right answers in every template and variant but for the template's level.
    let right = |row: usize| f64::from(u8::from(row % 20 < 6 + row / 40 % 9));
    frame.number("correct", (0..rows).map(right).collect()).unwrap();
    let formula: Formula = "correct ~ variant + (1+variant|template)".parse().unwrap();
    let chosen = fit_stepping_down(&formula, &frame, Family::Binomial).unwrap();
    assert_eq!(chosen.formula.to_string(), "correct ~ variant + (1 | template)", "{:?}", chosen.steps);
    assert!(!chosen.steps.is_empty() && chosen.steps[0].contains("template"), "{:?}", chosen.steps);
    assert!(!chosen.fit.singular);
    let text = method_paragraph(&chosen.data, &chosen.fit, 0.95);
    assert!(text.contains("30 levels of template") && text.contains("95 % Wald"), "{text}");
}
