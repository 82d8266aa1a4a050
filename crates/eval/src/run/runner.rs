//! The run loop: submits the plan's prompts to the engine, scores completions and writes rows.
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, Ordering};

use super::Decider;
use super::gathering::Gathering;
use super::in_flight::{Finished, InFlight, SamplesInFlight};
use super::packing::Rows;
use super::prompt_queue::{Next, PendingSample, PromptQueue};
use super::scorers::{ScoredSample, Scorers, Unscored};
use crate::prompt::{Continuation, Prompter, Rendered, Wire};
use earnest_answer::opened_by;
use earnest_engine::{Card, Completion, Engine, Event, Input, Logprobs, Request, RequestId};
use earnest_results::store::{RunProgress, SampleWriter};
use earnest_results::{
    Budgets, Ended, FailureKind, Generated, Generation, Notice, Plan, PlannedSample, Reporter, Room, RunError,
    RunEvent, RunNotice, SAMPLE_FORMAT, Sample, SampleFailure, Teller,
};
use earnest_tasks::suite::{Item, Suite};

/// Requests in flight, as a multiple of the engine's capacity: enough that it never waits for a prompt, with memory
/// independent of the plan.
const LOOK_AHEAD: usize = 2;

/// A session of a run.
pub struct Runner<'a> {
    /// Name of the run.
    pub run: &'a str,
    pub suite: &'a Suite,
    pub plan: Plan,
    pub prompter: &'a Prompter<'a>,
    pub generation: &'a Generation,
    /// Largest fraction of the plan that may fail in this session. Failures of earlier sessions do not count, so that a later
    /// session can continue after them.
    pub fail_on_error: Option<f64>,
    /// Set when the user stops the session.
    pub stop: &'a AtomicBool,
}

/// A failed row and its index in the plan.
type Refused = (usize, Box<Sample>);

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
        self.run_until(None, engine, writer, progress, reporter)
    }

    /// As [`Runner::run`], until `decider`, which has the rows of earlier sessions, has decided.
    pub fn run_until(
        &self,
        decider: Option<&mut Decider>,
        engine: &mut dyn Engine,
        writer: &mut SampleWriter<'_>,
        progress: &RunProgress,
        reporter: &mut dyn Reporter,
    ) -> Result<Ended, RunError> {
        let planned = self.plan.len(self.suite);
        let card = engine.card();
        let budgets = self.budgets(&card);
        let (run, card, statistics) = (self.run, &card, engine.statistics());
        reporter.event(&RunEvent::Started { run, planned, adaptive: false, progress, card, budgets, statistics });
        let mut tally = Tally { failures: 0, most_failures: self.fail_on_error.map(|f| f * planned as f64), decider };
        // Completed answers are written even if the suite panics.
        let outcome = std::thread::scope(|scope| {
            let mut scorers = Scorers::start(scope, self.suite)?;
            let prompts = PromptQueue::start(scope, self.plan, self.suite, self.prompter, progress)?;
            let mut rows = Rows::start(writer, scope, self.plan, self.suite, self.prompter, progress)?;
            let session = || self.session(engine, &prompts, &mut scorers, &mut rows, &mut tally, reporter);
            let session = catch_unwind(AssertUnwindSafe(session));
            drop(prompts);
            // Completed answers are recorded even after an error; the first error is reported.
            let (mut recorded, mut panicked) = (Ok(()), None);
            loop {
                let next = || scorers.next().map(|scored| self.record(scored, &mut tally, &mut rows, reporter));
                match catch_unwind(AssertUnwindSafe(next)) {
                    Ok(None) => break,
                    Ok(Some(written)) => recorded = recorded.and(written),
                    Err(panic) => _ = panicked.get_or_insert(panic),
                }
            }
            let written = rows.write();
            match (session, panicked) {
                (Err(panic), _) | (Ok(_), Some(panic)) => resume_unwind(panic),
                (Ok(outcome), None) => outcome.and_then(|ended| recorded.and(written).map(|()| ended)),
            }
        });
        // The last answers may decide while they are scored.
        let decided = matches!(outcome, Ok(Ended::Finished | Ended::Stopped)) && tally.is_decided();
        let outcome = if decided { Ok(Ended::Decided) } else { outcome };
        reporter.event(&RunEvent::Ended(outcome.as_ref().ok().copied()));
        outcome
    }

    /// Returns the budgets of the answers that come together first.
    fn budgets(&self, card: &Card) -> Budgets {
        let first = self.suite.items.iter().take(card.in_flight.clamp(1, 1024));
        let generated = first.filter(|item| item.continuations.is_empty());
        let budgets: Vec<usize> =
            generated.map(|item| self.generation.room(item.budget, 0, usize::MAX).max_tokens).collect();
        let mean = budgets.iter().sum::<usize>() as f64 / budgets.len().max(1) as f64;
        Budgets { least: budgets.into_iter().min().unwrap_or(0), mean }
    }

    fn session(
        &self,
        engine: &mut dyn Engine,
        prompts: &PromptQueue,
        scorers: &mut Scorers,
        rows: &mut Rows<'_, '_>,
        tally: &mut Tally<'_>,
        reporter: &mut dyn Reporter,
    ) -> Result<Ended, RunError> {
        let card = engine.card();
        let mut capacity = card.in_flight;
        let mut in_flight = SamplesInFlight::default();
        let mut exhausted = false;
        loop {
            if self.stop.load(Ordering::Relaxed) {
                reporter.event(&RunEvent::Stopping);
                return Ok(Ended::Stopped);
            }
            if tally.is_decided() {
                in_flight.abandon(engine)?;
                return Ok(Ended::Decided);
            }
            let running = capacity.max(1);
            while !exhausted && in_flight.requests() < running.saturating_mul(LOOK_AHEAD) {
                // Refused samples never fill the engine, so the stop flag is checked between them.
                if tally.too_many_failures() || self.stop.load(Ordering::Relaxed) {
                    break;
                }
                // Waits only while the batch is not full.
                let pending = match prompts.next(in_flight.requests() < running, self.stop)? {
                    Next::Ready(pending) => *pending,
                    Next::NotYet => break,
                    Next::None => {
                        exhausted = true;
                        break;
                    }
                };
                match self.requests(pending, if card.context == 0 { usize::MAX } else { card.context }) {
                    Ok((sample, requests)) => {
                        if let Some(finished) = in_flight.begin(engine, sample, requests) {
                            self.finish(finished, scorers, rows, tally, reporter)?;
                        }
                    }
                    Err((index, failed)) => self.record((index, *failed), tally, rows, reporter)?,
                }
            }
            if tally.too_many_failures() {
                return Ok(Ended::TooManyFailures { failed: tally.failures });
            }
            if in_flight.requests() == 0 {
                if exhausted {
                    return Ok(Ended::Finished);
                }
                // Stopped before the first request.
                continue;
            }
            let polled = engine.poll();
            // Reported before an error, because it may explain it.
            if let Some(text) = engine.notice() {
                reporter.event(&RunEvent::Notice(Notice::told(Teller::Engine, text)));
            }
            let events = polled?;
            if events.is_empty() {
                return Err(RunError::LostRequests(in_flight.requests()));
            }
            for event in events {
                let finished = match event {
                    Event::Progress { prefilled, decoded } => {
                        let statistics = engine.statistics();
                        reporter.event(&RunEvent::Progress { prefilled, decoded, statistics });
                        None
                    }
                    Event::CapacityChanged { in_flight } => {
                        capacity = in_flight;
                        None
                    }
                    Event::Generated { .. } => None,
                    Event::Finished(completion) => in_flight.finished(*completion)?,
                    Event::Failed { id, error, retryable } => {
                        let notice = |notice: RunNotice| reporter.event(&RunEvent::notice(notice));
                        in_flight.failed(engine, (id, error, retryable), notice)?
                    }
                };
                if let Some(finished) = finished {
                    self.finish(finished, scorers, rows, tally, reporter)?;
                }
            }
            while let Some(scored) = scorers.ready() {
                self.record(scored, tally, rows, reporter)?;
            }
            rows.write_if_due()?;
        }
    }

    /// Returns the requests of a sample: one for its completion, or one for each continuation to score. A sample that cannot be asked
    /// is a failed row.
    fn requests(
        &self,
        PendingSample { planned, rendered }: PendingSample,
        context: usize,
    ) -> Result<(InFlight, Vec<Request>), Refused> {
        let granted = self.generation.room(planned.item.budget, 0, usize::MAX);
        let (rendered, continuations) = match rendered {
            Ok(rendered) => rendered,
            Err(error) => return Err(self.refused(&planned, None, granted, FailureKind::Prompt, error.to_string())),
        };
        let tokens = rendered.ids.len();
        let room = match continuations.is_empty() {
            true => self.generation.room(planned.item.budget, tokens, context),
            false => Room { budget: 0, max_tokens: 0 },
        };
        if let Some(message) = beyond_context(&continuations, tokens, room, context) {
            return Err(self.refused(&planned, Some(&rendered), room, FailureKind::BeyondContext, message));
        }
        let request = |input: Input, prompt_from: Option<usize>| Request {
            // The id is given when it is submitted.
            id: RequestId(0),
            input,
            sampling: self.generation.sampling.clone(),
            sampling_key: self.generation.sampling_key(&self.suite.scoring.draws(&planned.item), planned.sample),
            stop_strings: planned.item.stop_strings.clone(),
            keep_stop: planned.item.keep_stop,
            stop_ids: self.generation.stop_ids.clone(),
            max_tokens: room.max_tokens,
            logprobs: Logprobs { top: 0, prompt_from },
        };
        let opened_thinking = opened_by(&rendered.text);
        let prompt_tokens = match continuations.first() {
            Some(first) => first.context_tokens(),
            None => matches!(rendered.wire, Wire::Ids).then_some(tokens),
        };
        let requests = if continuations.is_empty() {
            let input = match rendered.wire {
                Wire::Ids => Input::Ids(rendered.ids),
                Wire::Text => Input::Text(rendered.text),
                Wire::Messages(messages) => Input::Messages(messages),
            };
            vec![request(input, None)]
        } else {
            continuations.into_iter().map(|one| request(one.whole, Some(one.from))).collect()
        };
        let gathering = Gathering::new(planned.item.continuations.clone());
        let prompt_sha256 = rendered.sha256;
        let sample = InFlight { planned, prompt_sha256, prompt_tokens, opened_thinking, room, gathering };
        Ok((sample, requests))
    }

    fn refused(
        &self,
        planned: &PlannedSample,
        prompt: Option<&Rendered>,
        room: Room,
        kind: FailureKind,
        message: String,
    ) -> Refused {
        let (sha256, tokens) = prompt.map_or(("", 0), |prompt| (prompt.sha256.as_str(), prompt.ids.len()));
        let row = self.row(&planned.item, planned.sample, sha256, tokens, room);
        let failure = SampleFailure { kind, message, retryable: false };
        (planned.index, Box::new(Sample { failure: Some(failure), ..row }))
    }

    /// Scores or records a sample whose requests have ended.
    fn finish(
        &self,
        (sample, outcome): Finished,
        scorers: &mut Scorers,
        rows: &mut Rows<'_, '_>,
        tally: &mut Tally<'_>,
        reporter: &mut dyn Reporter,
    ) -> Result<(), RunError> {
        let InFlight { planned, prompt_sha256, prompt_tokens, opened_thinking, room, .. } = sample;
        let row = |tokens| self.row(&planned.item, planned.sample, &prompt_sha256, tokens, room);
        match outcome {
            Ok(completion) => {
                let row = row(prompt_tokens.unwrap_or(completion.prompt_tokens));
                let sample = Sample { completion: Some(generated(completion)), ..row };
                scorers.submit(Unscored { index: planned.index, item: planned.item, opened_thinking, sample });
                Ok(())
            }
            Err(failure) => {
                let sample = Sample { failure: Some(failure), ..row(prompt_tokens.unwrap_or(0)) };
                self.record((planned.index, sample), tally, rows, reporter)
            }
        }
    }

    fn row(&self, item: &Item, sample: u32, prompt_sha256: &str, prompt_tokens: usize, room: Room) -> Sample {
        Sample {
            format: SAMPLE_FORMAT,
            run: self.run.to_owned(),
            suite: self.suite.scoring.name().to_owned(),
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
        (index, sample): ScoredSample,
        tally: &mut Tally<'_>,
        rows: &mut Rows<'_, '_>,
        reporter: &mut dyn Reporter,
    ) -> Result<(), RunError> {
        if !tally.counts(index, &sample) {
            return Ok(());
        }
        reporter.event(&RunEvent::Sample(&sample));
        rows.push(index, sample)
    }
}

/// Explains why a sample does not fit into the context. Nothing is cut off at its beginning: the model would be asked something else.
fn beyond_context(continuations: &[Continuation], tokens: usize, room: Room, context: usize) -> Option<String> {
    if continuations.is_empty() {
        let full = room.max_tokens == 0 && room.budget > 0;
        return full.then(|| format!("{tokens} prompt tokens leave no room in the context of {context} tokens"));
    }
    let longest = continuations.iter().filter_map(Continuation::tokens).max()?;
    (longest > context).then(|| {
        format!(
            "the prompt with its longest continuation has {longest} tokens, more than the context of {context} tokens"
        )
    })
}

fn generated(completion: Completion) -> Generated {
    Generated {
        text: completion.text,
        ids: completion.ids,
        counted_tokens: completion.counted_tokens,
        finish: completion.finish,
        cached_tokens: completion.cached_tokens,
        timings: completion.timings,
    }
}

/// Failed samples and the run's condition, on which the session may end.
struct Tally<'a> {
    failures: usize,
    most_failures: Option<f64>,
    decider: Option<&'a mut Decider>,
}

impl Tally<'_> {
    /// Counts a row. False if the run was decided without it: it would make the rows depend on the order in which they arrived.
    fn counts(&mut self, index: usize, sample: &Sample) -> bool {
        if self.decider.as_ref().is_some_and(|decider| decider.is_beyond(index)) {
            return false;
        }
        if let Some(decider) = &mut self.decider {
            decider.add(index, sample.score.as_ref().map(|score| score.correct));
        }
        self.failures += usize::from(sample.failure.is_some());
        true
    }

    /// True if the limit of failures is exceeded.
    fn too_many_failures(&self) -> bool {
        self.most_failures.is_some_and(|limit| self.failures as f64 > limit)
    }

    fn is_decided(&self) -> bool {
        self.decider.as_ref().is_some_and(|decider| decider.is_decided())
    }
}
