//! State of a request in flight, apart from its sequence in the scheduler.

use std::time::Instant;

use super::scheduler::Chunk;
use super::stop::StopChecker;
use crate::{Completion, Event, FinishReason, Request, Timings, TokenLogprobs};
use earnest_models::checkpoint::TextStream;

/// A request with its output so far.
pub(crate) struct RequestState {
    pub(crate) request: Request,
    pub(crate) prompt: Vec<u32>,
    pub(crate) ids: Vec<u32>,
    detokenizer: TextStream,
    text: StopChecker,
    logprobs: Vec<TokenLogprobs>,
    pub(crate) prompt_logprobs: Vec<f32>,
    hashes: Vec<u64>,
    /// The output is reported as it grows ([`crate::Engine::follow`]).
    pub(crate) followed: bool,
    /// Tokens, and bytes of text, that were reported.
    reported: (usize, usize),
    submitted: Instant,
    scheduled: Option<Instant>,
    first_token: Option<Instant>,
    last_token: Option<Instant>,
}

impl RequestState {
    /// Creates the state of a request that was just submitted.
    pub(crate) fn new(request: Request, prompt: Vec<u32>, detokenizer: TextStream) -> RequestState {
        RequestState {
            text: StopChecker::new(request.stop_strings.clone(), request.keep_stop),
            prompt,
            ids: vec![],
            detokenizer,
            logprobs: vec![],
            prompt_logprobs: vec![],
            hashes: vec![],
            followed: false,
            reported: (0, 0),
            submitted: Instant::now(),
            scheduled: None,
            first_token: None,
            last_token: None,
            request,
        }
    }

    /// Records when its first tokens were scheduled.
    pub(crate) fn schedule(&mut self, now: Instant) {
        self.scheduled.get_or_insert(now);
    }

    /// True if the logits after token `i` of a chunk are needed.
    pub(crate) fn wants_logits(&self, chunk: &Chunk, i: usize) -> bool {
        let position = chunk.start + i;
        let samples = chunk.samples && i + 1 == chunk.count;
        // Each prompt position's log-probability is taken once, also if the request was preempted in between.
        let next = self.prompt_logprobs.len();
        let scores = self.request.logprobs.prompt && position + 1 < self.prompt.len() && position >= next;
        samples || scores
    }

    /// Appends a generated token; returns the finish reason if the request ends with it.
    pub(crate) fn push(
        &mut self,
        token: u32,
        logprobs: Option<TokenLogprobs>,
        hash: Option<u64>,
        now: Instant,
    ) -> Option<FinishReason> {
        self.first_token.get_or_insert(now);
        self.last_token = Some(now);
        self.ids.push(token);
        self.logprobs.extend(logprobs);
        self.hashes.extend(hash);
        if self.request.stop_ids.contains(&token) {
            // The stop id is no text, whatever the tokenizer would print for it.
            Some(FinishReason::Eos)
        } else if self.text.push(self.detokenizer.push(token)) {
            Some(FinishReason::StopString)
        } else if self.ids.len() >= self.request.max_tokens {
            Some(FinishReason::Length)
        } else {
            None
        }
    }

    /// Output since the last call, if it is reported as it grows. Text that a stop string may still cut is held back.
    pub(crate) fn take_delta(&mut self) -> Option<Event> {
        if !self.followed {
            return None;
        }
        let (ids, bytes) = self.reported;
        let stable = self.text.stable();
        self.reported = (self.ids.len(), stable.len());
        let logprobs = (self.request.logprobs.top > 0).then(|| self.logprobs[ids..].to_vec());
        let (id, ids) = (self.request.id, self.ids[ids..].to_vec());
        Some(Event::Generated { id, ids, text: stable[bytes..].to_owned(), logprobs })
    }

    /// Makes its completion.
    pub(crate) fn finish(mut self, finish: FinishReason, cached_tokens: usize) -> Completion {
        let mut finish = finish;
        if finish != FinishReason::StopString && self.text.push(self.detokenizer.finish()) {
            finish = FinishReason::StopString;
        }
        let scheduled = self.scheduled.unwrap_or(self.submitted);
        let first = self.first_token.unwrap_or(scheduled);
        let timings = Timings {
            queued_s: (scheduled - self.submitted).as_secs_f64(),
            prefill_s: (first - scheduled).as_secs_f64(),
            decode_s: self.last_token.map_or(0.0, |t| (t - first).as_secs_f64()),
        };
        let wants = self.request.logprobs;
        Completion {
            id: self.request.id,
            ids: self.ids,
            text: self.text.into_text(),
            finish,
            prompt_tokens: self.prompt.len(),
            cached_tokens,
            logprobs: (wants.top > 0).then_some(self.logprobs),
            prompt_logprobs: wants.prompt.then_some(self.prompt_logprobs),
            logits_hashes: (!self.hashes.is_empty()).then_some(self.hashes),
            timings,
        }
    }
}
