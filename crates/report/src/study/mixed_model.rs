//! Mixed models over the rows of a study's runs.
use std::collections::HashMap;

use serde::Serialize;
use serde_json::Value;

use earnest_stats::analysis::default_model;
use earnest_stats::mixed::{self, Family, Frame, Marginal, MixedData, MixedFit, MixedOptions, Terms};

use super::analysis::Scorers;
use crate::ReportError;
use earnest_eval::study::{MixedModelDefinition, PlannedRun, StudyPlan};
use earnest_results::Sample;
use earnest_results::store::{Filter, RunRecord, Store};

/// Most labels of a fixed effect; more usually mean a wrong column.
const MOST_LEVELS: usize = 64;

/// A mixed model of a study, or the reason why there is none.
#[derive(Debug, Serialize)]
pub struct MixedModelResult {
    pub formula: String,
    /// Only these tasks; all if empty.
    pub tasks: Vec<String>,
    #[serde(flatten)]
    pub outcome: MixedModel,
}

/// A fit or its problem.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub enum MixedModel {
    Mixed {
        fit: Box<MixedFit>,
        /// Wald 95 % intervals of the coefficients, in log odds.
        intervals: Vec<Option<(f64, f64)>>,
        /// Reference level of every column of labels.
        references: Vec<(String, String)>,
        rows: usize,
        /// Rows without a value in some column.
        dropped: usize,
        /// p value of the variance between groups, in models with one random effect.
        variance_p: Option<f64>,
        /// Accuracies by factor and their differences, averaged over the random effects.
        marginal: Vec<Marginal>,
        /// Reasons for the random effects, if no formula was given.
        choice: Vec<String>,
    },
    Impossible {
        problem: String,
    },
}

impl MixedModel {
    /// True if some coefficient has an estimate.
    pub fn has_estimate(&self) -> bool {
        match self {
            MixedModel::Mixed { fit, .. } => fit.is_usable(),
            MixedModel::Impossible { .. } => false,
        }
    }
}

/// Fits a model to the rows of the finished runs.
///
/// # Errors
/// If rows cannot be read; everything about the model itself is in the result.
pub(super) fn fit_runs(
    plan: &StudyPlan,
    definition: &MixedModelDefinition,
    (runs, scorers): (&[(PlannedRun, &RunRecord)], &Scorers),
    store: &Store,
) -> Result<MixedModelResult, ReportError> {
    let given = definition.formula.as_ref();
    let columns: Vec<&str> = match given {
        Some(formula) => [formula.response.as_str()].into_iter().chain(formula.variables()).collect(),
        None => ["correct"].into_iter().chain(CONDITIONS).chain(GROUPS).collect(),
    };
    let mut codes: Vec<Column> = columns.iter().map(|_| Column::default()).collect();
    let (mut rows, mut dropped) = (0, 0);
    for (planned, record) in runs {
        let task = &plan.task(*planned).name;
        if !definition.tasks.is_empty() && !definition.tasks.contains(task) {
            continue;
        }
        let scorer = scorers.common(*planned);
        let prompt = plan.prompts(*planned).to_string();
        let own = |name: &str| match name {
            "model" => Some(plan.model(*planned).name.clone()),
            "task" => Some(task.clone()),
            "prompt" => Some(prompt.clone()),
            "run" => Some(record.manifest.run.clone()),
            _ => None,
        };
        for sample in store.samples(record, Filter::default()) {
            let sample = sample?;
            rows += 1;
            let mut values: Vec<Option<String>> =
                columns.iter().map(|name| own(name).or_else(|| field(&sample, name, scorer))).collect();
            for (column, value) in codes.iter_mut().zip(&values) {
                column.seen |= value.is_some();
            }
            if given.is_none() {
                // A condition that some task does not have is no condition of its rows.
                values.iter_mut().skip(1).take(CONDITIONS.len()).for_each(|value| {
                    value.get_or_insert_with(|| NO_CONDITION.to_owned());
                });
            }
            if values.iter().any(Option::is_none) {
                dropped += 1;
                continue;
            }
            for (column, value) in codes.iter_mut().zip(values.into_iter().flatten()) {
                column.push(value);
            }
        }
    }
    let (outcome, formula) = match fitted(definition, &columns, &codes) {
        Ok(Fitted { fit, references, marginal, choice, variance_p }) => {
            let intervals = fit.coefficients.iter().map(|one| fit.wald_interval(one, 0.95)).collect();
            let formula = fit.formula.clone();
            let fit = Box::new(fit);
            (MixedModel::Mixed { fit, intervals, references, rows, dropped, variance_p, marginal, choice }, formula)
        }
        Err(problem) => {
            let formula = given.map_or_else(|| "the maximal model".to_owned(), ToString::to_string);
            (MixedModel::Impossible { problem: problem.to_string() }, formula)
        }
    };
    Ok(MixedModelResult { formula, tasks: definition.tasks.clone(), outcome })
}

/// Values of a column as codes of their texts.
#[derive(Default)]
struct Column {
    codes: Vec<u32>,
    texts: Vec<String>,
    code_of: HashMap<String, u32>,
    /// True if some row has the column.
    seen: bool,
}

impl Column {
    fn push(&mut self, text: String) {
        let next = self.texts.len() as u32;
        let code = *self.code_of.entry(text.clone()).or_insert(next);
        if code == next {
            self.texts.push(text);
        }
        self.codes.push(code);
    }

    /// The texts as numbers; none if one of them is no number.
    fn numbers(&self) -> Option<Vec<f64>> {
        self.texts.iter().map(|text| text.parse().ok().filter(|number: &f64| number.is_finite())).collect()
    }
}

/// Columns that are conditions where they vary, and grouping columns, the widest first, if there is no formula.
const CONDITIONS: [&str; 3] = ["model", "prompt", "variant"];
const GROUPS: [&str; 2] = ["cluster", "item"];

/// Level of rows that do not have a condition.
const NO_CONDITION: &str = "none";

/// Fit with the references, marginal effects and remarks that are printed beside it.
struct Fitted {
    fit: MixedFit,
    references: Vec<(String, String)>,
    marginal: Vec<Marginal>,
    choice: Vec<String>,
    variance_p: Option<f64>,
}

/// Reason for which there is no fit.
#[derive(Debug, thiserror::Error)]
enum Unfitted {
    #[error(
        "no row has a column `{0}`; there are model, task, prompt, run, item, item_task, cluster, sample, correct, the \
         suites' scores and metrics, and their covariates"
    )]
    NoColumn(String),
    #[error("`{0}` is not 0 or 1 in every row")]
    NotBinary(String),
    #[error("`{0}` holds numbers, which have no reference level; factors = [\"{0}\"] takes them as labels")]
    NoReference(String),
    #[error("`{0}` has more than {MOST_LEVELS} different labels; a fixed effect has few")]
    ManyLabels(String),
    #[error(transparent)]
    Model(#[from] mixed::MixedError),
}

/// Fits the columns (response, then those of the formula, or conditions and groups) by a formula, or by the maximal one.
fn fitted(definition: &MixedModelDefinition, names: &[&str], columns: &[Column]) -> Result<Fitted, Unfitted> {
    let known: Vec<(&str, &Column)> = names.iter().copied().zip(columns).filter(|(_, column)| column.seen).collect();
    if definition.formula.is_some() && known.len() < names.len() {
        let missing = names.iter().find(|name| !known.iter().any(|(known, _)| known == *name)).unwrap_or(&"");
        return Err(Unfitted::NoColumn((*missing).to_owned()));
    }
    let Some(((response, outcomes), others)) = known.split_first() else {
        return Err(Unfitted::NoColumn(names[0].to_owned()));
    };
    let numbers = outcomes.numbers().filter(|values| values.iter().all(|value| [0.0, 1.0].contains(value)));
    let numbers = numbers.ok_or_else(|| Unfitted::NotBinary((*response).to_owned()))?;
    let mut frame = Frame::new();
    frame.number(response, outcomes.codes.iter().map(|code| numbers[*code as usize]).collect())?;
    let is_effect = |name: &str| match &definition.formula {
        Some(formula) => {
            let random = formula.random.iter().flat_map(|term| &term.effects.variables);
            formula.fixed.variables.iter().chain(random).any(|known| known == name)
        }
        None => CONDITIONS.contains(&name),
    };
    let mut references = Vec::new();
    for (name, column) in others {
        let is_factor = definition.factors.iter().any(|factor| factor == name);
        let effect = is_effect(name);
        match column.numbers().filter(|_| effect && !is_factor && definition.formula.is_some()) {
            Some(_) if definition.references.iter().any(|(column, _)| column == name) => {
                return Err(Unfitted::NoReference((*name).to_owned()));
            }
            Some(values) => {
                frame.number(name, column.codes.iter().map(|code| values[*code as usize]).collect())?;
            }
            None if effect && column.texts.len() > MOST_LEVELS => {
                return Err(Unfitted::ManyLabels((*name).to_owned()));
            }
            None => {
                frame.labels(name, column.codes.clone(), column.texts.clone())?;
                if let Some((_, level)) = definition.references.iter().find(|(column, _)| column == name) {
                    frame.reference(name, level)?;
                }
                if let Ok(mixed::Column::Labels(labels)) = frame.column(name)
                    && effect
                    && labels.levels.len() > 1
                {
                    references.push(((*name).to_owned(), labels.levels[0].clone()));
                }
            }
        }
    }
    let (data, fit, choice) = match &definition.formula {
        Some(formula) => {
            let data = MixedData::new(formula, &frame, Family::Binomial)?;
            let fit = mixed::fit(&data, &MixedOptions::default())?;
            let fit = mixed::with_robust_errors(&data, fit);
            (data, fit, Vec::new())
        }
        None => {
            let fixed = references.iter().fold(Terms::intercept(), |terms, (name, _)| terms.with(name));
            let model = default_model(&frame, response, &fixed, &GROUPS)?;
            (model.data, model.fit, model.choice)
        }
    };
    // What has no marginal effects still has its coefficients.
    let marginal =
        mixed::factors(&data).iter().filter_map(|name| mixed::marginal(&data, &fit, Some(name), 0.95).ok()).collect();
    let variance_p = mixed::variance_test(&data, &fit).ok().map(|test| test.p);
    Ok(Fitted { fit, references, marginal, choice, variance_p })
}

/// A column of a sample, as `earnest stats glmm --run` has them; the task of the question is `item_task`, and `correct` is by `scorer`
/// where one is given.
fn field(sample: &Sample, name: &str, scorer: Option<&str>) -> Option<String> {
    let truth = |value: bool| u8::from(value).to_string();
    let score = sample.score.as_ref();
    match name {
        "item" => return Some(sample.question().to_owned()),
        "item_task" => return Some(sample.task.clone()),
        "cluster" => return Some(sample.cluster.clone()),
        "sample" => return Some(sample.sample.to_string()),
        "correct" => {
            return score.and_then(|score| match scorer {
                Some(scorer) => score.scorers.get(scorer).map(truth),
                None => Some(truth(score.correct)),
            });
        }
        _ => {}
    }
    let covariate = || match sample.covariates.get(name)? {
        Value::Null => None,
        Value::String(text) => Some(text.clone()),
        Value::Bool(value) => Some(truth(*value)),
        other => Some(other.to_string()),
    };
    let by_scorer = || score?.scorers.get(name).map(truth);
    let metric = || score?.metrics.get(name).map(|value| value.to_string());
    covariate().or_else(by_scorer).or_else(metric)
}
