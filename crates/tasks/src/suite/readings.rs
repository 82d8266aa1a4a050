//! A run's scorers side by side: how many answers each finds right, and where it differs from the deciding one.
use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::Score;
use super::final_answer::{EXAMPLE_ECHOED, ONLY_IN_THINKING, RIVALS};

/// All scorers of a run on its scored samples.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SideBySide {
    /// The scorers that decide: one, or one a kind of prompt.
    #[serde(rename = "primary")]
    pub chosen: Vec<String>,
    /// Scored samples.
    pub samples: usize,
    /// The deciding ones first, then by name.
    #[serde(rename = "rules")]
    pub scorers: Vec<ScorerCounts>,
    /// Completions that repeat the prompt's own example, that have numbers inside their thinking alone, that state several
    /// answers.
    pub example_echoed: usize,
    pub only_in_thinking: usize,
    pub rivals: usize,
}

/// One scorer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScorerCounts {
    pub name: String,
    /// Samples that it scored, and those that it found right.
    pub samples: usize,
    pub right: usize,
    /// Samples that it alone found right, and that the deciding scorer alone did.
    pub alone: usize,
    pub missed: usize,
}

impl ScorerCounts {
    /// Samples on which it differs from the deciding scorer.
    pub fn differs(&self) -> usize {
        self.alone + self.missed
    }
}

/// Counts of scored samples, one by one.
#[derive(Debug, Clone, Default)]
pub struct ScorerTally {
    scorers: BTreeMap<String, ScorerCounts>,
    samples: usize,
    example_echoed: usize,
    only_in_thinking: usize,
    rivals: usize,
}

impl ScorerTally {
    /// Adds a scored sample.
    pub fn add(&mut self, score: &Score) {
        self.samples += 1;
        // Versions without the metric have it in no row: nothing is said of them.
        let counted = |name: &str| usize::from(score.metrics.get(name).is_some_and(|value| value > 0.0));
        self.example_echoed += counted(EXAMPLE_ECHOED);
        self.only_in_thinking += counted(ONLY_IN_THINKING);
        self.rivals += counted(RIVALS);
        for (name, right) in score.scorers.iter() {
            if !self.scorers.contains_key(name) {
                let fresh = ScorerCounts { name: name.to_owned(), samples: 0, right: 0, alone: 0, missed: 0 };
                self.scorers.insert(name.to_owned(), fresh);
            }
            let Some(scorer) = self.scorers.get_mut(name) else { continue };
            scorer.samples += 1;
            scorer.right += usize::from(right);
            scorer.alone += usize::from(right && !score.correct);
            scorer.missed += usize::from(!right && score.correct);
        }
    }

    /// All scorers with these as the ones that decide. None where there is no sample, or no scorer but the deciding one, or where what
    /// decides is none of them.
    pub fn finish(self, chosen: &[&str]) -> Option<SideBySide> {
        let ScorerTally { scorers, samples, example_echoed, only_in_thinking, rivals } = self;
        let mut scorers: Vec<ScorerCounts> = scorers.into_values().collect();
        scorers.sort_by_key(|scorer| !chosen.contains(&scorer.name.as_str()));
        // A fraction decides by its mean, with which rights and wrongs cannot be compared one by one.
        let decided = scorers.iter().any(|scorer| chosen.contains(&scorer.name.as_str()));
        let chosen = chosen.iter().map(|name| (*name).to_owned()).collect();
        (decided && scorers.len() > 1).then_some(SideBySide {
            chosen,
            samples,
            scorers,
            example_echoed,
            only_in_thinking,
            rivals,
        })
    }
}

impl SideBySide {
    /// Counts scored samples, as [`ScorerTally`].
    pub fn of<'a>(chosen: &[&str], scores: impl Iterator<Item = &'a Score>) -> Option<Self> {
        let mut counts = ScorerTally::default();
        scores.for_each(|score| counts.add(score));
        counts.finish(chosen)
    }

    /// True for a scorer that decides.
    pub fn is_chosen(&self, scorer: &ScorerCounts) -> bool {
        self.chosen.contains(&scorer.name)
    }

    /// The names of the scorers that decide, for a sentence.
    pub fn decides(&self) -> String {
        self.chosen.join(" and ")
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
        let scorers = [("final", Some(last)), ("strict", strict)];
        let scorers = scorers.into_iter().filter_map(|(name, right)| Some((name, right?))).collect();
        let metrics = [(EXAMPLE_ECHOED, echoed), (RIVALS, 2.0 * echoed)].into();
        Score { correct: last, scorers, metrics, ..Score::default() }
    }

    #[test]
    fn rules_are_counted_against_the_primary_one() {
        let all = [
            score(true, Some(false), 1.0),
            score(true, Some(true), 0.0),
            score(false, Some(true), 0.0),
            score(false, None, 0.0),
        ];
        let found = SideBySide::of(&["final"], all.iter()).unwrap();
        assert_eq!((found.samples, found.decides().as_str()), (4, "final"));
        let [last, strict] = &found.scorers[..] else { panic!("{found:?}") };
        assert!(found.is_chosen(last) && !found.is_chosen(strict));
        assert_eq!((last.samples, last.right, last.differs()), (4, 2, 0));
        assert_eq!((strict.samples, strict.right, strict.alone, strict.missed), (3, 2, 1, 1));
        let remarks = found.remarks();
        assert_eq!(remarks.len(), 2);
        assert!(remarks[0].starts_with("1 of 4 completions repeats the prompt's own example"), "{remarks:?}");
        assert!(remarks[1].contains("more than one number"), "{remarks:?}");
    }

    #[test]
    fn nothing_to_compare_is_no_table() {
        assert_eq!(SideBySide::of(&["final"], std::iter::empty()), None);
        let alone = [score(true, None, 0.0)];
        assert_eq!(SideBySide::of(&["final"], alone.iter()), None);
        let two = [score(true, Some(true), 0.0)];
        assert!(SideBySide::of(&["strict"], two.iter()).unwrap().remarks().is_empty());
    }
}
