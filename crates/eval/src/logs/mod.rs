//! Logs of other evaluation tools, read into one form: a [`Log`] is one model's answers to one task.
//!
//! A reader keeps what the log says and guesses nothing: what is not there is `None`. Samples are handed on one by one, so that
//! memory does not grow with a log.

mod batch;
mod batches;
mod bounded;
mod card;
mod exports;
mod find;
mod folder;
mod identity;
mod inspect;
mod json;
mod limits;
mod lighteval;
mod lm_eval;
mod open;
mod recognise;
mod records;
mod rows;
mod scan;
mod search;
mod secrets;
mod table;
mod time;
mod unread;
mod zip;

pub(crate) use card::memory_of;
pub use card::{LogCard, LogLikelihood, LogPrompt, LogSample, LogScore, LogStatus, Reported, Tool};
pub use find::{FindOptions, Found, LONGEST_SAMPLE, Log, Refused, TableColumns, find};
pub(crate) use limits::{LONGEST_SAMPLE_TEXT, some_of};

#[cfg(test)]
mod layouts;
#[cfg(test)]
mod tests;
