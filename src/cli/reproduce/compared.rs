//! The runs that a paper is compared with.
use clap::Args;
use earnest_results::{Origin, StoredRun};

use crate::cli::args::ResultsArgs;
use crate::cli::error::CliError;
use crate::cli::figures::FigureArgs;
use crate::cli::printer::Printer;
use crate::cli::results_folder::default_results;

/// Options of every paper: the runs to compare and the form of the result.
#[derive(Debug, Args)]
pub struct ComparedRuns {
    /// Runs, by name or unique prefix of a name [default: all of the suite]
    #[arg(value_name = "RUN")]
    pub runs: Vec<String>,

    #[command(flatten)]
    pub figures: FigureArgs,

    #[command(flatten)]
    pub results: ResultsArgs,

    /// Print one JSON document
    #[arg(long)]
    pub json: bool,
}

/// True for a run of the suite; another tool's task may have the same name.
fn is_of(run: &StoredRun, suite: &str) -> bool {
    let settings = &run.manifest.settings;
    settings.suite == suite && settings.origin() != Origin::Log
}

impl ComparedRuns {
    /// Opens the runs to show. Results without any are no error but are named: the published tables are shown alone.
    pub(super) fn shown(&self, suite: &str, printer: Printer) -> Result<Vec<StoredRun>, CliError> {
        let runs = self.open(suite)?;
        if runs.is_empty() {
            printer.remark(&format!(
                "{} has no run of {suite}; `earnest run {suite}` makes one, --results names another folder",
                self.results.folder.display()
            ));
        }
        Ok(runs)
    }

    /// Opens the named runs, or all of a suite; none without a results folder, unless the command line names one.
    pub(super) fn open(&self, suite: &str) -> Result<Vec<StoredRun>, CliError> {
        let folder = &self.results.folder;
        if self.runs.is_empty() {
            let is_default = *folder == default_results();
            // A folder that somebody named and that is not there is a typing error.
            let all = match is_default && !earnest_results::folder::has_results(folder)? {
                true => Vec::new(),
                false => StoredRun::all(folder)?,
            };
            let mut of_suite: Vec<StoredRun> = all.into_iter().filter(|run| is_of(run, suite)).collect();
            // Of a run that was scored again, only the copy with the new scores counts.
            let scored: Vec<bool> = of_suite
                .iter()
                .map(|run| {
                    let copy = format!("{}-scored", run.manifest.run);
                    of_suite.iter().any(|other| {
                        other.manifest.run.starts_with(&copy) && other.manifest.started == run.manifest.started
                    })
                })
                .collect();
            let mut scored = scored.into_iter();
            of_suite.retain(|_| !scored.next().unwrap_or(false));
            return Ok(of_suite);
        }
        let open = |name: &String| {
            let run = StoredRun::open(folder, name)?;
            match &run.manifest.settings.suite {
                _ if is_of(&run, suite) => Ok(run),
                found if run.manifest.settings.origin() == Origin::Log => Err(CliError::usage(format!(
                    "{} is another tool's log of {found}, not a run of {suite}",
                    run.place
                ))),
                found => Err(CliError::usage(format!("{} is a run of {found}, not of {suite}", run.place))),
            }
        };
        self.runs.iter().map(open).collect()
    }
}
