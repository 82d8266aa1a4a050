//! A sample's process: forked from the worker, limited, supervised, killed at its deadline.
use std::io::{self, PipeReader, PipeWriter, Read, Write};
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

use super::Outcome;
use super::confine::{Filter, Missing, Part, close_from, die_with_parent, forbid_new_privileges};
use super::limits::Limits;
use super::outcome::BEGUN;

/// Code that runs in the sample's process once the limits are in force.
pub trait Program {
    /// Writes [`BEGUN`] to standard output, runs, and returns the answer to write; a program that replaces the process does not
    /// return.
    fn run(&self) -> Option<Vec<u8>>;
}

/// Limits and supervision of a sample's process.
pub struct Supervision<'a> {
    pub limits: Limits,
    pub measures: Measures<'a>,
    pub wall: Duration,
    /// The pool's socket. Once the pool has closed it, the sample is abandoned.
    pub pool: RawFd,
    /// Standard input of the process.
    pub input: &'a [u8],
}

/// Measures that a process puts on itself before its program begins; one that fails ends it.
#[derive(Clone, Copy)]
pub struct Measures<'a> {
    pub filter: Option<&'a Filter>,
    pub no_new_privileges: bool,
    /// All limits; otherwise those that the system allows.
    pub limits: bool,
}

impl Measures<'_> {
    fn apply(&self, limits: &Limits) -> Result<(), Missing> {
        if self.limits {
            limits.apply().map_err(|reason| Missing::new(Part::Limits, reason))?;
        } else {
            limits.apply_possible();
        }
        if self.no_new_privileges {
            forbid_new_privileges().map_err(|error| Missing::new(Part::NoNewPrivileges, error))?;
        }
        // Before the filter, which denies it.
        close_from(3);
        self.filter.map_or(Ok(()), Filter::apply).map_err(|reason| Missing::new(Part::Seccomp, reason))
    }
}

/// Largest output of a process, in bytes; beyond it, the process is killed.
const MAX_OUTPUT: usize = 8 << 20;

/// End of a process before its program began, which says nothing about the program.
#[derive(Debug, thiserror::Error)]
pub enum NotStarted {
    #[error("the interpreter did not start: {cause}")]
    Died { cause: String },
    /// A measure was not in force.
    #[error("a process could not confine itself: {0}")]
    Unconfined(Missing),
}

/// Exit statuses of our own code in the process, distinct from those of interpreters.
const CANNOT_CONFINE: i32 = 121;
const NO_ANSWER: i32 = 122;

/// Runs a program in a forked process.
///
/// # Errors
/// [`NotStarted`] if the process dies before the program begins.
pub fn run(program: &dyn Program, supervision: &Supervision<'_>) -> Result<Outcome, NotStarted> {
    let pipes = || -> io::Result<_> { Ok((io::pipe()?, io::pipe()?)) };
    let ((input_end, input), (output, output_end)) = match pipes() {
        Ok(pipes) => pipes,
        Err(error) => return Ok(Outcome::Unavailable(format!("cannot create a pipe: {error}"))),
    };
    // SAFETY: getpid has no preconditions. No other thread of this process runs (the main thread waits for this one), so the
    // child finds no lock held.
    let (parent, child) = unsafe { (libc::getpid(), libc::fork()) };
    match child {
        -1 => Ok(Outcome::Unavailable(format!("cannot fork: {}", io::Error::last_os_error()))),
        0 => sample(program, supervision, parent, input_end, output_end),
        child => {
            drop((input_end, output_end));
            supervise(child, supervision, input, output)
        }
    }
}

/// Runs the program in the forked child and exits.
fn sample(
    program: &dyn Program,
    supervision: &Supervision<'_>,
    parent: i32,
    input: PipeReader,
    output: PipeWriter,
) -> ! {
    let redirected = (|| -> io::Result<bool> {
        // SAFETY: the descriptors are open; the former 0, 1 and 2 are not used in this process.
        unsafe {
            for (from, to) in [(input.as_raw_fd(), 0), (output.as_raw_fd(), 1), (output.as_raw_fd(), 2)] {
                if libc::dup2(from, to) < 0 {
                    return Err(io::Error::last_os_error());
                }
            }
            // A new process group, so that anything it starts is killed with it.
            libc::setpgid(0, 0);
        }
        Ok(die_with_parent(parent))
    })();
    // `close_from` closes them: their destructors must not close reused descriptors.
    std::mem::forget((input, output));
    let prepared = match redirected {
        Ok(true) => supervision.measures.apply(&supervision.limits),
        // The parent is gone, or nothing can be written: nobody reads a reason.
        _ => {
            // SAFETY: ends the process without running destructors, which belong to the worker.
            unsafe { libc::_exit(NO_ANSWER) }
        }
    };
    let status = if let Err(missing) = prepared {
        let said = serde_json::to_vec(&missing).unwrap_or_default();
        io::stdout().write_all(&said).and_then(|()| io::stdout().flush()).ok();
        CANNOT_CONFINE
    } else {
        match catch_unwind(AssertUnwindSafe(|| program.run())) {
            Ok(Some(answer)) => {
                io::stdout().write_all(&answer).and_then(|()| io::stdout().flush()).map_or(NO_ANSWER, |()| 0)
            }
            // A panic has written its message to standard error, which is the pipe.
            Ok(None) | Err(_) => NO_ANSWER,
        }
    };
    // SAFETY: ends the process without running destructors, which belong to the worker.
    unsafe { libc::_exit(status) }
}

/// Feeds, reads and finally kills the child, in the worker.
fn supervise(
    child: libc::pid_t,
    supervision: &Supervision<'_>,
    input: PipeWriter,
    mut output: PipeReader,
) -> Result<Outcome, NotStarted> {
    let deadline = Instant::now() + supervision.wall;
    let mut stdin = StdinWriter::new(input, supervision.input);
    let mut written = Vec::new();
    let ended = loop {
        let Some(left) = deadline.checked_duration_since(Instant::now()) else { break Ended::Late };
        let mut polled = [
            libc::pollfd { fd: output.as_raw_fd(), events: libc::POLLIN, revents: 0 },
            libc::pollfd { fd: supervision.pool, events: 0, revents: 0 },
            libc::pollfd { fd: stdin.descriptor(), events: libc::POLLOUT, revents: 0 },
        ];
        // SAFETY: three valid structs; poll ignores a negative descriptor.
        let ready = unsafe { libc::poll(polled.as_mut_ptr(), 3, left.as_millis().min(60_000) as i32 + 1) };
        if ready < 0 && io::Error::last_os_error().kind() != io::ErrorKind::Interrupted {
            break Ended::Closed;
        }
        if polled[1].revents != 0 {
            break Ended::Abandoned;
        }
        if polled[2].revents != 0 {
            stdin.write();
        }
        if polled[0].revents != 0 {
            let mut chunk = [0; 1 << 16];
            match output.read(&mut chunk) {
                Ok(0) | Err(_) => break Ended::Closed,
                Ok(count) => written.extend(chunk.iter().take(count)),
            }
            if written.len() > MAX_OUTPUT {
                break Ended::TooLarge;
            }
        }
    };
    let answer = Outcome::parse(&written);
    // A process that closed the pipe without an answer is exiting: its status names the cause.
    let status = if matches!(ended, Ended::Closed) && answer.is_none() { await_exit(child, deadline) } else { None };
    let status = status.map_or_else(|| kill(child), Some);
    let begun = written.windows(BEGUN.len()).any(|window| window == BEGUN);
    match (answer, ended, status) {
        (Some(outcome), _, _) => Ok(outcome),
        (None, Ended::Late, _) => Ok(Outcome::TimeLimit),
        (None, Ended::TooLarge, _) => Ok(Outcome::Crashed("it wrote more than 8 MiB".to_owned())),
        (None, Ended::Abandoned, _) => Ok(Outcome::Unavailable("the pool closed the connection".to_owned())),
        (None, Ended::Closed, status) => match classify_exit(status, &written) {
            _ if !begun && status.is_some_and(is_unconfined) => Err(match serde_json::from_slice(&written) {
                Ok(missing) => NotStarted::Unconfined(missing),
                Err(_) => NotStarted::Died { cause: "it could not confine itself".to_owned() },
            }),
            Outcome::Crashed(cause) if !begun => Err(NotStarted::Died { cause }),
            outcome => Ok(outcome),
        },
    }
}

/// Reason why supervision of a process ended.
enum Ended {
    Closed,
    Late,
    TooLarge,
    Abandoned,
}

/// True for the end of a process in which a measure was not in force.
fn is_unconfined(status: i32) -> bool {
    libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == CANNOT_CONFINE
}

/// Outcome of a process that died without an answer. The texts are those that Rust's standard library and CPython write before
/// they end a process.
fn classify_exit(status: Option<i32>, written: &[u8]) -> Outcome {
    let output = String::from_utf8_lossy(written);
    let output = output.replace(&*String::from_utf8_lossy(BEGUN), "");
    let says = |text: &str| output.contains(text);
    if says("memory allocation of") || says("capacity overflow") || says("MemoryError") || says("out of memory") {
        return Outcome::MemoryLimit;
    }
    if says("overflowed its stack") {
        return Outcome::Crashed("stack overflow".to_owned());
    }
    let Some(status) = status else { return Outcome::TimeLimit };
    if libc::WIFSIGNALED(status) {
        return match libc::WTERMSIG(status) {
            libc::SIGXCPU => Outcome::TimeLimit,
            signal => Outcome::Crashed(format!("signal {signal}")),
        };
    }
    match libc::WEXITSTATUS(status) {
        NO_ANSWER if says("panicked at") => {
            // The message follows the line that names the place.
            let lines = output.lines().skip_while(|line| !line.contains("panicked at")).skip(1);
            let message = lines.map(str::trim).find(|line| !line.is_empty()).unwrap_or("no message");
            Outcome::Crashed(format!("the interpreter panicked: {}", message.chars().take(200).collect::<String>()))
        }
        status => {
            let last = output.lines().rev().find(|line| !line.trim().is_empty() && line.len() < 200);
            Outcome::Crashed(format!("exit status {status}{}", last.map_or(String::new(), |line| format!(": {line}"))))
        }
    }
}

/// Waits for a process to exit; `None` if it still runs at the deadline.
fn await_exit(child: libc::pid_t, deadline: Instant) -> Option<i32> {
    loop {
        if let Some(status) = reap(child, libc::WNOHANG) {
            return Some(status);
        }
        if Instant::now() >= deadline {
            return None;
        }
        std::thread::sleep(Duration::from_micros(200));
    }
}

/// Kills a process with its group and reaps it. Always `None`: a killed process has no status of its own.
fn kill(child: libc::pid_t) -> Option<i32> {
    // SAFETY: the process has not been reaped, so both ids still belong to it.
    unsafe {
        libc::kill(-child, libc::SIGKILL);
        libc::kill(child, libc::SIGKILL);
    }
    reap(child, 0);
    None
}

fn reap(child: libc::pid_t, options: i32) -> Option<i32> {
    let mut status = 0;
    loop {
        // SAFETY: `status` is valid for writes.
        let reaped = unsafe { libc::waitpid(child, &mut status, options) };
        if reaped == child {
            return Some(status);
        }
        if reaped == 0 || io::Error::last_os_error().kind() != io::ErrorKind::Interrupted {
            return None;
        }
    }
}

/// Non-blocking writer of a process's standard input, with the rest that is still to be written.
struct StdinWriter<'a> {
    pipe: Option<PipeWriter>,
    rest: &'a [u8],
}

impl<'a> StdinWriter<'a> {
    fn new(pipe: PipeWriter, input: &'a [u8]) -> Self {
        let pipe = OwnedFd::from(pipe);
        // SAFETY: sets a flag of an open descriptor.
        let set = unsafe { libc::fcntl(pipe.as_raw_fd(), libc::F_SETFL, libc::O_NONBLOCK) } == 0;
        StdinWriter { pipe: (set && !input.is_empty()).then(|| pipe.into()), rest: input }
    }

    fn descriptor(&self) -> RawFd {
        self.pipe.as_ref().map_or(-1, AsRawFd::as_raw_fd)
    }

    /// Writes as much as the pipe takes. Closes the pipe at the end of the input or when the process no longer reads.
    fn write(&mut self) {
        let Some(pipe) = &mut self.pipe else { return };
        match pipe.write(self.rest) {
            Ok(count) => self.rest = self.rest.get(count..).unwrap_or_default(),
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {}
            Err(_) => self.rest = &[],
        }
        if self.rest.is_empty() {
            self.pipe = None;
        }
    }
}
