//! Unsafe code: every block says why it is sound, and `docs/unsafe.md` lists every file that has one.
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

pub(crate) fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

pub(crate) fn rust_files(folder: &Path, into: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            rust_files(&path, into);
        } else if path.extension().is_some_and(|ending| ending == "rs") {
            into.push(path);
        }
    }
}

/// The code of a line: without its comment and what it quotes.
fn code(line: &str) -> String {
    let line = line.split("//").next().unwrap_or_default();
    line.split('"').step_by(2).collect()
}

/// True if a comment with the reason stands above a line: directly, or above the statement that it continues.
fn has_reason(lines: &[&str], at: usize) -> bool {
    let above = lines[..at].iter().rev();
    let mut comment = above.skip_while(|line| {
        let line = line.trim();
        // The beginning of the same statement, or of a match arm or attribute between.
        !line.starts_with("//") && !line.ends_with(';') && !line.ends_with('}') && !line.is_empty()
    });
    let mut comment = comment.by_ref().take_while(|line| line.trim().starts_with("//"));
    comment.any(|line| line.contains("SAFETY:"))
}

#[test]
fn every_unsafe_block_has_its_reason_and_every_file_its_entry() {
    let mut files = Vec::new();
    for folder in ["src", "crates", "tests", "benches", "fuzz/src", "fuzz/fuzz_targets"] {
        rust_files(&root().join(folder), &mut files);
    }
    assert!(files.len() > 500, "{}", files.len());
    let mut with_unsafe = BTreeSet::new();
    for file in files {
        let text = std::fs::read_to_string(&file).unwrap();
        let name = file.strip_prefix(root()).unwrap().to_str().unwrap().to_owned();
        let lines: Vec<&str> = text.lines().collect();
        for (at, line) in lines.iter().enumerate() {
            let code = code(line);
            if !code.contains("unsafe {") && !code.contains("unsafe impl") {
                continue;
            }
            with_unsafe.insert(name.clone());
            assert!(has_reason(&lines, at), "{name}:{}: no SAFETY comment", at + 1);
        }
    }
    let page = std::fs::read_to_string(root().join("docs/unsafe.md")).unwrap();
    let listed: BTreeSet<String> = page
        .lines()
        .filter_map(|line| line.strip_prefix("| `"))
        .filter_map(|line| Some(line.split_once('`')?.0.to_owned()))
        .collect();
    assert_eq!(listed, with_unsafe, "docs/unsafe.md lists other files than those with unsafe blocks");
}
