//! A table or a figure's data: published value, ours and difference side by side.
use serde::Serialize;

use earnest_tasks::suite::gsm_symbolic::Prompt;
use earnest_tasks::suite::gsm_symbolic::published::Printed;

/// Where it stands in the paper.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    Table,
    Figure,
}

/// A quantity.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Column {
    pub name: String,
    /// Decimals in print.
    pub decimals: usize,
}

/// A number of the paper and ours.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
pub struct Cell {
    pub published: Option<Printed>,
    pub ours: Option<f64>,
    /// Ours minus the published value; absent where only a bound is printed.
    pub difference: Option<f64>,
    /// True where ours prints as the published value does.
    pub prints_alike: Option<bool>,
}

/// A line.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ResultRow {
    /// A model, or a bin or class of a figure.
    pub name: String,
    /// What the line is about within it (a prompt, a class), where there are several.
    pub series: Option<String>,
    /// A cell a column.
    pub cells: Vec<Cell>,
    /// Words for the figure's colours: `drop p<.01`, `drop p<.05`, `rise p<.01`, `rise p<.05`, `n.s.`; of ours.
    pub class: Option<&'static str>,
    /// What to know about these numbers.
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

impl Cell {
    /// Ours beside a published number that has so many decimals.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differences_and_roundings() {
        let cell = Cell::new(Some(Printed::Rounded(0.41)), Some(0.413), 2);
        assert!((cell.difference.unwrap() - 0.003).abs() < 1e-12 && cell.prints_alike == Some(true));
        assert_eq!(Cell::new(Some(Printed::Rounded(0.41)), Some(0.42), 2).prints_alike, Some(false));
        let bound = Cell::new(Some(Printed::Below { bound: 0.001 }), Some(1e-5), 3);
        assert_eq!((bound.difference, bound.prints_alike), (None, Some(true)));
        assert_eq!(Cell::new(None, Some(f64::NAN), 2), Cell::default());
    }
}
