//! Our strict extractor: the number that the completion states as its answer, or nothing.
//!
//! 1. What was thought, and what follows another question, does not count.
//! 2. A statement is `####`, `\boxed{`, "the answer is", "the final answer is", "the answer:", "final answer:" or "answer:",
//!    in any case, possibly with asterisks around the words.
//! 3. Behind it, on the same line or, if that is empty or only opens a formula or a block (`$$`, `\[`, three backticks), the next
//!    one that is not, may stand white space, `*`, `` ` ``, `:`, `=`, `≈`, `(`, `$$`, `\(`, `\[`, `\boxed{`, `\text{`, a currency, and the words a, about, approximately, around, be, equal, exactly, just, of,
//!    only, roughly, that, to, total; then the number must come, with at most three words of a unit. A statement without one is
//!    none.
//! 4. If an equation begins there ("the answer is 10 - 5 = 5", "x = 5"), the last of its sides that is a number alone counts.
//!    An equation consists of numbers with their units, operators, brackets and single letters, and ends where anything else
//!    stands: "10, since 3 + 9 = 12" is 10, "wrong if x = 4" states nothing. A side alone that is no number is no answer
//!    ("10 - 5").
//! 5. Of several statements the last one counts: models correct themselves.
//! 6. Signs count, also before the currency (`-$5`) and as the words minus and negative; thousands separators, units and percent
//!    signs do not; `1.5e3` is 1500, "2 million" 2,000,000; fractions are divided.
use std::sync::LazyLock;

use regex::Regex;

use super::numeral::{LEADING_NUMERAL, answer_part, value};

static STATEMENT: LazyLock<Regex> = LazyLock::new(|| {
    compile(concat!(r"####|\\boxed\s*\{", r"|(?i:\b(?:the\s+)?(?:\*\*)?(?:final\s+)?answer(?:\*\*)?(?:\s+is\b|\s*:))"))
});

static FILLER: LazyLock<Regex> = LazyLock::new(|| {
    compile(concat!(
        r"^(?:[\s*_:=≈(#`]|\\\(|\\\[|\\boxed\s*\{|\\text\s*\{|\$(?:\s|\\|\$)|",
        r"(?i:a|about|approximately|around|be|equal|exactly|just|of|only|roughly|that|to|total)\b)"
    ))
});

/// Signs between operands; the operand must follow.
static OPERATOR: LazyLock<Regex> = LazyLock::new(|| {
    compile(
        r"^\s*(?:\*\*|[+*/×÷·^\-\u{2212}\u{2013}]|\\(?:times|cdot|div)\b|(?i:x|of|plus|minus|times|divided\s+by)\b)",
    )
});

/// Signs between the sides of an equation.
static EQUALS: LazyLock<Regex> = LazyLock::new(|| compile(r"^[\s)*}]*(?:\\[\])])?\s*(?:[=≈]|(?i:equals)\b)"));

/// Brackets and marks that may stand before or behind an operand.
static OPENING: LazyLock<Regex> = LazyLock::new(|| compile(r"^(?:[\s(\[{]|\*\*|\\\(|\\left\()+"));
static CLOSING: LazyLock<Regex> = LazyLock::new(|| compile(r"^(?:\*\*|`|\s*(?:[)\]}%€£¥]|\\?\$|\\\)|\\right\)|\\%))+"));

/// A minus sign in words.
static NEGATIVE: LazyLock<Regex> = LazyLock::new(|| compile(r"^(?i:minus|negative)\s+"));

/// A plus sign that touches its number.
static POSITIVE: LazyLock<Regex> = LazyLock::new(|| compile(r"^\+(?:\\?[$€£¥])?[0-9.]"));

/// A line that only opens what the next one holds.
static OPENING_LINE: LazyLock<Regex> = LazyLock::new(|| compile(r"^(?:\$\$|\\\[|```\w*)[ \t]*\n\s*"));

/// A power of ten in words behind a number.
static MAGNITUDE: LazyLock<Regex> = LazyLock::new(|| compile(r"^\s+(?i:(thousand|million|billion|trillion))\b"));

/// A quantity that stands for its number.
static LETTER: LazyLock<Regex> = LazyLock::new(|| compile(r"^[A-Za-z]\b"));

/// A word of a unit.
static WORD: LazyLock<Regex> = LazyLock::new(|| compile(r"^\s*(?:\\text\s*\{\s*)?([\p{L}°]+(?:/\p{L}+)?[²³]?)\}?"));

/// Words that begin another thought instead of naming a unit.
const NO_UNIT: &[&str] = &[
    "and",
    "as",
    "assuming",
    "because",
    "but",
    "divided",
    "equals",
    "for",
    "from",
    "given",
    "hence",
    "if",
    "is",
    "minus",
    "not",
    "of",
    "only",
    "or",
    "plus",
    "provided",
    "since",
    "so",
    "than",
    "that",
    "then",
    "therefore",
    "though",
    "thus",
    "times",
    "unless",
    "until",
    "was",
    "when",
    "where",
    "whereas",
    "which",
    "while",
    "with",
    "wrong",
    "x",
];

/// Most words of a unit ("miles per hour").
const UNIT: usize = 3;

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
    let rest = skip(&OPENING_LINE, rest);
    let line = rest.split('\n').next().unwrap_or_default();
    // A clause ends with a full stop that no digit follows; further statements speak for themselves.
    let end = line.match_indices(['.', ';', '!', '?']).find_map(|(at, _)| {
        let after = line[at + 1..].chars().next();
        (!after.is_some_and(|c| c.is_ascii_digit())).then_some(at)
    });
    last_number(&line[..end.unwrap_or(line.len())])
}

/// The last side of the equation with which a clause begins that is a number alone; the number that it begins with, if that is
/// no equation.
fn last_number(clause: &str) -> Option<f64> {
    let mut found = None;
    let mut rest = clause;
    loop {
        let Some(side) = side(without_fillers(rest)) else { return found };
        let Some(equals) = EQUALS.find(side.rest) else { return side.alone.or(found).or(side.aside) };
        found = side.alone.or(found);
        rest = &side.rest[equals.end()..];
    }
}

fn without_fillers(mut text: &str) -> &str {
    while let Some(filler) = FILLER.find(text) {
        // Of the currency sign only the sign itself is passed over: what the pattern saw behind it is content.
        let length = if filler.as_str().starts_with('$') { 1 } else { filler.end() };
        text = &text[length..];
    }
    text
}

/// A side of an equation: operands joined by operators.
struct Side<'t> {
    /// The number, where there is one operand and it is a number.
    alone: Option<f64>,
    /// The first number, where what follows it reads like an aside as long as no equation comes of it: "5 apples - 3 of them
    /// red", "5 of 8".
    aside: Option<f64>,
    /// The text behind it.
    rest: &'t str,
}

fn side(text: &str) -> Option<Side<'_>> {
    let first = operand(text)?;
    let mut side = Side { alone: first.number, aside: None, rest: first.rest };
    let mut begins = true;
    while let Some((operator, next)) = joined(side.rest) {
        let dash = operator.starts_with(['-', '\u{2212}', '\u{2013}']);
        if begins && (operator.eq_ignore_ascii_case("of") || (dash && first.has_unit)) {
            side.aside = first.number;
        }
        begins = false;
        (side.alone, side.rest) = (None, next.rest);
    }
    Some(side)
}

/// An operator and the operand behind it. A bracket that touches a number multiplies it.
fn joined(text: &str) -> Option<(&str, Operand<'_>)> {
    if text.starts_with('(') {
        return Some(("", operand(text)?));
    }
    let operator = OPERATOR.find(text)?;
    Some((operator.as_str().trim_start(), operand(&text[operator.end()..])?))
}

/// A number with its unit, or a letter, which has no number.
struct Operand<'t> {
    number: Option<f64>,
    has_unit: bool,
    rest: &'t str,
}

fn operand(text: &str) -> Option<Operand<'_>> {
    let text = skip(&OPENING, text);
    let (negative, text) = match NEGATIVE.find(text) {
        Some(minus) => (true, &text[minus.end()..]),
        None => (false, if POSITIVE.is_match(text) { &text[1..] } else { text }),
    };
    if let Some(found) = LEADING_NUMERAL.captures(text) {
        let number = value(&found).map(|number| if negative { -number } else { number });
        let after = &text[found.get_match().end()..];
        let (magnitude, after) = magnitude(after);
        let number = number.map(|number| number * magnitude);
        // Asterisks that touch the next number are a power, others mark what is important.
        if after.strip_prefix("**").is_some_and(|power| power.starts_with(|c: char| c.is_ascii_digit() || c == '(')) {
            return Some(Operand { number, has_unit: false, rest: after });
        }
        let (has_unit, rest) = unit(skip(&CLOSING, after));
        return Some(Operand { number, has_unit, rest });
    }
    let letter = LETTER.find(text)?;
    Some(Operand { number: None, has_unit: false, rest: skip(&CLOSING, &text[letter.end()..]) })
}

/// The power of ten that a text begins with in words, and what follows it.
fn magnitude(text: &str) -> (f64, &str) {
    let Some(found) = MAGNITUDE.captures(text) else { return (1.0, text) };
    let power = match found[1].to_lowercase().as_str() {
        "thousand" => 1e3,
        "million" => 1e6,
        "billion" => 1e9,
        _ => 1e12,
    };
    (power, &text[found.get_match().end()..])
}

/// Reads the words of a unit: true if the text begins with some, and the text behind them.
fn unit(text: &str) -> (bool, &str) {
    let mut rest = text;
    for _ in 0..UNIT {
        let Some(word) = WORD.captures(rest) else { break };
        let name = word.get(1).map_or("", |name| name.as_str()).to_lowercase();
        if NO_UNIT.contains(&name.as_str()) {
            break;
        }
        rest = &rest[word.get_match().end()..];
    }
    (rest.len() < text.len(), skip(&CLOSING, rest))
}

fn skip<'t>(pattern: &Regex, text: &'t str) -> &'t str {
    pattern.find(text).map_or(text, |found| &text[found.end()..])
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
            ("The answer is 10, since 3 + 9 = 12.", Some(10.0)),
            ("The answer is 10 since 3 + 9 = 12.", Some(10.0)),
            ("The answer is 10 apples because 3 + 9 = 12.", Some(10.0)),
            ("The answer is 10 (3 + 7 = 10, not 12)", Some(10.0)),
            ("The answer is 10 and x = 4.", Some(10.0)),
            ("The answer is minus 5.", Some(-5.0)),
            ("The answer is negative $5", Some(-5.0)),
            ("The answer is 1.5e3.", Some(1500.0)),
            ("The answer is 2 * (3 + 4) = 14 apples.", Some(14.0)),
            ("The answer is 3 apples + 4 apples = 7 apples", Some(7.0)),
            ("The answer is $3 \\times 4 = 12$", Some(12.0)),
            ("The answer is 3 x 4 = 12 = 6 + 6", Some(12.0)),
            ("The answer is 10 minus 5 equals 5", Some(5.0)),
            ("The answer is 10 - 5 = 5 miles per hour.", Some(5.0)),
            ("The answer is 5 = five", Some(5.0)),
            ("The answer is 12/4 = 3", Some(3.0)),
            ("The answer is **5** apples/day", Some(5.0)),
            ("The answer is 60 km/h.", Some(60.0)),
            ("The answer is 2 ** 3 = 8", Some(8.0)),
            ("The answer is 2**3 = 8", Some(8.0)),
            ("The answer is 2(3 + 4) = 14", Some(14.0)),
            ("The answer is 20% of 50 = 10", Some(10.0)),
            ("The answer is 5 of 8 apples", Some(5.0)),
            ("The answer is 5 apples - 3 red and 2 green", Some(5.0)),
            ("The answer is 5 apples - 3 apples = 2 apples", Some(2.0)),
            ("The answer is $3$ + $4$ = $7$.", Some(7.0)),
            ("The answer is (10 - 4) / 2 = **3**.", Some(3.0)),
            ("The answer is +7", Some(7.0)),
            ("The answer is +$7.", Some(7.0)),
            ("The answer is 3 +4 = +7", Some(7.0)),
            ("The answer is $$5$$", Some(5.0)),
            ("The answer is:\n$$\n5\n$$", Some(5.0)),
            ("The answer is:\n\\[\n\\boxed{5}\n\\]", Some(5.0)),
            ("The answer is `7`.", Some(7.0)),
            ("The answer is:\n```\n7\n```", Some(7.0)),
            ("The answer is US$10.", Some(10.0)),
            ("The answer is 2 million people", Some(2e6)),
            ("The answer is $1.5 thousand + $500 = $2 thousand.", Some(2000.0)),
            ("The answer is 2 thousandths", Some(2.0)),
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
            "The answer is 10 minus 5",
            "The answer is 3 apples + 4 apples",
            "The answer is wrong if x = 4.",
            "The answer is not x = 4.",
            "The answer is x",
            "The answer is unclear, but y = 3",
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
        assert_eq!(read(&("The answer is ".to_owned() + &"x = ".repeat(50_000))), None);
        assert_eq!(read(&("The answer is ".to_owned() + &"1 + ".repeat(50_000))), None);
        assert_eq!(read(&("The answer is ".to_owned() + &"minus ".repeat(50_000))), None);
        assert_eq!(read(&("The answer is ".to_owned() + &"(".repeat(200_000))), None);
    }
}
