//! The template language of GSM-Symbolic: questions with places, drawn values, conditions, worked answers.

mod constants;
mod document;
mod evaluate;
mod expression;
mod fault;
mod grown;
mod instance;
mod pools;
mod rational;
#[cfg(test)]
mod released;
mod render;
mod search;
mod value;

pub use document::Template;
pub use evaluate::{Precision, Scope};
pub use fault::{TemplateError, TemplateFault};
pub use instance::{Instance, InstanceError, Instances};
pub use value::{EvalError, Value};
