//! Which engine answers: this program's own, an endpoint, or mistral.rs in a process of its own.
use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::{Args, ValueEnum};

use super::args::{EngineArgs, RunArgs, ThinkingArg};
use super::device::Device;
use super::error::CliError;
use super::model::{self, Chosen};
use super::models::HubArgs;
use super::process::{self, Process};
use super::settings::CheckpointSays;
use super::{Exit, built_in};
use crate::checkpoint::{Checkpoint, WeightFormat};
use crate::engine::openai::{Address, Api, Concurrency, OpenAi, Options, Retry, Secret};
use crate::engine::{Engine, Sampling};
use crate::hub::Environment;
use crate::prompt::{ModeRequest, PromptSource, Remote, WithThinking};
use crate::run::{EndpointSettings, FileRecord, ModelRecord, RunSettings};

/// Variables that may hold the key, the first that is set counts.
const KEY_VARIABLES: [&str; 2] = ["EARNEST_API_KEY", "OPENAI_API_KEY"];

/// `--engine`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum EngineName {
    /// This program itself
    Native,
    /// An OpenAI-compatible endpoint: vLLM, SGLang, llama.cpp's server, `earnest serve`
    Openai,
    /// mistral.rs, to cross-check; needs the program earnest-mistralrs
    Mistralrs,
}

/// `--api`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ApiArg {
    /// Raw text, or token ids with --tokenizer
    Completions,
    /// Messages; the endpoint applies its chat template
    Chat,
}

/// Which engine, and for an endpoint where and which model.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Engine and endpoint")]
pub struct TargetArgs {
    /// Who generates [default: native]
    #[arg(long, value_name = "ENGINE", value_enum)]
    pub engine: Option<EngineName>,

    /// Address of the endpoint, e.g. http://127.0.0.1:8000/v1; its key is read from EARNEST_API_KEY or OPENAI_API_KEY
    #[arg(long, value_name = "URL")]
    pub base_url: Option<String>,

    /// The model's name at the endpoint [default: its only model]
    #[arg(long, value_name = "NAME")]
    pub model_name: Option<String>,

    /// How the endpoint is asked [default: completions with --tokenizer or --prompt raw, chat otherwise]
    #[arg(long, value_name = "API", value_enum)]
    pub api: Option<ApiArg>,

    /// The model's folder (config.json and tokenizer.json suffice), GGUF file or name: prompts are rendered here and sent as
    /// token ids
    #[arg(long, value_name = "MODEL")]
    pub tokenizer: Option<PathBuf>,

    /// Longest sequence of the endpoint's model in tokens, if it does not say
    #[arg(long, value_name = "TOKENS")]
    pub context: Option<usize>,
}

/// How an endpoint is treated. None of this changes what is asked.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Endpoint (changes the speed, never what is asked)")]
pub struct PatienceArgs {
    /// Requests at the endpoint at once
    #[arg(long, value_name = "N", default_value_t = PatienceArgs::default().concurrency)]
    pub concurrency: usize,

    /// Most exchanges begun in a minute [default: no limit]
    #[arg(long, value_name = "N")]
    pub per_minute: Option<f64>,

    /// Tries after a failed one; waits double from half a second, drawn with the seed, and heed Retry-After
    #[arg(long, value_name = "N", default_value_t = PatienceArgs::default().retries)]
    pub retries: u32,

    /// The longest wait between two tries, in seconds, whatever the endpoint asks for
    #[arg(long, value_name = "SECONDS", default_value_t = PatienceArgs::default().longest_wait)]
    pub longest_wait: f64,

    /// Give an exchange up after so many seconds
    #[arg(long, value_name = "SECONDS", default_value_t = PatienceArgs::default().request_timeout)]
    pub request_timeout: f64,
}

impl Default for PatienceArgs {
    fn default() -> Self {
        PatienceArgs { concurrency: 16, per_minute: None, retries: 8, longest_wait: 120.0, request_timeout: 600.0 }
    }
}

/// Where completions come from.
#[derive(Debug, Clone)]
pub enum Target {
    /// Also where it computes, and what a user should know of that.
    Native(Chosen, Device, Option<String>),
    Mistralrs(Chosen),
    Endpoint(EndpointTarget),
}

/// An endpoint as the user or a manifest names it.
#[derive(Debug, Clone)]
pub struct EndpointTarget {
    pub address: Address,
    pub model: Option<String>,
    pub api: Api,
    pub tokenizer: Option<Chosen>,
    pub context: Option<usize>,
}

impl Target {
    /// What the command line of `run` says.
    pub fn of(args: &RunArgs, prompt: Option<ModeRequest>) -> Result<Target, CliError> {
        let target = &args.target;
        let engine = target.engine.unwrap_or(EngineName::Native);
        let weights = WeightFormat::from(args.weights);
        if engine != EngineName::Native && !weights.is_plain() {
            return Err(CliError::usage("--quant, --dtype and --compute belong to --engine native"));
        }
        if engine != EngineName::Openai {
            let given = [
                ("--base-url", target.base_url.is_some()),
                ("--model-name", target.model_name.is_some()),
                ("--api", target.api.is_some()),
                ("--tokenizer", target.tokenizer.is_some()),
                ("--context", target.context.is_some()),
            ];
            if let Some((option, _)) = given.iter().find(|(_, given)| *given) {
                return Err(CliError::usage(format!("{option} belongs to --engine openai")));
            }
            let model = args.model.clone().unwrap_or_else(|| built_in::NAME.into());
            let model = model::choose(&model, &args.hub, weights)?;
            if engine == EngineName::Mistralrs {
                return Ok(Target::Mistralrs(model));
            }
            let (device, note) = Device::of(&args.session.engine)?;
            return Ok(Target::Native(model, device, note));
        }
        let url = target.base_url.as_deref().ok_or_else(|| CliError::usage("--engine openai needs --base-url"))?;
        // The variable is for the native engine; here it would be read as a wish that nobody had.
        let from_variable =
            std::env::var_os("EARNEST_MODEL").is_some_and(|path| args.model.as_deref() == Some(Path::new(&path)));
        if args.model.is_some() && !from_variable {
            return Err(CliError::usage("--model is for models that run here").help(
                "name the endpoint's model with --model-name, and the folder with its tokenizer with --tokenizer",
            ));
        }
        let chat_is_meant = prompt != Some(ModeRequest::Raw) && target.tokenizer.is_none();
        let api = match target.api {
            Some(ApiArg::Completions) => Api::Completions,
            Some(ApiArg::Chat) => Api::Chat,
            None if chat_is_meant => Api::Chat,
            None => Api::Completions,
        };
        match (api, prompt) {
            (Api::Chat, _) if target.tokenizer.is_some() => {
                return Err(CliError::usage("--api chat sends messages, for which --tokenizer is of no use"));
            }
            (Api::Chat, Some(ModeRequest::Raw)) => {
                return Err(
                    CliError::usage("--api chat sends messages, and --prompt raw none").help("use --api completions")
                );
            }
            (Api::Completions, Some(ModeRequest::Chat)) if target.tokenizer.is_none() => {
                return Err(CliError::usage(
                    "chat prompts for --api completions are rendered here, which needs --tokenizer",
                )
                .help("or use --api chat, which leaves the chat template to the endpoint"));
            }
            _ => {}
        }
        if target.context == Some(0) {
            return Err(CliError::usage("--context 0 leaves no room for anything"));
        }
        Ok(Target::Endpoint(EndpointTarget {
            address: address(url, &args.hub)?,
            model: target.model_name.clone(),
            api,
            tokenizer: target.tokenizer.as_deref().map(|path| tokenizer(path, &args.hub)).transpose()?,
            context: target.context,
        }))
    }

    /// What a stored run says. `moved` is where the checkpoint or the tokenizer lies now.
    pub fn stored(
        settings: &RunSettings,
        model: &ModelRecord,
        moved: Option<&Path>,
        hub: &HubArgs,
    ) -> Result<Target, CliError> {
        let path = moved.unwrap_or_else(|| Path::new(&model.path));
        let Some(endpoint) = &settings.endpoint else {
            let chosen = model::choose(path, hub, settings.weights.unwrap_or_default())?;
            // Where it computed is part of what the run is.
            let native = Device::of_engine(&settings.engine).map(|device| Target::Native(chosen.clone(), device, None));
            return match native {
                Some(native) => Ok(native),
                None if settings.engine == MISTRALRS => Ok(Target::Mistralrs(chosen)),
                None => {
                    Err(CliError::usage(format!("the run's engine is {}, which this program has not", settings.engine)))
                }
            };
        };
        let has_tokenizer = !settings.model_files.is_empty();
        Ok(Target::Endpoint(EndpointTarget {
            address: address(&endpoint.base_url, hub)?,
            model: Some(endpoint.model.clone()),
            api: endpoint.api,
            tokenizer: has_tokenizer.then(|| tokenizer(path, hub)).transpose()?,
            context: endpoint.context,
        }))
    }
}

/// An endpoint's address, which offline mode confines to this machine.
fn address(url: &str, hub: &HubArgs) -> Result<Address, CliError> {
    let address = Address::parse(url).map_err(|error| CliError::usage(error.to_string()))?;
    if Environment::read(hub.offline).offline.is_some() && !address.is_loopback() {
        let mode = if hub.offline { "--offline" } else { "offline mode (HF_HUB_OFFLINE or TRANSFORMERS_OFFLINE)" };
        let message = format!("{mode} opens no connection, and {} is not on this machine", address.as_str());
        return Err(CliError::usage(message).help("endpoints on 127.0.0.1, ::1 and localhost are allowed"));
    }
    Ok(address)
}

/// The model whose tokenizer renders the prompts of an endpoint.
fn tokenizer(path: &Path, hub: &HubArgs) -> Result<Chosen, CliError> {
    model::choose_tokenizer(path, hub)
}

/// What `--thinking` asks of the chat template.
pub fn enable_thinking(arg: ThinkingArg) -> Option<bool> {
    match arg {
        ThinkingArg::Auto => None,
        ThinkingArg::On => Some(true),
        ThinkingArg::Off => Some(false),
    }
}

const MISTRALRS: &str = "mistralrs";
const OPENAI: &str = "openai";

/// A target that was opened: what is known before the first request.
pub struct Subject {
    target: Target,
    /// The model here, or its tokenizer.
    checkpoint: Option<Checkpoint>,
    remote: Remote,
    /// What was asked of the template's switch.
    thinking: Option<bool>,
    /// The template's switch, where there is one.
    enable_thinking: Option<bool>,
    /// An endpoint that was asked what it is.
    connected: RefCell<Option<OpenAi>>,
    /// The model's name at an endpoint.
    endpoint_model: Option<String>,
    /// What answers at an endpoint, in words.
    server: Option<String>,
    /// What a user should know of the engine that was loaded.
    notes: RefCell<Vec<String>>,
}

impl Subject {
    /// Opens checkpoints; asks an endpoint what it is, because that is part of a run's identity.
    pub fn open(target: &Target, thinking: Option<bool>, patience: &PatienceArgs) -> Result<Subject, CliError> {
        check(patience)?;
        if let Target::Mistralrs(_) = target {
            process::check()?;
        }
        let checkpoint = match target {
            Target::Native(chosen, ..) | Target::Mistralrs(chosen) => Some(model::open(chosen)?),
            Target::Endpoint(endpoint) => endpoint.tokenizer.as_ref().map(described).transpose()?,
        };
        // A template without a switch is the same either way.
        let has_switch = |checkpoint: &Checkpoint| {
            checkpoint.chat_template.as_ref().is_some_and(|template| template.has_thinking_switch())
        };
        let endpoint_renders = matches!(target, Target::Endpoint(endpoint) if endpoint.api == Api::Chat);
        let enable_thinking = thinking.filter(|_| endpoint_renders || checkpoint.as_ref().is_some_and(has_switch));
        let remote = if endpoint_renders { Remote::Messages } else { Remote::Text };
        let mut subject = Subject {
            target: target.clone(),
            checkpoint,
            remote,
            thinking,
            enable_thinking,
            connected: RefCell::default(),
            endpoint_model: None,
            server: None,
            notes: RefCell::default(),
        };
        if let Target::Endpoint(endpoint) = target {
            let engine = subject.connect(endpoint, patience)?;
            let server = engine.server();
            subject.endpoint_model = Some(server.model.clone());
            subject.server = Some(server.identity());
            subject.connected = RefCell::new(Some(engine));
        }
        Ok(subject)
    }

    /// The engine's name.
    pub fn engine(&self) -> &'static str {
        match &self.target {
            Target::Native(_, device, _) => device.engine(),
            Target::Mistralrs(_) => MISTRALRS,
            Target::Endpoint(_) => OPENAI,
        }
    }

    /// What prompts are rendered with.
    pub fn source(&self) -> Box<dyn PromptSource + '_> {
        match &self.checkpoint {
            Some(checkpoint) => Box::new(WithThinking { checkpoint, enable_thinking: self.enable_thinking }),
            None => Box::new(self.remote),
        }
    }

    /// The template's switch, if it has one and it was set.
    pub fn enable_thinking(&self) -> Option<bool> {
        self.enable_thinking
    }

    /// True if thinking was to be switched off and a template that thinks has no switch.
    fn thinks_anyway(&self) -> bool {
        let thinks =
            |checkpoint: &Checkpoint| checkpoint.chat_template.as_ref().is_some_and(|template| template.thinks());
        self.thinking == Some(false) && self.enable_thinking.is_none() && self.checkpoint.as_ref().is_some_and(thinks)
    }

    /// What the checkpoint says about generation. Nothing is known without one.
    pub fn says(&self, recommended: bool) -> Result<CheckpointSays, CliError> {
        let chosen = match &self.target {
            Target::Native(chosen, ..) | Target::Mistralrs(chosen) => Some(chosen),
            Target::Endpoint(endpoint) => endpoint.tokenizer.as_ref(),
        };
        match chosen.zip(self.checkpoint.as_ref()) {
            Some((chosen, checkpoint)) => Ok(model::says(chosen, checkpoint)),
            None if recommended => Err(CliError::usage(
                "--recommended is read from the list of models or from the model's generation_config.json",
            )
            .help("add --tokenizer with the model's folder, or give --temperature and the like")),
            None => Ok(CheckpointSays {
                recommended: Sampling::GREEDY,
                stop_ids: Vec::new(),
                tokenizer_eos: None,
                thinks: false,
            }),
        }
    }

    /// Size and SHA-256 of what is here.
    pub fn hash_files(&self, progress: impl FnMut(u64, u64)) -> Result<Vec<FileRecord>, CliError> {
        self.checkpoint.as_ref().map_or(Ok(Vec::new()), |checkpoint| model::hash_files(checkpoint, progress))
    }

    /// How weights are changed at load, for the run's settings.
    pub fn weights(&self) -> Option<WeightFormat> {
        self.checkpoint.as_ref().and_then(model::weights)
    }

    /// The endpoint for the run's settings.
    pub fn endpoint(&self) -> Option<EndpointSettings> {
        let Target::Endpoint(endpoint) = &self.target else { return None };
        Some(EndpointSettings {
            base_url: endpoint.address.as_str().to_owned(),
            model: self.endpoint_model.clone().unwrap_or_default(),
            api: endpoint.api,
            context: endpoint.context,
            server: self.server.clone(),
        })
    }

    /// The model for the manifest.
    pub fn record(&self) -> ModelRecord {
        match (&self.target, &self.checkpoint) {
            (Target::Native(chosen, ..) | Target::Mistralrs(chosen), Some(checkpoint)) => {
                model::record(chosen, checkpoint)
            }
            (target, checkpoint) => {
                let tokenizer = match target {
                    Target::Endpoint(endpoint) => endpoint.tokenizer.as_ref(),
                    Target::Native(..) | Target::Mistralrs(_) => None,
                };
                let here = tokenizer.zip(checkpoint.as_ref()).map(|(chosen, here)| model::record(chosen, here));
                let name = self.endpoint_model.as_deref().unwrap_or_default();
                let (url, context) = match target {
                    Target::Endpoint(endpoint) => (endpoint.address.as_str(), endpoint.context),
                    Target::Native(..) | Target::Mistralrs(_) => ("", None),
                };
                ModelRecord {
                    name: name.rsplit('/').find(|part| !part.is_empty()).unwrap_or("endpoint").to_owned(),
                    path: here.as_ref().map_or_else(|| url.to_owned(), |here| here.path.clone()),
                    format: "endpoint".to_owned(),
                    architecture: here.as_ref().map_or_else(|| "not told".to_owned(), |here| here.architecture.clone()),
                    context: context.or(here.as_ref().map(|here| here.context)).unwrap_or(0),
                    chat_template_sha256: here.as_ref().and_then(|here| here.chat_template_sha256.clone()),
                    pinned: here.and_then(|here| here.pinned),
                    weights: None,
                }
            }
        }
    }

    /// Loads weights, or reaches the endpoint: the engine and its settings for the manifest.
    pub fn load(
        &self,
        args: &EngineArgs,
        patience: &PatienceArgs,
    ) -> Result<(Box<dyn Engine>, serde_json::Value), CliError> {
        let target = self.target.clone();
        match (&target, &self.checkpoint) {
            (Target::Native(_, device, _), Some(checkpoint)) => {
                let loaded = model::load_on(checkpoint, device, args)?;
                self.notes.borrow_mut().extend(loaded.notes);
                Ok((loaded.engine, loaded.options))
            }
            (Target::Mistralrs(chosen), _) => {
                let described = serde_json::json!({"requests": 1, "prefix_cache": false});
                Ok((Box::new(Process::start(chosen.path(), retry(patience))?), described))
            }
            (Target::Endpoint(endpoint), _) => {
                let engine = match self.connected.take() {
                    Some(engine) => engine,
                    None => self.connect(endpoint, patience)?,
                };
                let described = serde_json::json!({
                    "requests": patience.concurrency,
                    "per_minute": patience.per_minute,
                    "retries": patience.retries,
                    "longest_wait_s": patience.longest_wait,
                    "request_timeout_s": patience.request_timeout,
                    "server": engine.server(),
                    "prompts": if self.checkpoint.is_some() { "ids" } else if endpoint.api == Api::Chat { "messages" } else { "text" },
                });
                Ok((Box::new(engine), described))
            }
            (Target::Native(..), None) => Err(CliError::new(Exit::Model, "the checkpoint was not opened")),
        }
    }

    fn connect(&self, endpoint: &EndpointTarget, patience: &PatienceArgs) -> Result<OpenAi, CliError> {
        let engine = OpenAi::connect(Options {
            address: endpoint.address.clone(),
            key: key()?,
            model: endpoint.model.clone(),
            api: endpoint.api,
            concurrency: Concurrency { requests: patience.concurrency, per_minute: patience.per_minute },
            retry: retry(patience),
            patience: Duration::from_secs_f64(patience.request_timeout),
            context: endpoint.context.or_else(|| self.checkpoint.as_ref().map(|here| here.config.max_positions)),
            enable_thinking: self.enable_thinking,
        })
        .map_err(|error| {
            let help =
                "is the server running, is the address right (it usually ends in /v1), is the key in EARNEST_API_KEY?";
            CliError::new(Exit::Engine, error.to_string()).help(help)
        })?;
        if self.enable_thinking.is_some() && endpoint.api == Api::Chat && !engine.takes_thinking_switch() {
            return Err(CliError::usage("this endpoint's server is not known to have a switch for thinking")
                .help("leave --thinking out, or render prompts here with --tokenizer"));
        }
        Ok(engine)
    }

    /// What a user should know before it is asked.
    pub fn warnings(&self) -> Vec<String> {
        let unheeded =
            "the chat template has no switch for thinking: the model may think, and within the smaller budget";
        let mut all: Vec<String> = self.exposed_key().into_iter().collect();
        all.extend(self.thinks_anyway().then(|| unheeded.to_owned()));
        if let Target::Native(_, _, Some(note)) = &self.target {
            all.push(note.clone());
        }
        if let Some((commit, files)) = self.checkpoint.as_ref().and_then(model::unverifiable) {
            all.push(format!(
                "nothing here says whether {} of {commit} are what the commit has; `earnest models verify --remote {commit}` \
                 asks the hub",
                files.join(", ")
            ));
        }
        all
    }

    /// True if it is computed on a GPU of this machine.
    pub fn on_gpu(&self) -> bool {
        matches!(self.target, Target::Native(_, Device::Cuda { .. }, _))
    }

    /// What a user should know since the engine was loaded, e.g. that its memory is short; once.
    pub fn notes(&self) -> Vec<String> {
        self.notes.take()
    }

    fn exposed_key(&self) -> Option<String> {
        let Target::Endpoint(endpoint) = &self.target else { return None };
        let exposed =
            endpoint.address.exposes_keys() && KEY_VARIABLES.iter().any(|name| std::env::var_os(name).is_some());
        exposed.then(|| format!("the key travels unencrypted to {}", endpoint.address.as_str()))
    }
}

/// A tokenizer's folder, which needs no weights.
fn described(chosen: &Chosen) -> Result<Checkpoint, CliError> {
    Checkpoint::open_without_weights(chosen.path())
        .map_err(|error| CliError::new(Exit::Model, format!("cannot use the tokenizer: {error}")))
}

/// The key of the environment; an empty variable is none.
pub fn key() -> Result<Option<Secret>, CliError> {
    let given = KEY_VARIABLES.iter().find_map(|name| std::env::var_os(name).filter(|value| !value.is_empty()));
    let Some(given) = given else { return Ok(None) };
    // A key that is no text is refused with the same words.
    let text = given.to_str().unwrap_or("\u{0}");
    Secret::new(text).map(Some).map_err(|error| CliError::usage(error.to_string()))
}

fn retry(args: &PatienceArgs) -> Retry {
    Retry { times: args.retries, longest: Duration::from_secs_f64(args.longest_wait), ..Retry::default() }
}

fn check(args: &PatienceArgs) -> Result<(), CliError> {
    const DAY: f64 = 86_400.0;
    let positive = |value: f64| value > 0.0 && value <= DAY;
    if args.concurrency == 0 || args.concurrency > 1024 {
        return Err(CliError::usage(format!("--concurrency {} is outside 1 to 1024", args.concurrency)));
    }
    if !positive(args.request_timeout) || !positive(args.longest_wait) {
        return Err(CliError::usage("--request-timeout and --longest-wait are seconds, more than 0 and at most a day"));
    }
    if args.per_minute.is_some_and(|most| !(most > 0.0 && most <= 1e9)) {
        return Err(CliError::usage("--per-minute is a number above 0"));
    }
    Ok(())
}
