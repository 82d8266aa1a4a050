//! Speed of the readers of other tools' logs: golden logs, repeated until they are large.
//!
//! `cargo bench --bench logs -- 1000000` (lines of lm-evaluation-harness; default 100,000). It needs 1.2 GB of disk for a million.
//! `cargo bench --bench logs -- FOLDER` reads the logs of a folder instead.
use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::time::Instant;

use earnest_logs::{FindOptions, find};

const HEAD: &str = "log                         s   CPU s      MB     MB/s  records   records/s  peak MB";

fn main() {
    let lines = std::env::args().find_map(|word| word.parse().ok()).unwrap_or(100_000);
    let folders = std::env::args().skip(1).map(PathBuf::from).filter(|path| path.is_dir());
    let folders: Vec<PathBuf> = folders.collect();
    if !folders.is_empty() {
        println!("{HEAD}");
        for folder in folders {
            measure("folder", &folder, size(&folder), 1, None);
        }
        return;
    }
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/logs");
    let folder = tempfile::tempdir().expect("a temporary folder");
    println!("{HEAD}");
    let lm_eval = lm_eval(&golden, &folder.path().join("lm-eval"), lines);
    measure("lm-eval", &lm_eval, size(&lm_eval), 1, Some(lines));
    let inspect = inspect(&golden, &folder.path().join("inspect.json"), lines / 20);
    measure("inspect .json", &inspect, size(&inspect), 1, None);
    // Sizes as they are on disk, where samples are packed to a fifth.
    let archives = golden.join("inspect/logs");
    measure("inspect .eval", &archives, size(&archives) * 20.0, 20, None);
    let lighteval = golden.join("lighteval");
    measure("lighteval", &lighteval, size(&lighteval.join("details")) * 40.0, 40, None);
}

/// Peak resident memory in megabytes since the last call.
fn peak() -> f64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kilobytes = line.and_then(|line| line.split_whitespace().next()?.parse::<f64>().ok());
    // Counts anew from here.
    drop(fs::write("/proc/self/clear_refs", "5"));
    kilobytes.unwrap_or(f64::NAN) / 1e3
}

fn read(path: &Path) -> usize {
    let found = find(&[path.to_owned()], &FindOptions::default()).expect("logs");
    let mut samples = 0;
    for log in &found.logs {
        let walk = log.samples(&mut |sample| {
            samples += 1;
            std::hint::black_box(&sample);
            Ok(())
        });
        walk.expect("whole samples");
    }
    samples
}

/// Processor time of this process in seconds.
fn cpu_seconds() -> f64 {
    let stat = fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // The name of the program, in parentheses, may have blanks.
    let after = stat.rsplit_once(") ").map_or("", |(_, after)| after);
    let ticks = after.split(' ').skip(11).take(2).filter_map(|ticks| ticks.parse::<f64>().ok());
    ticks.sum::<f64>() / 100.0
}

/// Reads a log of so many records; where none are given, the samples are counted.
fn measure(name: &str, path: &Path, megabytes: f64, times: usize, records: Option<usize>) {
    peak();
    let (start, cpu) = (Instant::now(), cpu_seconds());
    let samples: usize = (0..times).map(|_| read(path)).sum();
    let (seconds, cpu) = (start.elapsed().as_secs_f64(), cpu_seconds() - cpu);
    let records = records.unwrap_or(samples);
    println!(
        "{name:20} {seconds:8.2} {cpu:7.2} {megabytes:7.0} {:8.0} {records:8} {:11.0} {:8.0}",
        megabytes / seconds,
        records as f64 / seconds,
        peak()
    );
}

fn size(path: &Path) -> f64 {
    match fs::metadata(path) {
        Ok(metadata) if metadata.is_dir() => {
            fs::read_dir(path).into_iter().flatten().flatten().map(|entry| size(&entry.path())).sum()
        }
        Ok(metadata) => metadata.len() as f64 / 1e6,
        Err(_) => 0.0,
    }
}

/// A log of so many lines, with two filters.
fn lm_eval(golden: &Path, folder: &Path, lines: usize) -> PathBuf {
    let from = golden.join("lm-eval/logs/SmolLM2-135M-Instruct-Q4_1");
    let stamp = "2026-11-22T16-35-15.540337";
    fs::create_dir_all(folder).expect("a new folder");
    let documents = lines / 2;
    let results = fs::read_to_string(from.join(format!("results_{stamp}.json"))).expect("the golden results");
    let results = results.replace("\"sample_len\": 40", &format!("\"sample_len\": {documents}"));
    fs::write(folder.join(format!("results_{stamp}.json")), results).expect("room");
    let name = format!("samples_arith_a_{stamp}.jsonl");
    let golden = fs::read_to_string(from.join(&name)).expect("the golden samples");
    let golden: Vec<&str> = golden.lines().collect();
    let mut out = BufWriter::new(File::create(folder.join(&name)).expect("a new file"));
    for filter in golden.chunks(golden.len() / 2) {
        for document in 0..documents {
            let line = filter[document % filter.len()];
            // A number of its own, and ids that differ.
            let (_, rest) = line.split_once(", \"doc\": {\"id\": \"").expect("a document with an id");
            writeln!(out, "{{\"doc_id\": {document}, \"doc\": {{\"id\": \"{document}-{rest}").expect("room");
        }
    }
    out.flush().expect("room");
    folder.to_owned()
}

/// A log of so many samples.
fn inspect(golden: &Path, path: &Path, samples: usize) -> PathBuf {
    let folder = golden.join("inspect/logs");
    let log = fs::read_dir(folder).expect("golden logs").flatten().map(|entry| entry.path());
    let log = log.into_iter().find(|path| path.extension().is_some_and(|end| end == "json")).expect("a golden log");
    let mut log: serde_json::Value = serde_json::from_str(&fs::read_to_string(log).expect("its text")).expect("JSON");
    let records = log["samples"].as_array().expect("samples").clone();
    log["samples"] = serde_json::Value::Array(Vec::new());
    let head = serde_json::to_string(&log).expect("JSON");
    let (before, after) = head.split_once("\"samples\":[]").expect("an empty list");
    let mut out = BufWriter::new(File::create(path).expect("a new file"));
    write!(out, "{before}\"samples\":[").expect("room");
    for number in 0..samples {
        let mut record = records[number % records.len()].clone();
        record["id"] = format!("s{number}").into();
        let comma = if number == 0 { "" } else { "," };
        write!(out, "{comma}{}", serde_json::to_string_pretty(&record).expect("JSON")).expect("room");
    }
    write!(out, "]{after}").expect("room");
    out.flush().expect("room");
    path.to_owned()
}
