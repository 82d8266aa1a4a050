//! `earnest train merge`.
use std::path::{Path, PathBuf};

use clap::Args;
use serde::Serialize;

use super::shared_args::STORED;
use crate::cli::Exit;
use crate::cli::error::CliError;
use crate::cli::models::{HubArgs, locate};
use crate::cli::printer::Printer;
use crate::cli::values::one_of;
use earnest_models::checkpoint::WeightFormat;
use earnest_train::{AdapterFolder, Base, Merged, StoredType, merge};

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  earnest train merge --model SmolLM2.gguf --adapter tuned --out tuned-merged
  earnest train merge --model base-folder --adapter adapter-of-peft --out merged --store bf16
  earnest train merge --model SmolLM2.gguf --out smollm2-folder      converts a GGUF file to a Hugging Face folder

Adapters of `earnest train lora` fit only the base they were trained on, and bring their retrofits (no positions, single \
digits) with them. Adapters of PEFT must be plain LoRA; other settings that change the computation are errors.")]
pub struct MergeArgs {
    /// Model: a name from `earnest models list`, org/repo@<40-digit commit>, a Hugging Face folder or a GGUF file
    #[arg(long, value_name = "MODEL", env = "EARNEST_MODEL", hide_env_values = true)]
    pub model: PathBuf,

    #[command(flatten)]
    pub hub: HubArgs,

    /// Folder of the adapters [default: none, the model is only converted]
    #[arg(long, value_name = "DIR")]
    pub adapter: Option<PathBuf>,

    /// Folder to write
    #[arg(long, short, value_name = "DIR")]
    pub out: PathBuf,

    /// Element type of the weights
    #[arg(long, value_name = "TYPE", default_value = "f32", value_parser = one_of(STORED))]
    pub store: StoredType,

    /// Print one JSON document
    #[arg(long)]
    pub json: bool,
}

/// The JSON document.
#[derive(Serialize)]
struct Outcome<'a> {
    folder: &'a Path,
    architecture: &'a str,
    adapted: usize,
    bytes: u64,
}

/// Merges.
pub fn execute(args: &MergeArgs, printer: Printer) -> Result<Exit, CliError> {
    check_folder(&args.out)?;
    let adapters = args.adapter.as_deref().map(AdapterFolder::open).transpose()?;
    let retrofit = adapters.as_ref().and_then(AdapterFolder::settings).map(|settings| settings.retrofit);
    let path = locate(&args.model, &args.hub, WeightFormat::default(), printer)?.path().to_owned();
    let base = Base::open_allowing(&path, &args.hub.allow_config, retrofit.unwrap_or_default())?;
    printer.message(&format!("writing {} parameters", base.checkpoint().config.parameter_count()));
    let merged = merge(&base, adapters.as_ref(), &args.out, args.store)?;
    if args.json {
        let Merged { architecture, adapted, bytes } = &merged;
        printer.json(&Outcome { folder: &args.out, architecture, adapted: *adapted, bytes: *bytes })?;
        return Ok(Exit::Success);
    }
    let next = format!("Next: earnest run nupa --model {}\n", args.out.display());
    printer.result(&format!("{}{next}", merged_line(&merged, &args.out)))?;
    Ok(Exit::Success)
}

/// Checks that a folder is empty or does not exist.
pub fn check_folder(folder: &Path) -> Result<(), CliError> {
    match std::fs::read_dir(folder).map(|mut entries| entries.next().is_some()) {
        Ok(true) => {
            Err(CliError::new(Exit::Results, format!("{} is not empty", folder.display())).help("name a new folder"))
        }
        _ => Ok(()),
    }
}

/// One line about the written checkpoint.
pub fn merged_line(merged: &Merged, folder: &Path) -> String {
    let adapted = match merged.adapted {
        0 => "no adapters".to_owned(),
        count => format!("adapters merged into {count} matrices"),
    };
    format!("{} holds a {}, {adapted}, {} MB.\n", folder.display(), merged.architecture, merged.bytes / 1_000_000)
}
