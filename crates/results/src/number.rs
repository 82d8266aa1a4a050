//! Numbers for people.

/// Formats a whole number with commas between groups of three digits.
pub fn with_commas(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Number from which on its digits say less than its power of ten.
const LONG: f64 = 1e15;

/// A number with so many decimals, and a very large one by its power of ten.
pub fn fixed(value: f64, decimals: usize) -> String {
    if value.abs() >= LONG && value.is_finite() { format!("{value:.3e}") } else { format!("{value:.decimals$}") }
}

/// Most decimals of a number that is beside a bound.
const MOST_DECIMALS: usize = 12;

/// A number with as many decimals as keep it on its side of a bound, at least `decimals`; `signed` numbers have a plus too.
fn beside(value: f64, bound: f64, decimals: usize, signed: bool) -> String {
    let text = |decimals: usize| if signed { format!("{value:+.decimals$}") } else { format!("{value:.decimals$}") };
    let keeps = |text: &String| {
        text.parse::<f64>().is_ok_and(|shown| (shown < bound) == (value < bound) && (shown > bound) == (value > bound))
    };
    (decimals..=MOST_DECIMALS).map(text).find(keeps).unwrap_or_else(|| text(decimals))
}

/// A p value with so many decimals, and with more where it would seem to be 5 %: what is below says so.
pub fn p_decimals(p: f64, decimals: usize) -> String {
    const LEVEL: f64 = 0.05;
    if p < LEVEL { beside(p, LEVEL, decimals, false) } else { format!("{p:.decimals$}") }
}

/// The ends of an interval with so many decimals. An end has more of them where an interval without `neutral` would seem to touch it.
pub fn ends((low, high): (f64, f64), neutral: f64, decimals: usize, signed: bool) -> [String; 2] {
    let plain = |value: f64| if signed { format!("{value:+.decimals$}") } else { format!("{value:.decimals$}") };
    [
        if low > neutral { beside(low, neutral, decimals, signed) } else { plain(low) },
        if high < neutral { beside(high, neutral, decimals, signed) } else { plain(high) },
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_below_five_per_cent_is_shown_below() {
        let texts = [0.0496, 0.04996, 0.05, 0.0504, 0.012].map(|p| p_decimals(p, 3));
        assert_eq!(texts, ["0.0496", "0.04996", "0.050", "0.050", "0.012"]);
        assert_eq!([0.049_999_9, 0.2].map(|p| p_decimals(p, 2)), ["0.0499999", "0.20"]);
    }

    #[test]
    fn an_interval_without_zero_does_not_touch_it() {
        assert_eq!(ends((-35.0, -0.004), 0.0, 1, true), ["-35.0", "-0.004"]);
        assert_eq!(ends((0.04, 7.25), 0.0, 1, true), ["+0.04", "+7.2"]);
        assert_eq!(ends((-0.04, 3.0), 0.0, 1, true), ["-0.0", "+3.0"]);
        assert_eq!(ends((0.0, 3.0), 0.0, 1, true), ["+0.0", "+3.0"]);
        assert_eq!(ends((1.000_2, 3.0), 1.0, 2, false), ["1.0002", "3.00"]);
        assert_eq!(ends((0.2, 0.996), 1.0, 2, false), ["0.20", "0.996"]);
        assert_eq!(ends((f64::NEG_INFINITY, f64::INFINITY), 0.0, 1, true), ["-inf", "+inf"]);
    }

    #[test]
    fn large_numbers_are_short() {
        let texts = [0.25, -12.0, 999_999_999_999.04, -1e300, 1e100].map(|value| fixed(value, 1));
        assert_eq!(texts, ["0.2", "-12.0", "999999999999.0", "-1.000e300", "1.000e100"]);
    }

    #[test]
    fn groups_of_three_digits() {
        let texts = [0, 12, 999, 1_000, 328_230, 10_000_000].map(with_commas);
        assert_eq!(texts, ["0", "12", "999", "1,000", "328,230", "10,000,000"]);
    }
}
