//! Numbers that are names: `May 5`, `5 p.m.`, `Note 7`. Another number or `5 (not 96)` in their place is another name, or nonsense.
use super::mention::Number;

const MONTHS: [&str; 12] = [
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
];
const SHORT_MONTHS: [&str; 12] = ["jan", "feb", "mar", "apr", "jun", "jul", "aug", "sep", "sept", "oct", "nov", "dec"];
/// Words before a number that is a label.
const LABELS: [&str; 22] = [
    "note",
    "notes",
    "page",
    "pages",
    "table",
    "figure",
    "section",
    "item",
    "chapter",
    "exhibit",
    "paragraph",
    "volume",
    "part",
    "no",
    "number",
    "room",
    "route",
    "highway",
    "channel",
    "grade",
    "version",
    "flight",
];
/// Words after a number that is an hour or a year. `am` alone is a verb, too.
const CLOCK: [&str; 10] = ["pm", "am", "p.m", "a.m", "o'clock", "o’clock", "bc", "ad", "bce", "ce"];

/// True if the words beside a number make it a day of a month, an hour or a label.
pub(super) fn names_a_time_or_place(text: &str, number: &Number) -> bool {
    let (before, after) = (text[..number.start].trim_end(), text[number.end..].trim_start());
    let previous = before.rsplit(|c: char| !(c.is_alphabetic() || c == '.')).next().unwrap_or_default();
    let end = after.find(|c: char| !(c.is_alphabetic() || ".'’".contains(c))).unwrap_or(after.len());
    let next = &after[..end];
    let (named, lower) = (previous.trim_matches('.').to_lowercase(), next.trim_end_matches('.').to_lowercase());
    // `may` and `march` are verbs unless they are written as names; the first word of a sentence is taken for the month.
    let month = |word: &str, written: &str| {
        written.starts_with(char::is_uppercase) && (MONTHS.contains(&word) || SHORT_MONTHS.contains(&word))
    };
    let day = !number.text.contains(['.', '-']) && matches!(number.text.parse(), Ok(1..=31u32));
    let dated = day && (month(&named, previous) || month(&lower, next));
    let clock = CLOCK.contains(&lower.as_str());
    let labelled = LABELS.contains(&named.as_str()) && !previous.starts_with('.') && !number.text.contains(['-', '.']);
    dated || clock || labelled
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
        assert_eq!(named("Note 7 says 8. See page 9, Sept. 30 and No. 4."), ["7", "9", "30", "4"]);
        assert_eq!(named("They may 5 times march 6 miles, 40 May, 7 parts of 8."), Vec::<String>::new());
        assert_eq!(named("He ate 5. Notes: 6 apples. $5 a page."), Vec::<String>::new());
    }
}
