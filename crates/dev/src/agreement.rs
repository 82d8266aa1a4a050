//! `earnest-dev agreement`: the engine against the same model in another configuration.
use std::collections::BTreeSet;

use clap::{Args, ValueEnum};
use earnest_engine::bench::{GoldenResult, compare, distributions, error_of_spread, random_prompts, record};
use earnest_models::checkpoint::{Checkpoint, WeightFormat};
use serde::Serialize;

use crate::failure::{Exit, Failure};
use crate::options::{Device, EngineArgs, ModelArgs};
use crate::output;

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
    /// With --no-graphs: every step's kernels launched one by one
    NoGraphs,
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
  earnest-dev agreement --model ./Llama-3-8B --device cuda --reference batch-invariant --tolerance 0.15
  earnest-dev agreement --random llama-3.2-1b --device cuda --batch-invariant --reference no-prefix-cache --tolerance 0
  earnest-dev agreement --model ./Llama-3-8B --device cuda --dtype bf16 --reference cpu --tolerance 0.3 --json"
)]
pub struct AgreementArgs {
    #[command(flatten)]
    pub model: ModelArgs,

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
pub fn execute(args: &AgreementArgs) -> Result<Exit, Failure> {
    if args.prompts == 0 || args.new == 0 {
        return Err(Failure::usage("--prompts and --new must be at least 1"));
    }
    let checkpoint = args.model.open()?;
    let config = &checkpoint.config;
    let longest = args.shared + args.own * 13 / 10 + 1 + args.new;
    if longest > config.max_positions {
        return Err(Failure::usage(format!(
            "prompts of {longest} tokens exceed the context of {}: choose smaller --shared, --own or --new",
            config.max_positions
        )));
    }
    let prompts = random_prompts(args.prompts, args.shared, args.own, config.vocab_size);
    let (mut other, mut other_checkpoint, format) =
        (args.engine.clone(), args.model.open()?, checkpoint.weight_format());
    match args.reference {
        Reference::Cpu => {
            other = EngineArgs {
                device: Device::Cpu,
                batch_invariant: false,
                cuda_variant: None,
                token_budget: None,
                no_graphs: false,
                ..other
            };
        }
        Reference::BatchInvariant => other.batch_invariant = true,
        Reference::NoPrefixCache => other.no_prefix_cache = true,
        Reference::NoGraphs => other.no_graphs = true,
        Reference::DefaultVariants if args.engine.cuda_variant.is_none() => {
            return Err(Failure::usage(
                "--reference default-variants compares what --cuda-variant names with the default: add it",
            ));
        }
        Reference::DefaultVariants => other.cuda_variant = None,
        Reference::DefaultCompute => other_checkpoint.set_weight_format(WeightFormat { compute: None, ..format }),
    }
    let load = |checkpoint: &Checkpoint, engine: &EngineArgs| -> Result<_, Failure> {
        let loaded = engine.load(checkpoint)?;
        let side = Side { devices: loaded.engine.card().devices, options: loaded.options };
        eprintln!("computing {} prompts on {}", args.prompts, side.devices.join("; "));
        Ok((loaded.engine, side))
    };
    let (recorded, expected, reference_engine) = {
        // Dropped before the other engine loads, to free its memory.
        let (mut engine, side) = load(&other_checkpoint, &other)?;
        let recorded = record(engine.as_mut(), &prompts, args.new)?;
        (recorded, distributions(engine.as_mut(), &prompts, config.vocab_size)?, side)
    };
    let (mut engine, side) = load(&checkpoint, &args.engine)?;
    let result = compare(engine.as_mut(), &args.model.name(), &recorded)?;
    let rows = distributions(engine.as_mut(), &prompts, config.vocab_size)?;
    let tokens: BTreeSet<u32> = recorded.prompts.iter().flat_map(|p| p.greedy.iter().copied()).collect();
    let within = |x: f64| x <= args.tolerance;
    let document = Document {
        earnest: env!("CARGO_PKG_VERSION"),
        model: args.model.name(),
        reference: args.reference,
        reference_engine,
        engine: side,
        tolerance: args.tolerance,
        // Without a tolerance every token must be the same: a lead can be 0.
        passed: within(result.largest_difference)
            && within(result.largest_lost_margin)
            && (args.tolerance > 0.0 || result.exact),
        error_of_spread: error_of_spread(&expected, &rows),
        distinct_tokens: tokens.len(),
        result,
    };
    if args.json {
        output::document(&document)?;
    } else {
        output::write(&screen(&document, args.prompts * args.new))?;
    }
    Ok(if document.passed { Exit::Success } else { Exit::Engine })
}

fn screen(d: &Document, tokens: usize) -> String {
    let r = &d.result;
    let lost = match r.exact {
        true => String::new(),
        false => format!(", a lead of {:.4} lost", r.largest_lost_margin),
    };
    let outcome = if d.passed { "within" } else { "NOT within" };
    format!(
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
}
