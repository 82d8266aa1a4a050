//! A request in flight, apart from its place in the schedule.

use std::time::Instant;

use super::stop::StopWatch;
use crate::checkpoint::TextStream;
use crate::engine::{Completion, Event, FinishReason, Request, RequestId, Timings, TokenLogprobs};

/// What the engine keeps of a request until it ends.
pub(crate) struct Flight {
    pub(crate) request: Request,
    pub(crate) prompt: Vec<u32>,
    pub(crate) ids: Vec<u32>,
    stream: TextStream,
    watch: StopWatch,
    logprobs: Vec<TokenLogprobs>,
    pub(crate) prompt_logprobs: Vec<f32>,
    hashes: Vec<u64>,
    /// Somebody wants to hear of the text before it is whole.
    pub(crate) followed: bool,
    /// Tokens, and bytes of text, that were reported already.
    told: (usize, usize),
    submitted: Instant,
    scheduled: Option<Instant>,
    first_token: Option<Instant>,
    last_token: Option<Instant>,
}

impl Flight {
    pub(crate) fn new(request: Request, prompt: Vec<u32>, stream: TextStream) -> Flight {
        Flight {
            watch: StopWatch::new(request.stop_strings.clone(), request.keep_stop),
            prompt,
            ids: vec![],
            stream,
            logprobs: vec![],
            prompt_logprobs: vec![],
            hashes: vec![],
            followed: false,
            told: (0, 0),
            submitted: Instant::now(),
            scheduled: None,
            first_token: None,
            last_token: None,
            request,
        }
    }

    /// Notes that tokens of it are computed from `now` on.
    pub(crate) fn schedule(&mut self, now: Instant) {
        self.scheduled.get_or_insert(now);
    }

    /// Takes a generated token; an answer ends the request.
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
        } else if self.watch.push(self.stream.push(token)) {
            Some(FinishReason::StopString)
        } else if self.ids.len() >= self.request.max_tokens {
            Some(FinishReason::Length)
        } else {
            None
        }
    }

    /// What was generated since this was last asked, for those who follow; text that may still be cut is kept back.
    pub(crate) fn told(&mut self, id: RequestId) -> Option<Event> {
        if !self.followed {
            return None;
        }
        let (ids, bytes) = self.told;
        let settled = self.watch.settled();
        self.told = (self.ids.len(), settled.len());
        let logprobs = (self.request.logprobs.top > 0).then(|| self.logprobs[ids..].to_vec());
        Some(Event::Generated { id, ids: self.ids[ids..].to_vec(), text: settled[bytes..].to_owned(), logprobs })
    }

    /// Ends it.
    pub(crate) fn finish(mut self, finish: FinishReason, cached_tokens: usize) -> Completion {
        let mut finish = finish;
        if finish != FinishReason::StopString && self.watch.push(self.stream.finish()) {
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
            text: self.watch.into_text(),
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
