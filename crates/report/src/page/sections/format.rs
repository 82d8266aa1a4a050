//! Numbers as markup.
use earnest_results::fixed;
use earnest_tasks::suite::Interval;

/// Formats a fraction in per cent.
pub(super) fn percent(fraction: f64) -> String {
    if fraction.is_finite() { fixed(100.0 * fraction, 1) } else { "–".to_owned() }
}

/// Formats a fraction in per cent with its interval.
pub(super) fn interval(value: &Interval) -> String {
    if !value.estimate.is_finite() {
        return "–".to_owned();
    }
    format!("{} <small>[{}, {}]</small>", percent(value.estimate), percent(value.low), percent(value.high))
}

/// Formats a number as a sort key; empty if it is not finite.
pub(super) fn sortable(value: f64) -> String {
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
