//! Causal attention of one segment and its gradient, for all heads.
use super::rows::Segment;
use crate::kernels::{add_scaled, kernels, multiply_add, softmax};

/// Keys are computed in groups of so many, the last of them padded.
const GROUP: usize = 8;

/// Widths of heads that have loops of their own; others share one.
macro_rules! by_head_width {
    ($width:expr, $name:ident::<$fused:ident>($($argument:expr),*)) => {
        match $width {
            16 => $name::<$fused, 16>($($argument),*),
            32 => $name::<$fused, 32>($($argument),*),
            64 => $name::<$fused, 64>($($argument),*),
            _ => $name::<$fused, 0>($($argument),*),
        }
    };
}

/// Dimensions of an attention.
#[derive(Debug, Clone)]
pub(super) struct Heads {
    pub(super) heads: usize,
    pub(super) kv_heads: usize,
    /// Width of a head.
    pub(super) width: usize,
    /// Factor on the scores.
    pub(super) scale: f32,
    /// What a head's scores lose per token of distance.
    pub(super) slopes: Option<Vec<f32>>,
}

/// Matrices of rotated queries, rotated keys, and values.
#[derive(Debug, Clone, Copy)]
pub(super) struct Inputs<'a> {
    pub(super) q: &'a [f32],
    pub(super) k: &'a [f32],
    pub(super) v: &'a [f32],
}

/// Buffers of one segment.
#[derive(Debug, Default)]
pub(super) struct Scratch {
    /// Keys or values of a head, transposed: `[width, padded keys]`.
    transposed: Vec<f32>,
    /// One row of slopes of the loss by score.
    slopes: Vec<f32>,
    /// Gradients of a head's keys and values, `[keys, width]`.
    keys: Vec<f32>,
    values: Vec<f32>,
}

impl Heads {
    /// Returns the number of attention weights of a segment: `[heads, queries, padded keys]`.
    pub(super) fn weights(&self, segment: &Segment, last: bool) -> usize {
        self.heads * segment.queries(last).count * segment.keys().next_multiple_of(GROUP)
    }
}

/// Transposes the rows of one head of a segment.
#[inline(always)]
fn transpose(matrix: &[f32], segment: &Segment, (at, row_width, width): (usize, usize, usize), into: &mut Vec<f32>) {
    let padded = segment.keys().next_multiple_of(GROUP);
    into.clear();
    into.resize(width * padded, 0.0);
    for key in 0..segment.keys() {
        let row = &matrix[segment.key_row(key) * row_width + at..][..width];
        for (i, value) in row.iter().enumerate() {
            into[i * padded + key] = *value;
        }
    }
}

/// Products of a row with transposed rows, in whole groups: at least the first `count`.
#[inline(always)]
fn products<const FUSED: bool>(row: &[f32], transposed: &[f32], padded: usize, count: usize, out: &mut [f32]) {
    for group in 0..count.div_ceil(GROUP) {
        let mut sums = [[0f32; GROUP]; 2];
        let (pairs, odd) = row.as_chunks::<2>();
        for (i, pair) in pairs.iter().enumerate() {
            for half in 0..2 {
                let column = &transposed[(2 * i + half) * padded + group * GROUP..][..GROUP];
                for lane in 0..GROUP {
                    sums[half][lane] = multiply_add::<FUSED>(pair[half], column[lane], sums[half][lane]);
                }
            }
        }
        for value in odd {
            let column = &transposed[(row.len() - 1) * padded + group * GROUP..][..GROUP];
            add_scaled::<FUSED>(&mut sums[0], *value, column);
        }
        for lane in 0..GROUP {
            out[group * GROUP + lane] = sums[0][lane] + sums[1][lane];
        }
    }
}

#[inline(always)]
fn forward<const FUSED: bool, const WIDTH: usize>(
    heads: &Heads,
    (segment, last): (&Segment, bool),
    inputs: Inputs<'_>,
    weights: &mut [f32],
    out: &mut [f32],
    scratch: &mut Scratch,
) {
    let width = if WIDTH > 0 { WIDTH } else { heads.width };
    let (wide, narrow, group) = (heads.heads * width, heads.kv_heads * width, heads.heads / heads.kv_heads);
    let (queries, padded) = (segment.queries(last), segment.keys().next_multiple_of(GROUP));
    for head in 0..heads.heads {
        let at = head / group * width;
        if head % group == 0 {
            transpose(inputs.k, segment, (at, narrow, width), &mut scratch.transposed);
        }
        let slope = heads.slopes.as_ref().map_or(0.0, |slopes| slopes[head]);
        let rows = weights[head * queries.count * padded..][..queries.count * padded].chunks_exact_mut(padded);
        for (query, p) in rows.enumerate() {
            let (position, row) = (queries.first + query, (queries.start + query) * wide + head * width);
            let visible = position + 1;
            products::<FUSED>(&inputs.q[row..][..width], &scratch.transposed, padded, visible, p);
            for (key, p) in p[..visible].iter_mut().enumerate() {
                *p = *p * heads.scale - slope * (position - key) as f32;
            }
            p[visible..].fill(0.0);
            softmax::<FUSED>(&mut p[..visible]);
            let out = &mut out[row..][..width];
            out.fill(0.0);
            for (key, p) in p[..visible].iter().enumerate() {
                add_scaled::<FUSED>(out, *p, &inputs.v[segment.key_row(key) * narrow + at..][..width]);
            }
        }
    }
}

#[inline(always)]
fn backward<const FUSED: bool, const WIDTH: usize>(
    heads: &Heads,
    (segment, last): (&Segment, bool),
    inputs: Inputs<'_>,
    (weights, gradient): (&[f32], &[f32]),
    [to_q, to_k, to_v]: [&mut [f32]; 3],
    scratch: &mut Scratch,
) {
    let width = if WIDTH > 0 { WIDTH } else { heads.width };
    let (wide, narrow, group) = (heads.heads * width, heads.kv_heads * width, heads.heads / heads.kv_heads);
    let (queries, padded) = (segment.queries(last), segment.keys().next_multiple_of(GROUP));
    let Scratch { transposed, slopes, keys, values } = scratch;
    slopes.resize(padded, 0.0);
    for head in 0..heads.heads {
        let at = head / group * width;
        if head % group == 0 {
            transpose(inputs.v, segment, (at, narrow, width), transposed);
            for sum in [&mut *keys, &mut *values] {
                sum.clear();
                sum.resize(segment.keys() * width, 0.0);
            }
        }
        let rows = weights[head * queries.count * padded..][..queries.count * padded].chunks_exact(padded);
        for (query, p) in rows.enumerate() {
            let visible = queries.first + query + 1;
            let row = (queries.start + query) * wide + head * width;
            let (g, q) = (&gradient[row..][..width], &inputs.q[row..][..width]);
            products::<FUSED>(g, transposed, padded, visible, slopes);
            let mean: f32 = p[..visible].iter().zip(&*slopes).map(|(p, slope)| p * slope).sum();
            let to_q = &mut to_q[row..][..width];
            to_q.fill(0.0);
            for key in 0..visible {
                let slope = p[key] * (slopes[key] - mean) * heads.scale;
                add_scaled::<FUSED>(to_q, slope, &inputs.k[segment.key_row(key) * narrow + at..][..width]);
                add_scaled::<FUSED>(&mut keys[key * width..][..width], slope, q);
                add_scaled::<FUSED>(&mut values[key * width..][..width], p[key], g);
            }
        }
        if head % group == group - 1 {
            for (matrix, sum) in [(&mut *to_k, &*keys), (&mut *to_v, &*values)] {
                for (key, sum) in sum.chunks_exact(width).enumerate() {
                    add_scaled::<FUSED>(&mut matrix[segment.key_row(key) * narrow + at..][..width], 1.0, sum);
                }
            }
        }
    }
}

kernels! {
    /// Attention of a segment's queries: writes their rows of `out`, and the segment's attention weights.
    fn attend(
        heads: &Heads,
        segment: (&Segment, bool),
        inputs: Inputs<'_>,
        weights: &mut [f32],
        out: &mut [f32],
        scratch: &mut Scratch,
    ) {
        by_head_width!(heads.width, forward::<FUSED>(heads, segment, inputs, weights, out, scratch));
    }

    /// Gradient of [`attend`], given its weights and the gradient of its output: written for queries, added for keys and values.
    fn attend_gradient(
        heads: &Heads,
        segment: (&Segment, bool),
        inputs: Inputs<'_>,
        given: (&[f32], &[f32]),
        to: [&mut [f32]; 3],
        scratch: &mut Scratch,
    ) {
        by_head_width!(heads.width, backward::<FUSED>(heads, segment, inputs, given, to, scratch));
    }

    /// Rotates every head of the rows of a matrix by their positions; `sign` -1 inverts the rotation. The tables have `width / 2`
    /// cosines and sines for each position.
    fn rotate(matrix: &mut [f32], row_width: usize, width: usize, positions: &[u32], table: (&[f32], &[f32]), sign: f32) {
        let half = width / 2;
        for (row, position) in matrix.chunks_exact_mut(row_width).zip(positions) {
            let at = *position as usize * half;
            let (cos, sin) = (&table.0[at..][..half], &table.1[at..][..half]);
            for head in row.chunks_exact_mut(width) {
                let (a, b) = head.split_at_mut(half);
                for (((a, b), cos), sin) in a.iter_mut().zip(b).zip(cos).zip(sin) {
                    (*a, *b) = (*a * cos - sign * *b * sin, *b * cos + sign * *a * sin);
                }
            }
        }
    }
}
