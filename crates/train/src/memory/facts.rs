//! Facts to memorise: digits of π and e by position, and the multiplication table.
use std::fmt;
use std::str::FromStr;

use super::network::{Fact, Shape};
use crate::memorise::{Constant, first_digits};

/// Source of facts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// Digits of a constant by position. The input has one group of ten per digit of the position; positions count from 0,
    /// the digit before the point is the first.
    Digits(Constant),
    /// Products of 1 to 9 by 1 to 9. The input has one group of nine per factor, the output one group for the tens (0 to 8) and one for
    /// the units.
    Table,
}

/// Name of the multiplication table in files.
const TABLE: &str = "table";

/// Factors of the table.
const FACTORS: usize = 9;

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Source::Digits(constant) => f.pad(&constant.to_string()),
            Source::Table => f.pad(TABLE),
        }
    }
}

/// Unknown name of a [`Source`].
#[derive(Debug, thiserror::Error)]
#[error("unknown source {0:?}; choose pi, e or table")]
pub struct UnknownSource(String);

impl FromStr for Source {
    type Err = UnknownSource;

    fn from_str(name: &str) -> Result<Self, UnknownSource> {
        match name {
            TABLE => Ok(Source::Table),
            _ => name.parse().map(Source::Digits).map_err(|_| UnknownSource(name.to_owned())),
        }
    }
}

impl Source {
    /// Returns the number of facts, of which a constant has `digits`.
    pub fn facts(self, digits: usize) -> usize {
        match self {
            Source::Digits(_) => digits,
            Source::Table => FACTORS * FACTORS,
        }
    }

    /// Returns the classes of each output group.
    fn outputs(self) -> Vec<usize> {
        match self {
            Source::Digits(_) => vec![10],
            Source::Table => vec![9, 10],
        }
    }

    /// Returns the number of inputs, and how many are 1.
    fn inputs(self, digits: usize) -> (usize, usize) {
        match self {
            Source::Digits(_) => (10 * places(digits), places(digits)),
            Source::Table => (2 * FACTORS, 2),
        }
    }
}

/// Number of digits of the last position.
fn places(digits: usize) -> usize {
    digits.saturating_sub(1).to_string().len()
}

/// Returns the shape of a network for these sources. Each has its own inputs, side by side (Arithmetic-Bench, A.5); all share the
/// hidden layers and the outputs, which must be the same.
pub(super) fn shape(sources: &[Source], digits: usize, width: usize, hidden_layers: usize) -> Shape {
    let sizes = || sources.iter().map(|source| source.inputs(digits));
    Shape {
        inputs: sizes().map(|(inputs, _)| inputs).sum(),
        active: sizes().map(|(_, active)| active).max().unwrap_or_default(),
        width,
        hidden_layers,
        outputs: sources.first().map(|source| source.outputs()).unwrap_or_default(),
    }
}

/// Returns the facts of `source`, one of the sources of a network.
pub(super) fn facts(source: Source, sources: &[Source], digits: usize) -> Vec<Fact> {
    let before = sources.iter().take_while(|other| **other != source);
    let first: usize = before.map(|other| other.inputs(digits).0).sum();
    match source {
        Source::Digits(constant) => {
            let all = first_digits(constant, digits);
            let width = places(digits);
            all.iter()
                .enumerate()
                .map(|(position, &digit)| {
                    let text = format!("{position:0width$}");
                    let rows =
                        text.bytes().enumerate().map(|(index, byte)| first + 10 * index + usize::from(byte - b'0'));
                    Fact { rows: rows.collect(), classes: vec![usize::from(digit)] }
                })
                .collect()
        }
        Source::Table => (0..FACTORS * FACTORS)
            .map(|cell| {
                let (a, b) = (cell / FACTORS, cell % FACTORS);
                let product = (a + 1) * (b + 1);
                Fact { rows: vec![first + a, first + FACTORS + b], classes: vec![product / 10, product % 10] }
            })
            .collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inputs_are_side_by_side() {
        let (pi, e) = (Source::Digits(Constant::Pi), Source::Digits(Constant::E));
        let sources = [pi, e];
        assert_eq!(shape(&sources, 1000, 8, 2).inputs, 60);
        assert_eq!(shape(&[pi], 1001, 8, 2).inputs, 40);
        assert_eq!(facts(pi, &sources, 1000)[25], Fact { rows: vec![0, 12, 25], classes: vec![3] });
        assert_eq!(facts(e, &sources, 1000)[1], Fact { rows: vec![30, 40, 51], classes: vec![7] });
        for source in sources {
            assert_eq!(facts(source, &sources, 1000).len(), 1000);
        }
    }

    #[test]
    fn table_has_all_products() {
        let table = facts(Source::Table, &[Source::Table], 0);
        assert_eq!(table.len(), 81);
        assert_eq!(table[6 * 9 + 7], Fact { rows: vec![6, 9 + 7], classes: vec![5, 6] });
        assert!(table.iter().all(|fact| fact.classes[0] < 9 && fact.rows[0] < 9 && (9..18).contains(&fact.rows[1])));
        assert_eq!("table".parse::<Source>().unwrap(), Source::Table);
        assert!("phi".parse::<Source>().unwrap_err().to_string().contains("phi"));
    }
}
