use std::process::Command;

use super::super::json_lines;
use super::super::refusal::BadRows;
use super::super::rows::{Index, Output, Spool};
use super::*;

/// Size of the file, in bytes.
const SIZE: usize = 50_000_000;
/// Set for the process that has the memory for itself.
const ALONE: &str = "EARNEST_TEST_ALONE";

fn write(path: &Path) -> usize {
    let mut out = std::io::BufWriter::new(std::fs::File::create(path).unwrap());
    let mut written = 0;
    let mut rows = 0;
    while written < SIZE {
        let line =
            format!("{{\"id\": \"q-{rows}\", \"question\": \"{}\", \"answer\": {rows}}}\n", "How many? ".repeat(90));
        out.write_all(line.as_bytes()).unwrap();
        (written, rows) = (written + line.len(), rows + 1);
    }
    out.flush().unwrap();
    rows
}

#[test]
fn a_large_file_is_not_kept_in_memory() {
    // Other tests take memory in the same process, so this one starts itself again.
    if std::env::var_os(ALONE).is_none() {
        let name = "tests::large::a_large_file_is_not_kept_in_memory";
        let child = Command::new(std::env::current_exe().unwrap()).args([name, "--exact"]).env(ALONE, "1").output();
        let child = child.unwrap();
        let said = String::from_utf8_lossy(&child.stdout);
        assert!(child.status.success() && said.contains("1 passed"), "{said}");
        return;
    }
    let folder = Folder::new();
    let path = folder.path("large.jsonl");
    let count = write(&path);
    let before = memory("VmRSS:");
    let rows = read(&source(&[&path]));
    assert_eq!(rows.len(), count);
    for number in (0..count).step_by(997).chain([count - 1]) {
        assert_eq!(rows.row(number).unwrap().values["answer"], number);
    }
    // A batch of 4 MB and what is checked of it.
    if let (Some(before), Some(peak)) = (before, memory("VmHWM:")) {
        assert!(peak < before + SIZE / 2, "{before} bytes before, {peak} at most");
    }
}

/// Memory that this process takes, in bytes, where the system says it.
fn memory(name: &str) -> Option<usize> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix(name))?;
    line.trim().strip_suffix("kB")?.trim().parse::<usize>().ok().map(|kib| kib * 1024)
}

#[test]
fn an_index_takes_eight_bytes_a_row() {
    let (mut bad, mut spool) = (BadRows::default(), Spool::default());
    let (name, unit, index, read) = ("q", "line", Index::default(), std::rc::Rc::default());
    let mut output =
        Output { name, unit, index, bad: &mut bad, spool: &mut spool, rows: 0, of_file: 0, read, spooled: 0 };
    let lines: String = (0..100_000).map(|number| format!("{{\"n\":{number}}}\n")).collect();
    json_lines::read(lines.as_bytes(), 0, true, &mut output).unwrap();
    assert_eq!(output.index.len(), 100_000);
    // Growth by doubling leaves at most as much again.
    assert!(output.index.bytes() < 2 * 8 * 100_000 + 200, "{}", output.index.bytes());
}
