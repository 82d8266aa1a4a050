//! `earnest dev golden`: the engine against recorded logits and greedy completions.
use earnest_eval::model::{self, LoadedEngine};
use std::fmt::Write;
use std::path::PathBuf;

use clap::Args;
use serde::Serialize;

use crate::cli::Exit;
use crate::cli::args::EngineArgs;
use crate::cli::error::CliError;
use crate::cli::models::WeightArgs;
use crate::cli::printer::Printer;
use earnest_engine::bench::{GoldenResult, Recorded, compare};
use earnest_models::checkpoint::{Checkpoint, WeightFormat};

#[derive(Debug, Args)]
#[command(
    after_help = "A checkpoint's folder must hold golden.json beside its files, like those in tests/golden/engine/checkpoints.

Examples:
  earnest dev golden tests/golden/engine/checkpoints
  earnest dev golden tests/golden/engine/checkpoints --device cuda --dtype bf16 --tolerance 0.15 --json"
)]
pub struct BenchGoldenArgs {
    /// Folder of one checkpoint or of several
    pub folder: PathBuf,

    /// Largest accepted difference of logits, and largest accepted lead of a lost greedy token
    #[arg(long, value_name = "X", default_value_t = 1e-3)]
    pub tolerance: f64,

    #[command(flatten)]
    pub weights: WeightArgs,

    #[command(flatten)]
    pub engine: EngineArgs,

    /// Print one JSON document
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Serialize)]
struct Document {
    tolerance: f64,
    devices: Vec<String>,
    passed: bool,
    results: Vec<GoldenResult>,
    /// Checkpoints of a folder of several that the device does not take, with the reason.
    refused: Vec<Refused>,
}

#[derive(Debug, Serialize)]
struct Refused {
    name: String,
    reason: String,
}

/// Compares all checkpoints; the exit code is 5 if one disagrees.
pub fn execute(args: &BenchGoldenArgs, printer: Printer) -> Result<Exit, CliError> {
    let unreadable = |error: String| CliError::new(Exit::Model, error);
    let mut folders = vec![];
    if args.folder.join("golden.json").is_file() {
        folders.push(args.folder.clone());
    } else {
        let entries = std::fs::read_dir(&args.folder)
            .map_err(|error| unreadable(format!("cannot read {}: {error}", args.folder.display())))?;
        folders.extend(entries.flatten().map(|e| e.path()).filter(|path| path.join("golden.json").is_file()));
        folders.sort();
    }
    if folders.is_empty() {
        return Err(unreadable(format!("no folder in {} holds a golden.json", args.folder.display())));
    }
    let mut document =
        Document { tolerance: args.tolerance, devices: vec![], passed: true, results: vec![], refused: vec![] };
    let settings = args.engine.settings()?;
    for folder in &folders {
        let recorded = Recorded::read(&folder.join("golden.json")).map_err(|error| unreadable(error.to_string()))?;
        let mut checkpoint = Checkpoint::open(folder).map_err(|error| unreadable(error.to_string()))?;
        checkpoint.set_weight_format(WeightFormat::from(args.weights));
        let name = folder.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let LoadedEngine { mut engine, notes, .. } = match model::load(&checkpoint, &settings) {
            Err(error) if folders.len() > 1 && checkpoint.config.recent_feature().is_some() => {
                document.refused.push(Refused { name, reason: error.to_string() });
                continue;
            }
            loaded => loaded?,
        };
        notes.iter().for_each(|note| printer.warning(note));
        let result = compare(engine.as_mut(), &name, &recorded).map_err(super::failure)?;
        let within = |x: f64| x <= args.tolerance;
        document.passed &= within(result.largest_difference) && within(result.largest_lost_margin);
        document.devices = engine.card().devices;
        document.results.push(result);
    }
    if document.results.is_empty() {
        let reasons: Vec<&str> = document.refused.iter().map(|refused| refused.reason.as_str()).collect();
        return Err(CliError::new(Exit::Engine, format!("no checkpoint can be compared: {}", reasons.join("; "))));
    }
    if args.json {
        printer.json(&document)?;
    } else {
        printer.result(&screen(&document))?;
    }
    Ok(if document.passed { Exit::Success } else { Exit::Engine })
}

fn screen(d: &Document) -> String {
    let mut text = format!("{}\n", d.devices.join(", "));
    let widest = d.results.iter().map(|r| r.name.len()).max().unwrap_or(0);
    for r in &d.results {
        let greedy = if r.exact {
            "greedy texts equal".to_owned()
        } else {
            format!("a lead of {:.4} lost", r.largest_lost_margin)
        };
        writeln!(
            text,
            "{:widest$}  {} prompts, logits within {:.6}, {} tokens, {greedy}",
            r.name, r.prompts, r.largest_difference, r.tokens
        )
        .expect("writing to a String cannot fail");
    }
    for Refused { name, reason } in &d.refused {
        writeln!(text, "{name:widest$}  not compared: {reason}").expect("writing to a String cannot fail");
    }
    let outcome = if d.passed { "all within" } else { "NOT all within" };
    writeln!(text, "{outcome} {}", d.tolerance).expect("writing to a String cannot fail");
    text
}
