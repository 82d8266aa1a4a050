//! Sessions: generation and scoring of a plan's samples, and the decision to end early.

mod decider;
mod in_flight;
mod gathering;
mod packing;
mod prompt_queue;
mod runner;
mod scorers;

pub use decider::Decider;
pub use runner::Runner;
