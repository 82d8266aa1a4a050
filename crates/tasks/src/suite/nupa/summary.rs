//! Result tables: task by length range for every metric (figure 2), digit limits (Tables 7 to 9), curves by length
//! (figures 5 to 7). Range averages and the published digit limits use the lengths that the reference tests, so that
//! they compare with the paper; curves and the contiguous limits use every length.
use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::Deref;

use crate::suite::{Interval, Missing, Score, Scored, Series, Summary, SummaryRow};
use earnest_stats::{self as stats, Z95};

use super::aggregate::{DigitLimit, LengthRange, LimitRule, MetricName, Record, digit_limit};
use super::{NupaOptions, Scorer, TaskId};

/// A scored answer, as far as summaries need it: small, so that a whole evaluation fits into memory.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ScoredAnswer {
    pub task: TaskId,
    /// Digits of the question.
    pub length: usize,
    /// The question, by a hash of its operands; samples of one question are not independent.
    question: u64,
    /// At the indices of [`Scorer`]; none of a scorer that was not there when the answer was scored.
    records: [Option<Record>; Scorer::ALL.len()],
    /// The deciding scorer found no answer.
    empty: bool,
    truncated: bool,
    tokens: usize,
}

impl ScoredAnswer {
    /// Reads what is stored of a sample; none where that is no answer to a question of this suite.
    ///
    /// # Errors
    /// [`Missing`] if the score lacks a metric of a scorer that it has: the row is damaged.
    pub fn new(
        task: &str,
        covariates: &BTreeMap<String, serde_json::Value>,
        score: &Score,
        tokens: usize,
        truncated: bool,
    ) -> Result<Option<Self>, Missing> {
        let length = covariates.get("length").and_then(|length| usize::try_from(length.as_u64()?).ok());
        let (Some(task), Some(length)) = (TaskId::find(task), length) else { return Ok(None) };
        let mut records = [None; Scorer::ALL.len()];
        for (record, scorer) in records.iter_mut().zip(Scorer::ALL) {
            let name = scorer.name();
            let Some(exact) = score.scorers.get(name) else { continue };
            *record = Some(Record {
                length,
                exact_match: f64::from(exact),
                digit_match: score.metric(&format!("{name}_digit_match"))?,
                dlength: score.metric(&format!("{name}_dlength"))?,
            });
        }
        let mut question = DefaultHasher::new();
        task.hash(&mut question);
        for operand in ["a", "b"] {
            covariates.get(operand).and_then(|value| value.as_str()).hash(&mut question);
        }
        let question = question.finish();
        let empty = score.metric("empty")? == 1.0;
        Ok(Some(ScoredAnswer { task, length, question, records, empty, truncated, tokens }))
    }
}

/// A scored sample under the deciding scorer.
#[derive(Debug, Clone, Copy)]
struct Sampled {
    record: Record,
    /// [`ScoredAnswer::question`].
    question: u64,
}

impl Deref for Sampled {
    type Target = Record;

    fn deref(&self) -> &Record {
        &self.record
    }
}

/// One task's scored samples.
struct TaskRecords {
    task: TaskId,
    records: Vec<Sampled>,
    /// Question and exact match (0 or 1) of each sample by every scorer.
    exact: BTreeMap<&'static str, Vec<(u64, f64)>>,
    truncated: usize,
    empty: usize,
    tokens: usize,
}

pub(super) fn summarise(options: &NupaOptions, samples: &[Scored<'_>]) -> Summary {
    let (mut answers, mut damaged) = (Vec::new(), Vec::new());
    for sample in samples {
        let item = sample.item;
        match ScoredAnswer::new(&item.task, &item.covariates, sample.score, sample.tokens, sample.truncated) {
            Ok(answer) => answers.extend(answer),
            Err(missing) => damaged.push((item, missing)),
        }
    }
    let mut summary = summarise_answers(options, answers);
    if let [(item, missing), ..] = &damaged[..] {
        let count = damaged.len();
        summary
            .notes
            .push(format!("{count} damaged scores are left out; the first is that of {}: {missing}.", item.id));
    }
    summary
}

/// Tables and curves of scored answers by the scorer of the options, whatever the scorer they were asked with.
pub fn summarise_answers(options: &NupaOptions, answers: impl IntoIterator<Item = ScoredAnswer>) -> Summary {
    let tasks = collect(options, answers);
    let mut rows: Vec<SummaryRow> = tasks.iter().map(task_row).collect();
    rows.push(all_row(&tasks));
    let series = tasks.iter().flat_map(curves).collect();
    Summary { rows, series, notes: notes(&tasks) }
}

fn collect(options: &NupaOptions, answers: impl IntoIterator<Item = ScoredAnswer>) -> Vec<TaskRecords> {
    // Tasks appear in the order of the options; a task that was imported without being selected comes last.
    let mut tasks: BTreeMap<(usize, String), TaskRecords> = BTreeMap::new();
    let mut keys: BTreeMap<TaskId, (usize, String)> = BTreeMap::new();
    for answer in answers {
        let Some(record) = answer.records[options.scorer as usize] else { continue };
        let task = answer.task;
        let key = keys.entry(task).or_insert_with(|| {
            let index = options.tasks.iter().position(|&selected| selected == task).unwrap_or(usize::MAX);
            (index, task.to_string())
        });
        let entry = tasks.entry(key.clone()).or_insert_with(|| TaskRecords {
            task,
            records: Vec::new(),
            exact: BTreeMap::new(),
            truncated: 0,
            empty: 0,
            tokens: 0,
        });
        entry.records.push(Sampled { record, question: answer.question });
        for scorer in Scorer::ALL {
            if let Some(record) = answer.records[scorer as usize] {
                entry.exact.entry(scorer.name()).or_default().push((answer.question, record.exact_match));
            }
        }
        entry.truncated += usize::from(answer.truncated);
        entry.empty += usize::from(answer.empty);
        entry.tokens += answer.tokens;
    }
    tasks.into_values().collect()
}

/// Mean and interval of a metric. Several samples of a question count for what they are worth together.
fn estimate(metric: MetricName, records: &[Sampled]) -> Interval {
    let values: Vec<f64> = records.iter().map(|record| record.value(metric)).collect();
    let questions: Vec<u64> = records.iter().map(|record| record.question).collect();
    match metric {
        MetricName::Dlength => length_difference(&values, &questions, records),
        // Wilson's interval also holds, conservatively, for the mean of values between 0 and 1, whose variance never
        // exceeds a proportion's.
        _ => bounds(stats::clustered_wilson(&values, &questions, Z95)),
    }
}

/// The mean difference in length with Student's interval over questions, cut at 0. Values that are all alike have no spread to
/// estimate an error from; then the bounds are those of the share of other answers (none of `n` questions, by Wilson), each
/// taken to be off by its question's whole length, as an empty answer is.
fn length_difference(values: &[f64], questions: &[u64], records: &[Sampled]) -> Interval {
    let estimate = values.iter().sum::<f64>() / values.len() as f64;
    let Ok(found) = stats::clustered_mean(values, questions) else {
        return if values.is_empty() {
            Interval::UNKNOWN
        } else {
            Interval { estimate, low: 0.0, high: f64::INFINITY }
        };
    };
    let (low, high) = if found.standard_error > 0.0 {
        found.interval(0.95)
    } else {
        let others = stats::wilson(0.0, found.clusters as f64, Z95).map_or(1.0, |share| share.high);
        let length = records.iter().map(|record| record.length as f64).sum::<f64>() / values.len() as f64;
        let reach = others * length.max(estimate);
        (estimate - reach, estimate + reach)
    };
    Interval { estimate, low: low.max(0.0), high }
}

fn bounds(estimate: Option<stats::Estimate>) -> Interval {
    estimate.map_or(Interval::UNKNOWN, |found| Interval { estimate: found.value, low: found.low, high: found.high })
}

/// The range S together with the lengths in it that the reference omits; only S has such lengths.
pub(super) const SHORT: &str = "S with omitted lengths";

fn range_of(task: TaskId, record: &Record) -> Option<LengthRange> {
    LengthRange::of(record.length, task.longest())
}

fn by_length(records: &[Sampled]) -> BTreeMap<usize, Vec<Sampled>> {
    let mut lengths: BTreeMap<usize, Vec<Sampled>> = BTreeMap::new();
    for record in records {
        lengths.entry(record.length).or_default().push(*record);
    }
    lengths
}

fn task_row(task: &TaskRecords) -> SummaryRow {
    let longest = task.task.longest();
    let compared: Vec<Sampled> =
        task.records.iter().copied().filter(|record| task.task.in_reference_range(record.length)).collect();
    let lengths = by_length(&task.records);
    let mut values = Vec::new();
    let mut numbers = Vec::new();
    for metric in MetricName::ALL {
        values.push((metric.name().to_string(), estimate(metric, &task.records)));
        for range in LengthRange::ALL {
            let inside: Vec<Sampled> = compared
                .iter()
                .copied()
                .filter(|record| LengthRange::of(record.length, longest) == Some(range))
                .collect();
            if inside.is_empty() {
                continue;
            }
            values.push((format!("{} {}", metric.name(), range.name()), estimate(metric, &inside)));
            if metric == MetricName::ExactMatch {
                numbers.push((format!("n {}", range.name()), inside.len() as f64));
            }
            let means = by_length(&inside);
            let total: f64 = means.values().map(|records| estimate(metric, records).estimate).sum();
            numbers.push((format!("{} {} macro", metric.name(), range.name()), total / means.len() as f64));
        }
        let short: Vec<Sampled> =
            task.records.iter().copied().filter(|record| range_of(task.task, record) == Some(LengthRange::S)).collect();
        if short.iter().any(|record| !task.task.in_reference_range(record.length)) {
            values.push((format!("{} {SHORT}", metric.name()), estimate(metric, &short)));
            if metric == MetricName::ExactMatch {
                numbers.push((format!("n {SHORT}"), short.len() as f64));
            }
        }
        for (domain, in_domain) in [("in-domain", true), ("out-of-domain", false)] {
            let inside: Vec<Sampled> = compared
                .iter()
                .copied()
                .filter(|record| {
                    LengthRange::of(record.length, longest).is_some_and(|range| range.is_in_domain() == in_domain)
                })
                .collect();
            if !inside.is_empty() {
                values.push((format!("{} {domain}", metric.name()), estimate(metric, &inside)));
            }
        }
        for limit in DigitLimit::ALL {
            for (rule, label) in [(LimitRule::Published, "published"), (LimitRule::Contiguous, "contiguous")] {
                let used: Vec<(usize, Interval)> = lengths
                    .iter()
                    .filter(|(length, _)| rule == LimitRule::Contiguous || task.task.in_reference_range(**length))
                    .map(|(&length, records)| (length, estimate(metric, records)))
                    .collect();
                let name = format!("{} {} {label}", metric.name(), limit.name());
                values.push((name, limit_interval(metric, limit, rule, &used)));
            }
        }
    }
    for (scorer, exact) in &task.exact {
        let (questions, exact): (Vec<u64>, Vec<f64>) = exact.iter().copied().unzip();
        values.push((format!("exact_match {scorer}"), bounds(stats::clustered_wilson(&exact, &questions, Z95))));
    }
    let n = task.records.len() as f64;
    numbers.push(("empty".into(), task.empty as f64 / n));
    numbers.push(("truncated".into(), task.truncated as f64 / n));
    numbers.push(("tokens".into(), task.tokens as f64 / n));
    SummaryRow { name: task.task.to_string(), n: task.records.len(), values, numbers }
}

/// A digit limit, and the limits if every length's mean were at the unfavourable or the favourable end of its interval.
fn limit_interval(metric: MetricName, limit: DigitLimit, rule: LimitRule, lengths: &[(usize, Interval)]) -> Interval {
    let at = |mean: fn(&Interval) -> f64| {
        let means: Vec<(usize, f64)> = lengths.iter().map(|(length, interval)| (*length, mean(interval))).collect();
        digit_limit(metric, limit, rule, &means) as f64
    };
    let (one, other) = (at(|interval| interval.low), at(|interval| interval.high));
    Interval { estimate: at(|interval| interval.estimate), low: one.min(other), high: one.max(other) }
}

/// All tasks together, every question with the same weight; ranges include the lengths that the reference omits.
fn all_row(tasks: &[TaskRecords]) -> SummaryRow {
    let records: Vec<(TaskId, Sampled)> =
        tasks.iter().flat_map(|task| task.records.iter().map(|record| (task.task, *record))).collect();
    let n = records.len();
    let mut values = Vec::new();
    let mut numbers = Vec::new();
    if n == 0 {
        return SummaryRow { name: "all".into(), n, values, numbers };
    }
    for metric in MetricName::ALL {
        let everything: Vec<Sampled> = records.iter().map(|(_, record)| *record).collect();
        values.push((metric.name().to_string(), estimate(metric, &everything)));
        for range in LengthRange::ALL {
            let inside = records.iter().filter(|(task, record)| range_of(*task, record) == Some(range));
            let inside: Vec<Sampled> = inside.map(|(_, record)| *record).collect();
            if !inside.is_empty() {
                let name = if range == LengthRange::S { SHORT } else { range.name() };
                values.push((format!("{} {name}", metric.name()), estimate(metric, &inside)));
                if metric == MetricName::ExactMatch {
                    numbers.push((format!("n {name}"), inside.len() as f64));
                }
            }
        }
    }
    let macro_mean = tasks.iter().map(|task| estimate(MetricName::ExactMatch, &task.records).estimate).sum::<f64>()
        / tasks.len() as f64;
    let share = |count: usize| count as f64 / n as f64;
    numbers.push(("exact_match macro".to_string(), macro_mean));
    numbers.push(("empty".to_string(), share(tasks.iter().map(|task| task.empty).sum())));
    numbers.push(("truncated".to_string(), share(tasks.iter().map(|task| task.truncated).sum())));
    SummaryRow { name: "all".into(), n, values, numbers }
}

fn curves(task: &TaskRecords) -> Vec<Series> {
    let lengths = by_length(&task.records);
    MetricName::ALL
        .into_iter()
        .map(|metric| Series {
            name: format!("{} by length", metric.name()),
            task: task.task.to_string(),
            points: lengths
                .iter()
                .map(|(&length, records)| (length as f64, records.len(), estimate(metric, records)))
                .collect(),
        })
        .collect()
}

fn notes(tasks: &[TaskRecords]) -> Vec<String> {
    let mut notes = Vec::new();
    let n: usize = tasks.iter().map(|task| task.records.len()).sum();
    if n > 0 {
        notes.push("S, M, L, XL: up to 4, 8, 14, 20 digits, or 10, 20, 60, 100 for the tasks that reach 100.".into());
    }
    let guessed = |name: &str| tasks.iter().any(|task| task.task.operation.title().starts_with(name));
    let operands = guessed("max") || guessed("min");
    let chance = match (operands, guessed("get_digit")) {
        (true, true) => {
            "repeating one operand is right in half of max and min questions, any digit in a tenth of get_digit's"
        }
        (true, false) => "repeating one operand is right in half of max and min questions",
        (false, true) => "any digit is right in a tenth of get_digit's questions",
        (false, false) => "",
    };
    if !chance.is_empty() {
        notes.push(format!("Chance: {chance}."));
    }
    if n > 0 {
        let omitted =
            |task: &TaskRecords| task.records.iter().any(|record| !task.task.in_reference_range(record.length));
        if tasks.iter().any(omitted) {
            notes.push(
                "S includes the lengths that the authors' test omits (the setting `lengths = reference` leaves them out).".into(),
            );
        }
        notes.push("Curves by length and digit limits by both definitions are in the JSON document.".into());
    }
    notes
}

#[cfg(test)]
mod tests {
    use super::super::{Lengths, NupaSuite};
    use super::*;
    use crate::suite::{Answered, Item, Items, Scoring};

    fn summary_of(answer: impl Fn(&Item) -> String) -> Summary {
        let suite = NupaSuite::new(NupaOptions {
            tasks: vec!["add_Integer".parse().unwrap(), "max_Float".parse().unwrap()],
            lengths: Lengths::Chosen(vec![1, 2, 3, 6, 12, 20]),
            per_length: 20,
            ..NupaOptions::default()
        })
        .unwrap();
        let items: Vec<Item> = suite.iter().collect();
        let scores: Vec<Score> = items
            .iter()
            .map(|item| suite.score(item, &Answered { completion: &answer(item), truncated: false }))
            .collect();
        let scored: Vec<Scored<'_>> = items
            .iter()
            .zip(&scores)
            .map(|(item, score)| Scored { item, score, tokens: 5, truncated: false })
            .collect();
        suite.summarise(&scored)
    }

    fn value(row: &SummaryRow, name: &str) -> Interval {
        row.values.iter().find(|(column, _)| column == name).unwrap_or_else(|| panic!("no {name}")).1
    }

    #[test]
    fn a_perfect_responder() {
        let summary = summary_of(|item| format!(" {}", item.gold));
        assert_eq!(summary.rows.len(), 3);
        let add = &summary.rows[0];
        for column in ["exact_match", "exact_match S", "exact_match XL", "digit_match M", "exact_match ref"] {
            assert_eq!(value(add, column).estimate, 1.0, "{column}");
        }
        assert_eq!(value(add, "exact_match well_learned published").estimate, 20.0);
        assert_eq!(value(add, "dlength well_learned contiguous").estimate, 20.0);
        assert_eq!(value(add, "exact_match well_learned contiguous").low, 0.0);
        // Twenty answers of the right length do not prove that the next one has it too.
        let difference = value(add, "dlength XL");
        assert_eq!((difference.estimate, difference.low), (0.0, 0.0));
        assert!((1.0..10.0).contains(&difference.high), "{difference:?}");
        assert_eq!(summary.series.len(), 6);
        assert_eq!(summary.series[0].points.len(), 6);
    }

    #[test]
    fn short_lengths_stay_out_of_published_columns() {
        let summary =
            summary_of(
                |item| {
                    if item.covariates["length"].as_u64() < Some(3) { item.gold.clone() } else { String::new() }
                },
            );
        let add = &summary.rows[0];
        assert_eq!(value(add, "exact_match S").estimate, 0.0);
        assert_eq!(value(add, "exact_match well_learned published").estimate, 0.0);
        assert_eq!(value(add, "exact_match well_learned contiguous").estimate, 2.0);
        assert!(value(add, "exact_match").estimate > 0.0);
    }

    #[test]
    fn a_score_without_its_metric_is_left_out_and_named() {
        let suite =
            NupaSuite::new(NupaOptions { tasks: vec!["add_Integer".parse().unwrap()], ..NupaOptions::default() })
                .unwrap();
        let items: Vec<Item> = suite.iter().take(2).collect();
        let score = |item: &Item| suite.score(item, &Answered { completion: &item.gold, truncated: false });
        let mut scores = [score(&items[0]), score(&items[1])];
        scores[1].metrics.remove("strict_digit_match");
        let scored = items.iter().zip(&scores).map(|(item, score)| Scored { item, score, tokens: 5, truncated: false });
        let summary = suite.summarise(&scored.collect::<Vec<_>>());
        assert_eq!((summary.rows[0].n, value(&summary.rows[0], "digit_match").estimate), (1, 1.0));
        let note = summary.notes.last().unwrap();
        assert!(note.contains(&items[1].id) && note.contains("no metric `strict_digit_match`"), "{note}");
    }

    #[test]
    fn nothing_at_all() {
        let suite = NupaSuite::new(NupaOptions::default()).unwrap();
        let summary = suite.summarise(&[]);
        assert_eq!((summary.rows.len(), summary.rows[0].n), (1, 0));
        assert!(summary.rows[0].values.is_empty());
    }
}
