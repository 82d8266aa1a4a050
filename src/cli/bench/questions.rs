//! The questions of `earnest bench latency`: the same ones for every mode, as many as fit the window in all of them.
use std::collections::BTreeMap;

use serde::Serialize;

use crate::cli::Exit;
use crate::cli::catalogue::refused;
use crate::cli::error::CliError;
use earnest_engine::bench::LatencyPrompt;
use earnest_eval::prompt::Prompter;
use earnest_models::checkpoint::Checkpoint;
use earnest_tasks::suite::nupa::{NupaSuite, TaskId, rule};
use earnest_tasks::suite::{Item, Suite};

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

/// Questions of one length of a task that all exceed the window, after which its longer ones are taken to do so without counting their
/// tokens: traces of one length vary, but those of longer numbers are longer.
const HOPELESS: usize = 20;

/// What is known of one task.
#[derive(Default)]
struct Sought {
    /// By length: questions that fit, and that do not.
    seen: BTreeMap<u64, (usize, usize)>,
    /// The shortest length at which nothing fits.
    hopeless: Option<u64>,
}

impl Sought {
    fn counts(&self, length: u64) -> bool {
        self.hopeless.is_none_or(|hopeless| length < hopeless)
    }

    fn add(&mut self, length: u64, fits: bool) {
        let (fitting, others) = self.seen.entry(length).or_default();
        *if fits { &mut *fitting } else { &mut *others } += 1;
        if *fitting == 0 && *others >= HOPELESS {
            self.hopeless = Some(self.hopeless.map_or(length, |hopeless| hopeless.min(length)));
        }
    }
}

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
        let mut sought: BTreeMap<String, Sought> = BTreeMap::new();
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
            let task = sought.entry(row[0].task.clone()).or_default();
            let mut prompts = Vec::with_capacity(row.len());
            if task.counts(length) {
                for ((mode, _), item) in suites.iter().zip(&row) {
                    prompts.extend(self.prompt(*mode, item)?);
                }
                task.add(length, prompts.len() == row.len());
            }
            if prompts.len() < row.len() {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn longer_questions_are_given_up_only_where_a_whole_length_exceeds_the_window() {
        let mut sought = Sought::default();
        // A few of length 30 fit, so longer ones are counted however many do not.
        for place in 0..100 {
            sought.add(30, place % 10 == 0);
            sought.add(40, place == 99);
        }
        assert!(sought.hopeless == Some(40), "nothing of length 40 fitted in {HOPELESS} looks");
        assert!(sought.counts(39) && !sought.counts(40) && !sought.counts(80));
        let mut sought = Sought::default();
        (0..HOPELESS - 1).for_each(|_| sought.add(50, false));
        assert!(sought.counts(50) && sought.counts(99));
    }
}
