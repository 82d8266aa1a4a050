//! `earnest reproduce gsm-symbolic`.
use earnest_eval::model::{self, LocatedModel};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use clap::{ArgMatches, Args, Command, FromArgMatches};

use super::gsm_symbolic_runs::{self, Executed, StudyModel};
use super::{ComparedRuns, device};
use crate::cli::args::{EngineArgs, GenerationArgs, SeedArgs};
use crate::cli::error::CliError;
use crate::cli::models::{HubArgs, locate};
use crate::cli::printer::Printer;
use crate::cli::stored::StoredRun;
use crate::cli::values::Prompts;
use crate::cli::{Exit, catalogue};
use earnest_eval::prompt::{Mode, ModeRequest, Prompter};
use earnest_eval::report::Rows;
use earnest_eval::run::{ModelRecord, Status};
use earnest_eval::suites::ConfiguredSuite;
use earnest_models::checkpoint::WeightFormat;
use earnest_papers::gsm_symbolic::{
    Assumptions, Evaluation, NumberDistribution, PromptSize, Study, StudyRun, drawings, paper_name, plan, render_plan,
    render_study,
};
use earnest_tasks::suite::Item;
use earnest_tasks::suite::gsm_symbolic::{CHOOSING, Prompt};
use earnest_tasks::suite::registry::OptionValues;

/// Suites of the study, the published questions first.
const SUITES: [&str; 2] = ["gsm-symbolic", "gsm-mini"];

/// Number of questions of the study.
const QUESTIONS: usize = 5_100;

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  earnest reproduce gsm-symbolic                                the study beside the stored runs
  earnest reproduce gsm-symbolic --plan
  earnest reproduce gsm-symbolic --plan --model model.gguf --measure   (hours on this machine)
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
    #[arg(long, requires = "with", conflicts_with = "runs")]
    pub run: bool,

    /// Models as NAME=MODEL, separated by commas; names as in the paper (`phi-2`), or any. Runs of a model at one of these
    /// paths are shown under its name
    #[arg(long, value_name = "NAME=MODEL", value_delimiter = ',')]
    pub with: Vec<StudyModel>,

    /// Suite of the runs
    #[arg(long, value_name = "SUITE", default_value = "gsm-symbolic", value_parser = SUITES)]
    pub suite: String,

    /// Prompts, separated by commas: gsm, simple-nl, structured-nl, simple-code, structured-code [default: all]
    #[arg(long, value_name = "PROMPTS", value_delimiter = ',')]
    pub prompts: Vec<Prompt>,

    /// With --run: models to evaluate on the other four prompts: `significant`, as in the study, or `all`
    #[arg(long, value_name = "WHICH", default_value = "significant", value_parser = ["significant", "all"], requires = "run")]
    pub select: String,

    /// Model whose tokenizer counts the plan's prompt tokens
    #[arg(long, value_name = "PATH", requires = "plan")]
    pub model: Option<PathBuf>,

    #[command(flatten)]
    pub measure: super::device::MeasureArgs,

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

    #[command(flatten)]
    pub hub: HubArgs,
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
    let executed = if args.run { Some(gsm_symbolic_runs::execute(args, quiet, printer)?) } else { None };
    let chosen = collect(args, executed.as_deref(), printer)?;
    let numbers = numbers(&chosen.newest);
    let study = Study::new(chosen.used, chosen.evaluations, numbers);
    let figures = &args.compared.figures;
    if let Some(folder) = &figures.figures {
        let drawn = drawings(&study);
        figures.write(folder, &drawn)?;
        printer.message(&format!("{}: {} drawings", folder.display(), drawn.len()));
    }
    if args.compared.json {
        printer.json(&study)?;
    } else {
        printer.result(&render_study(&study, printer.width()))?;
    }
    let named = study.analyses.iter().all(|analysis| analysis.glmm1.variant.is_some());
    Ok(if named { Exit::Success } else { Exit::FailedSamples })
}

/// The rows to analyse.
pub(super) struct Collected {
    pub(super) used: Vec<StudyRun>,
    pub(super) evaluations: Vec<Evaluation>,
    /// The newest run, whose questions represent all.
    newest: Option<StoredRun>,
}

/// Collects for every model and prompt the rows of the newest finished run. Runs named on the command line need not be finished.
/// With `--run`, only the study's own runs count.
fn collect(args: &GsmSymbolicArgs, executed: Option<&[Executed]>, printer: Printer) -> Result<Collected, CliError> {
    let mut runs = args.compared.open(&args.suite)?;
    runs.sort_by(|left, right| right.manifest.started.cmp(&left.manifest.started));
    if let Some(executed) = executed {
        runs.retain(|run| executed.iter().any(|own| own.run == run.manifest.run));
    }
    let labels = labels(&runs, args, executed, printer);
    let named = !args.compared.runs.is_empty();
    let wanted = args.chosen_prompts();
    let mut found: BTreeMap<(String, Prompt), Evaluation> = BTreeMap::new();
    let mut used = Vec::new();
    let mut newest = None;
    for (run, label) in runs.into_iter().zip(labels) {
        let manifest = &run.manifest;
        if !named && (manifest.status != Status::Finished || manifest.shard.is_some()) {
            printer.message(&format!(
                "{} is left out because it is unfinished or a part; name it to include it",
                manifest.run
            ));
            continue;
        }
        let mut rows: BTreeMap<Prompt, Evaluation> = BTreeMap::new();
        let mut problem = None;
        run.walk(&mut |sample| {
            if let Ok(prompt) = sample.task.parse::<Prompt>()
                && wanted.contains(&prompt)
            {
                let evaluation = rows.entry(prompt).or_insert_with(|| Evaluation::new(&label, prompt));
                if let Err(error) = evaluation.add(&sample) {
                    problem.get_or_insert(error);
                }
            }
            Ok(())
        })?;
        if let Some(error) = problem {
            return Err(CliError::new(Exit::Results, format!("{} cannot be analysed: {error}", run.place)));
        }
        let mut prompts = Vec::new();
        for (prompt, evaluation) in rows {
            let key = (label.clone(), prompt);
            if found.contains_key(&key) {
                let name = &run.manifest.run;
                printer.message(&format!("{name} is left out for {label} on {prompt}: there is a newer finished run"));
                continue;
            }
            found.insert(key, evaluation);
            prompts.push(prompt);
        }
        if !prompts.is_empty() {
            let limits = limits(&run, &label);
            used.push(StudyRun { run: run.manifest.run.clone(), model: label, prompts, limits });
            newest.get_or_insert(run);
        }
    }
    Ok(Collected { used, evaluations: found.into_values().collect(), newest })
}

/// Labels of the runs' models in the tables. Different models with the same name get the beginning of their files' digest, so that
/// their answers stay apart.
fn labels(runs: &[StoredRun], args: &GsmSymbolicArgs, executed: Option<&[Executed]>, printer: Printer) -> Vec<String> {
    let own = |run: &StoredRun| {
        let found = executed.and_then(|executed| executed.iter().find(|own| own.run == run.manifest.run));
        found.map_or_else(|| label(run, &args.with), |own| own.model.clone())
    };
    let mut labels: Vec<String> = runs.iter().map(own).collect();
    let files = |run: &StoredRun| -> Vec<String> {
        // The files of an import are of its answers: one model, imported by prompt, has several.
        let files = run.manifest.settings.files_of_model().unwrap_or_default();
        files.iter().map(|file| file.sha256.clone()).collect()
    };
    let plain = labels.clone();
    for (label, run) in labels.iter_mut().zip(runs) {
        let others = plain.iter().zip(runs).filter(|(other, _)| **other == *label).map(|(_, other)| other);
        if others.into_iter().any(|other| files(other) != files(run)) {
            let digest = earnest_digest::hex(&earnest_digest::sha256(files(run).concat().as_bytes()));
            label.push_str(&format!(" ({})", &digest[..6]));
        }
    }
    let mut reported: Vec<&String> = Vec::new();
    for (before, after) in plain.iter().zip(&labels) {
        if before != after && !reported.contains(&before) {
            printer.message(&format!(
                "different models are named {before}; they are labelled with digests of their files, or by --with NAME=PATH"
            ));
            reported.push(before);
        }
    }
    labels
}

/// Label of a run's model in the tables: from --with, from the paper, or its own name.
fn label(run: &StoredRun, models: &[StudyModel]) -> String {
    let record = &run.manifest.model;
    match (models.iter().find(|model| is_of(record, &model.path)), paper_name(&record.name)) {
        (Some(model), _) => model.name.clone(),
        (None, (Some(name), None)) => name.to_owned(),
        (None, _) => record.name.clone(),
    }
}

/// True if a run's model is the one at this path. Names count only if the paths cannot be compared: folders of different models often
/// have the same name.
fn is_of(record: &ModelRecord, path: &Path) -> bool {
    if path.display().to_string() == record.path {
        return true;
    }
    match (path.canonicalize(), Path::new(&record.path).canonicalize()) {
        (Ok(given), Ok(recorded)) => given == recorded,
        _ => model::short_name(path) == record.name,
    }
}

/// Differences between a run and the paper's.
fn limits(run: &StoredRun, label: &str) -> Vec<String> {
    let (manifest, settings) = (&run.manifest, &run.manifest.settings);
    let mut limits = Vec::new();
    if settings.suite != "gsm-symbolic" {
        limits.push(format!("asks {}, not the paper's questions", settings.suite));
    }
    if let Some(limit) = settings.limit {
        limits.push(format!("was limited to the first {limit} items"));
    }
    if manifest.status != Status::Finished {
        limits.push("is not finished".to_owned());
    }
    if let (Some(name), Some(quantised)) = paper_name(&manifest.model.name) {
        limits.push(format!("is a quantised model ({quantised}), not {name} itself"));
    } else if manifest.model.is_gguf() && paper_name(label).0.is_some() {
        limits.push(format!("is from a GGUF file ({}); the study used half precision", manifest.model.format));
    } else if let Some(quantisation) = manifest.model.published_quantisation() {
        limits.push(format!("has quantised weights ({quantisation}); the study used half precision"));
    }
    if settings.prompt_mode != Mode::Raw {
        limits.push("uses a chat template; the study sends bare prompts".to_owned());
    }
    if !settings.generation.sampling.is_greedy() {
        limits.push("samples; the study is greedy".to_owned());
    }
    if settings.samples > 1 {
        limits.push(format!("asks every item {} times; all answers are analysed as rows", settings.samples));
    }
    limits
}

/// Distribution of the integers in the questions; none if the run's data are missing.
fn numbers(run: &Option<StoredRun>) -> Option<NumberDistribution> {
    let settings = &run.as_ref()?.manifest.settings;
    // In a chat prompt the question's text contains the worked examples, whose numbers do not count.
    if settings.prompt_mode != Mode::Raw {
        return None;
    }
    let suite = catalogue::stored(settings).ok()?;
    let items: Vec<Item> = suite.items().collect();
    // All prompts have the same questions.
    let first = items.first().map(|item| item.task.clone());
    let asked = items.iter().filter(|item| Some(&item.task) == first.as_ref());
    Some(NumberDistribution::of_questions(asked.map(|item| {
        let set = item.covariates.get("set").and_then(serde_json::Value::as_str);
        (set, item.segments.question.as_str())
    })))
}

fn show_plan(args: &GsmSymbolicArgs, printer: Printer) -> Result<Exit, CliError> {
    let model = args.measure.model(args.model.as_ref(), args.measure.measure)?;
    // Counted before the measurement, which takes minutes: data may be missing.
    let counted = match &model {
        Some(path) => {
            // Said once, not for every prompt.
            locate(path, &args.hub, args.measure.weights(), printer)?;
            Some(args.chosen_prompts().into_iter().map(|prompt| count(args, path, prompt)).collect::<Result<_, _>>()?)
        }
        None => None,
    };
    let assumptions = match &model {
        Some(path) if args.measure.measure => {
            let checkpoint = model::open(&LocatedModel::find(path, &args.hub.settings(), args.measure.weights())?)?;
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
    let checkpoint = model::open(&LocatedModel::find(path, &args.hub.settings(), WeightFormat::default())?)?;
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
