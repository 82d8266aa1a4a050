//! Notation of numbers in training texts (section 4.2): reversed, padded with zeros, hinted with digit positions. Each part of a
//! number is treated for itself, decimals the other way round than integers.
use std::fmt::Write as _;
use std::str::FromStr;

use super::draw::DigitSource;
use super::{NupaError, Representation};

/// Parts that are written backwards.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Reversal {
    /// Numbers as they are.
    #[default]
    None,
    /// Integers, integer parts, numerators, denominators, exponents.
    Integers,
    Decimals,
    /// Every part, in its place.
    Each,
    /// The whole text, so that the parts change places too.
    Total,
}

impl Reversal {
    const NAMES: [(&'static str, Reversal); 5] = [
        ("none", Reversal::None),
        ("int", Reversal::Integers),
        ("dec", Reversal::Decimals),
        ("each", Reversal::Each),
        ("total", Reversal::Total),
    ];

    /// The name in options.
    pub fn name(self) -> &'static str {
        Self::NAMES.into_iter().find(|(_, reversal)| *reversal == self).map_or("none", |(name, _)| name)
    }
}

impl FromStr for Reversal {
    type Err = NupaError;
    fn from_str(name: &str) -> Result<Self, NupaError> {
        Self::NAMES.into_iter().find(|(known, _)| *known == name).map(|(_, reversal)| reversal).ok_or_else(|| {
            NupaError::UnknownValue {
                what: "the reversal",
                value: name.into(),
                expected: Self::NAMES.map(|(known, _)| known).join(", "),
            }
        })
    }
}

/// Position hints before the digits of operands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct IndexHints {
    /// Hints run from 0 below this; a number with more digits in a part cannot be hinted.
    pub alphabet: usize,
    /// Count integer parts from their highest digit instead of from the units. Decimals are always counted from the point, so that a
    /// hint stands for one place value.
    pub from_high_digit: bool,
}

impl Default for IndexHints {
    fn default() -> Self {
        IndexHints { alphabet: 30, from_high_digit: false }
    }
}

/// A way to write numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct NumberFormat {
    /// Parts that are written backwards.
    pub reversal: Reversal,
    /// Operands are padded, part by part, to the longer one; answers are not.
    pub zero_padding: bool,
    /// Operands carry hints from a random start that they share; answers carry none.
    pub index_hints: Option<IndexHints>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum PartKind {
    Integer,
    Decimals,
    Exponent,
}

/// A text cut into its digit runs and the signs between them.
fn cut(text: &str) -> (Vec<(PartKind, &str)>, Vec<char>) {
    let signs: Vec<char> = text.chars().filter(|c| matches!(c, '.' | '/' | 'e')).collect();
    let parts = text.split(['.', '/', 'e']).enumerate().map(|(index, digits)| {
        let kind = match index.checked_sub(1).and_then(|before| signs.get(before)) {
            Some('.') => PartKind::Decimals,
            Some('e') => PartKind::Exponent,
            _ => PartKind::Integer,
        };
        (kind, digits)
    });
    (parts.collect(), signs)
}

impl NumberFormat {
    /// True if numbers are written as they are.
    pub fn is_plain(&self) -> bool {
        *self == NumberFormat::default()
    }

    /// The operands of one question; `random` draws the common start of their hints.
    ///
    /// # Errors
    /// [`NupaError::Contradiction`] for a part with more digits than the hint alphabet.
    pub fn operands(
        &self,
        representation: Representation,
        a: &str,
        b: Option<&str>,
        random: &mut DigitSource,
    ) -> Result<(String, Option<String>), NupaError> {
        let (a_parts, signs) = cut(a);
        let b_parts = b.map(|b| cut(b).0);
        let longest: Vec<usize> = a_parts
            .iter()
            .enumerate()
            .map(|(index, (_, digits))| {
                let other = b_parts.as_ref().and_then(|parts| parts.get(index)).map_or(0, |(_, digits)| digits.len());
                digits.len().max(other)
            })
            .collect();
        let start = match self.index_hints {
            Some(hints) => {
                let needed = longest.iter().copied().max().unwrap_or(0);
                if needed > hints.alphabet {
                    return Err(NupaError::Contradiction {
                        option: "index-hints",
                        problem: format!(
                            "{} numbers of {needed} digits need more than the {} hints of the alphabet",
                            representation.name(),
                            hints.alphabet
                        ),
                    });
                }
                random.below((hints.alphabet - needed + 1) as u64) as usize
            }
            None => 0,
        };
        let write = |parts: &[(PartKind, &str)]| {
            let widths = longest.iter().map(|&width| if self.zero_padding { width } else { 0 });
            self.write(parts, widths, &signs, start)
        };
        Ok((write(&a_parts), b_parts.as_deref().map(write)))
    }

    /// An answer: reversed, but neither padded nor hinted.
    pub fn answer(&self, text: &str) -> String {
        let (parts, signs) = cut(text);
        NumberFormat { index_hints: None, ..*self }.write(&parts, std::iter::repeat(0), &signs, 0)
    }

    /// The plain text of an answer written in this format, to be scored; reversing is its own inverse.
    pub fn restore_answer(&self, text: &str) -> String {
        if self.reversal == Reversal::Total { text.chars().rev().collect() } else { self.answer(text) }
    }

    fn write(
        &self,
        parts: &[(PartKind, &str)],
        widths: impl Iterator<Item = usize>,
        signs: &[char],
        start: usize,
    ) -> String {
        let mut written: Vec<String> = parts
            .iter()
            .zip(widths)
            .map(|(&(kind, digits), width)| {
                let padded = match kind {
                    PartKind::Decimals => format!("{digits:0<width$}"),
                    _ => format!("{digits:0>width$}"),
                };
                let backwards = match self.reversal {
                    Reversal::None => false,
                    Reversal::Integers => kind != PartKind::Decimals,
                    Reversal::Decimals => kind == PartKind::Decimals,
                    Reversal::Each | Reversal::Total => true,
                };
                self.hinted(kind, &padded, backwards, start)
            })
            .collect();
        let mut signs = signs.to_vec();
        if self.reversal == Reversal::Total {
            written.reverse();
            signs.reverse();
        }
        let mut text = String::new();
        for (index, part) in written.iter().enumerate() {
            if let Some(sign) = index.checked_sub(1).and_then(|before| signs.get(before)) {
                text.push(*sign);
            }
            text.push_str(part);
        }
        text
    }

    fn hinted(&self, kind: PartKind, digits: &str, backwards: bool, start: usize) -> String {
        let Some(hints) = self.index_hints else {
            return if backwards { digits.chars().rev().collect() } else { digits.into() };
        };
        let letter = match kind {
            PartKind::Integer => 'i',
            PartKind::Decimals => 'd',
            PartKind::Exponent => 'e',
        };
        let from_left = kind == PartKind::Decimals || hints.from_high_digit;
        let hinted = |position: usize, digit: char| {
            let index = if from_left { position } else { digits.len() - 1 - position };
            let mut text = String::with_capacity(6);
            let _ = write!(text, "<{letter}{}>{digit}", start + index);
            text
        };
        let pieces = digits.char_indices().map(|(position, digit)| hinted(position, digit));
        if backwards { pieces.rev().collect() } else { pieces.collect() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(format: NumberFormat, a: &str, b: &str) -> (String, String) {
        let mut random = DigitSource::named("format");
        let (a, b) = format.operands(Representation::Float, a, Some(b), &mut random).unwrap();
        (a, b.unwrap())
    }

    fn reversed(reversal: Reversal, text: &str) -> String {
        NumberFormat { reversal, ..NumberFormat::default() }.answer(text)
    }

    #[test]
    fn reversals() {
        assert_eq!(reversed(Reversal::Integers, "12.345"), "21.345");
        assert_eq!(reversed(Reversal::Decimals, "12.345"), "12.543");
        assert_eq!(reversed(Reversal::Each, "1.25e10"), "1.52e01");
        assert_eq!(reversed(Reversal::Total, "1.25e10"), "01e52.1");
        assert_eq!(reversed(Reversal::Each, "12/35"), "21/53");
        for (_, reversal) in Reversal::NAMES {
            let format = NumberFormat { reversal, ..NumberFormat::default() };
            for text in ["123", "12.345", "7/13", "1.25e10"] {
                assert_eq!(format.restore_answer(&format.answer(text)), text);
            }
        }
    }

    #[test]
    fn padding_goes_to_the_longer_operand() {
        let format = NumberFormat { zero_padding: true, ..NumberFormat::default() };
        assert_eq!(written(format, "1.5", "123.25"), ("001.50".into(), "123.25".into()));
        let format = NumberFormat { reversal: Reversal::Each, ..format };
        assert_eq!(written(format, "1.5", "123.25"), ("100.05".into(), "321.52".into()));
        assert_eq!(format.answer("1.5"), "1.5");
    }

    #[test]
    fn hints_name_place_values() {
        let hints = IndexHints { alphabet: 3, ..IndexHints::default() };
        let format = NumberFormat { index_hints: Some(hints), ..NumberFormat::default() };
        assert_eq!(written(format, "1.5", "123.25"), ("<i0>1.<d0>5".into(), "<i2>1<i1>2<i0>3.<d0>2<d1>5".into()));
        let mut random = DigitSource::named("format");
        let error = format.operands(Representation::Integer, "1234", None, &mut random).unwrap_err();
        assert!(error.to_string().contains("4 digits"), "{error}");
        assert!("sideways".parse::<Reversal>().unwrap_err().to_string().contains("none, int, dec"));
    }
}
