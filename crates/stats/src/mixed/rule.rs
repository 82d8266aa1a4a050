//! Gauss-Hermite quadrature.

/// The largest number of points offered; beyond it weights underflow and nothing is gained.
pub const LARGEST_POINTS: usize = 101;

/// Points of the trapezoidal rule, which is exact to many digits where Gauss-Hermite rules are not: for random effects so large that groups
/// nearly always agree. Its error falls exponentially with the number of points, because the integrand is analytic (Trefethen and Weideman,
/// SIAM Review 56, 2014).
pub const FINE_POINTS: usize = 401;

/// Reach of the trapezoidal rule, in standard deviations at the mode.
const REACH: f64 = 20.0;

/// A rule for adaptive Gauss-Hermite quadrature: the integral of `exp(-h(u)) / sqrt(2 pi)` is about
/// `sigma * sum_k weight_k * exp(-h(mode + sigma * node_k))`, with `sigma` the curvature's inverse square root at the
/// mode. One point is the Laplace approximation.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Rule {
    /// `sqrt(2)` times the roots of the Hermite polynomial.
    pub(super) nodes: Vec<f64>,
    /// `w_k * exp(x_k^2) / sqrt(pi)`
    pub(super) weights: Vec<f64>,
}

/// Nodes and weights, which sum to 1, of the mean of `f(deviation * u)` over a standard normal `u`, where `f` is the logistic function, its product or a
/// derivative of it. The trapezoidal rule: its error falls exponentially with the distance of `f`'s poles over the nodes' distance, so that steps of 0.6 in
/// log odds are exact to 1e-13; a Gauss rule's nodes are too far apart for a large deviation.
pub(super) fn of_normal(deviation: f64) -> Vec<(f64, f64)> {
    const END: f64 = 9.0;
    let step = (0.6 / deviation).min(0.5);
    let side = (END / step).ceil() as i64;
    let nodes = (-side..=side).map(|index| index as f64 * step);
    nodes.map(|node| (node, step / (2.0 * std::f64::consts::PI).sqrt() * (-0.5 * node * node).exp())).collect()
}

impl Rule {
    /// The rule with so many points: [`FINE_POINTS`] for the trapezoidal one, else Gauss's.
    pub(super) fn of(points: usize) -> Rule {
        if points != FINE_POINTS {
            return Rule::new(points);
        }
        let step = 2.0 * REACH / (FINE_POINTS - 1) as f64;
        Rule {
            nodes: (0..FINE_POINTS).map(|index| index as f64 * step - REACH).collect(),
            weights: vec![step / (2.0 * std::f64::consts::PI).sqrt(); FINE_POINTS],
        }
    }

    /// Gauss's rule with `points` points, 1 to [`LARGEST_POINTS`].
    pub(super) fn new(points: usize) -> Rule {
        let mut roots = vec![0.0; points];
        let mut weights = vec![0.0; points];
        for index in 0..points.div_ceil(2) {
            // Starting points from the asymptotics of the roots, then from the spacing of those found already.
            let size = points as f64;
            let mut root: f64 = match index {
                0 => (2.0 * size + 1.0).sqrt() - 1.85575 * (2.0 * size + 1.0).powf(-1.0 / 6.0),
                1 => roots[0] - 1.14 * size.powf(0.426) / roots[0],
                2 => 1.86 * roots[1] - 0.86 * roots[0],
                3 => 1.91 * roots[2] - 0.91 * roots[1],
                _ => 2.0 * roots[index - 1] - roots[index - 2],
            };
            let mut slope = 1.0;
            for _ in 0..100 {
                // Hermite functions without their Gaussian factor, orthonormal: no overflow up to the largest rule.
                let (mut previous, mut value) = (0.0, std::f64::consts::PI.powf(-0.25));
                for order in 1..=points {
                    let order = order as f64;
                    let next = root * (2.0 / order).sqrt() * value - ((order - 1.0) / order).sqrt() * previous;
                    previous = value;
                    value = next;
                }
                slope = (2.0 * size).sqrt() * previous;
                let step = value / slope;
                root -= step;
                if step.abs() <= 1e-15 * root.abs().max(1.0) {
                    break;
                }
            }
            if points % 2 == 1 && index == points / 2 {
                root = 0.0;
            }
            let weight = 2.0 / (slope * slope) * (root * root).exp() / std::f64::consts::PI.sqrt();
            roots[index] = root;
            roots[points - 1 - index] = -root;
            weights[index] = weight;
            weights[points - 1 - index] = weight;
        }
        Rule { nodes: roots.iter().map(|root| root * std::f64::consts::SQRT_2).collect(), weights }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_integrates_the_moments_of_the_normal_distribution() {
        for points in [1, 2, 3, 9, 25, 51, LARGEST_POINTS, FINE_POINTS] {
            let rule = Rule::of(points);
            // E[z^(2m)] = (2m - 1)!!; exact for polynomials up to degree 2 points - 1.
            let mut expected = 1.0;
            for half in 0..points.min(12) {
                if half > 0 {
                    expected *= (2 * half - 1) as f64;
                }
                let moment: f64 = rule
                    .nodes
                    .iter()
                    .zip(&rule.weights)
                    .map(|(node, weight)| weight * (-0.5 * node * node).exp() * node.powi(2 * half as i32))
                    .sum();
                assert!((moment / expected - 1.0).abs() < 1e-11, "{points} points, moment {half}: {moment} {expected}");
            }
        }
        let laplace = Rule::new(1);
        assert!(laplace.nodes == [0.0] && (laplace.weights[0] - 1.0).abs() < 1e-15);
    }
}
