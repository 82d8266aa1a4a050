//! How fast a model runs on this machine, for the hours of a plan.
use crate::bench::{Load, TokenCost, measure_load};
use crate::checkpoint::Checkpoint;
use crate::cli::error::CliError;
use crate::cli::printer::Printer;
use crate::cli::{Exit, model};
use crate::engine::native::Options;
use crate::reproduce::nupa::Rate;

/// Questions like those of an evaluation without examples: half of the prompt shared, answered in a line.
const LOAD: Load = Load { batch: 64, prompt_tokens: 64, shared: 0.5, new_tokens: 16 };

/// Loads a model and measures how many tokens a second it works on, prompt tokens and new ones together. That takes a few seconds
/// for a small model and as many minutes for one of some billions of weights.
pub(super) fn measured_rate(checkpoint: &Checkpoint, printer: Printer) -> Result<Rate, CliError> {
    let failed = |what: String| CliError::new(Exit::Engine, format!("the rate cannot be measured: {what}"));
    let config = &checkpoint.config;
    let longest = config.max_positions.saturating_sub(LOAD.new_tokens);
    let load = Load { prompt_tokens: LOAD.prompt_tokens.min(longest), ..LOAD };
    printer.message("loading the model to measure its rate on this machine");
    let (mut native, _) = model::load_cpu(checkpoint, Options::default())?;
    let peaks = native.peaks();
    let measured = measure_load(&mut native, config.vocab_size, load, TokenCost::of(config), &peaks)
        .map_err(|error| failed(error.to_string()))?;
    let tokens = (load.batch * (load.prompt_tokens + load.new_tokens)) as f64;
    let tokens_per_second = tokens / (measured.prefill_s + measured.decode_s);
    let threads = Options::default().threads();
    let source = format!(
        "measured on this machine's CPU with {threads} threads: {} prompts of {} tokens, half of them shared, and {} new tokens each",
        load.batch, load.prompt_tokens, load.new_tokens
    );
    Ok(Rate { tokens_per_second, source })
}
