//! Speed of the results file: writes samples with texts of realistic size, then lists, sums and reads them.
//!
//! `cargo bench --bench store -- 100000 1000000` (samples; default 100,000). It needs 2.5 GB of disk for a million.
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use earnest_engine::{FinishReason, Sampling, Timings};
use earnest_results::store::{BULK_ROWS, Filter, RunRecord, Store};
use earnest_results::{
    Document, FileRecord, Generated, Generation, Host, MANIFEST_FORMAT, Manifest, Mode, ModelRecord, RunError,
    RunSettings, SAMPLE_FORMAT, Sample, Status,
};
use earnest_tasks::suite::{
    Answered, Budget, FailureClass, Item, Items, Score, Scored, Scoring, Segments, Suite, Summary, SummaryRow,
};

fn main() {
    let mut counts: Vec<usize> = std::env::args().filter_map(|word| word.parse().ok()).collect();
    if counts.is_empty() {
        counts.push(100_000);
    }
    println!("{} bytes of text and 140 ids a sample; peak memory of each step by itself", text(0).len());
    for count in counts {
        println!("\n{count} samples          s     rows/s   CPU s  peak MB");
        measure(count);
    }
}

fn measure(count: usize) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let store = Store::create(folder.path()).expect("a new file of results");
    let questions = Suite::new(Questions(count));
    // As a run writes (rows come one by one), and as imports and merges do.
    write("write, batches of 64", &store, &store.begin(&manifest("run", &questions), count).expect("a new run"), 64);
    let run = store.begin(&manifest("bulk", &questions), count).expect("a new run");
    write("write, in bulk", &store, &run, BULK_ROWS);
    let size = std::fs::metadata(store.path()).map_or(0, |file| file.len());
    println!("  {:.0} MB in the file", size as f64 / 1e6);
    drop(store);

    let store = step("open", 1, || Store::open(folder.path()).expect("the file that was written"));
    let run = store.run("bulk").expect("its run");
    let ids = step("list every row", count, || {
        let mut bytes = 0;
        let walk = store.outcomes(&run, |outcome| -> Result<(), RunError> {
            bytes += outcome.item.len();
            Ok(())
        });
        walk.expect("whole rows");
        bytes
    });
    let wrong = Filter { failed: true, task: Some("main".into()), ..Filter::default() };
    let shown = step("list 20 wrong ones", 20, || store.samples(&run, wrong).take(20).count());
    let sums = step("aggregate", count, || store.aggregate(&run).expect("its rows"));
    let progress = step("what is there", count, || store.progress(&run).expect("its rows"));
    let bytes = step("read every text", count, || {
        let texts = store.samples(&run, Filter::default()).map(|sample| sample.expect("a whole row"));
        texts.map(|sample| sample.completion.map_or(0, |completion| completion.text.len())).sum::<usize>()
    });
    // The last step, because the system keeps the memory that it needs for a million different questions.
    let document = step("summary and screen", count, || Document::stored(&store, &run, &questions).expect("its rows"));
    println!(
        "  {} MB of ids, {shown} shown, {} rows, accuracy {:.4}, {} rows in the summary, {} MB of text",
        ids / 1_000_000,
        progress.settled(),
        sums.accuracy().map_or(f64::NAN, |accuracy| accuracy.value),
        document.summary.rows.first().map_or(0, |row| row.n),
        bytes / 1_000_000
    );
}

/// Runs a step and prints its time.
fn step<T>(name: &str, rows: usize, work: impl FnOnce() -> T) -> T {
    forget_peak();
    let (start, cpu) = (Instant::now(), cpu_seconds());
    let result = work();
    report(name, rows, start.elapsed().as_secs_f64(), cpu_seconds() - cpu);
    result
}

fn report(name: &str, rows: usize, seconds: f64, cpu: f64) {
    println!("{name:22}{seconds:7.3} {:10.0} {cpu:7.2} {:8}", rows as f64 / seconds, peak_mb());
}

fn write(name: &str, store: &Store, run: &RunRecord, batch: usize) {
    // Made before the clock starts: a hundred different ones, of which only the item changes.
    let mut templates: Vec<Sample> = (0..100).map(sample).collect();
    let count = run.planned;
    let mut writer = store.writer(run).batches_of(batch);
    forget_peak();
    let (start, cpu) = (Instant::now(), cpu_seconds());
    let mut making = Duration::ZERO;
    for number in 0..count {
        let clock = Instant::now();
        let template = &mut templates[number % 100];
        template.item = item_id(number);
        template.cluster = format!("{:04}", number / 50);
        let sample = template.clone();
        making += clock.elapsed();
        writer.push(number, sample).expect("room on the disk");
    }
    writer.write().expect("room on the disk");
    // Making the samples is not the file's work. Its processor time cannot be told apart and stays in.
    let seconds = (start.elapsed() - making).as_secs_f64();
    report(name, count, seconds, cpu_seconds() - cpu);
}

fn item_id(number: usize) -> String {
    format!("gsm-symbolic/{:04}/{:02}", number / 50, number % 50)
}

/// A suite with these items, for the summary.
struct Questions(usize);

impl Items for Questions {
    fn iter(&self) -> Box<dyn Iterator<Item = Item> + Send + '_> {
        Box::new((0..self.0).map(|number| Item {
            id: item_id(number),
            task: ["main", "p1", "p2"][number % 3].into(),
            cluster: format!("{:04}", number / 50),
            covariates: BTreeMap::from([("variant".into(), number.into()), ("template".into(), (number / 50).into())]),
            segments: Segments::question(text(number)),
            gold: (number + 28).to_string(),
            budget: Budget { answer: 512, thinking: 512 },
            stop_strings: Vec::new(),
            keep_stop: false,
            continuations: Vec::new(),
        }))
    }
    fn len(&self) -> usize {
        self.0
    }
}

impl Scoring for Questions {
    fn name(&self) -> &'static str {
        "gsm-symbolic"
    }
    fn version(&self) -> &'static str {
        "1"
    }
    fn options(&self) -> serde_json::Value {
        serde_json::json!({})
    }
    fn score(&self, _: &Item, _: &Answered<'_>) -> Score {
        unreachable!("nothing is judged here")
    }
    fn summarise(&self, samples: &[Scored<'_>]) -> Summary {
        let row = SummaryRow { name: "all".into(), n: samples.len(), values: Vec::new(), numbers: Vec::new() };
        Summary { rows: vec![row], series: Vec::new(), notes: Vec::new() }
    }
}

/// A worked answer of the length that models write to grade-school problems (GSM8K's solutions have 100 to 150 tokens).
fn text(number: usize) -> String {
    let step = |k: usize| {
        format!(
            "Step {k}: she has {} apples and buys {} more, so {} + {} = {}. ",
            number + k,
            3 * k,
            number + k,
            3 * k,
            number + 4 * k
        )
    };
    (1..=7).map(step).collect::<String>() + &format!("The final answer is {}.", number + 28)
}

fn sample(number: usize) -> Sample {
    let correct = !number.is_multiple_of(3);
    Sample {
        format: SAMPLE_FORMAT,
        run: "bench".into(),
        suite: "gsm-symbolic".into(),
        item: String::new(),
        sample: 0,
        task: ["main", "p1", "p2"][number % 3].into(),
        cluster: String::new(),
        covariates: BTreeMap::from([("variant".into(), number.into()), ("template".into(), (number / 50).into())]),
        gold: (number + 28).to_string(),
        prompt_sha256: "0123456789abcdef".repeat(4),
        prompt_tokens: 867,
        budget: 512,
        max_tokens: 512,
        completion: Some(Generated {
            counted_tokens: 0,
            text: text(number),
            ids: (0..140).map(|id| id * 331 % 49_152).collect(),
            finish: FinishReason::Eos,
            cached_tokens: 832,
            timings: Timings { queued_s: 0.013, prefill_s: 0.21, decode_s: 2.75 },
        }),
        score: Some(Score {
            correct,
            answer: Some((number + 28).to_string()),
            scorers: [("boundary", correct), ("compat", true), ("final", correct)].into(),
            metrics: [("digit_match", 0.75), ("length_error", 0.0)].into(),
            failure: (!correct).then_some(FailureClass::Wrong),
            ..Score::default()
        }),
        failure: None,
    }
}

fn manifest(name: &str, suite: &Suite) -> Manifest {
    let settings = RunSettings {
        suite: suite.scoring.name().into(),
        suite_version: suite.scoring.version().into(),
        suite_options: suite.scoring.options(),
        limit: None,
        samples: 1,
        model_files: vec![FileRecord { name: "model".into(), size: 1, sha256: "0".repeat(64) }],
        weights: None,
        pre_tokenizer: None,
        prompt_mode: Mode::Raw,
        system: earnest_results::SystemPlace::Own,
        generation: Generation {
            sampling: Sampling::GREEDY,
            seed: 1,
            stop_ids: vec![2],
            max_tokens: None,
            thinking: false,
        },
        enable_thinking: None,
        thinking_text: Default::default(),
        endpoint: None,
        engine: "bench".into(),
        earnest: env!("CARGO_PKG_VERSION").into(),
        until: None,
    };
    Manifest {
        format: MANIFEST_FORMAT,
        run: name.into(),
        status: Status::Running,
        shard: None,
        settings_sha256: settings.sha256(),
        settings,
        model: ModelRecord {
            name: "model".into(),
            path: "model".into(),
            format: "none".into(),
            architecture: "none".into(),
            context: 4096,
            chat_template_sha256: None,
            pinned: None,
            weights: None,
            allowed_config: Vec::new(),
        },
        first_prompt: None,
        engine: None,
        host: Host::probe(),
        started: "2026-01-01T00:00:00Z".into(),
        ended: None,
        sandbox: None,
        sessions: 1,
        generation_s: 0.0,
        decision: None,
    }
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

/// Processor time of this process so far, in seconds; it tells the work from the waiting on a shared machine.
fn cpu_seconds() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // After the name in parentheses: utime and stime are the 12th and 13th, in hundredths of a second.
    let fields = stat.rsplit(')').next().unwrap_or_default();
    fields.split_whitespace().skip(11).take(2).filter_map(|ticks| ticks.parse::<f64>().ok()).sum::<f64>() / 100.0
}
