//! From a completion's text to an answer.

pub mod nupa;
