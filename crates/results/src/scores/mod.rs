//! Scores of a run by item, as comparisons use them, with the questions that tell items of two runs apart.

mod of_items;
mod question;
mod stored;

pub use of_items::{ItemScore, Scores};
pub use question::{Question, contains};
pub use stored::{CompareSettings, answers, scores};
