//! Wrong answers on the page: shares of the classes of errors with their chance, and wrong digits by position.
use minijinja::{Value, context};

use earnest_stats::{Z95, wilson};
use earnest_tasks::anatomy::{CHANCE_DIGITS, ErrorClass, one_digit_rate, random_rate};
use earnest_tasks::suite::Interval;
use earnest_tasks::suite::profile::Family;

use super::{NumeracyProfile, TaskErrors};
use crate::markup::{Markup, drawing, html, safe};
use crate::plot::{Bar, BarGroup, Bars, Heat, HeatPanel, HeatRow, Shade, bars, heat_columns, heat_key};

/// Positions before the point of a map that has digits after it, too.
const BEFORE_POINT: usize = 10;

/// Shares of classes over all tasks, and by task.
pub(super) fn anatomy(profile: &NumeracyProfile) -> Markup {
    let found = &profile.anatomy;
    if found.wrong == 0 {
        return html("anatomy.html", context!(figure => ()));
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
    let missed = found.missed.iter().enumerate().filter(|(_, count)| **count > 0);
    let missed: Vec<String> = missed.map(|(index, count)| format!("{}: {count}", index + 1)).collect();
    let classes = classes(profile);
    html(
        "anatomy.html",
        context!(
            figure => drawing(&bars(&overall)),
            families => by_family(profile, &classes),
            missed => missed.join(", "),
            folded => [("By task", false), ("By task and length", true)]
                .map(|(name, by_length)| (name, by_task(profile, &classes, by_length))),
            classes => classes.iter().map(|class| class.title()).collect::<Value>(),
        ),
    )
}

/// Classes that some wrong answer has, in their order.
fn classes(profile: &NumeracyProfile) -> Vec<ErrorClass> {
    let found = &profile.anatomy.classes;
    ErrorClass::ALL.into_iter().filter(|class| found.iter().any(|share| share.class == *class)).collect()
}

/// A row of a table of shares: the number of wrong answers, and for each class the share, its shade, and a tip with the count and the
/// 95 % interval.
fn row(name: &str, details: [Option<&str>; 2], errors: &[&TaskErrors], classes: &[ErrorClass]) -> Value {
    let [family, digits] = details;
    let wrong: usize = errors.iter().map(|one| one.wrong).sum();
    let cell = |class: &ErrorClass| {
        let of_class = errors.iter().flat_map(|one| &one.classes).filter(|share| share.class == *class);
        let count: usize = of_class.map(|share| share.count).sum();
        let found = wilson(count as f64, wrong as f64, Z95)?;
        let [share, low, high] = [found.value, found.low, found.high].map(|part| 100.0 * part);
        let shown = if count == 0 { String::new() } else { format!("{share:.0}") };
        let tip = format!("{}: {count} of {wrong}, {share:.0} % ({low:.0}-{high:.0})", class.title());
        Some(context!(shown, tip, shade => format!("{:.2}", found.value)))
    };
    context!(name, family, digits, wrong, cells => classes.iter().map(cell).collect::<Value>())
}

/// Rows of the chance of each class: random numbers by the digits of the operands, and right numbers with one random digit.
fn chance(classes: &[ErrorClass]) -> Value {
    let row = |name: String, rate: &dyn Fn(ErrorClass) -> Option<f64>| {
        let shown = |class: &ErrorClass| rate(*class).map_or_else(String::new, |rate| format!("{rate:.1}"));
        (name, classes.iter().map(shown).collect::<Value>())
    };
    let by_digits = CHANCE_DIGITS.iter().enumerate().map(|(index, digits)| {
        let name = format!("chance, {digits} digit{}", if *digits == 1 { "" } else { "s" });
        row(name, &|class| random_rate(class).map(|rates| rates[index]))
    });
    by_digits.chain([row("chance, one digit replaced".to_owned(), &one_digit_rate)]).collect()
}

fn by_family(profile: &NumeracyProfile, classes: &[ErrorClass]) -> Value {
    let rows = Family::ALL.into_iter().filter_map(|family| {
        let is_of = |one: &&TaskErrors| profile.skill(&one.task).is_some_and(|skill| skill.family == family);
        let errors: Vec<&TaskErrors> = profile.anatomy.by_task.iter().filter(is_of).collect();
        (!errors.is_empty()).then(|| row(family.title(), [None, None], &errors, classes))
    });
    context!(what => "skills", rows => rows.collect::<Value>(), chance => chance(classes))
}

/// Shares by task, or by task and length.
fn by_task(profile: &NumeracyProfile, classes: &[ErrorClass], by_length: bool) -> Value {
    let found = &profile.anatomy;
    let (what, errors) = if by_length { ("task, digits", &found.by_length) } else { ("task", &found.by_task) };
    let rows = errors.iter().filter_map(|one| {
        let skill = profile.skill(&one.task)?;
        let (from, to) = one.lengths;
        let digits = if from == to { from.to_string() } else { format!("{from}-{to}") };
        let details = [Some(skill.family.title()), Some(digits.as_str()).filter(|_| by_length)];
        Some(row(&skill.title, details, &[one], classes))
    });
    context!(what, rows => rows.collect::<Value>(), chance => ())
}

fn drawn(map: &Heat) -> Markup {
    let columns = heat_columns(map);
    let columns: Value = columns.iter().map(|column| context!(style => "", svg => safe(column.inline()))).collect();
    html("map.html", context!(title => &map.title, single => false, columns, scale => safe(heat_key(map).inline())))
}

/// Map of wrong digits by task and position.
pub(super) fn positions(profile: &NumeracyProfile) -> Markup {
    let found = &profile.anatomy.positions;
    if found.is_empty() {
        return Ok(Value::from(""));
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
