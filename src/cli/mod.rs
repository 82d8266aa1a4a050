//! The command line: one file a command. Raw arguments are resolved once into settings that the rest receives.

mod args;
mod bench;
mod catalogue;
mod doctor;
mod entry;
mod error;
mod exit;
mod generate;
mod model;
mod nupa_args;
mod printer;
mod progress;
mod rf_lengths;
mod run;
mod settings;
mod show;
pub mod stats;
mod suites;
mod values;

pub use entry::main;
pub use exit::Exit;
