//! Model sources and opened models.
use std::path::Path;
use std::time::Instant;

use earnest_engine::Engine;
use earnest_engine::endpoint::Address;
use earnest_models::checkpoint::WeightFormat;
use earnest_models::hub::HubSettings;

use super::endpoint::EndpointModel;
use super::local::LocalModel;
use super::process::{MISTRALRS, ProcessModel};
use super::{CheckpointDefaults, Device, EndpointSource, EngineSettings, LocatedModel, TrafficSettings};
use crate::EvalError;
use crate::prompt::PromptSource;
use crate::run::{EndpointSettings, EngineRecord, FileRecord, ModelRecord, RunSettings};

/// Source of completions.
#[derive(Debug, Clone)]
pub enum ModelSource {
    /// A checkpoint that the native engine runs.
    Local {
        model: LocatedModel,
        device: Device,
        /// A note for the user on the choice of the device.
        note: Option<String>,
    },
    /// A checkpoint that mistral.rs runs, in a process of its own.
    Mistralrs(LocatedModel),
    /// An OpenAI-compatible endpoint.
    Endpoint(EndpointSource),
}

impl ModelSource {
    /// The source of a stored run's completions; `moved` is the checkpoint's or the tokenizer's place today.
    pub fn stored(
        settings: &RunSettings,
        model: &ModelRecord,
        moved: Option<&Path>,
        hub: &HubSettings,
    ) -> Result<Self, EvalError> {
        let path = moved.unwrap_or_else(|| Path::new(&model.path));
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
        let model = LocatedModel::find(path, hub, settings.weights.unwrap_or_default())?;
        // The device is part of what the run is.
        match Device::of_engine(&settings.engine) {
            Some(device) => Ok(ModelSource::Local { model, device, note: None }),
            None if settings.engine == MISTRALRS => Ok(ModelSource::Mistralrs(model)),
            None => {
                Err(EvalError::setting(format!("the run's engine is {}, which this program has not", settings.engine)))
            }
        }
    }

    /// Opens checkpoints and reaches an endpoint; loads no weights.
    pub fn open(
        &self,
        thinking: Option<bool>,
        engine: &EngineSettings,
        traffic: &TrafficSettings,
    ) -> Result<Box<dyn OpenModel>, EvalError> {
        Ok(match self {
            ModelSource::Local { model, device, note } => {
                Box::new(LocalModel::open(model, device, note.as_deref(), thinking, engine)?)
            }
            ModelSource::Mistralrs(model) => Box::new(ProcessModel::open(model, thinking, traffic)?),
            ModelSource::Endpoint(source) => Box::new(EndpointModel::open(source, thinking, traffic)?),
        })
    }
}

/// An endpoint's address, which offline mode confines to this machine.
pub fn address(url: &str, hub: &HubSettings) -> Result<Address, EvalError> {
    let address = Address::parse(url).map_err(|error| EvalError::setting(error.to_string()))?;
    if hub.environment().offline.is_some() && !address.is_loopback() {
        let mode = if hub.offline { "--offline" } else { "offline mode (HF_HUB_OFFLINE or TRANSFORMERS_OFFLINE)" };
        let message = format!("{mode} opens no connection, and {} is not on this machine", address.as_str());
        return Err(EvalError::setting(message).hint("endpoints on 127.0.0.1, ::1 and localhost are allowed"));
    }
    Ok(address)
}

/// A model whose metadata is read and whose weights are not: everything an evaluation needs before the first request.
pub trait OpenModel {
    /// The engine's name in a run's settings.
    fn engine(&self) -> &'static str;

    /// Renders prompts.
    fn prompt_source(&self) -> Box<dyn PromptSource + '_>;

    /// The chat template's thinking switch, if it has one and it was set.
    fn enable_thinking(&self) -> Option<bool>;

    /// Generation defaults of the checkpoint; none where no checkpoint is here.
    fn defaults(&self) -> Option<CheckpointDefaults>;

    /// Size and SHA-256 of the files that are here; `progress` gets bytes done and bytes in all.
    fn hash_files(&self, progress: &mut dyn FnMut(u64, u64)) -> Result<Vec<FileRecord>, EvalError>;

    /// Weight format, where weights are changed at load.
    fn weights(&self) -> Option<WeightFormat>;

    /// The endpoint as a run's settings record it.
    fn endpoint(&self) -> Option<EndpointSettings> {
        None
    }

    /// The model as a manifest records it.
    fn record(&self) -> ModelRecord;

    /// Warnings before the model is asked.
    fn warnings(&self) -> Vec<String>;

    /// Loads weights, or connects.
    fn load(&self) -> Result<LoadedEngine, EvalError>;
}

/// An engine that is ready for requests.
pub struct LoadedEngine {
    pub engine: Box<dyn Engine>,
    /// Its options as a manifest records them.
    pub options: serde_json::Value,
    /// Notes for the user, e.g. that memory was short.
    pub notes: Vec<String>,
    /// It computes on a GPU of this machine.
    pub on_gpu: bool,
    /// Seconds that loading took.
    pub load_s: f64,
}

impl LoadedEngine {
    pub(super) fn new(engine: Box<dyn Engine>, options: serde_json::Value, notes: Vec<String>) -> Self {
        LoadedEngine { engine, options, notes, on_gpu: false, load_s: 0.0 }
    }

    /// Loads a model and takes the time.
    pub(crate) fn timed(model: &dyn OpenModel) -> Result<Self, EvalError> {
        let started = Instant::now();
        let loaded = model.load()?;
        Ok(LoadedEngine { load_s: started.elapsed().as_secs_f64(), ..loaded })
    }

    /// The engine as a manifest records it, with its counters so far.
    pub fn record(&self) -> EngineRecord {
        EngineRecord {
            card: self.engine.card(),
            options: self.options.clone(),
            load_s: self.load_s,
            statistics: self.engine.statistics(),
        }
    }
}
