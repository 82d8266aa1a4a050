//! Sizes and differences of a design in each direction, as text and JSON.
use std::fmt::Write as _;

use serde_json::json;

use earnest_stats::{Direction, Rates};

/// Size or difference in one direction; without one, the reason.
pub(super) struct OneWay {
    pub(super) direction: Direction,
    pub(super) size: Option<f64>,
    /// A share above 0.
    pub(super) effect: Option<f64>,
    pub(super) reason: Option<String>,
}

/// Number that was asked for.
#[derive(Clone, Copy)]
pub(super) enum Given {
    /// A size, of which the differences are sought.
    Size(f64),
    /// A difference, below 0 if it is a drop, of which the sizes are sought.
    Effect(f64),
}

/// Sizes and differences of a design.
pub(super) struct Answer {
    /// Questions or templates.
    pub(super) unit: &'static str,
    pub(super) given: Given,
    /// Accuracy from which the difference counts, if it is known.
    pub(super) accuracy: Option<f64>,
    /// One or two, in the order of [`Direction::BOTH`].
    pub(super) directions: Vec<OneWay>,
    /// Caveat of these numbers, a sentence.
    pub(super) note: Option<String>,
}

impl Answer {
    /// Directions with a size and a difference.
    fn found(&self) -> impl Iterator<Item = &OneWay> {
        self.directions.iter().filter(|one| one.reason.is_none())
    }

    /// True if no direction has a size and a difference.
    pub(super) fn is_empty(&self) -> bool {
        self.found().next().is_none()
    }

    /// Size that is enough in every direction that has one.
    fn size(&self) -> Option<f64> {
        match self.given {
            Given::Size(size) => Some(size),
            Given::Effect(_) => self.found().filter_map(|one| one.size).reduce(f64::max),
        }
    }

    /// Difference that is detected in every direction that has one.
    fn effect(&self) -> Option<f64> {
        match self.given {
            Given::Size(_) => self.found().filter_map(|one| one.effect).reduce(f64::max),
            Given::Effect(effect) => Some(effect),
        }
    }

    /// The direction, of those asked for, that all numbers hold for; `both` for two. Without numbers, the one asked for.
    fn held(&self) -> Option<String> {
        let mut names: Vec<String> = self.found().map(|one| one.direction.to_string()).collect();
        if names.is_empty() {
            names.extend(self.directions.iter().map(|one| one.direction.to_string()));
        }
        match names.as_slice() {
            [] => None,
            [one] => Some(one.clone()),
            _ => Some("both".to_owned()),
        }
    }

    /// Reasons for what is not there.
    pub(super) fn reasons(&self) -> Vec<&str> {
        let mut reasons: Vec<&str> = self.directions.iter().filter_map(|one| one.reason.as_deref()).collect();
        // One may hold for both directions.
        reasons.dedup();
        reasons
    }

    pub(super) fn json(&self, rates: Rates) -> serde_json::Value {
        let directions = self.directions.iter().map(
            |one| json!({ "direction": one.direction, "size": one.size, "effect": one.effect, "reason": one.reason }),
        );
        let reason = self.is_empty().then(|| self.reasons().join("; "));
        json!({
            "unit": self.unit, "size": self.size(), "effect": self.effect(), "alpha": rates.alpha, "power": rates.power,
            "direction": self.held(), "reason": reason, "directions": directions.collect::<Vec<_>>(), "note": self.note,
        })
    }

    pub(super) fn text(&self, rates: Rates) -> String {
        let what = match (&self.directions[..], self.given) {
            // A difference below 0 says its direction.
            (_, Given::Effect(effect)) if effect < 0.0 => "accuracy difference".to_owned(),
            ([one], _) => format!("{} in accuracy", one.direction),
            _ => match self.found().collect::<Vec<_>>()[..] {
                [one] => format!("{} in accuracy", one.direction),
                _ => "accuracy difference".to_owned(),
            },
        };
        let levels = format!("with power {} at level {}", rates.power, rates.alpha);
        let article = if what.starts_with('a') { "an" } else { "a" };
        let size = self.size().map_or_else(|| "Any number of".to_owned(), |size| size.to_string());
        let mut text = match self.effect().filter(|_| !self.is_empty()) {
            Some(effect) => {
                format!("{size} {} detect {article} {what} of {} {levels}\n", self.unit, points(effect))
            }
            None => format!("{size} {} detect no {what} {levels}\n", self.unit),
        };
        if let [drop, rise] = self.found().collect::<Vec<_>>()[..] {
            text += &self.beside(drop, rise);
        }
        for reason in self.reasons() {
            let mut letters = reason.chars();
            let first = letters.next().map(|first| first.to_uppercase().to_string()).unwrap_or_default();
            writeln!(text, "{first}{}", letters.as_str()).expect("writing to a String cannot fail");
        }
        if let Some(note) = &self.note {
            writeln!(text, "{note}").expect("writing to a String cannot fail");
        }
        text
    }

    /// A line with the numbers of both directions, where they differ.
    fn beside(&self, drop: &OneWay, rise: &OneWay) -> String {
        let from = self.accuracy.map_or_else(String::new, |accuracy| format!(" from {accuracy}"));
        let differ = |one: Option<f64>, other: Option<f64>| one.zip(other).filter(|(one, other)| one != other);
        match self.given {
            Given::Size(_) => differ(drop.effect, rise.effect).map_or_else(String::new, |(drop, rise)| {
                format!("A drop{from} is detected if it is {}, a rise if it is {}\n", points(drop), points(rise))
            }),
            Given::Effect(_) => differ(drop.size, rise.size).map_or_else(String::new, |(drop, rise)| {
                format!("A drop{from} needs {drop} {}, a rise {rise}\n", self.unit)
            }),
        }
    }
}

/// A difference as a fraction and in percentage points.
fn points(effect: f64) -> String {
    format!("{effect:.4} ({:.2} percentage points)", 100.0 * effect)
}
