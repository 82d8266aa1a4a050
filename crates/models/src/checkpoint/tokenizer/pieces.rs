//! Bytes of each token's text, computed once from a tokenizer's decoder.
//!
//! Decoders of the supported checkpoints are of three kinds: byte-level (GPT-2's alphabet of printable stand-ins for
//! bytes), SentencePiece with byte fallback (`▁` for a space, `<0x0A>` for a byte) and metaspace. All of them give each
//! token a fixed run of bytes, except at the start of a text; so the table here is the whole decoder, and decoding a
//! token is copying a slice.
use super::fault::TokenizerFault;
use serde_json::Value;
use std::collections::HashMap;

/// The bytes of every token, and the handling of a text's start.
#[derive(Debug)]
pub(in crate::checkpoint) struct TokenPieces {
    bytes: Vec<u8>,
    /// End of each token's bytes in `bytes`.
    ends: Vec<usize>,
    special: Vec<bool>,
    /// Character to strip from the start of a text, and its largest count.
    pub(in crate::checkpoint) strip_start: Option<(char, usize)>,
    /// Spaces of a text's first token are dropped (metaspace with a prefix).
    pub(in crate::checkpoint) drop_first_spaces: bool,
    /// Tokens are separated by spaces (a tokenizer without a decoder).
    pub(in crate::checkpoint) spaced: bool,
}

/// The steps of a decoder that apply to one token.
#[derive(Debug, Default)]
struct Steps {
    replace: Vec<(String, String)>,
    byte_fallback: bool,
    byte_level: bool,
    metaspace: Option<char>,
    strip_each: Option<(char, usize)>,
    strip_start: Option<(char, usize)>,
    drop_first_spaces: bool,
    fused: bool,
}

impl TokenPieces {
    /// Builds the table. `decoder` is the decoder of `tokenizer.json`; `token` returns the text of an id.
    pub(in crate::checkpoint) fn new(
        decoder: Option<&Value>,
        size: usize,
        token: impl Fn(u32) -> Option<String>,
        is_special: impl Fn(&str) -> bool,
    ) -> Result<TokenPieces, TokenizerFault> {
        let mut steps = Steps::default();
        if let Some(decoder) = decoder {
            steps.add(decoder)?;
        }
        let alphabet = byte_alphabet();
        let mut bytes = Vec::new();
        let mut ends = Vec::with_capacity(size);
        let mut special = Vec::with_capacity(size);
        for id in 0..size {
            let text = u32::try_from(id).ok().and_then(&token);
            special.push(text.as_deref().is_some_and(&is_special));
            if let Some(text) = text {
                steps.push_bytes(&text, &alphabet, &mut bytes);
            }
            ends.push(bytes.len());
        }
        Ok(TokenPieces {
            bytes,
            ends,
            special,
            strip_start: steps.strip_start,
            drop_first_spaces: steps.drop_first_spaces,
            spaced: decoder.is_none(),
        })
    }

    /// One more than the largest id.
    pub(in crate::checkpoint) fn len(&self) -> usize {
        self.ends.len()
    }

    /// Returns a token's bytes; empty for an id that does not exist.
    pub(in crate::checkpoint) fn bytes(&self, id: u32) -> &[u8] {
        let id = id as usize;
        let start = if id == 0 { 0 } else { self.ends.get(id - 1).copied().unwrap_or(self.bytes.len()) };
        self.ends.get(id).and_then(|&end| self.bytes.get(start..end)).unwrap_or(&[])
    }

    /// True for a control token, which has no text.
    pub(in crate::checkpoint) fn is_special(&self, id: u32) -> bool {
        self.special.get(id as usize).copied().unwrap_or(false)
    }
}

impl Steps {
    fn add(&mut self, decoder: &Value) -> Result<(), TokenizerFault> {
        let text = |key: &str| decoder.get(key).and_then(Value::as_str);
        let first_char = |key: &str| text(key).and_then(|s| s.chars().next());
        match text("type").unwrap_or("(no type)") {
            "Sequence" => {
                for inner in decoder.get("decoders").and_then(Value::as_array).into_iter().flatten() {
                    self.add(inner)?;
                }
            }
            "ByteLevel" => self.byte_level = true,
            // It would apply to the whole text, not to a token.
            "Replace" if self.byte_level => return Err(TokenizerFault::ReplaceAfterByteLevel),
            "ByteFallback" => self.byte_fallback = true,
            "Fuse" => self.fused = true,
            "Replace" => {
                let from = decoder.get("pattern").and_then(|p| p.get("String")).and_then(Value::as_str);
                let (Some(from), Some(to)) = (from, text("content")) else {
                    return Err(TokenizerFault::ReplaceByExpression);
                };
                // After fusing, a longer pattern could match across tokens.
                if self.fused && from.chars().count() != 1 {
                    return Err(TokenizerFault::ReplaceAfterFuse(from.to_owned()));
                }
                self.replace.push((from.to_string(), to.to_string()));
            }
            "Strip" => {
                let count = |key: &str| decoder.get(key).and_then(Value::as_u64).unwrap_or(0) as usize;
                let Some(content) = first_char("content") else { return Err(TokenizerFault::NoStripContent) };
                if count("stop") > 0 {
                    return Err(TokenizerFault::StripsEnd);
                }
                let strip = Some((content, count("start")));
                if self.fused { self.strip_start = strip } else { self.strip_each = strip }
            }
            "Metaspace" => {
                self.metaspace = Some(first_char("replacement").unwrap_or('\u{2581}'));
                let never = text("prepend_scheme") == Some("never")
                    || decoder.get("add_prefix_space").and_then(Value::as_bool) == Some(false);
                self.drop_first_spaces = !never;
            }
            other => return Err(TokenizerFault::Decoder(other.to_owned())),
        }
        Ok(())
    }

    fn push_bytes(&self, token: &str, alphabet: &HashMap<char, u8>, out: &mut Vec<u8>) {
        if self.byte_level {
            let mut token = token.to_owned();
            for (from, to) in &self.replace {
                token = token.replace(from.as_str(), to);
            }
            let raw: Option<Vec<u8>> = token.chars().map(|c| alphabet.get(&c).copied()).collect();
            // An added token may have characters outside the alphabet; then its text is its own.
            return out.extend(raw.unwrap_or_else(|| token.as_bytes().to_vec()));
        }
        if self.byte_fallback
            && let Some(byte) = byte_token(token)
        {
            return out.push(byte);
        }
        let mut text = token.to_string();
        for (from, to) in &self.replace {
            text = text.replace(from.as_str(), to);
        }
        if let Some(mark) = self.metaspace {
            text = text.replace(mark, " ");
        }
        if let Some((content, most)) = self.strip_each {
            let drop = text.chars().take(most).take_while(|c| *c == content).count();
            text = text.chars().skip(drop).collect();
        }
        out.extend_from_slice(text.as_bytes());
    }
}

/// Parses a byte token: `<0x0A>` is byte 10.
pub(in crate::checkpoint) fn byte_token(token: &str) -> Option<u8> {
    let hex = token.strip_prefix("<0x")?.strip_suffix('>')?;
    if hex.len() != 2 || !hex.bytes().all(|b| b.is_ascii_hexdigit()) {
        return None;
    }
    u8::from_str_radix(hex, 16).ok()
}

/// Returns GPT-2's alphabet: printable Latin-1 characters map to themselves, characters from U+0100 on to the other bytes.
pub(in crate::checkpoint) fn byte_alphabet() -> HashMap<char, u8> {
    let printable = |b: u8| matches!(b, b'!'..=b'~' | 0xA1..=0xAC | 0xAE..=0xFF);
    let mut next = 0x100u32;
    (0..=u8::MAX)
        .filter_map(|b| {
            let code = if printable(b) {
                u32::from(b)
            } else {
                next += 1;
                next - 1
            };
            Some((char::from_u32(code)?, b))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_byte_alphabet_is_gpt2s() {
        let map = byte_alphabet();
        assert_eq!(map.len(), 256);
        assert_eq!(map[&'\u{120}'], b' ');
        assert_eq!(map[&'\u{10A}'], b'\n');
        assert_eq!(map[&'A'], b'A');
        assert_eq!(map[&'\u{143}'], 0xAD);
    }

    #[test]
    fn only_two_hexadecimal_digits_are_a_byte() {
        assert_eq!(byte_token("<0x0A>"), Some(10));
        assert_eq!(byte_token("<0xfF>"), Some(255));
        for other in ["<0x+A>", "<0xA>", "<0x0AB>", "0x0A", "<0x>", "<0xÄ>"] {
            assert_eq!(byte_token(other), None, "{other}");
        }
    }

    #[test]
    fn an_unknown_decoder_is_refused_by_name() {
        let decoder = serde_json::json!({"type": "WordPiece", "prefix": "##"});
        let error = TokenPieces::new(Some(&decoder), 0, |_| None, |_| false).unwrap_err();
        assert_eq!(error, TokenizerFault::Decoder("WordPiece".to_owned()));
    }
}
