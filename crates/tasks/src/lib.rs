//! Numerical tasks: exact numbers, answer reading and the built-in suites.
//!
//! Nothing here opens a file or prints: callers hand in what they read.

pub mod anatomy;
mod counted;
mod nearest;
pub mod suite;

pub use counted::{agreeing, counted, the_first};
pub use nearest::nearest;
