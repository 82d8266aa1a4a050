//! Thinking budgets on the page: a curve over tokens, and a table by cap.
use std::fmt::Write;

use earnest_tasks::suite::Interval;
use earnest_tasks::suite::profile::cap_text;

use super::{NumeracyProfile, ThinkingResult};
use crate::plot::{Curve, CurvePlot, Figure, Measure, curves, escape};

const WRITES: &str = "writing to a String cannot fail";

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
pub(super) fn section(profile: &NumeracyProfile) -> String {
    let Some(figure) = figure(profile, "thinking") else { return String::new() };
    let (mut rows, mut verdicts) = (String::new(), String::new());
    for found in &profile.thinking {
        let name = escape(&found.name());
        write!(verdicts, "<p><b>{name}</b>: {}.</p>", escape(&found.verdict())).expect(WRITES);
        write!(rows, "<tr class=\"group\"><th colspan=\"8\">{name}</th></tr>").expect(WRITES);
        for (index, row) in found.caps.iter().enumerate() {
            let [accuracy, low, high] = [row.accuracy, row.low, row.high].map(|share| 100.0 * share);
            let gain = row.gain.map_or_else(String::new, |gain| {
                let [difference, low, high] = [gain.difference, gain.low, gain.high].map(|value| 100.0 * value);
                let class = if gain.holds { " class=\"holds\"" } else { "" };
                format!("<span{class}>{difference:+.0}</span> <small>[{low:+.0}, {high:+.0}]</small>")
            });
            // Two significant digits: answers a second of a small machine are thousandths.
            let per = |value: Option<f64>| {
                let digits =
                    |value: f64| if value > 0.0 { (1.0 - value.log10().floor()).clamp(0.0, 6.0) as usize } else { 0 };
                value.map_or_else(String::new, |value| format!("{value:.0$}", digits(value)))
            };
            write!(
                rows,
                "<tr><th>{}{}</th><td class=\"num\">{accuracy:.0} <small>[{low:.0}, {high:.0}]</small></td><td class=\"num\">{:.0}</td>\
                 <td class=\"num\">{}</td><td class=\"num\">{:.1}</td><td class=\"num\">{}</td><td class=\"num\">{}</td><td class=\"num\">{gain}</td></tr>",
                cap_text(row.cap),
                if index == found.enough { " <small>enough</small>" } else { "" },
                row.tokens,
                row.cut,
                row.seconds,
                per(row.right_per_thousand_tokens),
                per(row.right_per_second),
            )
            .expect(WRITES);
        }
    }
    format!(
        "<div class=\"anatomy\"><div><figure>{}</figure>{verdicts}</div><div class=\"scroll\"><table><thead><tr><th>cap</th><th class=\"num\">right, %</th>\
         <th class=\"num\">tokens</th><th class=\"num\">cut</th><th class=\"num\">seconds</th><th class=\"num\">right a thousand tokens</th>\
         <th class=\"num\">right a second</th><th class=\"num\">the largest cap gains, points</th></tr></thead><tbody>{rows}</tbody></table></div></div>",
        figure.inline()
    )
}
