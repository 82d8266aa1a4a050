//! The command line: one file a command. Raw arguments are resolved once into settings that the rest receives.

mod args;
mod bench;
mod catalogue;
mod compare;
mod doctor;
mod entry;
mod error;
mod events;
mod exit;
mod export;
mod generate;
mod import;
mod merge;
mod model;
mod nupa_args;
mod printer;
mod progress;
mod report;
mod reproduce;
mod result_args;
mod results;
mod rf_lengths;
mod run;
mod runs;
mod samples;
mod score;
mod session;
mod settings;
mod shell;
mod show;
pub mod stats;
mod stored;
mod suites;
mod values;

pub use entry::main;
pub use exit::Exit;
