//! What came out of a grid, in one small file: every model's scores and its way there, and means over seeds.
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::cell::{CellChoice, GridCell};
use super::evaluation::{Evaluation, LengthScore};
use super::file::{Experiment, ExperimentError};
use super::runner::{CellState, cell_folder, cell_state, events};
use crate::{NextTasks, TrainEvent};
use earnest_stats::distribution::student_quantile;
use earnest_tasks::suite::Interval;

/// Version of [`ExperimentResults`]'s JSON form.
pub const RESULTS_FORMAT: u32 = 1;

/// The results of an experiment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ExperimentResults {
    /// [`RESULTS_FORMAT`].
    pub format: u32,
    /// The experiment's.
    pub title: String,
    /// Seeds of every training.
    pub seeds: Vec<u64>,
    /// Questions of each task and length that a model was asked.
    pub questions: usize,
    /// Trainings in the file.
    pub planned: usize,
    /// The models that are there.
    pub models: Vec<ModelResult>,
}

/// A trained model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ModelResult {
    /// What is varied.
    #[serde(flatten)]
    pub choice: CellChoice,
    /// The seed.
    pub seed: u64,
    /// The grids that ask for it.
    pub grids: Vec<String>,
    /// Tasks that took the place of the first ones, if any did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub then: Option<NextTasks>,
    /// Trained numbers without the embedding table.
    pub parameters: usize,
    /// Tokens in the vocabulary; each has a row of the embedding.
    pub vocabulary: usize,
    /// Those of them that occur in the questions asked and their answers.
    pub used_tokens: usize,
    /// Numbers in a row of the embedding.
    pub width: usize,
    /// Steps of so many questions.
    pub steps: u64,
    /// Questions of a step.
    pub batch: usize,
    /// Seconds of its steps, on a machine that did other things too.
    pub seconds: f64,
    /// By task and length.
    pub scores: Vec<LengthScore>,
    /// Validations on the way.
    pub course: Vec<CoursePoint>,
}

/// A validation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CoursePoint {
    /// Questions seen.
    pub seen: u64,
    /// Mean loss of the answers of learnt lengths, in nats a token.
    pub loss: f64,
    /// Share answered exactly, in the order of tasks and lengths.
    pub exact: Vec<CourseScore>,
}

/// A task and length in a validation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CourseScore {
    /// The task.
    pub task: String,
    /// Digits.
    pub length: usize,
    /// Share answered exactly.
    pub exact_match: f64,
}

/// A mean over seeds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct SeedMean {
    /// The mean.
    pub mean: f64,
    /// Its standard error: the deviation of the seeds' values over the root of their number; none of a single seed.
    pub std_err: Option<f64>,
    /// Seeds.
    pub seeds: usize,
}

impl SeedMean {
    /// Of the seeds' values.
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

    /// One standard error to either side; a single seed's has no width.
    pub fn band(&self) -> Interval {
        let error = self.std_err.unwrap_or(0.0);
        Interval { estimate: self.mean, low: self.mean - error, high: self.mean + error }
    }

    /// This minus another, with a 95 % interval (B. L. Welch, Biometrika 34, 1947, 28-35). None where either has a single seed.
    pub fn minus(&self, other: &SeedMean) -> Option<Interval> {
        let (own, others) = (self.std_err?.powi(2), other.std_err?.powi(2));
        let estimate = self.mean - other.mean;
        let variance = own + others;
        if variance == 0.0 {
            return Some(Interval { estimate, low: estimate, high: estimate });
        }
        let share = |variance: f64, seeds: usize| variance.powi(2) / (seeds as f64 - 1.0);
        let freedom = variance.powi(2) / (share(own, self.seeds) + share(others, other.seeds));
        let half = student_quantile(0.975, freedom) * variance.sqrt();
        Some(Interval { estimate, low: estimate - half, high: estimate + half })
    }
}

/// What is measured of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Measured {
    /// Share answered exactly.
    ExactMatch,
    /// Mean share of right digits.
    DigitMatch,
    /// Mean difference in digits.
    Dlength,
}

impl Measured {
    /// Of a task at a length.
    pub fn of(self, score: &LengthScore) -> Option<f64> {
        match self {
            Measured::ExactMatch => Some(score.exact_match),
            Measured::DigitMatch => score.digit_match,
            Measured::Dlength => score.dlength,
        }
    }

    /// In words.
    pub fn name(self) -> &'static str {
        match self {
            Measured::ExactMatch => "exact match",
            Measured::DigitMatch => "digit match",
            Measured::Dlength => "dlength",
        }
    }
}

impl ExperimentResults {
    /// What a folder holds of an experiment.
    ///
    /// # Errors
    /// [`ExperimentError::Folder`].
    pub fn gather(experiment: &Experiment, results: &Path) -> Result<Self, ExperimentError> {
        let mut models = Vec::new();
        for cell in &experiment.cells {
            if let CellState::Evaluated(found) = cell_state(results, cell)? {
                models.push(model(cell, &cell_folder(results, cell), found)?);
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

    /// As a file, a line a model.
    pub fn to_text(&self) -> String {
        let mut head = serde_json::to_value(self).expect("results are JSON");
        head["models"] = serde_json::json!([]);
        let head = serde_json::to_string_pretty(&head).expect("it is JSON");
        let models: Vec<String> = self.models.iter().map(|model| format!("    {}", serde_json::json!(model))).collect();
        let filled = if models.is_empty() { "[]".to_owned() } else { format!("[\n{}\n  ]", models.join(",\n")) };
        format!("{}\n", head.replacen(r#""models": []"#, &format!(r#""models": {filled}"#), 1))
    }

    /// From a file's text.
    ///
    /// # Errors
    /// What does not fit, in a sentence.
    pub fn parse(text: &str) -> Result<Self, String> {
        let found: Self = serde_json::from_str(text).map_err(|error| error.to_string())?;
        if found.format != RESULTS_FORMAT {
            return Err(format!("its format is {}, this version of earnest reads {RESULTS_FORMAT}", found.format));
        }
        Ok(found)
    }

    /// The models of a choice of axes, seeds in order.
    pub fn seeds_of<'a>(&'a self, choice: &'a CellChoice) -> impl Iterator<Item = &'a ModelResult> {
        self.models.iter().filter(move |model| model.choice == *choice)
    }

    /// The choices that have models, in their order.
    pub fn choices(&self) -> Vec<&CellChoice> {
        let mut all: Vec<&CellChoice> = Vec::new();
        for model in &self.models {
            if !all.contains(&&model.choice) {
                all.push(&model.choice);
            }
        }
        all
    }

    /// The mean over seeds at one length.
    pub fn at(&self, choice: &CellChoice, task: &str, length: usize, measured: Measured) -> Option<SeedMean> {
        let values: Vec<f64> =
            self.seeds_of(choice).filter_map(|model| measured.of(model.score(task, length)?)).collect();
        SeedMean::of(&values)
    }

    /// The mean over seeds of the mean over the lengths that were learnt, or over the others.
    pub fn over(&self, choice: &CellChoice, task: &str, learnt: bool, measured: Measured) -> Option<SeedMean> {
        let values: Vec<f64> = self
            .seeds_of(choice)
            .filter_map(|model| {
                let all: Vec<f64> = model
                    .scores
                    .iter()
                    .filter(|score| score.task == task && score.learnt == learnt)
                    .filter_map(|score| measured.of(score))
                    .collect();
                (!all.is_empty()).then(|| all.iter().sum::<f64>() / all.len() as f64)
            })
            .collect();
        SeedMean::of(&values)
    }
}

impl ModelResult {
    /// A task at a length.
    pub fn score(&self, task: &str, length: usize) -> Option<&LengthScore> {
        self.scores.iter().find(|score| score.task == task && score.length == length)
    }

    /// Lengths of a task, those that were learnt or the others, ascending.
    pub fn lengths(&self, task: &str, learnt: bool) -> Vec<usize> {
        let own = |score: &&LengthScore| score.task == task && score.learnt == learnt;
        let mut all: Vec<usize> = self.scores.iter().filter(own).map(|score| score.length).collect();
        all.sort_unstable();
        all
    }
}

fn model(cell: &GridCell, folder: &Path, found: Evaluation) -> Result<ModelResult, ExperimentError> {
    let batch = cell.settings.batch;
    let (mut seconds, mut course) = (0.0, Vec::new());
    for event in events(folder)? {
        match event {
            TrainEvent::Step { seconds: took, .. } => seconds += took,
            TrainEvent::Validated(found) => course.push(CoursePoint {
                seen: found.step * batch as u64,
                loss: round(found.loss),
                exact: found
                    .cells
                    .into_iter()
                    .map(|cell| CourseScore {
                        exact_match: cell.exact as f64 / cell.questions.max(1) as f64,
                        task: cell.task,
                        length: cell.length,
                    })
                    .collect(),
            }),
            TrainEvent::Saved { .. } => {}
        }
    }
    let path = folder.join("config.json");
    let damaged = |problem: String| ExperimentError::Folder { path: path.clone(), problem };
    let text = std::fs::read_to_string(&path).map_err(|error| damaged(error.to_string()))?;
    let config: serde_json::Value = serde_json::from_str(&text).map_err(|error| damaged(error.to_string()))?;
    let vocabulary = config["vocab_size"].as_u64().ok_or_else(|| damaged("it has no vocab_size".into()))?;
    Ok(ModelResult {
        choice: cell.choice.clone(),
        seed: cell.seed,
        grids: cell.grids.clone(),
        then: cell.settings.then.clone(),
        parameters: cell.settings.size.parameters(),
        vocabulary: vocabulary as usize,
        used_tokens: found.used_tokens,
        width: cell.settings.size.hidden,
        steps: cell.settings.steps,
        batch,
        seconds: seconds.round(),
        scores: found.scores,
        course,
    })
}

/// Five decimals are more than a loss is reproducible to on another machine.
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
        let found = one.minus(&other).unwrap();
        assert!((found.low + 0.147_613_273).abs() < 1e-8 && (found.high - 0.947_613_273).abs() < 1e-8, "{found:?}");
        assert_eq!(one.minus(&SeedMean::of(&[0.5]).unwrap()), None);
        let floor = SeedMean::of(&[0.0, 0.0]).unwrap();
        assert_eq!(floor.minus(&floor), Some(Interval { estimate: 0.0, low: 0.0, high: 0.0 }));
    }
}
