//! Names of scorers that earlier versions of a suite gave to what has another name today.
use std::borrow::Cow;

use super::find;
use crate::suite::Score;

/// Scorers of a suite's version that have another name today: the name then, and today's.
fn renamed(suite: &str, version: &str) -> Vec<(&'static str, &'static str)> {
    let scorers = find(suite).map_or(&[][..], |suite| suite.card().renamed_scorers);
    scorers.iter().filter(|scorer| scorer.0 == version).map(|scorer| (scorer.1, scorer.2)).collect()
}

/// Gives the scorers of a stored score today's names.
pub fn rename_scorers(suite: &str, version: &str, score: &mut Score) {
    for (then, today) in renamed(suite, version) {
        // A row that was renamed before it was copied has today's name already.
        if let Some(matched) = score.scorers.remove(then)
            && !score.scorers.contains(today)
        {
            score.scorers.insert(today, matched);
        }
    }
}

/// The name under which a version of a suite stored a scorer; none where today's name meant nothing then.
pub fn stored_scorer<'a>(suite: &str, version: &str, scorer: &'a str) -> Option<Cow<'a, str>> {
    let rows = renamed(suite, version);
    match rows.iter().find(|(_, today)| *today == scorer) {
        Some((then, _)) => Some(Cow::Borrowed(*then)),
        None if rows.iter().any(|(then, _)| *then == scorer) => None,
        None => Some(Cow::Borrowed(scorer)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_number_was_called_final_once() {
        let stored = Score { scorers: [("final", true)].into(), ..Score::default() };
        let mut score = stored.clone();
        rename_scorers("arithmetic-bench", "1.0", &mut score);
        assert_eq!(score.scorers, [("last_number", true)].into());
        rename_scorers("arithmetic-bench", "1.0", &mut score);
        assert_eq!(score.scorers.len(), 1);
        let mut later = stored.clone();
        rename_scorers("arithmetic-bench", "1.1", &mut later);
        assert_eq!(later, stored);
        assert_eq!(stored_scorer("arithmetic-bench", "1.0", "last_number").as_deref(), Some("final"));
        assert_eq!(stored_scorer("arithmetic-bench", "1.0", "final"), None);
        assert_eq!(stored_scorer("arithmetic-bench", "1.1", "final").as_deref(), Some("final"));
        assert_eq!(stored_scorer("nupa", "1", "strict").as_deref(), Some("strict"));
    }
}
