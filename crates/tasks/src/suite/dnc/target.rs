//! Prompts: the output that a model is asked for (section 6.1 and Table 5 of the paper; spec section 9), and the numbers as it sees them
//! (section 6.2 and Table 6).
use std::collections::BTreeMap;
use std::fmt;
use std::sync::LazyLock;

use serde::{Deserialize, Serialize};

use super::expression::{Expression, exact, plain};
use super::measure::round_half_up;
use super::mention::mentions;
use super::problem::{Dataset, Problem};
use super::written::is_unit;
use earnest_answer::number::Fraction;
use earnest_answer::number::words::words_in;

/// Output that is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Target {
    /// The number alone.
    Answer,
    /// The equation alone; it is computed here.
    Equation,
    /// Both (Table 5's "ans").
    EquationAnswer,
    /// Reasoning, then the number.
    Cot,
}

impl Target {
    pub const ALL: [Target; 4] = [Target::Answer, Target::Equation, Target::EquationAnswer, Target::Cot];

    /// The name for `--prompt`.
    pub fn name(self) -> &'static str {
        match self {
            Target::Answer => "answer",
            Target::Equation => "equation",
            Target::EquationAnswer => "equation-answer",
            Target::Cot => "cot",
        }
    }

    /// Tokens for ordinary models; fixed, so that no perturbation can change it.
    pub fn budget(self) -> usize {
        match self {
            Target::Answer => 96,
            Target::Equation => 96,
            Target::EquationAnswer => 128,
            Target::Cot => 512,
        }
    }

    /// An equation is part of it.
    pub fn has_equation(self) -> bool {
        matches!(self, Target::Equation | Target::EquationAnswer)
    }

    /// A number is part of it.
    pub fn has_answer(self) -> bool {
        self != Target::Equation
    }

    /// DROP and TAT-QA have no infix equations.
    pub fn applies_to(self, dataset: Dataset) -> bool {
        dataset == Dataset::AsdivA || !self.has_equation()
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Numbers in the prompt: as they are or hidden.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Numbers {
    /// As digits.
    #[default]
    Token,
    /// As `[NUM1]`, `[NUM2]`, ... without their values, in digits or in words; the equation is written over them and restored.
    Replace,
}

/// Layout of prompts; bare text needs one of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PromptShape {
    Chat,
    Raw,
}

#[derive(Deserialize)]
struct Wording {
    system: String,
    shot: String,
}

static WORDINGS: LazyLock<BTreeMap<String, Wording>> = LazyLock::new(|| {
    serde_json::from_str(include_str!("../../../../../prompts/dnc.json"))
        .expect("the embedded prompts are checked by a test")
});

/// The system message.
pub fn system(target: Target, numbers: Numbers, dataset: Dataset) -> String {
    let name = if numbers == Numbers::Replace { "equation-replace" } else { target.name() };
    let mut text = WORDINGS[name].system.clone();
    if dataset == Dataset::TatqaA {
        text = format!("{text}\n{}", WORDINGS["scale"].system);
    }
    text
}

/// Answer of a worked example.
pub fn shot_answer(target: Target, numbers: Numbers, dataset: Dataset, problem: &Problem) -> String {
    let name = if numbers == Numbers::Replace { "equation-replace" } else { target.name() };
    let equation = match numbers {
        Numbers::Token => problem.left_side().unwrap_or_default().to_owned(),
        Numbers::Replace => masked_equation(problem),
    };
    let answer = problem.gold().map(|gold| shown(&gold)).unwrap_or_default();
    let quotient = problem.expression().and_then(|left| left.value().ok());
    // A rounded quotient is not what the equation equals, and an example must not say so.
    let value = match quotient {
        Some(quotient) if problem.remainder.apply(&quotient) != quotient => {
            format!("{}, rounded {} to {answer}", shown(&quotient), problem.remainder.word())
        }
        _ => answer.clone(),
    };
    let ends = problem.expression().and_then(|left| left.value().ok()).is_none_or(|value| value.to_decimal().is_ok());
    let equals = if ends { "=" } else { "≈" };
    let mut wording = WORDINGS[name].shot.as_str();
    if target == Target::Cot && problem.formula.is_none() {
        // There is no reasoning to show without an equation.
        wording = &WORDINGS["answer"].shot;
    }
    let mut text = wording
        .replace("{equation}", &equation)
        .replace("{equals}", equals)
        .replace("{value}", &value)
        .replace("{answer}", &answer);
    if dataset == Dataset::TatqaA {
        let scale = problem.scale.map_or("none", |scale| if scale.word().is_empty() { "none" } else { scale.word() });
        text = format!("{text}\n{}", WORDINGS["scale"].shot.replace("{scale}", scale));
    }
    text
}

/// A value as a worked example writes it: exact where it is a finite decimal, otherwise with four decimals.
fn shown(value: &Fraction) -> String {
    if value.to_decimal().is_ok() {
        return plain(value);
    }
    round_half_up(value, 4).map_or_else(|| plain(value), |rounded| plain(&rounded))
}

/// A text with placeholders, and the numbers they stand for: those in digits, and those in words as MWPToolkit masks them, a lone
/// `one` excepted.
pub fn masked(text: &str) -> (String, Vec<String>) {
    let mut numbers = Vec::new();
    let mut out = String::new();
    let mut rest = 0;
    for (start, end, number) in hidden(text) {
        out.push_str(&text[rest..start]);
        numbers.push(number);
        out.push_str(&format!("[NUM{}]", numbers.len()));
        rest = end;
    }
    out.push_str(&text[rest..]);
    (out, numbers)
}

/// Byte ranges of the numbers that are masked, in their order, and their digits.
fn hidden(text: &str) -> Vec<(usize, usize, String)> {
    let mut found: Vec<(usize, usize, String)> =
        mentions(text).into_iter().map(|number| (number.start, number.end, number.plain())).collect();
    found.extend(words_in(text).into_iter().map(|word| (word.start, word.end, word.digits)));
    found.sort_by_key(|(start, ..)| *start);
    found
}

/// The left side over placeholders: each operand becomes the first number of the text with its value; one that is not masked
/// stays.
fn masked_equation(problem: &Problem) -> String {
    let values: Vec<Option<Fraction>> = hidden(&problem.text()).iter().map(|(.., number)| exact(number)).collect();
    let Some(expression) = problem.expression() else { return String::new() };
    expression.write_with(&mut |operand| match values.iter().position(|value| value.as_ref() == Some(&operand.value)) {
        Some(index) => format!("[NUM{}]", index + 1),
        None => operand.text.clone(),
    })
}

/// Puts the numbers back. A placeholder without a number stays and makes the equation unreadable, as it should.
pub fn restored(equation: &str, numbers: &[String]) -> String {
    let mut text = equation.to_owned();
    // From the last, so that [NUM1] is not found inside [NUM10].
    for (index, number) in numbers.iter().enumerate().rev() {
        for name in [format!("[NUM{}]", index + 1), format!("NUM{}", index + 1)] {
            text = text.replace(&name, number);
        }
    }
    text
}

/// The text after the last line that begins with a label, e.g. `Answer: 5`.
pub fn labelled<'a>(text: &'a str, label: &str) -> Option<&'a str> {
    text.lines().rev().find_map(|line| {
        let line = line.trim_start_matches(|c: char| c.is_whitespace() || "*#>-`_".contains(c));
        let head = line.get(..label.len())?;
        if !head.eq_ignore_ascii_case(label) {
            return None;
        }
        let rest = line[label.len()..].trim_start_matches(['*', '_', ' ']);
        rest.strip_prefix([':', '：']).map(|rest| rest.trim_matches(|c: char| c.is_whitespace() || "*`_".contains(c)))
    })
}

/// Reads an equation line: the side with the operation, what stands around it aside, and whether something was translated or
/// removed: LaTeX, number words, and units behind numbers (`5 apples + two apples` is `5+2`; spec section 9).
pub fn parse_equation(line: &str) -> Option<(Expression, String, bool)> {
    let line = line.trim().trim_matches(['`', '"', '*']).trim();
    let line = line.trim_end_matches('.').trim_end();
    let sides: Vec<&str> = line.split('=').map(str::trim).collect();
    let name =
        |text: &str| !text.is_empty() && text.len() <= 12 && text.chars().all(|c| c.is_ascii_alphabetic() || c == '_');
    let first = sides.first().copied()?;
    // `x = 5 + 7` and `12 = 5 + 7` state the equation on the right.
    let stated = match sides.get(1).map(|second| (side(first), side(second))) {
        Some((_, second)) if name(first) => second,
        Some((Some((Expression::Operand(_), ..)), Some(second))) if !matches!(second.0, Expression::Operand(_)) => {
            Some(second)
        }
        // So does `total price = 5 + 7`.
        Some((None, second)) if !first.contains(char::is_numeric) => second,
        Some((first, _)) => first,
        None => side(first),
    };
    let (expression, text, changed) = stated?;
    let clean = text.chars().all(|c| c.is_ascii_digit() || "+-*/(). ".contains(c)) && sides.len() == 1;
    Some((expression, text, changed || !clean))
}

/// One side of an equation.
fn side(text: &str) -> Option<(Expression, String, bool)> {
    if let Ok(expression) = Expression::parse(text) {
        return Some((expression, text.to_owned(), false));
    }
    let bare = in_digits(text)?;
    Expression::parse(&bare).ok().map(|expression| (expression, bare, true))
}

/// A side with digits for number words and operators for LaTeX's, without units; none if words are left.
fn in_digits(text: &str) -> Option<String> {
    let mut plain = text.to_owned();
    for (from, to) in [
        ("\\times", "*"),
        ("\\cdot", "*"),
        ("\\div", "/"),
        ("\\(", ""),
        ("\\)", ""),
        ("\\[", ""),
        ("\\]", ""),
        ("\\$", ""),
    ] {
        plain = plain.replace(from, to);
    }
    for word in words_in(&plain).into_iter().rev() {
        plain.replace_range(word.start..word.end, &word.digits);
    }
    let mut out = String::new();
    let mut rest = plain.as_str();
    while let Some(start) = rest.find(char::is_alphabetic) {
        let end =
            rest[start..].find(|c: char| !(c.is_alphabetic() || "-'’".contains(c))).map_or(rest.len(), |n| start + n);
        let word = rest[start..end].trim_end_matches('-');
        out.push_str(&rest[..start]);
        if word.eq_ignore_ascii_case("one") {
            out.push('1');
        } else {
            // A unit stands behind a number, a bracket or another unit, perhaps in brackets of its own.
            let before = out.trim_end().trim_end_matches('(').trim_end();
            if !before.ends_with(|c: char| c.is_ascii_digit() || c == ')') || !is_unit(word) {
                return None;
            }
        }
        rest = &rest[start + word.len()..];
    }
    out.push_str(rest);
    // What held a unit alone.
    let out = out.split_whitespace().collect::<Vec<_>>().join(" ");
    Some(out.replace("( )", "").replace("()", "").trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_prompt_file_has_every_wording() {
        for name in ["answer", "equation", "equation-answer", "cot", "equation-replace", "scale"] {
            assert!(!WORDINGS[name].system.is_empty() && WORDINGS[name].shot.contains('{'), "{name}");
            assert!(!WORDINGS[name].system.to_lowercase().contains("perturb"));
        }
        let divided = Problem {
            formula: Some("248/16=15 r8".into()),
            answer: "16".into(),
            remainder: super::super::problem::Remainder::Up,
            ..Problem::plain("Vases.")
        };
        let shot = shot_answer(Target::Cot, Numbers::Token, Dataset::AsdivA, &divided);
        assert!(shot.contains("248/16 = 15.5, rounded up to 16.") && shot.ends_with("Answer: 16"), "{shot}");
        for target in Target::ALL {
            assert!(system(target, Numbers::Token, Dataset::TatqaA).contains("Scale:"));
        }
    }

    #[test]
    fn labels_and_equations() {
        assert_eq!(labelled("Answer: 4\nthen\n**Answer:** 5\n", "answer"), Some("5"));
        assert_eq!(labelled("The answer is 5", "answer"), None);
        let equation = |line: &str| parse_equation(line).map(|(e, ..)| e.to_string());
        assert_eq!(equation("5 + 7 = 12"), Some("5+7".into()));
        assert_eq!(equation("x = 5 × 7."), Some("5*7".into()));
        for (line, read) in [
            ("5 apples + 7", "5+7"),
            ("5 apples + 7 apples = 12 apples", "5+7"),
            ("five + seven", "5+7"),
            ("(4 cats + twenty-one dogs) * one", "(4+21)*1"),
            ("$5.50 dollars × 7 (plums)", "5.50*7"),
            ("5 \\times 7", "5*7"),
            ("12 = 5 + 7", "5+7"),
            ("12 plums = 5 plums + 7 plums = 12", "5+7"),
            ("5 + 7 = 3 + 9", "5+7"),
            ("total price = 5 + 7", "5+7"),
            ("12", "12"),
        ] {
            assert_eq!(equation(line).map(|read| read.replace(' ', "")).as_deref(), Some(read), "{line}");
        }
        for line in
            ["5 apples 7", "x + 7", "5 plus 7", "apples: 5 + 7", "5 x 7", "5 dozen + 7", "[NUM1] + 7", "5 thousand + 2"]
        {
            assert_eq!(equation(line), None, "{line}");
        }
        assert!(parse_equation("5 apples + 7").unwrap().2);
        assert!(!parse_equation("(4+3)*5").unwrap().2 && parse_equation("5×7").unwrap().2);
    }

    #[test]
    fn masks_come_off_again() {
        let text = "Ann had $20 and 3.5 kg, then 20 more.";
        let (hidden, numbers) = masked(text);
        assert_eq!(hidden, "Ann had $[NUM1] and [NUM2] kg, then [NUM3] more.");
        assert_eq!(restored("[NUM1]+NUM3*[NUM2]", &numbers), "20+20*3.5");
        let (hidden, numbers) =
            masked("Twenty-one of 30 boys, one hundred and six girls and one cat saw the 2nd show.");
        assert_eq!(hidden, "[NUM1] of [NUM2] boys, [NUM3] girls and one cat saw the 2nd show.");
        assert_eq!(numbers, ["21", "30", "106"]);
        let worded = Problem { formula: Some("5+1=6".into()), ..Problem::plain("He has five pens and one cap.") };
        assert_eq!(masked_equation(&worded), "[NUM1]+1");
        let many: Vec<String> = (0..12).map(|n| n.to_string()).collect();
        assert_eq!(restored("[NUM12]-[NUM1]", &many), "11-0");
    }
}
