//! The question of a skill, a length and a number.
use serde_json::json;

use super::options::MOST_BUDGET;
use super::skill::{Skill, Source};
use super::text::{self, Asked};
use super::{NAME, ProfileOptions};
use crate::suite::arithmetic_bench::{self, ArithmeticBench};
use crate::suite::gsm_symbolic::{Prompt, TrailingSpace};
use crate::suite::nupa::{Adapter, NupaOptions, NupaSuite, Scorer};
use crate::suite::registry::OptionError;
use crate::suite::{Answered, Budget, FailureClass, Item, Score, Scoring, Segments, score_final};
use earnest_answer::reader::Form;

/// Tokens for an answer beyond one a digit of everything that it may repeat.
const SPARE: usize = 64;

/// Tokens of a word problem's answer beside those of its numbers.
const STEPS: usize = 192;

/// Numbers that the steps of a word problem write down.
const WRITTEN: usize = 12;

/// Tokens that a thinking model may use before its answer.
const THINKING: usize = 4_096;

/// The suites that make and score the questions.
pub(super) struct Sources {
    adapter: Adapter,
    seed: u64,
    nupa: NupaSuite,
    bench: ArithmeticBench,
}

impl Sources {
    /// The suites under these options.
    ///
    /// # Errors
    /// None in a build that passed its tests.
    pub fn new(options: &ProfileOptions) -> Result<Self, OptionError> {
        let nupa = NupaOptions {
            seed: options.seed,
            adapter: options.adapter,
            scorer: Scorer::Final,
            per_length: MOST_BUDGET,
            ..NupaOptions::default()
        };
        let bench = arithmetic_bench::Options {
            seed: options.seed,
            scorer: arithmetic_bench::Scorer::Final,
            ..arithmetic_bench::Options::default()
        };
        Ok(Sources {
            adapter: options.adapter,
            seed: options.seed,
            nupa: NupaSuite::new(nupa)?,
            bench: ArithmeticBench::new(bench).map_err(OptionError::usage)?,
        })
    }

    /// The question with this number, from 0, of a skill at a length; none where the skill has no more of them.
    pub fn item(&self, skill: &Skill, length: usize, index: usize) -> Option<Item> {
        let asked = match skill.source {
            Source::Nupa(task) => return self.nupa.item_by_id(&format!("{task}/{length}/{index}")).ok().flatten(),
            Source::Bench(task) => {
                let item = self.bench.item(task, length, index);
                let written =
                    |name: &str| item.covariates.get(name).and_then(|value| value.as_str()).map_or(0, str::len);
                let answer = 2 * (written("a") + written("b") + item.gold.len()) + SPARE;
                // The paper's budget is for models that write pages; here a repeated calculation and a sentence are enough.
                return Some(Item { budget: Budget { answer, thinking: THINKING + answer }, ..item });
            }
            Source::WordProblem => text::word_problem(self.seed, length, index)?,
            Source::FromWords => text::from_words(self.seed, length, index)?,
            Source::InText => text::in_text(self.seed, length, index)?,
        };
        Some(self.own(skill, length, index, asked))
    }

    fn own(&self, skill: &Skill, length: usize, index: usize, asked: Asked) -> Item {
        let Asked { question, answer, cluster } = asked;
        let is_problem = skill.source == Source::WordProblem;
        let tokens = if is_problem { STEPS + WRITTEN * length } else { 2 * length + SPARE };
        let mut item = Item::plain(format!("{NAME}/{}/{length}/{index}", skill.task), &skill.task, &question, answer);
        item.cluster = cluster;
        item.covariates.insert("length".into(), json!(length));
        item.budget = Budget { answer: tokens, thinking: THINKING + tokens };
        let raw = self.adapter == Adapter::Completion;
        if is_problem {
            let whole = Prompt::Gsm.render(&question, TrailingSpace::Trim);
            item.segments = match raw {
                true => Segments { raw: Some(whole), ..Segments::question(question) },
                false => Segments::question(whole),
            };
        }
        item.stop_strings = match (raw, is_problem) {
            (false, _) => Vec::new(),
            (true, true) => vec!["\nQ:".to_owned()],
            (true, false) => vec!["\n".to_owned()],
        };
        item
    }

    /// Scores a completion by the scorer `final`; that of an item of no skill has no score to speak of.
    pub fn score(&self, skill: Option<&Skill>, item: &Item, answered: &Answered<'_>) -> Score {
        match skill.map(|skill| skill.source) {
            None => Score { failure: Some(FailureClass::UnknownTask), ..Score::default() },
            Some(Source::Nupa(_)) => self.nupa.score(item, answered),
            Some(Source::Bench(_)) => self.bench.score(item, answered),
            Some(Source::WordProblem) => score_final(item, Form::Number, answered),
            Some(Source::FromWords | Source::InText) => score_final(item, Form::Integer, answered),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::skills;
    use super::*;

    #[test]
    fn every_skill_has_questions_whose_answers_are_right() {
        for adapter in [Adapter::Completion, Adapter::Chat] {
            let sources = Sources::new(&ProfileOptions { adapter, ..ProfileOptions::default() }).unwrap();
            for skill in skills() {
                for length in [3, skill.longest] {
                    let item = sources.item(skill, length, 0).unwrap_or_else(|| panic!("{} {length}", skill.task));
                    assert_eq!((item.task.as_str(), &item.covariates["length"]), (skill.task.as_str(), &json!(length)));
                    assert_ne!(sources.item(skill, length, 1).map(|other| other.id), Some(item.id.clone()));
                    let completion = format!(" {}", item.gold);
                    let right =
                        sources.score(Some(skill), &item, &Answered { completion: &completion, truncated: false });
                    assert!(right.correct, "{}: {completion}: {right:?}", item.id);
                    let wrong = sources.score(Some(skill), &item, &Answered { completion: " no", truncated: false });
                    assert!(!wrong.correct && wrong.failure.is_some(), "{}", item.id);
                    assert!(item.budget.answer > item.gold.len(), "{}", item.id);
                }
            }
        }
    }
}
