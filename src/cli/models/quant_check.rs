//! `earnest models quant-check`.
use earnest_eval::model;
use earnest_eval::model::{LoadedEngine, LocatedModel};
use std::fmt::Write;

use serde::Serialize;

use super::args::QuantCheckArgs;
use super::opened::{locate, open};
use crate::cli::error::CliError;
use crate::cli::printer::Printer;
use crate::cli::{Exit, catalogue};
use earnest_engine::bench::{Agreement, BenchError, Prompt, agreement, answer_all};
use earnest_eval::prompt::Prompter;
use earnest_models::checkpoint::{WeightFormat, WeightRecord};

/// The JSON document.
#[derive(Debug, Serialize)]
struct Document {
    model: String,
    suite: String,
    prompts: usize,
    max_tokens: usize,
    /// Format of the files: `safetensors`, or `gguf` and its quantisation.
    base: String,
    /// True if the files' weights are quantised already; the loss is then on top of that.
    base_quantised: bool,
    weights: WeightRecord,
    #[serde(flatten)]
    agreement: Agreement,
}

/// Measures the models in turn, with one in memory at a time.
pub fn execute(args: &QuantCheckArgs, printer: Printer) -> Result<Exit, CliError> {
    let format = WeightFormat::from(args.weights);
    if format.is_plain() {
        return Err(CliError::usage("nothing to compare: add --quant, --dtype, --compute int8 or --compute bf16"));
    }
    let prompts = args.prompt.clone().unwrap_or_default();
    let chosen = catalogue::choose(args.suite.name, &args.suite.options, args.seed.seed, &prompts)?;
    let plain = locate(&args.model, &args.hub, WeightFormat::default(), printer)?;
    let changed = LocatedModel::find(&args.model, &args.hub.settings(), format)?;
    let checkpoint = open(&plain, printer)?;
    let prompter = Prompter::new(&checkpoint, prompts.mode.unwrap_or_else(|| chosen.default_mode()))?;
    let suite = chosen.suite(catalogue::Channel::local(prompter.mode()))?;
    let max_tokens = args.max_tokens as usize;
    let mut asked = Vec::new();
    for item in suite.items.iter().take(args.limit as usize) {
        let ids = prompter.render(&item.segments)?.ids;
        asked.push(Prompt {
            ids,
            stop_strings: item.stop_strings,
            keep_stop: item.keep_stop,
            stop_ids: checkpoint.generation.eos_ids.clone(),
            max_tokens,
        });
    }
    let mut answers = Vec::new();
    let mut weights = None;
    let base = model::record(&plain, &checkpoint).format;
    let base_quantised = checkpoint.is_quantised();
    if base_quantised && !printer.is_quiet() {
        printer.warning(&format!(
            "the files' weights are quantised already ({base}): the comparison is with these, not with the original weights"
        ));
    }
    let settings = args.engine.settings()?;
    for chosen in [plain, changed] {
        let checkpoint = model::open(&chosen)?;
        let name = model::record(&chosen, &checkpoint).name;
        printer.message(&format!("evaluating {name} on {} prompts", asked.len()));
        let LoadedEngine { mut engine, notes, .. } = model::load(&checkpoint, &settings)?;
        notes.iter().for_each(|note| printer.warning(&note.to_string()));
        answers.push(answer_all(engine.as_mut(), &asked).map_err(failure)?);
        weights = checkpoint.weight_record();
    }
    let (Some(changed), Some(plain), Some(weights)) = (answers.pop(), answers.pop(), weights) else {
        return Err(CliError::new(Exit::Engine, "the engine returned no answers"));
    };
    let document = Document {
        model: args.model.display().to_string(),
        suite: args.suite.name.to_owned(),
        prompts: asked.len(),
        max_tokens,
        base,
        base_quantised,
        weights,
        agreement: agreement(&plain, &changed),
    };
    if args.json {
        printer.json(&document)?;
    } else {
        printer.result(&screen(&document, format))?;
    }
    Ok(Exit::Success)
}

fn failure(error: BenchError) -> CliError {
    match error {
        BenchError::Rejected { .. } => CliError::new(Exit::Usage, error.to_string())
            .help("choose a smaller --max-tokens, or items that fit the context"),
        BenchError::Failed(..)
        | BenchError::Lost(_)
        | BenchError::NeverTogether { .. }
        | BenchError::InMode { .. }
        | BenchError::Stopped
        | BenchError::Engine(_) => CliError::new(Exit::Engine, error.to_string()),
    }
}

fn screen(d: &Document, format: WeightFormat) -> String {
    let a = &d.agreement;
    let mut text = format!("{} as stored and with {format}; {} prompts of {}\n\n", d.model, d.prompts, d.suite);
    let share = |part: u64, of: u64| 100.0 * part as f64 / of.max(1) as f64;
    let write = |out: &mut String| -> std::fmt::Result {
        if d.base_quantised {
            writeln!(out, "the stored weights are quantised already: {}\n", d.base)?;
        }
        writeln!(
            out,
            "perplexity  {:.4} and {:.4} ({:+.2} %) over {} prompt tokens",
            a.perplexity,
            a.perplexity_changed,
            100.0 * (a.perplexity_changed / a.perplexity - 1.0),
            a.prompt_tokens
        )?;
        writeln!(
            out,
            "same text   {} of {} completions ({:.1} %)",
            a.identical,
            d.prompts,
            share(a.identical, d.prompts as u64)
        )?;
        writeln!(
            out,
            "agreement   {} of {} greedy tokens before the first difference ({:.1} %)",
            a.tokens_agreeing,
            a.tokens,
            share(a.tokens_agreeing, a.tokens)
        )?;
        let w = &d.weights;
        if w.format.quant.is_some() {
            writeln!(out, "\nquantised   {:.1} % of the weights", share(w.quantised_weights, w.weights))?;
            writeln!(out, "unchanged   {}", w.unquantised.join(", "))?;
            if !w.substituted.is_empty() {
                writeln!(out, "fallback    {} (no block of the scheme divides the width)", w.substituted.join(", "))?;
            }
        }
        Ok(())
    };
    write(&mut text).expect("writing to a String cannot fail");
    text
}
