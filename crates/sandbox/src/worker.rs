//! Worker process: the same executable again, with nothing but a socket, which forks a process for every sample.
use std::io::{self, Write};
use std::os::fd::{AsRawFd, FromRawFd};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use super::attempts;
use super::confine::{Filter, close_from, restrict_files};
use super::cpython::Invocation;
use super::embedded::{self, Embedded};
use super::limits::{Limits, address_space};
use super::outcome::BEGUN;
use super::process::{self, NotStarted, Program, Supervision};
use super::protocol::{Interpreter, Ready, Request, Setup, receive, send};
use super::{Confinement, Outcome};

/// Command-line argument that makes a program a worker.
pub(super) const ARGUMENT: &str = "__earnest-sandbox-worker";

/// Stack of the interpreter, in bytes. Only touched pages take memory.
const STACK: usize = 64 << 20;

/// Address space of CPython and its libraries before a program runs, in bytes.
const CPYTHON_SPACE: u64 = 128 << 20;

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
    // SAFETY: standard input is the pool's socket; if it is anything else, reading from it fails.
    let mut pool = unsafe { UnixStream::from_raw_fd(0) };
    let setup: Setup = receive(&mut pool)?;
    // The interpreter needs a large stack whose bounds are known without `/proc`.
    let serving = std::thread::Builder::new().stack_size(STACK).spawn(move || serve_pool(pool, &setup))?;
    serving.join().unwrap_or_else(|_| Err(io::Error::other("the worker panicked")))
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

fn serve_pool(mut pool: UnixStream, setup: &Setup) -> io::Result<()> {
    let (prepared, name, filter, readable, files) = match &setup.interpreter {
        Interpreter::Embedded => {
            let embedded = Embedded::new().map_err(io::Error::other)?;
            let prepared = Prepared::Embedded(Box::new(embedded));
            (prepared, embedded::VERSION.to_owned(), Filter::computing(), Vec::new(), 3)
        }
        Interpreter::Cpython(cpython) => {
            let invocation = Invocation::new(cpython)
                .ok_or_else(|| io::Error::other("the interpreter's path contains a NUL byte"))?;
            let name = format!("{} ({})", cpython.version, cpython.executable.display());
            (Prepared::Cpython(invocation), name, Filter::starting(), cpython.readable.clone(), 64)
        }
    };
    let address_space = setup.memory
        + match prepared {
            Prepared::Embedded(_) => address_space().unwrap_or(1 << 30),
            Prepared::Cpython(_) => CPYTHON_SPACE,
        };
    let limits = Limits { address_space, cpu: setup.wall + Duration::from_secs(1), files };
    let landlock = restrict_files(&readable);
    let try_all = |filter: Option<&Filter>| {
        let supervision = Supervision { limits, filter, wall: ATTEMPTS_TIMEOUT, pool: pool.as_raw_fd(), input: &[] };
        reached(process::run(&Attempts, &supervision))
    };
    // A filter that the kernel does not support, or that refuses too little, is dropped.
    let filtered = filter.as_ref().and_then(|filter| try_all(Some(filter)));
    let filter = filter.filter(|_| {
        filtered.as_ref().is_some_and(|reached| !reached.iter().any(|name| FILTERED.contains(&name.as_str())))
    });
    let reached = match (&filter, filtered) {
        (Some(_), Some(reached)) => reached,
        _ => try_all(None)
            .ok_or_else(|| io::Error::other("a process under the sandbox's limits does not run on this system"))?,
    };
    let confinement = Confinement { landlock, seccomp: filter.is_some() };
    send(&mut pool, &Ready { interpreter: name, confinement, reached })?;
    loop {
        let request: Request = match receive(&mut pool) {
            Ok(request) => request,
            // The pool has closed the socket: the normal end of a worker.
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(()),
            Err(error) => return Err(error),
        };
        let input = match &prepared {
            Prepared::Embedded(_) => Vec::new(),
            Prepared::Cpython(_) => Invocation::input(&request.source, &request.function),
        };
        let supervision =
            Supervision { limits, filter: filter.as_ref(), wall: setup.wall, pool: pool.as_raw_fd(), input: &input };
        let sample = Sample { prepared: &prepared, request: &request };
        let mut result = process::run(&sample, &supervision);
        for _ in 1..START_ATTEMPTS {
            if result.is_ok() {
                break;
            }
            result = process::run(&sample, &supervision);
        }
        send(&mut pool, &result.unwrap_or_else(|error| Outcome::Unavailable(error.to_string())))?;
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

/// Program that makes all escape attempts.
struct Attempts;

impl Program for Attempts {
    fn run(&self) -> Option<Vec<u8>> {
        write_begun()?;
        Some(format!("{}other\x1f{}\x1e", super::outcome::MARK, attempts::succeeding_attempts().join(",")).into_bytes())
    }
}

/// Names that [`Attempts`] reported as succeeding; `None` if it did not finish.
fn reached(result: Result<Outcome, NotStarted>) -> Option<Vec<String>> {
    let Ok(Outcome::Other(names)) = result else { return None };
    Some(names.split(',').filter(|name| !name.is_empty()).map(str::to_owned).collect())
}
