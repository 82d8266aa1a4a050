//! Names of rules that earlier versions of a suite gave to what has another name today.
use std::borrow::Cow;

use super::Verdict;

/// Suite, its version, the rule's name then and today.
const RENAMED: [(&str, &str, &str, &str); 2] = [
    ("arithmetic-bench", "1.0", "final", "last_number"),
    ("arithmetic-bench", "1.0", "final_with_thinking", "last_number_with_thinking"),
];

/// Gives the rules of a stored verdict today's names.
pub fn rename_rules(suite: &str, version: &str, verdict: &mut Verdict) {
    for (_, _, then, today) in RENAMED.iter().filter(|row| (row.0, row.1) == (suite, version)) {
        // A row that was renamed before it was copied has today's name already.
        if let Some(matched) = verdict.matchers.remove(*then) {
            verdict.matchers.entry((*today).to_owned()).or_insert(matched);
        }
    }
}

/// The name under which a version of a suite stored a rule; none where today's name meant nothing then.
pub fn stored_rule<'a>(suite: &str, version: &str, rule: &'a str) -> Option<Cow<'a, str>> {
    let mut renamed = RENAMED.iter().filter(|row| (row.0, row.1) == (suite, version));
    match renamed.clone().find(|row| row.3 == rule) {
        Some(row) => Some(Cow::Borrowed(row.2)),
        None if renamed.any(|row| row.2 == rule) => None,
        None => Some(Cow::Borrowed(rule)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_number_was_called_final_once() {
        let stored = Verdict { matchers: [("final".to_owned(), true)].into(), ..Verdict::default() };
        let mut verdict = stored.clone();
        rename_rules("arithmetic-bench", "1.0", &mut verdict);
        assert_eq!(verdict.matchers, [("last_number".to_owned(), true)].into());
        rename_rules("arithmetic-bench", "1.0", &mut verdict);
        assert_eq!(verdict.matchers.len(), 1);
        let mut later = stored.clone();
        rename_rules("arithmetic-bench", "1.1", &mut later);
        assert_eq!(later, stored);
        assert_eq!(stored_rule("arithmetic-bench", "1.0", "last_number").as_deref(), Some("final"));
        assert_eq!(stored_rule("arithmetic-bench", "1.0", "final"), None);
        assert_eq!(stored_rule("arithmetic-bench", "1.1", "final").as_deref(), Some("final"));
        assert_eq!(stored_rule("nupa", "1", "strict").as_deref(), Some("strict"));
    }
}
