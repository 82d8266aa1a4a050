//! A served model on the loopback, for tests.
pub mod http;
pub mod proxy;

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};

/// The tiny random checkpoint of the golden folder.
pub fn tiny() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/engine/checkpoints/llama")
}

/// The same with a chat template, in its own folder.
pub fn tiny_chat(folder: &Path) -> PathBuf {
    let copy = folder.join("tiny-chat");
    std::fs::create_dir(&copy).unwrap();
    for entry in std::fs::read_dir(tiny()).unwrap() {
        let entry = entry.unwrap();
        std::fs::copy(entry.path(), copy.join(entry.file_name())).unwrap();
    }
    let template = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/chat_templates/qwen3.jinja");
    std::fs::copy(template, copy.join("chat_template.jinja")).unwrap();
    copy
}

/// The program in its own folder, without the user's environment.
pub fn earnest(folder: &Path, words: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_earnest"));
    command.current_dir(folder).stdin(Stdio::null()).args(words);
    for name in [
        "EARNEST_MODEL",
        "EARNEST_RESULTS",
        "EARNEST_API_KEY",
        "OPENAI_API_KEY",
        "EARNEST_SERVE_KEY",
        "EARNEST_MISTRALRS",
        "HF_HUB_OFFLINE",
        "NO_COLOR",
        "HTTP_PROXY",
        "http_proxy",
        "ALL_PROXY",
        "all_proxy",
    ] {
        command.env_remove(name);
    }
    command
}

/// `earnest serve`, until it is dropped.
pub struct Server {
    pub child: Child,
    /// `127.0.0.1:port`.
    pub address: String,
    _stdout: BufReader<ChildStdout>,
}

impl Server {
    pub fn start(folder: &Path, model: &Path, key: Option<&str>) -> Server {
        Server::start_with(folder, model, key, &[])
    }

    /// With more options.
    pub fn start_with(folder: &Path, model: &Path, key: Option<&str>, words: &[&str]) -> Server {
        let model = model.to_str().unwrap();
        let mut command = earnest(folder, &["serve", "--port", "0", "--threads", "1", "--quiet", "--model", model]);
        command.args(words);
        if let Some(key) = key {
            command.env("EARNEST_SERVE_KEY", key);
        }
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        stdout.read_line(&mut line).unwrap();
        let address = line.trim().strip_prefix("listening on http://").unwrap_or_else(|| panic!("{line:?}")).to_owned();
        Server { child, address, _stdout: stdout }
    }

    /// The largest amount of memory that the server has used so far, in bytes.
    #[cfg(target_os = "linux")]
    pub fn peak_memory(&self) -> usize {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
        line.trim().trim_end_matches(" kB").parse::<usize>().unwrap() << 10
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
