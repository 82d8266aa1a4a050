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
    prompt_logprobs: Vec<TokenLogprobs>,
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

/// Index of the first prompt token whose log-probability is asked for; the first token of all has none.
pub(crate) fn first_scored(request: &Request) -> Option<usize> {
    request.logprobs.prompt_from.map(|from| from.max(1))
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
        // Each prompt token's log-probability is taken once, also if the request was preempted in between.
        let missing = self.next_scored().is_some_and(|next| position + 1 >= next);
        samples || (missing && self.target(position).is_some())
    }

    /// Prompt token after a position, if its log-probability is asked for.
    pub(crate) fn target(&self, position: usize) -> Option<u32> {
        let from = first_scored(&self.request)?;
        self.prompt.get(position + 1).copied().filter(|_| position + 1 >= from)
    }

    /// Index of the prompt token whose log-probability is taken next, the prompt's length once all are; none if none is asked for.
    fn next_scored(&self) -> Option<usize> {
        let from = first_scored(&self.request)?;
        Some((from + self.prompt_logprobs.len()).min(self.prompt.len()))
    }

    /// Takes the log-probabilities of the prompt token after a position, if it is the next one.
    pub(crate) fn push_prompt_logprob(&mut self, position: usize, logprobs: Option<TokenLogprobs>) {
        if self.next_scored() == Some(position + 1) {
            self.prompt_logprobs.extend(logprobs);
        }
    }

    /// True once a request that generates nothing has all it asked for.
    pub(crate) fn is_scored(&self) -> bool {
        self.request.max_tokens == 0 && self.next_scored() == Some(self.prompt.len())
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

    /// Records the end of a request that generates nothing.
    pub(crate) fn end_scoring(&mut self, now: Instant) -> FinishReason {
        self.first_token.get_or_insert(now);
        FinishReason::Length
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
            counted_tokens: 0,
            text: self.text.into_text(),
            finish,
            prompt_tokens: self.prompt.len(),
            cached_tokens,
            logprobs: (wants.top > 0).then_some(self.logprobs),
            prompt_logprobs: wants.prompt_from.map(|_| self.prompt_logprobs),
            logits_hashes: (!self.hashes.is_empty()).then_some(self.hashes),
            timings,
        }
    }
}
