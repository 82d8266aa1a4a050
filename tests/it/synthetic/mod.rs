//! Synthetic runs for tests of reports and exports: real items, made-up answers of the size and repetitiveness of worked
//! solutions. Deterministic.

use std::path::Path;

use earnest_engine::{FinishReason, Sampling, Timings};
use earnest_results::store::{BULK_ROWS, Store};
use earnest_results::{
    FailureKind, FileRecord, Generated, Generation, Host, MANIFEST_FORMAT, Manifest, Mode, ModelRecord, RunSettings,
    SAMPLE_FORMAT, Sample, SampleFailure, Status,
};
use earnest_tasks::suite::arithmetic_bench::{ArithmeticBench, Lengths, Options, Task};
use earnest_tasks::suite::{Answered, Item, Suite};

/// A small counter-based generator (SplitMix64): tests need no more.
pub struct Dice(pub u64);

impl Dice {
    pub fn roll(&mut self, sides: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((bits ^ (bits >> 31)) % sides as u64) as usize
    }

    fn pick<'a>(&mut self, words: &[&'a str]) -> &'a str {
        words[self.roll(words.len())]
    }
}

/// Some tasks at some lengths.
pub fn suite(tasks: &[Task], lengths: std::ops::RangeInclusive<usize>, per_length: usize) -> Suite {
    let lengths = Lengths::new(lengths).unwrap();
    Suite::new(
        ArithmeticBench::new(Options { tasks: tasks.to_vec(), lengths, per_length, ..Options::default() }).unwrap(),
    )
}

pub fn manifest(name: &str, model: &str, suite: &Suite) -> Manifest {
    let settings = RunSettings {
        suite: suite.scoring.name().into(),
        suite_version: suite.scoring.version().into(),
        suite_options: suite.scoring.options(),
        limit: None,
        samples: 1,
        until: None,
        model_files: vec![FileRecord { name: format!("{model}.gguf"), size: 1, sha256: "00".repeat(32) }],
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
        engine: "native".into(),
        earnest: "0".into(),
    };
    Manifest {
        format: MANIFEST_FORMAT,
        run: name.into(),
        status: Status::Finished,
        settings_sha256: settings.sha256(),
        settings,
        model: ModelRecord {
            name: model.into(),
            path: "nowhere".into(),
            format: "safetensors".into(),
            architecture: "llama".into(),
            context: 4096,
            chat_template_sha256: None,
            pinned: None,
            weights: None,
            allowed_config: Vec::new(),
        },
        first_prompt: None,
        engine: None,
        host: Host { os: "linux".into(), arch: "x86_64".into(), cpu: None, threads: 2, memory: None },
        started: "2026-11-21T05:04:25Z".into(),
        ended: Some("2026-11-21T06:04:25Z".into()),
        sandbox: None,
        sessions: 1,
        generation_s: 100.0,
        decision: None,
        shard: None,
    }
}

/// The rows of a model that is right with a probability falling by length; `skill` is the length at which it is 1/2.
/// Every 997th has no answer. One completion tries to be markup.
pub fn samples(run: &str, suite: &Suite, skill: f64, seed: u64) -> Vec<Sample> {
    repeated(run, suite, skill, seed, 1)
}

/// The same with several samples an item.
pub fn repeated(run: &str, suite: &Suite, skill: f64, seed: u64, times: u32) -> Vec<Sample> {
    let mut dice = Dice(seed);
    let mut samples = Vec::new();
    for item in suite.items.iter() {
        for number in 0..times {
            let one = sample(run, suite, &item, samples.len(), skill, &mut dice);
            samples.push(Sample { sample: number, ..one });
        }
    }
    samples
}

fn sample(run: &str, suite: &Suite, item: &Item, index: usize, skill: f64, dice: &mut Dice) -> Sample {
    let length = item.covariates["length"].as_u64().unwrap() as f64;
    let right = (dice.roll(10_000) as f64) < 10_000.0 / (1.0 + (length / skill).powi(3));
    let text = match index {
        3 => "</script><script>window.earnestWasHere=1</script><img src=x onerror=\"window.earnestWasHere=2\">, \"\r\n\u{2028}".to_owned(),
        _ if dice.roll(200) == 0 => String::new(),
        _ => solution(item, right, dice),
    };
    let truncated = dice.roll(50) == 0;
    let score = suite.score(item, &Answered { completion: &text, truncated });
    let failed = index % 997 == 996;
    let tokens = text.len() / 4 + 1;
    Sample {
        format: SAMPLE_FORMAT,
        run: run.into(),
        suite: suite.scoring.name().into(),
        item: item.id.clone(),
        sample: 0,
        task: item.task.clone(),
        cluster: item.cluster.clone(),
        covariates: item.covariates.clone(),
        gold: item.gold.clone(),
        prompt_sha256: format!("{index:064x}"),
        prompt_tokens: 40,
        budget: 512,
        max_tokens: 512,
        completion: (!failed).then(|| Generated {
            counted_tokens: 0,
            ids: (0..tokens).map(|_| dice.roll(32_000) as u32).collect(),
            text,
            finish: if truncated { FinishReason::Length } else { FinishReason::Eos },
            cached_tokens: 12,
            timings: Timings {
                queued_s: 0.5,
                prefill_s: 0.01 + dice.roll(100) as f64 / 5000.0,
                decode_s: tokens as f64 * (0.01 + dice.roll(100) as f64 / 20_000.0),
            },
        }),
        score: (!failed).then_some(score),
        failure: failed.then(|| SampleFailure {
            kind: FailureKind::BeyondContext,
            message: "the prompt has 5,000 tokens, the \"context\" 4,096".into(),
            retryable: false,
        }),
    }
}

/// A worked solution of four to seven sentences, about 350 characters, with names and numbers that vary.
pub fn solution(item: &Item, right: bool, dice: &mut Dice) -> String {
    const NAMES: [&str; 12] =
        ["Sofia", "Liam", "Mei", "Omar", "Ines", "Tunde", "Priya", "Jonas", "Aiko", "Carlos", "Freya", "Ivan"];
    const THINGS: [&str; 12] = [
        "apples", "marbles", "pages", "tickets", "stickers", "bottles", "pencils", "hours", "miles", "cookies",
        "stamps", "dollars",
    ];
    const OPENINGS: [&str; 6] = [
        "Let's work through this step by step.",
        "To solve this we first need to find out what is given.",
        "First, we write down what we know.",
        "We can break this problem into smaller parts.",
        "Let me think about this carefully.",
        "Okay, so we have to find the total here.",
    ];
    let mut text = String::from(dice.pick(&OPENINGS));
    for _ in 0..3 + dice.roll(4) {
        let (name, thing) = (dice.pick(&NAMES), dice.pick(&THINGS));
        let (a, b) = (2 + dice.roll(900), 2 + dice.roll(90));
        let sentence = match dice.roll(8) {
            0 => {
                format!(" {name} has {a} {thing} and gives away {b}, so {a} - {b} = {} are left.", a as i64 - b as i64)
            }
            1 => format!(" Each of the {b} boxes holds {a} {thing}, which makes {a} * {b} = {} in total.", a * b),
            2 => format!(" We are told that {name} needs {a} {thing} every day for {b} days."),
            3 => format!(" Adding the {thing}, we get {a} + {b} = {}.", a + b),
            4 => format!(
                " This means that {name} spends {a} {thing} more than before, which is {}% of it.",
                dice.roll(100)
            ),
            5 => format!(" Half of the {a} {thing} is {}, and a third of the {b} others is {}.", a / 2, b / 3),
            6 => format!(" So the number of {thing} that {name} has now is {}.", a + b),
            _ => format!(" Next, {name} divides the {a} {thing} among {b} friends, so each one gets {}.", a / b),
        };
        text.push_str(&sentence);
    }
    let answer = if right { item.gold.clone() } else { format!("7{}", dice.roll(1_000_000_000)) };
    text.push_str(&format!("\n#### {answer}"));
    text
}

/// Writes a run into the store of a results folder.
pub fn store(results: &Path, manifest: &Manifest, samples: &[Sample]) {
    let store = Store::create(results).unwrap();
    let record = store.begin(manifest, samples.len()).unwrap();
    let mut writer = store.writer(&record).batches_of(BULK_ROWS);
    for (index, sample) in samples.iter().enumerate() {
        writer.push(index, sample.clone()).unwrap();
    }
    writer.write().unwrap();
}
