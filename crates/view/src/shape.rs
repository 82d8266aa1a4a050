//! Numbers, bars and addresses for templates.
use earnest_eval::report::p_text;
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

/// A p value in a table.
pub(crate) fn p_value(value: f64) -> String {
    if value.is_finite() { p_text(value) } else { "-".to_owned() }
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
