//! The comparison as data.
use std::collections::BTreeSet;

use serde::Serialize;

use super::fine_tuned::FineTunedResult;
use crate::Reading;
use crate::nupa::training_tables::PublishedTraining;
use earnest_results::with_commas;
use earnest_tasks::suite::Interval;
use earnest_train::experiment::{ExperimentResults, Metric, ModelResult, SeedMean};

/// Version of [`Section3`]'s JSON form.
pub const SECTION_3_FORMAT: u32 = 3;

/// Comparison of section 3 with an experiment.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Section3 {
    /// [`SECTION_3_FORMAT`].
    pub format: u32,
    pub paper: String,
    /// Source of the experiment's results, for people.
    pub source: String,
    /// The experiment's title.
    pub title: String,
    /// Number of trainings in the experiment's file.
    pub planned: usize,
    /// Number of trained models.
    pub models: usize,
    pub seeds: Vec<u64>,
    /// Questions per task and length.
    pub questions: usize,
    /// Sizes of models and data, in sentences.
    pub scale: Vec<String>,
    /// Tables 12 to 18, cell by cell.
    pub cells: Vec<Section3Cell>,
    /// The paper's conclusions, tested on the experiment.
    pub findings: Vec<Section3Finding>,
    /// Fine-tuned checkpoints by task.
    pub fine_tuned: Vec<FineTunedResult>,
    /// Our data for the paper's figures, which it prints without numbers.
    pub figures: Vec<Section3Figure>,
    /// Lengths whose questions may all have been in training.
    pub in_train: Vec<usize>,
    /// Limitations of the comparison, in sentences.
    pub caveats: Vec<String>,
}

/// A published number, with ours where there are models for it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Section3Cell {
    #[serde(flatten)]
    pub published: PublishedTraining,
    /// Our results, one for each encoding and size in the experiment.
    pub ours: Vec<Section3Result>,
    /// Reason for having no result, or for not being comparable.
    pub reason: Option<String>,
    pub reading: Reading,
}

/// Our result for a cell.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Section3Result {
    /// Encoding and size, such as `rope 0.3m`; of Table 18 the checkpoint.
    pub model: String,
    /// Length in digits: as far beyond the training lengths as the paper's; of Table 18 the longest one.
    pub length: usize,
    #[serde(flatten)]
    pub value: SeedMean,
}

/// Form of a claim about two variants.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ClaimForm {
    /// The first is better.
    Better,
    /// The first is at least as good (non-inferiority): it is behind by less than [`MARGIN`].
    NoWorse,
}

/// Part of a score by which the first variant of a claim "no worse" may be behind. The paper states none; this one is ours.
pub const MARGIN: f64 = 0.05;

impl ClaimForm {
    /// The difference that a contrast has to exceed.
    pub fn least(self) -> f64 {
        match self {
            ClaimForm::Better => 0.0,
            ClaimForm::NoWorse => -MARGIN,
        }
    }
}

/// Contrast of two variants that tests a claim of the paper.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Section3Finding {
    /// The paper's claim.
    pub claim: &'static str,
    pub form: ClaimForm,
    /// Tables and figures of the paper behind the claim.
    pub rests_on: &'static str,
    pub task: String,
    /// Variant that the claim expects to be better, and the one it is compared with.
    pub better: String,
    pub than: String,
    /// Settings that both share.
    pub among: String,
    /// True for the mean over the training lengths, false for the longer ones.
    pub learnt: bool,
    pub measured: Metric,
    pub of_better: SeedMean,
    pub of_other: SeedMean,
    /// The first minus the second with Welch's 95 % interval over seeds, which is not adjusted.
    pub difference: Option<Interval>,
    /// Contrasts that are adjusted together.
    pub family: Family,
    /// Two-sided p value of the difference against the one that the claim's form has to exceed: Welch's, or the smallest one that a permutation
    /// of the seeds allows if no seed differs from another.
    pub p: Option<f64>,
    /// The same, adjusted for all contrasts of the family (Holm).
    pub adjusted_p: Option<f64>,
    /// Lowest exact match of either variant at a trained length. Contrasts of longer ones are concluded only if it is at least [`GATE`].
    pub lowest_learnt: f64,
    #[serde(rename = "verdict")]
    pub outcome: ClaimOutcome,
}

/// Exact match that both variants of a contrast beyond the training lengths need at every trained length: what a model has not learnt it
/// cannot generalise.
pub const GATE: f64 = 0.95;

/// Family of contrasts: those of one setting.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Family {
    /// Positional encodings.
    Encodings,
    /// Digits per token.
    Digits,
    /// Random groups of digits.
    Groups,
    /// Reversal and padding.
    Formats,
    /// Index hints.
    Hints,
}

impl Family {
    /// All families.
    pub const ALL: [Family; 5] = [Family::Encodings, Family::Digits, Family::Groups, Family::Formats, Family::Hints];
}

/// Outcome of a contrast for the claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ClaimOutcome {
    /// The adjusted p value is below 0.05 and the difference above the one that the claim's form has to exceed.
    Shown,
    /// As [`ClaimOutcome::Shown`], of a claim "no worse".
    NoWorse,
    /// It is, but the better variant has not learnt the task: its exact match at the training lengths is below one half.
    ShownNotLearnt,
    /// The adjusted p value is not below 0.05.
    NotShown,
    /// It is, and the difference is below.
    Opposite,
    /// It is, but the better variant has not learnt the task.
    OppositeNotLearnt,
    /// A contrast of longer lengths whose variants have not both learnt every trained length: nothing is concluded.
    LeftOpen,
    /// Both are at most 1 %: no difference can be seen at this scale.
    Floor,
    /// A single seed has no interval.
    OneSeed,
}

impl ClaimOutcome {
    /// Label in tables.
    pub fn label(self) -> &'static str {
        match self {
            ClaimOutcome::Shown => "shown",
            ClaimOutcome::NoWorse => "no worse",
            ClaimOutcome::ShownNotLearnt => "shown, but not learnt",
            ClaimOutcome::NotShown => "not shown",
            ClaimOutcome::Opposite => "the opposite",
            ClaimOutcome::OppositeNotLearnt => "the opposite, but not learnt",
            ClaimOutcome::LeftOpen => "left open",
            ClaimOutcome::Floor => "both at the floor",
            ClaimOutcome::OneSeed => "one seed",
        }
    }
}

/// Curves for a figure.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Section3Figure {
    /// Numbers of the paper's figures that they correspond to.
    pub figures: Vec<u8>,
    /// Name of the drawing's file.
    pub name: String,
    pub title: String,
    pub x: XAxis,
    pub measured: Metric,
    pub curves: Vec<Section3Curve>,
}

/// Quantity of a figure's x axis.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum XAxis {
    #[serde(rename = "digits")]
    Digits,
    #[serde(rename = "thousands of questions seen")]
    ThousandQuestions,
}

impl XAxis {
    /// Label of the axis.
    pub fn label(self) -> &'static str {
        match self {
            XAxis::Digits => "digits",
            XAxis::ThousandQuestions => "thousands of questions seen",
        }
    }
}

/// A curve: means over seeds.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Section3Curve {
    pub label: String,
    pub points: Vec<(f64, SeedMean)>,
}

/// True for a model as small as that of Tables 13 and 14 (1.3 million parameters).
pub(super) fn small(model: &ModelResult) -> bool {
    model.parameters < 3_000_000
}

/// Sizes of models and data, one sentence per task.
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
                with_commas(model.parameters as u64),
                with_commas(model.steps * model.batch as u64),
            ));
        }
    }
    all.into_iter().collect()
}

/// Lengths of which every question may have been in training.
pub(super) fn in_train(results: &ExperimentResults) -> Vec<usize> {
    let scores = results.models.iter().flat_map(|model| &model.scores);
    let lengths: BTreeSet<usize> = scores.filter(|score| score.in_train).map(|score| score.length).collect();
    lengths.into_iter().collect()
}

/// Tasks that a model was evaluated on.
pub(super) fn tasks(model: &ModelResult) -> Vec<String> {
    let mut tasks: Vec<String> = Vec::new();
    for score in &model.scores {
        if !tasks.contains(&score.task) {
            tasks.push(score.task.clone());
        }
    }
    tasks
}

pub(super) fn caveats(results: &ExperimentResults) -> Vec<String> {
    let mut all = vec![
        "The paper's models have 100 to 3,000 million parameters (those of Tables 13 and 14 also 1.3 million) and see up to 10 \
         million questions of each length from 1 to 8 digits. Numbers of smaller models are not comparable with the paper's; only the order of two variants is. D8 is \
         compared with the longest training length of ours, D9 and D10 with the next two."
            .to_owned(),
        "Ours decode greedily; the paper samples at temperature 0.6. Our questions have the wording of the NUPA Test; the \
         paper's from-scratch models see two numbers and a sign."
            .to_owned(),
        "`alibi` has the published sign: distant tokens have less weight. The authors' program adds the penalty with the \
         opposite sign, which is our `alibi-reversed`, so the paper's ALiBi rows are of that encoding. RoPE's base is 10,000, as the authors'."
            .to_owned(),
        "Table 12 has RoPE at 0.00 on 9 digits of integer addition, Table 16 has 0.98 for the plain format. They cannot both be \
         of the same training; the paper does not state the encoding of Table 16's models. Ours show theirs."
            .to_owned(),
        "Table 16's reversed decimals (rev total, each, dec) are an artefact of the authors' scoring; ours restores their \
         order."
            .to_owned(),
        "Table 18 is of fine-tuning a loaded checkpoint, not of this experiment: ours is LoRA (`earnest train lora`; the setting `fine_tuned` names its folders), \
         and its exact match is that of the best validation, whose adapters are kept."
            .to_owned(),
        "Errors are standard errors over seeds; a seed determines both weights and questions. A difference has Welch's 95 % interval, \
         which is not adjusted. Findings follow p values that are adjusted (Holm) for all contrasts of a family: encodings, digits per token, random groups, \
         formats, hints."
            .to_owned(),
        format!(
            "Claims that something is at least as good, or does not help, are tested with a margin of {} points, which is ours: p values are two-sided, of a difference that \
             is just the margin, and \"no worse\" means that the difference is above it. It does not say that either has learnt the task.",
            100.0 * MARGIN
        ),
        "\"Left open\" are contrasts beyond the training lengths whose two variants have not both an exact match of at least 95 % at every trained \
         length: what was not learnt cannot be generalised."
            .to_owned(),
        "\"But not learnt\" means that even the better of two variants has an exact match below one half at the training lengths: \
         the difference is one between models that have not learnt the task."
            .to_owned(),
        "Figures 4 and 9 to 12 show three metrics during training; ours show exact match on the split `valid`, and digit match \
         and dlength of the finished models only."
            .to_owned(),
    ];
    if !in_train(results).is_empty() {
        all.push(
            "Lengths with a dagger: every question of theirs may have been in training, because short answers can only be learnt one by one. Their scores \
             are of memory, not of generalisation."
                .to_owned(),
        );
    }
    if results.models.len() < results.planned {
        all.push(format!("{} of {} trainings are finished.", results.models.len(), results.planned));
    }
    all
}
