//! Low-rank adaptation (LoRA, Hu et al. 2021): a matrix W is used as `W + alpha / rank * B A`, and A and B are trained.
use candle_core::{DType, Device, Result as TensorResult, Tensor};
use serde::{Deserialize, Serialize};

use super::TrainError;
use super::parameters::{Parameters, normal};

/// Projections that can be adapted, by their names in a checkpoint.
pub const TARGETS: [&str; 7] = ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"];

/// What is adapted, and how strongly. The defaults are the paper's (A.4.5).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AdapterSettings {
    /// Rows of A.
    pub rank: usize,
    /// The product counts `alpha / rank` times.
    pub alpha: f64,
    /// Names out of [`TARGETS`].
    pub targets: Vec<String>,
}

impl Default for AdapterSettings {
    fn default() -> Self {
        AdapterSettings { rank: 128, alpha: 32.0, targets: TARGETS.map(str::to_owned).to_vec() }
    }
}

impl AdapterSettings {
    /// Checks rank and names.
    pub fn check(&self) -> Result<(), TrainError> {
        let wrong = |setting, problem| Err(TrainError::Setting { setting, problem });
        if self.rank == 0 || !self.alpha.is_finite() || self.alpha <= 0.0 {
            return wrong("rank", "rank and alpha are positive".into());
        }
        match self.targets.iter().find(|target| !TARGETS.contains(&target.as_str())) {
            Some(unknown) => {
                wrong("targets", format!("there is no projection {unknown}; there are {}", TARGETS.join(", ")))
            }
            None if self.targets.is_empty() => wrong("targets", "at least one projection is adapted".into()),
            None => Ok(()),
        }
    }
}

/// The two factors of one matrix.
#[derive(Debug, Clone)]
pub struct Adapter {
    /// `[rank, in]`
    a: Tensor,
    /// `[out, rank]`, zero at first: the adapted model begins as the loaded one.
    b: Tensor,
    scale: f64,
}

impl Adapter {
    /// Fresh factors for the matrix `NAME.weight` of this shape, added to the parameters as PEFT names them.
    pub(super) fn new(
        settings: &AdapterSettings,
        name: &str,
        (rows, columns): (usize, usize),
        seed: u64,
        parameters: &mut Parameters,
        device: &Device,
    ) -> TensorResult<Self> {
        let (name_a, name_b) = (format!("{name}.lora_A.weight"), format!("{name}.lora_B.weight"));
        // PEFT draws uniformly with this deviation.
        let deviation = (1.0 / (3.0 * columns as f64)).sqrt();
        let a = normal(seed, &name_a, &[settings.rank, columns], deviation, device)?;
        let b = Tensor::zeros((rows, settings.rank), DType::F32, device)?;
        Ok(Adapter {
            a: parameters.insert(&name_a, &a)?,
            b: parameters.insert(&name_b, &b)?,
            scale: settings.alpha / settings.rank as f64,
        })
    }

    /// What is added to the product of `x` (`[rows, in]`) with the matrix.
    pub(super) fn apply(&self, x: &Tensor) -> TensorResult<Tensor> {
        x.matmul(&self.a.t()?)?.matmul(&self.b.t()?)? * self.scale
    }

    /// What is added to the matrix itself.
    pub(super) fn delta(&self) -> TensorResult<Tensor> {
        self.b.matmul(&self.a)? * self.scale
    }
}
