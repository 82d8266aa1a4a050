//! `earnest bench engine`: throughput on prompts like an evaluation's.
use std::fmt::Write;
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use serde::Serialize;

use crate::bench::{
    Load, LoadMeasurement, Measurement, Roofline, Space, TokenCost, Workload, WorkloadKind, measure, measure_load,
    peak_memory,
};
use crate::checkpoint::DecoderConfig;
use crate::cli::args::EngineArgs;
use crate::cli::device::Device;
use crate::cli::error::CliError;
use crate::cli::models::{HubArgs, WeightArgs};
use crate::cli::printer::Printer;
use crate::cli::values::human_bytes;
use crate::cli::{Exit, model};
use crate::engine::native::{Native, Peaks};
use crate::engine::{Card, Engine};
use crate::report::{Align, Table};
use crate::run::Host;

#[derive(Debug, Args)]
#[command(after_help = "Workloads:
  few-shot   64 word problems after eight worked examples (950 tokens, nearly all shared), 64 new
  zero-shot  128 questions on numbers with a line of instructions (55 tokens), 24 new
End-of-sequence tokens are ignored, so that every engine does the same work; loading is not counted; the prefix cache \
is empty at the start of each repetition.

--sweep measures prefilling and decoding apart on prompts of random tokens, changing one of batch, length and shared share at a time, and holds both against the device's roofline: the least time that its peaks of arithmetic and memory, measured first, allow for the same work.

Examples:
  earnest bench engine --model model.gguf
  earnest bench engine --model model.gguf --workload zero-shot --prompts 32 --repeat 5 --json
  earnest bench engine --model model.gguf --sweep --batch 1,64 --prompt-tokens 64,1024
  earnest bench engine --model model.gguf --dump prompts.json  # for transformers_bench.py")]
pub struct BenchEngineArgs {
    /// The model: a name of `earnest models list`, org/repo@<40-digit commit>, a Hugging Face folder or a GGUF file
    #[arg(long, value_name = "MODEL", env = "EARNEST_MODEL", hide_env_values = true, default_value = crate::cli::built_in::NAME)]
    pub model: PathBuf,

    #[command(flatten)]
    pub weights: WeightArgs,

    #[command(flatten)]
    pub hub: HubArgs,

    /// Only this workload [default: both]
    #[arg(long, value_name = "NAME", value_enum)]
    pub workload: Option<WorkloadArg>,

    /// Number of prompts [default: the workload's]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub prompts: Option<u32>,

    /// Tokens to generate for each prompt [default: the workload's]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub new_tokens: Option<u32>,

    /// Repetitions of each workload, of which the median counts; with --sweep of each load, of which the fastest counts
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub repeat: u32,

    /// Throughput against batch, prompt length and shared beginnings instead, beside the device's roofline
    #[arg(long, conflicts_with_all = ["workload", "prompts", "dump"])]
    pub sweep: bool,

    /// Batches of the sweep; the first is kept while the others change
    #[arg(long, value_name = "SIZES", value_delimiter = ',', default_values = ["16", "1", "64"], requires = "sweep",
        value_parser = clap::value_parser!(u32).range(1..=65_536))]
    pub batch: Vec<u32>,

    /// Tokens of a prompt in the sweep; likewise
    #[arg(long, value_name = "LENGTHS", value_delimiter = ',', default_values = ["128", "32", "512"], requires = "sweep",
        value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub prompt_tokens: Vec<u32>,

    /// Share of a prompt, from its beginning, that all have in common in the sweep; likewise
    #[arg(long, value_name = "SHARES", value_delimiter = ',', default_values = ["0", "0.5", "0.9"], requires = "sweep",
        value_parser = share)]
    pub shared: Vec<f64>,

    /// Write the prompts (text and token ids) to this file, for measuring other engines on them
    #[arg(long, value_name = "FILE")]
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

/// Everything that a reader needs to judge the numbers.
#[derive(Debug, Serialize)]
struct Document {
    earnest: &'static str,
    host: Host,
    model: String,
    engine: Card,
    /// The engine's settings.
    options: serde_json::Value,
    load_s: f64,
    /// Most memory held while loading, in bytes.
    load_peak_memory: Option<u64>,
    measurements: Vec<Measurement>,
    /// What the device can do at best; with --sweep.
    #[serde(skip_serializing_if = "Option::is_none")]
    peaks: Option<Peaks>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    sweep: Vec<LoadMeasurement>,
}

fn share(text: &str) -> Result<f64, String> {
    let value: f64 = text.parse().map_err(|_| format!("{text} is no number"))?;
    if (0.0..=1.0).contains(&value) { Ok(value) } else { Err(format!("{text} is not between 0 and 1")) }
}

/// Tokens that the sweep generates where nothing else is said.
const SWEEP_TOKENS: usize = 16;

/// What is measured: the first of each list together, then each other value in its place.
fn loads(args: &BenchEngineArgs) -> Vec<Load> {
    let new_tokens = args.new_tokens.map_or(SWEEP_TOKENS, |n| (n as usize).max(2));
    let (Some(&batch), Some(&length), Some(&shared)) =
        (args.batch.first(), args.prompt_tokens.first(), args.shared.first())
    else {
        return Vec::new();
    };
    let base = Load { batch: batch as usize, prompt_tokens: length as usize, shared, new_tokens };
    let batches = args.batch[1..].iter().map(|&batch| Load { batch: batch as usize, ..base });
    let lengths = args.prompt_tokens[1..].iter().map(|&length| Load { prompt_tokens: length as usize, ..base });
    let shares = args.shared[1..].iter().map(|&shared| Load { shared, ..base });
    std::iter::once(base).chain(batches).chain(lengths).chain(shares).collect()
}

/// Of `repeat` measurements the one with the fastest decoding and prefilling together.
fn sweep(
    args: &BenchEngineArgs,
    native: &mut Native,
    config: &DecoderConfig,
    peaks: &Peaks,
    say: &dyn Fn(String),
) -> Result<Vec<LoadMeasurement>, CliError> {
    let roofline = Roofline { cost: TokenCost::of(config), peaks };
    let space = Space { vocab: config.vocab_size, token_budget: native.token_budget() };
    let mut measured = Vec::new();
    let mut shortest = usize::MAX;
    for load in loads(args) {
        let longest = load.longest(space.token_budget);
        shortest = shortest.min(longest);
        if longest > config.max_positions {
            say(format!("{longest} tokens exceed the context of {}: left out", config.max_positions));
            continue;
        }
        let mut best: Option<LoadMeasurement> = None;
        for _ in 0..args.repeat {
            let one = measure_load(native, space, load, Some(roofline)).map_err(super::failure)?;
            if best.as_ref().is_none_or(|best| one.prefill_s + one.decode_s < best.prefill_s + best.decode_s) {
                best = Some(one);
            }
        }
        measured.extend(best);
    }
    if measured.is_empty() {
        let problem =
            format!("nothing to measure: at least {shortest} tokens exceed the context of {}", config.max_positions);
        return Err(
            CliError::usage(problem).help("choose shorter --prompt-tokens, fewer --new-tokens or a smaller --batch")
        );
    }
    Ok(measured)
}

fn percent(share: Option<f64>) -> String {
    share.map_or_else(String::new, |share| format!("{:.0} %", 100.0 * share))
}

fn sweep_screen(out: &mut String, peaks: &Peaks, sweep: &[LoadMeasurement]) -> std::fmt::Result {
    let right = |name: &str| (name.to_owned(), Align::Right);
    writeln!(
        out,
        "roofline   {:.0} G operations/s in products, {:.0} in f32, {:.1} GB/s from {}",
        peaks.products_per_s / 1e9,
        peaks.f32_per_s / 1e9,
        peaks.bytes_per_s / 1e9,
        human_bytes(peaks.buffer_bytes)
    )?;
    writeln!(out)?;
    let mut table = Table::new([
        right("batch"),
        right("prompt"),
        right("shared"),
        right("prefill tokens/s"),
        right("of roofline"),
        right("with shared"),
        right("decode tokens/s"),
        right("of roofline"),
    ]);
    for m in sweep {
        table.row(vec![
            m.load.batch.to_string(),
            m.load.prompt_tokens.to_string(),
            format!("{:.0} %", 100.0 * m.load.shared),
            format!("{:.0}", m.prefill_tokens_per_s),
            percent(m.prefill_of_roofline),
            format!("{:.0}", m.prompt_tokens_per_s),
            format!("{:.0}", m.decode_tokens_per_s),
            percent(m.decode_of_roofline),
        ]);
    }
    out.push_str(&table.render());
    writeln!(
        out,
        "\nwith shared: prompt tokens a second, those from the prefix cache included; of roofline: the least"
    )?;
    writeln!(out, "time that the peaks of arithmetic and memory allow for the same work, as a share of the time taken")
}

/// Measures and shows.
pub fn execute(args: &BenchEngineArgs, quiet: bool, printer: Printer) -> Result<Exit, CliError> {
    let say = |text: String| {
        if !quiet {
            printer.message(&text);
        }
    };
    let chosen = model::choose(&args.model, &args.hub, args.weights.into())?;
    let checkpoint = model::open(&chosen)?;
    let workloads = if args.sweep { Vec::new() } else { workloads(args, &checkpoint)? };
    if let Some(path) = &args.dump {
        let failed = |error: String| CliError::new(Exit::Results, format!("cannot write {}: {error}", path.display()));
        let text = serde_json::to_string(&workloads).map_err(|error| failed(error.to_string()))?;
        std::fs::write(path, text).map_err(|error| failed(error.to_string()))?;
        say(format!("prompts written to {}", path.display()));
    }
    say(format!("loading {}", args.model.display()));
    let start = std::time::Instant::now();
    let on_cpu = || -> Result<_, CliError> {
        if Device::of(&args.engine)?.0 != Device::Cpu {
            return Err(CliError::usage("--sweep measures the engine on a CPU")
                .help("`earnest bench device` measures a GPU; --device cpu sweeps here"));
        }
        let largest = args.batch.iter().copied().max().unwrap_or(1) as usize;
        model::load_cpu(&checkpoint, model::engine_options(&super::holding(&args.engine, largest)?))
    };
    let (peaks, swept, measurements, card, options, load_s, load_peak_memory);
    if args.sweep {
        let (mut native, described) = on_cpu()?;
        (load_s, load_peak_memory) = (start.elapsed().as_secs_f64(), peak_memory());
        say("measuring the device".to_owned());
        let found = native.peaks();
        swept = sweep(args, &mut native, &checkpoint.config, &found, &say)?;
        (peaks, measurements, card, options) = (Some(found), vec![], native.card(), described);
    } else {
        let model::Loaded { mut engine, options: described, notes } = model::load(&checkpoint, &args.engine)?;
        notes.iter().for_each(|note| printer.warning(note));
        (load_s, load_peak_memory) = (start.elapsed().as_secs_f64(), peak_memory());
        let mut found = vec![];
        for workload in &workloads {
            say(format!(
                "measuring {}: {} prompts, {} new tokens each, {} repetitions",
                name(workload.kind),
                workload.ids.len(),
                workload.new_tokens,
                args.repeat
            ));
            found.push(measure(engine.as_mut(), workload, args.repeat as usize).map_err(super::failure)?);
        }
        (peaks, swept, measurements, card, options) = (None, vec![], found, engine.card(), described);
    }
    let document = Document {
        peaks,
        sweep: swept,
        earnest: env!("CARGO_PKG_VERSION"),
        host: Host::probe(),
        model: args.model.display().to_string(),
        engine: card,
        options,
        load_s,
        load_peak_memory,
        measurements,
    };
    if args.json {
        printer.json(&document)?;
    } else {
        printer.result(&screen(&document))?;
    }
    Ok(Exit::Success)
}

fn workloads(args: &BenchEngineArgs, checkpoint: &crate::checkpoint::Checkpoint) -> Result<Vec<Workload>, CliError> {
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
                .map_err(|error| CliError::new(Exit::Model, format!("cannot make the prompts: {error}")))
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
            writeln!(out, "\n{}: {} prompts, {} new tokens each", name(m.workload), m.prompts, m.new_tokens)?;
            writeln!(
                out,
                "  {:.2} samples/s (median of {}; {low:.2} to {high:.2} s a repetition)",
                m.samples_per_s,
                m.repetitions.len()
            )?;
            writeln!(
                out,
                "  prefill  {} of {} prompt tokens computed, {:.3} times the {} distinct ones",
                m.median().prefilled_tokens,
                m.prompt_tokens,
                m.prefill_ratio,
                m.distinct_prefix_tokens
            )?;
            let r = m.median();
            writeln!(
                out,
                "  steps    {}: {:.2} s with prompt tokens, {:.2} s of decoding only",
                r.steps, r.prefill_s, r.decode_s
            )?;
            writeln!(out, "  decode   {:.0} tokens/s over the whole repetition", r.decoded_tokens as f64 / r.seconds)?;
            writeln!(out, "  memory   {} at most so far", peak(m.peak_memory))?;
        }
        Ok(())
    };
    write(out).expect("writing to a String cannot fail");
    text
}
