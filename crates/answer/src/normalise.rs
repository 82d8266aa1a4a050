//! One spelling for minus signs and digit groups.

/// Text with ASCII minus signs and without digit-group separators: the input of the scorers that look at whole numbers.
///
/// * U+2212 (minus), U+2013 (en dash), U+FE63 and U+FF0D (small and full-width hyphen-minus) become `-`.
/// * A separator (`,` `{,}` `,\!` `\,` `\!` `_` `'` U+2009 U+202F U+00A0) is deleted only where a digit stands before it
///   and exactly three digits behind it, so that `1,23`, `f(1,2)` and `1, 234` stay as they are.
///
/// The wording of the rule is ours: the paper (Arithmetic-Bench, section 3.3) only says that separators are removed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Normalised(String);

/// Longest first, so that `,\!` is not taken for `,`.
const SEPARATORS: [&str; 10] = ["{,}", ",\\!", "\\,", "\\!", ",", "_", "'", "\u{2009}", "\u{202f}", "\u{a0}"];

impl Normalised {
    /// Normalises a text, in one pass.
    pub fn new(text: &str) -> Self {
        let mut out = String::with_capacity(text.len());
        let mut after_digit = false;
        let mut rest = text;
        while let Some(c) = rest.chars().next() {
            if after_digit && let Some(length) = separator(rest) {
                // What follows is a digit, and what was written last is one too: `after_digit` stays true.
                rest = &rest[length..];
                continue;
            }
            out.push(match c {
                '\u{2212}' | '\u{2013}' | '\u{fe63}' | '\u{ff0d}' => '-',
                c => c,
            });
            after_digit = c.is_ascii_digit();
            rest = &rest[c.len_utf8()..];
        }
        Normalised(out)
    }

    /// The normalised text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Length in bytes of the separator at the beginning of `rest`, if a group of exactly three digits follows it.
fn separator(rest: &str) -> Option<usize> {
    SEPARATORS.iter().find_map(|separator| {
        let group = rest.strip_prefix(separator)?.as_bytes();
        let three = group.len() >= 3 && group[..3].iter().all(u8::is_ascii_digit);
        (three && !group.get(3).is_some_and(u8::is_ascii_digit)).then_some(separator.len())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn normalised(text: &str) -> String {
        Normalised::new(text).as_str().to_owned()
    }

    #[test]
    fn every_separator_joins_groups_of_three() {
        for separator in SEPARATORS {
            assert_eq!(normalised(&format!("1{separator}234{separator}567")), "1234567", "{separator:?}");
        }
    }

    #[test]
    fn separators_stay_where_no_group_of_exactly_three_follows() {
        for text in ["1,23", "1,2345", "f(1,2)", "1, 234", ",234", "a,234", "1,,234", "1 234", "1,\\,234", "12,", "1,"]
        {
            assert_eq!(normalised(text), text);
        }
        assert_eq!(normalised("1,234,5678"), "1234,5678");
    }

    #[test]
    fn minus_glyphs_become_ascii() {
        assert_eq!(normalised("\u{2212}5 \u{2013}6 \u{fe63}7 \u{ff0d}8 \u{2014}9"), "-5 -6 -7 -8 \u{2014}9");
    }

    #[test]
    fn other_characters_survive() {
        assert_eq!(normalised("é1,234ü 日本_123"), "é1234ü 日本_123");
        assert_eq!(normalised(""), "");
    }
}
