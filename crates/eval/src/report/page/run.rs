//! A run as the report sees it.
use std::collections::{BTreeMap, HashMap};

use crate::report::Document;
use crate::report::question::Question;
use crate::run::{Manifest, Sample};
use earnest_stats::clustered_mean;
use earnest_tasks::suite::{FailureClass, Interval, Item, Suite};

/// A run with its rows, its summary and its questions.
#[derive(Debug, Clone)]
pub struct ReportRun {
    /// The model's name, made unique among the runs of the report.
    pub label: String,
    pub document: Document,
    pub samples: Vec<Sample>,
    pub questions: QuestionTexts,
}

/// Questions by item, without the chat template.
#[derive(Debug, Clone, Default)]
pub struct QuestionTexts {
    asked: HashMap<String, String>,
    /// Those that prompts show with placeholders, with their numbers.
    unmasked: HashMap<String, String>,
}

impl QuestionTexts {
    /// Adds the question of an item.
    pub fn add(&mut self, item: Item) {
        self.unmasked.extend(item.segments.unmasked.map(|text| (item.id.clone(), text)));
        self.asked.insert(item.id, item.segments.question);
    }

    /// Question of an item as it was asked.
    pub fn get(&self, item: &str) -> Option<&str> {
        self.asked.get(item).map(String::as_str)
    }

    /// Question of an item with its numbers.
    pub fn content(&self, item: &str) -> Option<&str> {
        self.unmasked.get(item).map(String::as_str).or_else(|| self.get(item))
    }
}

impl ReportRun {
    /// Joins rows with the suite that asked them.
    pub fn new(folder: &str, manifest: Manifest, suite: &dyn Suite, samples: Vec<Sample>) -> Self {
        let plan = manifest.plan();
        let label = manifest.model.name.clone();
        let mut questions = QuestionTexts::default();
        suite.items().take(plan.limit.unwrap_or(usize::MAX)).for_each(|item| questions.add(item));
        let document = Document::new(folder, manifest, suite, plan, &samples);
        ReportRun { label, document, samples, questions }
    }

    /// A stored run with its results and its questions by item.
    pub fn stored(document: Document, samples: Vec<Sample>, questions: QuestionTexts) -> Self {
        ReportRun { label: document.manifest.model.name.clone(), document, samples, questions }
    }

    /// Makes labels unique: a model that occurs twice gets the first digits of its settings' hash, or a number.
    pub fn distinguish(runs: &mut [ReportRun]) {
        let mut names: HashMap<String, usize> = HashMap::new();
        for run in runs.iter() {
            *names.entry(run.label.clone()).or_default() += 1;
        }
        let mut taken: HashMap<String, usize> = HashMap::new();
        for run in runs {
            if names.get(&run.label).is_some_and(|count| *count > 1) {
                let hash: String = run.document.manifest.settings_sha256.chars().take(6).collect();
                run.label = format!("{} ({hash})", run.label);
            }
            let times = taken.entry(run.label.clone()).or_default();
            *times += 1;
            if *times > 1 {
                run.label = format!("{} #{times}", run.label);
            }
        }
    }

    /// The run's tasks in the order of its rows' plan.
    pub fn tasks(&self) -> Vec<&str> {
        let mut tasks: Vec<&str> = Vec::new();
        for sample in &self.samples {
            if !tasks.contains(&sample.task.as_str()) {
                tasks.push(&sample.task);
            }
        }
        tasks
    }

    /// How many samples of each task end how: correct, then by reason; rows without a completion are `no answer`.
    pub fn outcomes(&self) -> BTreeMap<&str, BTreeMap<&str, usize>> {
        let mut outcomes: BTreeMap<&str, BTreeMap<&str, usize>> = BTreeMap::new();
        for sample in &self.samples {
            *outcomes.entry(&sample.task).or_default().entry(outcome(sample)).or_default() += 1;
        }
        outcomes
    }
}

/// How a sample ended, in plain words.
pub(super) fn outcome(sample: &Sample) -> &str {
    match &sample.score {
        None => "no answer",
        Some(score) if score.correct => "correct",
        Some(score) => score.failure.as_ref().map_or("wrong", plain),
    }
}

/// A failure class in words for readers of a page.
fn plain(class: &FailureClass) -> &str {
    match class {
        FailureClass::Echo => "operands repeated",
        FailureClass::Format => "right digits, wrong form",
        FailureClass::Sign => "wrong sign",
        FailureClass::Truncated => "cut by the budget",
        FailureClass::EmptyResponse => "empty response",
        FailureClass::EmptyAfterTrim => "blank response",
        FailureClass::NoNumber => "no number",
        FailureClass::WrongLastNumber => "wrong last number",
        FailureClass::NameError => "name error",
        FailureClass::TypeValueError => "type or value error",
        FailureClass::SyntaxError => "syntax error",
        FailureClass::AttributeError => "attribute error",
        FailureClass::ZeroDivisionError => "division by zero",
        FailureClass::NoneReturned => "nothing returned",
        FailureClass::NotANumber => "not a number",
        FailureClass::TimeLimit => "time limit",
        FailureClass::MemoryLimit => "memory limit",
        other => other.as_str(),
    }
}

/// Seconds from the first prompt token to the last generated one.
pub(super) fn latency(sample: &Sample) -> Option<f64> {
    sample.completion.as_ref().map(|completion| completion.timings.prefill_s + completion.timings.decode_s)
}

/// A paired difference of one task, or under `all` of all of them.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Paired {
    pub(super) task: String,
    pub(super) clusters: usize,
    /// With bounds that are infinite where no error can be estimated: fewer than two clusters, or differences that are all
    /// alike.
    pub(super) value: Interval,
}

impl Paired {
    /// True if there is an error.
    pub(super) fn has_error(&self) -> bool {
        self.value.low.is_finite() && self.value.high.is_finite()
    }
}

/// The mean difference `run - base` over the items that both answered, by task and together, with a 95 % interval from the
/// cluster-robust error of the differences.
pub(super) fn paired(base: &ReportRun, run: &ReportRun) -> Vec<Paired> {
    type Means<'a> = BTreeMap<&'a str, (&'a Sample, f64, f64)>;
    fn means(run: &ReportRun) -> Means<'_> {
        let mut means: Means<'_> = BTreeMap::new();
        for sample in &run.samples {
            if let Some(score) = &sample.score {
                let entry = means.entry(&sample.item).or_insert((sample, 0.0, 0.0));
                entry.1 += f64::from(score.correct);
                entry.2 += 1.0;
            }
        }
        means
    }
    let (theirs, ours) = (means(base), means(run));
    let same = base.document.manifest.settings.suite == run.document.manifest.settings.suite;
    let mut differences: BTreeMap<&str, Vec<(&str, f64)>> = BTreeMap::new();
    for (item, (sample, correct, n)) in &ours {
        // An id names a question only within a suite and its options; the expected answer and the question's own words tell.
        let alike = |other: &Sample| match (asked(base, other), asked(run, sample)) {
            (Some(one), Some(two)) => one.is(&two),
            _ => true,
        };
        let Some((other, other_correct, other_n)) =
            theirs.get(item).filter(|(other, ..)| same && other.gold == sample.gold && alike(other))
        else {
            continue;
        };
        let difference = correct / n - other_correct / other_n;
        differences.entry(&other.task).or_default().push((&sample.cluster, difference));
    }
    let order = base.tasks();
    let mut found: Vec<Paired> = Vec::new();
    for task in order {
        found.extend(differences.get(task).and_then(|values| mean_difference(task, values)));
    }
    let all: Vec<(&str, f64)> = differences.into_values().flatten().collect();
    found.extend(mean_difference("all", &all));
    found
}

/// What a sample asked.
fn asked(run: &ReportRun, sample: &Sample) -> Option<Question> {
    let text = || run.questions.content(&sample.item).map(|text| Question::Text(text.trim().to_owned()));
    Question::of_operands(&sample.covariates).or_else(text)
}

/// As `compare` has it: Student's t with the clusters' degrees of freedom.
fn mean_difference(task: &str, values: &[(&str, f64)]) -> Option<Paired> {
    if values.is_empty() {
        return None;
    }
    let mut known: HashMap<&str, u64> = HashMap::new();
    let mut clusters = Vec::with_capacity(values.len());
    for (cluster, _) in values {
        let next = known.len() as u64;
        clusters.push(*known.entry(cluster).or_insert(next));
    }
    let differences: Vec<f64> = values.iter().map(|(_, difference)| *difference).collect();
    let estimate = differences.iter().sum::<f64>() / differences.len() as f64;
    let (low, high) = match clustered_mean(&differences, &clusters) {
        Ok(mean) if mean.standard_error > 0.0 => {
            let (low, high) = mean.interval(0.95);
            (low.max(-1.0), high.min(1.0))
        }
        _ => (f64::NEG_INFINITY, f64::INFINITY),
    };
    Some(Paired { task: task.to_owned(), clusters: known.len(), value: Interval { estimate, low, high } })
}
