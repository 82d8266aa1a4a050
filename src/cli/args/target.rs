//! The engine that generates: this program's own, an endpoint, or mistral.rs in another process.
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};

use super::{EngineArgs, RunArgs};
use crate::cli::error::CliError;
use crate::cli::models::{HubArgs, WeightArgs};
use crate::cli::values::one_of;
use earnest_engine::endpoint::Api;
use earnest_eval::model::{
    BUILT_IN, Device, EndpointRequest, EndpointSource, LocatedModel, ModelSource, TrafficSettings,
};
use earnest_models::checkpoint::WeightFormat;
use earnest_results::ModeRequest;

/// `--engine`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum EngineName {
    /// This program
    #[default]
    Native,
    /// An OpenAI-compatible endpoint: vLLM, SGLang, llama.cpp's server, `earnest serve`
    Openai,
    /// mistral.rs, as a cross-check; needs the program earnest-mistralrs
    Mistralrs,
}

/// The engine, and for an endpoint its address and model.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Engine and endpoint")]
pub struct TargetArgs {
    /// Engine that generates [default: native]
    #[arg(long, value_name = "ENGINE", value_enum)]
    pub engine: Option<EngineName>,

    /// Address of the endpoint, e.g. http://127.0.0.1:8000/v1; its key is read from EARNEST_API_KEY or OPENAI_API_KEY
    #[arg(long, value_name = "URL")]
    pub base_url: Option<String>,

    /// Name of the model at the endpoint [default: its only model]
    #[arg(long, value_name = "NAME")]
    pub model_name: Option<String>,

    /// API of the endpoint [default: completions with --tokenizer or --prompt raw, chat otherwise]
    #[arg(long, value_name = "API", value_parser = one_of(&[
        ("completions", "Plain text, or token ids with --tokenizer", Api::Completions),
        ("chat", "Messages; the endpoint applies its chat template", Api::Chat),
    ]))]
    pub api: Option<Api>,

    /// Folder of the model (config.json and tokenizer.json suffice), GGUF file or name; with it prompts are rendered here and
    /// sent as token ids
    #[arg(long, value_name = "MODEL")]
    pub tokenizer: Option<PathBuf>,

    /// Context length of the endpoint's model in tokens, if the endpoint does not report it
    #[arg(long, value_name = "TOKENS")]
    pub context: Option<usize>,
}

/// Limits and retries of requests to an endpoint. None of them changes a request's content.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Endpoint (changes the speed, never the content of requests)")]
pub struct TrafficArgs {
    /// Number of concurrent requests
    #[arg(long, value_name = "N", default_value_t = TrafficSettings::default().concurrency)]
    pub concurrency: usize,

    /// Maximum number of requests started per minute [default: no limit]
    #[arg(long, value_name = "N")]
    pub per_minute: Option<f64>,

    /// Retries of a failed request; delays double from half a second, with jitter drawn from the seed, and honour Retry-After
    #[arg(long, value_name = "N", default_value_t = TrafficSettings::default().retries)]
    pub retries: u32,

    /// Longest delay before a retry in seconds, whatever the endpoint asks for
    #[arg(long, value_name = "SECONDS", default_value_t = TrafficSettings::default().longest_wait)]
    pub longest_wait: f64,

    /// Timeout of a request in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = TrafficSettings::default().request_timeout)]
    pub request_timeout: f64,
}

impl TrafficArgs {
    /// The settings.
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

impl RunArgs {
    /// True if the model inside the program is used because no other was named.
    pub fn uses_built_in(&self) -> bool {
        self.model.is_none() && self.target.is_native()
    }

    /// The source of completions.
    pub fn model_source(&self, prompt: ModeRequest) -> Result<ModelSource, CliError> {
        self.target.source(self.model.as_deref(), self.weights, &self.hub, &self.session.engine, prompt)
    }
}

impl TargetArgs {
    /// True if this program generates.
    pub fn is_native(&self) -> bool {
        self.engine.unwrap_or_default() == EngineName::Native
    }

    /// The source of completions of a model, the one inside the program if none is named.
    pub fn source(
        &self,
        model: Option<&Path>,
        weights: WeightArgs,
        hub: &HubArgs,
        engine: &EngineArgs,
        prompt: ModeRequest,
    ) -> Result<ModelSource, CliError> {
        let name = self.engine.unwrap_or_default();
        let weights = WeightFormat::from(weights);
        if name != EngineName::Native && !weights.is_plain() {
            return Err(CliError::usage("--quant, --dtype and --compute need --engine native"));
        }
        if name == EngineName::Openai {
            return Ok(ModelSource::Endpoint(self.endpoint(model, hub, prompt)?));
        }
        let given = [
            ("--base-url", self.base_url.is_some()),
            ("--model-name", self.model_name.is_some()),
            ("--api", self.api.is_some()),
            ("--tokenizer", self.tokenizer.is_some()),
            ("--context", self.context.is_some()),
        ];
        if let Some((option, _)) = given.iter().find(|(_, given)| *given) {
            return Err(CliError::usage(format!("{option} needs --engine openai")));
        }
        let model = model.unwrap_or(Path::new(BUILT_IN));
        if name == EngineName::Mistralrs {
            return Ok(ModelSource::Mistralrs(LocatedModel::find_for_mistralrs(model, &hub.settings())?));
        }
        let model = LocatedModel::find(model, &hub.settings(), weights)?;
        let (device, note) = Device::choose(&engine.first_settings()?)?;
        Ok(ModelSource::Local { model, device, note })
    }

    /// The endpoint of `--engine openai`.
    fn endpoint(&self, model: Option<&Path>, hub: &HubArgs, prompt: ModeRequest) -> Result<EndpointSource, CliError> {
        let TargetArgs { base_url, model_name, api, tokenizer, context, .. } = self;
        let url = base_url.as_deref().ok_or_else(|| CliError::usage("--engine openai needs --base-url"))?;
        // EARNEST_MODEL is for the native engine; only --model itself is a mistake here.
        let from_variable = std::env::var_os("EARNEST_MODEL").is_some_and(|path| model == Some(Path::new(&path)));
        if model.is_some() && !from_variable {
            return Err(CliError::usage("--model is for models that run here").help(
                "name the endpoint's model with --model-name, and the folder with its tokenizer with --tokenizer",
            ));
        }
        let asked = EndpointRequest {
            url: url.to_owned(),
            model: model_name.clone(),
            api: *api,
            tokenizer: tokenizer.clone(),
            context: *context,
        };
        Ok(asked.source(prompt, &hub.settings())?)
    }
}
