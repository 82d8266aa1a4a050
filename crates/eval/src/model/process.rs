//! mistral.rs in a separate process, over the OpenAI protocol on a loopback port.
//!
//! A separate program, so that its 600 crates are not dependencies of this one.
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use earnest_engine::endpoint::{Address, Api, Concurrency, EndpointEngine, Options, Retry};
use earnest_engine::{Card, Engine, EngineError, Event, Rejected, Request, RequestId, Statistics};
use earnest_models::checkpoint::{Checkpoint, WeightFormat};

use super::checkpoint::{hash_files, left_out, open_for_mistralrs, record};
use super::local::{checkpoint_warnings, thinking_switch, thinks_anyway};
use super::{CheckpointDefaults, LoadedEngine, LocatedModel, OpenModel, TrafficSettings, checkpoint_defaults};
use crate::EvalError;
use crate::prompt::{PromptSource, WithThinking};
use earnest_results::{FileRecord, ModelNotice, ModelRecord, Notice};

/// The engine's name in a run's settings.
pub(super) const MISTRALRS: &str = "mistralrs";

/// Environment variable for the path of the program.
const VARIABLE: &str = "EARNEST_MISTRALRS";
/// Default name of the program.
const PROGRAM: &str = "earnest-mistralrs";

/// Prefix of the address on the program's standard output.
pub const LISTENING: &str = "listening on ";

/// An opened checkpoint for mistral.rs.
pub(super) struct ProcessModel {
    located: LocatedModel,
    checkpoint: Arc<Checkpoint>,
    enable_thinking: Option<bool>,
    thinks_anyway: bool,
    retry: Retry,
}

impl ProcessModel {
    pub(super) fn open(
        located: &LocatedModel,
        thinking: Option<bool>,
        traffic: &TrafficSettings,
    ) -> Result<Self, EvalError> {
        traffic.check()?;
        check()?;
        let checkpoint = located.opened.or_open(|| open_for_mistralrs(located))?;
        Ok(ProcessModel {
            located: located.clone(),
            enable_thinking: thinking_switch(&checkpoint, thinking),
            thinks_anyway: thinks_anyway(&checkpoint, thinking),
            checkpoint,
            retry: traffic.retry(),
        })
    }
}

impl OpenModel for ProcessModel {
    fn engine(&self) -> String {
        MISTRALRS.to_owned()
    }

    fn prompt_source(&self) -> Box<dyn PromptSource + '_> {
        Box::new(WithThinking { checkpoint: &self.checkpoint, enable_thinking: self.enable_thinking })
    }

    fn enable_thinking(&self) -> Option<bool> {
        self.enable_thinking
    }

    fn defaults(&self) -> Option<CheckpointDefaults> {
        Some(checkpoint_defaults(&self.located, &self.checkpoint))
    }

    fn hash_files(&self, progress: &mut dyn FnMut(u64, u64)) -> Result<Vec<FileRecord>, EvalError> {
        hash_files(&self.checkpoint, progress)
    }

    fn weights(&self) -> Option<WeightFormat> {
        Some(self.checkpoint.weight_format()).filter(|format| !format.is_plain())
    }

    fn record(&self) -> ModelRecord {
        record(&self.located, &self.checkpoint)
    }

    fn warnings(&self) -> Vec<Notice> {
        let mut warnings = checkpoint_warnings(&self.checkpoint, self.thinks_anyway);
        warnings.extend(left_out(&self.located, &self.checkpoint));
        warnings.extend(self.located.notice());
        if self.checkpoint.is_foreign() {
            let architecture = self.checkpoint.config.architecture.clone();
            warnings.push(ModelNotice::Unverified { architecture }.into());
        }
        warnings
    }

    fn check_likelihoods(&self) -> Result<(), EvalError> {
        let message =
            "the questions have given continuations to score, which the setting `engine = mistralrs` does not do";
        Err(EvalError::setting(message).hint("the setting `engine = native` scores them"))
    }

    fn load(&self) -> Result<LoadedEngine, EvalError> {
        let described = serde_json::json!({"requests": 1, "prefix_cache": false});
        let engine = Process::start(self.located.path(), self.retry)?;
        Ok(LoadedEngine::new(Box::new(engine), described, vec![]))
    }
}

/// A running engine. Dropping it ends the process.
struct Process {
    engine: EndpointEngine,
    // Dropped after the engine, so that its threads do not see the process end.
    _child: Running,
}

struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        // It may have exited already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Process {
    /// Starts the program with a checkpoint and waits until it answers.
    fn start(model: &Path, retry: Retry) -> Result<Process, EvalError> {
        let program = find();
        let failed = |message: String| EvalError::engine(message);
        let mut command = Command::new(&program);
        command.arg("--model").arg(model).args(["--port", "0"]).stdin(Stdio::null()).stdout(Stdio::piped());
        let child = command.spawn().map_err(|error| {
            failed(format!("cannot start {}: {error}", program.display())).hint(
                "docs/engines.md has the one command that builds earnest-mistralrs and puts it in the PATH; EARNEST_MISTRALRS names it elsewhere",
            )
        })?;
        let mut running = Running(child);
        let stdout = running.0.stdout.take().ok_or_else(|| failed("cannot read the engine's output".into()))?;
        let mut lines = BufReader::new(stdout).lines();
        let address = loop {
            match lines.next() {
                Some(Ok(line)) => {
                    if let Some(address) = line.strip_prefix(LISTENING) {
                        break address.trim().to_owned();
                    }
                }
                Some(Err(error)) => {
                    return Err(failed(format!("cannot read the output of {}: {error}", program.display())));
                }
                None => return Err(failed(format!("{} exited before it was ready", program.display()))),
            }
        };
        // Drained, because a full pipe would block the program.
        let drain = std::thread::Builder::new().spawn(move || lines.for_each(drop));
        drain.map_err(|error| EvalError::thread("read the output of the engine", error))?;
        let address = Address::parse(&format!("{address}/v1")).map_err(|error| failed(error.to_string()))?;
        if !address.is_loopback() {
            return Err(failed(format!(
                "{} listens on {}, which is not this machine",
                program.display(),
                address.as_str()
            )));
        }
        let engine = EndpointEngine::connect(Options {
            address,
            key: None,
            model: None,
            api: Api::Completions,
            // More than one sequence in flight gives wrong answers in mistral.rs 0.8.1 on a CPU.
            concurrency: Concurrency { requests: 1, per_minute: None },
            retry: Retry { times: retry.times.min(2), ..retry },
            timeout: Duration::from_secs(3600),
            context: None,
            enable_thinking: None,
        })
        .map_err(|error| failed(error.to_string()))?;
        Ok(Process { engine, _child: running })
    }
}

/// Checks that the program exists and is executable.
fn check() -> Result<(), EvalError> {
    let program = find();
    // A bare name is searched in PATH.
    let alone = program.components().count() == 1 && program.is_relative();
    let exists = if alone {
        let folders = std::env::var_os("PATH").unwrap_or_default();
        std::env::split_paths(&folders).any(|folder| is_program(&folder.join(&program)))
    } else {
        is_program(&program)
    };
    if exists {
        return Ok(());
    }
    let place = if alone { "neither beside earnest nor in PATH" } else { "not an executable file" };
    Err(EvalError::engine(format!(
        "the setting `engine = mistralrs` needs the program {}, which is {place}",
        program.display()
    ))
    .hint(
        "docs/engines.md has the one command that builds earnest-mistralrs and puts it in the PATH; EARNEST_MISTRALRS names it elsewhere",
    ))
}

#[cfg(unix)]
fn is_program(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    std::fs::metadata(path).is_ok_and(|metadata| metadata.is_file() && metadata.permissions().mode() & 0o111 != 0)
}

#[cfg(not(unix))]
fn is_program(path: &Path) -> bool {
    path.is_file() || path.with_extension("exe").is_file()
}

/// Returns the program of `EARNEST_MISTRALRS`, else the one beside this executable, else the one in PATH.
fn find() -> PathBuf {
    if let Some(named) = std::env::var_os(VARIABLE).filter(|named| !named.is_empty()) {
        return named.into();
    }
    let beside = std::env::current_exe().ok().map(|own| own.with_file_name(PROGRAM)).filter(|path| path.is_file());
    beside.unwrap_or_else(|| PROGRAM.into())
}

impl Engine for Process {
    fn submit(&mut self, request: Request) -> Result<(), Rejected> {
        self.engine.submit(request)
    }

    fn poll(&mut self) -> Result<Vec<Event>, EngineError> {
        self.engine.poll()
    }

    fn notice(&mut self) -> Option<String> {
        self.engine.notice()
    }

    fn cancel(&mut self, id: RequestId) -> bool {
        self.engine.cancel(id)
    }

    fn card(&self) -> Card {
        Card { engine: "mistralrs".into(), ..self.engine.card() }
    }

    fn statistics(&self) -> Statistics {
        self.engine.statistics()
    }
}
