//! Tables and data of figures: published value, ours and their difference.
use serde::Serialize;

use crate::gsm_symbolic::published::Printed;
use earnest_tasks::suite::gsm_symbolic::Prompt;

/// Kind of a result in the paper.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    Table,
    Figure,
}

/// A column: a quantity.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Column {
    pub name: String,
    /// Printed decimals.
    pub decimals: usize,
}

/// A published number and ours.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
pub struct Cell {
    pub published: Option<Printed>,
    pub ours: Option<f64>,
    /// Ours minus the published value; absent where the paper prints only a bound.
    pub difference: Option<f64>,
    /// True if ours rounds to the printed value.
    pub prints_alike: Option<bool>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ResultRow {
    /// Model, or bin or class of a figure.
    pub name: String,
    /// Prompt or class, for tables with several rows per name.
    pub series: Option<String>,
    /// One cell per column.
    pub cells: Vec<Cell>,
    /// Significance class of ours, which selects the figure's colour: `drop p<.01`, `drop p<.05`, `rise p<.01`, `rise p<.05`, `n.s.`.
    pub class: Option<&'static str>,
    /// Remarks on these numbers.
    pub remarks: Vec<String>,
}

/// A table, or a figure's data.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ResultTable {
    pub kind: Kind,
    pub number: u8,
    pub title: String,
    pub prompt: Option<Prompt>,
    pub columns: Vec<Column>,
    pub rows: Vec<ResultRow>,
    pub notes: Vec<String>,
}

impl ResultTable {
    /// The remarks on the rows, each once, with the rows that it holds for.
    pub(super) fn remarks(&self) -> Vec<String> {
        let mut remarks: Vec<(&str, Vec<String>)> = Vec::new();
        for row in &self.rows {
            let name = row.series.as_ref().map_or_else(|| row.name.clone(), |series| format!("{} {series}", row.name));
            for remark in &row.remarks {
                match remarks.iter_mut().find(|(known, _)| known == remark) {
                    Some((_, names)) => names.push(name.clone()),
                    None => remarks.push((remark, vec![name.clone()])),
                }
            }
        }
        remarks.into_iter().map(|(remark, names)| format!("{}: {remark}.", names.join(", "))).collect()
    }
}

impl Cell {
    /// Compares ours with a published number of `decimals` decimals.
    pub fn new(published: Option<Printed>, ours: Option<f64>, decimals: usize) -> Self {
        let ours = ours.filter(|value| value.is_finite());
        let difference = ours.zip(published.and_then(Printed::value)).map(|(ours, published)| ours - published);
        let half = 0.5 * 10f64.powi(-i32::try_from(decimals).unwrap_or(0));
        let prints_alike = ours.zip(published).map(|(ours, published)| match published {
            Printed::Rounded(value) => (ours - value).abs() <= half * (1.0 + 1e-9),
            Printed::Below { bound } => ours.abs() < bound,
        });
        Cell { published, ours, difference, prints_alike }
    }
}

/// Columns from names with decimals.
pub(super) fn columns(names: &[(&str, usize)]) -> Vec<Column> {
    names.iter().map(|(name, decimals)| Column { name: (*name).to_owned(), decimals: *decimals }).collect()
}

/// Cells for columns from pairs of published value and ours.
pub(super) fn cells(columns: &[Column], pairs: &[(Option<Printed>, Option<f64>)]) -> Vec<Cell> {
    columns.iter().zip(pairs).map(|(column, (published, ours))| Cell::new(*published, *ours, column.decimals)).collect()
}
