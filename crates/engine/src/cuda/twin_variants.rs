//! Variants of the computation and the routing of experts, on the twin of the kernels.

use std::collections::HashMap;

use super::backend::CudaEngine;
use super::checks::{Case, codes, expert_products, get, products, put};
use super::device::{Device, Element};
use super::kernels::{Kind, Unit};
use super::options::{Options, VARIANTS, Variant, Variants};
use super::twin::{Twin, skipped};
use super::twin_tests::{all_golden, assert_bits_depend_on_the_request_alone, distance, drain, golden, options, twin};
use crate::cpu::route;
use crate::{Completion, Engine, Request, RequestId, Sampling, SamplingKey};
use earnest_models::checkpoint::{Checkpoint, ElementType, Experts, Quant, Routing, WeightFormat};

fn in_16_bits(mut checkpoint: Checkpoint) -> Checkpoint {
    let dtype = Some(ElementType::Bf16);
    checkpoint.set_weight_format(WeightFormat { quant: None, dtype, ..WeightFormat::default() });
    checkpoint
}

fn each() -> impl Iterator<Item = (&'static str, Variants, bool)> {
    VARIANTS.iter().map(|card| (card.name, Variants::NONE.with(card.variant), card.same_bits))
}

/// Requests that share a beginning, greedy and drawn.
fn answers(checkpoint: &Checkpoint, options: &Options, tokens: usize) -> (Vec<Completion>, usize) {
    let mut cuda = twin(checkpoint, true, 0, options);
    let common: Vec<u32> = (0..33).map(|i| 3 + i * 7 % 200).collect();
    for i in 0..3u32 {
        let prompt = [&common[..], &(0..2 + 5 * i).map(|j| 3 + (i * 31 + j * 5) % 200).collect::<Vec<_>>()].concat();
        let drawn = Sampling { temperature: 0.9, ..Sampling::GREEDY };
        let sampling = if i == 1 { drawn } else { Sampling::GREEDY };
        let sampling_key = SamplingKey([i as u8; 32]);
        let request = Request { sampling, sampling_key, ..Request::greedy(RequestId(u64::from(i)), prompt, tokens) };
        cuda.submit(request).unwrap();
    }
    let done = drain(&mut cuda);
    (done, cuda.replayed())
}

/// Every logit of prompts and of a few tokens after them: norms joined with the sums before them and apart, steps recorded and not.
#[test]
fn reference_checkpoints_have_the_same_bits_without_joined_norms_and_recorded_steps() {
    if skipped() {
        return;
    }
    for (name, checkpoint) in all_golden() {
        if super::features::refused_feature(&checkpoint.config).is_some() {
            continue;
        }
        let checkpoint = in_16_bits(checkpoint);
        let traced = Options { trace: true, ..options() };
        let hashes = |simple: bool| {
            let options = Options { graphs: !simple, separate_norms: simple, ..traced.clone() };
            let (done, _) = answers(&checkpoint, &options, 2);
            done.into_iter().map(|c| c.logits_hashes.unwrap()).collect::<Vec<_>>()
        };
        let expected = hashes(true);
        assert!(expected.iter().all(|of| of.len() == 2));
        assert_eq!(hashes(false), expected, "{name}");
    }
}

#[test]
fn every_variant_alone_answers_as_it_promises() {
    if skipped() {
        return;
    }
    // Biases and a layer norm, norms after the blocks, experts with sinks and biases, and quantised weights.
    let mut quantised = golden("llama");
    let quant = Some(Quant::Q8);
    quantised.set_weight_format(WeightFormat { quant, dtype: None, ..WeightFormat::default() });
    let checkpoints = ["phi2", "olmo3-yarn", "gpt-oss-mxfp4"].map(|name| in_16_bits(golden(name)));
    for checkpoint in checkpoints.iter().chain([&quantised]) {
        let name = &checkpoint.config.architecture;
        let prompt: Vec<u32> = (0..300).map(|i| 3 + i * 11 % 200).collect();
        let logits = |variants| {
            let options = Options { token_budget: 310, variants, ..options() };
            twin(checkpoint, true, 1, &options).logits_after(&prompt[..prompt.len().min(290)], 5).unwrap()
        };
        let expected = logits(Variants::NONE);
        for (variant, variants, same_bits) in each() {
            let got = logits(variants);
            match same_bits {
                true => assert_eq!(got, expected, "{name} with {variant}"),
                false => assert!(distance(&got, &expected) < 0.12, "{name} with {variant}"),
            }
        }
    }
}

#[test]
fn recorded_steps_are_launched_again_and_answer_as_new_ones() {
    if skipped() {
        return;
    }
    for name in ["llama", "gpt-oss-mxfp4"] {
        let checkpoint = golden(name);
        // Tokens that the device chooses, then every logit, which the host takes back to see it.
        for trace in [false, true] {
            let options = Options { trace, ..options() };
            let (expected, none) = answers(&checkpoint, &Options { graphs: false, ..options.clone() }, 24);
            let (got, replayed) = answers(&checkpoint, &options, 24);
            let ids = |all: &[Completion]| all.iter().map(|c| c.ids.clone()).collect::<Vec<_>>();
            let hashes = |all: &[Completion]| all.iter().map(|c| c.logits_hashes.clone()).collect::<Vec<_>>();
            assert_eq!(ids(&got), ids(&expected), "{name}");
            assert_eq!(hashes(&got), hashes(&expected), "{name}");
            let each = |one: &Option<Vec<u64>>| one.as_ref().map(Vec::len) == trace.then_some(24);
            assert!(hashes(&got).iter().all(each), "{name}: {:?}", hashes(&got));
            assert!(none == 0 && replayed > 10, "{name}: {replayed} steps were launched from a record");
        }
    }
}

#[test]
fn products_of_warp_groups_are_their_definition_in_every_tile_and_thread_order() {
    if skipped() {
        return;
    }
    for (order, element) in [(0, Element::Bf16), (1, Element::F16), (2, Element::Bf16)] {
        let case = Case::new(element, Kind::Dense).with(Variant::Wgmma);
        let mut twin = Twin::new();
        twin.order = order;
        let outcome = products(&mut twin, case, (72, 2072), 200).unwrap();
        assert!(outcome.same_bits && outcome.error < 1e-3, "{element:?}, order {order}: {outcome:?}");
        let outcome = expert_products(&mut twin, case, 12).unwrap();
        assert!(outcome.same_bits && outcome.error < 1e-3, "experts, {element:?}, order {order}: {outcome:?}");
    }
}

#[test]
fn products_of_8_bit_floats_are_their_definition_by_both_instructions() {
    if skipped() {
        return;
    }
    let mut first = HashMap::new();
    for (order, element, wgmma) in
        [(0, Element::Bf16, false), (1, Element::F16, false), (2, Element::Bf16, true), (1, Element::F16, true)]
    {
        let case = Case::new(element, Kind::E4m3);
        let case = if wgmma { case.with(Variant::Wgmma) } else { case };
        let mut twin = Twin::new();
        twin.order = order;
        let outcome = codes(&mut twin, element, wgmma).unwrap();
        assert!(outcome.same_bits && outcome.error == 0.0, "{element:?}, {wgmma}: {outcome:?}");
        // The last group of columns has 16 of 128.
        let outcome = products(&mut twin, case, (72, 2064), 140).unwrap();
        assert!(outcome.same_bits && outcome.error < 1e-3, "{element:?}, {wgmma}: {outcome:?}");
        // The twin adds in the same order for both.
        assert_eq!(*first.entry(element).or_insert(outcome), outcome, "{element:?}, {wgmma}");
        let outcome = expert_products(&mut twin, case, 12).unwrap();
        assert!(outcome.same_bits && outcome.error < 1e-3, "experts, {element:?}, {wgmma}: {outcome:?}");
    }
}

/// By the twin's definition both instructions add in the same order, so all of a decoder's bits are the same. A GPU's need not be.
#[test]
fn reference_checkpoints_answer_with_products_of_warp_groups() {
    if skipped() {
        return;
    }
    let wgmma = Variants::NONE.with(Variant::Wgmma);
    for (name, checkpoint) in all_golden() {
        if super::features::refused_feature(&checkpoint.config).is_some() {
            continue;
        }
        let checkpoint = in_16_bits(checkpoint);
        let hashes = |variants| {
            let options = Options { trace: true, batch_invariant: true, variants, ..options() };
            let (done, _) = answers(&checkpoint, &options, 2);
            done.into_iter().map(|c| c.logits_hashes.unwrap()).collect::<Vec<_>>()
        };
        assert_eq!(hashes(wgmma), hashes(Variants::NONE), "{name}");
    }
    for name in ["llama", "qwen3-moe"] {
        assert_bits_depend_on_the_request_alone(&in_16_bits(golden(name)), name, wgmma);
    }
    // Without --batch-invariant too: the library computes nothing.
    let engine = twin(&in_16_bits(golden("llama")), true, 0, &Options { variants: wgmma, ..options() });
    let described = engine.describe();
    assert_eq!((&described["products"], &described["batch_invariant"]), (&"own".into(), &true.into()));
}

#[test]
fn products_of_warp_groups_are_refused_where_a_device_or_a_type_has_none() {
    if skipped() {
        return;
    }
    let options = Options { variants: Variants::NONE.with(Variant::Wgmma), ..options() };
    let refusal = |checkpoint: &Checkpoint, capability| {
        let mut device = Twin::new();
        device.capability = capability;
        CudaEngine::on(Box::new(device), checkpoint, &options).err().map(|error| error.to_string()).unwrap_or_default()
    };
    for capability in [(8, 0), (8, 9), (10, 0), (12, 0)] {
        let error = refusal(&in_16_bits(golden("llama")), capability);
        let named = format!("{}.{}", capability.0, capability.1);
        assert!(error.contains("wgmma") && error.contains("9.0") && error.contains(&named), "{error}");
    }
    let error = refusal(&golden("llama"), (9, 0));
    assert!(error.contains("f32") && error.contains("`dtype = bf16`"), "{error}");
}

/// Routing of Qwen 3's 128 experts, of GPT-OSS's 32, of GLM 4.5's and DeepSeek's with groups, and of Llama 4's, with ties among the logits.
#[test]
fn tokens_have_the_experts_and_weights_that_the_cpu_gives_them() {
    if skipped() {
        return;
    }
    let softmax = |normalised| Routing::Softmax { normalised };
    let sigmoid = |groups, kept| Routing::Sigmoid { groups, kept, normalised: true, scale: 2.5 };
    for (count, per_token, routing, bias) in [
        (128, 8, softmax(true), false),
        (128, 8, softmax(false), false),
        (32, 4, softmax(true), true),
        (8, 2, softmax(true), false),
        (128, 8, sigmoid(1, 1), false),
        (256, 8, sigmoid(8, 4), false),
        (16, 1, Routing::ScaledInput, false),
        (1000, 32, softmax(true), false),
    ] {
        let tokens = 9;
        let noise = |i: usize, by: f32| ((i as f32 * 12.9898).sin() * 43_758.547).fract() * by;
        // Few different values, so that many are equal.
        let logits: Vec<f32> = (0..tokens * count).map(|i| (noise(i, 9.0) * 2.0).round() / 2.0).collect();
        let router_bias: Vec<f32> = (0..count).map(|i| noise(i + 7, 1.0)).collect();
        let choice_bias: Vec<f32> = (0..count).map(|i| noise(i + 3, 0.4)).collect();
        let (kind, normalised, groups, kept, scale) = match routing {
            Routing::Softmax { normalised } => (0, normalised, 1, 1, 1.0),
            Routing::Sigmoid { groups, kept, normalised, scale } => (1, normalised, groups as i32, kept as i32, scale),
            Routing::ScaledInput => (2, false, 1, 1, 1.0),
        };
        let mut twin = Twin::new();
        let unit = twin.load(&Unit::layers(Element::F32)).unwrap();
        let kernel = twin.kernel(unit, "route", 0).unwrap();
        let pairs = tokens * per_token;
        let [chosen, weights] = [put(&twin, &vec![-1i32; pairs]).unwrap(), put(&twin, &vec![0f32; pairs]).unwrap()];
        let arguments = [
            put(&twin, &logits).unwrap().into(),
            if bias { put(&twin, &router_bias).unwrap() } else { 0 }.into(),
            put(&twin, &choice_bias).unwrap().into(),
            (count as i32).into(),
            (per_token as i32).into(),
            kind.into(),
            i32::from(normalised).into(),
            groups.into(),
            kept.into(),
            scale.into(),
            chosen.into(),
            weights.into(),
        ];
        // SAFETY: the arguments are the kernel's, and their memory has the sizes that it reads and writes.
        unsafe { twin.launch(kernel, [tokens, 1, 1], 32, 0, &arguments).unwrap() };
        let chosen = get::<i32>(&twin, chosen, pairs).unwrap();
        let weights = get::<f32>(&twin, weights, pairs).unwrap();
        let spec = Experts { routing, ..Experts::mixtral(count, per_token, 8) };
        for token in 0..tokens {
            let row = &logits[token * count..(token + 1) * count];
            let row: Vec<f32> = row.iter().zip(&router_bias).map(|(l, b)| if bias { l + b } else { *l }).collect();
            let mut expected = route(&row, &choice_bias, spec);
            expected.sort_by_key(|e| e.0);
            for (i, (expert, weight)) in expected.into_iter().enumerate() {
                let at = token * per_token + i;
                assert_eq!(chosen[at], expert as i32, "{count} experts, {routing:?}, token {token}");
                assert!((weights[at] - weight).abs() < 1e-5, "{count} experts, {routing:?}: {} {weight}", weights[at]);
            }
        }
    }
}
