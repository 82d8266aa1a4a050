//! Runs of a report.
use std::collections::{BTreeMap, HashMap};

use crate::report::question::Question;
use crate::report::{Difference, Document, PairedModel, Scores, compare};
use crate::run::{Manifest, Sample};
use earnest_stats::clustered_mean;
use earnest_tasks::suite::{FailureClass, Interval, Item, Suite};

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
    /// Creates a run from rows and their suite.
    pub fn new(folder: &str, manifest: Manifest, suite: &dyn Suite, samples: Vec<Sample>) -> Self {
        let plan = manifest.plan();
        let label = manifest.model.name.clone();
        let mut questions = QuestionTexts::default();
        suite.items().take(plan.limit.unwrap_or(usize::MAX)).for_each(|item| questions.add(item));
        let document = Document::new(folder, manifest, suite, plan, &samples);
        ReportRun { label, document, samples, questions }
    }

    /// Creates a run from a stored document, its rows and its questions.
    pub fn stored(document: Document, samples: Vec<Sample>, questions: QuestionTexts) -> Self {
        ReportRun { label: document.manifest.model.name.clone(), document, samples, questions }
    }

    /// Makes labels unique by the first digits of the settings' hash, or a number.
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

    /// Returns the number of samples by task and outcome.
    pub fn outcomes(&self) -> BTreeMap<&str, BTreeMap<&str, usize>> {
        let mut outcomes: BTreeMap<&str, BTreeMap<&str, usize>> = BTreeMap::new();
        for sample in &self.samples {
            *outcomes.entry(&sample.task).or_default().entry(outcome(sample)).or_default() += 1;
        }
        outcomes
    }
}

/// Returns the outcome of a sample in plain words.
pub(super) fn outcome(sample: &Sample) -> &str {
    match &sample.score {
        None => "no answer",
        Some(score) if score.correct => "correct",
        Some(score) => score.failure.as_ref().map_or("wrong", plain),
    }
}

/// Returns a failure class in plain words.
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

/// Returns the latency: seconds from the first prompt token to the last generated one.
pub(super) fn latency(sample: &Sample) -> Option<f64> {
    sample.completion.as_ref().map(|completion| completion.timings.prefill_s + completion.timings.decode_s)
}

/// Paired difference of a task, or of all tasks under `all`.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Paired {
    pub(super) task: String,
    pub(super) clusters: usize,
    /// Difference with a 95 % interval; infinite bounds without a standard error (fewer than two clusters, or equal differences).
    pub(super) value: Interval,
}

impl Paired {
    /// True if a standard error could be estimated.
    pub(super) fn has_error(&self) -> bool {
        self.value.low.is_finite() && self.value.high.is_finite()
    }
}

/// Returns the mean differences `run - base` over the items that both answered, by task and overall, with cluster-robust 95 %
/// intervals.
pub(super) fn paired(base: &ReportRun, run: &ReportRun) -> Vec<Paired> {
    if [base, run].iter().any(|run| run.document.manifest.settings.is_log()) {
        return paired_logs(base, run);
    }
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
        // Ids are unique only within a suite and its options, so that answer and question are compared too.
        let alike = |other: &Sample| match (asked(base, other), asked(run, sample)) {
            (Some(one), Some(two)) => one.matches(&two),
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
    let mut pairs: Vec<Paired> = Vec::new();
    for task in order {
        pairs.extend(differences.get(task).and_then(|values| mean_difference(task, values)));
    }
    let all: Vec<(&str, f64)> = differences.into_values().flatten().collect();
    pairs.extend(mean_difference("all", &all));
    pairs
}

/// The same where one of the runs is another tool's log: items are paired as `compare` does, by the primary scorer's numbers.
fn paired_logs(base: &ReportRun, run: &ReportRun) -> Vec<Paired> {
    let names = [base.label.clone(), run.label.clone()];
    let scores = [base, run].map(scores);
    let Some(found) = compare(&names, &scores).pop().filter(|found| found.items > 0) else { return Vec::new() };
    let paired = |one: &Difference| Paired {
        task: one.name.clone(),
        clusters: one.clusters,
        value: Interval {
            estimate: one.difference,
            low: one.interval.map_or(f64::NEG_INFINITY, |(low, _)| low),
            high: one.interval.map_or(f64::INFINITY, |(_, high)| high),
        },
    };
    // A run of one task has no rows of tasks; the name of the first run's stands for it.
    let mut only = found.overall.clone();
    only.name = base.tasks().first().map_or("all", |task| task).to_owned();
    let tasks = if found.tasks.is_empty() { std::slice::from_ref(&only) } else { &found.tasks };
    tasks.iter().chain([&found.overall]).map(paired).collect()
}

/// Returns the mixed model of all answers to the items of both runs.
pub(super) fn paired_model(base: &ReportRun, run: &ReportRun) -> Option<PairedModel> {
    let of_logs = [base, run].iter().any(|run| run.document.manifest.settings.is_log());
    if !of_logs && base.document.manifest.settings.suite != run.document.manifest.settings.suite {
        return None;
    }
    compare(&[base.label.clone(), run.label.clone()], &[base, run].map(scores)).pop()?.model
}

fn scores(run: &ReportRun) -> Scores {
    let settings = &run.document.manifest.settings;
    let primary = crate::suites::primary(settings);
    let mut scores = Scores::with_primary(primary.clone());
    if settings.is_log() {
        scores = scores.of_log().by_scorer(primary.into_iter().next());
    }
    run.samples.iter().for_each(|sample| scores.add(sample));
    scores.read_texts(|item| run.questions.content(item));
    scores.normalise_questions();
    scores
}

/// Returns the question of a sample.
fn asked(run: &ReportRun, sample: &Sample) -> Option<Question> {
    let text = || run.questions.content(&sample.item).map(|text| Question::Text(text.trim().to_owned()));
    Question::of_operands(&sample.covariates).or_else(text)
}

/// Returns the mean of clustered differences with Student's t interval, as in `compare`.
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
