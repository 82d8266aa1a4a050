//! One decoder for every architecture: weights packed for the kernels, and the forward pass of a step.

mod attention;
mod experts;
mod feed_forward;
mod forward;
mod layer_inputs;
mod linear;
mod reader;
mod streams;
mod weights;

#[cfg(test)]
pub(crate) use experts::route;
pub(crate) use forward::Forward;
pub use weights::LoadError;
pub(crate) use weights::Weights;
