//! Numbers in round brackets, which the task `box` asks for.

/// Texts inside the innermost round brackets, in order. LaTeX's `\(` and `\)` begin and end a formula and are no brackets.
pub(crate) fn bracketed(text: &str) -> impl Iterator<Item = &str> {
    let (mut opened, mut before) = (None, None);
    text.char_indices().filter_map(move |(at, c)| {
        let is_formula = before.replace(c) == Some('\\');
        match c {
            '(' | '\u{ff08}' if !is_formula => {
                opened = Some(at + c.len_utf8());
                None
            }
            ')' | '\u{ff09}' if !is_formula => {
                let inside = &text[opened.take()?..at];
                Some(inside.strip_suffix("\\right").unwrap_or(inside))
            }
            _ => None,
        }
    })
}

/// True if brackets hold these digits and nothing else but markup and group separators.
pub(super) fn hold(text: &str, digits: &str) -> bool {
    let is_markup = |c: &char| c.is_whitespace() || matches!(c, '*' | '_' | '`' | '$' | ',' | '{' | '}' | '\\' | '!');
    bracketed(text).any(|inside| inside.chars().filter(|c| !is_markup(c)).eq(digits.chars()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn brackets_are_those_around_the_number() {
        for right in [
            "(4070)",
            "The answer is (4,070).",
            "**(4070)**",
            "(**4070**)",
            "$(4{,}070)$",
            "\\left( 4\\,070 \\right)",
            "（4070）",
            "f((4070)",
            "\\((4070)\\)",
        ] {
            assert!(hold(right, "4070"), "{right}");
        }
        for wrong in [
            "4070",
            "[4070]",
            "\\boxed{4070}",
            "\\(4070\\)",
            "(4071)",
            "(4070",
            "4070)",
            "(number) 4070",
            "(4070 digits)",
            ")4070(",
        ] {
            assert!(!hold(wrong, "4070"), "{wrong}");
        }
        assert_eq!(bracketed("a (b) (c(d)e) (").collect::<Vec<_>>(), ["b", "d"]);
    }
}
