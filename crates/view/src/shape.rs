//! Numbers, bars and addresses for templates.
pub(crate) use earnest_report::plot::address_part as path_segment;
use serde::Serialize;

/// An estimate with its interval, as shares; bounds that are not known are the whole range.
#[derive(Debug, Clone, Copy, Serialize)]
pub(crate) struct Share {
    pub value: f64,
    pub low: f64,
    pub high: f64,
}

/// Undoes [`path_segment`]; none for what it does not write.
pub(crate) fn unescaped(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        match byte {
            b'%' => {
                let mut digit = || char::from(rest.next()?).to_digit(16);
                let (high, low) = (digit()?, digit()?);
                bytes.push(u8::try_from(16 * high + low).ok()?);
            }
            other => bytes.push(other),
        }
    }
    String::from_utf8(bytes).ok()
}

/// Two names as one value, joined by a comma: names may have commas of their own.
pub(crate) fn pair(one: &str, other: &str) -> String {
    format!("{},{}", path_segment(one), path_segment(other))
}

/// Undoes [`pair`]; none for what is not two names.
pub(crate) fn both(pair: &str) -> Option<[String; 2]> {
    let (one, other) = pair.split_once(',')?;
    Some([unescaped(one)?, unescaped(other)?]).filter(|names| names.iter().all(|name| !name.is_empty()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_of_any_names_come_back() {
        let names = ["boundary", "exact_match,strict", "a+b", "50 %", "%2C", "\"&#'", "\u{6570}\u{5b66}", "a>b"];
        for one in names {
            assert_eq!(unescaped(&path_segment(one)).as_deref(), Some(one));
            for other in names {
                assert_eq!(both(&pair(one, other)), Some([one.to_owned(), other.to_owned()]));
            }
        }
        assert_eq!(pair("final", "strict"), "final,strict");
        for wrong in ["one", "one,", ",one", "%2,one", "%zz,one", "%ff,one"] {
            assert_eq!(both(wrong), None, "{wrong}");
        }
    }
}
