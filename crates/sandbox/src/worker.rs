//! The worker: our program again, with nothing but a socket, forking a process for every sample.
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
use super::process::{self, Program, Watch};
use super::protocol::{Interpreter, Ready, Request, Setup, receive, send};
use super::{Confinement, Outcome};

/// The argument that makes a program a worker.
pub(super) const ARGUMENT: &str = "__earnest-sandbox-worker";

/// Stack of the interpreter. Only the pages that are touched are memory.
const STACK: usize = 64 << 20;

/// Address space that CPython and its libraries take before a program runs.
const CPYTHON_SPACE: u64 = 128 << 20;

/// Becomes a worker if the process was started as one, and does not return then. It must come first in `main` of every
/// program that is named in [`Settings::program`](super::Settings::program); `earnest` begins with it.
pub fn serve_if_worker() {
    if std::env::args_os().nth(1).is_some_and(|argument| argument == ARGUMENT) {
        std::process::exit(match serve() {
            Ok(()) => 0,
            Err(error) => {
                // Seen by people who start a worker themselves.
                writeln!(io::stderr(), "error: this is started by the sandbox only: {error}").ok();
                2
            }
        });
    }
}

fn serve() -> io::Result<()> {
    close_from(3);
    // SAFETY: standard input is the socket that the pool made; if it is something else, reading from it fails.
    let mut pool = unsafe { UnixStream::from_raw_fd(0) };
    let setup: Setup = receive(&mut pool)?;
    // The interpreter's stack must be large, and its bounds known without reading `/proc`.
    let serving = std::thread::Builder::new().stack_size(STACK).spawn(move || serve_pool(pool, &setup))?;
    serving.join().unwrap_or_else(|_| Err(io::Error::other("the worker panicked")))
}

/// How often an interpreter that dies before the program runs is started: a machine may be short of memory for a moment.
const STARTS: usize = 3;

/// Says that what follows is the program's doing.
fn begin() -> Option<()> {
    let mut out = io::stdout();
    out.write_all(BEGUN).and_then(|()| out.flush()).ok()
}

/// An interpreter that is ready to be forked or started.
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
            let invocation = Invocation::new(cpython).ok_or_else(|| io::Error::other("the path has a NUL"))?;
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
        let watch = Watch { limits, filter, wall: TRYING, asker: pool.as_raw_fd(), input: &[] };
        reached(&process::run(&Attempts, &watch))
    };
    // A filter that a kernel does not have, or that refuses too little, does not count.
    let filtered = filter.as_ref().and_then(|filter| try_all(Some(filter)));
    let filter = filter.filter(|_| {
        filtered.as_ref().is_some_and(|reached| !reached.iter().any(|name| FILTERED.contains(&name.as_str())))
    });
    let reached = match (&filter, filtered) {
        (Some(_), Some(reached)) => reached,
        _ => try_all(None).ok_or_else(|| io::Error::other("a process with limits does not work here"))?,
    };
    let confinement = Confinement { landlock, seccomp: filter.is_some() };
    send(&mut pool, &Ready { interpreter: name, confinement, reached })?;
    loop {
        let request: Request = match receive(&mut pool) {
            Ok(request) => request,
            // The pool is gone: that is how a worker ends.
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(()),
            Err(error) => return Err(error),
        };
        let input = match &prepared {
            Prepared::Embedded(_) => Vec::new(),
            Prepared::Cpython(_) => Invocation::input(&request.source, &request.function),
        };
        let watch = Watch { limits, filter: filter.as_ref(), wall: setup.wall, asker: pool.as_raw_fd(), input: &input };
        let sample = Sample { prepared: &prepared, request: &request };
        let mut outcome = process::run(&sample, &watch);
        for _ in 1..STARTS {
            if !matches!(&outcome, Outcome::Unavailable(why) if why.starts_with(process::NOT_STARTED)) {
                break;
            }
            outcome = process::run(&sample, &watch);
        }
        send(&mut pool, &outcome)?;
    }
}

/// A request in its process.
struct Sample<'a> {
    prepared: &'a Prepared,
    request: &'a Request,
}

impl Program for Sample<'_> {
    fn run(&self) -> Option<Vec<u8>> {
        match self.prepared {
            Prepared::Embedded(embedded) => {
                begin()?;
                embedded.answer(&self.request.source, &self.request.function).ok()
            }
            Prepared::Cpython(invocation) => {
                invocation.execute();
                None
            }
        }
    }
}

/// Time in which a process tries what it can reach, on a loaded machine.
const TRYING: Duration = Duration::from_secs(30);

/// What every filter refuses, without landlock's help.
const FILTERED: [&str; 6] =
    ["writing a file", "a TCP socket", "a UDP socket", "a Unix socket", "a new process", "a signal to the worker"];

/// Tries all that a program must not reach, where a program runs.
struct Attempts;

impl Program for Attempts {
    fn run(&self) -> Option<Vec<u8>> {
        begin()?;
        Some(format!("{}other\x1f{}\x1e", super::outcome::MARK, attempts::reached().join(",")).into_bytes())
    }
}

/// What [`Attempts`] found; none if it did not end.
fn reached(outcome: &Outcome) -> Option<Vec<String>> {
    let Outcome::Other(names) = outcome else { return None };
    Some(names.split(',').filter(|name| !name.is_empty()).map(str::to_owned).collect())
}
