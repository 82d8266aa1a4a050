//! Options of the sandbox, for every command that runs model-written Python.
use std::path::PathBuf;

use clap::Args;

use super::Exit;
use super::error::CliError;
use earnest_sandbox::{Pool, SandboxError, Settings};

/// Interpreter of model-written Python.
#[derive(Debug, Clone, Default, Args)]
pub struct SandboxArgs {
    /// CPython 3 for model-written Python [default: the embedded interpreter]
    #[arg(long, value_name = "FILE")]
    pub python: Option<PathBuf>,
}

impl SandboxArgs {
    /// Settings of the sandbox: default limits, this program as the worker.
    pub fn settings(&self) -> Result<Settings, CliError> {
        let settings = Settings::of_this_program().map_err(|error| {
            CliError::new(Exit::Engine, format!("cannot locate this program's executable: {error}"))
        })?;
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
