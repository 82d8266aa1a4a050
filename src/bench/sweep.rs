//! Throughput against batch, prompt length and shared beginnings, held against what the device can do at best.
use std::time::Instant;

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};
use serde::Serialize;

use super::throughput::BenchError;
use crate::checkpoint::{DecoderConfig, LayerParameter, Parameter};
use crate::engine::native::{Native, Peaks};
use crate::engine::{Engine, Event, Request, RequestId};

/// Requests that are alike.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Load {
    /// Requests at once.
    pub batch: usize,
    /// Tokens of a prompt.
    pub prompt_tokens: usize,
    /// Share of a prompt's tokens, from its beginning, that all prompts have in common: 0 to 1.
    pub shared: f64,
    /// Tokens generated for each, at least 2.
    pub new_tokens: usize,
}

/// What a load took.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LoadMeasurement {
    #[serde(flatten)]
    pub load: Load,
    /// Prompt tokens computed, and the seconds of the steps that computed them.
    pub prefilled_tokens: u64,
    pub prefill_s: f64,
    /// Tokens generated in steps without prompt tokens, and the seconds of these.
    pub decoded_tokens: u64,
    pub decode_s: f64,
    pub prefill_tokens_per_s: f64,
    pub decode_tokens_per_s: f64,
    /// Prompt tokens of all requests, cached ones included, a second of prefilling.
    pub prompt_tokens_per_s: f64,
    /// The least time that the device's peaks allow for the same work, as a share of the time taken.
    pub prefill_of_roofline: f64,
    pub decode_of_roofline: f64,
}

/// What computing a token costs.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct TokenCost {
    /// Operations of the layers' products, and of the output head's.
    pub layers: f64,
    pub head: f64,
    /// Operations of attention for each position that is attended to.
    pub position: f64,
    /// Bytes of keys and values of a position.
    pub kv_bytes: f64,
}

impl TokenCost {
    /// Of a decoder. A mixture computes the experts that a token is routed to.
    pub fn of(config: &DecoderConfig) -> TokenCost {
        let (mut layers, mut head) = (0.0, 0.0);
        for (parameter, shape) in config.parameters().into_iter().filter(|(_, shape)| shape.len() == 2) {
            let operations = 2.0 * shape.iter().product::<usize>() as f64;
            match parameter {
                Parameter::Embedding if config.tied_embeddings => head += operations,
                Parameter::Head => head += operations,
                Parameter::Layer(
                    _,
                    LayerParameter::ExpertGate(_) | LayerParameter::ExpertUp(_) | LayerParameter::ExpertDown(_),
                ) => {
                    let share = config.experts.map_or(1.0, |e| e.per_token as f64 / e.count as f64);
                    layers += operations * share;
                }
                Parameter::Layer(..) => layers += operations,
                _ => {}
            }
        }
        let width = (config.layers.len() * config.head_dim) as f64;
        TokenCost {
            layers,
            head,
            // Scores and weighted values.
            position: 4.0 * width * config.num_heads as f64,
            kv_bytes: 2.0 * width * (config.num_kv_heads * size_of::<f32>()) as f64,
        }
    }
}

/// Runs a load once, with an empty prefix cache. `vocab` bounds the ids of its prompts, which are drawn from a fixed seed.
///
/// # Errors
/// [`BenchError`] where the load does not fit the context or the cache, or the engine fails.
pub fn measure_load(
    engine: &mut Native,
    vocab: usize,
    load: Load,
    cost: TokenCost,
    roofline: &Peaks,
) -> Result<LoadMeasurement, BenchError> {
    engine.forget_prompts();
    let weight_bytes = engine.card().weight_bytes as f64;
    let before = engine.statistics();
    for (place, ids) in prompts(load, vocab).into_iter().enumerate() {
        let request = Request::greedy(RequestId(place as u64), ids, load.new_tokens);
        engine.submit(request).map_err(|why| BenchError::Rejected { prompt: place, why })?;
    }
    let mut m = LoadMeasurement {
        load,
        prefilled_tokens: 0,
        prefill_s: 0.0,
        decoded_tokens: 0,
        decode_s: 0.0,
        prefill_tokens_per_s: 0.0,
        decode_tokens_per_s: 0.0,
        prompt_tokens_per_s: 0.0,
        prefill_of_roofline: 0.0,
        decode_of_roofline: 0.0,
    };
    let (mut least_prefill, mut least_decode) = (0.0, 0.0);
    loop {
        let step = Instant::now();
        let events = engine.poll()?;
        if events.is_empty() {
            break;
        }
        let seconds = step.elapsed().as_secs_f64();
        for event in events {
            match event {
                Event::Progress { prefilled, decoded } => {
                    let (p, d) = (prefilled as f64, decoded as f64);
                    // A token of a prompt sees half of it on average. Every step reads the weights once, and each sequence's
                    // own keys and values; what is shared may be read once for all.
                    let shared = load.shared * load.prompt_tokens as f64;
                    let seen = if prefilled > 0 { load.prompt_tokens as f64 / 2.0 } else { load.prompt_tokens as f64 };
                    let products = (p + d) * cost.layers + d * cost.head;
                    let arithmetic =
                        products / roofline.products_per_s + (p + d) * seen * cost.position / roofline.f32_per_s;
                    let own = (load.prompt_tokens as f64 - shared) * d + shared;
                    let memory = (weight_bytes + own * cost.kv_bytes) / roofline.bytes_per_s;
                    let least = f64::max(arithmetic, memory);
                    if prefilled > 0 {
                        m.prefill_s += seconds;
                        m.prefilled_tokens += prefilled as u64;
                        least_prefill += least;
                    } else {
                        m.decode_s += seconds;
                        m.decoded_tokens += decoded as u64;
                        least_decode += least;
                    }
                }
                Event::Failed { id, error, .. } => return Err(BenchError::Failed(id.0, error)),
                Event::Finished(_) | Event::Generated { .. } | Event::CapacityChanged { .. } => {}
            }
        }
    }
    let cached = engine.statistics().cached_tokens - before.cached_tokens;
    m.prefill_tokens_per_s = m.prefilled_tokens as f64 / m.prefill_s;
    m.prompt_tokens_per_s = (m.prefilled_tokens + cached) as f64 / m.prefill_s;
    m.decode_tokens_per_s = m.decoded_tokens as f64 / m.decode_s;
    m.prefill_of_roofline = least_prefill / m.prefill_s;
    m.decode_of_roofline = least_decode / m.decode_s;
    Ok(m)
}

/// Prompts that share exactly the beginning that they are to share.
fn prompts(load: Load, vocab: usize) -> Vec<Vec<u32>> {
    let mut draw = ChaCha8Rng::seed_from_u64(20_261_122);
    let mut token = || (draw.next_u64() % vocab as u64) as u32;
    let common = (load.shared.clamp(0.0, 1.0) * load.prompt_tokens as f64).round() as usize;
    let beginning: Vec<u32> = (0..common).map(|_| token()).collect();
    let rest = load.prompt_tokens - common;
    (0..load.batch)
        .map(|i| {
            let mut ids = beginning.clone();
            // The first own token differs, so that no more is shared by chance.
            ids.extend((0..rest).map(|p| if p == 0 { (i % vocab) as u32 } else { token() }));
            ids
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prompts_share_what_they_are_to_share() {
        let load = Load { batch: 5, prompt_tokens: 40, shared: 0.75, new_tokens: 2 };
        let all = prompts(load, 300);
        assert_eq!(all, prompts(load, 300));
        for pair in all.windows(2) {
            assert_eq!(pair[0].len(), 40);
            assert_eq!(pair[0].iter().zip(&pair[1]).take_while(|(a, b)| a == b).count(), 30);
        }
        assert!(prompts(Load { shared: 1.0, ..load }, 300).windows(2).all(|pair| pair[0] == pair[1]));
    }
}
