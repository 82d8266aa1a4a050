//! Worker: the same executable again, with nothing but a socket and within limits.
use std::io::{self, Write};
use std::os::fd::FromRawFd;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::OnceLock;

use super::super::template_engine::Template;
use super::super::tokenizer;
use super::limits::{limit_memory, renew_cpu_time};
use super::protocol::{Job, Render, Rendering, Setup, Trial, receive, receive_bytes, send};

/// Command-line argument that makes a program a worker.
pub(super) const ARGUMENT: &str = "__earnest-checkpoint-worker";

/// Path of the running program, once it is known to be able to be a worker.
static PROGRAM: OnceLock<PathBuf> = OnceLock::new();

/// Program to start as a worker; none if the running one has not called [`serve_if_worker`].
pub(super) fn program() -> Option<&'static PathBuf> {
    PROGRAM.get()
}

/// Serves as a worker and never returns, if the process was started as one; otherwise records that this program can be one. It must
/// come before anything else in `main` that reads arguments.
pub fn serve_if_worker() {
    if std::env::args_os().nth(1).is_some_and(|argument| argument == ARGUMENT) {
        std::process::exit(match serve() {
            Ok(()) => 0,
            Err(error) => {
                // Visible only to a user who starts a worker by hand: otherwise the program has gone away.
                writeln!(io::stderr(), "error: only earnest itself starts a checkpoint's worker: {error}").ok();
                2
            }
        });
    }
    if let Ok(program) = std::env::current_exe() {
        PROGRAM.get_or_init(|| program);
    }
}

fn serve() -> io::Result<()> {
    // SAFETY: standard input is the program's socket, which nothing else in this process uses; if it is anything else, reading from
    // it as a socket fails.
    let mut program = unsafe { UnixStream::from_raw_fd(0) };
    let setup: Setup = receive(&mut program)?;
    limit_memory(setup.memory)?;
    match setup.job {
        Job::Tokenizer => {
            renew_cpu_time(setup.seconds)?;
            let file = receive_bytes(&mut program)?;
            let trial: Trial = tokenizer::try_file(&file);
            send(&mut program, &trial)
        }
        Job::Template(text) => {
            let mut template = None;
            loop {
                let conversation: Render = match receive(&mut program) {
                    Ok(conversation) => conversation,
                    // The program has closed the socket: the normal end of a worker.
                    Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(()),
                    Err(error) => return Err(error),
                };
                renew_cpu_time(setup.seconds)?;
                // Compiled for the first conversation, so that its failure has an answer to be in.
                let template = template.get_or_insert_with(|| Template::compile(&text));
                let rendering: Rendering = template.render(&conversation);
                send(&mut program, &rendering)?;
            }
        }
    }
}
