//! Logs of other evaluation tools, read into one form: a [`Log`] is one model's answers to one task.
//!
//! [`find`] finds the logs of files and folders, [`import`] stores them as runs; what cannot be read is a [`LogError`].
//!
//! A reader keeps what the log says and guesses nothing: what is not there is `None`. Samples are handed on one by one, so that
//! memory does not grow with a log.

mod batch;
mod batches;
mod bounded;
mod error;
mod exports;
mod fault;
mod folder;
mod identity;
pub mod import;
mod inspect;
mod json;
mod limits;
mod lighteval;
mod lm_eval;
mod log;
mod open;
mod recognise;
mod records;
mod rows;
mod sample;
mod scan;
mod search;
mod secrets;
mod table;
mod time;
mod unread;
mod zip;

pub use error::LogError;
pub(crate) use limits::{LONGEST_SAMPLE_TEXT, some_of};
pub use log::{FindOptions, LONGEST_SAMPLE, Log, Refused, TableColumns};
pub(crate) use sample::{CHOICES, memory_of};
pub use sample::{LogLikelihood, LogPrompt, LogSample, LogScore};
pub use search::{Found, find};

#[cfg(test)]
mod layouts;
#[cfg(test)]
mod tests;
