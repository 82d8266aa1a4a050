//! The options that determine the suite's items.
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::pairs::PairRules;
use super::{NupaError, ShorterOperand, Split, TASKS, TaskId, Wording};
use crate::suite::{ItemOrder, check_size};

/// A file of questions. A run with another content is another run, wherever the file lies.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct QuestionFile {
    /// Absolute path. Under this name it is no part of the settings' hash.
    pub place: String,
    /// Lower-case hexadecimal.
    pub sha256: String,
}

/// Lengths of the questions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Lengths {
    /// Every length from 1 to the task's longest; averages use the lengths that the reference tests.
    All,
    /// The lengths that the reference tests.
    Reference,
    /// These, where the task has them; a length that no selected task has is an error.
    Chosen(Vec<usize>),
}

impl Lengths {
    /// The lengths of a task, ascending.
    pub fn of(&self, task: TaskId) -> Vec<usize> {
        (1..=task.longest())
            .filter(|length| match self {
                Lengths::All => true,
                Lengths::Reference => task.in_reference_range(*length),
                Lengths::Chosen(chosen) => chosen.contains(length),
            })
            .collect()
    }

    /// Checks that every length belongs to some task and every task has some length.
    ///
    /// # Errors
    /// [`NupaError`] that names the length or the task, and what is possible.
    pub(super) fn check(&self, tasks: &[TaskId]) -> Result<(), NupaError> {
        let Lengths::Chosen(chosen) = self else { return Ok(()) };
        if chosen.is_empty() {
            return Err(NupaError::Contradiction { option: "lengths", problem: "no length is named".into() });
        }
        let Some(&widest) = tasks.iter().max_by_key(|task| task.longest()) else { return Err(NupaError::NoTasks) };
        let longest = widest.longest();
        if let Some(&length) = chosen.iter().find(|&&length| length == 0 || length > longest) {
            return Err(NupaError::ImpossibleLength { task: widest, length, longest });
        }
        match tasks.iter().find(|task| self.of(**task).is_empty()) {
            Some(&task) => Err(NupaError::NoLengths { task, longest: task.longest() }),
            None => Ok(()),
        }
    }
}

/// Deciding scorer of a completion; the others are reported beside it. None of them sees thinking.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Scorer {
    /// The visible text alone, ASCII digits, no negative numbers; exact truths.
    #[default]
    Strict,
    /// The first match of the published pattern; exact truths.
    Paper,
    /// As the authors' program does, artefacts included; its truths.
    Ref,
    /// As a careful person would ([`earnest_answer::reader`]); exact truths in the form that was asked for.
    Final,
}

impl Scorer {
    /// All of them, each at its own place.
    pub const ALL: [Scorer; 4] = [Scorer::Strict, Scorer::Paper, Scorer::Ref, Scorer::Final];

    /// Their names, the default for conversations first.
    pub const NAMES: [&str; 4] = ["final", "strict", "paper", "ref"];

    /// The name in options and columns.
    pub fn name(self) -> &'static str {
        ["strict", "paper", "ref", "final"][self as usize]
    }
}

/// To whom the question is put.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Adapter {
    /// A base model continues the raw text.
    #[default]
    Completion,
    /// A chat model gets the system message and the question.
    Chat,
}

/// Answer that the prompt asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum PromptStyle {
    /// The answer alone.
    #[default]
    Direct,
    /// Follow a rule, given as a Python program, line by line (section 5).
    RuleFollowing,
}

/// Token budget of a completion.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum BudgetRule {
    /// `8 L + 32`, enough for every answer at one token a character; for rule following, the characters of the
    /// right trace.
    #[default]
    Generous,
    /// `2 L` (2,000 for rule following) as in the published evaluation, which cuts many right answers short.
    Published,
    /// A number of tokens.
    Fixed(usize),
}

/// All options. [`super::NupaSuite::new`] checks them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NupaOptions {
    /// The tasks, without repetition.
    pub tasks: Vec<TaskId>,
    pub lengths: Lengths,
    /// Questions per task and length; small cells have fewer.
    pub per_length: usize,
    /// Order of the questions, of which `--limit` takes the beginning.
    pub order: ItemOrder,
    /// Seed of the generator.
    pub seed: u64,
    /// The part of the data; the test part unless a model is developed.
    pub split: Split,
    /// Rules of drawing raw pairs.
    pub pairs: PairRules,
    /// The spelling of the `min` prompt.
    pub wording: Wording,
    /// The deciding scorer.
    pub scorer: Scorer,
    /// To whom the question is put.
    pub adapter: Adapter,
    /// Answer that the prompt asks for.
    pub style: PromptStyle,
    /// Worked examples before the question, each of another length, from the training split: 0 to 8.
    pub shots: usize,
    /// Token budget of a completion.
    pub budget: BudgetRule,
    /// Raw completions end at the first line break. The published evaluation went on until its budget ended; an answer after a
    /// leading line break counts only without this.
    pub stop_at_newline: bool,
    /// Questions given by hand instead of drawn, as item ids that spell their operands: `<task>:<a>,<b>` or `<task>:<a>`.
    /// The suite's only items, if there are any.
    pub given: Vec<String>,
    /// File with the given questions. It stands for them in a manifest.
    pub questions: Option<QuestionFile>,
}

impl Default for NupaOptions {
    fn default() -> Self {
        NupaOptions {
            tasks: TASKS.to_vec(),
            lengths: Lengths::All,
            per_length: 100,
            order: ItemOrder::default(),
            seed: 0,
            split: Split::Test,
            pairs: PairRules::default(),
            wording: Wording::Corrected,
            scorer: Scorer::Strict,
            adapter: Adapter::Completion,
            style: PromptStyle::Direct,
            shots: 0,
            budget: BudgetRule::Generous,
            stop_at_newline: true,
            given: Vec::new(),
            questions: None,
        }
    }
}

impl NupaOptions {
    /// The lengths of `task` under these options.
    pub fn lengths_of(&self, task: TaskId) -> Vec<usize> {
        self.lengths.of(task)
    }

    /// Checks that the options fit together.
    ///
    /// # Errors
    /// [`NupaError`] that names the option and what would be possible.
    pub fn check(&self) -> Result<(), NupaError> {
        let contradiction = |option: &'static str, problem: String| Err(NupaError::Contradiction { option, problem });
        if self.tasks.is_empty() {
            return Err(NupaError::NoTasks);
        }
        for (position, task) in self.tasks.iter().enumerate() {
            if self.tasks[..position].contains(task) {
                return contradiction("tasks", format!("{task} is named twice"));
            }
            if self.style == PromptStyle::RuleFollowing {
                super::rules::rule(*task)?;
            }
        }
        self.lengths.check(&self.tasks)?;
        if self.per_length == 0 {
            return contradiction("per-length", "at least one question per length is needed".into());
        }
        // Given questions are as many as their file has.
        if self.given.is_empty() {
            let cells = self.tasks.iter().map(|&task| self.lengths_of(task).len()).sum();
            check_size(|| format!("the setting `per_length = {}`", self.per_length), &[cells, self.per_length])?;
        }
        if self.shots > 8 {
            return contradiction(
                "shots",
                format!("{} worked examples; each has its own length, at most 8", self.shots),
            );
        }
        if self.shots > 0 && self.split == Split::Train {
            return contradiction(
                "shots",
                "worked examples come from the training split, so it cannot be tested".into(),
            );
        }
        if self.shots > 0 && self.style == PromptStyle::RuleFollowing {
            return contradiction("shots", "rule following is zero-shot: it has a rule instead of examples".into());
        }
        if self.budget == BudgetRule::Fixed(0) {
            return contradiction("budget", "a budget of 0 tokens leaves no answer".into());
        }
        self.pairs.check()
    }

    /// The options as they go into a run's manifest.
    pub fn to_json(&self) -> serde_json::Value {
        let lengths = match &self.lengths {
            Lengths::All => json!("all"),
            Lengths::Reference => json!("reference"),
            Lengths::Chosen(chosen) => json!(chosen),
        };
        let budget = match self.budget {
            BudgetRule::Generous => json!("generous"),
            BudgetRule::Published => json!("2xL"),
            BudgetRule::Fixed(tokens) => json!(tokens),
        };
        let mut options = json!({
            "tasks": self.tasks.iter().map(TaskId::to_string).collect::<Vec<_>>(),
            "lengths": lengths,
            "per_length": self.per_length,
            "seed": self.seed,
            "split": self.split.name(),
            "short_operand": match self.pairs.shorter { ShorterOperand::AtLeastHalf => "half", ShorterOperand::Any => "any" },
            "hard_floats": if self.pairs.hard_floats_equal_length { "equal" } else { "differ" },
            "reference": self.pairs.reference,
            "wording": match self.wording { Wording::Corrected => "corrected", Wording::Reference => "reference" },
            "profile": self.scorer.name(),
            "adapter": match self.adapter { Adapter::Completion => "completion", Adapter::Chat => "chat" },
            "prompt": match self.style { PromptStyle::Direct => "direct", PromptStyle::RuleFollowing => "rule-following" },
            "shots": self.shots,
            "budget": budget,
            "stop_at_newline": self.stop_at_newline,
        });
        if !self.order.is_first() {
            options["order"] = json!(self.order);
        }
        // Drawn questions are told by the rest, and runs of them keep their identity.
        if let Some(file) = &self.questions {
            options["questions"] = json!(file);
        } else if !self.given.is_empty() {
            options["given"] = json!(self.given);
        }
        options
    }

    /// Reads what [`NupaOptions::to_json`] wrote; absent fields take their defaults, the order the first one's. The result is not yet
    /// checked.
    ///
    /// # Errors
    /// [`NupaError`] that names the field, its value and what it can be.
    pub fn from_json(value: &serde_json::Value) -> Result<Self, NupaError> {
        let wrong = |what: &'static str, expected: &str, value: &serde_json::Value| NupaError::UnknownValue {
            what,
            value: value.to_string(),
            expected: expected.into(),
        };
        let object = value.as_object().ok_or_else(|| wrong("the options", "a JSON object", value))?;
        let mut options = NupaOptions { order: ItemOrder::first(), ..NupaOptions::default() };
        for (field, value) in object {
            let text = value.as_str().unwrap_or_default();
            let number = |what, expected: &str| value.as_u64().ok_or_else(|| wrong(what, expected, value));
            match (field.as_str(), text) {
                ("tasks", _) => {
                    let names = value.as_array().ok_or_else(|| wrong("tasks", "a list of task names", value))?;
                    options.tasks =
                        names.iter().map(|name| name.as_str().unwrap_or_default().parse()).collect::<Result<_, _>>()?;
                }
                ("lengths", "all") => options.lengths = Lengths::All,
                ("lengths", "reference") => options.lengths = Lengths::Reference,
                ("lengths", _) => {
                    let chosen = value.as_array().and_then(|lengths| {
                        lengths.iter().map(|length| Some(length.as_u64()? as usize)).collect::<Option<Vec<usize>>>()
                    });
                    let expected = "`all`, `reference` or a list of lengths";
                    options.lengths = Lengths::Chosen(chosen.ok_or_else(|| wrong("lengths", expected, value))?);
                }
                ("per_length", _) => options.per_length = number("per_length", "a count")? as usize,
                ("order", _) => {
                    options.order = serde_json::from_value(value.clone()).map_err(|_| wrong("order", "1, 2", value))?;
                }
                ("seed", _) => options.seed = number("seed", "an integer from 0 to 2^64 - 1")?,
                ("split", split) => options.split = split.parse()?,
                ("short_operand", "half") => options.pairs.shorter = ShorterOperand::AtLeastHalf,
                ("short_operand", "any") => options.pairs.shorter = ShorterOperand::Any,
                ("hard_floats", "equal") => options.pairs.hard_floats_equal_length = true,
                ("hard_floats", "differ") => options.pairs.hard_floats_equal_length = false,
                ("reference", _) => {
                    options.pairs.reference =
                        value.as_bool().ok_or_else(|| wrong("reference", "true, false", value))?;
                }
                ("wording", "corrected") => options.wording = Wording::Corrected,
                ("wording", "reference") => options.wording = Wording::Reference,
                ("profile", "strict") => options.scorer = Scorer::Strict,
                ("profile", "paper") => options.scorer = Scorer::Paper,
                ("profile", "ref") => options.scorer = Scorer::Ref,
                ("profile", "final") => options.scorer = Scorer::Final,
                ("adapter", "completion") => options.adapter = Adapter::Completion,
                ("adapter", "chat") => options.adapter = Adapter::Chat,
                ("prompt", "direct") => options.style = PromptStyle::Direct,
                ("prompt", "rule-following") => options.style = PromptStyle::RuleFollowing,
                ("shots", _) => options.shots = number("shots", "0 to 8")? as usize,
                ("budget", "generous") => options.budget = BudgetRule::Generous,
                ("budget", "2xL") => options.budget = BudgetRule::Published,
                ("budget", _) => {
                    let tokens = number("budget", "`generous`, `2xL` or a number of tokens")?;
                    options.budget = BudgetRule::Fixed(tokens as usize);
                }
                ("stop_at_newline", _) => {
                    options.stop_at_newline =
                        value.as_bool().ok_or_else(|| wrong("stop_at_newline", "true, false", value))?;
                }
                ("given", _) => {
                    let ids = value.as_array().and_then(|ids| {
                        ids.iter().map(|id| id.as_str().map(String::from)).collect::<Option<Vec<String>>>()
                    });
                    options.given = ids.ok_or_else(|| wrong("given", "a list of item ids", value))?;
                }
                ("questions", _) => {
                    let expected = "a file: `place` and `sha256`";
                    let file =
                        serde_json::from_value(value.clone()).map_err(|_| wrong("questions", expected, value))?;
                    options.questions = Some(file);
                }
                ("short_operand", _) => return Err(wrong("short_operand", "half, any", value)),
                ("hard_floats", _) => return Err(wrong("hard_floats", "equal, differ", value)),
                ("wording", _) => return Err(wrong("wording", "corrected, reference", value)),
                ("profile", _) => return Err(wrong("profile", &Scorer::NAMES.join(", "), value)),
                ("adapter", _) => return Err(wrong("adapter", "completion, chat", value)),
                ("prompt", _) => return Err(wrong("prompt", "direct, rule-following", value)),
                (_, _) => {
                    let known = NupaOptions::default().to_json();
                    let known: Vec<&str> =
                        known.as_object().into_iter().flatten().map(|(name, _)| name.as_str()).collect();
                    return Err(NupaError::UnknownValue {
                        what: "the option",
                        value: field.clone(),
                        expected: known.join(", "),
                    });
                }
            }
        }
        Ok(options)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problem(change: impl FnOnce(&mut NupaOptions)) -> String {
        let mut options = NupaOptions::default();
        change(&mut options);
        options.check().unwrap_err().to_string()
    }

    #[test]
    fn contradictions_are_named() {
        assert!(problem(|o| o.tasks.clear()).contains("all 53"));
        assert!(problem(|o| o.tasks.push(TASKS[0])).contains("named twice"));
        assert!(problem(|o| o.lengths = Lengths::Chosen(vec![101])).contains("1 to 100"));
        assert!(problem(|o| o.lengths = Lengths::Chosen(vec![50])).contains("1 to 20"));
        assert!(problem(|o| o.per_length = 0).contains("at least one"));
        assert!(problem(|o| o.shots = 9).contains("at most 8"));
        assert!(problem(|o| o.budget = BudgetRule::Fixed(0)).contains("0 tokens"));
        let reference = PairRules { reference: true, shorter: ShorterOperand::Any, ..PairRules::default() };
        assert!(problem(|o| o.pairs = reference).contains("contradicts"));
        assert!(problem(|o| o.style = PromptStyle::RuleFollowing).contains("no rule exists for"));
    }

    #[test]
    fn json_round_trip() {
        let options = NupaOptions {
            tasks: vec![TASKS[3], TASKS[50]],
            lengths: Lengths::Chosen(vec![3, 9]),
            budget: BudgetRule::Fixed(64),
            scorer: Scorer::Ref,
            shots: 5,
            seed: u64::MAX,
            ..NupaOptions::default()
        };
        assert_eq!(NupaOptions::from_json(&options.to_json()).unwrap(), options);
        for (field, value) in [("profile", json!("best")), ("tasks", json!(["add"])), ("colour", json!(1))] {
            assert!(NupaOptions::from_json(&json!({ field: value })).is_err(), "{field}");
        }
    }
}
