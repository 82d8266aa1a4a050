//! The screening of prompts, which finds the form in which a model is best.
use std::collections::HashSet;

use earnest_stats::psychometric::ladder;
use serde_json::{Value, json};

use super::question::Sources;
use super::{NAME, ProfileOptions, PromptForm, Skill};
use crate::suite::{Item, RoundAnswer};

/// Questions of a round of the screening in each form.
pub const SCREENED: usize = 24;

/// Digits of the rounds of the screening. Forms that have every answer of a round right are told apart by longer questions.
const LENGTHS: [usize; 3] = [1, 3, 6];

/// Skills that a small model is likely to have: the screening asks these where they are selected.
const LIKELY: [&str; 3] = ["add_Integer", "sub_Integer", "multiply_hard_Integer"];

/// Questions of a skill and length among which the screening takes the last ones, so that limits are mostly measured by others.
const AMONG: usize = 56;

/// Covariate of the screening's items with the skill that they ask.
const SKILL: &str = "skill";

/// Answers to the screening in a form.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FormCount {
    pub form: PromptForm,
    pub right: usize,
    /// Questions asked, those without an answer included.
    pub asked: usize,
}

/// The form with most right answers, of equals the first. Longer questions are for forms that have all right, so that counts decide whatever was
/// asked.
pub fn best_form(counts: &[FormCount]) -> Option<PromptForm> {
    Some(counts.iter().rev().max_by_key(|count| count.right)?.form)
}

/// The skill that an item of the screening asks.
pub(super) fn screened_skill(item: &Item) -> Option<&'static Skill> {
    let name = item.covariates.get(SKILL).and_then(Value::as_str)?;
    super::skills().iter().find(|skill| skill.task == name)
}

/// Rounds of the screening.
pub(super) struct Screening {
    counts: Vec<FormCount>,
    /// Rounds that were asked.
    rounds: usize,
    /// Of the last round's items: the index of the form.
    last: Vec<usize>,
}

impl Screening {
    /// Before the first round; there is nothing to screen where there is one form.
    pub fn new(forms: &[PromptForm]) -> Self {
        let counts = forms.iter().map(|&form| FormCount { form, right: 0, asked: 0 }).collect();
        Screening { counts, rounds: 0, last: Vec::new() }
    }

    /// Items at most.
    pub fn most(forms: usize) -> usize {
        if forms > 1 { LENGTHS.len() * SCREENED * forms } else { 0 }
    }

    /// The next round after the answers to the last one: the same questions in every form that is still open; empty once the best form is known.
    pub fn next(
        &mut self,
        answers: &[Option<RoundAnswer>],
        skills: &[&Skill],
        sources: &[(PromptForm, Sources)],
    ) -> Vec<Item> {
        for (&form, answer) in self.last.iter().zip(answers) {
            self.counts[form].right += usize::from(answer.is_some_and(|answer| answer.correct));
            self.counts[form].asked += 1;
        }
        self.last.clear();
        let open = |count: &FormCount| count.right == count.asked;
        let still: Vec<usize> = (0..self.counts.len()).filter(|&form| open(&self.counts[form])).collect();
        let Some(&length) = LENGTHS.get(self.rounds).filter(|_| still.len() > 1) else { return Vec::new() };
        self.rounds += 1;
        let mut items = Vec::new();
        for form in still {
            let (name, source) = &sources[form];
            let of_form = questions(source, skills, length).into_iter().map(|item| screened(*name, item));
            let before = items.len();
            items.extend(of_form);
            self.last.extend(std::iter::repeat_n(form, items.len() - before));
        }
        items
    }

    /// Index of the best form.
    pub fn best(&self) -> usize {
        let best = best_form(&self.counts);
        self.counts.iter().position(|count| Some(count.form) == best).unwrap_or_default()
    }
}

/// Questions of a round: of the skills that a small model is likely to have, in turn; of all that are selected where those are not among them.
fn questions(sources: &Sources, skills: &[&Skill], length: usize) -> Vec<Item> {
    // Notations and thinking alone have no skill of their own.
    let all: Vec<&Skill> = super::skills().iter().collect();
    let asked = screened_skills(if skills.is_empty() { &all[..] } else { skills });
    let each = SCREENED.div_ceil(asked.len().max(1));
    let of_skill = |skill: &&Skill| of_skill(sources, skill, length, each).into_iter();
    let mut items: Vec<std::vec::IntoIter<Item>> = asked.iter().map(of_skill).collect();
    let mut turns = (0..each).flat_map(|_| items.iter_mut().filter_map(Iterator::next).collect::<Vec<_>>());
    turns.by_ref().take(SCREENED).collect()
}

/// Of these skills, those that the screening asks.
fn screened_skills<'a>(skills: &[&'a Skill]) -> Vec<&'a Skill> {
    let likely = skills.iter().filter(|skill| LIKELY.contains(&skill.short_name().as_str())).copied();
    let likely: Vec<&Skill> = likely.collect();
    if likely.is_empty() { skills.to_vec() } else { likely }
}

/// So many different questions of a skill at a length; of the next longer ones where it has no more.
fn of_skill(sources: &Sources, skill: &Skill, length: usize, each: usize) -> Vec<Item> {
    let shortest = length.clamp(skill.shortest, skill.longest);
    let lengths = ladder(skill.shortest, skill.longest).into_iter().filter(|&one| one >= shortest);
    let of_length = |length| (0..AMONG).rev().filter_map(move |index| sources.item(skill, length, index));
    let mut seen: HashSet<String> = HashSet::new();
    let distinct = lengths.flat_map(of_length).filter(|item| seen.insert(item.segments.question.clone()));
    distinct.take(each).collect()
}

/// Questions of a skill in a round of the screening under these options; 0 where it asks none.
pub(super) fn screened_of_skill(options: &ProfileOptions, skill: &Skill) -> usize {
    let asked = screened_skills(&options.skills);
    let is_asked = options.forms.len() > 1 && asked.contains(&skill);
    if is_asked { SCREENED.div_ceil(asked.len()) } else { 0 }
}

/// Texts of the questions of a skill in all rounds of a screening with so many a round.
pub(super) fn screened_questions(sources: &Sources, skill: &Skill, each: usize) -> HashSet<String> {
    let items = LENGTHS.iter().flat_map(|&length| of_skill(sources, skill, length, each));
    items.map(|item| item.segments.question).collect()
}

/// A question as an item of the screening.
fn screened(form: PromptForm, item: Item) -> Item {
    let mut covariates = item.covariates;
    covariates.insert(SKILL.to_owned(), json!(item.task));
    Item {
        id: format!("{NAME}/screening/{form}/{}", item.id),
        task: form.task(),
        // The same question in other forms.
        cluster: format!("screening/{}", item.id),
        covariates,
        ..item
    }
}

#[cfg(test)]
mod tests {
    use super::super::ProfileOptions;
    use super::super::options::select;
    use super::*;
    use crate::suite::registry::{Mode, Takes};

    const ALL: Takes = Takes { chat: true, turns: true, raw: true };

    /// Asks the screening where each form has so many of a round's answers right; returns the rounds' items and the best form.
    fn screen(skills: &[&str], right: &[[usize; 3]]) -> (Vec<Vec<Item>>, PromptForm) {
        let (skills, _) = select(skills).unwrap();
        let options = ProfileOptions { skills, forms: PromptForm::of(Mode::Chat, ALL, None), ..Default::default() };
        let sources = Sources::by_form(&options).unwrap();
        let mut screening = Screening::new(&options.forms);
        let (mut answers, mut rounds) = (Vec::new(), Vec::new());
        loop {
            let items = screening.next(&answers, &options.skills, &sources);
            if items.is_empty() {
                return (rounds, options.forms[screening.best()]);
            }
            let mut seen = [0; 4];
            answers.clear();
            for item in &items {
                let form = options.forms.iter().position(|form| item.task == form.task()).unwrap();
                seen[form] += 1;
                answers.push(Some(RoundAnswer { correct: seen[form] <= right[form][rounds.len()], cut: false }));
            }
            rounds.push(items);
        }
    }

    #[test]
    fn the_best_form_is_found_by_short_questions_and_by_longer_ones_where_all_is_right() {
        let (rounds, best) = screen(&["integers"], &[[6, 0, 0], [0, 0, 0], [17, 0, 0], [18, 0, 0]]);
        assert_eq!((rounds.len(), rounds[0].len(), best.to_string().as_str()), (1, 4 * SCREENED, "raw+3"));
        let (rounds, best) = screen(&["integers"], &[[24, 20, 0], [24, 22, 0], [24, 22, 0], [9, 0, 0]]);
        assert_eq!((rounds.len(), rounds[1].len(), best.to_string().as_str()), (2, 3 * SCREENED, "chat+3"));
        let (rounds, best) = screen(&["integers"], &[[24, 24, 24]; 4]);
        assert_eq!((rounds.len(), best.to_string().as_str()), (3, "chat"), "of equals the first");
        assert!(rounds.iter().map(Vec::len).sum::<usize>() <= Screening::most(4));
    }

    #[test]
    fn every_form_is_asked_the_same_of_skills_that_are_likely() {
        let (rounds, _) = screen(&["integers", "copy"], &[[0; 3]; 4]);
        let asked = |form: usize| -> Vec<(&Value, &str)> {
            let items = &rounds[0][form * SCREENED..(form + 1) * SCREENED];
            items.iter().map(|item| (&item.covariates[SKILL], item.segments.question.as_str())).collect()
        };
        assert!((1..4).all(|form| asked(form) == asked(0)));
        let of = |skill: &str| asked(0).iter().filter(|(task, _)| task.as_str() == Some(skill)).count();
        assert_eq!(LIKELY.map(|name| of(&Skill::named(name).unwrap()[0].task)), [8; 3]);
        let distinct: HashSet<&str> = asked(0).into_iter().map(|(_, question)| question).collect();
        assert_eq!(distinct.len(), SCREENED);
        // Skills of the selection where these are not among them.
        let (rounds, _) = screen(&["copy", "in_text"], &[[0; 3]; 4]);
        assert!(
            rounds[0].iter().all(|item| ["copy", "in_text"].contains(&screened_skill(item).unwrap().task.as_str()))
        );
        // There are nine numbers of one digit to copy: longer ones follow, and none is asked twice.
        let (rounds, _) = screen(&["copy"], &[[0; 3]; 4]);
        let distinct: HashSet<&str> = rounds[0].iter().map(|item| item.segments.question.as_str()).collect();
        assert_eq!((rounds[0].len(), distinct.len()), (4 * SCREENED, SCREENED), "{distinct:?}");
    }
}
