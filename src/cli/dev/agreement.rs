//! `earnest dev agreement`: the engine against the same model in another configuration.
use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use serde::Serialize;

use crate::cli::Exit;
use crate::cli::args::EngineArgs;
use crate::cli::error::CliError;
use crate::cli::models::{HubArgs, WeightArgs, locate};
use crate::cli::printer::Printer;
use earnest_engine::bench::{GoldenResult, compare, distributions, error_of_spread, random_prompts, record};
use earnest_engine::cuda::Variants;
use earnest_eval::model::{self, BUILT_IN, DeviceChoice, EngineSettings};
use earnest_models::checkpoint::{Checkpoint, WeightFormat};

/// Configuration of the reference.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reference {
    /// On the CPU
    Cpu,
    /// With --batch-invariant: on a GPU, all products by our own kernels
    BatchInvariant,
    /// With --no-prefix-cache: every prompt from its first token
    NoPrefixCache,
    /// Without --cuda-variant
    DefaultVariants,
    /// Without --compute: products of the weights' type
    DefaultCompute,
}

#[derive(Debug, Args)]
#[command(
    after_help = "Prompts are random token ids with a common prefix. The reference decodes them first, greedily, then
the engine as the other options configure it. Compared are the largest log-probabilities after each
prompt and every generated token; a different token counts as rounding if the reference's best token
led by no more than the tolerance. The exit code is 5 beyond the tolerance. Shown, too, is the root
mean square of the differences of all log-probabilities after the prompts, in units of their spread.

Examples:
  earnest dev agreement --model ./Llama-3-8B --reference batch-invariant --tolerance 0.15
  earnest dev agreement --batch-invariant --reference no-prefix-cache --tolerance 0
  earnest dev agreement --device cuda --dtype bf16 --reference cpu --tolerance 0.3 --json"
)]
pub struct BenchAgreementArgs {
    /// Model: a name from `earnest models list`, org/repo@<40-digit commit>, a Hugging Face folder or a GGUF file
    #[arg(long, value_name = "MODEL", env = "EARNEST_MODEL", hide_env_values = true, default_value = BUILT_IN)]
    pub model: PathBuf,

    /// Reference configuration
    #[arg(long, value_name = "WAY", value_enum)]
    pub reference: Reference,

    /// Number of prompts
    #[arg(long, value_name = "N", default_value_t = 32)]
    pub prompts: usize,

    /// Length of the common prefix in tokens
    #[arg(long, value_name = "N", default_value_t = 64)]
    pub shared: usize,

    /// Approximate number of further tokens per prompt
    #[arg(long, value_name = "N", default_value_t = 32)]
    pub own: usize,

    /// New tokens per prompt
    #[arg(long, value_name = "N", default_value_t = 16)]
    pub new: usize,

    /// Largest accepted difference of log-probabilities, and largest accepted lead of a lost greedy token
    #[arg(long, value_name = "X", default_value_t = 1e-3)]
    pub tolerance: f64,

    #[command(flatten)]
    pub weights: WeightArgs,

    #[command(flatten)]
    pub hub: HubArgs,

    #[command(flatten)]
    pub engine: EngineArgs,

    /// Print one JSON document
    #[arg(long)]
    pub json: bool,
}

/// One of the two engines.
#[derive(Debug, Serialize)]
struct Side {
    devices: Vec<String>,
    options: serde_json::Value,
}

#[derive(Debug, Serialize)]
struct Document {
    earnest: &'static str,
    model: String,
    reference: Reference,
    reference_engine: Side,
    engine: Side,
    tolerance: f64,
    passed: bool,
    /// Root mean square of the differences of all log-probabilities after the prompts, in units of their spread.
    error_of_spread: f64,
    /// Number of distinct tokens that the reference generated; with only one, agreement means little.
    distinct_tokens: usize,
    result: GoldenResult,
}

/// Compares the engines; the exit code is 5 if they disagree.
pub fn execute(args: &BenchAgreementArgs, quiet: bool, printer: Printer) -> Result<Exit, CliError> {
    if args.prompts == 0 || args.new == 0 {
        return Err(CliError::usage("--prompts and --new must be at least 1"));
    }
    let chosen = locate(&args.model, &args.hub, args.weights.into(), printer)?;
    let checkpoint = model::open(&chosen)?;
    let config = &checkpoint.config;
    let longest = args.shared + args.own * 13 / 10 + 1 + args.new;
    if longest > config.max_positions {
        let message = format!("prompts of {longest} tokens exceed the context of {}", config.max_positions);
        return Err(CliError::usage(message).help("choose smaller --shared, --own or --new"));
    }
    let prompts = random_prompts(args.prompts, args.shared, args.own, config.vocab_size);
    let settings = args.engine.settings()?;
    let (mut other, mut other_checkpoint, format) =
        (settings.clone(), model::open(&chosen)?, checkpoint.weight_format());
    match args.reference {
        Reference::Cpu => (other.device, other.batch_invariant) = (DeviceChoice::Cpu, false),
        Reference::BatchInvariant => other.batch_invariant = true,
        Reference::NoPrefixCache => other.prefix_cache = false,
        Reference::DefaultVariants => other.cuda_variants = Variants::NONE,
        Reference::DefaultCompute => other_checkpoint.set_weight_format(WeightFormat { compute: None, ..format }),
    }
    let load = |checkpoint: &Checkpoint, settings: &EngineSettings| -> Result<_, CliError> {
        let loaded = model::load(checkpoint, settings)?;
        loaded.notes.iter().for_each(|note| printer.warning(note));
        let side = Side { devices: loaded.engine.card().devices, options: loaded.options };
        if !quiet {
            printer.message(&format!("computing {} prompts on {}", args.prompts, side.devices.join("; ")));
        }
        Ok((loaded.engine, side))
    };
    let failed = super::failure;
    let (recorded, expected, reference_engine) = {
        // Dropped before the other engine loads, to free its memory.
        let (mut engine, side) = load(&other_checkpoint, &other)?;
        let recorded = record(engine.as_mut(), &prompts, args.new).map_err(failed)?;
        (recorded, distributions(engine.as_mut(), &prompts, config.vocab_size).map_err(failed)?, side)
    };
    let (mut engine, side) = load(&checkpoint, &settings)?;
    let result = compare(engine.as_mut(), &model::short_name(chosen.path()), &recorded).map_err(failed)?;
    let rows = distributions(engine.as_mut(), &prompts, config.vocab_size).map_err(failed)?;
    let tokens: BTreeSet<u32> = recorded.prompts.iter().flat_map(|p| p.greedy.iter().copied()).collect();
    let within = |x: f64| x <= args.tolerance;
    let document = Document {
        earnest: env!("CARGO_PKG_VERSION"),
        model: args.model.display().to_string(),
        reference: args.reference,
        reference_engine,
        engine: side,
        tolerance: args.tolerance,
        passed: within(result.largest_difference) && within(result.largest_lost_margin),
        error_of_spread: error_of_spread(&expected, &rows),
        distinct_tokens: tokens.len(),
        result,
    };
    if args.json {
        printer.json(&document)?;
    } else {
        printer.result(&screen(&document, args.prompts * args.new))?;
    }
    Ok(if document.passed { Exit::Success } else { Exit::Engine })
}

fn screen(d: &Document, tokens: usize) -> String {
    let r = &d.result;
    let mut text = String::new();
    let lost = match r.exact {
        true => String::new(),
        false => format!(", a lead of {:.4} lost", r.largest_lost_margin),
    };
    let outcome = if d.passed { "within" } else { "NOT within" };
    write!(
        text,
        "reference  {}\nengine     {}\n{} prompts, the largest log-probabilities within {:.6}, all within {:.4} of their spread (root mean square), \
         {} of {tokens} greedy tokens ({} distinct) before the first difference{lost}\n\
         {outcome} {}\n",
        d.reference_engine.devices.join("; "),
        d.engine.devices.join("; "),
        r.prompts,
        r.largest_difference,
        d.error_of_spread,
        r.tokens,
        d.distinct_tokens,
        d.tolerance
    )
    .expect("writing to a String cannot fail");
    text
}
