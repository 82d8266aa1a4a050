//! What the comparison consists of.
use std::collections::BTreeSet;

use serde::Serialize;

use crate::Reading;
use earnest_tasks::suite::Interval;
use earnest_tasks::suite::nupa::PublishedTraining;
use earnest_train::experiment::{ExperimentResults, Metric, ModelResult, SeedMean};

/// Version of [`Section3`]'s JSON form.
pub const SECTION_3_FORMAT: u32 = 1;

/// Published numbers beside an experiment.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Section3 {
    /// [`SECTION_3_FORMAT`].
    pub format: u32,
    pub paper: String,
    /// Where the experiment's results come from.
    pub source: String,
    /// The experiment's title.
    pub title: String,
    /// Trainings of its file.
    pub planned: usize,
    /// Models that are there.
    pub models: usize,
    pub seeds: Vec<u64>,
    /// Questions of each task and length that a model was asked.
    pub questions: usize,
    /// Sizes of models and data, in sentences.
    pub scale: Vec<String>,
    /// Tables 12 to 18, cell by cell.
    pub cells: Vec<Section3Cell>,
    /// What the paper concludes, held against the experiment.
    pub findings: Vec<Section3Finding>,
    /// Ours for the paper's figures, which are pictures there.
    pub figures: Vec<Section3Figure>,
    /// What limits the comparison.
    pub caveats: Vec<String>,
}

/// A printed number, and ours where there are models for it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Section3Cell {
    #[serde(flatten)]
    pub published: PublishedTraining,
    /// One entry for each encoding and size that the experiment has of it.
    pub ours: Vec<Section3Ours>,
    /// Why there is none, or why it does not compare.
    pub reason: Option<String>,
    pub reading: Reading,
}

/// Our number for a cell.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Section3Ours {
    /// `rope 0.3m`.
    pub model: String,
    /// Digits at which ours was asked: as far beyond what it learnt as the paper's.
    pub length: usize,
    #[serde(flatten)]
    pub value: SeedMean,
}

/// A contrast.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Section3Finding {
    /// What the paper says.
    pub claim: &'static str,
    /// The paper's tables and figures that it rests on.
    pub rests_on: &'static str,
    pub task: String,
    /// What is expected to do better, and what it is held against.
    pub better: String,
    pub than: String,
    /// What both have in common.
    pub among: String,
    /// Mean over the lengths that were learnt, or over the longer ones.
    pub learnt: bool,
    pub measured: Metric,
    pub of_better: SeedMean,
    pub of_other: SeedMean,
    /// The first minus the second with Welch's 95 % interval over seeds.
    pub difference: Option<Interval>,
    pub verdict: Verdict,
}

/// What a contrast says about a claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// The interval of the difference is above zero.
    Shown,
    /// It is, but the better variant has not learnt the task: less than half is right at the lengths that it was taught.
    ShownNotLearnt,
    /// It includes zero.
    NotShown,
    /// It is below zero.
    Opposite,
    /// It is, but the better variant has not learnt the task.
    OppositeNotLearnt,
    /// Both are at most 1 %: there is nothing to see at this scale.
    Floor,
    /// A single seed has no interval.
    OneSeed,
}

impl Verdict {
    /// In words.
    pub fn words(self) -> &'static str {
        match self {
            Verdict::Shown => "shown",
            Verdict::ShownNotLearnt => "shown, but not learnt",
            Verdict::NotShown => "not shown",
            Verdict::Opposite => "the opposite",
            Verdict::OppositeNotLearnt => "the opposite, but not learnt",
            Verdict::Floor => "both at the floor",
            Verdict::OneSeed => "one seed",
        }
    }
}

/// Curves for a figure.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Section3Figure {
    /// The paper's figures that they stand for.
    pub figures: Vec<u8>,
    /// The name of its drawing.
    pub name: String,
    pub title: String,
    /// What is along the x axis.
    pub x: &'static str,
    pub measured: Metric,
    pub curves: Vec<Section3Curve>,
}

/// A curve: means over seeds.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Section3Curve {
    pub label: String,
    pub points: Vec<(f64, SeedMean)>,
}

/// Whether a model is small, as that of Tables 13 and 14: 1.3 million parameters.
pub(super) fn small(model: &ModelResult) -> bool {
    model.parameters < 3_000_000
}

/// Sizes of models and data beside the paper's.
pub(super) fn scale(results: &ExperimentResults) -> Vec<String> {
    let mut all = BTreeSet::new();
    for model in &results.models {
        for task in tasks(model) {
            let lengths = |learnt| {
                let lengths = model.lengths(&task, learnt);
                match (lengths.first(), lengths.last()) {
                    (Some(first), Some(last)) if first != last => format!("{first} to {last}"),
                    (Some(only), _) => only.to_string(),
                    _ => String::new(),
                }
            };
            let range = |learnt| Some(lengths(learnt)).filter(|range| !range.is_empty());
            let learnt = range(true).map_or("none of its lengths".to_owned(), |range| format!("{range} digits"));
            let beyond = range(false).map_or("no other length".to_owned(), |range| format!("{range} digits too"));
            all.insert(format!(
                "{task}: {} parameters without embeddings, {} questions of {learnt}; asked {beyond}.",
                thousands(model.parameters as u64),
                thousands(model.steps * model.batch as u64),
            ));
        }
    }
    all.into_iter().collect()
}

/// The tasks that a model was asked.
pub(super) fn tasks(model: &ModelResult) -> Vec<String> {
    let mut tasks: Vec<String> = Vec::new();
    for score in &model.scores {
        if !tasks.contains(&score.task) {
            tasks.push(score.task.clone());
        }
    }
    tasks
}

/// A number in groups of three digits.
pub(super) fn thousands(number: u64) -> String {
    let digits = number.to_string();
    let first = digits.len() % 3;
    let mut text = digits[..first].to_owned();
    for (place, digit) in digits[first..].char_indices() {
        if place % 3 == 0 && !text.is_empty() {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

pub(super) fn caveats(results: &ExperimentResults) -> Vec<String> {
    let mut all = vec![
        "The paper's models have 100 to 3,000 million parameters (those of Tables 13 and 14 also 1.3 million) and see up to 10 \
         million questions of each length from 1 to 8 digits. Numbers of smaller models are not the paper's quantity; what can be held against it is which of two variants \
         is better. D8 is held against the longest length that ours learnt, D9 and D10 against the next two."
            .to_owned(),
        "Ours decode greedily; the paper samples at temperature 0.6. Our questions carry the wording of the NUPA Test, the \
         paper's from-scratch models see two numbers and a sign."
            .to_owned(),
        "Our ALiBi has the published sign: farther tokens count less. The authors' program adds the penalty with the opposite \
         sign, so its ALiBi rows are of another encoding."
            .to_owned(),
        "Table 12 has RoPE at 0.00 on 9 digits of integer addition, Table 16 has 0.98 for the plain format. They can not both be \
         of the same training; the paper does not say which encoding Table 16's models have. Ours show theirs."
            .to_owned(),
        "Table 16's reversed decimals (rev total, each, dec) are an artefact of the authors' scoring; ours put them back in \
         order."
            .to_owned(),
        "Table 18 and the fine-tuned rows are of LoRA on a loaded checkpoint: `earnest train lora`, not this experiment."
            .to_owned(),
        "Errors are standard errors over seeds; a seed draws weights and questions alike. A difference has Welch's 95 % interval. \
         The contrasts are many and their intervals are not adjusted for that."
            .to_owned(),
        "\"But not learnt\" says that the better of two variants itself has less than half right at the lengths that it was taught: \
         the difference is there, and it is one between models that have not learnt the task."
            .to_owned(),
        "Figures 4 and 9 to 12 follow three metrics during the training; ours follow exact match on the part `valid`, and have \
         digit match and dlength of the finished models only."
            .to_owned(),
    ];
    if results.models.len() < results.planned {
        all.push(format!(
            "{} of {} trainings are there; the others were not finished.",
            results.models.len(),
            results.planned
        ));
    }
    all
}

#[cfg(test)]
mod tests {
    use super::thousands;

    #[test]
    fn groups_of_three() {
        assert_eq!(
            ["7", "70", "700", "7,000", "1,234,567"],
            [7, 70, 700, 7000, 1_234_567].map(thousands).each_ref().map(String::as_str)
        );
    }
}
