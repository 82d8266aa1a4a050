//! Settings of a training from scratch.
use serde::{Deserialize, Serialize};

use super::folder::StoredType;
use super::tokenizer::{DigitGroups, check_hints};
use super::{
    Accuracy, AdamWSettings, AnswerStyle, Criterion, PositionEncoding, Schedule, Size, StreamSettings,
    TokenizerSettings, TrainError, TrainEvent, TrainingTask,
};
use earnest_tasks::suite::nupa::{IndexHints, NumberFormat, PairRules, ShorterOperand, SplitVersion, rule};

/// Number format in training and inference (Number Cookbook, 4.2).
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FormatSettings {
    /// Reversed parts: none, int, dec, each or total.
    #[serde(default = "no_reversal")]
    pub reversal: String,
    /// Zero-padding of operands to the longer one.
    #[serde(default)]
    pub zero_padding: bool,
    /// Size of the alphabet of index hints; `None` for no hints.
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
    /// Returns the format.
    ///
    /// # Errors
    /// [`TrainError::Setting`] for an unknown reversal.
    pub fn number_format(&self) -> Result<NumberFormat, TrainError> {
        let reversal = self
            .reversal
            .parse()
            .map_err(|error| TrainError::Setting { setting: "reversal", problem: format!("{error}") })?;
        let index_hints = self.index_hints.map(|alphabet| IndexHints { alphabet, ..IndexHints::default() });
        Ok(NumberFormat { reversal, zero_padding: self.zero_padding, index_hints })
    }
}

/// Second phase of a training, with other tasks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NextTasks {
    /// Tasks of the second phase.
    pub tasks: Vec<String>,
    /// Steps of the first phase, a multiple of 8. The learning rate schedule restarts after them.
    pub after: u64,
}

/// Settings of a training from scratch; with them, it is reproducible.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TrainSettings {
    /// Dimensions of the model.
    pub size: Size,
    /// Positional encoding.
    #[serde(default)]
    pub position: PositionEncoding,
    pub tokenizer: TokenizerSettings,
    /// Tasks of the NUPA Test by name, of Arithmetic-Bench as `arithmetic-bench:NAME`. A task named twice is sampled twice as often.
    pub tasks: Vec<String>,
    /// Styles of the answers; one named twice is sampled twice as often.
    #[serde(default = "questions", skip_serializing_if = "are_questions")]
    pub styles: Vec<AnswerStyle>,
    /// Second phase, if any, to measure forgetting (Arithmetic-Bench, A.5). Validations cover the tasks of both phases.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub then: Option<NextTasks>,
    /// Lengths in training; one named twice is sampled twice as often.
    pub lengths: Vec<usize>,
    /// Lengths in validation only, for length generalisation.
    #[serde(default)]
    pub beyond: Vec<usize>,
    /// Number format.
    #[serde(default)]
    pub format: FormatSettings,
    /// True if the shorter operand may have any length, as in the paper's trainings; otherwise it has at least half the longer one's.
    #[serde(default)]
    pub any_shorter_operand: bool,
    /// Version of the splits; files without it were written when there was only the first.
    #[serde(default = "first_splits", skip_serializing_if = "is_first")]
    pub splits: SplitVersion,
    /// Seed of weights and questions.
    pub seed: u64,
    /// Batch size: examples per step.
    pub batch: usize,
    /// Number of steps; with a criterion, the most steps of an attempt.
    pub steps: u64,
    /// Criterion that ends the training before its last step, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Criterion>,
    /// Peak learning rate.
    pub learning_rate: f64,
    /// Steps of the warm-up.
    pub warm_up: u64,
    #[serde(default)]
    pub optimiser: AdamWSettings,
    /// Steps between validations.
    pub validate_every: u64,
    /// Questions per task and length in a validation.
    pub validation: usize,
    /// Longest sequence in tokens.
    pub context: usize,
    /// Parts of a batch whose gradients are computed in parallel. A setting, not a property of the machine, because it changes the
    /// last bits of sums.
    #[serde(default = "two")]
    pub parts: usize,
    /// Element type of the stored weights.
    #[serde(default)]
    pub stored: StoredType,
}

impl Default for TrainSettings {
    /// The settings of a small model of additions, which are the defaults of options and experiment files.
    fn default() -> Self {
        TrainSettings {
            size: Size::NAMED[0].1,
            position: PositionEncoding::default(),
            tokenizer: TokenizerSettings::default(),
            tasks: vec!["add_Integer".to_owned()],
            styles: questions(),
            then: None,
            lengths: (1..=8).collect(),
            beyond: Vec::new(),
            format: FormatSettings::default(),
            any_shorter_operand: false,
            splits: SplitVersion::default(),
            seed: 1,
            batch: 128,
            steps: 2000,
            until: None,
            learning_rate: 2e-3,
            warm_up: 100,
            optimiser: AdamWSettings::default(),
            validate_every: 250,
            validation: 50,
            context: 512,
            parts: two(),
            stored: StoredType::default(),
        }
    }
}

fn questions() -> Vec<AnswerStyle> {
    vec![AnswerStyle::Question]
}

fn are_questions(styles: &Vec<AnswerStyle>) -> bool {
    *styles == questions()
}

fn first_splits() -> SplitVersion {
    SplitVersion::One
}

fn is_first(version: &SplitVersion) -> bool {
    *version == SplitVersion::One
}

fn two() -> usize {
    2
}

/// Most words of a tokenizer: each is a row of the embedding. Models of published tokenizers have some 200,000.
const MOST_WORDS: u64 = 1 << 17;

/// Most examples per step: the activations of all of them are in memory.
const MOST_BATCH: u64 = 1 << 12;

/// Longest context in tokens.
const MOST_CONTEXT: u64 = 1 << 16;

/// Most questions per task and length in a validation, and in all of it.
const MOST_VALIDATION: u64 = 1_000_000;
pub(crate) const MOST_QUESTIONS: usize = 10_000_000;

/// Most steps of an attempt: years of the fastest training, and sums of all attempts fit their type.
pub(crate) const MOST_STEPS: u64 = 1_000_000_000;

/// Most restarts of a training that misses its criterion.
const MOST_RESTARTS: u64 = 100;

/// Checks what trainings from scratch and of adapters have alike; `most` has settings by name, with the most that they may be.
///
/// # Errors
/// [`TrainError::Setting`] with the setting's name.
pub(crate) fn check_numbers(
    most: &[(&'static str, u64, u64)],
    learning_rate: f64,
    [validate_every, validation]: [u64; 2],
) -> Result<(), TrainError> {
    let invalid = |setting, problem: String| Err(TrainError::Setting { setting, problem });
    if let Some((setting, number, most)) = most.iter().find(|(_, number, most)| number > most) {
        return invalid(setting, format!("{number} is more than {most}"));
    }
    if !(learning_rate > 0.0 && learning_rate.is_finite()) {
        return invalid("learning_rate", "it must be positive".to_owned());
    }
    if validate_every == 0 || validation == 0 {
        return invalid("validation", "validate_every and validation must be at least 1".to_owned());
    }
    Ok(())
}

impl TrainSettings {
    /// Returns the tasks of the first phase.
    ///
    /// # Errors
    /// [`TrainError::Setting`] for an unknown task.
    pub fn training_tasks(&self) -> Result<Vec<TrainingTask>, TrainError> {
        self.tasks.iter().map(|name| name.parse()).collect()
    }

    /// Returns the tasks of the second phase.
    ///
    /// # Errors
    /// As [`TrainSettings::training_tasks`].
    pub fn next_tasks(&self) -> Result<Vec<TrainingTask>, TrainError> {
        self.then.iter().flat_map(|next| &next.tasks).map(|name| name.parse()).collect()
    }

    /// Returns the most steps of all attempts together.
    pub fn total_steps(&self) -> u64 {
        // Settings of a file are not checked before they are compared with its folder.
        self.steps.saturating_mul(1 + self.until.map_or(0, |until| until.restarts.min(MOST_RESTARTS)))
    }

    /// Returns the number of restarts before a step and the step within its attempt, both counted from 1 on.
    pub(super) fn attempt(&self, step: u64) -> (u64, u64) {
        ((step - 1) / self.steps, (step - 1) % self.steps + 1)
    }

    /// Returns true if these events are those of a complete training: its last step or its criterion is reached, and saved.
    pub fn is_complete(&self, events: &[TrainEvent]) -> bool {
        let saved = |events: &TrainEvent| if let TrainEvent::Saved { step } = events { Some(*step) } else { None };
        let Some(last) = events.iter().filter_map(saved).max() else { return false };
        let met = |until: Criterion| {
            events.iter().any(|event| match event {
                TrainEvent::Validated(validation) => validation.step == last && until.is_met(validation),
                _ => false,
            })
        };
        last == self.total_steps() || self.until.is_some_and(met)
    }

    /// Returns the learning rate of a step, counted from 1.
    pub fn rate(&self, step: u64) -> f64 {
        let (_, step) = self.attempt(step);
        let over = |steps| Schedule { steps, ..self.schedule() };
        match &self.then {
            Some(next) if step > next.after => over(self.steps - next.after).rate(step - next.after),
            Some(next) => over(next.after).rate(step),
            None => over(self.steps).rate(step),
        }
    }

    /// Stream of validations and tests at these lengths: the tasks of both phases.
    pub(crate) fn evaluation_stream(&self, lengths: &[usize]) -> Result<StreamSettings, TrainError> {
        let mut stream = self.stream(lengths)?;
        stream.tasks.extend(self.next_tasks()?);
        Ok(stream)
    }

    /// Stream of the first phase at these lengths.
    pub(super) fn stream(&self, lengths: &[usize]) -> Result<StreamSettings, TrainError> {
        let shorter = if self.any_shorter_operand { ShorterOperand::Any } else { ShorterOperand::default() };
        Ok(StreamSettings {
            tasks: self.training_tasks()?,
            lengths: lengths.to_vec(),
            pairs: PairRules { shorter, ..PairRules::default() },
            format: self.format.number_format()?,
            tokens: Some(self.tokenizer.clone()),
            seed: self.seed,
            splits: self.splits,
            styles: self.styles.clone(),
        })
    }

    /// Checks that so many questions per task and length are not too many in all.
    ///
    /// # Errors
    /// [`TrainError::Setting`] with the setting's name.
    pub(crate) fn check_questions(&self, setting: &'static str, questions: usize) -> Result<(), TrainError> {
        let tasks = self.tasks.len() + self.then.as_ref().map_or(0, |next| next.tasks.len());
        let lengths = self.lengths.len() + self.beyond.len();
        let all = questions.saturating_mul(tasks).saturating_mul(lengths);
        if all <= MOST_QUESTIONS {
            return Ok(());
        }
        let problem = format!(
            "{questions} questions for each of {tasks} tasks and {lengths} lengths are {all}, more than {MOST_QUESTIONS}"
        );
        Err(TrainError::Setting { setting, problem })
    }

    /// Checks the combination of settings.
    ///
    /// # Errors
    /// [`TrainError::Setting`].
    pub fn check(&self) -> Result<(), TrainError> {
        self.size.check()?;
        let invalid = |setting, problem: &str| Err(TrainError::Setting { setting, problem: problem.to_owned() });
        if self.tasks.is_empty() || self.lengths.is_empty() {
            return invalid("tasks", "name at least one task and one length");
        }
        let most = [
            ("words", self.tokenizer.words as u64, MOST_WORDS),
            ("batch", self.batch as u64, MOST_BATCH),
            ("context", self.context as u64, MOST_CONTEXT),
            ("validation", self.validation as u64, MOST_VALIDATION),
            ("steps", self.steps, MOST_STEPS),
        ];
        check_numbers(&most, self.learning_rate, [self.validate_every, self.validation as u64])?;
        self.check_questions("validation", self.validation)?;
        if self.batch == 0 || self.steps == 0 || self.parts == 0 || self.parts > self.batch {
            return invalid("batch", "batch, steps and parts must be at least 1, and parts at most batch");
        }
        if let Some(Criterion { accuracy: Accuracy(accuracy), restarts, .. }) = self.until {
            if !(accuracy > 0.0 && accuracy <= 1.0) {
                return invalid("until", "the accuracy must be above 0 and at most 1");
            }
            if self.then.is_some() {
                return invalid("until", "a second phase begins after a number of steps, not after a criterion");
            }
            if restarts > MOST_RESTARTS {
                return invalid("restarts", &format!("{restarts} is more than {MOST_RESTARTS}"));
            }
        }
        self.optimiser.check()?;
        if let Some(length) = self.beyond.iter().find(|length| self.lengths.contains(length)) {
            let problem = format!("length {length} is also in lengths; beyond is for lengths outside training");
            return Err(TrainError::Setting { setting: "beyond", problem });
        }
        if self.lengths.iter().chain(&self.beyond).any(|length| *length == 0) {
            return invalid("lengths", "lengths must be at least 1");
        }
        let mut tasks = self.training_tasks()?;
        if let Some(next) = &self.then {
            if next.tasks.is_empty() || next.after == 0 || next.after >= self.steps || next.after % 8 != 0 {
                return invalid(
                    "then",
                    "it needs tasks, and must start after a multiple of 8 steps, before the last step",
                );
            }
            tasks.extend(self.next_tasks()?);
        }
        if !tasks.iter().any(|task| self.lengths.iter().any(|length| *length <= task.longest())) {
            let longest = tasks.iter().map(|task| task.longest()).max().unwrap_or(0);
            let problem = format!("the tasks have no question of these lengths; their maximum is {longest} digits");
            return Err(TrainError::Setting { setting: "lengths", problem });
        }
        if self.styles.is_empty() {
            return invalid("style", "name at least one style");
        }
        if self.styles.contains(&AnswerStyle::RuleFollowing) {
            if !self.format.number_format()?.is_plain() {
                return invalid("style", "rules are followed with plain numbers; remove reversal, padding and hints");
            }
            for task in &tasks {
                let TrainingTask::Nupa(task) = task else {
                    return invalid("style", "only tasks of the NUPA Test have rules to follow");
                };
                rule(*task).map_err(|error| TrainError::Setting { setting: "style", problem: error.to_string() })?;
            }
        }
        self.format.number_format()?;
        check_hints(&self.tokenizer, self.format.index_hints)
    }

    /// Returns true if a number has several valid tokenizations in training. Validations compare with one of them, so their exact
    /// match is a lower bound.
    pub fn has_ambiguous_tokenization(&self) -> bool {
        self.tokenizer.groups == DigitGroups::Random && self.tokenizer.digits > 1
    }

    /// Returns true if the folder keeps the last weights instead of those of the best validation: with several valid tokenizations
    /// a validation is only a lower bound, and after a second phase the last weights are the ones of interest.
    pub fn keeps_last(&self) -> bool {
        self.then.is_some() || self.has_ambiguous_tokenization()
    }

    /// Returns the learning rate schedule of the longer phase.
    pub fn schedule(&self) -> Schedule {
        let steps = self.then.as_ref().map_or(self.steps, |next| next.after.max(self.steps - next.after));
        Schedule { peak: self.learning_rate, warm_up: self.warm_up, steps, floor: 0.0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Stored settings with every field. A resumed training compares a digest of this text, so it may not change.
    const FULL: &str = concat!(
        r#"{"size":{"layers":2,"hidden":128,"intermediate":448,"heads":4,"kv_heads":2},"position":"alibi-reversed","#,
        r#""tokenizer":{"digits":3,"groups":"left-to-right","words":256},"tasks":["add_Integer"],"#,
        r#""styles":["question","rule-following"],"then":{"tasks":["max_Integer"],"after":8},"lengths":[1,2,2],"#,
        r#""beyond":[3],"format":{"reversal":"int","zero_padding":true,"index_hints":30},"any_shorter_operand":true,"#,
        r#""splits":2,"seed":18446744073709551615,"batch":32,"steps":40,"#,
        r#""until":{"accuracy":0.95,"every_length":true,"restarts":2},"learning_rate":0.003,"warm_up":5,"#,
        r#""optimiser":{"beta1":0.9,"beta2":0.98,"eps":1e-8,"weight_decay":0.0,"clip":1.0},"validate_every":20,"#,
        r#""validation":12,"context":128,"parts":2,"stored":"bf16"}"#,
    );

    #[test]
    fn stored_settings_keep_their_text() {
        let read: TrainSettings = serde_json::from_str(FULL).unwrap();
        assert_eq!(serde_json::to_string(&read).unwrap(), FULL);
        let first = TrainSettings { styles: questions(), then: None, until: None, splits: SplitVersion::One, ..read };
        let text = serde_json::to_string(&first).unwrap();
        let left_out = ["styles", "then", "until", "splits"].map(|key| text.contains(&format!("\"{key}\":")));
        assert_eq!(left_out, [false; 4], "{text}");
        assert_eq!(serde_json::from_str::<TrainSettings>(&text).unwrap(), first);
    }
}
