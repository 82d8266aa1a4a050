//! The feed-forward part of a layer.

use super::experts::Routed;
use super::forward::norm;
use super::weights::{BesideWeights, FeedForward, MlpWeights};
use crate::cpu::kernels::{MatmulScratch, Target, activate, cut_gates, gate, matmul, rms_norm, sigmoid};
use crate::cpu::team::Team;
use earnest_models::checkpoint::{DecoderConfig, LayerConfig, Norm};

/// Buffers of a feed-forward block.
#[derive(Default)]
pub(crate) struct MlpBuffers {
    up: Vec<f32>,
    inner: Vec<f32>,
}

impl MlpBuffers {
    /// `out (+)= down(act(gate(h)) * up(h))`, or without a gate.
    #[expect(clippy::too_many_arguments, reason = "operands, weights and buffers of a block")]
    pub(crate) fn run(
        &mut self,
        team: &Team,
        c: &DecoderConfig,
        scratch: &mut MatmulScratch,
        w: &MlpWeights,
        gate_cutoff: Option<f32>,
        h: &[f32],
        into: Target,
        out: &mut [f32],
    ) {
        let m = h.len() / c.hidden_size;
        let width = w.down.k();
        self.up.resize(m * w.gate_up.n(), 0.0);
        self.inner.resize(m * width, 0.0);
        matmul(team, scratch, h, &w.gate_up, w.gate_up_bias.as_deref(), Target::Overwrite, &mut self.up);
        if let Some(deviations) = gate_cutoff {
            cut_gates(team, &mut self.up, width, deviations);
        }
        if c.gated {
            gate(team, c.activation, &self.up, width, &mut self.inner);
        } else {
            activate(team, c.activation, &self.up, &mut self.inner);
        }
        matmul(team, scratch, &self.inner, &w.down, w.down_bias.as_deref(), into, out);
    }
}

/// Buffers of a layer's feed-forward part.
#[derive(Default)]
pub(crate) struct FeedForwardBuffers {
    mlp: MlpBuffers,
    routed: Routed,
    /// The dense block's answer where a gate is to be applied to it, and the gates.
    shared: Vec<f32>,
    gates: Vec<f32>,
    router_input: Vec<f32>,
    experts_input: Vec<f32>,
}

impl FeedForwardBuffers {
    /// `out (+)= dense(h) + experts(h)`, as far as the layer has them; the dense block may have a gate.
    #[expect(clippy::too_many_arguments, reason = "operands, weights and buffers of a block")]
    pub(crate) fn run(
        &mut self,
        team: &Team,
        c: &DecoderConfig,
        scratch: &mut MatmulScratch,
        spec: &LayerConfig,
        w: &FeedForward,
        h: &[f32],
        into: Target,
        out: &mut [f32],
    ) {
        let shared_gate = w.experts.as_ref().and_then(|experts| experts.shared_gate.as_ref());
        match (&w.dense, shared_gate) {
            (Some(dense), None) => self.mlp.run(team, c, scratch, dense, spec.gate_cutoff, h, into, out),
            (Some(dense), Some(shared_gate)) => {
                self.shared.resize(out.len(), 0.0);
                self.mlp.run(team, c, scratch, dense, spec.gate_cutoff, h, Target::Overwrite, &mut self.shared);
                self.gates.resize(h.len() / c.hidden_size, 0.0);
                matmul(team, scratch, h, shared_gate, None, Target::Overwrite, &mut self.gates);
                for (row, &gate) in self.shared.chunks_exact_mut(c.hidden_size).zip(&self.gates) {
                    let factor = sigmoid(gate);
                    row.iter_mut().for_each(|v| *v *= factor);
                }
                match into {
                    Target::Overwrite => out.copy_from_slice(&self.shared),
                    Target::Add => out.iter_mut().zip(&self.shared).for_each(|(x, y)| *x += y),
                }
            }
            (None, _) => {}
        }
        if let Some(experts) = &w.experts {
            let e = c.experts.expect("a mixture's config names its experts");
            self.routed.run(team, c, e, experts, scratch, &mut self.mlp, h, h);
            match into {
                Target::Overwrite if w.dense.is_none() => out.copy_from_slice(&self.routed.out),
                Target::Overwrite | Target::Add => out.iter_mut().zip(&self.routed.out).for_each(|(x, y)| *x += y),
            }
        }
    }

    /// `out = norm(dense(h)) + norm(experts(norm(x)))`, where the router reads `x`, normed and scaled.
    #[expect(clippy::too_many_arguments, reason = "operands, weights and buffers of a block")]
    pub(crate) fn run_beside(
        &mut self,
        team: &Team,
        c: &DecoderConfig,
        scratch: &mut MatmulScratch,
        spec: &LayerConfig,
        w: &FeedForward,
        beside: &BesideWeights,
        (x, h): (&[f32], &[f32]),
        out: &mut [f32],
    ) {
        let (Norm::Rms { eps } | Norm::Layer { eps, .. }) = c.norm;
        self.router_input.resize(x.len(), 0.0);
        self.experts_input.resize(x.len(), 0.0);
        if let Some(dense) = &w.dense {
            let answer = &mut self.experts_input;
            self.mlp.run(team, c, scratch, dense, spec.gate_cutoff, h, Target::Overwrite, answer);
            norm(team, c, &beside.post_dense_norm, answer, out);
        } else {
            out.fill(0.0);
        }
        if let Some(experts) = &w.experts {
            let e = c.experts.expect("a mixture's config names its experts");
            rms_norm(team, x, &beside.router_scale, eps, &mut self.router_input);
            norm(team, c, &beside.norm, x, &mut self.experts_input);
            let (router_input, input) = (&self.router_input, &self.experts_input);
            self.routed.run(team, c, e, experts, scratch, &mut self.mlp, router_input, input);
            norm(team, c, &beside.post_norm, &self.routed.out, &mut self.experts_input);
            out.iter_mut().zip(&self.experts_input).for_each(|(o, y)| *o += y);
        }
    }
}
