//! RMS norm with its gradient as one operation; composed of tensor operations, it would take half of a small model's time.
use candle_core::{CpuStorage, CustomOp2, Layout, Result, Shape, Tensor, bail};

/// Computes `x / sqrt(mean(x^2) + eps) * weight` over the last dimension.
pub(super) fn rms_norm(x: &Tensor, weight: &Tensor, eps: f32) -> Result<Tensor> {
    if x.device().is_cpu() {
        return x.contiguous()?.apply_op2(weight, RmsNorm { eps });
    }
    let mean = x.sqr()?.mean_keepdim(candle_core::D::Minus1)?;
    x.broadcast_div(&(mean + f64::from(eps))?.sqrt()?)?.broadcast_mul(weight)
}

struct RmsNorm {
    eps: f32,
}

/// Values of a contiguous layout.
///
/// # Errors
/// If the layout is not contiguous.
pub(super) fn contiguous_values<'a>(storage: &'a CpuStorage, layout: &Layout) -> Result<&'a [f32]> {
    let Some((start, end)) = layout.contiguous_offsets() else { bail!("this operation needs a contiguous tensor") };
    Ok(&storage.as_slice::<f32>()?[start..end])
}

impl RmsNorm {
    /// Reciprocal of the root mean square of a row.
    fn inverse(&self, row: &[f32]) -> f32 {
        let squares: f32 = row.iter().map(|x| x * x).sum();
        1.0 / (squares / row.len() as f32 + self.eps).sqrt()
    }
}

impl CustomOp2 for RmsNorm {
    fn name(&self) -> &'static str {
        "rms-norm"
    }

    fn cpu_fwd(&self, x: &CpuStorage, lx: &Layout, w: &CpuStorage, lw: &Layout) -> Result<(CpuStorage, Shape)> {
        let (x, w) = (contiguous_values(x, lx)?, contiguous_values(w, lw)?);
        let mut out = Vec::with_capacity(x.len());
        for row in x.chunks_exact(w.len()) {
            let inverse = self.inverse(row);
            out.extend(row.iter().zip(w).map(|(x, w)| x * inverse * w));
        }
        Ok((CpuStorage::F32(out), lx.shape().clone()))
    }

    fn bwd(&self, x: &Tensor, w: &Tensor, _: &Tensor, gradient: &Tensor) -> Result<(Option<Tensor>, Option<Tensor>)> {
        let width = w.elem_count();
        let (rows, g) = (x.flatten_all()?.to_vec1::<f32>()?, gradient.contiguous()?.flatten_all()?.to_vec1::<f32>()?);
        let weights = w.to_vec1::<f32>()?;
        let mut to_x = Vec::with_capacity(rows.len());
        let mut to_w = vec![0f32; width];
        for (row, g) in rows.chunks_exact(width).zip(g.chunks_exact(width)) {
            let inverse = self.inverse(row);
            let mut along = 0f32;
            for (((x, g), w), to_w) in row.iter().zip(g).zip(&weights).zip(&mut to_w) {
                *to_w += g * x * inverse;
                along += g * w * x;
            }
            // d/dx of x * r(x) with r' = -r^3 x / n.
            let pull = along * inverse * inverse * inverse / width as f32;
            to_x.extend(row.iter().zip(g).zip(&weights).map(|((x, g), w)| g * w * inverse - pull * x));
        }
        let device = x.device();
        Ok((Some(Tensor::from_vec(to_x, x.shape(), device)?), Some(Tensor::from_vec(to_w, w.shape(), device)?)))
    }
}
