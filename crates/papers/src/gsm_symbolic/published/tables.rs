//! Tables 1 to 15 and Listing 6.
use std::sync::LazyLock;

use serde::{Deserialize, Serialize};

use super::Printed;
use earnest_tasks::suite::gsm_symbolic::Prompt;

/// A model of Table 1.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Model {
    /// `<organisation>/<name>`.
    #[serde(rename = "model")]
    pub repository: String,
    /// The commit as printed; Meta-Llama-3-8B-Instruct's has 39 digits in print.
    #[serde(rename = "commit_as_printed")]
    pub commit: String,
    /// As printed, e.g. `3.8B`.
    pub parameters: String,
}

impl Model {
    /// The name that the other tables use.
    pub fn name(&self) -> &str {
        self.repository.rsplit('/').next().unwrap_or(&self.repository)
    }

    /// Parameters in billions.
    pub fn billions(&self) -> f64 {
        self.parameters.trim_end_matches('B').parse().unwrap_or(f64::NAN)
    }
}

/// A row of Tables 2, 6, 8, 10 and 12: GLMM 1's test of the variant effect.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct VariantEffect {
    pub model: String,
    pub prompt: Prompt,
    /// Accuracy on GSM-Base and GSM-Variants, per cent.
    pub base_acc: f64,
    pub var_acc: f64,
    /// Variants minus base, percentage points.
    pub delta: f64,
    /// Raw and Holm-Bonferroni-adjusted over the table's models.
    pub p: Printed,
    pub p_holm: Printed,
}

/// A row of Tables 3, 7, 9, 11 and 13: GLMM 1's odds ratio.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct OddsRatio {
    pub model: String,
    pub prompt: Prompt,
    pub odds_ratio: f64,
    /// 95 % Wald interval.
    pub ci_low: f64,
    pub ci_high: f64,
    pub z: f64,
    /// Of the log odds.
    pub std_err: Printed,
}

/// A row of Table 4, per cent. Mirzadeh et al. give one number for a base model and its instruction-tuned sibling.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Reproduction {
    pub model: String,
    pub mirzadeh_base: f64,
    pub mirzadeh_var_mean: f64,
    pub mirzadeh_var_std: f64,
    /// The re-evaluation's own (`/ O`).
    pub ours_base: f64,
    pub ours_var_mean: f64,
    /// Standard deviation (denominator n - 1) of the 50 accuracies by instance.
    pub ours_var_std: f64,
}

/// A row of Table 5: base minus variants, the sign opposite to all other tables.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct DeltaComparison {
    pub model: String,
    pub delta_var_mirzadeh: f64,
    pub delta_var_ours: f64,
}

/// A cell of Tables 14 and 15.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
pub struct NumberEffect {
    pub odds_ratio: f64,
    pub p: Printed,
    /// Adjusted over the five prompts of the model, although the caption says column-wise.
    pub p_holm: Printed,
}

/// A row of Tables 14 and 15.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct NumberEffectRow {
    pub model: String,
    gsm: NumberEffect,
    simple_nl: NumberEffect,
    structured_nl: NumberEffect,
    simple_code: NumberEffect,
    structured_code: NumberEffect,
}

impl NumberEffectRow {
    pub fn cell(&self, prompt: Prompt) -> &NumberEffect {
        match prompt {
            Prompt::Gsm => &self.gsm,
            Prompt::SimpleNl => &self.simple_nl,
            Prompt::StructuredNl => &self.structured_nl,
            Prompt::SimpleCode => &self.simple_code,
            Prompt::StructuredCode => &self.structured_code,
        }
    }
}

/// Correct answers, exactly, as the printed two-decimal differences imply them.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct ExactCount {
    pub model: String,
    pub prompt: Prompt,
    pub base_correct: usize,
    pub base_n: usize,
    pub variant_correct: usize,
    pub variant_n: usize,
}

/// A row of Listing 6: GLMM 1's estimates for gemma-2-2b.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct OptimiserEstimate {
    pub prompt: Prompt,
    pub optimiser: String,
    pub intercept: f64,
    pub is_variant: f64,
}

/// The models of Figures 2 and 8.
pub const DEMONSTRATION_MODELS: [&str; 6] =
    ["gemma-2b", "gemma-2-2b", "gemma-7b-it", "phi-2", "Meta-Llama-3-8B", "Meta-Llama-3-8B-Instruct"];

#[derive(Deserialize)]
struct Rows<T> {
    rows: Vec<T>,
}

macro_rules! table {
    ($file:literal) => {
        LazyLock::new(|| {
            serde_json::from_str::<Rows<_>>(include_str!($file))
                .expect("the tables are constants and the tests read them")
                .rows
        })
    };
}

static MODELS: LazyLock<Vec<Model>> = table!("table1.json");
static EFFECTS: [LazyLock<Vec<VariantEffect>>; 5] = [
    table!("table2.json"),
    table!("table6.json"),
    table!("table8.json"),
    table!("table10.json"),
    table!("table12.json"),
];
static ODDS: [LazyLock<Vec<OddsRatio>>; 5] = [
    table!("table3.json"),
    table!("table7.json"),
    table!("table9.json"),
    table!("table11.json"),
    table!("table13.json"),
];
static REPRODUCTIONS: LazyLock<Vec<Reproduction>> = table!("table4.json");
static DELTAS: LazyLock<Vec<DeltaComparison>> = table!("table5.json");
static NUMBERS: LazyLock<Vec<NumberEffectRow>> = table!("table14.json");
static RESIDUALS: LazyLock<Vec<NumberEffectRow>> = table!("table15.json");
static COUNTS: LazyLock<Vec<ExactCount>> = table!("exact_counts.json");
static LISTING: LazyLock<Vec<OptimiserEstimate>> = table!("listing6.json");

/// Table 1, in print order, which is the order of Table 2 too.
pub fn models() -> &'static [Model] {
    &MODELS
}

/// Table 2, 6, 8, 10 or 12.
pub fn variant_effects(prompt: Prompt) -> &'static [VariantEffect] {
    &EFFECTS[prompt as usize]
}

/// Table 3, 7, 9, 11 or 13.
pub fn odds_ratios(prompt: Prompt) -> &'static [OddsRatio] {
    &ODDS[prompt as usize]
}

/// Table 4.
pub fn reproductions() -> &'static [Reproduction] {
    &REPRODUCTIONS
}

/// Table 5.
pub fn deltas() -> &'static [DeltaComparison] {
    &DELTAS
}

/// Table 14: the large-number effect of GLMM 2.
pub fn number_effects() -> &'static [NumberEffectRow] {
    &NUMBERS
}

/// Table 15: the variant effect of GLMM 2.
pub fn residual_effects() -> &'static [NumberEffectRow] {
    &RESIDUALS
}

/// Correct answers by model and prompt.
pub fn exact_counts() -> &'static [ExactCount] {
    &COUNTS
}

/// Listing 6.
pub fn listing_6() -> &'static [OptimiserEstimate] {
    &LISTING
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_table_is_read_and_has_its_rows() {
        assert_eq!(models().len(), 20);
        for prompt in Prompt::ALL {
            let expected = if prompt == Prompt::Gsm { 20 } else { 10 };
            assert_eq!((variant_effects(prompt).len(), odds_ratios(prompt).len()), (expected, expected));
            assert!(variant_effects(prompt).iter().all(|row| row.prompt == prompt));
            assert!(odds_ratios(prompt).iter().all(|row| row.prompt == prompt));
        }
        assert_eq!((reproductions().len(), deltas().len()), (20, 20));
        assert_eq!((number_effects().len(), residual_effects().len()), (10, 10));
        assert_eq!(listing_6().len(), 25);
        let known = |name: &str| models().iter().any(|model| model.name() == name);
        assert!(DEMONSTRATION_MODELS.iter().all(|name| known(name)));
        assert!(models().iter().all(|model| model.billions() > 1.0));
        let commit = |model: &Model| model.commit.len() == 40 && model.commit.bytes().all(|b| b.is_ascii_hexdigit());
        let odd: Vec<&str> = models().iter().filter(|model| !commit(model)).map(Model::name).collect();
        assert_eq!(odd, ["Meta-Llama-3-8B-Instruct"]);
    }

    #[test]
    fn tables_agree_with_each_other() {
        for row in exact_counts() {
            let printed = variant_effects(row.prompt).iter().find(|effect| effect.model == row.model).unwrap();
            let share = |correct: usize, n: usize| 100.0 * correct as f64 / n as f64;
            let (base, variants) = (share(row.base_correct, row.base_n), share(row.variant_correct, row.variant_n));
            assert!((base - printed.base_acc).abs() < 0.051 && (variants - printed.var_acc).abs() < 0.051, "{row:?}");
            assert!((variants - base - printed.delta).abs() < 0.0051, "{row:?}");
        }
        for (row, effect) in reproductions().iter().zip(variant_effects(Prompt::Gsm)) {
            assert_eq!(
                (&row.model, row.ours_base, row.ours_var_mean),
                (&effect.model, effect.base_acc, effect.var_acc)
            );
        }
        for (row, effect) in deltas().iter().zip(variant_effects(Prompt::Gsm)) {
            assert!((row.delta_var_ours + effect.delta).abs() < 0.051, "{row:?}");
        }
    }
}
