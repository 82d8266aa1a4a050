//! Minimum detectable effects and sample sizes, before a run.
//!
//! Two-sided: an effect is detected with probability `power` when it is `q(1 - alpha / 2) + q(power)` standard errors. The
//! quantiles are those of the test that is made afterwards: Student's t with one degree of freedom less than there are
//! clusters, or the normal distribution where every question is its own cluster. Effects are differences of accuracy, as
//! fractions (0.05 is five percentage points).
mod clustered;

use serde::Serialize;
use thiserror::Error;

pub use self::clustered::ClusteredDesign;
use super::distribution::{normal_quantile, student_quantile};

/// Reason that a design is impossible.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum PowerError {
    /// A number is outside its range.
    #[error("{name} is {}, expected {expected}", rounded(*value))]
    Range { name: &'static str, value: f64, expected: &'static str },
    /// A difference is larger than accuracies from 0 to 1 have room for.
    #[error("a {direction} of {effect} is impossible: no {direction} from an accuracy of {accuracy} exceeds {room}")]
    Room { direction: Direction, accuracy: f64, effect: f64, room: f64 },
}

/// A number without the digits of rounding, such as those of 0.02 - 0.03.
fn rounded(value: f64) -> f64 {
    let rounded = (1e12 * value).round() / 1e12;
    if rounded == 0.0 || !rounded.is_finite() { value } else { rounded }
}

/// Side on which the second accuracy lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Direction {
    /// Below the first.
    Drop,
    /// Above the first.
    Rise,
}

impl Direction {
    /// Both sides.
    pub const BOTH: [Direction; 2] = [Direction::Drop, Direction::Rise];

    /// Side of a signed difference; a rise if it is 0.
    pub fn of(effect: f64) -> Direction {
        if effect < 0.0 { Direction::Drop } else { Direction::Rise }
    }

    /// Accuracy that lies so far on this side of another, from 0 to 1.
    pub fn shifted(self, accuracy: f64, effect: f64) -> f64 {
        match self {
            Direction::Drop => (accuracy - effect).max(0.0),
            Direction::Rise => (accuracy + effect).min(1.0),
        }
    }

    /// Largest difference on this side of an accuracy.
    pub fn room(self, accuracy: f64) -> f64 {
        match self {
            Direction::Drop => accuracy,
            Direction::Rise => 1.0 - accuracy,
        }
    }

    /// Refuses a difference that is larger than the accuracy has room for.
    pub fn check(self, accuracy: f64, effect: f64) -> Result<(), PowerError> {
        let room = self.room(accuracy);
        // A sum such as 0.9 + 0.1 may exceed 1 by rounding.
        if effect <= room + 1e-12 {
            return Ok(());
        }
        // Without the digits of rounding, such as those of 1 - 0.98, and of a pilot's accuracy.
        let [accuracy, room] = [accuracy, room].map(|share| (1e4 * share).round() / 1e4);
        Err(PowerError::Room { direction: self, accuracy, effect, room })
    }
}

impl std::fmt::Display for Direction {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Direction::Drop => "drop",
            Direction::Rise => "rise",
        })
    }
}

pub(crate) fn require(name: &'static str, value: f64, valid: bool, expected: &'static str) -> Result<(), PowerError> {
    if valid { Ok(()) } else { Err(PowerError::Range { name, value, expected }) }
}

/// Error rates of a test.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Rates {
    /// Two-sided significance level.
    pub alpha: f64,
    /// Probability of detecting the effect.
    pub power: f64,
}

impl Default for Rates {
    /// 5 % and 80 %.
    fn default() -> Self {
        Rates { alpha: 0.05, power: 0.8 }
    }
}

impl Rates {
    /// Checks that both are probabilities, and the power above that of a test that guesses.
    pub(crate) fn check(&self) -> Result<(), PowerError> {
        let inside = |value: f64| value > 0.0 && value < 1.0;
        require("alpha", self.alpha, inside(self.alpha), "a number between 0 and 1")?;
        require("power", self.power, inside(self.power) && self.power > self.alpha / 2.0, "between alpha / 2 and 1")
    }

    /// With so many clusters; none is without clusters.
    fn quantiles(&self, clusters: Option<f64>) -> Result<(f64, f64), PowerError> {
        self.check()?;
        let quantile = |probability: f64| match clusters {
            Some(clusters) => student_quantile(probability, (clusters - 1.0).max(1.0)),
            None => normal_quantile(probability),
        };
        Ok((quantile(1.0 - 0.5 * self.alpha), quantile(self.power)))
    }
}

/// Two systems answer the same questions, which come in clusters (templates).
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct PairedDesign {
    /// Share of questions where just one of the two is right.
    pub discordance: f64,
    /// Questions in a cluster.
    pub cluster_size: f64,
    /// Correlation of the differences of two questions of a cluster.
    pub intracluster: f64,
}

impl PairedDesign {
    fn check(&self) -> Result<f64, PowerError> {
        let share = self.discordance;
        require("discordance", share, share > 0.0 && share <= 1.0, "a share above 0, at most 1")?;
        require("cluster size", self.cluster_size, self.cluster_size >= 1.0, "at least 1")?;
        let correlation = self.intracluster;
        require("intracluster correlation", correlation, (0.0..=1.0).contains(&correlation), "a number from 0 to 1")?;
        Ok(1.0 + (self.cluster_size - 1.0) * correlation)
    }

    /// Clusters of so many questions; none if questions are their own clusters.
    fn clusters(&self, items: f64) -> Option<f64> {
        (self.cluster_size > 1.0).then(|| (items / self.cluster_size).max(2.0))
    }

    /// Questions that detect a difference of this size (Connor 1987, times the design effect) by a test with so many clusters.
    fn needed(&self, size: f64, clusters: Option<f64>, rates: Rates) -> Result<f64, PowerError> {
        let (level, power) = rates.quantiles(clusters)?;
        let root = level * self.discordance.sqrt() + power * (self.discordance - size * size).max(0.0).sqrt();
        Ok(self.check()? * (root / size).powi(2))
    }

    /// Largest difference on one side of the first accuracy. Of the questions where just one of the two is right, no more can be lost
    /// than the first has right, and no more won than it has wrong. Not above 0 where that leaves no difference on this side.
    pub fn room(&self, accuracy: f64, direction: Direction) -> Result<f64, PowerError> {
        self.check()?;
        require("accuracy", accuracy, accuracy > 0.0 && accuracy < 1.0, "a number between 0 and 1")?;
        Ok(self.discordance.min(2.0 * direction.room(accuracy) - self.discordance))
    }

    /// Questions needed to detect an accuracy difference, rounded up.
    pub fn required_items(&self, effect: f64, rates: Rates) -> Result<f64, PowerError> {
        self.check()?;
        rates.quantiles(None)?;
        let size = effect.abs();
        require("effect", effect, size > 0.0 && size <= self.discordance, "not 0 and at most the discordance")?;
        let mut items = self.needed(size, None, rates)?.ceil();
        if self.cluster_size > 1.0 {
            items = items.max(2.0 * self.cluster_size);
            // Fewer degrees of freedom need more questions, which have more of them: the smallest number that is enough.
            while self.needed(size, self.clusters(items), rates)? > items {
                items = (items + 1.0).max((0.5 * (items + self.needed(size, self.clusters(items), rates)?)).floor());
            }
        }
        Ok(items)
    }

    /// Smallest accuracy difference that this many questions detect. The discordance bounds any difference: an answer
    /// equal to it means that even the largest possible one may be missed.
    pub fn detectable_effect(&self, items: f64, rates: Rates) -> Result<f64, PowerError> {
        self.check()?;
        rates.quantiles(None)?;
        require("items", items, items >= 1.0 && items.is_finite(), "at least 1")?;
        if self.needed(self.discordance, self.clusters(items), rates)? > items {
            return Ok(self.discordance);
        }
        let (mut low, mut high) = (0.0, self.discordance);
        for _ in 0..200 {
            let middle = 0.5 * (low + high);
            if self.needed(middle, self.clusters(items), rates)? > items { low = middle } else { high = middle }
        }
        Ok(high)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_effect_that_a_size_detects_needs_that_size() {
        let design = PairedDesign { discordance: 0.2, cluster_size: 50.0, intracluster: 0.1 };
        let rates = Rates { alpha: 0.05, power: 0.9 };
        let effect = design.detectable_effect(5000.0, rates).unwrap();
        let items = design.required_items(effect, rates).unwrap();
        assert!((items - 5000.0).abs() <= 1.0, "{effect} {items}");
    }

    // Connor (1987) in Python with scipy.stats.norm:
    // za, zb = norm.ppf(.975), norm.ppf(.8); ceil(((za*.2**.5 + zb*(.2-.05**2)**.5)/.05)**2) = 626
    #[test]
    fn a_textbook_size_is_reproduced() {
        let design = PairedDesign { discordance: 0.2, cluster_size: 1.0, intracluster: 0.0 };
        assert_eq!(design.required_items(0.05, Rates::default()).unwrap(), 626.0);
        assert_eq!(design.required_items(-0.05, Rates::default()).unwrap(), 626.0);
    }

    /// Power of the paired test at the effect that a design says it detects, by simulation: each cluster has differences of
    /// -1, 0 and 1 that share a part.
    #[test]
    fn few_clusters_have_the_power_that_is_said() {
        use rand::{RngExt, SeedableRng};
        let rates = Rates::default();
        for clusters in [6_usize, 10, 30] {
            let size = 40;
            let design = PairedDesign { discordance: 0.4, cluster_size: size as f64, intracluster: 0.05 };
            let effect = design.detectable_effect((clusters * size) as f64, rates).unwrap();
            let mut random = rand_chacha::ChaCha8Rng::seed_from_u64(clusters as u64);
            let (mut found, sets) = (0, 4000);
            for _ in 0..sets {
                let means: Vec<f64> = (0..clusters)
                    .map(|_| {
                        // With a share of sqrt(correlation) questions of a cluster repeat one difference, so that two of them
                        // are the same draw with the share squared.
                        let mut draw = || {
                            let u: f64 = random.random();
                            let gain = 0.5 * (design.discordance + effect);
                            if u < gain {
                                1.0
                            } else if u < design.discordance {
                                -1.0
                            } else {
                                0.0
                            }
                        };
                        let common: f64 = draw();
                        let own: Vec<f64> = (0..size).map(|_| draw()).collect();
                        let share = design.intracluster.sqrt();
                        own.into_iter()
                            .map(|own| if random.random::<f64>() < share { common } else { own })
                            .sum::<f64>()
                            / size as f64
                    })
                    .collect();
                let labels: Vec<u64> = (0..clusters as u64).collect();
                let test = crate::clustered_mean(&means, &labels).unwrap();
                found += usize::from(test.p() < rates.alpha);
            }
            let power = found as f64 / f64::from(sets);
            assert!((power - 0.8).abs() < 0.03, "{clusters} clusters: {power} at {effect}");
        }
    }

    /// Every split of discordant questions into lost and won ones that the first accuracy allows, in thousandths.
    #[test]
    fn the_room_of_a_paired_difference_is_that_of_the_counts() {
        for (accuracy, discordance) in [(20_i32, 10_i32), (20, 30), (20, 200), (600, 200), (950, 80), (500, 1000)] {
            let differences = (0..=discordance)
                .map(|lost| (lost, discordance - lost))
                .filter(|(lost, won)| *lost <= accuracy && *won <= 1000 - accuracy)
                .map(|(lost, won)| won - lost);
            let (drop, rise) = (-differences.clone().min().unwrap(), differences.max().unwrap());
            let design =
                PairedDesign { discordance: f64::from(discordance) / 1000.0, cluster_size: 1.0, intracluster: 0.0 };
            for (direction, largest) in [(Direction::Drop, drop), (Direction::Rise, rise)] {
                let room = design.room(f64::from(accuracy) / 1000.0, direction).unwrap();
                assert!((room - f64::from(largest) / 1000.0).abs() < 1e-12, "{accuracy} {discordance}: {room}");
            }
        }
    }

    #[test]
    fn impossible_designs_are_refused_by_name() {
        let design = PairedDesign { discordance: 0.1, cluster_size: 1.0, intracluster: 0.0 };
        assert!(matches!(design.required_items(0.2, Rates::default()), Err(PowerError::Range { name: "effect", .. })));
        assert!(matches!(
            design.detectable_effect(f64::NAN, Rates::default()),
            Err(PowerError::Range { name: "items", .. })
        ));
        assert_eq!(design.detectable_effect(2.0, Rates::default()).unwrap(), 0.1);
        assert!(design.required_items(0.05, Rates { alpha: 0.0, power: 0.8 }).is_err());
    }
}
