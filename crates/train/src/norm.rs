//! RMS norm with its gradient as one operation; composed of tensor operations, it would take half of a small model's time.
use candle_core::{CpuStorage, CustomOp2, Layout, Result, Shape, Tensor, bail};

use super::kernels;

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

impl CustomOp2 for RmsNorm {
    fn name(&self) -> &'static str {
        "rms-norm"
    }

    fn cpu_fwd(&self, x: &CpuStorage, lx: &Layout, w: &CpuStorage, lw: &Layout) -> Result<(CpuStorage, Shape)> {
        let (x, w) = (contiguous_values(x, lx)?, contiguous_values(w, lw)?);
        let mut out = vec![0f32; x.len()];
        kernels::rms_norm(x, w, self.eps, &mut out, &mut vec![0f32; x.len() / w.len()]);
        Ok((CpuStorage::F32(out), lx.shape().clone()))
    }

    fn bwd(&self, x: &Tensor, w: &Tensor, _: &Tensor, gradient: &Tensor) -> Result<(Option<Tensor>, Option<Tensor>)> {
        let (rows, g) = (x.flatten_all()?.to_vec1::<f32>()?, gradient.contiguous()?.flatten_all()?.to_vec1::<f32>()?);
        let weights = w.to_vec1::<f32>()?;
        let (mut to_x, mut to_w) = (vec![0f32; rows.len()], vec![0f32; weights.len()]);
        let mut inverse = vec![0f32; rows.len() / weights.len()];
        kernels::rms_norm(&rows, &weights, self.eps, &mut to_x, &mut inverse);
        to_x.fill(0.0);
        kernels::rms_norm_gradient(&rows, &weights, &inverse, &g, &mut to_x, &mut to_w);
        let device = x.device();
        Ok((Some(Tensor::from_vec(to_x, x.shape(), device)?), Some(Tensor::from_vec(to_w, w.shape(), device)?)))
    }
}
