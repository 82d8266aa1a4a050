//! `earnest profile`.
use std::path::{Path, PathBuf};

use clap::Args;
use serde::Serialize;

use super::args::{EngineArgs, GenerationArgs, ResultsArgs, SeedArgs, TargetArgs, TrafficArgs};
use super::error::CliError;
use super::events::Reporters;
use super::figures::FigureArgs;
use super::interrupt::stop_flag;
use super::models::{HubArgs, WeightArgs};
use super::output::{output_file, write_file};
use super::printer::Printer;
use super::shared_questions::{Shared, shared_answers};
use super::values::Prompts;
use super::{Exit, catalogue, offered, results, results_folder};
use earnest_eval::evaluate::{Decoding, Evaluated, EvaluationSettings, Questions, RunChoice, evaluate};
use earnest_report::profile::{Comparison, NumeracyProfile, comparison, comparison_text, figures, page, profile, text};
use earnest_results::{Plan, RowsError};
use earnest_tasks::anatomy::ErrorClass;
use earnest_tasks::suite::profile::{BUDGET, NAME, SHARED, WIDTH};
use earnest_tasks::suite::registry::OptionValues;

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  earnest profile                                            the model inside this program
  earnest profile --model model.gguf -o profile.html
  earnest profile --model model.gguf --skills integers,word-problems --budget 24
  earnest profile profile-small -o page.html                 a stored numeracy profile again
  earnest profile --compare profile-small profile-large -o both.html
  earnest profile --compare profile-small profile-large --questions 0    by the stored answers alone

The prompt comes first: every form that the model takes is tried on short questions, and the best one asks the rest. \
Every skill is asked at the lengths that say most about its limit, until the 95 % interval is narrow enough or the budget is spent. Questions \
and answers are samples of a run of the suite `profile`: the same command continues an interrupted one, and `earnest samples RUN --error carry` \
shows single mistakes.")]
pub struct ProfileArgs {
    /// Show the numeracy profile of this stored run, instead of measuring one: its name, or the beginning of it
    #[arg(
        value_name = "RUN",
        conflicts_with_all = ["questions", "seed", "GenerationArgs", "TargetArgs", "WeightArgs", "prompt", "shots", "skills", "budget", "width", "thinking_budgets", "compare", "new", "events"]
    )]
    pub run: Option<String>,

    /// Model: a name from `earnest models list`, org/repo@<40-digit commit>, a Hugging Face folder or a GGUF file [default:
    /// the model inside this program]
    #[arg(long, value_name = "MODEL", env = "EARNEST_MODEL", hide_env_values = true, help_heading = "Model")]
    pub model: Option<PathBuf>,

    /// Prompt format: `chat` uses the checkpoint's chat template, `raw` plain text; `auto` asks in the form in which the model has most short
    /// questions right, of chat and raw text, each with and without worked examples [default: auto]
    #[arg(long, value_name = "PROMPT", help_heading = "Model")]
    pub prompt: Option<Prompts>,

    /// Worked examples before each question, 0 to 8 [default: whichever of 0 and 3 is better]
    #[arg(long, value_name = "N", help_heading = "Model")]
    pub shots: Option<usize>,

    #[command(flatten)]
    pub target: TargetArgs,

    #[command(flatten)]
    pub weights: WeightArgs,

    #[command(flatten)]
    pub hub: HubArgs,

    /// Only these skills, separated by commas: tasks, or groups (integers, floats, fractions, scientific, arithmetic-bench,
    /// word-problems, text, notations); `earnest suites` lists the tasks [default: all]
    #[arg(long, value_name = "SKILLS", value_delimiter = ',', help_heading = "Items")]
    pub skills: Vec<String>,

    /// Questions of each skill at most
    #[arg(long, value_name = "N", default_value_t = BUDGET, help_heading = "Items")]
    pub budget: usize,

    /// Ratio of the ends of the 95 % interval of the 50 % limit at which a skill is finished; one digit is always narrow enough
    #[arg(long, value_name = "RATIO", default_value_t = WIDTH, help_heading = "Items")]
    pub width: f64,

    /// Ask products and word problems beyond the limit without thinking and under these caps on the tokens of thinking: models whose chat
    /// template thinks are switched, others asked for steps [without a value: 256,1k,4k,16k]
    #[arg(
        long,
        value_name = "TOKENS",
        value_delimiter = ',',
        num_args = 0..=1,
        default_missing_value = "256,1k,4k,16k",
        conflicts_with = "max_tokens",
        help_heading = "Items"
    )]
    pub thinking_budgets: Vec<String>,

    #[command(flatten)]
    pub seed: SeedArgs,

    #[command(flatten)]
    pub generation: GenerationArgs,

    /// Compare two stored numeracy profiles by their runs, instead of measuring one: both models are asked shared questions at lengths between their
    /// limits
    #[arg(long, value_names = ["A", "B"], num_args = 2, conflicts_with_all = ["GenerationArgs", "TargetArgs", "WeightArgs", "skills", "budget", "width", "seed", "thinking_budgets", "prompt", "shots", "new"], help_heading = "Results")]
    pub compare: Vec<String>,

    /// Shared questions of --compare, at most 24 a skill; 0 compares by the stored answers alone [default: 400]
    #[arg(long, value_name = "N", requires = "compare", help_heading = "Results")]
    pub questions: Option<usize>,

    /// Start a new run instead of continuing or reporting an earlier one
    #[arg(long, help_heading = "Results")]
    pub new: bool,

    /// The HTML page [default: RUN.html in the results folder; none of stored runs]
    #[arg(long, short, value_name = "FILE", help_heading = "Results", value_parser = output_file())]
    pub output: Option<PathBuf>,

    #[command(flatten, next_help_heading = "Results")]
    pub figures: FigureArgs,

    #[command(flatten)]
    pub engine: EngineArgs,

    #[command(flatten)]
    pub traffic: TrafficArgs,

    #[command(flatten)]
    pub results: ResultsArgs,

    /// File to append the run's events to, as JSON lines
    #[arg(long, value_name = "FILE", help_heading = "Results", value_parser = output_file())]
    pub events: Option<PathBuf>,

    /// Print one JSON document instead of the text
    #[arg(long, help_heading = "Results")]
    pub json: bool,
}

/// Two numeracy profiles and their comparison, as JSON.
#[derive(Serialize)]
struct Compared<'a> {
    profiles: [&'a NumeracyProfile; 2],
    verdict: String,
    #[serde(flatten)]
    comparison: &'a Comparison,
    /// Runs that have the answers to shared questions.
    shared_runs: Option<&'a [String; 2]>,
}

/// Measures a numeracy profile, shows a stored one, or compares two.
pub fn execute(args: &ProfileArgs, printer: Printer) -> Result<Exit, CliError> {
    // From the environment it is no mistake, so that the parser does not refuse it.
    let is_model = |word: String| word == "--model" || word.starts_with("--model=");
    if (args.run.is_some() || !args.compare.is_empty()) && offered::words().any(is_model) {
        return Err(CliError::usage("--model does not go with stored numeracy profiles")
            .help("leave it out: a stored numeracy profile is of the model that it was measured with"));
    }
    if let Some(output) = &args.output {
        check_page(output)?;
    }
    if args.skills.iter().any(|name| name.trim().is_empty()) {
        return Err(CliError::usage("--skills has an empty name").help(
            "give tasks or groups, separated by commas, e.g. integers,word-problems; `earnest suites` lists them",
        ));
    }
    match (&args.compare[..], &args.run) {
        ([one, other], _) => compare(args, one, other, printer),
        (_, Some(run)) => show(args, run, printer),
        _ => measure(args, printer),
    }
}

/// Checks before anything is measured that a page can be written there.
fn check_page(output: &Path) -> Result<(), CliError> {
    if output == Path::new("-") {
        return Err(CliError::usage("-o - does not go with profile: the text or JSON is on standard output")
            .help("name a file for the page"));
    }
    if output.is_dir() {
        return Err(CliError::usage(format!("{} is a folder, not a file for the page", output.display()))
            .help("name a file in it"));
    }
    let folder = output.parent().filter(|folder| !folder.as_os_str().is_empty());
    match folder {
        Some(folder) if !folder.is_dir() => {
            let message = format!("there is no folder {} for the page {}", folder.display(), output.display());
            Err(CliError::usage(message).help("create it, or name a file in another one"))
        }
        _ => Ok(()),
    }
}

fn show(args: &ProfileArgs, run: &str, printer: Printer) -> Result<Exit, CliError> {
    if args.figures.figures.is_some() && args.output.is_none() {
        return Err(CliError::usage("--figures needs -o FILE with a stored run: figures are those of the page"));
    }
    let store = results::open(&args.results.folder, printer)?;
    let found = profile(&store, &store.run(run)?)?;
    match args.json {
        true => printer.json(&found)?,
        false => printer.result(&text(&found, printer.width()))?,
    }
    if let Some(output) = &args.output {
        write(&[&found], &Comparison::default(), output, &args.figures)?;
        printer.message(&format!("page: {}", output.display()));
    }
    Ok(Exit::Success)
}

fn measure(args: &ProfileArgs, printer: Printer) -> Result<Exit, CliError> {
    let prompts = args.prompt.clone().unwrap_or_default();
    let mut options = OptionValues::default();
    if !args.skills.is_empty() {
        options.set("skills", args.skills.iter().map(Into::into).collect());
    }
    if let Some(shots) = args.shots {
        options.set("shots", vec![shots.to_string().into()]);
    }
    if !args.thinking_budgets.is_empty() {
        options.set("thinking-budgets", args.thinking_budgets.iter().map(Into::into).collect());
    }
    let options = options.with("budget", args.budget.to_string()).with("width", args.width.to_string());
    let chosen = catalogue::choose(NAME, &options, args.seed.seed, &prompts)?;
    let prompt = prompts.mode.unwrap_or_else(|| chosen.default_mode());
    let settings = EvaluationSettings {
        questions: Questions::Chosen(chosen.choice),
        plan: Plan { limit: None, samples: 1, shard: None },
        until: None,
        model: args.target.source(args.model.as_deref(), args.weights, &args.hub, &args.engine, prompt)?,
        prompt,
        thinking: args.generation.thinking.enable_thinking(),
        thinking_text: args.generation.thinking_text,
        decoding: Decoding::Asked(args.generation.settings(args.seed.seed)),
        results: args.results.folder.clone(),
        run: if args.new { RunChoice::New } else { RunChoice::Continue },
        engine: args.engine.settings()?,
        traffic: args.traffic.settings(),
        fail_on_error: None,
        stop: stop_flag(),
    };
    settings.check()?;
    if args.model.is_none() && args.target.is_native() {
        printer.message("no --model given: this is the numeracy profile of the model inside this program");
    }
    let mut reporters = Reporters::new(printer, args.events.as_deref())?;
    let evaluated = evaluate(&settings, &mut reporters);
    // The progress display ends before anything else is printed.
    drop(reporters);
    let Evaluated { store, run } = evaluated?;
    let found = profile(&store, &run)?;
    match args.json {
        true => printer.json(&found)?,
        false => printer.result(&text(&found, printer.width()))?,
    }
    let output = args.output.clone().unwrap_or_else(|| results::new_page(&args.results.folder, &found.run));
    write(&[&found], &Comparison::default(), &output, &args.figures)?;
    let page = format!("page: {}", output.display());
    let commands = match found.answers {
        0 => Vec::new(),
        _ => next(&found, &results_folder::option(&args.results.folder)),
    };
    let following = [page].into_iter().chain(commands);
    match args.json {
        true => following.for_each(|line| printer.message(&line)),
        false => printer.follow(following)?,
    }
    if found.answers == 0 {
        printer.warning(&format!(
            "no question of {} was answered, so there is no numeracy profile; `earnest samples {0} --wrong` says why",
            found.run
        ));
        return Ok(Exit::FailedSamples);
    }
    Ok(Exit::Success)
}

/// The commands that follow: the wrong answers of the most frequent class that says what went wrong, and a comparison.
fn next(found: &NumeracyProfile, option: &str) -> Vec<String> {
    let class = found.anatomy.classes.iter().map(|share| share.class).find(|class| *class != ErrorClass::Other);
    let run = &found.run;
    let samples = class.map(|class| format!("earnest samples {run}{option} --error {class}"));
    let compare = format!("earnest profile --compare {run} OTHER{option} (OTHER: another numeracy profile)");
    results::next_lines(samples.into_iter().chain([compare]))
}

fn compare(args: &ProfileArgs, one: &str, other: &str, printer: Printer) -> Result<Exit, CliError> {
    if args.figures.figures.is_some() && args.output.is_none() {
        return Err(CliError::usage("--figures needs -o FILE with --compare: figures are those of the page"));
    }
    let store = results::open(&args.results.folder, printer)?;
    let (one, other) = (store.run(one)?, store.run(other)?);
    if one.manifest.run == other.manifest.run {
        return Err(CliError::usage(format!("--compare names {} twice", one.manifest.run))
            .help("name two runs; `earnest runs list` shows which there are"));
    }
    let runs = [&one, &other];
    let (one, other) = (profile(&store, &one)?, profile(&store, &other)?);
    drop(store);
    let questions = args.questions.unwrap_or(SHARED);
    let shared = shared_answers(args, questions, runs, [&one, &other], printer)?;
    let found = comparison(&one, &other, shared.as_ref().map(|shared| &shared.answers));
    if let Some(output) = &args.output {
        write(&[&one, &other], &found, output, &args.figures)?;
        printer.message(&format!("{}: the page of {} and {}", output.display(), one.run, other.run));
    }
    match args.json {
        true => {
            let names = if one.model == other.model { [&one.run, &other.run] } else { [&one.model, &other.model] };
            let verdict = found.verdict(names.map(String::as_str));
            let shared_runs = shared.as_ref().map(|shared| &shared.runs);
            printer.json(&Compared { profiles: [&one, &other], verdict, comparison: &found, shared_runs })?;
        }
        false => printer.result(&comparison_text([&one, &other], &found, printer.width()))?,
    }
    if let Some(Shared { runs: [first, second], .. }) = &shared {
        let option = results_folder::option(&args.results.folder);
        printer.message(&format!("shared answers: {first}, {second}"));
        let next = results::next_lines(std::iter::once(format!("earnest samples {first}{option} --wrong")));
        next.iter().for_each(|line| printer.message(line));
    }
    Ok(Exit::Success)
}

/// Writes the page, and the bars of limits as files if they are asked for.
fn write(profiles: &[&NumeracyProfile], found: &Comparison, output: &Path, drawn: &FigureArgs) -> Result<(), CliError> {
    let html = page(profiles, found)?;
    write_file(output, |out| {
        out.write_all(html.as_bytes()).map_err(|source| RowsError::Write { path: output.to_owned(), source })
    })?;
    if let Some(folder) = &drawn.figures {
        drawn.write(folder, &figures(profiles, found))?;
    }
    Ok(())
}
