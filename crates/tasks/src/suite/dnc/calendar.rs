//! Numbers that are names: `May 5`, `5 p.m.`, `born in 1990`, `Note 7`, `Boeing 747`. Another number or `5 (not 96)` in their place is
//! another name, or nonsense.
use std::sync::LazyLock;

use regex::Regex;

use super::mention::{Attached, Number};
use super::sentence::{is_opening, sentence_starts};

/// Months as names: `may` and `march` are verbs unless they are written with a capital; the first word of a sentence is taken for
/// the month.
const MONTH: &str = concat!(
    r"\b(?:J(?i:anuary|une|uly|an|un|ul)|F(?i:ebruary|eb)|M(?i:arch|ay|ar)|A(?i:pril|ugust|pr|ug)|S(?i:eptember|ept|ep)|",
    r"O(?i:ctober|ct)|N(?i:ovember|ov)|D(?i:ecember|ec))\b"
);
const WEEKDAYS: &[&str] = &["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"];
/// Words before a number that is a label.
const LABELS: &[&str] = &[
    "note",
    "notes",
    "page",
    "pages",
    "table",
    "tables",
    "figure",
    "figures",
    "section",
    "sections",
    "item",
    "chapter",
    "chapters",
    "exhibit",
    "paragraph",
    "volume",
    "part",
    "no",
    "number",
    "room",
    "rooms",
    "route",
    "highway",
    "channel",
    "grade",
    "version",
    "flight",
    "player",
    "gate",
    "platform",
    "level",
    "phase",
    "apartment",
];
/// The same cut short: with a point behind them.
const SHORT_LABELS: &[&str] =
    &["no", "nos", "p", "pp", "ch", "vol", "fig", "figs", "sec", "apt", "ext", "rm", "art", "ver", "eq"];
/// Words after a number that is an hour or a year. `am` alone is a verb, too.
const CLOCK: &[&str] = &["pm", "am", "p.m", "a.m", "o'clock", "o’clock", "bc", "ad", "bce", "ce"];
/// Verbs between which and a number a name may stand: `gave Emily 6 packs`.
const GIVING: &[&str] = &[
    "give", "gives", "gave", "given", "giving", "take", "takes", "took", "taken", "taking", "owe", "owes", "owed",
    "pay", "pays", "paid", "send", "sends", "sent", "lend", "lends", "lent", "sell", "sells", "sold", "buy", "buys",
    "bought", "bring", "brings", "brought", "hand", "hands", "handed", "pass", "passed", "offer", "offers", "offered",
    "show", "showed", "leave", "leaves", "left", "cost", "costs", "make", "makes", "made", "bake", "baked", "get",
    "gets", "got", "serve", "served", "charge", "charges", "charged", "earn", "earns", "earned", "win", "won", "feed",
    "fed", "read", "loan", "loaned", "award", "awarded", "promise", "promised", "save", "saves", "saved", "mail",
    "mailed", "let", "had",
];

fn pattern(text: &str) -> Regex {
    Regex::new(text).expect("the pattern is a constant and the tests use it")
}

/// Before a day: the month, and days of the same list joined by words (`March 6 and `).
static MONTH_BEFORE: LazyLock<Regex> = LazyLock::new(|| {
    let joined = r",?\s+(?:and|or|to|through|until|&)\s+";
    pattern(&format!(r"{MONTH}\.?\s+(?:(?:[0-9]{{1,2}},\s*)*[0-9]{{1,2}}(?:{joined}|\s*[-–]\s*))?$"))
});
/// Before a day within such a list: it goes on behind the day.
static LIST_BEFORE: LazyLock<Regex> = LazyLock::new(|| pattern(&format!(r"{MONTH}\.?\s+(?:[0-9]{{1,2}},\s*)+$")));
static LIST_AFTER: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"^(?:,\s*[0-9]{1,2})*,?\s+(?:and|or|to|through|&)\s+[0-9]{1,2}\b"));
/// Behind a day: the rest of a list and the month (`3 and 4 April`, `5 of May`).
static MONTH_AFTER: LazyLock<Regex> = LazyLock::new(|| {
    pattern(&format!(
        r"^(?:(?:,\s*|,?\s+(?:and|or|to|through|&)\s+(?:the\s+)?|\s*[-–]\s*)[0-9]{{1,2}})*\s+(?:of\s+)?{MONTH}"
    ))
});
/// Before a year: a preposition or a date, and years of the same list.
static YEAR_BEFORE: LazyLock<Regex> = LazyLock::new(|| {
    let word = r"(?i:\b(?:in|since|by|of|from|until|till|during|between|year|years)\s+)";
    let date = format!(r"{MONTH}\.?,?\s+(?:of\s+)?(?:[0-9]{{1,2}}(?:st|nd|rd|th)?,?\s+)?");
    let list = r"(?:[0-9]{4}(?:,\s*(?:and\s+|or\s+)?|\s+(?:and|or|to|through|until)\s+))*";
    pattern(&format!("(?:{word}|{date}){list}$"))
});

/// True if what stands beside a number makes it a day of a month, an hour, a year, or the number of a note, a heading or a
/// product.
pub(super) fn names_a_time_or_place(text: &str, number: &Number) -> bool {
    let (before, after) = (last_part(&text[..number.start]), &text[number.end..]);
    let bare = number.attached == Attached::Nothing && number.text.bytes().all(|byte| byte.is_ascii_digit());
    is_hour(after)
        || is_noted(before, number)
        || bare && (is_day(before, after, number) || is_dated_year(before, number))
        || bare && (is_heading(before, after) || follows_a_name(text, number))
}

/// Bytes before a number that are looked at.
const LONGEST_SENTENCE: usize = 4096;

/// The end of a text, in which a date or the beginning of a sentence is looked for: a long text has many numbers.
fn last_part(text: &str) -> &str {
    let from = text.len().saturating_sub(LONGEST_SENTENCE);
    &text[text.ceil_char_boundary(from)..]
}

/// A number that a year could be.
pub(super) fn could_be_a_year(number: &Number) -> bool {
    number.attached == Attached::Nothing && number.text.len() == 4 && matches!(number.text.parse(), Ok(1500..=2100))
}

fn is_hour(after: &str) -> bool {
    let after = after.trim_start();
    let end = after.find(|c: char| !(c.is_alphabetic() || ".'’".contains(c))).unwrap_or(after.len());
    CLOCK.contains(&after[..end].trim_end_matches('.').to_lowercase().as_str())
}

fn is_noted(before: &str, number: &Number) -> bool {
    let previous = before.trim_end().rsplit(|c: char| !(c.is_alphabetic() || c == '.')).next().unwrap_or_default();
    let word = previous.to_lowercase();
    let labels = |word: &str| match word.strip_suffix('.') {
        Some(short) => SHORT_LABELS.contains(&short),
        None => LABELS.contains(&word),
    };
    !number.text.contains(['-', '.']) && labels(&word)
}

fn is_day(before: &str, after: &str, number: &Number) -> bool {
    matches!(number.text.parse(), Ok(1..=31u32))
        && (MONTH_BEFORE.is_match(before)
            || MONTH_AFTER.is_match(after)
            || LIST_BEFORE.is_match(before) && LIST_AFTER.is_match(after))
}

fn is_dated_year(before: &str, number: &Number) -> bool {
    could_be_a_year(number) && YEAR_BEFORE.is_match(before)
}

/// The number of a heading or a footnote, where a line begins: `16. PRODUCT WARRANTIES`, `(1) Net of tax`.
fn is_heading(before: &str, after: &str) -> bool {
    let line = before.rsplit('\n').next().unwrap_or_default().trim();
    let numbered = |mark: char| {
        let rest = after.strip_prefix(mark).unwrap_or_default();
        let title = rest.trim_start_matches([' ', '\t', '\u{a0}']);
        title.len() < rest.len() && title.starts_with(char::is_uppercase)
    };
    line.is_empty() && numbered('.') || line == "(" && numbered(')')
}

/// Directly behind a capitalised word within a sentence: `a Boeing 747`. Weekdays, and the names of those who are given
/// something, are no such words.
fn follows_a_name(text: &str, number: &Number) -> bool {
    let before = &text[..number.start];
    let bare = before.trim_end_matches([' ', '\t', '\u{a0}']);
    if bare.len() == before.len() {
        return false;
    }
    let start =
        bare.char_indices().rev().take_while(|(_, c)| c.is_alphanumeric()).last().map_or(bare.len(), |(at, _)| at);
    let word = &bare[start..];
    let lower = word.to_lowercase();
    let opens = || {
        let near = last_part(before);
        let from = before.len() - near.len() + sentence_starts(near).last().copied().unwrap_or(0);
        let from = from.min(start);
        let line = text[from..start].rsplit('\n').next().unwrap_or_default();
        line.trim_matches(|c: char| c.is_whitespace() || "(\"“‘'«".contains(c)).is_empty()
    };
    let given = || {
        let earlier = bare[..start].trim_end();
        let verb = earlier.rsplit(|c: char| !c.is_alphabetic()).next().unwrap_or_default().to_lowercase();
        GIVING.contains(&verb.as_str())
    };
    let apart = bare[..start].chars().next_back().is_none_or(|c| c.is_whitespace() || "(\"“".contains(c));
    word.starts_with(char::is_uppercase)
        && apart
        && !WEEKDAYS.contains(&lower.as_str())
        && !is_opening(&lower)
        && !opens()
        && !given()
}

#[cfg(test)]
mod tests {
    use super::super::mention::mentions;
    use super::*;

    #[test]
    fn names_are_told_from_quantities() {
        let named = |text: &str| -> Vec<String> {
            let found = mentions(text).into_iter().filter(|number| names_a_time_or_place(text, number));
            found.map(|number| number.text).collect()
        };
        assert_eq!(named("On May 5, 3 cats; 12 June; at 5 p.m. or 6 am, by 7 o'clock."), ["5", "12", "5", "6", "7"]);
        assert_eq!(
            named("On March 6 and 7, 3 and 4 April, the 5 of May, June 1, 2 and 3."),
            ["6", "7", "3", "4", "5", "1", "2", "3"]
        );
        assert_eq!(
            named("Born in 1990, since 1995, March 1991, May 5, 1992, from 1993 to 1994."),
            ["1990", "1995", "1991", "5", "1992", "1993", "1994"]
        );
        assert_eq!(named("16. PRODUCT WARRANTIES\n17. Leases of 3.\n(1) Net of 5"), ["16", "17", "1"]);
        assert_eq!(
            named("The Boeing 747 flew; on Windows 10 and Player 3; see p. 50 and Ch. 7."),
            ["747", "10", "3", "50", "7"]
        );
        assert_eq!(
            named("She gave Emily 6 packs. Only 5 left. It took Frank 2 days. On Monday 5 came."),
            Vec::<String>::new()
        );
        assert_eq!(named("16 plums. Five in grade. 5 cost 1990 dollars. Ann's 3."), Vec::<String>::new());
        assert_eq!(named("Note 7 says 8. See page 9, Sept. 30 and No. 4."), ["7", "9", "30", "4"]);
        assert_eq!(named("They may 5 times march 6 miles, 40 May, 7 parts of 8."), Vec::<String>::new());
        assert_eq!(named("He ate 5. Notes: 6 apples. $5 a page."), Vec::<String>::new());
    }
}
