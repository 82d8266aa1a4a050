//! Paired differences to the first run.
use earnest_tasks::{agreeing, counted};
use std::fmt::Write;

use super::WRITES;
use super::summary::key;
use crate::page::ReportRun;
use crate::page::differences::{holds, rows};
use crate::plot::escape;
use crate::{Comparison, Difference, p_text};
use earnest_results::ends;
use earnest_tasks::suite::registry::task_label;

/// Largest number of tasks that are shown without folding.
const UNFOLDED: usize = 12;

/// Renders the difference of every run to the first one, then the tasks whose difference holds after Holm's adjustment.
pub fn differences(runs: &[ReportRun], comparisons: &[Comparison]) -> String {
    let Some(base) = runs.first().filter(|_| !comparisons.is_empty()) else { return String::new() };
    let place = |one: &Comparison| runs.iter().position(|run| run.label == one.run).unwrap_or(0);
    let mut html = format!(
        "<p class=\"lead\">To {}, paired by item: the same questions. Intervals and p values are robust to clusters of items, and exact where few answers are right or wrong. A difference holds if \
         its p value, adjusted by Holm's method, is below 0.05.</p>",
        escape(&base.label)
    );
    html.push_str(
        "<div class=\"scroll\"><table class=\"sortable\" id=\"overall\"><thead><tr><th scope=\"col\">model</th>\
         <th scope=\"col\" class=\"num\">difference, 95 %</th><th scope=\"col\" class=\"num\">p (Holm)</th>\
         <th scope=\"col\" class=\"num\">items</th><th scope=\"col\" class=\"num\">tasks better</th>\
         <th scope=\"col\" class=\"num\">tasks worse</th><th scope=\"col\" class=\"num\">tasks compared</th></tr></thead><tbody>",
    );
    let tasks = |one: &Comparison| {
        let every = rows(one, base);
        every.into_iter().filter(|row| row.name != "all").collect::<Vec<Difference>>()
    };
    for one in comparisons {
        let every = tasks(one);
        let count = |sign: f64| every.iter().filter(|row| holds(row) && sign * row.difference > 0.0).count();
        write!(
            html,
            "<tr data-run=\"{}\"><th scope=\"row\">{}{}</th>{}",
            place(one),
            key(place(one)),
            escape(&one.run),
            cells(&one.overall)
        )
        .expect(WRITES);
        for number in [one.items, count(1.0), count(-1.0), every.len()] {
            write!(html, "<td class=\"num\">{number}</td>").expect(WRITES);
        }
        html.push_str("</tr>");
    }
    html.push_str("</tbody></table></div>");
    for one in comparisons {
        for said in one.other_scorers().into_iter().chain(one.caveats().into_iter().map(|caveat| caveat + ".")) {
            write!(html, "<p data-run=\"{}\"><strong>{}</strong></p>", place(one), escape(&said)).expect(WRITES);
        }
        if one.only_baseline + one.only_run > 0 {
            write!(
                html,
                "<p data-run=\"{}\">{} {} in both runs; {} of {} and {} of {} are compared with nothing.</p>",
                place(one),
                counted(one.items, "item"),
                agreeing(one.items, "is", "are"),
                one.only_baseline,
                escape(&one.baseline),
                one.only_run,
                escape(&one.run)
            )
            .expect(WRITES);
        }
    }
    let family: usize = comparisons.iter().map(|one| tasks(one).len()).sum();
    let mut shown = 0;
    for one in comparisons {
        let mut held: Vec<Difference> = tasks(one).into_iter().filter(holds).collect();
        held.sort_by(|a, b| b.difference.abs().total_cmp(&a.difference.abs()).then_with(|| a.name.cmp(&b.name)));
        if held.is_empty() {
            continue;
        }
        shown += held.len();
        let open = if shown <= UNFOLDED { " open" } else { "" };
        write!(
            html,
            "<details data-run=\"{}\"{open}><summary>{}: {} of {} {}</summary>{}</details>",
            place(one),
            escape(&one.run),
            held.len(),
            counted(tasks(one).len(), "task"),
            agreeing(held.len(), "differs", "differ"),
            table(&held, &base.label, &one.run)
        )
        .expect(WRITES);
    }
    if shown == 0 {
        write!(
            html,
            "<p>No task's difference holds after the adjustment for {}. That does not show that the models are equal.</p>",
            counted(family, "test")
        )
        .expect(WRITES);
    }
    let sequential = comparisons.iter().filter_map(|one| one.sequential.as_ref());
    for remark in sequential.map(|sequential| sequential.remark()) {
        write!(html, "<p>{}</p>", escape(&remark)).expect(WRITES);
    }
    html
}

/// Renders the difference with its interval and its adjusted p value as cells.
fn cells(one: &Difference) -> String {
    let number = |value: f64| if one.shares { format!("{:+.1}", 100.0 * value) } else { format!("{value:+.3}") };
    let interval = one.interval.map_or_else(
        || "<small>no interval</small>".to_owned(),
        |(low, high)| {
            let ends = match one.shares {
                true => ends((100.0 * low, 100.0 * high), 0.0, 1, true),
                false => ends((low, high), 0.0, 3, true),
            };
            format!("<small>[{}]</small>", ends.join(", "))
        },
    );
    let p = one.p_holm.map_or_else(|| "–".to_owned(), |p| escape(&p_text(p)));
    let class = if holds(one) { "num holds" } else { "num" };
    format!(
        "<td class=\"{class}\" data-value=\"{}\">{} {interval}</td><td class=\"num\" data-value=\"{}\">{p}</td>",
        one.difference,
        number(one.difference),
        one.p_holm.map_or_else(String::new, |p| p.to_string())
    )
}

fn table(held: &[Difference], base: &str, run: &str) -> String {
    let mut html = format!(
        "<div class=\"scroll\"><table class=\"sortable\"><thead><tr><th scope=\"col\">task</th><th scope=\"col\" class=\"num\">{}</th>\
         <th scope=\"col\" class=\"num\">{}</th><th scope=\"col\" class=\"num\">difference, 95 %</th><th scope=\"col\" class=\"num\">p (Holm)</th></tr></thead><tbody>",
        escape(base),
        escape(run)
    );
    for one in held {
        let number = |value: f64| if one.shares { format!("{:.1}", 100.0 * value) } else { format!("{value:.3}") };
        write!(
            html,
            "<tr data-task=\"{}\"><th scope=\"row\">{}</th><td class=\"num\">{}</td><td class=\"num\">{}</td>{}</tr>",
            escape(&one.name),
            escape(&task_label(&one.name)),
            number(one.baseline),
            number(one.run),
            cells(one)
        )
        .expect(WRITES);
    }
    html + "</tbody></table></div>"
}
