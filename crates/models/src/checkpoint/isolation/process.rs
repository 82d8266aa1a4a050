//! Workers as the program sees them: started, asked, killed at their deadline, and their death explained.
use std::io::{self, Read};
use std::net::Shutdown;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, ChildStderr, Command, ExitStatus, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use serde::de::DeserializeOwned;

use super::super::template_engine::{Conversation, TemplateFailure, TemplateText};
use super::protocol::{Job, Rendering, Setup, Trial, receive, send, send_bytes};
use super::worker::{self, ARGUMENT};

/// Memory for compiling and rendering a template, in bytes.
const TEMPLATE_MEMORY: u64 = 1 << 30;

/// Time for compiling and rendering a template. Its fuel ends most loops within seconds.
const TEMPLATE_SECONDS: u64 = 20;

/// Memory for a tokenizer's trial, in bytes, and for each byte of its file. One of 262,144 tokens takes 11 bytes for each of 24 MB.
const TOKENIZER_MEMORY: u64 = 512 << 20;
const TOKENIZER_MEMORY_PER_BYTE: u64 = 96;

/// Time for a tokenizer's trial, and for each MiB of its file. The same one takes 5 s in a build without optimisation.
const TOKENIZER_SECONDS: u64 = 20;
const TOKENIZER_SECONDS_PER_MIB: u64 = 2;

/// True if this program can be a worker.
pub(super) fn available() -> bool {
    worker::program().is_some()
}

/// Builds and tries a tokenizer in a worker; the error says what is wrong with the file.
pub(super) fn try_tokenizer(file: &[u8]) -> Result<(), String> {
    let size = file.len() as u64;
    let mut worker = Worker::start(&Setup {
        job: Job::Tokenizer,
        memory: TOKENIZER_MEMORY + TOKENIZER_MEMORY_PER_BYTE * size,
        seconds: TOKENIZER_SECONDS + TOKENIZER_SECONDS_PER_MIB * (size >> 20),
    })?;
    let sent = send_bytes(&mut worker.socket, file);
    worker.answer::<Trial>(sent).map_err(|death| format!("building the tokenizer {death}"))?
}

/// A chat template in a worker, which is started for the first conversation and again if it has died.
#[derive(Debug)]
pub(crate) struct TemplateProcess {
    text: TemplateText,
    worker: Mutex<Option<Worker>>,
}

impl TemplateProcess {
    /// Keeps a template for rendering; gives it back if this program cannot be a worker.
    pub(crate) fn new(text: TemplateText) -> Result<TemplateProcess, TemplateText> {
        if !available() {
            return Err(text);
        }
        Ok(TemplateProcess { text, worker: Mutex::new(None) })
    }

    /// Renders a conversation.
    pub(crate) fn render(&self, conversation: &Conversation) -> Result<String, TemplateFailure> {
        // A poisoned lock is usable: at worst there is no worker in it.
        let mut kept = self.worker.lock().unwrap_or_else(PoisonError::into_inner);
        // A worker that was killed while it was idle, from outside, says nothing about the template.
        let mut worker = match kept.take().and_then(Worker::if_alive) {
            Some(worker) => worker,
            None => {
                let job = Job::Template(self.text.clone());
                let setup = Setup { job, memory: TEMPLATE_MEMORY, seconds: TEMPLATE_SECONDS };
                Worker::start(&setup).map_err(TemplateFailure::Limit)?
            }
        };
        let sent = send(&mut worker.socket, conversation);
        match worker.answer::<Rendering>(sent) {
            Ok(rendering) => {
                *kept = Some(worker);
                rendering
            }
            Err(death) => Err(TemplateFailure::Limit(format!("rendering it {death}"))),
        }
    }
}

/// A worker's process.
#[derive(Debug)]
struct Worker {
    child: Child,
    socket: UnixStream,
    /// Its standard error, which names the cause of its death.
    words: Option<ChildStderr>,
    memory: u64,
    seconds: u64,
}

impl Worker {
    /// Starts a worker.
    fn start(setup: &Setup) -> Result<Worker, String> {
        let Some(program) = worker::program() else { return Err("this program cannot be a worker".to_owned()) };
        let start = || -> io::Result<Worker> {
            let (socket, theirs) = UnixStream::pair()?;
            let mut child = Command::new(program)
                .arg(ARGUMENT)
                .env_clear()
                .current_dir("/")
                .stdin(Stdio::from(OwnedFd::from(theirs)))
                .stdout(Stdio::null())
                .stderr(Stdio::piped())
                // Ctrl-C at the terminal stops the run, not the prompt that is being rendered.
                .process_group(0)
                .spawn()?;
            let words = child.stderr.take();
            let mut worker = Worker { child, socket, words, memory: setup.memory, seconds: setup.seconds };
            // By the clock, and later than by its own processor time, which a busy machine gives slowly.
            let timeout = Some(Duration::from_secs(3 * setup.seconds));
            worker.socket.set_read_timeout(timeout)?;
            worker.socket.set_write_timeout(timeout)?;
            send(&mut worker.socket, setup)?;
            Ok(worker)
        };
        start()
            .map_err(|error| format!("{} could not be started as the process to try it in: {error}", program.display()))
    }

    /// Returns the worker if its process still runs.
    fn if_alive(mut self) -> Option<Worker> {
        matches!(self.child.try_wait(), Ok(None)).then_some(self)
    }

    /// Waits for the answer; the error is the end of a sentence about the work: what it did to the process.
    fn answer<T: DeserializeOwned>(&mut self, sent: io::Result<()>) -> Result<T, String> {
        let answer = sent.and_then(|()| receive(&mut self.socket));
        answer.map_err(|error| match error.kind() {
            io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => {
                format!("takes longer than {} seconds", 3 * self.seconds)
            }
            _ => self.cause_of_death(&error),
        })
    }

    fn cause_of_death(&mut self, error: &io::Error) -> String {
        // An answer that cannot be read leaves the process alive.
        self.socket.shutdown(Shutdown::Both).ok();
        let mut words = Vec::new();
        if let Some(stderr) = self.words.take() {
            // The end of the stream is the end of the process: the limits on its time hold here too.
            stderr.take(1 << 16).read_to_end(&mut words).ok();
        }
        let status = self.child.wait().ok();
        let words = String::from_utf8_lossy(&words);
        if words.contains("memory allocation of") || words.contains("capacity overflow") {
            return format!("needs more than {} MiB of memory", self.memory >> 20);
        }
        if words.contains("overflowed its stack") {
            return "overflows the stack".to_owned();
        }
        match status.map(|status| (status, status.signal())) {
            Some((_, Some(libc::SIGXCPU))) => format!("takes longer than {} seconds of processor time", self.seconds),
            Some((_, Some(signal))) => format!("ended its process with signal {signal}"),
            Some((status, None)) => format!("ended its process: {}", described(status, &words)),
            None => format!("ended its process: {error}"),
        }
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
