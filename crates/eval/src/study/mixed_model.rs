//! Mixed models over the rows of a study's runs.
use std::collections::HashMap;

use serde::Serialize;
use serde_json::Value;

use earnest_stats::glmm::{
    Diagnosis, GlmmFit, GlmmOptions, GlmmRows, Term, disagreement, fit, variance_ratio, wald_interval,
};

use super::definition::MixedModelDefinition;
use super::{PlannedRun, StudyPlan};
use crate::EvalError;
use crate::run::Sample;
use crate::run::store::{Filter, RunRecord, Store};

/// Number of different rows up to which a Laplace fit is compared with quadrature.
const CROSS_CHECKED_ROWS: usize = 100_000;

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
    Fitted {
        fit: Box<GlmmFit>,
        /// Wald 95 % intervals of the coefficients, in log odds.
        intervals: Vec<Option<(f64, f64)>>,
        /// Reference level of every column of labels.
        references: Vec<(String, String)>,
        rows: usize,
        /// Rows without a value in some column.
        dropped: usize,
        /// p value of the variance between groups.
        variance_p: Option<f64>,
    },
    Impossible {
        problem: String,
    },
}

impl MixedModel {
    /// True if some coefficient has an estimate.
    pub fn has_estimate(&self) -> bool {
        match self {
            MixedModel::Fitted { fit, .. } => fit.coefficients.iter().any(|one| one.estimate.is_some()),
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
    runs: &[(PlannedRun, &RunRecord)],
    store: &Store,
) -> Result<MixedModelResult, EvalError> {
    let formula = &definition.formula;
    let columns: Vec<&str> =
        [&formula.response, &formula.group].into_iter().chain(&formula.fixed).map(String::as_str).collect();
    let mut codes: Vec<Column> = columns.iter().map(|_| Column::default()).collect();
    let (mut rows, mut dropped) = (0, 0);
    for (planned, record) in runs {
        let task = &plan.task(*planned).name;
        if !definition.tasks.is_empty() && !definition.tasks.contains(task) {
            continue;
        }
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
            let values: Vec<Option<String>> =
                columns.iter().map(|name| own(name).or_else(|| field(&sample, name))).collect();
            for (column, value) in codes.iter_mut().zip(&values) {
                column.seen |= value.is_some();
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
    let outcome = match model(definition, &columns, &codes) {
        Ok((fit, references, variance_p)) => {
            let interval = |estimate: Option<f64>, error: Option<f64>| wald_interval(estimate?, error?, 0.95).ok();
            let intervals = fit.coefficients.iter().map(|one| interval(one.estimate, one.standard_error)).collect();
            MixedModel::Fitted { fit: Box::new(fit), intervals, references, rows, dropped, variance_p }
        }
        Err(problem) => MixedModel::Impossible { problem },
    };
    Ok(MixedModelResult { formula: formula.to_string(), tasks: definition.tasks.clone(), outcome })
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

type Fitted = (GlmmFit, Vec<(String, String)>, Option<f64>);

/// Fits the columns: response, group, then the fixed effects.
fn model(definition: &MixedModelDefinition, names: &[&str], columns: &[Column]) -> Result<Fitted, String> {
    if let Some((name, _)) = names.iter().zip(columns).find(|(_, column)| !column.seen) {
        return Err(format!(
            "no row has a column `{name}`; there are model, task, prompt, run, item, item_task, cluster, sample, correct, the \
             suites' rules and metrics, and their covariates"
        ));
    }
    let [response, group, fixed @ ..] = columns else { return Err("the formula has no columns".to_owned()) };
    let outcomes = response.numbers().filter(|values| values.iter().all(|value| [0.0, 1.0].contains(value)));
    let outcomes = outcomes.ok_or_else(|| format!("`{}` is not 0 or 1 in every row", names[0]))?;
    let (mut terms, mut values, mut references) = (Vec::new(), Vec::new(), Vec::new());
    for (name, column) in names[2..].iter().zip(fixed) {
        let is_factor = definition.factors.iter().any(|factor| factor == name);
        let reference =
            definition.references.iter().find(|(column, _)| column == name).map(|(_, level)| level.as_str());
        match column.numbers().filter(|_| !is_factor) {
            Some(_) if reference.is_some() => {
                return Err(format!(
                    "`{name}` holds numbers, which have no reference level; factors = [\"{name}\"] takes them as labels"
                ));
            }
            Some(numbers) => {
                terms.push(Term::Number((*name).to_owned()));
                values.push(numbers);
            }
            None if column.texts.len() > MOST_LEVELS => {
                return Err(format!("`{name}` has more than {MOST_LEVELS} different labels; a fixed effect has few"));
            }
            None => {
                let term = Term::factor(name, column.texts.clone(), reference).map_err(|error| error.to_string())?;
                if let Term::Factor(factor) = &term {
                    references.push(((*name).to_owned(), factor.reference().to_owned()));
                }
                terms.push(term);
                values.push((0..column.texts.len()).map(|code| code as f64).collect());
            }
        }
    }
    let mut rows = GlmmRows::new(terms.len());
    let mut effects = Vec::with_capacity(terms.len());
    for (row, (outcome, cluster)) in response.codes.iter().zip(&group.codes).enumerate() {
        effects.clear();
        effects.extend(fixed.iter().zip(&values).map(|(column, values)| values[column.codes[row] as usize]));
        rows.push(outcomes[*outcome as usize], 1.0, &effects, *cluster);
    }
    let data = rows.finish(&terms).map_err(|error| error.to_string())?;
    let mut fitted = fit(&data, &GlmmOptions::quadrature(1)).map_err(|error| error.to_string())?;
    if !fitted.diagnoses.iter().any(Diagnosis::is_fatal) && data.cells() <= CROSS_CHECKED_ROWS {
        let quadrature = fit(&data, &GlmmOptions::quadrature(25)).map_err(|error| error.to_string())?;
        fitted.diagnoses.extend(disagreement(&fitted, &quadrature));
    }
    let variance_p = variance_ratio(&data, &fitted).ok().map(|ratio| ratio.p);
    Ok((fitted, references, variance_p))
}

/// A column of a sample, as `earnest stats glmm --run` has them; the task of the question is `item_task`.
fn field(sample: &Sample, name: &str) -> Option<String> {
    let truth = |value: bool| u8::from(value).to_string();
    let score = sample.score.as_ref();
    match name {
        "item" => return Some(sample.item.clone()),
        "item_task" => return Some(sample.task.clone()),
        "cluster" => return Some(sample.cluster.clone()),
        "sample" => return Some(sample.sample.to_string()),
        "correct" => return score.map(|score| truth(score.correct)),
        _ => {}
    }
    let covariate = || match sample.covariates.get(name)? {
        Value::Null => None,
        Value::String(text) => Some(text.clone()),
        Value::Bool(value) => Some(truth(*value)),
        other => Some(other.to_string()),
    };
    let rule = || score?.rules.get(name).map(truth);
    let metric = || score?.metrics.get(name).map(|value| value.to_string());
    covariate().or_else(rule).or_else(metric)
}
