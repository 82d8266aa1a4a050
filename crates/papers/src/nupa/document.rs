//! The comparison as data.
use std::collections::BTreeMap;

use serde::Serialize;

use crate::nupa::inference_tables::FigureRow;
use crate::{Published, PublishedTable, Reading};
use earnest_tasks::suite::Interval;

/// Version of [`NupaComparison`]'s JSON form.
pub const NUPA_COMPARISON_FORMAT: u32 = 1;

/// Comparison of the paper's tables and figures with stored runs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct NupaComparison {
    /// [`NUPA_COMPARISON_FORMAT`].
    pub format: u32,
    pub paper: String,
    /// The published tables as printed: 3 and 10 in per cent, 7 to 9 in digits.
    pub published: Vec<PublishedTable>,
    pub runs: Vec<NupaRun>,
    /// Caveats about the published numbers, independent of the runs.
    pub caveats: Vec<String>,
}

/// Comparison of a run with the paper.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct NupaRun {
    pub run: String,
    pub model: String,
    /// Published row that it is compared with.
    pub row: Option<String>,
    /// Reasons for its numbers not being comparable with the paper's, as predicates of the run. Any of them except a limit of items
    /// makes every cell not comparable.
    pub limits: Vec<String>,
    /// Differences in settings from the published evaluation that leave its numbers comparable.
    pub settings: Vec<String>,
    /// Tables for which the run has samples and the paper a row.
    pub tables: Vec<NupaTable>,
    /// Figures 2, 5, 6 and 7, or 8 for five-shot runs, by each scorer. The paper prints them as pictures only.
    pub figures: Vec<NupaFigure>,
}

/// Comparison of a run with a published table.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct NupaTable {
    pub table: u8,
    pub title: String,
    pub quantity: Quantity,
    pub cells: Vec<NupaCell>,
}

/// Quantity of a table's numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Quantity {
    /// Accuracies, as fractions.
    Accuracy,
    /// Numbers of digits.
    Digits,
}

/// Comparison of a published number with ours.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct NupaCell {
    /// The task id.
    pub task: String,
    /// The published column: `well_learned`, `performance_preserving`, a range of lengths, or a number of digits.
    pub column: String,
    /// None where the paper has a dash. A digit limit's interval is a point: the paper gives none.
    pub published: Option<Published>,
    /// Number of lengths in the run, among those behind the published number.
    pub lengths: usize,
    pub published_lengths: usize,
    /// Number of samples behind ours.
    pub samples: usize,
    /// Ours by scorer.
    pub ours: BTreeMap<String, Interval>,
    /// Scorer that is compared: the one nearest to the published scoring.
    #[serde(rename = "profile")]
    pub scorer: &'static str,
    /// Ours minus published.
    pub difference: Option<Interval>,
    pub reading: Reading,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum FigureMetric {
    ExactMatch,
    DigitMatch,
    /// log2(dlength + 1), as figure 7 has it.
    #[serde(rename = "log2_dlength")]
    Log2Dlength,
}

impl FigureMetric {
    /// Name in JSON.
    pub fn name(self) -> &'static str {
        match self {
            FigureMetric::ExactMatch => "exact_match",
            FigureMetric::DigitMatch => "digit_match",
            FigureMetric::Log2Dlength => "log2_dlength",
        }
    }
}

/// Bars of figures.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct NupaFigure {
    /// Numbers of the paper's figures that show them.
    pub figures: Vec<u8>,
    pub metric: FigureMetric,
    #[serde(rename = "profile")]
    pub scorer: &'static str,
    /// True for the run's own scorer.
    #[serde(rename = "primary")]
    pub chosen: bool,
    pub rows: Vec<FigureRow>,
}
