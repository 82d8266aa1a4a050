//! Rounds of questions over all skills.
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use earnest_stats::psychometric::{Curves, Procedure, ladder};
use rayon::prelude::*;

use super::question::Sources;
use super::thinking::CapRounds;
use super::{Notation, NotationQuestion, PAIRS, ProfileOptions, SharedQuestions, Skill, ThinkingTask, notation};
use crate::suite::nupa::Adapter;
use crate::suite::{Chooser, Item, RoundAnswer};

/// Grids of curves, shared by the skills with the same lengths and chance.
#[derive(Default)]
pub(super) struct Grids(BTreeMap<(usize, usize, u64), Arc<Curves>>);

impl Grids {
    /// The grid of a skill.
    pub fn of(&mut self, skill: &Skill) -> Arc<Curves> {
        let key = (skill.shortest, skill.longest, skill.chance.to_bits());
        let new = || Curves::new(&ladder(skill.shortest, skill.longest), skill.chance);
        let curves =
            self.0.entry(key).or_insert_with(|| new().expect("the tests check every skill's lengths and chance"));
        Arc::clone(curves)
    }
}

/// The measurement of a skill.
struct Measurement {
    skill: &'static Skill,
    curves: Arc<Curves>,
    procedure: Procedure,
    /// Questions asked at each length.
    asked: BTreeMap<usize, usize>,
    /// Lengths that have no further questions.
    exhausted: BTreeSet<usize>,
}

/// Chooser of the profile's questions: every unfinished skill asks a batch in every round.
pub(super) struct Rounds<'a> {
    sources: &'a Sources,
    budget: usize,
    skills: Vec<Measurement>,
    /// Of the last round's items: the skill's index and the length.
    last: Vec<(usize, usize)>,
    /// Numbers in several notations are still to be asked.
    notations: bool,
    /// Caps on the tokens of thinking, and whether their rounds have begun.
    cap_rounds: Option<CapRounds>,
    caps_begun: bool,
    /// The questions of a comparison, which are one round.
    shared: Vec<SharedQuestions>,
    seed: u64,
    adapter: Adapter,
}

impl<'a> Rounds<'a> {
    /// Before the first round.
    pub fn new(options: &ProfileOptions, sources: &'a Sources) -> Self {
        let mut grids = Grids::default();
        let measurement = |&skill: &&'static Skill| {
            let curves = grids.of(skill);
            let procedure = Procedure::new(&curves, options.budget, options.width);
            Measurement { skill, curves, procedure, asked: BTreeMap::new(), exhausted: BTreeSet::new() }
        };
        let shared = options.shared.clone();
        let adaptive = if shared.is_empty() { &options.skills[..] } else { &[] };
        let skills = adaptive.iter().map(measurement).collect();
        let ProfileOptions { budget, notations, seed, adapter, .. } = *options;
        let cap_rounds = options.thinking.clone().map(|budgets| CapRounds::new(budgets, seed, adapter));
        let (last, caps_begun) = (Vec::new(), false);
        Rounds { sources, budget, skills, last, notations, cap_rounds, caps_begun, shared, seed, adapter }
    }

    /// Limit of the first of these skills that is measured, of this level; none if none is, and 0 of one that does not fall.
    fn limit(&self, tasks: &[&str], level: f64) -> Option<f64> {
        let of = |task: &&str| self.skills.iter().find(|skill| skill.skill.task == *task);
        let measured = tasks.iter().find_map(of)?.procedure.measured();
        measured.limit(level).map(|limit| if measured.falls { limit.estimate } else { 0.0 })
    }

    /// Questions once the limits are known: thinking under its caps, and numbers in several notations in the first of these rounds.
    fn beyond_limits(&mut self, answers: &[Option<RoundAnswer>]) -> Vec<Item> {
        let lengths = ThinkingTask::ALL.map(|kind| kind.length(self.limit(kind.skills(), 0.5).unwrap_or(0.0))).to_vec();
        let mut items = match &mut self.cap_rounds {
            Some(cap_rounds) if std::mem::replace(&mut self.caps_begun, true) => cap_rounds.next(answers),
            Some(cap_rounds) => cap_rounds.first(lengths),
            None => Vec::new(),
        };
        items.extend(self.notations());
        items
    }

    /// The same numbers in several notations: sums of as many digits as are mostly right, of NUPA, whose wording they have, else of Arithmetic-Bench; copies
    /// for a model that does not add.
    fn notations(&mut self) -> Vec<Item> {
        if !std::mem::take(&mut self.notations) {
            return Vec::new();
        }
        let limit = |tasks: &[&str]| self.limit(tasks, 0.9);
        let asked = NotationQuestion::choose(limit(&[notation::SUM, "add"]), limit(&["copy"]), limit(&["box"]));
        let pairs = (0..PAIRS).flat_map(|index| Notation::ALL.map(|notation| (notation, index)));
        pairs.filter_map(|(notation, index)| notation::item(self.seed, self.adapter, notation, asked, index)).collect()
    }
}

impl Measurement {
    /// The next batch: items with their lengths.
    fn next(&mut self, sources: &Sources) -> Vec<(usize, Item)> {
        self.procedure.next().into_iter().filter_map(|length| self.item(sources, length)).collect()
    }

    /// An item of this length, or of the nearest longer, then shorter one that has another question.
    fn item(&mut self, sources: &Sources, length: usize) -> Option<(usize, Item)> {
        let lengths = self.curves.lengths();
        let longer = lengths.iter().filter(|other| **other >= length);
        let shorter = lengths.iter().rev().filter(|other| **other < length);
        for &length in longer.chain(shorter) {
            if self.exhausted.contains(&length) {
                continue;
            }
            let index = self.asked.get(&length).copied().unwrap_or(0);
            match sources.item(self.skill, length, index) {
                Some(item) => {
                    self.asked.insert(length, index + 1);
                    return Some((length, item));
                }
                None => drop(self.exhausted.insert(length)),
            }
        }
        None
    }
}

impl Chooser for Rounds<'_> {
    fn next_round(&mut self, answers: &[Option<RoundAnswer>]) -> Vec<Item> {
        if !self.shared.is_empty() {
            let shared = std::mem::take(&mut self.shared);
            let mut items: Vec<Item> = shared.par_iter().flat_map_iter(|of| of.items(self.sources)).collect();
            items.sort_by_key(|item| Reverse(item.budget.answer));
            return items;
        }
        for (&(skill, length), answer) in self.last.iter().zip(answers) {
            self.skills[skill].procedure.add(length, answer.map(|answer| answer.correct));
        }
        let sources = self.sources;
        let batches: Vec<Vec<(usize, Item)>> = self.skills.par_iter_mut().map(|skill| skill.next(sources)).collect();
        let mut round: Vec<(usize, usize, Item)> = Vec::new();
        for (skill, batch) in batches.into_iter().enumerate() {
            round.extend(batch.into_iter().map(|(length, item)| (skill, length, item)));
        }
        if round.is_empty() {
            self.last.clear();
            return self.beyond_limits(answers);
        }
        // The longest answers first: a round ends with its last answer.
        round.sort_by_key(|(_, _, item)| Reverse(item.budget.answer));
        self.last = round.iter().map(|(skill, length, _)| (*skill, *length)).collect();
        round.into_iter().map(|(_, _, item)| item).collect()
    }

    fn most(&self) -> usize {
        let notations = if self.notations { PAIRS * Notation::ALL.len() } else { 0 };
        let shared: usize = self.shared.iter().map(|of| of.count).sum();
        self.budget * self.skills.len() + shared + notations + self.cap_rounds.as_ref().map_or(0, CapRounds::most)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::super::options::select;
    use super::super::{THINKING_PAIRS, ThinkingBudgets, Way};
    use super::*;

    /// Ids of all rounds where answers are right up to a length.
    fn ask(options: &ProfileOptions, longest: u64) -> Vec<Vec<String>> {
        let sources = Sources::new(options).unwrap();
        let mut rounds = Rounds::new(options, &sources);
        let (mut scored, mut asked) = (Vec::new(), Vec::new());
        loop {
            let items = rounds.next_round(&scored);
            if items.is_empty() {
                return asked;
            }
            let right = |item: &Item| item.covariates["length"].as_u64().unwrap() <= longest;
            scored = items.iter().map(|item| Some(RoundAnswer { correct: right(item), cut: true })).collect();
            asked.push(items.into_iter().map(|item| item.id).collect());
        }
    }

    #[test]
    fn rounds_have_all_skills_and_no_question_twice() {
        let (skills, notations) = select(&["add_Integer", "length_Integer", "copy", "in_text"]).unwrap();
        let options = ProfileOptions { skills, notations, budget: 24, ..ProfileOptions::default() };
        let asked = ask(&options, 7);
        assert_eq!(asked[0].len(), 24);
        let all: Vec<&String> = asked.iter().flatten().collect();
        assert_eq!(all.iter().collect::<HashSet<_>>().len(), all.len());
        assert!(all.len() <= 96 && asked.len() <= 4, "{}", all.len());
        assert_eq!(ask(&options, 7), asked, "the same answers ask the same");
        assert_ne!(ask(&options, 2), asked);
        let other = ask(&ProfileOptions { seed: 5, ..options }, 7);
        assert_eq!(other[0].len(), 24);
    }

    #[test]
    fn notations_are_asked_where_plain_sums_are_right() {
        let (skills, notations) = select(&["add", "notations"]).unwrap();
        let asked = ask(&ProfileOptions { skills, notations, budget: 24, ..ProfileOptions::default() }, 7);
        let last = asked.last().unwrap();
        // Six digits are padded already.
        assert_eq!((last.len(), last[1].as_str()), (PAIRS * 8, "profile/notations/separators/6/0"));
        assert!(asked[..asked.len() - 1].iter().flatten().all(|id| !id.contains("notations")));
        let (skills, notations) = select(&["notations"]).unwrap();
        let alone = ask(&ProfileOptions { skills, notations, ..ProfileOptions::default() }, 7);
        assert_eq!((alone.len(), alone[0][0].as_str()), (1, "profile/notations/plain/4/0"));
        let (skills, notations) = select(&["add", "copy", "notations"]).unwrap();
        let copied = ask(&ProfileOptions { skills, notations, budget: 24, ..ProfileOptions::default() }, 0);
        assert_eq!(copied.last().unwrap()[1], "profile/notations/separators/copy/4/0");
    }

    #[test]
    fn the_questions_of_a_comparison_are_one_round() {
        let of = |task: &str, length, first, count| SharedQuestions { task: task.into(), length, first, count };
        let shared = vec![of("copy", 7, 2, 5), of("in_text", 3, 0, 4)];
        let options = ProfileOptions::default().with_shared(9, shared);
        let asked = ask(&options, 5);
        assert_eq!((asked.len(), asked[0].len()), (1, 9), "{asked:?}");
        assert!(asked[0].contains(&"profile/in_text/3/0".to_owned()), "{asked:?}");
        let sources = Sources::new(&options).unwrap();
        assert_eq!(Rounds::new(&options, &sources).most(), 9);
    }

    #[test]
    fn caps_of_thinking_follow_the_limits() {
        let (skills, notations) = select(&["mul", "notations"]).unwrap();
        let thinking = Some(ThinkingBudgets { caps: vec![64, 256, 1_024], way: Way::Steps });
        let options = ProfileOptions { skills, notations, thinking, budget: 12, ..ProfileOptions::default() };
        let asked = ask(&options, 7);
        let [.., first, second, third] = &asked[..] else { panic!("{}", asked.len()) };
        assert_eq!(first.len(), 4 * THINKING_PAIRS + PAIRS * Notation::ALL.len());
        assert!(first[0].starts_with("profile/thinking/products/") && first[0].ends_with("/64"), "{}", first[0]);
        // Everything is cut.
        assert_eq!((second.len(), third.len()), (2 * THINKING_PAIRS, 2 * THINKING_PAIRS));
        assert!(third.iter().all(|id| id.ends_with("/1k")));
        let sources = Sources::new(&options).unwrap();
        let most = Rounds::new(&options, &sources).most();
        assert!(asked.iter().map(Vec::len).sum::<usize>() <= most);
        assert_eq!(ask(&options, 7), asked);
        let (skills, notations) = (Vec::new(), false);
        let alone = ask(&ProfileOptions { skills, notations, ..options }, 7);
        assert_eq!((alone.len(), alone[0][0].as_str()), (3, "profile/thinking/products/2/0/64"));
    }

    #[test]
    fn lengths_without_further_questions_give_way_to_longer_ones() {
        // Nine numbers of one digit, about half of which are for testing.
        let (skills, notations) = select(&["length_Integer"]).unwrap();
        let options = ProfileOptions { skills, notations, budget: 48, ..ProfileOptions::default() };
        let asked = ask(&options, 0);
        let all: Vec<&String> = asked.iter().flatten().collect();
        assert_eq!(all.iter().collect::<HashSet<_>>().len(), all.len(), "{all:?}");
    }
}
