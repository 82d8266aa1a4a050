//! What the comparison consists of.
use std::collections::BTreeMap;

use serde::Serialize;

use crate::{Published, PublishedTable, Reading};
use earnest_tasks::suite::Interval;
use earnest_tasks::suite::nupa::FigureRow;

/// Version of [`NupaComparison`]'s JSON form.
pub const NUPA_COMPARISON_FORMAT: u32 = 1;

/// The paper's tables and figures beside ours.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct NupaComparison {
    /// [`NUPA_COMPARISON_FORMAT`].
    pub format: u32,
    pub paper: String,
    /// The published tables as printed: 3 and 10 in per cent, 7 to 9 in digits.
    pub published: Vec<PublishedTable>,
    pub runs: Vec<NupaRun>,
    /// What is doubtful in the published numbers, whatever the run.
    pub caveats: Vec<String>,
}

/// A run beside the paper.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct NupaRun {
    pub run: String,
    pub model: String,
    /// The published row it is held against.
    pub row: Option<String>,
    /// Why its numbers are not the paper's quantity. With one of these no cell is called comparable.
    pub limits: Vec<String>,
    /// Settings in which it differs from the published evaluation, though it asks the same.
    pub settings: Vec<String>,
    /// Tables of which the run asks something and the paper has a row.
    pub tables: Vec<NupaTable>,
    /// Figures 2, 5, 6 and 7, or 8 for five-shot runs, in each profile. The paper prints them as pictures only.
    pub figures: Vec<NupaFigure>,
}

/// A run beside a published table.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct NupaTable {
    pub table: u8,
    pub title: String,
    pub quantity: Quantity,
    pub cells: Vec<NupaCell>,
}

/// What the numbers of a table are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Quantity {
    /// Accuracies, as fractions.
    Accuracy,
    /// Numbers of digits.
    Digits,
}

/// A published number beside ours.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct NupaCell {
    /// The task id.
    pub task: String,
    /// The published column: `well_learned`, `performance_preserving`, a range of lengths, or a number of digits.
    pub column: String,
    /// None where the paper has a dash. A digit limit's interval is a point: the paper gives none.
    pub published: Option<Published>,
    /// Lengths that the run asks of those behind the published number.
    pub lengths: usize,
    pub published_lengths: usize,
    /// Samples behind ours.
    pub samples: usize,
    /// Ours by profile.
    pub ours: BTreeMap<String, Interval>,
    /// The profile that is compared: the one nearest to the published scoring.
    pub profile: &'static str,
    /// Ours minus published.
    pub difference: Option<Interval>,
    pub reading: Reading,
}

/// Bars of figures.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct NupaFigure {
    /// The figures that show them.
    pub figures: Vec<u8>,
    /// `exact_match`, `digit_match` or `log2_dlength`: log2(dlength + 1), as figure 7 has it.
    pub metric: &'static str,
    pub profile: &'static str,
    /// True for the profile that the run was asked with.
    pub primary: bool,
    pub rows: Vec<FigureRow>,
}
