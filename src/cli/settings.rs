//! Arguments to settings.
use super::args::{EngineArgs, EosArg, GenerationArgs, ThinkingArg, ThinkingTextArg};
use super::error::CliError;
use super::models::HubArgs;
use earnest_eval::evaluate::{EndOfSequence, GenerationSettings};
use earnest_eval::model::EngineSettings;
use earnest_eval::run::ThinkingRequest;
use earnest_models::hub::HubSettings;
use earnest_tasks::suite::ThinkingText;

impl From<ThinkingArg> for ThinkingRequest {
    fn from(arg: ThinkingArg) -> Self {
        match arg {
            ThinkingArg::Auto => ThinkingRequest::Auto,
            ThinkingArg::On => ThinkingRequest::On,
            ThinkingArg::Off => ThinkingRequest::Off,
        }
    }
}

impl From<ThinkingTextArg> for ThinkingText {
    fn from(arg: ThinkingTextArg) -> Self {
        match arg {
            ThinkingTextArg::Strip => ThinkingText::Stripped,
            ThinkingTextArg::Keep => ThinkingText::Kept,
        }
    }
}

impl GenerationArgs {
    /// Generation as asked, with the seed of `--seed`.
    pub fn settings(&self, seed: u64) -> GenerationSettings {
        GenerationSettings {
            temperature: self.temperature,
            top_k: self.top_k,
            top_p: self.top_p,
            min_p: self.min_p,
            repetition_penalty: self.repetition_penalty,
            recommended: self.recommended,
            max_tokens: self.max_tokens,
            eos: match self.eos {
                None | Some(EosArg::All) => EndOfSequence::All,
                Some(EosArg::Tokenizer) => EndOfSequence::Tokenizer,
            },
            thinking: self.thinking.into(),
            seed,
        }
    }
}

impl EngineArgs {
    /// The engine's settings.
    ///
    /// # Errors
    /// A limit leaves nothing to compute, or one model is asked for on several GPUs.
    pub fn settings(&self) -> Result<EngineSettings, CliError> {
        if let Some(list) = &self.devices {
            return Err(CliError::usage(format!("--devices {list}: one model on several GPUs is not offered"))
                .help("start one program for each GPU: --device cuda:0 --shard 1/2, --device cuda:1 --shard 2/2"));
        }
        let settings = EngineSettings {
            max_batch: self.max_batch,
            kv_memory: self.kv_memory.map(|size| size.0),
            threads: self.threads,
            prefix_cache: !self.no_prefix_cache,
            device: self.device.unwrap_or_default(),
            batch_invariant: self.batch_invariant,
        };
        settings.check()?;
        Ok(settings)
    }
}

impl HubArgs {
    /// Settings of model references.
    pub fn settings(&self) -> HubSettings {
        HubSettings { list: self.models.clone(), offline: self.offline }
    }
}
