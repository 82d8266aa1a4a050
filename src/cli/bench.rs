//! `earnest bench`: measurements of the engine.
use std::fmt::Write;

use serde::Serialize;

use super::args::{BenchArgs, BenchCommand, BenchEngineArgs, WorkloadArg};
use super::error::CliError;
use super::printer::Printer;
use super::values::human_bytes;
use super::{Exit, model};
use crate::bench::{BenchError, Measurement, Workload, WorkloadKind, measure, peak_memory};
use crate::engine::{Card, Engine};
use crate::run::Host;

/// Everything that a reader needs to judge the numbers.
#[derive(Debug, Serialize)]
struct Document {
    earnest: &'static str,
    host: Host,
    model: String,
    engine: Card,
    load_s: f64,
    /// Most memory held while loading, in bytes.
    load_peak_memory: Option<u64>,
    measurements: Vec<Measurement>,
}

/// Runs a benchmark.
pub fn execute(args: &BenchArgs, quiet: bool, printer: Printer) -> Result<Exit, CliError> {
    match &args.what {
        BenchCommand::Engine(args) => engine(args, quiet, printer),
    }
}

fn engine(args: &BenchEngineArgs, quiet: bool, printer: Printer) -> Result<Exit, CliError> {
    let say = |text: String| {
        if !quiet {
            printer.message(&text);
        }
    };
    let checkpoint = model::open(&args.model)?;
    let workloads = workloads(args, &checkpoint)?;
    if let Some(path) = &args.dump {
        let failed = |error: String| CliError::new(Exit::Results, format!("cannot write {}: {error}", path.display()));
        let text = serde_json::to_string(&workloads).map_err(|error| failed(error.to_string()))?;
        std::fs::write(path, text).map_err(|error| failed(error.to_string()))?;
        say(format!("prompts written to {}", path.display()));
    }
    say(format!("loading {}", args.model.display()));
    let start = std::time::Instant::now();
    let mut native = model::load(&checkpoint, model::engine_options(&args.engine))?;
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
        measurements.push(measure(&mut native, workload, args.repeat as usize).map_err(failure)?);
    }
    let document = Document {
        earnest: env!("CARGO_PKG_VERSION"),
        host: Host::probe(),
        model: args.model.display().to_string(),
        engine: native.card(),
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

fn failure(error: BenchError) -> CliError {
    match error {
        BenchError::Rejected { .. } => CliError::new(Exit::Usage, error.to_string())
            .help("ask for fewer new tokens, or use a model with a larger context"),
        BenchError::Failed(..) | BenchError::Engine(_) => CliError::new(Exit::Engine, error.to_string()),
    }
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
