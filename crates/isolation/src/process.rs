//! Workers as the program sees them: started, asked, killed at their deadline, and their death explained.
use std::io::{self, Read};
use std::net::Shutdown;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, ChildStderr, Command, ExitStatus, Stdio};
use std::time::Duration;

use super::protocol::{receive, send, send_number, send_time};
use super::worker::{self, ARGUMENT};
use super::{CpuTime, Ended, Job};

/// By the clock, a worker may take so many times its processor time, which a busy machine gives slowly.
const CLOCK: u64 = 3;

/// True if this program can be a worker for a job.
pub(super) fn available(job: &'static Job) -> bool {
    worker::program(job).is_some()
}

/// A worker's process.
pub(super) struct Worker {
    child: Child,
    socket: UnixStream,
    /// Its standard error, which names the cause of its death.
    words: Option<ChildStderr>,
    memory: u64,
}

impl Worker {
    /// Starts a worker with so many bytes of memory, and sends it the settings of its job.
    pub(super) fn start(job: &'static Job, settings: &[u8], memory: u64) -> Result<Worker, Ended> {
        let Some(program) = worker::program(job) else {
            return Err(Ended::new("could not begin: this program cannot be a worker"));
        };
        let start = || -> io::Result<Worker> {
            let (socket, theirs) = UnixStream::pair()?;
            let mut child = Command::new(program)
                .args([ARGUMENT, job.name])
                .env_clear()
                .current_dir("/")
                .stdin(Stdio::from(OwnedFd::from(theirs)))
                .stdout(Stdio::null())
                .stderr(Stdio::piped())
                // Ctrl-C at the terminal stops the run, not the prompt that is being rendered.
                .process_group(0)
                .spawn()?;
            let words = child.stderr.take();
            let mut worker = Worker { child, socket, words, memory };
            send_number(&mut worker.socket, memory)?;
            send(&mut worker.socket, settings)?;
            Ok(worker)
        };
        start().map_err(|error| {
            Ended::new(format!("could not begin: {} could not be started as a worker: {error}", program.display()))
        })
    }

    /// Returns the worker if its process still runs.
    pub(super) fn if_alive(mut self) -> Option<Worker> {
        matches!(self.child.try_wait(), Ok(None)).then_some(self)
    }

    /// Waits for an answer; the error is the end of a sentence about the work: what it did to the process.
    pub(super) fn ask(&mut self, request: &[u8], time: CpuTime) -> Result<Vec<u8>, Ended> {
        let mut ask = || -> io::Result<Vec<u8>> {
            let timeout = Some(Duration::from_secs(CLOCK * time.seconds()));
            self.socket.set_read_timeout(timeout)?;
            self.socket.set_write_timeout(timeout)?;
            send_time(&mut self.socket, time)?;
            send(&mut self.socket, request)?;
            receive(&mut self.socket)
        };
        ask().map_err(|error| match error.kind() {
            io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => {
                let words = format!("takes longer than {} seconds", CLOCK * time.seconds());
                Ended { words, by_time: true }
            }
            _ => self.cause_of_death(&error, time),
        })
    }

    fn cause_of_death(&mut self, error: &io::Error, time: CpuTime) -> Ended {
        // An answer that cannot be read leaves the process alive.
        self.socket.shutdown(Shutdown::Both).ok();
        let mut words = Vec::new();
        if let Some(stderr) = self.words.take() {
            // The end of the stream is the end of the process: the limits on its time hold here too.
            stderr.take(1 << 16).read_to_end(&mut words).ok();
        }
        let status = self.child.wait().ok();
        let words = String::from_utf8_lossy(&words);
        let by_time = status.and_then(|status| status.signal()) == Some(libc::SIGXCPU);
        let words = match status {
            _ if words.contains("memory allocation of") || words.contains("capacity overflow") => {
                format!("needs more than {} MiB of memory", self.memory >> 20)
            }
            _ if words.contains("overflowed its stack") => "overflows the stack".to_owned(),
            _ if by_time => format!("takes longer than {} seconds of processor time", time.seconds()),
            Some(status) => match status.signal() {
                Some(signal) => format!("ended its process with signal {signal}"),
                None => format!("ended its process: {}", described(status, &words)),
            },
            None => format!("ended its process: {error}"),
        };
        Ended { words, by_time }
    }
}

fn described(status: ExitStatus, words: &str) -> String {
    let last = words.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or_default();
    let last: String = last.chars().take(200).collect();
    format!("{status}{}{last}", if last.is_empty() { "" } else { ", " })
}

impl Drop for Worker {
    fn drop(&mut self) {
        // It holds nothing that could be lost.
        self.child.kill().ok();
        self.child.wait().ok();
    }
}
