//! Score interval of a difference of shares that agrees with an exact test.
use super::answers::{PairedAnswers, mean};
use super::paired_test::PairedTest;
use crate::clustered::ClusteredMean;
use crate::distribution::student_quantile;

/// Interval of a difference of shares: all differences that a score test does not reject, with 0 where the exact test does not reject it
/// and without 0 where it does.
///
/// Pairs of single questions have Tango's score (Statistics in Medicine 17, 1998, 891-908), originals with variants that of Miettinen and
/// Nurminen (Statistics in Medicine 4, 1985, 213-226), both with the variance times the design effect of the clusters, at least 1, and
/// quantiles of the t distribution.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct ScoreInterval {
    shares: Shares,
    difference: f64,
    /// Design effect.
    inflation: f64,
    freedom: f64,
    /// p value of the exact test.
    p: f64,
}

/// Part of the difference to which an end comes near 0, if the exact test excludes that and the score test does not.
const NEAREST: f64 = 0.01;

/// Variance of the difference under any difference.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Shares {
    /// Shares of pairs that the second side gained and lost, and the number of pairs.
    Paired { gained: f64, lost: f64, count: f64 },
    /// Shares of right answers of the sides, and the numbers of questions behind them.
    Apart { first: f64, second: f64, counts: [f64; 2] },
}

impl Shares {
    fn of(pairs: &[PairedAnswers]) -> Self {
        let count = pairs.len() as f64;
        let over = |value: &dyn Fn(&PairedAnswers) -> f64| pairs.iter().map(value).sum::<f64>() / count;
        if pairs.iter().all(PairedAnswers::is_single) {
            let gained = over(&|pair| pair.change().max(0.0));
            let lost = over(&|pair| (-pair.change()).max(0.0));
            // Means of several answers vary less than single ones.
            let squares = over(&|pair| pair.change() * pair.change());
            let factor = if squares > 0.0 { (gained + lost) / squares } else { 1.0 };
            return Shares::Paired { gained, lost, count: count * factor };
        }
        // The mean over pairs of means of so many questions.
        let counts =
            [count / over(&|pair| 1.0 / pair.first.len() as f64), count / over(&|pair| 1.0 / pair.second.len() as f64)];
        Shares::Apart { first: over(&|pair| mean(&pair.first)), second: over(&|pair| mean(&pair.second)), counts }
    }

    /// Variance of the difference's estimate, if this is the true one.
    fn variance(&self, difference: f64) -> f64 {
        match *self {
            Shares::Paired { gained, lost, count } => {
                // The maximum likelihood estimate of the losing cell.
                let b = -gained - lost + (2.0 - gained + lost) * difference;
                let c = -lost * difference * (1.0 - difference);
                let losing = ((b * b - 8.0 * c).max(0.0).sqrt() - b) / 4.0;
                (2.0 * losing + difference * (1.0 - difference)).max(0.0) / count
            }
            Shares::Apart { first, second, counts } => {
                let share = restricted(first, second, counts, difference);
                let spread = |share: f64, count: f64| share * (1.0 - share) / count;
                let apart = spread(share, counts[0]) + spread((share + difference).clamp(0.0, 1.0), counts[1]);
                // The unbiased one, as the article has it.
                let total = counts[0] + counts[1];
                apart * total / (total - 1.0)
            }
        }
    }
}

/// The first side's share of greatest likelihood, if the second's is greater by this difference.
fn restricted(first: f64, second: f64, counts: [f64; 2], difference: f64) -> f64 {
    let (mut low, mut high) = ((-difference).max(0.0), (1.0 - difference).min(1.0));
    // The likelihood's slope falls.
    let slope = |share: f64| {
        let part = |observed: f64, count: f64, share: f64| count * (observed - share) / (share * (1.0 - share));
        part(first, counts[0], share) + part(second, counts[1], share + difference)
    };
    for _ in 0..60 {
        let middle = 0.5 * (low + high);
        if slope(middle) > 0.0 { low = middle } else { high = middle }
    }
    0.5 * (low + high)
}

impl ScoreInterval {
    pub(super) fn new(pairs: &[PairedAnswers], robust: &ClusteredMean, p: f64) -> Self {
        let shares = Shares::of(pairs);
        let independent = shares.variance(robust.mean);
        let own = robust.corrected_error * robust.corrected_error;
        let inflation = if independent > 0.0 { (own / independent).max(1.0) } else { 1.0 };
        ScoreInterval { shares, difference: robust.mean, inflation, freedom: robust.degrees_of_freedom, p }
    }

    /// Standard error if there is no difference.
    pub(super) fn error_of_none(&self) -> f64 {
        (self.inflation * self.shares.variance(0.0)).sqrt()
    }

    /// Distance of the estimate from a difference, in standard errors.
    fn score(&self, difference: f64) -> f64 {
        let distance = (self.difference - difference).abs();
        let error = (self.inflation * self.shares.variance(difference)).sqrt();
        match distance == 0.0 {
            true => 0.0,
            false => distance / error,
        }
    }

    pub(super) fn interval(&self, level: f64) -> (f64, f64) {
        let alpha = 1.0 - level;
        let reach = student_quantile(1.0 - 0.5 * alpha, self.freedom);
        let bound = |end: f64| {
            let (mut inside, mut outside) = (self.difference, end);
            if self.score(end) <= reach {
                return end;
            }
            for _ in 0..100 {
                let middle = 0.5 * (inside + outside);
                if self.score(middle) > reach { outside = middle } else { inside = middle }
            }
            inside
        };
        let (mut low, mut high) = (bound(-1.0), bound(1.0));
        // What the exact test says of 0 counts.
        if self.p >= alpha {
            (low, high) = (low.min(0.0), high.max(0.0));
        } else if self.difference > 0.0 {
            low = low.max(NEAREST * self.difference);
        } else {
            high = high.min(NEAREST * self.difference);
        }
        (low, high)
    }
}

impl PairedTest {
    /// Name of the interval that goes with the test.
    pub fn interval_name(self) -> &'static str {
        match self {
            PairedTest::ClusterT => "t interval",
            PairedTest::SignFlips | PairedTest::SignFlipsAndPermutation => "Tango's score interval",
            PairedTest::Permutation | PairedTest::PermutationAndClusterT => "Miettinen and Nurminen's score interval",
        }
    }
}
