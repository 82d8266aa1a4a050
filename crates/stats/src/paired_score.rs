//! Tango's score interval for the difference of paired proportions (T. Tango, Statistics in Medicine 17, 1998, 891-908).
use super::mcnemar::PairedCounts;

/// The interval of `second - first`, with `z` standard errors. It holds its level in small samples and has a width where all
/// pairs agree, which the Wald interval has not. None without pairs.
pub fn paired_score_interval(counts: &PairedCounts, z: f64) -> Option<(f64, f64)> {
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
    Some((bound(estimate, -1.0, z), bound(estimate, 1.0, -z)))
}

#[cfg(test)]
mod tests {
    use super::*;

    // Solved apart from this code, in Python, from the article's equations.
    #[test]
    fn intervals_solve_the_score_equation() {
        let interval = |first_only, second_only, both, neither| {
            let counts = PairedCounts { both, first_only, second_only, neither };
            paired_score_interval(&counts, 1.959963984540054).unwrap()
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
        assert!(paired_score_interval(&PairedCounts::default(), 1.96).is_none());
        // Exchanging the two turns the interval round.
        let (low, high) = interval(9, 3, 40, 25);
        let (other_low, other_high) = interval(3, 9, 40, 25);
        assert!((low + other_high).abs() < 1e-9 && (high + other_low).abs() < 1e-9);
    }
}
