//! Place-value marks: a mark before each digit of a number, so that the 3 of 35 and the 3 of 350 are different tokens.
//!
//! In `tokenizer.json` this is [`normalizer`], 120 replacements by regular expressions, so that other programs tokenise the
//! same way. Running them takes longer than a step of a small model; [`mark`] does the same in one pass.
use serde_json::{Value, json};

/// Number of places with marks; digits from 10^12 on have none.
pub const PLACES: usize = 12;

/// First mark: the mark of place p is the byte `MARKS + p`, a control character that texts do not contain.
pub const MARKS: u8 = 0x0E;

/// Returns the normaliser that writes the mark of its place before each digit, highest place first, so that the digits after it
/// are still adjacent. It has one rule per place and digit, because the library misaligns positions after an empty match.
pub fn normalizer() -> Value {
    let marks = format!(r"\x{MARKS:02x}-\x{:02x}", usize::from(MARKS) + PLACES - 1);
    let mark = |(place, digit): (usize, usize)| {
        json!({
            "type": "Replace",
            "pattern": {"Regex": format!(r"{digit}(?=[0-9]{{{place}}}(?![0-9{marks}]))")},
            "content": format!("{}{digit}", char::from(MARKS + place as u8)),
        })
    };
    let all = (0..PLACES).rev().flat_map(|place| (0..10).map(move |digit| (place, digit)));
    json!({"type": "Sequence", "normalizers": all.map(mark).collect::<Vec<_>>()})
}

/// Returns a text as [`normalizer`] normalises it.
pub fn mark(text: &str) -> String {
    let mut marked = String::with_capacity(2 * text.len());
    let mut rest = text;
    while let Some(begin) = rest.find(|c: char| c.is_ascii_digit()) {
        let (words, digits) = rest.split_at(begin);
        let run = digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len());
        let (digits, after) = digits.split_at(run);
        marked.push_str(words);
        rest = after;
        // As in the expressions, digits before a mark in the text itself are not marked.
        if after.bytes().next().is_some_and(|next| (MARKS..MARKS + PLACES as u8).contains(&next)) {
            marked.push_str(digits);
            continue;
        }
        for (i, digit) in digits.chars().enumerate() {
            let place = run - 1 - i;
            if place < PLACES {
                marked.push(char::from(MARKS + place as u8));
            }
            marked.push(digit);
        }
    }
    marked + rest
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokenizers::{NormalizedString, Normalizer, NormalizerWrapper};

    #[test]
    fn one_walk_marks_what_the_regular_expressions_mark() {
        let slow: NormalizerWrapper = serde_json::from_value(normalizer()).unwrap();
        let agree = |text: &str| {
            let mut expected = NormalizedString::from(text);
            slow.normalize(&mut expected).unwrap();
            assert_eq!(mark(text), expected.get(), "{text:?}");
        };
        for text in [
            "",
            "7",
            "35 350",
            "0.5e10",
            "数12é34",
            "1234567890123456",
            "12\u{e}3",
            "\u{19}4 5\u{1a}6",
            "12\n34\t5",
            "١٢ 12",
        ] {
            agree(text);
        }
        // Digits, marks and other characters in any order.
        let letters: Vec<char> = "0123456789012345678901234567890123456789 .a\u{e}\u{19}é".chars().collect();
        let mut state = 7u64;
        for _ in 0..300 {
            let mut text = String::new();
            for _ in 0..40 {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                text.push(letters[(state >> 33) as usize % letters.len()]);
            }
            agree(&text);
        }
    }
}
