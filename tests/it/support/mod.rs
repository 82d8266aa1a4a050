//! Support for tests of runs: a tiny suite, a source of prompts, a scripted engine.

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};

use earnest_engine::{
    Card, Completion, Engine, EngineError, Event, FinishReason, Input, Rejected, Request, RequestId, Statistics,
    Timings, TokenLogprobs,
};
use earnest_eval::prompt::{PromptError, PromptSource};
use earnest_models::checkpoint::ChatMessage;

pub mod choices;
pub mod sums;
pub use choices::Choices;
pub use sums::{Sums, manifest};

/// One id a character.
pub struct Letters;

impl PromptSource for Letters {
    fn encode(&self, text: &str) -> Result<Vec<u32>, PromptError> {
        Ok(text.chars().map(u32::from).collect())
    }
    fn bos(&self) -> Option<u32> {
        None
    }
    fn adds_bos(&self) -> bool {
        false
    }
    fn has_template(&self) -> bool {
        false
    }
    fn apply_template(&self, _: &[ChatMessage]) -> Result<String, PromptError> {
        Err(PromptError::NoTemplate)
    }
}

/// Scripted response of the engine to a prompt.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    Answer,
    /// Fails so many times, then answers.
    Fail {
        times: usize,
        retryable: bool,
    },
    Refuse,
}

/// Answers additions out of order, one or two a step. Its answers depend on prompt and sampling key only.
pub struct Scripted<'a> {
    pub fate: Box<dyn Fn(&str) -> Fate + 'a>,
    /// Sets the flag after so many completions.
    pub stop_after: Option<(usize, &'a AtomicBool)>,
    /// The whole engine fails after so many completions.
    pub break_after: Option<usize>,
    pub context: usize,
    pub in_flight: usize,
    pub most_in_flight: usize,
    pub asked: Vec<String>,
    pub waiting: VecDeque<(Request, String)>,
    pub failures: BTreeMap<String, usize>,
    pub finished: usize,
    pub steps: usize,
}

impl<'a> Scripted<'a> {
    pub fn new() -> Self {
        Scripted {
            fate: Box::new(|_| Fate::Answer),
            stop_after: None,
            break_after: None,
            context: 64,
            in_flight: 3,
            most_in_flight: 0,
            asked: Vec::new(),
            waiting: VecDeque::new(),
            failures: BTreeMap::new(),
            finished: 0,
            steps: 0,
        }
    }

    /// Log-probabilities that depend on the prompt only.
    fn scored(&self, request: Request, prompt: &str, from: usize) -> Event {
        let logprob = |character: char| -1.0 / (1.0 + f32::from(character as u16));
        Event::Finished(Box::new(Completion {
            id: request.id,
            ids: Vec::new(),
            counted_tokens: 0,
            text: String::new(),
            finish: FinishReason::Length,
            prompt_tokens: prompt.chars().count(),
            cached_tokens: 0,
            logprobs: None,
            prompt_logprobs: Some(
                prompt
                    .chars()
                    .skip(from)
                    .map(|character| TokenLogprobs { chosen: logprob(character), top: Vec::new() })
                    .collect(),
            ),
            logits_hashes: None,
            timings: Timings { queued_s: 0.0, prefill_s: 0.25, decode_s: 0.0 },
        }))
    }

    fn answer(&mut self, request: Request, prompt: &str) -> Event {
        self.finished += 1;
        if let Some(from) = request.logprobs.prompt_from {
            return self.scored(request, prompt, from);
        }
        let number: usize = prompt.split('+').next().and_then(|number| number.parse().ok()).unwrap_or(0);
        let text = format!("{} key {}", number + 1, request.sampling_key.0[0]);
        Event::Finished(Box::new(Completion {
            id: request.id,
            ids: text.chars().map(u32::from).collect(),
            counted_tokens: 0,
            finish: if number % 5 == 4 { FinishReason::Length } else { FinishReason::StopString },
            text,
            prompt_tokens: prompt.len(),
            cached_tokens: 0,
            logprobs: None,
            prompt_logprobs: None,
            logits_hashes: None,
            timings: Timings::default(),
        }))
    }
}

impl Engine for Scripted<'_> {
    fn submit(&mut self, request: Request) -> Result<(), Rejected> {
        let Input::Ids(ids) = &request.input else {
            return Err(Rejected::Unsupported("only ids".into()));
        };
        let prompt: String = ids.iter().map(|&id| char::from_u32(id).unwrap()).collect();
        assert!(ids.len() + request.max_tokens <= self.context, "the budget was not clipped");
        if (self.fate)(&prompt) == Fate::Refuse {
            let (needed_blocks, total_blocks, total_tokens, needed_mib) = (9, 4, 64, 1);
            let (prompt, max_tokens) = (ids.len(), request.max_tokens);
            let refusal =
                Rejected::LargerThanCache { prompt, max_tokens, needed_blocks, total_blocks, total_tokens, needed_mib };
            return Err(refusal);
        }
        self.asked.push(prompt.clone());
        self.waiting.push_back((request, prompt));
        self.most_in_flight = self.most_in_flight.max(self.waiting.len());
        Ok(())
    }

    fn poll(&mut self) -> Result<Vec<Event>, EngineError> {
        if self.break_after.is_some_and(|after| self.finished >= after) {
            return Err(EngineError::Fatal("the device is gone".into()));
        }
        self.steps += 1;
        let mut events = vec![Event::Progress { prefilled: 1, decoded: 1 }];
        for _ in 0..1 + self.steps % 2 {
            // The newest first, then the oldest: as far from the plan's order as possible.
            let next = if self.finished.is_multiple_of(2) { self.waiting.pop_back() } else { self.waiting.pop_front() };
            let Some((request, prompt)) = next else { break };
            let failed = self.failures.entry(prompt.clone()).or_default();
            match (self.fate)(&prompt) {
                Fate::Fail { times, retryable } if *failed < times => {
                    *failed += 1;
                    events.push(Event::Failed { id: request.id, error: "out of blocks".into(), retryable });
                }
                _ => events.push(self.answer(request, &prompt)),
            }
        }
        if let Some((after, stop)) = self.stop_after
            && self.finished >= after
        {
            stop.store(true, Ordering::Relaxed);
        }
        Ok(if events.len() == 1 && self.waiting.is_empty() { Vec::new() } else { events })
    }

    fn cancel(&mut self, id: RequestId) -> bool {
        let before = self.waiting.len();
        self.waiting.retain(|(request, _)| request.id != id);
        self.waiting.len() < before
    }

    fn card(&self) -> Card {
        Card {
            engine: "scripted".into(),
            version: "1".into(),
            devices: Vec::new(),
            weights_dtype: "none".into(),
            context: self.context,
            weight_bytes: 0,
            kv_bytes: 0,
            kv_tokens: 0,
            in_flight: self.in_flight,
            deterministic: true,
            seeded: true,
            logprobs: false,
        }
    }

    fn statistics(&self) -> Statistics {
        Statistics::default()
    }
}
