//! Whether two runs asked the same question under one id.
use std::collections::BTreeMap;

use serde_json::Value;

use earnest_tasks::suite::Item;

/// What two runs must share to be compared on an item, besides the expected answer. The words around a question may differ: a
/// chat and a raw prompt, more and fewer examples ask the same.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Question {
    /// Operands, which say everything of a question that is made of numbers.
    Operands(String),
    /// The text of any other, which a prompt's own words may surround.
    Text(String),
}

impl Question {
    /// The operands among an item's covariates, where it has any.
    pub(super) fn of_operands(covariates: &BTreeMap<String, Value>) -> Option<Self> {
        let operand = |name: &str| covariates.get(name).and_then(Value::as_str);
        Some(Question::Operands(format!("{}\n{}", operand("a")?, operand("b").unwrap_or_default())))
    }

    /// The text of an item.
    pub(super) fn of_text(item: &Item) -> Self {
        Question::Text(item.segments.content().trim().to_owned())
    }

    /// True if the two ask the same: one text may have words of a prompt around it.
    pub(super) fn is(&self, other: &Self) -> bool {
        match (self, other) {
            (Question::Text(one), Question::Text(two)) => one.contains(two.as_str()) || two.contains(one.as_str()),
            _ => self == other,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use earnest_tasks::suite::Segments;

    fn text(words: &str) -> Question {
        Question::Text(words.to_owned())
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
        assert!(bare.is(&bare) && bare.is(&worked) && worked.is(&bare) && bare.is(&masked) && masked.is(&bare));
        let another = text("Tom has 4 apples and eats 12. How many are left?");
        let reworded = text("Ann has 3 apples and eats 12. How many are left?");
        assert!(!bare.is(&another) && !worked.is(&another) && !bare.is(&reworded) && !masked.is(&another));
        let operands = |a: &str, b: Option<&str>| {
            let mut covariates = BTreeMap::from([("a".to_owned(), Value::from(a))]);
            covariates.extend(b.map(|b| ("b".to_owned(), Value::from(b))));
            Question::of_operands(&covariates).unwrap()
        };
        assert!(
            operands("12", None).is(&operands("12", None)) && operands("1", Some("2")).is(&operands("1", Some("2")))
        );
        assert!(
            !operands("12", None).is(&operands("1", Some("2")))
                && !operands("1", Some("2")).is(&operands("2", Some("1")))
        );
        assert!(!operands("12", None).is(&text("12")));
        assert_eq!(Question::of_operands(&BTreeMap::from([("template".to_owned(), Value::from(3))])), None);
    }
}
