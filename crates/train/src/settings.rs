//! Everything that determines a training from scratch.
use serde::{Deserialize, Serialize};

use super::folder::StoredType;
use super::tokenizer::{DigitGroups, check_hints};
use super::{
    AdamWSettings, PositionEncoding, Schedule, Size, StreamSettings, TokenizerSettings, TrainError, TrainingTask,
};
use earnest_tasks::suite::nupa::{IndexHints, NumberFormat, PairRules, ShorterOperand};

/// How numbers are written in training and in use (Number Cookbook, 4.2).
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FormatSettings {
    /// Parts written backwards: none, int, dec, each or total.
    #[serde(default = "no_reversal")]
    pub reversal: String,
    /// Operands padded to the longer one.
    #[serde(default)]
    pub zero_padding: bool,
    /// Size of the alphabet of index hints.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub index_hints: Option<usize>,
}

fn no_reversal() -> String {
    "none".to_owned()
}

impl Default for FormatSettings {
    fn default() -> Self {
        FormatSettings { reversal: no_reversal(), zero_padding: false, index_hints: None }
    }
}

impl FormatSettings {
    /// The format.
    ///
    /// # Errors
    /// [`TrainError::Setting`] with the reversals that there are.
    pub fn number_format(&self) -> Result<NumberFormat, TrainError> {
        let reversal = self
            .reversal
            .parse()
            .map_err(|error| TrainError::Setting { setting: "reversal", problem: format!("{error}") })?;
        let index_hints = self.index_hints.map(|alphabet| IndexHints { alphabet, ..IndexHints::default() });
        Ok(NumberFormat { reversal, zero_padding: self.zero_padding, index_hints })
    }
}

/// Tasks that take the place of the first ones after a while.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NextTasks {
    /// The tasks.
    pub tasks: Vec<String>,
    /// The steps before; a multiple of 8. The learning rate begins anew after them.
    pub after: u64,
}

/// A training from scratch.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TrainSettings {
    /// Widths of the model.
    pub size: Size,
    /// How it knows the order of tokens.
    #[serde(default)]
    pub position: PositionEncoding,
    /// Its tokenizer.
    pub tokenizer: TokenizerSettings,
    /// Tasks of the NUPA Test by name, of Arithmetic-Bench as `arithmetic-bench:NAME`. One named twice is asked twice as often.
    pub tasks: Vec<String>,
    /// What is learnt next, if anything, to see what is forgotten (Arithmetic-Bench, A.5). Validations ask all tasks all the time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub then: Option<NextTasks>,
    /// Lengths that are learnt; likewise.
    pub lengths: Vec<usize>,
    /// Longer ones that are only validated.
    #[serde(default)]
    pub beyond: Vec<usize>,
    /// How numbers are written.
    #[serde(default)]
    pub format: FormatSettings,
    /// The shorter operand may have any length (as in the paper's trainings), or at least half of the longer one's.
    #[serde(default)]
    pub any_shorter_operand: bool,
    /// Seed of weights and questions.
    pub seed: u64,
    /// Examples of a step.
    pub batch: usize,
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
    /// Questions of each task and length in a validation.
    pub validation: usize,
    /// Longest sequence in tokens.
    pub context: usize,
    /// Parts of a batch whose gradients are computed at the same time. It changes the last bits of sums, so it is a setting
    /// and not taken from the machine.
    #[serde(default = "two")]
    pub parts: usize,
    /// Element type of the weights in the folder.
    #[serde(default)]
    pub stored: StoredType,
}

fn two() -> usize {
    2
}

impl TrainSettings {
    /// The tasks.
    ///
    /// # Errors
    /// [`TrainError::Setting`] with the tasks that there are.
    pub fn training_tasks(&self) -> Result<Vec<TrainingTask>, TrainError> {
        self.tasks.iter().map(|name| name.parse()).collect()
    }

    /// The tasks that come next.
    ///
    /// # Errors
    /// As [`TrainSettings::training_tasks`].
    pub fn next_tasks(&self) -> Result<Vec<TrainingTask>, TrainError> {
        self.then.iter().flat_map(|next| &next.tasks).map(|name| name.parse()).collect()
    }

    /// The learning rate of a step, counted from 1.
    pub fn rate(&self, step: u64) -> f64 {
        let over = |steps| Schedule { peak: self.learning_rate, warm_up: self.warm_up, steps, floor: 0.0 };
        match &self.then {
            Some(next) if step > next.after => over(self.steps - next.after).rate(step - next.after),
            Some(next) => over(next.after).rate(step),
            None => over(self.steps).rate(step),
        }
    }

    /// What validations and tests ask, at these lengths: all tasks.
    pub(crate) fn asked(&self, lengths: &[usize]) -> Result<StreamSettings, TrainError> {
        let mut stream = self.stream(lengths)?;
        stream.tasks.extend(self.next_tasks()?);
        Ok(stream)
    }

    /// What is streamed first, at these lengths.
    pub(super) fn stream(&self, lengths: &[usize]) -> Result<StreamSettings, TrainError> {
        let shorter = if self.any_shorter_operand { ShorterOperand::Any } else { ShorterOperand::default() };
        Ok(StreamSettings {
            tasks: self.training_tasks()?,
            lengths: lengths.to_vec(),
            pairs: PairRules { shorter, ..PairRules::default() },
            format: self.format.number_format()?,
            tokens: Some(self.tokenizer.clone()),
            seed: self.seed,
        })
    }

    /// Checks what single fields can not.
    ///
    /// # Errors
    /// [`TrainError::Setting`].
    pub fn check(&self) -> Result<(), TrainError> {
        self.size.check()?;
        let wrong = |setting, problem: &str| Err(TrainError::Setting { setting, problem: problem.to_owned() });
        if self.tasks.is_empty() || self.lengths.is_empty() {
            return wrong("tasks", "at least one task and one length are learnt");
        }
        if self.batch == 0 || self.steps == 0 || self.parts == 0 || self.parts > self.batch {
            return wrong("batch", "batch, steps and parts are at least 1, and a part has at least one example");
        }
        if !(self.learning_rate > 0.0 && self.learning_rate.is_finite()) {
            return wrong("learning_rate", "it is a positive number");
        }
        let AdamWSettings { beta1, beta2, eps, weight_decay, clip } = self.optimiser;
        if ![beta1, beta2].iter().all(|beta| (0.0..1.0).contains(beta)) {
            return wrong("beta2", "decays of moments are from 0 to below 1");
        }
        if !(weight_decay >= 0.0 && weight_decay.is_finite()) {
            return wrong("weight_decay", "it is 0 or a positive number");
        }
        if !(eps > 0.0 && eps.is_finite() && clip > 0.0) {
            return wrong("clip", "it is a positive number");
        }
        if self.validate_every == 0 || self.validation == 0 {
            return wrong("validation", "validate_every and validation are at least 1");
        }
        if let Some(length) = self.beyond.iter().find(|length| self.lengths.contains(length)) {
            let problem = format!("length {length} is learnt, so it is not beyond what is learnt");
            return Err(TrainError::Setting { setting: "beyond", problem });
        }
        if self.lengths.iter().chain(&self.beyond).any(|length| *length == 0) {
            return wrong("lengths", "lengths are at least 1");
        }
        let mut tasks = self.training_tasks()?;
        if let Some(next) = &self.then {
            if next.tasks.is_empty() || next.after == 0 || next.after >= self.steps || next.after % 8 != 0 {
                return wrong("then", "it needs tasks, and comes after a multiple of 8 steps, before the last one");
            }
            tasks.extend(self.next_tasks()?);
        }
        if !tasks.iter().any(|task| self.lengths.iter().any(|length| *length <= task.longest())) {
            let longest = tasks.iter().map(|task| task.longest()).max().unwrap_or(0);
            let problem = format!("the tasks have no question of these lengths; the longest have {longest} digits");
            return Err(TrainError::Setting { setting: "lengths", problem });
        }
        self.format.number_format()?;
        check_hints(&self.tokenizer, self.format.index_hints)
    }

    /// True if training spells a number in several ways, all of them right: validations, which hold tokens against one of them,
    /// then count too few as exact.
    pub fn several_spellings(&self) -> bool {
        self.tokenizer.groups == DigitGroups::Random && self.tokenizer.digits > 1
    }

    /// True if the folder ends with the newest weights and not with those of the best validation: where several spellings are
    /// right, validation is no measure to choose by, and after other tasks than the first the last weights count.
    pub fn keeps_newest(&self) -> bool {
        self.then.is_some() || self.several_spellings()
    }

    /// Where the warm-up takes all steps or more: the highest learning rate of all, below the one that was asked for.
    pub fn unreached_rate(&self) -> Option<f64> {
        let after = self.then.as_ref().map_or(self.steps, |next| next.after.max(self.steps - next.after));
        (self.warm_up > after).then(|| self.learning_rate * after as f64 / self.warm_up as f64)
    }
}
