//! `earnest reproduce nupa`.
use earnest_eval::model;
use std::path::PathBuf;

use clap::Args;

use super::compared::ComparedRuns;
use super::device::{self, MeasureArgs, MeasureOnArgs};
use crate::cli::error::CliError;
use crate::cli::figures::FigureArgs;
#[cfg(not(feature = "train"))]
use crate::cli::left_out;
use crate::cli::models::{HubArgs, locate, open};
use crate::cli::printer::Printer;
use crate::cli::values::Prompts;
use crate::cli::{Exit, catalogue};
use earnest_eval::prompt::{PromptError, Prompter};
use earnest_models::checkpoint::Checkpoint;
use earnest_papers::nupa::{
    EvaluatedRun, NupaComparison, Rate, ReferenceRow, TokenCounter, compare, figures, plan, render, render_plan,
};
use earnest_report::plot::Figure;
use earnest_results::{Host, Manifest, ModeRequest, Rows, StoredRun, Totals};
use earnest_tasks::suite::Item;
use earnest_tasks::suite::nupa::{Adapter, NupaOptions, NupaSuite, adapter as adapter_of};

const SUITE: &str = "nupa";

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  earnest reproduce nupa
  earnest reproduce nupa RUN --beside Llama-3.1-8B --figures figures
  earnest reproduce nupa --plan --model model.gguf --measure   (hours on this machine)
  earnest reproduce nupa --plan --model model.gguf --measure --compute int8
  earnest reproduce nupa --plan --model model.gguf --rate 900
  earnest reproduce nupa --section 3 --figures figures        (trained models: our own run beside Tables 12 to 18)
  earnest reproduce nupa --section 3 --experiment DIR     (those of `earnest train experiment ... --out DIR`)
  earnest reproduce nupa --section 3 --fine-tuned DIR --fine-tuned OTHER     (Table 18: folders of `earnest train lora --out`)
  earnest reproduce nupa --plan --model model.gguf RUN    (hours from what RUN measured)")]
pub struct NupaArgs {
    #[command(flatten)]
    pub compared: ComparedRuns,

    /// Row of the paper to compare with, whatever the runs' models are called
    #[arg(long, value_name = "NAME", conflicts_with = "plan")]
    pub beside: Option<String>,

    /// Print the published tables as well as the runs'; --json always includes them
    #[arg(long, conflicts_with_all = ["plan", "json"])]
    pub published: bool,

    /// Section of the paper: 3 compares trained models (Tables 12 to 18, Figures 4 and 9 to 18) instead of runs of the NUPA Test
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(3..=3), conflicts_with_all = ["plan", "runs", "beside"])]
    pub section: Option<u8>,

    /// Folder of an experiment, or its --summary file [default: our own experiment, which is part of the program]
    #[arg(long, value_name = "PATH", requires = "section")]
    pub experiment: Option<PathBuf>,

    /// Folder of a training of adapters (`earnest train lora --out`), for Table 18; several with several options [default, with our own
    /// experiment: our own trainings]
    #[arg(long, value_name = "DIR", requires = "section")]
    pub fine_tuned: Vec<PathBuf>,

    /// Print a plan of the runs to make instead: prompts, tokens, hours, commands
    #[arg(long, conflicts_with = "figures")]
    pub plan: bool,

    /// Model whose tokenizer counts the plan's tokens; the plan's commands then name it
    #[arg(long, value_name = "MODEL", requires = "plan")]
    pub model: Option<PathBuf>,

    #[command(flatten)]
    pub hub: HubArgs,

    /// Prompt format of that model: auto, chat or raw [default: auto]
    #[arg(long, value_name = "MODE", requires = "plan")]
    pub prompt: Option<Prompts>,

    /// Tokens per second, prompt and new ones together, for the plan's hours [default: measured in this model's newest stored run]
    #[arg(long, value_name = "N", requires = "plan", conflicts_with_all = ["runs", "measure"])]
    pub rate: Option<f64>,

    #[command(flatten)]
    pub measure: MeasureArgs,

    #[command(flatten)]
    pub on: MeasureOnArgs,
}

/// Prints the paper's tables beside the runs', or the plan of runs to make.
pub fn execute(args: &NupaArgs, printer: Printer) -> Result<Exit, CliError> {
    if args.plan {
        return show_plan(args, printer);
    }
    if args.section.is_some() {
        #[cfg(feature = "train")]
        return super::nupa_section_3::execute(args, printer);
        #[cfg(not(feature = "train"))]
        return Err(left_out::error("section 3 of the paper, on trained models,", "train"));
    }
    let reference = match &args.beside {
        None => ReferenceRow::default(),
        Some(name) => ReferenceRow::named(name).map_err(|error| CliError::usage(format!("--beside: {error}")))?,
    };
    let mut runs = Vec::new();
    for run in args.compared.shown(SUITE, printer)? {
        let mut ours = EvaluatedRun::new(run.manifest.clone()).map_err(catalogue::suite_error)?;
        run.walk(&mut |sample| {
            ours.add(&sample);
            Ok(())
        })?;
        runs.push(ours);
    }
    let comparison = compare(&runs, &reference);
    draw(&comparison, &args.compared.figures, printer)?;
    if args.compared.json {
        printer.json(&comparison)?;
    } else {
        printer.result(&render(&comparison, args.published, printer.width()))?;
    }
    Ok(Exit::Success)
}

/// Draws the figures of the runs, if asked to.
fn draw(comparison: &NupaComparison, args: &FigureArgs, printer: Printer) -> Result<(), CliError> {
    write_drawings(
        || comparison.runs.iter().flat_map(figures).collect(),
        "no run has the tasks of the figures",
        args,
        printer,
    )
}

/// Writes drawings into a folder, if asked to; each has the numbers of the paper's figures that it corresponds to.
pub(super) fn write_drawings(
    drawings: impl FnOnce() -> Vec<(Vec<u8>, Figure)>,
    why_none: &str,
    args: &FigureArgs,
    printer: Printer,
) -> Result<(), CliError> {
    let Some(folder) = &args.figures else { return Ok(()) };
    let drawings = drawings();
    if drawings.is_empty() {
        printer.warning(&format!("--figures: {why_none}, so nothing is drawn"));
        return Ok(());
    }
    let paths = args.write(folder, drawings.iter().map(|(_, figure)| figure))?;
    for ((numbers, _), paths) in drawings.iter().zip(paths) {
        let numbers: Vec<String> = numbers.iter().map(u8::to_string).collect();
        for path in paths {
            printer.remark(&format!("{}: figure {}", path.display(), numbers.join(" and ")));
        }
    }
    Ok(())
}

fn show_plan(args: &NupaArgs, printer: Printer) -> Result<Exit, CliError> {
    let needs_model = args.measure.measure || args.rate.is_some() || args.prompt.is_some();
    let plan = match args.measure.model(args.model.as_ref(), needs_model)? {
        None => {
            let rate = rate(args, None)?.map(|measured| measured.rate);
            plan(Adapter::Completion, None).map(|plan| plan.at_rate(rate))
        }
        Some(path) => {
            let prompts = args.prompt.clone().unwrap_or_default();
            if let Some(name) = prompts.names.first() {
                return Err(
                    CliError::usage(format!("{SUITE} has no prompt {name}")).help("--prompt takes auto, chat or raw")
                );
            }
            let mode = prompts.mode.unwrap_or_default();
            let chosen = locate(&path, &args.hub, args.measure.weights(), printer)?;
            let checkpoint = open(&chosen, printer)?;
            let mut options = format!("--model {}", device::shell_word(&path));
            // Counted before the measurement, which takes minutes: a template may fail.
            let counted = count(&checkpoint, mode)?;
            let rate = if args.measure.measure {
                let engine = args.on.engine()?;
                options.push_str(&device::weight_options(&args.measure.weights()));
                options.push_str(&device::engine_options(&engine));
                let prompter = Prompter::new(&checkpoint, mode)?;
                let adapter = adapter_of(prompter.mode());
                let suite = NupaSuite::new(NupaOptions { adapter, ..NupaOptions::default() });
                let suite = suite.map_err(catalogue::suite_error)?;
                Some(device::measured_rate(&checkpoint, &engine, &prompter, &suite, printer)?)
            } else {
                let found = rate(args, Some(&model::record(&chosen, &checkpoint).name))?;
                found.map(|measured| {
                    options.push_str(&measured.options);
                    measured.rate
                })
            };
            counted.map(|plan| plan.at_rate(rate).of_model(&options))
        }
    }
    .map_err(catalogue::suite_error)?;
    if args.compared.json {
        printer.json(&plan)?;
    } else {
        printer.result(&render_plan(&plan, printer.width()))?;
    }
    Ok(Exit::Success)
}

type Planned = Result<earnest_papers::nupa::NupaPlan, earnest_tasks::suite::nupa::NupaError>;

/// The plan with a checkpoint's token counts. Runs as published are raw, whatever the mode of the others.
fn count(checkpoint: &Checkpoint, mode: ModeRequest) -> Result<Planned, CliError> {
    let raw = Prompter::new(checkpoint, ModeRequest::Raw)?;
    let asked = Prompter::new(checkpoint, mode)?;
    let failed: std::cell::RefCell<Option<PromptError>> = std::cell::RefCell::default();
    let prompt = |item: &Item| {
        let prompter = if item.segments.raw.is_some() { &raw } else { &asked };
        prompter.render(&item.segments).map_or_else(
            |error| {
                failed.borrow_mut().get_or_insert(error);
                0
            },
            |rendered| rendered.ids.len(),
        )
    };
    let text = |text: &str| checkpoint.tokenizer.encode(text, false).map_or(0, |ids| ids.len());
    let adapter = adapter_of(asked.mode());
    let planned = plan(adapter, Some(&TokenCounter { prompt: &prompt, text: &text }));
    match failed.into_inner() {
        Some(error) => Err(error.into()),
        None => Ok(planned),
    }
}

/// The rate from `--rate`, or as measured in the newest of the named runs, else of this model's runs.
fn rate(args: &NupaArgs, model: Option<&str>) -> Result<Option<Measured>, CliError> {
    if let Some(tokens_per_second) = args.rate {
        if !(1e-3..=1e9).contains(&tokens_per_second) {
            return Err(CliError::usage(format!(
                "--rate {tokens_per_second:e} is out of range: 0.001 to 1e9 tokens per second"
            )));
        }
        let rate = Rate::together(tokens_per_second, "as stated".to_owned());
        return Ok(Some(Measured { rate, options: String::new() }));
    }
    let mut runs: Vec<StoredRun> = args.compared.open(SUITE)?;
    let named = !args.compared.runs.is_empty();
    if let (false, Some(model)) = (named, model) {
        let here = Host::probe();
        // Rates of other machines count only for runs named on the command line.
        runs.retain(|run| {
            let Manifest { model: of, host, .. } = &run.manifest;
            of.name == model && host.is_as_fast_as(&here)
        });
    }
    runs.sort_by(|one, other| one.manifest.started.cmp(&other.manifest.started));
    let mut unfinished = None;
    for run in runs.iter().rev().filter(|run| run.manifest.generation_s > 0.0) {
        let mut totals = Totals::default();
        run.walk(&mut |sample| {
            totals.add(&sample);
            Ok(())
        })?;
        match Rate::measured(&run.manifest, &totals) {
            Some(rate) => return Ok(Some(Measured { rate, options: weight_options(&run.manifest) })),
            None => unfinished = unfinished.or(Some(&run.manifest.run)),
        }
    }
    match (runs.first().filter(|_| named), unfinished) {
        (Some(_), Some(run)) => Err(CliError::usage(format!(
            "{run} has no measured rate: none of its samples is finished"
        ))
        .help(format!("continue it (`earnest resume {run}`), or use --measure, or --rate N in tokens per second"))),
        (Some(run), None) => {
            let run = &run.manifest.run;
            Err(CliError::usage(format!(
                "{run} has no measured rate: its completions are not from an engine of earnest"
            ))
            .help("add --rate N in tokens per second"))
        }
        (None, _) => Ok(None),
    }
}

/// A rate, and the options of `earnest run` that it applies to.
struct Measured {
    rate: Rate,
    options: String,
}

/// Options for a stored run's changes to the weights.
fn weight_options(manifest: &Manifest) -> String {
    manifest.settings.weights.as_ref().map(device::weight_options).unwrap_or_default()
}
