//! The figure of comparisons.
use super::{Comparison, Difference};
use crate::plot::{Bar, BarGroup, Bars, Figure, bars};
use earnest_tasks::suite::Interval;

/// Largest number of tasks that are drawn unless all are wanted.
const MOST: usize = 20;

/// Draws the differences to the baseline with their 95 % intervals, by task and overall; those that may be chance are hatched. None
/// without a comparison, and of numbers with different units. `label` names a run, by its model where that is enough. Of many tasks
/// the twenty that differ most are drawn, and the title says so, unless `all` is true.
pub fn figure(comparisons: &[Comparison], label: impl Fn(&str) -> String, all: bool) -> Option<Figure> {
    let first = comparisons.first()?;
    let shares = first.overall.shares;
    if comparisons.iter().any(|comparison| comparison.overall.shares != shares) {
        return None;
    }
    let mut groups: Vec<BarGroup> = Vec::new();
    for (index, comparison) in comparisons.iter().enumerate() {
        for one in comparison.tasks.iter().chain([&comparison.overall]) {
            // What cannot be tested, as of two items, may be chance too.
            let significant = Some(one.p_holm.is_some_and(|p| p < 0.05));
            let bar = Bar { series: index + 1, value: interval(one), significant };
            match groups.iter_mut().find(|group| group.label == one.name) {
                Some(group) => group.bars.push(bar),
                None => groups.push(BarGroup { label: one.name.clone(), bars: vec![bar] }),
            }
        }
    }
    // All items together come first.
    groups.sort_by_key(|group| group.label != "all");
    let tasks = groups.iter().filter(|group| group.label != "all").count();
    if tasks > MOST && !all {
        let size = |group: &BarGroup| group.bars.iter().map(|bar| bar.value.estimate.abs()).fold(0.0, f64::max);
        let mut sizes: Vec<f64> = groups.iter().filter(|group| group.label != "all").map(size).collect();
        sizes.sort_by(|one, other| other.total_cmp(one));
        let mut left = MOST;
        let least = sizes[MOST - 1];
        groups.retain(|group| {
            let keeps = group.label == "all" || size(group) > 0.0 && size(group) >= least && left > 0;
            left -= usize::from(keeps && group.label != "all");
            keeps
        });
    }
    let drawn = groups.iter().filter(|group| group.label != "all").count();
    let names = comparisons.iter().map(|comparison| label(&comparison.run));
    let title = match comparisons {
        [only] => format!("{} minus {}", label(&only.run), label(&only.baseline)),
        _ => format!("Difference to {}", label(&first.baseline)),
    };
    let part =
        if drawn < tasks { format!(" ({drawn} of {tasks} tasks, those that differ most)") } else { String::new() };
    Some(bars(&Bars {
        name: "difference".into(),
        title: title + &part,
        x_label: if shares { "difference, percentage points" } else { "difference of the means" }.into(),
        series: [label(&first.baseline)].into_iter().chain(names).collect(),
        groups,
        domain: None,
        factor: if shares { 100.0 } else { 1.0 },
        legend: comparisons.len() > 1,
    }))
}

fn interval(one: &Difference) -> Interval {
    let (low, high) = one.interval.unwrap_or((f64::NEG_INFINITY, f64::INFINITY));
    Interval { estimate: one.difference, low, high }
}
