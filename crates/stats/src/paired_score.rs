//! Tango's score interval for the difference of paired proportions (T. Tango, Statistics in Medicine 17, 1998, 891-908).
use super::distribution::normal_quantile;
use super::mcnemar::{PairedCounts, mcnemar};

/// The interval of `second - first`. It holds its level in small samples and has a width where all pairs agree, which the Wald interval has
/// not. It contains 0 unless McNemar's exact test rejects that. None without pairs.
pub fn paired_score_interval(counts: &PairedCounts, level: f64) -> Option<(f64, f64)> {
    let z = normal_quantile(0.5 + 0.5 * level);
    let n = (counts.both + counts.first_only + counts.second_only + counts.neither) as f64;
    if n == 0.0 || !(z > 0.0 && z.is_finite()) {
        return None;
    }
    let (gained, lost) = (counts.second_only as f64, counts.first_only as f64);
    let score = |difference: f64| {
        // The maximum likelihood estimate of the losing cell under this difference.
        let a = 2.0 * n;
        let b = -gained - lost + (2.0 * n - gained + lost) * difference;
        let c = -lost * difference * (1.0 - difference);
        let losing = ((b * b - 4.0 * a * c).max(0.0).sqrt() - b) / (2.0 * a);
        let variance = n * (2.0 * losing + difference * (1.0 - difference));
        let distance = gained - lost - n * difference;
        if variance > 0.0 { distance / variance.sqrt() } else { distance.signum() * f64::INFINITY }
    };
    let estimate = (gained - lost) / n;
    // The score falls with the difference.
    let bound = |mut inside: f64, mut outside: f64, target: f64| {
        for _ in 0..200 {
            let middle = 0.5 * (inside + outside);
            let beyond = if target > 0.0 { score(middle) > target } else { score(middle) < target };
            if beyond { outside = middle } else { inside = middle }
        }
        0.5 * (inside + outside)
    };
    let (low, high) = (bound(estimate, -1.0, z), bound(estimate, 1.0, -z));
    // The score test is never weaker than the exact one.
    let has_none = mcnemar(counts).exact_p >= 1.0 - level;
    Some(if has_none { (low.min(0.0), high.max(0.0)) } else { (low, high) })
}

#[cfg(test)]
mod tests {
    use super::*;

    // Solved apart from this code, in Python, from the article's equations.
    #[test]
    fn intervals_solve_the_score_equation() {
        let interval = |first_only, second_only, both, neither| {
            let counts = PairedCounts { both, first_only, second_only, neither };
            paired_score_interval(&counts, 0.95).unwrap()
        };
        for (lost, gained, n, low, high) in [
            (0, 1, 44, -0.059_393_231_116_628, 0.118_077_096_982_133),
            (0, 0, 50, -0.071_347_599_133_359, 0.071_347_599_133_359),
            (9, 3, 77, -0.176_309_927_400_378, 0.011_752_920_641_236),
            (2, 12, 86, 0.035_963_951_764_888, 0.209_645_246_773_791),
        ] {
            let found = interval(lost, gained, n - lost - gained, 0);
            assert!((found.0 - low).abs() < 1e-9 && (found.1 - high).abs() < 1e-9, "{found:?}");
        }
        assert!(paired_score_interval(&PairedCounts::default(), 0.95).is_none());
        // Four that differ in one direction: the score alone has [-0.061, -0.006], the exact test p = 0.125.
        let four = interval(4, 0, 176, 0);
        assert!(four.0 < -0.05 && four.1 == 0.0, "{four:?}");
        // Exchanging the two turns the interval round.
        let (low, high) = interval(9, 3, 40, 25);
        let (other_low, other_high) = interval(3, 9, 40, 25);
        assert!((low + other_high).abs() < 1e-9 && (high + other_low).abs() < 1e-9);
    }
}
