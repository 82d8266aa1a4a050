//! Shared questions: what two models with numeracy profiles are both asked, to compare them.
use earnest_stats::psychometric::{Between, Limit, ladder, share_out, spread_over};

use super::question::Sources;
use super::screening::{screened_of_skill, screened_questions};
use super::{ProfileOptions, PromptForm, SharedQuestions, Skill, SkillResult, same_curve};
use crate::suite::Item;

/// Shared questions of a skill at least and at most, where it gets any.
pub use earnest_stats::psychometric::{FEWEST_OF_SKILL, SHARED_OF_SKILL};

/// Shared questions of a comparison, where no other number is asked for.
pub const SHARED: usize = 400;

/// A skill in which two models are compared.
#[derive(Debug, Clone, PartialEq)]
pub struct ComparedSkill {
    pub skill: &'static Skill,
    /// 50 % limits of both.
    pub limits: [Limit; 2],
    /// p value of one curve of success for both, by the answers of their profiles.
    pub p: f64,
    /// Lengths that tell them apart.
    lengths: Vec<usize>,
    /// Answers of the profiles at each of the lengths, those of the one that has more.
    answered: Vec<usize>,
}

/// Skills of two profiles, as far as they can be compared.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ComparedSkills {
    /// The family of tests, in the order of skills.
    pub skills: Vec<ComparedSkill>,
    /// Skills whose limits are below the shortest length in both, and beyond the longest.
    pub floor: usize,
    pub ceiling: usize,
    /// Skills that do not fall with the length in one of them.
    pub no_limit: usize,
    /// Skills that one of them was not asked.
    pub one_only: usize,
}

/// Finds the skills in which two models can be compared.
pub fn compared_skills(one: &[SkillResult], other: &[SkillResult]) -> ComparedSkills {
    let is_of = |results: &[SkillResult], one: &SkillResult| results.iter().any(|result| result.skill == one.skill);
    let count = |results: &[SkillResult], others: &[SkillResult]| {
        results.iter().filter(|result| !is_of(others, result)).count()
    };
    let one_only = count(one, other) + count(other, one);
    let mut found = ComparedSkills { one_only, ..ComparedSkills::default() };
    for mine in one {
        let Some(theirs) = other.iter().find(|theirs| theirs.skill == mine.skill) else { continue };
        let limits = [mine, theirs].map(|result| result.measured.limit(0.5).copied());
        let (Some(p), [Some(first), Some(second)]) = (same_curve(mine, theirs), limits) else {
            let answered = |result: &SkillResult| !result.measured.counts.is_empty();
            found.no_limit += usize::from(answered(mine) && answered(theirs));
            continue;
        };
        let skill = mine.skill;
        match Between::of(&first, &second, &ladder(skill.shortest, skill.longest)) {
            Between::Floor => found.floor += 1,
            Between::Ceiling => found.ceiling += 1,
            Between::Lengths(lengths) => {
                let at = |result: &SkillResult, length: usize| {
                    result.measured.counts.iter().find(|count| count.length == length).map_or(0, |count| count.asked)
                };
                let answered = lengths.iter().map(|&length| at(mine, length).max(at(theirs, length))).collect();
                found.skills.push(ComparedSkill { skill, limits: [first, second], p, lengths, answered });
            }
        }
    }
    found
}

impl ComparedSkills {
    /// So many questions for both models, at the lengths that tell them apart, of the skills that differ most and are open. `unanswered` is the number of questions of
    /// a task and length that a profile asked without getting an answer, and `options` are those of the two profiles.
    pub fn questions(
        &self,
        questions: usize,
        unanswered: impl Fn(&str, usize) -> usize,
        options: [&ProfileOptions; 2],
    ) -> Vec<SharedQuestions> {
        let p_values: Vec<f64> = self.skills.iter().map(|skill| skill.p).collect();
        let mut shared = Vec::new();
        for (compared, count) in self.skills.iter().zip(share_out(questions, &p_values)) {
            let task = &compared.skill.task;
            let screened = options.map(|options| screened_of_skill(options, compared.skill)).into_iter().max();
            let screened = screened.unwrap_or_default();
            for (length, count) in spread_over(count, &compared.lengths) {
                let index = compared.lengths.iter().position(|&one| one == length);
                let first = unanswered(task, length) + index.map_or(0, |index| compared.answered[index]);
                shared.push(SharedQuestions { task: task.clone(), length, first, count, screened, form: None });
            }
        }
        shared
    }
}

impl SharedQuestions {
    /// The items: each question once, and none that has a number before the first or was asked in the screening. Fewer where the length has no further ones.
    pub(super) fn items(&self, sources: &[(PromptForm, Sources)]) -> Vec<Item> {
        let form: Option<PromptForm> = self.form.as_ref().and_then(|form| form.parse().ok());
        let of_form = sources.iter().find(|(name, _)| form.is_none_or(|form| *name == form));
        let (Some(skill), Some((_, sources))) = (self.skill(), of_form) else { return Vec::new() };
        let mut seen = screened_questions(sources, skill, self.screened);
        let mut items = Vec::with_capacity(self.count);
        // Short numbers are few, and some suites ask them again.
        for index in 0..self.first + 4 * (self.count + self.screened) {
            let Some(item) = sources.item(skill, self.length, index) else { break };
            if seen.insert(item.segments.question.clone()) && index >= self.first {
                items.push(item);
                if items.len() == self.count {
                    break;
                }
            }
        }
        items
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::super::results;
    use super::super::screening::SCREENED;
    use super::*;

    /// Results of a model that is right up to a length, with an answer at each of 1 to 12.
    fn measured(limits: &[(&str, usize)]) -> Vec<SkillResult> {
        let skills = limits.iter().flat_map(|(name, _)| Skill::named(name).unwrap()).collect();
        let options = ProfileOptions { skills, ..ProfileOptions::default() };
        let answers = options.skills.iter().zip(limits).flat_map(|(skill, &(_, limit))| {
            (1..=12).map(move |length| (skill.task.as_str(), length, length <= limit))
        });
        results(&options, answers)
    }

    #[test]
    fn skills_at_the_floor_of_both_are_left_out_and_the_others_asked_between_the_limits() {
        let one = measured(&[("add_Integer", 6), ("sub_Integer", 0), ("max_Integer", 5), ("copy", 3)]);
        let other = measured(&[("add_Integer", 4), ("sub_Integer", 0), ("max_Integer", 5), ("copy", 3)]);
        let found = compared_skills(&one, &other);
        assert_eq!((found.floor, found.ceiling, found.no_limit), (1, 0, 0));
        let tasks: Vec<&str> = found.skills.iter().map(|skill| skill.skill.task.as_str()).collect();
        assert_eq!(tasks, [one[0].skill.task.as_str(), one[2].skill.task.as_str(), "copy"]);
        let options = ProfileOptions::default();
        let questions = |count, unanswered| found.questions(count, |_, _| unanswered, [&options; 2]);
        let shared = questions(60, 0);
        let count = |task: &str| shared.iter().filter(|of| of.task == task).map(|of| of.count).sum::<usize>();
        assert_eq!(shared.iter().map(|of| of.count).sum::<usize>(), 60);
        assert!(shared.iter().all(|of| of.first <= 1), "{shared:?}");
        assert_eq!(count(tasks[0]), 24);
        let fewer = compared_skills(&one, &one[..1]);
        assert!((fewer.skills.len(), fewer.one_only) == (1, 3) && questions(0, 0).is_empty());
        assert!(questions(60, 3).iter().all(|of| of.first >= 3), "questions without an answer are known, too");
        assert!(shared.iter().all(|of| of.screened == 0), "one form is not screened");
        let forms = ["raw", "raw+3"].map(|form| form.parse().unwrap()).to_vec();
        let screened = ProfileOptions { forms, ..ProfileOptions::default() };
        let shared = found.questions(60, |_, _| 0, [&options, &screened]);
        let of = |task: &str| shared.iter().find(|of| of.task == task).unwrap().screened;
        assert_eq!((of(tasks[0]), of(tasks[1])), (SCREENED / 3, 1), "sums are screened more than others");
    }

    #[test]
    fn shared_questions_are_new_and_each_is_asked_once() {
        let by_form = Sources::by_form(&ProfileOptions::default()).unwrap();
        let sources = &by_form[0].1;
        for (task, length) in [("add_Integer", 3), ("copy", 2), ("in_text", 5), ("max_Float", 4)] {
            let skill = Skill::named(task).unwrap()[0];
            let of =
                SharedQuestions { task: skill.task.clone(), length, first: 10, count: 24, screened: 0, form: None };
            let items = of.items(&by_form);
            assert_eq!(items.len(), 24, "{task}");
            let mut texts: HashSet<String> = (0..10)
                .filter_map(|index| sources.item(skill, length, index))
                .map(|item| item.segments.question)
                .collect();
            assert!(items.iter().all(|item| texts.insert(item.segments.question.clone())), "{task}");
        }
        // There are ten numbers of one digit at most.
        let few = SharedQuestions { task: "copy".into(), length: 1, first: 4, count: 24, screened: 0, form: None };
        let items = few.items(&by_form);
        assert!(!items.is_empty() && items.len() <= 6, "{}", items.len());
        // What the screening asked is known to both.
        let sums = Skill::named("add_Integer").unwrap()[0];
        let of = SharedQuestions { task: sums.task.clone(), length: 1, first: 0, count: 60, screened: 24, form: None };
        let texts = |of: &SharedQuestions| -> HashSet<String> {
            of.items(&by_form).into_iter().map(|item| item.segments.question).collect()
        };
        let known = screened_questions(sources, sums, 24);
        assert!(texts(&of).is_disjoint(&known) && !texts(&of).is_empty());
        assert!(!texts(&SharedQuestions { screened: 0, ..of }).is_disjoint(&known));
        let long = SharedQuestions { length: 101, ..few.clone() };
        assert!(long.skill().is_none() && SharedQuestions { task: "adding".into(), ..few }.items(&by_form).is_empty());
    }
}
