//! One scorer for runs whose own scorers differ.
use super::Comparison;
use earnest_results::scores::Scores;
use earnest_results::{ComparisonNotice, Origin};
use earnest_tasks::suite::FINAL;

/// Scorer of runs whose own ones differ: `final` if all runs have it, else the first of their own ones that all have. None where
/// their own ones are the same or unknown, or no scorer is common to all.
pub(crate) fn common_scorer<'a>(own: &[&'a [String]], all_have: impl Fn(&str) -> bool) -> Option<&'a str> {
    let (first, rest) = own.split_first()?;
    if rest.iter().all(|other| other == first) || own.iter().any(|own| own.is_empty()) {
        return None;
    }
    let own = own.iter().flat_map(|own| own.iter()).map(String::as_str);
    [FINAL].into_iter().chain(own).find(|scorer| all_have(scorer))
}

/// Gives all runs the numbers of one scorer where their own scorers differ and they have one in common. Logs of other tools keep their own:
/// two tools have two names for one thing.
pub(crate) fn read_alike(scores: &mut [Scores]) {
    if scores.iter().any(|scores| scores.origin == Origin::Log) {
        return;
    }
    let own: Vec<&[String]> = scores.iter().map(|scores| scores.chosen.as_slice()).collect();
    let scorer = common_scorer(&own, |scorer| scores.iter().all(|scores| scores.has_all_of(scorer)));
    if let Some(scorer) = scorer.map(str::to_owned) {
        scores.iter_mut().for_each(|scores| scores.read_by(&scorer));
    }
}

impl Comparison {
    /// Scorer of both runs that is not the own one of both.
    pub fn common_scorer(&self) -> Option<&str> {
        self.own_scorers.as_ref()?;
        self.chosen[0].first().map(String::as_str)
    }

    /// Notice of runs whose own scorers differ and that are compared by one.
    pub fn read_alike(&self) -> Option<ComparisonNotice> {
        let scorers = self.own_scorers.as_ref()?.each_ref().map(|own| own.join(" and "));
        let by = self.common_scorer()?.to_owned();
        let (baseline, run) = (self.baseline.clone(), self.run.clone());
        Some(ComparisonNotice::ReadAlike { baseline, run, scorers, by })
    }
}
