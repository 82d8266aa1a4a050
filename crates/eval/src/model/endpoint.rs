//! Models at an OpenAI-compatible endpoint.
use std::time::Duration;

use earnest_engine::Input;
use earnest_engine::endpoint::{Address, Api, Concurrency, EndpointEngine, NOT_TOLD, Options, Retry, Secret, Server};
use earnest_models::checkpoint::{Checkpoint, WeightFormat};

use super::checkpoint::{check_options, hash_files, left_out, open_where_needed, record};
use super::local::{checkpoint_warnings, thinking_switch, thinks_anyway};
use super::{CheckpointDefaults, LoadedEngine, LocatedModel, OpenModel, checkpoint_defaults};
use crate::EvalError;
use crate::prompt::{PromptError, PromptSource, Remote, WithThinking};
use earnest_results::{EndpointSettings, FileRecord, ModelNotice, ModelRecord, Notice};

/// Environment variables for the key, by precedence.
const KEY_VARIABLES: [&str; 2] = ["EARNEST_API_KEY", "OPENAI_API_KEY"];

/// The engine's name in a run's settings.
const OPENAI: &str = "openai";

/// An endpoint named by the user or a manifest.
#[derive(Debug, Clone)]
pub struct EndpointSource {
    pub address: Address,
    /// The model's name at the endpoint; by default its only model.
    pub model: Option<String>,
    pub api: Api,
    /// The model whose tokenizer renders prompts locally; by default the endpoint renders them.
    pub tokenizer: Option<LocatedModel>,
    /// Context length in tokens, for endpoints that do not report it.
    pub context: Option<usize>,
}

/// Traffic limits of an endpoint; they do not affect answers.
#[derive(Debug, Clone, PartialEq)]
pub struct TrafficSettings {
    /// Concurrent requests, 1 to 1024.
    pub concurrency: usize,
    /// Limit of requests started per minute.
    pub per_minute: Option<f64>,
    /// Number of retries.
    pub retries: u32,
    /// Limit of the wait between two attempts, in seconds.
    pub longest_wait: f64,
    /// Timeout of a request, in seconds.
    pub request_timeout: f64,
}

impl Default for TrafficSettings {
    fn default() -> Self {
        TrafficSettings { concurrency: 16, per_minute: None, retries: 8, longest_wait: 120.0, request_timeout: 600.0 }
    }
}

impl TrafficSettings {
    /// Checks the ranges of all values.
    pub fn check(&self) -> Result<(), EvalError> {
        const DAY: f64 = 86_400.0;
        let positive = |value: f64| value > 0.0 && value <= DAY;
        if self.concurrency == 0 || self.concurrency > 1024 {
            return Err(EvalError::setting(format!(
                "the setting `concurrency = {}` is outside 1 to 1024",
                self.concurrency
            )));
        }
        if !positive(self.request_timeout) || !positive(self.longest_wait) {
            return Err(EvalError::setting(
                "the setting `request_timeout` and the setting `longest_wait` must be more than 0 seconds and at most a day",
            ));
        }
        if self.per_minute.is_some_and(|most| !(most > 0.0 && most <= 1e9)) {
            return Err(EvalError::setting("the setting `per_minute` must be above 0"));
        }
        Ok(())
    }

    /// Returns the engine's retry policy.
    pub(super) fn retry(&self) -> Retry {
        Retry { times: self.retries, longest: Duration::from_secs_f64(self.longest_wait), ..Retry::default() }
    }
}

/// Returns the API key from the environment; empty variables are ignored.
pub fn api_key() -> Result<Option<Secret>, EvalError> {
    let given = KEY_VARIABLES.iter().find_map(|name| std::env::var_os(name).filter(|value| !value.is_empty()));
    let Some(given) = given else { return Ok(None) };
    // A key that is not UTF-8 gets the same error.
    let text = given.to_str().unwrap_or("\u{0}");
    Secret::new(text).map(Some).map_err(|error| EvalError::setting(error.to_string()))
}

/// A reachable endpoint.
pub(super) struct EndpointModel {
    source: EndpointSource,
    /// The local tokenizer.
    tokenizer: Option<Checkpoint>,
    traffic: TrafficSettings,
    enable_thinking: Option<bool>,
    thinks_anyway: bool,
    /// The server behind the address.
    server: Server,
}

impl EndpointModel {
    /// Opens the tokenizer and probes the server, whose identity is part of a run's settings.
    pub(super) fn open(
        source: &EndpointSource,
        thinking: Option<bool>,
        traffic: &TrafficSettings,
    ) -> Result<Self, EvalError> {
        traffic.check()?;
        let tokenizer = source.tokenizer.as_ref().map(open_tokenizer).transpose()?;
        let switch = |checkpoint: &Checkpoint| thinking_switch(checkpoint, thinking);
        let enable_thinking = match source.api {
            Api::Chat => thinking,
            Api::Completions => tokenizer.as_ref().and_then(switch),
        };
        let context = source.context.or_else(|| tokenizer.as_ref().map(|here| here.config.max_positions));
        let options = options(source, traffic, context, enable_thinking)?;
        let server = EndpointEngine::probe(&options).map_err(unreachable)?;
        if enable_thinking.is_some() && source.api == Api::Chat && !server.takes_thinking_switch() {
            return Err(EvalError::setting("this endpoint's server is not known to have a thinking switch")
                .hint("leave out the setting `thinking`, or render prompts locally with the setting `tokenizer`"));
        }
        Ok(EndpointModel {
            source: source.clone(),
            thinks_anyway: enable_thinking.is_none()
                && tokenizer.as_ref().is_some_and(|checkpoint| thinks_anyway(checkpoint, thinking)),
            tokenizer,
            traffic: traffic.clone(),
            enable_thinking,
            server,
        })
    }

    fn context(&self) -> Option<usize> {
        self.source.context.or_else(|| self.tokenizer.as_ref().map(|here| here.config.max_positions))
    }

    fn exposed_key(&self) -> Option<Notice> {
        let address = &self.source.address;
        let exposed = address.exposes_keys() && KEY_VARIABLES.iter().any(|name| std::env::var_os(name).is_some());
        exposed.then(|| ModelNotice::KeyUnencrypted { address: address.as_str().to_owned() }.into())
    }
}

/// Opens a tokenizer's folder, which needs no weights.
fn open_tokenizer(located: &LocatedModel) -> Result<Checkpoint, EvalError> {
    let opened = open_where_needed(located, Checkpoint::open_without_weights);
    let checkpoint = opened.map_err(|error| {
        let failed = EvalError::model(format!("cannot use the tokenizer: {error}"));
        error.help().into_iter().fold(failed, EvalError::hint)
    })?;
    check_options(located, &checkpoint)?;
    Ok(checkpoint)
}

fn options(
    source: &EndpointSource,
    traffic: &TrafficSettings,
    context: Option<usize>,
    enable_thinking: Option<bool>,
) -> Result<Options, EvalError> {
    Ok(Options {
        address: source.address.clone(),
        key: api_key()?,
        model: source.model.clone(),
        api: source.api,
        concurrency: Concurrency { requests: traffic.concurrency, per_minute: traffic.per_minute },
        retry: traffic.retry(),
        timeout: Duration::from_secs_f64(traffic.request_timeout),
        context,
        enable_thinking,
    })
}

fn unreachable(error: impl std::fmt::Display) -> EvalError {
    EvalError::engine(error.to_string())
        .hint("check that the server is running, the address is right (it usually ends in /v1) and the key is in EARNEST_API_KEY")
}

impl OpenModel for EndpointModel {
    fn engine(&self) -> String {
        OPENAI.to_owned()
    }

    fn prompt_source(&self) -> Box<dyn PromptSource + '_> {
        match (&self.tokenizer, self.source.api) {
            (Some(checkpoint), _) => Box::new(WithThinking { checkpoint, enable_thinking: self.enable_thinking }),
            (None, Api::Chat) => Box::new(Remote::Messages),
            (None, Api::Completions) => Box::new(Remote::Text),
        }
    }

    fn enable_thinking(&self) -> Option<bool> {
        self.enable_thinking
    }

    fn defaults(&self) -> Option<CheckpointDefaults> {
        let (located, checkpoint) = self.source.tokenizer.as_ref().zip(self.tokenizer.as_ref())?;
        Some(checkpoint_defaults(located, checkpoint))
    }

    fn hash_files(&self, progress: &mut dyn FnMut(u64, u64)) -> Result<Vec<FileRecord>, EvalError> {
        self.tokenizer.as_ref().map_or(Ok(Vec::new()), |checkpoint| hash_files(checkpoint, progress))
    }

    fn weights(&self) -> Option<WeightFormat> {
        self.tokenizer.as_ref().map(Checkpoint::weight_format).filter(|format| !format.is_plain())
    }

    fn pre_tokenizer(&self) -> Option<String> {
        self.tokenizer.as_ref()?.pre_tokenizer.as_ref().map(|supplied| supplied.name.clone())
    }

    fn endpoint(&self) -> Option<EndpointSettings> {
        Some(EndpointSettings {
            base_url: self.source.address.as_str().to_owned(),
            model: self.server.model.clone(),
            api: self.source.api,
            context: self.source.context,
            server: Some(self.server.identity()),
        })
    }

    fn record(&self) -> ModelRecord {
        let here = self.source.tokenizer.as_ref().zip(self.tokenizer.as_ref());
        let here = here.map(|(located, checkpoint)| record(located, checkpoint));
        let url = self.source.address.as_str();
        ModelRecord {
            name: self.server.model.rsplit('/').find(|part| !part.is_empty()).unwrap_or("endpoint").to_owned(),
            path: here.as_ref().map_or_else(|| url.to_owned(), |here| here.path.clone()),
            format: "endpoint".to_owned(),
            architecture: here.as_ref().map_or_else(|| NOT_TOLD.to_owned(), |here| here.architecture.clone()),
            context: self.source.context.or(here.as_ref().map(|here| here.context)).unwrap_or(0),
            chat_template_sha256: here.as_ref().and_then(|here| here.chat_template_sha256.clone()),
            pinned: here.as_ref().and_then(|here| here.pinned.clone()),
            weights: None,
            allowed_config: here.map(|here| here.allowed_config).unwrap_or_default(),
        }
    }

    fn warnings(&self) -> Vec<Notice> {
        let mut warnings: Vec<Notice> = self.exposed_key().into_iter().collect();
        if let Some(checkpoint) = &self.tokenizer {
            warnings.extend(checkpoint_warnings(checkpoint, self.thinks_anyway));
            warnings.extend(self.source.tokenizer.iter().flat_map(|located| left_out(located, checkpoint)));
        }
        warnings
    }

    fn check_likelihoods(&self) -> Result<(), EvalError> {
        if self.source.api == Api::Chat {
            let message =
                "the questions have given continuations to score, for which the chat API gives no log-likelihoods";
            return Err(EvalError::setting(message).hint(
                "the setting `api = completions` has them where the server offers echo and logprobs; the \
                 setting `tokenizer` renders chat prompts here",
            ));
        }
        let options = options(&self.source, &self.traffic, self.context(), self.enable_thinking)?;
        const PROBE: &str = "1 1 1";
        let prompt = match &self.tokenizer {
            Some(checkpoint) => Input::Ids(checkpoint.encode_prompt(PROBE).map_err(PromptError::from)?),
            None => Input::Text(PROBE.to_owned()),
        };
        EndpointEngine::probe_prompt_logprobs(&options, &self.server, prompt).map_err(|error| {
            EvalError::engine(error.to_string())
                .hint("the questions have given continuations to score: the server's /v1/completions must offer echo with logprobs")
        })
    }

    fn load(&self) -> Result<LoadedEngine, EvalError> {
        let options = options(&self.source, &self.traffic, self.context(), self.enable_thinking)?;
        let engine = EndpointEngine::start(options, self.server.clone()).map_err(unreachable)?;
        let traffic = &self.traffic;
        let described = serde_json::json!({
            "requests": traffic.concurrency,
            "per_minute": traffic.per_minute,
            "retries": traffic.retries,
            "longest_wait_s": traffic.longest_wait,
            "request_timeout_s": traffic.request_timeout,
            "server": engine.server(),
            "prompts": match (&self.tokenizer, self.source.api) {
                (Some(_), _) => "ids",
                (None, Api::Chat) => "messages",
                (None, Api::Completions) => "text",
            },
        });
        Ok(LoadedEngine::new(Box::new(engine), described, vec![]))
    }
}
