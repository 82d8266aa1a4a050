//! Chat templates: messages, dialects, and the engine that renders them within bounds.

pub(super) mod dialect;
pub(super) mod engine;
pub(super) mod message;
pub(super) mod python_values;
pub(super) mod template;
