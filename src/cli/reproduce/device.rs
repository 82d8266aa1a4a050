//! How fast a model runs on this machine, for the hours of a plan.
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use clap::Args;

use crate::cli::Exit;
use crate::cli::args::EngineArgs;
use crate::cli::error::CliError;
use crate::cli::interrupt::stop_on_signal;
use crate::cli::models::{ComputeArg, WeightArgs};
use crate::cli::printer::Printer;
use crate::cli::values::counted;
use earnest_engine::bench::{
    Asked, BenchError, Load, LoadMeasurement, Space, TokenCost, Worked, measure_load, work_through,
};
use earnest_engine::{Card, Engine};
use earnest_eval::model::{self, DeviceChoice, LoadedEngine};
use earnest_eval::prompt::Prompter;
use earnest_models::checkpoint::{Checkpoint, DecoderConfig, WeightFormat};
use earnest_papers::gsm_symbolic::Assumptions;
use earnest_papers::nupa::Rate;
use earnest_tasks::suite::Suite;

/// Times that word problems are measured after one that is not counted: the first one of an engine pays for memory and for choosing
/// kernels.
const REPETITIONS: usize = 2;

/// Questions that are asked before those that count, and from whose time the number of these follows.
const FEW: usize = 8;

/// Seconds that a plan's questions may take, about.
const SECONDS: f64 = 10.0;

/// New tokens of each sequence while all decode.
const DECODED: usize = 16;

/// Word problems behind eight worked ones.
const FEW_SHOT: Load = Load { batch: 32, prompt_tokens: 1000, shared: 0.9, new_tokens: 32 };

/// Tokens of a step where an engine does not say: the fewest that any of ours computes.
const TOKEN_BUDGET: u64 = 512;

/// Sequences that an engine on a CPU runs at once.
const ON_CPU: usize = earnest_eval::model::DEFAULT_BATCH;

#[derive(Debug, Clone, Args)]
pub struct MeasureArgs {
    /// Hours at the rate that the model (--model, or EARNEST_MODEL) has on this machine, which loads and measures it
    #[arg(long, requires = "plan", conflicts_with = "runs")]
    pub measure: bool,

    /// With --measure: the arithmetic, f32 or int8, as `earnest run --compute` takes it [default: f32]
    #[arg(long, value_name = "TYPE", value_enum, requires = "measure", hide_possible_values = true)]
    pub compute: Option<ComputeArg>,
}

impl MeasureArgs {
    /// How weights are held and computed with.
    pub(super) fn weights(&self) -> WeightFormat {
        WeightArgs { compute: self.compute, ..WeightArgs::default() }.into()
    }

    /// The model of the plan: the one that is named, or that of the environment where one is needed.
    ///
    /// # Errors
    /// One is needed and there is none.
    pub(super) fn model(&self, named: Option<&PathBuf>, needed: bool) -> Result<Option<PathBuf>, CliError> {
        let usual = || std::env::var_os("EARNEST_MODEL").filter(|name| !name.is_empty()).map(PathBuf::from);
        match named.cloned().or_else(|| if needed { usual() } else { None }) {
            None if needed => {
                let what = if self.measure { "--measure needs a model" } else { "--rate and --prompt need a model" };
                Err(CliError::usage(what).help("name it: --model MODEL, or the environment variable EARNEST_MODEL"))
            }
            found => Ok(found),
        }
    }

    /// What a command needs so that it runs as was measured: options behind those that it has.
    pub(super) fn options(&self, engine: &EngineArgs) -> String {
        let mut options = String::new();
        if self.compute == Some(ComputeArg::Int8) {
            options.push_str(" --compute int8");
        }
        match engine.device {
            None | Some(DeviceChoice::Auto) => {}
            Some(DeviceChoice::Cpu) => options.push_str(" --device cpu"),
            Some(DeviceChoice::Cuda(index)) => options.push_str(&format!(" --device cuda:{index}")),
        }
        if let Some(threads) = engine.threads {
            options.push_str(&format!(" --threads {threads}"));
        }
        options
    }
}

/// A path as a shell takes it.
pub(super) fn shell_word(path: &std::path::Path) -> String {
    let text = path.display().to_string();
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./@:+,=".contains(c);
    if text.chars().all(plain) { text } else { format!("'{}'", text.replace('\'', r"'\''")) }
}

/// Where the rate is measured, for commands that run nothing else.
#[derive(Debug, Clone, Args)]
pub struct MeasureOnArgs {
    /// With --measure: where the native engine computes, auto, cpu, cuda or cuda:N [default: EARNEST_DEVICE, or auto]
    #[arg(long, value_name = "DEVICE", value_parser = str::parse::<DeviceChoice>, requires = "measure")]
    pub device: Option<DeviceChoice>,

    /// With --measure: CPU threads [default: all cores]
    #[arg(long, value_name = "N", requires = "measure", value_parser = crate::cli::args::threads)]
    pub threads: Option<usize>,
}

impl MeasureOnArgs {
    /// The engine's options.
    ///
    /// # Errors
    /// EARNEST_DEVICE names no device.
    pub(super) fn engine(&self) -> Result<EngineArgs, CliError> {
        let usual = || {
            let name = std::env::var("EARNEST_DEVICE").ok().filter(|name| !name.is_empty())?;
            Some(name.parse::<DeviceChoice>().map_err(|why| CliError::usage(format!("EARNEST_DEVICE {name}: {why}"))))
        };
        let device = self.device.map(Ok).or_else(usual).transpose()?;
        Ok(EngineArgs { device, threads: self.threads, ..EngineArgs::default() })
    }
}

/// Loads a model and asks it the first questions of a plan, answered in as many tokens as the right answers have, and lets it decode
/// alone. That takes some seconds for a small model and as many minutes for one of some billions of weights.
pub(super) fn measured_rate(
    checkpoint: &Checkpoint,
    args: &EngineArgs,
    prompter: &Prompter<'_>,
    suite: &dyn Suite,
    printer: Printer,
) -> Result<Rate, CliError> {
    let mut at = Measured::load(checkpoint, args, printer)?;
    let most = 2 * at.card.in_flight.max(FEW);
    let mut asked = Vec::new();
    for item in suite.items().take(most) {
        let ids = prompter.render(&item.segments)?.ids;
        let answer = checkpoint.tokenizer.encode(&item.gold, false).map_or(0, |ids| ids.len());
        let room = checkpoint.config.max_positions.saturating_sub(ids.len());
        if room > 0 {
            asked.push(Asked { ids, new_tokens: (answer + 1).min(room) });
        }
    }
    if asked.is_empty() {
        return Err(failed("no question fits the model's context".to_owned()));
    }
    let few = at.ask(&asked[..FEW.min(asked.len())])?;
    let fitting = (FEW as f64 * SECONDS / few.seconds.max(1e-3)) as usize;
    asked.truncate(fitting.clamp(FEW, most));
    let whole = at.ask(&asked)?;
    let decoding = at.decoding((whole.prompt_tokens / asked.len()).max(1), asked.len())?;
    // What decoding alone does not explain of the questions' seconds is their prompts'.
    let new_s = whole.new_tokens as f64 / decoding.decode_tokens_per_s;
    let prompt_s = (whole.seconds - new_s).max(0.1 * whole.seconds);
    let new_s = whole.seconds - prompt_s;
    Ok(Rate {
        prompt_tokens_per_second: whole.prompt_tokens as f64 / prompt_s,
        new_tokens_per_second: (whole.new_tokens as f64 / new_s).max(f64::MIN_POSITIVE),
        source: format!(
            "measured on {}: the first {} questions, answered in as many tokens as the right answers have",
            at.described,
            asked.len()
        ),
    })
}

/// Loads a model and measures how fast it reads prompts of the study's shape and answers them.
pub(super) fn measured_assumptions(
    checkpoint: &Checkpoint,
    args: &EngineArgs,
    printer: Printer,
) -> Result<Assumptions, CliError> {
    let mut at = Measured::load(checkpoint, args, printer)?;
    // An engine that runs more at once than one on a CPU is asked as much more.
    let batch = FEW_SHOT.batch * (at.card.in_flight / ON_CPU).max(1);
    let load = Load { batch, ..FEW_SHOT };
    at.best(load, 1)?;
    let m = at.best(load, REPETITIONS)?;
    let parameters = checkpoint.config.parameter_count() as f64;
    let batch = m.load.batch as f64;
    let step_s = m.decode_s * batch / m.decoded_tokens.max(1) as f64;
    let device = format!(
        "{} with {}: {} prompts of {} tokens, {:.0} % of them shared, and {} new tokens each",
        at.described,
        checkpoint.source.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned()),
        m.load.batch,
        m.load.prompt_tokens,
        100.0 * m.load.shared,
        m.load.new_tokens
    );
    Ok(Assumptions::measured(device, parameters, m.prefilled_tokens as f64, m.prefill_s, batch, step_s))
}

/// Weights that a token goes through: of a mixture not all.
pub(super) fn parameters_in_use(config: &DecoderConfig) -> f64 {
    let cost = TokenCost::of(config);
    (cost.layers + cost.head) / 2.0
}

fn interrupted() -> CliError {
    CliError::new(Exit::Interrupted, "interrupted: the rate was not measured")
        .help("without --measure the plan counts tokens only")
}

fn stopped_or_failed(error: BenchError) -> CliError {
    match error {
        BenchError::Stopped => interrupted(),
        error => failed(error.to_string()),
    }
}

fn failed(what: String) -> CliError {
    CliError::new(Exit::Engine, format!("the rate cannot be measured: {what}"))
}

/// An engine that is measured.
struct Measured {
    engine: Box<dyn Engine>,
    card: Card,
    space: Space,
    context: usize,
    /// In words.
    described: String,
    printer: Printer,
    stop: Arc<AtomicBool>,
}

impl Measured {
    fn load(checkpoint: &Checkpoint, args: &EngineArgs, printer: Printer) -> Result<Self, CliError> {
        printer.message("loading the model to measure its rate on this machine");
        let LoadedEngine { engine, options, notes, .. } = model::load(checkpoint, &args.settings()?)?;
        notes.iter().for_each(|note| printer.warning(note));
        let budget = options.get("token_budget").and_then(serde_json::Value::as_u64).unwrap_or(TOKEN_BUDGET);
        let card = engine.card();
        Ok(Measured {
            described: format!("this machine's {} (weights {})", card.devices.join(", "), card.weights_dtype),
            card,
            engine,
            space: Space { vocab: checkpoint.config.vocab_size, token_budget: budget as usize },
            context: checkpoint.config.max_positions,
            printer,
            stop: stop_on_signal()?,
        })
    }

    /// Asks questions, and says so.
    fn ask(&mut self, asked: &[Asked]) -> Result<Worked, CliError> {
        self.printer.message(&format!("measuring: {}", counted(asked.len(), "question")));
        work_through(self.engine.as_mut(), asked, &self.stop).map_err(stopped_or_failed)
    }

    /// Decoding alone after prompts of this length, of as many sequences as may run at once and as fit the cache, at most `most`.
    fn decoding(&mut self, prompt_tokens: usize, most: usize) -> Result<LoadMeasurement, CliError> {
        let load = |batch| Load { batch, prompt_tokens, shared: 0.0, new_tokens: DECODED };
        let mut batch = self.card.in_flight.min(most).max(1);
        // A block may hold a few tokens of a sequence only: half of the cache leaves room for that.
        while batch > 1 && batch * load(batch).longest(self.space.token_budget) > self.card.kv_tokens / 2 {
            batch /= 2;
        }
        self.best(load(batch), 1)
    }

    /// The fastest of some repetitions of a load.
    fn best(&mut self, load: Load, repetitions: usize) -> Result<LoadMeasurement, CliError> {
        let batch = load.batch.min(self.card.in_flight).max(1);
        let load = Load { batch, ..load }.within(self.context, self.space.token_budget);
        let mut best: Option<LoadMeasurement> = None;
        self.printer.message(&format!("measuring: {} at once", counted(batch, "sequence")));
        for _ in 0..repetitions {
            let one = measure_load(self.engine.as_mut(), self.space, load, &self.stop).map_err(stopped_or_failed)?;
            let one = Some(one.ok_or_else(interrupted)?);
            let seconds = |one: &LoadMeasurement| one.prefill_s + one.decode_s;
            best = match (best, one) {
                (Some(best), Some(one)) if seconds(&best) <= seconds(&one) => Some(best),
                (best, one) => one.or(best),
            };
        }
        best.ok_or_else(|| failed("nothing was measured".to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_get_what_was_measured() {
        let args = MeasureArgs { measure: true, compute: Some(ComputeArg::Int8) };
        let engine = EngineArgs { device: Some(DeviceChoice::Cuda(1)), threads: Some(2), ..EngineArgs::default() };
        assert_eq!(args.options(&engine), " --compute int8 --device cuda:1 --threads 2");
        let args = MeasureArgs { measure: true, compute: Some(ComputeArg::F32) };
        assert_eq!(args.options(&EngineArgs::default()), "");
        assert_eq!(shell_word(std::path::Path::new("models/a b's.gguf")), r"'models/a b'\''s.gguf'");
        assert_eq!(shell_word(std::path::Path::new("org/repo@0123.gguf")), "org/repo@0123.gguf");
    }
}
