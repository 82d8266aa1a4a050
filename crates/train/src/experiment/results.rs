//! Results of an experiment in one small file: scores and learning curves of all models, and means over seeds.
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::cell::{CellChoice, GridCell};
use super::error::{ExperimentError, ResultsError};
use super::evaluation::{Evaluation, LengthScore};
use super::file::Experiment;
use super::runner::{CellState, cell_folder, cell_state, events};
use crate::{NextTasks, TrainEvent};
use earnest_stats::distribution::{student_quantile, student_two_sided};
use earnest_tasks::suite::Interval;

/// Version of [`ExperimentResults`]'s JSON format.
pub const RESULTS_FORMAT: u32 = 1;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ExperimentResults {
    /// [`RESULTS_FORMAT`].
    pub format: u32,
    /// Title of the experiment.
    pub title: String,
    /// Seeds of every training.
    pub seeds: Vec<u64>,
    /// Test questions per task and length.
    pub questions: usize,
    /// Number of trainings in the experiment file.
    pub planned: usize,
    /// Evaluated models.
    pub models: Vec<ModelResult>,
}

/// Result of a trained model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ModelResult {
    /// Values of the axes.
    #[serde(flatten)]
    pub choice: CellChoice,
    pub seed: u64,
    /// Names of the grids that contain it.
    pub grids: Vec<String>,
    /// Second phase of the training, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub then: Option<NextTasks>,
    /// Parameters without the embedding table.
    pub parameters: usize,
    /// Size of the vocabulary.
    pub vocabulary: usize,
    /// Tokens that occur in the test questions and their answers.
    pub used_tokens: usize,
    /// Width of an embedding.
    pub width: usize,
    /// Number of steps, those of all attempts.
    pub steps: u64,
    /// Restarts of a training whose criterion was not reached.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub restarts: u64,
    /// Batch size.
    pub batch: usize,
    /// Duration of the steps in seconds, not measured on an idle machine.
    pub seconds: f64,
    /// Scores by task and length.
    pub scores: Vec<LengthScore>,
    /// Learning curve: the validations during training.
    #[serde(rename = "course")]
    pub learning_curve: Vec<CurvePoint>,
}

/// Point of a learning curve: a validation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CurvePoint {
    /// Training examples seen.
    pub seen: u64,
    /// Mean loss over the answers of trained lengths, in nats per token.
    pub loss: f64,
    /// Exact match, in the order of tasks and lengths.
    pub exact: Vec<CurveScore>,
}

/// Exact match of one task and length in a validation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CurveScore {
    /// Name of the task.
    pub task: String,
    /// Length in digits.
    pub length: usize,
    pub exact_match: f64,
}

/// Mean over seeds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct SeedMean {
    pub mean: f64,
    /// Standard error of the mean; `None` for a single seed.
    pub std_err: Option<f64>,
    /// Number of seeds.
    pub seeds: usize,
}

impl SeedMean {
    /// Computes the mean of one value per seed; `None` without values.
    pub fn of(values: &[f64]) -> Option<Self> {
        let seeds = values.len();
        if seeds == 0 {
            return None;
        }
        let n = seeds as f64;
        let mean = values.iter().sum::<f64>() / n;
        let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
        let std_err = (seeds > 1).then(|| (squares / (n - 1.0) / n).sqrt());
        Some(SeedMean { mean, std_err, seeds })
    }

    /// Returns the interval of one standard error to either side; zero-width for a single seed.
    pub fn band(&self) -> Interval {
        let error = self.std_err.unwrap_or(0.0);
        Interval { estimate: self.mean, low: self.mean - error, high: self.mean + error }
    }

    /// Returns the 95 % confidence interval of the mean (Student's t); `None` for a single seed.
    pub fn interval(&self) -> Option<Interval> {
        let half = student_quantile(0.975, self.seeds as f64 - 1.0) * self.std_err?;
        Some(Interval { estimate: self.mean, low: self.mean - half, high: self.mean + half })
    }

    /// Returns the two-sided p value of the difference from another mean being `supposed` (Welch's test); `None` if either has a single seed. If
    /// no seed differs from another, the test has no scale: the p value is then the smallest one that a permutation of the seeds allows, or 1
    /// without a difference.
    pub fn p_value(&self, other: &SeedMean, supposed: f64) -> Option<f64> {
        let (own, others) = (self.std_err?.powi(2), other.std_err?.powi(2));
        let (difference, variance) = (self.mean - other.mean - supposed, own + others);
        if variance == 0.0 {
            let permutations = choose(self.seeds + other.seeds, self.seeds);
            return Some(if difference == 0.0 { 1.0 } else { (2.0 / permutations).min(1.0) });
        }
        let term = |variance: f64, seeds: usize| variance.powi(2) / (seeds as f64 - 1.0);
        let freedom = variance.powi(2) / (term(own, self.seeds) + term(others, other.seeds));
        Some(student_two_sided(difference / variance.sqrt(), freedom))
    }

    /// Returns the difference from another mean with its 95 % confidence interval (B. L. Welch, Biometrika 34, 1947, 28-35); `None`
    /// if either has a single seed.
    pub fn minus(&self, other: &SeedMean) -> Option<Interval> {
        let (own, others) = (self.std_err?.powi(2), other.std_err?.powi(2));
        let estimate = self.mean - other.mean;
        let variance = own + others;
        if variance == 0.0 {
            return Some(Interval { estimate, low: estimate, high: estimate });
        }
        let term = |variance: f64, seeds: usize| variance.powi(2) / (seeds as f64 - 1.0);
        let freedom = variance.powi(2) / (term(own, self.seeds) + term(others, other.seeds));
        let half = student_quantile(0.975, freedom) * variance.sqrt();
        Some(Interval { estimate, low: estimate - half, high: estimate + half })
    }
}

/// Number of ways to choose `k` of `n`.
fn choose(n: usize, k: usize) -> f64 {
    (0..k).map(|i| (n - i) as f64 / (i + 1) as f64).product()
}

/// Metric of answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Metric {
    ExactMatch,
    /// Digit match: mean share of correct digits.
    DigitMatch,
    /// Mean difference in digits.
    Dlength,
}

impl Metric {
    /// Returns the metric of a task and length; `None` if the task has none.
    pub fn of(self, score: &LengthScore) -> Option<f64> {
        match self {
            Metric::ExactMatch => Some(score.exact_match),
            Metric::DigitMatch => score.digit_match,
            Metric::Dlength => score.dlength,
        }
    }

    /// Returns the display name.
    pub fn name(self) -> &'static str {
        match self {
            Metric::ExactMatch => "exact match",
            Metric::DigitMatch => "digit match",
            Metric::Dlength => "dlength",
        }
    }
}

impl ExperimentResults {
    /// Collects the results of an experiment from its folder.
    ///
    /// # Errors
    /// [`ExperimentError::Folder`].
    pub fn gather(experiment: &Experiment, results: &Path) -> Result<Self, ExperimentError> {
        let mut models = Vec::new();
        for cell in &experiment.cells {
            if let CellState::Evaluated(evaluation) = cell_state(results, cell)? {
                models.push(model_result(cell, &cell_folder(results, cell), evaluation)?);
            }
        }
        Ok(ExperimentResults {
            format: RESULTS_FORMAT,
            title: experiment.title.clone(),
            seeds: experiment.seeds.clone(),
            questions: experiment.questions,
            planned: experiment.cells.len(),
            models,
        })
    }

    /// Formats the results as JSON with one model per line.
    pub fn to_text(&self) -> String {
        let mut head = serde_json::to_value(self).expect("results are JSON");
        head["models"] = serde_json::json!([]);
        let head = serde_json::to_string_pretty(&head).expect("it is JSON");
        let models: Vec<String> = self.models.iter().map(|model| format!("    {}", serde_json::json!(model))).collect();
        let filled = if models.is_empty() { "[]".to_owned() } else { format!("[\n{}\n  ]", models.join(",\n")) };
        format!("{}\n", head.replacen(r#""models": []"#, &format!(r#""models": {filled}"#), 1))
    }

    /// Parses the text of a results file.
    ///
    /// # Errors
    /// [`ResultsError`].
    pub fn parse(text: &str) -> Result<Self, ResultsError> {
        let results: Self = serde_json::from_str(text)?;
        if results.format != RESULTS_FORMAT {
            return Err(ResultsError::Format { found: results.format, expected: RESULTS_FORMAT });
        }
        Ok(results)
    }

    /// Returns the models with these axis values, in order of seeds.
    pub fn seeds_of<'a>(&'a self, choice: &'a CellChoice) -> impl Iterator<Item = &'a ModelResult> {
        self.models.iter().filter(move |model| model.choice == *choice)
    }

    /// Returns the distinct axis values of the models, in order.
    pub fn choices(&self) -> Vec<&CellChoice> {
        let mut all: Vec<&CellChoice> = Vec::new();
        for model in &self.models {
            if !all.contains(&&model.choice) {
                all.push(&model.choice);
            }
        }
        all
    }

    /// Returns the mean over seeds for one length.
    pub fn at(&self, choice: &CellChoice, task: &str, length: usize, metric: Metric) -> Option<SeedMean> {
        let values: Vec<f64> =
            self.seeds_of(choice).filter_map(|model| metric.of(model.score(task, length)?)).collect();
        SeedMean::of(&values)
    }

    /// Returns the mean over seeds of the mean over all trained lengths, or over all others.
    pub fn over(&self, choice: &CellChoice, task: &str, learnt: bool, metric: Metric) -> Option<SeedMean> {
        let values: Vec<f64> = self
            .seeds_of(choice)
            .filter_map(|model| {
                let all: Vec<f64> = model
                    .scores
                    .iter()
                    .filter(|score| score.style.is_question() && score.task == task && score.learnt == learnt)
                    .filter_map(|score| metric.of(score))
                    .collect();
                (!all.is_empty()).then(|| all.iter().sum::<f64>() / all.len() as f64)
            })
            .collect();
        SeedMean::of(&values)
    }
}

impl ModelResult {
    /// Returns the scores of the plain questions of a task and length.
    pub fn score(&self, task: &str, length: usize) -> Option<&LengthScore> {
        self.scores.iter().find(|score| score.style.is_question() && score.task == task && score.length == length)
    }

    /// Returns the trained lengths of a task, or its other lengths, in ascending order.
    pub fn lengths(&self, task: &str, learnt: bool) -> Vec<usize> {
        let own = |score: &&LengthScore| score.style.is_question() && score.task == task && score.learnt == learnt;
        let mut all: Vec<usize> = self.scores.iter().filter(own).map(|score| score.length).collect();
        all.sort_unstable();
        all
    }
}

/// Builds the result of a model from its evaluation, its log and its configuration.
fn model_result(cell: &GridCell, folder: &Path, evaluation: Evaluation) -> Result<ModelResult, ExperimentError> {
    let batch = cell.settings.batch;
    let (mut seconds, mut learning_curve) = (0.0, Vec::new());
    let (mut steps, mut restarts) = (0, 0);
    for event in events(folder)? {
        match event {
            TrainEvent::Step { step, seconds: took, .. } => {
                steps = step;
                seconds += took;
            }
            TrainEvent::Restarted { restart, .. } => restarts = restart,
            TrainEvent::Validated(validation) => learning_curve.push(CurvePoint {
                seen: validation.step * batch as u64,
                loss: round(validation.loss),
                exact: validation
                    .cells
                    .into_iter()
                    .map(|cell| CurveScore {
                        exact_match: cell.exact as f64 / cell.questions.max(1) as f64,
                        task: cell.name(),
                        length: cell.length,
                    })
                    .collect(),
            }),
            TrainEvent::Saved { .. } => {}
        }
    }
    let path = folder.join("config.json");
    let damaged = |problem: String| ExperimentError::Folder { path: path.clone(), problem };
    let text = earnest_digest::input::read_text(&path, earnest_digest::input::MOST_SETTINGS)
        .map_err(|error| damaged(error.to_string()))?;
    let config: serde_json::Value = serde_json::from_str(&text).map_err(|error| damaged(error.to_string()))?;
    let vocabulary = config["vocab_size"].as_u64().ok_or_else(|| damaged("it has no vocab_size".into()))?;
    Ok(ModelResult {
        choice: cell.choice.clone(),
        seed: cell.seed,
        grids: cell.grids.clone(),
        then: cell.settings.then.clone(),
        parameters: cell.settings.size.parameters(),
        vocabulary: vocabulary as usize,
        used_tokens: evaluation.used_tokens,
        width: cell.settings.size.hidden,
        steps,
        restarts,
        batch,
        seconds: seconds.round(),
        scores: evaluation.scores,
        learning_curve,
    })
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// Rounds to five decimals, more than a loss is reproducible to on another machine.
fn round(value: f64) -> f64 {
    (1e5 * value).round() / 1e5
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn means_and_differences() {
        let one = SeedMean::of(&[0.5, 0.7, 0.9]).unwrap();
        assert!((one.mean - 0.7).abs() < 1e-12 && (one.std_err.unwrap() - 0.2 / 3f64.sqrt()).abs() < 1e-12);
        assert_eq!(SeedMean::of(&[0.5]).unwrap().std_err, None);
        assert!(SeedMean::of(&[]).is_none());
        // scipy.stats.ttest_ind([.5, .7, .9], [.1, .2, .6], equal_var=False).confidence_interval()
        let other = SeedMean::of(&[0.1, 0.2, 0.6]).unwrap();
        let difference = one.minus(&other).unwrap();
        assert!((difference.low + 0.147_613_273).abs() < 1e-8, "{difference:?}");
        assert!((difference.high - 0.947_613_273).abs() < 1e-8, "{difference:?}");
        // By numerical integration of the density of t.
        assert!((one.p_value(&other, 0.0).unwrap() - 0.110116).abs() < 1e-5, "{:?}", one.p_value(&other, 0.0));
        assert_eq!(one.minus(&SeedMean::of(&[0.5]).unwrap()), None);
        let floor = SeedMean::of(&[0.0, 0.0]).unwrap();
        assert_eq!((floor.p_value(&floor, 0.0), floor.p_value(&SeedMean::of(&[0.5]).unwrap(), 0.0)), (Some(1.0), None));
        // Two of four seeds: six ways to choose them.
        assert_eq!(floor.p_value(&SeedMean::of(&[1.0, 1.0]).unwrap(), 0.0), Some(2.0 / 6.0));
        assert_eq!(floor.minus(&floor), Some(Interval { estimate: 0.0, low: 0.0, high: 0.0 }));
    }
}
