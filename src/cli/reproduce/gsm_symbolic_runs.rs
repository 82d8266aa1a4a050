//! `earnest reproduce gsm-symbolic --run`: the matrix of models and prompts. Runs are named after their settings, so the same
//! command continues an interrupted study and reuses finished runs.
use std::path::Path;

use super::gsm_symbolic_args::GsmSymbolicArgs;
use super::gsm_symbolic_cost::{self, Missing, MissingModel, entry_of, say_left_out};
use super::gsm_symbolic_fetch::{self, Questions, questions};
use super::gsm_symbolic_fresh::fresh_questions;
use super::gsm_symbolic_small;
use crate::cli::error::CliError;
use crate::cli::interrupt::stop_flag;
use crate::cli::models::of_paper;
use crate::cli::printer::Printer;
use crate::cli::study::{Lines, ended};
use crate::cli::values::Prompts;
use earnest_eval::evaluate::{EndOfSequence, GenerationSettings};
use earnest_eval::model::{LocatedModel, TrafficSettings, checked_name};
use earnest_eval::study::{
    Decision, ModelDefinition, ModelReference, Place, PlannedRun, RunEnd, Sessions, StudyDefinition, StudyPlan,
    StudySettings, TaskDefinition,
};
use earnest_eval::{EvalError, study};
use earnest_models::checkpoint::WeightFormat;
use earnest_papers::gsm_symbolic::{Evaluation, analyse, selected};
use earnest_results::RunNotice;
use earnest_results::store::{Filter, RunRecord, Store};
use earnest_results::suites::LocalHost;
use earnest_tasks::suite::gsm_symbolic::Prompt;

/// Runs what is missing, model by model: the GSM prompt, then, for selected models, the other four. Selection considers one model at
/// a time, so the order makes no difference; every model is loaded at most once, when its first unfinished run needs it.
///
/// The cost is printed first, and alone with --dry-run.
pub(super) fn execute(args: &GsmSymbolicArgs, printer: Printer) -> Result<Option<Ended>, CliError> {
    let mut names: Vec<&str> = args.with.iter().map(|model| model.name.as_str()).collect();
    names.sort_unstable();
    if let Some(twice) = names.windows(2).find(|pair| pair[0] == pair[1]) {
        return Err(CliError::usage(format!("--with names {} twice", twice[0])));
    }
    if args.limit == Some(0) {
        return Err(CliError::usage("--limit 0 leaves nothing to ask"));
    }
    checked_name(&args.allow_config)?;
    let chosen = args.chosen_prompts();
    let selects = args.select != "all";
    if selects && !chosen.contains(&Prompt::Gsm) {
        return Err(CliError::usage("--prompts leaves out gsm, whose answers select the models for the other prompts")
            .help("add gsm (a finished run is not repeated), or use --select all"));
    }
    if args.fetch && !args.dry_run {
        gsm_symbolic_fetch::execute(args, printer)?;
    }
    let (models, all) = models(args)?;
    let missing = Missing { models: &all, fetched: args.fetch && args.dry_run };
    if args.dry_run && (models.is_empty() || matches!(questions(args), Questions::Missing)) {
        gsm_symbolic_cost::show_missing(args, models.len(), &missing, printer)?;
        return Ok(None);
    }
    if models.is_empty() {
        say_left_out(&missing, None, printer);
        return Err(match all.len() {
            0 => CliError::usage("--run needs models").help("--models paper, --models small, or --with NAME=MODEL"),
            count => CliError::usage(format!("none of the {count} models is on this machine")).help(
                match args.models.iter().any(|word| word == "small") {
                    true => format!("{}; --fetch fetches their namesakes from the hub", gsm_symbolic_small::ADVICE),
                    false => {
                        "add --fetch to the same command, or `earnest models fetch --paper gsm-symbolic` for those of the paper"
                            .to_owned()
                    }
                },
            ),
        });
    }
    let settings = StudySettings {
        results: args.compared.results.folder.clone(),
        hub: args.hub().settings(),
        shard: args.shard,
        fail_on_error: None,
        host: LocalHost::default(),
        stop: stop_flag(),
    };
    let plan = StudyPlan::new(definition(args, models, &chosen, printer)?, settings)?;
    let mut sessions = Sessions::default();
    gsm_symbolic_cost::show(args, &plan, &mut sessions, &missing, printer)?;
    if args.dry_run {
        return Ok(None);
    }
    let mut decide = |run: PlannedRun, store: &Store, record: &RunRecord| match chosen[run.prompt] {
        Prompt::Gsm if selects && chosen.len() > 1 => select(&plan.model(run).name, store, record),
        _ => Ok(Decision::CONTINUE),
    };
    let prompts = chosen.clone();
    let label = move |plan: &StudyPlan, run: PlannedRun| format!("{} on {}", plan.model(run).name, prompts[run.prompt]);
    let mut watcher = Lines::new(printer, Box::new(label));
    let mut outcome = study::execute(&plan, sessions, &mut decide, &mut watcher);
    if let Some(error) = ended(&plan, &mut outcome) {
        return Err(error);
    }
    let mut executed = Vec::new();
    let mut failures = Vec::new();
    for (run, end) in outcome.runs {
        match end {
            RunEnd::Finished(record) => {
                executed.push(Executed { model: plan.model(run).name.clone(), run: record.manifest.run });
            }
            RunEnd::Failed(error) => failures.push((run, error)),
            RunEnd::ModelFailed | RunEnd::LeftOut | RunEnd::NotReached => {}
        }
    }
    // The other models have had their runs.
    let several = failures.len() > 1;
    for (run, error) in failures.iter().filter(|_| several) {
        printer.warning(&format!("{} failed: {error}", plan.model(*run).name));
    }
    match failures.into_iter().next() {
        Some((_, error)) => Err(error.into()),
        None => Ok(Some(Ended { runs: executed, left_out: all.len() })),
    }
}

/// A study that was executed.
pub(super) struct Ended {
    /// All its runs, new and finished ones.
    pub(super) runs: Vec<Executed>,
    /// Number of models that are not here.
    pub(super) left_out: usize,
}

/// A run of the study.
pub(super) struct Executed {
    /// The model's name in the study.
    pub(super) model: String,
    /// The run's name.
    pub(super) run: String,
}

/// The models of --models, wherever they are.
pub(super) fn wanted(args: &GsmSymbolicArgs) -> Result<Vec<ModelDefinition>, CliError> {
    let engine = args.engine.settings()?;
    let mut wanted: Vec<ModelDefinition> = Vec::new();
    for word in &args.models {
        let place = || format!("--models {word}");
        match word.as_str() {
            "paper" => {
                let entries = of_paper(&args.hub().settings().registry()?, "gsm-symbolic")?;
                for entry in entries {
                    wanted.push(defined(args, &entry.name, Path::new(&entry.name), place())?);
                }
            }
            "small" => {
                for (name, path) in gsm_symbolic_small::models()? {
                    wanted.push(defined(args, &name, &path, place())?);
                }
            }
            file if Path::new(file).extension().is_some_and(|ending| ending == "toml") => {
                wanted.extend(StudyDefinition::read(Path::new(file), &engine)?.models);
            }
            name => {
                let label = name.rsplit('/').next().unwrap_or(name);
                let label = label.split('@').next().unwrap_or(label);
                wanted.push(defined(args, label.strip_suffix(".gguf").unwrap_or(label), Path::new(name), place())?);
            }
        }
    }
    Ok(wanted)
}

/// A model that no study file describes.
fn defined(args: &GsmSymbolicArgs, name: &str, path: &Path, place: String) -> Result<ModelDefinition, CliError> {
    // In the study the tokenizer's EOS alone ends an answer.
    let eos = args.generation.eos.unwrap_or(EndOfSequence::Tokenizer);
    Ok(ModelDefinition {
        name: name.to_owned(),
        reference: match args.engine_name.as_str() {
            "mistralrs" => ModelReference::Mistralrs(path.to_owned()),
            _ => ModelReference::Native { model: path.to_owned(), weights: WeightFormat::from(args.weights) },
        },
        engine: args.engine.settings()?,
        traffic: TrafficSettings::default(),
        generation: GenerationSettings { eos, ..args.generation.settings(args.seed.seed) },
        thinking_text: args.generation.thinking_text,
        allow_config: Vec::new(),
        place: Place::key(place),
    })
}

/// The models of --with and --models that are on this machine, under their names in the tables, and the others.
fn models(args: &GsmSymbolicArgs) -> Result<(Vec<ModelDefinition>, Vec<MissingModel>), CliError> {
    let with = args.with.iter().map(|named| defined(args, &named.name, &named.path, format!("--with {}", named.name)));
    let mut models: Vec<ModelDefinition> = with.collect::<Result<_, _>>()?;
    let wanted = wanted(args)?;
    let mut missing = Vec::new();
    for definition in wanted {
        match here(args, &definition) {
            Ok(()) => models.push(definition),
            Err(error) => {
                let entry = match &definition.reference {
                    ModelReference::Native { model, .. } => entry_of(args, model),
                    ModelReference::Mistralrs(_) | ModelReference::Endpoint(_) => None,
                };
                missing.push(MissingModel { name: definition.name, error, entry });
            }
        }
    }
    Ok((models, missing))
}

/// Checks that a local model's files are here; endpoints and other engines say it themselves.
fn here(args: &GsmSymbolicArgs, definition: &ModelDefinition) -> Result<(), EvalError> {
    if let ModelReference::Native { model, weights } = &definition.reference {
        LocatedModel::find(model, &study::hub_of(definition, &args.hub().settings()), *weights)?;
    }
    Ok(())
}

/// The study: one task, the chosen prompts, the named models.
fn definition(
    args: &GsmSymbolicArgs,
    models: Vec<ModelDefinition>,
    chosen: &[Prompt],
    printer: Printer,
) -> Result<StudyDefinition, CliError> {
    let mut options = args.items.0.clone();
    if let Some(templates) = &args.fresh {
        let file = fresh_questions(args, templates, printer)?;
        options = options.with("data", file);
    }
    if !options.has("profile") {
        // The study's scorer also for endpoints.
        options = options.with("profile", "study");
    }
    for prompt in chosen {
        args.choose(*prompt, &options)?;
    }
    let task = TaskDefinition {
        name: args.suite.clone(),
        suite: args.suite.clone(),
        options,
        prompts: chosen.iter().map(|prompt| Prompts { mode: None, names: vec![prompt.to_string()] }).collect(),
        limit: args.limit,
        samples: 1,
        seed: args.seed.seed,
        place: Place::key(format!("--suite {}", args.suite)),
    };
    Ok(StudyDefinition {
        name: "gsm-symbolic".to_owned(),
        file: None,
        models,
        tasks: vec![task],
        compare: Vec::new(),
        mixed_models: Vec::new(),
    })
}

/// Selects a model for the other prompts by its answers to the GSM prompt.
fn select(name: &str, store: &Store, run: &RunRecord) -> Result<Decision, EvalError> {
    let mut evaluation = Evaluation::new(name, Prompt::Gsm);
    for sample in store.samples(run, Filter::default()) {
        evaluation
            .add(&sample?)
            .map_err(|error| EvalError::results(format!("{} cannot be analysed: {error}", run.manifest.run)))?;
    }
    Ok(select_by(evaluation))
}

fn select_by(evaluation: Evaluation) -> Decision {
    let model = evaluation.model.clone();
    let analyses = analyse(vec![evaluation]);
    let continues = !selected(&analyses).is_empty();
    let fit = analyses.first().map(|analysis| &analysis.glmm1);
    let effect = fit.and_then(|fit| fit.variant);
    let reason = RunNotice::Selected {
        model,
        selected: continues,
        log_odds: effect.map(|effect| effect.estimate),
        p: effect.map(|effect| effect.p),
        problem: fit.and_then(|fit| fit.problem()).map(str::to_owned),
    };
    Decision { continues, reason: Some(reason) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use earnest_papers::gsm_symbolic::{ErrorClass, Observation};

    /// Answers to 40 templates with ten variants each, the first `right` of every ten being right, and the original too in
    /// all templates but every fourth.
    fn answers(right: i64) -> Evaluation {
        let mut evaluation = Evaluation::new("mine", Prompt::Gsm);
        for template in 0..40 {
            for instance in -1..10 {
                let correct = if instance < 0 { template % 4 > 0 } else { (instance + template) % 10 < right };
                evaluation.rows.push(Observation {
                    template: format!("t{template}"),
                    instance,
                    variant: instance >= 0,
                    correct,
                    gamma: Some(2.0 + (template % 5) as f64),
                    failure: (!correct).then_some(ErrorClass::Wrong),
                });
            }
        }
        evaluation
    }

    #[test]
    fn a_model_is_selected_by_its_own_answers() {
        let selected = |answers| {
            let Decision { continues, reason } = select_by(answers);
            (continues, reason.unwrap().to_string())
        };
        let (falls, message) = selected(answers(3));
        assert!(falls && message.contains("drops significantly"), "{message}");
        let (stays, message) = selected(answers(7));
        assert!(!stays && message.contains("no significant drop"), "{message}");
        // Neither a significant rise nor a missing estimate is a drop.
        assert!(!selected(answers(9)).0);
        let (nothing, message) = selected(answers(0));
        assert!(!nothing && message.contains("no estimate: separation"), "{message}");
        assert!(!selected(Evaluation::new("empty", Prompt::Gsm)).0);
    }
}
