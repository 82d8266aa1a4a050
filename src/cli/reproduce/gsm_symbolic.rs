//! `earnest reproduce gsm-symbolic`.
use earnest_eval::model;
use earnest_eval::model::LocatedModel;
use std::path::Path;

use super::device::MeasureArgs;
use super::gsm_symbolic_args::{GsmSymbolicArgs, SUITES, WhichTables};
use super::gsm_symbolic_collected::collect;
use super::{device, gsm_symbolic_runs};
use crate::cli::error::CliError;
use crate::cli::models::{locate, open};
use crate::cli::output::write_file;
use crate::cli::pdf::Browser;
use crate::cli::printer::Printer;
use crate::cli::{Exit, catalogue};
use earnest_eval::prompt::Prompter;
use earnest_models::checkpoint::WeightFormat;
use earnest_models::memory::human_bytes;
use earnest_papers::gsm_symbolic::{
    Analysis, Assumptions, PromptSize, Study, TableModels, drawings, page, plan, render_plan, render_summary,
    render_tables,
};
use earnest_results::{Mode, ModeRequest, RowsError};
use earnest_tasks::suite::gsm_symbolic::{CHOOSING, Prompt};

/// Number of questions of the study.
const QUESTIONS: usize = 5_100;

/// Prints the study beside stored runs, after running it with `--run`.
pub fn execute(args: &GsmSymbolicArgs, printer: Printer) -> Result<Exit, CliError> {
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
        true => match gsm_symbolic_runs::execute(args, printer)? {
            Some(ended) => (Some(ended.runs), ended.left_out),
            None => return Ok(Exit::Success),
        },
        false => (None, 0),
    };
    if let Some(shard) = args.shard {
        printer.remark(&format!(
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
        printer.remark(&format!("{}: {} drawings", folder.display(), drawn.len()));
    }
    if let Some(output) = &args.output {
        let html = page(&study)?;
        let bytes = match &browser {
            Some(browser) => browser.print(&html)?,
            None => html.into_bytes(),
        };
        write_file(output, |out| {
            out.write_all(&bytes).map_err(|source| RowsError::Write { path: output.clone(), source })
        })?;
        printer.remark(&format!("{}: {}", output.display(), human_bytes(bytes.len() as u64)));
    }
    if args.compared.json {
        printer.json(&study)?;
    } else {
        let width = printer.width();
        printer.result(&match args.tables {
            None => render_summary(&study, width),
            Some(WhichTables::Run) => render_tables(&study, TableModels::Ours, width),
            Some(WhichTables::All) => render_tables(&study, TableModels::All, width),
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
        printer.remark(&format!("note: {} on {} has no odds ratio: {why}", analysis.model, analysis.prompt));
    }
    if !unnamed.is_empty() {
        printer.remark("everything else is shown; --prompts leaves prompts out, RUN names the runs to use");
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
    let lengths: Vec<usize> = suite.items.iter().map(|item| item.segments.question.len()).collect();
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
    for item in suite.items.iter() {
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
