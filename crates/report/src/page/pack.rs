//! Compressed text for a page: zlib, as for browsers' `DecompressionStream("deflate")`, then base64.
use std::io::Write;

use flate2::Compression;
use flate2::write::ZlibEncoder;

/// Compresses a text.
pub fn pack(text: &str) -> String {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::best());
    let written = encoder.write_all(text.as_bytes()).and_then(|()| encoder.finish());
    base64(&written.expect("writing to a Vec cannot fail"))
}

const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// Encodes as base64 (RFC 4648) with padding.
fn base64(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for group in bytes.chunks(3) {
        let byte = |index: usize| u32::from(group.get(index).copied().unwrap_or(0));
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        for index in 0..4u32 {
            let digit = char::from(DIGITS[(bits >> (18 - 6 * index) & 63) as usize]);
            text.push(if index as usize <= group.len() { digit } else { '=' });
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_of_rfc_4648() {
        for (bytes, text) in
            [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foob", "Zm9vYg=="), ("foobar", "Zm9vYmFy")]
        {
            assert_eq!(base64(bytes.as_bytes()), text);
        }
    }

    #[test]
    fn packed_text_is_small() {
        assert!(pack(&"the same words again ".repeat(1000)).len() < 500);
    }
}
