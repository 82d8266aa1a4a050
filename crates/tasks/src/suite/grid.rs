//! Tables with a row a task and a column a condition, where one line of numbers a task says too little.
use serde::{Deserialize, Serialize};

use super::Interval;

/// A table of one metric.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Grid {
    /// The metric, as options name it.
    pub name: String,
    /// Title for people.
    pub title: String,
    pub unit: Unit,
    pub columns: Vec<String>,
    /// Covariate of samples whose values the columns are; none where they are something else.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub covariate: Option<String>,
    pub groups: Vec<GridGroup>,
}

/// Unit of a grid's numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Unit {
    /// Fractions, shown in per cent.
    Fraction,
    /// Means of digits.
    Digits,
    /// A number of digits up to which something holds.
    Reach,
}

/// Rows that belong together.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GridGroup {
    pub name: String,
    pub rows: Vec<GridRow>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GridRow {
    pub name: String,
    /// The task whose row it is, as items name it; none for a sum of several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<String>,
    /// One cell a column; none where nothing was asked.
    pub cells: Vec<Option<GridCell>>,
}

/// A mean.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct GridCell {
    pub value: Interval,
    /// Samples behind it.
    pub n: usize,
}
