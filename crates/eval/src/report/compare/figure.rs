//! The figure of comparisons.
use super::{Comparison, Difference};
use crate::report::plot::{Bar, BarGroup, Bars, Figure, bars};
use earnest_tasks::suite::Interval;

/// Draws the differences to the baseline with their 95 % intervals, by task and overall; those that may be chance are hatched. None
/// without a comparison, and of numbers with different units. `label` names a run, by its model where that is enough.
pub fn figure(comparisons: &[Comparison], label: impl Fn(&str) -> String) -> Option<Figure> {
    let first = comparisons.first()?;
    let shares = first.overall.shares;
    if comparisons.iter().any(|comparison| comparison.overall.shares != shares) {
        return None;
    }
    let mut groups: Vec<BarGroup> = Vec::new();
    for (place, comparison) in comparisons.iter().enumerate() {
        for one in comparison.tasks.iter().chain([&comparison.overall]) {
            let bar = Bar { series: place + 1, value: interval(one), significant: one.p_holm.map(|p| p < 0.05) };
            match groups.iter_mut().find(|group| group.label == one.name) {
                Some(group) => group.bars.push(bar),
                None => groups.push(BarGroup { label: one.name.clone(), bars: vec![bar] }),
            }
        }
    }
    groups.sort_by_key(|group| group.label == "all");
    let names = comparisons.iter().map(|comparison| label(&comparison.run));
    let title = match comparisons {
        [only] => format!("{} minus {}", label(&only.run), label(&only.baseline)),
        _ => format!("Difference to {}", label(&first.baseline)),
    };
    Some(bars(&Bars {
        name: "difference".into(),
        title,
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
