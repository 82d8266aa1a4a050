//! The targets: each takes any bytes and must return. That it rejects or accepts them does not matter; that it neither panics, nor
//! aborts, nor hangs does.
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};

use earnest_answer::reader::{Asked, Form, read};
use earnest_logs::{FindOptions, TableColumns, find};
use earnest_models::checkpoint::{ChatMessage, ChatTemplate, Checkpoint};
use earnest_results::store::{FILE_NAME, Filter, RunLock, Store, check_name};
use earnest_results::suites::LocalHost;
use earnest_results::{Manifest, Sample};
use earnest_serve::Checker;
use earnest_stats::mixed::Formula;
use earnest_tasks::suite::registry::{OptionValues, RowSource};
use earnest_tasks::suite::task::{Definition, check};
use tempfile::TempDir;

/// A target of fuzzing.
pub struct Target {
    /// Its name, which is that of its corpus.
    pub name: &'static str,
    /// Runs one input.
    pub run: fn(&Scratch, &[u8]),
}

/// All targets.
pub const TARGETS: [Target; 16] = [
    Target { name: "gguf", run: gguf },
    Target { name: "safetensors", run: safetensors },
    Target { name: "index", run: index },
    Target { name: "config", run: config },
    Target { name: "tokenizer", run: tokenizer },
    Target { name: "template", run: template },
    Target { name: "http", run: http },
    Target { name: "rows", run: rows },
    Target { name: "name", run: name },
    Target { name: "store", run: store },
    Target { name: "logs", run: logs },
    Target { name: "eval_log", run: eval_log },
    Target { name: "task", run: task },
    Target { name: "parquet", run: parquet },
    Target { name: "answer", run: answer },
    Target { name: "formula", run: formula },
];

const CONFIG: &[u8] = include_bytes!("../../tests/golden/engine/checkpoints/llama/config.json");
const TOKENIZER: &[u8] = include_bytes!("../../tests/golden/engine/checkpoints/llama/tokenizer.json");
const TOKENIZER_CONFIG: &[u8] = include_bytes!("../../tests/golden/engine/checkpoints/llama/tokenizer_config.json");
const WEIGHTS: &[u8] = include_bytes!("../../tests/golden/engine/checkpoints/llama/model.safetensors");
const TEMPLATE: &[u8] = include_bytes!("../../tests/chat_templates/llama31.jinja");
const MANIFEST: &[u8] = include_bytes!("../corpus/rows/manifest.json");
const QUESTIONS: &[u8] = include_bytes!("../../crates/tasks/src/suite/task/new.jsonl");

/// A folder for the files of inputs, and what is the same for all of them.
pub struct Scratch {
    folder: TempDir,
    checker: Checker,
}

impl Scratch {
    /// Creates the folder, with a small checkpoint in it.
    ///
    /// # Panics
    /// If it cannot be written.
    pub fn new() -> Scratch {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let put = |name: &str, bytes: &[u8]| {
            let path = folder.path().join(name);
            std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
            std::fs::write(path, bytes).expect("a file");
        };
        for place in ["config", "tokenizer", "safetensors", "index", "served"] {
            put(&format!("{place}/config.json"), CONFIG);
            put(&format!("{place}/tokenizer.json"), TOKENIZER);
            put(&format!("{place}/tokenizer_config.json"), TOKENIZER_CONFIG);
        }
        put("index/model-00001-of-00001.safetensors", WEIGHTS);
        put("served/chat_template.jinja", TEMPLATE);
        put("task/questions.jsonl", QUESTIONS);
        put("logs/none", b"");
        put("store/none", b"");
        let served = Checkpoint::open_without_weights(&folder.path().join("served"), &[]).expect("a checkpoint");
        Scratch { checker: Checker::new(served, "tiny", 256), folder }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn write(&self, name: &str, data: &[u8]) -> PathBuf {
        let path = self.path(name);
        std::fs::write(&path, data).expect("the scratch folder can be written");
        path
    }
}

/// Divides an input into a choice of so many and the rest.
fn choose(data: &[u8], of: usize) -> Option<(usize, &[u8])> {
    let (first, rest) = data.split_first()?;
    // Digits, so that corpora are readable.
    Some((usize::from(first.wrapping_sub(b'0')) % of, rest))
}

/// Uses an open checkpoint: its texts, and every tensor if it has them.
fn use_checkpoint(checkpoint: &Checkpoint, weights: bool) {
    let _ = checkpoint.memory();
    for text in ["", "12 + 30 = ?", "é漢\u{301}  \n<s>"] {
        if let Ok(ids) = checkpoint.tokenizer.encode(text, true) {
            checkpoint.tokenizer.decode(&ids, false);
            checkpoint.tokenizer.decode(&ids, true);
        }
    }
    checkpoint.tokenizer.decode(&[0, 1, 255, 256, u32::MAX], false);
    if let Some(template) = &checkpoint.chat_template {
        let _ = template.render(&[ChatMessage::new("user", "1+1=?")], true);
    }
    if weights {
        for (parameter, shape) in checkpoint.config.parameters() {
            // What the file lacks is an error; what it has is small, because the file is.
            let _ = checkpoint.tensor(parameter, &shape);
        }
    }
}

fn gguf(scratch: &Scratch, data: &[u8]) {
    let path = scratch.write("model.gguf", data);
    if let Ok(checkpoint) = Checkpoint::open(&path) {
        use_checkpoint(&checkpoint, true);
    }
}

/// The header as JSON, before data of the right size; or, after another first byte, the whole file.
fn safetensors(scratch: &Scratch, data: &[u8]) {
    let Some((kind, data)) = choose(data, 2) else { return };
    let path = scratch.path("safetensors/model.safetensors");
    let mut file = File::create(&path).expect("a file");
    if kind == 0 {
        file.write_all(&(data.len() as u64).to_le_bytes()).expect("a file");
    }
    file.write_all(data).expect("a file");
    if kind == 0 {
        let header = u64::from_le_bytes(*WEIGHTS.first_chunk().expect("the weights have a header"));
        file.set_len(8 + data.len() as u64 + WEIGHTS.len() as u64 - 8 - header).expect("a file");
    }
    drop(file);
    if let Ok(checkpoint) = Checkpoint::open(&scratch.path("safetensors")) {
        use_checkpoint(&checkpoint, true);
    }
}

fn index(scratch: &Scratch, data: &[u8]) {
    scratch.write("index/model.safetensors.index.json", data);
    let _ = Checkpoint::open(&scratch.path("index"));
}

fn config(scratch: &Scratch, data: &[u8]) {
    let Some((kind, data)) = choose(data, 3) else { return };
    let files =
        [("config.json", CONFIG), ("tokenizer_config.json", TOKENIZER_CONFIG), ("generation_config.json", b"{}")];
    for (index, (name, usual)) in files.into_iter().enumerate() {
        scratch.write(&format!("config/{name}"), if index == kind { data } else { usual });
    }
    if let Ok(checkpoint) = Checkpoint::open_without_weights(&scratch.path("config"), &[]) {
        use_checkpoint(&checkpoint, false);
    }
}

fn tokenizer(scratch: &Scratch, data: &[u8]) {
    scratch.write("tokenizer/tokenizer.json", data);
    if let Ok(checkpoint) = Checkpoint::open_without_weights(&scratch.path("tokenizer"), &[]) {
        use_checkpoint(&checkpoint, false);
        if let Ok(single) = checkpoint.tokenizer.with_single_digits() {
            let _ = single.encode("12345", false);
        }
        let _ = checkpoint.tokenizer.json();
    }
}

fn template(_: &Scratch, data: &[u8]) {
    let Ok(source) = std::str::from_utf8(data) else { return };
    let template = ChatTemplate::new("fuzz", source.to_owned(), Some("<s>".to_owned()), None);
    let turns = [("system", "Be brief."), ("user", "1+1=?"), ("assistant", "2"), ("user", "é\n<think>")];
    let messages: Vec<ChatMessage> = turns.into_iter().map(|(role, text)| ChatMessage::new(role, text)).collect();
    let _ = template.render_thinking(&messages, true, Some(false));
    let _ = template.render(messages.get(1..2).unwrap_or_default(), false);
}

fn http(scratch: &Scratch, data: &[u8]) {
    let Some((kind, body)) = choose(data, 2) else { return };
    let _ = if kind == 0 { scratch.checker.completions(body) } else { scratch.checker.chat(body) };
}

/// A manifest, or rows as lines of JSON.
/// A name of a run, as a stranger's results may have it: what is accepted stays in the folder of the locks.
fn name(scratch: &Scratch, data: &[u8]) {
    let Ok(name) = std::str::from_utf8(data) else { return };
    let mut manifest: serde_json::Value = serde_json::from_slice(&MANIFEST[1..]).expect("the corpus has a manifest");
    manifest["run"] = name.into();
    let read = serde_json::from_value::<Manifest>(manifest);
    assert_eq!(read.is_ok(), check_name(name).is_ok(), "a manifest is read if its name is good");
    let results = scratch.path("name");
    let locked = RunLock::take(&results, name);
    assert_eq!(locked.is_ok(), read.is_ok(), "{:?}", locked.err());
    let locks = std::fs::read_dir(results.join("locks")).map_or(0, Iterator::count);
    assert_eq!(locks, usize::from(read.is_ok()), "a lock is in its folder or nowhere");
    std::fs::remove_dir_all(&results).ok();
}

fn rows(_: &Scratch, data: &[u8]) {
    let Some((kind, data)) = choose(data, 2) else { return };
    if kind == 0 {
        if let Ok(manifest) = serde_json::from_slice::<Manifest>(data) {
            let sha256 = manifest.settings.sha256();
            let again = serde_json::to_vec(&manifest).expect("a manifest is JSON");
            let again: Manifest = serde_json::from_slice(&again).expect("a manifest reads what it wrote");
            assert_eq!(again.settings.sha256(), sha256);
        }
        return;
    }
    for line in data.split(|byte| *byte == b'\n') {
        if let Ok(sample) = serde_json::from_slice::<Sample>(line) {
            serde_json::to_vec(&sample).expect("a sample is JSON");
        }
    }
}

/// A store's file.
fn store(scratch: &Scratch, data: &[u8]) {
    let folder = scratch.path("store");
    for file in ["", "-wal", "-shm", "-journal"] {
        std::fs::remove_file(folder.join(format!("{FILE_NAME}{file}"))).ok();
    }
    scratch.write(&format!("store/{FILE_NAME}"), data);
    let Ok(store) = Store::open(&folder) else { return };
    let Ok(runs) = store.runs() else { return };
    // A damaged file can list itself many times.
    for run in runs.iter().take(4) {
        let _ = store.summary(run);
        let _ = store.progress(run);
        let _ = store.aggregate(run);
        store.samples(run, Filter::default()).take(100).for_each(drop);
        store.questions(run).all().take(100).for_each(drop);
        let _ = store.examine(run, None);
    }
}

/// A log of another tool; its first byte chooses the name's ending.
fn logs(scratch: &Scratch, data: &[u8]) {
    const ENDINGS: [&str; 7] = ["json", "jsonl", "eval", "csv", "parquet", "tsv", "json.gz"];
    let Some((kind, data)) = choose(data, 2 * ENDINGS.len()) else { return };
    let path = scratch.write(&format!("log.{}", ENDINGS[kind % ENDINGS.len()]), data);
    read_log(path, kind >= ENDINGS.len(), kind % 2 == 0);
}

/// Finds a log and reads its samples.
fn read_log(path: PathBuf, with_columns: bool, keep_going: bool) {
    let named = |name: &str| Some(name.to_owned());
    let columns = TableColumns {
        question: named("question"),
        completion: named("completion"),
        scores: vec!["score".to_owned()],
        ..TableColumns::default()
    };
    let options = FindOptions {
        columns: with_columns.then_some(columns),
        model: named("model"),
        task: named("task"),
        keep_going,
        longest: 1 << 20,
    };
    let Ok(found) = find(&[path], &options) else { return };
    for log in &found.logs {
        let _ = log.samples(&mut |_| Ok(()));
    }
}

/// An archive of Inspect; or, after another first byte, the entries of one, with zero bytes between them: the header and the samples.
fn eval_log(scratch: &Scratch, data: &[u8]) {
    let Some((kind, data)) = choose(data, 4) else { return };
    let (archive, keep_going) = (kind / 2 == 0, kind % 2 == 1);
    let path = match archive {
        true => scratch.write("fuzz.eval", data),
        false => scratch.write("fuzz.eval", &archive_of(data)),
    };
    read_log(path, false, keep_going);
}

/// Returns a valid archive of Inspect whose entries, which are not packed, are the parts of an input between zero bytes.
pub fn archive_of(data: &[u8]) -> Vec<u8> {
    let (mut out, mut directory, mut count) = (Vec::new(), Vec::new(), 0u16);
    for text in data.split(|byte| *byte == 0).take(1000) {
        let name = match count {
            0 => "header.json".to_owned(),
            count => format!("samples/{count}_epoch_1.json"),
        };
        let mut common = vec![20, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        let size = u32::try_from(text.len()).unwrap_or(u32::MAX);
        for number in [crc32(text), size, size] {
            common.extend(number.to_le_bytes());
        }
        common.extend((name.len() as u16).to_le_bytes());
        common.extend([0; 2]);
        directory.extend(b"PK\x01\x02\x14\x00");
        directory.extend(&common);
        directory.extend([0; 10]);
        directory.extend((out.len() as u32).to_le_bytes());
        directory.extend(name.as_bytes());
        out.extend(b"PK\x03\x04");
        out.extend(&common);
        out.extend(name.as_bytes());
        out.extend(text);
        count += 1;
    }
    let start = out.len() as u32;
    out.extend(&directory);
    out.extend(b"PK\x05\x06\0\0\0\0");
    out.extend(count.to_le_bytes());
    out.extend(count.to_le_bytes());
    out.extend((directory.len() as u32).to_le_bytes());
    out.extend(start.to_le_bytes());
    out.extend([0; 2]);
    out
}

/// The checksum of zip archives.
fn crc32(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(!0, |sum: u32, byte| {
        (0..8).fold(sum ^ u32::from(*byte), |sum, _| (sum >> 1) ^ (0xedb8_8320 & (sum & 1).wrapping_neg()))
    })
}

/// A task file on the questions of an example: its templates are compiled and rendered.
fn task(scratch: &Scratch, data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let path = scratch.write("task/task.toml", data);
    if Definition::parse(text, Path::new("task.toml")).is_err() {
        return;
    }
    let mut values = OptionValues::new(1, Vec::new()).with("file", path.as_os_str());
    values.set("skip-bad-rows", Vec::new());
    let _ = check(&values, &LocalHost::default());
}

/// A file of questions as Parquet.
fn parquet(scratch: &Scratch, data: &[u8]) {
    let path = scratch.write("questions.parquet", data);
    let source = RowSource { paths: vec![path], skip_bad_rows: true, ..RowSource::default() };
    let Ok(rows) = earnest_rows::read(&source) else { return };
    for number in 0..rows.len().min(100) {
        let _ = rows.row(number);
    }
}

/// A prompt and, after a zero byte, a completion.
fn answer(_: &Scratch, data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let (prompt, completion) = text.split_once('\0').unwrap_or(("", &text));
    for form in [Form::Number, Form::Integer] {
        let reading = read(&Asked { prompt, form }, completion, data.len().is_multiple_of(2));
        if let Ok(answer) = &reading.answer {
            assert!(completion.get(answer.span.clone()).is_some(), "{:?} is no part of {completion:?}", answer.span);
        }
    }
}

/// A formula of a mixed model; one that can be read can be written.
fn formula(_: &Scratch, data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    match text.parse::<Formula>() {
        Ok(formula) => {
            let _ = (formula.variables(), formula.to_string());
        }
        Err(error) => assert!(error.to_string().len() < 10_000, "the error of a formula is long"),
    }
}
