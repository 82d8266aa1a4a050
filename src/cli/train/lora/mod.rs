//! `earnest train lora`.
mod args;

use std::path::Path;
use std::time::Instant;

use serde::Serialize;

use super::merge::merged_line;
use super::next::{Learnt, next};
use super::progress::{Progress, overall, table};
use super::threads::{choose_threads, warn_of_warm_up};
use crate::cli::Exit;
use crate::cli::error::CliError;
use crate::cli::interrupt::stop_on_signal;
use crate::cli::printer::Printer;
use earnest_eval::model::as_model;
use earnest_models::hub::HubSettings;
use earnest_train::{
    AdapterFolder, LoraData, LoraSettings, LoraTrainer, PromptForm, TrainError, TrainEvent, TrainOutcome, Validation,
    lock_folder, merge,
};

pub use args::LoraArgs;

/// The JSON document.
#[derive(Serialize)]
struct Outcome<'a> {
    folder: &'a Path,
    merged: Option<&'a Path>,
    parameters: usize,
    settings: &'a LoraSettings,
    steps: u64,
    seconds: f64,
    before: Option<&'a Validation>,
    /// True if some validation had more exact answers than the checkpoint as loaded.
    better_than_before: Option<bool>,
    validation: Option<&'a Validation>,
}

/// Trains.
pub fn execute(args: &LoraArgs, printer: Printer) -> Result<Exit, CliError> {
    if let Some(folder) = args.merge.as_deref() {
        super::merge::check_folder(folder)?;
    }
    let mut settings = args.settings(printer)?;
    let _lock = lock_folder(&args.out)?;
    if args.resume {
        // Another process may have finished it before the lock was acquired.
        settings = args.settings(printer)?;
    }
    // The base is read later; LoRA is for models that people use, which are large in the sense of this choice.
    choose_threads(settings.parts, usize::MAX);
    printer.message("loading the weights");
    let mut trainer = LoraTrainer::open(settings.clone(), &args.out)?;
    let from = match trainer.steps_done() {
        0 => String::new(),
        done => format!(", continuing after step {done}"),
    };
    let (parameters, architecture) = (trainer.parameter_count(), &trainer.base().checkpoint().config.architecture);
    printer.message(&format!(
        "{architecture}, {parameters} adapter parameters, {} steps of {} examples{from}",
        settings.steps, settings.batch
    ));
    warn_of_warm_up(printer, settings.schedule());
    let stop = stop_on_signal()?;
    let started = Instant::now();
    let mut progress = Progress::new(printer, settings.steps);
    let ended = trainer.run(&stop, &mut |event| progress.event(event))?;
    let steps = trainer.steps_done();
    if ended == TrainOutcome::Stopped {
        let message = format!("interrupted after step {steps} of {}; the state is saved", settings.steps);
        let help = format!("`earnest train lora --out {} --resume` continues", args.out.display());
        return Err(CliError::new(Exit::Interrupted, message).help(help));
    }
    // The log also has the validations of earlier sessions.
    let validations: Vec<Validation> = earnest_train::experiment::events(&args.out)?
        .into_iter()
        .filter_map(|event| if let TrainEvent::Validated(found) = event { Some(found) } else { None })
        .collect();
    let before = validations.iter().find(|found| found.step == 0);
    let better = before.map(|before| validations.iter().any(|found| found.exact() > before.exact()));
    let mut merged_text = String::new();
    if let Some(folder) = &args.merge {
        let adapters = AdapterFolder::open(&args.out)?;
        let merged = merge(trainer.base(), Some(&adapters), folder, args.store)?;
        merged_text = merged_line(&merged, folder);
    }
    if args.json {
        printer.json(&Outcome {
            folder: &args.out,
            merged: args.merge.as_deref(),
            parameters: trainer.parameter_count(),
            settings: &settings,
            steps,
            seconds: started.elapsed().as_secs_f64(),
            before,
            better_than_before: better,
            validation: progress.last(),
        })?;
        return Ok(Exit::Success);
    }
    printer.result(&text(args, &settings, before, progress.last(), better, &merged_text)?)?;
    Ok(Exit::Success)
}

fn text(
    args: &LoraArgs,
    settings: &LoraSettings,
    before: Option<&Validation>,
    last: Option<&Validation>,
    better: Option<bool>,
    merged: &str,
) -> Result<String, CliError> {
    let mut text = last.map(table).unwrap_or_default();
    for (when, validation) in [("before", before), ("after", last)] {
        if let Some(line) = validation.and_then(overall) {
            text.push_str(&format!("{when}: {line}\n"));
        }
    }
    text.push_str(&format!("\nThe adapters with the best validation are in {}.\n", args.out.display()));
    if better == Some(false) && before.is_some_and(|before| !before.cells.is_empty()) {
        text.push_str("No validation had more exact answers than the checkpoint as loaded: by this measure the adapters are no gain.\n");
    }
    text.push_str(merged);
    let model = settings.base.model.as_str();
    match &args.merge {
        None => text.push_str(&format!(
            "Next: earnest train merge --model {model} --adapter {} --out DIR\n",
            args.out.display()
        )),
        Some(folder) => {
            let prompt = match settings.prompt {
                PromptForm::Raw => "raw",
                PromptForm::Chat => "chat",
            };
            let style = match &settings.data {
                LoraData::Questions { rule_following: true, .. } => " --style rule-following",
                _ => "",
            };
            let options = format!(" --prompt {prompt}{style}");
            match &settings.data {
                LoraData::Questions { tasks, lengths, beyond, format, .. } => {
                    let tasks = tasks.iter().map(|task| task.parse()).collect::<Result<_, TrainError>>()?;
                    let lengths = lengths.iter().chain(beyond).copied().collect();
                    let learnt = Learnt { tasks, lengths, format };
                    text.push_str(&next(&as_model(folder, &HubSettings::default()), &learnt, &options));
                }
                LoraData::Pairs { .. } => {
                    let model = as_model(folder, &HubSettings::default());
                    text.push_str(&format!("Next: earnest run nupa --model {model}{options}\n"));
                }
            }
        }
    }
    Ok(text)
}
