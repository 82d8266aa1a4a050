//! The program as a child process on a tiny random checkpoint, and its stored rows.
#![allow(dead_code, reason = "every test program uses a part of it")]
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use earnest_engine::Timings;
use earnest_results::store::{FILE_NAME, Filter, RunRecord, Store};
use earnest_results::write_jsonl;
use rusqlite::Connection;
use rusqlite::types::ValueRef;
use serde_json::Value;

use crate::golden_subjects::files;

pub fn golden() -> PathBuf {
    // The committed copy: `EARNEST_GOLDEN` may name a folder that holds other vectors.
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden")
}

/// A golden table as a plain file, for the program to open by its name.
pub fn golden_table(folder: &str, name: &str) -> String {
    let committed = golden().join(folder).join(name);
    let tables = Path::new(env!("CARGO_TARGET_TMPDIR")).join(folder);
    std::fs::create_dir_all(&tables).unwrap();
    // Tests that run at the same time may want the same table: it is moved there when it is whole.
    let file = tempfile::NamedTempFile::new_in(&tables).unwrap();
    std::fs::write(file.path(), files::read(&committed).unwrap()).unwrap();
    let table = tables.join(name);
    file.persist(&table).unwrap();
    table.to_string_lossy().into_owned()
}

pub fn tiny() -> PathBuf {
    golden().join("engine/checkpoints/llama")
}

/// The program in its own folder, without the user's environment.
pub fn earnest(folder: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_earnest"));
    command.current_dir(folder).stdin(Stdio::null());
    for name in ["EARNEST_MODEL", "EARNEST_RESULTS", "NO_COLOR"] {
        command.env_remove(name);
    }
    command
}

pub fn run_in(folder: &Path, words: &[&str]) -> Output {
    earnest(folder).args(words).output().unwrap()
}

/// `earnest run` on the tiny checkpoint.
pub fn tiny_run(folder: &Path, words: &[&str]) -> Output {
    let model = tiny();
    let fixed = ["run", "arithmetic-bench", "--threads", "1", "--model", model.to_str().unwrap()];
    earnest(folder).args(fixed).args(words).output().unwrap()
}

pub fn code(output: &Output) -> i32 {
    output.status.code().unwrap_or(-1)
}

pub fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

pub fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

/// The one document on stdout.
pub fn document(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {}", stdout(output)))
}

/// The results of a folder.
pub fn store(folder: &Path) -> Store {
    Store::open(&folder.join("earnest-results")).unwrap()
}

/// The only run of a folder.
pub fn only_run(folder: &Path) -> RunRecord {
    let mut runs = store(folder).runs().unwrap();
    assert_eq!(runs.len(), 1, "{runs:?}");
    runs.remove(0)
}

/// Exported rows without fields that depend on time and scheduling.
pub fn timeless(folder: &Path, run: &RunRecord) -> Vec<String> {
    let store = store(folder);
    let rows = store.samples(run, Filter::default()).map(|sample| {
        let mut sample = sample.unwrap();
        if let Some(completion) = &mut sample.completion {
            completion.timings = Timings::default();
            completion.cached_tokens = 0;
        }
        let mut line = Vec::new();
        write_jsonl(&mut line, &sample).unwrap();
        String::from_utf8(line).unwrap()
    });
    rows.collect()
}

pub fn timeless_rows(folder: &Path) -> Vec<Value> {
    timeless(folder, &only_run(folder)).iter().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// A copy of the tiny checkpoint, to be changed.
pub fn copy_of_tiny(folder: &Path) -> PathBuf {
    let copy = folder.join("copy");
    std::fs::create_dir(&copy).unwrap();
    for file in std::fs::read_dir(tiny()).unwrap() {
        let file = file.unwrap();
        std::fs::copy(file.path(), copy.join(file.file_name())).unwrap();
    }
    copy
}

/// Changes a JSON file.
pub fn edit_json(path: &Path, edit: impl FnOnce(&mut Value)) {
    let mut value: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    edit(&mut value);
    std::fs::write(path, value.to_string()).unwrap();
}

/// Sets every value of a tensor of a checkpoint in f32.
pub fn fill_tensor(checkpoint: &Path, name: &str, value: f32) {
    let path = checkpoint.join("model.safetensors");
    let mut bytes = std::fs::read(&path).unwrap();
    let length = u64::from_le_bytes(bytes[..8].try_into().unwrap()) as usize;
    let header: Value = serde_json::from_slice(&bytes[8..8 + length]).unwrap();
    assert_eq!(header[name]["dtype"], "F32");
    let at = |n: usize| 8 + length + header[name]["data_offsets"][n].as_u64().unwrap() as usize;
    for number in bytes[at(0)..at(1)].chunks_exact_mut(4) {
        number.copy_from_slice(&value.to_le_bytes());
    }
    std::fs::write(path, bytes).unwrap();
}

/// What each kind of seal covers: the table, its keys and the sealed columns.
const SEALED: [(&str, &str); 4] = [
    (
        "runs",
        "SELECT id, id, name, settings_sha256, suite, model, status, started, ended, manifest, planned, summary FROM runs",
    ),
    (
        "samples",
        "SELECT key, key, run, item, sample, task, cluster, prompt_tokens, budget, max_tokens, finish, completion_tokens, \
         cached_tokens, queued_s, prefill_s, decode_s, correct, verdict_failure, failure_kind, retryable FROM samples",
    ),
    (
        "texts",
        "SELECT key, item, sample, task, cluster, prompt_tokens, budget, max_tokens, finish, cached_tokens, queued_s, \
         prefill_s, decode_s, correct, verdict_failure, failure_kind, retryable, format, covariates, gold, prompt_sha256, \
         completion, ids, extracted, matchers, metrics, failure_message, evidence FROM samples JOIN texts USING (key)",
    ),
    (
        "asked",
        "SELECT a.key, a.key & 4294967295, a.items, q.sha256, p.sha256 FROM asked a JOIN packs q ON q.id = a.questions \
         LEFT JOIN packs p ON p.id = a.prompts",
    ),
];

/// Makes every seal of a results file fit what the rows are now, as a forger could.
pub fn reseal(results: &Path) {
    let file = Connection::open(results.join(FILE_NAME)).unwrap();
    for (table, select) in SEALED {
        let mut statement = file.prepare(select).unwrap();
        let columns = statement.column_count();
        let mut rows = statement.query([]).unwrap();
        let mut seals: Vec<(i64, i64)> = Vec::new();
        while let Some(row) = rows.next().unwrap() {
            let sealed = (1..columns).map(|column| row.get_ref(column).unwrap());
            seals.push((row.get(0).unwrap(), seal(sealed)));
        }
        let update = format!("UPDATE {table} SET seal = ? WHERE rowid = ?");
        for (key, seal) in seals {
            file.execute(&update, [seal, key]).unwrap();
        }
    }
}

/// First eight bytes of SHA-256 over type, length and content of each value.
fn seal<'a>(values: impl Iterator<Item = ValueRef<'a>>) -> i64 {
    let mut bytes = Vec::new();
    for value in values {
        let (kind, content) = match value {
            ValueRef::Null => (0, Vec::new()),
            ValueRef::Integer(number) => (1, number.to_le_bytes().to_vec()),
            ValueRef::Real(number) => (2, number.to_bits().to_le_bytes().to_vec()),
            ValueRef::Text(text) => (3, text.to_vec()),
            ValueRef::Blob(blob) => (4, blob.to_vec()),
        };
        bytes.push(kind);
        bytes.extend((content.len() as u64).to_le_bytes());
        bytes.extend(content);
    }
    i64::from_le_bytes(earnest_digest::sha256(&bytes)[..8].try_into().unwrap())
}
