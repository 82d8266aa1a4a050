//! The options of the sandbox, for every command that runs model-written Python.
use std::path::PathBuf;

use clap::Args;

use super::Exit;
use super::error::CliError;
use earnest_sandbox::{Pool, SandboxError, Settings};

/// How model-written Python is run.
#[derive(Debug, Clone, Default, Args)]
pub struct SandboxArgs {
    /// Run model-written Python with this CPython 3 instead of the embedded interpreter
    #[arg(long, value_name = "FILE")]
    pub python: Option<PathBuf>,
}

impl SandboxArgs {
    /// The sandbox's settings: the default limits, with this program as the worker.
    pub fn settings(&self) -> Result<Settings, CliError> {
        let settings = Settings::of_this_program()
            .map_err(|error| CliError::new(Exit::Engine, format!("cannot find this program's file: {error}")))?;
        Ok(Settings { python: self.python.clone(), ..settings })
    }

    /// Starts the sandbox.
    pub fn pool(&self) -> Result<Pool, CliError> {
        Pool::new(self.settings()?).map_err(CliError::from)
    }
}

impl From<SandboxError> for CliError {
    fn from(error: SandboxError) -> Self {
        let exit = if matches!(error, SandboxError::Python { .. }) { Exit::Usage } else { Exit::Engine };
        let help = error.help();
        let plain = CliError::new(exit, error.to_string());
        match help {
            Some(help) => plain.help(help),
            None => plain,
        }
    }
}
