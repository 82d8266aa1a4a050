//! Low-rank adaptation (LoRA, Hu et al. 2021): a weight W becomes `W + alpha / rank * B A`, of which A and B are trained.
use candle_core::{CpuStorage, CustomOp1, DType, Device, Layout, Result as TensorResult, Shape, Tensor, bail};
use serde::{Deserialize, Serialize};

use super::TrainError;
use super::norm::contiguous_values;
use super::parameters::{Parameters, normal};

/// Projections that can be adapted, by checkpoint name.
pub const TARGETS: [&str; 7] = ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"];

/// Settings of adapters. The defaults are the paper's (A.4.5).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AdapterSettings {
    /// Rank: the rows of A.
    pub rank: usize,
    /// Scale: the product is multiplied by `alpha / rank`.
    pub alpha: f64,
    /// Adapted projections, out of [`TARGETS`].
    pub targets: Vec<String>,
    /// Dropout rate on the inputs of adapters (the paper: 0.1).
    #[serde(default)]
    pub dropout: f64,
}

/// Highest rank of an update. Above the width of a projection a rank adds nothing.
const MOST_RANK: usize = 8_192;

impl Default for AdapterSettings {
    fn default() -> Self {
        AdapterSettings { rank: 128, alpha: 32.0, targets: TARGETS.map(str::to_owned).to_vec(), dropout: 0.0 }
    }
}

impl AdapterSettings {
    /// Checks rank, alpha, dropout and targets.
    ///
    /// # Errors
    /// [`TrainError::Setting`].
    pub fn check(&self) -> Result<(), TrainError> {
        let wrong = |setting, problem| Err(TrainError::Setting { setting, problem });
        if self.rank > MOST_RANK {
            return wrong("rank", format!("{} is more than {MOST_RANK}", self.rank));
        }
        if self.rank == 0 || !self.alpha.is_finite() || self.alpha <= 0.0 {
            return wrong("rank", "rank and alpha must be positive".into());
        }
        if !(0.0..1.0).contains(&self.dropout) {
            return wrong("dropout", "it must be at least 0 and below 1".into());
        }
        match self.targets.iter().find(|target| !TARGETS.contains(&target.as_str())) {
            Some(unknown) => {
                wrong("targets", format!("unknown projection {unknown}; choose from {}", TARGETS.join(", ")))
            }
            None if self.targets.is_empty() => wrong("targets", "name at least one projection".into()),
            None => Ok(()),
        }
    }
}

/// Low-rank update of one weight.
#[derive(Debug, Clone)]
pub struct Adapter {
    /// `[rank, in]`
    a: Tensor,
    /// `[out, rank]`, initially zero: training starts from the unmodified checkpoint.
    b: Tensor,
    scale: f64,
    dropout: Option<Dropout>,
}

impl Adapter {
    /// Creates fresh factors for the weight `NAME.weight` of this shape, and adds them to `parameters` under PEFT's names.
    pub(super) fn new(
        settings: &AdapterSettings,
        name: &str,
        (rows, columns): (usize, usize),
        seed: u64,
        parameters: &mut Parameters,
        device: &Device,
    ) -> TensorResult<Self> {
        let (name_a, name_b) = (format!("{name}.lora_A.weight"), format!("{name}.lora_B.weight"));
        // Standard deviation of PEFT's uniform initialisation.
        let std = (1.0 / (3.0 * columns as f64)).sqrt();
        let a = normal(seed, &name_a, &[settings.rank, columns], std, device)?;
        let b = Tensor::zeros((rows, settings.rank), DType::F32, device)?;
        Ok(Adapter {
            a: parameters.insert(&name_a, &a)?,
            b: parameters.insert(&name_b, &b)?,
            scale: settings.alpha / settings.rank as f64,
            dropout: None,
        })
    }

    /// Returns the adapter with dropout on its inputs.
    pub(super) fn with_dropout(&self, rate: f64, key: u64) -> Self {
        let dropout = (rate > 0.0).then_some(Dropout { rate, key });
        Adapter { dropout, ..self.clone() }
    }

    /// Returns the adapter without gradients. It shares the values, so it is always up to date.
    pub(super) fn detached(&self) -> Self {
        Adapter { a: self.a.detach(), b: self.b.detach(), scale: self.scale, dropout: None }
    }

    /// Computes the update's contribution to the output for `x` (`[rows, in]`).
    pub(super) fn apply(&self, x: &Tensor) -> TensorResult<Tensor> {
        let x = match self.dropout {
            Some(dropout) if x.device().is_cpu() => x.contiguous()?.apply_op1(dropout)?,
            Some(_) => bail!("dropout is implemented for the CPU only"),
            None => x.clone(),
        };
        x.matmul(&self.a.t()?)?.matmul(&self.b.t()?)? * self.scale
    }

    /// Computes the update of the weight, `alpha / rank * B A`.
    pub(super) fn delta(&self) -> TensorResult<Tensor> {
        self.b.matmul(&self.a)? * self.scale
    }
}

/// Dropout: sets a share of the inputs to zero and scales the others up. The mask depends on the key and the index alone.
#[derive(Debug, Clone, Copy)]
struct Dropout {
    rate: f64,
    key: u64,
}

impl Dropout {
    fn apply(self, values: &[f32]) -> Vec<f32> {
        let scale = (1.0 / (1.0 - self.rate)) as f32;
        let limit = (self.rate * (1u64 << 32) as f64) as u64;
        let factor = |index: usize| if splitmix64(self.key ^ index as u64) >> 32 < limit { 0.0 } else { scale };
        values.iter().enumerate().map(|(index, value)| value * factor(index)).collect()
    }
}

/// SplitMix64 (Steele et al. 2014): a hash whose bits all depend on all bits of the key.
pub(super) fn splitmix64(key: u64) -> u64 {
    let mut z = key.wrapping_add(0x9E37_79B9_7F4A_7C15);
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

impl CustomOp1 for Dropout {
    fn name(&self) -> &'static str {
        "dropout"
    }

    fn cpu_fwd(&self, x: &CpuStorage, layout: &Layout) -> TensorResult<(CpuStorage, Shape)> {
        Ok((CpuStorage::F32(self.apply(contiguous_values(x, layout)?)), layout.shape().clone()))
    }

    fn bwd(&self, _: &Tensor, _: &Tensor, gradient: &Tensor) -> TensorResult<Option<Tensor>> {
        let values = self.apply(&gradient.flatten_all()?.to_vec1::<f32>()?);
        Tensor::from_vec(values, gradient.shape(), gradient.device()).map(Some)
    }
}

#[cfg(test)]
mod tests {
    use candle_core::Var;

    use super::*;

    #[test]
    fn dropout_zeroes_its_share_and_has_the_matching_gradient() {
        let dropout = Dropout { rate: 0.25, key: 7 };
        let x = Var::from_tensor(&Tensor::ones((100, 100), DType::F32, &Device::Cpu).unwrap()).unwrap();
        let out = x.apply_op1(dropout).unwrap();
        let flat = |x: &Tensor| x.flatten_all().unwrap().to_vec1::<f32>().unwrap();
        let values = flat(&out);
        let zeros = values.iter().filter(|value| **value == 0.0).count();
        assert!((2400..2600).contains(&zeros), "{zeros}");
        assert!((values.iter().sum::<f32>() / 1e4 - 1.0).abs() < 0.02);
        let slopes = out.sum_all().unwrap().backward().unwrap();
        assert_eq!(flat(slopes.get(x.as_tensor()).unwrap()), values);
        assert_ne!(flat(&x.apply_op1(Dropout { key: 8, ..dropout }).unwrap()), values);
    }
}
