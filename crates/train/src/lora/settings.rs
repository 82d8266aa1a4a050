//! Settings of a training of adapters.
use crate::settings::{MOST_QUESTIONS, MOST_STEPS, check_numbers};
use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::Retrofit;
use crate::{
    AdamWSettings, AdapterSettings, FormatSettings, Schedule, StoredType, StreamSettings, TARGETS, TrainError,
    TrainingTask,
};
use earnest_results::ModeRequest;
use earnest_tasks::suite::nupa::{PairRules, ShorterOperand, SplitVersion, rule};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PromptForm {
    /// Raw text.
    #[default]
    Raw,
    /// The checkpoint's chat template.
    Chat,
}

impl PromptForm {
    pub(super) fn request(self) -> ModeRequest {
        match self {
            PromptForm::Raw => ModeRequest::Raw,
            PromptForm::Chat => ModeRequest::Chat,
        }
    }
}

/// Record of the base checkpoint.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BaseRecord {
    /// Model reference, as the user gave it.
    pub model: String,
    /// Folder or file. Not part of the digest: the checkpoint is identified by `files`.
    pub path: PathBuf,
    /// SHA-256 of the files, by name.
    pub files: BTreeMap<String, String>,
    /// Unknown keys of its configuration that the user let through, and the pre-tokenizer that the user named.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub allow_config: Vec<String>,
}

/// Training data.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum LoraData {
    /// Stream of questions of the split `train`.
    Questions {
        /// Tasks; one named twice is sampled twice as often.
        tasks: Vec<String>,
        /// Lengths in training; one named twice is sampled twice as often.
        lengths: Vec<usize>,
        /// Lengths in validation only.
        #[serde(default)]
        beyond: Vec<usize>,
        /// Number format.
        #[serde(default)]
        format: FormatSettings,
        /// True if the shorter operand may have any length.
        #[serde(default)]
        any_shorter_operand: bool,
        /// True for prompts with the rule and answers with its trace (RF-CoT).
        #[serde(default)]
        rule_following: bool,
    },
    /// Prompts and completions in a file of rows.
    Pairs {
        /// Path of the file. Not part of the digest.
        file: PathBuf,
        /// SHA-256 of the file.
        sha256: String,
        /// Share of rows held out for validation.
        held_out: f64,
        /// Field of the prompt; `None` for the first usual name that a row has.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        prompt_field: Option<String>,
        /// Field of the completion; `None` for the first usual name that a row has.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        completion_field: Option<String>,
        /// System message; with raw prompts, a line before each.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        system: Option<String>,
        /// Separator between a raw prompt and its completion, unless one of them has white space there.
        separator: String,
    },
}

/// Settings of a training of adapters; with them, it is reproducible.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LoraSettings {
    /// Base checkpoint.
    pub base: BaseRecord,
    /// Changes to the base before training.
    #[serde(default)]
    pub retrofit: Retrofit,
    pub adapters: AdapterSettings,
    /// Training data.
    pub data: LoraData,
    #[serde(default)]
    pub prompt: PromptForm,
    /// Seed of adapters, questions and dropout.
    pub seed: u64,
    /// Batch size: examples per step.
    pub batch: usize,
    /// Gradient accumulation: pieces of a batch computed one after the other. More take less memory.
    pub accumulate: usize,
    /// Parts of a piece whose gradients are computed in parallel.
    pub parts: usize,
    /// Number of steps.
    pub steps: u64,
    /// Peak learning rate.
    pub learning_rate: f64,
    /// Steps of the warm-up.
    pub warm_up: u64,
    #[serde(default)]
    pub optimiser: AdamWSettings,
    /// Steps between validations.
    pub validate_every: u64,
    /// Questions per task and length in a validation; with pairs, the number of rows.
    pub validation: usize,
    /// Longest sequence in tokens.
    pub context: usize,
}

/// Settings of a training of adapters without its base, data and seed, as options and experiment files have them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LoraTraining {
    /// Rank of the adapters.
    pub rank: usize,
    /// Scale of the adapters is alpha / rank.
    pub alpha: f64,
    /// Matrices with an adapter.
    pub targets: Vec<String>,
    /// Dropout rate of an adapter's inputs.
    pub dropout: f64,
    /// Optimiser steps.
    pub steps: u64,
    /// Examples a step.
    pub batch: usize,
    /// Pieces of a batch computed one after the other.
    pub accumulate: usize,
    /// Parts of a piece computed in parallel.
    pub parts: usize,
    /// Peak learning rate.
    pub learning_rate: f64,
    /// Warm-up steps.
    pub warm_up: u64,
    /// Largest norm of the gradients.
    pub clip: f64,
    pub weight_decay: f64,
    /// Decay rate of the second moment.
    pub beta2: f64,
    /// Steps between validations.
    pub validate_every: u64,
    /// Questions per task and length in a validation, or held-out rows in total.
    pub validation: usize,
    /// Share of the rows of pairs held out.
    pub held_out: f64,
    /// Longest sequence in tokens; the checkpoint's context if that is shorter.
    pub context: usize,
    /// Element type of the merged checkpoint.
    pub store: StoredType,
}

impl Default for LoraTraining {
    fn default() -> Self {
        let AdamWSettings { clip, weight_decay, beta2, .. } = AdamWSettings::default();
        LoraTraining {
            rank: 16,
            alpha: 32.0,
            targets: TARGETS.map(str::to_owned).to_vec(),
            dropout: 0.0,
            steps: 200,
            batch: 16,
            accumulate: 1,
            parts: 2,
            learning_rate: 1e-3,
            warm_up: 10,
            clip,
            weight_decay,
            beta2,
            validate_every: 50,
            validation: 20,
            held_out: 0.1,
            context: 1024,
            store: StoredType::F32,
        }
    }
}

impl LoraTraining {
    /// Returns the settings of the adapters.
    pub fn adapters(&self) -> AdapterSettings {
        AdapterSettings { rank: self.rank, alpha: self.alpha, targets: self.targets.clone(), dropout: self.dropout }
    }

    /// Returns the learning rate schedule.
    pub fn schedule(&self) -> Schedule {
        Schedule { peak: self.learning_rate, warm_up: self.warm_up, steps: self.steps, floor: 0.0 }
    }
}

/// Most examples per step.
const MOST_BATCH: u64 = 1 << 16;

/// Longest sequence in tokens; the longest contexts of published models have a million.
const MOST_CONTEXT: u64 = 1 << 24;

impl LoraSettings {
    /// Returns the learning rate schedule.
    pub fn schedule(&self) -> Schedule {
        Schedule { peak: self.learning_rate, warm_up: self.warm_up, steps: self.steps, floor: 0.0 }
    }

    /// Stream of questions at these lengths.
    pub(super) fn stream(
        &self,
        tasks: &[String],
        lengths: &[usize],
        format: &FormatSettings,
        any_shorter_operand: bool,
    ) -> Result<StreamSettings, TrainError> {
        let shorter = if any_shorter_operand { ShorterOperand::Any } else { ShorterOperand::default() };
        Ok(StreamSettings {
            tasks: tasks.iter().map(|name| name.parse()).collect::<Result<_, _>>()?,
            lengths: lengths.to_vec(),
            pairs: PairRules { shorter, ..PairRules::default() },
            format: format.number_format()?,
            // The checkpoint's tokenizer has no tokens for hints.
            tokens: None,
            seed: self.seed,
            splits: SplitVersion::One,
            styles: vec![crate::AnswerStyle::Question],
        })
    }

    /// Checks the combination of settings.
    ///
    /// # Errors
    /// [`TrainError::Setting`].
    pub fn check(&self) -> Result<(), TrainError> {
        let invalid = |setting, problem: String| Err(TrainError::Setting { setting, problem });
        self.adapters.check()?;
        if [self.batch, self.accumulate, self.parts].contains(&0) || self.steps == 0 || self.context == 0 {
            return invalid("batch", "batch, accumulate, parts, steps and context must be at least 1".into());
        }
        let most = [
            ("steps", self.steps, MOST_STEPS),
            ("batch", self.batch as u64, MOST_BATCH),
            ("context", self.context as u64, MOST_CONTEXT),
            ("validation", self.validation as u64, MOST_QUESTIONS as u64),
        ];
        check_numbers(&most, self.learning_rate, [self.validate_every, self.validation as u64])?;
        if self.accumulate.saturating_mul(self.parts) > self.batch {
            let problem = format!(
                "{} examples are too few for {} pieces of {} parts each",
                self.batch, self.accumulate, self.parts
            );
            return invalid("batch", problem);
        }
        match &self.data {
            LoraData::Questions { tasks, lengths, beyond, format, rule_following, .. } => {
                if tasks.is_empty() || lengths.is_empty() {
                    return invalid("tasks", "name at least one task and one length".into());
                }
                if let Some(length) = beyond.iter().find(|length| lengths.contains(length)) {
                    return invalid(
                        "beyond",
                        format!("length {length} is also in lengths; beyond is for lengths outside training"),
                    );
                }
                let plain = format.number_format()?.is_plain();
                for task in tasks {
                    match task.parse()? {
                        TrainingTask::Nupa(task) if *rule_following => {
                            rule(task).map_err(|e| TrainError::Setting { setting: "tasks", problem: e.to_string() })?;
                        }
                        TrainingTask::ArithmeticBench(_) if *rule_following => {
                            return invalid("tasks", format!("there is no rule for {task}; choose NUPA tasks"));
                        }
                        TrainingTask::ArithmeticBench(_) if !plain => {
                            return invalid("format", format!("{task} supports plain numbers only"));
                        }
                        _ => {}
                    }
                }
                if *rule_following && !plain {
                    return invalid("format", "rules support plain numbers only".into());
                }
                Ok(())
            }
            LoraData::Pairs { held_out, .. } if !(0.0..1.0).contains(held_out) => {
                invalid("held_out", "it must be at least 0 and below 1".into())
            }
            LoraData::Pairs { .. } => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Stored settings with every field. A resumed training compares a digest of this text, so it may not change.
    const FULL: &str = concat!(
        r#"{"base":{"model":"m","path":"/m","files":{"model.gguf":"00"},"allow_config":["key"]},"#,
        r#""retrofit":{"nope":true,"single_digits":true},"#,
        r#""adapters":{"rank":16,"alpha":32.0,"targets":["q_proj"],"dropout":0.1},DATA,"prompt":"chat","seed":3,"#,
        r#""batch":16,"accumulate":2,"parts":2,"steps":200,"learning_rate":0.001,"warm_up":10,"#,
        r#""optimiser":{"beta1":0.9,"beta2":0.999,"eps":1e-8,"weight_decay":0.01,"clip":1.0},"validate_every":50,"#,
        r#""validation":20,"context":1024}"#,
    );

    const DATA: [&str; 2] = [
        concat!(
            r#""data":{"kind":"questions","tasks":["add_Integer"],"lengths":[1,2],"beyond":[3],"#,
            r#""format":{"reversal":"none","zero_padding":false},"any_shorter_operand":true,"rule_following":true}"#,
        ),
        concat!(
            r#""data":{"kind":"pairs","file":"rows.jsonl","sha256":"00","held_out":0.1,"prompt_field":"p","#,
            r#""completion_field":"c","system":"s","separator":" "}"#,
        ),
    ];

    #[test]
    fn stored_settings_keep_their_text() {
        for data in DATA {
            let text = FULL.replace("DATA", data);
            let read: LoraSettings = serde_json::from_str(&text).unwrap();
            assert_eq!(serde_json::to_string(&read).unwrap(), text);
        }
    }
}
