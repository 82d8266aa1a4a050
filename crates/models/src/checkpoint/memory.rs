//! Memory estimate of a decoder before it is loaded.
use serde::Serialize;

use super::{DecoderConfig, ElementType, KeysValues, LayerConfig, Quant, WeightFormat};

/// Memory of the native engine, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct MemoryEstimate {
    /// All weights: matrices in their type, norms and biases in f32.
    pub weights: u64,
    /// Keys and values of one token of one sequence: f32, or 8-bit integers if the engine computes in them.
    pub kv_per_token: u64,
}

impl MemoryEstimate {
    /// Estimates a decoder whose matrices are held in one type.
    pub fn of(config: &DecoderConfig, dtype: ElementType) -> MemoryEstimate {
        MemoryEstimate::with(config, |_, shape| shape.iter().map(|&n| n as u64).product::<u64>() * dtype.size_bytes())
    }

    /// Estimates a decoder that is held in bf16, its projections quantised at load.
    pub fn quantised(config: &DecoderConfig, quant: Quant) -> MemoryEstimate {
        let format = WeightFormat { quant: Some(quant), ..WeightFormat::default() };
        MemoryEstimate::with(config, |parameter, shape| {
            format.size_bytes(parameter, shape, ElementType::Bf16, format.block_type(parameter, shape))
        })
    }

    /// Estimates a decoder whose matrices have the sizes that `matrix` returns, in bytes.
    pub(super) fn with(config: &DecoderConfig, matrix: impl Fn(super::Parameter, &[usize]) -> u64) -> MemoryEstimate {
        let bytes = |(parameter, shape): (super::Parameter, Vec<usize>)| {
            let elements: u64 = shape.iter().map(|&n| n as u64).product();
            if shape.len() == 2 { matrix(parameter, &shape) } else { elements * ElementType::F32.size_bytes() }
        };
        let heads: u64 = cached(config).map(|l| (l.num_kv_heads * l.head_dim) as u64).sum();
        MemoryEstimate {
            weights: config.parameters().into_iter().map(bytes).sum(),
            kv_per_token: 2 * heads * ElementType::F32.size_bytes(),
        }
    }

    /// Returns the estimate for an int8 KV cache, per head: 40 bytes for 32 dimensions of a key, 16 for 16 of a value, 4 for the
    /// value's scale.
    pub(super) fn with_int8_cache(self, config: &DecoderConfig) -> MemoryEstimate {
        let per_head = |d: usize| d.div_ceil(32) * 40 + d.div_ceil(16) * 16 + 4;
        let kv_per_token = cached(config).map(|l| (l.num_kv_heads * per_head(l.head_dim)) as u64).sum();
        MemoryEstimate { kv_per_token, ..self }
    }
}

/// The layers with keys and values of their own.
fn cached(config: &DecoderConfig) -> impl Iterator<Item = &LayerConfig> {
    config.layers.iter().filter(|l| !l.linear && !matches!(l.keys_values, KeysValues::OfLayer(_)))
}
