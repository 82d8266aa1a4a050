//! `earnest bench device`: what the engine makes of a device.
use std::fmt::Write;

use clap::Args;
use serde::Serialize;

use super::BenchModel;
use crate::bench::{
    Cost, DecodeResult, Machine, PrefillResult, SharedResult, decoding_tokens, measure_decoding, measure_prefill,
    measure_shared,
};
use crate::cli::args::EngineArgs;
use crate::cli::error::CliError;
use crate::cli::printer::Printer;
use crate::cli::{Exit, model};
use crate::engine::Card;

#[derive(Debug, Args)]
#[command(
    after_help = "The roofline is the larger of bytes over --bandwidth and operations over --arithmetic: weights and cached keys and
values read once a step, two operations a weight and token. Token ids are random, generation ends at its length only.

Examples:
  earnest bench device --model ./Llama-3-8B --device cuda --bandwidth 4.8 --arithmetic 989
  earnest bench device --model ./Llama-3-8B --decode 1,64,256 --prefill \"\"
  earnest bench device --model ./Llama-3-8B --decode \"\" --prefill 1,32,512 --prefill-length 256
  earnest bench device --model ./Llama-3-8B --decode \"\" --prefill \"\" --shared 5100,900,100,120 --short 1000,40,20 --json"
)]
pub struct BenchDeviceArgs {
    #[command(flatten)]
    pub model: BenchModel,

    /// Batch sizes to decode at; an empty text leaves decoding out
    #[arg(long, value_name = "N,N", default_value = "1,2,4,8,16,32,64,128,256,512")]
    pub decode: String,

    /// Tokens of the prompts before decoding
    #[arg(long, value_name = "N", default_value_t = 512)]
    pub decode_context: usize,

    /// Steps that are timed at each batch size, at least; requests decode for longer while prompts are computed
    #[arg(long, value_name = "N", default_value_t = 32)]
    pub decode_steps: usize,

    /// Numbers of prompts that are computed together, with nothing in common; an empty text leaves prefill out
    #[arg(long, value_name = "N,N", default_value = "64")]
    pub prefill: String,

    /// Tokens of those prompts
    #[arg(long, value_name = "N", default_value_t = 1024)]
    pub prefill_length: usize,

    /// Prompts with a common beginning: their number, common tokens, further tokens (about), new tokens
    #[arg(long, value_name = "N,N,N,N", value_delimiter = ',', num_args = 1)]
    pub shared: Vec<usize>,

    /// Short prompts, a third of them in common: their number, tokens, new tokens
    #[arg(long, value_name = "N,N,N", value_delimiter = ',', num_args = 1)]
    pub short: Vec<usize>,

    /// The device's memory bandwidth in TB/s
    #[arg(long, value_name = "X", default_value_t = 4.8)]
    pub bandwidth: f64,

    /// The device's arithmetic in TFLOP/s, dense, in the type that is computed in
    #[arg(long, value_name = "X", default_value_t = 989.0)]
    pub arithmetic: f64,

    #[command(flatten)]
    pub engine: EngineArgs,

    /// Print one JSON document
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Serialize)]
struct Document {
    earnest: &'static str,
    model: String,
    engine: Card,
    options: serde_json::Value,
    load_s: f64,
    machine: Machine,
    cost: Cost,
    decode: Vec<DecodeResult>,
    prefill: Vec<PrefillResult>,
    shared: Option<SharedResult>,
    short: Option<SharedResult>,
}

/// Measures and shows.
pub fn execute(args: &BenchDeviceArgs, quiet: bool, printer: Printer) -> Result<Exit, CliError> {
    let say = |text: String| {
        if !quiet {
            printer.message(&text);
        }
    };
    let batches = sizes("--decode", &args.decode)?;
    let prefills = sizes("--prefill", &args.prefill)?;
    let shared = numbers::<4>("--shared", &args.shared)?;
    let short = numbers::<3>("--short", &args.short)?;
    if !(args.bandwidth > 0.0 && args.arithmetic > 0.0) {
        return Err(CliError::usage("--bandwidth and --arithmetic are numbers above 0"));
    }
    let checkpoint = args.model.open()?;
    say(format!("loading {}", args.model.path.display()));
    let start = std::time::Instant::now();
    let mut engine_args = args.engine.clone();
    if let Some(largest) = batches.iter().chain(&prefills).max() {
        engine_args.max_batch = Some(engine_args.max_batch.unwrap_or(512).max(*largest));
    }
    let model::Loaded { mut engine, options, notes } = model::load(&checkpoint, &engine_args)?;
    let load_s = start.elapsed().as_secs_f64();
    notes.iter().for_each(|note| printer.warning(note));
    let (engine, config) = (engine.as_mut(), &checkpoint.config);
    let card = engine.card();
    say(format!("computing on {}", card.devices.join("; ")));
    let machine = Machine { bandwidth: args.bandwidth * 1e12, arithmetic: args.arithmetic * 1e12 };
    let cost = Cost::of(config, card.weight_bytes, card.kv_bytes as f64 / card.kv_tokens.max(1) as f64);
    let mut decode = vec![];
    let budget = options["token_budget"].as_u64().unwrap_or(1) as usize;
    for &batch in &batches {
        let new = decoding_tokens(batch, args.decode_context, args.decode_steps, budget);
        let needed = batch * (args.decode_context + new).next_multiple_of(32);
        if needed > card.kv_tokens {
            say(format!(
                "batch {batch} is left out: {needed} tokens of keys and values, of which {} fit",
                card.kv_tokens
            ));
            continue;
        }
        say(format!("decoding at batch {batch}"));
        let sizes = (batch, args.decode_context, args.decode_steps, budget);
        decode.push(measure_decoding(engine, config, &machine, &cost, sizes).map_err(super::failure)?);
    }
    let length = args.prefill_length.clamp(1, config.max_positions.saturating_sub(1).max(1));
    let mut prefill = vec![];
    for &batch in &prefills {
        say(format!("computing {batch} prompts of {length} tokens"));
        let mut measure =
            |batch| measure_prefill(engine, config, &machine, &cost, (batch, length)).map_err(super::failure);
        // Once before, so that shapes that come for the first time do not count: those of a full step and of fewer tokens.
        measure(batch.min((2 * budget).div_ceil(length)))?;
        prefill.push(measure(batch)?);
    }
    let shared = shared
        .map(|[n, common, own, new]| {
            say(format!("running {n} prompts of {common} + {own} tokens, {new} new ones each"));
            measure_shared(engine, config, (n, common, own, new)).map_err(super::failure)
        })
        .transpose()?;
    let short = short
        .map(|[n, tokens, new]| {
            say(format!("running {n} prompts of {tokens} tokens, {new} new ones each"));
            measure_shared(engine, config, (n, tokens / 3, tokens - tokens / 3, new)).map_err(super::failure)
        })
        .transpose()?;
    let document = Document {
        earnest: env!("CARGO_PKG_VERSION"),
        model: args.model.path.display().to_string(),
        engine: card,
        options,
        load_s,
        machine,
        cost,
        decode,
        prefill,
        shared,
        short,
    };
    if args.json {
        printer.json(&document)?;
    } else {
        printer.result(&screen(&document))?;
    }
    Ok(Exit::Success)
}

/// A list of batch sizes; an empty text is none.
fn sizes(option: &str, text: &str) -> Result<Vec<usize>, CliError> {
    let parts = text.split(',').map(str::trim).filter(|part| !part.is_empty());
    parts
        .map(|part| part.parse::<usize>().ok().filter(|n| *n > 0))
        .collect::<Option<Vec<usize>>>()
        .ok_or_else(|| CliError::usage(format!("{option} {text}: batch sizes are whole numbers above 0")))
}

/// Exactly N numbers above 0, or none at all.
fn numbers<const N: usize>(option: &str, list: &[usize]) -> Result<Option<[usize; N]>, CliError> {
    if list.is_empty() {
        return Ok(None);
    }
    match <[usize; N]>::try_from(list) {
        Ok(numbers) if !numbers.contains(&0) => Ok(Some(numbers)),
        _ => Err(CliError::usage(format!("{option} takes {N} whole numbers above 0, with commas between"))),
    }
}

fn screen(d: &Document) -> String {
    let mut text = String::new();
    let out = &mut text;
    let write = |out: &mut String| -> std::fmt::Result {
        writeln!(out, "model      {}", d.model)?;
        writeln!(out, "engine     {}", d.engine.devices.join(", "))?;
        writeln!(out, "loading    {:.1} s", d.load_s)?;
        for r in &d.decode {
            writeln!(
                out,
                "decode     batch {:4}: {:8.3} ms a step, {:8.0} tokens/s, {:.0} % of the roofline",
                r.batch,
                1e3 * r.step_s,
                r.tokens_per_s,
                100.0 * r.fraction
            )?;
        }
        for r in &d.prefill {
            let share = 100.0 * r.fraction;
            writeln!(
                out,
                "prefill    batch {:4}: {:.0} tokens/s, {share:.0} % of the roofline",
                r.batch, r.tokens_per_s
            )?;
        }
        for r in d.shared.iter().chain(&d.short) {
            writeln!(
                out,
                "workload   {} prompts of {} + {} tokens, {} new: {:.2} s, {} steps",
                r.prompts, r.shared, r.own, r.new_tokens, r.seconds, r.steps
            )?;
        }
        Ok(())
    };
    write(out).expect("writing to a String cannot fail");
    text
}
