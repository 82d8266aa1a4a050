//! Which engine answers: this program's own, an endpoint, or mistral.rs in a process of its own.
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};

use super::args::{RunArgs, ThinkingArg};
use super::error::CliError;
use earnest_engine::endpoint::Api;
use earnest_eval::model::{BUILT_IN, Device, EndpointSource, LocatedModel, ModelSource, TrafficSettings, address};
use earnest_eval::prompt::ModeRequest;
use earnest_models::checkpoint::WeightFormat;

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
    #[arg(long, value_name = "N", default_value_t = TrafficSettings::default().concurrency)]
    pub concurrency: usize,

    /// Most exchanges begun in a minute [default: no limit]
    #[arg(long, value_name = "N")]
    pub per_minute: Option<f64>,

    /// Tries after a failed one; waits double from half a second, drawn with the seed, and heed Retry-After
    #[arg(long, value_name = "N", default_value_t = TrafficSettings::default().retries)]
    pub retries: u32,

    /// The longest wait between two tries, in seconds, whatever the endpoint asks for
    #[arg(long, value_name = "SECONDS", default_value_t = TrafficSettings::default().longest_wait)]
    pub longest_wait: f64,

    /// Give an exchange up after so many seconds
    #[arg(long, value_name = "SECONDS", default_value_t = TrafficSettings::default().request_timeout)]
    pub request_timeout: f64,
}

impl PatienceArgs {
    /// The settings that they name.
    pub fn settings(&self) -> TrafficSettings {
        TrafficSettings {
            concurrency: self.concurrency,
            per_minute: self.per_minute,
            retries: self.retries,
            longest_wait: self.longest_wait,
            request_timeout: self.request_timeout,
        }
    }
}

/// The source of completions that the command line of `run` names.
pub fn model_source(args: &RunArgs, prompt: Option<ModeRequest>) -> Result<ModelSource, CliError> {
    let hub = args.hub.settings();
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
        let model = args.model.clone().unwrap_or_else(|| BUILT_IN.into());
        let model = LocatedModel::find(&model, &hub, weights)?;
        if engine == EngineName::Mistralrs {
            return Ok(ModelSource::Mistralrs(model));
        }
        let (device, note) = Device::choose(&args.session.engine.settings()?)?;
        return Ok(ModelSource::Local { model, device, note });
    }
    let url = target.base_url.as_deref().ok_or_else(|| CliError::usage("--engine openai needs --base-url"))?;
    // The variable is for the native engine; here it would be read as a wish that nobody had.
    let from_variable =
        std::env::var_os("EARNEST_MODEL").is_some_and(|path| args.model.as_deref() == Some(Path::new(&path)));
    if args.model.is_some() && !from_variable {
        return Err(CliError::usage("--model is for models that run here")
            .help("name the endpoint's model with --model-name, and the folder with its tokenizer with --tokenizer"));
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
    Ok(ModelSource::Endpoint(EndpointSource {
        address: address(url, &hub)?,
        model: target.model_name.clone(),
        api,
        tokenizer: target.tokenizer.as_deref().map(|path| LocatedModel::find_tokenizer(path, &hub)).transpose()?,
        context: target.context,
    }))
}

/// What `--thinking` asks of the chat template.
pub fn enable_thinking(arg: ThinkingArg) -> Option<bool> {
    match arg {
        ThinkingArg::Auto => None,
        ThinkingArg::On => Some(true),
        ThinkingArg::Off => Some(false),
    }
}
