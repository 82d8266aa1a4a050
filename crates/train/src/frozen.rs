//! Product with a frozen weight. candle's product computes the gradients of both factors; for the weights of a checkpoint that
//! would take a third of the time, and as much memory as all of them.
use candle_core::backend::BackendStorage;
use candle_core::{CpuStorage, CustomOp1, Layout, Result, Shape, Storage, Tensor, bail};

/// Computes the product of `x` (`[rows, in]`) and the transpose of `weight` (`[out, in]`), without a gradient of the weight.
pub(super) fn product(x: &Tensor, weight: &Tensor) -> Result<Tensor> {
    if !x.device().is_cpu() {
        return x.matmul(&weight.detach().t()?);
    }
    x.contiguous()?.apply_op1(FrozenProduct { weight: weight.detach() })
}

struct FrozenProduct {
    /// `[out, in]`
    weight: Tensor,
}

impl CustomOp1 for FrozenProduct {
    fn name(&self) -> &'static str {
        "frozen-product"
    }

    fn cpu_fwd(&self, x: &CpuStorage, layout: &Layout) -> Result<(CpuStorage, Shape)> {
        let (rows, inner) = layout.shape().dims2()?;
        let transposed = self.weight.t()?;
        let (width, out) = transposed.dims2()?;
        if width != inner {
            bail!("a product of {:?} with the transpose of {:?}", layout.shape(), self.weight.shape());
        }
        let (storage, of_weight) = transposed.storage_and_layout();
        let Storage::Cpu(weight) = &*storage else { bail!("a frozen weight on another device") };
        Ok((x.matmul(weight, (1, rows, out, inner), layout, of_weight)?, Shape::from((rows, out))))
    }

    fn bwd(&self, _: &Tensor, _: &Tensor, gradient: &Tensor) -> Result<Option<Tensor>> {
        gradient.matmul(&self.weight).map(Some)
    }
}

#[cfg(test)]
mod tests {
    use candle_core::{Device, Var};

    use super::super::parameters::normal;
    use super::*;

    #[test]
    fn product_has_the_gradient_of_one_factor() {
        let draw = |name, shape: &[usize]| normal(1, name, shape, 1.0, &Device::Cpu).unwrap();
        let x = Var::from_tensor(&draw("x", &[5, 7])).unwrap();
        let weight = Var::from_tensor(&draw("w", &[3, 7])).unwrap();
        let factor = draw("f", &[5, 3]);
        let ours = product(x.as_tensor(), weight.as_tensor()).unwrap();
        let theirs = x.matmul(&weight.t().unwrap()).unwrap();
        assert_eq!(ours.to_vec2::<f32>().unwrap(), theirs.to_vec2::<f32>().unwrap());
        let slopes = |out: &Tensor| (out * &factor).unwrap().sum_all().unwrap().backward().unwrap();
        let (ours, theirs) = (slopes(&ours), slopes(&theirs));
        let flat = |x: &Tensor| x.flatten_all().unwrap().to_vec1::<f32>().unwrap();
        for (a, b) in flat(ours.get(x.as_tensor()).unwrap()).iter().zip(flat(theirs.get(x.as_tensor()).unwrap())) {
            assert!((a - b).abs() < 1e-5, "{a} {b}");
        }
        assert!(ours.get(weight.as_tensor()).is_none());
    }
}
