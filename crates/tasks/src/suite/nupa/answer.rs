//! The Number Cookbook's answers: what three scorers take from a completion.
//!
//! * `strict`: our default, section 6.1 of the behaviour study: the completion alone, after the last answer marker, ASCII digits,
//!   and a minus sign makes the answer wrong instead of vanishing;
//! * `paper`: the first match of the published pattern anywhere in the completion (appendix A.1.3);
//! * `reference`: what the authors' program does, artefacts included: a pattern anchored behind the first marker of
//!   prompt and completion together, signs deleted.
use std::sync::LazyLock;

use regex::Regex;

/// The form an answer must have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum AnswerForm {
    /// Digits.
    Integer,
    /// `I.D`.
    Float,
    /// `N/D`.
    Fraction,
    /// `I.DeX`.
    Scientific,
}

/// Text before an answer in the reference program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ReferenceMarker {
    /// `" = "`: completions of open models, read behind their prompt.
    Equals,
    /// `The answer is`: chat models under the system message.
    TheAnswerIs,
    /// `So the answer is`, either case of the `S`: rule-following traces.
    SoTheAnswerIs,
}

struct Patterns {
    strict: [Regex; 4],
    paper: [Regex; 4],
    reference: [Regex; 4],
}

static PATTERNS: LazyLock<Patterns> = LazyLock::new(|| {
    let compile = |sources: [&str; 4]| sources.map(|source| Regex::new(source).expect("the patterns are constants"));
    Patterns {
        strict: compile(["[0-9]+", r"[0-9]+\.[0-9]+", "[0-9]+/[0-9]+", r"[0-9]+\.[0-9]+[eE](?<sign>[+-]?)[0-9]+"]),
        // Python's \d is any decimal digit of any script, and so is the regex crate's.
        paper: compile([r"\d+", r"\d+\.\d+", r"\d+/\d+", r"\d+\.\d+e\d+"]),
        reference: compile([r"^\d+", r"^\d+\.\d+", r"^\d+/\d+", r"^\d+\.\d+[eE][+-]?\d+"]),
    }
});

impl AnswerForm {
    fn index(self) -> usize {
        match self {
            AnswerForm::Integer => 0,
            AnswerForm::Float => 1,
            AnswerForm::Fraction => 2,
            AnswerForm::Scientific => 3,
        }
    }

    /// The number that the question shows as an example of the form (appendix A.2).
    pub fn shown(self) -> &'static str {
        ["123", "10.4", "7/13", "1.23e4"][self.index()]
    }

    /// The pattern as the paper's system message prints it (appendix A.1.3).
    pub fn published_pattern(self) -> &'static str {
        [r"\d+", r"\d+\.\d+", r"\d+/\d+", r"\d+\.\d+e\d+"][self.index()]
    }
}

/// Result of `strict`: what it takes from a completion.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StrictAnswer {
    /// The answer in canonical spelling (`E` lowered, `+` dropped); none where nothing matched or a minus sign stood there.
    pub answer: Option<String>,
    /// True if an answer marker was found.
    pub marker: bool,
    /// True if nothing but white space stood between the start (or the marker) and the answer.
    pub anchored: bool,
    /// True if a number was there but negative, or with a negative exponent.
    pub negative: bool,
}

/// Extracts the answer as `strict` does.
pub fn extract_strict(form: AnswerForm, completion: &str) -> StrictAnswer {
    let marker = ["The answer is", "the answer is"]
        .iter()
        .filter_map(|marker| completion.rfind(marker).map(|at| at + marker.len()))
        .max();
    let text = &completion[marker.unwrap_or(0)..];
    let mut found = StrictAnswer { answer: None, marker: marker.is_some(), anchored: false, negative: false };
    if let Some(captures) = PATTERNS.strict[form.index()].captures(text) {
        let whole = captures.get_match();
        let before = &text[..whole.start()];
        found.anchored = before.trim().is_empty();
        let negative_exponent = captures.name("sign").is_some_and(|sign| sign.as_str() == "-");
        found.negative = before.ends_with(['-', '\u{2212}']) || negative_exponent;
        if !found.negative {
            found.answer = Some(whole.as_str().replace('+', "").replace('E', "e"));
        }
    }
    found
}

/// Extracts the answer as `paper` does: the first match in the completion, or nothing.
pub fn extract_paper(form: AnswerForm, completion: &str) -> Option<&str> {
    PATTERNS.paper[form.index()].find(completion).map(|found| found.as_str())
}

/// Extracts the answer from `text` as the reference program does (for [`ReferenceMarker::Equals`] that is prompt and completion together).
/// Nothing found is an empty string, as there.
pub fn extract_reference(form: AnswerForm, marker: ReferenceMarker, text: &str) -> String {
    let after = |marker: &str| text.find(marker).map(|at| (at, at + marker.len()));
    let start = match marker {
        ReferenceMarker::Equals => after(" = "),
        ReferenceMarker::TheAnswerIs => after("The answer is"),
        ReferenceMarker::SoTheAnswerIs => {
            [after("So the answer is"), after("so the answer is")].into_iter().flatten().min()
        }
    };
    let rest = python_strip(&text[start.map_or(0, |(_, end)| end)..]);
    match PATTERNS.reference[form.index()].find(rest) {
        Some(found) => found.as_str().replace(['+', '-'], "").replace('E', "e"),
        None => String::new(),
    }
}

/// Python's `str.strip()`: Unicode white space and the four ASCII separators.
fn python_strip(text: &str) -> &str {
    text.trim_matches(|c: char| c.is_whitespace() || ('\x1c'..='\x1f').contains(&c))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn strict(form: AnswerForm, text: &str) -> Option<String> {
        extract_strict(form, text).answer
    }

    #[test]
    fn strict_starts_after_the_last_marker() {
        assert_eq!(strict(AnswerForm::Integer, "2 + 2. The answer is 4, no: so the answer is 5."), Some("5".into()));
        assert_eq!(strict(AnswerForm::Integer, "1287\n1 + 1 = 2"), Some("1287".into()));
        assert_eq!(strict(AnswerForm::Integer, "The answer is unknown"), None);
        assert!(extract_strict(AnswerForm::Integer, "The answer is 4").anchored);
        assert!(!extract_strict(AnswerForm::Integer, "about 4").anchored);
    }

    #[test]
    fn strict_refuses_negative_answers() {
        for (form, text) in [
            (AnswerForm::Integer, "-12"),
            (AnswerForm::Integer, "\u{2212}12"),
            (AnswerForm::Float, "is -1.5"),
            (AnswerForm::Scientific, "9.83e-18"),
        ] {
            let found = extract_strict(form, text);
            assert!(found.negative && found.answer.is_none(), "{text}");
        }
        assert_eq!(strict(AnswerForm::Scientific, "9.83E+18"), Some("9.83e18".into()));
        assert_eq!(strict(AnswerForm::Integer, "a - 12"), Some("12".into()));
    }

    #[test]
    fn strict_reads_ascii_only() {
        assert_eq!(strict(AnswerForm::Integer, "١٢٨٧"), None);
        assert_eq!(extract_paper(AnswerForm::Integer, "١٢٨٧"), Some("١٢٨٧"));
    }

    #[test]
    fn reference_needs_its_marker_in_place() {
        let read = |completion: &str| {
            extract_reference(AnswerForm::Integer, ReferenceMarker::Equals, &format!("Add: 1 + 2 ={completion}"))
        };
        assert_eq!(read(" 3"), "3");
        assert_eq!(read("3"), "");
        assert_eq!(read("3\n4 + 4 = 8"), "8");
        assert_eq!(read(" -3"), "");
    }
}
