//! Linear attention by the gated delta rule (Qwen 3.5).
//!
//! Tokens of a sequence are computed one after the other, whatever chunk they come in, so that chunks do not show in a bit. What a
//! sequence keeps belongs to its first block, which no other sequence has: prefixes are not shared in decoders with linear attention.

use std::collections::HashMap;

use super::attention::Layer;
use super::weights::LinearWeights;
use crate::core::{Piece, Step};
use crate::cpu::kernels::{MatmulScratch, SharedMut, Target, matmul, sigmoid};
use crate::cpu::team::Team;
use earnest_models::checkpoint::{LinearAttention, Norm};

/// Added to the squared length of a query or key before it is divided by its length.
const LENGTH_EPS: f32 = 1e-6;

/// States of sequences, and buffers.
#[derive(Default)]
pub(crate) struct LinearBuffers {
    /// By the sequence's first block: what all layers keep of it.
    states: HashMap<i32, Vec<f32>>,
    /// Those of the step's pieces, in their order.
    current: Vec<Vec<f32>>,
    /// `[m, channels + values]`
    input: Vec<f32>,
    /// `[m, 2 * value_heads]`
    rates: Vec<f32>,
    /// `[m, channels]`: after the convolution.
    mixed: Vec<f32>,
}

impl LinearBuffers {
    /// Takes the states of the step's sequences, new ones for those that begin, and drops those of sequences that are gone.
    pub(super) fn begin(&mut self, linear: LinearAttention, layers: usize, step: &Step) {
        self.states.retain(|block, _| step.live.contains(block));
        let floats = layers * linear.state_floats();
        self.current = (0..step.pieces.len())
            .map(|piece| {
                let state = self.states.remove(&step.block_table(piece)[0]);
                if step.pieces[piece].position == 0 {
                    let mut state = state.unwrap_or_default();
                    state.clear();
                    state.resize(floats, 0.0);
                    return state;
                }
                state.expect("a sequence goes on where it stopped: its prefix is never shared")
            })
            .collect();
    }

    /// Keeps the states of the step's sequences.
    pub(super) fn end(&mut self, step: &Step) {
        for (piece, state) in self.current.drain(..).enumerate() {
            self.states.insert(step.block_table(piece)[0], state);
        }
    }

    /// Linear attention of normed input `h`: the gated output of all heads goes to `out`.
    pub(super) fn run(
        &mut self,
        team: &Team,
        scratch: &mut MatmulScratch,
        layer: &Layer<'_>,
        w: &LinearWeights,
        h: &[f32],
        out: &mut Vec<f32>,
    ) {
        let c = layer.config;
        let linear = c.linear.expect("a linear layer's config has its sizes");
        let (channels, values, heads) = (linear.channels(), linear.values(), linear.value_heads);
        let m = h.len() / c.hidden_size;
        self.input.resize(m * (channels + values), 0.0);
        matmul(team, scratch, h, &w.input, None, Target::Overwrite, &mut self.input);
        self.rates.resize(m * 2 * heads, 0.0);
        matmul(team, scratch, h, &w.rates, None, Target::Overwrite, &mut self.rates);
        self.mixed.resize(m * channels, 0.0);
        out.resize(m * values, 0.0);
        let before = c.layers[..layer.index].iter().filter(|l| l.linear).count();
        let (start, kept) = (before * linear.state_floats(), linear.kept_inputs());
        let pieces = &layer.step.pieces;
        let (input, rates) = (&self.input, &self.rates);
        let states: Vec<SharedMut<'_, f32>> = self.current.iter_mut().map(|s| SharedMut::new(s)).collect();
        let mixed = SharedMut::new(&mut self.mixed);
        team.run(pieces.len(), &|i| {
            let Piece { token, count, .. } = pieces[i];
            let rows = &input[token * (channels + values)..(token + count) * (channels + values)];
            // SAFETY: every piece has its own state and its own tokens.
            let (state, mixed) =
                unsafe { (states[i].slice(start, kept), mixed.slice(token * channels, count * channels)) };
            convolve(&w.convolution, linear, rows, state, mixed);
        });
        let mixed = &self.mixed;
        let (Norm::Rms { eps } | Norm::Layer { eps, .. }) = c.norm;
        let output = SharedMut::new(out);
        team.run(pieces.len() * heads, &|i| {
            let (i, head) = (i / heads, i % heads);
            let Piece { token, count, .. } = pieces[i];
            let (dk, dv) = (linear.key_dims, linear.value_dims);
            // SAFETY: every head of every piece has a matrix of its own.
            let memory = unsafe { states[i].slice(start + kept + head * dk * dv, dk * dv) };
            for t in token..token + count {
                let rates = &rates[t * 2 * heads..(t + 1) * 2 * heads];
                let decay = libm::expf(w.decay[head] * softplus(rates[heads + head] + w.decay_bias[head]));
                // SAFETY: every head of every token has a row of its own.
                let out = unsafe { output.slice(t * values + head * dv, dv) };
                let row = &mixed[t * channels..(t + 1) * channels];
                recall(linear, head, row, memory, decay, sigmoid(rates[head]), out);
                let gates = &input[t * (channels + values) + channels + head * dv..][..dv];
                let square = out.iter().map(|x| x * x).sum::<f32>() / dv as f32;
                let factor = 1.0 / (square + eps).sqrt();
                for ((o, &weight), &gate) in out.iter_mut().zip(&w.norm).zip(gates) {
                    *o = *o * factor * weight * (gate * sigmoid(gate));
                }
            }
        });
    }
}

/// Convolves each channel with its inputs before, of which the state has the last, and applies SiLU.
fn convolve(weights: &[f32], linear: LinearAttention, rows: &[f32], state: &mut [f32], mixed: &mut [f32]) {
    let (channels, kernel) = (linear.channels(), linear.kernel);
    let width = channels + linear.values();
    for (row, out) in rows.chunks_exact(width).zip(mixed.chunks_exact_mut(channels)) {
        for (channel, o) in out.iter_mut().enumerate() {
            let w = &weights[channel * kernel..(channel + 1) * kernel];
            let mut sum = 0.0;
            for (back, weight) in w[..kernel - 1].iter().enumerate() {
                sum += weight * state[back * channels + channel];
            }
            sum += w[kernel - 1] * row[channel];
            *o = sum * sigmoid(sum);
        }
        if kernel > 1 {
            state.copy_within(channels.., 0);
            let last = state.len() - channels;
            state[last..].copy_from_slice(&row[..channels]);
        }
    }
}

/// Updates a head's memory `[key_dims, value_dims]` with a token's key and value, and reads it with its query.
fn recall(
    linear: LinearAttention,
    head: usize,
    row: &[f32],
    memory: &mut [f32],
    decay: f32,
    strength: f32,
    out: &mut [f32],
) {
    let LinearAttention { key_heads, value_heads, key_dims, value_dims, .. } = linear;
    let key_head = head / (value_heads / key_heads);
    let keys = key_heads * key_dims;
    let query = &row[key_head * key_dims..(key_head + 1) * key_dims];
    let key = &row[keys + key_head * key_dims..keys + (key_head + 1) * key_dims];
    let value = &row[2 * keys + head * value_dims..][..value_dims];
    let inverse = |x: &[f32]| 1.0 / (x.iter().map(|v| v * v).sum::<f32>() + LENGTH_EPS).sqrt();
    let (of_query, of_key) = (inverse(query) / (key_dims as f32).sqrt(), inverse(key));
    out.fill(0.0);
    for (line, k) in memory.chunks_exact_mut(value_dims).zip(key) {
        let k = k * of_key;
        for (m, o) in line.iter_mut().zip(out.iter_mut()) {
            *m *= decay;
            *o += *m * k;
        }
    }
    // What the memory lacks of the value.
    for (o, v) in out.iter_mut().zip(value) {
        *o = (v - *o) * strength;
    }
    for (line, k) in memory.chunks_exact_mut(value_dims).zip(key) {
        let k = k * of_key;
        line.iter_mut().zip(out.iter()).for_each(|(m, delta)| *m += k * delta);
    }
    out.fill(0.0);
    for (line, q) in memory.chunks_exact(value_dims).zip(query) {
        let q = q * of_query;
        line.iter().zip(out.iter_mut()).for_each(|(m, o)| *o += m * q);
    }
}

/// `ln(1 + e^x)`
fn softplus(x: f32) -> f32 {
    if x > 20.0 { x } else { libm::log1pf(libm::expf(x)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_memory_returns_the_value_of_its_key() {
        let linear = LinearAttention { key_heads: 1, value_heads: 2, key_dims: 2, value_dims: 3, kernel: 1 };
        // Query and key along the first dimension; the second head's value.
        let row = [2.0, 0.0, 3.0, 0.0, 9.0, 9.0, 9.0, 1.0, 2.0, 3.0];
        let (mut memory, mut out) = ([0f32; 6], [0f32; 3]);
        recall(linear, 1, &row, &mut memory, 1.0, 1.0, &mut out);
        let close =
            |out: &[f32], factor: f32| out.iter().zip([1.0, 2.0, 3.0]).all(|(o, v)| (o - v * factor).abs() < 1e-5);
        assert!(close(&out, 1.0 / 2f32.sqrt()), "{out:?}");
        // Known already: it stays, decayed and put right again.
        recall(linear, 1, &row, &mut memory, 0.5, 1.0, &mut out);
        assert!(close(&out, 1.0 / 2f32.sqrt()), "{out:?}");
        recall(linear, 1, &row, &mut memory, 0.5, 0.0, &mut out);
        assert!(close(&out, 0.5 / 2f32.sqrt()), "{out:?}");
    }

    #[test]
    fn a_convolution_in_two_chunks_is_that_of_one() {
        let linear = LinearAttention { key_heads: 1, value_heads: 1, key_dims: 1, value_dims: 1, kernel: 3 };
        let weights: Vec<f32> = (0..9).map(|i| i as f32 * 0.1 - 0.4).collect();
        let rows: Vec<f32> = (0..5 * 4).map(|i| (i as f32 * 0.7).sin()).collect();
        let (mut state, mut whole) = (vec![0f32; 6], vec![0f32; 15]);
        convolve(&weights, linear, &rows, &mut state, &mut whole);
        let (mut state, mut parts) = (vec![0f32; 6], vec![0f32; 15]);
        convolve(&weights, linear, &rows[..4], &mut state, &mut parts[..3]);
        convolve(&weights, linear, &rows[4..], &mut state, &mut parts[3..]);
        assert_eq!(whole, parts);
        let expected = weights[1] * rows[0] + weights[2] * rows[4];
        assert!((whole[3] - expected * sigmoid(expected)).abs() < 1e-6);
    }
}
