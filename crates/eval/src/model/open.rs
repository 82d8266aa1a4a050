//! Model sources and opened models.
use std::path::Path;
use std::time::Instant;

use earnest_engine::Engine;
use earnest_engine::endpoint::Address;
use earnest_models::checkpoint::{PRE_TOKENIZER_KEY, WeightFormat};
use earnest_models::hub::HubSettings;

use super::endpoint::EndpointModel;
use super::local::LocalModel;
use super::located::checked_name;
use super::process::{MISTRALRS, ProcessModel};
use super::{CheckpointDefaults, Device, DeviceNote, EndpointSource, EngineSettings, LocatedModel, TrafficSettings};
use crate::EvalError;
use crate::prompt::PromptSource;
use earnest_results::{EndpointSettings, EngineRecord, FileRecord, ModelRecord, Notice, RunSettings, Stage};

/// Source of completions.
#[derive(Debug, Clone)]
pub enum ModelSource {
    /// A checkpoint that the native engine runs.
    Local {
        model: LocatedModel,
        device: Device,
        /// Note for the user on the choice of the device.
        note: Option<DeviceNote>,
    },
    /// A checkpoint that mistral.rs runs in a separate process.
    Mistralrs(LocatedModel),
    /// An OpenAI-compatible endpoint.
    Endpoint(EndpointSource),
}

impl ModelSource {
    /// Shares the opened checkpoint of another source if it is the same one, opened for the same engine; true if so.
    pub(crate) fn share(&mut self, other: &ModelSource) -> bool {
        match (self, other) {
            (ModelSource::Local { model, .. }, ModelSource::Local { model: other, .. })
            | (ModelSource::Mistralrs(model), ModelSource::Mistralrs(other)) => model.share(other),
            _ => false,
        }
    }

    /// Returns the source of a stored run; `moved` replaces the recorded path of the checkpoint or tokenizer.
    pub fn stored(
        settings: &RunSettings,
        model: &ModelRecord,
        moved: Option<&Path>,
        hub: &HubSettings,
    ) -> Result<Self, EvalError> {
        let path = moved.unwrap_or_else(|| Path::new(&model.path));
        let mut hub = hub.clone();
        if let (Some(given), Ok(Some(own))) = (checked_name(&hub.allow_config)?, checked_name(&model.allowed_config))
            && given != own
        {
            let message = format!("setting `allow_config = {PRE_TOKENIZER_KEY}={given}`: the run was made with {own}");
            return Err(EvalError::setting(message).hint("leave it out: a run with another one is another run"));
        }
        hub.allow_config.extend(model.allowed_config.iter().cloned());
        let hub = &hub;
        if let Some(endpoint) = &settings.endpoint {
            let has_tokenizer = !settings.model_files.is_empty();
            return Ok(ModelSource::Endpoint(EndpointSource {
                address: address(&endpoint.base_url, hub)?,
                model: Some(endpoint.model.clone()),
                api: endpoint.api,
                tokenizer: has_tokenizer.then(|| LocatedModel::find_tokenizer(path, hub)).transpose()?,
                context: endpoint.context,
            }));
        }
        if settings.engine == MISTRALRS {
            return Ok(ModelSource::Mistralrs(LocatedModel::find_for_mistralrs(path, hub)?));
        }
        let model = LocatedModel::find(path, hub, settings.weights.unwrap_or_default())?;
        // The device is part of a run's identity.
        match Device::of_engine(&settings.engine) {
            Some(device) => Ok(ModelSource::Local { model, device, note: None }),
            None => Err(EvalError::setting(format!(
                "the run was made with the engine {}, which this version of earnest does not have",
                settings.engine
            ))),
        }
    }

    /// Returns the stage of [`ModelSource::open`].
    pub(crate) fn opening(&self) -> Stage {
        match self {
            ModelSource::Endpoint(source) => Stage::ProbingEndpoint(source.address.as_str().to_owned()),
            ModelSource::Local { .. } | ModelSource::Mistralrs(_) => Stage::OpeningCheckpoint,
        }
    }

    /// Opens the checkpoint or probes the endpoint; loads no weights.
    pub fn open(
        &self,
        thinking: Option<bool>,
        engine: &EngineSettings,
        traffic: &TrafficSettings,
    ) -> Result<Box<dyn OpenModel>, EvalError> {
        Ok(match self {
            ModelSource::Local { model, device, note } => {
                Box::new(LocalModel::open(model, device, note.clone(), thinking, engine)?)
            }
            ModelSource::Mistralrs(model) => Box::new(ProcessModel::open(model, thinking, traffic)?),
            ModelSource::Endpoint(source) => Box::new(EndpointModel::open(source, thinking, traffic)?),
        })
    }
}

/// Parses an endpoint's address; offline mode allows loopback addresses only.
pub fn address(url: &str, hub: &HubSettings) -> Result<Address, EvalError> {
    let address = Address::parse(url).map_err(|error| EvalError::setting(error.to_string()))?;
    if hub.environment().offline.is_some() && !address.is_loopback() {
        let mode =
            if hub.offline { "the setting `offline`" } else { "offline mode (HF_HUB_OFFLINE or TRANSFORMERS_OFFLINE)" };
        let message = format!("{mode} allows no connection to {}, which is not on this machine", address.as_str());
        return Err(EvalError::setting(message).hint("endpoints on 127.0.0.1, ::1 and localhost are allowed"));
    }
    Ok(address)
}

/// A model with metadata and without weights: everything an evaluation needs before the first request.
pub trait OpenModel {
    /// Returns the engine's name in a run's settings.
    fn engine(&self) -> String;

    /// Returns the renderer of prompts.
    fn prompt_source(&self) -> Box<dyn PromptSource + '_>;

    /// Returns the value of the chat template's thinking switch, if it has one and it was set.
    fn enable_thinking(&self) -> Option<bool>;

    /// Returns the generation defaults of the checkpoint; none without a local checkpoint.
    fn defaults(&self) -> Option<CheckpointDefaults>;

    /// Returns size and SHA-256 of the local files; `progress` gets the bytes done and the total.
    fn hash_files(&self, progress: &mut dyn FnMut(u64, u64)) -> Result<Vec<FileRecord>, EvalError>;

    /// Returns the weight format, if weights are converted at load.
    fn weights(&self) -> Option<WeightFormat>;

    /// Returns the pre-tokenizer, if the model's files do not name it themselves.
    fn pre_tokenizer(&self) -> Option<String> {
        None
    }

    /// Returns the endpoint's part of a run's settings.
    fn endpoint(&self) -> Option<EndpointSettings> {
        None
    }

    /// Returns the manifest's record of the model.
    fn record(&self) -> ModelRecord;

    /// Returns warnings about the model.
    fn warnings(&self) -> Vec<Notice>;

    /// Checks that log-likelihoods of given continuations can be had, before anything is loaded or asked.
    fn check_likelihoods(&self) -> Result<(), EvalError> {
        Ok(())
    }

    /// Loads weights, or connects.
    fn load(&self) -> Result<LoadedEngine, EvalError>;
}

/// An engine that is ready for requests.
pub struct LoadedEngine {
    pub engine: Box<dyn Engine>,
    /// Engine options for the manifest.
    pub options: serde_json::Value,
    /// Notes for the user, e.g. that memory was short.
    pub notes: Vec<Notice>,
    /// True for engines on a local GPU.
    pub on_gpu: bool,
    /// Load time in seconds.
    pub load_s: f64,
}

impl LoadedEngine {
    pub(super) fn new(engine: Box<dyn Engine>, options: serde_json::Value, notes: Vec<Notice>) -> Self {
        LoadedEngine { engine, options, notes, on_gpu: false, load_s: 0.0 }
    }

    /// Loads a model and measures the time.
    pub(crate) fn timed(model: &dyn OpenModel) -> Result<Self, EvalError> {
        let started = Instant::now();
        let loaded = model.load()?;
        Ok(LoadedEngine { load_s: started.elapsed().as_secs_f64(), ..loaded })
    }

    /// Returns the manifest's record of the engine, with its counters so far.
    pub fn record(&self) -> EngineRecord {
        EngineRecord {
            card: self.engine.card(),
            options: self.options.clone(),
            load_s: self.load_s,
            statistics: self.engine.statistics(),
        }
    }
}
