//! Inputs of every layer from a second embedding table (Gemma 3n and 4).

use super::attention::TOKENS_PER_PIECE;
use super::forward::norm;
use super::weights::{LayerInputTable, LayerInputWeights};
use crate::core::Step;
use crate::cpu::kernels::{MatmulScratch, SharedMut, Target, activate, matmul, rms_norm, scale_by};
use crate::cpu::team::Team;
use earnest_models::checkpoint::{DecoderConfig, LayerInputs, Norm};

/// Buffers of the layers' inputs.
#[derive(Default)]
pub(crate) struct LayerInputBuffers {
    /// `[m, layers, width]`
    inputs: Vec<f32>,
    projected: Vec<f32>,
    gate: Vec<f32>,
    active: Vec<f32>,
    up: Vec<f32>,
}

impl LayerInputBuffers {
    /// Computes the inputs of all layers from the embeddings `x`: `(norm(projection(x) / sqrt(hidden)) + table * sqrt(width)) / sqrt(2)`.
    #[expect(clippy::too_many_arguments, reason = "operands, weights and buffers of a block")]
    pub(super) fn prepare(
        &mut self,
        team: &Team,
        scratch: &mut MatmulScratch,
        c: &DecoderConfig,
        spec: LayerInputs,
        w: &LayerInputTable,
        step: &Step,
        x: &[f32],
    ) {
        let (Norm::Rms { eps } | Norm::Layer { eps, .. }) = c.norm;
        let m = x.len() / c.hidden_size;
        let row = c.layers.len() * spec.width;
        self.projected.resize(m * row, 0.0);
        matmul(team, scratch, x, &w.projection, None, Target::Overwrite, &mut self.projected);
        scale_by(team, &mut self.projected, 1.0 / (c.hidden_size as f32).sqrt());
        self.inputs.resize(m * row, 0.0);
        rms_norm(team, &self.projected, &w.norm, eps, &mut self.inputs);
        let (inputs, table) = (SharedMut::new(&mut self.inputs), SharedMut::new(&mut self.projected));
        let scale = (spec.width as f32).sqrt();
        team.run(m.div_ceil(TOKENS_PER_PIECE), &|piece| {
            for t in piece * TOKENS_PER_PIECE..((piece + 1) * TOKENS_PER_PIECE).min(m) {
                // SAFETY: rows are disjoint.
                let (inputs, table) = unsafe { (inputs.slice(t * row, row), table.slice(t * row, row)) };
                let id = c.embedded_id(step.token_ids[t] as usize);
                w.table.row(if id < spec.vocab_size { id } else { 0 }, scale, table);
                for (input, embedded) in inputs.iter_mut().zip(table) {
                    *input = (*input + *embedded) * std::f32::consts::FRAC_1_SQRT_2;
                }
            }
        });
    }

    /// Returns `norm(up(act(gate(x)) * input))` of a layer.
    #[expect(clippy::too_many_arguments, reason = "operands, weights and buffers of a block")]
    pub(super) fn apply(
        &mut self,
        team: &Team,
        scratch: &mut MatmulScratch,
        c: &DecoderConfig,
        w: &LayerInputWeights,
        layer: usize,
        x: &[f32],
        out: &mut Vec<f32>,
    ) {
        let m = x.len() / c.hidden_size;
        let width = w.gate.n();
        self.gate.resize(m * width, 0.0);
        matmul(team, scratch, x, &w.gate, None, Target::Overwrite, &mut self.gate);
        self.active.resize(m * width, 0.0);
        activate(team, c.activation, &self.gate, &mut self.active);
        let row = c.layers.len() * width;
        for (active, inputs) in self.active.chunks_exact_mut(width).zip(self.inputs.chunks_exact(row)) {
            let input = &inputs[layer * width..(layer + 1) * width];
            active.iter_mut().zip(input).for_each(|(a, i)| *a *= i);
        }
        self.up.resize(x.len(), 0.0);
        matmul(team, scratch, &self.active, &w.up, None, Target::Overwrite, &mut self.up);
        out.resize(x.len(), 0.0);
        norm(team, c, &w.norm, &self.up, out);
    }
}
