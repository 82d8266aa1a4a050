//! The screening of prompts, which finds the form in which a model is best, and the skills that it does better in another.
use std::cmp::Reverse;
use std::collections::{BTreeMap, HashSet};

use earnest_stats::psychometric::ladder;
use earnest_stats::{PairedCounts, mcnemar};
use serde_json::{Value, json};

use super::question::Sources;
use super::skill::Source;
use super::{NAME, ProfileOptions, PromptForm, Skill};
use crate::suite::{Item, RoundAnswer};

/// Questions of a round of the screening in each form.
pub const SCREENED: usize = 24;

/// Rounds of the screening, in their order.
const ROUNDS: [ScreeningRound; 5] = [
    ScreeningRound::Likely(1),
    ScreeningRound::Others,
    ScreeningRound::Likely(3),
    ScreeningRound::Likely(6),
    ScreeningRound::Trial,
];

/// Lengths at which every skill is tried, one question each: some are right from a few digits on only.
const TRIAL: [usize; 4] = [1, 3, 6, 9];

/// Right answers to a trial that a form must have more than the best one to be asked of the skill.
const CLEARLY: usize = 2;

/// Questions of a round.
#[derive(Debug, Clone, Copy)]
enum ScreeningRound {
    /// Skills that a small model is likely to have, at this length. After the first round only forms that have all right are asked so.
    Likely(usize),
    /// The other skills at their shortest lengths, each about as often, as the profile asks them all: examples may be what they need.
    Others,
    /// Every skill, in the best form and the next best one that is not shown to be worse: what one of them can and the other cannot is found out skill by skill.
    Trial,
}

/// Skills that a small model is likely to have: the screening begins with these where they are selected.
const LIKELY: [&str; 3] = ["add_Integer", "sub_Integer", "multiply_hard_Integer"];

/// Questions of a skill and length among which the screening takes the last ones, so that limits are mostly measured by others.
const AMONG: usize = 56;

/// p value of McNemar's exact test below which a form is worse than the best one, and asked no more.
const WORSE: f64 = 0.05;

/// Covariate of the screening's items with the skill that they ask.
const SKILL: &str = "skill";

/// Covariate with the number of the round, from 1.
const ROUND: &str = "round";

/// Answers to the screening in a form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FormCount {
    pub form: PromptForm,
    /// True for right answers, in the order of the questions, which is that of every form; false for those without an answer.
    pub answers: Vec<bool>,
    /// Questions of the first round, which every form has.
    pub first: usize,
    /// Questions of the first round without an answer.
    pub failed: usize,
    /// Right answers to the trial of each skill, by task; empty where there was none.
    trial: BTreeMap<String, usize>,
}

impl FormCount {
    /// A form before the screening.
    pub fn new(form: PromptForm) -> Self {
        FormCount { form, answers: Vec::new(), first: 0, failed: 0, trial: BTreeMap::new() }
    }

    /// Adds the answer to the next item, which has these covariates; none where there is no answer.
    pub fn add(&mut self, covariates: &BTreeMap<String, Value>, right: Option<bool>) {
        let is_first = covariates.get(ROUND).is_none_or(|round| *round == json!(1));
        self.failed += usize::from(is_first && right.is_none());
        self.first += usize::from(is_first);
        let right = right.unwrap_or(false);
        self.answers.push(right);
        if covariates.get(ROUND) == Some(&json!(ROUNDS.len()))
            && let Some(task) = covariates.get(SKILL).and_then(Value::as_str)
        {
            *self.trial.entry(task.to_owned()).or_default() += usize::from(right);
        }
    }

    /// Right answers.
    pub fn right(&self) -> usize {
        count(&self.answers)
    }

    /// Right answers to the first round.
    pub fn first_right(&self) -> usize {
        count(&self.answers[..self.first])
    }

    /// True if this form is shown to be worse than the best one, by the questions that both have.
    pub fn is_worse(&self, best: &FormCount) -> bool {
        is_worse(&self.answers, &best.answers)
    }
}

fn count(answers: &[bool]) -> usize {
    answers.iter().filter(|right| **right).count()
}

/// McNemar's exact test of answers against those of the best form to the same questions, as far as both have them.
fn is_worse(answers: &[bool], best: &[bool]) -> bool {
    mcnemar(&PairedCounts::of(best.iter().copied().zip(answers.iter().copied()))).exact_p < WORSE
}

/// The form with most right answers, of equals the first. Later rounds are for forms that no earlier one has shown to be worse, so that counts decide
/// whatever was asked.
pub fn best_form(counts: &[FormCount]) -> Option<PromptForm> {
    Some(counts.iter().rev().max_by_key(|count| count.right())?.form)
}

/// The form in which a skill is asked: that with clearly more right answers to its trial than the best one, else the best one.
pub fn form_of_skill(counts: &[FormCount], task: &str) -> Option<PromptForm> {
    let best = best_form(counts)?;
    let tried = |count: &&FormCount| count.trial.get(task).copied();
    let of_best = counts.iter().find(|count| count.form == best).as_ref().and_then(tried);
    let better =
        counts.iter().find(|count| tried(count).zip(of_best).is_some_and(|(other, best)| other >= best + CLEARLY));
    Some(better.map_or(best, |count| count.form))
}

/// The skill that an item of the screening asks.
pub(super) fn screened_skill(item: &Item) -> Option<&'static Skill> {
    let name = item.covariates.get(SKILL).and_then(Value::as_str)?;
    super::skills().iter().find(|skill| skill.task == name)
}

/// The screening as it goes on.
pub(super) struct Screening {
    /// Answers in each form. Forms that are open have answers to the same questions.
    counts: Vec<FormCount>,
    /// Rounds that were looked at.
    rounds: usize,
    /// Questions of all rounds: the index of the form, the skill, the text.
    asked: HashSet<(usize, String, String)>,
    /// Of the last round's items: the index of the form, and the covariates.
    last: Vec<(usize, BTreeMap<String, Value>)>,
}

impl Screening {
    /// Before the first round; there is nothing to screen where there is one form.
    pub fn new(forms: &[PromptForm]) -> Self {
        Screening {
            counts: forms.iter().map(|&form| FormCount::new(form)).collect(),
            rounds: 0,
            asked: HashSet::new(),
            last: Vec::new(),
        }
    }

    /// Items at most, with so many skills.
    pub fn most(forms: usize, skills: usize) -> usize {
        if forms > 1 { (ROUNDS.len() - 1) * SCREENED * forms + 2 * TRIAL.len() * skills } else { 0 }
    }

    /// The next round after the answers to the last one: the same questions in every form that is still open; empty once the best form is known.
    pub fn next(
        &mut self,
        answers: &[Option<RoundAnswer>],
        skills: &[&Skill],
        sources: &[(PromptForm, Sources)],
    ) -> Vec<Item> {
        for ((form, covariates), answer) in self.last.drain(..).zip(answers) {
            self.counts[form].add(&covariates, answer.map(|answer| answer.correct));
        }
        let mut items = Vec::new();
        while items.is_empty()
            && let Some(&round) = ROUNDS.get(self.rounds)
        {
            let open = self.open();
            let is_first = self.rounds == 0;
            self.rounds += 1;
            let asked: Vec<usize> = match round {
                ScreeningRound::Likely(_) if !is_first => open.into_iter().filter(|form| self.has_all(*form)).collect(),
                ScreeningRound::Likely(_) | ScreeningRound::Others => open,
                ScreeningRound::Trial => self.best_two(&open),
            };
            for form in asked.iter().copied().filter(|_| asked.len() > 1) {
                let (name, source) = &sources[form];
                let of_form = questions(source, skills, round).into_iter();
                let of_form = of_form.map(|item| screened(*name, self.rounds, item));
                for item in of_form {
                    // Of skills with few short questions a later round would have some again.
                    let skill = item.covariates.get(SKILL).map(Value::to_string).unwrap_or_default();
                    if !self.asked.insert((form, skill, item.segments.question.clone())) {
                        continue;
                    }
                    self.last.push((form, item.covariates.clone()));
                    items.push(item);
                }
            }
        }
        items
    }

    /// Forms that were asked in every round and are not shown to be worse than the best.
    fn open(&self) -> Vec<usize> {
        let best = &self.counts[self.best()];
        let is_open =
            |form: &usize| self.counts[*form].answers.len() == best.answers.len() && !self.counts[*form].is_worse(best);
        (0..self.counts.len()).filter(is_open).collect()
    }

    /// Of these forms the best two, in their order.
    fn best_two(&self, open: &[usize]) -> Vec<usize> {
        let mut best = open.to_vec();
        best.sort_by_key(|&form| Reverse(self.counts[form].right()));
        best.truncate(2);
        best.sort_unstable();
        best
    }

    fn has_all(&self, form: usize) -> bool {
        self.counts[form].answers.iter().all(|right| *right)
    }

    /// Index of the best form: as [`best_form`].
    pub fn best(&self) -> usize {
        self.index(best_form(&self.counts))
    }

    /// Index of the form in which a skill is asked: as [`form_of_skill`].
    pub fn of_skill(&self, task: &str) -> usize {
        self.index(form_of_skill(&self.counts, task))
    }

    fn index(&self, form: Option<PromptForm>) -> usize {
        self.counts.iter().position(|count| Some(count.form) == form).unwrap_or_default()
    }
}

/// Questions of a round: of its skills, in turn.
fn questions(sources: &Sources, skills: &[&Skill], round: ScreeningRound) -> Vec<Item> {
    // Notations and thinking alone have no skill of their own.
    let all: Vec<&Skill> = super::skills().iter().collect();
    let likely = screened_skills(if skills.is_empty() { &all[..] } else { skills });
    let (asked, length) = match round {
        ScreeningRound::Trial => {
            // Examples change nothing of word problems, which have some in every form.
            let tried = skills.iter().filter(|skill| skill.source != Source::WordProblem);
            return tried.flat_map(|skill| trial(sources, skill)).collect();
        }
        ScreeningRound::Likely(length) => (likely, length),
        ScreeningRound::Others => {
            let mut others: Vec<&Skill> = skills.iter().filter(|skill| !likely.contains(skill)).copied().collect();
            // Word problems alone are the same with examples and without.
            if others.iter().all(|skill| skill.source == Source::WordProblem) {
                others.clear();
            }
            // As far apart as possible, so that all families are among them.
            let count = others.len().min(SCREENED);
            ((0..count).map(|turn| others[(2 * turn + 1) * others.len() / (2 * count)]).collect(), 1)
        }
    };
    let each = SCREENED.div_ceil(asked.len().max(1));
    let of_skill = |skill: &&Skill| of_skill(sources, skill, length, each).into_iter();
    let mut items: Vec<std::vec::IntoIter<Item>> = asked.iter().map(of_skill).collect();
    let mut turns = (0..each).flat_map(|_| items.iter_mut().filter_map(Iterator::next).collect::<Vec<_>>());
    turns.by_ref().take(SCREENED).collect()
}

/// Of these skills, those that the screening begins with.
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

/// The questions of a skill's trial: none that another round may have asked. Fewer where there are no further ones.
fn trial(sources: &Sources, skill: &Skill) -> Vec<Item> {
    let mut seen = questions_of_rounds(sources, skill, SCREENED);
    let lengths = TRIAL.map(|length| length.clamp(skill.shortest, skill.longest));
    let item = |length| {
        let indices = (AMONG..AMONG + 2 * SCREENED).chain((0..AMONG).rev());
        let mut items = indices.filter_map(|index| sources.item(skill, length, index));
        items.find(|item| seen.insert(item.segments.question.clone()))
    };
    lengths.into_iter().filter_map(item).collect()
}

/// Texts of the questions of a skill in the rounds before the trial, with so many a round.
fn questions_of_rounds(sources: &Sources, skill: &Skill, each: usize) -> HashSet<String> {
    let lengths = ROUNDS.map(|round| if let ScreeningRound::Likely(length) = round { length } else { 1 });
    let items = lengths.into_iter().flat_map(|length| of_skill(sources, skill, length, each));
    items.map(|item| item.segments.question).collect()
}

/// Questions of a skill in a round of the screening under these options, at most; 0 where nothing is screened.
pub(super) fn screened_of_skill(options: &ProfileOptions, skill: &Skill) -> usize {
    let likely = screened_skills(&options.skills);
    let others = options.skills.len() - likely.len();
    match options.forms.len() {
        0 | 1 => 0,
        _ if likely.contains(&skill) => SCREENED.div_ceil(likely.len()),
        _ => SCREENED.div_ceil(others.max(1)),
    }
}

/// Texts of the questions of a skill in all rounds of a screening with so many a round.
pub(super) fn screened_questions(sources: &Sources, skill: &Skill, each: usize) -> HashSet<String> {
    let mut texts = questions_of_rounds(sources, skill, each);
    if each > 0 {
        texts.extend(trial(sources, skill).into_iter().map(|item| item.segments.question));
    }
    texts
}

/// A question as an item of a round of the screening.
fn screened(form: PromptForm, round: usize, item: Item) -> Item {
    let mut covariates = item.covariates;
    covariates.insert(ROUND.to_owned(), json!(round));
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
    use super::super::Family;
    use super::super::options::select;
    use super::*;
    use crate::suite::registry::{Mode, Takes};

    const ALL: Takes = Takes { chat: true, turns: true, raw: true };

    /// Asks the screening where each form has so many of a round's answers right, by the length or as others; returns the rounds' items and the best
    /// form.
    fn screen(skills: &[&str], right: &[[usize; 4]]) -> (Vec<Vec<Item>>, PromptForm) {
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
                answers.push(Some(RoundAnswer {
                    correct: seen[form] <= right[form].get(rounds.len()).copied().unwrap_or(0),
                    cut: false,
                }));
            }
            rounds.push(items);
        }
    }

    /// Questions of each round, and the best form.
    fn found(skills: &[&str], right: &[[usize; 4]]) -> (Vec<usize>, String) {
        let (rounds, best) = screen(skills, right);
        (rounds.iter().map(Vec::len).collect(), best.to_string())
    }

    #[test]
    fn forms_go_on_that_are_not_shown_to_be_worse() {
        let sources = Sources::by_form(&ProfileOptions::default()).unwrap();
        let trials = |skills: &[&str]| -> usize {
            let skills = select(skills).unwrap().0.into_iter();
            let tried = skills.filter(|skill| skill.source != Source::WordProblem);
            2 * tried.map(|skill| trial(&sources[0].1, skill).len()).sum::<usize>()
        };
        assert!((2 * 3 * 20..=2 * 4 * 20).contains(&trials(&["integers"])), "{}", trials(&["integers"]));
        // The first two forms are clearly worse; the other skills decide between the others.
        let right = [[6, 0, 0, 0], [0, 0, 0, 0], [18, 2, 0, 0], [16, 8, 0, 0]];
        assert_eq!(
            found(&["integers"], &right),
            (vec![4 * SCREENED, 2 * SCREENED, trials(&["integers"])], "raw+3".to_owned())
        );
        // One form is left after the first round.
        let right = [[24, 0, 0, 0], [9, 0, 0, 0], [9, 0, 0, 0], [9, 0, 0, 0]];
        assert_eq!(found(&["integers"], &right), (vec![4 * SCREENED], "chat".to_owned()));
        // Forms that have all right are told apart by longer questions.
        let right = [[24, 24, 20, 0], [24, 24, 24, 4], [24, 24, 24, 5], [24, 20, 24, 24]];
        let mut rounds = [4, 4, 3, 2].map(|forms| forms * SCREENED).to_vec();
        rounds.push(trials(&["integers", "floats"]));
        assert_eq!(found(&["integers", "floats"], &right), (rounds, "raw".to_owned()));
        let (rounds, best) = found(&["integers", "floats"], &[[24; 4]; 4]);
        assert_eq!((rounds.len(), best.as_str()), (5, "chat"), "of equals the first");
        assert!(rounds.iter().sum::<usize>() <= Screening::most(4, 40));
        // No other skill is selected, so that the trial follows.
        assert_eq!(found(&["add_Integer"], &[[12; 4]; 4]).0, [4 * SCREENED, trials(&["add_Integer"])]);
        assert_eq!(found(&["notations"], &[[12; 4]; 4]).0, [4 * SCREENED]);
        assert_eq!(found(&["add_Integer", "word_problems"], &[[12; 4]; 4]).0, [4 * SCREENED, trials(&["add_Integer"])]);
    }

    #[test]
    fn a_skill_is_asked_in_the_form_that_has_clearly_more_of_its_trial_right() {
        let covariates =
            |round: usize, task: &str| [(ROUND.to_owned(), json!(round)), (SKILL.to_owned(), json!(task))].into();
        let count = |form: &str, first: usize, trials: [(&str, usize); 3]| {
            let mut count = FormCount::new(form.parse().unwrap());
            (0..SCREENED).for_each(|index| count.add(&covariates(1, "add"), (index < 23).then_some(index < first)));
            for (task, right) in trials {
                (0..TRIAL.len()).for_each(|index| count.add(&covariates(ROUNDS.len(), task), Some(index < right)));
            }
            count
        };
        let counts = [
            count("raw", 20, [("box", 0), ("copy", 2), ("rev", 4)]),
            count("raw+3", 12, [("box", 2), ("copy", 3), ("rev", 0)]),
        ];
        assert_eq!((counts[0].first, counts[0].failed, counts[0].right(), counts[1].right()), (SCREENED, 1, 26, 17));
        let of = |task: &str| form_of_skill(&counts, task).unwrap().to_string();
        assert_eq!(["box", "copy", "rev", "add"].map(of), ["raw+3", "raw", "raw", "raw"]);
        // Profiles of before the trial have one form.
        let mut before = counts.clone();
        before.iter_mut().for_each(|count| count.trial.clear());
        assert_eq!(form_of_skill(&before, "box"), best_form(&before));
        // The questions are few, short and longer ones, and asked nowhere else.
        let sources = Sources::by_form(&ProfileOptions::default()).unwrap();
        let skill = Skill::named("count_Integer").unwrap()[0];
        let tried = trial(&sources[0].1, skill);
        let lengths: Vec<&Value> = tried.iter().map(|item| &item.covariates["length"]).collect();
        assert_eq!(lengths, [1, 3, 6, 9]);
        let known = screened_questions(&sources[0].1, skill, 1);
        assert!(tried.iter().all(|item| known.contains(&item.segments.question)));
    }

    #[test]
    fn no_round_asks_what_another_one_asked() {
        // Two forms that have all right are asked in every round.
        for skills in [&["integers", "copy", "count"][..], &["add_Integer"], &["copy", "b2d", "in_text"]] {
            let (rounds, _) = screen(skills, &[[24; 4], [24; 4], [0; 4], [0; 4]]);
            let of_form = |item: &&Item| item.task == PromptForm::of(Mode::Chat, ALL, None)[0].task();
            let asked: Vec<&Item> = rounds.iter().flatten().filter(of_form).collect();
            let ids: HashSet<&str> = asked.iter().map(|item| item.id.as_str()).collect();
            let mut texts: HashSet<(&Value, &str)> = HashSet::new();
            assert!(
                asked.iter().all(|item| texts.insert((&item.covariates[SKILL], &item.segments.question))),
                "{skills:?}"
            );
            assert_eq!(ids.len(), asked.len(), "{skills:?}");
        }
    }

    #[test]
    fn every_form_is_asked_the_same_of_skills_that_are_likely() {
        let (rounds, _) = screen(&["integers", "copy"], &[[0; 4]; 4]);
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
        let (rounds, _) = screen(&["copy", "in_text"], &[[0; 4]; 4]);
        assert!(
            rounds[0].iter().all(|item| ["copy", "in_text"].contains(&screened_skill(item).unwrap().task.as_str()))
        );
        // There are nine numbers of one digit to copy: longer ones follow, and none is asked twice.
        let (rounds, _) = screen(&["copy"], &[[0; 4]; 4]);
        let distinct: HashSet<&str> = rounds[0].iter().map(|item| item.segments.question.as_str()).collect();
        assert_eq!((rounds[0].len(), distinct.len()), (4 * SCREENED, SCREENED), "{distinct:?}");
        // The second round has skills of all families, one question each.
        let all: Vec<&str> = Family::ALL.iter().map(|family| family.name()).collect();
        let (rounds, _) = screen(&all, &[[0; 4]; 4]);
        let skills: Vec<&Skill> = rounds[1].iter().take(SCREENED).filter_map(screened_skill).collect();
        assert!(Family::ALL[..5].iter().all(|family| skills.iter().any(|skill| skill.family == *family)));
        let distinct: HashSet<&str> = skills.iter().map(|skill| skill.task.as_str()).collect();
        assert_eq!((rounds[1].len(), distinct.len()), (4 * SCREENED, SCREENED));
    }
}
