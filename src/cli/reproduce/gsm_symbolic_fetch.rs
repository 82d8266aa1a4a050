//! `earnest reproduce gsm-symbolic --run --fetch`: what the study lacks, from the hub.
use super::gsm_symbolic_args::GsmSymbolicArgs;
use super::gsm_symbolic_runs::wanted;
use crate::cli::error::CliError;
use crate::cli::printer::Printer;
use crate::cli::{data, models};
use earnest_eval::model::LocatedModel;
use earnest_eval::study::ModelReference;
use earnest_models::checkpoint::WeightFormat;
use earnest_tasks::suite::gsm_symbolic::Prompt;
use earnest_tasks::suite::registry::OptionValues;

/// Location of the study's questions.
pub(super) enum Questions {
    /// They are here, or made here.
    Here,
    /// The published ones, which are not in the cache.
    Missing,
}

/// Looks for the questions without opening a connection.
pub(super) fn questions(args: &GsmSymbolicArgs) -> Questions {
    let given = &args.items.0;
    let published = args.suite == "gsm-symbolic" && args.fresh.is_none() && !given.has("data");
    // Without the other options, whose mistakes are said where the study is planned.
    let mut alone = OptionValues::new(args.seed.seed, Vec::new());
    if let Ok(Some(revision)) = given.text("revision") {
        alone = alone.with("revision", revision);
    }
    match published && args.choose(Prompt::Gsm, &alone).is_err() {
        true => Questions::Missing,
        false => Questions::Here,
    }
}

/// Fetches the questions if they are missing, then every model that is. A model that cannot be fetched keeps no other from it: it is
/// named, and named again as left out by the study.
///
/// # Errors
/// Questions that cannot be fetched; a list of models that cannot be read.
pub(super) fn execute(args: &GsmSymbolicArgs, printer: Printer) -> Result<(), CliError> {
    if let Questions::Missing = questions(args) {
        data::bring_gsm_symbolic(args.items.0.text("revision")?, printer)?;
    }
    let hub = args.hub();
    for definition in wanted(args)? {
        let ModelReference::Native { model, weights } = &definition.reference else { continue };
        if is_here(args, model, *weights) {
            continue;
        }
        if let Err(error) = models::bring(&model.display().to_string(), &hub, printer) {
            printer.warning(&format!("{} was not fetched: {}", definition.name, error.message));
            if let Some(help) = &error.help {
                printer.remark(&format!("help: {help}"));
            }
        }
    }
    Ok(())
}

fn is_here(args: &GsmSymbolicArgs, model: &std::path::Path, weights: WeightFormat) -> bool {
    LocatedModel::find(model, &args.hub().settings(), weights).is_ok()
}
