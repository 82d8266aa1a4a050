//! The bits of a request's logits do not depend on anything else: not on the batch, the order, the prefix cache, the
//! memory or the number of threads. Compared by a hash of every step's logits.
use std::collections::HashMap;
use std::path::{Path, PathBuf};

use earnest_engine::cpu::{CpuEngine, Options};
use earnest_engine::{
    Completion, Engine, Event, FinishReason, Input, Logprobs, Request, RequestId, Sampling, SamplingKey,
};
use earnest_models::checkpoint::{Checkpoint, KeysValues, LayerConfig};

/// A way to submit the requests, and engine options.
struct Setting {
    name: &'static str,
    /// Submit one at a time and wait for each.
    alone: bool,
    shuffled: bool,
    options: Options,
}

fn options(threads: usize, max_batch: usize, prefix_cache: bool, kv_memory: u64) -> Options {
    Options {
        threads: Some(threads),
        kv_memory: Some(kv_memory),
        max_batch,
        prefix_cache,
        trace: true,
        ..Options::default()
    }
}

/// 200 requests: few-shot and zero-shot, greedy and sampled, with and without stop strings.
fn requests(checkpoint: &Checkpoint, shot_tokens: usize, new_tokens: usize) -> Vec<Request> {
    let shots: String = (1..=8)
        .map(|i| {
            format!(
                "Q: There are {} trees in the grove. How many are left after {i} fall?\nA: The final answer is {}.\n\n",
                11 * i,
                10 * i
            )
        })
        .collect();
    let shots = checkpoint.tokenizer.encode(&shots, true).unwrap();
    let shots = &shots[..shots.len().min(shot_tokens)];
    let vocabulary = checkpoint.config.vocab_size as u32;
    (0..200u64)
        .map(|i| {
            let question = format!("Add two numbers: {} + {} =", i * 7919 % 1000, i * i * 31 % 100_000);
            let mut ids = checkpoint.tokenizer.encode(&question, i % 10 != 3).unwrap();
            if i % 10 == 3 {
                ids.splice(0..0, shots.iter().copied());
            }
            let sampling = match i % 4 {
                0 | 1 => Sampling::GREEDY,
                2 => Sampling { temperature: 0.9, top_k: 40, ..Sampling::GREEDY },
                _ => {
                    Sampling { temperature: 1.3, top_p: 0.95, min_p: 0.02, repetition_penalty: 1.1, ..Sampling::GREEDY }
                }
            };
            let stop_strings = if i % 5 == 0 { vec!["1".into(), "\n".into(), "e".into()] } else { vec![] };
            Request {
                id: RequestId(i),
                input: Input::Ids(ids),
                sampling,
                sampling_key: SamplingKey([i as u8; 32]),
                stop_strings,
                keep_stop: i % 10 == 0,
                stop_ids: vec![i as u32 % vocabulary, 2],
                max_tokens: 1 + (i as usize * 5) % new_tokens,
                logprobs: Logprobs {
                    top: usize::from(i % 6 == 0) * 3,
                    prompt_from: (i % 50 == 7).then_some(i as usize % 3 * 4),
                },
            }
        })
        .collect()
}

fn run(checkpoint: &Checkpoint, setting: &Setting, requests: &[Request]) -> HashMap<u64, Completion> {
    let mut engine = CpuEngine::load(checkpoint, setting.options.clone()).unwrap();
    let mut order: Vec<&Request> = requests.iter().collect();
    if setting.shuffled {
        order.sort_by_key(|r| r.id.0.wrapping_mul(0x9E37_79B9_7F4A_7C15));
    }
    let mut done = HashMap::new();
    let mut finish = |engine: &mut CpuEngine| loop {
        let events = engine.poll().unwrap();
        if events.is_empty() {
            break;
        }
        for event in events {
            match event {
                Event::Finished(c) => {
                    assert!(done.insert(c.id.0, *c).is_none());
                }
                Event::Failed { id, error, .. } => panic!("{}: {} failed: {error}", setting.name, id.0),
                Event::Progress { .. } | Event::Generated { .. } | Event::CapacityChanged { .. } => {}
            }
        }
    };
    for request in order {
        engine.submit(request.clone()).unwrap();
        if setting.alone {
            finish(&mut engine);
        }
    }
    finish(&mut engine);
    let s = engine.statistics();
    assert_eq!((s.running, s.waiting), (0, 0));
    assert_eq!(s.blocks_used, s.blocks_cached, "{}: a block leaked", setting.name);
    eprintln!(
        "{}: {} steps, {} tokens prefilled, {} cached, {} evictions, {} set back",
        setting.name, s.steps, s.prefilled_tokens, s.cached_tokens, s.evictions, s.preemptions
    );
    if setting.name.contains("nearly full") {
        // Linear attention caches no prefixes, so that only sequences can give way.
        let without_cache = checkpoint.config.linear.is_some() && s.preemptions > 0;
        assert!(s.evictions > 0 || without_cache, "the cache was not full");
    }
    done
}

fn compare(checkpoint: &Checkpoint, settings: &[Setting], requests: &[Request]) {
    let mut first: Option<HashMap<u64, Completion>> = None;
    for setting in settings {
        let done = run(checkpoint, setting, requests);
        assert_eq!(done.len(), requests.len(), "{}: requests were lost", setting.name);
        let Some(reference) = &first else {
            let count = |f: FinishReason| done.values().filter(|c| c.finish == f).count();
            assert!(count(FinishReason::StopString) > 0 && count(FinishReason::Length) > 50, "the mix is too uniform");
            first = Some(done);
            continue;
        };
        for (id, ours) in &done {
            let theirs = &reference[id];
            let name = setting.name;
            assert!(ours.logits_hashes.as_ref().is_some_and(|h| h.len() == ours.ids.len()));
            assert_eq!(ours.logits_hashes, theirs.logits_hashes, "{name}: request {id} has other logits");
            assert_eq!(
                (&ours.ids, &ours.text, ours.finish),
                (&theirs.ids, &theirs.text, theirs.finish),
                "{name}: {id}"
            );
            assert_eq!(ours.logprobs, theirs.logprobs, "{name}: {id}");
            assert_eq!(ours.prompt_logprobs, theirs.prompt_logprobs, "{name}: {id}");
        }
    }
}

fn golden(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/engine/checkpoints").join(name)
}

/// Bytes of a cache of `blocks` blocks.
fn blocks(checkpoint: &Checkpoint, blocks: u64) -> u64 {
    let own = |l: &&LayerConfig| !l.linear && !matches!(l.keys_values, KeysValues::OfLayer(_));
    let width = |l: &LayerConfig| (l.head_dim + l.head_dim.next_multiple_of(16)) * l.num_kv_heads;
    let width: usize = checkpoint.config.layers.iter().filter(own).map(width).sum();
    blocks * 32 * width as u64 * 4
}

#[test]
fn tiny_checkpoints_of_several_architectures() {
    for name in ["llama", "gemma2", "mixtral", "phi3-longrope", "qwen3"] {
        tiny(&golden(name));
    }
}

#[test]
fn tiny_checkpoints_of_recent_architectures() {
    for name in ["qwen3-moe", "gpt-oss-mxfp4", "gemma4-e2b", "olmo3-yarn", "smollm3"] {
        tiny(&golden(name));
    }
}

#[test]
fn tiny_checkpoints_that_are_not_committed() {
    let Some(root) = std::env::var_os("EARNEST_GOLDEN") else {
        eprintln!("skipped: EARNEST_GOLDEN is not set, so checkpoints that are not committed are not tested");
        return;
    };
    for name in
        ["qwen3.5", "gemma3n-text", "gemma4-moe", "deepseek-v3", "llama4", "glm4.5-moe", "ministral3", "cohere2"]
    {
        tiny(&PathBuf::from(&root).join("engine/checkpoints").join(name));
    }
}

/// Runs one tiny checkpoint in every setting.
fn tiny(folder: &Path) {
    eprintln!("{}", folder.display());
    let checkpoint = Checkpoint::open(folder).unwrap();
    let requests = requests(&checkpoint, 300, 40);
    let full = blocks(&checkpoint, 14);
    let odd = Options { token_budget: 97, ..options(1, 64, true, 1 << 26) };
    let settings = [
        Setting { name: "alone", alone: true, shuffled: false, options: options(1, 1, false, 1 << 26) },
        Setting { name: "alone, cached", alone: true, shuffled: true, options: options(2, 64, true, 1 << 26) },
        Setting { name: "batch of 7", alone: false, shuffled: false, options: options(2, 7, true, 1 << 26) },
        Setting { name: "batch of 64", alone: false, shuffled: true, options: options(2, 64, false, 1 << 26) },
        Setting { name: "batch of 64, small budget", alone: false, shuffled: true, options: odd },
        Setting { name: "batch of 64, nearly full", alone: false, shuffled: true, options: options(2, 64, true, full) },
        Setting { name: "all at once", alone: false, shuffled: false, options: options(1, 200, true, 1 << 26) },
    ];
    compare(&checkpoint, &settings, &requests);
}

/// A minute and a half by itself: 200 requests, once one by one and then in every setting, of a model with the shapes of real ones.
#[test]
fn smollm2() {
    let Some(folder) = std::env::var_os("EARNEST_MODELS") else {
        eprintln!("skipped: EARNEST_MODELS is not set, so SmolLM2 is not tested");
        return;
    };
    let checkpoint = Checkpoint::open(&PathBuf::from(folder).join("SmolLM2-135M-Instruct.Q4_1.gguf")).unwrap();
    let requests = requests(&checkpoint, 220, 8);
    let full = blocks(&checkpoint, 16);
    let settings = [
        Setting { name: "alone", alone: true, shuffled: false, options: options(1, 1, false, 1 << 30) },
        Setting { name: "batch of 7", alone: false, shuffled: true, options: options(2, 7, true, 1 << 30) },
        Setting { name: "batch of 64", alone: false, shuffled: true, options: options(2, 64, false, 1 << 30) },
        Setting {
            name: "batch of 64, nearly full",
            alone: false,
            shuffled: false,
            options: options(2, 64, true, full),
        },
    ];
    compare(&checkpoint, &settings, &requests);
}
