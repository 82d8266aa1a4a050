//! McNemar's test of paired yes-or-no outcomes.
use serde::Serialize;

use super::distribution::{binomial_half_lower, chi_squared_upper};

/// Paired outcomes, counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct PairedCounts {
    /// Both right.
    pub both: u64,
    /// Only the first right.
    pub first_only: u64,
    /// Only the second right.
    pub second_only: u64,
    /// Neither right.
    pub neither: u64,
}

impl PairedCounts {
    /// Counts pairs.
    pub fn of(pairs: impl IntoIterator<Item = (bool, bool)>) -> Self {
        let mut counts = PairedCounts::default();
        for pair in pairs {
            match pair {
                (true, true) => counts.both += 1,
                (true, false) => counts.first_only += 1,
                (false, true) => counts.second_only += 1,
                (false, false) => counts.neither += 1,
            }
        }
        counts
    }
}

/// Both forms of the test.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct McNemar {
    /// Two-sided binomial p value of the discordant pairs; right for any number of them.
    pub exact_p: f64,
    /// Chi-squared statistic with Edwards' continuity correction, one degree of freedom; 0 without discordant pairs.
    pub statistic: f64,
    /// Its p value.
    pub asymptotic_p: f64,
}

/// Tests whether the two are right equally often. Pairs must be independent: with clusters use
/// [`super::paired_difference`].
pub fn mcnemar(counts: &PairedCounts) -> McNemar {
    let (first, second) = (counts.first_only, counts.second_only);
    let discordant = first + second;
    if discordant == 0 {
        return McNemar { exact_p: 1.0, statistic: 0.0, asymptotic_p: 1.0 };
    }
    let difference = (first.abs_diff(second) as f64 - 1.0).max(0.0);
    let statistic = difference * difference / discordant as f64;
    McNemar {
        exact_p: (2.0 * binomial_half_lower(first.min(second), discordant)).min(1.0),
        statistic,
        asymptotic_p: chi_squared_upper(statistic, 1.0),
    }
}

/// Exact p value of pairs that were looked at once before the end: that of the first pairs where it is at most `spent`, so that no more were asked; else that
/// of all pairs, with `spent` added. Under the null hypothesis it is at most any level above `spent` with at most that probability, because the
/// first look is at most `spent` with at most that one.
pub fn early_look(first: &PairedCounts, all: &PairedCounts, spent: f64) -> f64 {
    let early = mcnemar(first).exact_p;
    if early <= spent { early } else { (mcnemar(all).exact_p + spent).min(1.0) }
}

#[cfg(test)]
mod tests {
    use super::*;

    // statsmodels 0.15: mcnemar([[10, a], [b, 3]], exact=True).pvalue; exact=False, correction=True: .statistic, .pvalue
    #[test]
    fn both_forms_equal_statsmodels() {
        for (first_only, second_only, exact, statistic, asymptotic) in [
            (6, 15, 0.0783538818359375, 3.0476190476190474, 0.08085559837005234),
            (4, 4, 1.0, 0.125, 0.7236736098317629),
            (0, 9, 0.00390625, 7.111111111111111, 0.007660761135179461),
            (300, 230, 0.00269135869261982, 8.983018867924528, 0.0027250007080345416),
        ] {
            let found = mcnemar(&PairedCounts { both: 10, first_only, second_only, neither: 3 });
            let close = |actual: f64, expected: f64| (actual - expected).abs() <= 1e-11 * expected;
            // statsmodels corrects a difference of zero upwards; here a correction never exceeds the difference.
            if first_only != second_only {
                assert!(close(found.statistic, statistic) && close(found.asymptotic_p, asymptotic), "{found:?}");
            }
            assert!(close(found.exact_p, exact), "{found:?}");
        }
    }

    #[test]
    fn agreement_everywhere_is_no_evidence() {
        let counts = PairedCounts::of([(true, true), (false, false)]);
        assert_eq!(counts, PairedCounts { both: 1, first_only: 0, second_only: 0, neither: 1 });
        assert_eq!(mcnemar(&counts).exact_p, 1.0);
        let counts = PairedCounts::of([(true, false), (false, true), (false, true)]);
        assert_eq!((counts.first_only, counts.second_only), (1, 2));
    }
}
