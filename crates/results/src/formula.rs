//! Texts that a spreadsheet would compute: those that begin with `=`, `+`, `-`, `@`, a tab or a carriage return, numbers excepted
//! (OWASP, "CSV Injection"). A quote before them makes them texts; reading a CSV of earnest takes it away again.
use std::borrow::Cow;

/// Mark of a text in a spreadsheet.
const QUOTE: char = '\'';

/// True for a text that a spreadsheet would compute.
pub fn is_formula(text: &str) -> bool {
    starts_formula(text) && !is_number(text)
}

/// Returns the text for a cell. Texts that have the mark already, before what would be a formula, get another one, so that
/// [`original`] is unambiguous.
pub fn neutral(text: &str) -> Cow<'_, str> {
    let marked = text.starts_with(QUOTE) && starts_formula(text.trim_start_matches(QUOTE));
    match marked || is_formula(text) {
        true => format!("{QUOTE}{text}").into(),
        false => text.into(),
    }
}

/// Returns the text that [`neutral`] was given.
pub fn original(cell: &str) -> &str {
    match cell.strip_prefix(QUOTE) {
        Some(text) if starts_formula(text.trim_start_matches(QUOTE)) => text,
        _ => cell,
    }
}

fn starts_formula(text: &str) -> bool {
    // Full-width signs too: spreadsheets of some languages take them for the others.
    text.starts_with(['=', '+', '-', '@', '\t', '\r', '\n', '＝', '＋', '－', '＠'])
}

fn is_number(text: &str) -> bool {
    let plain = |c: char| c.is_ascii_digit() || matches!(c, '+' | '-' | '.' | 'e' | 'E');
    text.chars().all(plain) && text.parse::<f64>().is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_text_comes_back() {
        let formulas = [
            "=1+1",
            "+x",
            "-cmd|' /C calc'!A0",
            "@SUM(1)",
            "\t=1",
            "\r=1",
            "\n=1",
            "＝1",
            "＋x",
            "－x",
            "＠x",
            "-",
            "--5",
            "+1 234",
            "-inf",
        ];
        for text in formulas {
            assert!(neutral(text).starts_with('\'') && neutral(text)[1..] == *text, "{text:?}");
        }
        let others = ["", "x", "-5", "+1.5e3", "-0", "1-2", "'", "'x", "''", "it's", "'5"];
        for text in others {
            assert_eq!(neutral(text), text);
        }
        for text in formulas.into_iter().chain(others).chain(["'=1", "''=1", "'-5", "''''@", "'\t"]) {
            let once = neutral(text).into_owned();
            assert!(!is_formula(&once));
            assert_eq!(original(&once), text, "{text:?}");
            // A CSV of a CSV.
            let twice = neutral(&once).into_owned();
            assert_eq!(original(original(&twice)), text, "{text:?}");
        }
    }
}
