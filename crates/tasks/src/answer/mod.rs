//! From completion text to an answer: what is visible and what was thought, which numbers a text offers, and the rules
//! that decide whether one of them is the expected answer. Pure functions; every one of them is linear in the text.

pub mod reader;

mod candidates;
mod matcher;
mod normalise;
mod program;
mod thinking;

pub use candidates::{Candidates, contains_number, distinct};
pub use matcher::{Expected, Matches, Shape, ShapeError, boundary, compat, final_number};
pub use normalise::Normalised;
pub use program::{CodeNumber, CodeOutcome, CodeRunner, NumberKind, Program};
pub use thinking::{Parts, Visible, opened_by, split_thinking, visible, without_markers};
