//! Trainings of a grid: values of the axes, as experiment files write them, and the resulting settings.
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::error::AxisError;
use crate::{DigitGroups, FormatSettings, PositionEncoding, Size, TokenizerSettings, TrainSettings};
use earnest_tasks::suite::nupa::Reversal;

/// Values of a grid's axes for one training.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CellChoice {
    /// Task, or several joined by commas.
    pub task: String,
    /// Digits per token and their grouping: `1`, `3`, `3-random`, `3-left-to-right`, `places`.
    pub tokenizer: String,
    /// Positional encoding: `rope`, `nope`, `alibi`, `alibi-reversed`.
    pub position: String,
    /// Number format: `plain`, or `reversed`, `padded` and `hinted` joined by `+`.
    pub format: String,
    /// Named size or five numbers.
    pub size: String,
    /// Label of the grid, which distinguishes trainings that differ in other settings; may be empty.
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

/// Training of a grid.
#[derive(Debug, Clone, PartialEq)]
pub struct GridCell {
    /// Values of the axes.
    pub choice: CellChoice,
    pub seed: u64,
    /// Complete settings.
    pub settings: TrainSettings,
    /// Names of the grids that contain it.
    pub grids: Vec<String>,
}

impl GridCell {
    /// Returns the name of the training's folder.
    pub fn name(&self) -> String {
        format!("{}-seed{}", self.choice, self.seed)
    }
}

/// Parses a tokenizer.
pub(super) fn tokenizer(text: &str, words: usize) -> Result<TokenizerSettings, AxisError> {
    let unknown = || AxisError::Tokenizer(text.to_owned());
    if text == "places" {
        return Ok(TokenizerSettings { digits: 1, groups: DigitGroups::Places, words });
    }
    let (digits, groups) = match text.split_once('-') {
        None => (text, DigitGroups::RightAligned),
        Some((digits, "random")) => (digits, DigitGroups::Random),
        Some((digits, "left-to-right")) => (digits, DigitGroups::LeftToRight),
        Some(_) => return Err(unknown()),
    };
    match digits.parse() {
        // Single digits have only one grouping.
        Ok(1) if groups != DigitGroups::RightAligned => Err(unknown()),
        Ok(digits @ 1..=3) => Ok(TokenizerSettings { digits, groups, words }),
        _ => Err(unknown()),
    }
}

/// Parses a positional encoding.
pub(super) fn position(text: &str) -> Result<PositionEncoding, AxisError> {
    match text {
        "rope" => Ok(PositionEncoding::Rope),
        "nope" => Ok(PositionEncoding::Nope),
        "alibi" => Ok(PositionEncoding::Alibi),
        "alibi-reversed" => Ok(PositionEncoding::AlibiReversed),
        _ => Err(AxisError::Position(text.to_owned())),
    }
}

/// Parses a size.
pub(super) fn size(text: &str) -> Result<Size, AxisError> {
    let size = Size::parse(text).ok_or_else(|| AxisError::Size(text.to_owned()))?;
    size.check()?;
    Ok(size)
}

/// Number format, as experiment files write it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NumberStyle(pub FormatSettings);

impl FromStr for NumberStyle {
    type Err = AxisError;

    fn from_str(text: &str) -> Result<Self, AxisError> {
        let unknown = || AxisError::Format(text.to_owned());
        let mut style = FormatSettings::default();
        if text == "plain" {
            return Ok(NumberStyle(style));
        }
        let mut seen = [false; 3];
        for part in text.split('+') {
            let slot = match part {
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
                        _ => return Err(unknown()),
                    };
                    style.reversal = reversal.name().to_owned();
                    0
                }
            };
            if std::mem::replace(&mut seen[slot], true) {
                return Err(unknown());
            }
        }
        Ok(NumberStyle(style))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn axis_values_parse() {
        assert_eq!(tokenizer("3-random", 9).unwrap().groups, DigitGroups::Random);
        for wrong in ["0", "4", "1-random", "3-sideways", "", "one"] {
            assert!(tokenizer(wrong, 9).unwrap_err().to_string().contains("3-left-to-right"), "{wrong}");
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
