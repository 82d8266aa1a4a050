//! What a page shows at most. A page is a browser's and a reader's: what is beyond a limit is counted in a sentence, with the way to it.
use earnest_results::with_commas;

/// Largest page, in bytes; a browser is slow far below.
pub(crate) const PAGE_BYTES: usize = 16 << 20;

/// Runs of the first page, the newest first; others are on further pages.
pub(crate) const RUNS: usize = 300;

/// Suites up to which there is a table of models by suites.
pub(crate) const SUITES: usize = 24;

/// Cells of the tables of tasks by runs on the first page, over all tables.
pub(crate) const CELLS: usize = 15_000;

/// Rows of a table of tasks or of scorers.
pub(crate) const ROWS: usize = 500;

/// Choices of a list; where there are more, a name is written instead.
pub(crate) const OPTIONS: usize = 500;

/// Runs that are compared with one of them at once.
pub(crate) const BESIDE: usize = 100;

/// Notes and warnings.
pub(crate) const NOTES: usize = 50;

/// Tasks, and points of their curves, up to which a page draws figures.
pub(crate) const DRAWN_TASKS: usize = 300;
pub(crate) const DRAWN_POINTS: usize = 10_000;

/// Longest text that is shown whole, in bytes: four characters a token, that is an answer of 250,000 tokens.
pub(crate) const TEXT_BYTES: usize = 1 << 20;

/// Longest text beside others that is shown whole, in bytes: what a scorer read, a detail, a question in a list.
pub(crate) const SHORT_TEXT_BYTES: usize = 16 << 10;

/// Tokens that are shown one by one, of a prompt and of an answer.
pub(crate) const TOKENS: usize = 50_000;

/// Takes the first of some values, and says how many there are beside them, `what` they are and how to see them.
pub(crate) fn first<T>(
    all: impl IntoIterator<Item = T>,
    limit: usize,
    what: &str,
    how: &str,
) -> (Vec<T>, Option<String>) {
    let mut all = all.into_iter();
    let taken: Vec<T> = all.by_ref().take(limit).collect();
    let left = all.count() as u64;
    (taken, (left > 0).then(|| format!("{} more {what} are not shown here: {how}", with_commas(left))))
}

/// The text, or its beginning and end with a sentence between them that says what is left out.
pub(crate) fn text(text: String, limit: usize) -> String {
    if text.len() <= limit {
        return text;
    }
    let head = text.floor_char_boundary(limit / 2);
    let tail = text.ceil_char_boundary(text.len() - limit / 2);
    let left = with_commas((tail - head) as u64);
    format!(
        "{} [\u{2026} {left} bytes are left out here; `earnest samples` prints all \u{2026}] {}",
        &text[..head],
        &text[tail..]
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_out_is_counted() {
        assert_eq!(first(0..3, 3, "tasks", "look"), (vec![0, 1, 2], None));
        let (taken, more) = first(0..5003, 3, "tasks", "look");
        assert_eq!((taken.len(), more.as_deref()), (3, Some("5,000 more tasks are not shown here: look")));
    }

    #[test]
    fn long_texts_keep_their_beginning_and_end() {
        assert_eq!(text("abcdef".into(), 6), "abcdef");
        let cut = text(format!("{}{}", "\u{e9}".repeat(100), "z".repeat(100)), 21);
        assert!(cut.starts_with("\u{e9}\u{e9}\u{e9}\u{e9}\u{e9} [") && cut.ends_with("] zzzzzzzzzz"), "{cut}");
        assert!(cut.contains("280 bytes are left out"), "{cut}");
    }
}
