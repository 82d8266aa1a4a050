//! `earnest import`.
use std::fmt::Write;
use std::path::Path;

use serde::Serialize;

use super::error::CliError;
use super::log_args::ImportLogsArgs;
use super::printer::Printer;
use super::result_args::ImportArgs;
use super::values::{agreeing, card, counted};
use super::{Exit, catalogue, results, results_folder};
use earnest_eval::import::{ImportSettings, Imported, import};
use earnest_logs::import::{ImportedLogs, LogImportSettings, import_logs};
use earnest_report::{Align, Table, percent, wrap};
use earnest_results::fixed;
use earnest_results::store::{Filter, RunRecord, Store};
use earnest_tasks::suite::{Interval, SummaryRow};

impl ImportArgs {
    fn settings(&self) -> ImportSettings {
        let folder = &self.results.folder;
        let defaults = ImportSettings::new(self.suite.name, &self.completions, &self.name, folder);
        let prompts = self.prompt.clone().unwrap_or_default();
        ImportSettings {
            options: catalogue::values(&self.suite.options, self.seed.seed, &prompts),
            prompt: prompts.mode.unwrap_or(defaults.prompt),
            limit: self.limit,
            host: self.confinement.host(),
            ..defaults
        }
    }
}

/// Imports completions, prints the run's document, and says where to read on.
pub fn execute(args: &ImportArgs, printer: Printer) -> Result<Exit, CliError> {
    let Imported { store, run, .. } = import(&args.settings(), &mut results::Messages(printer))?;
    results::present(results::document(&store, &run)?, args.json, None, printer)?;
    if !args.json {
        say_next(&store, &run, &args.results.folder, printer)?;
    }
    Ok(Exit::Success)
}

/// Says where the page of an imported run comes from, and which commands go on.
fn say_next(store: &Store, run: &RunRecord, folder: &Path, printer: Printer) -> Result<(), CliError> {
    if printer.is_quiet() {
        return Ok(());
    }
    let wrong = results::has_wrong(store, run)?;
    let (run, option) = (&run.manifest.run, results_folder::option(folder));
    let page = format!("page: `earnest report {run}{option}` writes it");
    let wrong = wrong.then(|| results::wrong_samples(run, &option));
    let commands = wrong.into_iter().chain([results::compare_with(run, &option)]);
    printer.follow([page].into_iter().chain(results::next_lines(commands)))
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
    /// Samples without a score by the deciding scorer, and those of them that failed in the tool.
    without_score: usize,
    failed: usize,
    /// Samples that could not be read.
    refused: usize,
    /// Documents without a label of their cluster, where others have one: each is its own.
    without_label: usize,
    /// Scorer that decides, and its mean.
    #[serde(rename = "primary")]
    chosen: Option<String>,
    mean: Option<f64>,
    #[serde(skip)]
    score: String,
    /// Id and expected answer of the first document: logs that share it are taken to be of the same questions.
    #[serde(skip)]
    first_item: Option<(String, String)>,
}

impl Entry {
    /// Says how many samples have no score, where the others have one.
    fn without_scores(&self) -> Option<String> {
        let count = self.without_score;
        let chosen = self.chosen.as_deref().filter(|_| count > 0)?;
        let failed = match self.failed {
            0 => String::new(),
            1 if count == 1 => ": it failed in the tool".to_owned(),
            failed if failed == count => ": they failed in the tool".to_owned(),
            failed => format!(": {failed} of them failed in the tool"),
        };
        Some(format!(
            "{}: {count} of {} {} no score by {chosen}{failed}.",
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

/// Imports logs and prints the screen of the only one, or a line for each.
pub fn execute_logs(args: &ImportLogsArgs, printer: Printer) -> Result<Exit, CliError> {
    let settings = LogImportSettings {
        paths: args.paths.clone(),
        find: args.find(),
        deciding: args.chosen.clone(),
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
    let only = match &found.runs[..] {
        [only] if found.known.is_empty() => Some(&only.run),
        _ => None,
    };
    match only {
        Some(run) => {
            results::present(results::document(&found.store, run)?, false, None, printer)?;
            for sentence in outcome.imported.iter().filter_map(Entry::without_scores) {
                printer.result(&wrap(&sentence, printer.width(), "* "))?;
            }
        }
        None => printer.result(&screen(&outcome, printer.width()))?,
    }
    let more = |count: usize, what: &str| {
        let more = count.saturating_sub(LISTED);
        (more > 0).then(|| format!("{more} more {what}: --json has all"))
    };
    outcome.known.iter().take(LISTED).for_each(|run| printer.remark(&format!("{run} has this log already: skipped")));
    more(outcome.known.len(), "logs are known already").iter().for_each(|said| printer.remark(said));
    outcome.refused.iter().take(LISTED).for_each(|error| printer.warning(&format!("left out: {error}")));
    more(outcome.refused.len(), "were left out").iter().for_each(|said| printer.warning(said));
    if let Some(run) = only {
        say_next(&found.store, run, &args.results.folder, printer)?;
        return Ok(exit);
    }
    // Runs that `compare` can compare: of two models, with scores, and of the same questions.
    let is_pair = |one: &Entry, other: &Entry| {
        let scored = one.mean.is_some() && other.mean.is_some();
        scored && other.task == one.task && other.model != one.model && other.first_item == one.first_item
    };
    let pair = outcome.imported.iter().enumerate().find_map(|(index, one)| {
        let mut others = outcome.imported[index + 1..].iter();
        Some((one, others.find(|other| is_pair(one, other))?))
    });
    let option = results_folder::option(&args.results.folder);
    let first = match (pair, outcome.imported.first()) {
        (Some((one, other)), _) => format!("earnest compare {} {}{option}", one.run, other.run),
        (None, Some(one)) => format!("earnest runs show {}{option}", one.run),
        (None, None) => return Ok(exit),
    };
    let view = format!("earnest view{option} (all of them in a browser)");
    printer.follow(results::next_lines([first, view]))?;
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
        let chosen = results::chosen_scorers(&found.store, &log.run)?.into_iter().next();
        let all = document.summary.rows.last();
        let mean = chosen.as_deref().and_then(|chosen| mean_of(all?, chosen));
        let first = found.store.samples(&log.run, Filter::default()).next().transpose()?;
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
            chosen,
            first_item: first.map(|sample| (sample.item, sample.gold)),
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
        None => fixed(mean, 3),
    };
    Some((mean, text))
}

/// Table of the imported logs; entries one below the other where it does not fit.
fn listed(entries: &[Entry], width: usize) -> String {
    let head = [
        ("run", Align::Left),
        ("from", Align::Left),
        ("documents", Align::Right),
        ("samples", Align::Right),
        ("score, 95 % interval", Align::Right),
        ("by", Align::Left),
    ];
    let mut table = Table::new(head.map(|(name, align)| (name.to_owned(), align)));
    for entry in entries {
        table.row(vec![
            entry.run.clone(),
            entry.tool.to_owned(),
            entry.items.to_string(),
            entry.samples.to_string(),
            entry.score.clone(),
            entry.chosen.clone().unwrap_or_else(|| "-".to_owned()),
        ]);
    }
    if table.width() <= width {
        return table.render();
    }
    let entry_card = |entry: &Entry| {
        let score = match &entry.chosen {
            Some(chosen) => format!("score {} by {chosen}", entry.score),
            None => "no score".to_owned(),
        };
        let (documents, samples) = (counted(entry.items, "document"), counted(entry.samples, "sample"));
        card(&entry.run, [format!("from {}, {documents}, {samples}, {score}", entry.tool)], width)
    };
    entries.iter().map(entry_card).collect()
}

/// Most sentences about logs that were left out; the JSON document has all.
const LISTED: usize = 100;

/// Lines of the screen; with the next two commands and what was left out it is one screen.
const HEIGHT: usize = 36;

/// Most sentences about samples without a score on the screen.
const SENTENCES: usize = 3;

fn screen(outcome: &Outcome, width: usize) -> String {
    // As many logs as fit the screen, a line each or more.
    let mut texts = (1..=outcome.imported.len().min(HEIGHT)).rev().map(|most| with_logs(outcome, most, width));
    let fitting = texts.find(|text| text.lines().count() <= HEIGHT);
    fitting.unwrap_or_else(|| with_logs(outcome, 1, width))
}

/// The screen with the first `most` logs.
fn with_logs(outcome: &Outcome, most: usize, width: usize) -> String {
    let mut text = String::new();
    if !outcome.imported.is_empty() {
        let shown = &outcome.imported[..outcome.imported.len().min(most)];
        text += &listed(shown, width);
        text.push('\n');
        let more = outcome.imported.len() - shown.len();
        if more > 0 {
            let logs = if more == 1 { "1 more log".to_owned() } else { format!("{more} more logs") };
            text += &wrap(&format!("And {logs}: `earnest runs list` has all of them."), width, "* ");
        }
        text += &wrap("Scores are the tools' own; shares are in per cent.", width, "* ");
        let mut sentences = outcome.imported.iter().filter_map(Entry::without_scores);
        for sentence in sentences.by_ref().take(SENTENCES) {
            text += &wrap(&sentence, width, "* ");
        }
        let more = sentences.count();
        if more > 0 {
            let have = if more == 1 { "1 more log has" } else { &format!("{more} more logs have") };
            text += &wrap(&format!("{have} samples without a score: --json has all."), width, "* ");
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

    fn entry(samples: usize, without_score: usize, failed: usize) -> Entry {
        Entry {
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
            chosen: Some("right".to_owned()),
            mean: None,
            score: "-".to_owned(),
            first_item: None,
        }
    }

    #[test]
    fn a_narrow_terminal_shows_logs_one_below_the_other() {
        let logs = || Outcome {
            imported: vec![
                Entry {
                    run: "arith_generate-EleutherAI_pythia-70m-0123abcd".to_owned(),
                    tool: "lm-evaluation-harness",
                    score: "50.0 [26.9,  73.1]".to_owned(),
                    chosen: Some("exact_match,flexible-extract".to_owned()),
                    samples: 24,
                    ..entry(12, 0, 0)
                },
                Entry { chosen: None, ..entry(1, 0, 0) },
            ],
            known: Vec::new(),
            refused: Vec::new(),
        };
        let wide = screen(&logs(), 200);
        let table = wide.split("\n\n").next().unwrap();
        assert!(
            table.contains("documents") && table.lines().filter(|line| line.contains(" 12 ")).count() == 1,
            "{wide}"
        );
        let widest = table.lines().map(|line| line.chars().count()).max().unwrap();
        assert!(screen(&logs(), widest).starts_with(table));
        for width in [60, 80, widest - 1] {
            let text = screen(&logs(), width);
            assert!(text.lines().all(|line| line.chars().count() <= width), "{width}\n{text}");
            let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
            let first = "arith_generate-EleutherAI_pythia-70m-0123abcd from lm-evaluation-harness, 12 documents, 24 samples, score \
                         50.0 [26.9, 73.1] by exact_match,flexible-extract";
            assert!(words.starts_with(&format!("{first} r from a table, 1 document, 1 sample, no score")), "{text}");
        }
    }

    #[test]
    fn many_logs_fit_a_screen() {
        let imported = (0..300).map(|number| Entry { run: format!("r{number}"), ..entry(9, number % 2, 0) }).collect();
        let logs = Outcome { imported, known: Vec::new(), refused: Vec::new() };
        for width in [40, 80, 140] {
            let text = screen(&logs, width);
            let lines = text.lines().count();
            assert!((HEIGHT - 3..=HEIGHT).contains(&lines), "{lines}\n{text}");
            assert!(text.contains(" more logs: ") && text.ends_with("300 logs imported\n"), "{text}");
        }
        let few = Outcome { imported: vec![entry(9, 0, 0), entry(9, 0, 0)], known: Vec::new(), refused: Vec::new() };
        assert!(!screen(&few, 80).contains("more"));
    }

    #[test]
    fn samples_without_a_score_are_counted_in_words() {
        let said = |samples: usize, without_score: usize, failed: usize| {
            entry(samples, without_score, failed).without_scores()
        };
        assert_eq!(said(4, 0, 0), None);
        assert_eq!(said(4, 1, 0).unwrap(), "r: 1 of 4 samples has no score by right.");
        assert_eq!(said(4, 1, 1).unwrap(), "r: 1 of 4 samples has no score by right: it failed in the tool.");
        assert_eq!(said(4, 2, 2).unwrap(), "r: 2 of 4 samples have no score by right: they failed in the tool.");
        assert_eq!(
            said(1234, 3, 1).unwrap(),
            "r: 3 of 1234 samples have no score by right: 1 of them failed in the tool."
        );
    }
}
