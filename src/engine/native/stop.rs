//! Stop strings, found exactly, also across token borders. A NUL within one marks where the text is cut: `\nQ:` goes, and of
//! `\nQ:\0` everything stays.

/// The text of a completion as it grows, watched for stop strings.
#[derive(Debug, Default)]
pub(crate) struct StopWatch {
    /// Each with the number of its bytes that stay.
    stops: Vec<(String, usize)>,
    longest: usize,
    text: String,
}

impl StopWatch {
    /// Watches for the first occurrence of any of `stops` (empty ones are ignored).
    pub(crate) fn new(stops: Vec<String>) -> StopWatch {
        let stops: Vec<(String, usize)> = stops.iter().map(|s| split_cut(s)).filter(|(s, _)| !s.is_empty()).collect();
        let longest = stops.iter().map(|(s, _)| s.len()).max().unwrap_or(0);
        StopWatch { stops, longest, text: String::new() }
    }

    /// Appends text; true if a stop string is now complete. The text then ends before it.
    pub(crate) fn push(&mut self, piece: &str) -> bool {
        if piece.is_empty() {
            return false;
        }
        // A stop string that ends in the new piece begins at most its length before it.
        let mut from = self.text.len().saturating_sub(self.longest);
        while !self.text.is_char_boundary(from) {
            from -= 1;
        }
        self.text.push_str(piece);
        let found = |(stop, kept): &(String, usize)| Some((self.text[from..].find(stop.as_str())?, *kept));
        let first = self.stops.iter().filter_map(found).min();
        if let Some((at, kept)) = first {
            self.text.truncate(from + at + kept);
        }
        first.is_some()
    }

    /// The text without an end that may turn out to be the beginning of a stop string.
    pub(crate) fn settled(&self) -> &str {
        let from = self.text.len().saturating_sub(self.longest.saturating_sub(1));
        let begins = |at: &usize| {
            self.text.is_char_boundary(*at) && {
                let end = &self.text[*at..];
                self.stops.iter().any(|(stop, _)| stop.starts_with(end))
            }
        };
        let end = (from..self.text.len()).find(begins).unwrap_or(self.text.len());
        &self.text[..end]
    }

    /// The text.
    pub(crate) fn into_text(self) -> String {
        self.text
    }
}

/// A stop string without its mark, and how many of its bytes stay.
pub(crate) fn split_cut(stop: &str) -> (String, usize) {
    match stop.split_once('\0') {
        Some((kept, cut)) => (format!("{kept}{cut}"), kept.len()),
        None => (stop.to_owned(), 0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(stops: &[&str], pieces: &[&str]) -> (usize, String) {
        let mut watch = StopWatch::new(stops.iter().map(|s| s.to_string()).collect());
        for (i, piece) in pieces.iter().enumerate() {
            if watch.push(piece) {
                return (i, watch.into_text());
            }
        }
        (pieces.len(), watch.into_text())
    }

    #[test]
    fn stops_are_found_within_and_across_pieces() {
        assert_eq!(run(&["\n\n"], &["12", "\n", "\nQ"]), (2, "12".into()));
        assert_eq!(run(&["Q:", "\n\n"], &["a\n\nQ:", "b"]), (0, "a".into()));
        assert_eq!(run(&["</s>"], &["<", "/", "s", "x", "</s", ">"]), (5, "</sx".into()));
        assert_eq!(run(&["é!"], &["é", "é", "!"]), (2, "é".into()));
        assert_eq!(run(&[""], &["a", ""]), (2, "a".into()));
        assert_eq!(run(&["aa"], &["ba", "b", "a", "a"]), (3, "bab".into()));
    }

    #[test]
    fn what_may_become_a_stop_is_not_settled() {
        let mut watch = StopWatch::new(vec!["\n\nQ".into(), "é!".into()]);
        let mut settled = Vec::new();
        for piece in ["4", "2\n", "a", "\n\n", "b\n\n", "\n", "é", "e"] {
            assert!(!watch.push(piece));
            settled.push(watch.settled().to_owned());
        }
        let whole = "42\na\n\nb\n\n\née";
        let lengths = [1, 2, 4, 4, 7, 8, 10, whole.len()];
        assert_eq!(settled, lengths.map(|length| whole[..length].to_owned()));
        let mut plain = StopWatch::new(vec![]);
        assert!(!plain.push("a"));
        assert_eq!(plain.settled(), "a");
    }

    #[test]
    fn what_stands_before_the_mark_stays() {
        assert_eq!(run(&["\nQ:\0", " Q:\0"], &["5.", "\n", "Q", ": What"]), (3, "5.\nQ:".into()));
        assert_eq!(run(&["\n\0Q:"], &["a\nQ: b"]), (0, "a\n".into()));
        assert_eq!(run(&["\0"], &["a", "b"]), (2, "ab".into()));
    }
}
