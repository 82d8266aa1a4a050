//! Coverage of the 95 % Wald and profile intervals of the variant coefficient, on simulated data of the study's shape:
//! 100 templates, one original and 50 variants each (specification, section 6).
//!
//! `cargo bench --bench glmm_coverage -- [data sets] [seed]` prints JSON; `benches/results/glmm_coverage.json` is the result
//! of the defaults. Laplace, one thread.
use earnest_stats::distribution::normal_quantile;
use earnest_stats::mixed::{
    IntegralChoice, MixedData, MixedDiagnosis, MixedOptions, fit, limit, profile_interval, profile_separated,
};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde_json::json;

const TEMPLATES: u64 = 100;
const VARIANTS: usize = 50;

/// A truth to simulate: intercept, variant coefficient, random SD.
const TRUTHS: [(&str, f64, f64, f64); 2] = [("middle", 1.0, -0.5, 2.9), ("low, as gemma-2-2b", -2.4, -0.32, 2.9)];

fn uniform(random: &mut ChaCha8Rng) -> f64 {
    ((random.next_u64() >> 11) as f64 + 0.5) / (1_u64 << 53) as f64
}

fn simulate(random: &mut ChaCha8Rng, intercept: f64, effect: f64, sd: f64) -> MixedData {
    let (mut correct, mut variant, mut id) = (Vec::new(), Vec::new(), Vec::new());
    for template in 0..TEMPLATES {
        let level = intercept + sd * normal_quantile(uniform(random));
        for question in 0..=VARIANTS {
            let condition = f64::from(u8::from(question > 0));
            let probability = 1.0 / (1.0 + (-(level + effect * condition)).exp());
            correct.push(f64::from(u8::from(uniform(random) < probability)));
            variant.push(condition);
            id.push(template);
        }
    }
    MixedData::of_columns(&correct, &[("variant", &variant)], &id).expect("simulated columns are valid")
}

fn main() {
    // `cargo bench` adds its own flag.
    let numbers: Vec<u64> = std::env::args().skip(1).filter_map(|argument| argument.parse().ok()).collect();
    let sets = numbers.first().copied().unwrap_or(10_000);
    let seed = numbers.get(1).copied().unwrap_or(20_260_512);
    let mut results = Vec::new();
    for (name, intercept, effect, sd) in TRUTHS {
        let started = std::time::Instant::now();
        let (mut wald, mut profile, mut used, mut profiled, mut diagnosed) = (0_u64, 0_u64, 0_u64, 0_u64, 0_u64);
        let (mut sum, mut squares, mut errors) = (0.0, 0.0, 0.0);
        for set in 0..sets {
            let mut random = ChaCha8Rng::seed_from_u64(seed);
            random.set_stream(set);
            let data = simulate(&mut random, intercept, effect, sd);
            let options = MixedOptions { integral: IntegralChoice::Laplace, ..MixedOptions::default() };
            let fitted = fit(&data, &options).expect("the options are valid");
            diagnosed += u64::from(!fitted.diagnoses.is_empty());
            // A separated coefficient has no Wald interval, but a one-sided profile interval.
            let found = match fitted.diagnoses.first() {
                Some(MixedDiagnosis::Separation { unbounded, .. }) => {
                    let limit = limit(&data, &options).expect("the options are valid");
                    let variant =
                        unbounded.iter().find(|one| one.name == "variant").expect("the only effect separates");
                    profile_separated(&data, limit.as_ref().map(|limit| &limit.fit), variant, 0.95)
                }
                _ => profile_interval(&data, &fitted, "variant", 0.95),
            };
            if let Ok(found) = found {
                profiled += 1;
                let above = found.low.is_none_or(|low| low <= effect);
                profile += u64::from(above && found.high.is_none_or(|high| effect <= high));
            }
            let variant = fitted.coefficient("variant").expect("the model has this column");
            let (Some(estimate), Some(error)) = (variant.estimate, variant.standard_error) else { continue };
            used += 1;
            sum += estimate;
            squares += estimate * estimate;
            errors += error;
            let (low, high) = fitted.wald_interval(variant, 0.95).expect("there is an estimate");
            wald += u64::from(low <= effect && effect <= high);
        }
        let share = |count: u64, of: u64| count as f64 / of as f64;
        let mean = sum / used as f64;
        let deviation = (squares / used as f64 - mean * mean).sqrt();
        results.push(json!({
            "truth": name, "intercept": intercept, "variant": effect, "random_sd": sd, "data_sets": sets,
            "with_diagnosis": diagnosed, "with_wald_interval": used, "wald_coverage": share(wald, used),
            "with_profile_interval": profiled, "profile_coverage": share(profile, profiled),
            "monte_carlo_error": (0.95 * 0.05 / used as f64).sqrt(), "mean_estimate": mean,
            "sd_of_estimates": deviation, "mean_standard_error": errors / used as f64,
            "seconds": (started.elapsed().as_secs_f64() * 10.0).round() / 10.0,
        }));
    }
    println!("{}", serde_json::to_string_pretty(&json!({ "seed": seed, "results": results })).expect("plain numbers"));
}
