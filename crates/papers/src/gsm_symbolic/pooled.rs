//! Effects pooled before they are counted: each model over its prompts, and the paper's models over Table 3.
use std::collections::BTreeMap;

use crate::gsm_symbolic::published::odds_ratios;
use earnest_results::p_decimals;
use earnest_stats::{Answers, PairedAnswers, PairedTest, PairedVerdict, Z95, holm, paired_verdict};
use earnest_tasks::suite::gsm_symbolic::Prompt;
use serde::Serialize;

use super::analysis::Analysis;
use super::variant_tables::is_artefact;

/// Significance level of the sentences.
const LEVEL: f64 = 0.05;

/// Effects that are pooled.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Pooled {
    /// Models that were run with several prompts.
    pub models: Vec<PooledModel>,
    pub published: PooledOddsRatio,
}

/// Answers of a model to the questions of all its prompts.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PooledModel {
    pub model: String,
    pub prompts: usize,
    /// Answers to originals, and the right ones.
    pub base_answers: usize,
    pub base_right: usize,
    pub variant_answers: usize,
    pub variant_right: usize,
    /// Variants minus originals, percentage points, and the 95 % interval.
    pub difference: f64,
    pub interval: Option<(f64, f64)>,
    /// p value by `test`, and after Holm's correction over the models here.
    pub p: f64,
    pub p_holm: f64,
    pub test: PairedTest,
}

/// Odds ratio of the paper's models on the GSM prompt (Table 3), pooled by random effects (DerSimonian and Laird, Controlled Clinical Trials
/// 7, 1986, 177-188), without fits that are artefacts of lme4's inner tolerance. Standard errors are a quarter of the printed intervals' length,
/// in log odds; models are taken as independent, although all answered the same templates.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PooledOddsRatio {
    pub models: usize,
    /// Models whose odds ratio is below 1.
    pub below_one: usize,
    pub odds_ratio: f64,
    pub low: f64,
    pub high: f64,
    /// Standard deviation of the models' log odds ratios, and the share of their variance that sampling does not explain, per cent.
    pub between_models: f64,
    pub i_squared: f64,
}

pub(super) fn pooled(analyses: &[Analysis]) -> Pooled {
    let mut by_model: BTreeMap<&str, Vec<&Analysis>> = BTreeMap::new();
    for analysis in analyses {
        by_model.entry(&analysis.model).or_default().push(analysis);
    }
    let several = by_model.into_values().filter(|prompts| prompts.len() > 1);
    let mut models: Vec<PooledModel> = several.filter_map(|prompts| of_model(&prompts)).collect();
    let p_values: Vec<f64> = models.iter().map(|model| model.p).collect();
    for (model, adjusted) in models.iter_mut().zip(holm(&p_values).unwrap_or_default()) {
        model.p_holm = adjusted;
    }
    Pooled { models, published: published() }
}

/// The verdict on a model's answers to all prompts. A question keeps its answers to all prompts together; none without an answer of each kind.
fn of_model(prompts: &[&Analysis]) -> Option<PooledModel> {
    let mut templates: BTreeMap<&str, [BTreeMap<i64, Answers>; 2]> = BTreeMap::new();
    let (mut right, mut asked) = ([0, 0], [0, 0]);
    for row in prompts.iter().flat_map(|analysis| &analysis.columns) {
        let side = usize::from(row.variant);
        right[side] += usize::from(row.correct);
        asked[side] += 1;
        let of_template = &mut templates.entry(&row.template).or_default()[side];
        let question = of_template.entry(row.instance).or_insert(Answers { sum: 0.0, count: 0 });
        question.sum += f64::from(u8::from(row.correct));
        question.count += 1;
    }
    let pairs: Vec<PairedAnswers> = templates
        .into_values()
        .enumerate()
        .filter(|(_, sides)| sides.iter().all(|questions| !questions.is_empty()))
        .map(|(cluster, sides)| {
            let [first, second] = sides.map(|questions| questions.into_values().collect());
            PairedAnswers { cluster: cluster as u64, first, second }
        })
        .collect();
    let found = paired_verdict(&pairs).ok().filter(PairedVerdict::has_p)?;
    Some(PooledModel {
        model: prompts[0].model.clone(),
        prompts: prompts.len(),
        base_answers: asked[0],
        base_right: right[0],
        variant_answers: asked[1],
        variant_right: right[1],
        difference: 100.0 * found.difference,
        interval: found.interval(0.95).map(|(low, high)| (100.0 * low, 100.0 * high)),
        p: found.p,
        p_holm: found.p,
        test: found.test,
    })
}

fn published() -> PooledOddsRatio {
    let rows = odds_ratios(Prompt::Gsm).iter().filter(|row| !is_artefact(1, &row.model, Prompt::Gsm));
    let effects: Vec<(f64, f64)> = rows
        .map(|row| {
            let error = (row.ci_high / row.ci_low).ln() / (2.0 * Z95);
            (row.odds_ratio.ln(), error.powi(-2))
        })
        .collect();
    let mean = |weights: &[f64]| {
        let sum: f64 = weights.iter().sum();
        effects.iter().zip(weights).map(|((effect, _), weight)| effect * weight).sum::<f64>() / sum
    };
    let weights: Vec<f64> = effects.iter().map(|(_, weight)| *weight).collect();
    let fixed = mean(&weights);
    let q: f64 = effects.iter().map(|(effect, weight)| weight * (effect - fixed).powi(2)).sum();
    let free = effects.len() as f64 - 1.0;
    let (sum, squares) = (weights.iter().sum::<f64>(), weights.iter().map(|weight| weight * weight).sum::<f64>());
    let variance = ((q - free) / (sum - squares / sum)).max(0.0);
    let weights: Vec<f64> = weights.iter().map(|weight| (weight.recip() + variance).recip()).collect();
    let (pooled, reach) = (mean(&weights), Z95 / weights.iter().sum::<f64>().sqrt());
    PooledOddsRatio {
        models: effects.len(),
        below_one: effects.iter().filter(|(effect, _)| *effect < 0.0).count(),
        odds_ratio: pooled.exp(),
        low: (pooled - reach).exp(),
        high: (pooled + reach).exp(),
        between_models: variance.sqrt(),
        i_squared: (100.0 * (q - free) / q).max(0.0),
    }
}

impl Pooled {
    /// Sentences on the models that were run; empty without any that answered several prompts.
    pub(super) fn says(&self) -> String {
        let each = self.models.iter().map(|model| {
            let verdict = match model.p_holm {
                p if p >= LEVEL => "not shown",
                _ if model.difference < 0.0 => "variants are right less often",
                _ => "variants are right more often",
            };
            let holm = if self.models.len() > 1 {
                format!(", after Holm {}", p_decimals(model.p_holm, 3))
            } else {
                String::new()
            };
            format!(
                "{}: {verdict} ({} of {} originals, {} of {} variants, p {}{holm})",
                model.model,
                model.base_right,
                model.base_answers,
                model.variant_right,
                model.variant_answers,
                p_decimals(model.p, 4),
            )
        });
        let each: Vec<String> = each.collect();
        if each.is_empty() { String::new() } else { format!("Pooled over prompts, {}.", each.join("; ")) }
    }
}

impl PooledOddsRatio {
    /// The pooled odds ratio in a sentence.
    pub(super) fn says(&self) -> String {
        let PooledOddsRatio { models, below_one, odds_ratio, low, high, i_squared, .. } = self;
        format!(
            "Pooled, the {models} models of the paper's Table 3 without artefacts have an odds ratio of {odds_ratio:.2} [{low:.2}, {high:.2}] on the GSM prompt, \
             {below_one} of {models} below 1 (random effects, I² {i_squared:.0} %; as if models were independent, though all answered the \
             same templates). On average these models lose accuracy, whatever the number of significant ones."
        )
    }
}

#[cfg(test)]
mod tests {
    use super::super::analysis::analyse;
    use super::super::evaluation::{Evaluation, Observation};
    use super::*;

    /// Reference: own Python, the formulas of DerSimonian and Laird on the printed table.
    #[test]
    fn the_papers_own_table_is_pooled() {
        let found = published();
        assert_eq!((found.models, found.below_one), (19, 18));
        assert!((found.odds_ratio - 0.571_421_6).abs() < 1e-4 && (found.low - 0.470_529).abs() < 1e-4, "{found:?}");
        assert!((found.high - 0.693_948).abs() < 1e-4 && (found.between_models - 0.278_164).abs() < 1e-4, "{found:?}");
        assert!((found.i_squared - 42.467_6).abs() < 1e-2, "{found:?}");
    }

    /// Each prompt alone has one of four originals right and no variant; together they cannot be chance.
    #[test]
    fn prompts_are_pooled_by_question() {
        let analysis = |prompt, right: i64| {
            let rows = (0..12).flat_map(|template| (-1..6).map(move |instance| (template, instance)));
            let rows: Vec<Observation> = rows
                .map(|(template, instance)| Observation {
                    template: format!("t{template}"),
                    instance,
                    variant: instance >= 0,
                    correct: instance < 0 && template % 4 == right,
                    gamma: None,
                    failure: None,
                })
                .collect();
            let evaluation = Evaluation { rows, ..Evaluation::new("m", prompt) };
            analyse(vec![evaluation]).remove(0)
        };
        let both = pooled(&[analysis(Prompt::Gsm, 0), analysis(Prompt::SimpleNl, 1)]);
        let model = &both.models[0];
        assert_eq!((model.prompts, model.base_right, model.base_answers), (2, 6, 24));
        assert_eq!((model.variant_right, model.variant_answers), (0, 144));
        // Each of six templates has one question with a right answer, of seven: (1/7)^6.
        assert!((model.p / 7_f64.powi(-6) - 1.0).abs() < 1e-9, "{model:?}");
        assert!(both.says().starts_with("Pooled over prompts, m: variants are right less often (6 of 24 originals"));
        assert!(pooled(&[analysis(Prompt::Gsm, 0)]).says().is_empty());
    }
}
