//! JSON text taken apart without reading its values, so that what is not changed keeps its bytes. Every text here has been
//! read by serde_json before.

/// The members of an object: each key with its quotes, and its value, as they are written.
pub(super) fn members(text: &str) -> Vec<(&str, &str)> {
    let mut found = Vec::new();
    let mut at = inside(text);
    while text.as_bytes().get(at) == Some(&b'"') {
        let key = value_end(text, at);
        let colon = skip_blanks(text, key);
        let start = skip_blanks(text, colon + 1);
        let end = value_end(text, start);
        found.push((&text[at..key], &text[start..end]));
        at = after_comma(text, end);
    }
    found
}

/// The elements of an array, as they are written.
pub(super) fn elements(text: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let mut at = inside(text);
    while at < text.len() && text.as_bytes()[at] != b']' {
        let end = value_end(text, at);
        found.push(&text[at..end]);
        at = after_comma(text, end);
    }
    found
}

/// A key that an object has twice, at any depth.
pub(super) fn repeated_key(text: &str) -> Option<String> {
    match text.as_bytes().get(skip_blanks(text, 0)) {
        Some(b'{') => {
            let mut seen = std::collections::HashSet::new();
            members(text).into_iter().find_map(|(key, value)| {
                let key = unquoted(key);
                if seen.insert(key.clone()) { repeated_key(value) } else { Some(key) }
            })
        }
        Some(b'[') => elements(text).into_iter().find_map(repeated_key),
        _ => None,
    }
}

/// A key without quotes and escapes.
pub(super) fn unquoted(key: &str) -> String {
    serde_json::from_str(key).unwrap_or_else(|_| key.to_owned())
}

/// The same JSON on one line: blanks between its parts are dropped, strings and numbers stay as they are.
pub(super) fn on_one_line(text: &str) -> String {
    let mut line = String::with_capacity(text.len());
    let mut at = 0;
    while at < text.len() {
        let byte = text.as_bytes()[at];
        if byte == b'"' {
            let end = value_end(text, at);
            line.push_str(&text[at..end]);
            at = end;
            continue;
        }
        if !byte.is_ascii_whitespace() {
            // Outside of strings JSON is ASCII.
            line.push(char::from(byte));
        }
        at += 1;
    }
    line
}

fn skip_blanks(text: &str, at: usize) -> usize {
    text.bytes().skip(at).position(|byte| !byte.is_ascii_whitespace()).map_or(text.len(), |blanks| at + blanks)
}

/// The first offset inside an object or array.
fn inside(text: &str) -> usize {
    skip_blanks(text, skip_blanks(text, 0) + 1)
}

fn after_comma(text: &str, end: usize) -> usize {
    let next = skip_blanks(text, end);
    if text.as_bytes().get(next) == Some(&b',') { skip_blanks(text, next + 1) } else { next }
}

/// The end of the value that begins at an offset.
fn value_end(text: &str, start: usize) -> usize {
    let bytes = text.as_bytes();
    let (mut depth, mut quoted, mut at) = (0usize, false, start);
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'\\' if quoted => at += 1,
            b'"' => {
                quoted = !quoted;
                if !quoted && depth == 0 {
                    return at + 1;
                }
            }
            _ if quoted => {}
            b'{' | b'[' => depth += 1,
            b'}' | b']' => {
                // The end of what this value stands in.
                if depth == 0 {
                    return at;
                }
                depth -= 1;
                if depth == 0 {
                    return at + 1;
                }
            }
            b',' if depth == 0 => return at,
            blank if depth == 0 && blank.is_ascii_whitespace() => return at,
            _ => {}
        }
        at += 1;
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_the_bytes_that_were_written() {
        let text = " {\"a\" : 1.10 ,\"b\\\"\":[1, {\"x\":\"}],\\\\\"} ],\n\"ü\":\"é\\u00e9\", \"e\":{}, \"big\":123456789012345678901234}";
        let found = members(text);
        assert_eq!(found[0], ("\"a\"", "1.10"));
        assert_eq!(found[1], ("\"b\\\"\"", "[1, {\"x\":\"}],\\\\\"} ]"));
        assert_eq!(found[2], ("\"ü\"", "\"é\\u00e9\""));
        assert_eq!(&found[3..], [("\"e\"", "{}"), ("\"big\"", "123456789012345678901234")]);
        assert_eq!(elements("[ 1, \"a,b\" ,[2,3],{}\n]"), ["1", "\"a,b\"", "[2,3]", "{}"]);
        assert!(elements("[]").is_empty() && members(" { } ").is_empty());
        assert_eq!(on_one_line("{ \"a b\" :\n [1 ,\r\n\"x\\\" y\"] }"), "{\"a b\":[1,\"x\\\" y\"]}");
    }

    #[test]
    fn keys_that_stand_twice_are_found_at_any_depth() {
        assert_eq!(repeated_key("{\"a\":1,\"b\":{\"a\":2}}"), None);
        assert_eq!(repeated_key("{\"a\":1,\"\\u0061\":2}"), Some("a".into()));
        assert_eq!(repeated_key("[{\"b\":[{\"c\":1,\"c\":1}]}]"), Some("c".into()));
    }
}
