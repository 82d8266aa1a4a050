//! Wrong answers on the page: shares of the classes of errors with their chance, and wrong digits by position.
use minijinja::{Value, context};

use earnest_tasks::anatomy::ErrorClass;
use earnest_tasks::suite::Interval;
use earnest_tasks::suite::profile::Family;

use super::{ClassShare, NumeracyProfile};
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
    let families: Vec<(&str, usize, &[ClassShare])> =
        found.by_family.iter().map(|one| (one.family.title(), one.wrong, one.classes.as_slice())).collect();
    let columns = families.into_iter().chain([("all", found.wrong, found.classes.as_slice())]);
    let columns: Vec<(&str, usize, &[ClassShare])> = columns.collect();
    let of_class = |class: ErrorClass| {
        let cells = columns.iter().map(|(_, wrong, shares)| {
            let share = shares.iter().find(|share| share.class == class)?;
            Some(cell(share, *wrong))
        });
        context!(class => class.title(), cells => cells.collect::<Value>())
    };
    html(
        "anatomy.html",
        context!(
            figure => drawing(&bars(&overall)),
            families => columns.iter().map(|(name, wrong, _)| context!(name => *name, wrong => *wrong)).collect::<Value>(),
            rows => found.classes.iter().map(|share| of_class(share.class)).collect::<Value>(),
            missed => missed.join(", "),
            folded => [by_task(profile, "By task", false), by_task(profile, "By task and length", true)],
        ),
    )
}

/// A share: per cent with its 95 % interval and its chance, its shade, and a tip with the count.
fn cell(share: &ClassShare, wrong: usize) -> Value {
    let class = share.class.title();
    let [value, low, high] = [share.share, share.low, share.high].map(|part| 100.0 * part);
    let chance = share.chance.map(|chance| format!("{:.0}", 100.0 * chance));
    let by_chance = chance.as_ref().map_or_else(String::new, |chance| format!(", by chance {chance} %"));
    let tip = format!("{class}: {} of {wrong}, {value:.0} % ({low:.0}-{high:.0}){by_chance}", share.count);
    let [shown, interval] = [format!("{value:.0}"), format!("{low:.0}-{high:.0}")];
    context!(class, shown, interval, chance, tip, shade => format!("{:.2}", share.share))
}

/// Shares by task, or by task and length.
fn by_task(profile: &NumeracyProfile, name: &str, by_length: bool) -> Value {
    let found = &profile.anatomy;
    let (what, errors) = if by_length { ("task, digits", &found.by_length) } else { ("task", &found.by_task) };
    let rows = errors.iter().filter_map(|one| {
        let skill = profile.skill(&one.task)?;
        let (from, to) = one.lengths;
        let digits = by_length.then(|| if from == to { from.to_string() } else { format!("{from}-{to}") });
        let cells: Value = one.classes.iter().map(|share| cell(share, one.wrong)).collect();
        let family = skill.family.title();
        Some(context!(name => &skill.title, family, digits, wrong => one.wrong, cells))
    });
    context!(name, what, rows => rows.collect::<Value>())
}

fn drawn(map: &Heat) -> Markup {
    let columns = heat_columns(map);
    let columns: Value = columns.iter().map(|column| context!(style => "", svg => safe(column.inline()))).collect();
    html(
        "map.html",
        context!(title => &map.title, linked => false, single => false, columns, scale => safe(heat_key(map).inline())),
    )
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
        covariate: None,
        samples: None,
    };
    drawn(&map)
}
