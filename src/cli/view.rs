//! `earnest view`: pages on stored runs in a browser.
use std::path::PathBuf;

use clap::Args;

use super::args::ResultsArgs;
use super::error::CliError;
use super::interrupt::stop_on_signal;
use super::printer::Printer;
use super::{Exit, results};
use earnest_eval::model::LISTENING;
use earnest_view::{ViewError, Viewer};

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  earnest view                      the runs of ./earnest-results: leaderboard, samples, comparisons
  earnest view nupa-gemma           one run, by a unique part of its name
  earnest view /data/study-results  another results folder

Pages are read-only and served on this machine only. The address has a token: whoever knows it can read the results. Over SSH, forward \
the port: ssh -L 8765:127.0.0.1:8765 BOX, with --port 8765 there.")]
pub struct ViewArgs {
    /// Run to begin with, or a results folder
    #[arg(value_name = "RUN|FOLDER")]
    pub what: Option<PathBuf>,

    #[command(flatten)]
    pub results: ResultsArgs,

    /// Port on the loopback; 0 means any free one
    #[arg(long, value_name = "PORT", default_value_t = 0)]
    pub port: u16,
}

/// Serves pages until it is interrupted.
pub fn execute(args: &ViewArgs, printer: Printer) -> Result<Exit, CliError> {
    let is_folder = args.what.as_ref().is_some_and(|what| what.is_dir());
    let folder = match &args.what {
        Some(what) if is_folder => what,
        _ => &args.results.folder,
    };
    let store = results::open(folder, printer)?;
    let run = match args.what.as_ref().filter(|_| !is_folder) {
        Some(name) => Some(store.run(&name.to_string_lossy())?.manifest.run),
        None => None,
    };
    drop(store);
    let viewer = Viewer::bind(folder, args.port).map_err(failed)?;
    let stop = stop_on_signal()?;
    let address = match &run {
        Some(run) => viewer.address_of(run),
        None => viewer.address(),
    };
    printer.result(&format!("{LISTENING}{}\n", address.map_err(failed)?))?;
    printer.message("open this address in a browser; Ctrl-C stops the viewer");
    viewer.run(&stop).map_err(failed)?;
    Ok(Exit::Success)
}

fn failed(error: ViewError) -> CliError {
    match error {
        ViewError::Results(error) => error.into(),
        ViewError::Listen { .. } => {
            CliError::new(Exit::Engine, error.to_string()).help("choose another --port (0 means any free one)")
        }
        ViewError::Http(_) => CliError::new(Exit::Engine, error.to_string()),
    }
}
