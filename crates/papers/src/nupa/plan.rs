//! Plan of the runs that fill the paper's tables, with their cost.
use serde::Serialize;

use super::PAPER;
use super::published::rule_following_cells;
use crate::nupa::inference_tables::published_models;
pub use earnest_results::Rate;
use earnest_tasks::suite::Item;
use earnest_tasks::suite::nupa::{
    Adapter, BudgetRule, Lengths, NupaError, NupaOptions, NupaSuite, PromptStyle, Scorer, TASKS, TaskId, TaskPlan,
    Wording,
};

/// Token counts by a checkpoint's tokenizer.
pub struct TokenCounter<'a> {
    /// Counts the tokens of an item's prompt, chat template included.
    pub prompt: &'a dyn Fn(&Item) -> usize,
    /// Counts the tokens of an answer.
    pub text: &'a dyn Fn(&str) -> usize,
}

/// The runs behind the paper's tables.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct NupaPlan {
    pub paper: String,
    /// Published models; those of OpenAI can only be imported.
    pub models: Vec<String>,
    pub rate: Option<Rate>,
    pub rows: Vec<NupaPlanRow>,
    pub notes: Vec<String>,
}

/// A planned run of one model.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct NupaPlanRow {
    #[serde(rename = "what")]
    pub name: String,
    /// Numbers of the tables and figures that it fills.
    pub tables: Vec<u8>,
    pub figures: Vec<u8>,
    pub prompts: usize,
    /// Characters of all prompts, without the chat template.
    pub prompt_characters: usize,
    /// Tokens of all prompts and of all correct answers, by the given checkpoint's tokenizer.
    pub prompt_tokens: Option<usize>,
    pub answer_tokens: Option<usize>,
    /// Upper bound of new tokens: the sum of the budgets.
    pub most_new_tokens: usize,
    /// Hours if answers are as long as the correct ones, and if each uses its whole budget.
    pub hours: Option<[f64; 2]>,
    pub command: String,
}

impl NupaPlan {
    /// The plan with hours at a rate, or with a note on how to get one.
    pub fn at_rate(mut self, rate: Option<Rate>) -> Self {
        for row in &mut self.rows {
            let tokens = row.prompt_tokens.zip(row.answer_tokens);
            let hours = rate.as_ref().zip(tokens);
            row.hours =
                hours.map(|(rate, (prompt, answer))| [answer, row.most_new_tokens].map(|new| rate.hours(prompt, new)));
        }
        if self.rows.iter().any(|row| row.prompt_tokens.is_some()) {
            self.notes.push(match &rate {
                None => "Hours need a rate: the setting `measure` measures this machine, the setting `rate = N` states it in tokens per second (prompt \
                         and new tokens together), or a stored run of the suite provides it."
                    .to_owned(),
                Some(rate) => format!(
                    "Hours: from answers as long as the correct ones to whole budgets, at {}. Prompt tokens may come from the prefix \
                     cache, so the rate depends on the mix of prompts.",
                    rate.describe()
                ),
            });
        }
        self.rate = rate;
        self
    }

    /// The plan with a model's options in its commands.
    pub fn of_model(mut self, options: &str) -> Self {
        for row in &mut self.rows {
            row.command = row.command.replace("--model MODEL", options);
        }
        self
    }
}

struct PlannedRun {
    name: &'static str,
    tables: &'static [u8],
    figures: &'static [u8],
    options: NupaOptions,
    command: String,
}

/// Settings nearest to the published evaluation; [`AS_PUBLISHED`] has them as command-line options.
fn as_published(options: NupaOptions) -> NupaOptions {
    let mut options = NupaOptions {
        lengths: Lengths::Reference,
        budget: BudgetRule::Published,
        scorer: Scorer::Ref,
        stop_at_newline: false,
        wording: Wording::Reference,
        adapter: Adapter::Completion,
        ..options
    };
    options.pairs.reference = true;
    options
}

const AS_PUBLISHED: &str =
    "--prompt raw --lengths reference --reference --wording reference --budget 2xL --scorer ref --no-stop-at-newline";

fn planned_runs(adapter: Adapter) -> Vec<PlannedRun> {
    let fair = NupaOptions { adapter, ..NupaOptions::default() };
    let released: Vec<TaskId> = TASKS.into_iter().filter(|task| task.in_released_set()).collect();
    let some: Vec<TaskId> =
        ["add_Integer", "max_Float", "floordiv_Integer"].into_iter().filter_map(|name| name.parse().ok()).collect();
    let names = |tasks: &[TaskId]| tasks.iter().map(|task| task.short_name()).collect::<Vec<_>>().join(",");
    let mut rows = vec![
        PlannedRun {
            name: "as published",
            tables: &[7, 8, 9, 10],
            figures: &[2, 5, 6, 7],
            options: as_published(NupaOptions { tasks: released, ..fair.clone() }),
            command: format!("earnest run nupa --model MODEL --tasks released {AS_PUBLISHED}"),
        },
        PlannedRun {
            name: "every task, read fairly",
            tables: &[7, 8, 9, 10],
            figures: &[2, 5, 6, 7],
            options: fair.clone(),
            command: "earnest run nupa --model MODEL".to_owned(),
        },
        PlannedRun {
            name: "five examples",
            tables: &[10],
            figures: &[8],
            options: NupaOptions { shots: 5, lengths: Lengths::Reference, tasks: some.clone(), ..fair.clone() },
            command: format!("earnest run nupa --model MODEL --shots 5 --lengths reference --tasks {}", names(&some)),
        },
    ];
    let cells = rule_following_cells();
    let mut tasks: Vec<TaskId> = cells.iter().map(|(task, _)| *task).collect();
    tasks.dedup();
    for task in tasks {
        let digits: Vec<usize> = cells.iter().filter(|(other, _)| *other == task).map(|(_, digits)| *digits).collect();
        let list = digits.iter().map(usize::to_string).collect::<Vec<_>>().join(",");
        rows.push(PlannedRun {
            name: "rule following",
            tables: &[3],
            figures: &[],
            options: NupaOptions {
                tasks: vec![task],
                lengths: Lengths::Chosen(digits),
                style: PromptStyle::RuleFollowing,
                ..fair.clone()
            },
            command: format!(
                "earnest run nupa --model MODEL --style rule-following --tasks {} --lengths {list}",
                task.short_name()
            ),
        });
    }
    rows
}

/// Plans the runs of one model. `tokens` counts tokens where a checkpoint is available; [`NupaPlan::at_rate`] adds hours.
///
/// # Errors
/// [`NupaError`] if options are inconsistent, which these are not.
pub fn plan(adapter: Adapter, tokens: Option<&TokenCounter<'_>>) -> Result<NupaPlan, NupaError> {
    let mut rows = Vec::new();
    for planned in planned_runs(adapter) {
        let suite = NupaSuite::new(planned.options)?;
        let characters = suite.plan(&characters, &|text| text.chars().count())?;
        let counted = tokens.map(|tokens| suite.plan(tokens.prompt, tokens.text)).transpose()?;
        let sum = |plan: &[TaskPlan], of: fn(&TaskPlan) -> usize| plan.iter().map(of).sum::<usize>();
        let most_new_tokens = sum(&characters, |task| task.budget_tokens);
        let prompt_tokens = counted.as_deref().map(|plan| sum(plan, |task| task.prompt_tokens));
        let answer_tokens = counted.as_deref().map(|plan| sum(plan, |task| task.answer_tokens));
        rows.push(NupaPlanRow {
            name: planned.name.to_owned(),
            tables: planned.tables.to_vec(),
            figures: planned.figures.to_vec(),
            prompts: sum(&characters, |task| task.prompts),
            prompt_characters: sum(&characters, |task| task.prompt_tokens),
            prompt_tokens,
            answer_tokens,
            most_new_tokens,
            hours: None,
            command: planned.command,
        });
    }
    let mut notes = vec![
        "Each row is one run of one model. Sizes are extrapolated from one question of each task and length."
            .to_owned(),
        "New tokens at most: every answer uses its whole budget. Correct answers are far shorter.".to_owned(),
        "`as published` repeats the authors' settings with their artefacts; `every task, read fairly` is the better \
         measurement. `earnest reproduce nupa` compares both with the paper."
            .to_owned(),
        "GPT-4o and GPT-4o-mini are not open: `earnest import nupa` creates a run from their completions. \
         Llama-3.1-8B-ft and RF CoT were fine-tuned by the authors and not published; `earnest generate nupa` writes \
         training sets for both."
            .to_owned(),
    ];
    if tokens.is_none() {
        notes.push(
            "The setting `model = PATH` counts tokens with that checkpoint's tokenizer and template, from which hours are estimated."
                .to_owned(),
        );
    }
    Ok(NupaPlan {
        paper: PAPER.to_owned(),
        models: published_models().into_iter().map(str::to_owned).collect(),
        rate: None,
        rows,
        notes,
    })
}

fn characters(item: &Item) -> usize {
    let segments = &item.segments;
    let count = |text: &str| text.chars().count();
    match &segments.raw {
        Some(raw) => count(raw),
        None => {
            let shots: usize = segments.shots.iter().map(|shot| count(&shot.question) + count(&shot.answer)).sum();
            segments.system.as_deref().map_or(0, count) + shots + count(&segments.question)
        }
    }
}
