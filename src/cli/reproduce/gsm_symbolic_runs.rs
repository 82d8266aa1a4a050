//! `earnest reproduce gsm-symbolic --run`: the matrix of models and prompts. Runs are named after their settings, so the same
//! command continues where an earlier one was stopped, and finished runs are read, not repeated.
use std::path::PathBuf;

use super::gsm_symbolic::GsmSymbolicArgs;
use crate::checkpoint::WeightFormat;
use crate::cli::args::{EosArg, GenerationArgs, MetricArg, SessionArgs, TableArgs};
use crate::cli::device::Device;
use crate::cli::engine_choice::{PatienceArgs, Target, enable_thinking};
use crate::cli::error::CliError;
use crate::cli::events::Reporters;
use crate::cli::printer::Printer;
use crate::cli::session::{self, Decoding, Job, OpenModel, Questions, Which};
use crate::cli::values::Prompts;
use crate::cli::{Exit, catalogue, model, settings};
use crate::reproduce::gsm_symbolic::{Evaluation, analyse, selected};
use crate::run::Plan;
use crate::run::store::{Filter, RunRecord, Store};
use crate::suite::gsm_symbolic::Prompt;

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
    let session = SessionArgs {
        engine: args.engine.clone(),
        patience: PatienceArgs::default(),
        results: args.compared.results.clone(),
        events: None,
        fail_on_error: None,
        table: TableArgs { metric: MetricArg::ExactMatch },
        json: false,
    };
    settings::check_session(&session)?;
    let (device, note) = Device::of(&session.engine)?;
    // Before the first model is asked for hours: are all of them there?
    let targets = args
        .with
        .iter()
        .map(|named| {
            let chosen = model::choose(&named.path, &args.hub, WeightFormat::default())?;
            Ok((named, Target::Native(chosen, device.clone(), note.clone())))
        })
        .collect::<Result<Vec<_>, CliError>>()?;
    let mut executed = Vec::new();
    for (named, target) in targets {
        let thinking = enable_thinking(args.generation.thinking);
        let mut open = OpenModel::open(&target, thinking, &session.patience)?;
        for warning in open.warnings() {
            printer.warning(&warning);
        }
        for prompt in &chosen {
            if !quiet {
                printer.message(&format!("{} on {prompt}", named.name));
            }
            let (store, run) = ask(args, &session, &target, &mut open, *prompt, quiet, printer)?;
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

/// One model on one prompt.
fn ask(
    args: &GsmSymbolicArgs,
    session: &SessionArgs,
    target: &Target,
    open: &mut OpenModel,
    prompt: Prompt,
    quiet: bool,
    printer: Printer,
) -> Result<(Store, RunRecord), CliError> {
    let prompts = Prompts { mode: None, names: vec![prompt.to_string()] };
    let mut items = args.items.clone();
    // An endpoint's runs are the study's too.
    items.profile.get_or_insert_with(|| "study".to_owned());
    let choice = catalogue::choose(&args.suite, &items, &prompts)?;
    let job = Job {
        prompt: choice.default_mode(),
        questions: Questions::Chosen(choice),
        plan: Plan { limit: args.limit, samples: 1, shard: None },
        target: target.clone(),
        thinking: enable_thinking(args.generation.thinking),
        thinking_text: args.generation.thinking_text.into(),
        decoding: Decoding::Asked { args: studys(&args.generation), seed: args.items.seed },
    };
    let reporters = Reporters::new(printer, quiet, None)?;
    session::perform(&job, open, &Which::Gather, session, quiet, reporters, printer)
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

/// Generation as in the study where nothing else is asked: the tokenizer's EOS alone ends an answer.
fn studys(args: &GenerationArgs) -> GenerationArgs {
    GenerationArgs { eos: Some(args.eos.unwrap_or(EosArg::Tokenizer)), ..args.clone() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reproduce::gsm_symbolic::{FailureClass, Observation};

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
                    failure: (!correct).then_some(FailureClass::Wrong),
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
