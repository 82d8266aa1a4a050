//! Minimum detectable effects of two conditions that every template has.
use serde::Serialize;

use super::{Direction, PowerError, Rates, require};

/// Number of effects that are tried, evenly from 0 to the largest possible one.
const STEPS: u32 = 4096;

/// Most templates that are worth naming.
const MOST: f64 = 1e15;

/// Design in which one system answers, for every template, some questions under each of two conditions (1 original and 50 variants in
/// the GSM-Symbolic study).
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct ClusteredDesign {
    /// Accuracy to expect in the first condition.
    pub accuracy: f64,
    /// Correlation of two answers of a template, over both conditions.
    pub intracluster: f64,
    /// Questions of a template in the first condition.
    pub first_size: f64,
    pub second_size: f64,
}

impl ClusteredDesign {
    fn check(&self, rates: Rates) -> Result<(), PowerError> {
        let accuracy = self.accuracy;
        require("accuracy", accuracy, accuracy > 0.0 && accuracy < 1.0, "a number between 0 and 1")?;
        let correlation = self.intracluster;
        require("intracluster correlation", correlation, (0.0..1.0).contains(&correlation), "from 0 to below 1")?;
        let is_size = |size: f64| size >= 1.0 && size.is_finite();
        require("first cluster size", self.first_size, is_size(self.first_size), "at least 1")?;
        require("second cluster size", self.second_size, is_size(self.second_size), "at least 1")?;
        rates.check()
    }

    /// Variance of a template's own difference, if the second condition's accuracy lies `effect` on a side of the first's. What the
    /// template adds to both conditions cancels but for their different spread.
    fn variance(&self, effect: f64, direction: Direction) -> f64 {
        let spread = |accuracy: f64| accuracy * (1.0 - accuracy);
        let (first, second) = (spread(self.accuracy), spread(direction.shifted(self.accuracy, effect)));
        let own = (1.0 - self.intracluster) * (first / self.first_size + second / self.second_size);
        own + self.intracluster * (first.sqrt() - second.sqrt()).powi(2)
    }

    /// Smallest accuracy difference on one side that this many templates detect. None if they detect no possible one, not even that
    /// to 0 or to 1. It is looked for in steps of a 4096th of the largest, because the template's part of the variance grows where the
    /// second accuracy comes close to 0 or 1: the largest difference is not always the easiest to detect.
    ///
    /// # Errors
    /// A number is outside its range.
    pub fn detectable_effect(
        &self,
        clusters: f64,
        direction: Direction,
        rates: Rates,
    ) -> Result<Option<f64>, PowerError> {
        self.check(rates)?;
        require("clusters", clusters, clusters >= 2.0 && clusters.is_finite(), "at least 2")?;
        let (level, power) = rates.quantiles(Some(clusters))?;
        let detects = |effect: f64| effect >= (level + power) * (self.variance(effect, direction) / clusters).sqrt();
        let room = direction.room(self.accuracy);
        let tried = |step: u32| room * f64::from(step) / f64::from(STEPS);
        let Some(step) = (1..=STEPS).find(|step| detects(tried(*step))) else { return Ok(None) };
        let (mut low, mut high) = (tried(step - 1), tried(step));
        for _ in 0..60 {
            let middle = 0.5 * (low + high);
            if detects(middle) { high = middle } else { low = middle }
        }
        Ok(Some(high))
    }

    /// Templates needed to detect an accuracy difference on one side, a whole number. The effect is a size, above 0.
    ///
    /// # Errors
    /// A number is outside its range, accuracies have no room for the difference, or no number of templates worth naming detects it.
    pub fn required_clusters(&self, effect: f64, direction: Direction, rates: Rates) -> Result<f64, PowerError> {
        self.check(rates)?;
        require("effect", effect, effect > 0.0 && effect < 1.0, "not 0, between -1 and 1")?;
        direction.check(self.accuracy, effect)?;
        let variance = self.variance(effect, direction);
        let detects = |clusters: f64| -> Result<bool, PowerError> {
            let (level, power) = rates.quantiles(Some(clusters))?;
            Ok(effect >= (level + power) * (variance / clusters).sqrt())
        };
        let (mut low, mut high) = (1.0, 2.0);
        while !detects(high)? {
            (low, high) = (high, 2.0 * high);
            require("effect", effect, high <= MOST, "one that fewer than 10^15 templates detect")?;
        }
        while high - low > 1.0 {
            let middle = (0.5 * (low + high)).floor();
            if detects(middle)? { high = middle } else { low = middle }
        }
        Ok(high)
    }
}

#[cfg(test)]
mod tests {
    use super::Direction::{Drop, Rise};
    use super::*;

    fn study(accuracy: f64, second_size: f64) -> ClusteredDesign {
        ClusteredDesign { accuracy, intracluster: 0.1, first_size: 1.0, second_size }
    }

    #[test]
    fn the_effect_that_a_number_detects_needs_that_number() {
        let design = ClusteredDesign { accuracy: 0.5, intracluster: 0.6, first_size: 1.0, second_size: 50.0 };
        for (clusters, direction) in [(100.0, Drop), (100.0, Rise), (12.0, Rise)] {
            let effect = design.detectable_effect(clusters, direction, Rates::default()).unwrap().unwrap();
            let needed = design.required_clusters(effect * (1.0 + 1e-12), direction, Rates::default()).unwrap();
            assert_eq!(needed, clusters, "{direction} of {effect}");
        }
    }

    // Python with scipy.stats.t and numpy, K templates, q = t.ppf(.975, K-1) + t.ppf(.8, K-1): the smallest of 2,000,000 effects e, evenly
    // up to the largest possible one, with e >= q sqrt(v(e) / K), where v(e) is the sum of (1 - r) (p (1 - p) / n) over both conditions
    // and r (sqrt(p1 (1 - p1)) - sqrt(p2 (1 - p2)))^2; none where no e is enough.
    #[test]
    fn detectable_drops_and_rises_are_those_of_a_search_in_python() {
        let rates = Rates::default();
        for (accuracy, second_size, clusters, drop, rise) in [
            (0.02, 10.0, 100.0, None, Some(0.043_946)),
            (0.02, 10.0, 600.0, Some(0.015_615), Some(0.016_619)),
            (0.02, 50.0, 100.0, None, Some(0.039_597)),
            (0.04, 10.0, 100.0, None, Some(0.059_119)),
            (0.3, 10.0, 100.0, Some(0.127_327), Some(0.130_032)),
            (0.5, 50.0, 600.0, Some(0.054_876), Some(0.054_876)),
            (0.98, 50.0, 100.0, Some(0.039_597), None),
        ] {
            for (direction, expected) in [(Drop, drop), (Rise, rise)] {
                let found = study(accuracy, second_size).detectable_effect(clusters, direction, rates).unwrap();
                assert_eq!(found.is_some(), expected.is_some(), "{direction} from {accuracy}");
                if let (Some(found), Some(expected)) = (found, expected) {
                    assert!((found - expected).abs() < 2e-6, "{direction} from {accuracy}: {found}");
                    assert!(found <= direction.room(accuracy));
                }
            }
        }
        // A drop from 30 % to 9 % is detected, one to 0 is not: there the templates' differences vary as their first accuracies do.
        let steep = ClusteredDesign { accuracy: 0.3, intracluster: 0.6, first_size: 1.0, second_size: 50.0 };
        let found = steep.detectable_effect(20.0, Drop, rates).unwrap().unwrap();
        assert!((found - 0.211_996).abs() < 2e-6, "{found}");
        assert!(steep.required_clusters(0.3, Drop, rates).unwrap() > 20.0);
    }

    // The same formula in Python, for K = 2, 3, ... until it holds.
    #[test]
    fn needed_templates_are_those_of_a_count_in_python() {
        let needed = |accuracy, second_size, effect, direction| {
            study(accuracy, second_size).required_clusters(effect, direction, Rates::default()).unwrap()
        };
        assert_eq!(needed(0.02, 10.0, 0.02, Drop), 387.0);
        assert_eq!(needed(0.02, 10.0, 0.01, Drop), 1470.0);
        assert_eq!(needed(0.02, 10.0, 0.02, Rise), 423.0);
        assert_eq!(needed(0.04, 50.0, 0.03, Drop), 314.0);
        let screen = ClusteredDesign { accuracy: 0.6, intracluster: 0.3, first_size: 1.0, second_size: 50.0 };
        assert_eq!(screen.required_clusters(0.05, Drop, Rates::default()).unwrap(), 541.0);
        assert_eq!(screen.required_clusters(0.05, Rise, Rates::default()).unwrap(), 540.0);
    }

    #[test]
    fn a_drop_is_the_rise_of_wrong_answers() {
        for accuracy in [0.02, 0.3, 0.5] {
            let (design, wrong) = (study(accuracy, 20.0), study(1.0 - accuracy, 20.0));
            let found = |design: ClusteredDesign, direction| {
                design.detectable_effect(300.0, direction, Rates::default()).unwrap()
            };
            for (one, other) in [(Drop, Rise), (Rise, Drop)] {
                match (found(design, one), found(wrong, other)) {
                    (Some(one), Some(other)) => assert!((one - other).abs() < 1e-12, "{accuracy}: {one} {other}"),
                    (one, other) => assert_eq!(one, other, "{accuracy}"),
                }
            }
        }
    }

    #[test]
    fn differences_without_room_are_refused() {
        let needed =
            |accuracy, effect, direction| study(accuracy, 10.0).required_clusters(effect, direction, Rates::default());
        let message = needed(0.02, 0.044, Drop).unwrap_err().to_string();
        assert_eq!(message, "a drop of 0.044 is impossible: no drop from an accuracy of 0.02 exceeds 0.02");
        let message = needed(0.98, 0.044, Rise).unwrap_err().to_string();
        assert_eq!(message, "a rise of 0.044 is impossible: no rise from an accuracy of 0.98 exceeds 0.02");
        // All the room there is, which 1 - 0.9 misses by rounding.
        assert!(needed(0.9, 0.1, Rise).is_ok() && needed(0.1, 0.1, Drop).is_ok());
        for effect in [0.0, -0.1, f64::NAN, 1e-300] {
            assert!(matches!(needed(0.5, effect, Drop), Err(PowerError::Range { name: "effect", .. })), "{effect}");
        }
    }
}
