//! English number words: the words themselves and what each adds to a number.

/// Zero to nineteen.
pub(super) const UNITS: [&str; 20] = [
    "zero",
    "one",
    "two",
    "three",
    "four",
    "five",
    "six",
    "seven",
    "eight",
    "nine",
    "ten",
    "eleven",
    "twelve",
    "thirteen",
    "fourteen",
    "fifteen",
    "sixteen",
    "seventeen",
    "eighteen",
    "nineteen",
];
/// The tens, at the places of their first digits.
pub(super) const TENS: [&str; 10] =
    ["", "", "twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"];

/// Names of the powers of a thousand (short scale), as far as anyone writes them.
pub(super) const GROUPS: [&str; 22] = [
    "",
    "thousand",
    "million",
    "billion",
    "trillion",
    "quadrillion",
    "quintillion",
    "sextillion",
    "septillion",
    "octillion",
    "nonillion",
    "decillion",
    "undecillion",
    "duodecillion",
    "tredecillion",
    "quattuordecillion",
    "quindecillion",
    "sexdecillion",
    "septendecillion",
    "octodecillion",
    "novemdecillion",
    "vigintillion",
];

/// Share of a word in a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Word {
    Unit(u64),
    Ten(u64),
    Hundred,
    Group(usize),
    And,
    Point,
}

/// Meaning of a lower-case word.
pub(super) fn classify(word: &str) -> Option<Word> {
    if let Some(unit) = UNITS.iter().position(|unit| *unit == word) {
        return Some(Word::Unit(unit as u64));
    }
    if let Some(ten) = TENS.iter().position(|ten| !ten.is_empty() && *ten == word) {
        return Some(Word::Ten(10 * ten as u64));
    }
    if let Some(group) = GROUPS.iter().skip(1).position(|group| *group == word) {
        return Some(Word::Group(group + 1));
    }
    match word {
        "hundred" => Some(Word::Hundred),
        "and" => Some(Word::And),
        "point" => Some(Word::Point),
        _ => None,
    }
}
