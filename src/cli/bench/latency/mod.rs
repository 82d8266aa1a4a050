//! `earnest bench latency`: Table 2 of the Number Cookbook on any model.
mod document;
mod passes;
mod screen;

use clap::Args;
use earnest_eval::model;
use earnest_eval::model::LoadedEngine;

use self::document::{Document, Settings, documents};
use self::passes::Passes;
use self::screen::screen;
use super::BenchModel;
use super::questions::{LatencyMode, ModeQuestions, Selection, TokenRule};
use crate::cli::Exit;
use crate::cli::args::EngineArgs;
use crate::cli::catalogue::suite_error;
use crate::cli::error::CliError;
use crate::cli::interrupt::stop_on_signal;
use crate::cli::models::open;
use crate::cli::printer::Printer;
use crate::cli::values::{Lengths, Prompts};
use earnest_engine::bench::{BenchError, Ended, LatencyPlan, LatencyResults, measure_latency};
use earnest_eval::prompt::Prompter;
use earnest_results::{Host, Mode};
use earnest_tasks::suite::nupa::{
    self, NupaOptions, NupaSuite, PromptStyle, TASKS, adapter, lengths, ruled_tasks, tasks, usual_scorer,
};

#[derive(Debug, Args)]
#[command(
    after_help = "Both modes get the same questions of the NUPA Test, in the suite's order, with greedy decoding; a question whose prompt and right \
completion exceed the window in one mode is dropped from all. At batch size B, at most B samples are in the engine; the prefix \
cache is empty at the start of each pass. Passes alternate between modes and batch sizes, and each repetition starts at another \
question. Brackets give the range of the repetitions, or with at least 6 a 95 % interval of the median.

Examples:
  earnest bench latency --model model.gguf --batch 1,16 --samples 32
  earnest bench latency --model model.gguf --tasks add_Integer,mod_Integer --lengths 1-5 --tokens right
  earnest bench latency --model model.gguf --modes direct --batch 1,16,128,256 --repeat 7 --json"
)]
pub struct LatencyArgs {
    #[command(flatten)]
    pub model: BenchModel,

    /// Tasks, separated by commas, from `earnest suites` [default: all that have a rule]
    #[arg(long, value_name = "TASKS", value_delimiter = ',')]
    pub tasks: Option<Vec<String>>,

    /// Lengths: a number, a range or a list, e.g. 5, 1..3 or 1,2,5-7 [default: all]
    #[arg(long, value_name = "LENGTHS")]
    pub lengths: Option<Lengths>,

    /// Forms of the answer, separated by commas
    #[arg(long, value_name = "MODES", value_enum, value_delimiter = ',', default_values = ["direct", "rf-cot"])]
    pub modes: Vec<LatencyMode>,

    /// Batch sizes: samples in the engine at once, separated by commas
    #[arg(long, value_name = "SIZES", value_delimiter = ',', default_values = ["1", "16", "128", "256"],
        value_parser = clap::value_parser!(u32).range(1..=65_536))]
    pub batch: Vec<u32>,

    /// Questions per pass [default: the largest batch]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub samples: Option<u32>,

    /// Passes per mode and batch size; the result is their median
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub repeat: u32,

    /// Warm-up samples before the first pass of each mode and batch size, not counted
    #[arg(long, value_name = "N", default_value_t = 2)]
    pub warm_up: u32,

    /// Window for prompt and completion together, in tokens; the paper's is 2000 [default: 2000, or the model's context if that
    /// is shorter]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub context: Option<u32>,

    /// Number of tokens to generate
    #[arg(long, value_name = "HOW", value_enum, default_value = "written")]
    pub tokens: TokenRule,

    /// Seed of the questions
    #[arg(long, value_name = "SEED", default_value_t = 1)]
    pub seed: u64,

    /// Prompt format: auto, chat or raw [default: auto]
    #[arg(long, value_name = "MODE")]
    pub prompt: Option<Prompts>,

    #[command(flatten)]
    pub engine: EngineArgs,

    /// Print one JSON document, with every pass
    #[arg(long)]
    pub json: bool,
}

/// Measures and prints the results.
pub fn execute(args: &LatencyArgs, printer: Printer) -> Result<Exit, CliError> {
    let (modes, batches) = (distinct(&args.modes), distinct(&args.batch));
    let batches: Vec<usize> = batches.into_iter().map(|batch| batch as usize).collect();
    let largest = batches.iter().copied().max().unwrap_or(1);
    let samples = args.samples.map_or(largest, |samples| samples as usize);
    let engine_settings = super::with_batch(args.engine.settings()?, largest)?;
    let options = options(args, &modes)?;
    let chosen = args.model.locate(printer)?;
    let checkpoint = open(&chosen, printer)?;
    let defaults = model::checkpoint_defaults(&chosen, &checkpoint);
    let context = checkpoint.config.max_positions;
    let window = args.context.map_or(2000.min(context), |context| context as usize);
    if window > context {
        let problem = format!("--context {window} exceeds the model's context of {context} tokens");
        return Err(CliError::usage(problem).help(format!("choose at most --context {context}")));
    }
    let prompts = args.prompt.clone().unwrap_or_default();
    if let Some(name) = prompts.names.first() {
        return Err(CliError::usage(format!("--prompt {name}: choose auto, chat or raw")));
    }
    let prompter = Prompter::new(&checkpoint, prompts.mode.unwrap_or_default())?;
    let settings = settings(args, &options, (&modes, &batches), (samples, window), prompter.mode());
    let suites = suites(&modes, &options, prompter.mode())?;
    let selection = Selection {
        checkpoint: &checkpoint,
        prompter: &prompter,
        window,
        samples,
        tokens: args.tokens,
        thinks: defaults.thinks,
        stop_ids: defaults.stop_ids,
    };
    let (asked, dropped) = selection.choose(suites)?;
    let questions = asked.first().map_or(0, |asked| asked.prompts.len());
    if questions == 0 {
        return Err(nothing_fits(&modes, dropped.looked_at, window));
    }
    printer.message(&format!("loading {}", args.model.path.display()));
    let LoadedEngine { engine: mut native, options, notes, .. } = model::load(&checkpoint, &engine_settings)?;
    notes.iter().for_each(|note| printer.warning(&note.to_string()));
    let card = native.card();
    let blocks = native.statistics().blocks_total.max(1);
    let prompts: Vec<_> = asked.iter().map(|asked| asked.prompts.as_slice()).collect();
    let plan = LatencyPlan {
        modes: prompts,
        batches: &batches,
        repetitions: args.repeat as usize,
        warm_up: args.warm_up as usize,
        block_bytes: card.kv_bytes as f64 / blocks as f64,
    };
    let stop = stop_on_signal()?;
    let names: Vec<_> = asked.iter().map(|asked| asked.mode.names().0).collect();
    let mut passes = Passes::new(printer, names, args.repeat as usize, questions);
    let named = |error: BenchError| named(error, &asked);
    let measured = measure_latency(native.as_mut(), &plan, &stop, &mut |event| passes.event(event)).map_err(named)?;
    drop(passes);
    let planned_passes = args.repeat as usize * asked.len() * batches.len();
    let LatencyResults { modes: results, passes, ended } = measured;
    let document = Document {
        earnest: env!("CARGO_PKG_VERSION"),
        host: Host::probe(),
        model: model::record(&chosen, &checkpoint).name,
        engine: card,
        options,
        settings,
        passes,
        planned_passes,
        questions,
        dropped,
        modes: documents(&asked, results, args.tokens),
    };
    // Measurements before an interruption or an error are printed too.
    match passes {
        0 => {}
        _ if args.json => printer.json(&document)?,
        _ => printer.result(&screen(&document, printer.width()))?,
    }
    match ended {
        Ok(Ended::Finished) => Ok(Exit::Success),
        Ok(Ended::Stopped) => {
            let message = format!("interrupted: {passes} of {planned_passes} passes were measured");
            Err(CliError::new(Exit::Interrupted, message).help("the same command measures all of them again"))
        }
        Err(error) => Err(named(error)),
    }
}

/// The settings as the document has them.
fn settings(
    args: &LatencyArgs,
    options: &NupaOptions,
    (modes, batches): (&[LatencyMode], &[usize]),
    (samples, window): (usize, usize),
    mode: Mode,
) -> Settings {
    Settings {
        tasks: options.tasks.iter().map(ToString::to_string).collect(),
        lengths: match &options.lengths {
            nupa::Lengths::All => "all".into(),
            nupa::Lengths::Reference => "reference".into(),
            nupa::Lengths::Chosen(lengths) => lengths.clone().into(),
        },
        modes: modes.to_vec(),
        batches: batches.to_vec(),
        samples,
        repetitions: args.repeat,
        warm_up: args.warm_up,
        window,
        tokens: args.tokens,
        prompt: mode.to_string(),
        seed: args.seed,
    }
}

/// The suite of every mode.
fn suites(modes: &[LatencyMode], options: &NupaOptions, form: Mode) -> Result<Vec<(LatencyMode, NupaSuite)>, CliError> {
    let suites = modes.iter().map(|&mode| {
        let style = match mode {
            LatencyMode::Direct => PromptStyle::Direct,
            LatencyMode::RfCot => PromptStyle::RuleFollowing,
        };
        let (adapter, scorer) = (adapter(form), usual_scorer(form));
        let options = NupaOptions { style, adapter, scorer, ..options.clone() };
        Ok((mode, NupaSuite::new(options).map_err(suite_error)?))
    });
    suites.collect()
}

/// The error of a window that no question fits.
fn nothing_fits(modes: &[LatencyMode], looked_at: usize, window: usize) -> CliError {
    let names: Vec<_> = modes.iter().map(|mode| mode.names().0).collect();
    let names = names.join(" and ");
    let problem = format!("none of {looked_at} questions fits a window of {window} tokens with {names}");
    let direct = if modes.len() > 1 { ", or --modes direct, whose answers are short" } else { "" };
    CliError::usage(problem).help(format!(
        "choose shorter --lengths or a larger --context{direct}; `earnest rf-lengths` lists the lengths that fit"
    ))
}

/// An error of the measurement that names the question instead of its position.
fn named(error: BenchError, asked: &[ModeQuestions]) -> CliError {
    match &error {
        BenchError::InMode { mode, error: inner } => match (asked.get(*mode), inner.as_ref()) {
            (Some(asked), BenchError::Rejected { prompt, why }) => {
                let item = asked.items.get(*prompt).map_or_else(String::new, |item| format!(", {}", item.id));
                let message = format!("{}{item}: the engine rejects the prompt: {why}", asked.mode.names().0);
                CliError { message, ..super::failure(error) }
            }
            _ => super::failure(error),
        },
        _ => super::failure(error),
    }
}

fn distinct<T: Copy + PartialEq>(values: &[T]) -> Vec<T> {
    let mut kept = Vec::new();
    for &value in values {
        if !kept.contains(&value) {
            kept.push(value);
        }
    }
    kept
}

fn options(args: &LatencyArgs, modes: &[LatencyMode]) -> Result<NupaOptions, CliError> {
    let ruled = ruled_tasks();
    let tasks = match &args.tasks {
        Some(names) => tasks(names).map_err(suite_error)?,
        None => TASKS.into_iter().filter(|task| ruled.contains(task)).collect(),
    };
    if let (true, Some(task)) = (modes.contains(&LatencyMode::RfCot), tasks.iter().find(|task| !ruled.contains(task))) {
        return Err(CliError::usage(format!("rf-cot: {} has no rule", task.short_name()))
            .help("use --modes direct for it; without --tasks, all tasks that have a rule are used"));
    }
    Ok(NupaOptions { tasks, lengths: lengths(args.lengths.as_ref()), seed: args.seed, ..NupaOptions::default() })
}
