//! How fast a model runs on this machine, for the hours of a plan.
use crate::bench::{Load, LoadMeasurement, TokenCost, measure_load};
use crate::checkpoint::Checkpoint;
use crate::cli::error::CliError;
use crate::cli::printer::Printer;
use crate::cli::{Exit, model};
use crate::engine::native::Options;
use crate::reproduce::gsm_symbolic::Assumptions;
use crate::reproduce::nupa::Rate;

/// Questions like those of an evaluation without examples: half of the prompt shared, answered in a line.
const LOAD: Load = Load { batch: 64, prompt_tokens: 64, shared: 0.5, new_tokens: 16 };

/// Word problems behind eight worked ones.
const FEW_SHOT: Load = Load { batch: 32, prompt_tokens: 1000, shared: 0.9, new_tokens: 32 };

/// Loads a model and measures how many prompt tokens and how many new ones a second it works on. That takes a few seconds for a
/// small model and as many minutes for one of some billions of weights.
pub(super) fn measured_rate(checkpoint: &Checkpoint, printer: Printer) -> Result<Rate, CliError> {
    let measured = measured(checkpoint, LOAD, printer)?;
    Ok(Rate {
        prompt_tokens_per_second: measured.prompt_tokens_per_s,
        new_tokens_per_second: measured.decode_tokens_per_s,
        source: format!("measured on {}", described(measured.load)),
    })
}

/// Loads a model and measures how fast it reads prompts of the study's shape and answers them.
pub(super) fn measured_assumptions(checkpoint: &Checkpoint, printer: Printer) -> Result<Assumptions, CliError> {
    let m = measured(checkpoint, FEW_SHOT, printer)?;
    let weights = checkpoint.config.parameters();
    let parameters: f64 = weights.iter().map(|(_, shape)| shape.iter().map(|&n| n as f64).product::<f64>()).sum();
    let batch = m.load.batch as f64;
    let step_s = m.decode_s * batch / m.decoded_tokens.max(1) as f64;
    let device = format!(
        "{} with {}",
        described(m.load),
        checkpoint.source.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned())
    );
    Ok(Assumptions::measured(device, parameters, m.prefilled_tokens as f64, m.prefill_s, batch, step_s))
}

fn described(load: Load) -> String {
    format!(
        "this machine's CPU with {} threads: {} prompts of {} tokens, {:.0} % of them shared, and {} new tokens each",
        Options::default().threads(),
        load.batch,
        load.prompt_tokens,
        100.0 * load.shared,
        load.new_tokens
    )
}

fn measured(checkpoint: &Checkpoint, load: Load, printer: Printer) -> Result<LoadMeasurement, CliError> {
    let failed = |what: String| CliError::new(Exit::Engine, format!("the rate cannot be measured: {what}"));
    let config = &checkpoint.config;
    printer.message("loading the model to measure its rate on this machine");
    let (mut native, _) = model::load_cpu(checkpoint, Options::default())?;
    let load = load.within(config.max_positions, native.token_budget());
    let peaks = native.peaks();
    measure_load(&mut native, config.vocab_size, load, TokenCost::of(config), &peaks)
        .map_err(|error| failed(error.to_string()))
}
