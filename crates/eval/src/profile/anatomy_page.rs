//! Wrong answers on the page: shares of the classes of errors with their chance, and wrong digits by position.
use std::fmt::Write;

use earnest_tasks::anatomy::{CHANCE_DIGITS, ErrorClass, one_digit_rate, random_rate};
use earnest_tasks::suite::Interval;
use earnest_tasks::suite::profile::Family;

use super::{NumeracyProfile, TaskErrors};
use crate::report::plot::{Bar, BarGroup, Bars, Heat, HeatPanel, HeatRow, Shade, bars, escape, heat_columns, heat_key};

const WRITES: &str = "writing to a String cannot fail";

/// Positions of the map of wrong digits that are named.
const POSITIONS: usize = 20;

/// Shares of classes over all tasks, and by task.
pub(super) fn anatomy(profile: &NumeracyProfile) -> String {
    let found = &profile.anatomy;
    if found.wrong == 0 {
        return "<p>No wrong answer.</p>".to_owned();
    }
    let groups = found.classes.iter().map(|share| BarGroup {
        label: share.class.title().to_owned(),
        bars: vec![Bar {
            series: 0,
            value: Interval { estimate: share.share, low: share.low, high: share.high },
            significant: None,
        }],
    });
    let overall = Bars {
        name: "error-classes".into(),
        title: format!("All {} wrong answers", found.wrong),
        x_label: "share of wrong answers, %".into(),
        series: vec![profile.model.clone()],
        groups: groups.collect(),
        domain: None,
        factor: 100.0,
        legend: false,
    };
    let overall = bars(&overall);
    let mut html = format!(
        "<div class=\"anatomy\"><figure><figcaption>{}</figcaption>{}</figure><div>{}</div></div>",
        escape(&overall.title),
        overall.inline(),
        by_family(profile)
    );
    if !found.missed.is_empty() {
        let counts: Vec<String> = found
            .missed
            .iter()
            .enumerate()
            .filter(|(_, count)| **count > 0)
            .map(|(place, count)| format!("{}: {count}", place + 1))
            .collect();
        write!(html, "<p>First missed carry or borrow, by position from the right: {}.</p>", counts.join(", "))
            .expect(WRITES);
    }
    html + &by_task(profile) + &lengths(profile)
}

/// Classes that some wrong answer has, in their order.
fn classes(profile: &NumeracyProfile) -> Vec<ErrorClass> {
    let found = &profile.anatomy.classes;
    ErrorClass::ALL.into_iter().filter(|class| found.iter().any(|share| share.class == *class)).collect()
}

/// A table of shares: rows of a name, the number of wrong answers and their counts by class.
fn table_of_classes(what: &str, classes: &[ErrorClass], rows: &[(String, usize, Vec<usize>)], foot: &str) -> String {
    let heads: String = classes.iter().map(|class| format!("<th class=\"num\">{}</th>", class.title())).collect();
    let row = |(name, wrong, counts): &(String, usize, Vec<usize>)| {
        let cell = |count: &usize| {
            let share = *count as f64 / (*wrong).max(1) as f64;
            let shown = if *count == 0 { String::new() } else { format!("{:.0}", 100.0 * share) };
            format!("<td class=\"num shaded\" style=\"--v:{share:.2}\">{shown}</td>")
        };
        let cells: String = counts.iter().map(cell).collect();
        format!("<tr><th>{name}</th><td class=\"num\">{wrong}</td>{cells}</tr>")
    };
    let rows: String = rows.iter().map(row).collect();
    format!(
        "<div class=\"scroll\"><table class=\"sortable classes\"><caption>Per cent of the wrong answers of a row</caption><thead><tr><th>{what}</th>\
         <th class=\"num\">wrong</th>{heads}</tr></thead><tbody>{rows}</tbody>{foot}</table></div>"
    )
}

/// Rows of the chance of each class: random numbers by the digits of the operands, and right numbers with one random digit.
fn chance(classes: &[ErrorClass]) -> String {
    let row = |name: &str, rate: &dyn Fn(ErrorClass) -> Option<f64>| {
        let cell = |class: &ErrorClass| {
            let shown = rate(*class).map_or_else(String::new, |rate| format!("{rate:.1}"));
            format!("<td class=\"num\">{shown}</td>")
        };
        format!("<tr><th>{name}</th><td></td>{}</tr>", classes.iter().map(cell).collect::<String>())
    };
    let by_digits = CHANCE_DIGITS.iter().enumerate().map(|(place, digits)| {
        let name = format!("chance, {digits} digit{}", if *digits == 1 { "" } else { "s" });
        row(&name, &|class| random_rate(class).map(|rates| rates[place]))
    });
    let rows: String = by_digits.collect();
    format!("<tfoot>{rows}{}</tfoot>", row("chance, one digit replaced", &one_digit_rate))
}

fn count(errors: &TaskErrors, class: ErrorClass) -> usize {
    errors.classes.iter().find(|share| share.class == class).map_or(0, |share| share.count)
}

fn by_family(profile: &NumeracyProfile) -> String {
    let classes = classes(profile);
    let of = |family: Family| {
        let is_of = move |one: &&TaskErrors| profile.skill(&one.task).is_some_and(|skill| skill.family == family);
        profile.anatomy.by_task.iter().filter(is_of)
    };
    let rows = Family::ALL.into_iter().filter(|family| of(*family).next().is_some()).map(|family| {
        let counts = classes.iter().map(|class| of(family).map(|one| count(one, *class)).sum()).collect();
        (family.title().to_owned(), of(family).map(|one| one.wrong).sum(), counts)
    });
    table_of_classes("skills", &classes, &rows.collect::<Vec<_>>(), &chance(&classes))
}

fn by_task(profile: &NumeracyProfile) -> String {
    let classes = classes(profile);
    let rows = profile.anatomy.by_task.iter().filter_map(|one| {
        let skill = profile.skill(&one.task)?;
        let name = format!("{} <small>{}</small>", escape(&skill.title), skill.family.title());
        Some((name, one.wrong, classes.iter().map(|class| count(one, *class)).collect()))
    });
    let table = table_of_classes("task", &classes, &rows.collect::<Vec<_>>(), "");
    format!("<details class=\"part\"><summary>By task</summary>{table}</details>")
}

/// The most frequent classes of each task below and from its median length of wrong answers.
fn lengths(profile: &NumeracyProfile) -> String {
    let mut rows = String::new();
    for errors in &profile.anatomy.by_length {
        let Some(skill) = profile.skill(&errors.task) else { continue };
        let most: Vec<String> = errors
            .classes
            .iter()
            .take(3)
            .map(|share| {
                format!(
                    "{} {:.0} % <small>[{:.0}, {:.0}]</small>",
                    share.class.title(),
                    100.0 * share.share,
                    100.0 * share.low,
                    100.0 * share.high
                )
            })
            .collect();
        write!(
            rows,
            "<tr><th>{} <small>{}</small></th><td class=\"num\">{}-{}</td><td class=\"num\">{}</td><td>{}</td></tr>",
            escape(&skill.title),
            skill.family.title(),
            errors.lengths.0,
            errors.lengths.1,
            errors.wrong,
            most.join(", ")
        )
        .expect(WRITES);
    }
    format!(
        "<details class=\"part\"><summary>By task and length</summary><div class=\"scroll\"><table class=\"sortable\"><thead><tr><th>task</th><th class=\"num\">digits</th>\
         <th class=\"num\">wrong</th><th>most frequent</th></tr></thead><tbody>{rows}</tbody></table></div></details>"
    )
}

fn drawn(map: &Heat) -> String {
    let columns: String = heat_columns(map).iter().map(|column| format!("<div>{}</div>", column.inline())).collect();
    format!(
        "<figure class=\"map\"><figcaption>{}</figcaption><div class=\"heat\">{columns}</div><div class=\"scale\">{}</div></figure>",
        escape(&map.title),
        heat_key(map).inline()
    )
}

/// Map of wrong digits by task and position.
pub(super) fn positions(profile: &NumeracyProfile) -> String {
    let found = &profile.anatomy.positions;
    if found.is_empty() {
        return String::new();
    }
    let columns: Vec<String> = (1..=POSITIONS).map(|place| place.to_string()).collect();
    let panels = Family::ALL.into_iter().filter_map(|family| {
        let rows = found.iter().filter_map(|row| {
            let skill = profile.skill(&row.task).filter(|skill| skill.family == family)?;
            let cell = |&(wrong, of): &(usize, usize)| (of > 0).then(|| (wrong as f64 / of as f64, of));
            Some(HeatRow {
                name: skill.title.clone(),
                task: Some(row.task.clone()),
                cells: row.positions.iter().map(cell).collect(),
            })
        });
        let rows: Vec<HeatRow> = rows.collect();
        (!rows.is_empty()).then(|| HeatPanel { title: family.name().to_owned(), columns: columns.clone(), rows })
    });
    let map = Heat {
        name: "wrong-digits".into(),
        title: "Wrong digits, per cent of wrong answers".into(),
        x_label: "position from the right".into(),
        shade: Shade::Share,
        panels: panels.collect(),
    };
    drawn(&map)
}
