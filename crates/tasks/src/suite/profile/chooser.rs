//! Rounds of questions over all skills.
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use earnest_stats::psychometric::{Curves, Procedure, ladder};
use rayon::prelude::*;

use super::notation_rounds::NotationRounds;
use super::question::Sources;
use super::screening::Screening;
use super::thinking::CapRounds;
use super::{NotationQuestion, ProfileOptions, PromptForm, SharedQuestions, Skill, ThinkingBudgets, ThinkingTask};
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
    /// Index of the form in which it is asked.
    form: usize,
    curves: Arc<Curves>,
    procedure: Procedure,
    /// Questions asked at each length.
    asked: BTreeMap<usize, usize>,
    /// Lengths that have no further questions.
    exhausted: BTreeSet<usize>,
}

/// Chooser of the profile's questions: the form of the prompts first, then a batch of every unfinished skill in every round, then what needs limits.
pub(super) struct Rounds<'a> {
    options: &'a ProfileOptions,
    sources: &'a [(PromptForm, Sources)],
    /// The screening of the forms, until it is over.
    screening: Option<Screening>,
    /// Index of the best form.
    form: usize,
    skills: Vec<Measurement>,
    /// Of the last round's items: the skill's index and the length.
    last: Vec<(usize, usize)>,
    /// Numbers in several notations, once they are asked.
    notations: Option<NotationRounds>,
    /// Caps on the tokens of thinking, once they are asked.
    cap_rounds: Option<CapRounds>,
    /// The rounds beyond the limits have begun.
    beyond: bool,
    /// The questions of a comparison, which are one round, are still to be asked.
    shared: bool,
}

impl<'a> Rounds<'a> {
    /// Before the first round.
    pub fn new(options: &'a ProfileOptions, sources: &'a [(PromptForm, Sources)]) -> Self {
        let mut grids = Grids::default();
        let measurement = |&skill: &&'static Skill| {
            let curves = grids.of(skill);
            let procedure = Procedure::new(&curves, options.budget, options.width);
            Measurement { skill, form: 0, curves, procedure, asked: BTreeMap::new(), exhausted: BTreeSet::new() }
        };
        let shared = !options.shared.is_empty();
        let adaptive = if shared { &[] } else { &options.skills[..] };
        let skills = adaptive.iter().map(measurement).collect();
        let screening = (!shared && options.forms.len() > 1).then(|| Screening::new(&options.forms));
        let (last, notations, cap_rounds) = (Vec::new(), None, None);
        Rounds { options, sources, screening, form: 0, skills, last, notations, cap_rounds, beyond: false, shared }
    }

    /// Limit of the first of these skills that is measured, of this level; none if none is, and 0 of one that does not fall.
    fn limit(&self, tasks: &[&str], level: f64) -> Option<f64> {
        let of = |task: &&str| self.skills.iter().find(|skill| skill.skill.task == *task);
        let measured = tasks.iter().find_map(of)?.procedure.measured();
        measured.limit(level).map(|limit| if measured.falls { limit.estimate } else { 0.0 })
    }

    /// Rounds once the limits are known: thinking under its caps, then numbers in several notations.
    fn beyond_limits(&mut self, answers: &[Option<RoundAnswer>]) -> Vec<Item> {
        let ProfileOptions { seed, .. } = *self.options;
        let mode = self.sources[self.form].0.mode;
        if !std::mem::replace(&mut self.beyond, true) {
            let length = |kind: ThinkingTask| kind.length(self.limit(kind.skills(), 0.5).unwrap_or(0.0));
            let lengths = ThinkingTask::ALL.map(length).to_vec();
            let budgets = self.options.thinking.clone();
            self.cap_rounds = budgets.map(|budgets| CapRounds::new(budgets, seed, mode));
            let notations = self.options.notations.then(|| {
                let asked = self.notation_question();
                NotationRounds::new(seed, self.form_of(asked.0.skills()), asked)
            });
            self.notations = notations;
            let first = |cap_rounds: &mut CapRounds| cap_rounds.first(lengths);
            let mut items = self.cap_rounds.as_mut().map_or_else(Vec::new, first);
            items.extend(self.notations.as_mut().map_or_else(Vec::new, |rounds| rounds.next(&[])));
            return items;
        }
        // The answers to notations are the last ones of a round.
        let of_notations = self.notations.as_ref().map_or(0, NotationRounds::last);
        let (of_caps, of_notations) = answers.split_at(answers.len().saturating_sub(of_notations));
        let mut items = self.cap_rounds.as_mut().map_or_else(Vec::new, |rounds| rounds.next(of_caps));
        items.extend(self.notations.as_mut().map_or_else(Vec::new, |rounds| rounds.next(of_notations)));
        items
    }

    /// Question of the notations and its number of digits: sums of as many digits as are mostly right, of NUPA, whose wording they have, else of Arithmetic-Bench; copies
    /// for a model that does not add.
    fn notation_question(&self) -> (NotationQuestion, usize) {
        let [sum, copy, brackets] = NotationQuestion::ALL.map(|asked| self.limit(asked.skills(), 0.9));
        NotationQuestion::choose(sum, copy, brackets)
    }

    /// Form in which the first of these skills that is measured is asked; the best form if none is.
    fn form_of(&self, tasks: &[&str]) -> PromptForm {
        let of = |task: &&str| self.skills.iter().find(|skill| skill.skill.task == *task);
        self.sources[tasks.iter().find_map(of).map_or(self.form, |skill| skill.form)].0
    }
}

impl Measurement {
    /// The next batch: items with their lengths.
    fn next(&mut self, sources: &[(PromptForm, Sources)]) -> Vec<(usize, Item)> {
        let Some((_, sources)) = sources.get(self.form) else { return Vec::new() };
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
        if std::mem::take(&mut self.shared) {
            let of = |of: &SharedQuestions| of.items(self.sources);
            let mut items: Vec<Item> = self.options.shared.par_iter().flat_map_iter(of).collect();
            items.sort_by_key(|item| Reverse(item.budget.answer));
            return items;
        }
        let mut answers = answers;
        if let Some(screening) = &mut self.screening {
            let items = screening.next(answers, &self.options.skills, self.sources);
            if !items.is_empty() {
                return items;
            }
            self.form = screening.best();
            for skill in &mut self.skills {
                skill.form = screening.of_skill(&skill.skill.task);
            }
            self.screening = None;
            answers = &[];
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
        let ProfileOptions { budget, notations, thinking, forms, shared, .. } = self.options;
        let notations = if *notations { NotationRounds::most() } else { 0 };
        let thinking = thinking.as_ref().map_or(0, ThinkingBudgets::most);
        let shared: usize = shared.iter().map(|of| of.count).sum();
        Screening::most(forms.len(), self.skills.len()) + budget * self.skills.len() + notations + thinking + shared
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::super::options::select;
    use super::super::{FIRST_PAIRS, Notation, PAIRS, SCREENED, THINKING_PAIRS, Way};
    use super::*;

    /// Ids of all rounds where answers are right up to a length.
    fn ask(options: &ProfileOptions, longest: u64) -> Vec<Vec<String>> {
        let sources = Sources::by_form(options).unwrap();
        let mut rounds = Rounds::new(options, &sources);
        let (mut scored, mut asked) = (Vec::new(), Vec::new());
        loop {
            let items = rounds.next_round(&scored);
            if items.is_empty() {
                return asked;
            }
            // In the screening, the last form alone is right.
            let right = |item: &Item| match PromptForm::of_task(&item.task) {
                Some(form) => options.forms.last() == Some(&form),
                None => item.covariates["length"].as_u64().unwrap() <= longest,
            };
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
    fn the_best_form_of_the_screening_asks_the_rest() {
        let (skills, notations) = select(&["add_Integer", "copy"]).unwrap();
        let forms: Vec<PromptForm> = ["chat", "raw", "raw+3"].map(|form| form.parse().unwrap()).to_vec();
        let options = ProfileOptions { skills, notations, budget: 12, forms, ..ProfileOptions::default() };
        let asked = ask(&options, 7);
        assert_eq!((asked[0].len(), asked[1].len()), (3 * SCREENED, 12));
        let sources = Sources::by_form(&options).unwrap();
        let mut rounds = Rounds::new(&options, &sources);
        let screened = rounds.next_round(&[]);
        let right = |item: &Item| Some(RoundAnswer { correct: item.task.ends_with("raw_3"), cut: false });
        let answers: Vec<_> = screened.iter().map(right).collect();
        let measured = rounds.next_round(&answers);
        assert!(measured.iter().all(|item| item.segments.shots.len() == 3), "{measured:?}");
        assert!(asked.iter().map(Vec::len).sum::<usize>() <= rounds.most());
        assert_eq!(ask(&options, 7), asked, "the same answers ask the same");
    }

    #[test]
    fn notations_are_asked_where_plain_sums_are_right() {
        let (skills, notations) = select(&["add", "notations"]).unwrap();
        let asked = ask(&ProfileOptions { skills, notations, budget: 24, ..ProfileOptions::default() }, 7);
        let last = asked.last().unwrap();
        // Six digits are padded already.
        // Nothing differs, so that more pairs follow the first look.
        let first = &asked[asked.len() - 2];
        assert_eq!((first.len(), first[1].as_str()), (FIRST_PAIRS * 8, "profile/notations/separators/6/0"));
        assert_eq!(last.len(), (PAIRS - FIRST_PAIRS) * 8);
        assert!(asked[..asked.len() - 2].iter().flatten().all(|id| !id.contains("notations")));
        let (skills, notations) = select(&["notations"]).unwrap();
        let alone = ask(&ProfileOptions { skills, notations, ..ProfileOptions::default() }, 7);
        assert_eq!((alone.len(), alone[0][0].as_str()), (2, "profile/notations/plain/4/0"));
        let (skills, notations) = select(&["add", "copy", "notations"]).unwrap();
        let copied = ask(&ProfileOptions { skills, notations, budget: 24, ..ProfileOptions::default() }, 0);
        assert_eq!(copied.last().unwrap()[1], "profile/notations/separators/copy/4/0");
    }

    #[test]
    fn the_questions_of_a_comparison_are_one_round() {
        let of = |task: &str, length, first, count| SharedQuestions {
            task: task.into(),
            length,
            first,
            count,
            screened: 0,
            form: None,
        };
        let shared = vec![of("copy", 7, 2, 5), of("in_text", 3, 0, 4)];
        let options = ProfileOptions::default().with_shared(9, shared);
        let asked = ask(&options, 5);
        assert_eq!((asked.len(), asked[0].len()), (1, 9), "{asked:?}");
        assert!(asked[0].contains(&"profile/in_text/3/0".to_owned()), "{asked:?}");
        let sources = Sources::by_form(&options).unwrap();
        assert_eq!(Rounds::new(&options, &sources).most(), 9);
    }

    #[test]
    fn caps_of_thinking_follow_the_limits() {
        let (skills, notations) = select(&["mul", "notations"]).unwrap();
        let thinking = Some(ThinkingBudgets { caps: vec![64, 256, 1_024], way: Way::Steps });
        let options = ProfileOptions { skills, notations, thinking, budget: 12, ..ProfileOptions::default() };
        let asked = ask(&options, 7);
        let [.., first, second, third] = &asked[..] else { panic!("{}", asked.len()) };
        assert_eq!(first.len(), 4 * THINKING_PAIRS + FIRST_PAIRS * Notation::ALL.len());
        assert!(first[0].starts_with("profile/thinking/products/") && first[0].ends_with("/64"), "{}", first[0]);
        // Everything is cut, and no notation differs, so that more pairs are asked.
        let more = (PAIRS - FIRST_PAIRS) * Notation::ALL.len();
        assert_eq!((second.len(), third.len()), (2 * THINKING_PAIRS + more, 2 * THINKING_PAIRS));
        assert!(third.iter().all(|id| id.ends_with("/1k")));
        let sources = Sources::by_form(&options).unwrap();
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
