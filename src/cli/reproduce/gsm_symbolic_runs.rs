//! `earnest reproduce gsm-symbolic --run`: the matrix of models and prompts. Runs are named after their settings, so the same
//! command continues where an earlier one was stopped, and finished runs are read, not repeated.
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
    /// As the tables name it.
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
            _ => Err(format!("'{text}' names no model and its place: write e.g. phi-2=models/phi-2")),
        }
    }
}

/// Runs what is missing, model by model: the GSM prompt, then, where it selects the model, the other four. The rule of selection
/// looks at one model at a time, so nothing is lost against the study's order, and every model is loaded once: when the first
/// of its runs that is not finished needs it, and not at all where all are.
///
/// Returns what the study consists of: every run asked or found finished, with its model's name in the study.
pub(super) fn execute(args: &GsmSymbolicArgs, quiet: bool, printer: Printer) -> Result<Vec<Executed>, CliError> {
    let mut names: Vec<&str> = args.with.iter().map(|model| model.name.as_str()).collect();
    names.sort_unstable();
    if let Some(twice) = names.windows(2).find(|pair| pair[0] == pair[1]) {
        return Err(CliError::usage(format!("--with names {} twice", twice[0])));
    }
    if args.limit == Some(0) {
        return Err(CliError::usage("--limit 0 leaves nothing to ask"));
    }
    let chosen = args.chosen();
    let selects = args.select != "all";
    if selects && !chosen.contains(&Prompt::Gsm) {
        return Err(CliError::usage(
            "--prompts leaves out gsm, whose answers decide which models are asked the others",
        )
        .help("add gsm (a finished run of it is not repeated), or say --select all"));
    }
    let engine = args.engine.settings()?;
    let (device, note) = Device::choose(&engine)?;
    // Before the first model is asked for hours: are all of them there?
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
            let Evaluated { store, run } = ask(args, &source, &engine, &mut model, *prompt, quiet, printer)?;
            executed.push(Executed { model: named.name.clone(), run: run.manifest.run.clone() });
            if selects && *prompt == Prompt::Gsm && chosen.len() > 1 {
                let verdict = selection(&named.name, &store, &run)?;
                if !quiet {
                    printer.message(&verdict.sentence);
                }
                if !verdict.selected {
                    break;
                }
            }
        }
    }
    Ok(executed)
}

/// A run of the study that was executed.
pub(super) struct Executed {
    /// The model's name in the study.
    pub(super) model: String,
    /// The run's name.
    pub(super) run: String,
}

/// Asks one model on one prompt; the model is opened once for all prompts.
fn ask(
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
        // An endpoint's runs are the study's too.
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

/// Whether a model is asked the other prompts, and why.
struct Verdict {
    selected: bool,
    sentence: String,
}

/// Decides from a model's answers to the GSM prompt.
fn selection(name: &str, store: &Store, run: &RunRecord) -> Result<Verdict, CliError> {
    let mut evaluation = Evaluation::new(name, Prompt::Gsm);
    for sample in store.samples(run, Filter::default()) {
        let place = |reason| CliError::new(Exit::Results, format!("{} cannot be analysed: {reason}", run.manifest.run));
        evaluation.add(&sample?).map_err(place)?;
    }
    Ok(verdict(evaluation))
}

fn verdict(evaluation: Evaluation) -> Verdict {
    let name = evaluation.model.clone();
    let analyses = analyse(vec![evaluation]);
    let selected = !selected(&analyses).is_empty();
    let fit = analyses.first().map(|analysis| &analysis.glmm1);
    let found = match fit.and_then(|fit| fit.variant) {
        Some(effect) => format!("log odds {:.2}, p {:.3}", effect.estimate, effect.p),
        None => format!("no estimate: {}", fit.and_then(|fit| fit.problem()).unwrap_or("no answers")),
    };
    let sentence = if selected {
        format!(
            "{name}: its accuracy falls significantly on the GSM prompt ({found}), so it is asked the other prompts"
        )
    } else {
        format!("{name}: no significant fall on the GSM prompt ({found}), so it is not asked the other prompts")
    };
    Verdict { selected, sentence }
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
        let falls = verdict(answers(3));
        assert!(falls.selected && falls.sentence.contains("falls significantly"), "{}", falls.sentence);
        let stays = verdict(answers(7));
        assert!(!stays.selected && stays.sentence.contains("no significant fall"), "{}", stays.sentence);
        // A significant rise is no fall, and no estimate is none.
        assert!(!verdict(answers(9)).selected);
        let nothing = verdict(answers(0));
        assert!(!nothing.selected && nothing.sentence.contains("no estimate: separation"), "{}", nothing.sentence);
        assert!(!verdict(Evaluation::new("empty", Prompt::Gsm)).selected);
    }
}
