//! TAT-QA's official exact match for arithmetic and count questions (spec section 5). Its strings, its rounding and Python's
//! numbers are part of it: a right number with a missing scale is wrong except through the routes that are named there.
use std::cmp::Ordering;
use std::sync::LazyLock;

use num_bigint::BigInt;
use regex::Regex;

use earnest_answer::python::{
    Operator, PythonError, PythonNumber, PythonValue, calculate, four_decimals, is_space, parsed_float, parsed_integer,
    pattern, rounded,
};

/// Both sides as the metric compares them.
#[derive(Debug, Clone, PartialEq)]
pub struct TatqaMatch {
    pub exact: bool,
    /// The gold answer with its scale, four decimals; none where the metric fails on it.
    pub gold: Option<String>,
    /// The prediction with its own scale; none where the metric takes none, or fails on it.
    pub prediction: Option<String>,
}

/// Compares a prediction with a gold number. What Python takes for false is no prediction: an empty text or list, `None`, and
/// the number zero (a text of zero is one). Several predictions are several spans of one answer.
pub fn tatqa_match(gold: &str, gold_scale: &str, prediction: &PythonValue, prediction_scale: &str) -> TatqaMatch {
    let gold = scaled(gold, gold_scale).ok();
    let given = if prediction.is_true() { given(prediction, prediction_scale).ok() } else { None };
    let normal = gold.as_deref().and_then(|gold| normalised(gold).ok());
    let is_gold = |text: &String| normalised(text).ok().is_some_and(|text| Some(text) == normal);
    TatqaMatch {
        exact: given.as_ref().is_some_and(|given| given.iter().any(is_gold)),
        prediction: given.and_then(|given| given.into_iter().next()),
        gold,
    }
}

/// The texts that count as the prediction, the one with the scale first.
fn given(prediction: &PythonValue, scale: &str) -> Result<Vec<String>, PythonError> {
    let spans = match prediction {
        PythonValue::List(spans) => in_order(spans)?,
        other => vec![other],
    };
    let texts = spans.iter().map(|span| span.text()).collect::<Result<Vec<_>, _>>()?;
    let with_scale = texts.iter().map(|text| scaled(text, scale)).collect::<Result<Vec<_>, _>>()?;
    let mut given = vec![with_scale.join(" ")];
    // `0.2046` for 20.46 per cent: a bare number without a scale counts unrounded too.
    if let ([text], true) = (texts.as_slice(), scale.is_empty())
        && !text.contains('%')
        && is_number(text)
    {
        given.extend(number(text)?.map(|value| four_decimals(&value)).transpose()?);
    }
    Ok(given)
}

/// `sorted(spans)`.
fn in_order(spans: &[PythonValue]) -> Result<Vec<&PythonValue>, PythonError> {
    let mut sorted: Vec<&PythonValue> = spans.iter().collect();
    let order = |a: &PythonValue, b: &PythonValue| match (a, b) {
        (PythonValue::Text(a), PythonValue::Text(b)) => Some(a.cmp(b)),
        (PythonValue::Number(a), PythonValue::Number(b)) => a.order(b),
        _ => None,
    };
    if spans.len() > 1 && spans.iter().any(|span| order(&spans[0], span).is_none()) {
        return Err(PythonError::Type);
    }
    sorted.sort_by(|a, b| order(a, b).unwrap_or(Ordering::Equal));
    Ok(sorted)
}

/// Factor of a scale word.
fn factor(scale: &str) -> PythonNumber {
    let scale = scale.to_lowercase();
    let factors = [("hundred", 100), ("thousand", 1_000), ("million", 1_000_000), ("billion", 1_000_000_000)];
    match factors.into_iter().find(|(word, _)| scale.contains(word)) {
        Some((_, factor)) => whole(factor),
        None if scale.contains("percent") => PythonNumber::Float(0.01),
        None => whole(1),
    }
}

fn whole(value: i64) -> PythonNumber {
    PythonNumber::Int(BigInt::from(value))
}

fn product(a: &PythonNumber, b: &PythonNumber) -> Result<PythonNumber, PythonError> {
    calculate(Operator::Multiply, a, b)
}

/// An answer as text: a number rounded to two decimals times its scale, with four decimals.
fn scaled(text: &str, scale: &str) -> Result<String, PythonError> {
    let value = if is_number(text) { number(text)? } else { None };
    match value {
        None if scale.is_empty() => Ok(text.to_owned()),
        None => Ok(format!("{text} {scale}")),
        // The number has its scale already.
        Some(value) if text.contains('%') => four_decimals(&value),
        Some(value) => four_decimals(&product(&rounded(&value, 2)?, &factor(scale))?),
    }
}

fn clean(text: &str) -> String {
    text.chars().filter(|c| !"'\"\\$€£¥%(),[]".contains(*c)).collect()
}

/// True if a text is a number, or a number and a scale word.
fn is_number(text: &str) -> bool {
    let mut words = text.split(is_space).map(clean).filter(|word| !word.is_empty());
    let Some(Ok(value)) = words.next().map(|first| parsed_float(&first)) else { return false };
    !value.is_nan() && words.next().is_none_or(|word| factor(&word) != whole(1))
}

static FIRST_NUMBER: LazyLock<Regex> = LazyLock::new(|| pattern(r"([+-]?\d+(?:\.\d+)?)|([+-]?\.\d+)"));
static NEGATIVE: LazyLock<Regex> = LazyLock::new(|| pattern(r"\([\d.\s\x1c-\x1f]+\)"));
static PERCENT: LazyLock<Regex> = LazyLock::new(|| pattern(r"[\d.\s\x1c-\x1f]+%"));
static WORD_SCALE: LazyLock<Regex> = LazyLock::new(|| pattern(r"[\d.]+[\s\x1c-\x1f]?[a-zA-Z]+"));

/// The first number of a text, with its scale word, brackets (negative) and per cent sign, rounded to four decimals; none where
/// the text begins with a point.
fn number(text: &str) -> Result<Option<PythonNumber>, PythonError> {
    let cleaned = clean(text);
    let Some(written) = FIRST_NUMBER.captures(&cleaned).and_then(|found| found.get(1)) else { return Ok(None) };
    let written = written.as_str();
    let value = if written.contains('.') {
        PythonNumber::Float(parsed_float(written)?)
    } else {
        PythonNumber::Int(parsed_integer(written, 10)?)
    };
    let scale = WORD_SCALE.find(text).map_or_else(|| whole(1), |found| factor(found.as_str()));
    let trimmed = text.trim_matches(is_space);
    let sign = whole(if NEGATIVE.is_match(trimmed) { -1 } else { 1 });
    let percent = if PERCENT.is_match(trimmed) { PythonNumber::Float(0.01) } else { whole(1) };
    let value = product(&product(&product(&value, &scale)?, &sign)?, &percent)?;
    rounded(&value, 4).map(Some)
}

/// Token by token: lower case, no punctuation unless it is a number, numbers in one form, no articles.
fn normalised(text: &str) -> Result<String, PythonError> {
    let mut parts = Vec::new();
    for token in text.split(' ') {
        let lower = token.to_lowercase();
        let bare =
            if is_number(&lower) { lower } else { lower.chars().filter(|c| !c.is_ascii_punctuation()).collect() };
        let token = if !is_number(&bare) {
            bare
        } else {
            // Python writes out that there is no number.
            number(&bare)?.map_or_else(|| Ok("None".to_owned()), |value| value.text())?
        };
        let without = without_articles(&token);
        parts.extend(without.split(is_space).filter(|word| !word.is_empty()).map(str::to_owned));
    }
    Ok(parts.join(" "))
}

static WORD: LazyLock<Regex> = LazyLock::new(|| pattern(r"[\p{L}\p{N}_]+"));

/// The text with a blank for every word that is an article.
fn without_articles(text: &str) -> String {
    WORD.replace_all(text, |found: &regex::Captures<'_>| match &found[0] {
        "a" | "an" | "the" => " ".to_owned(),
        word => word.to_owned(),
    })
    .into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn exact(gold: &str, gold_scale: &str, prediction: &str, scale: &str) -> bool {
        tatqa_match(gold, gold_scale, &prediction.into(), scale).exact
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
    fn the_number_zero_is_no_prediction_and_a_text_of_it_is() {
        for none in [PythonValue::None, 0.into(), (-0.0).into(), "".into(), PythonValue::List(Vec::new())] {
            let found = tatqa_match("0", "million", &none, "million");
            assert_eq!((found.exact, found.prediction), (false, None));
        }
        for zero in ["0".into(), "0.0".into(), PythonValue::List(vec![0.into()])] {
            let found = tatqa_match("0", "million", &zero, "million");
            assert_eq!((found.exact, found.prediction.as_deref()), (true, Some("0.0000")));
        }
    }

    #[test]
    fn hostile_predictions_are_wrong_and_nothing_else() {
        for text in ["nan", "inf", "-", "%", "()", "1e400", "٣", "\u{0}", "1_0", &"9".repeat(5_000), &"9".repeat(400)]
        {
            assert!(!exact("3", "", text, "percent"), "{text}");
        }
    }
}
