//! Positional encodings: rotary tables and attention masks.
use candle_core::{Device, Result, Tensor};

use earnest_models::checkpoint::{Rope, RopeScaling};

/// Cosines and sines of a rotary embedding, `[length, dims / 2]` each.
#[derive(Debug, Clone)]
pub(super) struct RotaryTable {
    cos: Tensor,
    sin: Tensor,
    dims: usize,
}

impl RotaryTable {
    pub(super) fn new(rope: &Rope, length: usize, device: &Device) -> Result<Self> {
        let half = rope.dims / 2;
        let (frequencies, factor) = frequencies(rope, length);
        let angle = |position: usize, index: usize| position as f64 * frequencies[index];
        let table = |function: fn(f64) -> f64| {
            let values = (0..length).flat_map(|position| (0..half).map(move |index| (position, index)));
            let values: Vec<f32> = values.map(|(p, i)| (factor * function(angle(p, i))) as f32).collect();
            Tensor::from_vec(values, (length, half), device)
        };
        Ok(RotaryTable { cos: table(f64::cos)?, sin: table(f64::sin)?, dims: rope.dims })
    }

    /// Returns cosines and sines, flattened, and the number of rotated dimensions.
    pub(super) fn values(&self) -> Result<(Vec<f32>, Vec<f32>, usize)> {
        let flat = |table: &Tensor| table.flatten_all()?.to_vec1::<f32>();
        Ok((flat(&self.cos)?, flat(&self.sin)?, self.dims))
    }

    /// Rotates `[batch, heads, length, head_dim]`, whose first token is at position `first`; dimension i is paired with i + dims / 2.
    pub(super) fn rotate(&self, x: &Tensor, first: usize) -> Result<Tensor> {
        let (_, _, length, width) = x.dims4()?;
        let half = self.dims / 2;
        let (cos, sin) = (self.cos.narrow(0, first, length)?, self.sin.narrow(0, first, length)?);
        let (a, b) = (x.narrow(3, 0, half)?, x.narrow(3, half, half)?);
        let rotated_a = (a.broadcast_mul(&cos)? - b.broadcast_mul(&sin)?)?;
        let rotated_b = (b.broadcast_mul(&cos)? + a.broadcast_mul(&sin)?)?;
        if self.dims == width {
            return Tensor::cat(&[rotated_a, rotated_b], 3);
        }
        Tensor::cat(&[rotated_a, rotated_b, x.narrow(3, self.dims, width - self.dims)?], 3)
    }
}

/// Returns the angle per position of every pair of dimensions, and the factor on cosine and sine.
fn frequencies(rope: &Rope, length: usize) -> (Vec<f64>, f64) {
    let base = |index: usize| rope.theta.powf(-2.0 * index as f64 / rope.dims as f64);
    let all = |scaled: &dyn Fn(usize, f64) -> f64| -> Vec<f64> {
        (0..rope.dims / 2).map(|index| scaled(index, base(index))).collect()
    };
    match &rope.scaling {
        RopeScaling::None => (all(&|_, f| f), 1.0),
        RopeScaling::Linear { factor } => (all(&|_, f| f / factor), 1.0),
        RopeScaling::Yarn { factor, low, high, attention_factor } => {
            let share = |index: usize| ((index as f64 - low) / (high - low)).clamp(0.0, 1.0);
            (all(&|index, f| f / factor * share(index) + f * (1.0 - share(index))), *attention_factor)
        }
        RopeScaling::Proportional { rotated, factor } => {
            (all(&|index, f| if index < *rotated { f / factor } else { 0.0 }), 1.0)
        }
        RopeScaling::Divisors(divisors) => (all(&|index, f| f / divisors[index]), 1.0),
        RopeScaling::Llama3 { factor, low_freq_factor, high_freq_factor, original_max_positions } => {
            let context = *original_max_positions as f64;
            let scaled = |f: f64| {
                let wavelength = 2.0 * std::f64::consts::PI / f;
                if wavelength < context / high_freq_factor {
                    f
                } else if wavelength > context / low_freq_factor {
                    f / factor
                } else {
                    let smooth = (context / wavelength - low_freq_factor) / (high_freq_factor - low_freq_factor);
                    (1.0 - smooth) * f / factor + smooth * f
                }
            };
            (all(&|_, f| scaled(f)), 1.0)
        }
        RopeScaling::LongRope { short, long, original_max_positions, attention_factor } => {
            let divisors = if length > *original_max_positions { long } else { short };
            (all(&|index, f| f / divisors[index]), *attention_factor)
        }
    }
}

/// Builds the additive attention mask, `[heads, length, length]` for ALiBi and `[1, length, length]` otherwise: minus infinity for
/// keys after the query or before its window.
pub(super) fn mask(length: usize, slopes: Option<&[f32]>, window: Option<usize>, device: &Device) -> Result<Tensor> {
    let slopes = slopes.unwrap_or(&[0.0]);
    let mut values = Vec::with_capacity(slopes.len() * length * length);
    for slope in slopes {
        for query in 0..length {
            values.extend((0..length).map(|key| {
                let visible = key <= query && window.is_none_or(|window| query - key < window);
                if visible { -slope * (query - key) as f32 } else { f32::NEG_INFINITY }
            }));
        }
    }
    Tensor::from_vec(values, (slopes.len(), length, length), device)
}
