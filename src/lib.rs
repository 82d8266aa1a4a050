//! `earnest` evaluates the numerical reasoning of open-weight language models on one machine: it loads a pinned
//! checkpoint itself, asks it thousands of questions through a continuous-batching engine, scores the answers exactly
//! and says what the numbers do and do not show.
//!
//! The modules, in the order a sample walks through them (`docs/architecture.md` has the picture):

pub mod hub;
pub mod checkpoint;
pub mod number;
pub mod suite;
pub mod prompt;
pub mod engine;
pub mod sandbox;
pub mod answer;
pub mod run;
pub mod stats;
pub mod report;
pub mod reproduce;
pub mod bench;
pub mod serve;
pub mod cli;
pub mod digest;
pub mod train;
pub mod experiment;
