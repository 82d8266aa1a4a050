//! Numbers that the study's stored notebook shows and its paper rounds, draws or leaves out.
use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde::Deserialize;

use earnest_tasks::suite::gsm_symbolic::Prompt;

/// A fit that the notebook reports as not converged: its standard errors are the artefact of lme4's inner tolerance
/// (section 6.1 of the behavioural specification), not information.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct FlaggedFit {
    pub model: String,
    pub prompt: Prompt,
    /// lme4's scaled gradient.
    pub max_grad: f64,
    /// The jump of the objective that explains it, and the standard error that follows from the jump alone.
    pub implied_deviance_jump: f64,
    pub implied_std_err: f64,
}

/// The comparison of integers in questions of GSM-Base and GSM-Variants.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
pub struct KolmogorovSmirnov {
    #[serde(rename = "D")]
    pub statistic: f64,
    pub p: f64,
}

/// Wrong answers on GSM-Variants by model and class (Figures 10 and 11).
pub type CodeErrors = BTreeMap<String, BTreeMap<String, usize>>;

#[derive(Deserialize)]
struct Diagnostics {
    flagged: Vec<FlaggedFit>,
}

#[derive(Deserialize)]
struct Counts {
    rows: BTreeMap<String, BTreeMap<String, String>>,
}

#[derive(Deserialize)]
struct Totals {
    models: Vec<String>,
    gsm: Vec<usize>,
    simple_nl: Vec<usize>,
    structured_nl: Vec<usize>,
}

#[derive(Deserialize)]
struct Summary {
    gsm: GsmSummary,
    structured_code: ResidualSummary,
}

#[derive(Deserialize)]
struct GsmSummary {
    delta_symb_log_or: BTreeMap<String, Option<f64>>,
}

#[derive(Deserialize)]
struct ResidualSummary {
    delta_symb_ne_log_or: BTreeMap<String, Option<f64>>,
    delta_symb_ne_p_value: BTreeMap<String, Option<f64>>,
}

#[derive(Deserialize)]
struct Notebook {
    summary_visible_rows: Summary,
    ks_test: KolmogorovSmirnov,
    glmm1_diagnostics: Diagnostics,
    glmm2_diagnostics: Diagnostics,
    code_error_counts_variants: [Counts; 2],
    total_errors_nl_figure9_labels: Totals,
}

static NOTEBOOK: LazyLock<Notebook> = LazyLock::new(|| {
    serde_json::from_str(include_str!("notebook.json")).expect("the file is a constant and the tests read it")
});

/// Lower ends of Figure 7's bins; the last one is open.
pub const NUMBER_BINS: [f64; 11] = [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 10.0, 20.0, 50.0, 100.0, 1000.0];

/// Shares of the integers of GSM-Base in these bins, per cent, read off Figure 7.
pub const BASE_BIN_SHARES: [f64; 11] = [1.19, 6.82, 8.01, 10.09, 4.15, 16.91, 15.43, 16.62, 10.39, 7.72, 2.67];

/// The prompt for which [`precise_gsm_log_odds`] are known.
pub const PRECISE_LOG_ODDS_PROMPT: Prompt = Prompt::Gsm;

/// GLMM 1's variant effect on the GSM prompt in log odds, to six decimals.
pub fn precise_gsm_log_odds(model: &str) -> Option<f64> {
    NOTEBOOK.summary_visible_rows.gsm.delta_symb_log_or.get(model).copied().flatten()
}

/// GLMM 2's variant effect on the structured code prompt: log odds and p, to six decimals.
pub fn precise_structured_code_residual(model: &str) -> Option<(f64, f64)> {
    let summary = &NOTEBOOK.summary_visible_rows.structured_code;
    let value = |from: &BTreeMap<String, Option<f64>>| from.get(model).copied().flatten();
    value(&summary.delta_symb_ne_log_or).zip(value(&summary.delta_symb_ne_p_value))
}

/// Fits of GLMM 1 that are artefacts.
pub fn flagged_glmm1() -> &'static [FlaggedFit] {
    &NOTEBOOK.glmm1_diagnostics.flagged
}

/// Fits of GLMM 2 that are artefacts; the paper does not mention three of them.
pub fn flagged_glmm2() -> &'static [FlaggedFit] {
    &NOTEBOOK.glmm2_diagnostics.flagged
}

/// The two-sample test of Figure 7.
pub fn integers_test() -> KolmogorovSmirnov {
    NOTEBOOK.ks_test
}

/// Wrong answers by class for a code prompt; none for the others, whose classes are printed as a drawing only.
pub fn code_errors(prompt: Prompt) -> Option<CodeErrors> {
    let counts = match prompt {
        Prompt::SimpleCode => &NOTEBOOK.code_error_counts_variants[0],
        Prompt::StructuredCode => &NOTEBOOK.code_error_counts_variants[1],
        Prompt::Gsm | Prompt::SimpleNl | Prompt::StructuredNl => return None,
    };
    let row = |(model, row): (&String, &BTreeMap<String, String>)| {
        let counts = row.iter().filter_map(|(class, count)| Some((class.clone(), count.parse().ok()?)));
        (model.clone(), counts.collect())
    };
    Some(counts.rows.iter().filter(|(model, _)| !model.starts_with("Total")).map(row).collect())
}

/// All wrong answers on GSM-Variants by model, for the prompts of Figure 9.
pub fn nl_error_totals(prompt: Prompt) -> Option<BTreeMap<String, usize>> {
    let totals = &NOTEBOOK.total_errors_nl_figure9_labels;
    let counts = match prompt {
        Prompt::Gsm => &totals.gsm,
        Prompt::SimpleNl => &totals.simple_nl,
        Prompt::StructuredNl => &totals.structured_nl,
        Prompt::SimpleCode | Prompt::StructuredCode => return None,
    };
    Some(totals.models.iter().cloned().zip(counts.iter().copied()).collect())
}

#[cfg(test)]
mod tests {
    use super::super::{exact_counts, odds_ratios};
    use super::*;

    #[test]
    fn wrong_answers_are_what_the_counts_leave() {
        for prompt in Prompt::ALL {
            let totals = nl_error_totals(prompt).or_else(|| {
                Some(code_errors(prompt)?.into_iter().map(|(model, row)| (model, row.values().sum())).collect())
            });
            let totals: BTreeMap<String, usize> = totals.unwrap();
            assert_eq!(totals.len(), 10);
            for (model, wrong) in totals {
                let of = |row: &&super::super::ExactCount| row.model == model && row.prompt == prompt;
                let row = exact_counts().iter().find(of).unwrap();
                assert_eq!(row.variant_n - row.variant_correct, wrong, "{model} {prompt}");
            }
        }
    }

    #[test]
    fn precise_values_round_to_the_tables() {
        for row in odds_ratios(PRECISE_LOG_ODDS_PROMPT) {
            let precise = precise_gsm_log_odds(&row.model).unwrap();
            assert!((precise.exp() - row.odds_ratio).abs() < 0.0051, "{row:?}");
        }
        assert_eq!((flagged_glmm1().len(), flagged_glmm2().len()), (3, 5));
        // The artefact explains itself: step 1e-4, standard error 1e-4 * sqrt(2 / jump).
        for fit in flagged_glmm1().iter().chain(flagged_glmm2()) {
            assert!((1e-4 * (2.0 / fit.implied_deviance_jump).sqrt() - fit.implied_std_err).abs() < 1e-8);
        }
        assert!((BASE_BIN_SHARES.iter().sum::<f64>() - 100.0).abs() < 0.1);
        assert_eq!(integers_test(), KolmogorovSmirnov { statistic: 0.1201, p: 0.00012788 });
        assert!(precise_structured_code_residual("phi-2").is_some());
    }
}
