//! Attack and trained defence as in Tables 3, 9 and 10, and the differences between them, paired by question.
use earnest_tasks::counted;
use serde::Serialize;

use super::results::{DefenceResults, ModelOutcomes};
use crate::COMPARISON_FORMAT;
use crate::dnc::tables::{ComparedRow, ComparedTable, Quantity, Wanted, cells, metrics};
use earnest_stats::holm;
use earnest_tasks::suite::Interval;
use earnest_tasks::suite::dnc::{Kind, PairedChange, own_scorer, paired_change, relative_change, right_share};

/// The trained defence beside the paper's.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct DefenceTables {
    /// Version of the form.
    pub format: u32,
    pub title: String,
    /// The experiment's folder or file, or its name.
    pub source: String,
    pub model: String,
    /// Trainings, data and prompt, a line each.
    pub settings: Vec<String>,
    /// Models of the experiment that are not finished.
    pub missing: Vec<String>,
    /// Tables 3, 9 and 10, attack and defence.
    pub compared: Vec<ComparedTable>,
    /// Defence against attack, and its cost, by metric and perturbation.
    pub effects: Vec<DefenceEffect>,
}

/// Effect of training on a perturbation. Accuracies and changes are fractions.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct DefenceEffect {
    pub metric: String,
    pub kind: Kind,
    /// Perturbed questions.
    pub questions: usize,
    /// Accuracy of the clean model on perturbed questions, and of the defended one.
    pub attack: Interval,
    pub defence: Interval,
    /// Defence minus attack on the same perturbed questions.
    pub difference: Interval,
    pub p: f64,
    /// Adjusted over the perturbations of the metric.
    pub holm_p: f64,
    /// Smallest difference that so many questions with as many changed outcomes show (80 % power, 5 % level); none if no difference is
    /// detectable.
    pub detectable: Option<f64>,
    /// The defended model minus the clean one on all original questions.
    pub cost: Interval,
    pub cost_p: f64,
}

/// Outcomes of one seed on one question.
struct Row<'a> {
    question: &'a str,
    /// Clean and defended model on the original.
    original: (f64, f64),
    /// Clean and defended model on the perturbed question; none if it is not eligible.
    perturbed: Option<(f64, f64)>,
}

impl Row<'_> {
    /// Clean and defended model on the data set in which every eligible question is perturbed.
    fn all(&self) -> (f64, f64) {
        self.perturbed.unwrap_or(self.original)
    }
}

/// An outcome as a number; unknown without an answer.
fn outcome(letter: u8) -> f64 {
    match letter {
        b'1' => 1.0,
        b'0' => 0.0,
        _ => f64::NAN,
    }
}

/// Rows of all seeds whose clean and defended models are finished.
fn rows<'a>(results: &'a DefenceResults, kind: Kind, metric: &str) -> Vec<Row<'a>> {
    let mut rows = Vec::new();
    for &seed in &results.seeds {
        let model = |kind: Option<Kind>| results.models.iter().find(|model| model.kind == kind && model.seed == seed);
        let (Some(clean), Some(defended)) = (model(None), model(Some(kind))) else { continue };
        let columns = |model: &'a ModelOutcomes| {
            let original = model.original.get(metric)?.as_bytes();
            Some((original, model.perturbed.get(&kind)?.get(metric)?.as_bytes()))
        };
        let (Some(clean), Some(defended)) = (columns(clean), columns(defended)) else { continue };
        rows.extend(results.questions.iter().enumerate().map(|(index, question)| {
            let eligible = clean.1[index] != b'-' && defended.1[index] != b'-';
            Row {
                question: question.as_str(),
                original: (outcome(clean.0[index]), outcome(defended.0[index])),
                perturbed: eligible.then(|| (outcome(clean.1[index]), outcome(defended.1[index]))),
            }
        }));
    }
    rows
}

impl DefenceTables {
    /// Computes the tables.
    pub fn new(results: &DefenceResults, source: &str) -> Self {
        let mut compared = Vec::new();
        let mut effects: Vec<DefenceEffect> = Vec::new();
        for (metric, scorer) in metrics(results.dataset, results.target) {
            let of_kinds: Vec<(Kind, Vec<Row<'_>>)> = results
                .kinds
                .iter()
                .map(|kind| (*kind, rows(results, *kind, metric)))
                .filter(|(_, rows)| rows.iter().any(|row| row.perturbed.is_some()))
                .collect();
            if of_kinds.is_empty() {
                continue;
            }
            for (table, quantity, what) in [
                (3, Quantity::Change, "change against the clean model on the original, percentage points"),
                (9, Quantity::Raw, "accuracy on perturbed questions, per cent"),
                (10, Quantity::Relative, "change relative to the clean model on the original, per cent"),
            ] {
                let scorer = if scorer.is_empty() { own_scorer(results.dataset, results.target) } else { scorer };
                let (dataset, target) = (results.dataset.title(), results.target);
                compared.push(ComparedTable {
                    table,
                    title: format!("Table {table}: {what} ({dataset}, {target}, {metric})"),
                    run: source.to_owned(),
                    model: results.model.clone(),
                    metric: metric.to_owned(),
                    scorer: scorer.to_owned(),
                    rows: table_rows(results, &of_kinds, table, quantity, metric),
                });
            }
            let mut of_metric: Vec<DefenceEffect> =
                of_kinds.iter().map(|(kind, rows)| effect(metric, *kind, rows)).collect();
            let tested: Vec<f64> = of_metric.iter().map(|effect| effect.p).collect();
            let adjusted = holm(&tested).unwrap_or_else(|_| vec![f64::NAN; tested.len()]);
            for (effect, adjusted) in of_metric.iter_mut().zip(adjusted) {
                effect.holm_p = adjusted;
            }
            effects.extend(of_metric);
        }
        compared.sort_by_key(|table| table.table);
        DefenceTables {
            format: COMPARISON_FORMAT,
            title: results.title.clone(),
            source: source.to_owned(),
            model: results.model.clone(),
            settings: settings(results),
            missing: results.missing(),
            compared,
            effects,
        }
    }
}

fn effect(metric: &str, kind: Kind, rows: &[Row<'_>]) -> DefenceEffect {
    let perturbed = || rows.iter().filter_map(|row| Some((row.question, row.perturbed?)));
    let difference: PairedChange =
        paired_change(perturbed().map(|(question, (clean, defended))| (question, clean, defended)));
    let cost = paired_change(rows.iter().map(|row| (row.question, row.original.0, row.original.1)));
    DefenceEffect {
        metric: metric.to_owned(),
        kind,
        questions: difference.questions,
        attack: right_share(perturbed().map(|(question, (clean, _))| (question, clean))),
        defence: right_share(perturbed().map(|(question, (_, defended))| (question, defended))),
        difference: difference.delta,
        p: difference.p,
        holm_p: f64::NAN,
        detectable: difference.detectable.is_finite().then_some(difference.detectable),
        cost: cost.delta,
        cost_p: cost.p,
    }
}

/// Rows of a table: every perturbation under attack and with defence; of accuracies also the clean model's on the original.
fn table_rows(
    results: &DefenceResults,
    of_kinds: &[(Kind, Vec<Row<'_>>)],
    table: u8,
    quantity: Quantity,
    metric: &str,
) -> Vec<ComparedRow> {
    let mut compared = Vec::new();
    for (setting, word, defended) in [("Attack", "attack", false), ("Defense", "defence", true)] {
        for (kind, rows) in of_kinds {
            let Some(title) = kind.title() else { continue };
            let pick = |(clean, trained): (f64, f64)| if defended { trained } else { clean };
            let eligible: Vec<(&str, f64, f64)> = rows
                .iter()
                .filter_map(|row| Some((row.question, row.original.0, pick(row.perturbed?))))
                .filter(|(_, before, after)| before.is_finite() && after.is_finite())
                .collect();
            let all: Vec<(&str, f64, f64)> = rows
                .iter()
                .map(|row| (row.question, row.original.0, pick(row.all())))
                .filter(|(_, before, after)| before.is_finite() && after.is_finite())
                .collect();
            let value = |pairs: &[(&str, f64, f64)]| match quantity {
                Quantity::Change => paired_change(pairs.iter().copied()).delta,
                Quantity::Raw => right_share(pairs.iter().map(|(question, _, after)| (*question, *after))),
                Quantity::Relative => relative_change(pairs.iter().copied()),
            };
            let (ours, over_all) = (value(&eligible), value(&all));
            let known = |interval: Interval| interval.estimate.is_finite().then_some(interval);
            let wanted = Wanted { table, quantity, metric, setting, title };
            compared.push(ComparedRow {
                name: format!("{kind}, {word}"),
                n: eligible.len(),
                ours: known(ours),
                over_all: known(over_all),
                published: cells(results.dataset, &wanted, known(over_all)),
            });
        }
    }
    if quantity == Quantity::Raw {
        let clean = results.models.iter().filter(|model| model.kind.is_none());
        let outcomes: Vec<(&str, f64)> = clean
            .filter_map(|model| model.original.get(metric))
            .flat_map(|letters| results.questions.iter().map(String::as_str).zip(letters.bytes().map(outcome)))
            .filter(|(_, value)| value.is_finite())
            .collect();
        let found = right_share(outcomes.iter().copied());
        let wanted = Wanted { table, quantity, metric, setting: "Original", title: "Original" };
        compared.push(ComparedRow {
            name: "original".to_owned(),
            n: outcomes.len(),
            ours: Some(found),
            over_all: Some(found),
            published: cells(results.dataset, &wanted, Some(found)),
        });
    }
    compared
}

/// The settings for readers.
fn settings(results: &DefenceResults) -> Vec<String> {
    let training = &results.training;
    let splits: Vec<&str> = results.splits.iter().map(|split| split.name()).collect();
    let examples = match results.demonstrations {
        0 => String::new(),
        count => format!(", {} before each", counted(count, "worked example")),
    };
    let mut lines = vec![
        format!(
            "LoRA of rank {} (alpha {}) on {}, {} steps of {} examples, learning rate {}",
            training.rank,
            training.alpha,
            training.targets.join(", "),
            training.steps,
            training.batch,
            training.learning_rate
        ),
        format!(
            "{} questions of {} ({}), prompt {}{examples}; each model answers the original and its perturbed form",
            results.questions.len(),
            results.dataset.title(),
            splits.join(", "),
            results.prompt
        ),
    ];
    for model in &results.models {
        let perturbed = match model.kind {
            None => String::new(),
            Some(_) => format!(", {} of them perturbed", model.perturbed_examples),
        };
        lines.push(format!(
            "{}: {} training questions{perturbed}; adapters of step {}, {} of {} held-out answers exact; {:.0} s of training",
            model.model().name(),
            model.examples,
            model.kept_step,
            model.held_out.0,
            model.held_out.1,
            model.seconds
        ));
    }
    lines
}
