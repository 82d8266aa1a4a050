//! A profile as data.
use earnest_results::{Origin, Status};
use std::collections::BTreeMap;

use serde::Serialize;

use earnest_stats::psychometric::{Counted, Limit};
use earnest_stats::{Z95, wilson};
use earnest_tasks::anatomy::{Calculation, ErrorClass, Written, of_sample, wrong_positions};
use earnest_tasks::suite::profile::{Family, NAME, Notation, ProfileOptions, SkillResult, ThinkingTask, results};

use super::notations::Notations;
use super::thinking::ThinkingAnswers;
use super::{NotationResult, ThinkingResult};
use crate::ReportError;
use earnest_results::store::{Filter, RunRecord, Store};

/// Positions before and after the point that the map of wrong digits shows.
const POSITIONS: usize = 20;
const DECIMALS: usize = 10;

/// Longest lengths of the rows of wrong answers by task and length; the last row has all beyond.
const LENGTHS: [usize; 2] = [3, 10];

/// Version of [`NumeracyProfile`] as JSON.
const PROFILE_FORMAT: u32 = 1;

/// Limits and errors of a model.
#[derive(Debug, Clone, Serialize)]
pub struct NumeracyProfile {
    pub format: u32,
    pub run: String,
    pub model: String,
    pub finished: bool,
    /// Answers, those of notations included, and completion tokens.
    pub answers: usize,
    pub tokens: u64,
    /// Samples without an answer: prompts that do not fit, requests that failed.
    pub failed: usize,
    /// Seconds of generation.
    pub seconds: f64,
    pub skills: Vec<SkillProfile>,
    pub anatomy: Anatomy,
    /// The same sums in several notations, plain digits first.
    pub notations: Vec<NotationResult>,
    /// Accuracy and tokens against a cap on thinking, where it was asked for.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub thinking: Vec<ThinkingResult>,
    /// Results of the skills, from which the rest is computed.
    #[serde(skip)]
    pub(super) results: Vec<SkillResult>,
    /// Options of the run, and where its model was.
    #[serde(skip)]
    pub(super) options: ProfileOptions,
    #[serde(skip)]
    pub(super) source: String,
}

/// Limits of a skill.
#[derive(Debug, Clone, Serialize)]
pub struct SkillProfile {
    pub task: String,
    pub family: Family,
    pub title: String,
    pub shortest: usize,
    pub longest: usize,
    pub chance: f64,
    pub asked: usize,
    /// 90, 50 and 10 % of the way from chance to certainty.
    pub limits: Vec<Limit>,
    /// False if success does not fall with the length: the limits mean nothing, and `counts` say what there is.
    pub falls: bool,
    /// True if the interval is as narrow as was asked for.
    pub narrow: bool,
    pub counts: Vec<Counted>,
}

/// Share of a class among wrong answers, with its 95 % interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct ClassShare {
    pub class: ErrorClass,
    pub count: usize,
    pub share: f64,
    pub low: f64,
    pub high: f64,
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
}

fn shares(classes: impl Iterator<Item = ErrorClass>) -> (usize, Vec<ClassShare>) {
    let mut counts: BTreeMap<ErrorClass, usize> = BTreeMap::new();
    classes.for_each(|class| *counts.entry(class).or_default() += 1);
    let wrong: usize = counts.values().sum();
    let share = |(class, count): (ErrorClass, usize)| {
        let found = wilson(count as f64, wrong as f64, Z95)?;
        Some(ClassShare { class, count, share: found.value, low: found.low, high: found.high })
    };
    let mut shares: Vec<ClassShare> = counts.into_iter().filter_map(share).collect();
    shares.sort_by_key(|share| std::cmp::Reverse(share.count));
    (wrong, shares)
}

fn errors(task: &str, answers: &[&WrongAnswer]) -> Option<TaskErrors> {
    let lengths = || answers.iter().map(|answer| answer.length);
    let (wrong, classes) = shares(answers.iter().map(|answer| answer.class));
    Some(TaskErrors { task: task.to_owned(), lengths: (lengths().min()?, lengths().max()?), wrong, classes })
}

/// Reads the profile of a stored run.
///
/// # Errors
/// If the run is of another suite, or its rows cannot be read.
pub fn profile(store: &Store, run: &RunRecord) -> Result<NumeracyProfile, ReportError> {
    let manifest = &run.manifest;
    if manifest.settings.suite != NAME || manifest.settings.origin() != Origin::Evaluated {
        let message = format!("{} is a run of {}, not a numeracy profile", manifest.run, manifest.settings.suite);
        return Err(ReportError::setting(message)
            .hint("`earnest profile --model MODEL` makes one; `earnest runs list` shows which there are"));
    }
    store.check_seal(run)?;
    let options = ProfileOptions::from_json(&manifest.settings.suite_options)?;
    if !options.shared.is_empty() {
        let message = format!("{} has the questions of a comparison, and is no numeracy profile", manifest.run);
        return Err(ReportError::setting(message).hint("name the runs of the two numeracy profiles that it compared"));
    }
    let mut answers: Vec<(String, usize, bool)> = Vec::new();
    let mut wrong: Vec<WrongAnswer> = Vec::new();
    let mut positions: BTreeMap<String, PositionRow> = BTreeMap::new();
    let mut missed: Vec<usize> = Vec::new();
    let (mut tokens, mut failed) = (0, 0);
    let mut notations = Notations::default();
    let mut thinking = ThinkingAnswers::default();
    let mut asked = 0;
    for sample in store.samples(run, Filter::default()).indexed() {
        let (index, sample) = sample?;
        tokens += sample.completion.as_ref().map_or(0, |completion| completion.tokens() as u64);
        let length = sample.covariates.get("length").and_then(|length| usize::try_from(length.as_u64()?).ok());
        let (Some(score), Some(length)) = (&sample.score, length) else {
            failed += 1;
            continue;
        };
        asked += 1;
        if let Some(notation) = Notation::of_task(&sample.task) {
            notations.add(notation, index, sample);
            continue;
        }
        if let Some(kind) = ThinkingTask::of_task(&sample.task) {
            thinking.add(kind, length, &sample);
            continue;
        }
        if let Some(found) = of_sample(&sample.task, &sample.covariates, &sample.gold, score, sample.truncated()) {
            if let Some(position) = found.position {
                missed.resize(missed.len().max(position), 0);
                missed[position - 1] += 1;
            }
            let is_number = !matches!(
                found.class,
                ErrorClass::Truncated | ErrorClass::Refusal | ErrorClass::NoNumber | ErrorClass::Format
            );
            if let Some(answer) = score.answer.as_deref().filter(|_| is_number)
                && !matches!(Calculation::of_task(&sample.task), Calculation::Other | Calculation::Count)
            {
                let row = positions.entry(sample.task.clone()).or_insert_with(|| PositionRow::new(&sample.task));
                row.add(&sample.gold, answer);
            }
            wrong.push(WrongAnswer { task: sample.task.clone(), length, class: found.class });
        }
        answers.push((sample.task, length, score.correct));
    }
    let results = results(&options, answers.iter().map(|(task, length, right)| (task.as_str(), *length, *right)));
    let skills: Vec<SkillProfile> = results.iter().map(skill).collect();
    let tasks: Vec<&str> = skills.iter().map(|skill| skill.task.as_str()).collect();
    let is_counted = |row: &PositionRow| row.positions.iter().chain(&row.decimals).any(|cell| cell.1 > 0);
    let positions = tasks.iter().filter_map(|&task| positions.remove(task).filter(is_counted)).collect();
    Ok(NumeracyProfile {
        format: PROFILE_FORMAT,
        run: manifest.run.clone(),
        model: manifest.model.name.clone(),
        finished: manifest.status == Status::Finished,
        answers: asked,
        tokens,
        failed,
        seconds: manifest.generation_s,
        anatomy: Anatomy { missed, positions, ..anatomy(&tasks, &wrong) },
        notations: notations.results(store, run)?,
        thinking: thinking.results(options.thinking.as_ref()),
        skills,
        results,
        options,
        source: manifest.model.path.clone(),
    })
}

fn skill(result: &SkillResult) -> SkillProfile {
    let SkillResult { skill, measured } = result;
    SkillProfile {
        task: skill.task.clone(),
        family: skill.family,
        title: skill.title.clone(),
        shortest: skill.shortest,
        longest: skill.longest,
        chance: skill.chance,
        asked: measured.counts.iter().map(|one| one.asked).sum(),
        limits: measured.limits.clone(),
        falls: measured.falls,
        narrow: measured.narrow,
        counts: measured.counts.clone(),
    }
}

fn anatomy(tasks: &[&str], wrong: &[WrongAnswer]) -> Anatomy {
    let (count, classes) = shares(wrong.iter().map(|answer| answer.class));
    let (mut by_task, mut by_length) = (Vec::new(), Vec::new());
    for task in tasks {
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
    Anatomy { wrong: count, classes, by_task, by_length, ..Anatomy::default() }
}

impl NumeracyProfile {
    /// The skill of this task.
    pub fn skill(&self, task: &str) -> Option<&SkillProfile> {
        self.skills.iter().find(|skill| skill.task == task)
    }
}

impl SkillProfile {
    /// Share of right answers over the lengths that were asked.
    pub(super) fn right_share(&self) -> f64 {
        let right: usize = self.counts.iter().map(|one| one.right).sum();
        right as f64 / self.asked.max(1) as f64
    }

    /// The 50 % limit; none where nothing was answered or success does not fall.
    pub fn half(&self) -> Option<&Limit> {
        self.limits.get(1).filter(|_| self.falls && self.asked > 0)
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use earnest_tasks::suite::profile::Skill;

    /// A profile of a model that is right up to a length in each skill, with an answer at each of the lengths 1 to 12.
    pub(in crate::profile) fn measured(model: &str, limits: &[(&str, usize)]) -> NumeracyProfile {
        let skills = limits.iter().flat_map(|(name, _)| Skill::named(name).unwrap()).collect();
        let options = ProfileOptions { skills, ..ProfileOptions::default() };
        let answers = options.skills.iter().zip(limits).flat_map(|(skill, &(_, limit))| {
            (1..=12).map(move |length| (skill.task.as_str(), length, length <= limit))
        });
        let results = results(&options, answers);
        NumeracyProfile {
            format: PROFILE_FORMAT,
            run: format!("run of {model}"),
            model: model.to_owned(),
            finished: true,
            answers: 12 * results.len(),
            tokens: 0,
            failed: 0,
            seconds: 0.0,
            skills: results.iter().map(skill).collect(),
            anatomy: Anatomy::default(),
            notations: Vec::new(),
            thinking: Vec::new(),
            results,
            options,
            source: format!("path of {model}"),
        }
    }

    #[test]
    fn errors_are_shared_out_by_task_and_length() {
        let answer = |task: &str, length, class| WrongAnswer { task: task.into(), length, class };
        let wrong = [
            answer("add", 2, ErrorClass::Carry),
            answer("add", 4, ErrorClass::Carry),
            answer("add", 9, ErrorClass::Other),
            answer("copy", 9, ErrorClass::Dropped),
        ];
        let found = anatomy(&["add", "copy", "rev"], &wrong);
        assert_eq!((found.wrong, found.classes[0].class, found.classes[0].count), (4, ErrorClass::Carry, 2));
        assert!(found.classes[0].low < 0.5 && found.classes[0].high > 0.5);
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
