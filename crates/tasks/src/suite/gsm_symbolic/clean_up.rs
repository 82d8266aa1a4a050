//! The clean-up of spaces that tokenizers do when they decode, as the study's do (`clean_up_tokenization_spaces`).

/// In the order in which they are replaced.
const REPLACEMENTS: [(&str, &str); 10] = [
    (" .", "."),
    (" ?", "?"),
    (" !", "!"),
    (" ,", ","),
    (" ' ", "'"),
    (" n't", "n't"),
    (" 'm", "'m"),
    (" 's", "'s"),
    (" 've", "'ve"),
    (" 're", "'re"),
];

/// A decoded text without the spaces that word-piece tokenizers leave before punctuation.
pub(super) fn clean_up(text: &str) -> String {
    REPLACEMENTS.iter().fold(text.to_owned(), |text, (from, to)| text.replace(from, to))
}

#[cfg(test)]
mod tests {
    use super::clean_up;

    #[test]
    fn spaces_before_punctuation_go() {
        assert_eq!(clean_up("It 's 5 , isn n't it ? Yes ! we 've 3 .5"), "It's 5, isnn't it? Yes! we've 3.5");
        // Code survives: `!=` only loses a space before it.
        assert_eq!(clean_up("    if a != b:\n        return a / 2\n"), "    if a!= b:\n        return a / 2\n");
    }
}
