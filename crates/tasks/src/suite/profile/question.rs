//! The question of a skill, a length and a number.
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::json;

use super::options::MOST_BUDGET;
use super::skill::{Skill, Source};
use super::text::{self, Asked};
use super::{NAME, ProfileOptions, PromptForm};
use crate::suite::arithmetic_bench::{self, ArithmeticBench, Ends};
use crate::suite::gsm_symbolic::{Prompt, TrailingSpace};
use crate::suite::nupa::{NupaOptions, NupaSuite, Scorer, TaskId, adapter};
use crate::suite::registry::{Mode, OptionError};
use crate::suite::{Answered, Budget, FailureClass, Item, Score, Scoring, Segments, Shot, score_final};
use earnest_answer::reader::Form;

/// Tokens for an answer beyond one a digit of everything that it may repeat.
const SPARE: usize = 64;

/// Tokens of a word problem's answer beside those of its numbers.
const STEPS: usize = 192;

/// Numbers that the steps of a word problem write down.
const WRITTEN: usize = 12;

/// Questions among which a worked example is looked for.
const CANDIDATES: usize = 4;

/// Tokens that a thinking model may use before its answer.
const THINKING: usize = 4_096;

/// The suites that make and score the questions in a form of prompts.
pub(super) struct Sources {
    form: PromptForm,
    seed: u64,
    nupa: NupaSuite,
    bench: ArithmeticBench,
    /// Number of NUPA's questions of a task and length, once more have been looked for: it takes many draws to find that there are no more.
    ends: Mutex<HashMap<(TaskId, usize), usize>>,
    /// Questions from which the worked examples of a skill are taken, by task: they are far down the list of its questions.
    examples: Mutex<HashMap<String, Arc<Vec<Shot>>>>,
}

impl Sources {
    /// The suites under these options, by form of the prompts.
    ///
    /// # Errors
    /// None in a build that passed its tests.
    pub fn by_form(options: &ProfileOptions) -> Result<Vec<(PromptForm, Self)>, OptionError> {
        options.forms.iter().map(|&form| Ok((form, Sources::new(options, form)?))).collect()
    }

    fn new(options: &ProfileOptions, form: PromptForm) -> Result<Self, OptionError> {
        let nupa = NupaOptions {
            seed: options.seed,
            adapter: adapter(form.mode),
            shots: form.shots,
            scorer: Scorer::Final,
            per_length: MOST_BUDGET,
            ..NupaOptions::default()
        };
        let bench = arithmetic_bench::Options {
            seed: options.seed,
            scorer: arithmetic_bench::Scorer::Final,
            // A base model would repeat the question until the budget ends it.
            ends: if form.mode == Mode::Raw { Ends::AnswerLine } else { Ends::Model },
            ..arithmetic_bench::Options::default()
        };
        Ok(Sources {
            form,
            seed: options.seed,
            nupa: NupaSuite::new(nupa)?,
            bench: ArithmeticBench::new(bench).map_err(OptionError::usage)?,
            ends: Mutex::default(),
            examples: Mutex::default(),
        })
    }

    fn nupa_item(&self, task: TaskId, length: usize, index: usize) -> Option<Item> {
        let ends = || self.ends.lock().unwrap_or_else(PoisonError::into_inner);
        if ends().get(&(task, length)).is_some_and(|end| index >= *end) {
            return None;
        }
        let item = self.nupa.item_by_id(&format!("{task}/{length}/{index}")).ok().flatten();
        if item.is_none() {
            let end = self.nupa.cell_size(task, length);
            ends().insert((task, length), end);
        }
        item
    }

    /// The question with this number, from 0, of a skill at a length; none where the skill has no more of them.
    pub fn item(&self, skill: &Skill, length: usize, index: usize) -> Option<Item> {
        let mut item = match skill.source {
            Source::Nupa(task) => self.nupa_item(task, length, index)?,
            Source::Bench(_) | Source::FromWords | Source::InText => {
                let item = self.bare(skill, length, index)?;
                let shots = self.shots(skill, &item);
                with_shots(item, shots, self.form.mode)
            }
            Source::WordProblem => self.word_problem(skill, length, index)?,
        };
        // Forms stand beside each other in a run.
        item.segments.mode = Some(self.form.mode);
        if self.form.mode == Mode::Raw {
            // Raw text opens no thinking, whatever the template of the same run does.
            item.budget.thinking = item.budget.answer;
        }
        Some(item)
    }

    /// A question without examples.
    fn bare(&self, skill: &Skill, length: usize, index: usize) -> Option<Item> {
        let asked = match skill.source {
            Source::Bench(task) => {
                let item = self.bench.item(task, length, index);
                let written =
                    |name: &str| item.covariates.get(name).and_then(|value| value.as_str()).map_or(0, str::len);
                let answer = 2 * (written("a") + written("b") + item.gold.len()) + SPARE;
                // The paper's budget is for models that write pages; here a repeated calculation and a sentence are enough.
                return Some(Item { budget: Budget { answer, thinking: THINKING + answer }, ..item });
            }
            Source::FromWords => text::from_words(self.seed, length, index)?,
            Source::InText => text::in_text(self.seed, length, index)?,
            Source::Nupa(_) | Source::WordProblem => return None,
        };
        let stop_strings = if self.form.mode == Mode::Raw { vec!["\n".to_owned()] } else { Vec::new() };
        Some(Item { stop_strings, ..own(skill, length, index, 2 * length + SPARE, asked) })
    }

    /// Worked examples: questions of the skill that are asked nowhere, of one digit, then two and so on, without the one that is asked; with different answers,
    /// where there are some, because equal ones would teach a constant.
    fn shots(&self, skill: &Skill, item: &Item) -> Vec<Shot> {
        let candidates = self.candidates(skill);
        let candidates: Vec<Shot> =
            candidates.iter().filter(|shot| shot.question != item.segments.question).cloned().collect();
        let mut chosen: Vec<Shot> = Vec::with_capacity(self.form.shots);
        for shot in &candidates {
            if chosen.len() < self.form.shots && chosen.iter().all(|known| known.answer != shot.answer) {
                chosen.push(shot.clone());
            }
        }
        let others: Vec<Shot> = candidates.into_iter().filter(|shot| !chosen.contains(shot)).collect();
        let missing = self.form.shots - chosen.len();
        chosen.extend(others.into_iter().take(missing));
        chosen
    }

    fn candidates(&self, skill: &Skill) -> Arc<Vec<Shot>> {
        let example = |number: usize| {
            let length = (skill.shortest + number).min(skill.longest);
            let example = self.bare(skill, length, MOST_BUDGET + number)?;
            Some(Shot { question: example.segments.question, answer: example.gold })
        };
        let all = || Arc::new((0..CANDIDATES * self.form.shots).filter_map(example).collect());
        let mut known = self.examples.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(known.entry(skill.task.clone()).or_insert_with(all))
    }

    /// A word problem after the eight of the paper's prompt, which are its examples in every form.
    fn word_problem(&self, skill: &Skill, length: usize, index: usize) -> Option<Item> {
        let asked = text::word_problem(self.seed, length, index)?;
        let whole = Prompt::Gsm.render(&asked.question, TrailingSpace::Trim);
        let question = asked.question.clone();
        let mut item = own(skill, length, index, STEPS + WRITTEN * length, asked);
        (item.segments, item.stop_strings) = match self.form.mode {
            Mode::Raw => (Segments { raw: Some(whole), ..Segments::question(question) }, vec!["\nQ:".to_owned()]),
            Mode::Chat => (Segments::question(whole), Vec::new()),
        };
        Some(item)
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

/// An item of the profile's own with a budget of so many tokens.
fn own(skill: &Skill, length: usize, index: usize, tokens: usize, asked: Asked) -> Item {
    let Asked { question, answer, cluster } = asked;
    let mut item = Item::plain(format!("{NAME}/{}/{length}/{index}", skill.task), &skill.task, &question, answer);
    item.cluster = cluster;
    item.covariates.insert("length".into(), json!(length));
    item.budget = Budget { answer: tokens, thinking: THINKING + tokens };
    item
}

/// An item after worked examples: earlier turns of a conversation, or lines of a text, whose answer ends with its line.
pub(super) fn with_shots(mut item: Item, shots: Vec<Shot>, mode: Mode) -> Item {
    if mode == Mode::Raw && !shots.is_empty() {
        let lines: String = shots.iter().map(|shot| format!("{} {}\n", shot.question, shot.answer)).collect();
        item.segments.raw = Some(format!("{lines}{}", item.segments.question));
        item.stop_strings = vec!["\n".to_owned()];
        item.keep_stop = false;
    }
    item.segments.shots = shots;
    item
}

#[cfg(test)]
mod tests {
    use super::super::skills;
    use super::*;

    fn sources(form: &str) -> Sources {
        Sources::new(&ProfileOptions::default(), form.parse().unwrap()).unwrap()
    }

    #[test]
    fn every_skill_has_questions_whose_answers_are_right() {
        for form in ["raw", "chat", "raw+3", "chat+3"] {
            let sources = sources(form);
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

    #[test]
    fn repeating_what_is_asked_is_as_often_right_as_chance_says() {
        let sources = sources("raw");
        for skill in skills().iter().filter(|skill| skill.chance >= 0.5) {
            let cells = (2..=20).flat_map(|length| (0..20).map(move |index| (length, index)));
            let items = cells.filter_map(|(length, index)| sources.item(skill, length, index));
            let scores = items.map(|item| {
                let part = |name: &str| item.covariates[name].as_str().unwrap().to_owned();
                let repeated =
                    if skill.task.starts_with("truediv") { format!("{}/{}", part("a"), part("b")) } else { part("a") };
                let answered = Answered { completion: &repeated, truncated: false };
                sources.score(Some(skill), &item, &answered).correct
            });
            let scores: Vec<bool> = scores.collect();
            let share = scores.iter().filter(|&&right| right).count() as f64 / scores.len() as f64;
            assert!((share - skill.chance).abs() < 0.08, "{}: {share} of {}", skill.task, scores.len());
        }
    }

    #[test]
    fn examples_are_right_and_never_the_question_itself() {
        for form in ["raw+3", "chat+3"] {
            let sources = sources(form);
            for skill in skills().iter().filter(|skill| skill.source != Source::WordProblem) {
                for (length, index) in [(1, 0), (1, 1), (2, 5), (6, 2)] {
                    let Some(item) = sources.item(skill, length.clamp(skill.shortest, skill.longest), index) else {
                        continue;
                    };
                    let segments = &item.segments;
                    assert_eq!(segments.shots.len(), 3, "{}", item.id);
                    assert!(segments.shots.iter().all(|shot| shot.question != segments.question), "{}", item.id);
                    let is_same = |shot: &Shot| shot.answer == segments.shots[0].answer;
                    assert!(!segments.shots.iter().all(is_same), "{}: {:?}", item.id, segments.shots);
                    let first = &segments.shots[0];
                    let line = format!("{} {}\n", first.question, first.answer);
                    match segments.mode {
                        Some(Mode::Raw) => {
                            let raw = segments.raw.as_ref().unwrap();
                            assert!(raw.starts_with(&line) && raw.ends_with(&segments.question), "{raw}");
                            assert_eq!(item.stop_strings, ["\n"], "{}", item.id);
                        }
                        _ => assert!(segments.raw.is_none() && item.stop_strings.is_empty(), "{}", item.id),
                    }
                }
            }
        }
        let word_problems = Skill::named("word_problems").unwrap()[0];
        assert!(sources("raw+3").item(word_problems, 2, 0).unwrap().segments.shots.is_empty());
    }
}
