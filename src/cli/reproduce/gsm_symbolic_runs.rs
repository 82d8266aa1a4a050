//! `earnest reproduce gsm-symbolic --run`: the matrix of models and prompts. Runs are named after their settings, so the same
//! command continues where an earlier one was stopped, and finished runs are read, not repeated.
use std::path::PathBuf;

use super::gsm_symbolic::{GsmSymbolicArgs, collect};
use crate::checkpoint::WeightFormat;
use crate::cli::args::{EosArg, GenerationArgs, MetricArg, SessionArgs, TableArgs};
use crate::cli::device::Device;
use crate::cli::engine_choice::{PatienceArgs, Target, enable_thinking};
use crate::cli::error::CliError;
use crate::cli::events::Reporters;
use crate::cli::printer::Printer;
use crate::cli::session::{self, Decoding, Job, OpenModel, Questions, Which};
use crate::cli::values::Prompts;
use crate::cli::{catalogue, model, settings};
use crate::reproduce::gsm_symbolic::{Study, selected};
use crate::run::Plan;
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

/// Runs what is missing: phase 1 on the GSM prompt, phase 2 with the models it selects. A model is loaded at most once a
/// phase, and not at all where its runs are finished.
pub(super) fn execute(args: &GsmSymbolicArgs, quiet: bool, printer: Printer) -> Result<(), CliError> {
    let mut names: Vec<&str> = args.with.iter().map(|model| model.name.as_str()).collect();
    names.sort_unstable();
    if let Some(twice) = names.windows(2).find(|pair| pair[0] == pair[1]) {
        return Err(CliError::usage(format!("--with names {} twice", twice[0])));
    }
    if args.limit == Some(0) {
        return Err(CliError::usage("--limit 0 leaves nothing to ask"));
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
    let chosen = args.chosen();
    let (first, others): (Vec<Prompt>, Vec<Prompt>) = chosen.into_iter().partition(|prompt| *prompt == Prompt::Gsm);
    let all: Vec<&StudyModel> = args.with.iter().collect();
    phase(args, &session, &all, &first, quiet, printer)?;
    if others.is_empty() {
        return Ok(());
    }
    let wanted = if args.select == "all" {
        all
    } else {
        let found = collect(args, printer)?;
        let analyses = Study::new(found.used, found.evaluations, None).analyses;
        let names = selected(&analyses);
        if !quiet {
            let list = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
            printer.message(&format!("models with a significant fall on the GSM prompt: {list}"));
        }
        all.into_iter().filter(|model| names.contains(&model.name)).collect()
    };
    phase(args, &session, &wanted, &others, quiet, printer)
}

fn phase(
    args: &GsmSymbolicArgs,
    session: &SessionArgs,
    models: &[&StudyModel],
    prompts: &[Prompt],
    quiet: bool,
    printer: Printer,
) -> Result<(), CliError> {
    for named in models.iter().filter(|_| !prompts.is_empty()) {
        let chosen = model::choose(&named.path, &args.hub, WeightFormat::default())?;
        let (device, note) = Device::of(&session.engine)?;
        let target = Target::Native(chosen, device, note);
        let thinking = enable_thinking(args.generation.thinking);
        let mut open = OpenModel::open(&target, thinking, &session.patience)?;
        for warning in open.warnings() {
            printer.warning(&warning);
        }
        for prompt in prompts {
            if !quiet {
                printer.message(&format!("{} on {prompt}", named.name));
            }
            let prompts = Prompts { mode: None, names: vec![prompt.to_string()] };
            let choice = catalogue::choose(&args.suite, &args.items, &prompts)?;
            let job = Job {
                prompt: choice.default_mode(),
                questions: Questions::Chosen(choice),
                plan: Plan { limit: args.limit, samples: 1, shard: None },
                target: target.clone(),
                thinking,
                thinking_text: args.generation.thinking_text.into(),
                decoding: Decoding::Asked { args: studys(&args.generation), seed: args.items.seed },
            };
            let reporters = Reporters::new(printer, quiet, None)?;
            session::perform(&job, &mut open, &Which::Gather, session, quiet, reporters, printer)?;
        }
    }
    Ok(())
}

/// Generation as in the study where nothing else is asked: the tokenizer's EOS alone ends an answer.
fn studys(args: &GenerationArgs) -> GenerationArgs {
    GenerationArgs { eos: Some(args.eos.unwrap_or(EosArg::Tokenizer)), ..args.clone() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn models_are_names_and_paths() {
        let model: StudyModel = "phi-2=/models/a=b".parse().unwrap();
        assert_eq!((model.name.as_str(), model.path), ("phi-2", PathBuf::from("/models/a=b")));
        for wrong in ["phi-2", "=path", "phi-2=", ""] {
            assert!(wrong.parse::<StudyModel>().is_err(), "{wrong}");
        }
    }
}
