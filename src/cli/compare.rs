//! `earnest compare`.
use super::values::{agreeing, counted};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::path::{Path, PathBuf};

use serde::Serialize;

use super::error::CliError;
use super::figures::write_figure;
use super::printer::{Printer, harmless, one_line};
use super::result_args::CompareArgs;
use super::{Exit, offered, results};
use earnest_logs::FindOptions;
use earnest_report::compare::{AskedOfBoth, CompareLogs, LogComparisons, asked_of_both, compare_logs, compare_runs};
use earnest_report::{
    Align, Comparison, Difference, Flip, PairedModel, Sequential, Table, comparison_figure, p_text, wrap,
};
use earnest_results::ends;
use earnest_results::scores::CompareSettings;
use earnest_tasks::suite::registry::task_label;

/// Largest number of tasks of which those without a difference are shown too.
const UNFOLDED: usize = 20;

/// Compares stored runs and prints the differences.
pub fn execute(args: &CompareArgs, printer: Printer) -> Result<Exit, CliError> {
    let (comparisons, left_out) = comparisons(args, printer)?;
    if let Some(path) = &args.figure {
        let models = models(args, &comparisons, printer)?;
        let label = |run: &str| models.get(run).cloned().unwrap_or_else(|| run.to_owned());
        let figure = comparison_figure(&comparisons, label, args.all).ok_or_else(|| {
            CliError::usage("the comparisons have different units, which one figure cannot show")
                .help("draw them one by one")
        })?;
        write_figure(path, &figure)?;
        printer.remark(&format!("{}: the differences with their intervals", path.display()));
    }
    if args.json {
        let printed = comparisons.iter().map(|comparison| {
            let caveats = comparison.caveats().into_iter().map(|caveat| caveat.to_string());
            let caveats = caveats.chain(comparison.other_scorers()).collect();
            PrintedComparison { comparison, caveats }
        });
        printer.json(&printed.collect::<Vec<_>>())?;
    } else {
        let screens = comparisons.iter().map(|comparison| {
            let asked = asked(args, comparison, printer)?;
            Ok(screen(comparison, &asked, comparisons.len(), args, printer.width()))
        });
        printer.result(&screens.collect::<Result<Vec<String>, CliError>>()?.join("\n"))?;
    }
    Ok(if left_out > 0 { Exit::FailedSamples } else { Exit::Success })
}

/// Names of the models by run, where they tell the runs apart.
fn models(
    args: &CompareArgs,
    comparisons: &[Comparison],
    printer: Printer,
) -> Result<BTreeMap<String, String>, CliError> {
    if args.runs.iter().all(|word| Path::new(word).exists()) {
        return Ok(BTreeMap::new());
    }
    let store = results::open(&args.results.folder, printer)?;
    let mut models = BTreeMap::new();
    for run in comparisons.iter().flat_map(|comparison| [&comparison.baseline, &comparison.run]) {
        models.extend(store.exactly(run)?.map(|found| (run.clone(), found.manifest.model.name)));
    }
    let distinct: BTreeSet<&String> = models.values().collect();
    Ok(if distinct.len() == models.len() { models } else { BTreeMap::new() })
}

/// A comparison as `--json` prints it.
#[derive(Serialize)]
struct PrintedComparison<'a> {
    #[serde(flatten)]
    comparison: &'a Comparison,
    /// Sentences about what else differs than the models; warnings beside the screen.
    caveats: Vec<String>,
}

/// Compares logs where every word is a file or folder, else stored runs; returns the number of logs and samples that were left out
/// too.
fn comparisons(args: &CompareArgs, printer: Printer) -> Result<(Vec<Comparison>, usize), CliError> {
    let CompareArgs { chosen, cluster, task, .. } = args;
    let settings = CompareSettings { chosen: chosen.clone(), cluster: cluster.clone(), task: task.clone() };
    let (paths, names): (Vec<&String>, Vec<&String>) = args.runs.iter().partition(|word| Path::new(word).exists());
    // A run may be named as a folder is, but not with a slash.
    let is_path = |word: &&String| word.contains(['/', std::path::MAIN_SEPARATOR]) || word.ends_with(".eval");
    let of_logs = !paths.is_empty() && args.runs.iter().any(|word| is_path(&word));
    if let (true, Some(missing)) = (of_logs, names.first()) {
        return Err(CliError::usage(format!("there is no file or folder {missing}")));
    }
    if names.is_empty() {
        let logs = CompareLogs {
            paths: paths.into_iter().map(PathBuf::from).collect(),
            find: FindOptions { columns: args.columns.table(), keep_going: args.keep_going, ..FindOptions::default() },
            answers: args.answers.clone(),
            compare: settings,
        };
        let LogComparisons { comparisons, left_out } = compare_logs(&logs, &mut results::Messages(printer))?;
        return Ok((comparisons, left_out));
    }
    if args.runs.len() < 2 {
        return Err(CliError::usage(format!("{} is one RUN, and a comparison needs two", args.runs[0]))
            .help("name another run, or folders of logs"));
    }
    let for_logs = [("answers", args.answers.is_some()), ("columns", args.columns.table().is_some())];
    if let Some((option, _)) = for_logs.into_iter().find(|(_, given)| *given) {
        return Err(CliError::usage(format!("--{option} is for logs, and {} is the name of a run", names[0]))
            .help(format!("`earnest import PATH --{option} ...` stores logs as runs")));
    }
    let store = results::open(&args.results.folder, printer)?;
    Ok((compare_runs(&store, &args.runs, &settings, &mut results::Messages(printer))?, 0))
}

/// The items that a screen lists: of both directions, however one-sided the changes are.
fn listed(comparison: &Comparison, flips: usize) -> Vec<&Flip> {
    let half = flips.div_ceil(2);
    let gains = half.max(flips.saturating_sub(comparison.lost)).min(comparison.gained);
    let losses = (flips - gains.min(flips)).min(comparison.lost);
    comparison.flips.iter().take(gains).chain(comparison.flips.iter().skip(comparison.flips.len() - losses)).collect()
}

/// Questions and answers of the items that the screens list; none of logs, which are not stored.
fn asked(args: &CompareArgs, comparison: &Comparison, printer: Printer) -> Result<Vec<AskedOfBoth>, CliError> {
    if comparison.of_logs && args.runs.iter().all(|word| Path::new(word).exists()) {
        return Ok(Vec::new());
    }
    let store = results::open(&args.results.folder, printer)?;
    let runs = [store.run(&comparison.baseline)?, store.run(&comparison.run)?];
    let found = listed(comparison, args.flips)
        .into_iter()
        .map(|flip| asked_of_both(&store, &runs, flip, comparison.common_scorer()));
    Ok(found.collect::<Result<Vec<_>, _>>()?.into_iter().flatten().collect())
}

fn screen(comparison: &Comparison, asked: &[AskedOfBoth], family: usize, args: &CompareArgs, width: usize) -> String {
    let mut text = format!("{} (A)\n{} (B)\n\n", one_line(&comparison.baseline), one_line(&comparison.run));
    let (mut table, alike) = differences(comparison, args.all);
    let left_out = table.fit(width, ["McNemar p", "p BH", "detectable", "p"]);
    table.shorten_names(width);
    text.push_str(&wrap(&harmless(&offered::here(&comparison.conclusion())), width, ""));
    text.push('\n');
    text.push_str(&table.render());
    text.push('\n');
    let mut remarks = Vec::new();
    if alike > 0 {
        remarks.push(format!(
            "{alike} more tasks have the same accuracy in both runs and are not shown: --all shows them."
        ));
    }
    remarks.extend(comparison.sequential.as_ref().map(Sequential::remark));
    remarks.extend(comparison.model.as_ref().map(PairedModel::remark));
    remarks.extend(of_logs(comparison));
    remarks.push(reading(comparison));
    remarks.extend(families(comparison, family));
    remarks.extend(pairing(comparison));
    // One statement on what could be found: from the standard error, or, without one, from the number of items.
    if comparison.right_or_wrong && comparison.overall.interval.is_none() {
        remarks.extend(power_beforehand(&comparison.overall));
    }
    if !left_out.is_empty() {
        remarks.push(format!("A wider terminal and --json also have: {}.", left_out.join("; ")));
    }
    for remark in &remarks {
        text.push_str(&wrap(&harmless(&offered::here(remark)), width, "* "));
    }
    text.push_str(&scorers(comparison, width));
    write_flips(&mut text, comparison, asked, args.flips, width);
    text
}

/// Table of the differences, and the number of tasks without one that are left out.
fn differences(comparison: &Comparison, all: bool) -> (Table, usize) {
    let rows = match comparison.perturbations.is_empty() || !comparison.tasks.is_empty() {
        true => "task",
        false => "perturbation",
    };
    let head = [
        (rows, Align::Left),
        ("items", Align::Right),
        (if comparison.overall.shares { "A %" } else { "A" }, Align::Right),
        (if comparison.overall.shares { "B %" } else { "B" }, Align::Right),
        ("B - A", Align::Right),
        ("95 % interval", Align::Right),
        ("p", Align::Right),
        ("p Holm", Align::Right),
        ("p BH", Align::Right),
        ("McNemar p", Align::Right),
        ("detectable", Align::Right),
    ];
    let mut table = Table::new(head.map(|(name, align)| (name.to_owned(), align)));
    let folds = !all && comparison.tasks.len() > UNFOLDED;
    let (alike, shown): (Vec<&Difference>, Vec<&Difference>) =
        comparison.tasks.iter().partition(|task| folds && task.difference == 0.0);
    table.row(cells(&comparison.overall));
    for group in [shown, comparison.perturbations.iter().collect()] {
        if !group.is_empty() {
            table.rule();
        }
        group.into_iter().for_each(|one| table.row(cells(one)));
    }
    (table, alike.len())
}

/// Explanation of the columns of the table.
fn reading(comparison: &Comparison) -> String {
    let every = || comparison.tasks.iter().chain(&comparison.perturbations).chain([&comparison.overall]);
    let shows = |text: &str| every().any(|one| one.detectable_text() == text);
    let mut none = String::new();
    if shows("none") {
        none.push_str(", \"none\" where not even the largest possible one is");
    }
    if shows("few") {
        none.push_str(", \"few\" where fewer than 6 items differ, which is too few to say");
    }
    if every().any(|one| one.detectable_text().starts_with(['+', '-']) && one.detectable.is_some()) {
        none.push_str(", with a sign where A leaves room for it in that direction only");
    }
    let unit = match comparison.overall.shares {
        true => "Accuracies in per cent, differences in points",
        false => "Means of the scores",
    };
    format!(
        "{unit}, paired by item. {} McNemar's exact test takes items as independent. \"detectable\" is the smallest true difference that \
         is detected with 80 % power{none}. Intervals, p values and detectable differences are not adjusted for several tasks; \
         \"p Holm\" and \"p BH\" are.",
        comparison.tests()
    )
}

/// The families of tests that are adjusted.
fn families(comparison: &Comparison, family: usize) -> Option<String> {
    let of_groups = |name: &str, rows: &[Difference]| {
        let tests = rows.iter().filter(|row| row.p.is_some()).map(|row| row.family).max().unwrap_or(0);
        (tests > 1).then(|| format!("the {tests} tests of {name}"))
    };
    let families: Vec<String> = [(family > 1).then(|| format!("the {family} runs that are compared with A"))]
        .into_iter()
        .chain([of_groups("tasks", &comparison.tasks), of_groups("perturbations", &comparison.perturbations)])
        .flatten()
        .collect();
    (!families.is_empty()).then(|| {
        format!(
            "Families that are adjusted, each for itself: {}. Holm's method bounds the chance of any false positive in the family, that \
             of Benjamini and Hochberg (BH) the share of false ones among those that hold.",
            families.join("; ")
        )
    })
}

/// Remarks on items that were paired by originals, and on those that were not paired.
fn pairing(comparison: &Comparison) -> Vec<String> {
    let mut remarks = Vec::new();
    if comparison.by_pair > 0 {
        let [mine, theirs] = comparison.items_by_pair;
        let (by_id, by_pair) = (comparison.items - comparison.by_pair, comparison.by_pair);
        remarks.push(format!(
            "Paired by id: {by_id}. Paired by the original that items name in `pair`: {by_pair}, with {} of A and \
             {theirs} of B; where several name one original, their mean counts.",
            counted(mine, "item")
        ));
    }
    if comparison.only_baseline + comparison.only_run > 0 {
        remarks.push(format!(
            "{} {} only in A and {} only in B; they are not compared.",
            counted(comparison.only_baseline, "item"),
            agreeing(comparison.only_baseline, "is", "are"),
            comparison.only_run
        ));
    }
    if comparison.different_question > 0 {
        remarks.push(format!(
            "{} with one id {} (another seed?) and not compared.",
            counted(comparison.different_question, "item"),
            agreeing(comparison.different_question, "is another question in B", "are other questions in B")
        ));
    }
    remarks
}

/// Writes the items that one run alone has right.
fn write_flips(text: &mut String, comparison: &Comparison, asked: &[AskedOfBoth], flips: usize, width: usize) {
    let (gained, lost) = (comparison.gained, comparison.lost);
    match (comparison.right_or_wrong, comparison.several) {
        (true, false) => {
            writeln!(text, "\nItems that only B has right: {gained}. Items that only A has right: {lost}.")
        }
        (true, true) => writeln!(text, "\nItems that B has right more often: {gained}. Items that A has: {lost}."),
        (false, _) => {
            writeln!(text, "\nItems with a higher score in B: {gained}. Items with a higher score in A: {lost}.")
        }
    }
    .expect("writing to a String cannot fail");
    let listed = listed(comparison, flips);
    for flip in &listed {
        let mark = if flip.run > flip.baseline { '+' } else { '-' };
        writeln!(text, "  {mark} {}", one_line(&flip.item)).expect("writing to a String cannot fail");
        if let Some(asked) = asked.iter().find(|asked| asked.item == flip.item) {
            let [mine, theirs] = &asked.answers;
            let line = format!("A answers {mine}, B {theirs}, expected {}", asked.target);
            for line in [&asked.question, &line] {
                text.push_str(&wrap(&one_line(line), width, "      "));
            }
        }
    }
    if listed.len() < comparison.flips.len() && flips > 0 {
        writeln!(text, "  and {} more; --flips shows more", comparison.flips.len() - listed.len())
            .expect("writing to a String cannot fail");
    }
}

/// Remarks on the scorers and the pairs of other tools' logs.
fn of_logs(comparison: &Comparison) -> Vec<String> {
    if !comparison.of_logs {
        return Vec::new();
    }
    let mut remarks = Vec::new();
    let [mine, theirs] = comparison.chosen.each_ref().map(|scorers| scorers.join(", "));
    match (mine.as_str(), theirs.as_str()) {
        ("", _) | (_, "") => {}
        (mine, theirs) if mine == theirs => remarks.push(format!("Scored by {mine}; --scorer names another.")),
        (mine, theirs) => remarks.push(format!("A is scored by {mine}, B by {theirs}; --scorer names one for both.")),
    }
    if comparison.by_text > 0 || comparison.ambiguous > 0 {
        let by_id = comparison.items - comparison.by_text;
        let ambiguous = match comparison.ambiguous {
            0 => String::new(),
            count => format!(
                " {} of A {} a question that several items have, and {} not paired.",
                counted(count, "item"),
                agreeing(count, "has", "have"),
                agreeing(count, "is", "are")
            ),
        };
        remarks.push(format!("Paired by id: {by_id}, by the question's text: {}.{ambiguous}", comparison.by_text));
    }
    if comparison.without_clusters && comparison.items > 1 {
        let shared = comparison.shared_questions;
        let counting = match shared {
            0 => "Items count as independent".to_owned(),
            _ => format!(
                "{} {} asked in several tasks, and all answers to one are one cluster; different questions count as independent",
                counted(shared, "question"),
                agreeing(shared, "is", "are")
            ),
        };
        remarks.push(format!(
            "{counting}. If some belong together (variants of one template, questions on one text), --cluster FIELD names the \
             field of the questions that says so."
        ));
    }
    remarks
}

/// Table of all scorers of both runs, and those that decide; empty if there is one only.
fn scorers(comparison: &Comparison, width: usize) -> String {
    if comparison.scorers.len() < 2 {
        return String::new();
    }
    // Shares are in per cent unless other numbers stand beside them.
    let shares = comparison.scorers.iter().all(|scorer| scorer.shares);
    let number = |value: f64| if shares { format!("{:.1}", 100.0 * value) } else { format!("{value:.3}") };
    let change = |value: f64| if shares { format!("{:+.1}", 100.0 * value) } else { format!("{value:+.3}") };
    let head = [
        ("scorer", Align::Left),
        ("items", Align::Right),
        (if shares { "A %" } else { "A" }, Align::Right),
        (if shares { "B %" } else { "B" }, Align::Right),
        ("change", Align::Right),
    ];
    let mut table = Table::new(head.map(|(name, align)| (name.to_owned(), align)));
    for scorer in &comparison.scorers {
        table.row(vec![
            scorer.name.clone(),
            scorer.items.to_string(),
            number(scorer.baseline),
            number(scorer.run),
            change(scorer.run - scorer.baseline),
        ]);
    }
    let [mine, theirs] = comparison.chosen.each_ref().map(|scorers| scorers.join(" and "));
    let chosen = match (mine.as_str(), theirs.as_str()) {
        _ if comparison.of_logs => return format!("\n{}", table.render()),
        ("", _) | (_, "") => return format!("\n{}", table.render()),
        (mine, theirs) if mine == theirs => match &comparison.own_scorers {
            None => format!("Scorer: {mine}."),
            Some(own) => {
                let [first, second] = own.each_ref().map(|own| own.join(" and "));
                format!(
                    "Compared by {mine}, which both have; by default A is scored by {first} and B by {second}. --scorer names \
                     another."
                )
            }
        },
        (mine, theirs) => format!(
            "A is scored by {mine}, B by {theirs}. `earnest score {} --save --scorer {mine}` makes them the same.",
            comparison.run
        ),
    };
    format!("\n{}{}", table.render(), wrap(&offered::here(&chosen), width, "* "))
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
    let clusters = if clustered { format!(" in {}", counted(overall.clusters, "cluster")) } else { String::new() };
    Some(format!(
        "Expected beforehand, for {}{clusters} with different outcomes on {:.0} % of them: {detected}.",
        counted(overall.items, "item"),
        100.0 * overall.disagreement
    ))
}

fn cells(difference: &Difference) -> Vec<String> {
    let dash = || "-".to_owned();
    let plain = |value: f64| if difference.shares { format!("{:.1}", 100.0 * value) } else { format!("{value:.3}") };
    let signed = |value: f64| if difference.shares { format!("{:+.1}", 100.0 * value) } else { format!("{value:+.3}") };
    vec![
        task_label(&difference.name).into_owned(),
        difference.items.to_string(),
        plain(difference.baseline),
        plain(difference.run),
        signed(difference.difference),
        difference.interval.map_or_else(dash, |(low, high)| {
            let ends = match difference.shares {
                true => ends((100.0 * low, 100.0 * high), 0.0, 1, true),
                false => ends((low, high), 0.0, 3, true),
            };
            format!("[{}]", ends.join(", "))
        }),
        difference.p.map_or_else(dash, p_text),
        difference.p_holm.map_or_else(dash, p_text),
        difference.p_bh.map_or_else(dash, p_text),
        difference.mcnemar_p.map_or_else(dash, p_text),
        difference.detectable_text(),
    ]
}
