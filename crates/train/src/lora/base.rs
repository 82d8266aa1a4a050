//! Base checkpoint of adapters, with its retrofits.
use std::collections::{BTreeMap, HashMap};
use std::path::Path;

use candle_core::{Device, Tensor};
use serde::{Deserialize, Serialize};

use super::config_keys::{Family, family};
use crate::{AdapterSettings, Decoder, Parameters, TrainError};
use earnest_digest::DigestCache;
use earnest_models::checkpoint::{BlockLayout, Checkpoint, DecoderConfig, LayerParameter, Parameter, Position, Values};

/// Changes to a checkpoint before it is trained (Number Cookbook, Table 18).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Retrofit {
    /// True to remove the rotary embedding (NoPE). The result is a SmolLM3ForCausalLM with `no_rope_layers`, because every program
    /// rotates a Llama.
    #[serde(default)]
    pub nope: bool,
    /// True to tokenize numbers digit by digit.
    #[serde(default)]
    pub single_digits: bool,
}

/// Checkpoint that can be adapted.
#[derive(Debug)]
pub struct Base {
    checkpoint: Checkpoint,
    retrofit: Retrofit,
    names: HashMap<String, (Parameter, Vec<usize>)>,
}

impl Base {
    /// Opens a checkpoint and applies the retrofits.
    ///
    /// # Errors
    /// [`TrainError::Checkpoint`]; [`TrainError::Architecture`] for one that cannot be adapted with these retrofits.
    pub fn open(path: &Path, retrofit: Retrofit) -> Result<Self, TrainError> {
        Self::open_allowing(path, &[], retrofit)
    }

    /// Opens a checkpoint as [`Base::open`] does, with what the user allowed ([`Checkpoint::open_allowing`]).
    ///
    /// # Errors
    /// As [`Base::open`].
    pub fn open_allowing(path: &Path, allow: &[String], retrofit: Retrofit) -> Result<Self, TrainError> {
        let mut checkpoint = Checkpoint::open_allowing(path, allow)?;
        // A checkpoint that could not be written is refused before training.
        let family = family(&checkpoint.config)?;
        if retrofit.nope {
            remove_positions(&mut checkpoint.config, family)?;
        }
        if retrofit.single_digits {
            checkpoint.tokenizer = checkpoint.tokenizer.with_single_digits()?;
        }
        let sandwich = checkpoint.config.block == BlockLayout::Sandwich;
        let names = checkpoint.config.parameters().into_iter();
        let names = names.map(|(parameter, shape)| (name(parameter, sandwich), (parameter, shape))).collect();
        Ok(Base { checkpoint, retrofit, names })
    }

    /// Checkpoint with the retrofits applied; its tensors are those of the file.
    pub fn checkpoint(&self) -> &Checkpoint {
        &self.checkpoint
    }

    /// Applied retrofits.
    pub fn retrofit(&self) -> Retrofit {
        self.retrofit
    }

    /// Computes the SHA-256 of the files, by name, in hexadecimal.
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

    /// Names and shapes of the tensors in a Hugging Face folder.
    pub(super) fn tensors(&self) -> impl Iterator<Item = (&str, &[usize])> {
        self.names.iter().map(|(name, (_, shape))| (name.as_str(), shape.as_slice()))
    }

    /// Reads a tensor by name, in f32; Gemma's norms as factors.
    pub(super) fn tensor(&self, name: &str) -> Result<Tensor, TrainError> {
        let Some((parameter, shape)) = self.names.get(name) else {
            return Err(candle_core::Error::Msg(format!("the checkpoint has no tensor {name}")).into());
        };
        let values = match self.checkpoint.tensor(*parameter, shape)?.values {
            Values::F32(values) => values,
            Values::Bf16(bits) => bits.into_iter().map(|bits| half::bf16::from_bits(bits).to_f32()).collect(),
            Values::F16(bits) => bits.into_iter().map(|bits| half::f16::from_bits(bits).to_f32()).collect(),
        };
        Ok(Tensor::from_vec(values, shape.as_slice(), &Device::Cpu)?)
    }

    /// Builds the differentiable model with fresh adapters, which are added to `parameters`.
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

/// Removes the rotary embedding, if SmolLM3 can describe the result.
///
/// # Errors
/// [`TrainError::Architecture`].
fn remove_positions(config: &mut DecoderConfig, family: Family) -> Result<(), TrainError> {
    let unsupported = |part| Err(TrainError::Architecture { architecture: config.architecture.clone(), part });
    if !matches!(family, Family::Llama | Family::Mistral | Family::Qwen2 | Family::SmolLm3) {
        return unsupported(
            "removing its positions (SmolLM3, the target architecture, cannot describe the rest of the model)",
        );
    }
    if config.qkv_bias != config.output_bias {
        return unsupported("removing its positions (SmolLM3 has biases in both queries and outputs or in neither)");
    }
    if config.layers.iter().any(|layer| layer.window.is_some()) {
        return unsupported("removing the positions of windowed attention");
    }
    config.architecture = Family::SmolLm3.name().to_owned();
    config.layers.iter_mut().for_each(|layer| layer.position = Position::None);
    Ok(())
}

/// Name of a parameter in a Hugging Face folder.
fn name(parameter: Parameter, sandwich: bool) -> String {
    use LayerParameter::*;
    let (layer, p) = match parameter {
        Parameter::Embedding => return "model.embed_tokens.weight".into(),
        Parameter::FinalNorm => return "model.norm.weight".into(),
        Parameter::FinalNormBias => return "model.norm.bias".into(),
        Parameter::Head => return "lm_head.weight".into(),
        Parameter::HeadBias => return "lm_head.bias".into(),
        Parameter::Layer(layer, p) => (layer, p),
        // Only in architectures that `family` refuses.
        other => return other.to_string(),
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
        // Only in architectures that `family` refuses.
        _ => return format!("layer {layer} {p:?}"),
    };
    format!("model.layers.{layer}.{part}")
}
