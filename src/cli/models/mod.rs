//! `earnest models`: the list of models and their cache. Only `fetch`, `resolve` and `--remote` open connections.

mod args;
mod estimate;
mod fetch;
mod list;
mod opened;
mod pin;
mod quant_check;
mod remove;
mod resolve;
mod show;
mod verify;

pub use args::{ComputeArg, HubArgs, ModelsArgs, WeightArgs};
pub(super) use fetch::{bring, described, download};
pub(super) use list::of_paper;
pub(super) use opened::download_bytes;
pub use opened::{locate, open};

use super::Exit;
use super::error::CliError;
use super::printer::Printer;
use args::ModelsCommand;

/// Runs the subcommand.
pub fn execute(args: &ModelsArgs, printer: Printer) -> Result<Exit, CliError> {
    match &args.command {
        ModelsCommand::List(args) => list::execute(args, printer),
        ModelsCommand::Show(args) => show::execute(args, printer),
        ModelsCommand::Fetch(args) => fetch::execute(args, printer),
        ModelsCommand::Verify(args) => verify::execute(args, printer),
        ModelsCommand::Resolve(args) => resolve::execute(args, printer),
        ModelsCommand::Use(args) => pin::execute(args, printer),
        ModelsCommand::Remove(args) => remove::execute(args, printer),
        ModelsCommand::QuantCheck(args) => quant_check::execute(args, printer),
    }
}
