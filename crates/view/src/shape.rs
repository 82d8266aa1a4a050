//! Numbers, bars and addresses for templates.
use serde::Serialize;

/// An estimate with its interval, as shares; bounds that are not known are the whole range.
#[derive(Debug, Clone, Copy, Serialize)]
pub(crate) struct Share {
    pub value: f64,
    pub low: f64,
    pub high: f64,
}

/// Per cent with one decimal, without the sign.
pub(crate) fn percent(value: f64) -> String {
    if value.is_finite() { format!("{:.1}", 100.0 * value) } else { "-".to_owned() }
}

/// Percentage points with a sign.
pub(crate) fn points(value: f64) -> String {
    match value {
        value if !value.is_finite() => "-".to_owned(),
        value if (100.0 * value).abs() < 0.05 => "0.0".to_owned(),
        value => format!("{:+.1}", 100.0 * value),
    }
}

/// A whole number with commas.
pub(crate) fn count(value: u64) -> String {
    let digits = value.to_string();
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A p value as it is reported.
pub(crate) fn p_value(value: f64) -> String {
    match value {
        value if !value.is_finite() => "-".to_owned(),
        value if value < 0.001 => "< 0.001".to_owned(),
        value if value < 0.1 => format!("{value:.3}"),
        value => format!("{value:.2}"),
    }
}

/// Escapes a text as one segment of a path or a value of a query (RFC 3986, unreserved characters stay).
pub(crate) fn path_segment(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => escaped.push(char::from(byte)),
            other => escaped.push_str(&format!("%{other:02X}")),
        }
    }
    escaped
}
