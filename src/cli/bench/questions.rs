//! The questions of `earnest bench latency`: the same ones for every mode, as many as fit the window in all of them.
use std::collections::BTreeMap;

use serde::Serialize;

use crate::bench::LatencyPrompt;
use crate::checkpoint::Checkpoint;
use crate::cli::Exit;
use crate::cli::catalogue::nupa::refused;
use crate::cli::error::CliError;
use crate::prompt::Prompter;
use crate::suite::nupa::{NupaSuite, TaskId, rule};
use crate::suite::{Item, Suite};

/// What a model is asked to write.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum LatencyMode {
    /// The answer alone
    Direct,
    /// A rule, given as a program, followed line by line (RF-CoT)
    RfCot,
}

impl LatencyMode {
    /// The name on screens, and the paper's.
    pub fn names(self) -> (&'static str, &'static str) {
        match self {
            LatencyMode::Direct => ("direct", "Direct"),
            LatencyMode::RfCot => ("rf-cot", "RF CoT"),
        }
    }

    /// The completion that is right.
    fn right(self, task: TaskId, item: &Item) -> Result<String, CliError> {
        let operand = |name: &str| item.covariates.get(name).and_then(|value| value.as_str());
        match self {
            LatencyMode::Direct => Ok(item.gold.clone()),
            LatencyMode::RfCot => {
                let rule = rule(task).map_err(refused)?;
                let a = operand("a").unwrap_or_default();
                let trace = rule.execute_traced(a, operand("b"));
                trace.map(|trace| trace.text).map_err(|error| {
                    CliError::new(Exit::Usage, format!("the rule of {task} has no trace for {}: {error}", item.id))
                })
            }
        }
    }
}

/// How many tokens are generated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum TokenRule {
    /// As many as the model writes, up to the suite's budget and the window
    Written,
    /// As many as the right answer or trace has, whatever the model writes: the cost of a model that follows the rule
    Right,
}

/// One mode: its suite and the prompts of the chosen questions.
pub struct Asked {
    pub mode: LatencyMode,
    pub suite: NupaSuite,
    pub items: Vec<Item>,
    pub prompts: Vec<LatencyPrompt>,
}

/// How many questions were passed over because prompt and right completion exceed the window in some mode.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Dropped {
    /// Questions looked at, in the suite's order.
    pub looked_at: usize,
    /// Of them, dropped, by task.
    pub by_task: BTreeMap<String, usize>,
}

impl Dropped {
    /// All of them.
    pub fn total(&self) -> usize {
        self.by_task.values().sum()
    }
}

/// Questions in a row that do not fit, after which no more are looked at: more than a question of every task and length.
const PATIENCE: usize = 5_000;

/// A task's questions are taken to exceed the window without counting their tokens from this many digits beyond the shortest one
/// that did: traces vary, but not that much.
const BEYOND: u64 = 3;

/// What the selection needs.
pub struct Selection<'a> {
    pub checkpoint: &'a Checkpoint,
    pub prompter: &'a Prompter<'a>,
    /// Tokens of prompt and completion together.
    pub window: usize,
    pub samples: usize,
    pub tokens: TokenRule,
    pub thinks: bool,
    /// Ids that end a completion.
    pub stop_ids: Vec<u32>,
}

impl Selection<'_> {
    /// Chooses the first questions that fit in every mode. The suites ask the same questions in the same order.
    pub fn choose(&self, suites: Vec<(LatencyMode, NupaSuite)>) -> Result<(Vec<Asked>, Dropped), CliError> {
        let mut dropped = Dropped::default();
        let mut chosen: Vec<(Vec<Item>, Vec<LatencyPrompt>)> = suites.iter().map(|_| Default::default()).collect();
        let mut in_vain = 0;
        let mut too_long: BTreeMap<String, u64> = BTreeMap::new();
        let mut walks: Vec<_> = suites.iter().map(|(_, suite)| suite.items()).collect();
        while chosen.first().is_some_and(|(items, _)| items.len() < self.samples) {
            let row: Option<Vec<Item>> = walks.iter_mut().map(Iterator::next).collect();
            let Some(row) = row else { break };
            if in_vain == PATIENCE {
                break;
            }
            dropped.looked_at += 1;
            in_vain += 1;
            let length = row[0].covariates.get("length").and_then(serde_json::Value::as_u64).unwrap_or(0);
            let shortest = too_long.entry(row[0].task.clone()).or_insert(u64::MAX);
            let mut prompts = Vec::with_capacity(row.len());
            if length < shortest.saturating_add(BEYOND) {
                for ((mode, _), item) in suites.iter().zip(&row) {
                    prompts.extend(self.prompt(*mode, item)?);
                }
            }
            if prompts.len() < row.len() {
                *shortest = length.min(*shortest);
                *dropped.by_task.entry(row[0].task.clone()).or_default() += 1;
                continue;
            }
            in_vain = 0;
            for ((item, prompt), (items, kept)) in row.into_iter().zip(prompts).zip(&mut chosen) {
                items.push(item);
                kept.push(prompt);
            }
        }
        drop(walks);
        let asked = suites.into_iter().zip(chosen);
        let asked = asked.map(|((mode, suite), (items, prompts))| Asked { mode, suite, items, prompts }).collect();
        Ok((asked, dropped))
    }

    /// The prompt, or none where it and the right completion do not fit.
    fn prompt(&self, mode: LatencyMode, item: &Item) -> Result<Option<LatencyPrompt>, CliError> {
        let task: TaskId = item.task.parse().map_err(refused)?;
        let ids = self.prompter.render(&item.segments)?.ids;
        let tokenizer = &self.checkpoint.tokenizer;
        let right = tokenizer.encode(&mode.right(task, item)?, false).map_err(|error| {
            CliError::new(Exit::Model, format!("the tokenizer refuses the right completion of {}: {error}", item.id))
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
