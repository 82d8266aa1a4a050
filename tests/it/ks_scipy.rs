//! The Kolmogorov-Smirnov test against scipy on random samples, with and without ties; see tests/fixtures/ks/generate.py.
use std::path::Path;

use earnest_stats::kolmogorov_smirnov::{KsMethod, kolmogorov_smirnov};
use serde_json::Value;

fn recorded() -> Value {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/ks/scipy.json");
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

fn numbers(value: &Value) -> Vec<f64> {
    value.as_array().unwrap().iter().map(|value| value.as_f64().unwrap()).collect()
}

#[track_caller]
fn close(found: f64, expected: &Value, relative: f64) {
    let expected = expected.as_f64().unwrap();
    assert!((found - expected).abs() <= relative * expected.abs() + 1e-300, "{found} is not scipy's {expected}");
}

#[test]
fn both_branches_equal_scipy_on_random_samples() {
    let recorded = recorded();
    let cases = recorded["cases"].as_array().unwrap();
    assert_eq!(cases.len(), 120);
    for case in cases {
        let (first, second) = (numbers(&case["first"]), numbers(&case["second"]));
        let found = kolmogorov_smirnov(&first, &second, KsMethod::Auto).unwrap();
        assert_eq!(found.method, KsMethod::Exact);
        assert!((found.statistic - case["statistic"].as_f64().unwrap()).abs() < 1e-14, "{case}");
        close(found.p, &case["exact"], 1e-9);
        let asymptotic = kolmogorov_smirnov(&first, &second, KsMethod::Asymptotic).unwrap();
        close(asymptotic.p, &case["asymptotic"], 1e-8);
    }
}

#[test]
fn large_samples_are_asymptotic_as_scipys_are() {
    let recorded = recorded();
    for case in recorded["large"].as_array().unwrap() {
        let sample = |of: &Value| -> Vec<f64> {
            let rule: Vec<u64> = of.as_array().unwrap().iter().map(|value| value.as_u64().unwrap()).collect();
            (0..rule[0]).map(|i| ((i * rule[1] + rule[2]) % rule[3]) as f64).collect()
        };
        let found = kolmogorov_smirnov(&sample(&case["first"]), &sample(&case["second"]), KsMethod::Auto).unwrap();
        assert_eq!(found.method, KsMethod::Asymptotic);
        assert!((found.statistic - case["statistic"].as_f64().unwrap()).abs() < 1e-12, "{case}");
        close(found.p, &case["auto"], 1e-8);
    }
}
