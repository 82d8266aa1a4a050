//! One decoder for every architecture: weights packed for the kernels, and the forward pass of a step.

mod experts;
mod forward;
mod weights;

pub(crate) use forward::Forward;
pub use weights::LoadError;
pub(crate) use weights::Weights;
