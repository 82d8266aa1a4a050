//! `earnest samples`: single samples, to read.
use std::borrow::Cow;
use std::fmt::Write;

use super::error::CliError;
use super::printer::{Printer, harmless};
use super::prompt_again::{Again, Prompt};
use super::result_args::SamplesArgs;
use super::{Exit, catalogue, results};
use crate::engine::FinishReason;
use crate::run::store::{Filter, Named, RunRecord, Store};
use crate::run::{RunError, Sample, write_jsonl};
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
        task: check(&store, &run, args)?,
        item: args.item.clone(),
        correct: args.correct.then_some(true),
        failed: args.failed,
        reason: args.reason.clone(),
        truncated: args.truncated,
        contains: args.grep.clone(),
        disagree: args.disagree.clone(),
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
    let primary = suite.primary();
    let mut items = Items::of(suite.as_ref(), run.manifest.settings.samples);
    let again = Again::of(&run.manifest);
    let source = again.source();
    let prompter = again.prompter(source.as_deref());
    let mut shown = 0;
    for sample in samples.by_ref().take(limit) {
        let (place, sample) = sample?;
        let whole = args.full || !printer.is_terminal();
        let item = items.at(place).filter(|item| item.id == sample.item);
        let prompt = item.as_ref().map(|item| again.prompt(prompter.as_ref(), item, &sample));
        let asked = item.as_ref().zip(prompt.as_ref());
        let first = args.disagree.as_ref().map(|rules| side_by_side(&sample, rules, &primary));
        printer.result(&card(&sample, asked, run.manifest.opened_thinking(), first, whole))?;
        shown += 1;
    }
    if shown == 0 {
        printer.message("no sample of the run is like that");
    } else if samples.next().is_some() {
        printer.message(&format!("the first {shown}; --limit shows more, --task, --reason and --grep choose"));
    }
    Ok(Exit::Success)
}

/// The wanted task by the name that items carry. What no sample of the run has is a slip, not a filter that lets nothing through.
fn check(store: &Store, run: &RunRecord, args: &SamplesArgs) -> Result<Option<String>, CliError> {
    const SHOWN: usize = 12;
    let name = &run.manifest.run;
    let suite = &run.manifest.settings.suite;
    let full_name = |task: &String| -> Result<String, RunError> {
        // As it stands where the suite knows no such task: what the run has is said below.
        let known = store.has(run, Named::Task, task)?;
        Ok(if known { task.clone() } else { catalogue::task(suite, task).unwrap_or_else(|_| task.clone()) })
    };
    let task = args.task.as_ref().map(full_name).transpose()?;
    let wanted = [
        (Named::Task, "task", task.as_ref()),
        (Named::Item, "item", args.item.as_ref()),
        (Named::Reason, "reason", args.reason.as_ref()),
    ];
    for (named, word, wanted) in wanted.into_iter().filter_map(|(named, word, wanted)| Some((named, word, wanted?))) {
        if store.has(run, named, wanted)? {
            continue;
        }
        let help = if named == Named::Item {
            "`earnest samples` shows ids as they are spelt".to_owned()
        } else {
            let all = store.all(run, named)?;
            let more = if all.len() > SHOWN { format!(", and {} more", all.len() - SHOWN) } else { String::new() };
            match all.is_empty() {
                true => "it has none at all".to_owned(),
                false => format!("it has {}{more}", all[..all.len().min(SHOWN)].join(", ")),
            }
        };
        return Err(CliError::usage(format!("no sample of {name} has the {word} {wanted}")).help(help));
    }
    for rule in args.disagree.iter().flatten() {
        if !store.has_rule(run, rule)? {
            let rules = store.rules(run)?;
            let help = match rules.is_empty() {
                true => "no sample of it was judged".to_owned(),
                false => format!("it has {}; `earnest score {name} --save` makes a run with today's", rules.join(", ")),
            };
            return Err(CliError::usage(format!("no sample of {name} was judged by the rule {rule}")).help(help));
        }
    }
    Ok(task)
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

/// What two rules made of a sample, a line each.
fn side_by_side(sample: &Sample, rules: &[String; 2], primary: &[&str]) -> Vec<(String, String)> {
    let Some(verdict) = &sample.verdict else { return Vec::new() };
    let line = |rule: &String| {
        let outcome = match verdict.matchers.get(rule) {
            Some(true) => "right",
            Some(false) => "wrong",
            None => "did not judge it",
        };
        // What the primary rule read is the extracted answer; a rule that looks for the expected one reads none.
        let own = primary.contains(&rule.as_str()).then_some(&verdict.extracted);
        let read = match own.or_else(|| verdict.evidence.readings.get(rule)) {
            Some(Some(read)) => format!(", read {read}"),
            Some(None) => ", read nothing".to_owned(),
            None => String::new(),
        };
        (rule.clone(), format!("{outcome}{read}"))
    };
    rules.iter().map(line).collect()
}

/// A sample to read, with its item and prompt where today's suite has them. What a model wrote can do nothing to a terminal.
fn card(
    sample: &Sample,
    asked: Option<(&Item, &Prompt)>,
    opened: Option<&str>,
    first: Option<Vec<(String, String)>>,
    whole: bool,
) -> String {
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
        let value = harmless(value.trim_end_matches('\r')).replace("␍\n", "\n");
        let mut lines = value.split('\n');
        writeln!(text, "  {name:<11} {}", lines.next().unwrap_or_default()).expect("writing to a String cannot fail");
        for line in lines {
            writeln!(text, "  {:<11} {line}", "").expect("writing to a String cannot fail");
        }
    };
    for (rule, outcome) in first.iter().flatten() {
        row(rule, outcome);
    }
    match asked {
        Some((_, Prompt::Asked(prompt))) => row("prompt", &shortened(prompt, whole)),
        Some((_, Prompt::Unchecked(prompt, reason))) => {
            row("prompt", &shortened(prompt, whole));
            row("", &format!("[as the suite writes it; not held against the row's hash, because {reason}]"));
        }
        Some((item, Prompt::Pieces(reason))) => {
            let segments = &item.segments;
            if let Some(system) = &segments.system {
                row("system", system);
            }
            for shot in &segments.shots {
                row("example", &shortened(&shot.question, whole));
                row("", &shortened(&shot.answer, whole));
            }
            row("question", &shortened(&segments.question, whole));
            if let Some(reason) = reason {
                row("", &format!("[without the chat template that was around it, because {reason}]"));
            }
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
        if let Some(mark) = &verdict.evidence.mark {
            row("final mark", mark);
        }
        if !verdict.evidence.rivals.is_empty() {
            row("rivals", &verdict.evidence.rivals.join(", "));
        }
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
    use crate::suite::arithmetic_bench::ArithmeticBench;

    #[test]
    fn cards_show_prompts_as_far_as_they_are_known_and_no_control_characters() {
        let suite = ArithmeticBench::new(Default::default()).unwrap();
        let item = suite.items().next().unwrap();
        let completion = crate::run::Generated {
            text: "\u{1b}]0;title\u{7}one\r\ntwo\0".into(),
            ids: vec![1],
            finish: FinishReason::Eos,
            cached_tokens: 0,
            timings: Default::default(),
        };
        let sample = Sample {
            format: 1,
            run: "run".into(),
            suite: "arithmetic-bench".into(),
            item: item.id.clone(),
            sample: 0,
            task: item.task.clone(),
            cluster: item.cluster.clone(),
            covariates: item.covariates.clone(),
            gold: item.gold.clone(),
            prompt_sha256: "ab".into(),
            prompt_tokens: 1,
            budget: 8,
            max_tokens: 8,
            completion: Some(completion),
            verdict: None,
            failure: None,
        };
        let shown = |prompt: Prompt| card(&sample, Some((&item, &prompt)), None, None, true);
        let asked = shown(Prompt::Asked(format!("<user>\n{}<assistant>", item.segments.question)));
        assert!(asked.contains("  prompt      <user>\n              ") && asked.contains("<assistant>\n"), "{asked}");
        assert!(!asked.contains("  question "), "{asked}");
        assert!(asked.contains("␛]0;title␇one\n              two␀\n"), "{asked}");
        assert!(!asked.contains(|c: char| c.is_control() && c != '\n'), "{asked:?}");
        let pieces = shown(Prompt::Pieces(Some("the model is not at here".into())));
        assert!(pieces.contains("[without the chat template that was around it, because the model is not at here]"));
        assert!(pieces.contains(&format!("  question    {}\n", item.segments.question)), "{pieces}");
        let unchecked = shown(Prompt::Unchecked("raw".into(), "so".into()));
        assert!(
            unchecked.contains("  prompt      raw\n              [as the suite writes it; not held"),
            "{unchecked}"
        );
    }

    #[test]
    fn two_rules_stand_side_by_side() {
        let verdict: crate::suite::Verdict = serde_json::from_value(serde_json::json!({
            "correct": true, "extracted": "1287", "matchers": {"final": true, "strict": false, "compat": true}, "metrics": {},
            "failure": null, "evidence": {"readings": {"strict": "700", "paper": null}},
        }))
        .unwrap();
        let sample: Sample = serde_json::from_value(serde_json::json!({
            "format": 1, "run": "r", "suite": "nupa", "item": "i", "sample": 0, "task": "t", "cluster": "c", "covariates": {},
            "gold": "1287", "prompt_sha256": "", "prompt_tokens": 1, "budget": 1, "max_tokens": 1, "completion": null,
            "verdict": verdict, "failure": null,
        }))
        .unwrap();
        let of = |one: &str, other: &str| {
            let lines = side_by_side(&sample, &[one.to_owned(), other.to_owned()], &["final"]);
            lines.into_iter().map(|(rule, outcome)| format!("{rule} {outcome}")).collect::<Vec<_>>()
        };
        assert_eq!(of("final", "strict"), ["final right, read 1287", "strict wrong, read 700"]);
        assert_eq!(of("compat", "paper"), ["compat right", "paper did not judge it, read nothing"]);
        let shown = card(
            &sample,
            None,
            None,
            Some(side_by_side(&sample, &["final".into(), "strict".into()], &["final"])),
            true,
        );
        assert!(
            shown.starts_with("i - right\n  final       right, read 1287\n  strict      wrong, read 700\n"),
            "{shown}"
        );
    }

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
