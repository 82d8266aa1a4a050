//! `earnest import`.
use std::fmt::Write;

use serde::Serialize;

use super::error::CliError;
use super::log_args::ImportLogsArgs;
use super::printer::Printer;
use super::result_args::ImportArgs;
use super::{Exit, catalogue, results};
use earnest_eval::import::{ImportSettings, Imported, ImportedLogs, LogImportSettings, import, import_logs};
use earnest_eval::report::{Align, Table, percent, wrap};
use earnest_tasks::suite::{Interval, SummaryRow};
use earnest_tasks::{agreeing, counted};

impl ImportArgs {
    fn settings(&self) -> ImportSettings {
        let folder = &self.results.folder;
        let defaults = ImportSettings::new(self.suite.name, &self.completions, &self.name, folder);
        let prompts = self.prompt.clone().unwrap_or_default();
        ImportSettings {
            options: catalogue::values(&self.suite.options, self.seed.seed, &prompts),
            prompt: prompts.mode.unwrap_or(defaults.prompt),
            limit: self.limit,
            ..defaults
        }
    }
}

/// Imports completions, prints the run's document, and says where to read on.
pub fn execute(args: &ImportArgs, quiet: bool, printer: Printer) -> Result<Exit, CliError> {
    let Imported { store, run, .. } = import(&args.settings(), &mut results::Messages(printer))?;
    results::present(results::document(&store, &run)?, args.json, None, printer)?;
    if !args.json && !quiet {
        let wrong = results::has_wrong(&store, &run)?;
        let (run, option) = (&run.manifest.run, results::option(&args.results.folder));
        printer.message(&format!("page: earnest report {run}{option} writes it"));
        let wrong = wrong.then(|| results::wrong_samples(run, &option));
        let commands = wrong.into_iter().chain([results::compare_with(run, &option)]);
        results::next_lines(commands).iter().for_each(|line| printer.message(line));
    }
    Ok(Exit::Success)
}

/// An imported log in the JSON document.
#[derive(Serialize)]
struct Entry {
    run: String,
    tool: &'static str,
    model: String,
    task: String,
    /// Documents and samples that were stored.
    items: usize,
    samples: usize,
    /// Samples without any score, and those of them that failed in the tool.
    without_score: usize,
    failed: usize,
    /// Samples that could not be read.
    refused: usize,
    /// Documents without a label of their cluster, where others have one: each is its own.
    without_label: usize,
    /// Primary scorer, and its mean.
    primary: Option<String>,
    mean: Option<f64>,
    #[serde(skip)]
    score: String,
}

impl Entry {
    /// Says how many samples have no score, where the others have one.
    fn without_scores(&self) -> Option<String> {
        let count = self.without_score;
        if count == 0 || self.primary.is_none() {
            return None;
        }
        let failed = match self.failed {
            0 => String::new(),
            1 if count == 1 => ": it failed in the tool".to_owned(),
            failed if failed == count => ": they failed in the tool".to_owned(),
            failed => format!(": {failed} of them failed in the tool"),
        };
        Some(format!(
            "{}: {count} of {} {} no score{failed}.",
            self.run,
            counted(self.samples, "sample"),
            agreeing(count, "has", "have")
        ))
    }
}

/// The JSON document of an import.
#[derive(Serialize)]
struct Outcome {
    imported: Vec<Entry>,
    /// Runs that have a log already.
    known: Vec<String>,
    /// Names of logs that were left out.
    refused: Vec<String>,
}

/// Imports logs and prints a line for each.
pub fn execute_logs(args: &ImportLogsArgs, printer: Printer) -> Result<Exit, CliError> {
    let settings = LogImportSettings {
        paths: args.paths.clone(),
        find: args.find(),
        primary: args.primary.clone(),
        cluster: args.cluster.clone(),
        answers: args.answers.clone(),
        results: args.results.folder.clone(),
    };
    let found = import_logs(&settings, &mut results::Messages(printer))?;
    let exit = if found.has_refused() { Exit::FailedSamples } else { Exit::Success };
    let outcome = outcome(&found)?;
    if args.json {
        printer.json(&outcome)?;
        return Ok(exit);
    }
    printer.result(&screen(&outcome, printer.width()))?;
    outcome.known.iter().for_each(|run| printer.message(&format!("{run} has this log already: skipped")));
    outcome.refused.iter().for_each(|error| printer.warning(&format!("left out: {error}")));
    let pair = outcome.imported.iter().enumerate().find_map(|(place, one)| {
        let others = &outcome.imported[place + 1..];
        Some((one, others.iter().find(|other| other.task == one.task && other.model != one.model)?))
    });
    let option = results::option(&args.results.folder);
    match (pair, outcome.imported.first()) {
        (Some((one, other)), _) => printer.message(&format!("next: earnest compare {} {}{option}", one.run, other.run)),
        (None, Some(one)) => printer.message(&format!("next: earnest runs show {}{option}", one.run)),
        (None, None) => {}
    }
    Ok(exit)
}

fn outcome(found: &ImportedLogs) -> Result<Outcome, CliError> {
    let mut refused: Vec<String> = found.refused.iter().map(ToString::to_string).collect();
    let mut imported = Vec::new();
    for log in &found.runs {
        refused.extend(log.first.iter().map(ToString::to_string));
        let more = log.refused - log.first.len();
        if more > 0 {
            refused.push(format!("{more} more samples of {}", log.run.manifest.run));
        }
        let manifest = &log.run.manifest;
        let document = results::document(&found.store, &log.run)?;
        let primary = results::primary_rules(&found.store, &log.run)?.into_iter().next();
        let all = document.summary.rows.last();
        let mean = primary.as_deref().and_then(|primary| mean_of(all?, primary));
        imported.push(Entry {
            run: manifest.run.clone(),
            tool: log.tool.title(),
            model: manifest.model.name.clone(),
            task: manifest.settings.suite.clone(),
            items: log.items,
            samples: log.samples,
            without_score: log.without_score,
            failed: log.failed,
            refused: log.refused,
            without_label: log.without_label,
            mean: mean.as_ref().map(|(mean, _)| *mean),
            score: mean.map_or_else(|| "-".to_owned(), |(_, text)| text),
            primary,
        });
    }
    Ok(Outcome { imported, known: found.known.clone(), refused })
}

/// Mean of a scorer in a row, and as a text with its interval.
fn mean_of(row: &SummaryRow, scorer: &str) -> Option<(f64, String)> {
    if let Some((_, interval)) = row.values.iter().find(|(name, _)| name == scorer) {
        return Some((interval.estimate, percent(interval)));
    }
    let number = |name: &str| row.numbers.iter().find(|(other, _)| other == name).map(|(_, number)| *number);
    let mean = number(scorer)?;
    let bounds = number(&format!("{scorer}, from")).zip(number(&format!("{scorer}, to")));
    let text = match bounds {
        Some((low, high)) => percent(&Interval { estimate: mean / 100.0, low: low / 100.0, high: high / 100.0 }),
        None => format!("{mean:.3}"),
    };
    Some((mean, text))
}

fn screen(outcome: &Outcome, width: usize) -> String {
    let mut text = String::new();
    if !outcome.imported.is_empty() {
        let head = [
            ("run", Align::Left),
            ("from", Align::Left),
            ("documents", Align::Right),
            ("samples", Align::Right),
            ("score, 95 % interval", Align::Right),
            ("by", Align::Left),
        ];
        let mut table = Table::new(head.map(|(name, align)| (name.to_owned(), align)));
        for entry in &outcome.imported {
            table.row(vec![
                entry.run.clone(),
                entry.tool.to_owned(),
                entry.items.to_string(),
                entry.samples.to_string(),
                entry.score.clone(),
                entry.primary.clone().unwrap_or_else(|| "-".to_owned()),
            ]);
        }
        text += &table.render();
        text.push('\n');
        text += &wrap("Scores are the tools' own; shares are in per cent.", width, "* ");
        for sentence in outcome.imported.iter().filter_map(Entry::without_scores) {
            text += &wrap(&sentence, width, "* ");
        }
    }
    let imported = counted(outcome.imported.len(), "log");
    write!(text, "{imported} imported").expect("writing to a String cannot fail");
    if !outcome.known.is_empty() {
        write!(text, ", {} already known", outcome.known.len()).expect("writing to a String cannot fail");
    }
    if !outcome.refused.is_empty() {
        write!(text, ", {} left out", outcome.refused.len()).expect("writing to a String cannot fail");
    }
    text + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_without_a_score_are_counted_in_words() {
        let said = |samples: usize, without_score: usize, failed: usize| {
            let entry = Entry {
                run: "r".to_owned(),
                tool: "a table",
                model: "m".to_owned(),
                task: "t".to_owned(),
                items: samples,
                samples,
                without_score,
                failed,
                refused: 0,
                without_label: 0,
                primary: Some("right".to_owned()),
                mean: None,
                score: "-".to_owned(),
            };
            entry.without_scores()
        };
        assert_eq!(said(4, 0, 0), None);
        assert_eq!(said(4, 1, 0).unwrap(), "r: 1 of 4 samples has no score.");
        assert_eq!(said(4, 1, 1).unwrap(), "r: 1 of 4 samples has no score: it failed in the tool.");
        assert_eq!(said(4, 2, 2).unwrap(), "r: 2 of 4 samples have no score: they failed in the tool.");
        assert_eq!(said(1234, 3, 1).unwrap(), "r: 3 of 1234 samples have no score: 1 of them failed in the tool.");
    }
}
