//! Layers of a number model, forward and backward.
use std::collections::BTreeMap;

use super::attention::{Heads, Inputs, Scratch, attend, attend_gradient, rotate};
use super::product::{Matrix, product};
use super::rows::Rows;
use super::{Activations, Slopes, any, gather, scatter, zeros};
use crate::kernels::{rms_norm, rms_norm_gradient, swiglu, swiglu_gradient};
use earnest_models::checkpoint::{DecoderConfig, Position};

/// Matrices and norms of a layer, as checkpoints name them.
const NAMES: [&str; 9] = [
    "input_layernorm",
    "self_attn.q_proj",
    "self_attn.k_proj",
    "self_attn.v_proj",
    "self_attn.o_proj",
    "post_attention_layernorm",
    "mlp.gate_proj",
    "mlp.up_proj",
    "mlp.down_proj",
];

/// Gradients of parameters by name, row by row.
type Found = Vec<(String, Vec<f32>)>;

/// The layers' parameters and the rows that go through them. Of the last layer only rows that predict a target have queries.
pub(super) struct Layers<'a> {
    pub(super) config: &'a DecoderConfig,
    /// Added to mean squares by the norms.
    pub(super) eps: f32,
    pub(super) rows: &'a Rows,
    /// Positions of the predicting rows.
    pub(super) asking: Vec<u32>,
    /// Cosines and sines of every rotary embedding.
    pub(super) tables: Vec<(Vec<f32>, Vec<f32>)>,
    /// Parameters by name.
    pub(super) values: BTreeMap<&'a str, &'a [f32]>,
}

impl Layers<'_> {
    /// Computes a layer's output into the beginning of `next`.
    pub(super) fn forward(&self, index: usize, layer: &mut Activations, next: &mut Vec<f32>, scratch: &mut Scratch) {
        let Layers { config: c, eps, rows, .. } = self;
        let (all, asked, count) = self.counts(index);
        let (hidden, inner) = (c.hidden_size, c.intermediate_size);
        let (wide, narrow) = self.widths();
        let (is_last, weight) = (self.is_last(index), |at| self.weight(index, at));
        let x = &layer.x[..all * hidden];
        let normed = any(&mut layer.normed, all * hidden);
        rms_norm(x, weight(0), *eps, normed, any(&mut layer.inverse, all));
        let (k, v) = (any(&mut layer.k, all * narrow), any(&mut layer.v, all * narrow));
        product(Matrix::rows(normed, hidden), Matrix::transposed(weight(2), hidden), k, false);
        product(Matrix::rows(normed, hidden), Matrix::transposed(weight(3), hidden), v, false);
        let ask = match is_last {
            true => {
                let ask = any(&mut layer.asking, asked * hidden);
                gather(normed, hidden, &rows.predicting, ask);
                &*ask
            }
            false => &*normed,
        };
        let q = any(&mut layer.q, count * wide);
        product(Matrix::rows(ask, hidden), Matrix::transposed(weight(1), hidden), q, false);
        self.rotate(index, q, k, 1.0);
        let heads = self.heads(index);
        let attended = any(&mut layer.attended, count * wide);
        let total = rows.segments.iter().map(|segment| heads.weights(segment, is_last)).sum();
        let mut weights = any(&mut layer.weights, total);
        for segment in &rows.segments {
            let own = weights.split_off_mut(..heads.weights(segment, is_last)).expect("the sum of all");
            attend(&heads, (segment, is_last), Inputs { q, k, v }, own, attended, scratch);
        }
        let middle = any(&mut layer.middle, count * hidden);
        match is_last {
            true => gather(x, hidden, &rows.predicting, middle),
            false => middle.copy_from_slice(x),
        }
        product(Matrix::rows(attended, wide), Matrix::transposed(weight(4), wide), middle, true);
        let normed = any(&mut layer.middle_normed, count * hidden);
        rms_norm(middle, weight(5), *eps, normed, any(&mut layer.middle_inverse, count));
        let (gate, up) = (any(&mut layer.gate, count * inner), any(&mut layer.up, count * inner));
        product(Matrix::rows(normed, hidden), Matrix::transposed(weight(6), hidden), gate, false);
        product(Matrix::rows(normed, hidden), Matrix::transposed(weight(7), hidden), up, false);
        let gated = any(&mut layer.gated, count * inner);
        swiglu(gate, up, gated);
        let next = any(next, count * hidden);
        next.copy_from_slice(middle);
        product(Matrix::rows(gated, inner), Matrix::transposed(weight(8), inner), next, true);
    }

    /// Turns `slopes.x`, the gradient of a layer's output, into that of its input, and adds the gradients of its parameters to `found`.
    pub(super) fn backward(
        &self,
        index: usize,
        layer: &mut Activations,
        slopes: &mut Slopes,
        scratch: &mut Scratch,
        found: &mut Found,
    ) {
        let norm = self.gated_backward(index, layer, slopes, found);
        self.attention_backward(index, layer, slopes, scratch, found);
        found.push((named(index, 5), norm));
        let (all, asked, _) = self.counts(index);
        let (hidden, rows) = (self.config.hidden_size, self.rows);
        let (wide, narrow) = self.widths();
        let weight = |at| self.weight(index, at);
        let Slopes { x, next, normed, asking, q, k, v, .. } = slopes;
        let to_normed = any(normed, all * hidden);
        product(Matrix::rows(&k[..all * narrow], narrow), Matrix::rows(weight(2), hidden), to_normed, false);
        product(Matrix::rows(&v[..all * narrow], narrow), Matrix::rows(weight(3), hidden), to_normed, true);
        if self.is_last(index) {
            let to_asking = any(asking, asked * hidden);
            product(Matrix::rows(&q[..asked * wide], wide), Matrix::rows(weight(1), hidden), to_asking, false);
            scatter(to_asking, hidden, &rows.predicting, to_normed);
            scatter(x, hidden, &rows.predicting, zeros(next, all * hidden));
            std::mem::swap(x, next);
        } else {
            product(Matrix::rows(&q[..all * wide], wide), Matrix::rows(weight(1), hidden), to_normed, true);
        }
        let mut to_norm = vec![0f32; hidden];
        rms_norm_gradient(&layer.x[..all * hidden], weight(0), &layer.inverse, to_normed, x, &mut to_norm);
        found.push((named(index, 0), to_norm));
    }

    /// Turns `slopes.x` into the gradient of the residual stream after attention, and returns that of the second norm's weights.
    fn gated_backward(
        &self,
        index: usize,
        layer: &mut Activations,
        slopes: &mut Slopes,
        found: &mut Found,
    ) -> Vec<f32> {
        let (hidden, inner) = (self.config.hidden_size, self.config.intermediate_size);
        let (.., count) = self.counts(index);
        let weight = |at| self.weight(index, at);
        let Slopes { x, normed, gated, .. } = slopes;
        let to_gated = any(gated, count * inner);
        let activated = &layer.gated[..count * inner];
        product(Matrix::rows(x, hidden), Matrix::rows(weight(8), inner), to_gated, false);
        add(found, (index, 8), Matrix::columns(x, hidden), Matrix::rows(activated, inner));
        let (gate, up) = (&mut layer.gate[..count * inner], &mut layer.up[..count * inner]);
        swiglu_gradient(gate, up, to_gated);
        let middle_normed = &layer.middle_normed[..count * hidden];
        add(found, (index, 6), Matrix::columns(gate, inner), Matrix::rows(middle_normed, hidden));
        add(found, (index, 7), Matrix::columns(up, inner), Matrix::rows(middle_normed, hidden));
        let to_normed = any(normed, count * hidden);
        product(Matrix::rows(gate, inner), Matrix::rows(weight(6), hidden), to_normed, false);
        product(Matrix::rows(up, inner), Matrix::rows(weight(7), hidden), to_normed, true);
        let mut to_norm = vec![0f32; hidden];
        let middle = &layer.middle[..count * hidden];
        rms_norm_gradient(middle, weight(5), &layer.middle_inverse, to_normed, x, &mut to_norm);
        to_norm
    }

    /// Writes the gradients of queries, keys and values into `slopes`.
    fn attention_backward(
        &self,
        index: usize,
        layer: &Activations,
        slopes: &mut Slopes,
        scratch: &mut Scratch,
        found: &mut Found,
    ) {
        let (all, asked, count) = self.counts(index);
        let (hidden, is_last) = (self.config.hidden_size, self.is_last(index));
        let (wide, narrow) = self.widths();
        let Slopes { x, attended, q, k, v, .. } = slopes;
        let to_attended = any(attended, count * wide);
        product(Matrix::rows(x, hidden), Matrix::rows(self.weight(index, 4), wide), to_attended, false);
        add(found, (index, 4), Matrix::columns(x, hidden), Matrix::rows(&layer.attended[..count * wide], wide));
        let to_q = any(q, count * wide);
        let (to_k, to_v) = (zeros(k, all * narrow), zeros(v, all * narrow));
        let heads = self.heads(index);
        let inputs = Inputs { q: &layer.q, k: &layer.k, v: &layer.v };
        let mut weights = layer.weights.as_slice();
        for segment in &self.rows.segments {
            let own = weights.split_off(..heads.weights(segment, is_last)).expect("the sum of all");
            let to = [&mut *to_q, &mut *to_k, &mut *to_v];
            attend_gradient(&heads, (segment, is_last), inputs, (own, to_attended), to, scratch);
        }
        self.rotate(index, to_q, to_k, -1.0);
        let normed = &layer.normed[..all * hidden];
        let ask = if is_last { &layer.asking[..asked * hidden] } else { normed };
        add(found, (index, 1), Matrix::columns(to_q, wide), Matrix::rows(ask, hidden));
        add(found, (index, 2), Matrix::columns(to_k, narrow), Matrix::rows(normed, hidden));
        add(found, (index, 3), Matrix::columns(to_v, narrow), Matrix::rows(normed, hidden));
    }

    /// Rotates queries and keys by their positions, back if `sign` is negative, in a layer with a rotary embedding.
    fn rotate(&self, index: usize, q: &mut [f32], k: &mut [f32], sign: f32) {
        let Position::Rotary(table) = self.config.layers[index].position else { return };
        let table = (self.tables[table].0.as_slice(), self.tables[table].1.as_slice());
        let (width, (wide, narrow)) = (self.config.head_dim, self.widths());
        let asking = if self.is_last(index) { &self.asking } else { &self.rows.positions };
        rotate(q, wide, width, asking, table, sign);
        rotate(k, narrow, width, &self.rows.positions, table, sign);
    }

    fn heads(&self, index: usize) -> Heads {
        let c = self.config;
        Heads {
            heads: c.num_heads,
            kv_heads: c.num_kv_heads,
            width: c.head_dim,
            scale: c.attention_scale,
            slopes: c.layers[index].position.slopes(c.num_heads),
        }
    }

    fn weight(&self, index: usize, at: usize) -> &[f32] {
        self.values[named(index, at).as_str()]
    }

    fn is_last(&self, index: usize) -> bool {
        index + 1 == self.config.layers.len()
    }

    /// Numbers of rows: all, those that predict a target, those with queries in this layer.
    fn counts(&self, index: usize) -> (usize, usize, usize) {
        let (all, asked) = (self.rows.ids.len(), self.rows.targets.len());
        (all, asked, if self.is_last(index) { asked } else { all })
    }

    /// Widths of queries, and of keys and values.
    fn widths(&self) -> (usize, usize) {
        let c = self.config;
        (c.num_heads * c.head_dim, c.num_kv_heads * c.head_dim)
    }
}

/// Name of a layer's parameter in a checkpoint.
fn named(layer: usize, at: usize) -> String {
    format!("model.layers.{layer}.{}.weight", NAMES[at])
}

/// Adds the gradient of a matrix, the product of what came out of it and what went in.
fn add(found: &mut Found, (layer, at): (usize, usize), rows: Matrix<'_>, columns: Matrix<'_>) {
    let mut gradient = vec![0f32; rows.count() * columns.width()];
    product(rows, columns, &mut gradient, false);
    found.push((named(layer, at), gradient));
}
