//! Answers of the GSM-Symbolic re-evaluation ("Being Statistically Earnest"): the study's two extractors with every label
//! and trap they have, and beside them two of our own for the same completions.
//!
//! * [`text`] and [`code`] do what the authors' program does, so that the paper's numbers can be compared with;
//! * [`strict`] and [`flexible`] read what a completion says, by rules that are written down with them.
//!
//! The rules were derived from the study's published behaviour and its vectors; no text of its program is here.

pub mod code;
pub mod flexible;
pub mod strict;
pub mod text;

mod label;
mod numeral;

pub use label::{Label, UnknownLabel};
pub use text::TextExtraction;

use earnest_answer::python::decimal_digits;

/// Python's `float` on a text of decimal digits of any script, perhaps with a sign before and a point between them. Beyond the
/// range of floats it is an infinity.
pub(crate) fn float(text: &str) -> Option<f64> {
    decimal_digits(text).parse().ok()
}

/// Closer than this is equal (section 3 of the study: answers are compared as floats).
pub const TOLERANCE: f64 = 1e-5;

/// The study's comparison: there is a prediction and it differs from the truth by less than 10^-5. NaN and infinities are
/// never correct. (In the study an integer beyond the range of floats ends the evaluation of its whole set; here it is a
/// wrong answer.)
pub fn correct(prediction: Option<f64>, truth: f64) -> bool {
    prediction.is_some_and(|prediction| (prediction - truth).abs() < TOLERANCE)
}

/// The completion goes on with another question, which stop strings should have prevented.
pub fn is_babbling(response: &str) -> bool {
    response.contains("Q:") || response.contains("Question:")
}

/// The study's cut: before the first `Q:` wherever it stands (`FAQ:` too); only without one, before the first `Question:`.
fn trim(response: &str) -> &str {
    let end = response.find("Q:").or_else(|| response.find("Question:"));
    &response[..end.unwrap_or(response.len())]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cut_is_where_the_study_makes_it() {
        assert_eq!(trim("5 FAQ: 6"), "5 FA");
        assert_eq!(trim("Question: 5 Q: 6"), "Question: 5 ");
        assert_eq!(trim("5 Question: 6"), "5 ");
        assert_eq!(trim("question: q: 5"), "question: q: 5");
        assert!(is_babbling("5\n\nQ: next") && is_babbling("Question: 6") && !is_babbling("5"));
    }

    #[test]
    fn correct_is_a_matter_of_a_hundred_thousandth() {
        assert!(correct(Some(5.000009), 5.0) && correct(Some(5.0), 5.0));
        assert!(!correct(Some(5.00002), 5.0) && !correct(None, 5.0));
        assert!(!correct(Some(f64::NAN), 5.0) && !correct(Some(f64::INFINITY), f64::INFINITY));
    }

    #[test]
    fn digits_of_all_scripts_have_their_value() {
        assert_eq!(float("٣"), Some(3.0));
        assert_eq!(float("-१२.५"), Some(-12.5));
        assert_eq!(float("９"), Some(9.0));
        assert_eq!(float("𝟗𝟘𝟡𝟬𝟿"), Some(90909.0 - 900.0 + 900.0));
        assert_eq!(float(&"9".repeat(400)), Some(f64::INFINITY));
        assert_eq!(float("²"), None);
    }
}
