//! Share of questions and prompts in the results file, and the writing speed of a run whose engine takes no time: NUPA's items
//! through the real runner.
//!
//! `cargo bench --bench store_questions -- 1000000` (samples; default 100,000). It needs 3 GB of disk for a million.
use std::collections::VecDeque;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use earnest_engine::{
    Card, Completion, Engine, EngineError, Event, FinishReason, Input, Rejected, Request, RequestId, Statistics,
    Timings,
};
use earnest_eval::prompt::{PromptError, PromptSource, Prompter};
use earnest_eval::run::Runner;
use earnest_models::checkpoint::ChatMessage;
use earnest_results::store::{FILE_NAME, Store};
use earnest_results::{Generation, ModeRequest};
use earnest_tasks::suite::Suite;
use earnest_tasks::suite::nupa::{Adapter, NupaOptions, NupaSuite};

#[allow(dead_code)]
#[path = "../tests/it/synthetic/mod.rs"]
mod synthetic;

fn main() {
    let count = std::env::args().find_map(|word| word.parse().ok()).unwrap_or(100_000);
    println!("{count} samples of NUPA         s  samples/s   CPU s   file MB  without  of it questions and prompts");
    for (name, adapter, shots) in [
        ("raw", Adapter::Completion, 0),
        ("raw, 5 examples", Adapter::Completion, 5),
        ("chat", Adapter::Chat, 0),
        ("chat, 5 examples", Adapter::Chat, 5),
    ] {
        let asked = asked(count, adapter, shots, false);
        let file = asked.folder.path().join(FILE_NAME);
        let with = vacuumed(&file, "");
        let without = vacuumed(&file, "DELETE FROM packs; DELETE FROM asked;");
        println!(
            "{name:20} {:11.3} {:10.0} {:7.2} {:9.1} {:8.1} {:6.1} % ({:.0} bytes a sample)",
            asked.seconds,
            asked.rows as f64 / asked.seconds,
            asked.cpu,
            with / 1e6,
            without / 1e6,
            100.0 * (with / without - 1.0),
            (with - without) / asked.rows as f64
        );
    }
    println!("\npaired, raw: seconds and CPU seconds with questions, and where they are stored already");
    for _ in 0..7 {
        let [with, without] = [false, true].map(|stored| asked(count.min(100_000), Adapter::Completion, 0, stored));
        println!(
            "{:8.3} {:7.2}   {:8.3} {:7.2}   {:+5.1} % {:+5.1} %",
            with.seconds,
            with.cpu,
            without.seconds,
            without.cpu,
            100.0 * (with.seconds / without.seconds - 1.0),
            100.0 * (with.cpu / without.cpu - 1.0)
        );
    }
}

/// A run that was written.
struct Written {
    folder: tempfile::TempDir,
    rows: usize,
    seconds: f64,
    cpu: f64,
}

/// Asks an engine that answers at once; with `stored`, the questions are in the file before the clock starts.
fn asked(count: usize, adapter: Adapter, shots: usize, stored: bool) -> Written {
    let options = NupaOptions { adapter, shots, per_length: 1_000, ..NupaOptions::default() };
    let suite = Suite::new(NupaSuite::new(options).expect("options that exist"));
    let folder = tempfile::tempdir().expect("a temporary folder");
    let store = Store::create(folder.path()).expect("a new file of results");
    let mut manifest = synthetic::manifest("run", "model", &suite);
    manifest.settings.limit = Some(count);
    let plan = manifest.plan();
    let run = store.begin(&manifest, plan.len(&suite)).expect("a new run");
    if stored {
        store.keep_questions(&run, &suite, 0..count).expect("room on the disk");
    }
    let progress = store.progress(&run).expect("no rows");
    let request = if adapter == Adapter::Chat { ModeRequest::Chat } else { ModeRequest::Raw };
    let prompter = Prompter::new(&Source, request).expect("a template");
    let generation: &Generation = &manifest.settings.generation;
    let stop = AtomicBool::new(false);
    let runner =
        Runner { run: "run", suite: &suite, plan, prompter: &prompter, generation, fail_on_error: None, stop: &stop };
    let mut writer = store.writer(&run);
    let (start, cpu) = (Instant::now(), cpu_seconds());
    runner.run(&mut Immediate::default(), &mut writer, &progress, &mut ()).expect("room on the disk");
    let (seconds, cpu) = (start.elapsed().as_secs_f64(), cpu_seconds() - cpu);
    drop(writer);
    let rows = store.count(&run).expect("its rows");
    assert_eq!(rows, plan.len(&suite));
    Written { folder, rows, seconds, cpu }
}

/// Bytes of the file after these statements, without free pages.
fn vacuumed(file: &Path, statements: &str) -> f64 {
    let connection = rusqlite::Connection::open(file).expect("the file that was written");
    connection.execute_batch(&format!("{statements} VACUUM; PRAGMA wal_checkpoint(TRUNCATE);")).expect("whole pages");
    std::fs::metadata(file).map_or(f64::NAN, |file| file.len() as f64)
}

/// A tokenizer with four bytes per token and a fixed chat format: the cost of rendering is not measured.
struct Source;

impl PromptSource for Source {
    fn encode(&self, text: &str) -> Result<Vec<u32>, PromptError> {
        Ok(text.as_bytes().chunks(4).map(|four| four.iter().fold(0, |id, &byte| id << 8 | u32::from(byte))).collect())
    }
    fn bos(&self) -> Option<u32> {
        None
    }
    fn adds_bos(&self) -> bool {
        false
    }
    fn has_template(&self) -> bool {
        true
    }
    fn apply_template(&self, messages: &[ChatMessage]) -> Result<String, PromptError> {
        let turns: String = messages
            .iter()
            .map(|message| format!("<|im_start|>{}\n{}<|im_end|>\n", message.role, message.content))
            .collect();
        Ok(turns + "<|im_start|>assistant\n")
    }
}

/// Answers every request with the number that its prompt ends in, or nearly.
#[derive(Default)]
struct Immediate {
    waiting: VecDeque<Request>,
}

impl Engine for Immediate {
    fn submit(&mut self, request: Request) -> Result<(), Rejected> {
        self.waiting.push_back(request);
        Ok(())
    }

    fn poll(&mut self) -> Result<Vec<Event>, EngineError> {
        let answered = self.waiting.drain(..).map(|request| {
            let Input::Ids(ids) = &request.input else { unreachable!("the source has ids") };
            let text: Vec<u8> = ids.iter().flat_map(|id| id.to_be_bytes()).filter(|byte| *byte > 0).collect();
            let digits: String =
                text.iter().rev().filter(|byte| byte.is_ascii_digit()).take(24).map(|&b| b as char).collect();
            let text = format!("The answer is {digits}.");
            Event::Finished(Box::new(Completion {
                id: request.id,
                counted_tokens: 0,
                ids: text.as_bytes().chunks(2).map(|two| u32::from(two[0]) * 97).collect(),
                text,
                finish: FinishReason::Eos,
                prompt_tokens: ids.len(),
                cached_tokens: 0,
                logprobs: None,
                prompt_logprobs: None,
                logits_hashes: None,
                timings: Timings { queued_s: 0.013, prefill_s: 0.21, decode_s: 2.75 },
            }))
        });
        Ok(answered.collect())
    }

    fn cancel(&mut self, _: RequestId) -> bool {
        false
    }

    fn card(&self) -> Card {
        Card {
            engine: "immediate".into(),
            version: "1".into(),
            devices: Vec::new(),
            weights_dtype: "none".into(),
            context: 0,
            weight_bytes: 0,
            kv_bytes: 0,
            kv_tokens: 0,
            in_flight: 64,
            deterministic: true,
            seeded: true,
            logprobs: false,
        }
    }

    fn statistics(&self) -> Statistics {
        Statistics::default()
    }
}

/// Processor time of this process so far, in seconds.
fn cpu_seconds() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // After the name in parentheses: utime and stime are the 12th and 13th, in hundredths of a second.
    let fields = stat.rsplit(')').next().unwrap_or_default();
    fields.split_whitespace().skip(11).take(2).filter_map(|ticks| ticks.parse::<f64>().ok()).sum::<f64>() / 100.0
}
