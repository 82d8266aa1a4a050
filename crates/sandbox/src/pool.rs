//! Pool of workers.
use std::io::{self, Read};
use std::net::Shutdown;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, ChildStderr, Command, Stdio};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::attempts::Outside;
use super::protocol::{Hello, Interpreter, Ready, Request, Setup, receive, send};
use super::{Confinement, Number, Outcome, SandboxError, Settings, cpython, worker};

/// Timeout for a worker to start its interpreter.
const START_TIMEOUT: Duration = Duration::from_secs(60);
/// Time beyond a sample's limit after which a worker counts as stuck.
const GRACE: Duration = Duration::from_secs(10);
/// Timeout for a dismissed worker to exit before it is killed.
const EXIT_TIMEOUT: Duration = Duration::from_secs(2);
/// A worker that dies within this time of a request may have been dying before it.
const EARLY_DEATH: Duration = Duration::from_millis(50);
/// Number of workers that a program is given to when each dies before it begins.
const ATTEMPTS: usize = 3;

/// Pool of workers that run programs, each in its own process. Any number of threads may call [`Pool::run`].
///
/// A worker that dies, hangs or is killed is replaced; only its current sample is lost.
#[derive(Debug)]
pub struct Pool {
    settings: Settings,
    setup: Setup,
    report: Report,
    workers: Mutex<Workers>,
    released: Condvar,
}

/// Interpreter and confinement of a pool.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Report {
    /// Name and version of the interpreter.
    pub interpreter: String,
    pub confinement: Confinement,
    /// Those of [`ATTEMPTS`](super::ATTEMPTS) that succeed in a program's process: none if the kernel can refuse them all.
    pub reached: Vec<String>,
}

/// Idle workers, and the number of programs that run.
#[derive(Debug, Default)]
struct Workers {
    idle: Vec<Worker>,
    running: usize,
}

impl Pool {
    /// Starts one worker and checks that it computes; the others start when they are needed.
    ///
    /// # Errors
    /// [`SandboxError`] if the worker cannot be started, cannot confine programs or fails its self-check.
    pub fn new(settings: Settings) -> Result<Self, SandboxError> {
        let interpreter = match (&settings.python, &settings.command) {
            (None, _) => Interpreter::Embedded,
            (Some(python), None) => Interpreter::Cpython(cpython::probe(python)?),
            // It is the one in there.
            (Some(python), Some(_)) => Interpreter::Unprobed(python.clone()),
        };
        let setup = Setup {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            interpreter,
            wall: settings.wall,
            memory: settings.memory,
            unconfined: settings.unconfined,
            command: None,
        };
        let (worker, ready) = Worker::start(&settings, &setup)?;
        let Ready { interpreter, confinement, reached } = ready;
        let report = Report { interpreter, confinement, reached };
        let workers = Mutex::new(Workers { idle: vec![worker], running: 0 });
        let pool = Pool { settings, setup, report, workers, released: Condvar::new() };
        match pool.run("def check():\n    return int(math.sqrt(1764) * 42)", "check") {
            Outcome::Number(number @ Number::Int(_)) if number.to_f64() == 1764.0 => Ok(pool),
            other => Err(SandboxError::SelfCheck { outcome: other.to_string() }),
        }
    }

    /// Interpreter and confinement in force.
    pub fn report(&self) -> &Report {
        &self.report
    }

    /// Settings of the pool.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Runs a program: executes `source` and calls `function` without arguments. Blocks until a worker is free.
    pub fn run(&self, source: &str, function: &str) -> Outcome {
        let request = Request { source: source.to_owned(), function: function.to_owned() };
        let _permit = self.acquire();
        let mut died = false;
        for _ in 0..ATTEMPTS {
            let mut worker = match self.worker() {
                Ok(worker) => worker,
                Err(error) => return Outcome::Unavailable(error.to_string()),
            };
            let sent = Instant::now();
            match worker.run(&request) {
                Reply::Outcome(outcome) => {
                    self.lock().idle.push(worker);
                    return outcome;
                }
                Reply::NotReceived => {}
                // An early death may be a kill from outside while the worker was idle. A program that kills its worker does it
                // again.
                Reply::Died if !died && sent.elapsed() < EARLY_DEATH => died = true,
                Reply::Died => return Outcome::Crashed("the worker died".to_owned()),
                Reply::Stuck => return Outcome::TimeLimit,
                Reply::Refused(reason) => return Outcome::Unavailable(reason),
            }
        }
        Outcome::Unavailable("workers died before the program began".to_owned())
    }

    /// Returns an idle worker that is alive, or starts one.
    fn worker(&self) -> Result<Worker, SandboxError> {
        while let Some(mut worker) = { self.lock().idle.pop() } {
            if worker.is_alive() {
                return Ok(worker);
            }
        }
        Worker::start(&self.settings, &self.setup).map(|(worker, _)| worker)
    }

    /// Waits until fewer programs run than the settings allow.
    fn acquire(&self) -> Permit<'_> {
        let mut workers = self.lock();
        while workers.running >= self.settings.workers.max(1) {
            workers = self.released.wait(workers).unwrap_or_else(PoisonError::into_inner);
        }
        workers.running += 1;
        Permit(self)
    }

    /// Locks the workers. A poisoned lock is usable: no code that can panic runs under it.
    fn lock(&self) -> MutexGuard<'_, Workers> {
        self.workers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Permit to run one program, released on drop.
struct Permit<'a>(&'a Pool);

impl Drop for Permit<'_> {
    fn drop(&mut self) {
        self.0.lock().running -= 1;
        self.0.released.notify_one();
    }
}

/// Command that starts a worker. Its environment is empty; a command of the user's gets `PATH` and `HOME`.
fn command(settings: &Settings) -> Command {
    let Some(wrapper) = &settings.command else {
        let mut command = Command::new(&settings.program);
        command.arg(worker::ARGUMENT).env_clear();
        return command;
    };
    let words = wrapper.of_worker(&settings.program.display().to_string(), worker::ARGUMENT);
    let mut words = words.into_iter();
    let mut command = Command::new(words.next().unwrap_or_default());
    command.args(words).env_clear();
    for name in ["PATH", "HOME"] {
        if let Some(value) = std::env::var_os(name) {
            command.env(name, value);
        }
    }
    command
}

/// Last words of a user's command on standard error, kept for the message if it fails.
struct LastWords {
    kept: Arc<Mutex<Vec<u8>>>,
    reader: JoinHandle<()>,
}

/// Bytes of [`LastWords`] that are kept.
const LAST_WORDS: usize = 4 << 10;

impl LastWords {
    fn of(mut stderr: ChildStderr) -> io::Result<Self> {
        let kept = Arc::new(Mutex::new(Vec::new()));
        let shared = Arc::clone(&kept);
        let reader = std::thread::Builder::new().spawn(move || {
            let mut chunk = [0; 1 << 10];
            while let Ok(count @ 1..) = stderr.read(&mut chunk) {
                let mut kept = shared.lock().unwrap_or_else(PoisonError::into_inner);
                kept.extend(chunk.iter().take(count));
                let excess = kept.len().saturating_sub(LAST_WORDS);
                kept.drain(..excess);
            }
        })?;
        Ok(LastWords { kept, reader })
    }

    /// Describes the end of the command, which has closed its connection.
    fn after(self, child: &mut Child) -> String {
        let deadline = Instant::now() + EXIT_TIMEOUT;
        let mut status = None;
        while (status.is_none() || !self.reader.is_finished()) && Instant::now() < deadline {
            status = status.or_else(|| child.try_wait().ok().flatten());
            std::thread::sleep(Duration::from_millis(1));
        }
        let status = status.map_or_else(|| "still running".to_owned(), |status| status.to_string());
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        match String::from_utf8_lossy(&kept).trim() {
            "" => format!("it ended without a worker being ready ({status})"),
            said => format!("it ended without a worker being ready ({status}): {}", said.replace('\n', "; ")),
        }
    }
}

/// Process of a worker.
#[derive(Debug)]
struct Worker {
    child: Child,
    socket: UnixStream,
    timeout: Duration,
}

/// Reply of a worker to a request.
enum Reply {
    Outcome(Outcome),
    /// The worker was dead before it had the whole request.
    NotReceived,
    /// The worker died while the program ran.
    Died,
    /// The worker neither replied nor died.
    Stuck,
    /// The request is too large for any worker.
    Refused(String),
}

impl Worker {
    fn start(settings: &Settings, setup: &Setup) -> Result<(Self, Ready), SandboxError> {
        let program = settings.command.as_ref().map_or_else(
            || settings.program.clone(),
            // For messages.
            |command| PathBuf::from(command.to_string()),
        );
        let start = |source| SandboxError::Start { program: program.clone(), source };
        let (socket, theirs) = UnixStream::pair().map_err(start)?;
        let replies = theirs.try_clone().map_err(start)?;
        let mut command = command(settings);
        let mut child = command
            .current_dir("/")
            .stdin(Stdio::from(OwnedFd::from(theirs)))
            .stdout(Stdio::from(OwnedFd::from(replies)))
            .stderr(if settings.command.is_some() { Stdio::piped() } else { Stdio::null() })
            // A new process group: Ctrl-C at the terminal stops the run, not the sample that is being scored.
            .process_group(0)
            .spawn()
            .map_err(start)?;
        // Holds copies of the worker's ends, which must close with the worker.
        drop(command);
        let said = child.stderr.take().map(LastWords::of).transpose().map_err(start)?;
        // Kept until the worker has tried to reach it.
        let (outside, _listening) = match &settings.command {
            Some(command) => {
                let (outside, listening) = Outside::of_this_process().map_err(start)?;
                (Some((command.to_string(), outside)), Some(listening))
            }
            None => (None, None),
        };
        let setup = Setup { command: outside, ..setup.clone() };
        let mut worker = Worker { child, socket, timeout: settings.wall + GRACE };
        let hello = worker.set_timeout(START_TIMEOUT).and_then(|()| {
            send(&mut worker.socket, &setup)?;
            receive(&mut worker.socket)
        });
        match hello {
            Ok(Hello::Ready(ready)) => Ok((worker, ready)),
            Ok(Hello::Unconfined(missing)) => Err(SandboxError::Unconfined { missing }),
            Ok(Hello::NoInterpreter) => Err(SandboxError::NoInterpreter),
            Ok(Hello::Python(reason)) => {
                Err(SandboxError::Python { python: settings.python.clone().unwrap_or_default(), reason })
            }
            Ok(Hello::OtherVersion(found)) => {
                Err(SandboxError::OtherVersion { command: program.display().to_string(), found })
            }
            Err(error) => {
                let ended = matches!(
                    error.kind(),
                    io::ErrorKind::UnexpectedEof | io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset
                );
                let reason = match (said, ended) {
                    (Some(said), true) => said.after(&mut worker.child),
                    (None, true) => {
                        "it exited immediately; its main must begin with earnest_sandbox::serve_if_worker()".to_owned()
                    }
                    (_, false) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => {
                        format!("it was not ready within {} s", START_TIMEOUT.as_secs())
                    }
                    (_, false) => error.to_string(),
                };
                Err(SandboxError::NotAWorker { program, reason })
            }
        }
    }

    fn set_timeout(&self, timeout: Duration) -> io::Result<()> {
        self.socket.set_read_timeout(Some(timeout))?;
        self.socket.set_write_timeout(Some(timeout))
    }

    fn is_alive(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    fn run(&mut self, request: &Request) -> Reply {
        if let Err(error) = self.set_timeout(self.timeout).and_then(|()| send(&mut self.socket, request)) {
            return match error.kind() {
                io::ErrorKind::InvalidInput => Reply::Refused(error.to_string()),
                io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => Reply::Stuck,
                _ => Reply::NotReceived,
            };
        }
        match receive(&mut self.socket) {
            Ok(outcome) => Reply::Outcome(outcome),
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => Reply::Stuck,
            Err(_) => Reply::Died,
        }
    }
}

impl Drop for Worker {
    /// Closes the socket, on which the worker exits and its sample with it, and waits until it has.
    fn drop(&mut self) {
        self.socket.shutdown(Shutdown::Both).ok();
        let deadline = Instant::now() + EXIT_TIMEOUT;
        while self.is_alive() {
            if Instant::now() > deadline {
                self.child.kill().ok();
                self.child.wait().ok();
                return;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}
