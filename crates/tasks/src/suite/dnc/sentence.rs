//! Beginnings of sentences. A point also ends an abbreviation (`vs.`, `3 p.m.`, `No. 5`), and a sentence cut there is a fragment.

/// Abbreviations that stand before what they belong to, so that no sentence ends with them.
const LEADING: &[&str] = &[
    "mr", "mrs", "ms", "mx", "dr", "st", "prof", "rev", "hon", "gen", "col", "capt", "cpt", "lt", "sgt", "maj", "gov",
    "sen", "rep", "pres", "messrs", "mt", "vs", "viz", "eg", "ie", "cf", "ca", "approx", "est", "rs", "pp", "ch",
    "vol", "vols", "figs", "fig", "eq", "eds", "incl", "excl", "resp", "ft",
];
/// Abbreviations before a number, and words before anything else: `No. 5`.
const NUMBERED: &[&str] = &["no", "nos", "sec", "apt", "rm", "ext", "ver"];
/// Abbreviations with which a sentence may end.
const TRAILING: &[&str] = &[
    "etc", "al", "inc", "ltd", "co", "corp", "bros", "jr", "sr", "esq", "dept", "ave", "blvd", "rd", "lb", "lbs", "oz",
    "yd", "yds", "qt", "qts", "hrs", "tbsp", "tsp",
];
/// Units that are words too, so that only a number before them shows what they are.
const UNITS: &[&str] = &[
    "in", "mi", "min", "mins", "sec", "secs", "hr", "pt", "pts", "gal", "gals", "sq", "cu", "doz", "mos", "yrs", "wks",
];
/// Months and days, where they are written as names.
const CALENDAR: &[&str] = &[
    "jan", "feb", "mar", "apr", "jun", "jul", "aug", "sep", "sept", "oct", "nov", "dec", "mon", "tue", "tues", "wed",
    "thu", "thur", "thurs", "fri", "sat",
];
/// Capitalised words that begin sentences and are no names: before them an abbreviation ends its sentence.
const OPENING: &[&str] = &[
    "a", "an", "the", "he", "she", "it", "they", "we", "you", "i", "his", "her", "their", "its", "our", "my", "your",
    "this", "that", "these", "those", "there", "here", "then", "if", "when", "while", "how", "what", "who", "which",
    "where", "why", "whose", "after", "before", "in", "on", "at", "by", "for", "from", "with", "of", "each", "every",
    "some", "all", "both", "no", "one", "and", "but", "or", "so", "because", "however", "also", "is", "are", "was",
    "were", "do", "does",
];

/// Byte offsets at which sentences begin: the first, and after `.`, `!` or `?` and white space before anything but a small
/// letter. Abbreviations, initials and the number of a heading (`16. PRODUCT WARRANTIES`) end no sentence.
pub(super) fn sentence_starts(text: &str) -> Vec<usize> {
    let mut starts = vec![0];
    for (at, mark) in text.match_indices(['.', '!', '?']) {
        let after = &text[at + 1..];
        let next = after.trim_start();
        let gap = after.len() - next.len();
        if gap == 0 || next.chars().next().is_none_or(char::is_lowercase) {
            continue;
        }
        let from = starts.last().copied().unwrap_or(0);
        if mark == "." && (is_heading_number(&text[from..at]) || is_abbreviation(&text[from..at], next)) {
            continue;
        }
        starts.push(at + 1 + gap);
    }
    starts
}

/// True for a small word that a capital at the beginning of a sentence makes no name of.
pub(super) fn is_opening(word: &str) -> bool {
    OPENING.contains(&word)
}

/// True for a number and nothing else before a point, at the beginning of a sentence or a line.
fn is_heading_number(before: &str) -> bool {
    let line = before.rsplit('\n').next().unwrap_or(before).trim();
    !line.is_empty() && line.bytes().all(|byte| byte.is_ascii_digit())
}

/// True if the word at the end of `before`, behind which a point stands, is cut short rather than the last of its sentence;
/// `next` follows the point and white space.
fn is_abbreviation(before: &str, next: &str) -> bool {
    let start = before
        .rfind(|c: char| !(c.is_alphanumeric() || c == '.'))
        .map_or(0, |at| at + before[at..].chars().next().map_or(1, char::len_utf8));
    let (earlier, written) = (before[..start].trim_end(), &before[start..]);
    let word = written.to_lowercase();
    let word = word.as_str();
    let numbered = next.starts_with(|c: char| c.is_numeric() || "$€£¥#".contains(c));
    let measured = earlier.ends_with(|c: char| c.is_ascii_digit());
    let named = written.starts_with(char::is_uppercase);
    let opening = || {
        let first: String = next.chars().take_while(|c| c.is_alphabetic()).collect();
        // `A. Smith` has an initial.
        !next[first.len()..].starts_with('.') && is_opening(&first.to_lowercase())
    };
    // `3.5` before the point of a sentence is a number, `3ft` a number with its unit.
    let word = word.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.');
    if word.is_empty() {
        return false;
    }
    let measured = measured || word.len() < written.len() && written.starts_with(|c: char| c.is_ascii_digit());
    let letters = |part: &str| (1..=2).contains(&part.chars().count()) && part.chars().all(char::is_alphabetic);
    if word.contains('.') {
        // `e.g.`, `i.e.`; `p.m.` and `U.S.` may end a sentence.
        return word.split('.').all(letters) && (["e.g", "i.e"].contains(&word) || !opening());
    }
    if LEADING.contains(&word) {
        // Feet end a sentence, a fort stands before its name.
        return word != "ft" || !opening();
    }
    if NUMBERED.contains(&word) && (numbered || measured) {
        return !measured || !opening();
    }
    if word.chars().count() == 1 {
        // Symbols of units have no point of their own: `30 g. Ann left.` Initials and `p. 5` have one.
        return word.chars().all(char::is_alphabetic)
            && !(measured && ["g", "m", "l", "h", "s"].contains(&word))
            && (numbered || !opening());
    }
    let cut = TRAILING.contains(&word) || (UNITS.contains(&word) && measured) || (CALENDAR.contains(&word) && named);
    cut && !opening()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sentences(text: &str) -> Vec<&str> {
        let mut starts = sentence_starts(text);
        starts.push(text.len());
        starts.windows(2).map(|ends| text[ends[0]..ends[1]].trim()).collect()
    }

    #[test]
    fn abbreviations_end_no_sentence() {
        for text in [
            "About 3.5 kg vs. 30 dogs sat.",
            "He lives at No. 5 of the street.",
            "At 3 p.m. 7 left.",
            "It weighs approx. 5 tons, see p. 50 and Ch. 7.",
            "It cost Rs. 50, e.g. 20 and 30, i.e. 50.",
            "Pens, caps etc. 5 of each.",
            "On Sept. 30 and Mon. 3 we ate 5 oz. 3 times, 6 in. 2 ft. 9 min. 4.",
            "J. A. Smith of Acme Inc. 5 times met Mrs. Gray and St. Ives.",
            "16. PRODUCT WARRANTIES",
        ] {
            assert_eq!(sentences(text), [text]);
        }
    }

    #[test]
    fn sentences_end_elsewhere() {
        for (text, second) in [
            ("About 30 dogs sat. How many things?", "How many things?"),
            ("They sat. 30 dogs ran.", "30 dogs ran."),
            ("He came in. Ana left.", "Ana left."),
            ("She said no. Then 5 left.", "Then 5 left."),
            ("It began at 3 p.m. She left.", "She left."),
            ("It weighs 300 lbs. The box is 5 in. wide.", "The box is 5 in. wide."),
            ("He ate 30 g. Ann left.", "Ann left."),
            ("It cost $3.50. 5 left!", "5 left!"),
            ("He ran 3.5 min. How far?", "How far?"),
            ("Really? Yes.", "Yes."),
            ("1. Ann has 5 pens. Ben has 3.", "Ben has 3."),
            ("He has 16. Ann has 3.", "Ann has 3."),
            ("We mar. Ann left.", "Ann left."),
        ] {
            assert_eq!(sentences(text).get(1).copied(), Some(second), "{text}");
            assert_eq!(sentences(text).len(), 2, "{text}");
        }
        assert_eq!(sentence_starts(""), [0]);
        assert_eq!(sentences("É. ß. 5 é"), ["É. ß. 5 é"]);
    }
}
