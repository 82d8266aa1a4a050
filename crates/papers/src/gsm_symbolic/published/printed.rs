//! A number as printed.
use std::fmt;

use serde::{Deserialize, Serialize};

/// A printed number: rounded, or only bounded (`< 0.001`).
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Printed {
    /// As rounded in print.
    Rounded(f64),
    /// Printed as less than this.
    Below {
        #[serde(rename = "lt")]
        bound: f64,
    },
}

impl Printed {
    /// The rounded value; none where only a bound is printed.
    pub fn value(self) -> Option<f64> {
        match self {
            Printed::Rounded(value) => Some(value),
            Printed::Below { .. } => None,
        }
    }

    /// The values of a probability that print so with this many decimals: from, to. A value that is below a bound is at
    /// least zero.
    pub fn range(self, decimals: i32) -> (f64, f64) {
        let half = 0.5 * 10f64.powi(-decimals);
        match self {
            Printed::Rounded(value) => ((value - half).max(0.0), (value + half).min(1.0)),
            Printed::Below { bound } => (0.0, bound),
        }
    }

    /// True if the number is below a threshold, whatever its further digits are.
    pub fn is_below(self, threshold: f64) -> bool {
        match self {
            Printed::Rounded(value) => value < threshold,
            Printed::Below { bound } => bound <= threshold,
        }
    }

    /// As printed, with this many decimals.
    pub fn text(self, decimals: usize) -> String {
        match self {
            Printed::Rounded(value) => format!("{value:.decimals$}"),
            Printed::Below { bound } => format!("<{bound}"),
        }
    }
}

impl From<f64> for Printed {
    fn from(value: f64) -> Self {
        Printed::Rounded(value)
    }
}

impl fmt::Display for Printed {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Printed::Rounded(value) => write!(formatter, "{value}"),
            Printed::Below { bound } => write!(formatter, "<{bound}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_and_roundings_are_ranges() {
        let read = |text: &str| serde_json::from_str::<Printed>(text).unwrap();
        assert_eq!(read("0.012"), Printed::Rounded(0.012));
        assert_eq!(read("{\"lt\": 0.001}"), Printed::Below { bound: 0.001 });
        assert_eq!(read("{\"lt\": 0.001}").range(3), (0.0, 0.001));
        assert_eq!(Printed::Rounded(1.0).range(3), (0.9995, 1.0));
        assert!(Printed::Below { bound: 0.001 }.is_below(0.05) && !Printed::Rounded(0.05).is_below(0.05));
        assert_eq!(Printed::Below { bound: 0.01 }.text(2), "<0.01");
    }
}
