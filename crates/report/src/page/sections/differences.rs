//! Paired differences to the first run.
use earnest_tasks::{agreeing, counted};
use minijinja::{Value, context};

use crate::markup::{Markup, html};
use crate::page::ReportRun;
use crate::page::differences::{holds, rows};
use crate::plot::address_part;
use crate::{Comparison, Difference, Flip, p_text};
use earnest_results::ends;
use earnest_tasks::suite::registry::task_label;

/// Largest number of tasks that are shown without folding.
const UNFOLDED: usize = 12;

/// Renders the difference of every run to the first one, then the tasks whose difference holds after Holm's adjustment.
pub fn differences(runs: &[ReportRun], comparisons: &[Comparison]) -> Markup {
    let Some(base) = runs.first().filter(|_| !comparisons.is_empty()) else { return Ok(Value::from("")) };
    let (mut family, mut shown) = (0, 0);
    let compared = comparisons.iter().map(|one| {
        let mut tasks = rows(one, base);
        tasks.retain(|row| row.name != "all");
        let count = |sign: f64| tasks.iter().filter(|row| holds(row) && sign * row.difference > 0.0).count();
        let counts = [count(1.0), count(-1.0), tasks.len()];
        let of = tasks.len();
        family += of;
        let index = runs.iter().position(|run| run.label == one.run).unwrap_or(0);
        tasks.retain(holds);
        tasks.sort_by(|a, b| b.difference.abs().total_cmp(&a.difference.abs()).then_with(|| a.name.cmp(&b.name)));
        shown += tasks.len();
        let caveats = one.caveats().into_iter().map(|caveat| format!("{caveat}."));
        context!(
            index,
            flips => flips(one, index, None),
            run => &one.run,
            overall => cells(&one.overall),
            items => one.items,
            counts,
            said => one.other_scorers().into_iter().chain(caveats).collect::<Vec<_>>(),
            uncommon => one.uncommon(),
            held => tasks.iter().map(|row| task(row, flips(one, index, Some(&row.name)))).collect::<Vec<_>>(),
            open => shown <= UNFOLDED,
            differ => format!("{} of {} {}", tasks.len(), counted(of, "task"), agreeing(tasks.len(), "differs", "differ")),
        )
    });
    let compared: Vec<Value> = compared.collect();
    let none_holds = (shown == 0).then(|| counted(family, "test"));
    let sequential = comparisons.iter().filter_map(|one| one.sequential.as_ref());
    let remarks: Vec<String> = sequential.map(|sequential| sequential.remark()).collect();
    let more: Vec<&str> = comparisons.iter().filter_map(Comparison::more).collect();
    html(
        "differences.html",
        context!(base => &base.label, comparisons => compared, none_holds, remarks, more => more.first().copied()),
    )
}

/// Difference with its interval and its adjusted p value, for two cells.
fn cells(one: &Difference) -> Value {
    let number = |value: f64| if one.shares { format!("{:+.1}", 100.0 * value) } else { format!("{value:+.3}") };
    let interval = one.interval.map(|(low, high)| match one.shares {
        true => ends((100.0 * low, 100.0 * high), 0.0, 1, true),
        false => ends((low, high), 0.0, 3, true),
    });
    context!(
        holds => holds(one),
        sort => one.difference.to_string(),
        difference => number(one.difference),
        interval => interval.map_or_else(|| "no interval".to_owned(), |ends| format!("[{}]", ends.join(", "))),
        p => one.p_holm.map_or_else(|| "–".to_owned(), p_text),
        p_sort => one.p_holm.map_or_else(String::new, |p| p.to_string()),
    )
}

/// Numbers of the items that only the run `index` has right, then of those that only the first one has, each with its samples' address.
fn flips(one: &Comparison, index: usize, task: Option<&str>) -> Vec<Value> {
    let of_task = |flip: &&Flip| task.is_none_or(|task| flip.task == task);
    let count =
        |gained: bool| one.flips.iter().filter(of_task).filter(|flip| (flip.run > flip.baseline) == gained).count();
    let part = task.map(|task| format!("&task={}", address_part(task))).unwrap_or_default();
    let cell = |(gained, right, wrong): (bool, usize, usize)| context!(count => count(gained), samples => format!("#samples?right={right}&wrong={wrong}{part}"));
    [(true, index, 0), (false, 0, index)].map(cell).into()
}

/// Row of a task with both results and their difference.
fn task(one: &Difference, flips: Vec<Value>) -> Value {
    let number = |value: f64| if one.shares { format!("{:.1}", 100.0 * value) } else { format!("{value:.3}") };
    context!(
        task => &one.name,
        label => task_label(&one.name),
        baseline => number(one.baseline),
        run => number(one.run),
        cells => cells(one),
        flips,
    )
}
