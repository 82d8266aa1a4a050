//! `earnest models`: the list of models and their cache. Only `fetch`, `resolve` and `--remote` open connections.

mod args;
mod estimate;
mod fetch;
mod list;
mod pin;
mod quant_check;
mod remove;
mod resolve;
mod show;
mod verify;

pub use args::{ComputeArg, HubArgs, ModelsArgs, WeightArgs};
pub(super) use fetch::{bring, described, download};
pub(super) use list::of_paper;

use std::path::Path;

use earnest_eval::model::{self, LocatedModel};
use earnest_models::checkpoint::{Checkpoint, ElementType, WeightFormat};
use earnest_models::hub::Entry;

use super::Exit;
use super::error::CliError;
use super::printer::Printer;
use args::ModelsCommand;

/// `1 file`, `5 files`.
fn files(count: usize) -> String {
    format!("{count} file{}", if count == 1 { "" } else { "s" })
}

/// Bytes to fetch for a model of the list: its weights in 16 bits, as the hub has them; none if its size is not known.
pub(super) fn download_bytes(entry: &Entry) -> Option<u64> {
    estimate::weights(entry, ElementType::Bf16)
}

/// Locates a model that a command loads, and says which commit it took where the reference names none.
pub fn locate(model: &Path, hub: &HubArgs, weights: WeightFormat, printer: Printer) -> Result<LocatedModel, CliError> {
    let located = LocatedModel::find(model, &hub.settings(), weights)?;
    if let Some(note) = &located.note {
        printer.warning(note);
    }
    Ok(located)
}

/// Opens a model that a command loads, and says how its texts are split where its file does not.
pub fn open(located: &LocatedModel, printer: Printer) -> Result<Checkpoint, CliError> {
    let checkpoint = model::open(located)?;
    if let Some(supplied) = &checkpoint.pre_tokenizer {
        printer.warning(&supplied.note);
    }
    Ok(checkpoint)
}

/// Runs the subcommand.
pub fn execute(args: &ModelsArgs, quiet: bool, printer: Printer) -> Result<Exit, CliError> {
    match &args.command {
        ModelsCommand::List(args) => list::execute(args, printer),
        ModelsCommand::Show(args) => show::execute(args, printer),
        ModelsCommand::Fetch(args) => fetch::execute(args, quiet, printer),
        ModelsCommand::Verify(args) => verify::execute(args, quiet, printer),
        ModelsCommand::Resolve(args) => resolve::execute(args, quiet, printer),
        ModelsCommand::Use(args) => pin::execute(args, quiet, printer),
        ModelsCommand::Remove(args) => remove::execute(args, printer),
        ModelsCommand::QuantCheck(args) => quant_check::execute(args, quiet, printer),
    }
}
