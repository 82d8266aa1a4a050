//! Options of the sandbox, for every command that runs model-written Python.
use std::path::PathBuf;

use clap::Args;

use super::Exit;
use super::error::CliError;
use earnest_results::suites::{LocalHost, ProgramPolicy};
use earnest_sandbox::{Pool, SandboxCommand, SandboxError, Settings};

/// Confinement of model-written Python.
#[derive(Debug, Clone, Default, Args)]
pub struct ConfinementArgs {
    /// Run model-written Python even where this system cannot confine it; it may then read and delete files and use the network
    #[arg(long, help_heading = "Model-written Python")]
    pub unconfined: bool,

    /// Command that isolates model-written Python, e.g. 'bwrap --unshare-all ...': it is started with this program as its last
    /// words (docs/sandbox.md)
    #[arg(long, value_name = "COMMAND", help_heading = "Model-written Python")]
    pub sandbox_command: Option<SandboxCommand>,
}

/// Consent to the interpreter of a stored run.
#[derive(Debug, Clone, Default, Args)]
pub struct StoredPythonArgs {
    /// Permit the interpreter FILE where a stored run names it (its --python): such a run may be somebody else's
    #[arg(long, value_name = "FILE", help_heading = "Model-written Python")]
    pub allow_python: Option<PathBuf>,
}

impl ConfinementArgs {
    /// This machine, where model-written programs run as these options permit.
    pub fn host(&self) -> LocalHost {
        self.host_of_stored(None)
    }

    /// This machine for suites of stored runs, where an interpreter that they name needs consent.
    pub fn host_of_stored(&self, python: Option<PathBuf>) -> LocalHost {
        LocalHost::new(ProgramPolicy {
            command: self.sandbox_command.clone(),
            unconfined: self.unconfined,
            stored_python: python,
        })
    }
}

/// Interpreter of model-written Python.
#[derive(Debug, Clone, Default, Args)]
pub struct SandboxArgs {
    #[cfg_attr(feature = "python", doc = "CPython 3 for model-written Python [default: the embedded interpreter]")]
    #[cfg_attr(not(feature = "python"), doc = "CPython 3 for model-written Python; this program has none of its own")]
    #[arg(long, value_name = "FILE")]
    pub python: Option<PathBuf>,

    #[command(flatten)]
    pub confinement: ConfinementArgs,
}

impl SandboxArgs {
    /// Settings of the sandbox: default limits, this program as the worker.
    pub fn settings(&self) -> Result<Settings, CliError> {
        let settings = Settings::of_this_program().map_err(|error| {
            CliError::new(Exit::Engine, format!("cannot locate this program's executable: {error}"))
        })?;
        let ConfinementArgs { unconfined, sandbox_command } = self.confinement.clone();
        Ok(Settings { python: self.python.clone(), command: sandbox_command, unconfined, ..settings })
    }

    /// Starts the sandbox.
    pub fn pool(&self) -> Result<Pool, CliError> {
        Pool::new(self.settings()?).map_err(CliError::from)
    }
}

impl From<SandboxError> for CliError {
    fn from(error: SandboxError) -> Self {
        let exit = if matches!(error, SandboxError::Python { .. } | SandboxError::NoInterpreter) {
            Exit::Usage
        } else {
            Exit::Engine
        };
        let help = error.help();
        let plain = CliError::new(exit, error.to_string());
        match help {
            Some(help) => plain.help(help),
            None => plain,
        }
    }
}
