//! How fast a model runs on this machine, for the hours of a plan.
use clap::Args;

use crate::bench::{Load, LoadMeasurement, Space, measure_load};
use crate::checkpoint::{Checkpoint, WeightFormat};
use crate::cli::args::EngineArgs;
use crate::cli::device::{DeviceArg, parse};
use crate::cli::error::CliError;
use crate::cli::models::{ComputeArg, WeightArgs};
use crate::cli::printer::Printer;
use crate::cli::{Exit, model};
use crate::reproduce::gsm_symbolic::Assumptions;
use crate::reproduce::nupa::Rate;

/// Times that a load is measured after one that is not counted: the first one of an engine pays for memory and for choosing kernels.
const REPETITIONS: usize = 2;

/// Questions like those of an evaluation without examples: half of the prompt shared, answered in a line. Engines that run more at
/// once are asked more.
const LOAD: Load = Load { batch: 64, prompt_tokens: 64, shared: 0.5, new_tokens: 16 };

/// Word problems behind eight worked ones.
const FEW_SHOT: Load = Load { batch: 32, prompt_tokens: 1000, shared: 0.9, new_tokens: 32 };

/// Tokens of a step where an engine does not say: the fewest that any of ours computes.
const TOKEN_BUDGET: u64 = 512;

/// Sequences that an engine on a CPU runs at once.
const ON_CPU: usize = crate::cli::model::DEFAULT_BATCH;

#[derive(Debug, Clone, Args)]
pub struct MeasureArgs {
    /// Hours at the rate that the model has on this machine, which loads and measures it
    #[arg(long, requires = "model", conflicts_with = "runs")]
    pub measure: bool,

    /// With --measure: the arithmetic, f32 or int8, as `earnest run --compute` takes it [default: f32]
    #[arg(long, value_name = "TYPE", value_enum, requires = "measure", hide_possible_values = true)]
    pub compute: Option<ComputeArg>,
}

impl MeasureArgs {
    /// How weights are held and computed with.
    pub(super) fn weights(&self) -> WeightFormat {
        WeightArgs { compute: self.compute, ..WeightArgs::default() }.into()
    }
}

/// Where the rate is measured, for commands that run nothing else.
#[derive(Debug, Clone, Args)]
pub struct MeasureOnArgs {
    /// With --measure: where the native engine computes, auto, cpu, cuda or cuda:N [default: auto]
    #[arg(long, value_name = "DEVICE", env = "EARNEST_DEVICE", hide_env_values = true, value_parser = parse)]
    pub device: Option<DeviceArg>,

    /// With --measure: CPU threads [default: all cores]
    #[arg(long, value_name = "N", requires = "measure")]
    pub threads: Option<usize>,
}

impl MeasureOnArgs {
    /// The engine's options.
    pub(super) fn engine(&self) -> EngineArgs {
        EngineArgs { device: self.device, threads: self.threads, ..EngineArgs::default() }
    }
}

/// Loads a model and measures how many prompt tokens and how many new ones a second it works on. That takes a few seconds for a
/// small model and as many minutes for one of some billions of weights.
pub(super) fn measured_rate(checkpoint: &Checkpoint, args: &EngineArgs, printer: Printer) -> Result<Rate, CliError> {
    let (measured, device) = measured(checkpoint, args, LOAD, printer)?;
    Ok(Rate {
        prompt_tokens_per_second: measured.prompt_tokens_per_s,
        new_tokens_per_second: measured.decode_tokens_per_s,
        source: format!("measured on {device}"),
    })
}

/// Loads a model and measures how fast it reads prompts of the study's shape and answers them.
pub(super) fn measured_assumptions(
    checkpoint: &Checkpoint,
    args: &EngineArgs,
    printer: Printer,
) -> Result<Assumptions, CliError> {
    let (m, device) = measured(checkpoint, args, FEW_SHOT, printer)?;
    let weights = checkpoint.config.parameters();
    let parameters: f64 = weights.iter().map(|(_, shape)| shape.iter().map(|&n| n as f64).product::<f64>()).sum();
    let batch = m.load.batch as f64;
    let step_s = m.decode_s * batch / m.decoded_tokens.max(1) as f64;
    let device = format!(
        "{device} with {}",
        checkpoint.source.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned())
    );
    Ok(Assumptions::measured(device, parameters, m.prefilled_tokens as f64, m.prefill_s, batch, step_s))
}

fn measured(
    checkpoint: &Checkpoint,
    args: &EngineArgs,
    load: Load,
    printer: Printer,
) -> Result<(LoadMeasurement, String), CliError> {
    let failed = |what: String| CliError::new(Exit::Engine, format!("the rate cannot be measured: {what}"));
    let config = &checkpoint.config;
    printer.message("loading the model to measure its rate on this machine");
    let model::Loaded { mut engine, options, notes } = model::load(checkpoint, args)?;
    notes.iter().for_each(|note| printer.warning(note));
    let token_budget = options.get("token_budget").and_then(serde_json::Value::as_u64).unwrap_or(TOKEN_BUDGET) as usize;
    let card = engine.card();
    // Twice the load's batch is what an engine on a CPU runs; one that runs four times as much is measured at that.
    let batch = (load.batch * (card.in_flight / ON_CPU).max(1)).min(card.in_flight).max(1);
    let load = Load { batch, ..load }.within(config.max_positions, token_budget);
    let space = Space { vocab: config.vocab_size, token_budget };
    let mut once = || measure_load(engine.as_mut(), space, load, None).map_err(|error| failed(error.to_string()));
    once()?;
    let mut measured = once()?;
    for _ in 1..REPETITIONS {
        let another = once()?;
        if another.prefill_s + another.decode_s < measured.prefill_s + measured.decode_s {
            measured = another;
        }
    }
    let arithmetic = if checkpoint.weight_format().is_int8() { "; the commands need --compute int8 too" } else { "" };
    let described = format!(
        "this machine's {} (weights {}{arithmetic}): {} prompts of {} tokens, {:.0} % of them shared, and {} new tokens each",
        card.devices.join(", "),
        card.weights_dtype,
        load.batch,
        load.prompt_tokens,
        100.0 * load.shared,
        load.new_tokens
    );
    Ok((measured, described))
}
