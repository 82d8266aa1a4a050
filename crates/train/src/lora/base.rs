//! The checkpoint that is adapted, with its retrofits.
use std::collections::{BTreeMap, HashMap};
use std::path::Path;

use candle_core::{Device, Tensor};
use serde::{Deserialize, Serialize};

use super::config_keys::{Family, family};
use crate::{AdapterSettings, Decoder, Parameters, TrainError};
use earnest_digest::DigestCache;
use earnest_models::checkpoint::{BlockLayout, Checkpoint, DecoderConfig, LayerParameter, Parameter, Position, Values};

/// What is changed in a loaded checkpoint before it is trained (Number Cookbook, Table 18).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Retrofit {
    /// No rotary embedding any more (NoPE). The result is a SmolLM3ForCausalLM with `no_rope_layers`, because every program
    /// would rotate a Llama.
    #[serde(default)]
    pub nope: bool,
    /// A token holds one digit at most.
    #[serde(default)]
    pub single_digits: bool,
}

/// A checkpoint that can be adapted.
#[derive(Debug)]
pub struct Base {
    checkpoint: Checkpoint,
    retrofit: Retrofit,
    names: HashMap<String, (Parameter, Vec<usize>)>,
}

impl Base {
    /// Opens a folder or file and changes it.
    ///
    /// # Errors
    /// [`TrainError::Checkpoint`]; [`TrainError::Architecture`] for one that can not be adapted, or not so.
    pub fn open(path: &Path, retrofit: Retrofit) -> Result<Self, TrainError> {
        let mut checkpoint = Checkpoint::open(path)?;
        // What could not be written in the end is refused before it is trained.
        let family = family(&checkpoint.config)?;
        if retrofit.nope {
            without_positions(&mut checkpoint.config, family)?;
        }
        if retrofit.single_digits {
            checkpoint.tokenizer = checkpoint.tokenizer.with_single_digits()?;
        }
        let sandwich = checkpoint.config.block == BlockLayout::Sandwich;
        let names = checkpoint.config.parameters().into_iter();
        let names = names.map(|(parameter, shape)| (name(parameter, sandwich), (parameter, shape))).collect();
        Ok(Base { checkpoint, retrofit, names })
    }

    /// The changed checkpoint; its tensors are those of the file.
    pub fn checkpoint(&self) -> &Checkpoint {
        &self.checkpoint
    }

    /// What was changed.
    pub fn retrofit(&self) -> Retrofit {
        self.retrofit
    }

    /// SHA-256 of the files, by name.
    ///
    /// # Errors
    /// [`TrainError::File`].
    pub fn digests(&self) -> Result<BTreeMap<String, String>, TrainError> {
        let cache = DigestCache::for_user();
        let files = self.checkpoint.files().into_iter();
        files
            .map(|path| {
                let digest = cache.sha256_file(&path, |_| {});
                let digest = digest.map_err(|source| TrainError::File { path: path.clone(), source })?;
                Ok((path.file_name().unwrap_or_default().to_string_lossy().into_owned(), digest))
            })
            .collect()
    }

    /// Names of the tensors in a Hugging Face folder, with their shapes.
    pub(super) fn tensors(&self) -> impl Iterator<Item = (&str, &[usize])> {
        self.names.iter().map(|(name, (_, shape))| (name.as_str(), shape.as_slice()))
    }

    /// A tensor by its name, in f32; Gemma's norms as factors.
    pub(super) fn tensor(&self, name: &str) -> Result<Tensor, TrainError> {
        let Some((parameter, shape)) = self.names.get(name) else {
            return Err(candle_core::Error::Msg(format!("the decoder asks for {name}, which there is not")).into());
        };
        let values = match self.checkpoint.tensor(*parameter, shape)?.values {
            Values::F32(values) => values,
            Values::Bf16(bits) => bits.into_iter().map(|bits| half::bf16::from_bits(bits).to_f32()).collect(),
            Values::F16(bits) => bits.into_iter().map(|bits| half::f16::from_bits(bits).to_f32()).collect(),
        };
        Ok(Tensor::from_vec(values, shape.as_slice(), &Device::Cpu)?)
    }

    /// The differentiable model with fresh adapters, which are added to the parameters.
    ///
    /// # Errors
    /// [`TrainError::Architecture`], [`TrainError::Checkpoint`].
    pub fn decoder(
        &self,
        adapters: &AdapterSettings,
        seed: u64,
        parameters: &mut Parameters,
    ) -> Result<Decoder, TrainError> {
        let mut tensor = |name: &str| self.tensor(name);
        Decoder::adapted(&self.checkpoint.config, &mut tensor, adapters, seed, parameters, &Device::Cpu)
    }
}

/// NoPE. Only what SmolLM3 can describe.
fn without_positions(config: &mut DecoderConfig, family: Family) -> Result<(), TrainError> {
    let no = |part| Err(TrainError::Architecture { architecture: config.architecture.clone(), part });
    if !matches!(family, Family::Llama | Family::Mistral | Family::Qwen2 | Family::SmolLm3) {
        return no("removing its positions (SmolLM3, which has layers without, can not describe the rest of it)");
    }
    if config.qkv_bias != config.output_bias {
        return no("removing its positions (in SmolLM3, queries and outputs have biases together or not at all)");
    }
    if config.layers.iter().any(|layer| layer.window.is_some()) {
        return no("removing the positions of windowed attention");
    }
    config.architecture = Family::SmolLm3.name().to_owned();
    config.layers.iter_mut().for_each(|layer| layer.position = Position::None);
    Ok(())
}

/// A parameter's name in a Hugging Face folder.
fn name(parameter: Parameter, sandwich: bool) -> String {
    use LayerParameter::*;
    let (layer, p) = match parameter {
        Parameter::Embedding => return "model.embed_tokens.weight".into(),
        Parameter::FinalNorm => return "model.norm.weight".into(),
        Parameter::FinalNormBias => return "model.norm.bias".into(),
        Parameter::Head => return "lm_head.weight".into(),
        Parameter::HeadBias => return "lm_head.bias".into(),
        Parameter::Layer(layer, p) => (layer, p),
    };
    let part = match p {
        AttentionNorm => "input_layernorm.weight",
        Query => "self_attn.q_proj.weight",
        QueryBias => "self_attn.q_proj.bias",
        Key => "self_attn.k_proj.weight",
        KeyBias => "self_attn.k_proj.bias",
        Value => "self_attn.v_proj.weight",
        ValueBias => "self_attn.v_proj.bias",
        Output => "self_attn.o_proj.weight",
        OutputBias => "self_attn.o_proj.bias",
        QueryNorm => "self_attn.q_norm.weight",
        KeyNorm => "self_attn.k_norm.weight",
        PostAttentionNorm => "post_attention_layernorm.weight",
        MlpNorm if sandwich => "pre_feedforward_layernorm.weight",
        MlpNorm => "post_attention_layernorm.weight",
        PostMlpNorm => "post_feedforward_layernorm.weight",
        Gate => "mlp.gate_proj.weight",
        GateBias => "mlp.gate_proj.bias",
        Up => "mlp.up_proj.weight",
        UpBias => "mlp.up_proj.bias",
        Down => "mlp.down_proj.weight",
        DownBias => "mlp.down_proj.bias",
        // Of architectures that are refused before.
        AttentionNormBias | MlpNormBias | Router | ExpertGate(_) | ExpertUp(_) | ExpertDown(_) => {
            return format!("layer {layer} {p:?}");
        }
    };
    format!("model.layers.{layer}.{part}")
}
