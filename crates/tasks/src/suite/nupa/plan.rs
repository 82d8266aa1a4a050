//! Requests and tokens of a run before it starts.
use serde::Serialize;

use crate::suite::Item;

use super::suite::item_id;
use super::{NupaError, NupaSuite, PromptStyle, TaskId, rules};

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
    /// The size of every task, measured on one question a length: `prompt` counts the tokens of an item as the model sees
    /// it, `text` those of an answer.
    ///
    /// # Errors
    /// [`NupaError`] of impossible cells; checked options have none.
    pub fn plan(
        &self,
        prompt: &dyn Fn(&Item) -> usize,
        text: &dyn Fn(&str) -> usize,
    ) -> Result<Vec<TaskPlan>, NupaError> {
        let options = self.settings();
        options.tasks.iter().enumerate().map(|(index, &task)| self.plan_task(index, task, prompt, text)).collect()
    }

    fn plan_task(
        &self,
        index: usize,
        task: TaskId,
        prompt: &dyn Fn(&Item) -> usize,
        text: &dyn Fn(&str) -> usize,
    ) -> Result<TaskPlan, NupaError> {
        let mut plan =
            TaskPlan { task: task.to_string(), prompts: 0, prompt_tokens: 0, answer_tokens: 0, budget_tokens: 0 };
        for length in self.settings().lengths_of(task) {
            let prompts = self.cell_size(task, length);
            let Some(question) = self.cell(task, length)?.question(0) else { continue };
            let item = self.item(index, &question, item_id(task, length, 0));
            let answer = match self.settings().style {
                PromptStyle::Direct => text(&item.gold),
                // What is written is the whole trace, which ends with the answer.
                PromptStyle::RuleFollowing => rules::rule(task)?
                    .execute_traced(&question.a, question.b.as_deref())
                    .map_or(0, |trace| text(&trace.text)),
            };
            plan.prompts += prompts;
            plan.prompt_tokens += prompts * prompt(&item);
            plan.answer_tokens += prompts * answer;
            plan.budget_tokens += prompts * item.budget.answer;
        }
        Ok(plan)
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Lengths, NupaOptions};
    use super::*;
    use crate::suite::Items;

    #[test]
    fn the_plan_counts_what_is_asked() {
        let options = NupaOptions { lengths: Lengths::Chosen(vec![1, 9]), per_length: 10, ..NupaOptions::default() };
        let suite = NupaSuite::new(options).unwrap();
        let plan = suite.plan(&|item| item.segments.question.len(), &str::len).unwrap();
        assert_eq!(plan.len(), 53);
        assert_eq!(plan.iter().map(|task| task.prompts).sum::<usize>(), suite.len());
        let budget: usize = suite.iter().map(|item| item.budget.answer).sum();
        assert_eq!(plan.iter().map(|task| task.budget_tokens).sum::<usize>(), budget);
    }

    #[test]
    fn rule_following_writes_traces() {
        let options = NupaOptions {
            tasks: vec!["mod_Integer".parse().unwrap()],
            lengths: Lengths::Chosen(vec![4]),
            per_length: 2,
            style: PromptStyle::RuleFollowing,
            ..NupaOptions::default()
        };
        let plan = NupaSuite::new(options).unwrap().plan(&|_| 7, &str::len).unwrap();
        assert_eq!((plan[0].prompts, plan[0].prompt_tokens), (2, 14));
        assert!(plan[0].answer_tokens > 200 && plan[0].budget_tokens >= plan[0].answer_tokens);
    }
}
