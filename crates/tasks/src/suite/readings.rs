//! A run's rules side by side: how many answers each finds right, and where it differs from the primary one.
use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::Score;
use super::final_answer::{EXAMPLE_ECHOED, ONLY_IN_THINKING, RIVALS};

/// All rules of a run on its scored samples.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Readings {
    /// The rules that decide: one, or one a kind of prompt.
    pub primary: Vec<String>,
    /// Scored samples.
    pub samples: usize,
    /// The primary ones first, then by name.
    pub rules: Vec<RuleReading>,
    /// Completions that repeat the prompt's own example, that have numbers inside their thinking alone, that state several
    /// answers.
    pub example_echoed: usize,
    pub only_in_thinking: usize,
    pub rivals: usize,
}

/// One rule.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RuleReading {
    pub name: String,
    /// Samples that it scored, and those that it found right.
    pub samples: usize,
    pub right: usize,
    /// Samples that it alone found right, and that the primary rule alone did.
    pub alone: usize,
    pub missed: usize,
}

impl RuleReading {
    /// Samples on which it differs from the primary rule.
    pub fn differs(&self) -> usize {
        self.alone + self.missed
    }
}

/// Counts of scored samples, one by one.
#[derive(Debug, Clone, Default)]
pub struct ReadingCounts {
    rules: BTreeMap<String, RuleReading>,
    samples: usize,
    example_echoed: usize,
    only_in_thinking: usize,
    rivals: usize,
}

impl ReadingCounts {
    /// Adds a scored sample.
    pub fn add(&mut self, score: &Score) {
        self.samples += 1;
        // Versions without the metric have it in no row: nothing is said of them.
        let counted = |name: &str| usize::from(score.metrics.get(name).is_some_and(|value| value > 0.0));
        self.example_echoed += counted(EXAMPLE_ECHOED);
        self.only_in_thinking += counted(ONLY_IN_THINKING);
        self.rivals += counted(RIVALS);
        for (name, right) in score.rules.iter() {
            if !self.rules.contains_key(name) {
                let fresh = RuleReading { name: name.to_owned(), samples: 0, right: 0, alone: 0, missed: 0 };
                self.rules.insert(name.to_owned(), fresh);
            }
            let Some(rule) = self.rules.get_mut(name) else { continue };
            rule.samples += 1;
            rule.right += usize::from(right);
            rule.alone += usize::from(right && !score.correct);
            rule.missed += usize::from(!right && score.correct);
        }
    }

    /// All rules with these as the ones that decide. None where there is no sample, or no rule but the primary one, or where what
    /// decides is no rule.
    pub fn finish(self, primary: &[&str]) -> Option<Readings> {
        let ReadingCounts { rules, samples, example_echoed, only_in_thinking, rivals } = self;
        let mut rules: Vec<RuleReading> = rules.into_values().collect();
        rules.sort_by_key(|rule| !primary.contains(&rule.name.as_str()));
        // A fraction decides by its mean, with which rights and wrongs cannot be compared one by one.
        let decided = rules.iter().any(|rule| primary.contains(&rule.name.as_str()));
        let primary = primary.iter().map(|name| (*name).to_owned()).collect();
        (decided && rules.len() > 1).then_some(Readings {
            primary,
            samples,
            rules,
            example_echoed,
            only_in_thinking,
            rivals,
        })
    }
}

impl Readings {
    /// Counts scored samples, as [`ReadingCounts`].
    pub fn of<'a>(primary: &[&str], scores: impl Iterator<Item = &'a Score>) -> Option<Self> {
        let mut counts = ReadingCounts::default();
        scores.for_each(|score| counts.add(score));
        counts.finish(primary)
    }

    /// True for a rule that decides.
    pub fn is_primary(&self, rule: &RuleReading) -> bool {
        self.primary.contains(&rule.name)
    }

    /// The names of the rules that decide, for a sentence.
    pub fn decides(&self) -> String {
        self.primary.join(" and ")
    }

    /// Remarks on the completions for readers of the results, in sentences.
    pub fn remarks(&self) -> Vec<String> {
        let all = self.samples;
        let sentence = |count: usize, one: &str, many: &str| {
            (count > 0).then(|| format!("{count} of {all} completions {}.", if count == 1 { one } else { many }))
        };
        [
            sentence(
                self.example_echoed,
                "repeats the prompt's own example of a number where an answer would stand",
                "repeat the prompt's own example of a number where an answer would stand",
            ),
            sentence(
                self.only_in_thinking,
                "has numbers inside its thinking only and gives no answer after it",
                "have numbers inside their thinking only and give no answer after it",
            ),
            sentence(
                self.rivals,
                "states more than one number as the answer",
                "state more than one number as the answer",
            ),
        ]
        .into_iter()
        .flatten()
        .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn score(last: bool, strict: Option<bool>, echoed: f64) -> Score {
        let rules = [("final", Some(last)), ("strict", strict)];
        let rules = rules.into_iter().filter_map(|(name, right)| Some((name, right?))).collect();
        let metrics = [(EXAMPLE_ECHOED, echoed), (RIVALS, 2.0 * echoed)].into();
        Score { correct: last, rules, metrics, ..Score::default() }
    }

    #[test]
    fn rules_are_counted_against_the_primary_one() {
        let all = [
            score(true, Some(false), 1.0),
            score(true, Some(true), 0.0),
            score(false, Some(true), 0.0),
            score(false, None, 0.0),
        ];
        let found = Readings::of(&["final"], all.iter()).unwrap();
        assert_eq!((found.samples, found.decides().as_str()), (4, "final"));
        let [last, strict] = &found.rules[..] else { panic!("{found:?}") };
        assert!(found.is_primary(last) && !found.is_primary(strict));
        assert_eq!((last.samples, last.right, last.differs()), (4, 2, 0));
        assert_eq!((strict.samples, strict.right, strict.alone, strict.missed), (3, 2, 1, 1));
        let remarks = found.remarks();
        assert_eq!(remarks.len(), 2);
        assert!(remarks[0].starts_with("1 of 4 completions repeats the prompt's own example"), "{remarks:?}");
        assert!(remarks[1].contains("more than one number"), "{remarks:?}");
    }

    #[test]
    fn nothing_to_compare_is_no_table() {
        assert_eq!(Readings::of(&["final"], std::iter::empty()), None);
        let alone = [score(true, None, 0.0)];
        assert_eq!(Readings::of(&["final"], alone.iter()), None);
        let two = [score(true, Some(true), 0.0)];
        assert!(Readings::of(&["strict"], two.iter()).unwrap().remarks().is_empty());
    }
}
