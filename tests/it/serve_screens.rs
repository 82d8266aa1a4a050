//! The screens of `earnest serve` and of `--engine openai`: `INSTA_UPDATE=always cargo test --release --test it serve_screens`
//! updates them.
use std::fmt::Write as _;

use insta::{Settings, assert_snapshot};

use crate::loopback::{Server, earnest, tiny, tiny_chat};

/// Exit code, stdout and stderr of a command.
fn screen(folder: &std::path::Path, words: &[&str]) -> String {
    let output = earnest(folder, words).output().unwrap();
    let code = output.status.code().unwrap_or(-1);
    let mut text = format!("exit {code}\n");
    for (name, part) in [("stdout", output.stdout), ("stderr", output.stderr)] {
        if !part.is_empty() {
            write!(text, "--- {name}\n{}", String::from_utf8(part).unwrap()).unwrap();
        }
    }
    text
}

fn settings() -> Settings {
    let mut settings = Settings::clone_current();
    settings.add_filter(r"127\.0\.0\.1:\d+", "127.0.0.1:[port]");
    settings.add_filter(r"-[0-9a-f]{8}\b", "-[hash]");
    settings.add_filter(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\dZ?", "[time]");
    settings.add_filter(r"sha256:[0-9a-f]{12,64}", "sha256:[hash]");
    settings.add_filter(r"(?m)^host .*$", "host [machine]");
    settings.add_filter(r"(?m)^(\s*)(speed|time|generation)(\s+).*$", "$1$2$3[measured]");
    settings.add_filter(r"\d+(\.\d+)? s\b", "[seconds] s");
    settings.add_filter(&regex::escape(&tiny().display().to_string()), "[tiny checkpoint]");
    settings
}

#[test]
fn screens() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path(), &tiny_chat(folder.path()), None);
    let url = format!("http://{}/v1", server.address);
    let run = |words: &[&str]| {
        screen(
            folder.path(),
            &[&["run", "arithmetic-bench", "--quiet", "--limit", "2", "--max-tokens", "2"], words].concat(),
        )
    };
    settings().bind(|| {
        assert_snapshot!("help_serve", screen(folder.path(), &["serve", "--help"]));
        assert_snapshot!("no_such_model", run(&["--engine", "openai", "--base-url", &url, "--model-name", "gpt-x"]));
        assert_snapshot!("offline", run(&["--engine", "openai", "--base-url", "http://192.0.2.1/v1", "--offline"]));
        assert_snapshot!("no_base_url", run(&["--engine", "openai", "--model", "x"]));
        assert_snapshot!("unreachable", run(&["--engine", "openai", "--base-url", "http://127.0.0.1:9/v1"]));
        assert_snapshot!("wrong_port", screen(folder.path(), &["serve", "--port", "80000", "--model", "x"]));
        assert_snapshot!("no_checkpoint", screen(folder.path(), &["serve", "--model", "nowhere"]));
    });
}
