//! `earnest samples`: single samples, to read.
use std::borrow::Cow;
use std::fmt::Write;

use super::error::CliError;
use super::printer::Printer;
use super::result_args::SamplesArgs;
use super::{Exit, catalogue, results};
use crate::engine::FinishReason;
use crate::run::store::Filter;
use crate::run::{Sample, write_jsonl};
use crate::suite::{Item, Suite};

/// Cards shown without `--limit`.
const CARDS: usize = 10;

/// Characters of a question or completion that a terminal gets without `--full`: its first so many and its last so many.
const BEGINNING: usize = 3_000;
const END: usize = 1_000;

/// Prints cards or JSON lines.
pub fn execute(args: &SamplesArgs, printer: Printer) -> Result<Exit, CliError> {
    let store = results::open(&args.results, printer)?;
    let run = store.run(&args.run)?;
    let filter = Filter {
        task: args.task.clone(),
        item: args.item.clone(),
        correct: args.correct.then_some(true),
        failed: args.failed,
        reason: args.reason.clone(),
        truncated: args.truncated,
        contains: args.grep.clone(),
    };
    let limit = args.limit.unwrap_or(if args.json { usize::MAX } else { CARDS });
    let mut samples = store.samples(&run, filter).placed();
    if args.json {
        for sample in samples.take(limit) {
            let mut line = Vec::new();
            write_jsonl(&mut line, &sample?.1)
                .map_err(|error| CliError::new(Exit::Results, format!("cannot write a sample: {error}")))?;
            printer.result(&String::from_utf8_lossy(&line))?;
        }
        return Ok(Exit::Success);
    }
    let suite = catalogue::stored(&run.manifest.settings)?;
    let mut items = Items::of(suite.as_ref(), run.manifest.settings.samples);
    let mut shown = 0;
    for sample in samples.by_ref().take(limit) {
        let (place, sample) = sample?;
        let whole = args.full || !printer.is_terminal();
        printer.result(&card(&sample, items.at(place).as_ref(), run.manifest.opened_thinking(), whole))?;
        shown += 1;
    }
    if shown == 0 {
        printer.message("no sample of the run is like that");
    } else if samples.next().is_some() {
        printer.message(&format!("the first {shown}; --limit shows more, --task, --reason and --grep choose"));
    }
    Ok(Exit::Success)
}

/// A suite's items by place, for places that only grow.
struct Items<'a> {
    rest: Box<dyn Iterator<Item = Item> + Send + 'a>,
    samples: usize,
    next: usize,
    last: Option<Item>,
}

impl<'a> Items<'a> {
    fn of(suite: &'a dyn Suite, samples: u32) -> Self {
        Items { rest: suite.items(), samples: samples.max(1) as usize, next: 0, last: None }
    }

    fn at(&mut self, place: usize) -> Option<Item> {
        let wanted = place / self.samples;
        if wanted + 1 > self.next {
            self.last = self.rest.nth(wanted - self.next);
            self.next = wanted + 1;
        }
        self.last.clone()
    }
}

/// Beginning and end of a long text, with what is left out said between them.
fn shortened(text: &str, whole: bool) -> Cow<'_, str> {
    let characters = text.chars().count();
    let at = |place: usize| text.char_indices().nth(place).map_or(text.len(), |(at, _)| at);
    if whole || characters <= BEGINNING + END {
        return text.into();
    }
    let left_out = characters - BEGINNING - END;
    let (first, last) = (&text[..at(BEGINNING)], &text[at(characters - END)..]);
    format!("{first}\n[... {left_out} characters are not shown: --full shows them ...]\n{last}").into()
}

/// A sample to read.
fn card(sample: &Sample, item: Option<&Item>, opened: Option<&str>, whole: bool) -> String {
    let mut text = String::new();
    let outcome = match (&sample.verdict, &sample.failure) {
        (Some(verdict), _) if verdict.correct => "right".to_owned(),
        (Some(verdict), _) => match verdict.failure.as_deref() {
            None | Some("wrong") => "wrong".to_owned(),
            Some(reason) => format!("wrong ({reason})"),
        },
        (None, Some(_)) => "no answer".to_owned(),
        (None, None) => "not judged".to_owned(),
    };
    let number = if sample.sample > 0 { format!(", sample {}", sample.sample) } else { String::new() };
    let mut row = |name: &str, value: &str| {
        let mut lines = value.split('\n');
        writeln!(text, "  {name:<11} {}", lines.next().unwrap_or_default()).expect("writing to a String cannot fail");
        for line in lines {
            writeln!(text, "  {:<11} {line}", "").expect("writing to a String cannot fail");
        }
    };
    match item.filter(|item| item.id == sample.item) {
        Some(item) => {
            let segments = &item.segments;
            if let Some(system) = &segments.system {
                row("system", system);
            }
            if !segments.shots.is_empty() {
                row("shots", &segments.shots.len().to_string());
            }
            row("question", &shortened(&segments.question, whole));
        }
        None => row("question", "(today's suite has no such item)"),
    }
    row("expected", &sample.gold);
    match &sample.completion {
        Some(completion) => {
            let opening = opened.map(|marker| format!("[the prompt opens {marker}]\n")).unwrap_or_default();
            row("completion", &format!("{opening}{}", shortened(&completion.text, whole)));
            let finish = match completion.finish {
                FinishReason::Length => "cut by the token budget",
                FinishReason::StopString => "ended by a stop string",
                FinishReason::Eos | FinishReason::Cancelled => "ended by the model",
            };
            let clipped = if sample.clipped() { ", the context had no room for more" } else { "" };
            // Imported completions come without ids.
            let tokens = match completion.ids.len() {
                0 => String::new(),
                tokens => format!("{tokens} tokens, "),
            };
            row("", &format!("[{tokens}{finish}{clipped}]"));
        }
        None => row("completion", "(none)"),
    }
    if let Some(verdict) = &sample.verdict {
        row("extracted", verdict.extracted.as_deref().unwrap_or("(nothing)"));
        if let Some(reason) = &verdict.evidence.reason {
            row("reason", reason);
        }
        let readings = verdict.evidence.readings.iter();
        let readings: Vec<String> =
            readings.map(|(rule, read)| format!("{rule} {}", read.as_deref().unwrap_or("nothing"))).collect();
        if !readings.is_empty() {
            row("read by", &readings.join(", "));
        }
        let rules: Vec<String> = verdict
            .matchers
            .iter()
            .map(|(name, matched)| format!("{name} {}", if *matched { "yes" } else { "no" }))
            .collect();
        row("matchers", &rules.join(", "));
        let metrics: Vec<String> =
            verdict.metrics.iter().map(|(name, value)| format!("{name} {}", short(*value))).collect();
        row("metrics", &metrics.join(", "));
    }
    if let Some(failure) = &sample.failure {
        row("failure", &failure.message);
    }
    text.retain(|c| c != '\r');
    format!("{} - {outcome}{number}\n{}\n", sample.item, trimmed(&text))
}

/// Lines without spaces at their ends.
fn trimmed(text: &str) -> String {
    let lines: Vec<&str> = text.lines().map(str::trim_end).collect();
    lines.join("\n") + "\n"
}

/// A metric with at most three decimals.
fn short(value: f64) -> String {
    let text = format!("{value:.3}");
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_texts_are_shortened_on_a_terminal_only() {
        let long = "ä".repeat(100_000);
        let short = shortened(&long, false);
        assert!(
            short.chars().count() < 4_200 && short.contains("[... 96000 characters are not shown: --full"),
            "{short}"
        );
        assert!(short.starts_with("äää") && short.ends_with("äää"));
        assert_eq!(shortened(&long, true), long);
        let fits = "b".repeat(BEGINNING + END);
        assert_eq!(shortened(&fits, false), fits);
    }
}
