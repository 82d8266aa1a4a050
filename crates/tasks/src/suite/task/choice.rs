//! The chosen option of a generated completion.
use std::sync::LazyLock;

use regex::Regex;
use serde_json::Value;

use super::choices::letter;
use super::scorer::Spelling;
use crate::suite::Item;

/// Covariate with the texts of an item's choices.
pub(super) const CHOICES: &str = "choices";

static STATED: LazyLock<Regex> = LazyLock::new(|| {
    compiled(
        r"(?i:\b(?:answer|option|choice)\b(?:\s+is)?\s*(?:option|choice)?\s*:?)[\s*_(\[{$]*(?:\\(?:text|boxed|mathrm)\{)?([A-Z])(?:[^A-Za-z0-9']|$)",
    )
});
static BOXED: LazyLock<Regex> =
    LazyLock::new(|| compiled(r"\\boxed\{\s*(?:\\(?:text|mathrm)\{)?\s*\(?([A-Z])\)?\s*\}"));
static FIRST: LazyLock<Regex> = LazyLock::new(|| {
    compiled(
        r#"^[\s*(\['"]*([A-Z])(?:[).:\]*,'"]|\s*$|\s*\n)|^\s*(?:\(([a-z])\)|([a-z])(?:\)|\s*$))|<answer>\s*([A-Za-z])\s*</answer>"#,
    )
});
static BRACKETED: LazyLock<Regex> = LazyLock::new(|| compiled(r"(?:\(([A-Z])\)|\*\*\(?([A-Z])[).:]?(?:\*\*|\s))"));

static SEVERAL: LazyLock<Regex> = LazyLock::new(|| {
    compiled(
        r"(?:^|(?i:answer|option|choice)(?i:\s+is)?:?\s*)[\s*(]*([A-Z])[)*]*\s*(?:,|/|&|or|and)\s*[(*]*([A-Z])[)*]*(?:[\s.,]|$)",
    )
});

fn compiled(pattern: &str) -> Regex {
    Regex::new(pattern).expect("the patterns are constants and the tests use each of them")
}

/// Texts of an item's choices.
pub(super) fn texts(item: &Item) -> Vec<String> {
    let list = item.covariates.get(CHOICES).and_then(Value::as_array);
    list.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
}

/// Letter of the option that a text chooses: the last one that is stated as the answer, else one in a box, at the beginning, in
/// brackets or bold; else the only option whose text it has.
pub(super) fn read(visible: &str, texts: &[String]) -> Option<String> {
    let visible = visible.trim();
    // Two options side by side are no choice.
    if SEVERAL.captures(visible).is_some_and(|found| {
        let is = |group: usize| found.get(group).is_some_and(|one| is_option(one.as_str(), texts.len()));
        is(1) && is(2) && found[1] != found[2]
    }) {
        return None;
    }
    let last = |regex: &Regex| {
        let groups = regex
            .captures_iter(visible)
            .filter_map(|found| found.iter().skip(1).flatten().next().map(|part| part.as_str().to_uppercase()));
        groups.filter(|letter| is_option(letter, texts.len())).last()
    };
    let by_letter = [&*BOXED, &*STATED, &*FIRST, &*BRACKETED].into_iter().find_map(last);
    by_letter.or_else(|| by_text(visible, texts))
}

fn is_option(found: &str, count: usize) -> bool {
    (0..count).any(|index| letter(index) == found)
}

fn by_text(visible: &str, texts: &[String]) -> Option<String> {
    let apart: String = visible.replace(['{', '}', '\\', '$'], " ");
    let said = format!(" {} ", Spelling::LOOSE.of(&apart));
    let found: Vec<usize> = (0..texts.len())
        .filter(|&index| {
            let text = Spelling::LOOSE.of(&texts[index]);
            !text.is_empty() && said.contains(&format!(" {text} "))
        })
        .collect();
    // A text that is a part of another one does not count beside it.
    let longest: Vec<usize> = found
        .iter()
        .copied()
        .filter(|&one| !found.iter().any(|&other| other != one && texts[other].contains(&texts[one])))
        .collect();
    match longest[..] {
        [only] => Some(letter(only)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn choices_are_read_as_they_are_written() {
        let texts = ["Paris", "Rome", "a cat", "New Paris"].map(str::to_owned);
        for (said, letter) in [
            ("B", Some("B")),
            ("(B)", Some("B")),
            ("'B'", Some("B")),
            ("A, B", None),
            ("The answer is A or B.", None),
            ("\\boxed{Rome}", Some("B")),
            ("(b)", Some("B")),
            ("b) Rome", Some("B")),
            ("b", Some("B")),
            ("So: <answer>b</answer>", Some("B")),
            ("B. Rome", Some("B")),
            ("The answer is (C).", Some("C")),
            ("**Answer: A**", Some("A")),
            ("First A. It seems so, but the correct answer is option B", Some("B")),
            ("so \\boxed{\\text{C}}", Some("C")),
            ("I choose **B**", Some("B")),
            ("It is (A) or rather (B)", Some("B")),
            ("Rome, of course", Some("B")),
            ("It is new paris.", Some("D")),
            ("Paris or Rome", None),
            ("The answer is E", None),
            ("A cat sat there", Some("C")),
            ("", None),
            ("I think so", None),
        ] {
            assert_eq!(read(said, &texts).as_deref(), letter, "{said}");
        }
    }
}
