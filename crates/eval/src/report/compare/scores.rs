//! Scores of a run by item.
use std::collections::HashMap;

use serde_json::Value;

use crate::report::question::Question;
use crate::run::Sample;
use earnest_tasks::suite::Item;
use earnest_tasks::suite::task::usual;

/// Scores of a run by item, as a comparison uses them.
#[derive(Debug, Clone, Default)]
pub struct Scores {
    pub(super) items: HashMap<String, ItemScore>,
    /// Primary rules, where they are known.
    pub(super) primary: Vec<String>,
    /// Names of all rules.
    pub(super) rules: Vec<String>,
    /// True for a run that ends by its answers.
    pub has_condition: bool,
    /// True if it did so before all its items were asked.
    pub ended_early: bool,
    /// Number of samples without a score; comparisons leave them out.
    pub without_score: usize,
}

/// Scores of an item, summed over its samples.
#[derive(Debug, Clone)]
pub(super) struct ItemScore {
    pub(super) task: String,
    pub(super) cluster: String,
    pub(super) gold: String,
    /// Item that this one is compared with where the other run does not have it.
    pub(super) pair: Option<String>,
    /// Kind of a perturbed question.
    pub(super) perturbation: Option<String>,
    /// None until [`Scores::read_question`], where the rows do not contain it.
    pub(super) question: Option<Question>,
    pub(super) correct: u32,
    pub(super) samples: u32,
    /// Correct and scored samples by rule, in the order of [`Scores::rules`].
    pub(super) rules: Vec<(u32, u32)>,
}

impl ItemScore {
    /// True unless the answers or the known questions differ.
    pub(super) fn has_question_of(&self, other: &ItemScore) -> bool {
        let (mine, theirs) = (&self.question, &other.question);
        self.gold == other.gold && mine.as_ref().zip(theirs.as_ref()).is_none_or(|(mine, theirs)| mine.matches(theirs))
    }

    /// Share of correct samples, 0 to 1.
    pub(super) fn share(&self) -> f64 {
        f64::from(self.correct) / f64::from(self.samples.max(1))
    }
}

/// A covariate that is a name: a text or a number.
fn label(sample: &Sample, name: &str) -> Option<String> {
    match sample.covariates.get(name)? {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}

impl Scores {
    /// Creates empty scores of a run with these primary rules.
    pub fn with_primary(primary: Vec<String>) -> Self {
        Scores { primary, ..Scores::default() }
    }

    /// Adds a sample.
    pub fn add(&mut self, sample: &Sample) {
        let Some(score) = &sample.score else {
            self.without_score += 1;
            return;
        };
        let fresh = || ItemScore {
            task: sample.task.clone(),
            cluster: sample.cluster.clone(),
            gold: sample.gold.clone(),
            pair: label(sample, usual::PAIR),
            perturbation: label(sample, usual::PERTURBATION),
            question: Question::of_operands(&sample.covariates),
            correct: 0,
            samples: 0,
            rules: Vec::new(),
        };
        let item = self.items.entry(sample.item.clone()).or_insert_with(fresh);
        item.correct += u32::from(score.correct);
        item.samples += 1;
        for (rule, right) in score.rules.iter() {
            let place = self.rules.iter().position(|known| known == rule).unwrap_or_else(|| {
                self.rules.push(rule.to_owned());
                self.rules.len() - 1
            });
            if item.rules.len() <= place {
                item.rules.resize(place + 1, (0, 0));
            }
            let (sum, n) = &mut item.rules[place];
            (*sum, *n) = (*sum + u32::from(right), *n + 1);
        }
    }

    /// True if the rows do not contain every question: [`Scores::read_questions`] is needed before runs of differing options
    /// are compared.
    pub fn lacks_questions(&self) -> bool {
        self.items.values().any(|score| score.question.is_none())
    }

    /// Adds the questions that the rows do not contain.
    pub fn read_questions(&mut self, items: impl Iterator<Item = Item>) {
        items.for_each(|item| self.read_question(&item));
    }

    /// Adds the question of one item, unless it is known.
    pub fn read_question(&mut self, item: &Item) {
        if let Some(score) = self.items.get_mut(&item.id).filter(|score| score.question.is_none()) {
            score.question = Some(Question::of_text(item));
        }
    }

    /// Share of correct samples of an item; none if the run did not answer it, or asked another question under its id.
    pub fn share_of(&self, item: &Item) -> Option<f64> {
        let score = self.items.get(&item.id).filter(|score| score.gold == item.gold)?;
        let asked = Question::of_operands(&item.covariates).unwrap_or_else(|| Question::of_text(item));
        score.question.as_ref().is_none_or(|question| question.matches(&asked)).then(|| score.share())
    }

    /// Number of items with a score.
    pub fn len(&self) -> usize {
        self.items.len()
    }

    /// True if no item has a score.
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }
}
