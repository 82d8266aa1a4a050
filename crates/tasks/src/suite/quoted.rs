//! Texts of a user's files in messages: the beginning of a long one, the first of many.

/// Characters of a name, a pattern or a template that a message repeats.
pub const LONGEST_QUOTED: usize = 100;

/// Names that a message has at most.
const MOST_NAMES: usize = 20;

/// The beginning of a text, so that a message does not repeat all of a question.
pub fn shortened(text: &str, characters: usize) -> String {
    match text.char_indices().nth(characters) {
        Some((end, _)) => format!("{}...", text[..end].trim_end()),
        None => text.to_owned(),
    }
}

/// The first of some names, and how many more there are.
pub fn some_of<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    let mut names = names.into_iter();
    let shown: Vec<String> = names.by_ref().take(MOST_NAMES).map(|name| shortened(name, LONGEST_QUOTED)).collect();
    match names.count() {
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_lists_and_long_names_are_short() {
        assert_eq!(some_of(["a", "b"]), "a, b");
        let names: Vec<String> = (0..3_000).map(|number| format!("{number}{}", "x".repeat(10_000))).collect();
        let shown = some_of(names.iter().map(String::as_str));
        assert!(shown.len() < 3_000 && shown.ends_with("... and 2980 more"), "{shown}");
    }
}
