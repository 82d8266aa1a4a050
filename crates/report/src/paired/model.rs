//! Mixed models of comparisons: the maximal one that the paired items support.
use earnest_results::ends;
use std::collections::HashMap;

use serde::Serialize;

use super::pairing::Pair;
use super::{Difference, p_sentence};
use earnest_results::scores::ItemScore;
use earnest_stats::analysis::default_model;
use earnest_stats::mixed::{Errors, Frame, MarginalDifference, Method, MixedError, RobustBasis, Terms, marginal};

/// Answers up to which a comparison has a model: fitting more takes longer than all else that it does.
const MOST_ANSWERS: usize = 200_000;

/// Column of the runs; the baseline is the reference level.
const RUN: &str = "run";

/// Candidate grouping columns, the widest first.
const GROUPS: [&str; 2] = ["cluster", "item"];

/// Confidence of the intervals.
const LEVEL: f64 = 0.95;

/// Mixed model of right and wrong answers of two runs, or the reason why there is none.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub enum PairedModel {
    Fitted(Box<FittedModel>),
    NotFitted { reason: String },
}

/// Fitted mixed model of two runs: `run` against the baseline.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FittedModel {
    pub formula: String,
    /// Integral over the random effects: by quadrature, or by Laplace's approximation.
    pub method: Method,
    /// Choice of the random effects, and every step down.
    pub choice: Vec<String>,
    /// Reasons for the steps down from the maximal model.
    pub left_out: Vec<String>,
    pub answers: usize,
    /// Ratio of the odds within a cluster and item, with its 95 % interval.
    pub odds_ratio: f64,
    pub odds_ratio_interval: (f64, f64),
    /// Wald test of the odds ratio.
    pub p: f64,
    /// Origin of the standard errors behind intervals and p: the model, or the larger one of the model's and that of the scatter between clusters.
    pub errors: Errors,
    /// Reason for robust errors, or for the t distribution.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub errors_reason: Option<String>,
    /// Clusters and degrees of freedom of either.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub robust: Option<RobustBasis>,
    /// Standard errors and their basis, in words.
    #[serde(skip)]
    pub basis: Option<String>,
    /// Difference of accuracies, averaged over the random effects, with its 95 % interval.
    pub difference: f64,
    pub interval: (f64, f64),
    /// Wald test of the difference, which need not agree with that of the odds ratio.
    pub difference_p: f64,
    /// Standard deviations of the random effects in log odds, by `effect by group`.
    pub random: Vec<(String, f64)>,
    pub warnings: Vec<String>,
}

impl PairedModel {
    /// Fits the model to the answers of these pairs, whose paired difference is known; none without pairs, or if scores are not just right and
    /// wrong.
    pub(super) fn of(pairs: &[Pair<'_>], overall: &Difference) -> Option<Self> {
        let answers = || pairs.iter().flat_map(|pair| [&pair.first, &pair.second]).flatten();
        if pairs.is_empty() || !answers().all(|score| score.is_binary) {
            return None;
        }
        let count: usize = answers().map(|score| score.samples as usize).sum();
        if count > MOST_ANSWERS {
            let reason = format!(
                "{count} answers take a while: `earnest stats glmm --run A,B` fits the model (here up to {MOST_ANSWERS})"
            );
            return Some(PairedModel::NotFitted { reason });
        }
        Some(fitted(pairs, overall).unwrap_or_else(|error| PairedModel::NotFitted { reason: error.to_string() }))
    }

    /// Returns the model in words.
    pub fn remark(&self) -> String {
        match self {
            PairedModel::NotFitted { reason } => format!("No mixed model: {reason}."),
            PairedModel::Fitted(model) => {
                let (least, most) = model.interval;
                let points = ends((100.0 * least, 100.0 * most), 0.0, 1, true).join(", ");
                let mut text = format!(
                    "Mixed model {}, {}: odds ratio {:.3} [{}], {}; {:+.1} points [{points}], {}, averaged \
                     over the random effects.",
                    model.formula,
                    if model.method == Method::Laplace { "by Laplace's approximation" } else { "by quadrature" },
                    model.odds_ratio,
                    ends(model.odds_ratio_interval, 1.0, 3, false).join(", "),
                    p_sentence(model.p),
                    100.0 * model.difference,
                    p_sentence(model.difference_p),
                );
                if let Some(basis) = &model.basis {
                    text.push_str(&format!(" Intervals and p values have {basis}."));
                }
                if !model.left_out.is_empty() {
                    text.push_str(&format!(" Simpler than the maximal model: {}.", model.left_out.join("; ")));
                }
                for warning in &model.warnings {
                    text.push_str(&format!(" Warning: {warning}."));
                }
                text
            }
        }
    }
}

/// Codes of texts by first appearance.
#[derive(Default)]
struct Labels<'a> {
    codes: Vec<u32>,
    texts: Vec<String>,
    code_of: HashMap<&'a str, u32>,
}

impl<'a> Labels<'a> {
    fn push(&mut self, text: &'a str) {
        let next = self.texts.len() as u32;
        let code = *self.code_of.entry(text).or_insert(next);
        if code == next {
            self.texts.push(text.to_owned());
        }
        self.codes.push(code);
    }
}

/// One row an answer: `correct`, `run` (A and B), `cluster` and `item`.
fn frame(pairs: &[Pair<'_>]) -> Result<Frame, MixedError> {
    let (mut correct, mut runs) = (Vec::new(), Labels::default());
    let [mut clusters, mut items] = GROUPS.map(|_| Labels::default());
    for pair in pairs {
        let sides = [("A", &pair.first), ("B", &pair.second)];
        for (run, score) in sides.into_iter().flat_map(|(run, scores)| scores.iter().map(move |score| (run, *score))) {
            let score: &ItemScore = score;
            for number in 0..score.samples {
                correct.push(if f64::from(number) < score.sum { 1.0 } else { 0.0 });
                runs.push(run);
                clusters.push(pair.cluster());
                items.push(pair.item);
            }
        }
    }
    let mut frame = Frame::new();
    frame.number("correct", correct)?;
    frame.labels(RUN, runs.codes, runs.texts)?;
    for (name, labels) in GROUPS.into_iter().zip([clusters, items]) {
        frame.labels(name, labels.codes, labels.texts)?;
    }
    Ok(frame)
}

/// The reason for not showing a model that contradicts the answers themselves.
fn contradiction(found: &MarginalDifference, overall: &Difference) -> Option<String> {
    let points = |share: f64| format!("{:+.1}", 100.0 * share);
    let (low, high) = overall.interval.filter(|(low, high)| !(*low..=*high).contains(&found.difference))?;
    Some(format!(
        "averaged over its random effects it says {} points, outside the interval of the paired difference, {} to {}",
        points(found.difference),
        points(low),
        points(high)
    ))
}

fn fitted(pairs: &[Pair<'_>], overall: &Difference) -> Result<PairedModel, MixedError> {
    let frame = frame(pairs)?;
    let model = default_model(&frame, "correct", &Terms::intercept().with(RUN), &GROUPS)?;
    if let Some(reason) = model.fit.refusal() {
        return Ok(PairedModel::NotFitted { reason });
    }
    let (data, fit) = (&model.data, &model.fit);
    let averaged = marginal(data, fit, Some(RUN), LEVEL)?;
    let effect = fit.coefficients.iter().find(|one| one.name == format!("{RUN}B"));
    let numbers = effect.and_then(|one| Some((one.estimate?, fit.wald_interval(one, LEVEL)?, one.p?)));
    let ([found], Some((estimate, (low, high), p))) = (&averaged.differences[..], numbers) else {
        return Err(MixedError::NotEstimated { reason: "the runs have no difference to estimate".to_owned() });
    };
    if let Some(reason) = contradiction(found, overall) {
        return Ok(PairedModel::NotFitted { reason });
    }
    let random = fit.random.iter().flat_map(|effect| {
        effect.terms.iter().zip(&effect.sd).map(|(term, sd)| (format!("{term} by {}", effect.group), *sd))
    });
    Ok(PairedModel::Fitted(Box::new(FittedModel {
        formula: data.formula().to_string(),
        method: fit.method,
        answers: fit.rows,
        odds_ratio: estimate.exp(),
        odds_ratio_interval: (low.exp(), high.exp()),
        p,
        errors: fit.errors,
        errors_reason: fit.robust.as_ref().map(|robust| robust.reason.clone()),
        robust: fit.robust.clone(),
        basis: fit.basis_in_words(),
        difference: found.difference,
        interval: (found.low.max(-1.0), found.high.min(1.0)),
        difference_p: found.p,
        random: random.collect(),
        warnings: fit.diagnoses.iter().map(ToString::to_string).collect(),
        choice: model.choice.clone(),
        left_out: model.left_out.clone(),
    })))
}
