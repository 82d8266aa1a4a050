//! `earnest bench engine`: throughput on prompts like an evaluation's.
use std::fmt::Write;
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use serde::Serialize;

use crate::bench::{Measurement, Workload, WorkloadKind, measure, peak_memory};
use crate::cli::args::EngineArgs;
use crate::cli::error::CliError;
use crate::cli::models::{HubArgs, WeightArgs};
use crate::cli::printer::Printer;
use crate::cli::values::human_bytes;
use crate::cli::{Exit, model};
use crate::engine::Card;
use crate::run::Host;

#[derive(Debug, Args)]
#[command(after_help = "Workloads:
  few-shot   64 word problems after eight worked examples (950 tokens, nearly all shared), 64 new
  zero-shot  128 questions on numbers with a line of instructions (55 tokens), 24 new
End-of-sequence tokens are ignored, so that every engine does the same work; loading is not counted; the prefix cache \
is empty at the start of each repetition.

Examples:
  earnest bench engine --model model.gguf
  earnest bench engine --model model.gguf --workload zero-shot --prompts 32 --repeat 5 --json
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

    /// Repetitions of each workload; the median counts
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub repeat: u32,

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
    let workloads = workloads(args, &checkpoint)?;
    if let Some(path) = &args.dump {
        let failed = |error: String| CliError::new(Exit::Results, format!("cannot write {}: {error}", path.display()));
        let text = serde_json::to_string(&workloads).map_err(|error| failed(error.to_string()))?;
        std::fs::write(path, text).map_err(|error| failed(error.to_string()))?;
        say(format!("prompts written to {}", path.display()));
    }
    say(format!("loading {}", args.model.display()));
    let start = std::time::Instant::now();
    let model::Loaded { engine: mut native, options, notes } = model::load(&checkpoint, &args.engine)?;
    notes.iter().for_each(|note| printer.warning(note));
    let load_s = start.elapsed().as_secs_f64();
    let load_peak_memory = peak_memory();
    let mut measurements = vec![];
    for workload in &workloads {
        say(format!(
            "measuring {}: {} prompts, {} new tokens each, {} repetitions",
            name(workload.kind),
            workload.ids.len(),
            workload.new_tokens,
            args.repeat
        ));
        measurements.push(measure(native.as_mut(), workload, args.repeat as usize).map_err(super::failure)?);
    }
    let document = Document {
        earnest: env!("CARGO_PKG_VERSION"),
        host: Host::probe(),
        model: args.model.display().to_string(),
        engine: native.card(),
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
