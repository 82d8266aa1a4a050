//! Numbers that an English text writes in words.
use num_bigint::BigInt;
use num_traits::Zero;

use super::english::{GROUPS, Word, classify};

/// A number written in words inside a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WordNumber {
    /// Byte range.
    pub start: usize,
    pub end: usize,
    /// Its digits, e.g. `192` or `4.5`.
    pub digits: String,
}

/// The numbers that a text writes in words, from left to right: `forty-two`, `one hundred and six`, `two point five`. A lone
/// `one` is left out, because it is a pronoun more often than a number.
pub fn words_in(text: &str) -> Vec<WordNumber> {
    let tokens = words(text);
    let mut found = Vec::new();
    let mut at = 0;
    while at < tokens.len() {
        match longest(text, &tokens[at..]) {
            Some((count, digits)) => {
                let (start, end) = (tokens[at].0, tokens[at + count - 1].1);
                if !text[start..end].eq_ignore_ascii_case("one") {
                    found.push(WordNumber { start, end, digits });
                }
                at += count;
            }
            None => at += 1,
        }
    }
    found
}

/// Byte ranges of runs of letters; hyphens separate, so that `forty-two` is two words.
fn words(text: &str) -> Vec<(usize, usize)> {
    let mut found: Vec<(usize, usize)> = Vec::new();
    for (at, character) in text.char_indices() {
        if character.is_alphanumeric() || character == '\'' {
            match found.last_mut() {
                Some((_, end)) if *end == at => *end = at + character.len_utf8(),
                _ => found.push((at, at + character.len_utf8())),
            }
        }
    }
    found
}

/// The longest beginning of the words that is one number: how many words, and its digits.
fn longest(text: &str, tokens: &[(usize, usize)]) -> Option<(usize, String)> {
    let meaning = |start: usize, end: usize| classify(&text.get(start..end)?.to_ascii_lowercase());
    let mut total = BigInt::zero();
    let mut group: u64 = 0;
    let mut last: Option<Word> = None;
    let mut smallest = GROUPS.len();
    let mut best: Option<(usize, String)> = None;
    let mut taken = 0;
    while let Some(&(start, end)) = tokens.get(taken) {
        let separator = taken.checked_sub(1).and_then(|before| tokens.get(before)).map(|before| &text[before.1..start]);
        let Some(word) = meaning(start, end) else { break };
        let joined = |separator: &str| matches!(separator, " " | "-" | ", " | "\u{2011}");
        if separator.is_some_and(|separator| !joined(separator)) {
            break;
        }
        // A comma is part of a number only between its groups.
        let comma = separator == Some(", ");
        if comma && !matches!(last, Some(Word::Group(_))) {
            break;
        }
        let empty = last.is_none() || matches!(last, Some(Word::Group(_)));
        let after_hundred = matches!(last, Some(Word::Hundred | Word::And)) && group.is_multiple_of(100);
        let fits = match word {
            Word::Unit(unit) => {
                (empty || after_hundred || (matches!(last, Some(Word::Ten(_))) && (1..10).contains(&unit)))
                    && !(unit == 0 && last.is_some())
            }
            Word::Ten(_) => empty || after_hundred,
            Word::Hundred => matches!(last, Some(Word::Unit(unit)) if (1..20).contains(&unit)) && group < 20,
            Word::Group(place) => {
                group > 0 && place < smallest && matches!(last, Some(Word::Unit(_) | Word::Ten(_) | Word::Hundred))
            }
            Word::And => matches!(last, Some(Word::Hundred | Word::Group(_))),
            Word::Point => matches!(last, Some(Word::Unit(_) | Word::Ten(_) | Word::Hundred | Word::Group(_))),
        };
        if !fits {
            break;
        }
        taken += 1;
        match word {
            Word::Unit(value) | Word::Ten(value) => group += value,
            Word::Hundred => group *= 100,
            Word::Group(place) => {
                total += BigInt::from(group) * BigInt::from(1000).pow(place as u32);
                group = 0;
                smallest = place;
            }
            Word::And => {}
            Word::Point => {
                let mut decimals = String::new();
                for &(start, end) in &tokens[taken..] {
                    if text.get(tokens[taken - 1].1..start) != Some(" ") {
                        break;
                    }
                    match meaning(start, end) {
                        Some(Word::Unit(digit)) if digit < 10 => decimals.push_str(&digit.to_string()),
                        _ => break,
                    }
                    taken += 1;
                }
                if !decimals.is_empty() {
                    best = Some((taken, format!("{}.{decimals}", total + BigInt::from(group))));
                }
                return best;
            }
        }
        last = Some(word);
        if word != Word::And {
            best = Some((taken, (&total + BigInt::from(group)).to_string()));
        }
    }
    best
}

#[cfg(test)]
mod tests {
    use super::super::number_words;
    use super::*;

    #[test]
    fn numbers_in_words_are_found_and_read() {
        let digits = |text: &str| words_in(text).into_iter().map(|found| found.digits).collect::<Vec<_>>();
        assert_eq!(digits("He gave five to his brother."), ["5"]);
        assert_eq!(digits("Ninety-seven cupcakes and fifty-eight"), ["97", "58"]);
        assert_eq!(digits("one hundred and ninety-two, and two"), ["192", "2"]);
        assert_eq!(digits("the other one; someone; tent"), Vec::<String>::new());
        assert_eq!(digits("two point five litres"), ["2.5"]);
        assert_eq!(digits("one thousand, two hundred and six"), ["1206"]);
        assert_eq!(digits("six, seven and eight"), ["6", "7", "8"]);
        assert_eq!(digits("two hundred thousand and five"), ["200005"]);
        assert_eq!(digits("twenty and thirty"), ["20", "30"]);
        assert_eq!(digits("zero fewer"), ["0"]);
    }

    #[test]
    fn words_read_back_to_the_same_number() {
        for value in (0..2500).chain([9_999, 10_000, 100_001, 123_456_789, 1_000_000, 70_707]) {
            let text = value.to_string();
            let words = number_words(&text).unwrap();
            let found = words_in(&words);
            match value {
                1 => assert!(found.is_empty()),
                _ => assert_eq!(
                    (found.len(), found[0].digits.as_str(), found[0].end),
                    (1, text.as_str(), words.len()),
                    "{words}"
                ),
            }
        }
    }
}
