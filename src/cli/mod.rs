//! The command line: one file or folder a command.

pub mod stats;
