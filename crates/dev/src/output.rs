//! Results on stdout, messages on stderr, and the process that goes on after a device that broke.

use std::io::Write;

use serde::Serialize;

use crate::failure::{Exit, Failure};

/// Writes a text to stdout at once: a process that is killed later has written it. A closed pipe is no error.
pub fn write(text: &str) -> Result<(), Failure> {
    let mut stdout = std::io::stdout().lock();
    match stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
            Err(Failure::new(Exit::Output, format!("cannot write to standard output: {error}")))
        }
        _ => Ok(()),
    }
}

fn text(value: &impl Serialize, pretty: bool) -> Result<String, Failure> {
    let text = if pretty { serde_json::to_string_pretty(value) } else { serde_json::to_string(value) };
    text.map(|text| text + "\n")
        .map_err(|error| Failure::new(Exit::Output, format!("cannot write the JSON document: {error}")))
}

/// Writes one JSON document.
pub fn document(value: &impl Serialize) -> Result<(), Failure> {
    write(&text(value, true)?)
}

/// Writes a JSON document in one line.
pub fn line(value: &impl Serialize) -> Result<(), Failure> {
    write(&text(value, false)?)
}

/// Replaces this process by a new one of the same command that begins at `next`: after an error of a kernel a process can compute nothing more on
/// its device. What it writes follows what was written.
///
/// # Errors
/// The new process cannot be started; on success this does not return.
#[cfg(unix)]
pub fn go_on_at(next: usize, wrong: usize) -> Failure {
    use std::os::unix::process::CommandExt;
    let mut kept = vec![];
    let mut arguments = std::env::args_os().skip(1);
    while let Some(argument) = arguments.next() {
        if argument == "--first" || argument == "--wrong-before" {
            arguments.next();
        } else {
            kept.push(argument);
        }
    }
    let error = match std::env::current_exe() {
        Ok(program) => std::process::Command::new(program)
            .args(kept)
            .args(["--first", &next.to_string(), "--wrong-before", &wrong.to_string()])
            .exec(),
        Err(error) => error,
    };
    Failure::new(Exit::Engine, format!("cannot go on in a new process: {error}"))
}

/// There is no such call on this system.
#[cfg(not(unix))]
pub fn go_on_at(next: usize, _wrong: usize) -> Failure {
    Failure::new(Exit::Engine, format!("the device broke: go on with --first {next}"))
}

/// First part of a command of several, and the wrong ones before it.
#[derive(Debug, Clone, Copy, clap::Args)]
pub struct First {
    /// Leave out so many parts at the beginning
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub first: usize,

    /// Parts that earlier processes of this command found wrong
    #[arg(long, value_name = "N", default_value_t = 0, hide = true)]
    pub wrong_before: usize,
}
