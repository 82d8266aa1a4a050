//! The two-sample Kolmogorov-Smirnov test, with scipy's rules for the p value.
use serde::Serialize;
use thiserror::Error;

use super::distribution::ln_choose;

/// Method of computing the p value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum KsMethod {
    /// Exact up to [`LARGEST_EXACT`] values in the larger sample, asymptotic beyond (scipy's `auto`).
    Auto,
    /// By counting lattice paths; ties count as scipy counts them.
    Exact,
    /// The exact one-sample distribution at the rounded effective size `n1 n2 / (n1 + n2)` (scipy's `asymp`).
    Asymptotic,
}

/// Largest sample for which [`KsMethod::Auto`] is exact.
pub const LARGEST_EXACT: usize = 10_000;

/// Largest product of the sizes for which [`KsMethod::Exact`] is computed: some ten seconds.
const LARGEST_PRODUCT: u128 = 4_000_000_000;

/// A two-sided test.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct KsTest {
    /// Largest distance of the two empirical distribution functions.
    pub statistic: f64,
    /// Probability of at least this distance if both samples come from one distribution.
    pub p: f64,
    /// A value at which the distance is attained.
    pub location: f64,
    /// The method that was used: exact or asymptotic.
    pub method: KsMethod,
    /// Sizes of the samples.
    pub sizes: (usize, usize),
}

/// Reason for two samples not being testable.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum KsError {
    /// A sample has no values.
    #[error("the {which} sample is empty")]
    Empty { which: &'static str },
    /// A value has no place in an order.
    #[error("the {which} sample has a NaN at position {position}; drop missing values first")]
    NotANumber { which: &'static str, position: usize },
    /// Fewer values than the asymptotic distribution is defined for.
    #[error("{} and {} values are too few for the asymptotic p value; use the exact one", sizes.0, sizes.1)]
    TooSmall { sizes: (usize, usize) },
    /// Counting the paths would take minutes.
    #[error(
        "samples of {} and {} are too large for the exact method, whose time grows with their product; the asymptotic one is \
         accurate there", sizes.0, sizes.1
    )]
    TooLarge { sizes: (usize, usize) },
}

/// Tests whether two samples come from one distribution.
pub fn kolmogorov_smirnov(first: &[f64], second: &[f64], method: KsMethod) -> Result<KsTest, KsError> {
    let sorted = |sample: &[f64], which| -> Result<Vec<f64>, KsError> {
        if sample.is_empty() {
            return Err(KsError::Empty { which });
        }
        if let Some(position) = sample.iter().position(|value| value.is_nan()) {
            return Err(KsError::NotANumber { which, position: position + 1 });
        }
        let mut sample = sample.to_vec();
        sample.sort_unstable_by(f64::total_cmp);
        Ok(sample)
    };
    let (first, second) = (sorted(first, "first")?, sorted(second, "second")?);
    let divisor = num_integer::gcd(first.len(), second.len());
    let (first_weight, second_weight) = ((second.len() / divisor) as i128, (first.len() / divisor) as i128);
    // The distance in units of 1 / lcm, exactly.
    let (mut i, mut j) = (0, 0);
    let (mut largest, mut location) = (0_i128, first[0]);
    while i < first.len() || j < second.len() {
        let value = match (first.get(i), second.get(j)) {
            (Some(left), Some(right)) => left.min(*right),
            (Some(value), None) | (None, Some(value)) => *value,
            (None, None) => break,
        };
        // Equal values advance together; a comparison of floats, so that -0 equals 0.
        while first.get(i).is_some_and(|next| *next <= value) {
            i += 1;
        }
        while second.get(j).is_some_and(|next| *next <= value) {
            j += 1;
        }
        let distance = (i as i128 * first_weight - j as i128 * second_weight).abs();
        if distance > largest {
            (largest, location) = (distance, value);
        }
    }
    let statistic = largest as f64 / (first.len() as f64 * first_weight as f64);
    let exact = match method {
        KsMethod::Auto => first.len().max(second.len()) <= LARGEST_EXACT,
        KsMethod::Exact => true,
        KsMethod::Asymptotic => false,
    };
    if exact && first.len() as u128 * second.len() as u128 > LARGEST_PRODUCT {
        return Err(KsError::TooLarge { sizes: (first.len(), second.len()) });
    }
    let p = if exact {
        path_probability(first.len(), second.len(), first_weight, second_weight, largest)
    } else {
        let (one, two) = (first.len() as f64, second.len() as f64);
        let effective = (one * two / (one + two)).round_ties_even() as u64;
        if effective == 0 {
            return Err(KsError::TooSmall { sizes: (first.len(), second.len()) });
        }
        kolmogorov_upper(effective, statistic)
    };
    let method = if exact { KsMethod::Exact } else { KsMethod::Asymptotic };
    Ok(KsTest { statistic, p: p.clamp(0.0, 1.0), location, method, sizes: (first.len(), second.len()) })
}

/// The share of lattice paths from (0, 0) to (first, second) that touch the band's border: a path to a point touched it if
/// the point is on or beyond the border, else with the mixture of its two predecessors. All terms are positive, so small
/// probabilities keep their digits.
fn path_probability(first: usize, second: usize, first_weight: i128, second_weight: i128, border: i128) -> f64 {
    if border == 0 {
        return 1.0;
    }
    let mut row = vec![0.0_f64; second + 1];
    for i in 0..=first {
        let mut left = 0.0;
        for (j, cell) in row.iter_mut().enumerate() {
            let distance = (i as i128 * first_weight - j as i128 * second_weight).abs();
            *cell = if distance >= border {
                1.0
            } else if i + j == 0 {
                0.0
            } else {
                (*cell * i as f64 + left * j as f64) / (i + j) as f64
            };
            left = *cell;
        }
    }
    row[second]
}

/// `P(D_n >= x)` for the one-sample two-sided statistic, exact up to rounding where that is affordable, by the choices of
/// Simard and L'Ecuyer (2011).
pub fn kolmogorov_upper(n: u64, x: f64) -> f64 {
    if x.is_nan() || n == 0 {
        return f64::NAN;
    }
    if x >= 1.0 {
        return 0.0;
    }
    let size = n as f64;
    let scaled = size * x;
    if scaled <= 0.5 {
        return 1.0;
    }
    if scaled <= 1.0 {
        let log = libm::lgamma(size + 1.0) - size * size.ln() + size * (2.0 * scaled - 1.0).ln();
        return 1.0 - log.exp();
    }
    if scaled >= size - 1.0 {
        return 2.0 * (1.0 - x).powf(size);
    }
    let square = scaled * x;
    if x >= 0.5 || (n <= 140 && square > 4.0) || (n > 140 && square >= 2.2) {
        return if square >= 370.0 { 0.0 } else { (2.0 * smirnov_upper(n, x)).min(1.0) };
    }
    if n <= 140 || (n <= 100_000 && size * x.powf(1.5) <= 1.4) {
        1.0 - durbin_lower(n, x)
    } else {
        1.0 - pelz_good_lower(size, x)
    }
}

/// One-sided upper tail (Smirnov 1944, Birnbaum and Tingey 1951).
fn smirnov_upper(n: u64, x: f64) -> f64 {
    let size = n as f64;
    let last = (size * (1.0 - x)).floor() as u64;
    (0..=last)
        .map(|j| {
            let j = j as f64;
            let rest = 1.0 - x - j / size;
            if rest <= 0.0 {
                return 0.0;
            }
            (ln_choose(size, j) + x.ln() + (j - 1.0) * (x + j / size).ln() + (size - j) * rest.ln()).exp()
        })
        .sum()
}

/// Durbin's matrix, raised to a power as Marsaglia, Tsang and Wang (2003) do.
fn durbin_lower(n: u64, x: f64) -> f64 {
    const LARGE: f64 = (1_u128 << 127) as f64 * 2.0; // 2^128
    let scaled = n as f64 * x;
    let k = scaled.ceil() as usize;
    let h = k as f64 - scaled;
    let m = 2 * k - 1;
    let mut matrix = vec![0.0; m * m];
    let mut inverse_factorial = vec![1.0; m + 1];
    for index in 1..=m {
        inverse_factorial[index] = inverse_factorial[index - 1] / index as f64;
    }
    for row in 0..m {
        for column in 0..m {
            if row + 1 >= column {
                matrix[row * m + column] = inverse_factorial[row + 1 - column];
            }
        }
    }
    for index in 0..m {
        let border = (1.0 - h.powi(index as i32 + 1)) * inverse_factorial[index + 1];
        matrix[index * m] = border;
        matrix[(m - 1) * m + (m - 1 - index)] = border;
    }
    let corner = 1.0 - 2.0 * h.powi(m as i32) + (2.0 * h - 1.0).max(0.0).powi(m as i32);
    matrix[(m - 1) * m] = corner * inverse_factorial[m];
    let multiply = |left: &[f64], right: &[f64]| -> Vec<f64> {
        let mut result = vec![0.0; m * m];
        for row in 0..m {
            for inner in 0..m {
                let factor = left[row * m + inner];
                if factor != 0.0 {
                    for column in 0..m {
                        result[row * m + column] += factor * right[inner * m + column];
                    }
                }
            }
        }
        result
    };
    let mut power: Vec<f64> = (0..m * m).map(|index| f64::from(u8::from(index % (m + 1) == 0))).collect();
    let (mut exponent, mut matrix_exponent) = (0_i32, 0_i32);
    let mut bits = n;
    while bits > 0 {
        if bits % 2 == 1 {
            power = multiply(&power, &matrix);
            exponent += matrix_exponent;
        }
        matrix = multiply(&matrix, &matrix);
        matrix_exponent *= 2;
        if matrix[(k - 1) * m + k - 1] > LARGE {
            matrix.iter_mut().for_each(|value| *value /= LARGE);
            matrix_exponent += 128;
        }
        bits /= 2;
    }
    let mut probability = power[(k - 1) * m + k - 1];
    for index in 1..=n {
        probability *= index as f64 / n as f64;
        if probability < 1.0 / LARGE {
            probability *= LARGE;
            exponent -= 128;
        }
    }
    (probability * f64::from(exponent).exp2()).clamp(0.0, 1.0)
}

/// Pelz and Good (1976): Kolmogorov's limit with three terms of its expansion, in Jacobi's transformed form.
fn pelz_good_lower(n: f64, x: f64) -> f64 {
    use std::f64::consts::PI;
    let z = n.sqrt() * x;
    let (z2, z4, z6) = (z.powi(2), z.powi(4), z.powi(6));
    let (pi2, pi4, pi6) = (PI.powi(2), PI.powi(4), PI.powi(6));
    let terms = (16.0 * z / PI).ceil() as i32;
    let mut sums = [0.0; 4];
    for k in 1..=terms {
        let m2 = f64::from(2 * k - 1).powi(2);
        let q = (-m2 * pi2 / (8.0 * z2)).exp();
        sums[0] += q;
        sums[1] += q * (-z2 + pi2 / 4.0 * m2);
        sums[2] += q
            * (6.0 * z6 + 2.0 * z4 + (2.0 * z4 - 5.0 * z2) * pi2 / 4.0 * m2 + pi4 * (1.0 - 2.0 * z2) / 16.0 * m2 * m2);
        sums[3] += q
            * (-30.0 * z6 - 90.0 * z.powi(8)
                + pi2 * (135.0 * z4 - 96.0 * z6) / 4.0 * m2
                + pi4 * (-60.0 * z2 + 212.0 * z4) / 16.0 * m2 * m2
                + pi6 * (5.0 - 30.0 * z2) / 64.0 * m2.powi(3));
    }
    let root = (2.0 * PI).sqrt();
    let scale = [z, 6.0 * z4, 72.0 * z.powi(7), 6480.0 * z.powi(10)];
    for (sum, scale) in sums.iter_mut().zip(scale) {
        *sum *= root / scale;
    }
    for k in 1..=terms {
        let k2 = f64::from(k * k);
        let q = (-pi2 * k2 / (2.0 * z2)).exp();
        sums[2] -= q * k2 * pi2 * root / (36.0 * z.powi(3));
        sums[3] += q * k2 * (3.0 * z2 - pi2 * k2) * pi2 * root / (216.0 * z6);
    }
    (sums[0] + sums[1] / n.sqrt() + sums[2] / n + sums[3] / n.powf(1.5)).clamp(0.0, 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(n: usize, factor: usize, offset: usize, modulus: usize, divisor: f64) -> Vec<f64> {
        (0..n).map(|i| ((i * factor + offset) % modulus) as f64 / divisor).collect()
    }

    fn close(actual: f64, expected: f64, relative: f64) {
        assert!((actual - expected).abs() <= relative * expected.abs(), "{actual} is not {expected}");
    }

    // scipy 1.17, with seq(n, a, b, m, d) = [((i*a + b) % m) / d for i in range(n)] as `sample` above:
    // ks_2samp(x, y, method="exact") .statistic, .pvalue, .statistic_location, ks_2samp(x, y, method="asymp").pvalue
    #[test]
    fn statistic_and_both_p_values_equal_scipy() {
        type Recipe = (usize, usize, usize, usize, f64);
        let cases: [(Recipe, Recipe, f64, f64, f64, f64); 6] = [
            (
                (7, 5, 1, 11, 2.0),
                (9, 3, 2, 13, 3.0),
                0.2857142857142857,
                0.8276223776223776,
                0.8136713869221158,
                11.0 / 3.0,
            ),
            ((50, 37, 5, 101, 10.0), (50, 41, 7, 97, 9.0), 0.1, 0.9667464356809096, 0.9426821978135056, 7.2),
            (
                (120, 37, 5, 1009, 10.0),
                (333, 41, 7, 997, 9.0),
                0.09076576576576577,
                0.43090421522201033,
                0.4373921960181206,
                99.4,
            ),
            ((30, 7, 0, 5, 1.0), (45, 3, 1, 5, 1.0), 0.0, 1.0, 1.0, 0.0),
            (
                (200, 77, 5, 1009, 10.0),
                (200, 41, 7, 997, 4.0),
                0.59,
                1.2623636173086288e-32,
                1.0919840722084802e-33,
                100.6,
            ),
            ((1, 1, 0, 7, 1.0), (4, 1, 3, 7, 1.0), 1.0, 0.4, 0.0, 0.0),
        ];
        for (one, two, statistic, exact, asymptotic, location) in cases {
            let x = sample(one.0, one.1, one.2, one.3, one.4);
            let y = sample(two.0, two.1, two.2, two.3, two.4);
            let found = kolmogorov_smirnov(&x, &y, KsMethod::Auto).unwrap();
            assert_eq!(found.method, KsMethod::Exact);
            close(found.statistic, statistic, 1e-15);
            close(found.p, exact, 1e-11);
            close(found.location, location, 1e-15);
            close(kolmogorov_smirnov(&x, &y, KsMethod::Asymptotic).unwrap().p, asymptotic, 1e-10);
            // The test has no first and second.
            close(kolmogorov_smirnov(&y, &x, KsMethod::Exact).unwrap().p, exact, 1e-11);
        }
    }

    // ks_2samp(seq(337, 37, 5, 1009, 10.), seq(18296, 41, 7, 997, 9.9)): the sizes of the study's samples of integers.
    #[test]
    fn large_samples_take_the_asymptotic_branch() {
        let (x, y) = (sample(337, 37, 5, 1009, 10.0), sample(18296, 41, 7, 997, 9.9));
        let found = kolmogorov_smirnov(&x, &y, KsMethod::Auto).unwrap();
        assert_eq!((found.method, found.sizes), (KsMethod::Asymptotic, (337, 18296)));
        close(found.statistic, 0.018796247400154953, 1e-14);
        close(found.p, 0.9996878095448831, 1e-12);
    }

    // scipy.stats.kstwo.sf(x, n); the sixth is the study's published D at its effective size.
    #[test]
    fn the_one_sample_distribution_equals_scipy_on_every_branch() {
        for (n, x, expected) in [
            (10, 0.3, 0.27053557479999946),
            (10, 0.06, 0.9999999999628411),
            (10, 0.95, 1.9531250000000172e-13),
            (100, 0.08, 0.5182193645480672),
            (100, 0.25, 5.408871776434847e-06),
            (331, 0.1201, 0.0001284035144736574),
            (331, 0.03, 0.9181083093401237),
            (5000, 0.01, 0.6954557253913853),
            (200_000, 0.002, 0.39995085369038097),
            (200_000, 0.0045, 0.0006052431453602938),
            (1000, 0.02, 0.8108971656895577),
            (140, 0.12, 0.03252638258561632),
            (141, 0.05, 0.854845693009663),
        ] {
            close(kolmogorov_upper(n, x), expected, 1e-9);
        }
        assert_eq!((kolmogorov_upper(5, 1.0), kolmogorov_upper(5, 0.05)), (0.0, 1.0));
        assert!(kolmogorov_upper(0, 0.5).is_nan());
    }

    #[test]
    fn empty_and_missing_values_are_refused() {
        let test = |x: &[f64], y: &[f64]| kolmogorov_smirnov(x, y, KsMethod::Auto).unwrap_err();
        assert_eq!(test(&[], &[1.0]), KsError::Empty { which: "first" });
        assert_eq!(test(&[1.0], &[0.0, f64::NAN]), KsError::NotANumber { which: "second", position: 2 });
        // Infinities have their place, and signed zeros are one value.
        let found = kolmogorov_smirnov(&[f64::NEG_INFINITY, 0.0], &[-0.0, f64::INFINITY], KsMethod::Auto).unwrap();
        assert_eq!(found.statistic, 0.5);
    }
}
