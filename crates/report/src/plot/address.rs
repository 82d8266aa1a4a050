//! Names in addresses.

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
