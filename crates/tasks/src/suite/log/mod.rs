//! Logs of other evaluation tools as a suite: stored questions with the scores that the tool gave.
//!
//! The questions and scores of such a run are in the store; nothing here asks a question. What is left of a suite is the names of
//! scorers, the table of means, and completions read again with the answer reader.
mod reading;
mod registration;
mod reported;
mod tally;

pub use reading::{beside, decide};
pub use registration::{LogSuite, Registration, UNKNOWN_VERSION};
pub use reported::Reported;
pub use tally::Tally;

use super::Score;

/// Key in the options of a stored run by which a log is recognised, whatever its task's name.
pub const STORED_KEY: &str = "log";

/// Value of a scorer in a score: right and wrong as 1 and 0; none where it gave no number.
pub fn value(score: &Score, scorer: &str) -> Option<f64> {
    let right = score.scorers.get(scorer).map(|right| f64::from(u8::from(right)));
    right.or_else(|| score.metrics.get(scorer))
}

/// Sets the number that a scorer gave: 0 and 1 are a score, others a metric.
pub fn set_value(score: &mut Score, scorer: &str, value: f64) {
    match value {
        0.0 => score.scorers.insert(scorer, false),
        1.0 => score.scorers.insert(scorer, true),
        other => score.metrics.insert(scorer, other),
    }
}

/// The scorer of this name, or the only one whose metric or filter has it (`strict-match` for `exact_match,strict-match`).
///
/// # Errors
/// The nearest name, if one is near.
pub fn scorer<'a>(name: &str, scorers: &[&'a str]) -> Result<&'a str, Option<&'a str>> {
    if let Some(exact) = scorers.iter().find(|scorer| **scorer == name) {
        return Ok(exact);
    }
    let has_part =
        |scorer: &&&str| scorer.split_once(',').is_some_and(|(metric, filter)| metric == name || filter == name);
    let mut parts = scorers.iter().filter(has_part);
    match (parts.next(), parts.next()) {
        (Some(only), None) => Ok(only),
        (Some(first), Some(_)) => Err(Some(first)),
        (None, _) => Err(crate::nearest(name, scorers.iter().copied())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_rules_or_metrics() {
        let mut score = Score::default();
        for (scorer, number) in [("match", 1.0), ("includes", 0.0), ("f1", 0.25), ("length", 12.0)] {
            set_value(&mut score, scorer, number);
            assert_eq!(value(&score, scorer), Some(number));
        }
        assert_eq!((score.scorers.len(), score.metrics.len()), (2, 2));
        assert_eq!(value(&score, "none"), None);
    }

    #[test]
    fn scorers_are_found_by_a_part_of_their_name() {
        let all = ["exact_match,strict-match", "exact_match,flexible-extract", "f1,none"];
        assert_eq!(scorer("f1,none", &all), Ok("f1,none"));
        assert_eq!(scorer("flexible-extract", &all), Ok(all[1]));
        assert_eq!(scorer("f1", &all), Ok("f1,none"));
        assert_eq!(scorer("exact_match", &all), Err(Some(all[0])));
        assert_eq!(scorer("f1,nonne", &all), Err(Some("f1,none")));
        assert_eq!(scorer("something else", &all), Err(None));
    }
}
