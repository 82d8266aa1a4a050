//! Rounds of the numbers in several notations: a first look, then more pairs where it decided nothing.
use std::collections::BTreeMap;

use earnest_stats::mcnemar::{PairedCounts, early_look, mcnemar};

use super::{Notation, NotationQuestion, PromptForm, notation};
use crate::suite::{Item, RoundAnswer};

/// Pairs of the first look: enough for a notation that a model cannot read at all.
pub const FIRST_PAIRS: usize = 32;

/// Pairs at most: a loss from 90 to 70 % holds among eight notations with 80 % power (`psychometric_coverage notations`).
pub const PAIRS: usize = 112;

/// Level that the first look spends on each notation.
const FIRST_LEVEL: f64 = 0.001 / 8.0;

/// Share of the first look that must be right in plain digits for more pairs to be worth it.
const WORTH: f64 = 0.5;

/// p value of a notation against plain digits: that of the first look where it decided, else that of all pairs with what the first look spent.
/// `pairs` are answers in plain digits and in the notation, by the index of the question.
pub fn notation_p(pairs: &BTreeMap<usize, (bool, bool)>) -> f64 {
    let counts = |until: usize| PairedCounts::of(pairs.range(..until).map(|(_, pair)| *pair));
    early_look(&counts(FIRST_PAIRS), &counts(usize::MAX), FIRST_LEVEL)
}

/// The rounds.
pub(super) struct NotationRounds {
    seed: u64,
    form: PromptForm,
    asked: (NotationQuestion, usize),
    /// Of the last round's items: notation and index.
    last: Vec<(Notation, usize)>,
    /// Answers to the first round.
    right: BTreeMap<(Notation, usize), bool>,
    rounds: usize,
}

impl NotationRounds {
    /// Before the first round.
    pub fn new(seed: u64, form: PromptForm, asked: (NotationQuestion, usize)) -> Self {
        NotationRounds { seed, form, asked, last: Vec::new(), right: BTreeMap::new(), rounds: 0 }
    }

    /// Items at most.
    pub fn most() -> usize {
        PAIRS * Notation::ALL.len()
    }

    /// Items of the last round, whose answers are the first ones that [`NotationRounds::next`] takes.
    pub fn last(&self) -> usize {
        self.last.len()
    }

    /// The next round after the answers to the last one; empty after the second.
    pub fn next(&mut self, answers: &[Option<RoundAnswer>]) -> Vec<Item> {
        let answered = self.last.iter().zip(answers);
        self.right.extend(answered.filter_map(|(question, answer)| Some((*question, answer.as_ref()?.correct))));
        self.rounds += 1;
        let (notations, indices) = match self.rounds {
            1 => (Notation::ALL.to_vec(), 0..FIRST_PAIRS),
            2 => (self.undecided(), FIRST_PAIRS..PAIRS),
            _ => (Vec::new(), 0..0),
        };
        let questions = indices.flat_map(|index| notations.iter().map(move |&notation| (notation, index)));
        let (seed, form, asked) = (self.seed, self.form, self.asked);
        let item =
            |question: (Notation, usize)| Some((question, notation::item(seed, form, question.0, asked, question.1)?));
        let (last, items) = questions.filter_map(item).unzip();
        self.last = last;
        items
    }

    /// Plain digits and the notations that the first look left open; nothing where too little is right in plain digits.
    fn undecided(&self) -> Vec<Notation> {
        let plain = |index: usize| self.right.get(&(Notation::Plain, index)).copied();
        let share = (0..FIRST_PAIRS).filter(|&index| plain(index) == Some(true)).count() as f64 / FIRST_PAIRS as f64;
        if share < WORTH {
            return Vec::new();
        }
        let is_open = |notation: &Notation| {
            let pair = |index: usize| Some((plain(index)?, *self.right.get(&(*notation, index))?));
            let counts = PairedCounts::of((0..FIRST_PAIRS).filter_map(pair));
            mcnemar(&counts).exact_p > FIRST_LEVEL
        };
        let asked = |notation: &Notation| notation::item(self.seed, self.form, *notation, self.asked, 0).is_some();
        let others = Notation::ALL.into_iter().filter(|notation| *notation != Notation::Plain);
        let open: Vec<Notation> = others.filter(|notation| asked(notation) && is_open(notation)).collect();
        if open.is_empty() { open } else { std::iter::once(Notation::Plain).chain(open).collect() }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::suite::registry::Mode;

    /// Asks where a share of the pairs is right in plain digits, and all of these but so many per cent in other notations.
    fn ask(plain: usize, lost: impl Fn(&str) -> bool) -> Vec<Vec<Item>> {
        let form = PromptForm { mode: Mode::Raw, shots: 0 };
        let mut rounds = NotationRounds::new(3, form, (NotationQuestion::Sum, 5));
        let (mut answers, mut asked) = (Vec::new(), Vec::new());
        loop {
            let items = rounds.next(&answers);
            assert_eq!(rounds.last(), items.len());
            if items.is_empty() {
                return asked;
            }
            let right = |item: &Item| {
                let pair = item.covariates["pair"].as_u64().unwrap() as usize;
                pair % 10 < plain && !lost(item.covariates["notation"].as_str().unwrap())
            };
            answers = items.iter().map(|item| Some(RoundAnswer { correct: right(item), cut: false })).collect();
            asked.push(items);
        }
    }

    #[test]
    fn more_pairs_are_asked_where_the_first_look_decided_nothing() {
        let asked = ask(9, |notation| notation == "words" || notation == "arabic");
        assert_eq!((asked.len(), asked[0].len()), (2, FIRST_PAIRS * Notation::ALL.len()));
        let again: BTreeSet<&str> = asked[1].iter().map(|item| item.task.as_str()).collect();
        assert!(again.contains("notation_plain") && again.contains("notation_spaced"), "{again:?}");
        assert!(!again.contains("notation_words") && again.len() == 7, "{again:?}");
        assert_eq!(asked[1].len(), (PAIRS - FIRST_PAIRS) * 7);
        let ids: BTreeSet<&str> = asked.iter().flatten().map(|item| item.id.as_str()).collect();
        assert_eq!(ids.len(), asked.iter().map(Vec::len).sum::<usize>());
    }

    #[test]
    fn nothing_more_is_asked_where_all_is_decided_or_nothing_is_right() {
        assert_eq!(ask(9, |notation| notation != "plain").len(), 1);
        assert_eq!(ask(3, |notation| notation != "plain").len(), 1);
    }

    #[test]
    fn p_values_are_those_of_the_look_that_decided() {
        let pairs = |count: usize, lost: usize| -> BTreeMap<usize, (bool, bool)> {
            (0..count).map(|index| (index, (true, index >= lost))).collect()
        };
        assert!((notation_p(&pairs(32, 32)) - 2.0 * 0.5_f64.powi(32)).abs() < 1e-15);
        let p = notation_p(&pairs(112, 10));
        assert!((p - (2.0 * 0.5_f64.powi(10) + FIRST_LEVEL)).abs() < 1e-12, "{p}");
        assert_eq!(notation_p(&pairs(112, 0)), 1.0);
    }
}
