//! Exact match, digit match and dlength (section 2.3), on texts.
use super::answer::AnswerForm;
use earnest_answer::number::Alignment;

/// Characters of a part that count as digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum DigitSet {
    /// `0` to `9`.
    Ascii,
    /// Characters that Python's `str.isdigit` accepts, as the reference and hence the published numbers do.
    Python,
}

/// The metrics of one prediction.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Metrics {
    /// All parts identical, character by character.
    pub exact: bool,
    /// Matching digits over the truth's digits, 0 to 1; surplus digits cost nothing.
    pub digit_match: f64,
    /// Sum over parts of the difference in digits: the paper's definition.
    pub dlength: usize,
    /// Difference of the total numbers of digits: what the published tables hold.
    pub dlength_total: usize,
}

/// Compares `prediction` to `truth`, or says nothing if the truth has not the parts that `form` needs.
pub fn measure(form: AnswerForm, digits: DigitSet, truth: &str, prediction: &str) -> Option<Metrics> {
    let truth = parts(form, digits, truth);
    let prediction = parts(form, digits, prediction);
    let total: usize = truth.iter().map(Vec::len).sum();
    if total == 0 {
        return None;
    }
    let mut matching = 0;
    let mut dlength = 0;
    for ((truth, prediction), alignment) in truth.iter().zip(&prediction).zip(alignments(form)) {
        matching += match alignment {
            Alignment::Left => truth.iter().zip(prediction).filter(|(a, b)| a == b).count(),
            Alignment::Right => truth.iter().rev().zip(prediction.iter().rev()).filter(|(a, b)| a == b).count(),
        };
        dlength += truth.len().abs_diff(prediction.len());
    }
    let predicted: usize = prediction.iter().map(Vec::len).sum();
    Some(Metrics {
        exact: truth == prediction,
        digit_match: matching as f64 / total as f64,
        dlength,
        dlength_total: total.abs_diff(predicted),
    })
}

fn alignments(form: AnswerForm) -> &'static [Alignment] {
    use Alignment::{Left, Right};
    match form {
        AnswerForm::Integer => &[Right],
        AnswerForm::Float => &[Right, Left],
        AnswerForm::Fraction => &[Right, Right],
        AnswerForm::Scientific => &[Right, Left, Right],
    }
}

/// The digits of each part; where a required part is missing, every part is empty.
fn parts(form: AnswerForm, digits: DigitSet, text: &str) -> Vec<Vec<char>> {
    let needed = alignments(form).len();
    let pieces: Vec<&str> = match form {
        AnswerForm::Integer => vec![text],
        AnswerForm::Float => text.split('.').take(2).collect(),
        AnswerForm::Fraction => text.split('/').take(2).collect(),
        AnswerForm::Scientific => {
            let mut by_exponent = text.split('e');
            let significand = by_exponent.next().unwrap_or_default();
            match by_exponent.next() {
                Some(exponent) => significand.split('.').chain([exponent]).take(3).collect(),
                None => Vec::new(),
            }
        }
    };
    if pieces.len() < needed {
        return vec![Vec::new(); needed];
    }
    let keep = |c: &char| match digits {
        DigitSet::Ascii => c.is_ascii_digit(),
        DigitSet::Python => is_python_digit(*c),
    };
    pieces.iter().map(|piece| piece.chars().filter(keep).collect()).collect()
}

/// Python's `str.isdigit`: decimal digits of every script, and characters with the Unicode property Numeric_Type=Digit.
fn is_python_digit(c: char) -> bool {
    if c.is_ascii() {
        return c.is_ascii_digit();
    }
    const DIGIT_TYPE: [(char, char); 20] = [
        ('\u{b2}', '\u{b3}'),
        ('\u{b9}', '\u{b9}'),
        ('\u{1369}', '\u{1371}'),
        ('\u{19da}', '\u{19da}'),
        ('\u{2070}', '\u{2070}'),
        ('\u{2074}', '\u{2079}'),
        ('\u{2080}', '\u{2089}'),
        ('\u{2460}', '\u{2468}'),
        ('\u{2474}', '\u{247c}'),
        ('\u{2488}', '\u{2490}'),
        ('\u{24ea}', '\u{24ea}'),
        ('\u{24f5}', '\u{24fd}'),
        ('\u{24ff}', '\u{24ff}'),
        ('\u{2776}', '\u{277e}'),
        ('\u{2780}', '\u{2788}'),
        ('\u{278a}', '\u{2792}'),
        ('\u{10a40}', '\u{10a43}'),
        ('\u{10e60}', '\u{10e68}'),
        ('\u{11052}', '\u{1105a}'),
        ('\u{1f100}', '\u{1f10a}'),
    ];
    static DECIMAL: std::sync::LazyLock<regex::Regex> =
        std::sync::LazyLock::new(|| regex::Regex::new(r"^\d$").expect("the pattern is constant"));
    DIGIT_TYPE.iter().any(|&(first, last)| (first..=last).contains(&c)) || DECIMAL.is_match(c.encode_utf8(&mut [0; 4]))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn ascii(form: AnswerForm, truth: &str, prediction: &str) -> Metrics {
        measure(form, DigitSet::Ascii, truth, prediction).unwrap()
    }

    #[test]
    fn two_definitions_of_dlength() {
        let metrics = ascii(AnswerForm::Float, "853.8", "8.538");
        assert_eq!((metrics.dlength, metrics.dlength_total), (4, 0));
    }

    #[test]
    fn surplus_digits_are_free_but_not_exact() {
        let metrics = ascii(AnswerForm::Integer, "1287", "001287");
        assert!(!metrics.exact);
        assert_eq!((metrics.digit_match, metrics.dlength), (1.0, 2));
    }

    #[test]
    fn a_missing_part_empties_all() {
        for prediction in ["", "1.2", "1e5", "12"] {
            let metrics = ascii(AnswerForm::Scientific, "1.2e5", prediction);
            assert_eq!((metrics.exact, metrics.digit_match, metrics.dlength), (false, 0.0, 3), "{prediction}");
        }
        assert!(measure(AnswerForm::Float, DigitSet::Ascii, "5", "5.0").is_none());
        assert!(measure(AnswerForm::Integer, DigitSet::Ascii, "", "5").is_none());
    }

    #[test]
    fn python_digits() {
        assert!(is_python_digit('²') && is_python_digit('٣') && is_python_digit('７') && is_python_digit('①'));
        assert!(!is_python_digit('½') && !is_python_digit('五') && !is_python_digit('a'));
    }

    proptest! {
        #[test]
        fn bounds_and_symmetries(a in "[0-9]{1,30}\\.[0-9]{1,30}", b in "[0-9]{1,30}\\.[0-9]{1,30}", noise in "\\PC{0,20}") {
            let ab = ascii(AnswerForm::Float, &a, &b);
            let ba = ascii(AnswerForm::Float, &b, &a);
            prop_assert!((0.0..=1.0).contains(&ab.digit_match));
            prop_assert_eq!(ab.exact, a == b);
            prop_assert_eq!(ab.exact, ba.exact);
            prop_assert_eq!(ab.dlength, ba.dlength);
            prop_assert_eq!(ab.dlength_total, ba.dlength_total);
            prop_assert!(ab.dlength_total <= ab.dlength);
            prop_assert!(!ab.exact || (ab.digit_match == 1.0 && ab.dlength == 0));
            let self_match = ascii(AnswerForm::Float, &a, &a);
            prop_assert!(self_match.exact && self_match.digit_match == 1.0 && self_match.dlength == 0);
            for form in [AnswerForm::Integer, AnswerForm::Float, AnswerForm::Fraction, AnswerForm::Scientific] {
                if let Some(metrics) = measure(form, DigitSet::Python, &noise, &a) {
                    prop_assert!((0.0..=1.0).contains(&metrics.digit_match));
                }
            }
        }
    }
}
