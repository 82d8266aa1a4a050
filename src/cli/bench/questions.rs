//! Questions of `earnest bench latency`: the same ones for every mode, restricted to those that fit the window in all modes.
use std::collections::BTreeMap;

use serde::Serialize;

use crate::cli::Exit;
use crate::cli::catalogue::suite_error;
use crate::cli::error::CliError;
use earnest_engine::bench::LatencyPrompt;
use earnest_eval::prompt::Prompter;
use earnest_models::checkpoint::Checkpoint;
use earnest_tasks::suite::nupa::{NupaSuite, TaskId, rule};
use earnest_tasks::suite::{Item, Items};

/// Form of the answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum LatencyMode {
    /// The answer alone
    Direct,
    /// A trace of a rule, given as a program and followed line by line (RF-CoT)
    RfCot,
}

impl LatencyMode {
    /// Name on screens, and the paper's name.
    pub fn names(self) -> (&'static str, &'static str) {
        match self {
            LatencyMode::Direct => ("direct", "Direct"),
            LatencyMode::RfCot => ("rf-cot", "RF CoT"),
        }
    }

    /// The right completion.
    fn right(self, task: TaskId, item: &Item) -> Result<String, CliError> {
        let operand = |name: &str| item.covariates.get(name).and_then(|value| value.as_str());
        match self {
            LatencyMode::Direct => Ok(item.gold.clone()),
            LatencyMode::RfCot => {
                let rule = rule(task).map_err(suite_error)?;
                let a = operand("a").unwrap_or_default();
                let trace = rule.execute_traced(a, operand("b"));
                trace.map(|trace| trace.text).map_err(|error| {
                    CliError::new(Exit::Usage, format!("the rule of {task} has no trace for {}: {error}", item.id))
                })
            }
        }
    }
}

/// Number of tokens to generate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum TokenRule {
    /// As many as the model writes, up to the suite's budget and the window
    Written,
    /// As many as the right answer or trace has, whatever the model writes: the cost of a model that follows the rule
    Right,
}

/// One mode: its suite and the prompts of the chosen questions.
pub struct ModeQuestions {
    pub mode: LatencyMode,
    pub suite: NupaSuite,
    pub items: Vec<Item>,
    pub prompts: Vec<LatencyPrompt>,
}

/// Questions dropped because prompt and right completion exceed the window in some mode.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Dropped {
    /// Questions examined, in the suite's order.
    pub looked_at: usize,
    /// Dropped questions by task.
    pub by_task: BTreeMap<String, usize>,
}

impl Dropped {
    /// Number of dropped questions.
    pub fn total(&self) -> usize {
        self.by_task.values().sum()
    }
}

/// Number of consecutive questions that do not fit, after which the search ends: more than one per task and length.
const MAX_CONSECUTIVE_MISSES: usize = 5_000;

/// Number of questions of one length that must all exceed the window before longer ones are skipped uncounted: traces of one length
/// vary, but those of longer numbers are longer.
const MIN_MISSES: usize = 20;

/// Fit of one task's questions by length.
#[derive(Default)]
struct TaskFit {
    /// By length: number of questions that fit, and that do not.
    seen: BTreeMap<u64, (usize, usize)>,
    /// Shortest length at which nothing fits.
    too_long: Option<u64>,
}

impl TaskFit {
    /// True if questions of this length may fit.
    fn may_fit(&self, length: u64) -> bool {
        self.too_long.is_none_or(|limit| length < limit)
    }

    fn add(&mut self, length: u64, fits: bool) {
        let (fitting, others) = self.seen.entry(length).or_default();
        *if fits { &mut *fitting } else { &mut *others } += 1;
        if *fitting == 0 && *others >= MIN_MISSES {
            self.too_long = Some(self.too_long.map_or(length, |limit| limit.min(length)));
        }
    }
}

/// Conditions for choosing the questions.
pub struct Selection<'a> {
    pub checkpoint: &'a Checkpoint,
    pub prompter: &'a Prompter<'a>,
    /// Maximum length of prompt and completion together, in tokens.
    pub window: usize,
    pub samples: usize,
    pub tokens: TokenRule,
    pub thinks: bool,
    /// Token ids that end a completion.
    pub stop_ids: Vec<u32>,
}

impl Selection<'_> {
    /// Chooses the first questions that fit in every mode. The suites have the same questions in the same order.
    pub fn choose(&self, suites: Vec<(LatencyMode, NupaSuite)>) -> Result<(Vec<ModeQuestions>, Dropped), CliError> {
        let mut dropped = Dropped::default();
        let mut chosen: Vec<(Vec<Item>, Vec<LatencyPrompt>)> = suites.iter().map(|_| Default::default()).collect();
        let mut misses = 0;
        let mut tasks: BTreeMap<String, TaskFit> = BTreeMap::new();
        let mut walks: Vec<_> = suites.iter().map(|(_, suite)| suite.iter()).collect();
        while chosen.first().is_some_and(|(items, _)| items.len() < self.samples) {
            let row: Option<Vec<Item>> = walks.iter_mut().map(Iterator::next).collect();
            let Some(row) = row else { break };
            if misses == MAX_CONSECUTIVE_MISSES {
                break;
            }
            dropped.looked_at += 1;
            misses += 1;
            let length = row[0].covariates.get("length").and_then(serde_json::Value::as_u64).unwrap_or(0);
            let task = tasks.entry(row[0].task.clone()).or_default();
            let mut prompts = Vec::with_capacity(row.len());
            if task.may_fit(length) {
                for ((mode, _), item) in suites.iter().zip(&row) {
                    prompts.extend(self.prompt(*mode, item)?);
                }
                task.add(length, prompts.len() == row.len());
            }
            if prompts.len() < row.len() {
                *dropped.by_task.entry(row[0].task.clone()).or_default() += 1;
                continue;
            }
            misses = 0;
            for ((item, prompt), (items, kept)) in row.into_iter().zip(prompts).zip(&mut chosen) {
                items.push(item);
                kept.push(prompt);
            }
        }
        drop(walks);
        let asked = suites.into_iter().zip(chosen);
        let asked =
            asked.map(|((mode, suite), (items, prompts))| ModeQuestions { mode, suite, items, prompts }).collect();
        Ok((asked, dropped))
    }

    /// The prompt; none if it does not fit with the right completion.
    fn prompt(&self, mode: LatencyMode, item: &Item) -> Result<Option<LatencyPrompt>, CliError> {
        let task: TaskId = item.task.parse().map_err(suite_error)?;
        let ids = self.prompter.render(&item.segments)?.ids;
        let tokenizer = &self.checkpoint.tokenizer;
        let right = tokenizer.encode(&mode.right(task, item)?, false).map_err(|error| {
            CliError::new(Exit::Model, format!("the tokenizer rejects the right completion of {}: {error}", item.id))
        })?;
        // One more for the end of the sequence, which a model generates too.
        if ids.len() + right.len() + 1 > self.window {
            return Ok(None);
        }
        let budget = if self.thinks { item.budget.thinking } else { item.budget.answer };
        Ok(Some(match self.tokens {
            TokenRule::Written => LatencyPrompt {
                stop_strings: item.stop_strings.clone(),
                stop_ids: self.stop_ids.clone(),
                max_tokens: budget.min(self.window - ids.len()),
                ids,
            },
            TokenRule::Right => {
                LatencyPrompt { ids, stop_strings: Vec::new(), stop_ids: Vec::new(), max_tokens: right.len() + 1 }
            }
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn longer_questions_are_skipped_only_if_a_whole_length_exceeds_the_window() {
        let mut sought = TaskFit::default();
        // A few of length 30 fit, so longer ones are counted however many do not.
        for index in 0..100 {
            sought.add(30, index % 10 == 0);
            sought.add(40, index == 99);
        }
        assert!(sought.too_long == Some(40), "no question of length 40 fitted in {MIN_MISSES} tries");
        assert!(sought.may_fit(39) && !sought.may_fit(40) && !sought.may_fit(80));
        let mut sought = TaskFit::default();
        (0..MIN_MISSES - 1).for_each(|_| sought.add(50, false));
        assert!(sought.may_fit(50) && sought.may_fit(99));
    }
}
