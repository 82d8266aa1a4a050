//! `earnest compare`.
use std::fmt::Write;

use super::error::CliError;
use super::printer::Printer;
use super::result_args::CompareArgs;
use super::{Exit, results};
use earnest_eval::report::{Align, Comparison, Difference, Scores, Table, compare, differing_settings, p_text, wrap};
use earnest_eval::run::store::{Filter, RunRecord, Store};
use earnest_eval::run::{FileRecord, shown};

/// Compares.
pub fn execute(args: &CompareArgs, printer: Printer) -> Result<Exit, CliError> {
    let store = results::open(&args.results.folder, printer)?;
    let runs = args.runs.iter().map(|name| store.run(name)).collect::<Result<Vec<RunRecord>, _>>()?;
    check(&runs, printer)?;
    let mut scores = Vec::with_capacity(runs.len());
    for run in &runs {
        let mut of_run = Scores::decided_by(results::primary(&store, run)?);
        for sample in store.samples(run, Filter::default()) {
            of_run.add(&sample?);
        }
        if of_run.without_verdict > 0 {
            printer.warning(&format!(
                "{} samples of {} have no answer and are in no comparison",
                of_run.without_verdict, run.manifest.run
            ));
        }
        scores.push(of_run);
    }
    read_questions(&store, &runs, &mut scores, printer);
    let names: Vec<String> = runs.iter().map(|run| run.manifest.run.clone()).collect();
    let mut comparisons = compare(&names, &scores);
    for (found, run) in comparisons.iter_mut().zip(&runs[1..]) {
        found.settings = differing_settings(&runs[0].manifest, &run.manifest);
        if !found.settings.is_empty() {
            printer.warning(&settings_warning(found));
        }
    }
    if args.json {
        printer.json(&comparisons)?;
    } else {
        let screens: Vec<String> =
            comparisons.iter().map(|found| screen(found, comparisons.len(), args.flips, printer.width())).collect();
        printer.result(&screens.join("\n"))?;
    }
    Ok(Exit::Success)
}

/// Runs whose options differ may have other questions under the same ids.
fn read_questions(store: &Store, runs: &[RunRecord], scores: &mut [Scores], printer: Printer) {
    let Some((first, rest)) = runs.split_first() else { return };
    let mine = &first.manifest.settings;
    let alike = rest.iter().all(|run| mine.asks_alike(&run.manifest.settings));
    if alike || scores.iter().all(|scores| !scores.lacks_questions()) {
        return;
    }
    for (run, scores) in runs.iter().zip(scores) {
        if let Err(error) = results::each_question(store, run, |item| scores.read_question(&item)) {
            printer.warning(&format!(
                "the options of the runs differ, and whether an item of {} is the same question cannot be seen, only whether it has \
                 the same answer: {error}",
                run.manifest.run
            ));
        }
    }
}

/// Says what makes runs hard to compare.
fn check(runs: &[RunRecord], printer: Printer) -> Result<(), CliError> {
    let Some((first, rest)) = runs.split_first() else { return Ok(()) };
    let (name, mine) = (&first.manifest.run, &first.manifest.settings);
    for other in rest {
        let theirs = &other.manifest.settings;
        if first.id == other.id {
            return Err(CliError::usage(format!("{name} is named twice: compare two runs")));
        }
        if theirs.suite != mine.suite {
            let message = format!(
                "{name} is of {} and {} of {}: they have no items in common",
                mine.suite, other.manifest.run, theirs.suite
            );
            return Err(CliError::usage(message));
        }
        let (model, other_model) = (&first.manifest.model, &other.manifest.model);
        if model.name == other_model.name && mine.model_files != theirs.model_files {
            printer.warning(&format!(
                "{name} and {} name their models alike ({}), but the files differ: {}",
                other.manifest.run,
                model.name,
                changed_files(&mine.model_files, &theirs.model_files)
            ));
        }
        if theirs.suite_version != mine.suite_version {
            printer.warning(&format!(
                "{name} was scored with version {} of the suite, {} with {}; `earnest score --save` scores them alike",
                mine.suite_version, other.manifest.run, theirs.suite_version
            ));
        }
    }
    Ok(())
}

/// Names every setting in which the runs differ, with both values.
fn settings_warning(found: &Comparison) -> String {
    let named = found.settings.iter().map(|change| {
        let name = change.name.strip_prefix("suite_options.").unwrap_or(&change.name);
        format!("{name} ({} in A, {} in B)", shown(&change.one), shown(&change.other))
    });
    format!(
        "{} (A) and {} (B) were not run alike, so that a difference need not be the models'; different: {}",
        found.baseline,
        found.run,
        named.collect::<Vec<_>>().join(", ")
    )
}

/// Names of files with other content, or in one list only.
fn changed_files(mine: &[FileRecord], theirs: &[FileRecord]) -> String {
    let alone = |these: &[FileRecord], those: &[FileRecord]| -> Vec<String> {
        these.iter().filter(|file| !those.contains(file)).map(|file| file.name.clone()).collect()
    };
    let mut names = [alone(mine, theirs), alone(theirs, mine)].concat();
    names.sort();
    names.dedup();
    names.join(", ")
}

fn screen(found: &Comparison, family: usize, flips: usize, width: usize) -> String {
    let mut text = format!("{} (A)\n{} (B)\n\n", found.baseline, found.run);
    let head = [
        ("task", Align::Left),
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
    for task in &found.tasks {
        table.row(cells(task));
    }
    if !found.tasks.is_empty() {
        table.rule();
    }
    table.row(cells(&found.overall));
    text.push_str(&table.render());
    text.push('\n');
    let mut remarks = vec![found.verdict()];
    let every = || found.tasks.iter().chain([&found.overall]);
    let none = if every().any(|one| one.detectable_text() == "none") {
        ", \"none\" where not even the largest possible one would be"
    } else {
        ""
    };
    remarks.push(format!(
        "Accuracies in per cent, differences in points, paired by item. Intervals and p values allow for {} clusters of items \
         that are alike; McNemar's exact test takes items as independent. \"detectable\" is the smallest true difference that is \
         found 4 times of 5{none}. The table's intervals, p and detectable differences are each line's own; only \"p Holm\" is \
         adjusted.",
        found.overall.clusters
    ));
    let tasks = !found.tasks.is_empty();
    if family > 1 || tasks {
        remarks.push(match (family > 1, tasks) {
            (true, true) => {
                format!("Holm's method adjusts for the {family} comparisons, and apart from that for all their tasks.")
            }
            (true, false) => format!("Holm's method adjusts for the {family} comparisons."),
            (false, _) => "Holm's method adjusts for the tasks; the last row is a family of its own.".to_owned(),
        });
    }
    if found.only_baseline + found.only_run > 0 {
        remarks.push(format!(
            "{} items are only in A and {} only in B; they are not compared.",
            found.only_baseline, found.only_run
        ));
    }
    if found.different_question > 0 {
        remarks.push(format!(
            "{} items have one id but are different questions (another seed?); they are not compared.",
            found.different_question
        ));
    }
    remarks.extend(before(&found.overall));
    for remark in &remarks {
        text.push_str(&wrap(remark, width, "* "));
    }
    text.push_str(&rules(found, width));
    writeln!(text, "\nItems that only B has right: {}. Items that only A has right: {}.", found.gained, found.lost)
        .expect("writing to a String cannot fail");
    // Both directions are shown, however one-sided the list is.
    let half = flips.div_ceil(2);
    let gains = half.max(flips.saturating_sub(found.lost)).min(found.gained);
    let losses = (flips - gains.min(flips)).min(found.lost);
    let shown = found.flips.iter().take(gains).chain(found.flips.iter().skip(found.flips.len() - losses));
    for flip in shown {
        let mark = if flip.run > flip.baseline { '+' } else { '-' };
        writeln!(text, "  {mark} {}", flip.item).expect("writing to a String cannot fail");
    }
    if gains + losses < found.flips.len() && flips > 0 {
        writeln!(text, "  and {} more; --flips shows more", found.flips.len() - gains - losses)
            .expect("writing to a String cannot fail");
    }
    text
}

/// Every rule of both runs, and which of them decides; nothing where there is one rule only.
fn rules(found: &Comparison, width: usize) -> String {
    if found.rules.len() < 2 {
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
    for rule in &found.rules {
        table.row(vec![
            rule.name.clone(),
            rule.items.to_string(),
            format!("{:.1}", 100.0 * rule.baseline),
            format!("{:.1}", 100.0 * rule.run),
            format!("{:+.1}", 100.0 * (rule.run - rule.baseline)),
        ]);
    }
    let [mine, theirs] = found.primary.each_ref().map(|rules| rules.join(" and "));
    let decides = match (mine.as_str(), theirs.as_str()) {
        ("", _) | (_, "") => String::new(),
        (mine, theirs) if mine == theirs => wrap(&format!("What is right is decided by {mine}."), width, "* "),
        (mine, theirs) => {
            let said = format!(
                "What is right is decided by {mine} in A and by {theirs} in B: `earnest score {} --save --profile {mine}` makes them \
                 alike.",
                found.run
            );
            wrap(&said, width, "* ")
        }
    };
    format!("\n{}{decides}", table.render())
}

/// What could be expected before the runs, of all items together.
fn before(overall: &Difference) -> Option<String> {
    if overall.disagreement == 0.0 || overall.clusters < 2 {
        return None;
    }
    let from = |size: Option<f64>| size.map(|size| format!("from {:.1} points on", 100.0 * size));
    let clustered = overall.clusters < overall.items;
    let found = match (from(overall.detectable_before), from(overall.detectable_before_alike)) {
        (None, _) => "no difference is found 4 times of 5".to_owned(),
        (Some(apart), _) if !clustered => format!("a difference is found 4 times of 5 {apart}"),
        (Some(apart), alike) => format!(
            "a difference is found 4 times of 5 {apart} if items of a cluster are no more alike than others, {} if they all \
             differ together",
            alike.unwrap_or_else(|| "none".to_owned())
        ),
    };
    let clusters = if clustered { format!(" in {} clusters", overall.clusters) } else { String::new() };
    Some(format!(
        "What could be expected before, of {} items{clusters} with other outcomes on {:.0} % of them: {found}.",
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
