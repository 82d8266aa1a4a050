//! Counts in sentences, which agree with their nouns and verbs.

/// A count with its noun: `1 row`, `3 rows`. A noun of several words ends with the one that is counted: `worked example`.
pub fn counted(count: usize, noun: &str) -> String {
    format!("{count} {noun}{}", agreeing(count, "", "s"))
}

/// The words that agree with a count: the first of one thing, the second of none or several.
pub fn agreeing<'w>(count: usize, one: &'w str, many: &'w str) -> &'w str {
    if count == 1 { one } else { many }
}

/// The beginning of a list: `the first item`, `the first 3 items`.
pub fn the_first(count: usize, noun: &str) -> String {
    if count == 1 { format!("the first {noun}") } else { format!("the first {}", counted(count, noun)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_agree_with_their_nouns_and_verbs() {
        let said = |count| format!("{} {} left out", counted(count, "row"), agreeing(count, "is", "are"));
        assert_eq!([0, 1, 2].map(said), ["0 rows are left out", "1 row is left out", "2 rows are left out"]);
        assert_eq!(counted(1, "worked example"), "1 worked example");
        assert_eq!([1, 5].map(|count| the_first(count, "item")), ["the first item", "the first 5 items"]);
    }
}
