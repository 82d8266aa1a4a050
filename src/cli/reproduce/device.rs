//! Measured speed of a model on this machine, for the hours of a plan.
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use clap::Args;
use earnest_results::quoted;

use crate::cli::Exit;
use crate::cli::error::CliError;
use crate::cli::interrupt::stop_on_signal;
use crate::cli::models::ComputeArg;
use crate::cli::printer::Printer;
use crate::cli::values::counted;
use earnest_engine::bench::{
    Asked, BenchError, Load, LoadMeasurement, Space, TokenCost, Worked, measure_load, work_through,
};
use earnest_engine::{Card, Engine};
use earnest_eval::model;
use earnest_eval::model::{DeviceChoice, EngineSettings, LoadedEngine};
use earnest_eval::prompt::Prompter;
use earnest_models::checkpoint::{Checkpoint, DecoderConfig, WeightFormat};
use earnest_papers::gsm_symbolic::Assumptions;
use earnest_papers::nupa::Rate;
use earnest_tasks::suite::Items;

/// Measurements of word problems after a warm-up, in which the engine allocates memory and chooses kernels.
const REPETITIONS: usize = 2;

/// Questions asked first, whose time determines the number of measured ones.
const PILOT_QUESTIONS: usize = 8;

/// Approximate duration of the measured questions in seconds.
const TARGET_SECONDS: f64 = 10.0;

/// New tokens per sequence in the decode-only measurement.
const DECODED: usize = 16;

/// Word problems after eight worked examples.
const FEW_SHOT: Load = Load { batch: 32, prompt_tokens: 1000, shared: 0.9, new_tokens: 32 };

/// Token budget of a step for engines that do not report one: the smallest of all our engines.
const TOKEN_BUDGET: u64 = 512;

/// Sequences in flight of an engine on a CPU.
const CPU_BATCH: usize = earnest_eval::model::DEFAULT_BATCH;

#[derive(Debug, Clone, Args)]
pub struct MeasureArgs {
    /// Measure the model's rate on this machine (--model, or EARNEST_MODEL) for the plan's hours
    #[arg(long, requires = "plan", conflicts_with = "runs")]
    pub measure: bool,

    /// With --measure: arithmetic, f32, int8, a8, bf16 or fp8, as in `earnest run --compute` [default: f32]
    #[arg(long, value_name = "TYPE", value_enum, requires = "measure", hide_possible_values = true)]
    pub compute: Option<ComputeArg>,
}

impl MeasureArgs {
    /// Format and arithmetic of the weights.
    pub(super) fn weights(&self) -> WeightFormat {
        let compute = self.compute.and_then(ComputeArg::arithmetic);
        WeightFormat { compute, ..WeightFormat::default() }
    }

    /// The model of the plan: the named one, else EARNEST_MODEL if a model is needed.
    ///
    /// # Errors
    /// A model is needed and none is named.
    pub(super) fn model(&self, named: Option<&PathBuf>, needed: bool) -> Result<Option<PathBuf>, CliError> {
        let from_environment = || std::env::var_os("EARNEST_MODEL").filter(|name| !name.is_empty()).map(PathBuf::from);
        match named.cloned().or_else(|| if needed { from_environment() } else { None }) {
            None if needed => {
                let what = if self.measure { "--measure needs a model" } else { "--rate and --prompt need a model" };
                Err(CliError::usage(what).help("name it: --model MODEL, or the environment variable EARNEST_MODEL"))
            }
            found => Ok(found),
        }
    }
}

/// Options of `earnest run` for these weights, each after a space.
pub(super) fn weight_options(weights: &WeightFormat) -> String {
    let mut options = String::new();
    if let Some(compute) = weights.compute {
        options.push_str(&format!(" --compute {}", compute.name()));
    }
    if let Some(quant) = weights.quant {
        options.push_str(&format!(" --quant {}", quant.name()));
    }
    options
}

/// Options of `earnest run` for this device and number of threads, each after a space.
pub(super) fn engine_options(engine: &EngineSettings) -> String {
    let mut options = match engine.device {
        DeviceChoice::Auto => String::new(),
        DeviceChoice::Cpu => " --device cpu".to_owned(),
        DeviceChoice::Cuda(index) => format!(" --device cuda:{index}"),
    };
    if let Some(threads) = engine.threads {
        options.push_str(&format!(" --threads {threads}"));
    }
    options
}

/// A path quoted for a shell.
pub(super) fn shell_word(path: &std::path::Path) -> String {
    quoted(&path.display().to_string())
}

/// Device of the measurement, for commands without the engine's options.
#[derive(Debug, Clone, Args)]
pub struct MeasureOnArgs {
    /// With --measure: device of the native engine, auto, cpu, cuda or cuda:N [default: EARNEST_DEVICE, or auto]
    #[arg(long, value_name = "DEVICE", value_parser = str::parse::<DeviceChoice>, requires = "measure")]
    pub device: Option<DeviceChoice>,

    /// With --measure: number of CPU threads [default: all cores]
    #[arg(long, value_name = "N", requires = "measure", value_parser = crate::cli::args::threads)]
    pub threads: Option<usize>,
}

impl MeasureOnArgs {
    /// The engine's settings.
    ///
    /// # Errors
    /// EARNEST_DEVICE names no device.
    pub(super) fn engine(&self) -> Result<EngineSettings, CliError> {
        let from_environment = || {
            let name = std::env::var("EARNEST_DEVICE").ok().filter(|name| !name.is_empty())?;
            Some(name.parse::<DeviceChoice>().map_err(|why| CliError::usage(format!("EARNEST_DEVICE {name}: {why}"))))
        };
        let device = self.device.map(Ok).or_else(from_environment).transpose()?.unwrap_or_default();
        Ok(EngineSettings { device, threads: self.threads, ..EngineSettings::default() })
    }
}

/// Loads a model and measures its rate on the first questions of a plan, generating as many tokens as the right answers have, and
/// on decoding alone. Takes seconds for a small model and minutes for one with billions of parameters.
pub(in crate::cli) fn measured_rate(
    checkpoint: &Checkpoint,
    settings: &EngineSettings,
    prompter: &Prompter<'_>,
    items: &dyn Items,
    printer: Printer,
) -> Result<Rate, CliError> {
    let mut engine = MeasuredEngine::load(checkpoint, settings, printer)?;
    let most = 2 * engine.card.in_flight.max(PILOT_QUESTIONS);
    let mut asked = Vec::new();
    for item in items.iter().take(most) {
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
    let pilot = engine.ask(&asked[..PILOT_QUESTIONS.min(asked.len())])?;
    let affordable = (PILOT_QUESTIONS as f64 * TARGET_SECONDS / pilot.seconds.max(1e-3)) as usize;
    asked.truncate(affordable.clamp(PILOT_QUESTIONS, most));
    let total = engine.ask(&asked)?;
    let decoding = engine.decoding((total.prompt_tokens / asked.len()).max(1), asked.len())?;
    // Seconds that decoding does not account for are attributed to the prompts.
    let new_s = total.new_tokens as f64 / decoding.decode_tokens_per_s;
    let prompt_s = (total.seconds - new_s).max(0.1 * total.seconds);
    let new_s = total.seconds - prompt_s;
    Ok(Rate {
        prompt_tokens_per_second: total.prompt_tokens as f64 / prompt_s,
        new_tokens_per_second: (total.new_tokens as f64 / new_s).max(f64::MIN_POSITIVE),
        source: format!(
            "measured on {}: the first {} questions, with as many new tokens as the right answers have",
            engine.described,
            asked.len()
        ),
    })
}

/// Loads a model and measures its rates of prefill and decode on prompts of the study's shape.
pub(super) fn measured_assumptions(
    checkpoint: &Checkpoint,
    settings: &EngineSettings,
    printer: Printer,
) -> Result<Assumptions, CliError> {
    let mut engine = MeasuredEngine::load(checkpoint, settings, printer)?;
    // The batch grows with the engine's sequences in flight.
    let batch = FEW_SHOT.batch * (engine.card.in_flight / CPU_BATCH).max(1);
    let load = Load { batch, ..FEW_SHOT };
    engine.best(load, 1)?;
    let m = engine.best(load, REPETITIONS)?;
    let parameters = checkpoint.config.parameter_count() as f64;
    let batch = m.load.batch as f64;
    let step_s = m.decode_s * batch / m.decoded_tokens.max(1) as f64;
    let device = format!(
        "{} with {}: {} prompts of {} tokens, {:.0} % of them shared, and {} new tokens each",
        engine.described,
        checkpoint.source.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned()),
        m.load.batch,
        m.load.prompt_tokens,
        100.0 * m.load.shared,
        m.load.new_tokens
    );
    Ok(Assumptions::measured(device, parameters, m.prefilled_tokens as f64, m.prefill_s, batch, step_s))
}

/// Parameters used per token; of a mixture of experts not all.
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

/// A loaded engine and the conditions of its measurement.
struct MeasuredEngine {
    engine: Box<dyn Engine>,
    card: Card,
    space: Space,
    context: usize,
    /// Device and weight type, for people.
    described: String,
    printer: Printer,
    stop: Arc<AtomicBool>,
}

impl MeasuredEngine {
    fn load(checkpoint: &Checkpoint, settings: &EngineSettings, printer: Printer) -> Result<Self, CliError> {
        printer.remark("loading the model to measure its rate on this machine");
        let LoadedEngine { engine, options, notes, .. } = model::load(checkpoint, settings)?;
        notes.iter().for_each(|note| printer.warning(&note.to_string()));
        let budget = options.get("token_budget").and_then(serde_json::Value::as_u64).unwrap_or(TOKEN_BUDGET);
        let card = engine.card();
        Ok(MeasuredEngine {
            described: format!("this machine's {} (weights {})", card.devices.join(", "), card.weights_dtype),
            card,
            engine,
            space: Space { vocab: checkpoint.config.vocab_size, token_budget: budget as usize },
            context: checkpoint.config.max_positions,
            printer,
            stop: stop_on_signal()?,
        })
    }

    /// Runs questions, with a message.
    fn ask(&mut self, asked: &[Asked]) -> Result<Worked, CliError> {
        self.printer.remark(&format!("measuring: {}", counted(asked.len(), "question")));
        work_through(self.engine.as_mut(), asked, &self.stop).map_err(stopped_or_failed)
    }

    /// Measures decoding after prompts of this length, with as many sequences as may run at once and fit the cache, at most `most`.
    fn decoding(&mut self, prompt_tokens: usize, most: usize) -> Result<LoadMeasurement, CliError> {
        let load = |batch| Load { batch, prompt_tokens, shared: 0.0, new_tokens: DECODED };
        let mut batch = self.card.in_flight.min(most).max(1);
        // Half of the cache leaves room for partly filled blocks.
        while batch > 1 && batch * load(batch).longest(self.space.token_budget) > self.card.kv_tokens / 2 {
            batch /= 2;
        }
        self.best(load(batch), 1)
    }

    /// Measures a load several times and returns the fastest measurement.
    fn best(&mut self, load: Load, repetitions: usize) -> Result<LoadMeasurement, CliError> {
        let batch = load.batch.min(self.card.in_flight).max(1);
        let load = Load { batch, ..load }.within(self.context, self.space.token_budget);
        let mut best: Option<LoadMeasurement> = None;
        self.printer.remark(&format!("measuring: {} at once", counted(batch, "sequence")));
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
    use earnest_models::checkpoint::Compute;

    #[test]
    fn commands_get_what_was_measured() {
        let weights = WeightFormat { compute: Some(Compute::Int8), ..WeightFormat::default() };
        let engine = EngineSettings { device: DeviceChoice::Cuda(1), threads: Some(2), ..EngineSettings::default() };
        assert_eq!(weight_options(&weights) + &engine_options(&engine), " --compute int8 --device cuda:1 --threads 2");
        assert_eq!(weight_options(&WeightFormat::default()) + &engine_options(&EngineSettings::default()), "");
        assert_eq!(shell_word(std::path::Path::new("models/a b's.gguf")), r"'models/a b'\''s.gguf'");
        assert_eq!(shell_word(std::path::Path::new("org/repo@0123.gguf")), "org/repo@0123.gguf");
    }
}
