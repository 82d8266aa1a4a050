//! A question with its parts, whichever data set it comes from.
use std::fmt;

use serde::{Deserialize, Serialize};

use super::expression::{Expression, exact};
use super::mention::Number;
use crate::number::Fraction;

/// A data set of the paper (Table 4).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Dataset {
    /// Word problems with an equation (section 2 of the spec).
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
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Dataset::ALL.into_iter().find(|dataset| dataset.name() == text).ok_or_else(|| {
            format!("there is no data set {text}; there are {}", Dataset::ALL.map(Dataset::name).join(", "))
        })
    }
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

/// How the value of the equation becomes the answer of a division with a remainder.
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

impl Scale {
    /// The data's word; the empty one is none.
    pub fn parse(text: &str) -> Option<Self> {
        match text.trim().to_ascii_lowercase().as_str() {
            "" | "none" => Some(Scale::None),
            "thousand" | "thousands" => Some(Scale::Thousand),
            "million" | "millions" => Some(Scale::Million),
            "billion" | "billions" => Some(Scale::Billion),
            "percent" | "percentage" | "%" => Some(Scale::Percent),
            _ => None,
        }
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

/// What a question is asked on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Problem {
    /// Unique in the data set.
    pub id: String,
    /// What perturbations edit: the story, the passage, or the paragraphs with `\n` between them.
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
    /// What kind of solution it has, for the balance of demonstrations.
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
        let text = leading_number(self.answer.trim());
        match text.contains('/') {
            true => Fraction::parse(text).ok(),
            false => exact(text.trim_end_matches(['.', ','])),
        }
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

/// The number with which an answer begins, as written: `1,234.5`, `-3`, or a fraction `2/11`.
pub(super) fn leading_number(answer: &str) -> &str {
    let end =
        |text: &str, more: &str| text.find(|c: char| !(c.is_ascii_digit() || more.contains(c))).unwrap_or(text.len());
    let whole = end(answer, "+-,.");
    let below = answer[whole..].strip_prefix('/').map_or(0, |rest| end(rest, ""));
    &answer[..if below > 0 { whole + 1 + below } else { whole }]
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
    fn splits_are_four_fifths_and_tenths() {
        let counts = (0..2_000).map(|i| Split::of(&format!("q{i}"))).fold([0; 3], |mut counts, split| {
            counts[split as usize] += 1;
            counts
        });
        assert!((1_520..1_680).contains(&counts[0]) && (140..260).contains(&counts[1]), "{counts:?}");
        assert_eq!(Split::of("q1"), Split::of("q1"));
    }
}
