//! `earnest compare`.
use std::fmt::Write;

use super::error::CliError;
use super::printer::Printer;
use super::result_args::CompareArgs;
use super::{Exit, results};
use earnest_eval::compare::compare_runs;
use earnest_eval::report::{Align, Comparison, Difference, Sequential, Table, p_text, wrap};

/// Compares stored runs and prints the differences.
pub fn execute(args: &CompareArgs, printer: Printer) -> Result<Exit, CliError> {
    let store = results::open(&args.results.folder, printer)?;
    let comparisons = compare_runs(&store, &args.runs, &mut results::Messages(printer))?;
    if args.json {
        printer.json(&comparisons)?;
    } else {
        let screens: Vec<String> = comparisons
            .iter()
            .map(|comparison| screen(comparison, comparisons.len(), args.flips, printer.width()))
            .collect();
        printer.result(&screens.join("\n"))?;
    }
    Ok(Exit::Success)
}

fn screen(comparison: &Comparison, family: usize, flips: usize, width: usize) -> String {
    let mut text = format!("{} (A)\n{} (B)\n\n", comparison.baseline, comparison.run);
    let rows = match comparison.perturbations.is_empty() || !comparison.tasks.is_empty() {
        true => "task",
        false => "perturbation",
    };
    let head = [
        (rows, Align::Left),
        ("items", Align::Right),
        ("A %", Align::Right),
        ("B %", Align::Right),
        ("B - A", Align::Right),
        ("95 % interval", Align::Right),
        ("p", Align::Right),
        ("p Holm", Align::Right),
        ("McNemar p", Align::Right),
        ("detectable", Align::Right),
    ];
    let mut table = Table::new(head.map(|(name, align)| (name.to_owned(), align)));
    for task in &comparison.tasks {
        table.row(cells(task));
    }
    if !comparison.tasks.is_empty() {
        table.rule();
    }
    for kind in &comparison.perturbations {
        table.row(cells(kind));
    }
    if !comparison.perturbations.is_empty() {
        table.rule();
    }
    table.row(cells(&comparison.overall));
    text.push_str(&table.render());
    text.push('\n');
    let mut remarks = vec![comparison.conclusion()];
    remarks.extend(comparison.sequential.as_ref().map(Sequential::remark));
    let every = || comparison.tasks.iter().chain(&comparison.perturbations).chain([&comparison.overall]);
    let none = if every().any(|one| one.detectable_text() == "none") {
        ", \"none\" where not even the largest possible one is"
    } else {
        ""
    };
    remarks.push(format!(
        "Accuracies in per cent, differences in points, paired by item. Intervals and p values are robust to {} clusters of \
         items; McNemar's exact test takes items as independent. \"detectable\" is the smallest true difference that is detected \
         with 80 % power{none}. Intervals, p values and detectable differences are not adjusted for several tasks; only \
         \"p Holm\" is.",
        comparison.overall.clusters
    ));
    let groups = match (comparison.tasks.is_empty(), comparison.perturbations.is_empty()) {
        (true, true) => None,
        (false, true) => Some("tasks"),
        (true, false) => Some("perturbations"),
        (false, false) => Some("tasks, separately for the perturbations"),
    };
    match (family > 1, groups) {
        (true, Some(groups)) => remarks.push(format!(
            "Holm's method adjusts for the {family} comparisons and, separately, for all their {groups}."
        )),
        (true, None) => remarks.push(format!("Holm's method adjusts for the {family} comparisons.")),
        (false, Some(groups)) => {
            remarks.push(format!("Holm's method adjusts for the {groups}; the last row is a separate family."));
        }
        (false, None) => {}
    }
    if comparison.by_pair > 0 {
        let [mine, theirs] = comparison.items_by_pair;
        let (by_id, by_pair) = (comparison.items - comparison.by_pair, comparison.by_pair);
        remarks.push(format!(
            "Paired by id: {by_id}. Paired by the original that items name in `pair`: {by_pair}, with {mine} items of A and \
             {theirs} of B; where several name one original, their mean counts."
        ));
    }
    if comparison.only_baseline + comparison.only_run > 0 {
        remarks.push(format!(
            "{} items are only in A and {} only in B; they are not compared.",
            comparison.only_baseline, comparison.only_run
        ));
    }
    if comparison.different_question > 0 {
        remarks.push(format!(
            "{} items have one id but are different questions (another seed?); they are not compared.",
            comparison.different_question
        ));
    }
    remarks.extend(power_beforehand(&comparison.overall));
    for remark in &remarks {
        text.push_str(&wrap(remark, width, "* "));
    }
    text.push_str(&rules(comparison, width));
    writeln!(
        text,
        "\nItems that only B has right: {}. Items that only A has right: {}.",
        comparison.gained, comparison.lost
    )
    .expect("writing to a String cannot fail");
    // Both directions are shown, however one-sided the list is.
    let half = flips.div_ceil(2);
    let gains = half.max(flips.saturating_sub(comparison.lost)).min(comparison.gained);
    let losses = (flips - gains.min(flips)).min(comparison.lost);
    let shown =
        comparison.flips.iter().take(gains).chain(comparison.flips.iter().skip(comparison.flips.len() - losses));
    for flip in shown {
        let mark = if flip.run > flip.baseline { '+' } else { '-' };
        writeln!(text, "  {mark} {}", flip.item).expect("writing to a String cannot fail");
    }
    if gains + losses < comparison.flips.len() && flips > 0 {
        writeln!(text, "  and {} more; --flips shows more", comparison.flips.len() - gains - losses)
            .expect("writing to a String cannot fail");
    }
    text
}

/// Table of all rules of both runs, and their primary rules; empty if there is one rule only.
fn rules(comparison: &Comparison, width: usize) -> String {
    if comparison.rules.len() < 2 {
        return String::new();
    }
    let head = [
        ("read by", Align::Left),
        ("items", Align::Right),
        ("A %", Align::Right),
        ("B %", Align::Right),
        ("change", Align::Right),
    ];
    let mut table = Table::new(head.map(|(name, align)| (name.to_owned(), align)));
    for rule in &comparison.rules {
        table.row(vec![
            rule.name.clone(),
            rule.items.to_string(),
            format!("{:.1}", 100.0 * rule.baseline),
            format!("{:.1}", 100.0 * rule.run),
            format!("{:+.1}", 100.0 * (rule.run - rule.baseline)),
        ]);
    }
    let [mine, theirs] = comparison.primary.each_ref().map(|rules| rules.join(" and "));
    let primary = match (mine.as_str(), theirs.as_str()) {
        ("", _) | (_, "") => return format!("\n{}", table.render()),
        (mine, theirs) if mine == theirs => format!("Primary rule: {mine}."),
        (mine, theirs) => format!(
            "Primary rule: {mine} in A, {theirs} in B. `earnest score {} --save --profile {mine}` makes them the same.",
            comparison.run
        ),
    };
    format!("\n{}{}", table.render(), wrap(&primary, width, "* "))
}

/// Power that could be expected before the runs, for all items together.
fn power_beforehand(overall: &Difference) -> Option<String> {
    if overall.disagreement == 0.0 || overall.clusters < 2 {
        return None;
    }
    let from = |size: Option<f64>| size.map(|size| format!("from {:.1} points on", 100.0 * size));
    let clustered = overall.clusters < overall.items;
    let detected = match (from(overall.detectable_before), from(overall.detectable_before_alike)) {
        (None, _) => "no difference is detected with 80 % power".to_owned(),
        (Some(independent), _) if !clustered => format!("differences {independent} are detected with 80 % power"),
        (Some(independent), alike) => format!(
            "differences {independent} are detected with 80 % power if the items of a cluster are independent, {} if they all \
             differ together",
            alike.unwrap_or_else(|| "none".to_owned())
        ),
    };
    let clusters = if clustered { format!(" in {} clusters", overall.clusters) } else { String::new() };
    Some(format!(
        "Expected beforehand, for {} items{clusters} with different outcomes on {:.0} % of them: {detected}.",
        overall.items,
        100.0 * overall.disagreement
    ))
}

fn cells(difference: &Difference) -> Vec<String> {
    let dash = || "-".to_owned();
    vec![
        difference.name.clone(),
        difference.items.to_string(),
        format!("{:.1}", 100.0 * difference.baseline),
        format!("{:.1}", 100.0 * difference.run),
        format!("{:+.1}", 100.0 * difference.difference),
        difference.interval.map_or_else(dash, |(low, high)| format!("[{:+.1}, {:+.1}]", 100.0 * low, 100.0 * high)),
        difference.p.map_or_else(dash, p_text),
        difference.p_holm.map_or_else(dash, p_text),
        difference.mcnemar_p.map_or_else(dash, p_text),
        difference.detectable_text(),
    ]
}
