//! AdamW (Loshchilov & Hutter, 2019) with clipping by the global norm.
use std::cell::RefCell;
use std::collections::BTreeMap;

use candle_core::{CpuStorage, InplaceOp1, Layout, Result, Storage, Tensor, Var, bail};
use serde::{Deserialize, Serialize};

use super::kernels::{self, Update};
use super::norm::contiguous_values;
use super::{Gradients, Parameters, TrainError};

/// Settings of AdamW. The defaults are those of the paper's program (transformers' Trainer).
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct AdamWSettings {
    /// Decay of the first moment.
    pub beta1: f64,
    /// Decay of the second moment.
    pub beta2: f64,
    /// Term added to the root of the second moment.
    pub eps: f64,
    /// Decoupled weight decay, of matrices only.
    pub weight_decay: f64,
    /// Maximum global norm of the gradient.
    pub clip: f64,
}

impl Default for AdamWSettings {
    fn default() -> Self {
        AdamWSettings { beta1: 0.9, beta2: 0.999, eps: 1e-8, weight_decay: 0.01, clip: 1.0 }
    }
}

impl AdamWSettings {
    /// Checks that the settings are numbers that an optimiser can have.
    ///
    /// # Errors
    /// [`TrainError::Setting`].
    pub(crate) fn check(&self) -> std::result::Result<(), TrainError> {
        let AdamWSettings { beta1, beta2, eps, weight_decay, clip } = *self;
        let invalid = |setting, problem: &str| Err(TrainError::Setting { setting, problem: problem.to_owned() });
        if ![beta1, beta2].iter().all(|beta| (0.0..1.0).contains(beta)) {
            return invalid("beta2", "beta1 and beta2 must be at least 0 and below 1");
        }
        if !(weight_decay >= 0.0 && weight_decay.is_finite()) {
            return invalid("weight_decay", "it must not be negative");
        }
        if !(eps > 0.0 && eps.is_finite() && clip > 0.0) {
            return invalid("clip", "clip and eps must be positive");
        }
        Ok(())
    }
}

/// Missing moment of a parameter, or one of another shape, by name.
#[derive(Debug, thiserror::Error)]
#[error("{0} is missing or has another shape")]
pub struct MissingMoment(pub String);

/// AdamW optimiser with the two moments of every parameter.
#[derive(Debug)]
pub struct AdamW {
    settings: AdamWSettings,
    /// Completed steps.
    step: u64,
    moments: BTreeMap<String, (Tensor, Tensor)>,
}

impl AdamW {
    /// Creates an optimiser with zero moments.
    pub fn new(settings: AdamWSettings) -> Self {
        AdamW { settings, step: 0, moments: BTreeMap::new() }
    }

    /// Returns the number of completed steps.
    pub fn steps(&self) -> u64 {
        self.step
    }

    /// Updates the parameters at this learning rate; returns the global norm of the gradient before clipping.
    ///
    /// # Errors
    /// A tensor operation that fails.
    pub fn step(&mut self, parameters: &Parameters, gradients: &Gradients, rate: f64) -> Result<f64> {
        let trained: Vec<(&str, &Var, &Tensor)> =
            parameters.iter().filter_map(|(name, variable)| Some((name, variable, gradients.get(name)?))).collect();
        let mut squares = 0.0;
        for (_, _, gradient) in &trained {
            squares += f64::from(gradient.sqr()?.sum_all()?.to_scalar::<f32>()?);
        }
        let norm = squares.sqrt();
        let s = self.settings;
        let scale = if norm > s.clip { s.clip / norm } else { 1.0 };
        self.step += 1;
        let correction1 = 1.0 - s.beta1.powi(self.step as i32);
        let correction2 = 1.0 - s.beta2.powi(self.step as i32);
        for (name, variable, gradient) in trained {
            if variable.device().is_cpu() {
                self.step_on_cpu(name, variable, gradient, scale, rate, (correction1, correction2))?;
                continue;
            }
            let gradient = (gradient * scale)?;
            let (first, second) = match self.moments.get(name) {
                Some((first, second)) => (first.clone(), second.clone()),
                None => (gradient.zeros_like()?, gradient.zeros_like()?),
            };
            let first = ((first * s.beta1)? + (&gradient * (1.0 - s.beta1))?)?;
            let second = ((second * s.beta2)? + (gradient.sqr()? * (1.0 - s.beta2))?)?;
            let root = ((&second / correction2)?.sqrt()? + s.eps)?;
            let update = ((&first / correction1)? / root)?;
            // Matrices decay, norms and biases do not.
            let decay = if variable.dims().len() > 1 { 1.0 - rate * s.weight_decay } else { 1.0 };
            variable.set(&((variable.as_tensor() * decay)? - (update * rate)?)?.detach())?;
            self.moments.insert(name.to_owned(), (first.detach(), second.detach()));
        }
        Ok(norm)
    }

    /// Updates one parameter in a single pass over its values; tensor operations would take a dozen passes.
    fn step_on_cpu(
        &mut self,
        name: &str,
        variable: &Var,
        gradient: &Tensor,
        scale: f64,
        rate: f64,
        (correction1, correction2): (f64, f64),
    ) -> Result<()> {
        let s = self.settings;
        if !self.moments.contains_key(name) {
            self.moments.insert(name.to_owned(), (variable.zeros_like()?, variable.zeros_like()?));
        }
        let (first, second) = &self.moments[name];
        let update = Update {
            scale: scale as f32,
            beta1: s.beta1 as f32,
            beta2: s.beta2 as f32,
            eps: s.eps as f32,
            // Matrices decay, norms and biases do not.
            decay: if variable.dims().len() > 1 { (1.0 - rate * s.weight_decay) as f32 } else { 1.0 },
            step: (rate / correction1) as f32,
            root: (1.0 / correction2) as f32,
        };
        let gradient = gradient.contiguous()?;
        let (storage, layout) = gradient.storage_and_layout();
        let Storage::Cpu(storage) = &*storage else { bail!("the gradient of {name} is not on the CPU") };
        let gradient = contiguous_values(storage, layout)?;
        edit(first, |first| {
            edit(second, |second| {
                edit(variable, |values| {
                    kernels::adamw(values, gradient, first, second, update);
                    Ok(())
                })
            })
        })
    }

    /// Moments by name, `NAME.first` and `NAME.second`, as they are saved.
    pub fn tensors(&self) -> impl Iterator<Item = (String, &Tensor)> {
        self.moments
            .iter()
            .flat_map(|(name, (first, second))| [(format!("{name}.first"), first), (format!("{name}.second"), second)])
    }

    /// Restores an optimiser with `step` completed steps and the moments that `tensors` returns by name.
    ///
    /// # Errors
    /// [`MissingMoment`].
    pub fn restore(
        settings: AdamWSettings,
        step: u64,
        parameters: &Parameters,
        mut tensors: impl FnMut(&str) -> Option<Tensor>,
    ) -> std::result::Result<Self, MissingMoment> {
        let mut moments = BTreeMap::new();
        if step > 0 {
            for (name, variable) in parameters.iter() {
                let mut moment = |kind: &str| {
                    let name = format!("{name}.{kind}");
                    tensors(&name).filter(|tensor| tensor.shape() == variable.shape()).ok_or(MissingMoment(name))
                };
                let pair = (moment("first")?, moment("second")?);
                moments.insert(name.to_owned(), pair);
            }
        }
        Ok(AdamW { settings, step, moments })
    }
}

/// Changes a tensor's values in place, without a copy.
fn edit<F: FnMut(&mut [f32]) -> Result<()>>(tensor: &Tensor, change: F) -> Result<()> {
    tensor.inplace_op1(&Edit(RefCell::new(change)))
}

struct Edit<F>(RefCell<F>);

impl<F: FnMut(&mut [f32]) -> Result<()>> InplaceOp1 for Edit<F> {
    fn name(&self) -> &'static str {
        "edit"
    }

    fn cpu_fwd(&self, storage: &mut CpuStorage, layout: &Layout) -> Result<()> {
        let (Some((start, end)), CpuStorage::F32(values)) = (layout.contiguous_offsets(), storage) else {
            bail!("this operation needs a contiguous tensor of 32-bit floats")
        };
        (self.0.borrow_mut())(&mut values[start..end])
    }
}
