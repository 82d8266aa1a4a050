//! Worker: the same executable again, with nothing but a socket and within limits.
use std::io::{self, Write};
use std::os::fd::FromRawFd;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::{Mutex, OnceLock, PoisonError};

use super::limits::{allow_cpu_time, limit_memory};
use super::protocol::{receive, receive_number, receive_time, send};
use super::{CpuTime, Job};

/// First command-line argument of a worker; the second is the name of its job.
pub(super) const ARGUMENT: &str = "__earnest-worker";

/// Path of the running program, once it is known to be able to be a worker.
static PROGRAM: OnceLock<PathBuf> = OnceLock::new();

/// Names of the jobs that it can do.
static JOBS: Mutex<Vec<&'static str>> = Mutex::new(Vec::new());

/// Program to start as a worker for a job; none if the running one has not called [`serve_if_worker`] with it.
pub(super) fn program(job: &Job) -> Option<&'static PathBuf> {
    let jobs = JOBS.lock().unwrap_or_else(PoisonError::into_inner);
    PROGRAM.get().filter(|_| jobs.contains(&job.name))
}

pub(super) fn serve_if_worker(jobs: &[&'static Job]) {
    let mut arguments = std::env::args_os().skip(1);
    if arguments.next().is_some_and(|argument| argument == ARGUMENT) {
        let wanted = arguments.next().unwrap_or_default();
        if let Some(job) = jobs.iter().find(|job| wanted == job.name) {
            std::process::exit(match serve(job) {
                Ok(()) => 0,
                Err(error) => {
                    // Visible only to a user who starts a worker by hand: otherwise the program has gone away.
                    writeln!(io::stderr(), "error: only earnest itself starts its worker {}: {error}", job.name).ok();
                    2
                }
            });
        }
    }
    if let Ok(program) = std::env::current_exe() {
        PROGRAM.get_or_init(|| program);
        JOBS.lock().unwrap_or_else(PoisonError::into_inner).extend(jobs.iter().map(|job| job.name));
    }
}

fn serve(job: &Job) -> io::Result<()> {
    // SAFETY: standard input is the program's socket, which nothing else in this process uses; if it is anything else, reading from
    // it as a socket fails.
    let mut program = unsafe { UnixStream::from_raw_fd(0) };
    let memory = receive_number(&mut program)?;
    let settings = receive(&mut program)?;
    limit_memory(memory)?;
    let mut answerer = (job.begin)(&settings);
    loop {
        let time: CpuTime = match receive_time(&mut program) {
            Ok(time) => time,
            // The program has closed the socket: the normal end of a worker.
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(()),
            Err(error) => return Err(error),
        };
        allow_cpu_time(time)?;
        let request = receive(&mut program)?;
        send(&mut program, &answerer(&request))?;
    }
}
