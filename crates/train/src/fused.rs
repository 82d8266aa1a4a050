//! Attention and SwiGLU with their gradients, each fused into one operation on the CPU. Number models have short sequences and small
//! matrices: composed of tensor operations, these two would take longer than all matrix products together.
use candle_core::{CpuStorage, CustomOp2, CustomOp3, Layout, Result, Shape, Tensor, bail};

use super::kernels::{self, add_multiple, inner_product, softmax_row};
use super::norm::contiguous_values as values;

/// Computes `silu(gate) * up`, element by element, on the CPU.
pub(super) fn swiglu(gate: &Tensor, up: &Tensor) -> Result<Tensor> {
    gate.contiguous()?.apply_op2(&up.contiguous()?, SwiGlu)
}

struct SwiGlu;

impl CustomOp2 for SwiGlu {
    fn name(&self) -> &'static str {
        "swiglu"
    }

    fn cpu_fwd(&self, g: &CpuStorage, lg: &Layout, u: &CpuStorage, lu: &Layout) -> Result<(CpuStorage, Shape)> {
        let (g, u) = (values(g, lg)?, values(u, lu)?);
        let mut out = vec![0f32; g.len()];
        kernels::swiglu(g, u, &mut out);
        Ok((CpuStorage::F32(out), lg.shape().clone()))
    }

    fn bwd(&self, g: &Tensor, u: &Tensor, _: &Tensor, gradient: &Tensor) -> Result<(Option<Tensor>, Option<Tensor>)> {
        let flat = |x: &Tensor| x.flatten_all()?.to_vec1::<f32>();
        let (mut to_g, mut to_u, gradient) = (flat(g)?, flat(u)?, flat(gradient)?);
        kernels::swiglu_gradient(&mut to_g, &mut to_u, &gradient);
        let device = g.device();
        Ok((Some(Tensor::from_vec(to_g, g.shape(), device)?), Some(Tensor::from_vec(to_u, u.shape(), device)?)))
    }
}

/// Parameters of an attention, apart from queries, keys and values.
#[derive(Debug, Clone)]
pub(super) struct AttentionShape {
    /// Tokens in a sequence.
    pub(super) length: usize,
    /// First token with a query; those before it have keys and values only.
    pub(super) first: usize,
    /// Query heads.
    pub(super) heads: usize,
    /// Key/value heads.
    pub(super) kv_heads: usize,
    /// Width of a head.
    pub(super) head_dim: usize,
    /// Factor on the scores.
    pub(super) scale: f32,
    /// Cosines and sines, `[length, dims / 2]` each, and the rotated dimensions of a head.
    pub(super) rotation: Option<(Vec<f32>, Vec<f32>, usize)>,
    /// The ALiBi slope of every query head.
    pub(super) slopes: Option<Vec<f32>>,
    /// Sliding window: tokens visible to a query, itself included.
    pub(super) window: Option<usize>,
}

/// Computes causal attention. `q` is `[examples * (length - first), heads * head_dim]`, `k` and `v` are
/// `[examples * length, kv_heads * head_dim]`; the result has the shape of `q`. All on the CPU.
pub(super) fn attention(q: &Tensor, k: &Tensor, v: &Tensor, shape: AttentionShape) -> Result<Tensor> {
    q.contiguous()?.apply_op3(&k.contiguous()?, &v.contiguous()?, shape)
}

/// Buffers for one head of one sequence, rotated.
struct Head {
    /// `[queries, head_dim]`
    q: Vec<f32>,
    /// `[length, head_dim]`
    k: Vec<f32>,
    v: Vec<f32>,
    /// `[queries, length]`: attention weights; zero for masked keys.
    p: Vec<f32>,
}

impl AttentionShape {
    fn queries(&self) -> usize {
        self.length - self.first
    }

    /// Rotates a head's row at a position; `sign` -1 inverts the rotation.
    fn rotate(&self, row: &mut [f32], position: usize, sign: f32) {
        let Some((cos, sin, dims)) = &self.rotation else { return };
        let half = dims / 2;
        let (cos, sin) = (&cos[position * half..][..half], &sin[position * half..][..half]);
        let (a, b) = row[..*dims].split_at_mut(half);
        for (((a, b), cos), sin) in a.iter_mut().zip(b).zip(cos).zip(sin) {
            (*a, *b) = (*a * cos - sign * *b * sin, *b * cos + sign * *a * sin);
        }
    }

    /// Gathers the rows of one head of an example and computes its attention weights.
    fn head(&self, q: &[f32], k: &[f32], v: &[f32], head: usize, into: &mut Head) {
        let (d, kv) = (self.head_dim, head / (self.heads / self.kv_heads));
        let gather = |rows: &[f32], width: usize, at: usize, count: usize, into: &mut Vec<f32>| {
            into.clear();
            for row in 0..count {
                into.extend_from_slice(&rows[row * width + at * d..][..d]);
            }
        };
        gather(q, self.heads * d, head, self.queries(), &mut into.q);
        gather(k, self.kv_heads * d, kv, self.length, &mut into.k);
        gather(v, self.kv_heads * d, kv, self.length, &mut into.v);
        for (row, q) in into.q.chunks_exact_mut(d).enumerate() {
            self.rotate(q, self.first + row, 1.0);
        }
        for (row, k) in into.k.chunks_exact_mut(d).enumerate() {
            self.rotate(k, row, 1.0);
        }
        let slope = self.slopes.as_ref().map_or(0.0, |slopes| slopes[head]);
        into.p.clear();
        into.p.resize(self.queries() * self.length, 0.0);
        for (row, (q, p)) in into.q.chunks_exact(d).zip(into.p.chunks_exact_mut(self.length)).enumerate() {
            let position = self.first + row;
            let from = self.window.map_or(0, |window| (position + 1).saturating_sub(window));
            for (key, p) in p.iter_mut().enumerate().take(position + 1).skip(from) {
                *p = inner_product(q, &into.k[key * d..][..d]) * self.scale - slope * (position - key) as f32;
            }
            softmax_row(&mut p[from..=position]);
        }
    }

    fn scratch(&self) -> Head {
        Head { q: Vec::new(), k: Vec::new(), v: Vec::new(), p: Vec::new() }
    }
}

impl CustomOp3 for AttentionShape {
    fn name(&self) -> &'static str {
        "attention"
    }

    fn cpu_fwd(
        &self,
        q: &CpuStorage,
        lq: &Layout,
        k: &CpuStorage,
        lk: &Layout,
        v: &CpuStorage,
        lv: &Layout,
    ) -> Result<(CpuStorage, Shape)> {
        let (q, k, v) = (values(q, lq)?, values(k, lk)?, values(v, lv)?);
        let (d, wide, narrow) = (self.head_dim, self.heads * self.head_dim, self.kv_heads * self.head_dim);
        if q.len() % (self.queries() * wide) != 0 || k.len() % (self.length * narrow) != 0 || k.len() != v.len() {
            bail!("attention over shapes {:?}, {:?} and {:?}", lq.shape(), lk.shape(), lv.shape());
        }
        let mut out = vec![0f32; q.len()];
        let mut head_rows = self.scratch();
        let examples = q.chunks_exact(self.queries() * wide).zip(out.chunks_exact_mut(self.queries() * wide));
        let keys_values = k.chunks_exact(self.length * narrow).zip(v.chunks_exact(self.length * narrow));
        for ((q, out), (k, v)) in examples.zip(keys_values) {
            for head in 0..self.heads {
                self.head(q, k, v, head, &mut head_rows);
                for (row, p) in head_rows.p.chunks_exact(self.length).enumerate() {
                    let out = &mut out[row * wide + head * d..][..d];
                    for (p, v) in p.iter().zip(head_rows.v.chunks_exact(d)).take(self.first + row + 1) {
                        add_multiple(out, *p, v);
                    }
                }
            }
        }
        Ok((CpuStorage::F32(out), lq.shape().clone()))
    }

    fn bwd(
        &self,
        q: &Tensor,
        k: &Tensor,
        v: &Tensor,
        _: &Tensor,
        gradient: &Tensor,
    ) -> Result<(Option<Tensor>, Option<Tensor>, Option<Tensor>)> {
        let flat = |x: &Tensor| x.flatten_all()?.to_vec1::<f32>();
        let (qs, ks, vs, gs) = (flat(q)?, flat(k)?, flat(v)?, flat(gradient)?);
        let (d, wide, narrow) = (self.head_dim, self.heads * self.head_dim, self.kv_heads * self.head_dim);
        let (mut to_q, mut to_k, mut to_v) = (vec![0f32; qs.len()], vec![0f32; ks.len()], vec![0f32; vs.len()]);
        let mut head_rows = self.scratch();
        let (mut dq, mut dk) = (vec![0f32; d], vec![0f32; self.length * d]);
        let mut ds = vec![0f32; self.length];
        let (step_q, step_k) = (self.queries() * wide, self.length * narrow);
        for example in 0..qs.len() / step_q {
            let (from_q, from_k) = (example * step_q, example * step_k);
            let (q, g) = (&qs[from_q..][..step_q], &gs[from_q..][..step_q]);
            let (k, v) = (&ks[from_k..][..step_k], &vs[from_k..][..step_k]);
            for head in 0..self.heads {
                let kv = head / (self.heads / self.kv_heads);
                self.head(q, k, v, head, &mut head_rows);
                dk.fill(0.0);
                for (row, p) in head_rows.p.chunks_exact(self.length).enumerate() {
                    let visible = self.first + row + 1;
                    let g = &g[row * wide + head * d..][..d];
                    let mut mean = 0.0;
                    for ((p, ds), v) in p.iter().zip(&mut ds).zip(head_rows.v.chunks_exact(d)).take(visible) {
                        *ds = inner_product(g, v);
                        mean += p * *ds;
                    }
                    dq.fill(0.0);
                    for key in 0..visible {
                        let slope = p[key] * (ds[key] - mean) * self.scale;
                        add_multiple(&mut dq, slope, &head_rows.k[key * d..][..d]);
                        add_multiple(&mut dk[key * d..][..d], slope, &head_rows.q[row * d..][..d]);
                        add_multiple(&mut to_v[from_k + key * narrow + kv * d..][..d], p[key], g);
                    }
                    self.rotate(&mut dq, self.first + row, -1.0);
                    to_q[from_q + row * wide + head * d..][..d].copy_from_slice(&dq);
                }
                for (key, dk) in dk.chunks_exact_mut(d).enumerate() {
                    self.rotate(dk, key, -1.0);
                    add_multiple(&mut to_k[from_k + key * narrow + kv * d..][..d], 1.0, dk);
                }
            }
        }
        let tensor = |values: Vec<f32>, like: &Tensor| Tensor::from_vec(values, like.shape(), like.device()).map(Some);
        Ok((tensor(to_q, q)?, tensor(to_k, k)?, tensor(to_v, v)?))
    }
}
