//! TAT-QA's official exact match for arithmetic and count questions (spec section 5). Its strings, its rounding and its doubles
//! are part of it: a right number with a missing scale is wrong except through the routes that are named there.
use std::sync::LazyLock;

use regex::Regex;

/// Both sides as the metric compares them.
#[derive(Debug, Clone, PartialEq)]
pub struct TatqaMatch {
    pub exact: bool,
    /// The gold answer with its scale, four decimals.
    pub gold: String,
    /// The prediction with its own scale; none of an empty prediction.
    pub prediction: Option<String>,
}

/// Compares a prediction with a gold number.
pub fn tatqa_match(gold: &str, gold_scale: &str, prediction: &str, prediction_scale: &str) -> TatqaMatch {
    let gold = scaled(gold, gold_scale);
    if prediction.is_empty() {
        return TatqaMatch { exact: false, gold, prediction: None };
    }
    let ours = scaled(prediction, prediction_scale);
    let mut accepted = vec![ours.clone()];
    // `0.2046` for 20.46 per cent: a bare number without a scale counts unrounded too.
    if prediction_scale.is_empty() && !prediction.contains('%') && is_number(prediction) {
        accepted.extend(number(prediction).map(|value| format!("{value:.4}")));
    }
    let normal = normalised(&gold);
    TatqaMatch { exact: accepted.iter().any(|text| normalised(text) == normal), gold, prediction: Some(ours) }
}

/// What the scale word multiplies by.
fn factor(scale: &str) -> f64 {
    let scale = scale.to_lowercase();
    let factors = [("hundred", 1e2), ("thousand", 1e3), ("million", 1e6), ("billion", 1e9), ("percent", 0.01)];
    factors.into_iter().find(|(word, _)| scale.contains(word)).map_or(1.0, |(_, factor)| factor)
}

/// An answer as text: a number rounded to two decimals times its scale, with four decimals.
fn scaled(text: &str, scale: &str) -> String {
    let with_scale = || if scale.is_empty() { text.to_owned() } else { format!("{text} {scale}") };
    if !is_number(text) {
        return with_scale();
    }
    match number(text) {
        None => with_scale(),
        // The number has its scale already.
        Some(value) if text.contains('%') => format!("{value:.4}"),
        Some(value) => format!("{:.4}", rounded(value, 2) * factor(scale)),
    }
}

/// Python's `round`: to the nearest decimal of the exact binary value.
fn rounded(value: f64, places: usize) -> f64 {
    format!("{value:.places$}").parse().unwrap_or(value)
}

fn clean(text: &str) -> String {
    text.chars().filter(|c| !"'\"\\$€£¥%(),[]".contains(*c)).collect()
}

/// Whether a text is a number, or a number and a scale word.
fn is_number(text: &str) -> bool {
    let words: Vec<String> = text.split_whitespace().map(clean).filter(|word| !word.is_empty()).collect();
    let Some(first) = words.first() else { return false };
    let Some(value) = python_float(first) else { return false };
    !value.is_nan() && words.get(1).is_none_or(|word| factor(word) != 1.0)
}

/// Python's `float(text)`.
fn python_float(text: &str) -> Option<f64> {
    let bare = text.trim().replace('_', "");
    let body = bare.trim_start_matches(['+', '-']).to_ascii_lowercase();
    let known = body.starts_with(|c: char| c.is_ascii_digit() || c == '.')
        || matches!(body.as_str(), "inf" | "infinity" | "nan");
    known.then(|| bare.parse().ok()).flatten()
}

static FIRST_NUMBER: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"([+-]?[0-9]+(?:\.[0-9]+)?)|([+-]?\.[0-9]+)").expect("the pattern is a constant"));
static NEGATIVE: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"\([0-9.\s]+\)").expect("the pattern is a constant"));
static PERCENT: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"[0-9.\s]+%").expect("the pattern is a constant"));
static WORD_SCALE: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"[0-9.]+\s?[a-zA-Z]+").expect("the pattern is a constant"));

/// The first number of a text, with its scale word, brackets (negative) and per cent sign, rounded to four decimals.
fn number(text: &str) -> Option<f64> {
    let cleaned = clean(text);
    let written = FIRST_NUMBER.captures(&cleaned)?.get(1)?.as_str();
    let mut value: f64 = written.parse().ok()?;
    let scale = WORD_SCALE.find(text).map_or(1.0, |found| factor(found.as_str()));
    let bracketed = NEGATIVE.is_match(text.trim());
    // Python keeps whole numbers apart, and they have no negative zero; a per cent word makes a double of them.
    if value == 0.0 && !written.contains('.') {
        value = 0.0;
    }
    let sign = if bracketed && (value != 0.0 || written.contains('.') || scale < 1.0) { -1.0 } else { 1.0 };
    let percent = if PERCENT.is_match(text.trim()) { 0.01 } else { 1.0 };
    Some(rounded(value * scale * sign * percent, 4))
}

/// Token by token: lower case, no punctuation unless it is a number, no articles, numbers in one form.
fn normalised(text: &str) -> String {
    let tokens = text.split(' ').map(|token| {
        let token = token.to_lowercase();
        let token =
            if is_number(&token) { token } else { token.chars().filter(|c| !c.is_ascii_punctuation()).collect() };
        let token = match number(&token).filter(|_| is_number(&token)) {
            Some(value) => format!("{value:?}"),
            None => token,
        };
        let word = |word: &&str| !matches!(*word, "a" | "an" | "the");
        token.split_whitespace().filter(word).collect::<Vec<_>>().join(" ")
    });
    tokens.filter(|token| !token.is_empty()).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn exact(gold: &str, gold_scale: &str, prediction: &str, scale: &str) -> bool {
        tatqa_match(gold, gold_scale, prediction, scale).exact
    }

    #[test]
    fn scales_count_and_routes_around_them_are_few() {
        assert!(exact("20.46", "percent", "20.46", "percent"));
        assert!(exact("20.46", "percent", "20.46%", ""));
        assert!(exact("20.46", "percent", "0.2046", ""));
        assert!(exact("20.46", "percent", "20.46 percent", ""));
        assert!(!exact("20.46", "percent", "20.46", ""));
        assert!(!exact("12.5", "thousand", "12.5", "") && !exact("12.5", "thousand", "12500", "thousand"));
        assert!(exact("12.5", "thousand", "12.5 thousand", "") && exact("12.5", "thousand", "$12.50", "thousand"));
        assert!(exact("-134", "", "(134)", "") && !exact("134", "", "about 134", ""));
        assert!(exact("26439", "million", "26,439", "million") && !exact("3", "", "", ""));
        assert!(exact("0", "million", "(0)", "million") && exact("0", "", "-0", "") && !exact("0", "", "-0.0", ""));
        assert!(exact("2.34", "", "2.344", "") && !exact("2.34", "", "2.3", ""));
    }

    #[test]
    fn hostile_predictions_are_wrong_and_nothing_else() {
        for text in ["nan", "inf", "-", "%", "()", "1e400", "٣", "\u{0}", "1_0", &"9".repeat(5_000)] {
            assert!(!exact("3", "", text, "percent"), "{text}");
        }
    }
}
