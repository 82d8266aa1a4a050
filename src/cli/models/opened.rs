//! Models that a command locates and opens, with what is said of them.
use std::path::Path;

use earnest_eval::model;
use earnest_eval::model::LocatedModel;
use earnest_models::checkpoint::{Checkpoint, ElementType, WeightFormat};
use earnest_models::hub::Entry;

use super::args::HubArgs;
use super::estimate;
use crate::cli::error::CliError;
use crate::cli::printer::Printer;

/// `1 file`, `5 files`.
pub(super) fn files(count: usize) -> String {
    format!("{count} file{}", if count == 1 { "" } else { "s" })
}

/// Bytes to fetch for a model of the list: its weights in 16 bits, as the hub has them; none if its size is not known.
pub fn download_bytes(entry: &Entry) -> Option<u64> {
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
