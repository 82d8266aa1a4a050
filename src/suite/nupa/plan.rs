//! What a run of the suite will ask of an engine, before it starts.
use serde::Serialize;

use super::suite::item_id;
use super::{NupaError, NupaSuite, TaskId};

/// The size of one task.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TaskPlan {
    /// The task id.
    pub task: String,
    /// Questions.
    pub prompts: usize,
    /// Prompt tokens, from one prompt of each length.
    pub prompt_tokens: usize,
    /// Tokens of the right answers, from one of each length.
    pub answer_tokens: usize,
    /// Tokens if every completion used its whole budget.
    pub budget_tokens: usize,
}

impl NupaSuite {
    /// The size of every task, measured with a tokenizer's `count` on one question a length.
    ///
    /// # Errors
    /// [`NupaError`] of impossible cells; checked options have none.
    pub fn plan(&self, count: &dyn Fn(&str) -> usize) -> Result<Vec<TaskPlan>, NupaError> {
        let options = self.settings();
        options.tasks.iter().enumerate().map(|(place, &task)| self.plan_task(place, task, count)).collect()
    }

    fn plan_task(&self, place: usize, task: TaskId, count: &dyn Fn(&str) -> usize) -> Result<TaskPlan, NupaError> {
        let mut plan =
            TaskPlan { task: task.to_string(), prompts: 0, prompt_tokens: 0, answer_tokens: 0, budget_tokens: 0 };
        for length in self.settings().lengths_of(task) {
            let prompts = self.cell_size(task, length);
            let Some(question) = self.cell(task, length)?.question(0) else { continue };
            let item = self.item(place, &question, item_id(task, length, 0));
            let segments = &item.segments;
            let prompt = match &segments.raw {
                Some(raw) => count(raw),
                None => {
                    let shots = segments.shots.iter().map(|shot| count(&shot.question) + count(&shot.answer));
                    segments.system.as_deref().map_or(0, count) + shots.sum::<usize>() + count(&segments.question)
                }
            };
            plan.prompts += prompts;
            plan.prompt_tokens += prompts * prompt;
            plan.answer_tokens += prompts * count(&item.gold);
            plan.budget_tokens += prompts * item.budget.answer;
        }
        Ok(plan)
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Lengths, NupaOptions};
    use super::*;
    use crate::suite::Suite;

    #[test]
    fn the_plan_counts_what_is_asked() {
        let options = NupaOptions { lengths: Lengths::Chosen(vec![1, 9]), per_length: 10, ..NupaOptions::default() };
        let suite = NupaSuite::new(options).unwrap();
        let plan = suite.plan(&str::len).unwrap();
        assert_eq!(plan.len(), 53);
        assert_eq!(plan.iter().map(|task| task.prompts).sum::<usize>(), suite.len());
        let budget: usize = suite.items().map(|item| item.budget.answer).sum();
        assert_eq!(plan.iter().map(|task| task.budget_tokens).sum::<usize>(), budget);
    }
}
