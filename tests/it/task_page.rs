//! The examples of docs/tasks.md, executed as they stand there.
use std::path::Path;
use std::process::Command;

use crate::program::{code, stderr, stdout};

/// Examples by their headings: files with their content, and commands.
struct Example {
    heading: String,
    files: Vec<(String, String)>,
    commands: Vec<String>,
}

fn examples() -> Vec<Example> {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/tasks.md");
    let page = std::fs::read_to_string(page).unwrap();
    let mut found: Vec<Example> = Vec::new();
    let mut name = None;
    let mut lines = page.lines();
    while let Some(line) = lines.next() {
        if line.starts_with('#') {
            let heading = line.trim_start_matches('#').trim().to_owned();
            if line.starts_with("### ") && heading.starts_with(|first: char| first.is_ascii_digit()) {
                found.push(Example { heading, files: Vec::new(), commands: Vec::new() });
            } else if !found.is_empty() {
                break;
            }
        } else if let Some(block) = line.strip_prefix("```") {
            let body: Vec<&str> = lines.by_ref().take_while(|line| *line != "```").collect();
            let Some(example) = found.last_mut() else { continue };
            match (block, name.take()) {
                ("sh", _) => example.commands.extend(body.into_iter().map(str::to_owned)),
                (_, Some(name)) => example.files.push((name, body.join("\n") + "\n")),
                (_, None) => panic!("a block of {} has no file name before it", example.heading),
            }
        } else if !line.is_empty() {
            let file = line.strip_prefix('`').and_then(|rest| rest.strip_suffix('`'));
            name = file.filter(|file| !file.contains('`')).map(str::to_owned);
        }
    }
    found
}

#[test]
fn the_examples_of_the_page_run() {
    let examples = examples();
    assert_eq!(examples.len(), 5);
    let program = Path::new(env!("CARGO_BIN_EXE_earnest")).parent().unwrap();
    let path = format!("{}:{}", program.display(), std::env::var("PATH").unwrap());
    for example in examples {
        assert!(!example.files.is_empty() && !example.commands.is_empty(), "{}", example.heading);
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in &example.files {
            std::fs::write(folder.path().join(name), text).unwrap();
        }
        for command in &example.commands {
            let output = Command::new("sh")
                .args(["-c", command])
                .current_dir(folder.path())
                .env("PATH", &path)
                .env("EARNEST_CACHE", folder.path().join("cache"))
                .output()
                .unwrap();
            assert_eq!(code(&output), 0, "{}: {command}\n{}{}", example.heading, stdout(&output), stderr(&output));
            assert!(!(output.stdout.is_empty() && output.stderr.is_empty()), "{command}");
        }
    }
}
