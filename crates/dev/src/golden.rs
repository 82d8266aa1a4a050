//! `earnest-dev golden`: the engine against recorded logits and greedy completions.

use std::path::PathBuf;

use clap::Args;
use earnest_engine::bench::{GoldenResult, Recorded, compare};
use earnest_models::checkpoint::{Checkpoint, WeightFormat};
use serde::Serialize;

use crate::failure::{Exit, Failure};
use crate::options::{Device, EngineArgs, WeightArgs};
use crate::output::{self, First};

#[derive(Debug, Args)]
#[command(
    after_help = "A checkpoint's folder must hold golden.json beside its files, like those in tests/golden/engine/checkpoints.
Each checkpoint is a line as it ends. If a GPU breaks, the checkpoint is named and a new process
goes on with the next one.

Examples:
  earnest-dev golden tests/golden/engine/checkpoints
  earnest-dev golden tests/golden/engine/checkpoints --device cuda --dtype bf16 --tolerance 0.15 --json"
)]
pub struct GoldenArgs {
    /// Folder of one checkpoint or of several
    pub folder: PathBuf,

    /// Largest accepted difference of logits, and largest accepted lead of a lost greedy token
    #[arg(long, value_name = "X", default_value_t = 1e-3)]
    pub tolerance: f64,

    /// Accept what rounding to 16 bits changes in each checkpoint, in units of the spread of its logits, instead of --tolerance
    #[arg(long, conflicts_with = "tolerance")]
    pub rounding: bool,

    #[command(flatten)]
    pub first: First,

    #[command(flatten)]
    pub weights: WeightArgs,

    #[command(flatten)]
    pub engine: EngineArgs,

    /// One JSON document a checkpoint, in a line
    #[arg(long)]
    pub json: bool,
}

/// Accepted rounding to 16 bits in a checkpoint: of its logits, and of the lead of a greedy token that is lost, in units of the spread (standard deviation) of its
/// logits, 0.16 to 2.7. About twice the most that correct roundings changed: the CPU engine over 48 checkpoints with matrices in bf16 and f16, products in bf16 and
/// f32, keys and values in bf16 and f32. Logits that have nothing to do with the recorded ones are about 4 apart somewhere in the vocabulary.
const DENSE: [f64; 2] = [0.28, 0.12];
/// Of a mixture of experts: another rounding gives a token other experts where scores are close.
const MIXTURE: [f64; 2] = [0.35, 0.65];
/// Of those whose last token gets other experts too, or whose errors are larger.
const OTHERS: [(&str, [f64; 2]); 8] = [
    ("granite3-moe", [1.7, 0.9]),
    ("deepseek-v3", [1.25, 0.5]),
    ("gemma4-moe", [1.8, 0.7]),
    ("gpt-oss-bf16", [0.7, 0.65]),
    ("gemma4-e2b", [0.4, 0.3]),
    ("gemma3n-text", [0.4, 0.12]),
    ("qwen3.5", [0.35, 0.7]),
    ("qwen3.5-moe", [1.8, 0.65]),
];

/// A checkpoint's result, or the reason why it has none.
#[derive(Debug, Serialize)]
struct Row {
    #[serde(flatten)]
    result: Option<GoldenResult>,
    /// Name of a checkpoint without a result.
    #[serde(skip_serializing_if = "Option::is_none", rename = "checkpoint")]
    name: Option<String>,
    /// Largest accepted difference of logits, and largest accepted lead of a lost greedy token.
    #[serde(skip_serializing_if = "Option::is_none")]
    accepted: Option<[f64; 2]>,
    passed: bool,
    /// The device does not take it; the reason.
    #[serde(skip_serializing_if = "Option::is_none")]
    refused: Option<String>,
    /// The device broke; its error.
    #[serde(skip_serializing_if = "Option::is_none")]
    broken: Option<String>,
}

#[derive(Debug, Serialize)]
struct Summary {
    checkpoints: usize,
    wrong: usize,
    devices: Vec<String>,
}

fn folders(of: &PathBuf) -> Result<Vec<PathBuf>, Failure> {
    if of.join("golden.json").is_file() {
        return Ok(vec![of.clone()]);
    }
    let entries = std::fs::read_dir(of)
        .map_err(|error| Failure::new(Exit::Model, format!("cannot read {}: {error}", of.display())))?;
    let mut folders: Vec<PathBuf> =
        entries.flatten().map(|entry| entry.path()).filter(|path| path.join("golden.json").is_file()).collect();
    folders.sort();
    if folders.is_empty() {
        return Err(Failure::new(Exit::Model, format!("no folder in {} holds a golden.json", of.display())));
    }
    Ok(folders)
}

/// Compares all checkpoints; the exit code is 5 if one disagrees.
pub fn execute(args: &GoldenArgs) -> Result<Exit, Failure> {
    let folders = folders(&args.folder)?;
    let widest = folders.iter().map(|folder| name(folder).len()).max().unwrap_or(0);
    let (mut wrong, mut compared, mut devices) = (args.first.wrong_before, 0, vec![]);
    for (index, folder) in folders.iter().enumerate().skip(args.first.first) {
        let several = folders.len() > 1;
        let row = match one(args, folder, several, &mut devices) {
            Ok(row) => row,
            // A file that cannot be read, or an option that makes no sense, is so for all.
            Err(failure) if failure.exit != Exit::Engine || args.engine.device == Device::Cpu => return Err(failure),
            Err(failure) if devices.is_empty() && compared == 0 && index == args.first.first && !several => {
                return Err(failure);
            }
            Err(failure) => {
                let (name, broken) = (Some(name(folder)), Some(failure.to_string()));
                Row { result: None, name, accepted: None, passed: false, refused: None, broken }
            }
        };
        compared += usize::from(row.result.is_some());
        wrong += usize::from(!row.passed);
        if args.json {
            output::line(&row)?;
        } else {
            output::write(&screen(&row, widest))?;
        }
        if row.broken.is_some() {
            return Err(output::go_on_at(index + 1, wrong));
        }
    }
    // A process that goes on after the last checkpoint has nothing to compare.
    if compared == 0 && args.first.wrong_before == 0 {
        return Err(Failure::new(Exit::Engine, "no checkpoint was compared"));
    }
    let summary = Summary { checkpoints: compared, wrong, devices };
    if args.json {
        output::line(&summary)?;
    } else {
        let outcome = if wrong == 0 { "all within" } else { "NOT all within" };
        let accepted = if args.rounding { "what rounding changes".to_owned() } else { args.tolerance.to_string() };
        output::write(&format!("{}\n{outcome} {accepted}\n", summary.devices.join(", ")))?;
    }
    Ok(if wrong == 0 { Exit::Success } else { Exit::Engine })
}

fn name(folder: &std::path::Path) -> String {
    folder.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}

fn one(args: &GoldenArgs, folder: &std::path::Path, several: bool, devices: &mut Vec<String>) -> Result<Row, Failure> {
    let recorded =
        Recorded::read(&folder.join("golden.json")).map_err(|error| Failure::new(Exit::Model, error.to_string()))?;
    let mut checkpoint = Checkpoint::open(folder)?;
    checkpoint.set_weight_format(WeightFormat::from(args.weights));
    let name = name(folder);
    let mut engine = match args.engine.load(&checkpoint) {
        Err(failure) if several && failure.unsupported => {
            let refused = Some(failure.to_string());
            return Ok(Row { result: None, name: Some(name), accepted: None, passed: true, refused, broken: None });
        }
        loaded => loaded?.engine,
    };
    let result = compare(engine.as_mut(), &name, &recorded)?;
    *devices = engine.card().devices;
    let accepted = match args.rounding {
        false => [args.tolerance; 2],
        true => {
            let other = OTHERS.iter().find(|(other, _)| *other == name).map(|(_, accepted)| *accepted);
            let usual = if checkpoint.config.experts.is_some() { MIXTURE } else { DENSE };
            let spread = recorded.spread().ok_or_else(|| {
                let file = folder.join("golden.json");
                Failure::new(Exit::Model, format!("{} has no logits_stats, which --rounding needs", file.display()))
            })?;
            other.unwrap_or(usual).map(|most| most * spread)
        }
    };
    let passed = result.largest_difference <= accepted[0] && result.largest_lost_margin <= accepted[1];
    let accepted = Some(accepted);
    Ok(Row { result: Some(result), name: None, accepted, passed, refused: None, broken: None })
}

fn screen(row: &Row, widest: usize) -> String {
    let name = row.name.as_deref().or(row.result.as_ref().map(|r| r.name.as_str())).unwrap_or_default();
    if let Some(reason) = &row.refused {
        return format!("{name:widest$}  not compared: {reason}\n");
    }
    let Some(r) = &row.result else {
        return format!("{name:widest$}  BROKEN: {}\n", row.broken.as_deref().unwrap_or_default());
    };
    let greedy = match r.exact {
        true => "greedy texts equal".to_owned(),
        false => format!("a lead of {:.4} lost", r.largest_lost_margin),
    };
    let wrong = match (row.passed, row.accepted) {
        (false, Some([logits, lead])) => format!(" -- WRONG: at most {logits:.4} and {lead:.4}"),
        _ => String::new(),
    };
    let (prompts, difference, tokens) = (r.prompts, r.largest_difference, r.tokens);
    format!("{name:widest$}  {prompts} prompts, logits within {difference:.6}, {tokens} tokens, {greedy}{wrong}\n")
}
