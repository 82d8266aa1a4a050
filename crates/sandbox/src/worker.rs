//! Worker process: the same executable again, with nothing but a socket, which forks a process for every sample.
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsRawFd, FromRawFd, RawFd};
use std::time::Duration;

use super::attempts::{self, Outside};
use super::confine::{ConfineError, Filter, Missing, Part, close_from, restrict_files};
use super::cpython::{self, Invocation};
use super::embedded::{self, Embedded};
use super::limits::{Limits, address_space};
use super::outcome::BEGUN;
use super::process::{self, Measures, NotStarted, Program, Supervision};
use super::protocol::{Hello, Interpreter, Ready, Request, Setup, receive, send};
use super::{Confinement, Outcome, SandboxError};

/// Command-line argument that makes a program a worker.
pub(super) const ARGUMENT: &str = "__earnest-sandbox-worker";

/// Stack of the interpreter, in bytes. Only touched pages take memory.
const STACK: usize = 64 << 20;

/// Address space of CPython and its libraries before a program runs, in bytes.
const CPYTHON_SPACE: u64 = 128 << 20;

/// Open files of CPython.
const CPYTHON_FILES: u64 = 64;

/// Serves as a worker and never returns, if the process was started as one; otherwise does nothing. It must be the first call in
/// `main` of every program that [`Settings::program`](super::Settings::program) names.
pub fn serve_if_worker() {
    if std::env::args_os().nth(1).is_some_and(|argument| argument == ARGUMENT) {
        std::process::exit(match serve() {
            Ok(()) => 0,
            Err(error) => {
                // Visible only to a user who starts a worker by hand: a pool discards it.
                writeln!(io::stderr(), "error: only the sandbox starts a worker: {error}").ok();
                2
            }
        });
    }
}

fn serve() -> io::Result<()> {
    close_from(3);
    // SAFETY: standard input and output are the pool's socket, or pipes to it; if they are anything else, using them fails.
    let pool = unsafe { Channel { requests: File::from_raw_fd(0), replies: File::from_raw_fd(1) } };
    // The interpreter needs a large stack whose bounds are known without `/proc`.
    let serving = std::thread::Builder::new().stack_size(STACK).spawn(move || serve_pool(pool))?;
    serving.join().unwrap_or_else(|_| Err(io::Error::other("the worker panicked")))
}

/// Connection to the pool. Its two ends are one socket, except through a command that passes streams on.
struct Channel {
    requests: File,
    replies: File,
}

/// Attempts to start an interpreter that dies before the program begins: memory may be short for a moment.
const START_ATTEMPTS: usize = 3;

/// Writes [`BEGUN`]: from here on, a death is the program's doing.
fn write_begun() -> Option<()> {
    let mut out = io::stdout();
    out.write_all(BEGUN).and_then(|()| out.flush()).ok()
}

/// Interpreter that is ready to be forked or executed.
enum Prepared {
    Embedded(Box<Embedded>),
    Cpython(Invocation),
}

fn serve_pool(mut pool: Channel) -> io::Result<()> {
    let setup: Setup = receive(&mut pool.requests)?;
    let refuse = |pool: &mut Channel, hello| send(&mut pool.replies, &hello);
    if setup.version != env!("CARGO_PKG_VERSION") {
        return refuse(&mut pool, Hello::OtherVersion(env!("CARGO_PKG_VERSION").to_owned()));
    }
    let cpython = match setup.interpreter.clone() {
        // A worker in an isolation of the user's may be another build than the program that asks.
        Interpreter::Embedded if cfg!(not(feature = "python")) => return refuse(&mut pool, Hello::NoInterpreter),
        Interpreter::Embedded => None,
        Interpreter::Cpython(cpython) => Some(cpython),
        Interpreter::Unprobed(python) => match cpython::probe(&python) {
            Ok(cpython) => Some(cpython),
            Err(SandboxError::Python { reason, .. }) => return refuse(&mut pool, Hello::Python(reason)),
            Err(error) => return Err(io::Error::other(error)),
        },
    };
    let (prepared, name, filter, readable, files) = match cpython {
        None => {
            let embedded = Embedded::new().map_err(io::Error::other)?;
            let prepared = Prepared::Embedded(Box::new(embedded));
            (prepared, embedded::VERSION.to_owned(), Filter::computing(), Vec::new(), 3)
        }
        Some(cpython) => {
            let invocation = Invocation::new(&cpython)
                .ok_or_else(|| io::Error::other("the interpreter's path contains a NUL byte"))?;
            let name = format!("{} ({})", cpython.version, cpython.executable.display());
            (Prepared::Cpython(invocation), name, Filter::starting(), cpython.readable, CPYTHON_FILES)
        }
    };
    let address_space = setup.memory
        + match prepared {
            Prepared::Embedded(_) => address_space().unwrap_or(1 << 30),
            Prepared::Cpython(_) => CPYTHON_SPACE,
        };
    let limits = Limits { address_space, cpu: setup.wall + Duration::from_secs(1), files };
    let landlock = restrict_files(&readable);
    let outside = setup.command.as_ref().map(|(_, outside)| outside);
    // What the user's isolation refuses must not be refused by the number of files alone, which a privileged process can raise.
    let tried_limits = if outside.is_some() { Limits { files: CPYTHON_FILES, ..limits } } else { limits };
    let trial = Trial { limits: tried_limits, pool: pool.requests.as_raw_fd(), outside };
    let Tried { measures, reached, mut missing } = trial.run(filter.as_ref())?;
    match (&landlock, &setup.command) {
        // The command isolates where the kernel cannot; what it leaves open was tried.
        (_, Some(_)) => missing.retain(|missing| missing.part != Part::Seccomp),
        (Err(reason), None) => missing.insert(0, Missing::new(Part::Landlock, reason)),
        (Ok(_), None) => {}
    }
    if setup.command.is_none() {
        missing.extend(environment());
    }
    if missing.is_empty() && !reached.is_empty() {
        missing.push(Missing::new(Part::Isolation, format!("a program can reach {}", reached.join(", "))));
    }
    if !missing.is_empty() && !setup.unconfined {
        return refuse(&mut pool, Hello::Unconfined(missing));
    }
    let confinement = Confinement {
        landlock: landlock.ok(),
        seccomp: measures.filter.is_some(),
        no_new_privileges: measures.no_new_privileges,
        limits: measures.limits,
        command: setup.command.as_ref().map(|(command, _)| command.clone()),
        missing,
    };
    send(&mut pool.replies, &Hello::Ready(Ready { interpreter: name, confinement, reached }))?;
    loop {
        let request: Request = match receive(&mut pool.requests) {
            Ok(request) => request,
            // The pool has closed the connection: the normal end of a worker.
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(()),
            Err(error) => return Err(error),
        };
        let input = match &prepared {
            Prepared::Embedded(_) => Vec::new(),
            Prepared::Cpython(_) => Invocation::input(&request.source, &request.function),
        };
        let supervision =
            Supervision { limits, measures, wall: setup.wall, pool: pool.requests.as_raw_fd(), input: &input };
        let sample = Sample { prepared: &prepared, request: &request };
        let mut result = process::run(&sample, &supervision);
        for _ in 1..START_ATTEMPTS {
            if result.is_ok() {
                break;
            }
            result = process::run(&sample, &supervision);
        }
        send(&mut pool.replies, &result.unwrap_or_else(|error| Outcome::Unavailable(error.to_string())))?;
    }
}

/// Missing emptiness of the environment, which the pool clears; names that macOS adds to every process are no secrets.
fn environment() -> Option<Missing> {
    let names: Vec<String> = std::env::vars_os()
        .map(|(name, _)| name.to_string_lossy().into_owned())
        .filter(|name| !name.starts_with("__CF"))
        .collect();
    (!names.is_empty()).then(|| Missing::new(Part::Environment, format!("{} is set", names.join(", "))))
}

/// Trial of a sample's process, before the first program.
struct Trial<'a> {
    limits: Limits,
    pool: RawFd,
    outside: Option<&'a Outside>,
}

/// Measures that work here, what a process under them reaches, and the measures that do not work.
struct Tried<'a> {
    measures: Measures<'a>,
    reached: Vec<String>,
    missing: Vec<Missing>,
}

impl Trial<'_> {
    /// Finds the measures that the kernel supports, leaving out one after the other that fails.
    ///
    /// # Errors
    /// If no process runs at all.
    fn run<'a>(&self, filter: Result<&'a Filter, &ConfineError>) -> io::Result<Tried<'a>> {
        let mut missing = Vec::new();
        missing.extend(filter.err().map(|reason| Missing::new(Part::Seccomp, reason)));
        let mut measures = Measures { filter: filter.ok(), no_new_privileges: true, limits: true };
        loop {
            let supervision =
                Supervision { limits: self.limits, measures, wall: ATTEMPTS_TIMEOUT, pool: self.pool, input: &[] };
            let failed = match process::run(&Attempts { outside: self.outside }, &supervision) {
                Ok(Outcome::Other(names)) => {
                    let reached: Vec<String> = parse(&names);
                    let passed: Vec<&str> =
                        FILTERED.into_iter().filter(|name| reached.iter().any(|r| r == name)).collect();
                    if measures.filter.is_some() && !passed.is_empty() {
                        let reason =
                            format!("its filter is accepted, and a program still reaches {}", passed.join(", "));
                        missing.push(Missing::new(Part::Seccomp, reason));
                        measures.filter = None;
                    }
                    return Ok(Tried { measures, reached, missing });
                }
                Err(NotStarted::Unconfined(failed)) => failed,
                // A kernel that ends the process instead of refusing a call.
                other if measures.filter.is_some() => {
                    let end = other.map_or_else(|error| error.to_string(), |outcome| outcome.to_string());
                    Missing::new(Part::Seccomp, format!("a process under its filter ended with {end}"))
                }
                other => {
                    let end = other.map_or_else(|error| error.to_string(), |outcome| outcome.to_string());
                    return Err(io::Error::other(format!("a process in the sandbox does not run here: {end}")));
                }
            };
            match failed.part {
                Part::Seccomp if measures.filter.is_some() => measures.filter = None,
                Part::NoNewPrivileges if measures.no_new_privileges => measures.no_new_privileges = false,
                Part::Limits if measures.limits => measures.limits = false,
                _ => return Err(io::Error::other(format!("a process in the sandbox does not run here: {failed}"))),
            }
            missing.push(failed);
        }
    }
}

/// Program of a request.
struct Sample<'a> {
    prepared: &'a Prepared,
    request: &'a Request,
}

impl Program for Sample<'_> {
    fn run(&self) -> Option<Vec<u8>> {
        match self.prepared {
            Prepared::Embedded(embedded) => {
                write_begun()?;
                embedded.answer(&self.request.source, &self.request.function).ok()
            }
            Prepared::Cpython(invocation) => {
                invocation.execute();
                None
            }
        }
    }
}

/// Timeout for the escape attempts, on a loaded machine.
const ATTEMPTS_TIMEOUT: Duration = Duration::from_secs(30);

/// Attempts that every filter refuses, without landlock.
const FILTERED: [&str; 6] =
    ["writing a file", "a TCP socket", "a UDP socket", "a Unix socket", "a new process", "a signal to the worker"];

/// Program that makes all escape attempts: those that every kernel's confinement refuses, or those that a user's isolation does.
struct Attempts<'a> {
    outside: Option<&'a Outside>,
}

impl Program for Attempts<'_> {
    fn run(&self) -> Option<Vec<u8>> {
        write_begun()?;
        let reached = match self.outside {
            Some(outside) => outside.reached(),
            None => attempts::succeeding_attempts().into_iter().map(str::to_owned).collect(),
        };
        // The end of an answer must not be in it; names of folders may have any bytes.
        let said = serde_json::to_string(&reached).ok()?.replace(|c: char| !c.is_ascii() || c.is_control(), "?");
        Some(format!("{}other\x1f{said}\x1e", super::outcome::MARK).into_bytes())
    }
}

/// Names that [`Attempts`] reported as succeeding.
fn parse(names: &str) -> Vec<String> {
    serde_json::from_str(names).unwrap_or_else(|_| vec!["an unreadable list of attempts".to_owned()])
}
