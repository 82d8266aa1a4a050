//! Magnitude of a question's numbers: the study's metric and the integers that its distributions are compared by.
use std::sync::LazyLock;

use regex::Regex;

use super::answer::float;
use earnest_answer::python::pattern;

/// Digits (of any script, as `\d` is in the study) with at most one point before or among them; commas and signs are outside.
static NUMBER: LazyLock<Regex> = LazyLock::new(|| pattern(r"\d*\.?\d+"));

/// The pattern of the comparison of distributions, for which a number begins with a digit (`.40` is 40).
static PLAIN_NUMBER: LazyLock<Regex> = LazyLock::new(|| pattern(r"\d+(?:\.\d+)?"));

/// Lower bounds of Figure 7's bins; each ends where the next begins, the last never.
pub const BINS: [f64; 11] = [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 10.0, 20.0, 50.0, 100.0, 1000.0];

/// The large-number metric gamma of a question (section 3.4): the sum of `log10 n` over its whole numbers, 0 for 0. Both
/// parts of a fraction count, words do not, `350 000` is two numbers. None without any number; 0 where none is whole.
pub fn gamma(question: &str) -> Option<f64> {
    let numbers: Vec<f64> = numbers(&NUMBER, question).collect();
    if numbers.is_empty() {
        return None;
    }
    let whole = numbers.into_iter().filter(|number| number.fract() == 0.0);
    Some(whole.map(|number| if number > 0.0 { number.log10() } else { 0.0 }).sum())
}

/// The whole numbers of a question as Figure 7 and the Kolmogorov-Smirnov test count them.
pub fn integers(question: &str) -> Vec<f64> {
    numbers(&PLAIN_NUMBER, question).filter(|number| number.fract() == 0.0).collect()
}

fn numbers<'a>(pattern: &'a Regex, text: &'a str) -> impl Iterator<Item = f64> + 'a {
    pattern.find_iter(text).filter_map(|found| float(found.as_str()))
}

/// Values minus their mean; what is missing stays missing and is not in the mean.
pub fn centred(values: &[Option<f64>]) -> Vec<Option<f64>> {
    let known: Vec<f64> = values.iter().flatten().copied().collect();
    let mean = known.iter().sum::<f64>() / known.len().max(1) as f64;
    values.iter().map(|value| value.map(|value| value - mean)).collect()
}

/// Shares of the integers in each of [`BINS`]; zeros without integers.
pub fn binned(integers: &[f64]) -> [f64; 11] {
    let mut shares = [0.0; 11];
    for integer in integers {
        if let Some(bin) = BINS.iter().rposition(|bound| integer >= bound) {
            shares[bin] += 1.0 / integers.len() as f64;
        }
    }
    shares
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gamma_adds_magnitudes() {
        let about = |text: &str, expected: f64| {
            let found = gamma(text).unwrap();
            assert!((found - expected).abs() < 1e-12, "{text}: {found}");
        };
        about("He has 10 of 100 apples.", 3.0);
        about("1,000 is two numbers: 1 and 000", 0.0);
        about("-100 and (100)", 4.0);
        about("3/10 of 2.0 and .40", 3.0_f64.log10() + 1.0 + 2.0_f64.log10());
        about("3.5 only", 0.0);
        about("0 of 0", 0.0);
        about("a 10-foot shark, 50%", 1.0 + 50.0_f64.log10());
        about("350 000 dollars", 350.0_f64.log10());
        about("\u{661}\u{660}\u{660} and \u{ff11}\u{ff10}", 3.0);
        assert_eq!(gamma("half of twenty"), None);
        assert_eq!(gamma(""), None);
    }

    #[test]
    fn integers_have_their_own_pattern() {
        assert_eq!(integers("1,000 for .40, 2.0, 3.5 and 3/4"), [1.0, 0.0, 40.0, 2.0, 3.0, 4.0]);
        assert_eq!(integers("\u{661}\u{662} of \u{ff17}"), [12.0, 7.0]);
        let shares = binned(&[0.0, 1.0, 4.0, 5.0, 9.0, 10.0, 99.0, 100.0, 1000.0, 1e9]);
        assert_eq!(shares.map(|share| (share * 10.0).round()), [1.0, 1.0, 0.0, 0.0, 1.0, 2.0, 1.0, 0.0, 1.0, 1.0, 2.0]);
        assert_eq!(binned(&[]), [0.0; 11]);
    }

    #[test]
    fn centring_skips_what_is_missing() {
        assert_eq!(centred(&[Some(1.0), None, Some(3.0)]), [Some(-1.0), None, Some(1.0)]);
        assert_eq!(centred(&[None]), [None]);
    }
}
