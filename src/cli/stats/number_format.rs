//! Numbers in tables.
use earnest_report::Table;
use earnest_results::p_decimals;

/// A number with four decimals, or `-`.
pub(super) fn decimal(value: Option<f64>) -> String {
    value.map_or_else(|| "-".to_owned(), |value| format!("{value:.4}"))
}

/// A p value in the paper's format: three decimals, `< 0.001` below.
pub(super) fn p_value(value: Option<f64>) -> String {
    match value {
        Some(value) if value < 0.001 => "< 0.001".to_owned(),
        Some(value) => p_decimals(value, 3),
        None => "-".to_owned(),
    }
}

/// An end of an interval; an absent one is infinite.
pub(super) fn end(value: Option<f64>, infinite: &str) -> String {
    value.map_or_else(|| infinite.to_owned(), |value| format!("{value:.4}"))
}

/// Rows of cells as lines, the first column left-aligned, the others right-aligned.
pub(super) fn table(rows: Vec<Vec<String>>) -> String {
    let mut table = Table::without_headings(rows.iter().map(Vec::len).max().unwrap_or(0));
    rows.into_iter().for_each(|row| table.row(row));
    table.render()
}
