//! `earnest samples`.
use super::values::{counted, the_first};
use earnest_results::{Origin, Sample, check_filter, write_jsonl};
use std::borrow::Cow;
use std::fmt::Write;

use super::error::CliError;
use super::printer::{Printer, harmless};
use super::result_args::SamplesArgs;
use super::{Exit, offered, results};
use earnest_engine::FinishReason;
use earnest_eval::samples::{AskedSample, Selection, each_asked};
use earnest_results::store::{Filter, StoredQuestion};
use earnest_tasks::suite::log::value;
use earnest_tasks::suite::{FailureClass, Score, metric_words};

/// Cards shown without `--limit`.
const CARDS: usize = 10;

/// Characters from the beginning and the end of a long text that a terminal shows without `--full`.
const BEGINNING: usize = 3_000;
const END: usize = 1_000;

/// Prints samples as cards or JSON lines.
pub fn execute(args: &SamplesArgs, printer: Printer) -> Result<Exit, CliError> {
    let store = results::open(&args.results.folder, printer)?;
    let run = store.run(&args.run)?;
    store.check_seal(&run)?;
    let filter = Filter {
        task: args.task.clone(),
        item: args.item.clone(),
        correct: args.correct.then_some(true),
        failed: args.wrong,
        of_log: false,
        reason: args.reason.clone(),
        truncated: args.truncated,
        contains: args.grep.clone(),
        after: None,
        before: None,
        disagree: args.disagree.clone(),
        error: args.error,
        covariates: args.covariate.clone(),
    };
    let filter = check_filter(&store, &run, filter)?;
    if args.json {
        let print = |sample: &Sample| {
            let mut line = Vec::new();
            write_jsonl(&mut line, sample)
                .map_err(|error| CliError::new(Exit::Results, format!("cannot write a sample: {error}")))?;
            printer.result(&String::from_utf8_lossy(&line))
        };
        let limit = args.limit.unwrap_or(usize::MAX);
        if args.question.is_none() {
            for sample in store.samples(&run, filter).take(limit) {
                print(&sample?)?;
            }
        } else {
            let selection = Selection { filter, question: args.question.clone() };
            each_asked(&store, &run, selection, limit, |asked| print(&asked.sample))?;
        }
        return Ok(Exit::Success);
    }
    let chosen = results::chosen_scorers(&store, &run)?;
    let whole = args.full || !printer.is_terminal();
    let limit = args.limit.unwrap_or(CARDS);
    let selection = Selection { filter, question: args.question.clone() };
    let (shown, more) = each_asked(&store, &run, selection, limit, |AskedSample { sample, question, .. }| {
        let first = args.disagree.as_ref().map(|scorers| side_by_side(&sample, scorers, &chosen));
        let (opened, of_log) = (run.manifest.opened_thinking(), run.manifest.settings.origin() == Origin::Log);
        let chosen = chosen.first().map(String::as_str).filter(|_| of_log);
        printer.result(&card(&sample, question.as_ref(), opened, first, of_log.then_some(chosen), whole))
    })?;
    if shown == 0 {
        printer.remark("no sample of the run matches");
    } else if more {
        printer
            .remark(&format!("{}; --limit shows more, --task, --reason and --grep select", the_first(shown, "sample")));
    }
    Ok(Exit::Success)
}

/// Beginning and end of a long text, with the number of characters left out between them.
fn shortened(text: &str, whole: bool) -> Cow<'_, str> {
    let characters = text.chars().count();
    let at = |index: usize| text.char_indices().nth(index).map_or(text.len(), |(at, _)| at);
    if whole || characters <= BEGINNING + END {
        return text.into();
    }
    let left_out = characters - BEGINNING - END;
    let (first, last) = (&text[..at(BEGINNING)], &text[at(characters - END)..]);
    format!("{first}\n[... {left_out} characters left out: --full shows them ...]\n{last}").into()
}

/// Scores of a sample by two scorers: the scorer, and its score with the answer it read.
fn side_by_side(sample: &Sample, scorers: &[String; 2], chosen: &[String]) -> Vec<(String, String)> {
    let Some(score) = &sample.score else { return Vec::new() };
    let line = |by: &String| {
        let outcome = match score.scorers.get(by) {
            Some(true) => "right",
            Some(false) => "wrong",
            None => "did not score it",
        };
        // What the deciding scorer read is the extracted answer; a scorer that looks for the expected answer has none.
        let own = chosen.contains(by).then_some(&score.answer);
        let read = match own.or_else(|| score.evidence.readings.get(by)) {
            Some(Some(read)) => format!(", read {read}"),
            Some(None) => ", read nothing".to_owned(),
            None => String::new(),
        };
        (by.clone(), format!("{outcome}{read}"))
    };
    scorers.iter().map(line).collect()
}

/// A sample as text, with its question if it is known; of a log with the scorer that decides, if there is one. Control characters of a completion are made visible.
fn card(
    sample: &Sample,
    asked: Option<&StoredQuestion>,
    opened: Option<&str>,
    first: Option<Vec<(String, String)>>,
    log: Option<Option<&str>>,
    whole: bool,
) -> String {
    let mut text = String::new();
    let of_log = log.is_some();
    let outcome = outcome(sample, log);
    let number = if sample.sample > 0 { format!(", sample {}", sample.sample) } else { String::new() };
    let mut row = |name: &str, value: &str| {
        let value = harmless(value.trim_end_matches('\r')).replace("␍\n", "\n");
        let mut lines = value.split('\n');
        writeln!(text, "  {name:<11} {}", lines.next().unwrap_or_default()).expect("writing to a String cannot fail");
        for line in lines {
            writeln!(text, "  {:<11} {line}", "").expect("writing to a String cannot fail");
        }
    };
    for (by, outcome) in first.iter().flatten() {
        row(by, outcome);
    }
    asked_rows(sample, asked, whole, &mut row);
    row("expected", &sample.gold);
    completion_rows(sample, opened, of_log, whole, &mut row);
    if let Some(score) = &sample.score {
        score_rows(score, whole, &mut row);
    }
    if let Some(failure) = &sample.failure {
        row("failure", &offered::options(&failure.message));
    }
    format!("{} - {outcome}{number}\n{}\n", sample.item, trimmed(&text))
}

/// The outcome of a sample in a word or two; of a log by its deciding scorer, if there is one.
fn outcome(sample: &Sample, log: Option<Option<&str>>) -> String {
    match (&sample.score, &sample.failure) {
        (Some(score), _) if score.correct => "right".to_owned(),
        (Some(score), _) if log.flatten().is_some_and(|chosen| value(score, chosen) != Some(0.0)) => {
            let number = log.flatten().and_then(|chosen| value(score, chosen));
            number.map_or_else(|| "no number".to_owned(), short)
        }
        (Some(score), _) => match &score.failure {
            None | Some(FailureClass::Wrong) => "wrong".to_owned(),
            Some(reason) => format!("wrong ({reason})"),
        },
        (None, Some(_)) => "no answer".to_owned(),
        (None, None) => "not scored".to_owned(),
    }
}

/// A row of a card: its name and its text.
type Row<'a> = dyn FnMut(&str, &str) + 'a;

/// The prompt, or the pieces of the question.
fn asked_rows(sample: &Sample, asked: Option<&StoredQuestion>, whole: bool, row: &mut Row<'_>) {
    match asked {
        Some(StoredQuestion { prompt: Some(prompt), .. }) => row("prompt", &shortened(prompt, whole)),
        Some(StoredQuestion { item, prompt: None }) => {
            let segments = &item.segments;
            if let Some(system) = &segments.system {
                row("system", system);
            }
            for shot in &segments.shots {
                row("example", &shortened(&shot.question, whole));
                row("", &shortened(&shot.answer, whole));
            }
            row("question", &shortened(&segments.question, whole));
            // Without a digest the prompt could not be rendered, or was made elsewhere.
            if !sample.prompt_sha256.is_empty() {
                row("", "[the prompt was not stored: these are its pieces, without the chat template]");
            }
        }
        None => row("question", "(today's suite does not have this item)"),
    }
}

/// The completion, and how it ended.
fn completion_rows(sample: &Sample, opened: Option<&str>, of_log: bool, whole: bool, row: &mut Row<'_>) {
    match &sample.completion {
        Some(_) if sample.likelihoods().is_some() => {
            row("completion", &shortened(&sample.completion_text(), whole));
            row("", "[log-likelihoods of the given continuations; * is the largest]");
        }
        Some(completion) => {
            let opening = opened.map(|marker| format!("[the prompt opens {marker}]\n")).unwrap_or_default();
            row("completion", &format!("{opening}{}", shortened(&completion.text, whole)));
            let finish = match completion.finish {
                FinishReason::Length => "cut off by the token budget",
                FinishReason::StopString => "ended by a stop string",
                // Neither tokens nor their end are known of another tool's completion.
                FinishReason::Eos | FinishReason::Cancelled if of_log => "",
                FinishReason::Eos | FinishReason::Cancelled => "ended by the model",
            };
            let clipped = if sample.clipped() { ", limited by the context length" } else { "" };
            // Imported completions come without ids.
            let tokens = match completion.tokens() {
                0 => String::new(),
                tokens => format!("{}, ", counted(tokens, "token")),
            };
            if !finish.is_empty() {
                row("", &format!("[{tokens}{finish}{clipped}]"));
            }
        }
        None => row("completion", "(none)"),
    }
}

/// Findings of the scorers.
fn score_rows(score: &Score, whole: bool, row: &mut Row<'_>) {
    row("extracted", score.answer.as_deref().unwrap_or("(nothing)"));
    if let Some(reason) = &score.evidence.reason {
        row("reason", reason);
    }
    if let Some(mark) = &score.evidence.mark {
        row("final mark", mark);
    }
    if !score.evidence.rivals.is_empty() {
        row("rivals", &score.evidence.rivals.join(", "));
    }
    for (index, text) in score.evidence.repeats.iter().enumerate() {
        row(&format!("repeat {}", index + 2), &shortened(text, whole));
    }
    for (scorer, value) in &score.evidence.values {
        row("score", &format!("{scorer} {value}"));
    }
    for (scorer, explanation) in &score.evidence.explanations {
        row("explained", &shortened(&format!("{scorer}: {explanation}"), whole));
    }
    let read = |by: &str| match score.evidence.readings.get(by) {
        Some(read) => format!(" ({})", read.as_deref().unwrap_or("nothing")),
        None => String::new(),
    };
    let outcome = |(by, right): (&str, bool)| format!("{by} {}{}", if right { "right" } else { "wrong" }, read(by));
    let mut scorers: Vec<String> = score.scorers.iter().map(outcome).collect();
    let unscored = score.evidence.readings.keys().filter(|by| score.scorers.get(by).is_none());
    scorers.extend(unscored.map(|by| format!("{by}{}", read(by))));
    row("scores", &in_lines(&scorers));
    // A count of zero says that nothing of the kind was there.
    let metrics = score.metrics.iter().filter(|(_, value)| *value != 0.0);
    let metrics: Vec<String> =
        metrics.map(|(name, value)| format!("{} {}", metric_words(name), short(value))).collect();
    if !metrics.is_empty() {
        row("metrics", &in_lines(&metrics));
    }
}

/// The text without spaces at the ends of its lines.
fn trimmed(text: &str) -> String {
    let lines: Vec<&str> = text.lines().map(str::trim_end).collect();
    lines.join("\n") + "\n"
}

/// Names with values, in lines that fit beside the names of a card's rows on a terminal of 80 columns.
fn in_lines(parts: &[String]) -> String {
    let mut lines = String::new();
    let mut column = 0;
    for (index, part) in parts.iter().enumerate() {
        let part = if index + 1 < parts.len() { format!("{part},") } else { part.clone() };
        let length = part.chars().count();
        if column > 0 {
            let fits = column + 1 + length <= 66;
            lines.push(if fits { ' ' } else { '\n' });
            column = if fits { column + 1 } else { 0 };
        }
        lines += &part;
        column += length;
    }
    lines
}

/// A metric with at most three decimals.
fn short(value: f64) -> String {
    let text = format!("{value:.3}");
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;
    use earnest_tasks::suite::Items;
    use earnest_tasks::suite::arithmetic_bench::ArithmeticBench;

    #[test]
    fn cards_show_prompts_as_far_as_they_are_known_and_no_control_characters() {
        let suite = ArithmeticBench::new(Default::default()).unwrap();
        let item = suite.iter().next().unwrap();
        let completion = earnest_results::Generated {
            text: "\u{1b}]0;title\u{7}one\r\ntwo\0".into(),
            ids: vec![1],
            counted_tokens: 0,
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
            score: None,
            failure: None,
        };
        let shown = |prompt: Option<String>| {
            card(&sample, Some(&StoredQuestion { item: item.clone(), prompt }), None, None, None, true)
        };
        let asked = shown(Some(format!("<user>\n{}<assistant>", item.segments.question)));
        assert!(asked.contains("  prompt      <user>\n              ") && asked.contains("<assistant>\n"), "{asked}");
        assert!(!asked.contains("  question "), "{asked}");
        assert!(asked.contains("␛]0;title␇one\n              two␀\n"), "{asked}");
        assert!(!asked.contains(|c: char| c.is_control() && c != '\n'), "{asked:?}");
        let pieces = shown(None);
        assert!(pieces.contains("[the prompt was not stored: these are its pieces"), "{pieces}");
        assert!(pieces.contains(&format!("  question    {}\n", item.segments.question)), "{pieces}");
    }

    #[test]
    fn two_rules_are_shown_side_by_side() {
        let score: earnest_tasks::suite::Score = serde_json::from_value(serde_json::json!({
            "correct": true, "extracted": "1287", "matchers": {"final": true, "strict": false, "compat": true}, "metrics": {},
            "failure": null, "evidence": {"readings": {"strict": "700", "paper": null}},
        }))
        .unwrap();
        let sample: Sample = serde_json::from_value(serde_json::json!({
            "format": 1, "run": "r", "suite": "nupa", "item": "i", "sample": 0, "task": "t", "cluster": "c", "covariates": {},
            "gold": "1287", "prompt_sha256": "", "prompt_tokens": 1, "budget": 1, "max_tokens": 1, "completion": null,
            "verdict": score, "failure": null,
        }))
        .unwrap();
        let of = |one: &str, other: &str| {
            let lines = side_by_side(&sample, &[one.to_owned(), other.to_owned()], &["final".to_owned()]);
            lines.into_iter().map(|(by, outcome)| format!("{by} {outcome}")).collect::<Vec<_>>()
        };
        assert_eq!(of("final", "strict"), ["final right, read 1287", "strict wrong, read 700"]);
        assert_eq!(of("compat", "paper"), ["compat right", "paper did not score it, read nothing"]);
        let shown = card(
            &sample,
            None,
            None,
            Some(side_by_side(&sample, &["final".into(), "strict".into()], &["final".to_owned()])),
            None,
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
        assert!(short.chars().count() < 4_200 && short.contains("[... 96000 characters left out: --full"), "{short}");
        assert!(short.starts_with("äää") && short.ends_with("äää"));
        assert_eq!(shortened(&long, true), long);
        let fits = "b".repeat(BEGINNING + END);
        assert_eq!(shortened(&fits, false), fits);
    }
}
