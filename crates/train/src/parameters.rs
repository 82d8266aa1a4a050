//! Trained tensors of a model, and their gradients.
use std::collections::BTreeMap;

use candle_core::{Device, Result, Tensor, Var};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};
use sha2::{Digest, Sha256};

/// Trained tensors by checkpoint name, in alphabetical order, so that sums over all of them are reproducible.
#[derive(Debug, Clone, Default)]
pub struct Parameters(BTreeMap<String, Var>);

impl Parameters {
    /// Adds a tensor and returns its variable.
    pub fn insert(&mut self, name: &str, values: &Tensor) -> Result<Tensor> {
        let variable = Var::from_tensor(values)?;
        let tensor = variable.as_tensor().clone();
        self.0.insert(name.to_owned(), variable);
        Ok(tensor)
    }

    /// Iterates over the tensors in order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Var)> {
        self.0.iter().map(|(name, variable)| (name.as_str(), variable))
    }

    /// Returns the tensor with this name.
    pub fn get(&self, name: &str) -> Option<&Var> {
        self.0.get(name)
    }

    /// Returns the number of values in all tensors.
    pub fn count(&self) -> usize {
        self.0.values().map(|variable| variable.elem_count()).sum()
    }
}

/// Gradients of a loss by parameter name; parameters that it does not depend on have none.
#[derive(Debug, Clone, Default)]
pub struct Gradients(BTreeMap<String, Tensor>);

impl FromIterator<(String, Tensor)> for Gradients {
    fn from_iter<I: IntoIterator<Item = (String, Tensor)>>(gradients: I) -> Self {
        Gradients(gradients.into_iter().collect())
    }
}

impl Gradients {
    /// Computes the gradients of a loss.
    pub fn of(loss: &Tensor, parameters: &Parameters) -> Result<Self> {
        let store = loss.backward()?;
        let named = |(name, variable): (&str, &Var)| Some((name.to_owned(), store.get(variable.as_tensor())?.clone()));
        Ok(Gradients(parameters.iter().filter_map(named).collect()))
    }

    /// Adds the gradients of another part of the loss.
    pub fn add(&mut self, other: Gradients) -> Result<()> {
        for (name, gradient) in other.0 {
            let sum = match self.0.get(&name) {
                Some(own) => (own + gradient)?,
                None => gradient,
            };
            self.0.insert(name, sum);
        }
        Ok(())
    }

    /// Returns the gradient of the parameter with this name.
    pub fn get(&self, name: &str) -> Option<&Tensor> {
        self.0.get(name)
    }
}

/// Draws a tensor from a normal distribution with mean 0. The values depend on the seed and the name alone, not on other tensors
/// or the machine.
pub(super) fn normal(seed: u64, name: &str, shape: &[usize], std: f64, device: &Device) -> Result<Tensor> {
    let key = Sha256::new().chain_update(format!("earnest weights {seed} {name}")).finalize();
    let mut random = ChaCha8Rng::from_seed(key.into());
    let count: usize = shape.iter().product();
    // 53 random bits, never zero.
    let mut uniform = || ((random.next_u64() >> 11) as f64 + 0.5) / (1u64 << 53) as f64;
    let mut values = Vec::with_capacity(count + 1);
    while values.len() < count {
        // Box-Muller; `libm` is bit-identical on all platforms.
        let radius = std * libm::sqrt(-2.0 * libm::log(uniform()));
        let angle = 2.0 * std::f64::consts::PI * uniform();
        values.push((radius * libm::cos(angle)) as f32);
        values.push((radius * libm::sin(angle)) as f32);
    }
    values.truncate(count);
    Tensor::from_vec(values, shape, device)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_are_normal_and_depend_on_seed_and_name() {
        let draw = |seed, name| normal(seed, name, &[100, 101], 0.02, &Device::Cpu).unwrap();
        let values = draw(1, "a").flatten_all().unwrap().to_vec1::<f32>().unwrap();
        let mean = values.iter().sum::<f32>() / values.len() as f32;
        let variance = values.iter().map(|x| (x - mean).powi(2)).sum::<f32>() / values.len() as f32;
        assert!(mean.abs() < 0.001 && (variance.sqrt() - 0.02).abs() < 0.0006, "{mean} {variance}");
        assert_eq!(values, draw(1, "a").flatten_all().unwrap().to_vec1::<f32>().unwrap());
        assert_ne!(values, draw(1, "b").flatten_all().unwrap().to_vec1::<f32>().unwrap());
        assert_ne!(values, draw(2, "a").flatten_all().unwrap().to_vec1::<f32>().unwrap());
    }
}
