//! Adapter folders in PEFT's layout: `adapter_config.json` and `adapter_model.safetensors`.
use std::collections::HashMap;
use std::path::{Path, PathBuf};

use candle_core::{Device, Tensor};
use earnest_digest::input;
use serde_json::{Map, Value, json};

use super::settings::LoraSettings;
use super::{Base, LoraData};
use crate::folder::{StoredType, safetensors_bytes, write_atomic};
use crate::{AdapterSettings, Parameters, TARGETS, TrainError};

const CONFIG: &str = "adapter_config.json";
/// Configuration of adapters for a NoPE model, under a name that PEFT does not read: PEFT would apply them to the model with
/// positions.
const CONFIG_NOPE: &str = "earnest_adapter_config.json";
const TENSORS: &str = "adapter_model.safetensors";
const PREFIX: &str = "base_model.model.";

/// Settings of PEFT's LoRA that change the computation, with the values that are supported.
const SUPPORTED: [(&str, &[&str]); 9] = [
    ("use_dora", &["false"]),
    ("use_rslora", &["false"]),
    ("fan_in_fan_out", &["false"]),
    ("lora_bias", &["false"]),
    ("bias", &["\"none\""]),
    ("modules_to_save", &["[]"]),
    ("rank_pattern", &["{}"]),
    ("alpha_pattern", &["{}"]),
    ("layer_replication", &["[]"]),
];

/// Adapters read from a folder.
#[derive(Debug)]
pub struct AdapterFolder {
    folder: PathBuf,
    /// Settings of the training; `None` if another program wrote the adapters.
    settings: Option<LoraSettings>,
    scale: f64,
    tensors: HashMap<String, Tensor>,
}

/// Writes the adapters and their configuration.
///
/// # Errors
/// [`TrainError::File`], [`TrainError::Tensor`].
pub(super) fn write(
    folder: &Path,
    settings: &LoraSettings,
    base: &Base,
    parameters: &Parameters,
) -> Result<(), TrainError> {
    let named: Vec<(String, &Tensor)> =
        parameters.iter().map(|(name, variable)| (format!("{PREFIX}{name}"), variable.as_tensor())).collect();
    let bytes = safetensors_bytes(named.iter().map(|(name, tensor)| (name.as_str(), *tensor)), StoredType::F32)?;
    write_atomic(&folder.join(TENSORS), &bytes)?;
    let AdapterSettings { rank, alpha, targets, dropout } = &settings.adapters;
    let config = json!({
        "peft_type": "LORA",
        "task_type": "CAUSAL_LM",
        "base_model_name_or_path": settings.base.model,
        "revision": null,
        "inference_mode": true,
        "r": rank,
        "lora_alpha": alpha,
        "lora_dropout": dropout,
        "target_modules": targets,
        "bias": "none",
        "fan_in_fan_out": false,
        "init_lora_weights": true,
        "modules_to_save": null,
        "use_dora": false,
        "use_rslora": false,
        "rank_pattern": {},
        "alpha_pattern": {},
    });
    let name = if settings.retrofit.nope { CONFIG_NOPE } else { CONFIG };
    write_atomic(&folder.join(name), format!("{config:#}\n").as_bytes())?;
    if settings.retrofit.single_digits {
        // The base's own tokenizer would produce other tokens than in training.
        write_atomic(
            &folder.join("tokenizer.json"),
            format!("{:#}\n", base.checkpoint().tokenizer.json()?).as_bytes(),
        )?;
    }
    Ok(())
}

impl AdapterFolder {
    /// Reads a folder written by [`crate::LoraTrainer`] or PEFT.
    ///
    /// # Errors
    /// [`TrainError::Resume`] if it is damaged or uses unsupported settings; [`TrainError::File`].
    pub fn open(folder: &Path) -> Result<Self, TrainError> {
        let settings = match input::read_text(&folder.join("training.json"), input::MOST_SETTINGS) {
            Ok(text) => Some(serde_json::from_str::<LoraSettings>(&text).map_err(|error| TrainError::Resume {
                path: folder.join("training.json"),
                problem: error.to_string(),
            })?),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
            Err(source) => return Err(TrainError::File { path: folder.join("training.json"), source }),
        };
        let nope = settings.as_ref().is_some_and(|settings| settings.retrofit.nope);
        let path = folder.join(if nope { CONFIG_NOPE } else { CONFIG });
        let text = input::read_text(&path, input::MOST_SETTINGS)
            .map_err(|source| TrainError::File { path: path.clone(), source })?;
        let invalid = |problem: String| TrainError::Resume { path: path.clone(), problem };
        let config: Map<String, Value> = serde_json::from_str(&text).map_err(|error| invalid(error.to_string()))?;
        let scale = scale(&config).map_err(|error| invalid(error.to_string()))?;
        let path = folder.join(TENSORS);
        let bytes = input::read(&path, crate::state::MOST_TENSORS)
            .map_err(|source| TrainError::File { path: path.clone(), source })?;
        let invalid = |problem: String| TrainError::Resume { path: path.clone(), problem };
        let tensors = candle_core::safetensors::load_buffer(&bytes, &Device::Cpu)
            .map_err(|error| invalid(error.to_string()))?
            .into_iter()
            .map(|(name, tensor)| match name.strip_prefix(PREFIX) {
                Some(name) => Ok((name.to_owned(), tensor)),
                None => Err(invalid(format!("the name of the tensor {name} does not begin with {PREFIX}"))),
            })
            .collect::<Result<_, _>>()?;
        Ok(AdapterFolder { folder: folder.to_owned(), settings, scale, tensors })
    }

    /// Settings of the training that wrote the adapters.
    pub fn settings(&self) -> Option<&LoraSettings> {
        self.settings.as_ref()
    }

    /// Tasks and lengths of the training, if it was on questions.
    pub fn questions(&self) -> Option<(&[String], &[usize])> {
        match &self.settings.as_ref()?.data {
            LoraData::Questions { tasks, lengths, .. } => Some((tasks, lengths)),
            LoraData::Pairs { .. } => None,
        }
    }

    /// Computes the updates of a base's matrices, by name: `alpha / rank * B A`.
    ///
    /// # Errors
    /// [`TrainError::Resume`] if a factor is missing, or does not match a matrix of the base.
    pub(super) fn deltas(&self, base: &Base) -> Result<HashMap<String, Tensor>, TrainError> {
        let invalid = |problem: String| TrainError::Resume { path: self.folder.join(TENSORS), problem };
        let shapes: HashMap<&str, &[usize]> = base.tensors().collect();
        let mut deltas = HashMap::new();
        for (name, a) in &self.tensors {
            if name.ends_with(".lora_B.weight") {
                continue;
            }
            let module = name.strip_suffix(".lora_A.weight");
            let module = module.ok_or_else(|| invalid(format!("{name} is not a LoRA factor")))?;
            let matrix = format!("{module}.weight");
            let shape = shapes.get(matrix.as_str());
            let known = TARGETS.iter().any(|target| module.ends_with(target));
            let shape = *shape
                .filter(|_| known)
                .ok_or_else(|| invalid(format!("{module} is not an adaptable matrix of the base")))?;
            let b = self.tensors.get(&format!("{module}.lora_B.weight"));
            let b = b.ok_or_else(|| invalid(format!("{module}.lora_B.weight is missing")))?;
            let fits = matches!((a.dims(), b.dims()), ([rank, columns], [rows, ranks])
                if rank == ranks && [*rows, *columns] == shape[..]);
            if !fits {
                let problem =
                    format!("{module} is {shape:?} in the base, its factors {:?} and {:?}", a.dims(), b.dims());
                return Err(invalid(problem));
            }
            let f32 = |x: &Tensor| x.to_dtype(candle_core::DType::F32);
            deltas.insert(matrix, (f32(b)?.matmul(&f32(a)?)? * self.scale)?);
        }
        if deltas.len() * 2 != self.tensors.len() {
            return Err(invalid("a B factor has no A factor".to_owned()));
        }
        Ok(deltas)
    }
}

/// Reason why a PEFT configuration cannot be used.
#[derive(Debug, PartialEq, thiserror::Error)]
enum ConfigError {
    #[error("peft_type is not LORA")]
    NotLora,
    #[error("{key} is {value}, which is not supported")]
    Unsupported { key: &'static str, value: Value },
    #[error("r and lora_alpha must be positive numbers")]
    Scale,
}

/// Checks a PEFT configuration; returns `alpha / rank`.
fn scale(config: &Map<String, Value>) -> Result<f64, ConfigError> {
    if config.get("peft_type").and_then(Value::as_str) != Some("LORA") {
        return Err(ConfigError::NotLora);
    }
    for (key, supported) in SUPPORTED {
        if let Some(value) =
            config.get(key).filter(|value| !value.is_null() && !supported.contains(&value.to_string().as_str()))
        {
            return Err(ConfigError::Unsupported { key, value: value.clone() });
        }
    }
    let number = |key: &str| config.get(key).and_then(Value::as_f64).filter(|number| *number > 0.0);
    match (number("lora_alpha"), number("r")) {
        (Some(alpha), Some(rank)) => Ok(alpha / rank),
        _ => Err(ConfigError::Scale),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_that_change_the_computation_are_refused_by_name() {
        let config = |change: Value| {
            let mut config = json!({"peft_type": "LORA", "r": 8, "lora_alpha": 16, "bias": "none", "use_dora": false});
            for (key, value) in change.as_object().unwrap() {
                config[key] = value.clone();
            }
            config.as_object().unwrap().clone()
        };
        assert_eq!(
            scale(&config(json!({"rank_pattern": {}, "modules_to_save": null, "megatron_config": null}))),
            Ok(2.0)
        );
        for (change, named) in [
            (json!({"use_dora": true}), "use_dora"),
            (json!({"use_rslora": true}), "use_rslora"),
            (json!({"bias": "all"}), "bias"),
            (json!({"rank_pattern": {"q_proj": 4}}), "rank_pattern"),
            (json!({"modules_to_save": ["lm_head"]}), "modules_to_save"),
            (json!({"peft_type": "IA3"}), "peft_type"),
            (json!({"r": 0}), "positive"),
        ] {
            assert!(scale(&config(change)).unwrap_err().to_string().contains(named));
        }
    }
}
