//! Thinking budgets on the page: a curve over tokens, and a table by cap.
use minijinja::{Value, context};

use earnest_tasks::suite::Interval;
use earnest_tasks::suite::profile::cap_text;

use super::page::points;
use super::{CapResult, NumeracyProfile, ThinkingResult};
use crate::markup::{Markup, drawing, html};
use crate::plot::{Curve, CurvePlot, Figure, Measure, curves};

/// Draws accuracy against the mean tokens of an answer, a curve a kind of questions; none without thinking budgets.
pub(super) fn figure(profile: &NumeracyProfile, name: &str) -> Option<Figure> {
    if profile.thinking.is_empty() {
        return None;
    }
    let curve = |(series, found): (usize, &ThinkingResult)| {
        let mut points: Vec<(f64, usize, Interval)> = Vec::new();
        for row in &found.caps {
            let point = (row.tokens, row.asked, Interval { estimate: row.accuracy, low: row.low, high: row.high });
            points.push(point);
        }
        points.sort_by(|one, other| one.0.total_cmp(&other.0));
        Curve { label: found.name(), series, points }
    };
    Some(curves(&CurvePlot {
        name: name.to_owned(),
        title: "Accuracy by the tokens spent".to_owned(),
        x_label: "tokens an answer".to_owned(),
        y_label: "right, %".to_owned(),
        measure: Measure::Share,
        curves: profile.thinking.iter().enumerate().map(curve).collect(),
        legend: true,
    }))
}

/// The figure, and a table with a row a cap.
pub(super) fn section(profile: &NumeracyProfile) -> Markup {
    let Some(figure) = figure(profile, "thinking") else { return Ok(Value::from("")) };
    let kind = |found: &ThinkingResult| {
        let caps: Value = found.caps.iter().map(cap).collect();
        context!(name => found.name(), verdict => found.verdict(), enough => found.enough, caps)
    };
    let kinds: Value = profile.thinking.iter().map(kind).collect();
    html("thinking.html", context!(figure => drawing(&figure), kinds))
}

fn cap(row: &CapResult) -> Value {
    let [accuracy, low, high] = [row.accuracy, row.low, row.high].map(|share| format!("{:.0}", 100.0 * share));
    // Two significant digits: answers a second of a small machine are thousandths.
    let digits = |value: f64| if value > 0.0 { (1.0 - value.log10().floor()).clamp(0.0, 6.0) as usize } else { 0 };
    let per = |value: Option<f64>| value.map_or_else(String::new, |value| format!("{value:.0$}", digits(value)));
    context!(
        cap => cap_text(row.cap),
        accuracy,
        interval => format!("[{low}, {high}]"),
        cells => [
            format!("{:.0}", row.tokens),
            row.cut.to_string(),
            format!("{:.1}", row.seconds),
            per(row.right_per_thousand_tokens),
            per(row.right_per_second),
        ],
        gain => row.gain.map(|gain| points([gain.difference, gain.low, gain.high], gain.holds)),
    )
}
