//! The engine.
use std::collections::VecDeque;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::Context;
use earnest_engine::core::LogitsDecoder;
use earnest_engine::{Card, Engine, EngineError, Event, FinishReason, Rejected, Request, RequestId, Statistics};
use earnest_models::checkpoint::Checkpoint;
use mistralrs::core::{self, NormalRequest, RequestMessage, Response, SamplingParams};
use mistralrs::{CustomLogitsProcessor, Tensor};
use tokio::runtime::Runtime;
use tokio::sync::mpsc::{Receiver, channel};

/// How long a poll waits for news.
const POLL: Duration = Duration::from_millis(50);

/// mistral.rs with one request in flight; the others wait here.
pub struct MistralRs {
    runtime: Runtime,
    model: Arc<core::MistralRs>,
    checkpoint: Checkpoint,
    waiting: VecDeque<LogitsDecoder>,
    current: Option<Current>,
    /// Ended since the last poll (cancelled).
    ended: Vec<Event>,
    statistics: Statistics,
    number: usize,
}

/// The request that mistral.rs works on.
struct Current {
    id: RequestId,
    prompt: usize,
    chooser: Arc<Chooser>,
    answer: Receiver<Response>,
    /// Tokens that were counted.
    counted: usize,
}

/// Chooses tokens within mistral.rs, in the place where it lets callers change logits: all but the chosen one are suppressed.
struct Chooser(Mutex<Progress>);

struct Progress {
    /// None once it was taken for its completion.
    decoding: Option<LogitsDecoder>,
    state: State,
    tokens: usize,
    /// Ids from here on are not in mistral.rs's tokenizer, which would panic over them.
    known: u32,
}

#[derive(Clone, PartialEq)]
enum State {
    Going,
    Ended(FinishReason),
    Failed(String),
}

impl Chooser {
    fn progress(&self) -> MutexGuard<'_, Progress> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Progress {
    /// The token that comes next; none if there is no next.
    fn next(&mut self, logits: &[f32], context: &[u32]) -> Option<u32> {
        let decoding = self.decoding.as_mut().filter(|_| self.state == State::Going)?;
        // What mistral.rs computed with must be what was asked and chosen.
        let prompt = decoding.prompt().len();
        if context.len() != prompt + self.tokens || context.get(..prompt) != Some(decoding.prompt()) {
            let found = context.len();
            let message = format!(
                "mistral.rs computed with {found} tokens, not with the {} that it was given",
                prompt + self.tokens
            );
            self.state = State::Failed(message);
            return None;
        }
        match decoding.sample(logits) {
            Ok(step) => {
                self.tokens += 1;
                if let Some(reason) = step.finish {
                    self.state = State::Ended(reason);
                    return None;
                }
                if step.token >= self.known {
                    let message =
                        format!("token {} is not in mistral.rs's tokenizer, which has {}", step.token, self.known);
                    self.state = State::Failed(message);
                    return None;
                }
                Some(step.token)
            }
            Err(error) => {
                self.state = State::Failed(error.to_string());
                None
            }
        }
    }
}

impl CustomLogitsProcessor for Chooser {
    fn apply(&self, logits: &Tensor, context: &[u32]) -> mistralrs::Result<Tensor> {
        let values: Vec<f32> = logits.to_vec1()?;
        let token = self.progress().next(&values, context);
        // An error is how a sequence is ended: mistral.rs drops it and answers.
        let token = token.ok_or_else(|| std::io::Error::other("the completion is whole"))?;
        let mut only = vec![f32::MIN; values.len()];
        only[token as usize] = 0.0;
        Tensor::from_vec(only, logits.shape(), logits.device())
    }
}

impl MistralRs {
    /// Loads a Hugging Face folder into mistral.rs. What is beside the weights (tokenizer, sizes) is read by earnest.
    pub fn load(path: &Path) -> anyhow::Result<MistralRs> {
        let checkpoint = Checkpoint::open_for_mistralrs(path, &[]).context("cannot use the checkpoint")?;
        super::load::check(&checkpoint)?;
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .context("a thread could not be started")?;
        let model = runtime.block_on(super::load(path))?;
        Ok(MistralRs {
            runtime,
            model,
            checkpoint,
            waiting: VecDeque::new(),
            current: None,
            ended: Vec::new(),
            statistics: Statistics::default(),
            number: 0,
        })
    }

    /// Hands the next request to mistral.rs.
    fn begin(&mut self) -> Result<(), EngineError> {
        let Some(mut decoding) = self.waiting.pop_front() else { return Ok(()) };
        decoding.begin();
        let (id, prompt) = (decoding.id(), decoding.prompt().to_vec());
        let known = u32::try_from(self.checkpoint.tokenizer.vocab_size()).unwrap_or(u32::MAX);
        let progress = Progress { decoding: Some(decoding), state: State::Going, tokens: 0, known };
        let chooser = Arc::new(Chooser(Mutex::new(progress)));
        let (sender, answer) = channel(16);
        self.number += 1;
        let length = prompt.len();
        let message = RequestMessage::CompletionTokens(prompt);
        let mut request =
            NormalRequest::new_simple(message, SamplingParams::neutral(), sender, self.number, None, None);
        let processor: Arc<dyn CustomLogitsProcessor> = chooser.clone();
        request.logits_processors = Some(vec![processor]);
        self.model
            .send_request(core::Request::Normal(Box::new(request)))
            .map_err(|error| EngineError::Fatal(format!("mistral.rs takes no more requests: {error}")))?;
        self.statistics.prompt_tokens += length as u64;
        self.statistics.prefilled_tokens += length as u64;
        self.current = Some(Current { id, prompt: length, chooser, answer, counted: 0 });
        Ok(())
    }

    /// Waits for news of the current request, a little.
    fn hear(&mut self, events: &mut Vec<Event>) -> Result<(), EngineError> {
        let Some(mut current) = self.current.take() else { return Ok(()) };
        // Timeouts need the runtime's clock, which is there inside the future only.
        let answer = self.runtime.block_on(async { tokio::time::timeout(POLL, current.answer.recv()).await });
        self.statistics.steps += 1;
        let mut progress = current.chooser.progress();
        let decoded = progress.tokens - current.counted;
        current.counted = progress.tokens;
        self.statistics.decoded_tokens += decoded as u64;
        let prefilled = if decoded > 0 && current.counted == decoded { current.prompt } else { 0 };
        events.push(Event::Progress { prefilled, decoded });
        let Ok(answer) = answer else {
            drop(progress);
            self.current = Some(current);
            return Ok(());
        };
        let (decoding, state) = (progress.decoding.take(), progress.state.clone());
        drop(progress);
        match (state, decoding) {
            (State::Ended(reason), Some(decoding)) => events.push(Event::Finished(Box::new(decoding.finish(reason)))),
            (State::Failed(error), _) => events.push(Event::Failed { id: current.id, error, retryable: false }),
            // It was cancelled, and its completion reported.
            (_, None) => {}
            (State::Going, Some(_)) => {
                let Some(answer) = answer else {
                    return Err(EngineError::Fatal("mistral.rs ended; its messages above may say why".into()));
                };
                let error = format!("mistral.rs ended the sequence: {}", said(&answer));
                events.push(Event::Failed { id: current.id, error, retryable: false });
            }
        }
        Ok(())
    }
}

/// What an answer that should not have come says.
fn said(answer: &Response) -> String {
    match answer {
        Response::InternalError(error) | Response::ValidationError(error) => error.to_string(),
        Response::ModelError(message, _) | Response::CompletionModelError(message, _) => message.clone(),
        _ => "it took the completion for whole".to_owned(),
    }
}

impl Engine for MistralRs {
    fn submit(&mut self, request: Request) -> Result<(), Rejected> {
        let taken = self.waiting.iter().map(LogitsDecoder::id).chain(self.current.as_ref().map(|current| current.id));
        if taken.into_iter().any(|id| id == request.id) {
            return Err(Rejected::DuplicateId(request.id));
        }
        self.waiting.push_back(LogitsDecoder::new(request, &self.checkpoint)?);
        Ok(())
    }

    fn poll(&mut self) -> Result<Vec<Event>, EngineError> {
        let mut events = std::mem::take(&mut self.ended);
        if self.current.is_none() {
            self.begin()?;
        }
        self.hear(&mut events)?;
        Ok(events)
    }

    fn cancel(&mut self, id: RequestId) -> bool {
        let cancelled = if let Some(index) = self.waiting.iter().position(|waiting| waiting.id() == id) {
            self.waiting.remove(index)
        } else if let Some(current) = self.current.as_ref().filter(|current| current.id == id) {
            // mistral.rs hears of it when it asks for the next token.
            current.chooser.progress().decoding.take()
        } else {
            None
        };
        let Some(decoding) = cancelled else { return false };
        self.ended.push(Event::Finished(Box::new(decoding.finish(FinishReason::Cancelled))));
        true
    }

    fn card(&self) -> Card {
        Card {
            engine: "mistral.rs".into(),
            version: super::VERSION.into(),
            devices: vec!["CPU".into()],
            weights_dtype: "f32".into(),
            context: self.checkpoint.config.max_positions,
            // mistral.rs does not say.
            weight_bytes: 0,
            kv_bytes: 0,
            kv_tokens: 0,
            in_flight: 1,
            deterministic: false,
            seeded: true,
            logprobs: true,
        }
    }

    fn statistics(&self) -> Statistics {
        Statistics { running: usize::from(self.current.is_some()), waiting: self.waiting.len(), ..self.statistics }
    }
}
