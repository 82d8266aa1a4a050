//! `earnest score`.
use super::values::counted;
use std::fmt::Write;

use super::error::CliError;
use super::printer::Printer;
use super::result_args::ScoreArgs;
use super::{Exit, results};
use earnest_eval::rescore::{NewScorer, RescoreSettings, Rescored, rescore};
use earnest_report::wrap_lines;
use earnest_tasks::suite::FINAL;

/// Scores a run again and prints what changed.
pub fn execute(args: &ScoreArgs, printer: Printer) -> Result<Exit, CliError> {
    let settings = RescoreSettings {
        chosen: args.chosen.clone(),
        save: args.save,
        flips: args.limit,
        host: args.confinement.host_of_stored(args.python.allow_python.clone()),
        ..RescoreSettings::new(&args.results.folder, &args.run)
    };
    let changes = rescore(&settings, &mut results::Messages(printer))?;
    if args.json {
        printer.json(&changes)?;
    } else {
        let text = screen(&changes);
        printer.result(&printer.known_width().map_or_else(|| text.clone(), |width| wrap_lines(&text, width)))?;
    }
    Ok(Exit::Success)
}

fn screen(changes: &Rescored) -> String {
    let share = |count: usize| 100.0 * count as f64 / changes.scored.max(1) as f64;
    let mut text = format!(
        "{}: {}, scored with {} {}\n",
        changes.run,
        counted(changes.scored, "completion"),
        if changes.version == changes.today { "the same version" } else { "version" },
        if changes.version == changes.today {
            changes.version.clone()
        } else {
            format!("{} then, {} now", changes.version, changes.today)
        },
    );
    let mut line = |words: String| writeln!(text, "{words}").expect("writing to a String cannot fail");
    if changes.scored == 0 {
        line("There is nothing to score: the run has no completions.".to_owned());
        return text;
    }
    let by = |scorer: &str| if scorer.is_empty() { String::new() } else { format!(" by {scorer}") };
    let right =
        |name: &str, count: usize, scorer: &str| format!("{name:<14} {:>6.1} % ({count}){}", share(count), by(scorer));
    line(right("right before", changes.correct_before, &changes.chosen));
    line(right("right now", changes.correct_now, &changes.chosen_now));
    for (scorer, NewScorer { samples, right }) in &changes.new_scorers {
        line(format!("new: {scorer}, right on {right} of {samples}"));
    }
    if !changes.new_metrics.is_empty() {
        let names: Vec<&str> = changes.new_metrics.iter().map(String::as_str).collect();
        line(format!("new numbers: {}", names.join(", ")));
    }
    let same_scorer = changes.chosen_now == changes.chosen;
    if !same_scorer {
        line(format!(
            "{} is the scorer instead of {}: {} became right, {} became wrong.",
            changes.chosen_now,
            if changes.chosen.is_empty() { "none" } else { &changes.chosen },
            changes.gained,
            changes.lost
        ));
    }
    if changes.changed == 0 {
        line("No score changed.".to_owned());
    } else {
        line(match same_scorer {
            true => format!(
                "{} changed: {} became right, {} became wrong.",
                counted(changes.changed, "score"),
                changes.gained,
                changes.lost
            ),
            false => format!("{} on which scores or metrics changed:", counted(changes.changed, "sample")),
        });
        for (scorer, count) in &changes.scorers {
            line(format!("  {scorer}: {count}"));
        }
    }
    if changes.reread > 0 {
        line(format!("{FINAL} reads another answer in {}.", counted(changes.reread, "completion")));
    }
    let shown = |value: &Option<String>| value.clone().unwrap_or_else(|| "nothing".to_owned());
    for flip in &changes.flips {
        let now = if flip.now_correct { "right" } else { "wrong" };
        let (before, after) = (shown(&flip.extracted_before), shown(&flip.extracted_now));
        line(format!("  {} is {now} now: extracted {before} before, {after} now", flip.item));
    }
    if let Some(saved) = &changes.saved {
        line(format!("The new scores are in the run {saved}."));
    } else if changes.changed > 0 || !changes.new_scorers.is_empty() {
        line("--save stores the new scores as another run.".to_owned());
    }
    if changes.new_scorers.contains_key(FINAL) && changes.chosen_now == changes.chosen {
        line(format!("--scorer {FINAL} scores by the final answer."));
    }
    text
}
