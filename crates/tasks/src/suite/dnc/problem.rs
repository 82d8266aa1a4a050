//! A question with its parts, whichever data set it comes from.
use std::fmt;
use std::sync::LazyLock;

use regex::Regex;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::expression::{Expression, ExpressionError, exact};
use super::measure::same_value;
use super::mention::Number;
use super::written::stated;
use earnest_answer::number::Fraction;

/// A data set of the paper (Table 4).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Dataset {
    /// Word problems with an equation.
    AsdivA,
    /// Reading comprehension whose answer is a number.
    DropNum,
    /// Arithmetic questions on a table and paragraphs of a financial report.
    TatqaA,
}

impl Dataset {
    pub const ALL: [Dataset; 3] = [Dataset::AsdivA, Dataset::DropNum, Dataset::TatqaA];

    /// The name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Dataset::AsdivA => "asdiv-a",
            Dataset::DropNum => "drop-num",
            Dataset::TatqaA => "tatqa-a",
        }
    }

    /// The name in the paper's tables.
    pub fn title(self) -> &'static str {
        match self {
            Dataset::AsdivA => "ASDiv-a",
            Dataset::DropNum => "DROP-num",
            Dataset::TatqaA => "TATQA-a",
        }
    }
}

impl fmt::Display for Dataset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl std::str::FromStr for Dataset {
    type Err = UnknownDataset;

    fn from_str(text: &str) -> Result<Self, UnknownDataset> {
        Dataset::ALL.into_iter().find(|dataset| dataset.name() == text).ok_or_else(|| UnknownDataset(text.to_owned()))
    }
}

/// A name that no data set has.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("there is no data set {0}; there are {known}", known = Dataset::ALL.map(Dataset::name).join(", "))]
pub struct UnknownDataset(pub String);

/// Contradiction between the equation and the answer of a problem.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ProblemError {
    #[error("answer {0:?} is not a number, or more than one")]
    NotANumber(String),
    #[error("formula {formula:?}: {why}")]
    Formula { formula: String, why: FormulaError },
    #[error("formula {0:?} leaves a remainder, and nothing says how the answer is rounded")]
    Rounding(String),
    #[error("answer {answer:?} is not the value of formula {formula:?}, which is {value}")]
    Answer { answer: String, formula: String, value: String },
}

/// Reason for an equation not holding.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum FormulaError {
    #[error(transparent)]
    Left(#[from] ExpressionError),
    #[error("its right side: {0}")]
    Right(ExpressionError),
    #[error("only a division leaves a remainder")]
    NoDivision,
    #[error("it has no value")]
    NoValue,
    /// The sides differ; holds the value of the left one.
    #[error("the left side is {0}")]
    Differs(String),
}

/// A part of a data set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Split {
    Train,
    Valid,
    Test,
}

impl Split {
    pub const ALL: [Split; 3] = [Split::Train, Split::Valid, Split::Test];

    pub fn name(self) -> &'static str {
        match self {
            Split::Train => "train",
            Split::Valid => "valid",
            Split::Test => "test",
        }
    }

    /// The part of an 80/10/10 division that belongs to a name, stable under any change of the other names. (The authors'
    /// division of DROP and TAT-QA is random and was not published, so no division can be theirs.)
    pub fn of(name: &str) -> Split {
        use sha2::{Digest, Sha256};
        let hash = Sha256::digest(format!("dnc split 1\n{name}"));
        let number = hash.iter().take(8).fold(0u64, |number, byte| number << 8 | u64::from(*byte));
        match number % 10 {
            0 => Split::Test,
            1 => Split::Valid,
            _ => Split::Train,
        }
    }
}

impl fmt::Display for Split {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Rounding of a division with a remainder: from the value of the equation to the answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Remainder {
    /// The quotient itself.
    Exact,
    /// Rounded up (`Ceil-Division`).
    Up,
    /// Rounded down (`Floor-Division`).
    Down,
}

impl Remainder {
    /// From ASDiv's `Solution-Type`: a name, or for two steps the last step's.
    pub fn of(solution_type: &str) -> Self {
        match solution_type {
            "Ceil-Division" => Remainder::Up,
            "Floor-Division" => Remainder::Down,
            _ => Remainder::Exact,
        }
    }

    /// The rounding of a solution type.
    pub(super) fn word(self) -> &'static str {
        match self {
            Remainder::Exact => "nowhere",
            Remainder::Up => "up",
            Remainder::Down => "down",
        }
    }

    /// The answer to a quotient.
    pub fn apply(self, value: &Fraction) -> Fraction {
        use num_integer::Integer;
        match self {
            Remainder::Exact => value.clone(),
            Remainder::Up => Fraction::from(value.numerator().div_ceil(value.denominator())),
            Remainder::Down => Fraction::from(value.numerator().div_floor(value.denominator())),
        }
    }
}

/// A scale word of TAT-QA.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Scale {
    None,
    Thousand,
    Million,
    Billion,
    Percent,
}

/// Words beside a scale that change nothing of it.
const UNITS: &[&str] = &[
    "in",
    "of",
    "the",
    "us",
    "u",
    "s",
    "usd",
    "dollar",
    "dollars",
    "euro",
    "euros",
    "eur",
    "pound",
    "pounds",
    "gbp",
    "sterling",
    "yen",
    "jpy",
    "rmb",
    "cny",
    "yuan",
    "hkd",
    "cad",
    "aud",
    "cent",
    "cents",
    "share",
    "shares",
    "point",
    "points",
    "year",
    "years",
    "month",
    "months",
    "week",
    "weeks",
    "day",
    "days",
    "hour",
    "hours",
    "employees",
    "people",
    "times",
    "ratio",
];

static ZEROS: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"(^|[^0-9.,'’])['’]?000(?:['’]?[sS]\b)?([^0-9,.]|[.]?$)")
        .expect("the pattern is a constant and the tests use it")
});

impl Scale {
    /// The data's word, or a model's, which may have quotes, marks or a full stop around it; the empty one is none.
    pub fn parse(text: &str) -> Option<Self> {
        let plain = text.trim().trim_matches(['"', '\'', '`', '*', '.', ' ']).to_ascii_lowercase();
        match plain.strip_prefix("in ").unwrap_or(&plain) {
            "" | "none" => Some(Scale::None),
            "thousand" | "thousands" => Some(Scale::Thousand),
            "million" | "millions" => Some(Scale::Million),
            "billion" | "billions" => Some(Scale::Billion),
            "percent" | "percents" | "percentage" | "percentages" | "per cent" | "pct" | "%" => Some(Scale::Percent),
            _ => None,
        }
    }

    /// A model's line on the scale, which may name the unit too: `thousand (USD)`, `millions of dollars`, `dollars`. None if it
    /// says something else, or two scales. `m` alone is no scale: accountants write it for a thousand as well as for a million.
    pub fn said(text: &str) -> Option<Self> {
        if let Some(scale) = Scale::parse(text) {
            return Some(scale);
        }
        let bare = text.trim().trim_matches(['"', '\'', '`', '*', '.', ' ']).to_lowercase();
        if ["n/a", "no scale", "not applicable", "null", "nil", "1", "one", "-", "–", "—"].contains(&bare.as_str())
        {
            return Some(Scale::None);
        }
        // Headings of reports: `000s`, `$'000`.
        let spelled = ZEROS.replace_all(text, "${1} thousand ${2}").to_lowercase().replace("per cent", "percent");
        let text = spelled.as_str();
        if text.contains(char::is_numeric) {
            return None;
        }
        let mut found = text.contains('%').then_some(Scale::Percent);
        for word in text.split(|c: char| !c.is_alphabetic()).filter(|word| !word.is_empty()) {
            let scale = match word {
                "k" | "ths" => Scale::Thousand,
                "mn" | "mm" | "mil" => Scale::Million,
                "bn" => Scale::Billion,
                "ones" | "units" | "unit" => Scale::None,
                word if UNITS.contains(&word) => continue,
                word => Scale::parse(word)?,
            };
            if found.is_some_and(|other| other != scale) {
                return None;
            }
            found = Some(scale);
        }
        let unit = text.chars().any(|c| c.is_alphabetic() || "$€£¥".contains(c));
        found.or(unit.then_some(Scale::None))
    }

    /// Factor of the scale.
    pub(super) fn factor(self) -> Fraction {
        let (above, below) = match self {
            Scale::None => (1u64, 1u64),
            Scale::Thousand => (1_000, 1),
            Scale::Million => (1_000_000, 1),
            Scale::Billion => (1_000_000_000, 1),
            Scale::Percent => (1, 100),
        };
        Fraction::new(above.into(), below.into()).expect("no denominator is zero")
    }

    /// The word in TAT-QA's files.
    pub fn word(self) -> &'static str {
        match self {
            Scale::None => "",
            Scale::Thousand => "thousand",
            Scale::Million => "million",
            Scale::Billion => "billion",
            Scale::Percent => "percent",
        }
    }
}

/// A word problem: text, equation and answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Problem {
    /// Unique in the data set.
    pub id: String,
    /// Text that perturbations edit: the story, the passage, or the paragraphs with `\n` between them.
    pub body: String,
    pub question: String,
    /// A table above the body, as Markdown; never edited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub table: Option<String>,
    /// The equation, e.g. `248/16=15 r8`; only ASDiv-a has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub formula: Option<String>,
    /// The answer as written, e.g. `12 (marbles)`, or a plain number.
    pub answer: String,
    pub remainder: Remainder,
    /// TAT-QA's scale word.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scale: Option<Scale>,
    /// Kind of its solution, for the balance of demonstrations.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub solution_type: String,
}

impl Problem {
    /// A body alone.
    pub(super) fn plain(body: &str) -> Self {
        Problem {
            id: String::new(),
            body: body.to_owned(),
            question: String::new(),
            table: None,
            formula: None,
            answer: String::new(),
            remainder: Remainder::Exact,
            scale: None,
            solution_type: String::new(),
        }
    }

    /// The left side of the equation, as written.
    pub fn left_side(&self) -> Option<&str> {
        self.formula.as_deref().map(|formula| formula.split('=').next().unwrap_or(formula).trim())
    }

    /// The left side, parsed.
    pub fn expression(&self) -> Option<Expression> {
        Expression::parse(self.left_side()?).ok()
    }

    /// The exact gold answer: the value of the equation, rounded where the solution type says so; without an equation the
    /// number of the answer.
    pub fn gold(&self) -> Option<Fraction> {
        match self.expression() {
            Some(expression) => Some(self.remainder.apply(&expression.value().ok()?)),
            None => self.stated_answer(),
        }
    }

    /// The number that begins the answer text.
    pub fn stated_answer(&self) -> Option<Fraction> {
        stated(self.answer.trim()).map(|found| found.value)
    }

    /// Checks equation and answer against each other: the right side is the value of the left, the answer that value, rounded as
    /// the solution type says. Where none says how a remainder is rounded, the answer does, and is kept as the remainder's rule.
    /// Without an equation the answer must be a number; without an answer there is nothing to hold against the equation.
    ///
    /// # Errors
    /// [`ProblemError`] with the contradiction.
    pub fn check(&mut self) -> Result<(), ProblemError> {
        let answer = self.answer.trim().to_owned();
        let number = match stated(&answer) {
            None if !answer.is_empty() => return Err(ProblemError::NotANumber(answer)),
            found => found,
        };
        let Some(formula) = self.formula.clone() else { return Ok(()) };
        let left = self.left_side().unwrap_or_default();
        let wrong = |formula: &str, why: FormulaError| ProblemError::Formula { formula: formula.to_owned(), why };
        let expression = Expression::parse(left).map_err(|error| wrong(left, error.into()))?;
        let value = expression.value().map_err(|error| wrong(left, ExpressionError::from(error).into()))?;
        let mut remains = false;
        if let Some((_, right)) = formula.split_once('=') {
            let right = right.trim();
            remains = check_right_side(&expression, &value, right).map_err(|why| wrong(&formula, why))?;
        }
        let Some(number) = number else {
            return match remains && self.remainder == Remainder::Exact {
                true => Err(ProblemError::Rounding(formula)),
                false => Ok(()),
            };
        };
        let is = |rule: Remainder| same_value(&number.value, Some(&number.written), &rule.apply(&value));
        if !is(self.remainder) {
            let rounded = [Remainder::Down, Remainder::Up].into_iter().find(|rule| is(*rule));
            match rounded.filter(|_| remains && self.remainder == Remainder::Exact) {
                Some(rule) => self.remainder = rule,
                None => {
                    let value = super::expression::plain(&self.remainder.apply(&value));
                    return Err(ProblemError::Answer { answer, formula, value });
                }
            }
        }
        Ok(())
    }

    /// Text as a model sees it: table, body and question.
    pub fn text(&self) -> String {
        let mut text = String::new();
        for part in [self.table.as_deref().unwrap_or(""), self.body.trim(), self.question.trim()] {
            if !part.is_empty() {
                if !text.is_empty() {
                    text.push_str(if self.table.is_some() { "\n\n" } else { " " });
                }
                text.push_str(part);
            }
        }
        text
    }

    /// The operands as the reference reads them: the left side split at operators and brackets.
    pub fn reference_operands(&self) -> Vec<String> {
        let left = self.formula.as_deref().unwrap_or_default();
        let left = left.split('=').next().unwrap_or_default();
        left.split(|c: char| "+-*/() ".contains(c)).filter(|part| !part.is_empty()).map(str::to_owned).collect()
    }
}

/// Checks that the right side of an equation is the value of its left side; true if it leaves a remainder (`248/16=15 r8`).
fn check_right_side(left: &Expression, value: &Fraction, right: &str) -> Result<bool, FormulaError> {
    use super::expression::{Operator, plain};
    use num_traits::Signed;
    let parts = right.split_once(['r', 'R']).map(|(quotient, rest)| (exact(quotient.trim()), exact(rest.trim())));
    if let Some((Some(quotient), Some(rest))) = parts {
        let Expression::Binary(Operator::Divide, above, below) = left else {
            return Err(FormulaError::NoDivision);
        };
        let (Ok(above), Ok(below)) = (above.value(), below.value()) else { return Err(FormulaError::NoValue) };
        let whole = Remainder::Down.apply(value);
        let left_over = &above - &(&below * &whole);
        return match quotient == whole && rest == left_over && !rest.numerator().is_negative() {
            true => Ok(true),
            false => Err(FormulaError::Differs(format!("{} r{}", plain(&whole), plain(&left_over)))),
        };
    }
    let said = Expression::parse(right).map_err(FormulaError::Right)?;
    let said = said.value().map_err(|error| FormulaError::Right(error.into()))?;
    match same_value(&said, Some(right), value) {
        true => Ok(false),
        false => Err(FormulaError::Differs(plain(value))),
    }
}

/// The exact value of a number in a text; a per cent sign does not change it.
pub fn value_of(number: &Number) -> Option<Fraction> {
    exact(&number.text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::suite::dnc::expression::plain;

    fn problem(formula: &str, answer: &str, remainder: Remainder) -> Problem {
        Problem {
            id: "x".into(),
            body: "B.".into(),
            question: "Q?".into(),
            table: None,
            formula: Some(formula.into()),
            answer: answer.into(),
            remainder,
            scale: None,
            solution_type: String::new(),
        }
    }

    #[test]
    fn gold_is_rounded_as_the_solution_says() {
        let gold = |formula, remainder| plain(&problem(formula, "0", remainder).gold().unwrap());
        assert_eq!(gold("248/16=15 r8", Remainder::Up), "16");
        assert_eq!(gold("39/7=5 r4", Remainder::Down), "5");
        assert_eq!(gold("10/3=3.333", Remainder::Exact), "10/3");
        assert_eq!(gold("(12.46/2)*6=37.38", Remainder::Exact), "37.38");
        assert_eq!(problem("1/0=1", "0", Remainder::Exact).gold(), None);
        assert_eq!(plain(&problem("", "1,234.5 (ml)", Remainder::Exact).stated_answer().unwrap()), "1234.5");
    }

    #[test]
    fn equation_and_answer_are_held_against_each_other() {
        let check = |formula: &str, answer: &str, remainder| {
            let mut problem = problem(formula, answer, remainder);
            problem.check().map(|()| problem.remainder)
        };
        use Remainder::{Down, Exact, Up};
        for (formula, answer, rule, after) in [
            ("147+56=203", "203 (pies)", Exact, Exact),
            ("147+56", "203", Exact, Exact),
            ("147.0+56.0=203.0", "203.0 (pies)", Exact, Exact),
            ("10/3=3.333", "3.333 (minutes)", Exact, Exact),
            ("153/29=153/29", "153/29 (m)", Exact, Exact),
            ("248/16=15 r8", "16 (days)", Up, Up),
            ("248/16=15 r8", "16", Exact, Up),
            ("248/16=15 r8", "15", Exact, Down),
            ("5+7=12", "", Exact, Exact),
        ] {
            assert_eq!(check(formula, answer, rule), Ok(after), "{formula} {answer}");
        }
        for (formula, answer, rule, said) in [
            ("147+56=999", "203", Exact, "the left side is 203"),
            ("147+56=203", "999", Exact, "answer \"999\" is not the value"),
            ("147+56=203", "abc", Exact, "is not a number"),
            ("147+56=203", "1e400", Exact, "is not a number"),
            ("147+56=", "203", Exact, "right side"),
            ("147+56=203=203", "203", Exact, "right side"),
            ("248/16=16", "16", Up, "the left side is 15.5"),
            ("248/16=15 r9", "16", Up, "the left side is 15 r8"),
            ("248/16=15 r8", "17", Exact, "is not the value"),
            ("248/16=15 r8", "", Exact, "how the answer is rounded"),
            ("8+8=15 r1", "16", Exact, "only a division"),
            ("x=5", "5", Exact, "formula \"x\""),
            ("5/0=0", "0", Exact, "zero"),
        ] {
            let found = check(formula, answer, rule).unwrap_err().to_string();
            assert!(found.contains(said), "{formula} {answer}: {found}");
        }
    }

    #[test]
    fn splits_are_four_fifths_and_tenths() {
        let counts = (0..2_000).map(|i| Split::of(&format!("q{i}"))).fold([0; 3], |mut counts, split| {
            counts[split as usize] += 1;
            counts
        });
        assert!((1_520..1_680).contains(&counts[0]) && (140..260).contains(&counts[1]), "{counts:?}");
        assert_eq!(Split::of("q1"), Split::of("q1"));
    }
}
