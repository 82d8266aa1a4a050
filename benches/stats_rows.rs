//! Time and peak memory of `earnest stats glmm` on a large CSV file: ten million answers to a hundred templates.
//!
//! `cargo bench --bench stats_rows -- [rows]` prints JSON; benches/results/stats_rows.json is the result of the default. The
//! program itself is measured, from the file to the printed model, in three shapes: two conditions (200 different rows), and
//! a covariate of three decimals and of all decimals (every row different: the worst case). Linux, for the memory.
use std::io::{BufWriter, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde_json::{Value, json};

const GROUPS: u64 = 100;

fn uniform(random: &mut ChaCha8Rng) -> f64 {
    ((random.next_u64() >> 11) as f64 + 0.5) / (1_u64 << 53) as f64
}

/// `correct ~ -0.3 variant + 0.2 x + u_id`, x uniform around 0 with so many decimals.
fn write(path: &Path, rows: u64, decimals: usize) {
    let mut random = ChaCha8Rng::seed_from_u64(5);
    let levels: Vec<f64> = (0..GROUPS).map(|_| 6.0 * (uniform(&mut random) - 0.5)).collect();
    let mut file = BufWriter::with_capacity(1 << 20, std::fs::File::create(path).expect("a temporary file"));
    writeln!(file, "id,variant,x,correct").expect("room for the file");
    for row in 0..rows {
        let (id, variant) = (row % GROUPS, u64::from(!(row / GROUPS).is_multiple_of(51)));
        let x = format!("{:.decimals$}", uniform(&mut random) - 0.5);
        let odds = levels[id as usize] - 0.3 * variant as f64 + 0.2 * x.parse::<f64>().expect("a number");
        let correct = u8::from(uniform(&mut random) < 1.0 / (1.0 + (-odds).exp()));
        writeln!(file, "t{id},{variant},{x},{correct}").expect("room for the file");
    }
    file.flush().expect("room for the file");
}

/// Largest resident memory so far, in MiB.
fn peak(process: u32) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    Some(line.trim().trim_end_matches(" kB").parse::<u64>().ok()? / 1024)
}

fn measure(path: &Path, fixed: &str) -> Value {
    let started = Instant::now();
    let mut child = Command::new(env!("CARGO_BIN_EXE_earnest"))
        .args(["stats", "glmm", "--response", "correct", "--group", "id", "--json", "--fixed", fixed])
        .arg(path)
        .stdout(Stdio::piped())
        .spawn()
        .expect("the program was built");
    let mut largest = 0;
    while child.try_wait().expect("the program is ours").is_none() {
        largest = largest.max(peak(child.id()).unwrap_or(0));
        std::thread::sleep(Duration::from_millis(5));
    }
    let seconds = started.elapsed().as_secs_f64();
    let output = child.wait_with_output().expect("the program is ours");
    let report: Value = serde_json::from_slice(&output.stdout).expect("the program prints JSON");
    let coefficients = report["fit"]["coefficients"].as_array().cloned().unwrap_or_default();
    let estimates: Vec<Value> = coefficients
        .iter()
        .map(|found| json!({ "name": found["name"], "estimate": found["estimate"], "error": found["standard_error"] }))
        .collect();
    json!({
        "fixed": fixed,
        "seconds": (seconds * 10.0).round() / 10.0,
        "peak_mib": largest,
        "rows": report["fit"]["rows"],
        "estimates": estimates,
        "diagnoses": report["fit"]["diagnoses"],
    })
}

fn main() {
    // `cargo bench` adds its own flag.
    let rows = std::env::args().skip(1).find_map(|argument| argument.parse().ok()).unwrap_or(10_000_000);
    let folder = std::env::temp_dir().join(format!("earnest-stats-rows-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a temporary folder");
    let path = folder.join("rows.csv");
    let mut results = Vec::new();
    for (decimals, models) in [(3, vec!["variant", "variant,x"]), (12, vec!["variant,x"])] {
        write(&path, rows, decimals);
        for fixed in models {
            let mut found = measure(&path, fixed);
            found["decimals_of_x"] = decimals.into();
            results.push(found);
        }
    }
    std::fs::remove_dir_all(&folder).ok();
    let result = json!({ "command": "cargo bench --bench stats_rows", "groups": GROUPS, "results": results });
    println!("{}", serde_json::to_string_pretty(&result).expect("plain numbers"));
}
