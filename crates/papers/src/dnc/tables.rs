//! Comparison of a run with the published tables, by perturbation and system.
use serde::Serialize;

use super::run::{find, row_name};
use crate::dnc::published::{PublishedTable, tables};
use earnest_tasks::suite::dnc::{Dataset, Kind, Numbers, Options, Target};
use earnest_tasks::suite::{Interval, Summary};

/// Comparison of a run with a published table by one metric. Accuracies and changes are fractions.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ComparedTable {
    pub table: u8,
    pub title: String,
    pub run: String,
    pub model: String,
    /// The paper's metric, and the scorer of ours that is compared with it.
    pub metric: String,
    #[serde(rename = "rule")]
    pub scorer: String,
    pub rows: Vec<ComparedRow>,
}

/// Row of a [`ComparedTable`].
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ComparedRow {
    pub name: String,
    /// Number of pairs behind ours.
    pub n: usize,
    /// Ours on the eligible questions.
    pub ours: Option<Interval>,
    /// Ours over all questions, including those that the perturbation leaves unchanged, as the paper reports it. Without an
    /// interval where it combines two estimates.
    pub over_all: Option<Interval>,
    pub published: Vec<PublishedCell>,
}

/// A published number and the difference of ours from it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PublishedCell {
    pub system: String,
    pub value: Option<f64>,
    /// Ours over all questions minus the published value, without an interval because the paper has none.
    pub difference: Option<f64>,
}

/// Quantity of a table.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Quantity {
    Change,
    Raw,
    Relative,
}

/// All of a run's tables for which the paper has numbers.
pub(super) fn compared_tables(options: &Options, summary: &Summary, run: &str, model: &str) -> Vec<ComparedTable> {
    let mut compared = Vec::new();
    for &target in &options.targets {
        for (metric, scorer) in metrics(options.dataset, target) {
            let view = View { options, summary, target, scorer };
            let mut numbers: Vec<(u8, Quantity)> = match options.numbers {
                Numbers::Token => vec![(3, Quantity::Change), (9, Quantity::Raw), (10, Quantity::Relative)],
                Numbers::Replace => vec![(6, Quantity::Change), (6, Quantity::Raw)],
            };
            if options.numbers == Numbers::Token && options.dataset == Dataset::AsdivA && target.has_equation() {
                numbers.extend([(6, Quantity::Change), (6, Quantity::Raw)]);
                // Tables 7 and 8 vary the training of two systems, by the paper's metric of equations.
                numbers
                    .extend([7, 8].into_iter().filter(|_| metric == "Acc_eq").map(|table| (table, Quantity::Change)));
            }
            for (number, quantity) in numbers {
                let what = match quantity {
                    Quantity::Change => "change under attack, percentage points",
                    Quantity::Raw => "accuracy under attack, per cent",
                    Quantity::Relative => "change relative to the original, per cent",
                };
                let rows = view.rows(number, quantity, metric);
                if !rows.is_empty() {
                    compared.push(ComparedTable {
                        table: number,
                        title: format!("Table {number}: {what} ({}, {target}, {metric})", options.dataset.title()),
                        run: run.to_owned(),
                        model: model.to_owned(),
                        metric: metric.to_owned(),
                        scorer: scorer.to_owned(),
                        rows,
                    });
                }
            }
        }
    }
    compared.extend(targets(options, summary, run, model));
    compared.sort_by_key(|table| table.table);
    compared
}

/// The paper's metrics and the scorers nearest to them; the empty one is the one that decides.
pub(super) fn metrics(dataset: Dataset, target: Target) -> Vec<(&'static str, &'static str)> {
    match (dataset, target) {
        (Dataset::DropNum, _) => vec![("Acc", "drop")],
        (Dataset::TatqaA, _) => vec![("Acc", "")],
        (Dataset::AsdivA, target) if target.has_equation() => vec![("Acc_eq", "acc_eq"), ("Acc_ans", "acc_ans")],
        (Dataset::AsdivA, _) => vec![("Acc_ans", "")],
    }
}

fn published(number: u8) -> Option<&'static PublishedTable> {
    tables().iter().find(|table| table.table == number)
}

/// A run's summary under one target and scorer.
struct View<'a> {
    options: &'a Options,
    summary: &'a Summary,
    target: Target,
    scorer: &'a str,
}

impl View<'_> {
    fn value(&self, row: &str, column: &str) -> Option<(usize, Interval)> {
        let found = find(self.summary, &row_name(self.options, row, self.target), &[column])?;
        Some((found.n, found.values.into_iter().next().flatten()?)).filter(|(_, value)| value.estimate.is_finite())
    }

    /// Name of a column: that of the deciding scorer, or of another one.
    fn column(&self, chosen: &str, other: &str) -> String {
        if self.scorer.is_empty() { chosen.to_owned() } else { format!("{other} {}", self.scorer) }
    }

    /// Accuracy on all the original questions.
    fn original(&self) -> Option<(usize, Interval)> {
        match self.scorer {
            "" => self.value("original", "accuracy"),
            scorer => self.value("original", &format!("original {scorer}")),
        }
    }

    fn change(&self, kind: Kind) -> Option<(usize, Interval)> {
        match self.scorer {
            "" => self.value(kind.name(), "delta"),
            scorer => self.value(kind.name(), &format!("delta {scorer}")),
        }
    }

    /// Share of the questions that a perturbation applies to.
    fn share(&self, kind: Kind) -> Option<f64> {
        let name = row_name(self.options, kind.name(), self.target);
        let row = self.summary.rows.iter().find(|row| row.name == name)?;
        row.numbers.iter().find(|(name, _)| name == "eligible share").map(|(_, share)| share / 100.0)
    }

    fn rows(&self, number: u8, quantity: Quantity, metric: &str) -> Vec<ComparedRow> {
        let original = self.original();
        let mut rows = Vec::new();
        for &kind in &self.options.kinds {
            let (Some((n, change)), Some(share), Some(title)) = (self.change(kind), self.share(kind), kind.title())
            else {
                continue;
            };
            let diluted = change.estimate * share;
            let point = |estimate: f64| Interval { estimate, low: f64::NAN, high: f64::NAN };
            let base = original.map(|(_, original)| original.estimate);
            let (ours, over_all) = match quantity {
                Quantity::Change => {
                    let whole = Interval { estimate: diluted, low: change.low * share, high: change.high * share };
                    (Some(change), Some(whole))
                }
                // Unperturbed questions keep their score.
                Quantity::Raw => (
                    self.value(kind.name(), &self.column("accuracy", "perturbed")).map(|(_, found)| found),
                    base.map(|base| point(base + diluted)),
                ),
                Quantity::Relative => (
                    self.value(kind.name(), &self.column("relative delta", "relative delta")).map(|(_, found)| found),
                    base.filter(|base| *base > 0.0).map(|base| point(diluted / base)),
                ),
            };
            let published = self.cells(number, quantity, metric, title, over_all);
            rows.push(ComparedRow { name: kind.name().to_owned(), n, ours, over_all, published });
        }
        if quantity == Quantity::Raw
            && let Some((n, found)) = original
        {
            let published = self.cells(number, quantity, metric, "Original", Some(found));
            rows.push(ComparedRow { name: "original".into(), n, ours: Some(found), over_all: Some(found), published });
        }
        rows
    }

    /// Cells of a table beside ours: attacked, or by Table 6's treatment of numbers.
    fn cells(
        &self,
        table: u8,
        quantity: Quantity,
        metric: &str,
        title: &str,
        ours: Option<Interval>,
    ) -> Vec<PublishedCell> {
        let setting = match (table, self.options.numbers) {
            (6, Numbers::Replace) => "replace",
            (6, Numbers::Token) => "token",
            (9 | 10 | 3, _) if title == "Original" => "Original",
            _ => "Attack",
        };
        cells(self.options.dataset, &Wanted { table, quantity, metric, setting, title }, ours)
    }
}

/// Row and quantity of a published table.
pub(super) struct Wanted<'a> {
    pub(super) table: u8,
    pub(super) quantity: Quantity,
    pub(super) metric: &'a str,
    /// `Attack`, `Defense` or `Original`; in Table 6 `token` or `replace`.
    pub(super) setting: &'a str,
    /// The perturbation as printed, or `Original`.
    pub(super) title: &'a str,
}

/// Cells of a table's systems on a data set, beside ours.
pub(super) fn cells(dataset: Dataset, wanted: &Wanted<'_>, ours: Option<Interval>) -> Vec<PublishedCell> {
    let Wanted { table: number, quantity, metric, setting, title } = *wanted;
    let Some(table) = published(number) else { return Vec::new() };
    let row = table.rows.iter().find(|row| row.setting == setting && row.name == title);
    let wanted = if number == 6 && quantity == Quantity::Change { format!("d_{metric}") } else { metric.to_owned() };
    let system = |column: &str| -> Option<String> {
        if number == 6 {
            return (column == wanted).then(|| "GPT2".to_owned());
        }
        if let 7 | 8 = number {
            let system = if number == 7 { "Graph2Tree" } else { "T5" };
            return Some(format!("{system}, {column}"));
        }
        column.strip_prefix(dataset.title())?.trim().strip_suffix(&format!(" {wanted}")).map(str::to_owned)
    };
    let columns = table.columns.iter().enumerate();
    columns
        .filter_map(|(index, column)| Some((index, system(column)?)))
        .map(|(index, system)| cell(system, row.and_then(|row| row.values.get(index).copied().flatten()), ours))
        .collect()
}

/// Compares a printed percentage with a fraction.
fn cell(system: String, printed: Option<f64>, ours: Option<Interval>) -> PublishedCell {
    let value = printed.map(|printed| printed / 100.0);
    let difference = value.zip(ours).map(|(value, ours)| ours.estimate - value).filter(|found| found.is_finite());
    PublishedCell { system, value, difference }
}

/// Table 5: accuracy by prediction target, on the original questions.
fn targets(options: &Options, summary: &Summary, run: &str, model: &str) -> Vec<ComparedTable> {
    let (Some(table), Dataset::AsdivA, Numbers::Token) = (published(5), options.dataset, options.numbers) else {
        return Vec::new();
    };
    let mut compared = Vec::new();
    for (index, metric) in table.columns.iter().enumerate() {
        let mut rows = Vec::new();
        for &target in &options.targets {
            let (line, scorer) = match (target, metric.as_str()) {
                (Target::Equation, "Acc_eq") => ("eq", "acc_eq"),
                (Target::Equation, _) => ("eq", "acc_ans"),
                // Both readings of the paper's second target.
                (Target::EquationAnswer | Target::Answer, "Acc_ans") => ("ans", ""),
                _ => continue,
            };
            let Some((n, ours)) = (View { options, summary, target, scorer }).original() else { continue };
            let published = table
                .rows
                .iter()
                .filter(|row| row.name == line)
                .map(|row| cell(row.setting.clone(), row.values.get(index).copied().flatten(), Some(ours)))
                .collect();
            let name = format!("{target} (paper: {line})");
            rows.push(ComparedRow { name, n, ours: Some(ours), over_all: Some(ours), published });
        }
        if !rows.is_empty() {
            compared.push(ComparedTable {
                table: 5,
                title: format!(
                    "Table 5: prediction target, original questions, per cent ({}, {metric})",
                    options.dataset.title()
                ),
                run: run.to_owned(),
                model: model.to_owned(),
                metric: metric.clone(),
                scorer: String::new(),
                rows,
            });
        }
    }
    compared
}
