//! A sample's process: forked from the worker, limited, watched, killed when its time is over.
use std::io::{self, PipeReader, PipeWriter, Read, Write};
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

use super::Outcome;
use super::confine::{Filter, close_from, die_with_parent};
use super::limits::Limits;
use super::outcome::BEGUN;

/// What happens in the sample's process once it is limited.
pub trait Program {
    /// Runs and returns what is to be written as the answer; a program that replaces the process does not return. It writes
    /// [`BEGUN`] to standard output first.
    fn run(&self) -> Option<Vec<u8>>;
}

/// How a sample's process is started and watched.
pub struct Watch<'a> {
    pub limits: Limits,
    pub filter: Option<&'a Filter>,
    pub wall: Duration,
    /// Once the other end of this socket is closed, nobody waits for the answer any more.
    pub asker: RawFd,
    /// What the process finds on its standard input.
    pub input: &'a [u8],
}

/// An answer above this size is none.
const LARGEST_ANSWER: usize = 8 << 20;

/// How the outcome of a process begins that died before its program ran.
pub const NOT_STARTED: &str = "the interpreter did not start: ";

/// Exit statuses of the process itself, outside those of interpreters.
const CANNOT_LIMIT: i32 = 121;
const NO_ANSWER: i32 = 122;

/// Runs a program in a process of its own.
pub fn run(program: &dyn Program, watch: &Watch<'_>) -> Outcome {
    let pipes = || -> io::Result<_> { Ok((io::pipe()?, io::pipe()?)) };
    let ((input_end, input), (output, output_end)) = match pipes() {
        Ok(pipes) => pipes,
        Err(error) => return Outcome::Unavailable(format!("no pipe: {error}")),
    };
    // SAFETY: getpid has no conditions. The forking thread is the only one that works in this process (the main thread
    // waits for it), so that the child finds no lock held.
    let (parent, child) = unsafe { (libc::getpid(), libc::fork()) };
    match child {
        -1 => Outcome::Unavailable(format!("no process: {}", io::Error::last_os_error())),
        0 => sample(program, watch, parent, input_end, output_end),
        child => {
            drop((input_end, output_end));
            supervise(child, watch, input, output)
        }
    }
}

/// The child's life.
fn sample(program: &dyn Program, watch: &Watch<'_>, parent: i32, input: PipeReader, output: PipeWriter) -> ! {
    let prepared = (|| -> io::Result<bool> {
        // SAFETY: the descriptors are open; what stood at 0, 1 and 2 is not used in this process.
        unsafe {
            for (from, to) in [(input.as_raw_fd(), 0), (output.as_raw_fd(), 1), (output.as_raw_fd(), 2)] {
                if libc::dup2(from, to) < 0 {
                    return Err(io::Error::last_os_error());
                }
            }
            // A group of its own, so that what it might start is killed with it.
            libc::setpgid(0, 0);
        }
        if !die_with_parent(parent) {
            return Ok(false);
        }
        watch.limits.apply()?;
        // Before the filter, which allows no call for it.
        close_from(3);
        Ok(watch.filter.is_none_or(Filter::apply))
    })();
    // Closed by `close_from`: their destructors must not close what has the same number then.
    std::mem::forget((input, output));
    let status = if !matches!(prepared, Ok(true)) {
        CANNOT_LIMIT
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

/// The worker's side: feeds, reads, and kills.
fn supervise(child: libc::pid_t, watch: &Watch<'_>, input: PipeWriter, mut output: PipeReader) -> Outcome {
    let deadline = Instant::now() + watch.wall;
    let mut feed = Feed::new(input, watch.input);
    let mut written = Vec::new();
    let ended = loop {
        let Some(left) = deadline.checked_duration_since(Instant::now()) else { break Ended::Late };
        let mut polled = [
            libc::pollfd { fd: output.as_raw_fd(), events: libc::POLLIN, revents: 0 },
            libc::pollfd { fd: watch.asker, events: 0, revents: 0 },
            libc::pollfd { fd: feed.descriptor(), events: libc::POLLOUT, revents: 0 },
        ];
        // SAFETY: three valid structures; a negative descriptor is passed over.
        let ready = unsafe { libc::poll(polled.as_mut_ptr(), 3, left.as_millis().min(60_000) as i32 + 1) };
        if ready < 0 && io::Error::last_os_error().kind() != io::ErrorKind::Interrupted {
            break Ended::Closed;
        }
        if polled[1].revents != 0 {
            break Ended::Abandoned;
        }
        if polled[2].revents != 0 {
            feed.more();
        }
        if polled[0].revents != 0 {
            let mut chunk = [0; 1 << 16];
            match output.read(&mut chunk) {
                Ok(0) | Err(_) => break Ended::Closed,
                Ok(count) => written.extend(chunk.iter().take(count)),
            }
            if written.len() > LARGEST_ANSWER {
                break Ended::TooLarge;
            }
        }
    };
    let answer = Outcome::parse(&written);
    // A process that closed the pipe without an answer is dying; how, says what went wrong.
    let status = if matches!(ended, Ended::Closed) && answer.is_none() { await_exit(child, deadline) } else { None };
    let status = status.map_or_else(|| kill(child), Some);
    let begun = written.windows(BEGUN.len()).any(|window| window == BEGUN);
    match (answer, ended, status) {
        (Some(outcome), _, _) => outcome,
        (None, Ended::Late, _) => Outcome::TimeLimit,
        (None, Ended::TooLarge, _) => Outcome::Crashed("it wrote without end".to_owned()),
        (None, Ended::Abandoned, _) => Outcome::Unavailable("nobody waits for the answer".to_owned()),
        (None, Ended::Closed, status) => match autopsy(status, &written) {
            // Not the program's doing.
            Outcome::Crashed(how) if !begun => Outcome::Unavailable(format!("{NOT_STARTED}{how}")),
            outcome => outcome,
        },
    }
}

/// Why watching ended.
enum Ended {
    Closed,
    Late,
    TooLarge,
    Abandoned,
}

/// What a death means. The texts are those of Rust's standard library and of CPython for what kills a process.
fn autopsy(status: Option<i32>, written: &[u8]) -> Outcome {
    let said = String::from_utf8_lossy(written);
    let said = said.replace(&*String::from_utf8_lossy(BEGUN), "");
    let says = |text: &str| said.contains(text);
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
        CANNOT_LIMIT => Outcome::Unavailable("a process could not limit itself".to_owned()),
        NO_ANSWER if says("panicked at") => {
            // The line behind the one that names the place.
            let lines = said.lines().skip_while(|line| !line.contains("panicked at")).skip(1);
            let message = lines.map(str::trim).find(|line| !line.is_empty()).unwrap_or("no message");
            Outcome::Crashed(format!("the interpreter panicked: {}", message.chars().take(200).collect::<String>()))
        }
        status => {
            let last = said.lines().rev().find(|line| !line.trim().is_empty() && line.len() < 200);
            Outcome::Crashed(format!("exit status {status}{}", last.map_or(String::new(), |line| format!(": {line}"))))
        }
    }
}

/// Waits until a process has ended; none if it has not when time is over.
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

/// Kills a process with its group, and waits for its end. None: whatever it did, it was killed.
fn kill(child: libc::pid_t) -> Option<i32> {
    // SAFETY: the process has not been waited for, so both numbers are still its own.
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
        // SAFETY: gets a valid place for the status.
        let found = unsafe { libc::waitpid(child, &mut status, options) };
        if found == child {
            return Some(status);
        }
        if found == 0 || io::Error::last_os_error().kind() != io::ErrorKind::Interrupted {
            return None;
        }
    }
}

/// The input that the process has not taken yet.
struct Feed<'a> {
    pipe: Option<PipeWriter>,
    rest: &'a [u8],
}

impl<'a> Feed<'a> {
    fn new(pipe: PipeWriter, input: &'a [u8]) -> Self {
        let pipe = OwnedFd::from(pipe);
        // SAFETY: sets a flag of an open descriptor.
        let set = unsafe { libc::fcntl(pipe.as_raw_fd(), libc::F_SETFL, libc::O_NONBLOCK) } == 0;
        Feed { pipe: (set && !input.is_empty()).then(|| pipe.into()), rest: input }
    }

    fn descriptor(&self) -> RawFd {
        self.pipe.as_ref().map_or(-1, AsRawFd::as_raw_fd)
    }

    /// Writes what fits. Closes the pipe at the end, and where the process does not read any more.
    fn more(&mut self) {
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
