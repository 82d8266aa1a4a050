//! Powers of ten in words behind a number in digits.

/// A decimal moved by a power of ten.
pub fn scaled(text: &str, power: usize) -> Option<String> {
    let (sign, unsigned) = text.strip_prefix('-').map_or(("", text), |rest| ("-", rest));
    let (whole, decimals) = unsigned.split_once('.').unwrap_or((unsigned, ""));
    if !whole.bytes().chain(decimals.bytes()).all(|b| b.is_ascii_digit()) {
        return None;
    }
    let digits = format!("{whole}{decimals:0<power$}");
    let point = whole.len() + power;
    let (whole, decimals) = digits.split_at(point.min(digits.len()));
    let whole = whole.trim_start_matches('0');
    let whole = if whole.is_empty() { "0" } else { whole };
    let decimals = decimals.trim_end_matches('0');
    Some(if decimals.is_empty() { format!("{sign}{whole}") } else { format!("{sign}{whole}.{decimals}") })
}

/// Power of ten of a scale word.
pub fn scale(word: &str) -> Option<usize> {
    let lower = word.to_lowercase();
    Some(match lower.as_str() {
        "thousand" | "tausend" | "mille" | "mil" => 3,
        "lakh" | "lakhs" => 5,
        "million" | "millions" | "millionen" | "millones" | "milhões" | "mio" | "mn" => 6,
        "crore" | "crores" => 7,
        "billion" | "billions" | "milliarden" | "milliards" | "bn" => 9,
        "trillion" | "trillions" => 12,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scales() {
        assert_eq!(scaled("8.9", 9).as_deref(), Some("8900000000"));
        assert_eq!(scaled("1.23456", 3).as_deref(), Some("1234.56"));
        assert_eq!(scaled("-2", 6).as_deref(), Some("-2000000"));
        assert_eq!(scaled("1/2", 3), None);
    }
}
