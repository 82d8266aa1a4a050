//! Names of rules that earlier versions of a suite gave to what has another name today.
use std::borrow::Cow;

use super::find;
use crate::suite::Score;

/// Rules of a suite's version that have another name today: the name then, and today's.
fn renamed(suite: &str, version: &str) -> Vec<(&'static str, &'static str)> {
    let rules = find(suite).map_or(&[][..], |suite| suite.card().renamed_rules);
    rules.iter().filter(|rule| rule.0 == version).map(|rule| (rule.1, rule.2)).collect()
}

/// Gives the rules of a stored score today's names.
pub fn rename_rules(suite: &str, version: &str, score: &mut Score) {
    for (then, today) in renamed(suite, version) {
        // A row that was renamed before it was copied has today's name already.
        if let Some(matched) = score.rules.remove(then)
            && !score.rules.contains(today)
        {
            score.rules.insert(today, matched);
        }
    }
}

/// The name under which a version of a suite stored a rule; none where today's name meant nothing then.
pub fn stored_rule<'a>(suite: &str, version: &str, rule: &'a str) -> Option<Cow<'a, str>> {
    let rows = renamed(suite, version);
    match rows.iter().find(|(_, today)| *today == rule) {
        Some((then, _)) => Some(Cow::Borrowed(*then)),
        None if rows.iter().any(|(then, _)| *then == rule) => None,
        None => Some(Cow::Borrowed(rule)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_number_was_called_final_once() {
        let stored = Score { rules: [("final", true)].into(), ..Score::default() };
        let mut score = stored.clone();
        rename_rules("arithmetic-bench", "1.0", &mut score);
        assert_eq!(score.rules, [("last_number", true)].into());
        rename_rules("arithmetic-bench", "1.0", &mut score);
        assert_eq!(score.rules.len(), 1);
        let mut later = stored.clone();
        rename_rules("arithmetic-bench", "1.1", &mut later);
        assert_eq!(later, stored);
        assert_eq!(stored_rule("arithmetic-bench", "1.0", "last_number").as_deref(), Some("final"));
        assert_eq!(stored_rule("arithmetic-bench", "1.0", "final"), None);
        assert_eq!(stored_rule("arithmetic-bench", "1.1", "final").as_deref(), Some("final"));
        assert_eq!(stored_rule("nupa", "1", "strict").as_deref(), Some("strict"));
    }
}
