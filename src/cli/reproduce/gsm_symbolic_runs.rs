//! `earnest reproduce gsm-symbolic --run`: the matrix of models and prompts. Runs are named after their settings, so the same
//! command continues an interrupted study and reuses finished runs.
use std::path::PathBuf;

use super::gsm_symbolic::GsmSymbolicArgs;
use crate::cli::Exit;
use crate::cli::error::CliError;
use crate::cli::events::Reporters;
use crate::cli::interrupt::stop_flag;
use crate::cli::printer::Printer;
use earnest_eval::evaluate::{
    Decoding, EndOfSequence, Evaluated, EvaluationSettings, GenerationSettings, ModelSession, Questions, RunChoice,
};
use earnest_eval::model::{Device, EngineSettings, LocatedModel, ModelSource, TrafficSettings};
use earnest_eval::run::Plan;
use earnest_eval::run::store::{Filter, RunRecord, Store};
use earnest_models::checkpoint::WeightFormat;
use earnest_papers::gsm_symbolic::{Evaluation, analyse, selected};
use earnest_tasks::suite::gsm_symbolic::Prompt;

/// A model of the study.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StudyModel {
    /// Name in the tables.
    pub name: String,
    pub path: PathBuf,
}

/// `NAME=PATH`
impl std::str::FromStr for StudyModel {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.split_once('=') {
            Some((name, path)) if !name.trim().is_empty() && !path.trim().is_empty() => {
                Ok(StudyModel { name: name.trim().to_owned(), path: PathBuf::from(path.trim()) })
            }
            _ => Err(format!("'{text}' is not NAME=MODEL, e.g. phi-2=models/phi-2")),
        }
    }
}

/// Runs what is missing, model by model: the GSM prompt, then, for selected models, the other four. Selection considers one model at
/// a time, so the order makes no difference; every model is loaded at most once, when its first unfinished run needs it.
///
/// Returns all runs of the study, new and finished ones, with their models' names.
pub(super) fn execute(args: &GsmSymbolicArgs, quiet: bool, printer: Printer) -> Result<Vec<Executed>, CliError> {
    let mut names: Vec<&str> = args.with.iter().map(|model| model.name.as_str()).collect();
    names.sort_unstable();
    if let Some(twice) = names.windows(2).find(|pair| pair[0] == pair[1]) {
        return Err(CliError::usage(format!("--with names {} twice", twice[0])));
    }
    if args.limit == Some(0) {
        return Err(CliError::usage("--limit 0 leaves nothing to ask"));
    }
    let chosen = args.chosen_prompts();
    let selects = args.select != "all";
    if selects && !chosen.contains(&Prompt::Gsm) {
        return Err(CliError::usage("--prompts leaves out gsm, whose answers select the models for the other prompts")
            .help("add gsm (a finished run is not repeated), or use --select all"));
    }
    let engine = args.engine.settings()?;
    let (device, note) = Device::choose(&engine)?;
    // All models are located before the first one runs for hours.
    let sources = args
        .with
        .iter()
        .map(|named| {
            let model = LocatedModel::find(&named.path, &args.hub.settings(), WeightFormat::default())?;
            Ok((named, ModelSource::Local { model, device: device.clone(), note: note.clone() }))
        })
        .collect::<Result<Vec<_>, CliError>>()?;
    let mut executed = Vec::new();
    for (named, source) in sources {
        let mut model: Option<ModelSession> = None;
        for prompt in &chosen {
            if !quiet {
                printer.message(&format!("{} on {prompt}", named.name));
            }
            let Evaluated { store, run } =
                evaluate_prompt(args, &source, &engine, &mut model, *prompt, quiet, printer)?;
            executed.push(Executed { model: named.name.clone(), run: run.manifest.run.clone() });
            if selects && *prompt == Prompt::Gsm && chosen.len() > 1 {
                let selection = select(&named.name, &store, &run)?;
                if !quiet {
                    printer.message(&selection.message);
                }
                if !selection.selected {
                    break;
                }
            }
        }
    }
    Ok(executed)
}

/// A run of the study.
pub(super) struct Executed {
    /// The model's name in the study.
    pub(super) model: String,
    /// The run's name.
    pub(super) run: String,
}

/// Evaluates one model on one prompt; the model is opened once for all prompts.
fn evaluate_prompt(
    args: &GsmSymbolicArgs,
    source: &ModelSource,
    engine: &EngineSettings,
    model: &mut Option<ModelSession>,
    prompt: Prompt,
    quiet: bool,
    printer: Printer,
) -> Result<Evaluated, CliError> {
    let mut options = args.items.0.clone();
    if !options.has("profile") {
        // The study's profile also for endpoints.
        options = options.with("profile", "study");
    }
    let chosen = args.choose(prompt, &options)?;
    // In the study the tokenizer's EOS alone ends an answer.
    let eos = args.generation.eos.unwrap_or(EndOfSequence::Tokenizer);
    let decoding = GenerationSettings { eos, ..args.generation.settings(args.seed.seed) };
    let settings = EvaluationSettings {
        prompt: chosen.default_mode(),
        questions: Questions::Chosen(chosen.choice),
        plan: Plan { limit: args.limit, samples: 1, shard: None },
        model: source.clone(),
        thinking: args.generation.thinking.enable_thinking(),
        thinking_text: args.generation.thinking_text,
        decoding: Decoding::Asked(decoding),
        results: args.compared.results.folder.clone(),
        run: RunChoice::Gather,
        engine: engine.clone(),
        traffic: TrafficSettings::default(),
        fail_on_error: None,
        stop: stop_flag(),
    };
    let model = match model {
        Some(model) => model,
        None => {
            let opened = model.insert(ModelSession::open(&settings)?);
            opened.warnings().iter().for_each(|warning| printer.warning(warning));
            opened
        }
    };
    let mut reporters = Reporters::new(printer, quiet, None)?;
    Ok(model.evaluate(&settings, &mut reporters)?)
}

/// Selection of a model for the other prompts, and the reason as a message.
struct Selection {
    selected: bool,
    message: String,
}

/// Selects a model by its answers to the GSM prompt.
fn select(name: &str, store: &Store, run: &RunRecord) -> Result<Selection, CliError> {
    let mut evaluation = Evaluation::new(name, Prompt::Gsm);
    for sample in store.samples(run, Filter::default()) {
        evaluation.add(&sample?).map_err(|error| {
            CliError::new(Exit::Results, format!("{} cannot be analysed: {error}", run.manifest.run))
        })?;
    }
    Ok(select_by(evaluation))
}

fn select_by(evaluation: Evaluation) -> Selection {
    let name = evaluation.model.clone();
    let analyses = analyse(vec![evaluation]);
    let selected = !selected(&analyses).is_empty();
    let fit = analyses.first().map(|analysis| &analysis.glmm1);
    let estimate = match fit.and_then(|fit| fit.variant) {
        Some(effect) => format!("log odds {:.2}, p {:.3}", effect.estimate, effect.p),
        None => format!("no estimate: {}", fit.and_then(|fit| fit.problem()).unwrap_or("no answers")),
    };
    let message = if selected {
        format!(
            "{name}: accuracy drops significantly on the GSM prompt ({estimate}); continuing with the other prompts"
        )
    } else {
        format!("{name}: no significant drop on the GSM prompt ({estimate}); skipping the other prompts")
    };
    Selection { selected, message }
}

#[cfg(test)]
mod tests {
    use super::*;
    use earnest_papers::gsm_symbolic::{ErrorClass, Observation};

    #[test]
    fn models_are_names_and_paths() {
        let model: StudyModel = "phi-2=/models/a=b".parse().unwrap();
        assert_eq!((model.name.as_str(), model.path), ("phi-2", PathBuf::from("/models/a=b")));
        for wrong in ["phi-2", "=path", "phi-2=", ""] {
            assert!(wrong.parse::<StudyModel>().is_err(), "{wrong}");
        }
    }

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
        let falls = select_by(answers(3));
        assert!(falls.selected && falls.message.contains("drops significantly"), "{}", falls.message);
        let stays = select_by(answers(7));
        assert!(!stays.selected && stays.message.contains("no significant drop"), "{}", stays.message);
        // Neither a significant rise nor a missing estimate is a drop.
        assert!(!select_by(answers(9)).selected);
        let nothing = select_by(answers(0));
        assert!(!nothing.selected && nothing.message.contains("no estimate: separation"), "{}", nothing.message);
        assert!(!select_by(Evaluation::new("empty", Prompt::Gsm)).selected);
    }
}
