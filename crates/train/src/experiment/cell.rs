//! One training of a grid: what is varied, as it is written in files, and the settings that it stands for.
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::{DigitGroups, FormatSettings, PositionEncoding, Size, TokenizerSettings, TrainSettings};
use earnest_tasks::suite::nupa::Reversal;

/// Values of the axes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CellChoice {
    /// The task, or several joined by commas.
    pub task: String,
    /// Digits of a token and how they are cut: `1`, `3`, `3-random`, `3-left-to-right`, `places`.
    pub tokenizer: String,
    /// `rope`, `nope`, `alibi`.
    pub position: String,
    /// `plain`, or `reversed`, `padded` and `hinted` joined by `+`.
    pub format: String,
    /// A named size or five numbers.
    pub size: String,
    /// The grid's label, where it needs one to be told from another.
    pub label: String,
}

impl fmt::Display for CellChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.label.is_empty() {
            write!(f, "{}-", self.label)?;
        }
        let task = self.task.replace("arithmetic-bench:", "bench_").replace("memorise:", "memorise_").replace(',', "_");
        let digits = if self.tokenizer.starts_with(|c: char| c.is_ascii_digit()) { "digits" } else { "" };
        let size = self.size.replace(',', "x");
        write!(f, "{task}-{digits}{}-{}-{}-{size}", self.tokenizer, self.position, self.format)
    }
}

/// A training of the grid.
#[derive(Debug, Clone, PartialEq)]
pub struct GridCell {
    /// What is varied.
    pub choice: CellChoice,
    /// The seed.
    pub seed: u64,
    /// Everything.
    pub settings: TrainSettings,
    /// The grids that ask for it, by name.
    pub grids: Vec<String>,
}

impl GridCell {
    /// The name of its folder.
    pub fn name(&self) -> String {
        format!("{}-seed{}", self.choice, self.seed)
    }
}

/// A tokenizer as files write it.
pub(super) fn tokenizer(text: &str, words: usize) -> Result<TokenizerSettings, String> {
    let wrong = || {
        format!(
            "{text:?} is no tokenizer; write 1, 2 or 3, 2-random or 3-random, 2-left-to-right or 3-left-to-right, or places"
        )
    };
    if text == "places" {
        return Ok(TokenizerSettings { digits: 1, groups: DigitGroups::Places, words });
    }
    let (digits, groups) = match text.split_once('-') {
        None => (text, DigitGroups::RightAligned),
        Some((digits, "random")) => (digits, DigitGroups::Random),
        Some((digits, "left-to-right")) => (digits, DigitGroups::LeftToRight),
        Some(_) => return Err(wrong()),
    };
    match digits.parse() {
        // Single digits are cut in one way only.
        Ok(1) if groups != DigitGroups::RightAligned => Err(wrong()),
        Ok(digits @ 1..=3) => Ok(TokenizerSettings { digits, groups, words }),
        _ => Err(wrong()),
    }
}

/// A positional encoding as files write it.
pub(super) fn position(text: &str) -> Result<PositionEncoding, String> {
    match text {
        "rope" => Ok(PositionEncoding::Rope),
        "nope" => Ok(PositionEncoding::Nope),
        "alibi" => Ok(PositionEncoding::Alibi),
        _ => Err(format!("{text:?} is no positional encoding; write rope, nope or alibi")),
    }
}

/// A size as files write it.
pub(super) fn size(text: &str) -> Result<Size, String> {
    if let Some(size) = Size::named(text) {
        return Ok(size);
    }
    let numbers: Option<Vec<usize>> = text.split(',').map(|part| part.trim().parse().ok()).collect();
    let Some([layers, hidden, intermediate, heads, kv_heads]) = numbers.as_deref() else {
        let names: Vec<&str> = Size::NAMED.iter().map(|(name, _)| *name).collect();
        return Err(format!("{text:?} is no size; write one of {}, or five numbers", names.join(", ")));
    };
    let size =
        Size { layers: *layers, hidden: *hidden, intermediate: *intermediate, heads: *heads, kv_heads: *kv_heads };
    size.check().map_err(|error| error.to_string())?;
    Ok(size)
}

/// How numbers are written, as files write it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NumberStyle(pub FormatSettings);

impl FromStr for NumberStyle {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || {
            format!(
                "{text:?} is no format; write plain, or join with +: one of reversed, reversed-decimals, reversed-each and \
                 reversed-total; padded; hinted"
            )
        };
        let mut style = FormatSettings::default();
        if text == "plain" {
            return Ok(NumberStyle(style));
        }
        let mut seen = [false; 3];
        for part in text.split('+') {
            let place = match part {
                "padded" => {
                    style.zero_padding = true;
                    1
                }
                "hinted" => {
                    style.index_hints = Some(earnest_tasks::suite::nupa::IndexHints::default().alphabet);
                    2
                }
                _ => {
                    let reversal = match part {
                        "reversed" => Reversal::Integers,
                        "reversed-decimals" => Reversal::Decimals,
                        "reversed-each" => Reversal::Each,
                        "reversed-total" => Reversal::Total,
                        _ => return Err(wrong()),
                    };
                    style.reversal = reversal.name().to_owned();
                    0
                }
            };
            if std::mem::replace(&mut seen[place], true) {
                return Err(wrong());
            }
        }
        Ok(NumberStyle(style))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn axes_as_they_are_written() {
        assert_eq!(tokenizer("3-random", 9).unwrap().groups, DigitGroups::Random);
        for wrong in ["0", "4", "1-random", "3-sideways", "", "one"] {
            assert!(tokenizer(wrong, 9).unwrap_err().contains("3-left-to-right"), "{wrong}");
        }
        assert!(position("learned").is_err() && position("nope").is_ok());
        assert_eq!(size("2,64,256,4,2").unwrap().hidden, 64);
        for wrong in ["2,64,256,4", "2,64,256,4,x", "huge", "2,64,256,3,2"] {
            assert!(size(wrong).is_err(), "{wrong}");
        }
        let style = "reversed+padded".parse::<NumberStyle>().unwrap().0;
        assert_eq!((style.reversal.as_str(), style.zero_padding, style.index_hints), ("int", true, None));
        assert_eq!("hinted".parse::<NumberStyle>().unwrap().0.index_hints, Some(30));
        for wrong in ["plain+padded", "padded+padded", "reversed+reversed-each", "", "backwards"] {
            assert!(wrong.parse::<NumberStyle>().is_err(), "{wrong}");
        }
    }
}
