//! Accuracies and mixed models of one model and prompt.
use std::collections::{BTreeMap, HashMap};

use rayon::prelude::*;
use serde::Serialize;

use super::effect::{Columns, ModelFit, fit_columns};
use super::evaluation::{ErrorClass, Evaluation, Observation};
use earnest_stats::{Answers, PairedAnswers, PairedTest, PairedVerdict, paired_verdict, t_reach};
use earnest_tasks::suite::Interval;
use earnest_tasks::suite::gsm_symbolic::Prompt;

/// Accuracies, per cent.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Accuracies {
    pub base_questions: usize,
    pub variant_questions: usize,
    /// Means over templates of each template's accuracy; absent without such questions.
    pub base: Option<f64>,
    pub variants: Option<f64>,
    /// Variants minus base, percentage points.
    pub difference: Option<f64>,
    /// The difference with its 95 % interval by `test`, percentage points; absent with fewer than two templates that have both.
    pub interval: Option<Interval>,
    /// p value of the difference by `test`.
    pub p: Option<f64>,
    /// Test within templates: exact where few answers are right or wrong.
    pub test: Option<PairedTest>,
    /// Least difference that the t test over as many templates detects with power 80 % at the 5 % level, given how these ones vary; percentage
    /// points. Where `test` is another one it finds others.
    pub detectable: Option<f64>,
    /// Standard deviation (n - 1) of the accuracies by instance (Table 4); absent with fewer than two instances.
    pub instance_sd: Option<f64>,
}

/// Analysis of one model on one prompt.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Analysis {
    pub model: String,
    pub prompt: Prompt,
    pub accuracies: Accuracies,
    /// Accuracies on the harder sets by set, each against the originals of its templates; the paper has none.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub harder: BTreeMap<String, Accuracies>,
    /// `correct ~ variant + (1 | template)`
    pub glmm1: ModelFit,
    /// `correct ~ variant + gamma_c + (1 | template)`
    pub glmm2: ModelFit,
    /// Mean of the large-number metric that was subtracted: over all models of the prompt.
    pub gamma_centre: Option<f64>,
    /// Wrong answers to variants by class.
    pub failures: BTreeMap<ErrorClass, usize>,
    pub unanswered: usize,
    #[serde(skip)]
    pub(super) columns: Vec<Observation>,
}

impl Analysis {
    /// True for a drop in accuracy that is significant in GLMM 1 without correction: the study's selection rule.
    pub fn is_significant_drop(&self) -> bool {
        let falls = self.accuracies.difference.is_some_and(|difference| difference < 0.0);
        falls && self.glmm1.variant.is_some_and(|effect| effect.is_significant())
    }

    /// The same by lme4's default fit, which the study used.
    pub fn is_significant_drop_by_lme4(&self) -> bool {
        let falls = self.accuracies.difference.is_some_and(|difference| difference < 0.0);
        let effect = self.glmm1.lme4.as_ref().and_then(|lme4| lme4.variant);
        falls && effect.is_some_and(|effect| effect.is_significant())
    }
}

/// Analyses evaluations, each model and prompt at most once.
pub fn analyse(evaluations: Vec<Evaluation>) -> Vec<Analysis> {
    let mut centres: BTreeMap<Prompt, (f64, usize)> = BTreeMap::new();
    for evaluation in &evaluations {
        let centre = centres.entry(evaluation.prompt).or_default();
        for gamma in evaluation.rows.iter().filter_map(|row| row.gamma) {
            centre.0 += gamma;
            centre.1 += 1;
        }
    }
    let centre = |prompt| centres.get(&prompt).filter(|(_, n)| *n > 0).map(|(sum, n)| sum / *n as f64);
    // Fits are independent of each other; the order of the results is that of the evaluations.
    evaluations
        .into_par_iter()
        .map(|evaluation| {
            let gamma_centre = centre(evaluation.prompt);
            let mut failures = BTreeMap::new();
            for class in evaluation.rows.iter().filter(|row| row.variant).filter_map(|row| row.failure) {
                *failures.entry(class).or_default() += 1;
            }
            Analysis {
                accuracies: accuracies(&evaluation.rows),
                harder: evaluation
                    .harder
                    .into_iter()
                    .map(|(set, rows)| (set, accuracies(&against_originals(&evaluation.rows, rows))))
                    .collect(),
                glmm1: fit_columns(&columns(&evaluation.rows, None)),
                glmm2: fit_columns(&columns(&evaluation.rows, Some(gamma_centre.unwrap_or(0.0)))),
                gamma_centre,
                failures,
                model: evaluation.model,
                prompt: evaluation.prompt,
                unanswered: evaluation.unanswered,
                columns: evaluation.rows,
            }
        })
        .collect()
}

/// The rows of a harder set, and the originals of the templates that it has.
fn against_originals(rows: &[Observation], harder: Vec<Observation>) -> Vec<Observation> {
    let has = |template: &str| harder.iter().any(|row| row.template == template);
    let originals = rows.iter().filter(|row| !row.variant && has(&row.template)).cloned();
    originals.chain(harder.iter().map(|row| Observation { variant: true, ..row.clone() })).collect()
}

/// Columns of GLMM 1, or with a centre for the metric of GLMM 2.
pub(super) fn columns(rows: &[Observation], centre: Option<f64>) -> Columns {
    let mut numbers: HashMap<&str, u64> = HashMap::new();
    let mut columns = Columns {
        response: Vec::new(),
        variant: Vec::new(),
        gamma: centre.map(|_| Vec::new()),
        group: Vec::new(),
        dropped: 0,
    };
    for row in rows {
        if let (Some(centre), Some(column)) = (centre, &mut columns.gamma) {
            let Some(gamma) = row.gamma else {
                columns.dropped += 1;
                continue;
            };
            column.push(gamma - centre);
        }
        let next = numbers.len() as u64;
        columns.group.push(*numbers.entry(&row.template).or_insert(next));
        columns.response.push(f64::from(u8::from(row.correct)));
        columns.variant.push(f64::from(u8::from(row.variant)));
    }
    columns
}

fn accuracies(rows: &[Observation]) -> Accuracies {
    let mut templates: BTreeMap<&str, [Vec<Answers>; 2]> = BTreeMap::new();
    for row in rows {
        let answer = Answers { sum: f64::from(u8::from(row.correct)), count: 1 };
        templates.entry(&row.template).or_default()[usize::from(row.variant)].push(answer);
    }
    let mean = |side: usize| -> Option<f64> {
        let asked = || templates.values().map(|sides| &sides[side]).filter(|answers| !answers.is_empty());
        let share = |answers: &Vec<Answers>| {
            100.0 * answers.iter().map(|answer| answer.sum).sum::<f64>() / answers.len() as f64
        };
        (asked().count() > 0).then(|| asked().map(share).sum::<f64>() / asked().count() as f64)
    };
    let (base, variants) = (mean(0), mean(1));
    let pairs: Vec<PairedAnswers> = templates
        .into_values()
        .enumerate()
        .filter(|(_, sides)| sides.iter().all(|answers| !answers.is_empty()))
        .map(|(cluster, [first, second])| PairedAnswers { cluster: cluster as u64, first, second })
        .collect();
    let paired: Option<PairedVerdict> = paired_verdict(&pairs).ok().filter(PairedVerdict::has_p);
    let mut instances: BTreeMap<i64, (usize, usize)> = BTreeMap::new();
    for row in rows.iter().filter(|row| row.variant) {
        let counts = instances.entry(row.instance).or_default();
        counts.0 += usize::from(row.correct);
        counts.1 += 1;
    }
    let shares: Vec<f64> = instances.values().map(|(right, n)| 100.0 * *right as f64 / *n as f64).collect();
    let instance_sd = (shares.len() > 1).then(|| {
        let middle = shares.iter().sum::<f64>() / shares.len() as f64;
        let squares: f64 = shares.iter().map(|share| (share - middle).powi(2)).sum();
        (squares / (shares.len() - 1) as f64).sqrt()
    });
    let variant_questions = rows.iter().filter(|row| row.variant).count();
    Accuracies {
        base_questions: rows.len() - variant_questions,
        variant_questions,
        base,
        variants,
        difference: base.zip(variants).map(|(base, variants)| variants - base),
        interval: paired.as_ref().and_then(|found| {
            let (low, high) = found.interval(0.95)?;
            let [estimate, low, high] = [found.difference, low, high].map(|share| 100.0 * share);
            Some(Interval { estimate, low, high })
        }),
        p: paired.as_ref().map(|found| found.p),
        test: paired.as_ref().map(|found| found.test),
        detectable: paired
            // Where all originals or all variants are alike, nothing says how they vary.
            .filter(|_| [base, variants].iter().all(|share| share.is_some_and(|share| share > 0.0 && share < 100.0)))
            .map(|found| 100.0 * t_reach(found.clusters as f64, 0.05, 0.8) * found.planning_error()),
        instance_sd,
    }
}
