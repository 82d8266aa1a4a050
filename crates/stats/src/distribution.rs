//! Distribution functions: normal, chi-squared, binomial.

/// The standard normal distribution function.
pub fn normal_cdf(z: f64) -> f64 {
    0.5 * libm::erfc(-z * std::f64::consts::FRAC_1_SQRT_2)
}

/// The two-sided normal tail, `2 * Phi(-|z|)`.
pub fn normal_two_sided(z: f64) -> f64 {
    libm::erfc(z.abs() * std::f64::consts::FRAC_1_SQRT_2)
}

/// The standard normal quantile, for a probability in (0, 1); infinite at 0 and 1, NaN outside.
///
/// Acklam's rational approximation, refined by two Halley steps on the distribution function; relative error about 1e-15.
pub fn normal_quantile(probability: f64) -> f64 {
    if !(0.0..=1.0).contains(&probability) {
        return f64::NAN;
    }
    if probability == 0.0 {
        return f64::NEG_INFINITY;
    }
    if probability == 1.0 {
        return f64::INFINITY;
    }
    // The lower half only: 1 - p would lose digits in the upper tail's complement, never in the lower one's.
    if probability > 0.5 {
        return -normal_quantile(1.0 - probability);
    }
    const A: [f64; 6] = [
        -3.969683028665376e1,
        2.209460984245205e2,
        -2.759285104469687e2,
        1.38357751867269e2,
        -3.066479806614716e1,
        2.506628277459239,
    ];
    const B: [f64; 5] =
        [-5.447609879822406e1, 1.615858368580409e2, -1.556989798598866e2, 6.680131188771972e1, -1.328068155288572e1];
    const C: [f64; 6] = [
        -7.784894002430293e-3,
        -3.223964580411365e-1,
        -2.400758277161838,
        -2.549732539343734,
        4.374664141464968,
        2.938163982698783,
    ];
    const D: [f64; 4] = [7.784695709041462e-3, 3.224671290700398e-1, 2.445134137142996, 3.754408661907416];
    let polynomial = |coefficients: &[f64], x: f64| coefficients.iter().fold(0.0, |sum, c| sum * x + c);
    let mut z = if probability < 0.02425 {
        let q = (-2.0 * probability.ln()).sqrt();
        polynomial(&C, q) / (polynomial(&D, q) * q + 1.0)
    } else {
        let q = probability - 0.5;
        let r = q * q;
        polynomial(&A, r) * q / (polynomial(&B, r) * r + 1.0)
    };
    for _ in 0..2 {
        let error = (normal_cdf(z) - probability) * (2.0 * std::f64::consts::PI).sqrt() * (0.5 * z * z).exp();
        if !error.is_finite() {
            break;
        }
        z -= error / (1.0 + 0.5 * z * error);
    }
    z
}

/// The upper tail of the chi-squared distribution; 1 for a statistic that is not positive.
pub fn chi_squared_upper(statistic: f64, degrees_of_freedom: f64) -> f64 {
    if statistic.is_nan() || degrees_of_freedom.is_nan() || degrees_of_freedom <= 0.0 {
        return f64::NAN;
    }
    if statistic <= 0.0 {
        return 1.0;
    }
    gamma_upper(0.5 * degrees_of_freedom, 0.5 * statistic)
}

/// The regularised upper incomplete gamma function `Q(a, x)`: a series below `a + 1`, Lentz's continued fraction above.
fn gamma_upper(a: f64, x: f64) -> f64 {
    let front = (a * x.ln() - x - libm::lgamma(a)).exp();
    if x < a + 1.0 {
        let mut term = 1.0 / a;
        let mut sum = term;
        let mut denominator = a;
        for _ in 0..10_000 {
            denominator += 1.0;
            term *= x / denominator;
            sum += term;
            if term < sum * 1e-17 {
                break;
            }
        }
        return 1.0 - front * sum;
    }
    const TINY: f64 = 1e-300;
    let mut b = x + 1.0 - a;
    let mut c = 1.0 / TINY;
    let mut d = 1.0 / b;
    let mut fraction = d;
    for index in 1..10_000 {
        let index = f64::from(index);
        let numerator = -index * (index - a);
        b += 2.0;
        d = numerator * d + b;
        if d.abs() < TINY {
            d = TINY;
        }
        c = b + numerator / c;
        if c.abs() < TINY {
            c = TINY;
        }
        d = 1.0 / d;
        let change = d * c;
        fraction *= change;
        if (change - 1.0).abs() < 1e-16 {
            break;
        }
    }
    front * fraction
}

/// The two-sided tail of Student's t distribution.
pub fn student_two_sided(t: f64, degrees_of_freedom: f64) -> f64 {
    if t.is_nan() || degrees_of_freedom.is_nan() || degrees_of_freedom <= 0.0 {
        return f64::NAN;
    }
    if t.is_infinite() {
        return 0.0;
    }
    let square = t * t;
    // Both arguments are passed, as 1 - x would lose digits near 1.
    beta_lower(
        0.5 * degrees_of_freedom,
        0.5,
        degrees_of_freedom / (degrees_of_freedom + square),
        square / (degrees_of_freedom + square),
    )
}

/// The quantile of Student's t distribution, for a probability in (0, 1).
pub fn student_quantile(probability: f64, degrees_of_freedom: f64) -> f64 {
    if !(probability > 0.0 && probability < 1.0) || degrees_of_freedom.is_nan() || degrees_of_freedom <= 0.0 {
        return f64::NAN;
    }
    let tail = 2.0 * probability.min(1.0 - probability);
    let (mut low, mut high) = (0.0, 1.0);
    while student_two_sided(high, degrees_of_freedom) > tail && high < 1e300 {
        (low, high) = (high, 2.0 * high);
    }
    for _ in 0..200 {
        let middle = 0.5 * (low + high);
        if student_two_sided(middle, degrees_of_freedom) > tail {
            low = middle
        } else {
            high = middle
        }
        if high - low <= 1e-15 * high {
            break;
        }
    }
    let size = 0.5 * (low + high);
    if probability < 0.5 { -size } else { size }
}

/// The regularised incomplete beta function `I_x(a, b)`, with `complement = 1 - x`, by Lentz's continued fraction on the
/// side where it converges fast.
fn beta_lower(a: f64, b: f64, x: f64, complement: f64) -> f64 {
    if x <= 0.0 {
        return 0.0;
    }
    if complement <= 0.0 {
        return 1.0;
    }
    // Decided once: at the border itself, rounding can put both sides beyond it.
    match x > (a + 1.0) / (a + b + 2.0) {
        true => 1.0 - beta_fraction(b, a, complement, x),
        false => beta_fraction(a, b, x, complement),
    }
}

fn beta_fraction(a: f64, b: f64, x: f64, complement: f64) -> f64 {
    let front = libm::lgamma(a + b) - libm::lgamma(a) - libm::lgamma(b) + a * x.ln() + b * complement.ln();
    const TINY: f64 = 1e-300;
    let guard = |value: f64| if value.abs() < TINY { TINY } else { value };
    let mut c = 1.0;
    let mut d = guard(1.0 - (a + b) * x / (a + 1.0)).recip();
    let mut fraction = d;
    for step in 1..10_000 {
        let m = f64::from(step);
        let even = m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m));
        d = guard(1.0 + even * d).recip();
        c = guard(1.0 + even / c);
        fraction *= d * c;
        let odd = -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0));
        d = guard(1.0 + odd * d).recip();
        c = guard(1.0 + odd / c);
        let change = d * c;
        fraction *= change;
        if (change - 1.0).abs() < 1e-16 {
            break;
        }
    }
    front.exp() * fraction / a
}

/// `ln(n!)`.
pub(crate) fn ln_factorial(n: f64) -> f64 {
    libm::lgamma(n + 1.0)
}

/// `ln(n choose k)`.
pub(crate) fn ln_choose(n: f64, k: f64) -> f64 {
    ln_factorial(n) - ln_factorial(k) - ln_factorial(n - k)
}

/// The lower tail `P(X <= k)` of a binomial(n, 1/2) distribution.
pub(crate) fn binomial_half_lower(k: u64, n: u64) -> f64 {
    if k >= n {
        return 1.0;
    }
    let size = n as f64;
    let terms = (0..=k).rev().map(|count| (ln_choose(size, count as f64) - size * std::f64::consts::LN_2).exp());
    // Terms fall away from the mode at least geometrically once they are tiny, so the sum may stop there.
    let mut sum = 0.0;
    for term in terms {
        sum += term;
        if term < sum * 1e-18 {
            break;
        }
    }
    sum.min(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    // The two forms of the incomplete beta function meet there.
    #[test]
    fn the_border_between_two_forms_has_a_value() {
        let border = (27.0_f64 / 11.0).sqrt();
        for freedom in 1..200 {
            // Where the larger argument is (a + 1) / (a + b + 2).
            let freedom = f64::from(freedom);
            let square = freedom * 1.5 / (0.5 * freedom + 1.0);
            for steps in -50..=50 {
                let t = square.sqrt() * (1.0 + f64::from(steps) * f64::EPSILON);
                let p = student_two_sided(t, freedom);
                assert!(p > 0.0 && p < 1.0, "{t} {freedom}");
            }
        }
        let [below, at, above] = [border - 1e-6, border, border + 1e-6].map(|t| student_two_sided(t, 9.0));
        assert!(below > at && at > above && (below + above - 2.0 * at).abs() < 1e-11, "{below} {at} {above}");
    }

    fn close(actual: f64, expected: f64, relative: f64) {
        assert!((actual - expected).abs() <= relative * expected.abs(), "{actual} is not {expected}");
    }

    // scipy.stats 1.17: norm.cdf(-8), norm.ppf([.975, 1e-300, .3, .5+1e-10]), chi2.sf([3.84,100,.001,30],[1,3,2,40]),
    // binom.cdf([3, 480], [20, 1000], .5)
    #[test]
    fn tails_and_quantiles_equal_scipy() {
        close(normal_cdf(-8.0), 6.220960574271786e-16, 1e-13);
        close(normal_quantile(0.975), 1.959963984540054, 1e-15);
        close(normal_quantile(1e-300), -37.0470962993612, 1e-13);
        close(normal_quantile(0.3), -0.5244005127080409, 1e-14);
        close(chi_squared_upper(3.841458820694124, 1.0), 0.05, 1e-13);
        close(chi_squared_upper(100.0, 3.0), 1.5541594313896e-21, 1e-11);
        close(chi_squared_upper(30.0, 40.0), 0.8752187849674751, 1e-12);
        close(binomial_half_lower(3, 20), 0.001288414001464844, 1e-12);
        // 2 * t.sf([2.5, 40, 1e-3], [7, 99, 3]); t.ppf([.975, .9, .025], [99, 1, 4])
        close(student_two_sided(2.5, 7.0), 0.04099221858575289, 1e-13);
        close(student_two_sided(-40.0, 99.0), 6.385085160287251e-63, 1e-11);
        close(student_two_sided(1e-3, 3.0), 0.9992648949694609, 1e-14);
        close(student_quantile(0.975, 99.0), 1.9842169515864174, 1e-13);
        close(student_quantile(0.9, 1.0), 3.0776835371752544, 1e-13);
        close(student_quantile(0.025, 4.0), -2.7764451051977943, 1e-13);
        assert!(student_quantile(1.0, 4.0).is_nan() && student_two_sided(1.0, 0.0).is_nan());
        assert_eq!(chi_squared_upper(-1.0, 1.0), 1.0);
        assert!(normal_quantile(1.5).is_nan());
        assert_eq!(normal_quantile(0.0), f64::NEG_INFINITY);
    }
}
