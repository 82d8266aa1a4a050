//! Stored runs of the suite, summarised in the shape of the paper's tables.
use earnest_tasks::{counted, the_first};
use serde::Serialize;

#[cfg(feature = "train")]
use super::defence::DefenceTables;
use super::tables::{ComparedTable, compared_tables};
use crate::COMPARISON_FORMAT;
use crate::dnc::published::{CAVEATS, PublishedTable, Recomputed, table_12, tables};
use earnest_results::{Manifest, Sample, Status};
use earnest_tasks::suite::dnc::{Mode, Numbers, Options, Scorer, Target, own_scorer, summarise_samples};
use earnest_tasks::suite::{Budget, Interval, Item, Score, Scored, Segments, Summary, SummaryRow};

const PAPER: &str =
    "Towards Robust Numerical Question Answering: Diagnosing Numerical Capabilities of NLP Systems (EMNLP 2022)";

/// A run to compare with the paper.
#[derive(Debug, Clone)]
pub struct EvaluatedRun {
    manifest: Manifest,
    rows: Vec<(Item, Score, usize, bool)>,
    /// Samples without a completion, which are excluded from accuracies.
    failed: usize,
}

impl EvaluatedRun {
    /// A run without rows yet; see [`EvaluatedRun::add`].
    pub fn new(manifest: Manifest) -> Self {
        EvaluatedRun { manifest, rows: Vec::new(), failed: 0 }
    }

    /// Adds a sample. Its row describes the question well enough that the data are not read again.
    pub fn add(&mut self, sample: &Sample) {
        let Some(score) = &sample.score else {
            self.failed += 1;
            return;
        };
        let item = Item {
            id: sample.item.clone(),
            task: sample.task.clone(),
            cluster: sample.cluster.clone(),
            covariates: sample.covariates.clone(),
            segments: Segments::default(),
            gold: sample.gold.clone(),
            budget: Budget { answer: sample.budget, thinking: sample.budget },
            stop_strings: Vec::new(),
            keep_stop: false,
            continuations: Vec::new(),
        };
        let tokens = sample.completion.as_ref().map_or(0, |completion| completion.tokens());
        self.rows.push((item, score.clone(), tokens, sample.truncated()));
    }
}

/// Comparison of the paper with stored runs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct DncComparison {
    /// Version of the form.
    pub format: u32,
    pub paper: &'static str,
    pub published: Vec<PublishedTable>,
    /// Table 12, from Tables 3 and 10.
    pub table_12: Vec<Recomputed>,
    pub runs: Vec<RunUsed>,
    /// Our values and the published ones, with their differences.
    pub compared: Vec<ComparedTable>,
    /// Results of runs without a published counterpart.
    pub ours: Vec<RunTable>,
    /// The trained defence, the Defense rows of Tables 3, 9 and 10.
    #[cfg(feature = "train")]
    pub defence: DefenceTables,
    /// Published results that no run can reproduce.
    pub missing: Vec<Missing>,
    pub caveats: Vec<String>,
}

/// A run that was compared with the paper.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RunUsed {
    pub run: String,
    pub model: String,
    /// Reasons for its numbers not being comparable with the paper's, as predicates of the run.
    pub limits: Vec<String>,
}

/// A part of the paper without a counterpart in runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Missing {
    pub what: &'static str,
    pub why: &'static str,
}

/// Numbers of a run without a published counterpart; accuracies and changes are fractions.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RunTable {
    pub title: String,
    pub run: String,
    pub model: String,
    pub columns: Vec<String>,
    pub rows: Vec<RunRow>,
}

/// Row of a [`RunTable`].
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RunRow {
    pub name: String,
    /// Number of pairs behind it.
    pub n: usize,
    pub values: Vec<Option<Interval>>,
}

/// Compares runs and an experiment of the trained defence with the paper.
pub fn compare(runs: &[EvaluatedRun], #[cfg(feature = "train")] defence: DefenceTables) -> DncComparison {
    let mut comparison = DncComparison {
        format: COMPARISON_FORMAT,
        paper: PAPER,
        published: tables().to_vec(),
        table_12: table_12(),
        runs: Vec::new(),
        compared: Vec::new(),
        ours: Vec::new(),
        #[cfg(feature = "train")]
        defence,
        missing: vec![
            Missing { what: "Tables 7 and 8", why: "they vary the learning rate and batch size of a training" },
            Missing {
                what: "DROP-num and TATQA-a columns, unless a run evaluates those data sets",
                why: "the setting `dataset = drop-num` and the setting `dataset = tatqa-a` read them from your own copies",
            },
        ],
        caveats: CAVEATS.iter().map(|caveat| caveat.split_whitespace().collect::<Vec<_>>().join(" ")).collect(),
    };
    for run in runs {
        add(&mut comparison, run);
    }
    comparison
}

fn add(comparison: &mut DncComparison, run: &EvaluatedRun) {
    let (name, model) = (run.manifest.run.clone(), run.manifest.model.name.clone());
    let settings = &run.manifest.settings;
    // The paper uses the data set's own scorer, whatever the run's deciding one was.
    let options = match serde_json::from_value::<Options>(settings.suite_options.clone()) {
        Ok(options) => Options { scorer: Scorer::Own, ..options },
        Err(error) => {
            let limits = vec![format!("is not shown: its options were written by another version ({error})")];
            comparison.runs.push(RunUsed { run: name, model, limits });
            return;
        }
    };
    let own = |item: &Item, score: &Score| {
        let named = item.covariates.get("target").and_then(serde_json::Value::as_str);
        let target = options.targets.iter().find(|target| Some(target.name()) == named);
        target.and_then(|target| score.by_scorer(own_scorer(options.dataset, *target))).unwrap_or_else(|| score.clone())
    };
    let scores: Vec<Score> = run.rows.iter().map(|(item, score, ..)| own(item, score)).collect();
    let rows = run.rows.iter().zip(&scores);
    let scored: Vec<Scored<'_>> = rows
        .map(|((item, _, tokens, truncated), score)| Scored { item, score, tokens: *tokens, truncated: *truncated })
        .collect();
    let summary = summarise_samples(&options, &scored);
    comparison.compared.extend(compared_tables(&options, &summary, &name, &model));
    for &target in &options.targets {
        let defended: Vec<RunRow> = options
            .kinds
            .iter()
            .flat_map(|kind| ["defence", "cost"].map(|word| row_name(&options, &format!("{kind}, {word}"), target)))
            .filter_map(|row| find(&summary, &row, &["delta"]))
            .collect();
        if !defended.is_empty() {
            comparison.ours.push(RunTable {
                title: format!(
                    "In no table: in-context defence minus attack, and its cost ({}, {target})",
                    options.dataset.title()
                ),
                run: name.clone(),
                model: model.clone(),
                columns: vec!["delta".to_owned()],
                rows: defended,
            });
        }
    }
    comparison.runs.push(RunUsed { run: name, model, limits: limits(run, &options) });
}

/// A row's name in a summary: with the target where there are several.
pub(super) fn row_name(options: &Options, row: &str, target: Target) -> String {
    if options.targets.len() > 1 { format!("{row}, {target}") } else { row.to_owned() }
}

pub(super) fn find(summary: &Summary, name: &str, columns: &[&str]) -> Option<RunRow> {
    let row = summary.rows.iter().find(|row| row.name == name)?;
    let values = columns.iter().map(|column| value(row, column)).collect();
    Some(RunRow { name: name.to_owned(), n: row.n, values })
}

/// A column of a row: a value, or three numbers in per cent.
fn value(row: &SummaryRow, column: &str) -> Option<Interval> {
    if let Some((_, value)) = row.values.iter().find(|(name, _)| name == column) {
        return Some(*value);
    }
    let number = |name: &str| row.numbers.iter().find(|(other, _)| other == name).map(|(_, number)| number / 100.0);
    Some(Interval {
        estimate: number(column)?,
        low: number(&format!("{column}, from"))?,
        high: number(&format!("{column}, to"))?,
    })
}

fn limits(run: &EvaluatedRun, options: &Options) -> Vec<String> {
    let mut limits = vec!["evaluates a pretrained model instead of one trained on the data".to_owned()];
    if options.mode == Mode::Fixed {
        limits.push("uses the corrected perturbations, on eligible questions only".to_owned());
    }
    if options.numbers == Numbers::Replace {
        limits.push("masks numbers in digits and in words (Table 6), each with its own name; MWPToolkit, which the paper used, gives equal values \
             one symbol, splits `one hundred and two` at `and` and masks `2nd` and fractions too; \
             perturbations that change only the notation of numbers are left out".to_owned());
    }
    if options.splits != [earnest_tasks::suite::dnc::Split::Test] {
        limits.push("does not use the test split alone".to_owned());
    }
    if let Some(limit) = run.manifest.settings.limit {
        limits.push(format!("was limited to {}", the_first(limit, "item")));
    }
    if run.manifest.status != Status::Finished {
        limits.push("is not finished".to_owned());
    }
    if run.failed > 0 {
        limits.push(format!("has {} without an answer", counted(run.failed, "sample")));
    }
    limits
}
