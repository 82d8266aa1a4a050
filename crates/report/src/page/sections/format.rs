//! Numbers as texts and cells.
use earnest_tasks::suite::Interval;
use minijinja::{Value, context};

pub(super) use crate::markup::percent;

/// Cell of a table: its text, small texts beside it, and its key for sorting.
pub(super) fn cell(text: String, small: Vec<String>, sort: f64) -> Value {
    context!(text, small, sort => sortable(sort))
}

/// Cell of a count.
pub(super) fn count(count: usize) -> Value {
    context!(text => count, small => Vec::<String>::new(), sort => count)
}

/// Cell of a value with its interval, numbers by `format`.
pub(super) fn interval(value: &Interval, n: Option<usize>, format: impl Fn(f64) -> String) -> Value {
    let ends = value.estimate.is_finite().then(|| format!("[{}, {}]", format(value.low), format(value.high)));
    let n = n.map(|n| format!("n {n}"));
    cell(format(value.estimate), ends.into_iter().chain(n).collect(), value.estimate)
}

/// Formats a number as a sort key; empty if it is not finite.
fn sortable(value: f64) -> String {
    if value.is_finite() { value.to_string() } else { String::new() }
}

/// Formats a number without a unit.
pub(super) fn plain(value: f64) -> String {
    if !value.is_finite() {
        "–".to_owned()
    } else if value.fract() == 0.0 && value.abs() < 1e15 {
        format!("{value:.0}")
    } else {
        format!("{value:.3}")
    }
}
