//! Logs of other evaluation tools, read into one form: a [`Log`] is one model's answers to one task.
//!
//! A reader keeps what the log says and guesses nothing: what is not there is `None`. Samples are handed on one by one, so that
//! memory does not grow with a log.

mod card;
mod find;
mod identity;
mod inspect;
mod json;
mod lm_eval;
mod recognise;
mod records;
mod scan;
mod secrets;
mod time;
mod zip;

pub use card::{LogCard, LogLikelihood, LogPrompt, LogSample, LogScore, LogStatus, Reported, Tool};
pub use find::{FindOptions, Found, LONGEST_SAMPLE, Log, Refused, TableColumns, find};
