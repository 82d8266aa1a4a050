//! The run loop: submits the plan's prompts to the engine, scores completions and writes rows.
use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, Ordering};

use super::packing::Rows;
use super::prompt_queue::{Next, PendingSample, PromptQueue};
use super::scorers::{ScoredSample, Scorers, Unscored};
use super::store::{RunProgress, SampleWriter};
use super::{
    FailureKind, Generated, Generation, Plan, PlannedSample, Reporter, Room, RunError, RunEvent, SAMPLE_FORMAT, Sample,
    SampleFailure,
};
use crate::prompt::{Prompter, Wire};
use earnest_engine::{Completion, Engine, Event, Input, Logprobs, Rejected, Request, RequestId};
use earnest_tasks::answer::opened_by;
use earnest_tasks::suite::{Item, Suite};

/// Requests in flight, as a multiple of the engine's capacity: enough that it never waits for a prompt, with memory
/// independent of the plan.
const LOOK_AHEAD: usize = 2;

/// A session of a run.
pub struct Runner<'a> {
    /// Name of the run.
    pub run: &'a str,
    pub suite: &'a dyn Suite,
    pub plan: Plan,
    pub prompter: &'a Prompter<'a>,
    pub generation: &'a Generation,
    /// Largest fraction of the plan that may fail in this session. Failures of earlier sessions do not count, so that a later
    /// session can continue after them.
    pub fail_on_error: Option<f64>,
    /// Set when the user stops the session.
    pub stop: &'a AtomicBool,
}

/// End of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// Every sample of the plan has a row.
    Finished,
    /// The user stopped it; requests in flight were dropped.
    Stopped,
    /// More samples failed in this session than [`Runner::fail_on_error`] allows; the rows are written.
    TooManyFailures { failed: usize },
}

/// A request in the engine.
struct InFlight {
    planned: PlannedSample,
    prompt_sha256: String,
    prompt_tokens: usize,
    opened_thinking: Option<&'static str>,
    room: Room,
    request: Request,
    retried: bool,
}

impl Runner<'_> {
    /// Generates every sample of the plan that has no row. Rows written before an error are valid, so that a later session
    /// continues after them.
    pub fn run(
        &self,
        engine: &mut dyn Engine,
        writer: &mut SampleWriter<'_>,
        progress: &RunProgress,
        reporter: &mut dyn Reporter,
    ) -> Result<Ended, RunError> {
        let planned = self.plan.len(self.suite);
        reporter.event(&RunEvent::Started { run: self.run, planned, progress, card: &engine.card() });
        let mut failures = Failures { count: 0, limit: self.fail_on_error.map(|f| f * planned as f64) };
        // Completed answers are written even if the suite panics.
        let outcome = std::thread::scope(|scope| {
            let mut scorers = Scorers::start(scope, self.suite)?;
            let prompts = PromptQueue::start(scope, self.plan, self.suite, self.prompter, progress)?;
            let mut rows = Rows::start(writer, scope, self.plan, self.suite, self.prompter, progress)?;
            let session = || self.session(engine, &prompts, &mut scorers, &mut rows, &mut failures, reporter);
            let session = catch_unwind(AssertUnwindSafe(session));
            drop(prompts);
            // Completed answers are recorded even after an error; the first error is reported.
            let (mut recorded, mut panicked) = (Ok(()), None);
            loop {
                let next = || scorers.next().map(|scored| self.record(scored, &mut failures, &mut rows, reporter));
                match catch_unwind(AssertUnwindSafe(next)) {
                    Ok(None) => break,
                    Ok(Some(written)) => recorded = recorded.and(written),
                    Err(panic) => _ = panicked.get_or_insert(panic),
                }
            }
            let written = rows.write(matches!(session, Ok(Ok(Ended::Finished))));
            match (session, panicked) {
                (Err(panic), _) | (Ok(_), Some(panic)) => resume_unwind(panic),
                (Ok(outcome), None) => outcome.and_then(|ended| recorded.and(written).map(|()| ended)),
            }
        });
        reporter.event(&RunEvent::Ended(outcome.as_ref().ok().copied()));
        outcome
    }

    fn session(
        &self,
        engine: &mut dyn Engine,
        prompts: &PromptQueue,
        scorers: &mut Scorers,
        rows: &mut Rows<'_, '_>,
        failures: &mut Failures,
        reporter: &mut dyn Reporter,
    ) -> Result<Ended, RunError> {
        let card = engine.card();
        let mut capacity = card.in_flight;
        let mut in_flight: HashMap<RequestId, InFlight> = HashMap::new();
        let mut exhausted = false;
        loop {
            if self.stop.load(Ordering::Relaxed) {
                reporter.event(&RunEvent::Stopping);
                return Ok(Ended::Stopped);
            }
            let running = capacity.max(1);
            while !exhausted && in_flight.len() < running.saturating_mul(LOOK_AHEAD) {
                // Refused samples never fill the engine, so the stop flag is checked between them.
                if failures.too_many() || self.stop.load(Ordering::Relaxed) {
                    break;
                }
                // Waits only while the batch is not full.
                let pending = match prompts.next(in_flight.len() < running, self.stop)? {
                    Next::Ready(pending) => *pending,
                    Next::NotYet => break,
                    Next::None => {
                        exhausted = true;
                        break;
                    }
                };
                match self.submit(engine, pending, if card.context == 0 { usize::MAX } else { card.context }) {
                    Ok(flying) => {
                        in_flight.insert(flying.request.id, flying);
                    }
                    Err((place, failed)) => self.record((place, *failed), failures, rows, reporter)?,
                }
            }
            if failures.too_many() {
                return Ok(Ended::TooManyFailures { failed: failures.count });
            }
            if in_flight.is_empty() {
                if exhausted {
                    return Ok(Ended::Finished);
                }
                // Stopped before the first request.
                continue;
            }
            let polled = engine.poll();
            // Reported before an error, because it may explain it.
            if let Some(text) = engine.notice() {
                reporter.event(&RunEvent::Notice(text));
            }
            let events = polled?;
            if events.is_empty() && !in_flight.is_empty() {
                return Err(RunError::LostRequests(in_flight.len()));
            }
            for event in events {
                match event {
                    Event::Progress { prefilled, decoded } => {
                        let statistics = engine.statistics();
                        reporter.event(&RunEvent::Progress { prefilled, decoded, statistics });
                    }
                    Event::CapacityChanged { in_flight } => capacity = in_flight,
                    Event::Generated { .. } => {}
                    Event::Finished(completion) => {
                        let flying = in_flight.remove(&completion.id);
                        let flying = flying.ok_or(RunError::UnknownRequest(completion.id.0))?;
                        scorers.submit(self.completed(flying, *completion));
                    }
                    Event::Failed { id, error, retryable } => {
                        let mut flying = in_flight.remove(&id).ok_or(RunError::UnknownRequest(id.0))?;
                        if retryable && !flying.retried {
                            flying.retried = true;
                            let item = &flying.planned.item.id;
                            reporter.event(&RunEvent::Notice(format!("{item} failed ({error}); retrying once")));
                            match engine.submit(flying.request.clone()) {
                                Ok(()) => {
                                    in_flight.insert(id, flying);
                                }
                                Err(rejected) => {
                                    let sample = self.rejected(&flying, &rejected);
                                    self.record((flying.planned.index, sample), failures, rows, reporter)?;
                                }
                            }
                        } else {
                            let failure = SampleFailure { kind: FailureKind::Engine, message: error, retryable };
                            let sample = self.failed(&flying, failure);
                            self.record((flying.planned.index, sample), failures, rows, reporter)?;
                        }
                    }
                }
            }
            while let Some(scored) = scorers.ready() {
                self.record(scored, failures, rows, reporter)?;
            }
            rows.write_if_due()?;
        }
    }

    /// Submits a sample; returns the failed row of a sample that cannot be submitted.
    fn submit(
        &self,
        engine: &mut dyn Engine,
        PendingSample { planned, rendered }: PendingSample,
        context: usize,
    ) -> Result<InFlight, (usize, Box<Sample>)> {
        let granted = self.generation.room(planned.item.budget, 0, usize::MAX);
        let fail = |prompt: Option<(&str, usize)>, room: Room, kind, message| {
            let failure = SampleFailure { kind, message, retryable: false };
            let (sha256, tokens) = prompt.unwrap_or_default();
            let row = self.row(&planned.item, planned.sample, sha256, tokens, room);
            (planned.index, Box::new(Sample { failure: Some(failure), ..row }))
        };
        let rendered = rendered.map_err(|error| fail(None, granted, FailureKind::Prompt, error.to_string()))?;
        let tokens = rendered.ids.len();
        let room = self.generation.room(planned.item.budget, tokens, context);
        if room.max_tokens == 0 && room.budget > 0 {
            let message = format!("{tokens} prompt tokens leave no room in the context of {context} tokens");
            return Err(fail(Some((&rendered.sha256, tokens)), room, FailureKind::BeyondContext, message));
        }
        let input = match rendered.wire {
            Wire::Ids => Input::Ids(rendered.ids),
            Wire::Text => Input::Text(rendered.text.clone()),
            Wire::Messages(messages) => Input::Messages(messages),
        };
        let request = Request {
            id: RequestId(planned.index as u64),
            input,
            sampling: self.generation.sampling.clone(),
            sampling_key: self.generation.sampling_key(&planned.item.id, planned.sample),
            stop_strings: planned.item.stop_strings.clone(),
            keep_stop: planned.item.keep_stop,
            stop_ids: self.generation.stop_ids.clone(),
            max_tokens: room.max_tokens,
            logprobs: Logprobs::default(),
        };
        let submitted = engine.submit(request.clone());
        let flying = InFlight {
            planned,
            prompt_sha256: rendered.sha256,
            prompt_tokens: tokens,
            opened_thinking: opened_by(&rendered.text),
            room,
            request,
            retried: false,
        };
        match submitted {
            Ok(()) => Ok(flying),
            Err(rejected) => Err((flying.planned.index, Box::new(self.rejected(&flying, &rejected)))),
        }
    }

    /// Returns the unscored row of a completion.
    fn completed(&self, flying: InFlight, completion: Completion) -> Unscored {
        // The length of a prompt that an endpoint tokenises comes with the completion.
        let tokenised_here = matches!(flying.request.input, Input::Ids(_));
        let prompt_tokens = if tokenised_here { flying.prompt_tokens } else { completion.prompt_tokens };
        let generated = Generated {
            text: completion.text,
            ids: completion.ids,
            finish: completion.finish,
            cached_tokens: completion.cached_tokens,
            timings: completion.timings,
        };
        let sample = Sample { prompt_tokens, completion: Some(generated), ..self.row_of(&flying) };
        let InFlight { planned, opened_thinking, .. } = flying;
        Unscored { place: planned.index, item: planned.item, opened_thinking, sample }
    }

    /// Returns the row of a rejected request; retryable if a larger KV cache would accept it.
    fn rejected(&self, flying: &InFlight, rejected: &Rejected) -> Sample {
        let retryable = matches!(rejected, Rejected::LargerThanCache { .. });
        self.failed(flying, SampleFailure { kind: FailureKind::Refused, message: rejected.to_string(), retryable })
    }

    fn failed(&self, flying: &InFlight, failure: SampleFailure) -> Sample {
        Sample { failure: Some(failure), ..self.row_of(flying) }
    }

    fn row_of(&self, flying: &InFlight) -> Sample {
        let InFlight { planned, prompt_sha256, prompt_tokens, room, .. } = flying;
        self.row(&planned.item, planned.sample, prompt_sha256, *prompt_tokens, *room)
    }

    fn row(&self, item: &Item, sample: u32, prompt_sha256: &str, prompt_tokens: usize, room: Room) -> Sample {
        Sample {
            format: SAMPLE_FORMAT,
            run: self.run.to_owned(),
            suite: self.suite.name().to_owned(),
            item: item.id.clone(),
            sample,
            task: item.task.clone(),
            cluster: item.cluster.clone(),
            covariates: item.covariates.clone(),
            gold: item.gold.clone(),
            prompt_sha256: prompt_sha256.to_owned(),
            prompt_tokens,
            budget: room.budget,
            max_tokens: room.max_tokens,
            completion: None,
            score: None,
            failure: None,
        }
    }

    fn record(
        &self,
        (place, sample): ScoredSample,
        failures: &mut Failures,
        rows: &mut Rows<'_, '_>,
        reporter: &mut dyn Reporter,
    ) -> Result<(), RunError> {
        failures.count += usize::from(sample.failure.is_some());
        reporter.event(&RunEvent::Sample(&sample));
        rows.push(place, sample)
    }
}

/// Number of failed samples and its limit.
struct Failures {
    count: usize,
    limit: Option<f64>,
}

impl Failures {
    /// True if the limit is exceeded.
    fn too_many(&self) -> bool {
        self.limit.is_some_and(|limit| self.count as f64 > limit)
    }
}
