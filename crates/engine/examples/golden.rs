//! Compares checkpoints with what a reference recorded, and their bits in different batches:
//! `cargo run --release -p earnest-engine --example golden -- CHECKPOINT...`, folders with a `golden.json` or GGUF files beside one.

use std::path::Path;
use std::process::ExitCode;

use earnest_engine::bench::{Recorded, compare};
use earnest_engine::cpu::{CpuEngine, Options};
use earnest_engine::{Engine, Event, Request, RequestId};
use earnest_models::checkpoint::Checkpoint;

type Failure = Box<dyn std::error::Error>;

fn main() -> ExitCode {
    let mut failed = 0;
    for path in std::env::args().skip(1) {
        match check(Path::new(&path)) {
            Ok(line) => println!("{path}: {line}"),
            Err(error) => {
                failed += 1;
                println!("{path}: FAILED: {error}");
            }
        }
    }
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn check(path: &Path) -> Result<String, Failure> {
    let checkpoint = Checkpoint::open(path)?;
    let folder = if path.is_dir() { path } else { path.parent().unwrap_or(Path::new(".")) };
    let recorded = Recorded::read(&folder.join("golden.json"))?;
    let found = compare(&mut CpuEngine::load(&checkpoint, Options::default())?, "", &recorded)?;
    let line = format!("largest difference {:.1e}, {} tokens", found.largest_difference, found.tokens);
    if !found.exact || found.largest_difference > 1e-3 {
        return Err(format!("{line}, lost margin {}", found.largest_lost_margin).into());
    }
    let together = hashes(&checkpoint, &recorded, Options::default(), false)?;
    let chunked = Options { token_budget: 19, max_batch: 3, threads: Some(1), ..Options::default() };
    for (name, options, alone) in
        [("alone", Options { prefix_cache: false, ..Options::default() }, true), ("chunked", chunked, false)]
    {
        if hashes(&checkpoint, &recorded, options, alone)? != together {
            return Err(format!("other bits {name}").into());
        }
    }
    Ok(line)
}

/// Hashes of every step's logits, for each prompt.
fn hashes(c: &Checkpoint, r: &Recorded, options: Options, alone: bool) -> Result<Vec<Vec<u64>>, Failure> {
    let mut engine = CpuEngine::load(c, Options { trace: true, ..options })?;
    let mut all = vec![Vec::new(); r.prompts.len()];
    let mut finish = |engine: &mut CpuEngine| -> Result<(), Failure> {
        loop {
            let events = engine.poll()?;
            if events.is_empty() {
                return Ok(());
            }
            for event in events {
                if let Event::Finished(done) = event {
                    all[done.id.0 as usize] = done.logits_hashes.unwrap_or_default();
                }
            }
        }
    };
    for (i, p) in r.prompts.iter().enumerate() {
        engine.submit(Request::greedy(RequestId(i as u64), p.ids.clone(), p.greedy.len()))?;
        if alone {
            finish(&mut engine)?;
        }
    }
    finish(&mut engine)?;
    Ok(all)
}
