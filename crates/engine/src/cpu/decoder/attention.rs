//! The attention part of a layer.

use super::linear::LinearBuffers;
use super::weights::{LatentWeights, LayerWeights, Projection};
use crate::core::{BLOCK_SIZE, RopeFactors, Step};
use crate::cpu::kernels::{
    Angles, Attention, BlockPointer, MatmulScratch, QueryToken, SharedMut, Target, attend, matmul, rms_norm,
    rms_norm_row, rms_norm_row_plain, rotate, sigmoid, write_kv,
};
use crate::cpu::kv::{BlockLayout, CacheLayout};
use crate::cpu::team::Team;
use earnest_models::checkpoint::{DecoderConfig, KeysValues, LatentAttention, LayerConfig, Norm, Position, QkNorm};

/// Tokens whose rotary embedding and cache writes one piece of work does.
pub(super) const TOKENS_PER_PIECE: usize = 8;

/// Epsilon of the norms of latent vectors, whatever the others have.
const LATENT_EPS: f32 = 1e-6;

/// Buffers of attention.
#[derive(Default)]
pub(crate) struct AttentionBuffers {
    /// Position and sequence of each token.
    pub(super) tokens: Vec<QueryToken>,
    pub(super) angles: Vec<Angles>,
    qkv: Vec<f32>,
    latent: Vec<f32>,
    normed: Vec<f32>,
    projected: Vec<f32>,
    pub(super) linear: LinearBuffers,
    /// Output of all heads, before their projection.
    pub(super) attended: Vec<f32>,
}

/// Widths of a token's row of queries, keys and values.
#[derive(Clone, Copy)]
struct Row {
    queries: usize,
    /// Gates of attention's output, 0 for none.
    gates: usize,
    /// Keys of the layer, 0 if it has those of another.
    keys: usize,
    /// Values with a projection of their own.
    values: usize,
}

impl Row {
    fn of(c: &DecoderConfig, layer: &LayerConfig) -> Row {
        let (queries, keys) = (c.num_heads * layer.head_dim, layer.num_kv_heads * layer.head_dim);
        let gates = if c.gated_attention { queries } else { 0 };
        match layer.keys_values {
            KeysValues::Projected => Row { queries, gates, keys, values: keys },
            KeysValues::OneProjection => Row { queries, gates, keys, values: 0 },
            KeysValues::OfLayer(_) => Row { queries, gates, keys: 0, values: 0 },
        }
    }

    fn width(self) -> usize {
        self.queries + self.gates + self.keys + self.values
    }
}

/// Inputs of a layer's attention besides its buffers.
pub(super) struct Layer<'a> {
    pub(super) config: &'a DecoderConfig,
    pub(super) index: usize,
    pub(super) weights: &'a LayerWeights,
    pub(super) cache: &'a CacheLayout,
    pub(super) step: &'a Step,
    pub(super) tables: &'a [Vec<BlockPointer>],
}

impl Layer<'_> {
    fn spec(&self) -> &LayerConfig {
        &self.config.layers[self.index]
    }

    /// Place of the layer's keys and values in a block.
    fn place(&self) -> BlockLayout {
        match self.spec().keys_values {
            KeysValues::OfLayer(source) => self.cache.layer(source),
            KeysValues::Projected | KeysValues::OneProjection => self.cache.layer(self.index),
        }
    }
}

impl AttentionBuffers {
    /// Attention of normed input `h`: writes keys and values to the cache and the output of all heads to `attended`.
    pub(super) fn run(&mut self, team: &Team, scratch: &mut MatmulScratch, layer: &Layer<'_>, h: &[f32]) {
        let (c, spec) = (layer.config, *layer.spec());
        let m = self.tokens.len();
        let row = Row::of(c, &spec);
        self.qkv.resize(m * row.width(), 0.0);
        if let Projection::Linear(weights) = &layer.weights.projection {
            self.linear.run(team, scratch, layer, weights, h, &mut self.attended);
            return;
        }
        match &layer.weights.projection {
            Projection::Direct { qkv, bias } => {
                matmul(team, scratch, h, qkv, bias.as_deref(), Target::Overwrite, &mut self.qkv);
            }
            Projection::Latent(weights) => {
                let latent = c.latent.expect("latent projections have a configuration");
                self.project_latent(team, scratch, c, latent, weights, h);
            }
            Projection::Linear(_) => unreachable!("computed above"),
        }
        let angles = match spec.position {
            Position::Rotary(rope) => Some(&self.angles[rope]),
            Position::None | Position::Alibi | Position::AlibiReversed => None,
        };
        let slopes = spec.position.slopes(c.num_heads).unwrap_or_default();
        rotate_and_cache(team, layer, row, angles, &self.tokens, &mut self.qkv);
        self.attended.resize(m * row.queries, 0.0);
        let attention = Attention {
            layout: layer.place(),
            heads: c.num_heads,
            scale: c.attention_scale,
            softcap: c.attention_softcap,
            window: spec.window,
            chunk: spec.chunk,
            sinks: &layer.weights.sinks,
            slopes: &slopes,
            tokens: &self.tokens,
            tables: layer.tables,
            queries: &self.qkv,
            query_row: row.width(),
        };
        attend(team, &attention, &mut self.attended);
        if row.gates > 0 {
            for (out, qkv) in self.attended.chunks_exact_mut(row.queries).zip(self.qkv.chunks_exact(row.width())) {
                let gates = &qkv[row.queries..row.queries + row.gates];
                out.iter_mut().zip(gates).for_each(|(o, gate)| *o *= sigmoid(*gate));
            }
        }
        if let Some(latent) = c.latent {
            // Values are narrower than keys; what pads them is dropped.
            let (from, to) = (spec.head_dim, latent.value_dims);
            for head in 0..m * c.num_heads {
                self.attended.copy_within(head * from..head * from + to, head * to);
            }
            self.attended.truncate(m * c.num_heads * to);
        }
    }

    /// Projects `h` through latent vectors to queries, keys and values of all heads.
    fn project_latent(
        &mut self,
        team: &Team,
        scratch: &mut MatmulScratch,
        c: &DecoderConfig,
        latent: LatentAttention,
        w: &LatentWeights,
        h: &[f32],
    ) {
        let LatentAttention { kv_rank, plain_dims, rotary_dims, value_dims, .. } = latent;
        let m = h.len() / c.hidden_size;
        let (heads, d) = (c.num_heads, plain_dims + rotary_dims);
        let width = heads * d;
        self.projected.resize(m * width, 0.0);
        match &w.query_down {
            Some((down, scale)) => {
                self.latent.resize(m * scale.len(), 0.0);
                matmul(team, scratch, h, down, None, Target::Overwrite, &mut self.latent);
                self.normed.resize(self.latent.len(), 0.0);
                rms_norm(team, &self.latent, scale, LATENT_EPS, &mut self.normed);
                matmul(team, scratch, &self.normed, &w.query, None, Target::Overwrite, &mut self.projected);
            }
            None => matmul(team, scratch, h, &w.query, None, Target::Overwrite, &mut self.projected),
        }
        for (row, queries) in self.qkv.chunks_exact_mut(3 * width).zip(self.projected.chunks_exact(width)) {
            row[..width].copy_from_slice(queries);
        }
        self.latent.resize(m * (kv_rank + rotary_dims), 0.0);
        matmul(team, scratch, h, &w.kv_down, None, Target::Overwrite, &mut self.latent);
        self.normed.clear();
        for row in self.latent.chunks_exact(kv_rank + rotary_dims) {
            let start = self.normed.len();
            self.normed.extend_from_slice(&row[..kv_rank]);
            rms_norm_row(team, &mut self.normed[start..], &w.kv_norm, LATENT_EPS);
        }
        let of_head = plain_dims + value_dims;
        self.projected.resize(m * heads * of_head, 0.0);
        matmul(team, scratch, &self.normed, &w.kv_up, None, Target::Overwrite, &mut self.projected);
        let latents = self.latent.chunks_exact(kv_rank + rotary_dims);
        let projected = self.projected.chunks_exact(heads * of_head);
        for ((row, latent), projected) in self.qkv.chunks_exact_mut(3 * width).zip(latents).zip(projected) {
            let (keys, values) = row[width..].split_at_mut(width);
            for (head, both) in projected.chunks_exact(of_head).enumerate() {
                let (key, value) = (&mut keys[head * d..(head + 1) * d], &mut values[head * d..(head + 1) * d]);
                key[..plain_dims].copy_from_slice(&both[..plain_dims]);
                key[plain_dims..].copy_from_slice(&latent[kv_rank..]);
                value[..value_dims].copy_from_slice(&both[plain_dims..]);
                value[value_dims..].fill(0.0);
            }
        }
    }
}

/// True if a token's sequence uses the long rope factors.
pub(super) fn is_long(step: &Step, token: &QueryToken) -> bool {
    step.rope_factors[token.sequence as usize] == RopeFactors::Long
}

/// Norms and rotates queries and keys in place, and writes keys and values to the cache.
fn rotate_and_cache(
    team: &Team,
    layer: &Layer<'_>,
    row: Row,
    angles: Option<&Angles>,
    tokens: &[QueryToken],
    qkv: &mut [f32],
) {
    let (c, w, spec) = (layer.config, layer.weights, *layer.spec());
    let place = layer.place();
    let d = spec.head_dim;
    let m = tokens.len();
    let (Norm::Rms { eps } | Norm::Layer { eps, .. }) = c.norm;
    // Dimensions of a head before the rotated ones.
    let plain = c.latent.map_or(0, |latent| latent.plain_dims);
    let grows = c.query_growth.filter(|_| spec.query_growth);
    let all = SharedMut::new(qkv);
    team.run(m.div_ceil(TOKENS_PER_PIECE), &|piece| {
        for (t, token) in tokens.iter().enumerate().skip(piece * TOKENS_PER_PIECE).take(TOKENS_PER_PIECE) {
            let position = token.position as usize;
            let angles = angles.map(|angles| angles.of(position, is_long(layer.step, token)));
            // SAFETY: rows are disjoint.
            let (queries, rest) = unsafe { all.slice(t * row.width(), row.width()) }.split_at_mut(row.queries);
            let rest = &mut rest[row.gates..];
            let (keys, values) = rest.split_at_mut(row.keys);
            let prepare = |x: &mut [f32], scale: Option<&Vec<f32>>| {
                if let (QkNorm::Width, Some(scale)) = (c.qk_norm, scale) {
                    rms_norm_row(team, x, scale, eps);
                }
                for x in x.chunks_exact_mut(d) {
                    if let (QkNorm::Head, Some(scale)) = (c.qk_norm, scale) {
                        rms_norm_row(team, x, scale, eps);
                    }
                    if let Some((cosines, sines)) = angles {
                        rotate(team, &mut x[plain..], cosines, sines);
                    }
                    match (c.qk_norm, scale) {
                        (QkNorm::HeadAfterRotary, Some(scale)) => rms_norm_row(team, x, scale, eps),
                        (QkNorm::PlainAfterRotary, _) if angles.is_some() => rms_norm_row_plain(team, x, eps),
                        _ => {}
                    }
                }
            };
            prepare(queries, w.query_norm.as_ref());
            if let Some(growth) = grows.map(|g| g.factor(position)) {
                queries.iter_mut().for_each(|q| *q *= growth);
            }
            // With one projection, values are the keys as they were projected.
            let mut copied = if row.values == 0 { keys.to_vec() } else { Vec::new() };
            let values = if row.values == 0 { copied.as_mut_slice() } else { values };
            prepare(keys, w.key_norm.as_ref());
            if c.value_norm {
                values.chunks_exact_mut(d).for_each(|value| rms_norm_row_plain(team, value, eps));
            }
            let block = layer.tables[token.sequence as usize][position / BLOCK_SIZE].0.cast_mut();
            for (head, (key, value)) in keys.chunks_exact(d).zip(values.chunks_exact(d)).enumerate() {
                // SAFETY: the KV store handed the pointer out for this step; every (block, position) is written by the
                // one token that lives there, and nothing reads the block until all pieces are done.
                unsafe { write_kv(team.isa(), place, block, head, position % BLOCK_SIZE, key, value) };
            }
        }
    });
}
