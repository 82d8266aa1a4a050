//! Wrong answers on the page: shares of the classes of errors with their chance, and wrong digits by position.
use std::fmt::Write;

use earnest_stats::{Z95, wilson};
use earnest_tasks::anatomy::{CHANCE_DIGITS, ErrorClass, one_digit_rate, random_rate};
use earnest_tasks::suite::Interval;
use earnest_tasks::suite::profile::Family;

use super::{NumeracyProfile, TaskErrors};
use crate::plot::{Bar, BarGroup, Bars, Heat, HeatPanel, HeatRow, Shade, bars, escape, heat_columns, heat_key};

const WRITES: &str = "writing to a String cannot fail";

/// Positions before the point of a map that has digits after it, too.
const BEFORE_POINT: usize = 10;

/// A row of a table of classes: its name, the number of wrong answers and their counts by class.
type ClassRow = (String, usize, Vec<usize>);

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
            .map(|(index, count)| format!("{}: {count}", index + 1))
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

/// Head of a class's column.
fn head(class: ErrorClass) -> String {
    format!("<th class=\"num\">{}</th>", class.title())
}

/// A table of shares; a cell's tip has the count and the 95 % interval.
fn table_of_classes(what: &str, classes: &[ErrorClass], rows: &[ClassRow], foot: &str) -> String {
    let heads: String = classes.iter().map(|class| head(*class)).collect();
    let row = |(name, wrong, counts): &ClassRow| {
        let cell = |(class, count): (&ErrorClass, &usize)| {
            let Some(found) = wilson(*count as f64, *wrong as f64, Z95) else { return "<td></td>".to_owned() };
            let [share, low, high] = [found.value, found.low, found.high].map(|part| 100.0 * part);
            let shown = if *count == 0 { String::new() } else { format!("{share:.0}") };
            let tip = format!("{}: {count} of {wrong}, {share:.0} % ({low:.0}-{high:.0})", class.title());
            format!("<td class=\"num shaded\" style=\"--v:{:.2}\" title=\"{tip}\">{shown}</td>", found.value)
        };
        let cells: String = classes.iter().zip(counts).map(cell).collect();
        format!("<tr><th>{name}</th><td class=\"num\">{wrong}</td>{cells}</tr>")
    };
    let rows: String = rows.iter().map(row).collect();
    format!(
        "<div class=\"scroll\"><table class=\"sortable classes\"><caption>Per cent of the wrong answers of a row; a cell's tip has the 95 % interval</caption><thead><tr><th>{what}</th>\
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
    let by_digits = CHANCE_DIGITS.iter().enumerate().map(|(index, digits)| {
        let name = format!("chance, {digits} digit{}", if *digits == 1 { "" } else { "s" });
        row(&name, &|class| random_rate(class).map(|rates| rates[index]))
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

/// Shares by task and length.
fn lengths(profile: &NumeracyProfile) -> String {
    let classes = classes(profile);
    let rows = profile.anatomy.by_length.iter().filter_map(|one| {
        let skill = profile.skill(&one.task)?;
        let (from, to) = one.lengths;
        let digits = if from == to { from.to_string() } else { format!("{from}-{to}") };
        let name = format!("{} <small>{}</small>, {digits}", escape(&skill.title), skill.family.title());
        Some((name, one.wrong, classes.iter().map(|class| count(one, *class)).collect()))
    });
    let table = table_of_classes("task, digits", &classes, &rows.collect::<Vec<_>>(), "");
    format!("<details class=\"part\"><summary>By task and length</summary>{table}</details>")
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
    let panels = Family::ALL.into_iter().filter_map(|family| {
        let of = move || found.iter().filter_map(move |row| Some((row, profile.skill(&row.task)?)));
        let of = || of().filter(move |(_, skill)| skill.family == family);
        let decimals = of().map(|(row, _)| row.decimals.len()).max()?;
        let longest = of().map(|(row, _)| row.positions.len()).max()?;
        let whole = if decimals > 0 { longest.min(BEFORE_POINT) } else { longest };
        // Read as numbers are: the largest place at the left.
        let used = |place: &usize| of().any(|(row, _)| row.positions.get(*place).is_some_and(|cell| cell.1 > 0));
        let places: Vec<usize> = (0..whole).rev().filter(used).collect();
        let names = places.iter().map(|place| (place + 1).to_string());
        let columns: Vec<String> = names.chain((1..=decimals).map(|place| format!(".{place}"))).collect();
        let cell = |&(wrong, of): &(usize, usize)| (of > 0).then(|| (wrong as f64 / of as f64, of));
        let rows = of().map(|(row, skill)| {
            let whole = places.iter().map(|&place| row.positions.get(place).and_then(cell));
            let decimals = (0..decimals).map(|place| row.decimals.get(place).and_then(cell));
            HeatRow { name: skill.title.clone(), task: Some(row.task.clone()), cells: whole.chain(decimals).collect() }
        });
        let rows: Vec<HeatRow> = rows.collect();
        Some(HeatPanel { title: family.title().to_owned(), columns, rows })
    });
    let map = Heat {
        name: "wrong-digits".into(),
        title: "Wrong digits, per cent of wrong answers".into(),
        x_label: "position from the point".into(),
        shade: Shade::Share,
        panels: panels.collect(),
    };
    drawn(&map)
}
