//! `earnest reproduce gsm-symbolic`.
use earnest_eval::model::{self, LocatedModel};
use std::path::{Path, PathBuf};

use clap::{ArgMatches, Args, Command, FromArgMatches};

use super::device::MeasureArgs;
use super::gsm_symbolic_collected::collect;
use super::gsm_symbolic_runs::{self, StudyModel};
use super::{ComparedRuns, device};
use crate::cli::args::{EngineArgs, GenerationArgs, SeedArgs};
use crate::cli::error::CliError;
use crate::cli::models::{HubArgs, WeightArgs, locate, open};
use crate::cli::output::{output_file, write_file};
use crate::cli::pdf::Browser;
use crate::cli::printer::Printer;
use crate::cli::values::Prompts;
use crate::cli::{Exit, catalogue};
use earnest_eval::prompt::{Mode, ModeRequest, Prompter};
use earnest_eval::report::ReportError;
use earnest_eval::run::Shard;
use earnest_eval::suites::ConfiguredSuite;
use earnest_models::checkpoint::WeightFormat;
use earnest_models::memory::human_bytes;
use earnest_papers::gsm_symbolic::{
    Analysis, Assumptions, PromptSize, Study, TableModels, drawings, page, plan, render_plan, render_summary,
    render_tables,
};
use earnest_tasks::suite::gsm_symbolic::{CHOOSING, Prompt};
use earnest_tasks::suite::registry::OptionValues;

/// Suites of the study, the published questions first.
const SUITES: [&str; 2] = ["gsm-symbolic", "gsm-mini"];

/// Number of questions of the study.
const QUESTIONS: usize = 5_100;

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  earnest reproduce gsm-symbolic                                the study beside the stored runs
  earnest reproduce gsm-symbolic --tables -o study.html         Tables 2 to 15 for these runs, and the page
  earnest reproduce gsm-symbolic --with phi-2=RUN1,phi-2=RUN2   runs of any origin under one name
  earnest reproduce gsm-symbolic --plan
  earnest reproduce gsm-symbolic --plan --model model.gguf --measure   (hours on this machine)
  earnest reproduce gsm-symbolic --run --models paper --fetch --dry-run   (hours, disk and licences before anything starts)
  earnest reproduce gsm-symbolic --run --models small --fetch -o study.pdf
  earnest reproduce gsm-symbolic --run --models paper -o study.html
  earnest reproduce gsm-symbolic --run --models small --sets base,main,p1,p2
  earnest reproduce gsm-symbolic --run --models small --fresh ml-gsm-symbolic/templates/symbolic --instances 10
  earnest reproduce gsm-symbolic --run --data gsm-symbolic --with phi-2=models/phi-2,gemma-2b=models/gemma-2b
  earnest reproduce gsm-symbolic --run --suite gsm-mini --with mine=model.gguf --limit 200 --figures figures

With --run, the same command continues after an interruption at any point.")]
pub struct GsmSymbolicArgs {
    #[command(flatten)]
    pub compared: ComparedRuns,

    /// Print a plan of the runs to make instead: models, prompts, tokens, GPU hours
    #[arg(long, conflicts_with_all = ["runs", "figures", "run", "with"])]
    pub plan: bool,

    /// Run the study first: every model on the GSM prompt and, if its accuracy drops significantly, on the others; each model is
    /// loaded once
    #[arg(long, conflicts_with = "runs")]
    pub run: bool,

    /// With --run: models as NAME=MODEL, separated by commas; names as in the paper (`phi-2`), or any. Otherwise NAME=RUN joins runs of
    /// any origin under one name (FOLDER/RUN from another folder), and NAME=MODEL names the runs of the model at this path
    #[arg(long, value_name = "NAME=MODEL", value_delimiter = ',')]
    pub with: Vec<StudyModel>,

    /// Print Tables 2 to 15 beside the published values instead of a summary: for the models that were run, or for all of the paper
    #[arg(long, value_name = "MODELS", num_args = 0..=1, default_missing_value = "run", conflicts_with = "json")]
    pub tables: Option<WhichTables>,

    /// Write the study as one page too, HTML or PDF by its ending: all tables and figures with the published values beside ours. A PDF
    /// is printed by a Chromium or Chrome of this machine; EARNEST_BROWSER names another one
    #[arg(long, short, value_name = "FILE", conflicts_with = "plan", value_parser = output_file())]
    pub output: Option<PathBuf>,

    /// Suite of the runs
    #[arg(long, value_name = "SUITE", default_value = "gsm-symbolic", value_parser = SUITES)]
    pub suite: String,

    /// Prompts, separated by commas: gsm, simple-nl, structured-nl, simple-code, structured-code [default: all]
    #[arg(long, value_name = "PROMPTS", value_delimiter = ',')]
    pub prompts: Vec<Prompt>,

    /// With --run: models to evaluate: `paper` (the 20 of the study, by commit), `small` (the two files of
    /// scripts/fetch-models.sh in ./models or EARNEST_MODELS, else two of the list; they fit any machine), names of `earnest
    /// models list`, or a study file, whose models, engines, endpoints and weight formats are taken; separated by commas. Models that are
    /// not on this machine are named and left out
    #[arg(long, value_name = "MODELS", value_delimiter = ',', requires = "run")]
    pub models: Vec<String>,

    /// With --run: part of every run, e.g. 1/4; `earnest merge` joins the parts
    #[arg(long, value_name = "I/N", requires = "run", conflicts_with = "output")]
    pub shard: Option<Shard>,

    /// With --run: engine of models that no study file describes
    #[arg(long = "engine", value_name = "ENGINE", default_value = "native", value_parser = ["native", "mistralrs"], requires = "run")]
    pub engine_name: String,

    /// With --run: models to evaluate on the other four prompts: `significant`, as in the study, or `all`
    #[arg(long, value_name = "WHICH", default_value = "significant", value_parser = ["significant", "all"], requires = "run")]
    pub select: String,

    /// Model whose tokenizer counts the plan's prompt tokens
    #[arg(long, value_name = "PATH", requires = "plan")]
    pub model: Option<PathBuf>,

    /// Measure rates on this machine for the hours: with --plan that of --model (or EARNEST_MODEL), with --run those of models without
    /// earlier runs
    #[arg(long, conflicts_with = "runs")]
    pub measure: bool,

    /// With --run: print the runs with their cost, and what is missing, and stop
    #[arg(long, requires = "run")]
    pub dry_run: bool,

    /// With --run: fetch first what is missing of the questions and of the models of --models, at their commits; a model of the list
    /// without one is pinned to the hub's current commit. With --dry-run nothing is fetched
    #[arg(long, requires = "run", conflicts_with = "offline")]
    pub fetch: bool,

    /// With --run: draw fresh questions from the templates in this folder, those of `earnest generate gsm-symbolic --templates`, or from our
    /// `own`; --seed and --instances choose
    #[arg(long, value_name = "DIR", requires = "run", help_heading = "Items")]
    pub fresh: Option<PathBuf>,

    #[command(flatten)]
    pub weights: WeightArgs,

    #[command(flatten)]
    pub seed: SeedArgs,

    #[command(flatten)]
    pub items: StudyItems,

    /// With --run: maximum number of items per prompt
    #[arg(long, value_name = "N", requires = "run", help_heading = "Items")]
    pub limit: Option<usize>,

    #[command(flatten)]
    pub generation: GenerationArgs,

    #[command(flatten)]
    pub engine: EngineArgs,

    /// Connect to this machine only; an endpoint must be local
    #[arg(long, help_heading = "Model")]
    pub offline: bool,

    /// Unknown key of config.json to let through, or tokenizer.ggml.pre=NAME
    #[arg(long, value_name = "KEY", help_heading = "Model")]
    pub allow_config: Vec<String>,
}

/// `--tables`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum WhichTables {
    /// Models that were run
    Run,
    /// Also the paper's other models
    All,
}

/// Options of the study's suites.
#[derive(Debug, Clone)]
pub struct StudyItems(pub OptionValues);

impl Args for StudyItems {
    fn augment_args(command: Command) -> Command {
        catalogue::with_options_of(&SUITES, command)
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for StudyItems {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        Ok(StudyItems(catalogue::given_options_of(&SUITES, matches)))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

impl GsmSymbolicArgs {
    /// The suite with these options and one prompt.
    pub(super) fn choose(&self, prompt: Prompt, options: &OptionValues) -> Result<ConfiguredSuite, CliError> {
        let prompts = Prompts { mode: None, names: vec![prompt.to_string()] };
        catalogue::choose(&self.suite, options, self.seed.seed, &prompts)
    }

    /// The list of models, which EARNEST_MODELS_TOML extends: --models chooses among them here.
    pub(super) fn hub(&self) -> HubArgs {
        let models = std::env::var_os("EARNEST_MODELS_TOML").filter(|file| !file.is_empty()).map(PathBuf::from);
        HubArgs { models, offline: self.offline, allow_config: self.allow_config.clone() }
    }

    /// The prompts, in the paper's order.
    pub(super) fn chosen_prompts(&self) -> Vec<Prompt> {
        let every = Prompt::ALL.into_iter();
        every.filter(|prompt| self.prompts.is_empty() || self.prompts.contains(prompt)).collect()
    }
}

/// Prints the study beside stored runs, after running it with `--run`.
pub fn execute(args: &GsmSymbolicArgs, quiet: bool, printer: Printer) -> Result<Exit, CliError> {
    if args.plan {
        return show_plan(args, printer);
    }
    if args.measure && !args.run {
        return Err(CliError::usage("--measure is for --plan or --run"));
    }
    if let Some(output) = args.output.as_deref().filter(|output| !is_page(output)) {
        return Err(CliError::usage(format!(
            "{} is neither an HTML page nor a PDF, and the study is one",
            output.display()
        ))
        .help(format!("write {}", output.with_extension("html").display())));
    }
    // Looked for first: hours of a study should not end without the page.
    let browser = match args.output.as_deref().filter(|output| is_pdf(output)) {
        Some(output) => Some(Browser::find(output)?),
        None => None,
    };
    let (executed, left_out) = match args.run {
        true => match gsm_symbolic_runs::execute(args, quiet, printer)? {
            Some(ended) => (Some(ended.runs), ended.left_out),
            None => return Ok(Exit::Success),
        },
        false => (None, 0),
    };
    if let Some(shard) = args.shard {
        printer.message(&format!(
            "part {} of every run is finished; when all are, `earnest merge` joins them and the command without --shard shows the study",
            shard
        ));
        return Ok(ended(left_out, printer));
    }
    let collected = collect(args, executed.as_deref(), printer)?;
    let study = Study::new(collected.used, collected.evaluations, collected.numbers);
    let figures = &args.compared.figures;
    if let Some(folder) = &figures.figures {
        let drawn = drawings(&study);
        figures.write(folder, &drawn)?;
        printer.message(&format!("{}: {} drawings", folder.display(), drawn.len()));
    }
    if let Some(output) = &args.output {
        let html = page(&study);
        let bytes = match &browser {
            Some(browser) => browser.print(&html)?,
            None => html.into_bytes(),
        };
        write_file(output, |out| {
            out.write_all(&bytes).map_err(|source| ReportError::Write { path: output.clone(), source })
        })?;
        printer.message(&format!("{}: {}", output.display(), human_bytes(bytes.len() as u64)));
    }
    if args.compared.json {
        printer.json(&study)?;
    } else {
        printer.result(&match args.tables {
            None => render_summary(&study, printer.width()),
            Some(WhichTables::Run) => render_tables(&study, TableModels::Ours, printer.width()),
            Some(WhichTables::All) => render_tables(&study, TableModels::All, printer.width()),
        })?;
    }
    without_odds_ratio(&study, printer);
    Ok(ended(left_out, printer))
}

/// The exit code of a study that so many models were left out of, with its sentence.
fn ended(left_out: usize, printer: Printer) -> Exit {
    if left_out == 0 {
        return Exit::Success;
    }
    let models = if left_out == 1 { "1 model was" } else { &format!("{left_out} models were") };
    printer.warning(&format!("{models} left out, as said above, so the study is not complete and the exit code is 1"));
    Exit::FailedSamples
}

/// Names the models and prompts that no odds ratio can be computed for: an outcome of the study, not a failure.
fn without_odds_ratio(study: &Study, printer: Printer) {
    let unnamed: Vec<&Analysis> = study.analyses.iter().filter(|analysis| analysis.glmm1.variant.is_none()).collect();
    for analysis in &unnamed {
        let why = analysis.glmm1.explanations.first().map_or("there is no fit", String::as_str);
        printer.message(&format!("note: {} on {} has no odds ratio: {why}", analysis.model, analysis.prompt));
    }
    if !unnamed.is_empty() {
        printer.message("everything else is shown; --prompts leaves prompts out, RUN names the runs to use");
    }
}

/// True for a path whose ending names no other format than a page's.
fn is_page(output: &Path) -> bool {
    let ending = output.extension().map(|ending| ending.to_string_lossy().to_ascii_lowercase());
    !ending.is_some_and(|ending| ["svg", "png", "json", "txt", "md"].contains(&ending.as_str()))
}

fn is_pdf(output: &Path) -> bool {
    output.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("pdf"))
}

fn show_plan(args: &GsmSymbolicArgs, printer: Printer) -> Result<Exit, CliError> {
    let weights = WeightFormat::from(args.weights);
    let measure = MeasureArgs { measure: args.measure, compute: args.weights.compute };
    let model = measure.model(args.model.as_ref(), args.measure)?;
    // Counted before the measurement, which takes minutes: data may be missing.
    let counted = match &model {
        Some(path) => {
            // Said once, not for every prompt.
            open(&locate(path, &args.hub(), weights, printer)?, printer)?;
            Some(args.chosen_prompts().into_iter().map(|prompt| count(args, path, prompt)).collect::<Result<_, _>>()?)
        }
        None => None,
    };
    let assumptions = match &model {
        Some(path) if args.measure => {
            let checkpoint = model::open(&LocatedModel::find(path, &args.hub().settings(), weights)?)?;
            device::measured_assumptions(&checkpoint, &args.engine.settings()?, printer)?
        }
        _ => Assumptions::default(),
    };
    let assumptions = match args.generation.max_tokens {
        Some(most) => Assumptions {
            most_tokens_per_answer: most as u64,
            tokens_per_answer: assumptions.tokens_per_answer.min(most as f64),
            ..assumptions
        },
        None => assumptions,
    };
    let estimate = |prompt| estimated(args, prompt, &assumptions);
    let sizes: Vec<PromptSize> = match counted {
        Some(counted) => counted,
        None => args.chosen_prompts().into_iter().map(estimate).collect::<Result<_, _>>()?,
    };
    let plan = plan(&sizes, assumptions);
    if args.compared.json {
        printer.json(&plan)?;
    } else {
        printer.result(&render_plan(&plan, printer.width()))?;
    }
    Ok(Exit::Success)
}

/// Estimated size of a prompt's questions without a tokenizer, from the suite's texts, or from the study's number of questions if
/// the data are missing.
fn estimated(args: &GsmSymbolicArgs, prompt: Prompt, assumptions: &Assumptions) -> Result<PromptSize, CliError> {
    let suite =
        args.choose(prompt, &args.items.0).and_then(|chosen| Ok(chosen.suite(catalogue::Channel::local(Mode::Raw))?));
    let suite = match suite {
        Ok(suite) => suite,
        // Apple's questions may be missing; their number is known unless options select some of them.
        Err(_) if args.suite == SUITES[0] && !args.items.0.has_any(&CHOOSING) && !args.items.0.has("data") => {
            return Ok(PromptSize::estimate(prompt, QUESTIONS, assumptions));
        }
        Err(error) => return Err(error),
    };
    let lengths: Vec<usize> = suite.items().map(|item| item.segments.question.len()).collect();
    let mean = lengths.iter().sum::<usize>() as f64 / lengths.len().max(1) as f64;
    let assumptions = Assumptions { bytes_per_question: mean, ..assumptions.clone() };
    Ok(PromptSize::estimate(prompt, lengths.len(), &assumptions))
}

/// Size of a prompt's questions in tokens of this checkpoint.
fn count(args: &GsmSymbolicArgs, path: &Path, prompt: Prompt) -> Result<PromptSize, CliError> {
    let chosen = args.choose(prompt, &args.items.0)?;
    let checkpoint = model::open(&LocatedModel::find(path, &args.hub().settings(), WeightFormat::default())?)?;
    let prompter = Prompter::new(&checkpoint, ModeRequest::Raw)?;
    let suite = chosen.suite(catalogue::Channel::local(prompter.mode()))?;
    let mut size = PromptSize { prompt, questions: 0, tokens: 0, tokens_after_prefix: 0, counted: true };
    let mut first: Option<Vec<u32>> = None;
    let mut shared = usize::MAX;
    for item in suite.items() {
        let ids = prompter.render(&item.segments)?.ids;
        let first = first.get_or_insert_with(|| ids.clone());
        shared = shared.min(first.iter().zip(&ids).take_while(|(one, other)| one == other).count());
        size.questions += 1;
        size.tokens += ids.len() as u64;
    }
    let repeated = shared as u64 * (size.questions as u64).saturating_sub(1);
    size.tokens_after_prefix = size.tokens.saturating_sub(if size.questions > 1 { repeated } else { 0 });
    Ok(size)
}
