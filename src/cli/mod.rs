//! The command line: one file a command. Raw arguments are resolved once into settings that the rest receives.

mod args;
mod catalogue;
mod doctor;
mod entry;
mod error;
mod exit;
mod export;
mod model;
mod printer;
mod progress;
mod report;
mod reproduce;
mod run;
mod settings;
mod show;
mod stored;
mod suites;
mod values;

pub use entry::main;
pub use exit::Exit;
