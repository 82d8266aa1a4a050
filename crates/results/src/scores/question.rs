//! Identity of questions across runs.
use std::collections::BTreeMap;

use serde_json::Value;
use unicode_normalization::UnicodeNormalization;

use earnest_tasks::suite::Item;

/// A question as compared between runs, besides the expected answer. The words around it may differ: chat or raw prompts, more
/// or fewer examples.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Question {
    /// Operands of an arithmetic question.
    Operands(String),
    /// Text of any other question, possibly with words of a prompt around it.
    Text(String),
}

impl Question {
    /// Returns the operands among an item's covariates, if it has any.
    pub fn of_operands(covariates: &BTreeMap<String, Value>) -> Option<Self> {
        let operand = |name: &str| covariates.get(name).and_then(Value::as_str);
        Some(Question::Operands(format!("{}\n{}", operand("a")?, operand("b").unwrap_or_default())))
    }

    /// Returns the text of an item, with its numbers where the prompt hides them.
    pub fn of_text(item: &Item) -> Self {
        Question::Text(item.segments.content().trim().to_owned())
    }

    /// True if both are the same question; one text may contain the other.
    pub fn matches(&self, other: &Self) -> bool {
        match (self, other) {
            (Question::Text(one), Question::Text(two)) => one.contains(two.as_str()) || two.contains(one.as_str()),
            _ => self == other,
        }
    }
}

/// A text as it is compared across tools: NFKC, lower case, and single spaces for all white space.
pub fn normalised(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    for word in text.nfkc().collect::<String>().to_lowercase().split_whitespace() {
        if !plain.is_empty() {
            plain.push(' ');
        }
        plain.push_str(word);
    }
    plain
}

/// True if one normalised text is the other, or stands in it as whole words.
pub fn contains(one: &str, other: &str) -> bool {
    let (long, short) = if one.len() >= other.len() { (one, other) } else { (other, one) };
    let edge = |c: Option<char>| c.is_none_or(|c| !c.is_alphanumeric());
    long.match_indices(short).any(|(start, found)| {
        edge(long[..start].chars().next_back()) && edge(long[start + found.len()..].chars().next())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use earnest_tasks::suite::Segments;

    fn text(words: &str) -> Question {
        Question::Text(words.to_owned())
    }

    #[test]
    fn texts_of_other_tools_are_normalised() {
        assert_eq!(normalised(" How\u{a0}many\n\tAPPLES? \u{ff11}\u{ff12} "), "how many apples? 12");
        assert!(contains("question: 2 + 3? answer:", "2 + 3?") && contains("2 + 3?", "q: 2 + 3?"));
        assert!(!contains("12 + 3?", "2 + 3?") && !contains("a b", "c"));
    }

    #[test]
    fn the_words_around_a_question_may_differ_its_numbers_may_not() {
        let bare = text("Tom has 3 apples and eats 12. How many are left?");
        let worked = text("Q: 1+1?\nA: 2\n\nQ: Tom has 3 apples and eats 12. How many are left?\nA: ");
        let masked = Segments {
            unmasked: Some("Tom has 3 apples and eats 12. How many are left?".into()),
            ..Segments::question("Tom has [NUM1] apples and eats [NUM2]. How many are left?")
        };
        let masked = text(masked.content());
        assert!(
            bare.matches(&bare)
                && bare.matches(&worked)
                && worked.matches(&bare)
                && bare.matches(&masked)
                && masked.matches(&bare)
        );
        let another = text("Tom has 4 apples and eats 12. How many are left?");
        let reworded = text("Ann has 3 apples and eats 12. How many are left?");
        assert!(
            !bare.matches(&another)
                && !worked.matches(&another)
                && !bare.matches(&reworded)
                && !masked.matches(&another)
        );
        let operands = |a: &str, b: Option<&str>| {
            let mut covariates = BTreeMap::from([("a".to_owned(), Value::from(a))]);
            covariates.extend(b.map(|b| ("b".to_owned(), Value::from(b))));
            Question::of_operands(&covariates).unwrap()
        };
        assert!(
            operands("12", None).matches(&operands("12", None))
                && operands("1", Some("2")).matches(&operands("1", Some("2")))
        );
        assert!(
            !operands("12", None).matches(&operands("1", Some("2")))
                && !operands("1", Some("2")).matches(&operands("2", Some("1")))
        );
        assert!(!operands("12", None).matches(&text("12")));
        assert_eq!(Question::of_operands(&BTreeMap::from([("template".to_owned(), Value::from(3))])), None);
    }
}
