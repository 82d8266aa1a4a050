//! `earnest bench latency`: Table 2 of the Number Cookbook on any model.
use std::fmt::Write;
use std::path::PathBuf;

use clap::Args;
use serde::Serialize;

use super::questions::{Asked, Dropped, LatencyMode, Selection, TokenRule};
use crate::bench::{Latency, LatencyPlan, ModeResult, PassEvent, measure_latency};
use crate::cli::args::EngineArgs;
use crate::cli::catalogue::nupa::{adapter, lengths, refused, tasks};
use crate::cli::error::CliError;
use crate::cli::models::{HubArgs, WeightArgs};
use crate::cli::printer::Printer;
use crate::cli::values::{Lengths, Prompts, human_bytes};
use crate::cli::{Exit, model};
use crate::engine::{Card, FinishReason};
use crate::prompt::Prompter;
use crate::report::{Align, Table};
use crate::run::Host;
use crate::stats::{Z95, wilson};
use crate::suite::nupa::{NupaOptions, NupaSuite, PromptStyle, TASKS, published_inference_times, ruled_tasks};
use crate::suite::{Answered, Suite};

#[derive(Debug, Args)]
#[command(
    after_help = "Both modes are asked the same questions of the NUPA Test, in the suite's order, greedily; a question whose prompt \
and right completion exceed the window in a mode is dropped from all. At batch size B, at most B samples are in the engine; the \
prefix cache is empty at the start of each pass. Passes alternate between modes and batch sizes. With fewer than 6 repetitions \
the brackets hold the range, with more a 95 % interval of the median.

Examples:
  earnest bench latency --model model.gguf --batch 1,16 --samples 32
  earnest bench latency --model model.gguf --tasks add_Integer,mod_Integer --lengths 1-5 --tokens right
  earnest bench latency --model model.gguf --modes direct --batch 1,16,128,256 --repeat 7 --json"
)]
pub struct LatencyArgs {
    /// The model: a name of `earnest models list`, org/repo@<40-digit commit>, a Hugging Face folder or a GGUF file
    #[arg(long, value_name = "MODEL", env = "EARNEST_MODEL", hide_env_values = true, default_value = crate::cli::built_in::NAME)]
    pub model: PathBuf,

    #[command(flatten)]
    pub weights: WeightArgs,

    #[command(flatten)]
    pub hub: HubArgs,

    /// Only these tasks, separated by commas; `earnest suites` lists them [default: all that have a rule]
    #[arg(long, value_name = "TASKS", value_delimiter = ',')]
    pub tasks: Option<Vec<String>>,

    /// Only these lengths: a number, a range or a list, e.g. 5, 1..3 or 1,2,5-7 [default: all]
    #[arg(long, value_name = "LENGTHS")]
    pub lengths: Option<Lengths>,

    /// What to ask for
    #[arg(long, value_name = "MODES", value_enum, value_delimiter = ',', default_values = ["direct", "rf-cot"])]
    pub modes: Vec<LatencyMode>,

    /// Samples in the engine at once, separated by commas
    #[arg(long, value_name = "SIZES", value_delimiter = ',', default_values = ["1", "16", "128", "256"],
        value_parser = clap::value_parser!(u32).range(1..=65_536))]
    pub batch: Vec<u32>,

    /// Questions of a pass [default: the largest batch]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub samples: Option<u32>,

    /// Passes of each mode at each batch size; the median counts
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub repeat: u32,

    /// Samples asked before the first pass of each mode at each batch size, not counted
    #[arg(long, value_name = "N", default_value_t = 2)]
    pub warm_up: u32,

    /// Tokens that prompt and completion may have together; the paper's window is 2000 [default: 2000, or the model's
    /// context if that is less]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub context: Option<u32>,

    /// How many tokens are generated
    #[arg(long, value_name = "RULE", value_enum, default_value = "written")]
    pub tokens: TokenRule,

    /// Seed of the questions
    #[arg(long, value_name = "SEED", default_value_t = 1)]
    pub seed: u64,

    /// Chat template or bare text: auto, chat or raw [default: auto]
    #[arg(long, value_name = "MODE")]
    pub prompt: Option<Prompts>,

    #[command(flatten)]
    pub engine: EngineArgs,

    /// Print one JSON document, with every pass
    #[arg(long)]
    pub json: bool,
}

/// Everything that a reader needs to judge the numbers.
#[derive(Debug, Serialize)]
struct Document {
    earnest: &'static str,
    host: Host,
    model: String,
    engine: Card,
    prompt: String,
    window: usize,
    tokens: TokenRule,
    seed: u64,
    repetitions: u32,
    questions: usize,
    dropped: Dropped,
    modes: Vec<ModeDocument>,
}

/// One mode's results.
#[derive(Debug, Serialize)]
struct ModeDocument {
    mode: LatencyMode,
    latencies: Vec<Row>,
    /// Completions that are right, in the first pass; none where the tokens are not the model's own choice.
    right: Option<usize>,
    /// The share of them, with its 95 % Wilson interval.
    exact_match: Option<[f64; 3]>,
    /// Completions that the budget or the window cut.
    truncated: Option<usize>,
    /// Questions whose tokens differed between passes or batch sizes.
    unsteady: Vec<String>,
}

/// One batch size, with the paper's value where it has one.
#[derive(Debug, Serialize)]
struct Row {
    #[serde(flatten)]
    latency: Latency,
    /// The paper's seconds a sample (Table 2: Llama-3.1-8B on one A800) at this batch size.
    published: Option<f64>,
    /// How often a direct answer fits into this time, from the medians at the same batch size.
    times_direct: Option<f64>,
    /// Ids of [`Latency::slow_questions`].
    slow_items: Vec<String>,
}

/// Measures and shows.
pub fn execute(args: &LatencyArgs, quiet: bool, printer: Printer) -> Result<Exit, CliError> {
    let say = |text: String| {
        if !quiet {
            printer.message(&text);
        }
    };
    let (modes, batches) = (distinct(&args.modes), distinct(&args.batch));
    let batches: Vec<usize> = batches.into_iter().map(|batch| batch as usize).collect();
    let largest = batches.iter().copied().max().unwrap_or(1);
    let samples = args.samples.map_or(largest, |samples| samples as usize);
    let options = options(args)?;
    let chosen = model::choose(&args.model, &args.hub, args.weights.into())?;
    let checkpoint = model::open(&chosen)?;
    let says = model::says(&chosen, &checkpoint);
    let context = checkpoint.config.max_positions;
    let window = args.context.map_or(2000.min(context), |context| context as usize);
    if window > context {
        let problem = format!("--context {window} exceeds the model's context of {context} tokens");
        return Err(CliError::usage(problem).help(format!("ask for at most --context {context}")));
    }
    let prompts = args.prompt.clone().unwrap_or_default();
    if let Some(name) = prompts.names.first() {
        return Err(CliError::usage(format!("--prompt {name}: choose auto, chat or raw")));
    }
    let prompter = Prompter::new(&checkpoint, prompts.mode.unwrap_or_default())?;
    let suites = modes.iter().map(|&mode| {
        let style = match mode {
            LatencyMode::Direct => PromptStyle::Direct,
            LatencyMode::RfCot => PromptStyle::RuleFollowing,
        };
        let options = NupaOptions { style, adapter: adapter(prompter.mode()), ..options.clone() };
        Ok((mode, NupaSuite::new(options).map_err(refused)?))
    });
    let suites = suites.collect::<Result<Vec<_>, CliError>>()?;
    let selection = Selection {
        checkpoint: &checkpoint,
        prompter: &prompter,
        window,
        samples,
        tokens: args.tokens,
        thinks: says.thinks,
        stop_ids: says.stop_ids,
    };
    let (asked, dropped) = selection.choose(suites)?;
    let questions = asked.first().map_or(0, |asked| asked.prompts.len());
    if questions == 0 {
        let problem = format!("none of {} questions fits a window of {window} tokens", dropped.looked_at);
        return Err(CliError::usage(problem)
            .help("choose shorter --lengths or a larger --context; `earnest rf-lengths` says what fits"));
    }
    say(format!("loading {}", args.model.display()));
    let engine_args = super::holding(&args.engine, largest)?;
    let model::Loaded { engine: mut native, notes, .. } = model::load(&checkpoint, &engine_args)?;
    notes.iter().for_each(|note| printer.warning(note));
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
    let results = measure_latency(native.as_mut(), &plan, &mut |event: PassEvent| {
        let mode = asked.get(event.mode).map_or("", |asked| asked.mode.names().0);
        let what = format!("pass {} of {}, {mode}, batch {}", event.repetition + 1, args.repeat, event.batch);
        say(match event.seconds {
            None => format!("{what}: {questions} samples"),
            Some(seconds) => format!("{what}: {seconds:.2} s"),
        });
    })
    .map_err(super::failure)?;
    let document = Document {
        earnest: env!("CARGO_PKG_VERSION"),
        host: Host::probe(),
        model: model::record(&chosen, &checkpoint).name,
        engine: card,
        prompt: prompter.mode().to_string(),
        window,
        tokens: args.tokens,
        seed: args.seed,
        repetitions: args.repeat,
        questions,
        dropped,
        modes: documents(&asked, results, args.tokens),
    };
    if args.json {
        printer.json(&document)?;
    } else {
        printer.result(&screen(&document))?;
    }
    Ok(Exit::Success)
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

fn options(args: &LatencyArgs) -> Result<NupaOptions, CliError> {
    let ruled = ruled_tasks();
    let tasks = match &args.tasks {
        Some(names) => tasks(names)?,
        None => TASKS.into_iter().filter(|task| ruled.contains(task)).collect(),
    };
    Ok(NupaOptions { tasks, lengths: lengths(args.lengths.as_ref()), seed: args.seed, ..NupaOptions::default() })
}

fn documents(asked: &[Asked], results: Vec<ModeResult>, tokens: TokenRule) -> Vec<ModeDocument> {
    let direct: Option<Vec<f64>> = asked
        .iter()
        .zip(&results)
        .find(|(asked, _)| asked.mode == LatencyMode::Direct)
        .map(|(_, result)| result.latencies.iter().map(|latency| latency.seconds_per_sample.median).collect());
    let document = |(asked, result): (&Asked, ModeResult)| {
        let id = |&question: &usize| asked.items.get(question).map(|item| item.id.clone());
        let own = tokens == TokenRule::Written;
        let judged = asked.items.iter().zip(&result.completions);
        let right = judged.filter(|(item, completion)| {
            let truncated = completion.finish == FinishReason::Length;
            asked.suite.score(item, &Answered { completion: &completion.text, truncated }).correct
        });
        let right = own.then(|| right.count());
        let cut = result.completions.iter().filter(|completion| completion.finish == FinishReason::Length).count();
        let n = asked.items.len() as f64;
        let exact_match = right.and_then(|right| wilson(right as f64, n, Z95));
        let (mode, paper) = (asked.mode, asked.mode.names().1);
        let unsteady = result.unsteady.iter().filter_map(id).collect();
        let rows = result.latencies.into_iter().enumerate().map(|(place, latency)| {
            let published = published_inference_times()
                .iter()
                .find(|row| row.method == paper && row.batch_size == latency.batch)
                .map(|row| row.seconds_per_sample);
            let base = direct.as_ref().filter(|_| mode != LatencyMode::Direct).and_then(|all| all.get(place));
            let times_direct = base.map(|base| latency.seconds_per_sample.median / base);
            let slow_items = latency.slow_questions.iter().filter_map(id).collect();
            Row { published, times_direct, slow_items, latency }
        });
        ModeDocument {
            mode,
            latencies: rows.collect(),
            right,
            exact_match: exact_match.map(|found| [found.value, found.low, found.high]),
            truncated: own.then_some(cut),
            unsteady,
        }
    };
    asked.iter().zip(results).map(document).collect()
}

/// Seconds with three significant digits.
fn seconds(value: f64) -> String {
    match value {
        value if value >= 100.0 => format!("{value:.0}"),
        value if value >= 10.0 => format!("{value:.1}"),
        value if value >= 1.0 => format!("{value:.2}"),
        value if value >= 0.1 => format!("{value:.3}"),
        value => format!("{value:.4}"),
    }
}

fn screen(d: &Document) -> String {
    let mut table = Table::new([
        ("mode".to_owned(), Align::Left),
        right("batch"),
        right("s/sample"),
        (String::new(), Align::Left),
        right("paper"),
        right("times direct"),
        right("prefill"),
        right("decode"),
        right("first token"),
        right("tokens"),
        right("tokens/s"),
        right("KV memory"),
    ]);
    for mode in &d.modes {
        for row in &mode.latencies {
            let l = &row.latency;
            let s = &l.seconds_per_sample;
            table.row(vec![
                mode.mode.names().0.to_owned(),
                l.batch.to_string(),
                seconds(s.median),
                format!("[{}, {}]", seconds(s.low), seconds(s.high)),
                row.published.map_or_else(String::new, seconds),
                row.times_direct.map_or_else(String::new, |times| format!("{times:.1}")),
                seconds(l.prefill_per_sample),
                seconds(l.decode_per_sample),
                seconds(l.first_token_s.median),
                format!("{:.0}", l.new_tokens),
                format!("{:.0}", l.tokens_per_s),
                human_bytes(l.kv_bytes),
            ]);
        }
    }
    let mut text = String::new();
    let write = |out: &mut String| -> std::fmt::Result {
        writeln!(out, "model      {}", d.model)?;
        writeln!(out, "engine     {}, weights {}", d.engine.devices.join(", "), d.engine.weights_dtype)?;
        let tokens = match d.tokens {
            TokenRule::Written => "as many tokens as the model writes",
            TokenRule::Right => "as many tokens as the right completion has",
        };
        writeln!(
            out,
            "questions  {} of the NUPA Test, {} prompts, window {}, {tokens}",
            d.questions, d.prompt, d.window
        )?;
        let dropped = d.dropped.total();
        if dropped > 0 {
            writeln!(
                out,
                "dropped    {dropped} of {} questions exceed the window with their right completion",
                d.dropped.looked_at
            )?;
        }
        writeln!(out)?;
        out.push_str(&table.render());
        writeln!(out)?;
        let rows = || d.modes.iter().flat_map(|mode| &mode.latencies);
        let intervals = if rows().all(|row| row.latency.is_interval) {
            format!("95 % interval of the median of {} passes", d.repetitions)
        } else if d.repetitions == 1 {
            "one pass, no interval".to_owned()
        } else {
            format!("range of {} passes (6 give an interval)", d.repetitions)
        };
        writeln!(
            out,
            "s/sample: a pass's seconds over its samples; [ ]: {intervals}; prefill and decode: s/sample of steps"
        )?;
        writeln!(out, "with and without prompt tokens; first token: median seconds from submission; paper: Table 2,")?;
        writeln!(out, "Llama-3.1-8B on a GPU.")?;
        for mode in &d.modes {
            let name = mode.mode.names().0;
            if let (Some(right), Some([share, low, high])) = (mode.right, mode.exact_match) {
                let (share, low, high) = (100.0 * share, 100.0 * low, 100.0 * high);
                write!(out, "{name}: exact match {share:.1} % [{low:.1}, {high:.1}] ({right} of {})", d.questions)?;
                match mode.truncated {
                    Some(cut) if cut > 0 => writeln!(out, ", {cut} completions cut by their budget or the window")?,
                    _ => writeln!(out)?,
                }
            }
            if !mode.unsteady.is_empty() {
                let count = mode.unsteady.len();
                writeln!(
                    out,
                    "{name}: {count} completions differ between passes or batch sizes: {}",
                    some(&mode.unsteady)
                )?;
            }
            for row in &mode.latencies {
                let l = &row.latency;
                let reached = l.passes.iter().map(|pass| pass.largest_batch).max().unwrap_or(0);
                if reached < l.batch {
                    writeln!(out, "{name}, batch {}: at most {reached} samples ran together", l.batch)?;
                }
                if !l.outlying_passes.is_empty() {
                    let places: Vec<String> = l.outlying_passes.iter().map(ToString::to_string).collect();
                    writeln!(out, "{name}, batch {}: over 10 % from the median: pass {}", l.batch, places.join(", "))?;
                }
                if !row.slow_items.is_empty() {
                    writeln!(out, "{name}, batch {}: slow for their tokens: {}", l.batch, some(&row.slow_items))?;
                }
            }
        }
        if d.modes.iter().all(|mode| mode.unsteady.is_empty()) {
            writeln!(out, "Every completion had the same tokens in every pass at every batch size.")?;
        }
        Ok(())
    };
    write(&mut text).expect("writing to a String cannot fail");
    text
}

fn right(name: &str) -> (String, Align) {
    (name.to_owned(), Align::Right)
}

/// The first few of a list.
fn some(ids: &[String]) -> String {
    let few = ids.iter().take(3).cloned().collect::<Vec<_>>().join(", ");
    if ids.len() > 3 { format!("{few} and {} more", ids.len() - 3) } else { few }
}
