//! Minimum detectable effects and sample sizes, before a run.
//!
//! Normal approximations, two-sided: an effect is detected with probability `power` when it is `z(1 - alpha / 2) +
//! z(power)` standard errors. Effects are differences of accuracy, as fractions (0.05 is five percentage points).
use serde::Serialize;
use thiserror::Error;

use super::distribution::normal_quantile;

/// A design is impossible.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum PowerError {
    /// A number is outside its range.
    #[error("{name} is {value}, expected {expected}")]
    Range { name: &'static str, value: f64, expected: &'static str },
}

fn require(name: &'static str, value: f64, valid: bool, expected: &'static str) -> Result<(), PowerError> {
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
    fn quantiles(&self) -> Result<(f64, f64), PowerError> {
        let inside = |value: f64| value > 0.0 && value < 1.0;
        require("alpha", self.alpha, inside(self.alpha), "a number between 0 and 1")?;
        require("power", self.power, inside(self.power) && self.power > self.alpha / 2.0, "between alpha / 2 and 1")?;
        Ok((normal_quantile(1.0 - 0.5 * self.alpha), normal_quantile(self.power)))
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

    /// Questions needed to detect an accuracy difference (Connor 1987, times the design effect), rounded up.
    pub fn required_items(&self, effect: f64, rates: Rates) -> Result<f64, PowerError> {
        let design_effect = self.check()?;
        let (level, power) = rates.quantiles()?;
        let size = effect.abs();
        require("effect", effect, size > 0.0 && size <= self.discordance, "not 0 and at most the discordance")?;
        let root = level * self.discordance.sqrt() + power * (self.discordance - size * size).max(0.0).sqrt();
        Ok((design_effect * (root / size).powi(2)).ceil())
    }

    /// Smallest accuracy difference that this many questions detect. The discordance bounds any difference: an answer
    /// equal to it means that even the largest possible one may be missed.
    pub fn detectable_effect(&self, items: f64, rates: Rates) -> Result<f64, PowerError> {
        let design_effect = self.check()?;
        let (level, power) = rates.quantiles()?;
        require("items", items, items >= 1.0 && items.is_finite(), "at least 1")?;
        let needed = |size: f64| {
            let root = level * self.discordance.sqrt() + power * (self.discordance - size * size).max(0.0).sqrt();
            design_effect * (root / size).powi(2)
        };
        if needed(self.discordance) > items {
            return Ok(self.discordance);
        }
        let (mut low, mut high) = (0.0, self.discordance);
        for _ in 0..200 {
            let middle = 0.5 * (low + high);
            if needed(middle) > items { low = middle } else { high = middle }
        }
        Ok(high)
    }
}

/// One system answers, for every template, some questions under each of two conditions (1 original and 50 variants in the
/// GSM-Symbolic study).
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct ClusteredDesign {
    /// Accuracy to expect.
    pub accuracy: f64,
    /// Correlation of two answers of a template, over both conditions.
    pub intracluster: f64,
    /// Questions of a template in the first condition.
    pub first_size: f64,
    /// And in the second.
    pub second_size: f64,
}

impl ClusteredDesign {
    /// Variance of a template's own difference: what the template adds to both conditions cancels.
    fn variance(&self) -> Result<f64, PowerError> {
        let accuracy = self.accuracy;
        require("accuracy", accuracy, accuracy > 0.0 && accuracy < 1.0, "a number between 0 and 1")?;
        let correlation = self.intracluster;
        require("intracluster correlation", correlation, (0.0..1.0).contains(&correlation), "from 0 to below 1")?;
        require("first cluster size", self.first_size, self.first_size >= 1.0, "at least 1")?;
        require("second cluster size", self.second_size, self.second_size >= 1.0, "at least 1")?;
        Ok(accuracy * (1.0 - accuracy) * (1.0 - correlation) * (1.0 / self.first_size + 1.0 / self.second_size))
    }

    /// Smallest accuracy difference between the conditions that this many templates detect.
    pub fn detectable_effect(&self, clusters: f64, rates: Rates) -> Result<f64, PowerError> {
        let variance = self.variance()?;
        let (level, power) = rates.quantiles()?;
        require("clusters", clusters, clusters >= 2.0 && clusters.is_finite(), "at least 2")?;
        Ok((level + power) * (variance / clusters).sqrt())
    }

    /// Templates needed to detect an accuracy difference, rounded up.
    pub fn required_clusters(&self, effect: f64, rates: Rates) -> Result<f64, PowerError> {
        let variance = self.variance()?;
        let (level, power) = rates.quantiles()?;
        require("effect", effect, effect.abs() > 0.0 && effect.abs() < 1.0, "not 0, between -1 and 1")?;
        Ok(((level + power).powi(2) * variance / (effect * effect)).ceil().max(2.0))
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
        let design = ClusteredDesign { accuracy: 0.5, intracluster: 0.6, first_size: 1.0, second_size: 50.0 };
        let effect = design.detectable_effect(100.0, rates).unwrap();
        assert!((design.required_clusters(effect * (1.0 + 1e-12), rates).unwrap() - 100.0).abs() < 0.5);
    }

    // Connor (1987) in Python with scipy.stats.norm:
    // za, zb = norm.ppf(.975), norm.ppf(.8); ceil(((za*.2**.5 + zb*(.2-.05**2)**.5)/.05)**2) = 626
    #[test]
    fn a_textbook_size_is_reproduced() {
        let design = PairedDesign { discordance: 0.2, cluster_size: 1.0, intracluster: 0.0 };
        assert_eq!(design.required_items(0.05, Rates::default()).unwrap(), 626.0);
        assert_eq!(design.required_items(-0.05, Rates::default()).unwrap(), 626.0);
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
