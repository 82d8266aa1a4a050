//! A part of a run in a process of its own: the settings that `earnest run --devices` hands over, and the command that evaluates by them.
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use clap::Args;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Exit;
use super::args::ResultsArgs;
use super::error::CliError;
use super::events::Reporters;
use super::printer::Printer;
use super::results;
use super::run::{Stored, settings_of};
use super::sandbox_args::ConfinementArgs;
use earnest_digest::input;
use earnest_eval::evaluate::{Evaluated, EvaluationSettings, evaluate};
use earnest_eval::model::EngineSettings;
use earnest_models::hub::HubSettings;
use earnest_results::{ModelRecord, Plan, RunSettings, Shard};

/// Arguments of the hidden command `earnest run-part`.
#[derive(Debug, Args)]
pub struct RunPartArgs {
    /// Settings of the part, as JSON
    pub settings: PathBuf,

    #[command(flatten)]
    pub results: ResultsArgs,

    /// File for the part's events
    #[arg(long, value_name = "FILE")]
    pub events: PathBuf,
}

/// Settings of a part of a run.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct PartSettings {
    /// Settings of the whole run.
    pub run: RunSettings,
    pub shard: Shard,
    pub model: ModelRecord,
    /// Reference to the model as it was given, in whatever bytes; none for that of the record.
    pub given: Option<OsString>,
    /// List of models that was given.
    pub models: Option<OsString>,
    pub offline: bool,
    /// Limits and the part's own device.
    pub engine: EngineSettings,
    pub fail_on_error: Option<f64>,
    pub unconfined: bool,
    pub sandbox_command: Option<String>,
}

impl PartSettings {
    /// Reads the settings that [`devices`](super::devices) wrote.
    fn read(path: &Path) -> Result<Self, CliError> {
        let unread = |problem: String| {
            CliError::new(Exit::Results, format!("cannot read the settings of a part, {}: {problem}", path.display()))
                .help("`earnest run --devices` writes them and starts this command itself")
        };
        let bytes = input::read(path, input::MOST_DOCUMENT).map_err(|error| unread(error.to_string()))?;
        serde_json::from_slice(&bytes).map_err(|error| unread(error.to_string()))
    }

    /// Settings of the part's evaluation.
    fn evaluation(&self, results: &Path) -> Result<EvaluationSettings, CliError> {
        let sandbox_command = self.sandbox_command.as_deref().map(str::parse).transpose();
        let sandbox_command =
            sandbox_command.map_err(|error| CliError::usage(format!("--sandbox-command: {error}")))?;
        // Its settings are not those of a stored run, but of the command that started it.
        let allow_python = self.run.suite_options.get("python").and_then(Value::as_str).map(PathBuf::from);
        let confinement = ConfinementArgs { unconfined: self.unconfined, sandbox_command };
        let host = confinement.host_of_stored(allow_python);
        let hub = HubSettings {
            list: self.models.clone().map(PathBuf::from),
            offline: self.offline,
            ..HubSettings::default()
        };
        let stored = Stored { run: &self.run, model: &self.model, moved: self.given.as_deref().map(Path::new) };
        Ok(EvaluationSettings {
            plan: Plan { limit: self.run.limit, samples: self.run.samples, shard: Some(self.shard) },
            engine: self.engine.clone(),
            fail_on_error: self.fail_on_error,
            ..settings_of(&stored, &hub, &host, results)?
        })
    }
}

/// Begins or continues a part of a run.
pub fn execute(args: &RunPartArgs, printer: Printer) -> Result<Exit, CliError> {
    let settings = PartSettings::read(&args.settings)?.evaluation(&args.results.folder)?;
    settings.check()?;
    let mut reporters = Reporters::new(printer, Some(&args.events))?;
    let evaluated = evaluate(&settings, &mut reporters);
    drop(reporters);
    let Evaluated { store, run } = evaluated?;
    let failed = results::document(&store, &run)?.totals.failed;
    Ok(if failed > 0 { Exit::FailedSamples } else { Exit::Success })
}
