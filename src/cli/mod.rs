//! The command line, one module per command. Arguments become settings once; everything below the commands takes settings.

mod args;
mod bench;
mod candidates;
mod catalogue;
mod compare;
mod data;
mod devices;
mod doctor;
mod entry;
mod error;
mod events;
mod exit;
mod export;
mod figures;
mod generate;
mod import;
mod interrupt;
mod left_out;
mod log_args;
mod merge;
mod models;
mod offered;
mod output;
mod pdf;
mod perturb;
mod printer;
mod profile;
mod progress;
mod report;
mod reproduce;
mod result_args;
mod results;
mod results_folder;
mod rf_lengths;
mod run;
mod run_part;
mod runs;
mod samples;
mod sandbox_args;
mod score;
#[cfg(feature = "serve")]
mod serve;
mod shared_questions;
mod shell;
mod show;
pub mod stats;
mod study;
mod suites;
mod tally;
mod tasks;
#[cfg(feature = "train")]
mod train;
mod values;
#[cfg(feature = "view")]
mod view;

#[cfg(not(feature = "serve"))]
use left_out::serve;
#[cfg(not(feature = "train"))]
use left_out::train;
#[cfg(not(feature = "view"))]
use left_out::view;

pub use entry::main;
pub use exit::Exit;
