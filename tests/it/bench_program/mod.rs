//! `earnest bench` as a child process on a tiny checkpoint.
#![allow(dead_code, reason = "every test program uses a part of it")]
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, Command, Stdio};
use std::thread::JoinHandle;

/// The committed copy: `EARNEST_GOLDEN` may name a folder that holds other vectors.
fn tiny() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/engine/checkpoints/llama31-ropescaling")
}

/// `earnest bench WHAT` on the checkpoint, without the user's environment.
pub fn command(what: &str, words: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_earnest"));
    command.stdin(Stdio::null()).args(["bench", what, "--model"]).arg(tiny()).args(words);
    for name in ["EARNEST_MODEL", "EARNEST_DEVICE", "NO_COLOR", "COLUMNS"] {
        command.env_remove(name);
    }
    command
}

/// Exit code, standard output and standard error.
pub fn outcome(what: &str, words: &[&str]) -> (i32, String, String) {
    let output = command(what, words).output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap_or(-1), text(output.stdout), text(output.stderr))
}

/// A measurement under way.
pub struct Running {
    child: Child,
    said: BufReader<ChildStderr>,
    stdout: JoinHandle<std::io::Result<String>>,
}

impl Running {
    /// Starts it and waits for a line on standard error that begins so.
    pub fn until(what: &str, words: &[&str], beginning: &str) -> Running {
        let mut child = command(what, words).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut said = BufReader::new(child.stderr.take().unwrap());
        // Read meanwhile: a document may be more than a pipe holds.
        let mut out = child.stdout.take().unwrap();
        let stdout = std::thread::spawn(move || {
            let mut text = String::new();
            out.read_to_string(&mut text).map(|_| text)
        });
        let mut line = String::new();
        while !line.starts_with(beginning) {
            line.clear();
            assert!(said.read_line(&mut line).unwrap() > 0, "it ended before it said {beginning:?}");
        }
        Running { child, said, stdout }
    }

    /// Sends Ctrl-C; returns the same as [`outcome`], with the standard error after the line.
    pub fn interrupt(mut self) -> (i32, String, String) {
        assert!(Command::new("kill").args(["-INT", &self.child.id().to_string()]).status().unwrap().success());
        let mut rest = String::new();
        self.said.read_to_string(&mut rest).unwrap();
        let status = self.child.wait().unwrap();
        (status.code().unwrap_or(-1), self.stdout.join().unwrap().unwrap(), rest)
    }
}
