//! The kernels against the CPU engine, on their twins.

use std::path::Path;

use candle_core::quantized::{GgmlDType, QTensor};

use super::attention_plan::{AttentionPlan, Piece, Setting};
use super::device::{Argument, Device, Element, Out};
use super::engine::Cuda;
use super::kernels::{Kind, Unit, attention_shared, tall_threads};
use super::options::Options;
use super::products::ProductRunner;
use super::twin::{Twin, skipped};
use super::weights::{Matrix, Part, repack};
use crate::checkpoint::{Checkpoint, ElementType, Quant, WeightFormat};
use crate::engine::native::kernels::Isa;
use crate::engine::native::sampler::{choose, logprob, uniform};
use crate::engine::native::{Native, Options as NativeOptions};
use crate::engine::{Completion, Engine, Event, FinishReason, Logprobs, Request, RequestId, Sampling, SamplingKey};

const NAMES: [&str; 14] = [
    "llama",
    "llama-mha-tied-headdim",
    "llama31-ropescaling",
    "mistral-sliding",
    "mistral-full",
    "mixtral",
    "qwen2",
    "qwen3",
    "gemma",
    "gemma2",
    "gemma3-text",
    "phi2",
    "phi3",
    "phi3-longrope",
];

fn golden(name: &str) -> Checkpoint {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/engine/checkpoints").join(name);
    Checkpoint::open(&folder).unwrap()
}

fn options() -> Options {
    Options { max_batch: 8, token_budget: 96, kv_memory: Some(4 << 20), ..Options::default() }
}

fn twin(checkpoint: &Checkpoint, library: bool, order: i32, options: &Options) -> Cuda {
    let mut device = Twin::new();
    (device.library, device.order) = (library, order);
    Cuda::on(Box::new(device), checkpoint, options).unwrap()
}

/// Largest difference of two rows of logits.
fn distance(a: &[f32], b: &[f32]) -> f32 {
    assert_eq!(a.len(), b.len());
    a.iter().zip(b).map(|(x, y)| (x - y).abs()).fold(0.0, f32::max)
}

#[test]
fn every_architecture_has_the_logits_of_the_cpu_engine() {
    if skipped() {
        return;
    }
    for name in NAMES {
        let mut checkpoint = golden(name);
        let prompt = checkpoint.tokenizer.encode("How many trees are left? 15 - 7 = 8, and 744 + 543 =", true).unwrap();
        for (dtype, tolerance) in [(None, 2e-4), (Some(ElementType::Bf16), 0.12)] {
            checkpoint.set_weight_format(WeightFormat { quant: None, dtype, compute: None });
            let mut native = Native::load(&checkpoint, NativeOptions::default()).unwrap();
            let expected = native.logits_after(&prompt, 5).unwrap();
            let mut cuda = twin(&checkpoint, true, 0, &options());
            let got = cuda.logits_after(&prompt, 5).unwrap();
            let d = distance(&got, &expected);
            assert!(d < tolerance, "{name} {dtype:?}: {d}");
        }
    }
}

/// What transformers computed for a reference checkpoint: prompts, their greedy continuations and how far the best logit led.
fn recorded(name: &str) -> Vec<(Vec<u32>, Vec<u32>, Vec<f64>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/engine/checkpoints").join(name);
    let text = std::fs::read_to_string(folder.join("golden.json")).unwrap();
    let json: serde_json::Value = serde_json::from_str(&text).unwrap();
    let list = |v: &serde_json::Value| v.as_array().unwrap().iter().map(|n| n.as_f64().unwrap()).collect::<Vec<f64>>();
    let ids = |v: &serde_json::Value| list(v).into_iter().map(|n| n as u32).collect::<Vec<u32>>();
    json["prompts"]
        .as_array()
        .unwrap()
        .iter()
        .map(|p| (ids(&p["ids"]), ids(&p["greedy"]), list(&p["margins"])))
        .collect()
}

/// Runs everything that was submitted.
fn drain(engine: &mut dyn Engine) -> Vec<Completion> {
    let mut done = vec![];
    loop {
        let events = engine.poll().unwrap();
        if events.is_empty() {
            done.sort_by_key(|c: &Completion| c.id);
            return done;
        }
        for event in events {
            match event {
                Event::Finished(c) => done.push(*c),
                Event::Failed { error, .. } => panic!("{error}"),
                _ => {}
            }
        }
    }
}

#[test]
fn greedy_texts_are_those_of_transformers_until_a_small_margin() {
    if skipped() {
        return;
    }
    // In f32 nothing is small; in bf16 a lead below this may go either way (docs/cuda.md).
    for (dtype, small) in [(None, 1e-4), (Some(ElementType::Bf16), 0.12)] {
        let mut compared = 0;
        for name in ["llama", "gemma2", "qwen2", "phi3-longrope", "mixtral"] {
            let mut checkpoint = golden(name);
            checkpoint.set_weight_format(WeightFormat { quant: None, dtype, compute: None });
            let mut cuda = twin(&checkpoint, true, 0, &options());
            let prompts = recorded(name);
            let prompts = &prompts[..prompts.len().min(3)];
            for (i, (ids, greedy, _)) in prompts.iter().enumerate() {
                cuda.submit(Request::greedy(RequestId(i as u64), ids.clone(), greedy.len().min(12))).unwrap();
            }
            for (done, (_, greedy, margins)) in drain(&mut cuda).iter().zip(prompts) {
                let same = done.ids.iter().zip(greedy).take_while(|(a, b)| a == b).count();
                compared += same;
                assert!(
                    same == done.ids.len() || margins[same] < small,
                    "{name} {dtype:?} at {same}: {:?}",
                    margins[same]
                );
            }
        }
        assert!(compared > 40, "{compared} tokens were compared");
    }
}

#[test]
fn bits_depend_on_the_request_alone_and_not_on_the_order_of_threads() {
    if skipped() {
        return;
    }
    for name in ["llama"] {
        let mut checkpoint = golden(name);
        checkpoint.set_weight_format(WeightFormat { quant: None, dtype: Some(ElementType::Bf16), compute: None });
        // A long beginning in common, so that parts are shared, and different lengths.
        let common: Vec<u32> = (0..150).map(|i| 3 + i * 7 % 500).collect();
        let prompt =
            |i: u32| [&common[..], &(0..3 + 9 * i).map(|j| 3 + (i * 31 + j * 5) % 500).collect::<Vec<_>>()].concat();
        let invariant = Options { batch_invariant: true, trace: true, token_budget: 180, ..options() };
        let mut first: Option<Vec<Vec<u64>>> = None;
        for (order, alone, prefix_cache) in [(0, false, true), (1, true, true), (2, false, false)] {
            let options = Options { prefix_cache, ..invariant.clone() };
            let mut cuda = twin(&checkpoint, true, order, &options);
            let mut done = vec![];
            for i in 0..4 {
                cuda.submit(Request::greedy(RequestId(u64::from(i)), prompt(i), 3)).unwrap();
                if alone {
                    done.extend(drain(&mut cuda));
                }
            }
            done.extend(drain(&mut cuda));
            let hashes: Vec<Vec<u64>> = done.into_iter().map(|c| c.logits_hashes.unwrap()).collect();
            assert!(hashes.len() == 4 && hashes.iter().all(|h| h.len() == 3));
            let expected = first.get_or_insert_with(|| hashes.clone());
            assert_eq!(*expected, hashes, "{name}, order {order}, alone {alone}, prefix cache {prefix_cache}");
        }
    }
}

#[test]
fn requests_get_what_the_cpu_engine_gives_them() {
    if skipped() {
        return;
    }
    let checkpoint = golden("qwen3");
    let prompt = |i: u64| (0..5 + 3 * i).map(|j| 3 + (i * 13 + j * 7) as u32 % 500).collect::<Vec<u32>>();
    let request = |i: u64| {
        let base = Request { sampling_key: SamplingKey([i as u8; 32]), ..Request::greedy(RequestId(i), prompt(i), 6) };
        let warm = Sampling { temperature: 1.3, ..Sampling::GREEDY };
        match i {
            0 => base,
            1 => Request { sampling: warm, ..base },
            2 => Request { sampling: Sampling { top_k: 5, ..warm }, ..base },
            3 => Request { sampling: Sampling { top_p: 0.8, min_p: 0.01, ..warm }, ..base },
            4 => Request { sampling: Sampling { repetition_penalty: 1.5, ..Sampling::GREEDY }, ..base },
            5 => Request { logprobs: Logprobs { top: 3, prompt: true }, ..base },
            6 => Request { logprobs: Logprobs { top: 0, prompt: true }, max_tokens: 0, ..base },
            7 => Request { sampling: Sampling { top_k: 1, ..warm }, ..base },
            8 => Request { max_tokens: 1, ..base },
            _ => Request { sampling: warm, max_tokens: 40, ..base },
        }
    };
    let mut native = Native::load(&checkpoint, NativeOptions::default()).unwrap();
    // Little memory, so that sequences are set back while their tokens are on the way.
    let small = Options { kv_memory: Some(12 * 3 * 2 * 2 * 32 * 32 * 4), ..options() };
    let mut cuda = twin(&checkpoint, false, 0, &small);
    for i in 0..14 {
        native.submit(request(i)).unwrap();
        cuda.submit(request(i)).unwrap();
    }
    let (expected, got) = (drain(&mut native), drain(&mut cuda));
    assert_eq!((expected.len(), got.len()), (14, 14));
    for (e, g) in expected.iter().zip(&got) {
        assert_eq!((&e.ids, &e.text, e.finish), (&g.ids, &g.text, g.finish), "request {}", e.id.0);
        let close = |a: &[f32], b: &[f32]| a.len() == b.len() && a.iter().zip(b).all(|(x, y)| (x - y).abs() < 1e-4);
        match (&e.prompt_logprobs, &g.prompt_logprobs) {
            (Some(a), Some(b)) => assert!(close(a, b), "request {}: {a:?} {b:?}", e.id.0),
            (a, b) => assert_eq!(a, b),
        }
        assert_eq!(e.logprobs.as_ref().map(Vec::len), g.logprobs.as_ref().map(Vec::len));
        for (a, b) in e.logprobs.iter().flatten().zip(g.logprobs.iter().flatten()) {
            assert!((a.chosen - b.chosen).abs() < 1e-4 && a.top[0].0 == b.top[0].0);
        }
    }
    let statistics = cuda.statistics();
    assert!(statistics.preemptions > 0, "the cache was large enough after all: {statistics:?}");
    assert_eq!((statistics.running, statistics.waiting, statistics.blocks_used - statistics.blocks_cached), (0, 0, 0));
    // An id may be used again while the device is still at a step of its last user.
    cuda.submit(request(0)).unwrap();
    cuda.poll().unwrap();
    assert!(cuda.cancel(RequestId(0)) && !cuda.cancel(RequestId(0)));
    cuda.submit(request(0)).unwrap();
    let again = drain(&mut cuda);
    assert_eq!(again.len(), 2);
    assert!(again.iter().any(|c| c.ids == expected[0].ids && c.finish == FinishReason::Length));
}

#[test]
fn quantised_weights_stay_quantised_and_compute_what_they_mean() {
    if skipped() {
        return;
    }
    for element in [Element::Bf16, Element::F16] {
        let (n, k) = (72usize, 1280usize);
        let values: Vec<f32> =
            (0..n * k).map(|i| ((i as f32 * 12.9898).sin() * 43_758.547).fract() * 0.2 - 0.05).collect();
        for (kind, dtype) in [
            (Kind::Dense, None),
            (Kind::Q8_0, Some(GgmlDType::Q8_0)),
            (Kind::Q4K, Some(GgmlDType::Q4K)),
            (Kind::Q5K, Some(GgmlDType::Q5K)),
            (Kind::Q6K, Some(GgmlDType::Q6K)),
        ] {
            if element == Element::F16 && kind != Kind::Q4K {
                continue;
            }
            let mut twin = Twin::new();
            twin.library = false;
            let round = |x: f32| match element {
                Element::F16 => half::f16::from_f32(x).to_f32(),
                _ => half::bf16::from_f32(x).to_f32(),
            };
            let bits = |x: f32| match element {
                Element::F16 => half::f16::from_f32(x).to_bits(),
                _ => half::bf16::from_f32(x).to_bits(),
            };
            let (exact, at) = match dtype {
                None => (values.clone(), twin.put(&values.iter().map(|&x| bits(x)).collect::<Vec<u16>>())),
                Some(dtype) => {
                    let tensor = candle_core::Tensor::from_slice(&values, n * k, &candle_core::Device::Cpu).unwrap();
                    let quantised = QTensor::quantize(&tensor, dtype).unwrap();
                    let exact = quantised.dequantize(&candle_core::Device::Cpu).unwrap().to_vec1::<f32>().unwrap();
                    (exact, twin.put(&repack(kind, quantised.data().unwrap().into_owned(), k)))
                }
            };
            let w = Matrix { parts: vec![Part { kind, rows: n, at }], n, k };
            if dtype.is_some() {
                // Expanded weights are candle's, rounded to elements: bit for bit.
                let unit = twin.load(&Unit::product(element, kind)).unwrap();
                let kernel = twin.kernel(unit, "dequantise", 0).unwrap();
                let to = twin.put(&vec![0u16; n * k]);
                let arguments = [at.into(), (k as i32).into(), to.into()];
                unsafe { twin.launch(kernel, [n, 1, 1], 256, 0, &arguments).unwrap() };
                let expected: Vec<u16> = exact.iter().map(|&x| bits(x)).collect();
                assert_eq!(twin.get::<u16>(to, n * k), expected, "{kind:?}");
            }
            let rows = 70;
            let x: Vec<f32> = (0..rows * k).map(|i| round(((i as f32 * 7.31).cos() * 917.3).fract())).collect();
            let x_at = twin.put(&x.iter().map(|&v| bits(v)).collect::<Vec<u16>>());
            let mut all: Vec<Vec<f32>> = vec![];
            // Enough multiprocessors cut k into segments, few do not.
            for (m, multiprocessors) in [(1, 99), (9, 1), (30, 99), (64, 1), (70, 99), (70, 1)] {
                let runner = ProductRunner::new(&mut twin, element, &[kind], true, multiprocessors).unwrap();
                let y = twin.put(&vec![0f32; m * n]);
                unsafe { runner.run(&twin, &w, x_at, m, y, Out::Floats).unwrap() };
                all.push(twin.get(y, m * n));
            }
            let most = all.last().unwrap().clone();
            for few in &all {
                assert_eq!(few[..], most[..few.len()], "{kind:?}: a row's bits depend on the number of rows");
            }
            for row in [0, 64, 69] {
                for column in 0..n {
                    let expected: f64 =
                        (0..k).map(|i| f64::from(x[row * k + i]) * f64::from(round(exact[column * k + i]))).sum();
                    let got = f64::from(most[row * n + column]);
                    assert!((got - expected).abs() < 1e-3, "{element:?} {kind:?} {row} {column}: {got} for {expected}");
                }
            }
        }
    }
}

#[test]
fn a_model_quantised_at_load_runs_on_its_blocks() {
    if skipped() {
        return;
    }
    let mut checkpoint = golden("llama");
    // Rows of 64 and 160 are blocks of 32 only: what is asked as q4k becomes other schemes, of which q8_0 has kernels.
    checkpoint.set_weight_format(WeightFormat { quant: Some(Quant::Q8), dtype: None, compute: None });
    let prompt: Vec<u32> = (0..150).map(|i| 3 + i * 11 % 500).collect();
    let mut native = Native::load(&checkpoint, NativeOptions::default()).unwrap();
    let expected = native.logits_after(&prompt, 5).unwrap();
    for (library, batch_invariant) in [(true, false), (false, true)] {
        let options = Options { token_budget: 300, batch_invariant, ..options() };
        let mut cuda = twin(&checkpoint, library, 0, &options);
        let card = cuda.card();
        assert_eq!((card.weights_dtype.as_str(), card.deterministic), ("bf16+q8_0", batch_invariant));
        let d = distance(&cuda.logits_after(&prompt, 5).unwrap(), &expected);
        assert!(d < 0.12, "{d}");
    }
}

/// Attention by its definition, in double precision, for one token and head.
fn attention_by_definition(
    q: &[f32],
    keys: &[Vec<f32>],
    values: &[Vec<f32>],
    shape: &Shape,
    position: usize,
) -> Vec<f64> {
    let first = shape.window.map_or(0, |w| (position + 1).saturating_sub(w));
    let scores: Vec<f64> = (first..=position)
        .map(|p| {
            let dot: f64 = q.iter().zip(&keys[p]).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum();
            let x = dot * f64::from(shape.scale);
            shape.softcap.map_or(x, |c| f64::from(c) * (x / f64::from(c)).tanh())
        })
        .collect();
    let top = scores.iter().copied().fold(f64::MIN, f64::max);
    let weights: Vec<f64> = scores.iter().map(|s| (s - top).exp()).collect();
    let total: f64 = weights.iter().sum();
    (0..q.len())
        .map(|d| weights.iter().zip(&values[first..]).map(|(w, v)| w * f64::from(v[d])).sum::<f64>() / total)
        .collect()
}

struct Shape {
    dim: usize,
    group: usize,
    kv_heads: usize,
    scale: f32,
    softcap: Option<f32>,
    window: Option<usize>,
}

#[test]
fn attention_of_every_head_size_is_its_definition_however_it_is_arranged() {
    if skipped() {
        return;
    }
    for (dim, group, kv_heads, softcap, window) in [
        (64, 3, 1, None, None),
        (80, 1, 2, None, None),
        (96, 4, 1, None, Some(70)),
        (128, 4, 2, None, None),
        (128, 7, 1, None, Some(150)),
        (256, 2, 1, Some(5.0), Some(200)),
        (64, 20, 1, Some(2.0), None),
    ] {
        let shape = Shape { dim, group, kv_heads, scale: 1.0 / (dim as f32).sqrt(), softcap, window };
        attention_of(&shape);
    }
}

/// Three sequences that share their first 128 positions: single tokens in all arrangements, and a prompt's piece.
fn attention_of(shape: &Shape) {
    let Shape { dim, group, kv_heads, .. } = *shape;
    let heads = group * kv_heads;
    let mut twin = Twin::new();
    let unit = twin.load(&Unit::attention(Element::Bf16, dim)).unwrap();
    let (tall_shared, wide_shared) = attention_shared(dim);
    let tall = twin.kernel(unit, "attend_tall", tall_shared).unwrap();
    let wide = twin.kernel(unit, "attend_wide", wide_shared).unwrap();
    let merge = twin.kernel(unit, "attend_merge", 0).unwrap();
    let mut seed = 1u64;
    let mut noise = |n: usize| -> Vec<f32> {
        (0..n)
            .map(|_| {
                seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                half::bf16::from_f32((seed >> 40) as f32 / (1u64 << 23) as f32 - 1.0).to_f32()
            })
            .collect()
    };
    // Lengths of the sequences, of which the last is a prompt's piece of 20 tokens.
    let (lengths, piece) = ([300usize, 140, 270], 20usize);
    let blocks_of = |s: usize, b: usize| if b < 4 { b } else { 4 + s * 8 + b };
    let total = 4 + 3 * 8 + 12;
    let size = kv_heads * 32 * dim;
    let (mut k_cache, mut v_cache) = (vec![f32::NAN; total * size], vec![f32::NAN; total * size]);
    // keys[s][head][position]
    let mut keys = vec![vec![vec![vec![0f32; dim]; 320]; kv_heads]; 3];
    let mut values = keys.clone();
    for s in 0..3 {
        for head in 0..kv_heads {
            for p in 0..lengths[s] {
                let (key, value) = if p < 128 && s > 0 {
                    (keys[0][head][p].clone(), values[0][head][p].clone())
                } else {
                    (noise(dim), noise(dim))
                };
                let at = (blocks_of(s, p / 32) * kv_heads + head) * 32 * dim + p % 32 * dim;
                k_cache[at..at + dim].copy_from_slice(&key);
                v_cache[at..at + dim].copy_from_slice(&value);
                (keys[s][head][p], values[s][head][p]) = (key, value);
            }
        }
    }
    let tokens = 2 + piece;
    let queries: Vec<f32> = noise(tokens * heads * dim).iter().map(|x| x * 2.0).collect();
    let queries: Vec<f32> = queries.iter().map(|&x| half::bf16::from_f32(x).to_f32()).collect();
    let place = |t: usize| if t < 2 { (t, lengths[t] - 1) } else { (2, lengths[2] - piece + t - 2) };
    let positions: Vec<i32> = (0..tokens).map(|t| place(t).1 as i32).collect();
    let mut tables: Vec<i32> = vec![];
    let mut starts = vec![];
    for (s, length) in lengths.iter().enumerate() {
        starts.push(tables.len());
        tables.extend((0..length.div_ceil(32)).map(|b| blocks_of(s, b) as i32));
    }
    let pieces = [
        Piece { token: 0, position: lengths[0] - 1, count: 1, table: starts[0] },
        Piece { token: 1, position: lengths[1] - 1, count: 1, table: starts[1] },
        Piece { token: 2, position: lengths[2] - piece, count: piece, table: starts[2] },
    ];
    let bits = |v: &[f32]| v.iter().map(|&x| half::bf16::from_f32(x).to_bits()).collect::<Vec<u16>>();
    let (q, k, v) = (twin.put(&bits(&queries)), twin.put(&bits(&k_cache)), twin.put(&bits(&v_cache)));
    let (table_at, position_at) = (twin.put(&tables), twin.put(&positions));
    let state = twin.put(&vec![f32::NAN; 64 * heads * (dim + 2)]);
    let mut first: Option<Vec<u16>> = None;
    // Shared and cut, neither, and everything as rows of attend_tall.
    for (arrangement, multiprocessors, states) in [(0, 132, 64), (1, 132, 0), (2, 0, 0), (3, 132, 64)] {
        twin.order = arrangement % 3;
        let setting = Setting { heads, kv_heads, head_dim: dim, multiprocessors, states };
        let mut plan = AttentionPlan::new(&pieces, &tables, &setting);
        if arrangement == 0 {
            assert!(plan.merges.len() == 6 && (group > 16 || !plan.wide.is_empty()) && !plan.tall.is_empty());
        }
        if arrangement == 3 {
            plan.tall.append(&mut plan.wide);
        }
        let out = twin.put(&vec![0x7fc0u16; tokens * heads * dim]);
        let arguments = |items: &[i32]| -> [Argument; 15] {
            [
                q.into(),
                k.into(),
                v.into(),
                twin.put(items).into(),
                table_at.into(),
                position_at.into(),
                0u64.into(),
                out.into(),
                state.into(),
                (dim as i32).into(),
                (group as i32).into(),
                (kv_heads as i32).into(),
                shape.scale.into(),
                shape.softcap.unwrap_or(0.0).into(),
                (shape.window.unwrap_or(0) as i32).into(),
            ]
        };
        let merges = [
            state.into(),
            twin.put(&plan.merges).into(),
            twin.put(&plan.slots).into(),
            out.into(),
            (dim as i32).into(),
            (heads as i32).into(),
        ];
        unsafe {
            let grid = |items: &[i32]| [items.len() / 8, kv_heads, 1];
            twin.launch(tall, grid(&plan.tall), tall_threads(dim), tall_shared, &arguments(&plan.tall)).unwrap();
            twin.launch(wide, grid(&plan.wide), 128, wide_shared, &arguments(&plan.wide)).unwrap();
            twin.launch(merge, [plan.merges.len() / 3, heads, 1], 128, 0, &merges).unwrap();
        }
        let got = twin.get::<u16>(out, tokens * heads * dim);
        if first.is_none() {
            for t in 0..tokens {
                let (s, position) = place(t);
                for h in 0..heads {
                    let at = (t * heads + h) * dim;
                    let head = h / group;
                    let expected = attention_by_definition(
                        &queries[at..at + dim],
                        &keys[s][head],
                        &values[s][head],
                        shape,
                        position,
                    );
                    for (d, e) in expected.iter().enumerate() {
                        let g = f64::from(half::bf16::from_bits(got[at + d]).to_f32());
                        assert!((g - e).abs() < 0.012, "dim {dim}, token {t}, head {h}, column {d}: {g} for {e}");
                    }
                }
            }
        }
        let expected = first.get_or_insert_with(|| got.clone());
        assert!(*expected == got, "dim {dim}: arrangement {arrangement} changed bits");
    }
}

#[test]
fn memory_that_is_short_makes_steps_smaller_and_says_so() {
    if skipped() {
        return;
    }
    let checkpoint = golden("llama");
    let load = |total: u64, options: &Options| {
        let mut device = Twin::new();
        device.total = total;
        Cuda::on(Box::new(device), &checkpoint, options)
    };
    let wide = Options { kv_memory: None, max_batch: 4096, token_budget: 8192, ..options() };
    let mut cuda = load(24 << 20, &wide).unwrap();
    let notes = cuda.notes().join("; ");
    assert!(notes.contains("tokens instead of 8192") && notes.contains("instead of 4096"), "{notes}");
    cuda.submit(Request::greedy(RequestId(1), vec![5; 90], 3)).unwrap();
    assert_eq!(drain(&mut cuda)[0].ids.len(), 3);
    let Err(error) = load(900 << 10, &wide) else { panic!("weights do not fit") };
    assert!(error.to_string().contains("bytes left"), "{error}");
    let Err(error) = load(1 << 28, &Options { kv_memory: Some(100), ..options() }) else { panic!("no block fits") };
    assert!(error.to_string().contains("--kv-memory"), "{error}");
}

#[test]
fn damaged_logits_fail_their_request_alone() {
    if skipped() {
        return;
    }
    let mut twin = Twin::new();
    let unit = twin.load(&Unit::layers(Element::Bf16)).unwrap();
    let kernel = twin.kernel(unit, "choose", 0).unwrap();
    let vocab = 1300;
    let mut rows: Vec<Vec<f32>> =
        (0..6).map(|r| (0..vocab).map(|i| ((i * 37 + r * 11) % 101) as f32 / 20.0).collect()).collect();
    rows[1][700] = f32::NAN;
    rows[2][1299] = f32::INFINITY;
    rows[3][5] = f32::NEG_INFINITY;
    rows[4] = vec![f32::NEG_INFINITY; vocab];
    let sampling = Sampling { temperature: 0.7, ..Sampling::GREEDY };
    let mut wishes: Vec<u8> = vec![];
    let key = SamplingKey([9; 32]);
    for r in 0..6u64 {
        wishes.extend(uniform(key, r).to_ne_bytes());
        wishes.extend((if r % 2 == 1 { 0.7f32 } else { 0.0 }).to_ne_bytes());
        wishes.extend((r as i32 * 3 - 1).to_ne_bytes());
        wishes.extend(0i32.to_ne_bytes());
        wishes.extend([1f32, 0.0, 0.0].iter().flat_map(|x| x.to_ne_bytes()));
    }
    let (logits, wishes) = (twin.put(&rows.concat()), twin.put(&wishes));
    let (chosen, sampled) = (twin.put(&[0i32; 24]), twin.put(&[0i32; 6]));
    let arguments = [logits.into(), (vocab as i32).into(), wishes.into(), chosen.into(), sampled.into()];
    unsafe { twin.launch(kernel, [6, 1, 1], 512, 0, &arguments).unwrap() };
    let chosen = twin.get::<i32>(chosen, 24);
    for (r, row) in rows.iter().enumerate() {
        let s = if r % 2 == 1 { &sampling } else { &Sampling::GREEDY };
        let expected = choose(Isa::detect(), row, &[], s, key, r as u64, 0);
        let unsound = [1, 2, 4].contains(&r);
        assert_eq!(chosen[4 * r + 1] != 0, unsound, "row {r}");
        if !unsound {
            assert_eq!(chosen[4 * r], expected.unwrap().token as i32, "row {r}");
            if r > 0 {
                let expected = logprob(row, r as u32 * 3 - 1).unwrap();
                assert!((f32::from_bits(chosen[4 * r + 2] as u32) - expected).abs() < 1e-5, "row {r}");
            }
        }
    }
}

#[test]
fn filters_on_the_device_are_those_of_the_cpu() {
    if skipped() {
        return;
    }
    let mut twin = Twin::new();
    let unit = twin.load(&Unit::layers(Element::F32)).unwrap();
    let kernel = twin.kernel(unit, "choose", 0).unwrap();
    let vocab = 1537;
    // Many ties, as 16-bit logits have them.
    let row =
        |r: u64| (0..vocab).map(|i| ((i * 7919 + r as usize * 131) % 257) as f32 / 24.0 - 4.0).collect::<Vec<f32>>();
    let mut settings = vec![];
    for top_k in [0, 2, 3, 40, 5000] {
        for top_p in [1.0, 0.9, 0.35, 0.01] {
            for min_p in [0.0, 0.2] {
                settings.push(Sampling { temperature: 0.8, top_k, top_p, min_p, repetition_penalty: 1.0 });
            }
        }
    }
    let draws: Vec<(usize, u64)> = (0..settings.len()).flat_map(|s| (0..6u64).map(move |step| (s, step))).collect();
    let key = SamplingKey([3; 32]);
    let mut wishes: Vec<u8> = vec![];
    for &(s, step) in &draws {
        let s = &settings[s];
        wishes.extend(uniform(key, step).to_ne_bytes());
        wishes.extend(s.temperature.to_ne_bytes());
        wishes.extend((-1i32).to_ne_bytes());
        wishes.extend((s.top_k as i32).to_ne_bytes());
        wishes.extend([s.top_p, s.min_p, 0.0].iter().flat_map(|x| x.to_ne_bytes()));
    }
    let rows: Vec<f32> = draws.iter().flat_map(|&(_, step)| row(step)).collect();
    let (logits, wishes) = (twin.put(&rows), twin.put(&wishes));
    let (chosen, sampled) = (twin.put(&vec![0i32; 4 * draws.len()]), twin.put(&vec![0i32; draws.len()]));
    let arguments = [logits.into(), (vocab as i32).into(), wishes.into(), chosen.into(), sampled.into()];
    twin.order = 2;
    unsafe { twin.launch(kernel, [draws.len(), 1, 1], 512, 0, &arguments).unwrap() };
    let (chosen, sampled) = (twin.get::<i32>(chosen, 4 * draws.len()), twin.get::<i32>(sampled, draws.len()));
    let mut different = std::collections::BTreeSet::new();
    for (i, &(s, step)) in draws.iter().enumerate() {
        let expected = choose(Isa::detect(), &row(step), &[], &settings[s], key, step, 0).unwrap().token as i32;
        assert_eq!((chosen[4 * i], sampled[i]), (expected, expected), "{:?}, step {step}", settings[s]);
        different.insert(expected);
    }
    assert!(different.len() > 30, "the draws are nearly all alike");
}
