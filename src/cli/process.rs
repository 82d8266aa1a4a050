//! An engine in a process of its own that speaks the protocol of OpenAI on a loopback port: mistral.rs.
//!
//! It is a program of its own because its 600 crates would be built, locked and audited by everybody otherwise.
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use super::Exit;
use super::error::CliError;
use crate::engine::openai::{Address, Api, Concurrency, OpenAi, Options, Retry};
use crate::engine::{Card, Engine, EngineError, Event, Rejected, Request, RequestId, Statistics};

/// The variable that names the program, and its name otherwise.
const VARIABLE: &str = "EARNEST_MISTRALRS";
const PROGRAM: &str = "earnest-mistralrs";

/// A line of the program's standard output begins with this once it answers; the address follows.
pub const LISTENING: &str = "listening on ";

/// A running engine. Dropping it ends the process.
pub struct Process {
    engine: OpenAi,
    // After the engine, so that its threads do not see the process end first.
    _child: Running,
}

struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Process {
    /// Starts the program with a checkpoint and waits until it answers.
    pub fn start(model: &Path, retry: Retry) -> Result<Process, CliError> {
        let program = find();
        let failed = |message: String| CliError::new(Exit::Engine, message);
        let mut command = Command::new(&program);
        command.arg("--model").arg(model).args(["--port", "0"]).stdin(Stdio::null()).stdout(Stdio::piped());
        let child = command.spawn().map_err(|error| {
            failed(format!("cannot start {}: {error}", program.display())).help(
                "docs/engines.md says how earnest-mistralrs is built; EARNEST_MISTRALRS names it where it is not in the PATH",
            )
        })?;
        let mut running = Running(child);
        let stdout = running.0.stdout.take().ok_or_else(|| failed("the engine's output cannot be read".into()))?;
        let mut lines = BufReader::new(stdout).lines();
        let address = loop {
            match lines.next() {
                Some(Ok(line)) => {
                    if let Some(address) = line.strip_prefix(LISTENING) {
                        break address.trim().to_owned();
                    }
                }
                Some(Err(error)) => {
                    return Err(failed(format!("the output of {} cannot be read: {error}", program.display())));
                }
                None => return Err(failed(format!("{} ended before it answered", program.display()))),
            }
        };
        // Whatever else it prints must not fill the pipe.
        std::thread::spawn(move || lines.for_each(drop));
        let address = Address::parse(&format!("{address}/v1")).map_err(|error| failed(error.to_string()))?;
        if !address.is_loopback() {
            return Err(failed(format!(
                "{} listens on {}, which is not this machine",
                program.display(),
                address.as_str()
            )));
        }
        let engine = OpenAi::connect(Options {
            address,
            key: None,
            model: None,
            api: Api::Completions,
            // More than one sequence in flight gives wrong answers in mistral.rs 0.8.1 on a CPU.
            concurrency: Concurrency { requests: 1, per_minute: None },
            retry: Retry { times: retry.times.min(2), ..retry },
            patience: Duration::from_secs(3600),
            context: None,
            enable_thinking: None,
        })
        .map_err(|error| failed(error.to_string()))?;
        Ok(Process { engine, _child: running })
    }
}

/// Says what is wrong before anything is begun: that there is no such program, or none that can be run.
pub fn check() -> Result<(), CliError> {
    let program = find();
    // A word alone is looked for where the system looks for programs.
    let alone = program.components().count() == 1 && program.is_relative();
    let found = if alone {
        let folders = std::env::var_os("PATH").unwrap_or_default();
        std::env::split_paths(&folders).any(|folder| is_program(&folder.join(&program)))
    } else {
        is_program(&program)
    };
    if found {
        return Ok(());
    }
    let place = if alone { "neither beside earnest nor in the PATH" } else { "no program that can be run" };
    Err(CliError::new(
        Exit::Engine,
        format!("--engine mistralrs needs the program {}, and it is {place}", program.display()),
    )
    .help(
        "docs/engines.md says how earnest-mistralrs is built; EARNEST_MISTRALRS names it where it is not in the PATH",
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

/// The named program, else the one beside this program, else the one in the PATH.
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
