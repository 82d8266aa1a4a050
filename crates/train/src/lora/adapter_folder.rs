//! Adapters in PEFT's layout: `adapter_config.json` and `adapter_model.safetensors`.
use std::collections::HashMap;
use std::path::{Path, PathBuf};

use candle_core::{Device, Tensor};
use serde_json::{Map, Value, json};

use super::settings::LoraSettings;
use super::{Base, LoraData};
use crate::folder::{StoredType, put, safetensors_bytes};
use crate::{AdapterSettings, Parameters, TARGETS, TrainError};

const CONFIG: &str = "adapter_config.json";
/// Adapters of a model without positions, under a name that PEFT does not look for: it would put them on a model with them.
const CONFIG_NOPE: &str = "earnest_adapter_config.json";
const TENSORS: &str = "adapter_model.safetensors";
const PREFIX: &str = "base_model.model.";

/// Settings of PEFT's LoRA that change what is computed, with the values that leave it as it is here.
const PLAIN: [(&str, &[&str]); 9] = [
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

/// Adapters as a folder has them.
#[derive(Debug)]
pub struct AdapterFolder {
    folder: PathBuf,
    /// The training's settings; none if another program made the adapters.
    settings: Option<LoraSettings>,
    scale: f64,
    tensors: HashMap<String, Tensor>,
}

pub(super) fn write(
    folder: &Path,
    settings: &LoraSettings,
    base: &Base,
    parameters: &Parameters,
) -> Result<(), TrainError> {
    let named: Vec<(String, &Tensor)> =
        parameters.iter().map(|(name, variable)| (format!("{PREFIX}{name}"), variable.as_tensor())).collect();
    let bytes = safetensors_bytes(named.iter().map(|(name, tensor)| (name.as_str(), *tensor)), StoredType::F32)?;
    put(&folder.join(TENSORS), &bytes)?;
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
    put(&folder.join(name), format!("{config:#}\n").as_bytes())?;
    if settings.retrofit.single_digits {
        // With the base's own tokenizer, the adapted model would see other tokens than it learnt.
        put(&folder.join("tokenizer.json"), format!("{:#}\n", base.checkpoint().tokenizer.json()?).as_bytes())?;
    }
    Ok(())
}

impl AdapterFolder {
    /// Reads a folder of [`crate::LoraTrainer`] or of PEFT.
    ///
    /// # Errors
    /// [`TrainError::Resume`] for what is damaged or not supported.
    pub fn open(folder: &Path) -> Result<Self, TrainError> {
        let settings = match std::fs::read_to_string(folder.join("training.json")) {
            Ok(text) => Some(serde_json::from_str::<LoraSettings>(&text).map_err(|error| TrainError::Resume {
                path: folder.join("training.json"),
                problem: error.to_string(),
            })?),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
            Err(source) => return Err(TrainError::File { path: folder.join("training.json"), source }),
        };
        let nope = settings.as_ref().is_some_and(|settings| settings.retrofit.nope);
        let path = folder.join(if nope { CONFIG_NOPE } else { CONFIG });
        let text = std::fs::read_to_string(&path).map_err(|source| TrainError::File { path: path.clone(), source })?;
        let wrong = |problem: String| TrainError::Resume { path: path.clone(), problem };
        let config: Map<String, Value> = serde_json::from_str(&text).map_err(|error| wrong(error.to_string()))?;
        let scale = scale(&config).map_err(wrong)?;
        let path = folder.join(TENSORS);
        let bytes = std::fs::read(&path).map_err(|source| TrainError::File { path: path.clone(), source })?;
        let wrong = |problem: String| TrainError::Resume { path: path.clone(), problem };
        let tensors = candle_core::safetensors::load_buffer(&bytes, &Device::Cpu)
            .map_err(|error| wrong(error.to_string()))?
            .into_iter()
            .map(|(name, tensor)| match name.strip_prefix(PREFIX) {
                Some(name) => Ok((name.to_owned(), tensor)),
                None => Err(wrong(format!("{name} does not begin with {PREFIX}"))),
            })
            .collect::<Result<_, _>>()?;
        Ok(AdapterFolder { folder: folder.to_owned(), settings, scale, tensors })
    }

    /// The settings of the training that made it.
    pub fn settings(&self) -> Option<&LoraSettings> {
        self.settings.as_ref()
    }

    /// The question that a user may ask next, if the training was of questions: tasks, lengths.
    pub fn questions(&self) -> Option<(&[String], &[usize])> {
        match &self.settings.as_ref()?.data {
            LoraData::Questions { tasks, lengths, .. } => Some((tasks, lengths)),
            LoraData::Pairs { .. } => None,
        }
    }

    /// What is added to the matrices of a base, by their names: `alpha / rank * B A`.
    ///
    /// # Errors
    /// [`TrainError::Resume`] if a factor is missing, has no matrix in the base, or another shape.
    pub(super) fn deltas(&self, base: &Base) -> Result<HashMap<String, Tensor>, TrainError> {
        let wrong = |problem: String| TrainError::Resume { path: self.folder.join(TENSORS), problem };
        let shapes: HashMap<&str, &[usize]> = base.tensors().collect();
        let mut deltas = HashMap::new();
        for (name, a) in &self.tensors {
            if name.ends_with(".lora_B.weight") {
                continue;
            }
            let module = name.strip_suffix(".lora_A.weight");
            let module = module.ok_or_else(|| wrong(format!("{name} is no factor of LoRA")))?;
            let matrix = format!("{module}.weight");
            let shape = shapes.get(matrix.as_str());
            let known = TARGETS.iter().any(|target| module.ends_with(target));
            let shape = *shape
                .filter(|_| known)
                .ok_or_else(|| wrong(format!("{module} is no matrix of the base that can be adapted")))?;
            let b = self.tensors.get(&format!("{module}.lora_B.weight"));
            let b = b.ok_or_else(|| wrong(format!("{module}.lora_B.weight is missing")))?;
            let fits = matches!((a.dims(), b.dims()), ([rank, columns], [rows, ranks])
                if rank == ranks && [*rows, *columns] == shape[..]);
            if !fits {
                let problem =
                    format!("{module} is {shape:?} in the base, its factors {:?} and {:?}", a.dims(), b.dims());
                return Err(wrong(problem));
            }
            let f32 = |x: &Tensor| x.to_dtype(candle_core::DType::F32);
            deltas.insert(matrix, (f32(b)?.matmul(&f32(a)?)? * self.scale)?);
        }
        if deltas.len() * 2 != self.tensors.len() {
            return Err(wrong("a factor A is missing".to_owned()));
        }
        Ok(deltas)
    }
}

/// `alpha / rank`, if everything else is as it is here.
fn scale(config: &Map<String, Value>) -> Result<f64, String> {
    if config.get("peft_type").and_then(Value::as_str) != Some("LORA") {
        return Err("peft_type is not LORA".to_owned());
    }
    for (key, plain) in PLAIN {
        if let Some(value) =
            config.get(key).filter(|value| !value.is_null() && !plain.contains(&value.to_string().as_str()))
        {
            return Err(format!("{key} is {value}, which is not supported"));
        }
    }
    let number = |key: &str| config.get(key).and_then(Value::as_f64).filter(|number| *number > 0.0);
    match (number("lora_alpha"), number("r")) {
        (Some(alpha), Some(rank)) => Ok(alpha / rank),
        _ => Err("r and lora_alpha are positive numbers".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_changes_the_maths_is_refused_by_name() {
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
            assert!(scale(&config(change)).unwrap_err().contains(named));
        }
    }
}
