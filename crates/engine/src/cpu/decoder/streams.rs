//! Several residual streams, of which each layer computes one and predicts and corrects the others (Gemma 3n's AltUp), and the low-rank
//! branch beside attention (LAuReL).

use super::forward::norm;
use super::weights::{StreamWeights, Weights};
use crate::cpu::kernels::{MatmulScratch, PackedMatrix, Target, matmul};
use crate::cpu::team::Team;
use earnest_models::checkpoint::{DecoderConfig, Streams};

/// Least mean square of a stream that is scaled to another's.
const SMALLEST: f64 = 1e-5;

/// Streams, and buffers of their mixing. All are `[m, hidden]` where nothing else is said.
#[derive(Default)]
pub(crate) struct StreamBuffers {
    streams: Vec<Vec<f32>>,
    predictions: Vec<Vec<f32>>,
    branch: Vec<f32>,
    normed: Vec<f32>,
    /// `[m, streams]`
    routed: Vec<f32>,
    /// `[m, streams]` or `[m, streams * streams]`
    coefficients: Vec<f32>,
    /// `[m, rank]`
    low: Vec<f32>,
}

impl StreamBuffers {
    /// Makes the streams from the embeddings: themselves, and projections with their magnitude.
    pub(super) fn begin(&mut self, team: &Team, scratch: &mut MatmulScratch, spec: Streams, w: &Weights, x: &[f32]) {
        self.streams.resize_with(spec.count, Vec::new);
        self.predictions.resize_with(spec.count, Vec::new);
        self.streams[0].clear();
        self.streams[0].extend_from_slice(x);
        for (stream, (projection, _)) in self.streams[1..].iter_mut().zip(&w.stream_projections) {
            project(team, scratch, projection, x, x, stream);
        }
    }

    /// Predicts all streams, and copies the active one to `x`.
    pub(super) fn predict(
        &mut self,
        team: &Team,
        scratch: &mut MatmulScratch,
        c: &DecoderConfig,
        spec: Streams,
        w: &StreamWeights,
        x: &mut [f32],
    ) {
        let (n, hidden) = (spec.count, c.hidden_size);
        let active = std::mem::take(&mut self.streams[spec.active]);
        self.route(team, scratch, c, w, &active);
        self.streams[spec.active] = active;
        self.coefficients.resize(self.routed.len() * n, 0.0);
        matmul(team, scratch, &self.routed, &w.prediction, None, Target::Overwrite, &mut self.coefficients);
        for (to, prediction) in self.predictions.iter_mut().enumerate() {
            prediction.clear();
            prediction.extend_from_slice(&self.streams[to]);
            for (t, row) in prediction.chunks_exact_mut(hidden).enumerate() {
                let coefficients = &self.coefficients[t * n * n + to * n..][..n];
                for (i, o) in row.iter_mut().enumerate() {
                    let mut sum = 0.0;
                    for (from, coefficient) in self.streams.iter().zip(coefficients) {
                        sum += from[t * hidden + i] * coefficient;
                    }
                    *o += sum;
                }
            }
        }
        x.copy_from_slice(&self.predictions[spec.active]);
    }

    /// Computes the branch beside attention from its normed input `h`: `h + norm(up(down(h)))`.
    pub(super) fn branch(
        &mut self,
        team: &Team,
        scratch: &mut MatmulScratch,
        c: &DecoderConfig,
        w: &StreamWeights,
        h: &[f32],
    ) {
        self.low.resize(h.len() / c.hidden_size * w.branch_down.n(), 0.0);
        matmul(team, scratch, h, &w.branch_down, None, Target::Overwrite, &mut self.low);
        self.normed.resize(h.len(), 0.0);
        matmul(team, scratch, &self.low, &w.branch_up, None, Target::Overwrite, &mut self.normed);
        self.branch.resize(h.len(), 0.0);
        norm(team, c, &w.branch_norm, &self.normed, &mut self.branch);
        self.branch.iter_mut().zip(h).for_each(|(b, h)| *b += h);
    }

    /// `x = (x + branch) / sqrt(2)`
    pub(super) fn join_branch(&self, x: &mut [f32]) {
        x.iter_mut().zip(&self.branch).for_each(|(x, b)| *x = (*x + b) / std::f32::consts::SQRT_2);
    }

    /// Corrects all streams by how the layer's output `x` differs from its prediction, and writes the scaled active one to `x`.
    pub(super) fn correct(
        &mut self,
        team: &Team,
        scratch: &mut MatmulScratch,
        c: &DecoderConfig,
        spec: Streams,
        w: &StreamWeights,
        x: &mut [f32],
    ) {
        let (n, hidden) = (spec.count, c.hidden_size);
        self.route(team, scratch, c, w, x);
        self.coefficients.resize(self.routed.len(), 0.0);
        matmul(team, scratch, &self.routed, &w.correction, None, Target::Overwrite, &mut self.coefficients);
        let expected = &self.predictions[spec.active];
        for (to, stream) in self.streams.iter_mut().enumerate() {
            for (t, row) in stream.chunks_exact_mut(hidden).enumerate() {
                let coefficient = self.coefficients[t * n + to] + 1.0;
                for (i, o) in row.iter_mut().enumerate() {
                    let at = t * hidden + i;
                    *o = (x[at] - expected[at]) * coefficient + self.predictions[to][at];
                }
            }
        }
        x.copy_from_slice(&self.streams[spec.active]);
        if !w.scale.is_empty() {
            for row in x.chunks_exact_mut(hidden) {
                row.iter_mut().zip(&w.scale).for_each(|(x, s)| *x *= s);
            }
        }
    }

    /// Adds the layer's input to all streams but the first.
    pub(super) fn add_input(&mut self, input: &[f32]) {
        for stream in &mut self.streams[1..] {
            stream.iter_mut().zip(input).for_each(|(s, i)| *s += i);
        }
    }

    /// `x` = mean of the first stream and projections of the others with its magnitude.
    pub(super) fn end(&mut self, team: &Team, scratch: &mut MatmulScratch, w: &Weights, x: &mut [f32]) {
        let Some((first, others)) = self.streams.split_first() else { return };
        x.copy_from_slice(first);
        for (stream, (_, projection)) in others.iter().zip(&w.stream_projections) {
            project(team, scratch, projection, stream, first, &mut self.normed);
            x.iter_mut().zip(&self.normed).for_each(|(x, y)| *x += y);
        }
        let count = (others.len() + 1) as f32;
        x.iter_mut().for_each(|x| *x /= count);
    }

    /// `routed = tanh(router(norm(x)))`
    fn route(&mut self, team: &Team, scratch: &mut MatmulScratch, c: &DecoderConfig, w: &StreamWeights, x: &[f32]) {
        self.normed.resize(x.len(), 0.0);
        norm(team, c, &w.router_norm, x, &mut self.normed);
        self.routed.resize(x.len() / c.hidden_size * w.router.n(), 0.0);
        matmul(team, scratch, &self.normed, &w.router, None, Target::Overwrite, &mut self.routed);
        self.routed.iter_mut().for_each(|r| *r = libm::tanhf(*r));
    }
}

/// `out = projection(x)`, each row scaled to the magnitude of the row of `like`.
fn project(
    team: &Team,
    scratch: &mut MatmulScratch,
    projection: &PackedMatrix,
    x: &[f32],
    like: &[f32],
    out: &mut Vec<f32>,
) {
    let hidden = projection.n();
    out.resize(x.len(), 0.0);
    matmul(team, scratch, x, projection, None, Target::Overwrite, out);
    let square = |row: &[f32]| row.iter().map(|v| f64::from(*v) * f64::from(*v)).sum::<f64>() / hidden as f64;
    for (row, like) in out.chunks_exact_mut(hidden).zip(like.chunks_exact(hidden)) {
        let factor = (square(like).sqrt() / square(row).max(SMALLEST).sqrt()) as f32;
        row.iter_mut().for_each(|v| *v *= factor);
    }
}
