//! Cost of a study before it runs.
use serde::Serialize;

use super::execute::Sessions;
use super::outcome::Scope;
use super::{PlannedRun, StudyPlan};
use crate::EvalError;
use crate::evaluate::{Past, Survey};
use earnest_results::{Rate, Reporter, folder};

/// Cost of a study.
#[derive(Debug, Serialize)]
pub struct Estimate {
    pub study: String,
    /// In the order of the plan.
    pub runs: Vec<RunEstimate>,
    /// Sums over the runs.
    pub samples: usize,
    pub prompt_tokens: f64,
    pub new_tokens: f64,
    /// True if new tokens, and with them the seconds, are a limit for some run.
    pub at_most: bool,
    /// Seconds without loading; none if the rate of some model is unknown.
    pub seconds: Option<f64>,
    /// Sentences on the form of the prompts; see [`StudyPlan::notes`].
    pub notes: Vec<String>,
}

/// Cost of what is left of a run.
#[derive(Debug, Serialize)]
pub struct RunEstimate {
    #[serde(skip)]
    pub planned: PlannedRun,
    pub model: String,
    pub task: String,
    pub prompt: String,
    /// Stored run with these settings, which is continued or used.
    pub run: Option<String>,
    /// Samples in all, and those without a row.
    pub samples: usize,
    pub left: usize,
    /// Tokens of the prompts that are left.
    pub prompt_tokens: f64,
    /// True if prompt tokens are estimated from bytes.
    pub prompt_tokens_estimated: bool,
    /// New tokens of the samples that are left: as in earlier runs of the model, else the limit.
    pub new_tokens: f64,
    pub at_most: bool,
    pub rate: Option<Rate>,
    pub seconds: Option<f64>,
    /// Reason why the run cannot be made as things are.
    pub problem: Option<String>,
}

impl RunEstimate {
    /// A run of which nothing is known yet.
    fn blank(plan: &StudyPlan, planned: PlannedRun) -> Self {
        RunEstimate {
            planned,
            model: plan.model(planned).name.clone(),
            task: plan.task(planned).name.clone(),
            prompt: plan.prompts(planned).to_string(),
            run: None,
            samples: 0,
            left: 0,
            prompt_tokens: 0.0,
            prompt_tokens_estimated: false,
            new_tokens: 0.0,
            at_most: false,
            rate: None,
            seconds: None,
            problem: None,
        }
    }
}

impl Estimate {
    /// Estimates the cost of a plan: prompts are rendered and counted, lengths of answers and rates are those of the model's earlier
    /// runs on this machine. Opens all models, loads none.
    ///
    /// # Errors
    /// If the results cannot be read, or two runs of the study are one.
    pub fn new(plan: &StudyPlan, sessions: &mut Sessions, reporter: &mut dyn Reporter) -> Result<Self, EvalError> {
        let folder = &plan.settings.results;
        let store = if folder::has_results(folder)? { Some(folder::open(folder)?) } else { None };
        let mut past = Past::new(store.as_ref())?;
        // An endpoint that is down is not asked for each of its runs.
        let mut failed: Option<(usize, String)> = None;
        let mut hashes: Vec<(String, PlannedRun)> = Vec::new();
        let mut runs = Vec::new();
        for (index, &planned) in plan.runs.iter().enumerate() {
            // Runs are by model.
            if index > 0 && plan.runs[index - 1].model != planned.model {
                sessions.close_beyond(plan.runs[index - 1].model);
            }
            let blank = RunEstimate::blank(plan, planned);
            if let Some((_, problem)) = failed.as_ref().filter(|(model, _)| *model == planned.model) {
                runs.push(RunEstimate { problem: Some(problem.clone()), ..blank });
                continue;
            }
            let surveyed = plan.evaluation(planned).and_then(|settings| {
                sessions.of(plan, planned, &settings, reporter)?.survey(&settings, store.as_ref(), reporter)
            });
            let survey = match surveyed {
                Ok(survey) => survey,
                Err(error) => {
                    let problem = error.to_string();
                    match Scope::of(&error) {
                        Scope::Study => return Err(error),
                        Scope::Model => failed = Some((planned.model, problem.clone())),
                        Scope::Run => {}
                    }
                    runs.push(RunEstimate { problem: Some(problem), ..blank });
                    continue;
                }
            };
            let hash = survey.settings.sha256();
            if let Some((_, other)) = hashes.iter().find(|(other, _)| *other == hash) {
                let message = format!(
                    "{} and {} are the same run: same model files, weights, prompts and questions",
                    plan.label(*other),
                    plan.label(planned)
                );
                return Err(EvalError::setting(message).hint("leave one of them out of the study"));
            }
            hashes.push((hash, planned));
            let (new_tokens, at_most) = match past.new_tokens(&survey.settings)? {
                Some(mean) => (mean.min(survey.most_new_tokens), false),
                None => (survey.most_new_tokens, survey.most_new_tokens > 0.0),
            };
            let rate = past.rate(&survey.settings)?;
            let Survey { run, planned: samples, settled, prompt_tokens, counted, .. } = survey;
            let left = samples.saturating_sub(settled);
            runs.push(RunEstimate {
                run,
                samples,
                left,
                prompt_tokens: prompt_tokens * left as f64,
                prompt_tokens_estimated: !counted,
                new_tokens: new_tokens * left as f64,
                at_most: at_most && left > 0,
                rate,
                ..blank
            });
        }
        let mut estimate = Estimate {
            study: plan.definition.name.clone(),
            runs,
            samples: 0,
            prompt_tokens: 0.0,
            new_tokens: 0.0,
            at_most: false,
            seconds: None,
            notes: plan.notes.clone(),
        };
        estimate.sum();
        Ok(estimate)
    }

    /// Models with unfinished runs whose rate is unknown, each with its first such run.
    pub fn without_rate(&self) -> Vec<PlannedRun> {
        let mut found: Vec<PlannedRun> = Vec::new();
        for run in self.runs.iter().filter(|run| run.left > 0 && run.rate.is_none() && run.problem.is_none()) {
            if !found.iter().any(|other| other.model == run.planned.model) {
                found.push(run.planned);
            }
        }
        found
    }

    pub fn set_rate(&mut self, model: usize, rate: &Rate) {
        self.runs.iter_mut().filter(|run| run.planned.model == model).for_each(|run| run.rate = Some(rate.clone()));
        self.sum();
    }

    fn sum(&mut self) {
        for run in &mut self.runs {
            let rate = run.rate.as_ref();
            run.seconds = match run.left {
                0 if run.problem.is_none() => Some(0.0),
                0 => None,
                _ => rate.map(|rate| 3600.0 * rate.hours(run.prompt_tokens as usize, run.new_tokens as usize)),
            };
        }
        let able = || self.runs.iter().filter(|run| run.problem.is_none());
        self.samples = able().map(|run| run.left).sum();
        // The sum of nothing is -0.0.
        self.prompt_tokens = able().map(|run| run.prompt_tokens).sum::<f64>() + 0.0;
        self.new_tokens = able().map(|run| run.new_tokens).sum::<f64>() + 0.0;
        self.at_most = able().any(|run| run.at_most);
        self.seconds = able().map(|run| run.seconds).sum::<Option<f64>>().map(|seconds| seconds + 0.0);
    }
}
