//! Lists of lengths as users write them.
use std::ops::RangeInclusive;

use super::registry::OptionError;

/// `all`, `reference`, or a list such as `1..3` or `1-3` (both inclusive), `5` or `1,2,5..7`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LengthList {
    /// Every length that the suite has.
    All,
    /// Those that the paper's authors test.
    Reference,
    /// These, ascending and without repeats.
    Chosen(Vec<usize>),
}

/// Longest list that is taken, so that a slip such as `1..1000000000` is an error instead of a memory problem.
const MOST: usize = 100_000;

/// Reason for a text not being a list of lengths.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LengthListError {
    #[error("'{0}' is neither a number nor a range like 1..3 or 1-3")]
    NotARange(String),
    #[error("0 is not a length: lengths begin at 1")]
    Zero,
    #[error("{part} runs backwards: write {to}..{from}")]
    Backwards { part: String, from: usize, to: usize },
    #[error("{part} has more than {MOST} values")]
    TooLong { part: String },
}

/// Checks a list of lengths.
///
/// # Errors
/// [`OptionError`] with the reason of a [`LengthListError`].
pub fn check_lengths(text: &str) -> Result<(), OptionError> {
    text.parse::<LengthList>().map(drop).map_err(OptionError::usage)
}

impl std::str::FromStr for LengthList {
    type Err = LengthListError;

    fn from_str(text: &str) -> Result<Self, LengthListError> {
        match text.trim() {
            "all" => return Ok(LengthList::All),
            "reference" => return Ok(LengthList::Reference),
            _ => {}
        }
        let mut lengths = Vec::new();
        for part in text.split(',') {
            let range = range(part.trim())?;
            if range.end() - range.start() >= MOST {
                return Err(LengthListError::TooLong { part: part.to_owned() });
            }
            lengths.extend(range);
        }
        lengths.sort_unstable();
        lengths.dedup();
        Ok(LengthList::Chosen(lengths))
    }
}

fn range(part: &str) -> Result<RangeInclusive<usize>, LengthListError> {
    let number = |text: &str| {
        let value: usize = text.trim().parse().map_err(|_| LengthListError::NotARange(part.to_owned()))?;
        if value == 0 { Err(LengthListError::Zero) } else { Ok(value) }
    };
    let Some((from, to)) = part.split_once("..").or_else(|| part.split_once('-')) else {
        return number(part).map(|only| only..=only);
    };
    let (from, to) = (number(from)?, number(to.strip_prefix('=').unwrap_or(to))?);
    if from > to {
        return Err(LengthListError::Backwards { part: part.to_owned(), from, to });
    }
    Ok(from..=to)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_inclusive() {
        let lengths = |text: &str| {
            text.parse::<LengthList>().map(|lengths| match lengths {
                LengthList::Chosen(lengths) => lengths,
                LengthList::All | LengthList::Reference => Vec::new(),
            })
        };
        assert_eq!(lengths("1-3,50"), Ok(vec![1, 2, 3, 50]));
        assert_eq!(lengths("1..3"), Ok(vec![1, 2, 3]));
        assert_eq!(lengths("1..=3"), Ok(vec![1, 2, 3]));
        assert_eq!(lengths("5"), Ok(vec![5]));
        assert_eq!(lengths("5..7, 1,2,6"), Ok(vec![1, 2, 5, 6, 7]));
        assert_eq!(lengths("100..100"), Ok(vec![100]));
        for wrong in [
            "",
            "0",
            "0..2",
            "3..1",
            "a",
            "1..",
            "..3",
            "3-1",
            "1-",
            "-1",
            "1-2-3",
            "1..2..3",
            "1..99999999999",
            "1,,2",
            "all,1",
        ] {
            assert!(lengths(wrong).is_err(), "{wrong}");
        }
        assert_eq!("all".parse(), Ok(LengthList::All));
        assert_eq!("reference".parse(), Ok(LengthList::Reference));
    }
}
