//! Speed of reading files of questions: writes rows, checks them as a run does before it starts, then reads each by its number.
//!
//! `cargo bench --bench questions -- 100000 3000000` (rows of 310 bytes; default 100,000). Three million are 0.9 GB of disk, and as much
//! again in the temporary folder for the formats that are not plain JSON lines.
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::time::Instant;

use earnest_results::suites::LocalHost;
use earnest_tasks::suite::registry::{Host, RowSource, Rows};

fn main() {
    let mut counts: Vec<usize> = std::env::args().filter_map(|word| word.parse().ok()).collect();
    if counts.is_empty() {
        counts.push(100_000);
    }
    println!("peak memory of each step by itself; `rows` reads every row by its number");
    for count in counts {
        let folder = tempfile::tempdir().expect("a temporary folder");
        println!("\n{count} rows               MB   ready s     MB/s   peak MB    rows/s   peak MB");
        for name in ["questions.jsonl", "questions.json", "questions.csv"] {
            measure(&folder.path().join(name), name, count);
        }
    }
}

fn measure(path: &Path, name: &str, count: usize) {
    write(path, count).expect("room on the disk");
    let size = std::fs::metadata(path).map_or(0, |file| file.len()) as f64 / 1e6;
    forget_peak();
    let start = Instant::now();
    let source = RowSource { paths: vec![PathBuf::from(path)], ..RowSource::default() };
    let rows = LocalHost::default().rows(&source).expect("good rows");
    let (ready, ready_mb) = (start.elapsed().as_secs_f64(), peak_mb());
    assert_eq!(rows.len(), count);
    forget_peak();
    let start = Instant::now();
    let bytes: usize = (0..count).map(|number| question(&*rows, number)).sum();
    let each = count as f64 / start.elapsed().as_secs_f64();
    assert!(bytes > 200 * count);
    println!("{name:16} {size:9.1} {ready:9.3} {:8.0} {ready_mb:9} {each:9.0} {:9}", size / ready, peak_mb());
    std::fs::remove_file(path).expect("the file that was written");
}

/// Length of a row's question.
fn question(rows: &dyn Rows, number: usize) -> usize {
    let row = rows.row(number).expect("a row that was checked");
    row.text("question").map_or(0, |text| text.len())
}

fn write(path: &Path, count: usize) -> std::io::Result<()> {
    let mut out = BufWriter::new(File::create(path)?);
    let story = "Ann sells apples at the market. \\\"How much is one?\\\" asks Ben. ".repeat(4);
    let csv = path.extension().is_some_and(|ending| ending == "csv");
    let array = path.extension().is_some_and(|ending| ending == "json");
    if csv {
        writeln!(out, "id,question,answer,level")?;
    }
    for number in 0..count {
        if csv {
            let story = story.replace("\\\"", "\"\"");
            writeln!(out, "q-{number},\"{story}\",{number}.50,easy")?;
            continue;
        }
        let before = match (array, number) {
            (false, _) => "",
            (true, 0) => "[",
            (true, _) => ",",
        };
        let row = format!(
            "{{\"id\": \"q-{number}\", \"question\": \"{story}\", \"answer\": {number}.50, \"level\": \"easy\"}}"
        );
        writeln!(out, "{before}{row}")?;
    }
    if array {
        writeln!(out, "]")?;
    }
    out.flush()
}

/// Resets the peak resident set size, if the system can (Linux).
fn forget_peak() {
    std::fs::write("/proc/self/clear_refs", "5").ok();
}

/// The largest resident set of this process since [`forget_peak`], in MB; 0 where the system does not say.
fn peak_mb() -> i64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|line| line.trim().strip_suffix("kB")?.trim().parse::<i64>().ok())
        .map_or(0, |kib| kib * 1024 / 1_000_000)
}
