//! Anatomy of the wrong answers as data: shares of the classes of errors with their chance, and wrong digits by position.
use std::collections::BTreeMap;

use earnest_results::Sample;
use serde::Serialize;

use earnest_stats::{Z95, wilson};
use earnest_tasks::anatomy::{Calculation, Chance, ErrorClass, Written, Wrong, of_sample, wrong_positions};
use earnest_tasks::suite::Score;
use earnest_tasks::suite::profile::Family;

use super::SkillProfile;

/// Positions before and after the point that the map of wrong digits shows.
const POSITIONS: usize = 20;
const DECIMALS: usize = 10;

/// Longest lengths of the rows of wrong answers by task and length; the last row has all beyond.
const LENGTHS: [usize; 2] = [3, 10];

/// Share of a class among wrong answers, with its 95 % interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct ClassShare {
    pub class: ErrorClass,
    pub count: usize,
    pub share: f64,
    pub low: f64,
    pub high: f64,
    /// Share of the class among wrong answers to the same questions that know nothing of the mistake ([`Chance`]); none of classes that do not depend on
    /// digits.
    pub chance: Option<f64>,
}

/// Wrong answers of a family.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FamilyErrors {
    pub family: Family,
    pub wrong: usize,
    pub classes: Vec<ClassShare>,
}

/// Wrong answers of a task, or of a task at some lengths.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TaskErrors {
    pub task: String,
    /// Shortest and longest length of the answers.
    pub lengths: (usize, usize),
    pub wrong: usize,
    pub classes: Vec<ClassShare>,
}

/// Wrong digits by position from the point, of wrong answers that are numbers; of powers, those of the significand.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PositionRow {
    pub task: String,
    /// Wrong answers with another digit there, and those whose expected answer has the position; the units first.
    pub positions: Vec<(usize, usize)>,
    /// The same for digits after the point, from left to right.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub decimals: Vec<(usize, usize)>,
}

impl PositionRow {
    fn new(task: &str) -> Self {
        PositionRow { task: task.to_owned(), positions: vec![(0, 0); POSITIONS], decimals: Vec::new() }
    }

    /// Counts the digits of a wrong answer; fractions and what is no number have none.
    fn add(&mut self, expected: &str, answer: &str) {
        let (Some(expected), Some(answer)) = (Written::parse(expected), Written::parse(answer)) else { return };
        let found = wrong_positions(&expected, &answer);
        let count = |row: &mut [(usize, usize)], wrong: &[bool]| {
            for (cell, is_wrong) in row.iter_mut().zip(wrong) {
                cell.0 += usize::from(*is_wrong);
                cell.1 += 1;
            }
        };
        self.decimals.resize(self.decimals.len().max(found.decimals.len().min(DECIMALS)), (0, 0));
        count(&mut self.positions, &found.whole);
        count(&mut self.decimals, &found.decimals);
    }
}

/// Anatomy of the wrong answers.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Anatomy {
    pub wrong: usize,
    /// Over all tasks, the most frequent first; classes without answers are left out.
    pub classes: Vec<ClassShare>,
    pub by_family: Vec<FamilyErrors>,
    pub by_task: Vec<TaskErrors>,
    /// Each task with up to 3, 4 to 10 and more digits.
    pub by_length: Vec<TaskErrors>,
    /// First missed carry or borrow by position from the right, from 1.
    pub missed: Vec<usize>,
    pub positions: Vec<PositionRow>,
}

/// A wrong answer, as far as the tables need it.
struct WrongAnswer {
    task: String,
    length: usize,
    class: ErrorClass,
    chance: Chance,
}

fn shares<'a>(answers: impl Iterator<Item = &'a WrongAnswer>) -> (usize, Vec<ClassShare>) {
    let mut counts: BTreeMap<ErrorClass, usize> = BTreeMap::new();
    let mut chance = Chance::default();
    for answer in answers {
        *counts.entry(answer.class).or_default() += 1;
        chance.add(&answer.chance);
    }
    let wrong: usize = counts.values().sum();
    let share = |(class, count): (ErrorClass, usize)| {
        let found = wilson(count as f64, wrong as f64, Z95)?;
        let chance = chance.share(class);
        Some(ClassShare { class, count, share: found.value, low: found.low, high: found.high, chance })
    };
    let mut shares: Vec<ClassShare> = counts.into_iter().filter_map(share).collect();
    shares.sort_by_key(|share| std::cmp::Reverse(share.count));
    (wrong, shares)
}

fn errors(task: &str, answers: &[&WrongAnswer]) -> Option<TaskErrors> {
    let lengths = || answers.iter().map(|answer| answer.length);
    let (wrong, classes) = shares(answers.iter().copied());
    Some(TaskErrors { task: task.to_owned(), lengths: (lengths().min()?, lengths().max()?), wrong, classes })
}

/// The wrong answers of a run, read one by one.
#[derive(Default)]
pub(super) struct WrongAnswers {
    answers: Vec<WrongAnswer>,
    positions: BTreeMap<String, PositionRow>,
    /// First missed carry or borrow by position.
    missed: Vec<usize>,
}

impl WrongAnswers {
    /// Adds an answer to a question of this length; nothing if it is right.
    pub(super) fn add(&mut self, sample: &Sample, score: &Score, length: usize) {
        let truncated = sample.truncated();
        let Some(found) = of_sample(&sample.task, &sample.covariates, &sample.gold, score, truncated) else { return };
        if let Some(position) = found.position {
            self.missed.resize(self.missed.len().max(position), 0);
            self.missed[position - 1] += 1;
        }
        let wrong = Wrong::new(&sample.task, &sample.covariates, &sample.gold, score);
        let is_calculated = !matches!(wrong.calculation, Calculation::Other | Calculation::Count);
        if let Some(answer) = wrong.answer.filter(|_| is_calculated && found.class.depends_on_digits()) {
            let row = self.positions.entry(sample.task.clone()).or_insert_with(|| PositionRow::new(&sample.task));
            row.add(&sample.gold, answer);
        }
        let chance = Chance::of(&wrong, found.class, &sample.item);
        self.answers.push(WrongAnswer { task: sample.task.clone(), length, class: found.class, chance });
    }

    /// The anatomy, tasks in the order of the skills.
    pub(super) fn anatomy(mut self, skills: &[SkillProfile]) -> Anatomy {
        let is_counted = |row: &PositionRow| row.positions.iter().chain(&row.decimals).any(|cell| cell.1 > 0);
        let positions =
            skills.iter().filter_map(|skill| self.positions.remove(&skill.task).filter(is_counted)).collect();
        let tasks: Vec<(&str, Family)> = skills.iter().map(|skill| (skill.task.as_str(), skill.family)).collect();
        Anatomy { missed: self.missed, positions, ..anatomy(&tasks, &self.answers) }
    }
}

fn anatomy(tasks: &[(&str, Family)], wrong: &[WrongAnswer]) -> Anatomy {
    let (count, classes) = shares(wrong.iter());
    let by_family = Family::ALL.into_iter().filter_map(|family| {
        let is_of = |answer: &&WrongAnswer| tasks.iter().any(|(task, of)| *of == family && *task == answer.task);
        let (wrong, classes) = shares(wrong.iter().filter(is_of));
        (wrong > 0).then_some(FamilyErrors { family, wrong, classes })
    });
    let by_family = by_family.collect();
    let (mut by_task, mut by_length) = (Vec::new(), Vec::new());
    for (task, _) in tasks {
        let mut of: Vec<&WrongAnswer> = wrong.iter().filter(|answer| answer.task == *task).collect();
        of.sort_by_key(|answer| answer.length);
        by_task.extend(errors(task, &of));
        let mut rest = &of[..];
        for longest in LENGTHS.into_iter().chain([usize::MAX]) {
            let (part, beyond) = rest.split_at(rest.partition_point(|answer| answer.length <= longest));
            by_length.extend(errors(task, part));
            rest = beyond;
        }
    }
    Anatomy { wrong: count, classes, by_family, by_task, by_length, ..Anatomy::default() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_shared_out_by_task_and_length() {
        let answer = |task: &str, length, class| {
            let wrong = Wrong {
                calculation: Calculation::Add,
                a: Some("7"),
                b: Some("5"),
                expected: "12",
                answer: Some("13"),
                shown: None,
            };
            WrongAnswer { task: task.into(), length, class, chance: Chance::of(&wrong, class, task) }
        };
        let wrong = [
            answer("add", 2, ErrorClass::Carry),
            answer("add", 4, ErrorClass::Carry),
            answer("add", 9, ErrorClass::Other),
            answer("copy", 9, ErrorClass::Dropped),
        ];
        let tasks = [("add", Family::Integers), ("copy", Family::ArithmeticBench), ("rev", Family::ArithmeticBench)];
        let found = anatomy(&tasks, &wrong);
        assert_eq!((found.wrong, found.classes[0].class, found.classes[0].count), (4, ErrorClass::Carry, 2));
        assert!(found.classes[0].low < 0.5 && found.classes[0].high > 0.5);
        // Chance is that of the row's own answers; 7 + 5 has some carries that are missed by chance.
        assert!(found.classes.iter().all(|share| share.chance.is_some_and(|chance| (0.0..1.0).contains(&chance))));
        let families: Vec<_> = found.by_family.iter().map(|row| (row.family, row.wrong)).collect();
        assert_eq!(families, [(Family::Integers, 3), (Family::ArithmeticBench, 1)]);
        assert_eq!(found.by_family[0].classes[0].chance, found.by_task[0].classes[0].chance);
        assert_eq!(found.by_task.iter().map(|row| row.wrong).collect::<Vec<_>>(), [3, 1]);
        let lengths: Vec<_> = found.by_length.iter().map(|row| (row.task.as_str(), row.lengths, row.wrong)).collect();
        assert_eq!(lengths, [("add", (2, 2), 1), ("add", (4, 9), 2), ("copy", (9, 9), 1)]);
    }

    #[test]
    fn wrong_digits_are_counted_from_the_point() {
        let mut row = PositionRow::new("sub");
        row.add("81.5", "3481.5");
        row.add("81.25", "82.2");
        row.add("3/4", "3/5");
        assert_eq!((row.positions[0], row.positions[1], row.positions[2]), ((1, 2), (0, 2), (0, 0)));
        assert_eq!(row.decimals, [(0, 2), (1, 1)]);
    }
}
