//! The default mixed model of each model over all its prompts, beside the paper's.
use earnest_tasks::{agreeing, counted};
use rayon::prelude::*;
use serde::Serialize;

use super::analysis::Analysis;
use earnest_stats::analysis::default_model;
use earnest_stats::mixed::{Errors, Frame, MixedDiagnosis, Terms, marginal};
use earnest_tasks::suite::Interval;

/// Confidence of the intervals.
const LEVEL: f64 = 0.95;

/// Right answers, or wrong ones, below which a warning stands beside a fit: ten for each of the up to five coefficients of the prompts, as
/// in the rule of ten events a variable (Peduzzi et al. 1996).
const FEW: usize = 50;

/// The maximal model that a model's answers to all prompts support, stepped down while it is singular.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FormulaFit {
    pub model: String,
    pub rows: usize,
    pub formula: String,
    /// Odds ratio of variants against originals.
    pub odds_ratio: Option<Interval>,
    pub p: Option<f64>,
    /// Origin of the standard errors behind intervals and p: the model, or the scatter between templates.
    pub errors: Errors,
    /// Difference in accuracy, variants minus base in percentage points, averaged over the rows and over templates.
    pub points: Option<Interval>,
    /// Sentences about the design, every step down and the fit.
    pub notes: Vec<String>,
}

/// Fits every model with answers.
pub(super) fn fits(analyses: &[Analysis]) -> Vec<FormulaFit> {
    let mut models: Vec<&str> = Vec::new();
    for analysis in analyses.iter().filter(|analysis| !analysis.columns.is_empty()) {
        if !models.contains(&analysis.model.as_str()) {
            models.push(&analysis.model);
        }
    }
    models
        .into_par_iter()
        .map(|model| {
            let own: Vec<&Analysis> = analyses.iter().filter(|analysis| analysis.model == model).collect();
            let rows = own.iter().map(|analysis| analysis.columns.len()).sum();
            fitted(&own).map(|fit| FormulaFit { model: model.to_owned(), rows, ..fit }).unwrap_or_else(|problem| {
                FormulaFit {
                    model: model.to_owned(),
                    rows,
                    formula: String::new(),
                    odds_ratio: None,
                    p: None,
                    errors: Errors::Model,
                    points: None,
                    notes: vec![format!("no fit: {problem}")],
                }
            })
        })
        .collect()
}

/// Warning of a fit with few answers of one kind.
fn scarce(right: usize, wrong: usize) -> Option<String> {
    let (few, kind) = if right <= wrong { (right, "right") } else { (wrong, "wrong") };
    (few < FEW).then(|| {
        format!(
            "only {} {} {kind}: with fewer than {FEW}, a model's intervals are rough, and the exact test of the \
             paired difference is what to trust",
            counted(few, "answer"),
            agreeing(few, "is", "are")
        )
    })
}

fn fitted(analyses: &[&Analysis]) -> Result<FormulaFit, earnest_stats::mixed::MixedError> {
    let rows = || analyses.iter().flat_map(|analysis| analysis.columns.iter().map(move |row| (analysis.prompt, row)));
    let mut frame = Frame::new();
    frame.number("correct", rows().map(|(_, row)| f64::from(u8::from(row.correct))).collect())?;
    frame.texts("questions", rows().map(|(_, row)| if row.variant { "variants" } else { "base" }))?;
    frame.texts("prompt", rows().map(|(prompt, _)| prompt.name()))?;
    frame.texts("template", rows().map(|(_, row)| row.template.as_str()))?;
    let items: Vec<String> = rows().map(|(_, row)| format!("{} {}", row.template, row.instance)).collect();
    frame.texts("item", items.iter().map(String::as_str))?;
    let mut fixed = Terms::intercept().with("questions");
    if analyses.len() > 1 {
        fixed = fixed.with("prompt");
    }
    let model = default_model(&frame, "correct", &fixed, &["template", "item"])?;
    let mut notes = model.choice.clone();
    let right = rows().filter(|(_, row)| row.correct).count();
    notes.extend(scarce(right, rows().count() - right));
    let fit = &model.fit;
    notes.extend(fit.basis_in_words());
    notes.extend(fit.diagnoses.iter().map(MixedDiagnosis::to_string));
    let effect = fit.coefficients.iter().find(|one| one.name.starts_with("questions"));
    let odds_ratio = effect.and_then(|one| {
        let (low, high) = fit.wald_interval(one, LEVEL)?;
        Some(Interval { estimate: one.estimate?.exp(), low: low.exp(), high: high.exp() })
    });
    // Levels are in order, so the difference is that of the second from the first.
    let averaged = marginal(&model.data, fit, Some("questions"), LEVEL).ok();
    let points = averaged.and_then(|averaged| averaged.differences.into_iter().next()).map(|found| {
        let sign = if found.level == "variants" { 100.0 } else { -100.0 };
        let (low, high) = (sign * found.low, sign * found.high);
        Interval { estimate: sign * found.difference, low: low.min(high), high: low.max(high) }
    });
    Ok(FormulaFit {
        model: String::new(),
        rows: 0,
        formula: model.formula.to_string(),
        p: effect.and_then(|one| one.p),
        errors: fit.errors,
        odds_ratio,
        points,
        notes,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_answers_of_a_kind_are_warned_of() {
        assert_eq!(scarce(50, 1050), None);
        assert!(scarce(49, 1051).unwrap().starts_with("only 49 answers are right"));
        assert!(scarce(1090, 10).unwrap().starts_with("only 10 answers are wrong"));
    }
}
