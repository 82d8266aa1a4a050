//! Stop strings, found exactly, also across token borders.

/// The text of a completion as it grows, checked for stop strings.
#[derive(Debug, Default)]
pub(crate) struct StopChecker {
    stops: Vec<String>,
    /// The text ends with the stop string instead of before it.
    keep: bool,
    longest: usize,
    text: String,
}

impl StopChecker {
    /// Creates a checker for the first occurrence of any of `stops` (empty ones are ignored), which stays in the text if `keep`.
    pub(crate) fn new(mut stops: Vec<String>, keep: bool) -> StopChecker {
        stops.retain(|stop| !stop.is_empty());
        let longest = stops.iter().map(String::len).max().unwrap_or(0);
        StopChecker { stops, keep, longest, text: String::new() }
    }

    /// Appends text; true if a stop string is now complete. The text then ends before it or with it.
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
        let kept = |stop: &String| if self.keep { stop.len() } else { 0 };
        let found = |stop: &String| Some((self.text[from..].find(stop.as_str())?, kept(stop)));
        let first = self.stops.iter().filter_map(found).min();
        if let Some((at, kept)) = first {
            self.text.truncate(from + at + kept);
        }
        first.is_some()
    }

    /// Text without an end that may turn out to be the beginning of a stop string.
    pub(crate) fn stable(&self) -> &str {
        let from = self.text.len().saturating_sub(self.longest.saturating_sub(1));
        let begins = |at: &usize| {
            self.text.is_char_boundary(*at) && {
                let end = &self.text[*at..];
                self.stops.iter().any(|stop| stop.starts_with(end))
            }
        };
        let end = (from..self.text.len()).find(begins).unwrap_or(self.text.len());
        &self.text[..end]
    }

    /// Returns the text.
    pub(crate) fn into_text(self) -> String {
        self.text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(stops: &[&str], pieces: &[&str]) -> (usize, String) {
        check(stops, false, pieces)
    }

    fn check(stops: &[&str], keep: bool, pieces: &[&str]) -> (usize, String) {
        let mut checker = StopChecker::new(stops.iter().map(|s| s.to_string()).collect(), keep);
        for (i, piece) in pieces.iter().enumerate() {
            if checker.push(piece) {
                return (i, checker.into_text());
            }
        }
        (pieces.len(), checker.into_text())
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
    fn stops_that_are_kept_end_the_text() {
        assert_eq!(check(&["\nQ:", " Q:"], true, &["5.", "\n", "Q", ": What"]), (3, "5.\nQ:".into()));
        assert_eq!(check(&["b", "bc"], true, &["abcd"]), (0, "ab".into()));
        // A NUL is a character like any other.
        assert_eq!(run(&["\nQ:\0"], &["a\nQ: b"]), (1, "a\nQ: b".into()));
        assert_eq!(run(&["\0"], &["a\0", "b"]), (0, "a".into()));
    }

    #[test]
    fn what_may_become_a_stop_is_not_stable() {
        let mut checker = StopChecker::new(vec!["\n\nQ".into(), "é!".into()], false);
        let mut stable = Vec::new();
        for piece in ["4", "2\n", "a", "\n\n", "b\n\n", "\n", "é", "e"] {
            assert!(!checker.push(piece));
            stable.push(checker.stable().to_owned());
        }
        let whole = "42\na\n\nb\n\n\née";
        let lengths = [1, 2, 4, 4, 7, 8, 10, whole.len()];
        assert_eq!(stable, lengths.map(|length| whole[..length].to_owned()));
        let mut plain = StopChecker::new(vec![], false);
        assert!(!plain.push("a"));
        assert_eq!(plain.stable(), "a");
    }
}
