//! A differentiable decoder: the Llama architecture, with rotary embeddings, no positions or linear biases (ALiBi).

mod attention;
mod build;
mod linear;
mod model;
mod rows;
#[cfg(test)]
mod tests;

pub(crate) use build::{EMBEDDING, init_std};
pub use model::Decoder;
