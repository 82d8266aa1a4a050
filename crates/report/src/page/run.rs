//! Runs of a report.
use earnest_results::{Document, Manifest, Origin, Sample, StoredRun, own_labels};
use std::collections::{BTreeMap, HashMap};

use crate::ReportError;
use earnest_tasks::suite::{FailureClass, Item, Suite};

/// A run with its rows, its summary and its questions.
#[derive(Debug, Clone)]
pub struct ReportRun {
    /// Model name, unique among the runs of the report.
    pub label: String,
    pub document: Document,
    pub samples: Vec<Sample>,
    pub questions: QuestionTexts,
}

/// Questions by item, without examples and chat template.
#[derive(Debug, Clone, Default)]
pub struct QuestionTexts {
    asked: HashMap<String, String>,
    /// Unmasked questions, where prompts hide the numbers.
    unmasked: HashMap<String, String>,
}

impl QuestionTexts {
    /// The questions of a stored run, without the chat template.
    pub fn of(run: &StoredRun) -> Result<Self, ReportError> {
        let mut questions = QuestionTexts::default();
        run.each_item(|item| questions.add(item))?;
        Ok(questions)
    }

    /// Adds the question of an item.
    pub fn add(&mut self, item: Item) {
        self.unmasked.extend(item.segments.unmasked.map(|text| (item.id.clone(), text)));
        self.asked.insert(item.id, item.segments.question);
    }

    /// Returns the question of an item as asked.
    pub fn get(&self, item: &str) -> Option<&str> {
        self.asked.get(item).map(String::as_str)
    }

    /// Returns the question of an item with its numbers.
    pub fn content(&self, item: &str) -> Option<&str> {
        self.unmasked.get(item).map(String::as_str).or_else(|| self.get(item))
    }
}

impl ReportRun {
    /// Reads a stored run.
    ///
    /// # Errors
    /// If the run has no samples.
    pub fn of(run: &StoredRun) -> Result<Self, ReportError> {
        let samples = run.samples()?;
        if samples.is_empty() {
            let message = format!("{} has no samples yet: there is nothing to report", run.place);
            return Err(ReportError::results(message).hint("continue the run with the command that began it"));
        }
        Ok(ReportRun::stored(run.document()?, samples, QuestionTexts::of(run)?))
    }

    /// Creates a run from rows and their suite.
    pub fn new(folder: &str, manifest: Manifest, suite: &Suite, samples: Vec<Sample>) -> Self {
        let plan = manifest.plan();
        let label = manifest.model.name.clone();
        let mut questions = QuestionTexts::default();
        suite.items.iter().take(plan.limit.unwrap_or(usize::MAX)).for_each(|item| questions.add(item));
        let document = Document::new(folder, manifest, suite, plan, &samples);
        ReportRun { label, document, samples, questions }
    }

    /// Creates a run from a stored document, its rows and its questions.
    pub fn stored(document: Document, samples: Vec<Sample>, questions: QuestionTexts) -> Self {
        ReportRun { label: document.manifest.model.name.clone(), document, samples, questions }
    }

    /// Makes labels unique: by the settings in which runs of one model differ, else by when they began, or a number.
    pub fn distinguish(runs: &mut [ReportRun]) {
        let own = own_labels(&runs.iter().map(|run| &run.document.manifest).collect::<Vec<_>>());
        for (run, own) in runs.iter_mut().zip(own).filter(|(_, own)| !own.is_empty()) {
            run.label = format!("{} ({own})", run.label);
        }
        let mut taken: HashMap<String, usize> = HashMap::new();
        for run in runs {
            let times = taken.entry(run.label.clone()).or_default();
            *times += 1;
            if *times > 1 {
                run.label = format!("{} #{times}", run.label);
            }
        }
    }

    /// Returns the tasks in the order of the rows.
    pub fn tasks(&self) -> Vec<&str> {
        let mut tasks: Vec<&str> = Vec::new();
        for sample in &self.samples {
            if !tasks.contains(&sample.task.as_str()) {
                tasks.push(&sample.task);
            }
        }
        tasks
    }

    /// Origin of the run's answers.
    pub(super) fn origin(&self) -> Origin {
        self.document.manifest.settings.origin()
    }

    /// Returns the number of samples by task and outcome.
    pub fn outcomes(&self) -> BTreeMap<&str, BTreeMap<&str, usize>> {
        let mut outcomes: BTreeMap<&str, BTreeMap<&str, usize>> = BTreeMap::new();
        for sample in &self.samples {
            *outcomes.entry(&sample.task).or_default().entry(outcome(sample)).or_default() += 1;
        }
        outcomes
    }
}

/// Outcome of a right answer.
pub(super) const RIGHT: &str = "right";

/// Returns the outcome of a sample in plain words.
pub(super) fn outcome(sample: &Sample) -> &str {
    match &sample.score {
        None => "no answer",
        Some(score) if score.correct => RIGHT,
        Some(score) => score.failure.as_ref().map_or("wrong", FailureClass::words),
    }
}

/// Returns the latency: seconds from the first prompt token to the last generated one.
pub(super) fn latency(sample: &Sample) -> Option<f64> {
    sample.completion.as_ref().map(|completion| completion.timings.prefill_s + completion.timings.decode_s)
}
