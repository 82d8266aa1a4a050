//! Workers, lent to whoever has a program to run.
use std::io;
use std::net::Shutdown;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::protocol::{Interpreter, Ready, Request, Setup, receive, send};
use super::{Confinement, Number, Outcome, SandboxError, Settings, cpython, worker};

/// Longest time in which a worker starts its interpreter.
const STARTING: Duration = Duration::from_secs(60);
/// What a worker may need beyond a sample's time before it counts as stuck.
const GRACE: Duration = Duration::from_secs(10);
/// Longest time in which a worker that nobody needs any more ends by itself.
const ENDING: Duration = Duration::from_secs(2);
/// A worker that dies within this time after it was asked may have been dying before.
const AT_ONCE: Duration = Duration::from_millis(50);
/// How often a program is given to another worker when one died before it could begin.
const ATTEMPTS: usize = 3;

/// Workers that run programs, each in a process of its own. Any number of threads may call [`Pool::run`].
///
/// A worker that dies, hangs or is killed is replaced; only the sample that it had is lost.
#[derive(Debug)]
pub struct Pool {
    settings: Settings,
    setup: Setup,
    report: Report,
    lent: Mutex<Lent>,
    returned: Condvar,
}

/// What a pool runs programs with.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Report {
    /// Name and version of the interpreter.
    pub interpreter: String,
    pub confinement: Confinement,
    /// Which of [`ATTEMPTS`](super::ATTEMPTS) succeeded in a program's process: none where the kernel can refuse them all.
    pub reached: Vec<String>,
}

#[derive(Debug, Default)]
struct Lent {
    idle: Vec<Worker>,
    working: usize,
}

impl Pool {
    /// Starts one worker, has it compute something, and starts the others when they are needed.
    ///
    /// # Errors
    /// If no worker can be started or does not compute; the error says what to do.
    pub fn new(settings: Settings) -> Result<Self, SandboxError> {
        let interpreter = match &settings.python {
            None => Interpreter::Embedded,
            Some(python) => Interpreter::Cpython(cpython::examine(python)?),
        };
        let setup = Setup { interpreter, wall: settings.wall, memory: settings.memory };
        let (worker, ready) = Worker::start(&settings, &setup)?;
        let Ready { interpreter, confinement, reached } = ready;
        let report = Report { interpreter, confinement, reached };
        let lent = Mutex::new(Lent { idle: vec![worker], working: 0 });
        let pool = Pool { settings, setup, report, lent, returned: Condvar::new() };
        match pool.run("def check():\n    return int(math.sqrt(1764) * 42)", "check") {
            Outcome::Number(number @ Number::Int(_)) if number.to_f64() == 1764.0 => Ok(pool),
            other => Err(SandboxError::SelfCheck { outcome: other.to_string() }),
        }
    }

    /// What programs are run with.
    pub fn report(&self) -> &Report {
        &self.report
    }

    /// The settings it was made with.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Runs a program, that is defines `source` and calls `function` without arguments; waits for a free worker first.
    pub fn run(&self, source: &str, function: &str) -> Outcome {
        let request = Request { source: source.to_owned(), function: function.to_owned() };
        let _place = self.take_place();
        let mut died = false;
        for _ in 0..ATTEMPTS {
            let mut worker = match self.worker() {
                Ok(worker) => worker,
                Err(error) => return Outcome::Unavailable(error.to_string()),
            };
            let asked = Instant::now();
            match worker.run(&request) {
                Answer::Outcome(outcome) => {
                    self.lock().idle.push(worker);
                    return outcome;
                }
                Answer::NeverBegun => {}
                // At once, it may have been killed from outside while it was idle and not yet gone; a program that kills its
                // worker does it again.
                Answer::Died if !died && asked.elapsed() < AT_ONCE => died = true,
                Answer::Died => return Outcome::Crashed("the worker died".to_owned()),
                Answer::Stuck => return Outcome::TimeLimit,
                Answer::Refused(reason) => return Outcome::Unavailable(reason),
            }
        }
        Outcome::Unavailable("workers die before they begin".to_owned())
    }

    /// An idle worker that lives, or a new one.
    fn worker(&self) -> Result<Worker, SandboxError> {
        while let Some(mut worker) = { self.lock().idle.pop() } {
            if worker.lives() {
                return Ok(worker);
            }
        }
        Worker::start(&self.settings, &self.setup).map(|(worker, _)| worker)
    }

    fn take_place(&self) -> Place<'_> {
        let mut lent = self.lock();
        while lent.working >= self.settings.workers.max(1) {
            lent = self.returned.wait(lent).unwrap_or_else(PoisonError::into_inner);
        }
        lent.working += 1;
        Place(self)
    }

    /// Nothing that can panic happens while it is held, and a list of workers is never half-changed.
    fn lock(&self) -> MutexGuard<'_, Lent> {
        self.lent.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The right to use a worker, given back in any case.
struct Place<'a>(&'a Pool);

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.0.lock().working -= 1;
        self.0.returned.notify_one();
    }
}

/// A worker's process.
#[derive(Debug)]
struct Worker {
    child: Child,
    socket: UnixStream,
    patience: Duration,
}

/// What a worker made of a request.
enum Answer {
    Outcome(Outcome),
    /// It was dead before it had the whole request.
    NeverBegun,
    /// It died at work.
    Died,
    /// It neither answered nor died.
    Stuck,
    /// The request cannot be sent to any worker.
    Refused(String),
}

impl Worker {
    fn start(settings: &Settings, setup: &Setup) -> Result<(Self, Ready), SandboxError> {
        let start = |source| SandboxError::Start { program: settings.program.clone(), source };
        let (socket, theirs) = UnixStream::pair().map_err(start)?;
        let child = Command::new(&settings.program)
            .arg(worker::ARGUMENT)
            .env_clear()
            .current_dir("/")
            .stdin(Stdio::from(OwnedFd::from(theirs)))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            // A group of its own: Ctrl-C at the terminal stops the run, not the sample that is being judged.
            .process_group(0)
            .spawn()
            .map_err(start)?;
        let mut worker = Worker { child, socket, patience: settings.wall + GRACE };
        let hello = worker.wait_at_most(STARTING).and_then(|()| {
            send(&mut worker.socket, setup)?;
            receive(&mut worker.socket)
        });
        match hello {
            Ok(ready) => Ok((worker, ready)),
            Err(error) => {
                let reason = if error.kind() == io::ErrorKind::UnexpectedEof {
                    "it ended at once; its main must begin with earnest::sandbox::serve_if_worker()".to_owned()
                } else {
                    error.to_string()
                };
                Err(SandboxError::NotAWorker { program: settings.program.clone(), reason })
            }
        }
    }

    fn wait_at_most(&self, patience: Duration) -> io::Result<()> {
        self.socket.set_read_timeout(Some(patience))?;
        self.socket.set_write_timeout(Some(patience))
    }

    fn lives(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    fn run(&mut self, request: &Request) -> Answer {
        if let Err(error) = self.wait_at_most(self.patience).and_then(|()| send(&mut self.socket, request)) {
            return match error.kind() {
                io::ErrorKind::InvalidInput => Answer::Refused(error.to_string()),
                io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => Answer::Stuck,
                _ => Answer::NeverBegun,
            };
        }
        match receive(&mut self.socket) {
            Ok(outcome) => Answer::Outcome(outcome),
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => Answer::Stuck,
            Err(_) => Answer::Died,
        }
    }
}

impl Drop for Worker {
    /// Tells the worker to end, which kills its sample too, and waits until it has.
    fn drop(&mut self) {
        self.socket.shutdown(Shutdown::Both).ok();
        let deadline = Instant::now() + ENDING;
        while self.lives() {
            if Instant::now() > deadline {
                self.child.kill().ok();
                self.child.wait().ok();
                return;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}
