//! `earnest dev device`: the engine against a device's peaks.
use std::fmt::Write;
use std::sync::atomic::AtomicBool;

use clap::Args;
use serde::Serialize;

use super::BenchModel;
use crate::cli::Exit;
use crate::cli::args::EngineArgs;
use crate::cli::error::CliError;
use crate::cli::interrupt::stop_on_signal;
use crate::cli::printer::Printer;
use earnest_engine::bench::{
    Cost, DecodeResult, Machine, PrefillResult, SharedResult, decoding_tokens, measure_decoding, measure_prefill,
    measure_shared,
};
use earnest_engine::{Card, Engine};
use earnest_eval::model::{self, Device, LoadedEngine};
use earnest_models::checkpoint::DecoderConfig;

#[derive(Debug, Args)]
#[command(
    after_help = "The roofline is the larger of bytes over --bandwidth and operations over --arithmetic (on a CPU measured if not given), with \
weights and cached keys and values read once per step and two operations per weight and token. Token ids are random; generation \
ends at its length only.

Examples:
  earnest dev device --model ./Llama-3-8B --device cuda --bandwidth 4.8 --arithmetic 989
  earnest dev device --model ./Llama-3-8B --decode 1,64,256 --prefill \"\"
  earnest dev device --model ./Llama-3-8B --decode \"\" --prefill 1,32,512 --prefill-length 256
  earnest dev device --model ./Llama-3-8B --decode \"\" --prefill \"\" --shared 5100,900,100,120 --short 1000,40,20 --json"
)]
pub struct BenchDeviceArgs {
    #[command(flatten)]
    pub model: BenchModel,

    /// Batch sizes for decode; "" skips decode
    #[arg(long, value_name = "N,N", default_value = "1,2,4,8,16,32,64,128,256,512")]
    pub decode: String,

    /// Prompt length before decode, in tokens
    #[arg(long, value_name = "N", default_value_t = 512)]
    pub decode_context: usize,

    /// Minimum number of timed steps per batch size; requests decode longer while prompts are computed
    #[arg(long, value_name = "N", default_value_t = 32)]
    pub decode_steps: usize,

    /// Batch sizes for prefill, of prompts with nothing in common; "" skips prefill
    #[arg(long, value_name = "N,N", default_value = "64")]
    pub prefill: String,

    /// Prompt length for prefill, in tokens
    #[arg(long, value_name = "N", default_value_t = 1024)]
    pub prefill_length: usize,

    /// Prompts with a common prefix: their number, shared tokens, further tokens (approximate), new tokens
    #[arg(long, value_name = "N,N,N,N", value_delimiter = ',', num_args = 1)]
    pub shared: Vec<usize>,

    /// Short prompts that share a third of their tokens: their number, tokens, new tokens
    #[arg(long, value_name = "N,N,N", value_delimiter = ',', num_args = 1)]
    pub short: Vec<usize>,

    /// Memory bandwidth of the device in TB/s [default: 4.8 (H200); measured on a CPU]
    #[arg(long, value_name = "X")]
    pub bandwidth: Option<f64>,

    /// Dense arithmetic of the device in TFLOP/s, in the type used [default: 989 (H200); measured on a CPU]
    #[arg(long, value_name = "X")]
    pub arithmetic: Option<f64>,

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
    /// Batch sizes whose keys and values do not fit the cache.
    left_out: Vec<usize>,
}

/// Default peaks: the data sheet of an H200.
const H200: Machine = Machine { bandwidth: 4.8e12, arithmetic: 989e12 };

/// Measures and prints the results.
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
    if ![args.bandwidth, args.arithmetic].into_iter().flatten().all(|peak| peak > 0.0) {
        return Err(CliError::usage("--bandwidth and --arithmetic must be above 0"));
    }
    let checkpoint = args.model.open(printer)?;
    say(format!("loading {}", args.model.path.display()));
    let start = std::time::Instant::now();
    let mut settings = args.engine.settings()?;
    if let Some(largest) = batches.iter().chain(&prefills).max() {
        settings.max_batch = Some(settings.max_batch.unwrap_or(512).max(*largest));
    }
    let (device, note) = Device::choose(&settings)?;
    note.iter().for_each(|note| printer.warning(&note.to_string()));
    let mut peaks = None;
    let (mut engine, options): (Box<dyn Engine>, serde_json::Value) = if device == Device::Cpu {
        let (native, options) = model::load_cpu(&checkpoint, settings.cpu_options())?;
        if args.bandwidth.is_none() || args.arithmetic.is_none() {
            say("measuring the device".to_owned());
            peaks = Some(native.peaks());
        }
        (Box::new(native), options)
    } else {
        let LoadedEngine { engine, options, notes, .. } = model::load_on(&checkpoint, &device, &settings)?;
        notes.iter().for_each(|note| printer.warning(note));
        (engine, options)
    };
    let load_s = start.elapsed().as_secs_f64();
    let card = engine.card();
    say(format!("computing on {}", card.devices.join("; ")));
    let tera =
        |given: Option<f64>, measured: Option<f64>, usual: f64| given.map_or(measured.unwrap_or(usual), |x| x * 1e12);
    let machine = Machine {
        bandwidth: tera(args.bandwidth, peaks.map(|peaks| peaks.bytes_per_s), H200.bandwidth),
        arithmetic: tera(args.arithmetic, peaks.map(|peaks| peaks.products_per_s), H200.arithmetic),
    };
    let cost = Cost::of(&checkpoint.config, card.weight_bytes, card.kv_bytes as f64 / card.kv_tokens.max(1) as f64);
    let mut document = Document {
        earnest: env!("CARGO_PKG_VERSION"),
        model: args.model.path.display().to_string(),
        engine: card,
        options,
        load_s,
        machine,
        cost,
        decode: vec![],
        prefill: vec![],
        shared: None,
        short: None,
        left_out: vec![],
    };
    let stop = stop_on_signal()?;
    let plan = Plan { args, batches, prefills, shared, short, stop: &stop };
    let ended = plan.measure(engine.as_mut(), &checkpoint.config, &mut document, &say);
    let nothing = document.decode.is_empty() && document.prefill.is_empty() && document.shared.is_none();
    // Measurements before an interruption or an error are printed too.
    match &ended {
        Err(_) if nothing && document.short.is_none() => {}
        _ if args.json => printer.json(&document)?,
        _ => printer.result(&screen(&document))?,
    }
    ended.map(|()| Exit::Success)
}

/// Planned measurements.
struct Plan<'a> {
    args: &'a BenchDeviceArgs,
    batches: Vec<usize>,
    prefills: Vec<usize>,
    shared: Option<[usize; 4]>,
    short: Option<[usize; 3]>,
    stop: &'a AtomicBool,
}

impl Plan<'_> {
    /// Adds the measurements to a document, until the user stops or the engine fails.
    fn measure(
        &self,
        engine: &mut dyn Engine,
        config: &DecoderConfig,
        d: &mut Document,
        say: &dyn Fn(String),
    ) -> Result<(), CliError> {
        let (args, stop) = (self.args, self.stop);
        let budget = d.options["token_budget"].as_u64().unwrap_or(1) as usize;
        for &batch in &self.batches {
            let new = decoding_tokens(batch, args.decode_context, args.decode_steps, budget);
            let needed = batch * (args.decode_context + new).next_multiple_of(32);
            if needed > d.engine.kv_tokens {
                say(format!(
                    "batch {batch} is left out: it needs {needed} tokens of keys and values, and {} fit",
                    d.engine.kv_tokens
                ));
                d.left_out.push(batch);
                continue;
            }
            say(format!("decoding at batch {batch}"));
            let sizes = (batch, args.decode_context, args.decode_steps, budget);
            let one = measure_decoding(engine, config, &d.machine, &d.cost, sizes, stop).map_err(super::failure)?;
            d.decode.push(one);
        }
        let length = args.prefill_length.clamp(1, config.max_positions.saturating_sub(1).max(1));
        for &batch in &self.prefills {
            say(format!("computing {batch} prompts of {length} tokens"));
            let mut measure = |batch| {
                measure_prefill(engine, config, &d.machine, &d.cost, (batch, length), stop).map_err(super::failure)
            };
            // Warm-up of the shapes of a full step and of the last, smaller one.
            measure(batch.min((2 * budget).div_ceil(length)))?;
            let one = measure(batch)?;
            d.prefill.push(one);
        }
        if let Some([n, common, own, new]) = self.shared {
            say(format!("running {n} prompts of {common} + {own} tokens, {new} new ones each"));
            d.shared = Some(measure_shared(engine, config, (n, common, own, new), stop).map_err(super::failure)?);
        }
        if let Some([n, tokens, new]) = self.short {
            say(format!("running {n} prompts of {tokens} tokens, {new} new ones each"));
            let sizes = (n, tokens / 3, tokens - tokens / 3, new);
            d.short = Some(measure_shared(engine, config, sizes, stop).map_err(super::failure)?);
        }
        Ok(())
    }
}

/// Parses a list of batch sizes; an empty text is an empty list.
fn sizes(option: &str, text: &str) -> Result<Vec<usize>, CliError> {
    let parts = text.split(',').map(str::trim).filter(|part| !part.is_empty());
    parts
        .map(|part| part.parse::<usize>().ok().filter(|n| *n > 0))
        .collect::<Option<Vec<usize>>>()
        .ok_or_else(|| CliError::usage(format!("{option} {text}: batch sizes must be whole numbers above 0")))
}

/// Checks for exactly N numbers above 0, or none.
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
        writeln!(out, "roofline   {:.4} TB/s, {:.4} TFLOP/s", d.machine.bandwidth / 1e12, d.machine.arithmetic / 1e12)?;
        for r in &d.decode {
            writeln!(
                out,
                "decode     batch {:4}: {:8.3} ms per step, {:8.0} tokens/s, {:.0} % of the roofline",
                r.batch,
                1e3 * r.step_s,
                r.tokens_per_s,
                100.0 * r.fraction
            )?;
        }
        if !d.left_out.is_empty() {
            let batches: Vec<String> = d.left_out.iter().map(usize::to_string).collect();
            writeln!(out, "left out   batch {}: keys and values do not fit; see --kv-memory", batches.join(", "))?;
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
