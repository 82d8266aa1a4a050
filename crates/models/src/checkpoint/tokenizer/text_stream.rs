//! Incremental detokenisation.
use super::pieces::TokenPieces;
use std::sync::Arc;

/// An incremental detokeniser for one sequence.
///
/// Special tokens have no text, except in [`super::super::Tokenizer::whole_stream`]. A character whose bytes span several tokens appears with its last byte; invalid bytes become
/// U+FFFD, one for each maximal invalid run (as in [`String::from_utf8_lossy`]). The texts of all pushes and of
/// [`TextStream::finish`], joined, equal [`super::super::Tokenizer::decode`] of all ids. A push takes time proportional to the token's
/// length.
#[derive(Debug, Clone)]
pub struct TextStream {
    pieces: Arc<TokenPieces>,
    /// Bytes of an incomplete character; at most three between pushes.
    pending: Vec<u8>,
    /// Text of the latest push.
    text: String,
    /// Leading characters that may still be dropped.
    strip_left: usize,
    started: bool,
    keep_special: bool,
}

impl TextStream {
    pub(in crate::checkpoint) fn new(pieces: Arc<TokenPieces>, keep_special: bool) -> TextStream {
        let strip_left = pieces.strip_start.map_or(0, |(_, most)| most);
        TextStream { pieces, pending: Vec::new(), text: String::new(), strip_left, started: false, keep_special }
    }

    /// Adds a token and returns the text that it completes, which may be empty.
    pub fn push(&mut self, id: u32) -> &str {
        self.text.clear();
        let exists = (id as usize) < self.pieces.len();
        if exists && (self.keep_special || !self.pieces.is_special(id)) {
            let bytes = self.pieces.bytes(id);
            if self.pieces.spaced && self.started {
                self.pending.push(b' ');
            }
            if self.pieces.drop_first_spaces && !self.started {
                self.pending.extend(bytes.iter().filter(|b| **b != b' '));
            } else {
                self.pending.extend_from_slice(bytes);
            }
            self.started = true;
            self.drain(false);
        }
        &self.text
    }

    /// Ends the text: an incomplete character becomes U+FFFD.
    pub fn finish(&mut self) -> &str {
        self.text.clear();
        self.drain(true);
        &self.text
    }

    /// Moves complete characters from `pending` to `text`.
    fn drain(&mut self, last: bool) {
        let mut used = 0;
        for chunk in self.pending.utf8_chunks() {
            self.text.push_str(chunk.valid());
            used += chunk.valid().len();
            let rest = chunk.invalid();
            let at_end = used + rest.len() == self.pending.len();
            if rest.is_empty() || (at_end && !last && could_continue(rest)) {
                break;
            }
            self.text.push('\u{FFFD}');
            used += rest.len();
        }
        self.pending.drain(..used);
        while self.strip_left > 0
            && let Some(first) = self.text.chars().next()
        {
            if Some(first) == self.pieces.strip_start.map(|(content, _)| content) {
                self.text.drain(..first.len_utf8());
                self.strip_left -= 1;
            } else {
                self.strip_left = 0;
            }
        }
    }
}

/// True for the start of a valid character that more bytes may complete.
fn could_continue(bytes: &[u8]) -> bool {
    matches!(std::str::from_utf8(bytes), Err(e) if e.valid_up_to() == 0 && e.error_len().is_none())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn stream(decoder: serde_json::Value, tokens: &[&str]) -> TextStream {
        let token = |id: u32| tokens.get(id as usize).map(|t| t.to_string());
        let pieces = TokenPieces::new(Some(&decoder), tokens.len(), token, |t| t == "<s>").unwrap();
        TextStream::new(Arc::new(pieces), false)
    }

    fn llama2() -> serde_json::Value {
        json!({"type": "Sequence", "decoders": [
            {"type": "Replace", "pattern": {"String": "▁"}, "content": " "},
            {"type": "ByteFallback"}, {"type": "Fuse"},
            {"type": "Strip", "content": " ", "start": 1, "stop": 0}]})
    }

    #[test]
    fn a_character_over_several_tokens_appears_once_complete() {
        let mut s = stream(llama2(), &["<s>", "▁a", "<0xE2>", "<0x82>", "<0xAC>", "▁b"]);
        let out: Vec<String> = [0, 1, 2, 3, 4, 5].into_iter().map(|id| s.push(id).to_string()).collect();
        assert_eq!(out, ["", "a", "", "", "€", " b"]);
        assert_eq!(s.finish(), "");
    }

    #[test]
    fn only_the_first_space_of_a_text_is_stripped() {
        let mut s = stream(llama2(), &["<s>", "▁▁x", "▁"]);
        assert_eq!(s.push(2), "");
        assert_eq!(s.push(1), "  x");
    }

    #[test]
    fn broken_bytes_become_replacement_characters() {
        let mut s = stream(llama2(), &["<s>", "a", "<0xE2>", "<0x82>", "<0xFF>"]);
        assert_eq!(s.push(2), "");
        assert_eq!(s.push(1), "\u{FFFD}a");
        assert_eq!(s.push(4), "\u{FFFD}");
        assert_eq!(s.push(2), "");
        assert_eq!(s.push(3), "");
        assert_eq!(s.finish(), "\u{FFFD}");
        assert_eq!(s.push(99), "", "an id that does not exist is no text");
    }

    #[test]
    fn metaspace_drops_the_first_tokens_spaces() {
        let mut s = stream(json!({"type": "Metaspace", "replacement": "▁", "prepend_scheme": "first"}), &["▁a", "▁b"]);
        assert_eq!(s.push(0), "a");
        assert_eq!(s.push(1), " b");
        let mut s = stream(json!({"type": "Metaspace", "replacement": "▁", "prepend_scheme": "never"}), &["▁a"]);
        assert_eq!(s.push(0), " a");
    }

    #[test]
    fn a_stream_can_move_to_another_thread() {
        fn owned<T: Send + 'static>(_: &T) {}
        owned(&stream(llama2(), &["a"]));
    }
}
