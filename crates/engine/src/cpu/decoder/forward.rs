//! The forward pass of one step.

use super::experts::{Routed, mixture};
use super::weights::{FeedForward, LayerWeights, MlpWeights, NormWeights, Weights};
use crate::core::{BLOCK_SIZE, RopeFactors, Step};
use crate::cpu::kernels::{
    Angles, Attention, BlockPointer, MatmulScratch, QueryToken, SharedMut, Target, activate, attend, gate, layer_norm,
    matmul, rms_norm, rms_norm_row, rotate, scale_and_cap, write_kv,
};
use crate::cpu::kv::{BlockLayout, KvStore};
use crate::cpu::team::Team;
use earnest_models::checkpoint::{BlockLayout as Join, DecoderConfig, Norm, Position, alibi_slopes};

/// Tokens whose rotary embedding and cache writes one piece of work does.
const TOKENS_PER_PIECE: usize = 8;

/// Buffers of the forward pass.
#[derive(Default)]
pub(crate) struct Forward {
    /// Position and sequence of each token.
    tokens: Vec<QueryToken>,
    scratch: MatmulScratch,
    angles: Vec<Angles>,
    x: Vec<f32>,
    h: Vec<f32>,
    branch: Vec<f32>,
    qkv: Vec<f32>,
    attended: Vec<f32>,
    mlp: MlpBuffers,
    routed: Routed,
    hidden: Vec<f32>,
    logits: Vec<f32>,
}

/// Buffers of a feed-forward block.
#[derive(Default)]
pub(crate) struct MlpBuffers {
    up: Vec<f32>,
    inner: Vec<f32>,
}

impl Forward {
    /// Runs all layers over the step's tokens: writes their keys and values to the cache and keeps the normed hidden
    /// states of the tokens in `step.logits_indices` for [`logits`](Self::logits).
    pub(crate) fn run(&mut self, team: &Team, c: &DecoderConfig, w: &Weights, kv: &mut KvStore, step: &Step) {
        let m = step.tokens();
        self.tokens.clear();
        for (sequence, piece) in step.pieces.iter().enumerate() {
            let token = |position: usize| QueryToken { position: position as u32, sequence: sequence as u32 };
            self.tokens.extend((piece.position..piece.position + piece.count).map(token));
        }
        let hidden = c.hidden_size;
        self.x.resize(m * hidden, 0.0);
        self.h.resize(m * hidden, 0.0);
        let x = SharedMut::new(&mut self.x);
        team.run(m.div_ceil(TOKENS_PER_PIECE), &|piece| {
            for row in piece * TOKENS_PER_PIECE..((piece + 1) * TOKENS_PER_PIECE).min(m) {
                // SAFETY: rows are disjoint.
                let target = unsafe { x.slice(row * hidden, hidden) };
                w.embedding.row(step.token_ids[row] as usize, c.embedding_scale, target);
            }
        });
        self.angles.resize_with(c.ropes.len(), Angles::default);
        for (angles, rope) in self.angles.iter_mut().zip(&c.ropes) {
            for token in &self.tokens {
                angles.reach(rope, token.position as usize, is_long(step, token));
            }
        }
        let pointers = |piece: usize| {
            step.block_table(piece).iter().map(|&block| BlockPointer(kv.pointer(block as usize))).collect()
        };
        let tables: Vec<Vec<BlockPointer>> = (0..step.pieces.len()).map(pointers).collect();
        for (i, layer) in w.layers.iter().enumerate() {
            self.layer(team, c, i, layer, kv.layout(), step, &tables);
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
        scale_and_cap(team, &mut self.logits, c.final_softcap);
        &mut self.logits
    }

    #[expect(clippy::too_many_arguments, reason = "the parts of a step, all needed")]
    fn layer(
        &mut self,
        team: &Team,
        c: &DecoderConfig,
        index: usize,
        w: &LayerWeights,
        layout: BlockLayout,
        step: &Step,
        tables: &[Vec<BlockPointer>],
    ) {
        let m = step.tokens();
        let spec = c.layers[index];
        let (q_width, kv_width) = (c.num_heads * c.head_dim, c.num_kv_heads * c.head_dim);
        let row = q_width + 2 * kv_width;
        norm(team, c, &w.attention_norm, &self.x, &mut self.h);
        self.qkv.resize(m * row, 0.0);
        matmul(team, &mut self.scratch, &self.h, &w.qkv, w.qkv_bias.as_deref(), Target::Overwrite, &mut self.qkv);
        let angles = match spec.position {
            Position::Rotary(rope) => Some(&self.angles[rope]),
            Position::None | Position::Alibi => None,
        };
        let slopes = if spec.position == Position::Alibi { alibi_slopes(c.num_heads) } else { Vec::new() };
        rotate_and_cache(team, c, w, angles, layout, index, step, &self.tokens, tables, &mut self.qkv);
        self.attended.resize(m * q_width, 0.0);
        let attention = Attention {
            layout,
            layer: index,
            heads: c.num_heads,
            scale: c.attention_scale,
            softcap: c.attention_softcap,
            window: spec.window,
            slopes: &slopes,
            tokens: &self.tokens,
            tables,
            queries: &self.qkv,
            query_row: row,
        };
        attend(team, &attention, &mut self.attended);

        let output_bias = w.output_bias.as_deref();
        match c.block {
            Join::PreNorm | Join::Parallel => {
                matmul(team, &mut self.scratch, &self.attended, &w.output, output_bias, Target::Add, &mut self.x);
                if let Some(n) = &w.mlp_norm {
                    norm(team, c, n, &self.x, &mut self.h);
                }
                // Without a norm of its own (parallel layout) the block reads what attention read.
                self.feed_forward(team, c, w, Target::Add);
            }
            Join::Sandwich => {
                self.branch.resize(self.x.len(), 0.0);
                let s = &mut self.scratch;
                matmul(team, s, &self.attended, &w.output, output_bias, Target::Overwrite, &mut self.branch);
                self.add_branch(team, c, w.post_attention_norm.as_ref());
                if let Some(n) = &w.mlp_norm {
                    norm(team, c, n, &self.x, &mut self.h);
                }
                self.feed_forward(team, c, w, Target::Overwrite);
                self.add_branch(team, c, w.post_mlp_norm.as_ref());
            }
        }
    }

    /// `x += norm(branch)`
    fn add_branch(&mut self, team: &Team, c: &DecoderConfig, w: Option<&NormWeights>) {
        if let Some(w) = w {
            norm(team, c, w, &self.branch, &mut self.h);
            for (x, &h) in self.x.iter_mut().zip(&self.h) {
                *x += h;
            }
        }
    }

    /// Feed-forward of `h`, added to `x` or written to `branch`.
    fn feed_forward(&mut self, team: &Team, c: &DecoderConfig, w: &LayerWeights, into: Target) {
        let target = match into {
            Target::Add => &mut self.x,
            Target::Overwrite => &mut self.branch,
        };
        match &w.feed_forward {
            FeedForward::Dense(w) => self.mlp.run(team, c, &mut self.scratch, w, &self.h, into, target),
            FeedForward::Experts { router, experts } => {
                let e = c.experts.expect("a mixture's config names its experts");
                mixture(team, c, e, router, experts, &mut self.scratch, &mut self.mlp, &mut self.routed, &self.h);
                match into {
                    Target::Add => target.iter_mut().zip(&self.routed.out).for_each(|(x, y)| *x += y),
                    Target::Overwrite => target.copy_from_slice(&self.routed.out),
                }
            }
        }
    }
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
        h: &[f32],
        into: Target,
        out: &mut [f32],
    ) {
        let m = h.len() / c.hidden_size;
        self.up.resize(m * w.gate_up.n(), 0.0);
        self.inner.resize(m * w.down.k(), 0.0);
        matmul(team, scratch, h, &w.gate_up, w.gate_up_bias.as_deref(), Target::Overwrite, &mut self.up);
        if c.gated {
            gate(team, c.activation, &self.up, c.intermediate_size, &mut self.inner);
        } else {
            activate(team, c.activation, &self.up, &mut self.inner);
        }
        matmul(team, scratch, &self.inner, &w.down, w.down_bias.as_deref(), into, out);
    }
}

/// True if a token's sequence uses the long rope factors.
fn is_long(step: &Step, token: &QueryToken) -> bool {
    step.rope_factors[token.sequence as usize] == RopeFactors::Long
}

fn norm(team: &Team, c: &DecoderConfig, w: &NormWeights, x: &[f32], y: &mut [f32]) {
    match c.norm {
        Norm::Rms { eps } => rms_norm(team, x, &w.scale, eps, y),
        Norm::Layer { eps } => layer_norm(team, x, &w.scale, &w.offset, eps, y),
    }
}

/// Norms and rotates queries and keys in place, and writes keys and values to the cache.
#[expect(clippy::too_many_arguments, reason = "the parts of a step, all needed")]
fn rotate_and_cache(
    team: &Team,
    c: &DecoderConfig,
    w: &LayerWeights,
    angles: Option<&Angles>,
    layout: BlockLayout,
    layer: usize,
    step: &Step,
    tokens: &[QueryToken],
    tables: &[Vec<BlockPointer>],
    qkv: &mut [f32],
) {
    let d = c.head_dim;
    let (q_width, kv_width) = (c.num_heads * d, c.num_kv_heads * d);
    let row = q_width + 2 * kv_width;
    let m = tokens.len();
    let eps = match c.norm {
        Norm::Rms { eps } | Norm::Layer { eps } => eps,
    };
    let all = SharedMut::new(qkv);
    team.run(m.div_ceil(TOKENS_PER_PIECE), &|piece| {
        for (t, token) in tokens.iter().enumerate().skip(piece * TOKENS_PER_PIECE).take(TOKENS_PER_PIECE) {
            let angles = angles.map(|angles| angles.of(token.position as usize, is_long(step, token)));
            // SAFETY: rows are disjoint.
            let (qk, values) = unsafe { all.slice(t * row, row) }.split_at_mut(q_width + kv_width);
            for (head, x) in qk.chunks_exact_mut(d).enumerate() {
                let scale = if head < c.num_heads { &w.query_norm } else { &w.key_norm };
                if let Some(scale) = scale {
                    rms_norm_row(team, x, scale, eps);
                }
                if let Some((cosines, sines)) = angles {
                    rotate(team, x, cosines, sines);
                }
            }
            let position = token.position as usize;
            let block = tables[token.sequence as usize][position / BLOCK_SIZE].0.cast_mut();
            for head in 0..c.num_kv_heads {
                let key = &qk[q_width + head * d..q_width + (head + 1) * d];
                let value = &values[head * d..(head + 1) * d];
                // SAFETY: the KV store handed the pointer out for this step; every (block, position) is written by the
                // one token that lives there, and nothing reads the block until all pieces are done.
                unsafe { write_kv(team.isa(), layout, block, layer, head, position % BLOCK_SIZE, key, value) };
            }
        }
    });
}
