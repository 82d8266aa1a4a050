//! Samples as columns for the page's script.
use std::collections::HashMap;

use serde::Serialize;

use super::ReportRun;
use super::figures::heats;
use super::run::{RIGHT, latency, outcome};
use crate::plot::number;
use earnest_tasks::suite::registry::task_label;

/// Length in characters beyond which completions are shortened in the middle.
const LONGEST: usize = 6_000;

/// Interned strings.
#[derive(Debug, Default, Serialize)]
struct Words {
    words: Vec<String>,
    #[serde(skip)]
    indices: HashMap<String, usize>,
}

impl Words {
    fn index(&mut self, word: &str) -> usize {
        if let Some(index) = self.indices.get(word) {
            return *index;
        }
        self.words.push(word.to_owned());
        self.indices.insert(word.to_owned(), self.words.len() - 1);
        self.words.len() - 1
    }
}

/// Columns of the list of samples, with one value per sample.
#[derive(Debug, Default, Serialize)]
struct Rows {
    runs: Vec<String>,
    tasks: Words,
    task_labels: Vec<String>,
    outcomes: Words,
    /// Covariates that the columns of heat maps are, each with a value: `length=3`.
    covariates: Words,
    items: Words,
    scorers: Words,
    run: Vec<usize>,
    task: Vec<usize>,
    /// Index of the covariate, -1 where a sample has none.
    covariate: Vec<i64>,
    item: Vec<usize>,
    sample: Vec<u32>,
    outcome: Vec<usize>,
    tokens: Vec<usize>,
    /// Milliseconds of prefill and decoding; -1 for failed samples, whose text is the failure message.
    ms: Vec<i64>,
    truncated: Vec<u8>,
    /// Bit set of the scorers by which the sample is correct.
    matched: Vec<u64>,
}

/// A text or a placeholder for one.
#[derive(Debug, Serialize)]
#[serde(untagged)]
enum Text {
    Words(String),
    /// An extracted answer that equals the expected one.
    Gold(u8),
    Nothing,
}

/// Returns columns and texts as JSON. Samples are ordered by cluster, item and run, and the texts are one list in that order
/// (question and expected answer at the first sample of an item, then each sample's answer or message and the extracted answer),
/// so that similar texts are within the 32 KiB window of deflate.
pub fn data(runs: &[ReportRun]) -> (String, String) {
    let mut order: Vec<(usize, usize)> = Vec::new();
    for (run, one) in runs.iter().enumerate() {
        order.extend((0..one.samples.len()).map(|sample| (run, sample)));
    }
    let row = |&(run, sample): &(usize, usize)| (&runs[run].samples[sample], run, sample);
    order.sort_by(|a, b| {
        let ((one, run, sample), (other, other_run, other_sample)) = (row(a), row(b));
        (&one.cluster, &one.item, run, sample).cmp(&(&other.cluster, &other.item, other_run, other_sample))
    });
    let mut rows = Rows { runs: runs.iter().map(|run| run.label.clone()).collect(), ..Rows::default() };
    let mut texts: Vec<Text> = Vec::new();
    let mut items = 0;
    // Tasks, the values of covariates and the outcome `right` come first, in the order in which they are shown.
    for task in runs.iter().flat_map(ReportRun::tasks) {
        rows.tasks.index(task);
    }
    let covariates: Vec<Option<String>> = runs.iter().map(|run| columns(run, &mut rows.covariates)).collect();
    rows.outcomes.index(RIGHT);
    for at in &order {
        let (sample, run, _) = row(at);
        let suite = &runs[run].document.manifest.settings.suite;
        // Suites and runs with other options can have other questions or answers under the same id.
        let question = runs[run].questions.get(&sample.item).unwrap_or_default();
        let item = rows.items.index(&format!("{suite}\n{}\n{}\n{question}", sample.item, sample.gold));
        if item == items {
            items += 1;
            texts.push(Text::Words(question.to_owned()));
            texts.push(Text::Words(sample.gold.clone()));
        }
        rows.run.push(run);
        rows.task.push(rows.tasks.index(&sample.task));
        let covariate =
            covariates[run].as_ref().and_then(|name| Some(of_covariate(name, sample.covariates.get(name)?)));
        rows.covariate.push(covariate.map_or(-1, |value| rows.covariates.index(&value) as i64));
        rows.item.push(item);
        rows.sample.push(sample.sample);
        let word = outcome(sample).to_owned();
        rows.outcome.push(rows.outcomes.index(&word));
        rows.tokens.push(sample.completion.as_ref().map_or(0, |completion| completion.tokens()));
        rows.ms.push(latency(sample).map_or(-1, |seconds| (seconds * 1000.0).round() as i64));
        rows.truncated.push(u8::from(sample.truncated()));
        let mut bits = 0u64;
        for (name, passed) in sample.score.iter().flat_map(|score| score.scorers.iter()) {
            let bit = rows.scorers.index(name);
            // JavaScript's integers are exact up to 2^53.
            if passed && bit < 53 {
                bits |= 1 << bit;
            }
        }
        rows.matched.push(bits);
        let answer = match (&sample.completion, &sample.failure) {
            (Some(_), _) => cut(&sample.completion_text()),
            (None, Some(failure)) => failure.message.clone(),
            (None, None) => String::new(),
        };
        texts.push(Text::Words(answer));
        texts.push(match sample.score.as_ref().and_then(|score| score.answer.as_ref()) {
            Some(extracted) if *extracted == sample.gold => Text::Gold(1),
            Some(extracted) => Text::Words(extracted.clone()),
            None => Text::Nothing,
        });
    }
    rows.task_labels = rows.tasks.words.iter().map(|task| task_label(task).into_owned()).collect();
    for name in &mut rows.items.words {
        // Only the id is shown.
        *name = name.split('\n').nth(1).unwrap_or_default().to_owned();
    }
    (json(&rows), json(&texts))
}

/// The covariate of a run by which its samples are found; adds the values that are columns of its heat map.
fn columns(run: &ReportRun, known: &mut Words) -> Option<String> {
    let first = heats(run).into_iter().next();
    let Some(name) = first.as_ref().and_then(|map| map.covariate.clone()) else {
        return run.samples.iter().any(|sample| sample.covariates.contains_key("length")).then(|| "length".to_owned());
    };
    for column in first.iter().flat_map(|map| &map.panels).flat_map(|panel| &panel.columns) {
        known.index(&format!("{name}={column}"));
    }
    Some(name)
}

/// A value of a covariate as the columns of heat maps write it.
fn of_covariate(name: &str, value: &serde_json::Value) -> String {
    let text = value.as_f64().map(number).or_else(|| value.as_str().map(str::to_owned));
    format!("{name}={}", text.unwrap_or_else(|| value.to_string()))
}

fn json(value: &impl Serialize) -> String {
    serde_json::to_string(value).expect("columns have string keys only, so they serialise")
}

/// Shortens a very long text in the middle.
pub(super) fn cut(text: &str) -> String {
    let count = text.chars().count();
    if count <= LONGEST {
        return text.to_owned();
    }
    let half = LONGEST / 2;
    let begin: String = text.chars().take(half).collect();
    let end: String = text.chars().skip(count - half).collect();
    format!("{begin}\n[… {} characters left out of the report; the stored sample has them …]\n{end}", count - 2 * half)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn very_long_texts_say_what_is_left_out() {
        assert_eq!(cut("short"), "short");
        let long = cut(&"é".repeat(LONGEST + 10));
        assert!(long.contains("[… 10 characters left out") && long.ends_with('é'));
    }
}
