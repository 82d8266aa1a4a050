//! The suite.
use std::borrow::Cow;

use serde_json::Value;

use super::chooser::Rounds;
use super::question::Sources;
use super::screening::screened_skill;
use super::{NAME, Notation, ProfileOptions, PromptForm, ThinkingTask, VERSION, notation, summary, thinking};
use crate::suite::registry::OptionError;
use crate::suite::{Answered, Chooser, FINAL, Grid, Item, Items, Score, Scored, Scoring, Summary};

/// The profile under given options. Its later questions depend on the answers.
pub struct ProfileSuite {
    options: ProfileOptions,
    sources: Vec<(PromptForm, Sources)>,
}

impl ProfileSuite {
    /// The suite under `options`.
    ///
    /// # Errors
    /// As [`ProfileOptions::check`].
    pub fn new(options: ProfileOptions) -> Result<Self, OptionError> {
        options.check()?;
        let sources = Sources::by_form(&options)?;
        Ok(ProfileSuite { options, sources })
    }
}

impl Items for ProfileSuite {
    fn iter(&self) -> Box<dyn Iterator<Item = Item> + Send + '_> {
        Box::new(Rounds::new(&self.options, &self.sources).next_round(&[]).into_iter())
    }

    fn len(&self) -> usize {
        self.iter().count()
    }

    fn chooser(&self) -> Option<Box<dyn Chooser + '_>> {
        Some(Box::new(Rounds::new(&self.options, &self.sources)))
    }
}

impl Scoring for ProfileSuite {
    fn name(&self) -> &str {
        NAME
    }

    fn version(&self) -> &str {
        VERSION
    }

    fn options(&self) -> Value {
        self.options.to_json()
    }

    fn score(&self, item: &Item, answered: &Answered<'_>) -> Score {
        if let Some(notation) = Notation::of_task(&item.task) {
            return notation::score(notation, item, answered);
        }
        if let Some(kind) = ThinkingTask::of_task(&item.task) {
            return thinking::score(kind, item, answered);
        }
        // Answers are read alike in every form.
        let Some((_, source)) = self.sources.first() else { return Score::default() };
        if PromptForm::of_task(&item.task).is_some() {
            let skill = screened_skill(item);
            let asked = skill.map_or_else(|| item.clone(), |skill| Item { task: skill.task.clone(), ..item.clone() });
            return source.score(skill, &asked, answered);
        }
        let skill = super::skills().iter().find(|skill| skill.task == item.task);
        source.score(skill, item, answered)
    }

    fn scorers(&self) -> Vec<&str> {
        vec![FINAL]
    }

    fn chosen(&self) -> Vec<&str> {
        vec![FINAL]
    }

    fn opened_thinking(&self, item: &Item) -> Option<&str> {
        self.options.thinking.as_ref()?.opened(item)
    }

    fn draws<'a>(&self, item: &'a Item) -> Cow<'a, str> {
        let is_capped = ThinkingTask::of_task(&item.task).is_some();
        Cow::Borrowed(if is_capped { thinking::draws(item) } else { &item.id })
    }

    fn summarise(&self, samples: &[Scored<'_>]) -> Summary {
        summary::summarise(&self.options, samples)
    }

    fn grids(&self, summary: &Summary) -> Vec<Grid> {
        summary::grids(&self.options, summary)
    }
}
