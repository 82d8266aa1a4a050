//! The command line: one file a command. Raw arguments are resolved once into settings that the rest receives.

mod args;
mod catalogue;
mod doctor;
mod entry;
mod error;
mod exit;
mod model;
mod printer;
mod progress;
mod run;
mod settings;
mod show;
mod suites;
mod values;

pub use entry::main;
pub use exit::Exit;
