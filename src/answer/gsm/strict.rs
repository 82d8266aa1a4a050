//! Our strict reading: the number that the completion states as its answer, or nothing.
//!
//! 1. What was thought, and what follows another question, does not count.
//! 2. A statement is `####`, `\boxed{`, "the answer is", "the final answer is", "the answer:", "final answer:" or "answer:",
//!    in any case, possibly with asterisks around the words.
//! 3. Behind it, on the same line or, if that is empty, the next one that is not, may stand white space, `*`, `:`, `=`, `≈`, `(`,
//!    `\(`, `\[`, `\boxed{`, `\text{`, a currency, and the words a, about, approximately, around, be, equal, exactly, just, of,
//!    only, roughly, that, to, total; then the number must come. A statement without one is none.
//! 4. If an equation follows in the same clause ("the answer is 10 - 5 = 5"), the number behind its last `=` counts, with the
//!    same words allowed; a number that an operator follows without `=` is no answer.
//! 5. Of several statements the last one counts: models correct themselves.
//! 6. Signs count, also before the currency (`-$5`); thousands separators, units and percent signs do not; fractions are
//!    divided.
use std::sync::LazyLock;

use regex::Regex;

use super::numeral::{NUMERAL, answer_part, subtracts, value};

static STATEMENT: LazyLock<Regex> = LazyLock::new(|| {
    compile(concat!(r"####|\\boxed\s*\{", r"|(?i:\b(?:the\s+)?(?:\*\*)?(?:final\s+)?answer(?:\*\*)?(?:\s+is\b|\s*:))"))
});

static FILLER: LazyLock<Regex> = LazyLock::new(|| {
    compile(concat!(
        r"^(?:[\s*_:=≈(#]|\\\(|\\\[|\\boxed\s*\{|\\text\s*\{|\$(?:\s|\\)|",
        r"(?i:a|about|approximately|around|be|equal|exactly|just|of|only|roughly|that|to|total)\b)"
    ))
});

/// What may separate operands of an expression.
static OPERATOR: LazyLock<Regex> = LazyLock::new(|| compile(r"^\s*(?:[+*/×÷^]|[-\u{2212}]\s*[$€£]?[0-9]|x\s*[0-9])"));

fn compile(text: &str) -> Regex {
    Regex::new(text).expect("the patterns are constants and the tests compile each of them")
}

/// The number that the last statement states.
pub fn read(response: &str) -> Option<f64> {
    let text = answer_part(response);
    // From the end: the first statement found that states a number is the last one that does. Each reaches to the next one.
    let mut end = text.len();
    let statements: Vec<_> = STATEMENT.find_iter(&text).collect();
    statements.into_iter().rev().find_map(|statement| {
        let rest = &text[statement.end()..end];
        end = statement.start();
        stated(rest)
    })
}

/// The number that a text begins with, behind words that say nothing.
fn stated(rest: &str) -> Option<f64> {
    let rest = rest.trim_start_matches(|c: char| c.is_whitespace() || matches!(c, ':' | '*'));
    let line = rest.split('\n').next().unwrap_or_default();
    // A clause ends with a full stop that no digit follows; further statements speak for themselves.
    let end = line.match_indices(['.', ';', '!', '?']).find_map(|(at, _)| {
        let after = line[at + 1..].chars().next();
        (!after.is_some_and(|c| c.is_ascii_digit())).then_some(at)
    });
    let clause = &line[..end.unwrap_or(line.len())];
    if let Some((_, result)) = clause.rsplit_once('=')
        && let Some(number) = leading(result)
    {
        return Some(number);
    }
    leading(clause)
}

fn leading(mut text: &str) -> Option<f64> {
    while let Some(filler) = FILLER.find(text) {
        // Of the currency sign only the sign itself is passed over: what the pattern saw behind it is content.
        let length = if filler.as_str().starts_with('$') { 1 } else { filler.end() };
        text = &text[length..];
    }
    let found = NUMERAL.captures(text).filter(|found| found.get_match().start() == 0)?;
    let after = &text[found.get_match().end()..];
    if OPERATOR.is_match(after.trim_start_matches(['$', '*'])) && !after.starts_with("**") {
        return None;
    }
    debug_assert!(!subtracts(text, &found), "nothing stands before it");
    value(&found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_are_read_with_sign_and_unit() {
        for (text, expected) in [
            ("So the final answer is 42.", Some(42.0)),
            ("The answer is: **$1,234.50**.", Some(1234.5)),
            ("The answer is - 5", Some(-5.0)),
            ("The answer is -$5.", Some(-5.0)),
            ("the answer is \u{2212}3 degrees", Some(-3.0)),
            ("The final answer is 25%.", Some(25.0)),
            ("The answer is 1/2 of a cake", Some(0.5)),
            ("#### 18", Some(18.0)),
            ("####\n18", Some(18.0)),
            ("Thus \\boxed{\\frac{3}{4}}", Some(0.75)),
            ("The final answer is $\\boxed{12}$.", Some(12.0)),
            ("**Final Answer:** 7 apples", Some(7.0)),
            ("**Answer**: about 3.5 hours", Some(3.5)),
            ("The answer is 10 - 5 = 5.", Some(5.0)),
            ("The answer is x = 5 apples.", Some(5.0)),
            ("The answer is 20 minutes.", Some(20.0)),
            ("The answer is .5", Some(0.5)),
            ("The final answer is €1,234,567.89.", Some(1234567.89)),
            ("The final answer is:\n\n**12**", Some(12.0)),
            ("ANSWER: 9", Some(9.0)),
        ] {
            assert_eq!(read(text), expected, "{text:?}");
        }
    }

    #[test]
    fn what_is_not_stated_is_not_read() {
        for text in [
            "",
            "5",
            "The result is 5",
            "The answer is unknown. Perhaps 7",
            "The answer is that they have 6",
            "The answer is 10 - 5",
            "The answer is",
            "Q: The answer is 5",
        ] {
            let expected = text.starts_with("Q:").then_some(5.0);
            assert_eq!(read(text), expected, "{text:?}");
        }
    }

    #[test]
    fn the_last_statement_of_the_answer_counts() {
        assert_eq!(read("The answer is 5. Wait, the answer is 6."), Some(6.0));
        assert_eq!(read("The answer is 5. The answer is unclear."), Some(5.0));
        assert_eq!(read("The answer is 5.\n\nQ: Next?\nA: The answer is 6."), Some(5.0));
        assert_eq!(read("<think>The answer is 5.</think>The answer is 6."), Some(6.0));
        assert_eq!(read("The answer is 12 #### 13"), Some(13.0));
    }

    #[test]
    fn long_texts_take_little_time() {
        assert_eq!(read(&"The answer is about ".repeat(20_000)), None);
        assert_eq!(read(&("The answer is ".to_owned() + &"= ".repeat(100_000))), None);
    }
}
