//! Inputs that ask for more than any input needs: refused with the file and the limit, before memory, disk or time is used.
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::{Duration, Instant};

use crate::program::*;

/// Runs the program with 1 GiB of address space.
fn bounded(folder: &Path, words: &[&str]) -> Output {
    let start = Instant::now();
    let script = format!("ulimit -v 1048576; exec {} \"$@\"", env!("CARGO_BIN_EXE_earnest"));
    let mut command = Command::new("sh");
    command.args(["-c", &script, "sh"]).args(words).current_dir(folder).env_remove("EARNEST_RESULTS");
    let output = command.output().unwrap();
    assert!(start.elapsed() < Duration::from_secs(30), "{words:?}");
    output
}

fn refused(folder: &Path, words: &[&str], named: &str) {
    let output = bounded(folder, words);
    let said = stderr(&output);
    assert!(said.contains(named) && !said.contains("panicked"), "{words:?}: no {named:?} in {said}");
    assert!((2..=4).contains(&code(&output)), "{words:?}: {said}");
}

/// A file of the corpus of the fuzz target `parquet`.
fn parquet(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("fuzz/corpus/parquet/{name}.parquet"))
}

#[test]
fn parquet_that_lies_is_refused_at_every_door() {
    for (name, reason) in [
        ("deep", "nested more than 64 levels deep"),
        ("rows", "at most 10000000 are read"),
        ("lengths", "a page has 2147483647 numbers and 2 values"),
        ("snappy", "it has 2147483647 bytes without compression"),
        ("gzip-small", "they hold more than 9 bytes"),
    ] {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("some")).unwrap();
        std::fs::copy(parquet(name), folder.path().join("some/questions.parquet")).unwrap();
        refused(folder.path(), &["tasks", "check", "some/questions.parquet"], reason);
        refused(folder.path(), &["perturb", "some/questions.parquet"], reason);
        // What is wrong with the pages is seen where rows are read.
        if ["deep", "rows"].contains(&name) {
            refused(folder.path(), &["runs", "list", "--results", "some"], reason);
        }
        let columns = ["--columns", "question=question,score=answer", "--model-name", "m"];
        refused(folder.path(), &[&["import", "some/questions.parquet"][..], &columns].concat(), reason);
    }
}

#[test]
fn honest_parquet_of_the_same_kinds_is_read() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["plain", "second", "gzip", "dictionary"] {
        let file = parquet(name);
        let output = bounded(folder.path(), &["tasks", "check", file.to_str().unwrap()]);
        assert!(stdout(&output).contains("2 rows"), "{name}: {}{}", stdout(&output), stderr(&output));
    }
}

/// A file without data on the disk, of 1 TiB.
fn sparse(path: &Path, begin: &str) {
    std::fs::write(path, begin).unwrap();
    std::fs::File::options().write(true).open(path).unwrap().set_len(1 << 40).unwrap();
}

#[test]
fn files_without_end_are_not_read() {
    let folder = tempfile::tempdir().unwrap();
    let in_folder = |name: &str| folder.path().join(name);
    sparse(&in_folder("large.toml"), "name = \"x\"\n");
    sparse(&in_folder("large.jsonl"), "{\"question\": \"1+1\", \"answer\": \"2\"}\n");
    refused(folder.path(), &["tasks", "check", "large.toml"], "it has 1099511627776 bytes");
    refused(folder.path(), &["study", "large.toml"], "up to 16 MiB");
    refused(folder.path(), &["train", "memory", "large.toml"], "up to 16 MiB");
    refused(folder.path(), &["train", "experiment", "large.toml", "--out", "out"], "up to 16 MiB");
    refused(folder.path(), &["perturb", "large.jsonl"], "up to 100 MiB");
}

#[cfg(target_os = "linux")]
#[test]
fn devices_and_pipes_are_refused_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let in_folder = |name: &str| folder.path().join(name);
    assert!(Command::new("mkfifo").arg(in_folder("pipe.jsonl")).status().unwrap().success());
    std::os::unix::fs::symlink("/dev/zero", in_folder("zero.jsonl")).unwrap();
    std::os::unix::fs::symlink("/proc/kmsg", in_folder("kernel.jsonl")).unwrap();
    for (name, reason) in [("pipe", "a pipe with a name"), ("zero", "a device"), ("kernel", "a file of /proc")] {
        let file = format!("{name}.jsonl");
        std::fs::write(in_folder("task.toml"), format!("name = \"t\"\n[questions]\npath = \"{file}\"\n")).unwrap();
        for words in [
            &["tasks", "check", "task.toml"][..],
            &["tasks", "check", &file],
            &["perturb", &file],
            &["study", &file],
            &["train", "memory", &file],
            &["stats", "glmm", &file, "--formula", "a ~ b"],
        ] {
            refused(folder.path(), words, reason);
        }
    }
    let text = "{\"question\": \"Tom has 3 apples and eats 2 of them. How many are left?\", \"answer\": \"1\"}\n";
    std::fs::write(in_folder("questions.jsonl"), text).unwrap();
    let script = format!("{} perturb <(cat questions.jsonl) --kinds verbosity", env!("CARGO_BIN_EXE_earnest"));
    let piped = Command::new("bash").args(["-c", &script]).current_dir(folder.path()).output().unwrap();
    assert!(code(&piped) == 0 && stdout(&piped).contains("apples"), "{}", stderr(&piped));
}

#[test]
fn columns_and_rows_of_no_use_end_early() {
    let folder = tempfile::tempdir().unwrap();
    let names: Vec<String> = (0..100_000).map(|column| format!("c{column}")).collect();
    std::fs::write(folder.path().join("wide.csv"), format!("{}\n{}1\n", names.join(","), "1,".repeat(99_999))).unwrap();
    refused(folder.path(), &["tasks", "check", "wide.csv"], "it names 100000 columns; at most 16384 are read");
    std::fs::write(folder.path().join("none.jsonl"), "{\"question\": null}\n".repeat(100_001 + 5_000)).unwrap();
    refused(folder.path(), &["run", "none.jsonl", "--model", "none"], "rows were not looked at");
    let checked = bounded(folder.path(), &["tasks", "check", "none.jsonl"]);
    assert!(code(&checked) != 0, "{}", stdout(&checked));
    let said = format!("{}{}", stdout(&checked), stderr(&checked));
    assert!(said.contains("were not looked at"), "{said}");
}

#[cfg(unix)]
#[test]
fn a_file_of_questions_may_have_a_name_that_is_not_utf_8() {
    use std::os::unix::ffi::OsStrExt;
    let folder = tempfile::tempdir().unwrap();
    let name = std::ffi::OsStr::from_bytes(b"q\xff.jsonl");
    std::fs::write(folder.path().join(name), "{\"question\": \"1+1=\", \"answer\": \"2\"}\n").unwrap();
    let output = earnest(folder.path()).arg("run").arg(name).args(["--model", "built-in", "-q"]).output().unwrap();
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    // Without an ending that says so, it is no file of questions.
    let output = earnest(folder.path()).arg("run").arg(std::ffi::OsStr::from_bytes(b"q\xff")).output().unwrap();
    let said = stderr(&output);
    assert!(code(&output) == 2 && said.contains("is not UTF-8 text") && said.contains("rename it"), "{said}");
}
