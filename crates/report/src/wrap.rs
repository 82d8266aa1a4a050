//! Prose in lines of a width.
use unicode_width::UnicodeWidthStr;

use crate::options;

/// Words between which a text may wrap: a number and its `%` are one, and so is `p < 0.0001`.
pub(super) fn words(text: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match words.last_mut() {
            Some(last) if belongs_to(word, last) => {
                last.push(' ');
                last.push_str(word);
            }
            _ => words.push(word.to_owned()),
        }
    }
    words
}

/// True of a word that stays on the line of the last one.
fn belongs_to(word: &str, last: &str) -> bool {
    let is_relation = |word: &str| matches!(word, "=" | "<" | ">");
    let name = last.trim_start_matches(['(', '[']);
    let ends_in_relation = || name.strip_prefix("p ").is_some_and(is_relation);
    word.starts_with('%') || (name == "p" && is_relation(word)) || ends_in_relation()
}

/// A text for a page, with spaces that do not break within what stays on a line: a number and its `%`, `p < 0.0001`. Its other spaces and line ends stay.
pub fn kept_together(text: &str) -> String {
    let mut kept = String::with_capacity(text.len());
    let mut last = String::new();
    for piece in text.split_inclusive(char::is_whitespace) {
        let word = piece.trim_end();
        if !word.is_empty() && kept.ends_with(' ') && belongs_to(word, &last) {
            kept.pop();
            kept.push('\u{a0}');
            last.push(' ');
            last.push_str(word);
        } else {
            word.clone_into(&mut last);
        }
        kept.push_str(piece);
    }
    kept
}

/// Word of a text with what keeps it on the line of the next one.
struct Word {
    text: String,
    /// True if the next word stands in the same backticks.
    in_span: bool,
    /// True of an option whose value may be the next word.
    is_option: bool,
}

/// Words of a text for lines of `room` columns: an option and its value are one, and what stands in backticks is one, where a line has
/// room for it, so that commands can be copied.
fn unbroken(text: &str, room: usize) -> Vec<String> {
    let words = words(text);
    let mut open = false;
    let mut last_opened = 0;
    let mut joined: Vec<Word> = Vec::with_capacity(words.len());
    for (index, text) in words.into_iter().enumerate() {
        if text.matches('`').count() % 2 == 1 {
            open = !open;
            last_opened = index;
        }
        // Another option is no value.
        if let Some(before) = joined.last_mut().filter(|_| text.starts_with("--")) {
            before.is_option = false;
        }
        joined.push(Word { is_option: is_option(&text), in_span: open, text });
    }
    if open {
        joined[last_opened..].iter_mut().for_each(|word| word.in_span = false);
    }
    fitting(&joined, room, &[|word| word.in_span || word.is_option, |word| word.in_span, |word| word.is_option])
}

/// Joins words as the first of these rules says; what is too wide for a line is joined as the next one says.
fn fitting(words: &[Word], room: usize, rules: &[fn(&Word) -> bool]) -> Vec<String> {
    let [rule, others @ ..] = rules else { return words.iter().map(|word| word.text.clone()).collect() };
    let mut found = Vec::new();
    for group in words.chunk_by(|word, _| rule(word)) {
        let whole = group.iter().map(|word| word.text.as_str()).collect::<Vec<_>>().join(" ");
        if group.len() == 1 || text_width(&whole) <= room {
            found.push(whole);
        } else {
            found.extend(fitting(group, room, others));
        }
    }
    found
}

/// True of an option without a value or a mark behind it.
fn is_option(word: &str) -> bool {
    let name = word.trim_start_matches(['`', '(', '[']).strip_prefix("--");
    name.is_some_and(|name| !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-'))
}

/// Returns the width of a text in columns of a terminal: Chinese and Japanese characters have two, and accents of their own none.
pub fn text_width(text: &str) -> usize {
    text.width()
}

/// Wraps prose between words; the first line begins with `mark`, and the others are indented by its width. An option stays with its value,
/// and what stands in backticks stays whole.
pub fn wrap(text: &str, width: usize, mark: &str) -> String {
    let mut lines = String::new();
    let mut column = 0;
    let indent = text_width(mark);
    for word in unbroken(text, width.saturating_sub(indent)) {
        let length = text_width(&word);
        if column == 0 {
            lines.push_str(mark);
            column = indent;
        } else if column + 1 + length > width {
            lines.push('\n');
            lines.push_str(&" ".repeat(indent));
            column = indent;
        } else {
            lines.push(' ');
            column += 1;
        }
        lines.push_str(&word);
        column += length;
    }
    lines.push('\n');
    lines
}

/// Wraps a text as [`wrap`] does, with options for the settings that it names.
pub fn prose(text: &str, width: usize, mark: &str) -> String {
    wrap(&options(text), width, mark)
}

/// Wraps the lines of a text that are wider than `width`, between words; what they continue with stands under their beginning.
pub fn wrap_lines(text: &str, width: usize) -> String {
    let wrapped = |line: &str| {
        if text_width(line) <= width {
            return format!("{line}\n");
        }
        let own = line.trim_start_matches(' ');
        let mark = if own.starts_with("* ") { 2 } else { 0 };
        wrap(&own[mark..], width, &line[..line.len() - own.len() + mark])
    };
    text.lines().map(wrapped).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_lines_are_wrapped_under_their_beginning() {
        let text = "short\n\n  one two three\n* four five six\n";
        assert_eq!(wrap_lines(text, 20), text);
        assert_eq!(wrap_lines(text, 11), "short\n\n  one two\n  three\n* four five\n  six\n");
    }

    #[test]
    fn prose_is_wrapped_as_it_is_shown() {
        assert_eq!(prose("the setting `top_k` has no effect", 20, "* "), "* --top-k has no\n  effect\n");
    }

    #[test]
    fn prose_wraps_between_words() {
        assert_eq!(wrap("one two three four", 10, "* "), "* one two\n  three\n  four\n");
        assert_eq!(wrap("unbreakablelongword", 5, ""), "unbreakablelongword\n");
        let said = "Right are 6.4 % of all (14 %), or 100\n%, and 5 more.";
        for width in 1..60 {
            let text = wrap(said, width, "* ");
            assert!(text.lines().all(|line| !line.trim_start_matches(['*', ' ']).starts_with('%')), "{width}: {text}");
            let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
            assert_eq!(words(&text)[1..], words(said), "nothing is lost");
        }
    }

    #[test]
    fn p_values_stay_on_a_line() {
        let said = "It is better (p < 0.0001, adjusted), and p = 0.03 there; 5 p or p.";
        for width in 14..60 {
            let text = wrap(said, width, "");
            let lines: Vec<&str> = text.lines().collect();
            assert_eq!(lines.join(" "), said, "nothing is lost");
            assert!(["(p < 0.0001,", "p = 0.03"].iter().all(|part| text.contains(part)), "{width}: {text}");
        }
        assert_eq!(kept_together("a  (p < 0.01) is\n 95 % b"), "a  (p\u{a0}<\u{a0}0.01) is\n 95\u{a0}% b");
    }

    #[test]
    fn commands_stay_whole_where_a_line_has_room() {
        let said = "Say (`earnest runs show r --metric m`), or --columns id=a,b=c, or --json, --quiet and --seed.";
        for width in 1..100 {
            let text = wrap(said, width, "* ");
            let lines: Vec<&str> = text.lines().map(|line| &line[2..]).collect();
            assert_eq!(lines.join(" "), said, "nothing is lost");
            let has = |part: &str| lines.iter().any(|line| line.contains(part));
            assert_eq!(has("(`earnest runs show r --metric m`),"), width >= 37, "{width}: {text}");
            assert_eq!(has("--metric m`"), width >= 15, "{width}: {text}");
            assert_eq!(has("--columns id=a,b=c,"), width >= 21, "{width}: {text}");
        }
        // An option is no longer than itself where a comma or another option follows it.
        assert_eq!(wrap("a --json, b", 10, ""), "a --json,\nb\n");
        assert_eq!(wrap("aaaa --json --all x", 12, ""), "aaaa --json\n--all x\n");
        // A dash is a word, and so is a backtick without an end.
        assert_eq!(wrap("one -- two", 6, ""), "one --\ntwo\n");
        assert_eq!(wrap("a `b c d", 5, ""), "a `b\nc d\n");
        // Of two spans, one that is too wide leaves the other whole; so does an option before it.
        assert_eq!(wrap("`aa bb cc` d `e f`", 6, ""), "`aa bb\ncc` d\n`e f`\n");
        assert_eq!(wrap("with --name `e f`", 9, ""), "with\n--name\n`e f`\n");
    }
}
