//! Variants of the computation against the default, on the twin of the kernels.

use super::options::{Options, VARIANTS, Variant, Variants};
use super::twin::skipped;
use super::twin_tests::{all_golden, distance, drain, golden, options, twin};
use crate::{Completion, Engine, Request, RequestId, Sampling, SamplingKey};
use earnest_models::checkpoint::{Checkpoint, ElementType, Quant, WeightFormat};

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

/// Every logit of prompts and of a few tokens after them.
#[test]
fn reference_checkpoints_have_the_same_bits_with_every_variant_that_promises_them() {
    if skipped() {
        return;
    }
    for (name, checkpoint) in all_golden() {
        if super::features::refused_feature(&checkpoint.config).is_some() {
            continue;
        }
        let checkpoint = in_16_bits(checkpoint);
        let traced = Options { trace: true, ..options() };
        let hashes = |variants| {
            let (done, _) = answers(&checkpoint, &Options { variants, ..traced.clone() }, 2);
            done.into_iter().map(|c| c.logits_hashes.unwrap()).collect::<Vec<_>>()
        };
        let expected = hashes(Variants::NONE);
        assert!(expected.iter().all(|of| of.len() == 2));
        let same = VARIANTS.iter().fold(Variants::NONE, |set, card| set.with(card.variant)).of_bits(true);
        assert_eq!(hashes(same), expected, "{name} with {:?}", same.names());
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
        let (expected, none) = answers(&checkpoint, &options(), 24);
        let graphs = Variants::NONE.with(Variant::Graphs);
        let (got, replayed) = answers(&checkpoint, &Options { variants: graphs, ..options() }, 24);
        let ids = |all: &[Completion]| all.iter().map(|c| c.ids.clone()).collect::<Vec<_>>();
        assert_eq!(ids(&got), ids(&expected), "{name}");
        assert!(none == 0 && replayed > 10, "{name}: {replayed} steps were launched from a record");
    }
}
