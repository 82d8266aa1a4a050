//! `earnest bench engine`: throughput on an evaluation's prompts.
mod sweep;

use crate::cli::output::{output_file, write_text};
use std::fmt::Write;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};

use clap::{Args, ValueEnum};
use serde::Serialize;

use self::sweep::{Swept, sweep, sweep_screen};
use super::BenchModel;
use crate::cli::Exit;
use crate::cli::args::EngineArgs;
use crate::cli::error::CliError;
use crate::cli::interrupt::stop_on_signal;
use crate::cli::printer::Printer;
use crate::cli::values::counted;
use earnest_engine::bench::{LoadMeasurement, Measurement, Workload, WorkloadKind, measure, peak_memory};
use earnest_engine::cpu::Peaks;
use earnest_engine::{Card, Engine};
use earnest_eval::model;
use earnest_eval::model::{Device, LoadedEngine};
use earnest_models::checkpoint::Checkpoint;
use earnest_models::memory::human_bytes;
use earnest_results::Host;

#[derive(Debug, Args)]
#[command(after_help = "Workloads:
  few-shot   64 word problems after eight worked examples, mostly shared, 64 new tokens
  zero-shot  128 questions on numbers after one line of instructions, 24 new tokens
  (prompts of 951 and 56 tokens with SmolLM2's tokenizer)
End-of-sequence tokens are ignored, so that every engine does the same work; loading is not counted; the prefix cache \
is empty at the start of each repetition. Ctrl-C prints the measurements so far.

--sweep measures prefill and decode separately on prompts of random tokens, varying one of batch, prompt length and shared prefix at a time, and compares both with the device's roofline: the least time for the same work at its peak arithmetic and memory bandwidth, measured before and after (the better counts).

Examples:
  earnest bench engine --model model.gguf
  earnest bench engine --model model.gguf --workload zero-shot --prompts 32 --repeat 5 --json
  earnest bench engine --model model.gguf --sweep --batch 1,64 --prompt-tokens 64,1024
  earnest bench engine --model model.gguf --dump prompts.json  # for transformers_bench.py")]
pub struct BenchEngineArgs {
    #[command(flatten)]
    pub model: BenchModel,

    /// Workload [default: both]
    #[arg(long, value_name = "NAME", value_enum)]
    pub workload: Option<WorkloadArg>,

    /// Number of prompts [default: the workload's]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub prompts: Option<u32>,

    /// New tokens per prompt [default: the workload's]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub new_tokens: Option<u32>,

    /// Repetitions per workload; the result is their median (with --sweep: of each load, the fastest)
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub repeat: u32,

    /// Measure throughput by batch, prompt length and shared prefix instead, beside the device's roofline
    #[arg(long, conflicts_with_all = ["workload", "prompts", "dump"])]
    pub sweep: bool,

    /// Batch sizes of the sweep; the first is the baseline for the other variables
    #[arg(long, value_name = "SIZES", value_delimiter = ',', default_values = ["16", "1", "64"], requires = "sweep",
        value_parser = clap::value_parser!(u32).range(1..=65_536))]
    pub batch: Vec<u32>,

    /// Prompt lengths of the sweep in tokens; the first is the baseline
    #[arg(long, value_name = "LENGTHS", value_delimiter = ',', default_values = ["128", "32", "512"], requires = "sweep",
        value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub prompt_tokens: Vec<u32>,

    /// Shared prefixes of the sweep as fractions of the prompt; the first is the baseline
    #[arg(long, value_name = "SHARES", value_delimiter = ',', default_values = ["0", "0.5", "0.9"], requires = "sweep",
        value_parser = share)]
    pub shared: Vec<f64>,

    /// File for the prompts (text and token ids), to measure other engines on them
    #[arg(long, value_name = "FILE", value_parser = output_file())]
    pub dump: Option<PathBuf>,

    #[command(flatten)]
    pub engine: EngineArgs,

    /// Print one JSON document
    #[arg(long)]
    pub json: bool,
}

/// `--workload`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum WorkloadArg {
    FewShot,
    ZeroShot,
}

/// The JSON document: measurements and their conditions.
#[derive(Debug, Serialize)]
struct Document {
    earnest: &'static str,
    host: Host,
    model: String,
    engine: Card,
    /// The engine's settings.
    options: serde_json::Value,
    load_s: f64,
    /// Peak memory during loading, in bytes.
    load_peak_memory: Option<u64>,
    /// Planned repetitions of each workload, or of each load of the sweep.
    planned_repetitions: u32,
    measurements: Vec<Measurement>,
    /// Peaks of the device; with --sweep.
    #[serde(skip_serializing_if = "Option::is_none")]
    peaks: Option<Peaks>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    sweep: Vec<LoadMeasurement>,
}

fn share(text: &str) -> Result<f64, String> {
    let value: f64 = text.parse().map_err(|_| format!("{text} is not a number"))?;
    if (0.0..=1.0).contains(&value) { Ok(value) } else { Err(format!("{text} is not between 0 and 1")) }
}

/// Measures and prints the results.
pub fn execute(args: &BenchEngineArgs, printer: Printer) -> Result<Exit, CliError> {
    let say = |text: String| {
        printer.message(&text);
    };
    let largest = args.batch.iter().copied().max().unwrap_or(1) as usize;
    let settings = args.engine.settings()?;
    let settings = if args.sweep { super::with_batch(settings, largest)? } else { settings };
    if args.sweep && Device::choose(&settings)?.0 != Device::Cpu {
        return Err(CliError::usage("--sweep measures the engine on a CPU")
            .help("for a GPU there is `earnest-dev device` (crates/dev); or add --device cpu"));
    }
    let checkpoint = args.model.open(printer)?;
    let workloads = if args.sweep { Vec::new() } else { workloads(args, &checkpoint)? };
    if let Some(path) = &args.dump {
        let failed = |error: String| CliError::new(Exit::Results, format!("cannot write {}: {error}", path.display()));
        let text = serde_json::to_string(&workloads).map_err(|error| failed(error.to_string()))?;
        write_text(path, &text)?;
        say(format!("prompts written to {}", path.display()));
    }
    workloads.iter().try_for_each(|workload| fits(workload, &checkpoint))?;
    say(format!("loading {}", args.model.path.display()));
    let start = std::time::Instant::now();
    let document =
        |engine: Card, options: serde_json::Value, (load_s, load_peak_memory): (f64, Option<u64>)| Document {
            earnest: env!("CARGO_PKG_VERSION"),
            host: Host::probe(),
            model: args.model.path.display().to_string(),
            engine,
            options,
            load_s,
            load_peak_memory,
            planned_repetitions: args.repeat,
            measurements: Vec::new(),
            peaks: None,
            sweep: Vec::new(),
        };
    let loaded = || (start.elapsed().as_secs_f64(), peak_memory());
    let (document, measured, planned, failed) = if args.sweep {
        let (mut native, options) = model::load_cpu(&checkpoint, settings.cpu_options())?;
        let mut document = document(native.card(), options, loaded());
        let stop = stop_on_signal()?;
        let Swept { peaks, loads, planned, failed } = sweep(args, &mut native, &checkpoint.config, &stop, &say)?;
        let measured = loads.len();
        (document.peaks, document.sweep) = (Some(peaks), loads);
        (document, measured, planned, failed)
    } else {
        let LoadedEngine { mut engine, options, notes, .. } = model::load(&checkpoint, &settings)?;
        notes.iter().for_each(|note| printer.warning(&note.to_string()));
        let mut document = document(engine.card(), options, loaded());
        let stop = stop_on_signal()?;
        let plan = Plan { workloads: &workloads, repetitions: args.repeat as usize, stop: &stop };
        let (found, failed) = plan.measure(engine.as_mut(), &say);
        let measured = found.iter().map(|one| one.repetitions.len()).sum();
        document.measurements = found;
        (document, measured, workloads.len() * args.repeat as usize, failed)
    };
    // Measurements before an interruption or an error are printed too.
    match measured {
        0 => {}
        _ if args.json => printer.json(&document)?,
        _ => printer.result(&screen(&document))?,
    }
    match failed {
        Some(error) => Err(error),
        None if measured < planned => {
            let what = if args.sweep { "loads" } else { "repetitions" };
            let message = format!("interrupted: {measured} of {planned} {what} were measured");
            Err(CliError::new(Exit::Interrupted, message).help("the same command measures all of them again"))
        }
        None => Ok(Exit::Success),
    }
}

/// Workloads to measure.
struct Plan<'a> {
    workloads: &'a [Workload],
    repetitions: usize,
    stop: &'a AtomicBool,
}

impl Plan<'_> {
    /// Measures the workloads; returns the measurements before a stop or an error, and the error.
    fn measure(&self, engine: &mut dyn Engine, say: &dyn Fn(String)) -> (Vec<Measurement>, Option<CliError>) {
        let mut found = Vec::new();
        for workload in self.workloads {
            say(format!(
                "measuring {}: {}, {} each, {}",
                name(workload.kind),
                counted(workload.ids.len(), "prompt"),
                counted(workload.new_tokens, "new token"),
                counted(self.repetitions, "repetition")
            ));
            let (measured, ended) = measure(engine, workload, self.repetitions, self.stop);
            found.extend(measured);
            if let Err(error) = ended {
                return (found, Some(super::failure(error)));
            }
            if self.stop.load(Ordering::Relaxed) {
                break;
            }
        }
        (found, None)
    }
}

/// Checks before loading that the prompts fit the context.
fn fits(workload: &Workload, checkpoint: &Checkpoint) -> Result<(), CliError> {
    let context = checkpoint.config.max_positions;
    let longest = workload.ids.iter().map(Vec::len).max().unwrap_or(0);
    if longest + workload.new_tokens <= context {
        return Ok(());
    }
    let problem = format!(
        "{}: {longest} prompt tokens and {} new tokens exceed the model's context of {context}",
        name(workload.kind),
        workload.new_tokens
    );
    let room = context.saturating_sub(longest);
    let fewer = if room > 0 { format!("use at most --new-tokens {room}, or ") } else { String::new() };
    let shorter = if workload.kind == WorkloadKind::FewShot { "choose --workload zero-shot, or " } else { "" };
    Err(CliError::usage(problem).help(format!("{fewer}{shorter}use a model with a larger context")))
}

fn workloads(args: &BenchEngineArgs, checkpoint: &Checkpoint) -> Result<Vec<Workload>, CliError> {
    let all = [
        (WorkloadKind::FewShot, WorkloadArg::FewShot, 64, 64),
        (WorkloadKind::ZeroShot, WorkloadArg::ZeroShot, 128, 24),
    ];
    all.into_iter()
        .filter(|(_, arg, _, _)| args.workload.is_none_or(|wanted| wanted == *arg))
        .map(|(kind, _, prompts, new_tokens)| {
            let prompts = args.prompts.map_or(prompts, |n| n as usize);
            let new_tokens = args.new_tokens.map_or(new_tokens, |n| n as usize);
            Workload::new(kind, prompts, new_tokens, &checkpoint.tokenizer)
                .map_err(|error| CliError::new(Exit::Model, format!("cannot encode the prompts: {error}")))
        })
        .collect()
}

fn name(kind: WorkloadKind) -> &'static str {
    match kind {
        WorkloadKind::FewShot => "few-shot",
        WorkloadKind::ZeroShot => "zero-shot",
    }
}

fn screen(d: &Document) -> String {
    let mut text = String::new();
    let out = &mut text;
    let peak = |bytes: Option<u64>| bytes.map_or("unknown".to_owned(), human_bytes);
    let write = |out: &mut String| -> std::fmt::Result {
        writeln!(out, "model      {}", d.model)?;
        writeln!(out, "engine     {}", d.engine.devices.join(", "))?;
        writeln!(out, "weights    {}, {}", d.engine.weights_dtype, human_bytes(d.engine.weight_bytes))?;
        writeln!(out, "loading    {:.2} s, peak memory {}", d.load_s, peak(d.load_peak_memory))?;
        if let Some(peaks) = &d.peaks {
            sweep_screen(out, peaks, &d.sweep)?;
        }
        for m in &d.measurements {
            let seconds: Vec<f64> = m.repetitions.iter().map(|r| r.seconds).collect();
            let (low, high) = seconds.iter().fold((f64::MAX, 0f64), |(l, h), s| (l.min(*s), h.max(*s)));
            let (prompts, tokens) = (counted(m.prompts, "prompt"), counted(m.new_tokens, "new token"));
            writeln!(out, "\n{}: {prompts}, {tokens} each", name(m.workload))?;
            let spread = match m.repetitions.len() {
                1 => format!("one repetition of {low:.3} s"),
                many => format!("median of {many}; {low:.3} to {high:.3} s per repetition"),
            };
            writeln!(out, "  {:.2} samples/s ({spread})", m.samples_per_s)?;
            writeln!(
                out,
                "  prefill  {} of {} prompt tokens computed, {:.3} times the {} distinct ones",
                m.median().prefilled_tokens,
                m.prompt_tokens,
                m.prefill_ratio,
                m.distinct_prefix_tokens
            )?;
            let r = m.median();
            let rate = |tokens: u64, seconds: f64| if seconds > 0.0 { tokens as f64 / seconds } else { 0.0 };
            writeln!(
                out,
                "           {:.0} tokens/s in the {:.3} s of steps with prompt tokens",
                rate(r.prefilled_tokens, r.prefill_s),
                r.prefill_s
            )?;
            writeln!(
                out,
                "  decode   {:.0} tokens/s in the {:.3} s of the other steps, {:.0} over the whole repetition",
                rate(r.decoded_alone, r.decode_s),
                r.decode_s,
                rate(r.decoded_tokens, r.seconds)
            )?;
            writeln!(out, "  memory   {} peak so far", peak(m.peak_memory))?;
        }
        Ok(())
    };
    write(out).expect("writing to a String cannot fail");
    text
}
