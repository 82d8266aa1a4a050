//! The forward pass of one step.

use super::attention::{AttentionBuffers, Layer, TOKENS_PER_PIECE, is_long};
use super::feed_forward::FeedForwardBuffers;
use super::layer_inputs::LayerInputBuffers;
use super::streams::StreamBuffers;
use super::weights::{LayerWeights, NormWeights, Weights};
use crate::core::Step;
use crate::cpu::kernels::{
    Angles, BlockPointer, MatmulScratch, QueryToken, SharedMut, Target, add_scaled, layer_norm, matmul, rms_norm,
    scale_and_cap, scale_by,
};
use crate::cpu::kv::KvStore;
use crate::cpu::team::Team;
use earnest_models::checkpoint::{BlockLayout as Join, DecoderConfig, Norm};

/// Buffers of the forward pass.
#[derive(Default)]
pub(crate) struct Forward {
    scratch: MatmulScratch,
    attention: AttentionBuffers,
    x: Vec<f32>,
    h: Vec<f32>,
    branch: Vec<f32>,
    feed_forward: FeedForwardBuffers,
    layer_inputs: LayerInputBuffers,
    streams: StreamBuffers,
    hidden: Vec<f32>,
    logits: Vec<f32>,
}

impl Forward {
    /// Runs all layers over the step's tokens: writes their keys and values to the cache and keeps the normed hidden
    /// states of the tokens in `step.logits_indices` for [`logits`](Self::logits).
    pub(crate) fn run(&mut self, team: &Team, c: &DecoderConfig, w: &Weights, kv: &mut KvStore, step: &Step) {
        let m = step.tokens();
        let tokens = &mut self.attention.tokens;
        tokens.clear();
        for (sequence, piece) in step.pieces.iter().enumerate() {
            let token = |position: usize| QueryToken { position: position as u32, sequence: sequence as u32 };
            tokens.extend((piece.position..piece.position + piece.count).map(token));
        }
        let hidden = c.hidden_size;
        self.x.resize(m * hidden, 0.0);
        self.h.resize(m * hidden, 0.0);
        let x = SharedMut::new(&mut self.x);
        team.run(m.div_ceil(TOKENS_PER_PIECE), &|piece| {
            for row in piece * TOKENS_PER_PIECE..((piece + 1) * TOKENS_PER_PIECE).min(m) {
                // SAFETY: rows are disjoint.
                let target = unsafe { x.slice(row * hidden, hidden) };
                w.embedding.row(c.embedded_id(step.token_ids[row] as usize), c.embedding_scale, target);
            }
        });
        if let (Some(spec), Some(table)) = (c.layer_inputs, &w.layer_inputs) {
            self.layer_inputs.prepare(team, &mut self.scratch, c, spec, table, step, &self.x);
        }
        if let Some(spec) = c.streams {
            self.streams.begin(team, &mut self.scratch, spec, w, &self.x);
        }
        self.attention.angles.resize_with(c.ropes.len(), Angles::default);
        for (angles, rope) in self.attention.angles.iter_mut().zip(&c.ropes) {
            for token in &self.attention.tokens {
                angles.reach(rope, token.position as usize, is_long(step, token));
            }
        }
        let pointers = |piece: usize| {
            step.block_table(piece).iter().map(|&block| BlockPointer(kv.pointer(block as usize))).collect()
        };
        let tables: Vec<Vec<BlockPointer>> = (0..step.pieces.len()).map(pointers).collect();
        if let Some(linear) = c.linear {
            self.attention.linear.begin(linear, c.layers.iter().filter(|l| l.linear).count(), step);
        }
        for (index, weights) in w.layers.iter().enumerate() {
            self.layer(team, &Layer { config: c, index, weights, cache: kv.layout(), step, tables: &tables });
        }
        if c.linear.is_some() {
            self.attention.linear.end(step);
        }
        if c.streams.is_some() {
            self.streams.end(team, &mut self.scratch, w, &mut self.x);
        }
        self.hidden.resize(step.logits_indices.len() * hidden, 0.0);
        for (target, &token) in self.hidden.chunks_exact_mut(hidden).zip(&step.logits_indices) {
            let token = token as usize;
            target.copy_from_slice(&self.x[token * hidden..(token + 1) * hidden]);
        }
        self.h.resize(self.hidden.len(), 0.0);
        norm(team, c, &w.final_norm, &self.hidden, &mut self.h);
        std::mem::swap(&mut self.h, &mut self.hidden);
    }

    /// Computes logits `[rows, vocab]` of `rows`, indices into `step.logits_indices` of the last [`run`](Self::run).
    pub(crate) fn logits(
        &mut self,
        team: &Team,
        c: &DecoderConfig,
        w: &Weights,
        rows: std::ops::Range<usize>,
    ) -> &mut [f32] {
        self.logits.resize(rows.len() * c.vocab_size, 0.0);
        let hidden = &self.hidden[rows.start * c.hidden_size..rows.end * c.hidden_size];
        matmul(team, &mut self.scratch, hidden, w.head(), w.head_bias.as_deref(), Target::Overwrite, &mut self.logits);
        scale_and_cap(team, &mut self.logits, c.logit_scale, c.final_softcap);
        &mut self.logits
    }

    fn layer(&mut self, team: &Team, layer: &Layer<'_>) {
        let (c, w) = (layer.config, layer.weights);
        if let (Some(spec), Some(streams)) = (c.streams, &w.streams) {
            self.streams.predict(team, &mut self.scratch, c, spec, streams, &mut self.x);
        }
        self.norm_or_copy(team, c, w.attention_norm.as_ref());
        if let Some(streams) = &w.streams {
            self.streams.branch(team, &mut self.scratch, c, streams, &self.h);
        }
        self.attention.run(team, &mut self.scratch, layer, &self.h);
        self.project_attention(team, c, w);
        if c.block != Join::Parallel {
            // The parallel layout's feed-forward block reads what attention read.
            self.norm_or_copy(team, c, w.mlp_norm.as_ref());
        }
        self.feed_forward(team, layer);
        self.layer_input(team, layer);
        if let Some(scalar) = w.scalar {
            scale_by(team, &mut self.x, scalar);
        }
    }

    /// `h = norm(x)`, or `x` without a norm.
    fn norm_or_copy(&mut self, team: &Team, c: &DecoderConfig, w: Option<&NormWeights>) {
        match w {
            Some(w) => norm(team, c, w, &self.x, &mut self.h),
            None => self.h.copy_from_slice(&self.x),
        }
    }

    /// Adds attention's output to the residual stream.
    fn project_attention(&mut self, team: &Team, c: &DecoderConfig, w: &LayerWeights) {
        let (attended, bias) = (&self.attention.attended, w.output_bias.as_deref());
        if is_plain(c) {
            matmul(team, &mut self.scratch, attended, &w.output, bias, Target::Add, &mut self.x);
            return;
        }
        self.branch.resize(self.x.len(), 0.0);
        matmul(team, &mut self.scratch, attended, &w.output, bias, Target::Overwrite, &mut self.branch);
        self.add_branch(team, c, w.post_attention_norm.as_ref());
        if w.streams.is_some() {
            self.streams.join_branch(&mut self.x);
        }
    }

    /// Adds the feed-forward part of `h` to the residual stream.
    fn feed_forward(&mut self, team: &Team, layer: &Layer<'_>) {
        let (c, w) = (layer.config, layer.weights);
        let (part, spec) = (&w.feed_forward, &c.layers[layer.index]);
        let scratch = &mut self.scratch;
        if is_plain(c) {
            self.feed_forward.run(team, c, scratch, spec, part, &self.h, Target::Add, &mut self.x);
            return;
        }
        self.branch.resize(self.x.len(), 0.0);
        match part.experts.as_ref().and_then(|e| e.beside.as_ref()) {
            Some(beside) => {
                let inputs = (self.x.as_slice(), self.h.as_slice());
                self.feed_forward.run_beside(team, c, scratch, spec, part, beside, inputs, &mut self.branch);
            }
            None => {
                self.feed_forward.run(team, c, scratch, spec, part, &self.h, Target::Overwrite, &mut self.branch);
            }
        }
        self.add_branch(team, c, w.post_mlp_norm.as_ref());
    }

    /// `x += norm(branch)`, or the scaled branch where no norm follows a block.
    fn add_branch(&mut self, team: &Team, c: &DecoderConfig, w: Option<&NormWeights>) {
        // What follows makes `h` anew, except in the parallel layout, which has no norms here.
        let added = match w {
            Some(w) => {
                norm(team, c, w, &self.branch, &mut self.h);
                &self.h
            }
            None => &self.branch,
        };
        add_scaled(team, &mut self.x, added, c.residual_scale);
    }

    /// Adds the layer's own input, to the residual stream or to the streams that no layer computes.
    fn layer_input(&mut self, team: &Team, layer: &Layer<'_>) {
        let (c, w) = (layer.config, layer.weights);
        if let (Some(spec), Some(streams)) = (c.streams, &w.streams) {
            self.streams.correct(team, &mut self.scratch, c, spec, streams, &mut self.x);
        }
        let Some(input) = &w.layer_input else { return };
        self.layer_inputs.apply(team, &mut self.scratch, c, input, layer.index, &self.x, &mut self.branch);
        if c.streams.is_some() {
            self.streams.add_input(&self.branch);
        } else {
            add_scaled(team, &mut self.x, &self.branch, 1.0);
        }
    }
}

/// True if blocks are added to the residual stream as they are.
fn is_plain(c: &DecoderConfig) -> bool {
    matches!(c.block, Join::PreNorm | Join::Parallel) && c.residual_scale == 1.0
}

pub(super) fn norm(team: &Team, c: &DecoderConfig, w: &NormWeights, x: &[f32], y: &mut [f32]) {
    match c.norm {
        Norm::Rms { eps } => rms_norm(team, x, &w.scale, eps, y),
        Norm::Layer { eps, .. } => layer_norm(team, x, &w.scale, &w.offset, eps, y),
    }
}
