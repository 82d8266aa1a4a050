//! Number formats of tables.

/// A number with four decimals, or `-`.
pub(super) fn decimal(value: Option<f64>) -> String {
    value.map_or_else(|| "-".to_owned(), |value| format!("{value:.4}"))
}

/// A p value in the paper's format: three decimals, `< 0.001` below.
pub(super) fn p_value(value: Option<f64>) -> String {
    match value {
        Some(value) if value < 0.001 => "< 0.001".to_owned(),
        Some(value) => format!("{value:.3}"),
        None => "-".to_owned(),
    }
}

/// An end of an interval; an absent one is infinite.
pub(super) fn end(value: Option<f64>, infinite: &str) -> String {
    value.map_or_else(|| infinite.to_owned(), |value| format!("{value:.4}"))
}

/// Rows of cells as lines, the first column left-aligned, the others right-aligned.
pub(super) fn table(rows: &[Vec<String>]) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let widths: Vec<usize> = (0..columns)
        .map(|column| rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max().unwrap_or(0))
        .collect();
    let mut text = String::new();
    for row in rows {
        let mut line = String::new();
        for (column, (cell, width)) in row.iter().zip(&widths).enumerate() {
            if column == 0 {
                line.push_str(&format!("{cell:<width$}"));
            } else {
                line.push_str(&format!("  {cell:>width$}"));
            }
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}
