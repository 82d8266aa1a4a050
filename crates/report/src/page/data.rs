//! Samples as columns for the page's script.
use std::collections::{BTreeSet, HashMap, HashSet};

use serde::Serialize;

use super::ReportRun;
use super::figures::heats;
use super::run::{RIGHT, latency, outcome};
use crate::Comparison;
use crate::marks::{Piece, PieceKind, one_line, pieces, readings, shared};
use crate::plot::number;
use earnest_results::{Sample, suites};
use earnest_tasks::suite::registry::{samples_of_row, task_label};

/// Length in characters beyond which parts of completions are shortened in the middle.
const LONGEST: usize = 6_000;

/// Kind of thinking among the marks: no scorer is called so.
const THINKING: &str = "\u{1}thinking";

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

    fn indices_of<'a>(&mut self, words: impl IntoIterator<Item = &'a str>) -> Vec<usize> {
        words.into_iter().map(|word| self.index(word)).collect()
    }
}

/// Columns of the list of samples, with one value per sample.
#[derive(Debug, Default, Serialize)]
struct Rows {
    runs: Vec<String>,
    tasks: Words,
    task_labels: Vec<String>,
    /// Of each task the characters at the beginning and at the end of a question, on one line, that all of its questions share.
    shared: Vec<[usize; 2]>,
    outcomes: Words,
    /// Covariates that the columns of heat maps are, each with a value: `length=3`.
    covariates: Words,
    items: Words,
    scorers: Words,
    /// Scorers of each run, and those of them that decide.
    scored: Vec<Vec<usize>>,
    decide: Vec<Vec<usize>>,
    /// Kinds of parts of an answer: nothing to say, thinking, and the scorers that read it.
    marks: Words,
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
    /// Parts of the answer, each with its length (in UTF-16 code units, as scripts count) and the index of its kind; empty for a single
    /// part of which there is nothing to say.
    parts: Vec<Vec<usize>>,
    flips: Vec<Flips>,
}

/// Items that one of two runs has right and the other wrong: rows of their first samples, of that run and of the other.
#[derive(Debug, Serialize)]
struct Flips {
    right: usize,
    wrong: usize,
    /// Words between the names of the two runs: `right, ... wrong` of single answers, else that one has more.
    more: Option<&'static str>,
    rows: Vec<[usize; 2]>,
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
pub fn data(runs: &[ReportRun], comparisons: &[Comparison]) -> (String, String) {
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
    rows.marks.index("");
    rows.marks.index(THINKING);
    let chosen: Vec<Vec<String>> = runs.iter().map(|run| suites::chosen(&run.document.manifest.settings)).collect();
    let mut of_item: HashMap<(usize, &str), Vec<usize>> = HashMap::new();
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
        of_item.entry((run, &sample.item)).or_default().push(rows.run.len());
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
        let (answer, parts) = answer(sample, &runs[run], &chosen[run], &mut rows.marks);
        texts.push(Text::Words(answer));
        rows.parts.push(parts);
        texts.push(match sample.score.as_ref().and_then(|score| score.answer.as_ref()) {
            Some(extracted) if *extracted == sample.gold => Text::Gold(1),
            Some(extracted) => Text::Words(extracted.clone()),
            None => Text::Nothing,
        });
    }
    rows.task_labels = rows.tasks.words.iter().map(|task| task_label(task).into_owned()).collect();
    rows.shared = shared_by_task(runs, &rows.tasks.words);
    rows.decide = chosen.iter().map(|names| names.iter().map(|name| rows.scorers.index(name)).collect()).collect();
    rows.scored = runs.iter().map(|run| rows.scorers.indices_of(scorers(run))).collect();
    rows.flips = flips(runs, comparisons, |run, item, is_right| {
        let mine = of_item.get(&(run, item))?;
        // Of several samples one with the outcome, if there is one.
        mine.iter().find(|row| (rows.outcome[**row] == 0) == is_right).or(mine.first()).copied()
    });
    for name in &mut rows.items.words {
        // Only the id is shown.
        *name = name.split('\n').nth(1).unwrap_or_default().to_owned();
    }
    (json(&rows), json(&texts))
}

/// The answer of a sample, or why there is none, and its parts. Long parts are shortened each by itself, so that no thinking hides the
/// answer behind it.
fn answer(sample: &Sample, run: &ReportRun, chosen: &[String], marks: &mut Words) -> (String, Vec<usize>) {
    let (text, found) = match (&sample.completion, &sample.failure) {
        (Some(_), _) if sample.likelihoods().is_some() => (cut(&sample.completion_text()), Vec::new()),
        (Some(_), _) => {
            let text = sample.completion_text();
            let found = pieces(&text, run.document.manifest.opened_thinking(), &readings(sample, chosen));
            let found = found.into_iter().map(|piece| Piece { text: cut(&piece.text), ..piece });
            let found: Vec<Piece> = found.collect();
            (found.iter().map(|piece| piece.text.as_str()).collect(), found)
        }
        (None, Some(failure)) => (failure.message.clone(), Vec::new()),
        (None, None) => (String::new(), Vec::new()),
    };
    let mut kind = |piece: &Piece| match piece.scorers.as_slice() {
        [] => marks.index(if piece.kind == PieceKind::Thinking { THINKING } else { "" }),
        scorers => marks.index(&scorers.join(", ")),
    };
    let parts: Vec<usize> = found.iter().flat_map(|piece| [piece.text.encode_utf16().count(), kind(piece)]).collect();
    let is_plain = parts.chunks(2).all(|part| part[1] == 0);
    (text, if is_plain { Vec::new() } else { parts })
}

/// Of each task what its questions share, in UTF-16 code units.
fn shared_by_task(runs: &[ReportRun], tasks: &[String]) -> Vec<[usize; 2]> {
    let mut questions: HashMap<&str, Vec<String>> = HashMap::new();
    let mut known: HashSet<(&str, &str)> = HashSet::new();
    for run in runs {
        for sample in &run.samples {
            let question = run.questions.get(&sample.item).unwrap_or_default();
            if known.insert((&sample.task, question)) {
                questions.entry(&sample.task).or_default().push(one_line(question));
            }
        }
    }
    let of_task = |task: &String| {
        let questions: Vec<&str> = questions.get(task.as_str()).into_iter().flatten().map(String::as_str).collect();
        let (start, end) = shared(&questions);
        let units = |part: &str| part.encode_utf16().count();
        questions.first().map_or([0, 0], |one| [units(&one[..start]), units(&one[one.len() - end..])])
    };
    tasks.iter().map(of_task).collect()
}

/// Names of the scorers of a run.
fn scorers(run: &ReportRun) -> BTreeSet<&str> {
    let scores = run.samples.iter().filter_map(|sample| sample.score.as_ref());
    scores.flat_map(|score| score.scorers.iter().map(|(name, _)| name)).collect()
}

/// Flips of every comparison as rows, those that the run has right first; items without samples are left out. `row` is that of a run's sample of
/// an item, one that is right or not if there is one.
fn flips(
    runs: &[ReportRun],
    comparisons: &[Comparison],
    row: impl Fn(usize, &str, bool) -> Option<usize>,
) -> Vec<Flips> {
    let index = |label: &str| runs.iter().position(|run| run.label == label);
    let pairs = comparisons.iter().filter_map(|one| Some((one, index(&one.baseline)?, index(&one.run)?)));
    let both = pairs.flat_map(|(one, base, run)| {
        let row = &row;
        [(run, base), (base, run)].map(|(right, wrong)| {
            let mine = one.flips.iter().filter(|flip| (flip.run > flip.baseline) == (right == run));
            let rows = mine.filter_map(|flip| {
                let [of_base, of_run] = flip.ids();
                let id = |run| if run == base { of_base } else { of_run };
                Some([row(right, id(right), true)?, row(wrong, id(wrong), false)?])
            });
            Flips { right, wrong, more: one.more(), rows: rows.collect() }
        })
    });
    both.filter(|flips| !flips.rows.is_empty()).collect()
}

/// The covariate of a run by which its samples are found: that of its heat map's columns, else that of the parts of tasks in its summary, else
/// the length.
pub(super) fn covariate(run: &ReportRun) -> Option<String> {
    let settings = &run.document.manifest.settings;
    let of_columns = heats(run).into_iter().next().and_then(|map| map.covariate);
    let of_rows = || {
        let mut rows = run.document.summary.rows.iter();
        rows.find_map(|row| samples_of_row(&settings.suite, &settings.suite_options, &row.name)?.covariate)
    };
    let length = || run.samples.iter().any(|sample| sample.covariates.contains_key("length")).then_some("length");
    of_columns.or_else(|| of_rows().map(|(name, _)| name).or_else(length).map(str::to_owned))
}

/// Adds the values of the covariate that are columns of the run's heat map, in their order, and returns its name.
fn columns(run: &ReportRun, known: &mut Words) -> Option<String> {
    let name = covariate(run)?;
    let map = heats(run).into_iter().next().filter(|map| map.covariate.is_some());
    for column in map.iter().flat_map(|map| &map.panels).flat_map(|panel| &panel.columns) {
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
