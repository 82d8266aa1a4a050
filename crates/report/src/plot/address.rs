//! Names in addresses.
use earnest_tasks::suite::registry::RowSamples;

/// Escapes a text as one segment of a path or a value of a query (RFC 3986, unreserved characters stay).
pub fn address_part(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => escaped.push(char::from(byte)),
            other => escaped.push_str(&format!("%{other:02X}")),
        }
    }
    escaped
}

/// Parameters of the address of a row's samples.
pub fn row_query(row: &RowSamples) -> String {
    let covariate = row.covariate.as_ref().map(|(name, value)| address_part(&format!("{name}={value}")));
    let covariate = covariate.map(|part| format!("&covariate={part}")).unwrap_or_default();
    format!("task={}{covariate}", address_part(&row.task))
}
