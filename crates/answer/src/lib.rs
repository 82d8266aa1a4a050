//! From a completion to its answer: exact numbers, the reader of final answers, and Python's expressions.
//!
//! Pure functions, without files, network or other parts of earnest; every one of them is linear in the text or bounded.

pub mod number;
pub mod python;
pub mod reader;

mod candidates;
mod expected;
mod normalise;
mod program;
mod thinking;

pub use candidates::{Candidates, contains_number, distinct};
pub use expected::{Expected, Matches, Shape, ShapeError, boundary, compat, final_number};
pub use normalise::Normalised;
pub use program::{CodeNumber, CodeOutcome, CodeRunner, NumberKind, Program};
pub use thinking::{Parts, Visible, opened_by, split_thinking, visible, without_markers};
