//! What a run tells the world while it works.
use super::store::Standing;
use super::{Ended, Sample};
use earnest_engine::{Card, Statistics};

/// A consumer of events: a progress bar, a file of events, a test.
pub trait Reporter {
    /// Hears one event. Must return quickly: the engine waits meanwhile.
    fn event(&mut self, event: &RunEvent<'_>);
}

/// An event.
#[derive(Debug, Clone)]
pub enum RunEvent<'a> {
    /// Something that takes time before the first sample.
    Preparing(Stage),
    /// Generation begins: samples in the plan, and those that earlier sessions wrote.
    Started { run: &'a str, planned: usize, standing: &'a Standing, card: &'a Card },
    /// The engine did a step.
    Progress { prefilled: usize, decoded: usize, statistics: Statistics },
    /// A sample has its row; it may have failed.
    Sample(&'a Sample),
    /// Information for the user that may be left out.
    Message(String),
    /// A warning for the user.
    Warning(String),
    /// Trouble of the engine that ends nothing.
    Notice(String),
    /// The user asked to stop; rows are being written.
    Stopping,
    /// Every sample has its row, or the session was stopped; none where an error ended it.
    Ended(Option<Ended>),
}

/// What is being prepared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// Config, tokenizer and chat template.
    OpeningCheckpoint,
    /// Bytes hashed of bytes in all.
    HashingFiles { done: u64, total: u64 },
    /// The engine loads the weights.
    LoadingWeights,
}

/// For callers that do not listen.
impl Reporter for () {
    fn event(&mut self, _: &RunEvent<'_>) {}
}
