//! `earnest import`.
use super::error::CliError;
use super::printer::Printer;
use super::result_args::ImportArgs;
use super::{Exit, catalogue, results};
use earnest_eval::import::{ImportSettings, Imported, import};

impl ImportArgs {
    fn settings(&self) -> ImportSettings {
        let folder = &self.results.folder;
        let defaults = ImportSettings::new(self.suite.name, &self.completions, &self.name, folder);
        let prompts = self.prompt.clone().unwrap_or_default();
        ImportSettings {
            options: catalogue::values(&self.suite.options, self.seed.seed, &prompts),
            prompt: prompts.mode.unwrap_or(defaults.prompt),
            limit: self.limit,
            ..defaults
        }
    }
}

/// Imports completions and prints the run's document.
pub fn execute(args: &ImportArgs, printer: Printer) -> Result<Exit, CliError> {
    let Imported { store, run, .. } = import(&args.settings(), &mut results::Messages(printer))?;
    results::present(results::document(&store, &run)?, args.json, None, printer)?;
    Ok(Exit::Success)
}
