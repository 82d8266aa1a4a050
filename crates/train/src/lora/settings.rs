//! Everything that determines a training of adapters.
use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::Retrofit;
use crate::{AdamWSettings, AdapterSettings, FormatSettings, Schedule, StreamSettings, TrainError, TrainingTask};
use earnest_eval::prompt::ModeRequest;
use earnest_tasks::suite::nupa::{PairRules, ShorterOperand, rule};

/// How prompts are put to the model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PromptForm {
    /// As bare text.
    #[default]
    Raw,
    /// With the checkpoint's chat template.
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

/// The checkpoint that is adapted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BaseRecord {
    /// As it was named.
    pub model: String,
    /// The folder or file. Where it lies does not matter, its files do.
    pub path: PathBuf,
    /// SHA-256 of its files, by name.
    pub files: BTreeMap<String, String>,
}

/// What is learnt.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum LoraData {
    /// Streamed questions of the part `train`.
    Questions {
        /// Tasks; one named twice is asked twice as often.
        tasks: Vec<String>,
        /// Lengths that are learnt; likewise.
        lengths: Vec<usize>,
        /// Lengths that are only validated.
        #[serde(default)]
        beyond: Vec<usize>,
        /// How numbers are written.
        #[serde(default)]
        format: FormatSettings,
        /// The shorter operand may have any length.
        #[serde(default)]
        any_shorter_operand: bool,
        /// Prompts with the rule and answers with its trace (RF-CoT) instead of plain ones.
        #[serde(default)]
        rule_following: bool,
    },
    /// Prompts and completions of a file of JSON lines.
    Pairs {
        /// The file.
        file: PathBuf,
        /// SHA-256 of the file.
        sha256: String,
        /// Share of the rows that are not learnt but validated.
        held_out: f64,
        /// The field of the prompt; none: the first of the usual names that a row has.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        prompt_field: Option<String>,
        /// The field of the completion; likewise.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        completion_field: Option<String>,
        /// A system message, or a line before each raw prompt.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        system: Option<String>,
        /// What stands between a raw prompt and its completion, unless one of them has white space there.
        separator: String,
    },
}

/// A training of adapters.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LoraSettings {
    /// The checkpoint.
    pub base: BaseRecord,
    /// What is changed in it first.
    #[serde(default)]
    pub retrofit: Retrofit,
    /// The adapters.
    pub adapters: AdapterSettings,
    /// What is learnt.
    pub data: LoraData,
    /// How prompts are put.
    #[serde(default)]
    pub prompt: PromptForm,
    /// Seed of adapters, questions and dropout.
    pub seed: u64,
    /// Examples of a step.
    pub batch: usize,
    /// Pieces that a batch is computed in, one after the other: more take less memory.
    pub accumulate: usize,
    /// Parts of a piece whose gradients are computed at the same time.
    pub parts: usize,
    /// Steps.
    pub steps: u64,
    /// Peak of the learning rate.
    pub learning_rate: f64,
    /// Steps of the warm-up.
    pub warm_up: u64,
    /// The optimiser.
    #[serde(default)]
    pub optimiser: AdamWSettings,
    /// Steps between validations.
    pub validate_every: u64,
    /// Questions of each task and length in a validation, or rows in all.
    pub validation: usize,
    /// Longest sequence in tokens.
    pub context: usize,
}

impl LoraSettings {
    /// The learning rate's course.
    pub fn schedule(&self) -> Schedule {
        Schedule { peak: self.learning_rate, warm_up: self.warm_up, steps: self.steps, floor: 0.0 }
    }

    /// What is streamed at these lengths.
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
            // The checkpoint has no tokens for hints, and tokens of its own.
            tokens: None,
            seed: self.seed,
        })
    }

    /// Checks what single fields can not.
    ///
    /// # Errors
    /// [`TrainError::Setting`].
    pub fn check(&self) -> Result<(), TrainError> {
        let wrong = |setting, problem: String| Err(TrainError::Setting { setting, problem });
        self.adapters.check()?;
        if [self.batch, self.accumulate, self.parts].contains(&0) || self.steps == 0 || self.context == 0 {
            return wrong("batch", "batch, accumulate, parts, steps and context are at least 1".into());
        }
        if self.accumulate * self.parts > self.batch {
            let problem = format!(
                "{} examples can not be cut into {} pieces of {} parts with at least one each",
                self.batch, self.accumulate, self.parts
            );
            return wrong("batch", problem);
        }
        if !(self.learning_rate > 0.0 && self.learning_rate.is_finite()) {
            return wrong("learning_rate", "it is a positive number".into());
        }
        if self.validate_every == 0 || self.validation == 0 {
            return wrong("validation", "validate_every and validation are at least 1".into());
        }
        match &self.data {
            LoraData::Questions { tasks, lengths, beyond, format, rule_following, .. } => {
                if tasks.is_empty() || lengths.is_empty() {
                    return wrong("tasks", "at least one task and one length are learnt".into());
                }
                if let Some(length) = beyond.iter().find(|length| lengths.contains(length)) {
                    return wrong("beyond", format!("length {length} is learnt, so it is not beyond what is learnt"));
                }
                let plain = format.number_format()?.is_plain();
                for task in tasks {
                    match task.parse()? {
                        TrainingTask::Nupa(task) if *rule_following => {
                            rule(task).map_err(|e| TrainError::Setting { setting: "tasks", problem: e.to_string() })?;
                        }
                        TrainingTask::ArithmeticBench(_) if *rule_following => {
                            return wrong("tasks", format!("there is no rule for {task}"));
                        }
                        TrainingTask::ArithmeticBench(_) if !plain => {
                            return wrong("format", format!("{task} asks plainly written numbers"));
                        }
                        _ => {}
                    }
                }
                if *rule_following && !plain {
                    return wrong("format", "rules work on plainly written numbers".into());
                }
                Ok(())
            }
            LoraData::Pairs { held_out, .. } if !(0.0..1.0).contains(held_out) => {
                wrong("held_out", "it is a share from 0 on and below 1".into())
            }
            LoraData::Pairs { .. } => Ok(()),
        }
    }
}
