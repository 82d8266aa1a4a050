//! Edge cases of the native engine: rejected requests, ends of requests, log-probabilities, damaged weights.
use std::path::{Path, PathBuf};

use earnest_engine::cpu::{CpuEngine, LoadError, Options};
use earnest_engine::{
    Completion, Engine, Event, FinishReason, Input, Logprobs, Rejected, Request, RequestId, Sampling, TokenLogprobs,
};
use earnest_models::checkpoint::{Checkpoint, Compute, WeightFormat};

fn golden(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/engine/checkpoints").join(name)
}

fn options() -> Options {
    Options { threads: Some(2), kv_memory: Some(1 << 24), max_batch: 8, ..Options::default() }
}

fn engine(name: &str) -> (Checkpoint, CpuEngine) {
    let checkpoint = Checkpoint::open(&golden(name)).unwrap();
    let native = CpuEngine::load(&checkpoint, options()).unwrap();
    (checkpoint, native)
}

fn drain(engine: &mut CpuEngine) -> Vec<Event> {
    let mut all = vec![];
    loop {
        let events = engine.poll().unwrap();
        if events.is_empty() {
            return all;
        }
        all.extend(events);
    }
}

fn completions(engine: &mut CpuEngine) -> Vec<Completion> {
    let finished = |e| if let Event::Finished(c) = e { Some(*c) } else { None };
    drain(engine).into_iter().filter_map(finished).collect()
}

fn request(prompt: &[u32], max_tokens: usize) -> Request {
    Request::greedy(RequestId(1), prompt.to_vec(), max_tokens)
}

#[test]
fn what_can_never_run_is_refused_with_the_numbers() {
    let (_, mut e) = engine("llama");
    assert_eq!(e.submit(request(&[], 5)), Err(Rejected::EmptyPrompt));
    assert_eq!(e.submit(request(&[1], 0)), Err(Rejected::NothingToDo));
    assert_eq!(e.submit(request(&[1, 512], 5)), Err(Rejected::UnknownToken { id: 512, position: 1, vocab: 512 }));
    assert_eq!(
        e.submit(request(&[5; 500], 13)),
        Err(Rejected::BeyondContext { prompt: 500, max_tokens: 13, context: 512 })
    );
    assert!(matches!(e.submit(request(&[5; 500], usize::MAX)), Err(Rejected::BeyondContext { .. })));
    for sampling in [
        Sampling { temperature: f32::NAN, ..Sampling::GREEDY },
        Sampling { temperature: -1.0, ..Sampling::GREEDY },
        Sampling { top_p: 0.0, ..Sampling::GREEDY },
        Sampling { min_p: 1.5, ..Sampling::GREEDY },
        Sampling { repetition_penalty: 0.0, ..Sampling::GREEDY },
    ] {
        let refused = e.submit(Request { sampling, ..request(&[1], 5) }).unwrap_err();
        assert!(refused.to_string().contains("out of range"), "{refused}");
    }
    let text = Request { input: Input::Text("7".into()), ..request(&[], 5) };
    assert!(matches!(e.submit(text), Err(Rejected::Unsupported(_))));
    e.submit(request(&[1], 5)).unwrap();
    assert_eq!(e.submit(request(&[1], 5)), Err(Rejected::DuplicateId(RequestId(1))));
    assert_eq!(completions(&mut e).len(), 1);
    assert!(e.poll().unwrap().is_empty());
}

#[test]
fn a_request_larger_than_the_cache_is_refused_and_one_that_just_fits_runs() {
    let checkpoint = Checkpoint::open(&golden("llama")).unwrap();
    // Three layers, two heads of 16: a block of 32 positions takes 24 KiB.
    let block = 3 * 2 * 32 * (16 + 16) * 4;
    let mut e = CpuEngine::load(&checkpoint, Options { kv_memory: Some(3 * block + 5), ..options() }).unwrap();
    assert_eq!(e.card().kv_tokens, 96);
    let refused = e.submit(request(&[7; 90], 8)).unwrap_err();
    assert!(matches!(refused, Rejected::LargerThanCache { needed_blocks: 4, total_blocks: 3, total_tokens: 96, .. }));
    assert!(refused.to_string().contains("`kv_memory`"), "{refused}");
    // The last token is never read, so it needs no place.
    e.submit(request(&[7; 90], 7)).unwrap();
    assert_eq!(completions(&mut e)[0].ids.len(), 7);
    let too_little = CpuEngine::load(&checkpoint, Options { kv_memory: Some(block - 1), ..options() });
    assert!(matches!(too_little, Err(LoadError::KvMemory { given, needed }) if given < needed));
}

#[test]
fn a_completion_ends_where_it_should() {
    let (checkpoint, mut e) = engine("llama");
    let prompt = checkpoint.tokenizer.encode("Add two numbers: 744 + 543 =", true).unwrap();
    e.submit(request(&prompt, 24)).unwrap();
    let free = completions(&mut e).remove(0);
    assert_eq!((free.finish, free.ids.len(), free.prompt_tokens), (FinishReason::Length, 24, prompt.len()));
    assert_eq!(free.text, checkpoint.tokenizer.decode(&free.ids, true));

    e.submit(Request { stop_ids: vec![free.ids[5]], ..request(&prompt, 24) }).unwrap();
    let eos = completions(&mut e).remove(0);
    let first = free.ids.iter().position(|id| *id == free.ids[5]).unwrap();
    assert_eq!((eos.finish, &eos.ids[..]), (FinishReason::Eos, &free.ids[..=first]));
    assert_eq!(eos.text, checkpoint.tokenizer.decode(&free.ids[..first], true), "the stop id is no text");

    // Two characters from the middle of the text, wherever the tokens are cut.
    let middle = free.text.char_indices().map(|c| c.0).nth(6).unwrap();
    let stop: String = free.text[middle..].chars().take(2).collect();
    e.submit(Request { stop_strings: vec![stop.clone()], ..request(&prompt, 24) }).unwrap();
    let stopped = completions(&mut e).remove(0);
    assert_eq!(stopped.finish, FinishReason::StopString);
    assert_eq!(stopped.text, free.text[..free.text.find(&stop).unwrap()]);
}

#[test]
fn a_cancelled_request_returns_what_it_has() {
    let (_, mut e) = engine("llama");
    e.submit(request(&[1, 40, 41], 400)).unwrap();
    e.submit(Request { id: RequestId(2), ..request(&[1, 40, 42], 3) }).unwrap();
    for _ in 0..5 {
        e.poll().unwrap();
    }
    assert!(e.cancel(RequestId(1)) && !e.cancel(RequestId(1)) && !e.cancel(RequestId(9)));
    let done = completions(&mut e);
    let cancelled = done.iter().find(|c| c.id == RequestId(1)).unwrap();
    assert_eq!(cancelled.finish, FinishReason::Cancelled);
    assert!((1..=5).contains(&cancelled.ids.len()));
    let s = e.statistics();
    assert_eq!((s.running, s.waiting, s.blocks_used - s.blocks_cached), (0, 0, 0));
}

/// Natural-log probabilities by the definition, in double precision.
fn log_softmax(logits: &[f32]) -> Vec<f64> {
    let top = logits.iter().copied().fold(f32::MIN, f32::max);
    let sum: f64 = logits.iter().map(|&l| f64::from(l - top).exp()).sum();
    logits.iter().map(|&l| f64::from(l - top) - sum.ln()).collect()
}

#[test]
fn log_probabilities_are_those_of_the_logits() {
    for name in ["llama", "gemma2", "phi2"] {
        let (checkpoint, mut e) = engine(name);
        let prompt = checkpoint.tokenizer.encode("How many trees are left? 15 - 7 =", true).unwrap();
        let logprobs = Logprobs { top: 4, prompt_from: Some(1) };
        e.submit(Request { logprobs, ..request(&prompt, 3) }).unwrap();
        let with = completions(&mut e).remove(0);
        assert_eq!(with.cached_tokens, 0, "all prompt positions are computed");
        e.submit(Request { logprobs: Logprobs { top: 0, prompt_from: Some(1) }, ..request(&prompt, 0) }).unwrap();
        let only = completions(&mut e).remove(0);
        assert!(only.ids.is_empty() && only.text.is_empty());
        let listed = with.prompt_logprobs.unwrap();
        let of_prompt = only.prompt_logprobs.unwrap();
        let chosen = |tokens: &[TokenLogprobs]| tokens.iter().map(|token| token.chosen).collect::<Vec<f32>>();
        assert_eq!(chosen(&of_prompt), chosen(&listed));
        assert!(of_prompt.iter().all(|token| token.top.is_empty()));
        assert_eq!(of_prompt.len(), prompt.len() - 1);
        // The rest of a prompt that is in the cache up to the token before it.
        for from in [0, 1, 2, prompt.len() - 1, prompt.len(), prompt.len() + 1] {
            let logprobs = Logprobs { top: 0, prompt_from: Some(from) };
            e.submit(Request { logprobs, ..request(&prompt, 0) }).unwrap();
            let rest = completions(&mut e).remove(0);
            let first = from.clamp(1, prompt.len());
            assert_eq!(rest.prompt_logprobs.as_deref(), Some(&of_prompt[first - 1..]), "{name} from {from}");
            assert_eq!((rest.finish, rest.prompt_tokens), (FinishReason::Length, prompt.len()));
            assert_eq!(rest.cached_tokens, (first - 1).min(prompt.len() - 2), "{name} from {from}");
        }
        e.submit(Request { logprobs: Logprobs { top: 0, prompt_from: Some(1) }, ..request(&prompt[..1], 0) }).unwrap();
        assert_eq!(completions(&mut e).remove(0).prompt_logprobs, Some(vec![]), "the first token has none");
        for (i, tokens) in listed.iter().enumerate() {
            let got = tokens.chosen;
            let all = log_softmax(&e.logits_after(&prompt[..=i], 1).unwrap());
            let expected = all[prompt[i + 1] as usize];
            assert_eq!(tokens.top.len(), 4);
            assert!(
                tokens.top.iter().all(|&(id, value)| (f64::from(value) - all[id as usize]).abs() < 1e-5),
                "{name} {i}"
            );
            let best = all.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            assert!((f64::from(tokens.top[0].1) - best).abs() < 1e-5, "{name} {i}: {:?}", tokens.top);
            assert!((f64::from(got) - expected).abs() < 1e-5, "{name} {i}: {got} for {expected}");
        }
        let mut text = prompt.clone();
        for (token, got) in with.ids.iter().zip(with.logprobs.unwrap()) {
            let expected = log_softmax(&e.logits_after(&text, 1).unwrap());
            assert!((f64::from(got.chosen) - expected[*token as usize]).abs() < 1e-5);
            assert_eq!((got.top.len(), got.top[0].0), (4, *token));
            assert!(got.top.windows(2).all(|w| w[0].1 >= w[1].1));
            assert!(got.top.iter().all(|(id, p)| (f64::from(*p) - expected[*id as usize]).abs() < 1e-5));
            text.push(*token);
        }
    }
}

#[test]
fn sampled_text_depends_on_its_key_only() {
    let (_, mut e) = engine("qwen3");
    let sampling = Sampling { temperature: 1.0, ..Sampling::GREEDY };
    for i in 0..12u64 {
        let sampling_key = earnest_engine::SamplingKey([i as u8 / 2; 32]);
        let r = Request { id: RequestId(i), sampling: sampling.clone(), sampling_key, ..request(&[40, 41, 42], 12) };
        e.submit(r).unwrap();
    }
    let mut done = completions(&mut e);
    done.sort_by_key(|c| c.id);
    for pair in done.chunks(2) {
        assert_eq!(pair[0].ids, pair[1].ids);
    }
    assert_ne!(done[0].ids, done[2].ids);
}

/// A copy of a checkpoint whose float number `index` of `tensor` is `value`.
fn damaged(name: &str, tensor: &str, value: f32) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for entry in std::fs::read_dir(golden(name)).unwrap() {
        let entry = entry.unwrap();
        std::fs::copy(entry.path(), folder.path().join(entry.file_name())).unwrap();
    }
    let path = folder.path().join("model.safetensors");
    let mut bytes = std::fs::read(&path).unwrap();
    let header = u64::from_le_bytes(bytes[..8].try_into().unwrap()) as usize;
    let json: serde_json::Value = serde_json::from_slice(&bytes[8..8 + header]).unwrap();
    let start = json[tensor]["data_offsets"][0].as_u64().unwrap() as usize + 8 + header;
    bytes[start..start + 4].copy_from_slice(&value.to_le_bytes());
    std::fs::write(&path, bytes).unwrap();
    folder
}

#[test]
fn weights_that_are_not_numbers_are_refused_by_name() {
    for value in [f32::NAN, f32::INFINITY] {
        let folder = damaged("llama", "model.layers.1.mlp.up_proj.weight", value);
        let error = CpuEngine::load(&Checkpoint::open(folder.path()).unwrap(), options()).err().unwrap();
        assert!(matches!(error, LoadError::NotFinite { count: 1, .. }), "{error}");
        assert!(error.to_string().contains("layer 1 Up"), "{error}");
    }
}

#[test]
fn logits_that_overflow_fail_their_request_and_leave_the_others_alone() {
    // The logit of token 0 overflows where the first hidden dimension is large and positive, which some texts reach.
    let folder = damaged("llama", "lm_head.weight", f32::MAX);
    let checkpoint = Checkpoint::open(folder.path()).unwrap();
    let requests: Vec<Request> =
        (0..40).map(|i| Request { id: RequestId(i), ..request(&[40, 7 + i as u32, 41], 6) }).collect();
    let outcome = |event: Event| match event {
        Event::Failed { id, error, retryable } => {
            assert!(!retryable && error.contains("not finite"), "{error}");
            Some((id.0, None))
        }
        Event::Finished(c) => Some((c.id.0, Some(c.ids))),
        Event::Progress { .. } | Event::Generated { .. } | Event::CapacityChanged { .. } => None,
    };
    let mut e = CpuEngine::load(&checkpoint, options()).unwrap();
    requests.iter().for_each(|r| e.submit(r.clone()).unwrap());
    let mut together: Vec<_> = drain(&mut e).into_iter().filter_map(outcome).collect();
    together.sort();
    let failed = together.iter().filter(|o| o.1.is_none()).count();
    assert_eq!(together.len(), 40);
    assert!(failed > 0 && failed < 40, "{failed} of 40 failed");
    let s = e.statistics();
    assert_eq!((s.running, s.waiting, s.blocks_used - s.blocks_cached), (0, 0, 0));
    let mut alone = vec![];
    for r in requests {
        let mut e = CpuEngine::load(&checkpoint, options()).unwrap();
        e.submit(r).unwrap();
        alone.extend(drain(&mut e).into_iter().filter_map(outcome));
    }
    assert_eq!(together, alone, "a neighbour's overflow shows");
}

#[test]
fn tensors_that_the_configuration_does_not_know_are_refused_by_name() {
    for (name, refused) in
        [("model.layers.0.self_attn.q_norm.weight", true), ("model.layers.0.self_attn.rotary_emb.inv_freq", false)]
    {
        let folder = damaged("llama", "lm_head.weight", 0.5);
        let path = folder.path().join("model.safetensors");
        let bytes = std::fs::read(&path).unwrap();
        let header = u64::from_le_bytes(bytes[..8].try_into().unwrap()) as usize;
        let mut json: serde_json::Value = serde_json::from_slice(&bytes[8..8 + header]).unwrap();
        let data = bytes.len() - 8 - header;
        json[name] = serde_json::json!({"dtype": "F32", "shape": [1], "data_offsets": [data, data + 4]});
        let text = serde_json::to_vec(&json).unwrap();
        let mut out = (text.len() as u64).to_le_bytes().to_vec();
        out.extend(text);
        out.extend(&bytes[8 + header..]);
        out.extend(1f32.to_le_bytes());
        std::fs::write(&path, out).unwrap();
        match Checkpoint::open(folder.path()) {
            Err(error) => assert!(refused && error.to_string().contains(name), "{error}"),
            Ok(_) => assert!(!refused, "{name} was ignored"),
        }
    }
}

/// A golden checkpoint that is computed in another arithmetic than f32.
fn computed_in(compute: Compute, name: &str, options: Options) -> CpuEngine {
    let mut checkpoint = Checkpoint::open(&golden(name)).unwrap();
    checkpoint.set_weight_format(WeightFormat { compute: Some(compute), ..WeightFormat::default() });
    CpuEngine::load(&checkpoint, options).unwrap()
}

#[test]
fn eight_bit_integers_give_every_request_the_bits_it_has_alone() {
    assert_neighbours_do_not_show(Compute::Int8);
}

#[test]
fn bf16_gives_every_request_the_bits_it_has_alone() {
    assert_neighbours_do_not_show(Compute::Bf16);
}

fn assert_neighbours_do_not_show(compute: Compute) {
    for name in ["llama", "gemma2", "mixtral", "phi2", "qwen3-moe", "gpt-oss-mxfp4", "gemma4-e2b", "olmo3-yarn"] {
        let prompt =
            |i: u64| -> Vec<u32> { (0..20 + 7 * (i as u32 % 6)).map(|p| (p * p + i as u32 / 3) % 500 + 1).collect() };
        let requests: Vec<Request> =
            (0..24).map(|i| Request { id: RequestId(i), ..request(&prompt(i), 5 + i as usize % 9) }).collect();
        let hashes = |options: Options, order: &[usize]| {
            let mut e = computed_in(compute, name, Options { trace: true, ..options });
            order.iter().for_each(|&i| e.submit(requests[i].clone()).unwrap());
            let mut done: Vec<_> = completions(&mut e).into_iter().map(|c| (c.id.0, c.ids, c.logits_hashes)).collect();
            done.sort();
            done
        };
        let order: Vec<usize> = (0..requests.len()).collect();
        let together = hashes(options(), &order);
        assert_eq!(together.len(), requests.len());
        let reversed: Vec<usize> = order.iter().rev().copied().collect();
        let other = Options { threads: Some(1), max_batch: 3, token_budget: 11, prefix_cache: false, ..options() };
        assert_eq!(together, hashes(other, &reversed), "{name}: batch, order, threads or cache show");
        let alone: Vec<_> = order.iter().flat_map(|&i| hashes(options(), &[i])).collect();
        assert_eq!(together, alone, "{name}: neighbours show");
    }
}

#[test]
fn eight_bit_integers_stay_close_to_the_exact_logits() {
    assert_close_to_exact(Compute::Int8, "int8", 0.05);
}

#[test]
fn bf16_stays_close_to_the_exact_logits() {
    assert_close_to_exact(Compute::Bf16, "bf16", 0.02);
}

fn assert_close_to_exact(compute: Compute, dtype: &str, most: f32) {
    for name in ["llama", "gemma2", "mixtral", "phi2", "qwen3"] {
        let (checkpoint, mut exact) = engine(name);
        let mut rounded = computed_in(compute, name, options());
        assert!(rounded.card().weights_dtype.contains(dtype), "{}", rounded.card().weights_dtype);
        let prompt = checkpoint.tokenizer.encode("How many trees are left? 15 - 7 =", true).unwrap();
        let (a, b) = (exact.logits_after(&prompt, 1).unwrap(), rounded.logits_after(&prompt, 1).unwrap());
        let mean = a.iter().sum::<f32>() / a.len() as f32;
        let spread = a.iter().map(|x| (x - mean).powi(2)).sum::<f32>().sqrt();
        let error = a.iter().zip(&b).map(|(x, y)| (x - y).powi(2)).sum::<f32>().sqrt();
        assert!(error > 0.0 && error < most * spread, "{name}: logits differ by {error}, their spread is {spread}");
    }
}
