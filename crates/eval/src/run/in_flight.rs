//! Samples whose requests are in the engine.
use std::collections::HashMap;

use super::gathering::{Gathering, Outcome};
use earnest_engine::{Completion, Engine, Event, Rejected, Request, RequestId};
use earnest_results::{FailureKind, PlannedSample, Room, RunError, RunNotice, SampleFailure};

/// A sample in the engine.
pub(super) struct InFlight {
    pub(super) planned: PlannedSample,
    pub(super) prompt_sha256: String,
    /// None where the endpoint tokenises: their number comes with the completion.
    pub(super) prompt_tokens: Option<usize>,
    pub(super) opened_thinking: Option<&'static str>,
    pub(super) room: Room,
    pub(super) gathering: Gathering,
}

/// A request in the engine.
struct Sent {
    /// Index of its sample in the plan.
    index: usize,
    /// Its number among the sample's requests.
    part: usize,
    request: Request,
    retried: bool,
}

/// A sample with the outcome of its requests.
pub(super) type Finished = (InFlight, Outcome);

/// Samples in the engine, and their requests.
#[derive(Default)]
pub(super) struct SamplesInFlight {
    samples: HashMap<usize, InFlight>,
    requests: HashMap<RequestId, Sent>,
    /// Requests sent so far.
    sent: u64,
}

impl SamplesInFlight {
    /// Returns the number of requests.
    pub(super) fn requests(&self) -> usize {
        self.requests.len()
    }

    /// Submits a sample's requests and gives them their ids. Returns the sample if the engine takes none of them.
    pub(super) fn begin(
        &mut self,
        engine: &mut dyn Engine,
        sample: InFlight,
        requests: Vec<Request>,
    ) -> Option<Finished> {
        let index = sample.planned.index;
        self.samples.insert(index, sample);
        let mut finished = None;
        for (part, request) in requests.into_iter().enumerate() {
            let id = RequestId(self.sent);
            self.sent += 1;
            let sent = Sent { index, part, request: Request { id, ..request }, retried: false };
            finished = self.submit(engine, sent).or(finished);
        }
        finished
    }

    fn submit(&mut self, engine: &mut dyn Engine, sent: Sent) -> Option<Finished> {
        match engine.submit(sent.request.clone()) {
            Ok(()) => {
                self.requests.insert(sent.request.id, sent);
                None
            }
            Err(rejected) => self.finish(&sent, Err(refusal(&rejected))),
        }
    }

    /// Takes a completion; returns the sample if it was the last of its requests.
    pub(super) fn finished(&mut self, completion: Completion) -> Result<Option<Finished>, RunError> {
        let sent = self.take(completion.id)?;
        Ok(self.finish(&sent, Ok(completion)))
    }

    /// Takes a failure. A request that may succeed another time is submitted once more; `notice` gets the notice of it.
    pub(super) fn failed(
        &mut self,
        engine: &mut dyn Engine,
        (id, error, retryable): (RequestId, String, bool),
        notice: impl FnOnce(RunNotice),
    ) -> Result<Option<Finished>, RunError> {
        let sent = self.take(id)?;
        if retryable && !sent.retried {
            if let Some(sample) = self.samples.get(&sent.index) {
                notice(RunNotice::Retried { item: sample.planned.item.id.clone(), error });
            }
            return Ok(self.submit(engine, Sent { retried: true, ..sent }));
        }
        Ok(self.finish(&sent, Err(SampleFailure { kind: FailureKind::Engine, message: error, retryable })))
    }

    /// Cancels all requests and takes their ends, so that the engine is free for another run.
    pub(super) fn abandon(&mut self, engine: &mut dyn Engine) -> Result<(), RunError> {
        for id in self.requests.keys() {
            engine.cancel(*id);
        }
        self.samples.clear();
        while !self.requests.is_empty() {
            let events = engine.poll()?;
            // Nothing is in flight any more.
            if events.is_empty() {
                break;
            }
            for event in events {
                match event {
                    Event::Finished(completion) => drop(self.take(completion.id)?),
                    Event::Failed { id, .. } => drop(self.take(id)?),
                    Event::Progress { .. } | Event::CapacityChanged { .. } | Event::Generated { .. } => {}
                }
            }
        }
        Ok(())
    }

    fn take(&mut self, id: RequestId) -> Result<Sent, RunError> {
        self.requests.remove(&id).ok_or(RunError::UnknownRequest(id.0))
    }

    fn finish(&mut self, sent: &Sent, outcome: Outcome) -> Option<Finished> {
        let outcome = self.samples.get_mut(&sent.index)?.gathering.add(sent.part, outcome)?;
        Some((self.samples.remove(&sent.index)?, outcome))
    }
}

/// Returns the failure of a rejected request; retryable if a larger KV cache would accept it.
fn refusal(rejected: &Rejected) -> SampleFailure {
    let retryable = matches!(rejected, Rejected::LargerThanCache { .. });
    SampleFailure { kind: FailureKind::Refused, message: rejected.to_string(), retryable }
}
