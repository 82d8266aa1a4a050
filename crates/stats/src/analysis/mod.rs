//! Choices of an analysis that every command makes in the same way: the default mixed model of runs.

mod default_model;
mod ladder;
mod maximal;
#[cfg(test)]
mod tests;

pub use default_model::{DefaultModel, default_model};
pub use ladder::{ChosenModel, Step, fit_stepping_down};
pub use maximal::maximal_formula;
