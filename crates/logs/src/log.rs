//! A log with its samples, and how logs are to be read.
use super::limits;
use super::sample::LogSample;
use crate::LogError;
use earnest_results::LogCard;

/// Longest record of a sample (a line, a zip entry, an element of a list) in bytes, unless [`FindOptions::longest`] says otherwise.
pub const LONGEST_SAMPLE: u64 = 256 << 20;

/// Settings of [`super::find`].
#[derive(Debug, Clone, PartialEq)]
pub struct FindOptions {
    /// Columns of plain tables; without them a plain table is no log.
    pub columns: Option<TableColumns>,
    /// Name of the model of logs that do not have it.
    pub model: Option<String>,
    /// Name of the task of logs that do not have it.
    pub task: Option<String>,
    /// Logs and samples that cannot be read are collected instead of ending the search.
    pub keep_going: bool,
    /// Longest record of a sample in bytes.
    pub longest: u64,
}

impl Default for FindOptions {
    fn default() -> Self {
        FindOptions { columns: None, model: None, task: None, keep_going: false, longest: LONGEST_SAMPLE }
    }
}

/// Columns of a plain table. Columns that are not named become fields of [`LogSample::document`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TableColumns {
    /// Id of the question; without it, the question's text is the id.
    pub id: Option<String>,
    pub question: Option<String>,
    pub prompt: Option<String>,
    pub completion: Option<String>,
    /// Columns of scores, each a scorer of its name; the first is the deciding one.
    pub scores: Vec<String>,
    pub answer: Option<String>,
    pub target: Option<String>,
    pub model: Option<String>,
    pub task: Option<String>,
    /// Repeat, from 0 or 1: any numbers in rising order.
    pub epoch: Option<String>,
    pub error: Option<String>,
    /// Id of the original that a row is a variant of; empty for an original.
    pub pair: Option<String>,
}

/// A log: its card, and its samples in its files.
#[derive(Debug)]
pub struct Log {
    pub card: LogCard,
    pub(super) source: Box<dyn Samples>,
    pub(super) keep_going: bool,
}

/// Samples that could not be read while others were.
#[derive(Debug, Default)]
pub struct Refused {
    pub count: usize,
    /// Errors of the first hundred.
    pub first: Vec<LogError>,
}

/// Number of errors that are kept.
const FIRST: usize = 100;

impl Refused {
    /// Counts an error.
    pub fn add(&mut self, error: LogError) {
        self.count += 1;
        if self.first.len() < FIRST {
            self.first.push(error);
        }
    }

    /// Counts those of another.
    pub fn extend(&mut self, other: Refused) {
        self.count += other.count;
        self.first.extend(other.first);
        self.first.truncate(FIRST);
    }
}

/// Receiver of samples.
pub(super) type Each<'a> = &'a mut dyn FnMut(Result<LogSample, LogError>) -> Result<(), LogError>;

/// Samples of one log in its files.
pub(super) trait Samples: std::fmt::Debug + Send + Sync {
    /// Hands on each sample, and the error of each that cannot be read; ends where the receiver returns an error.
    fn walk(&self, card: &LogCard, each: Each<'_>) -> Result<(), LogError>;

    /// SHA-256 in hexadecimal digits over the content of the samples.
    fn sha256(&self) -> Result<String, LogError>;
}

impl Log {
    /// Hands on the samples in the log's order, those of one document together. Every reader's samples pass here, where they are
    /// compared with the limits of names, scores and numbers.
    ///
    /// # Errors
    /// The receiver's, those of files, and that of the first sample that cannot be read. With [`FindOptions::keep_going`] such
    /// samples are left out and counted.
    pub fn samples(&self, each: &mut dyn FnMut(LogSample) -> Result<(), LogError>) -> Result<Refused, LogError> {
        let mut refused = Refused::default();
        let mut limits = limits::Samples::default();
        let checked = |sample: Result<LogSample, LogError>, limits: &mut limits::Samples| {
            let mut sample = sample?;
            limits.check(&self.card, &mut sample).map(|()| sample)
        };
        self.source.walk(&self.card, &mut |sample| match checked(sample, &mut limits) {
            Ok(sample) => each(sample),
            Err(error) if self.keep_going => {
                refused.add(error);
                Ok(())
            }
            Err(error) => Err(error),
        })?;
        Ok(refused)
    }

    /// True if samples that cannot be read are left out.
    pub fn keeps_going(&self) -> bool {
        self.keep_going
    }

    /// SHA-256 in hexadecimal digits over the content of the samples: the same log in another folder has the same. Reads the files.
    pub fn sha256(&self) -> Result<String, LogError> {
        self.source.sha256()
    }
}
