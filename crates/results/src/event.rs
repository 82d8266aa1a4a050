//! Events of a run in progress.
use super::store::RunProgress;
use super::{Notice, Sample};
use earnest_engine::{Card, Statistics};

/// A consumer of events: a progress bar, a file of events, a test.
pub trait Reporter {
    /// Handles an event. Must return quickly, because the engine waits.
    fn event(&mut self, event: &RunEvent<'_>);
}

#[derive(Debug, Clone)]
pub enum RunEvent<'a> {
    /// A preparation before the first sample.
    Preparing(Stage),
    /// Time that the samples left take, where an earlier run of the model says it.
    Expected(Expected),
    /// Start of generation: number of samples in the plan, and the progress of earlier sessions. An adaptive run has at most so many.
    Started {
        run: &'a str,
        planned: usize,
        adaptive: bool,
        progress: &'a RunProgress,
        card: &'a Card,
        budgets: Budgets,
        /// Counters of the engine, which goes on counting from run to run.
        statistics: Statistics,
    },
    /// An engine step.
    Progress { prefilled: usize, decoded: usize, statistics: Statistics },
    /// A finished sample; it may have failed.
    Sample(&'a Sample),
    /// A fact that the user should know.
    Notice(Notice),
    /// The user stopped the session; rows are being written.
    Stopping,
    /// End of the session; none after an error.
    Ended(Option<Ended>),
}

impl RunEvent<'_> {
    /// Creates the event of a notice.
    pub fn notice(notice: impl Into<Notice>) -> Self {
        RunEvent::Notice(notice.into())
    }
}

/// End of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// Every sample of the plan has a row.
    Finished,
    /// The rows decide the run's condition; rows of later clusters may be written too.
    Decided,
    /// The user stopped it; requests in flight were dropped.
    Stopped,
    /// More samples failed in this session than its settings allow; the rows are written.
    TooManyFailures { failed: usize },
}

/// Time that samples take, after an earlier run.
#[derive(Debug, Clone, PartialEq)]
pub struct Expected {
    pub seconds: f64,
    /// True if every answer is taken to need its whole budget.
    pub at_most: bool,
    /// The earlier run, for people.
    pub source: String,
}

/// Numbers of new tokens that the first answers of a plan may have; 0 where nothing is generated. The first items of a suite are a
/// small picture of all.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Budgets {
    /// The smallest: after so many tokens the first of the answers that come together has ended.
    pub least: usize,
    pub mean: f64,
}

/// A stage of preparation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Stage {
    /// Config, tokenizer and chat template.
    OpeningCheckpoint,
    /// Bytes hashed of bytes in all.
    HashingFiles { done: u64, total: u64 },
    /// The engine loads the weights.
    LoadingWeights,
    /// The endpoint at this address is asked which models and APIs it has.
    ProbingEndpoint(String),
    /// The endpoint at this address gets the questions.
    AskingEndpoint(String),
}

/// Ignores all events.
impl Reporter for () {
    fn event(&mut self, _: &RunEvent<'_>) {}
}
