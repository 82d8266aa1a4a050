//! Numbers for people.

/// Formats a whole number with commas between groups of three digits.
pub fn with_commas(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_of_three_digits() {
        let texts = [0, 12, 999, 1_000, 328_230, 10_000_000].map(with_commas);
        assert_eq!(texts, ["0", "12", "999", "1,000", "328,230", "10,000,000"]);
    }
}
