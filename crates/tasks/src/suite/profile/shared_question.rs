//! Questions that two models are both asked, as options have them.
use serde::{Deserialize, Serialize};

use super::options::MOST_BUDGET;
use super::{PromptForm, Skill};

/// Most shared questions of a comparison.
pub(super) const MOST_SHARED: usize = 100_000;

/// Questions of a skill at a length: so many from this number on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SharedQuestions {
    pub task: String,
    pub length: usize,
    /// Number of the first one: those before it were for the profiles.
    pub first: usize,
    pub count: usize,
    /// Questions of the skill in a round of the profiles' screening, which are not asked again.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub screened: usize,
    /// Form in which they are asked; none for the first of the options.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub form: Option<String>,
}

fn is_zero(count: &usize) -> bool {
    *count == 0
}

impl SharedQuestions {
    /// True if its form is one of these.
    pub(super) fn is_of(&self, forms: &[PromptForm]) -> bool {
        self.form.as_ref().is_none_or(|form| form.parse().is_ok_and(|form| forms.contains(&form)))
    }

    /// The skill; none if there is no such skill, or not with these lengths and numbers.
    pub(super) fn skill(&self) -> Option<&'static Skill> {
        let skill = super::skills().iter().find(|skill| skill.task == self.task)?;
        let is_possible = (skill.shortest..=skill.longest).contains(&self.length)
            && self.first <= 2 * MOST_BUDGET
            && self.screened <= MOST_BUDGET
            && (1..=MOST_BUDGET).contains(&self.count);
        is_possible.then_some(skill)
    }
}
