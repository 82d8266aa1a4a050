//! `earnest-dev device`: the engine against a device's peaks.
use std::fmt::Write;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use clap::Args;
use serde::Serialize;

use crate::failure::{Exit, Failure};
use crate::options::{Device, EngineArgs, Loaded, ModelArgs};
use crate::output;
use crate::profile::{self, Phase};
use earnest_engine::bench::{
    BenchError, Cost, DecodeResult, Machine, PrefillResult, SharedResult, SharedWorkload, decoding_tokens,
    measure_decoding, measure_prefill, measure_shared,
};
use earnest_engine::cuda::{self, Peaks, Profiler};
use earnest_engine::{Card, Engine, Sampling};
use earnest_models::checkpoint::{Checkpoint, DecoderConfig};

#[derive(Debug, Args)]
#[command(
    after_help = "The roofline is the larger of bytes over the memory's bandwidth and operations over the arithmetic, both measured first (on a \
GPU a large copy and a large product), with weights and cached keys and values read once per step and two operations per weight and \
token. Token ids are random; generation ends at its length only.

Examples:
  earnest-dev device --model ./Llama-3-8B --device cuda --profile
  earnest-dev device --model ./Llama-3-8B --decode 1,64,256 --prefill \"\"
  earnest-dev device --model ./Llama-3-8B --decode \"\" --prefill 1,32,512 --prefill-length 256
  earnest-dev device --model ./Llama-3-8B --decode \"\" --prefill \"\" --shared 5100,900,100,120 --short 1000,40,20 --json"
)]
pub struct DeviceArgs {
    #[command(flatten)]
    pub model: ModelArgs,

    /// Batch sizes for decode; "" skips decode
    #[arg(long, value_name = "N,N", default_value = "1,2,4,8,16,32,64,128,256,512")]
    pub decode: String,

    /// Prompt lengths before decode, in tokens
    #[arg(long, value_name = "N,N", default_value = "512")]
    pub decode_context: String,

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

    /// The same with a third to five thirds of the new tokens, so that requests end one by one
    #[arg(long, value_name = "N,N,N,N", value_delimiter = ',', num_args = 1)]
    pub ragged: Vec<usize>,

    /// Short prompts that share a third of their tokens: their number, tokens, new tokens
    #[arg(long, value_name = "N,N,N", value_delimiter = ',', num_args = 1)]
    pub short: Vec<usize>,

    /// Sampling temperature of --shared and --short
    #[arg(long, value_name = "T", default_value_t = 0.0)]
    pub temperature: f32,

    /// Probability mass to sample from, in --shared and --short
    #[arg(long, value_name = "P", default_value_t = 1.0)]
    pub top_p: f32,

    /// Memory bandwidth of the device in TB/s [default: measured]
    #[arg(long, value_name = "X")]
    pub bandwidth: Option<f64>,

    /// Dense arithmetic of the device in TFLOP/s, in the type used [default: measured]
    #[arg(long, value_name = "X")]
    pub arithmetic: Option<f64>,

    /// On a GPU: repeat every measurement with the time of every kernel, product and copy
    #[arg(long)]
    pub profile: bool,

    /// File that gets the JSON document after every measurement, so that it survives a process that is killed
    #[arg(long, value_name = "FILE")]
    pub save: Option<PathBuf>,

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
    /// Measured peaks of a GPU.
    peaks: Option<Peaks>,
    cost: Cost,
    decode: Vec<DecodeResult>,
    prefill: Vec<PrefillResult>,
    shared: Option<SharedResult>,
    ragged: Option<SharedResult>,
    short: Option<SharedResult>,
    /// Profiles of the measurements, with --profile.
    profile: Vec<Phase>,
    /// Sizes whose keys and values do not fit the cache.
    left_out: Vec<LeftOut>,
}

/// Decoding that was not measured.
#[derive(Debug, Serialize)]
struct LeftOut {
    batch: usize,
    context: usize,
}

/// Measures and prints the results.
pub fn execute(args: &DeviceArgs) -> Result<Exit, Failure> {
    let say = |text: String| eprintln!("{text}");
    let (batches, contexts) = (sizes("--decode", &args.decode)?, sizes("--decode-context", &args.decode_context)?);
    let prefills = sizes("--prefill", &args.prefill)?;
    let shared = numbers::<4>("--shared", &args.shared)?;
    let ragged = numbers::<4>("--ragged", &args.ragged)?;
    let short = numbers::<3>("--short", &args.short)?;
    let settings = settings(args, batches.iter().chain(&prefills).max().copied())?;
    let checkpoint = args.model.open()?;
    say(format!("loading {}", args.model.name()));
    let measured = args.profile || args.bandwidth.is_none() || args.arithmetic.is_none();
    if measured {
        say("measuring the device's memory and arithmetic".to_owned());
    }
    let Opened { loaded, load_s, mut machine, peaks, profiler } = open(&settings, &checkpoint, measured, args.profile)?;
    let Loaded { mut engine, options } = loaded;
    let card = engine.card();
    say(format!("computing on {}", card.devices.join("; ")));
    machine.bandwidth = args.bandwidth.map_or(machine.bandwidth, |x| x * 1e12);
    machine.arithmetic = args.arithmetic.map_or(machine.arithmetic, |x| x * 1e12);
    let cost = Cost::of(&checkpoint.config, card.weight_bytes, card.kv_bytes as f64 / card.kv_tokens.max(1) as f64);
    let mut document = Document {
        earnest: env!("CARGO_PKG_VERSION"),
        model: args.model.name(),
        engine: card,
        options,
        load_s,
        machine,
        peaks,
        cost,
        decode: vec![],
        prefill: vec![],
        shared: None,
        ragged: None,
        short: None,
        profile: vec![],
        left_out: vec![],
    };
    let stop = stop_on_signal()?;
    let plan = Plan { args, batches, contexts, prefills, shared, ragged, short, stop: &stop, profiler };
    // A file that cannot be written is known before the measurements.
    plan.save(&document)?;
    let ended = plan.measure(engine.as_mut(), &checkpoint.config, &mut document, &say);
    let workloads = [&document.shared, &document.ragged, &document.short];
    let nothing = document.decode.is_empty()
        && document.prefill.is_empty()
        && workloads.iter().all(|workload| workload.is_none());
    // Measurements before an interruption or an error are printed too.
    match &ended {
        Err(_) if nothing => {}
        _ if args.json => output::document(&document)?,
        _ => {
            output::write(&screen(&document))?;
            output::write(&profile::screen(&document.profile))?;
        }
    }
    ended.map(|()| Exit::Success)
}

/// Checks the options, and returns those of an engine that has place for this batch size.
fn settings(args: &DeviceArgs, largest: Option<usize>) -> Result<EngineArgs, Failure> {
    if ![args.bandwidth, args.arithmetic].into_iter().flatten().all(|peak| peak > 0.0) {
        return Err(Failure::usage("--bandwidth and --arithmetic must be above 0"));
    }
    if !(args.temperature >= 0.0 && args.top_p > 0.0 && args.top_p <= 1.0) {
        return Err(Failure::usage("--temperature must be at least 0, and --top-p above 0 and at most 1"));
    }
    let mut settings = args.engine.clone();
    // Smaller sizes run in an engine of the usual size.
    if let Some(largest) = largest {
        let usual = settings.max_batch.or((settings.device == Device::Cpu).then_some(512));
        settings.max_batch = usual.map(|usual| usual.max(largest)).or((largest > 512).then_some(largest.max(1024)));
    }
    if args.profile && settings.device == Device::Cpu {
        return Err(Failure::usage(
            "a profile has the time of every GPU kernel: add --device cuda (on the CPU, `earnest bench engine` measures prefill and decode)",
        ));
    }
    Ok(settings)
}

/// A loaded engine and its device.
struct Opened {
    loaded: Loaded,
    load_s: f64,
    /// Zeros where nothing was measured.
    machine: Machine,
    /// Measured peaks of a GPU.
    peaks: Option<Peaks>,
    profiler: Option<Profiler>,
}

/// Loads a checkpoint, and measures its device if asked to.
fn open(settings: &EngineArgs, checkpoint: &Checkpoint, measured: bool, profile: bool) -> Result<Opened, Failure> {
    let mut machine = Machine { bandwidth: 0.0, arithmetic: 0.0 };
    match settings.device {
        Device::Cpu => {
            let start = Instant::now();
            let (native, options) = settings.load_cpu(checkpoint)?;
            let load_s = start.elapsed().as_secs_f64();
            if measured {
                let peaks = native.peaks();
                machine = Machine { bandwidth: peaks.bytes_per_s, arithmetic: peaks.products_per_s };
            }
            let loaded = Loaded { engine: Box::new(native), options };
            Ok(Opened { loaded, load_s, machine, peaks: None, profiler: None })
        }
        Device::Cuda(index) => {
            // Before the model takes the memory.
            let peaks = if measured { Some(cuda::peaks(index, checkpoint)?) } else { None };
            if let Some(found) = &peaks {
                machine = Machine { bandwidth: found.bytes_per_s, arithmetic: found.operations_per_s };
            }
            let start = Instant::now();
            let (loaded, profiler) = match peaks.as_ref().filter(|_| profile) {
                Some(peaks) => {
                    let (loaded, profiler) = settings.load_profiled(checkpoint, index, peaks)?;
                    (loaded, Some(profiler))
                }
                None => (settings.load(checkpoint)?, None),
            };
            Ok(Opened { loaded, load_s: start.elapsed().as_secs_f64(), machine, peaks, profiler })
        }
    }
}

/// A flag that the first Ctrl-C sets; the second ends the process.
fn stop_on_signal() -> Result<Arc<AtomicBool>, Failure> {
    let stop = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&stop);
    ctrlc::set_handler(move || {
        if flag.swap(true, Ordering::Relaxed) {
            std::process::exit(Exit::Interrupted as i32);
        }
    })
    .map_err(|error| Failure::new(Exit::Engine, format!("cannot install the Ctrl-C handler: {error}")))?;
    Ok(stop)
}

/// Planned measurements.
struct Plan<'a> {
    args: &'a DeviceArgs,
    batches: Vec<usize>,
    contexts: Vec<usize>,
    prefills: Vec<usize>,
    shared: Option<[usize; 4]>,
    ragged: Option<[usize; 4]>,
    short: Option<[usize; 3]>,
    stop: &'a AtomicBool,
    profiler: Option<Profiler>,
}

impl Plan<'_> {
    /// Adds the measurements to a document, until the user stops or the engine fails.
    fn measure(
        &self,
        engine: &mut dyn Engine,
        config: &DecoderConfig,
        d: &mut Document,
        say: &dyn Fn(String),
    ) -> Result<(), Failure> {
        let (args, stop) = (self.args, self.stop);
        let (machine, cost) = (d.machine, d.cost);
        let option = |name: &str| d.options[name].as_u64().unwrap_or(1) as usize;
        let (budget, largest_batch) = (option("token_budget"), option("max_batch"));
        let cases = self.contexts.iter().flat_map(|&context| self.batches.iter().map(move |&batch| (context, batch)));
        for (context, batch) in cases {
            let new = decoding_tokens(batch, context, args.decode_steps, budget);
            let needed = batch * (context + new).next_multiple_of(32);
            if needed > d.engine.kv_tokens {
                say(format!(
                    "batch {batch} after {context} tokens is left out: it needs {needed} tokens of keys and values, and {} fit",
                    d.engine.kv_tokens
                ));
                d.left_out.push(LeftOut { batch, context });
                continue;
            }
            say(format!("decoding at batch {batch} after {context} tokens"));
            let sizes = (batch, context, args.decode_steps, budget);
            let mut measure = || measure_decoding(engine, config, &machine, &cost, sizes, stop);
            let one = measure()?;
            let step_s = Some(one.step_s).filter(|s| s.is_finite());
            d.decode.push(one);
            let title = format!("decode, batch {batch}, prompts of {context} tokens");
            self.profile(d, title, step_s, Some(batch), || measure().map(drop))?;
        }
        let length = args.prefill_length.clamp(1, config.max_positions.saturating_sub(1).max(1));
        for &batch in &self.prefills {
            say(format!("computing {batch} prompts of {length} tokens"));
            let mut measure = |batch| measure_prefill(engine, config, &machine, &cost, (batch, length), stop);
            // Warm-up of the shapes of a full step and of the last, smaller one.
            measure(batch.min((2 * budget).div_ceil(length)))?;
            d.prefill.push(measure(batch)?);
            let title = format!("prefill, {batch} prompts of {length} tokens");
            self.profile(d, title, None, None, || measure(batch).map(drop))?;
        }
        let sampling = Sampling { temperature: args.temperature, top_p: args.top_p, ..Sampling::GREEDY };
        let mut run = |d: &mut Document, workload: &SharedWorkload| -> Result<SharedResult, Failure> {
            let SharedWorkload { prompts, shared, own, new_tokens, .. } = workload;
            let each = if workload.ragged { "on average" } else { "each" };
            let title = format!("{prompts} prompts of {shared} + {own} tokens, {new_tokens} new ones {each}");
            say(format!("running {title}"));
            let mut measure = || measure_shared(engine, config, &machine, &cost, (workload, largest_batch), stop);
            let result = measure()?;
            self.profile(d, title, None, None, || measure().map(drop))?;
            Ok(result)
        };
        if let Some([prompts, shared, own, new_tokens]) = self.shared {
            let sampling = sampling.clone();
            d.shared = Some(run(d, &SharedWorkload { prompts, shared, own, new_tokens, ragged: false, sampling })?);
            self.save(d)?;
        }
        if let Some([prompts, shared, own, new_tokens]) = self.ragged {
            let sampling = sampling.clone();
            d.ragged = Some(run(d, &SharedWorkload { prompts, shared, own, new_tokens, ragged: true, sampling })?);
            self.save(d)?;
        }
        if let Some([prompts, tokens, new_tokens]) = self.short {
            let shared = tokens / 3;
            let workload =
                SharedWorkload { prompts, shared, own: tokens - shared, new_tokens, ragged: false, sampling };
            d.short = Some(run(d, &workload)?);
            self.save(d)?;
        }
        Ok(())
    }

    /// Repeats a measurement with a profile of the steps that computed so many tokens, or of all, and saves the document.
    fn profile(
        &self,
        d: &mut Document,
        phase: String,
        step_s: Option<f64>,
        tokens: Option<usize>,
        measure: impl FnOnce() -> Result<(), BenchError>,
    ) -> Result<(), Failure> {
        if let Some(profiler) = &self.profiler {
            profiler.start();
            let measured = measure();
            let profile = profiler.stop(tokens);
            measured?;
            d.profile.push(Phase { phase, step_s, profile });
        }
        self.save(d)
    }

    /// Writes the document so far to the file of --save.
    fn save(&self, d: &Document) -> Result<(), Failure> {
        let Some(path) = &self.args.save else { return Ok(()) };
        let failed = |error: String| Failure::new(Exit::Output, format!("cannot write {}: {error}", path.display()));
        let text = serde_json::to_string_pretty(d).map_err(|error| failed(error.to_string()))?;
        // Under another name first: a process that is killed leaves the file of the measurement before.
        let partial = path.with_extension("partial");
        let written = std::fs::write(&partial, text + "\n").and_then(|()| std::fs::rename(&partial, path));
        written.map_err(|error| failed(error.to_string()))
    }
}

/// Parses a list of batch sizes; an empty text is an empty list.
fn sizes(option: &str, text: &str) -> Result<Vec<usize>, Failure> {
    let parts = text.split(',').map(str::trim).filter(|part| !part.is_empty());
    parts
        .map(|part| part.parse::<usize>().ok().filter(|n| *n > 0))
        .collect::<Option<Vec<usize>>>()
        .ok_or_else(|| Failure::usage(format!("{option} {text}: sizes must be whole numbers above 0")))
}

/// Checks for exactly N numbers above 0, or none.
fn numbers<const N: usize>(option: &str, list: &[usize]) -> Result<Option<[usize; N]>, Failure> {
    if list.is_empty() {
        return Ok(None);
    }
    match <[usize; N]>::try_from(list) {
        Ok(numbers) if !numbers.contains(&0) => Ok(Some(numbers)),
        _ => Err(Failure::usage(format!("{option} takes {N} whole numbers above 0, with commas between"))),
    }
}

fn screen(d: &Document) -> String {
    let mut text = String::new();
    let out = &mut text;
    let write = |out: &mut String| -> std::fmt::Result {
        writeln!(out, "model      {}", d.model)?;
        writeln!(out, "engine     {}", d.engine.devices.join(", "))?;
        writeln!(out, "loading    {:.1} s", d.load_s)?;
        let by = match &d.peaks {
            Some(p) => format!(
                " (measured: a copy of {} MiB, {} with {} rows in {})",
                p.copy_bytes >> 20,
                p.product_by,
                p.product_rows,
                p.product_type
            ),
            None => String::new(),
        };
        let (bandwidth, arithmetic) = (d.machine.bandwidth / 1e12, d.machine.arithmetic / 1e12);
        writeln!(out, "roofline   {bandwidth:.4} TB/s, {arithmetic:.4} TFLOP/s{by}")?;
        if let Some(peaks) = d.peaks.as_ref().filter(|_| !d.profile.is_empty()) {
            writeln!(
                out,
                "profiles   noting the time takes {:.1} us, in the time of every launch",
                1e6 * peaks.note_s
            )?;
        }
        for r in &d.decode {
            writeln!(
                out,
                "decode     batch {:4} after {:5} tokens: {:8.3} ms per step, {:8.0} tokens/s, {:.0} % of the roofline",
                r.batch,
                r.context,
                1e3 * r.step_s,
                r.tokens_per_s,
                100.0 * r.fraction
            )?;
        }
        for LeftOut { batch, context } in &d.left_out {
            writeln!(
                out,
                "left out   batch {batch} after {context} tokens: keys and values do not fit; see --kv-memory"
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
        for r in d.shared.iter().chain(&d.ragged).chain(&d.short) {
            writeln!(
                out,
                "workload   {} prompts of {} + {} tokens, {} new: {:.2} s, {} steps, {:.0} % of the roofline",
                r.prompts,
                r.shared,
                r.own,
                r.new_tokens,
                r.seconds,
                r.steps,
                100.0 * r.fraction
            )?;
        }
        Ok(())
    };
    write(out).expect("writing to a String cannot fail");
    text
}
