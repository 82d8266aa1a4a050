//! Equations: `(12.46/2)*6`, parsed and computed exactly. Nothing is ever handed to an evaluator of code.
use std::fmt;

use num_bigint::BigInt;
use num_traits::{Signed, Zero};
use thiserror::Error;

use earnest_answer::number::{Fraction, NumberError};

/// Deepest nesting of brackets and signs; model output can be hostile.
const DEEPEST: usize = 100;
/// Longest text, for the same reason.
const LONGEST: usize = 4_000;

/// Error of a text that is no side of an equation.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ExpressionError {
    #[error("nothing is written there")]
    Empty,
    #[error("{found:?} at character {place} is not a number, operator or bracket")]
    Unexpected { found: char, place: usize },
    #[error("it ends where a number is expected")]
    Unfinished,
    #[error("a bracket at character {0} has no partner")]
    Bracket(usize),
    #[error("it is longer than {LONGEST} characters or nested deeper than {DEEPEST}")]
    TooLong,
    #[error(transparent)]
    Number(#[from] NumberError),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operator {
    Add,
    Subtract,
    Multiply,
    Divide,
}

impl Operator {
    /// Its sign in ASDiv-a.
    pub fn sign(self) -> char {
        match self {
            Operator::Add => '+',
            Operator::Subtract => '-',
            Operator::Multiply => '*',
            Operator::Divide => '/',
        }
    }
}

/// A number as written in an equation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Operand {
    pub text: String,
    pub value: Fraction,
    /// Its index among the equation's numbers, from 0.
    pub index: usize,
}

/// One side of an equation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Expression {
    Operand(Operand),
    Negated(Box<Expression>),
    Binary(Operator, Box<Expression>, Box<Expression>),
}

impl Expression {
    /// Reads infix text with `+ - * /` and brackets. Typographic signs (`×`, `÷`, `−`, `·`), thousands commas, currency signs and
    /// blanks are accepted.
    ///
    /// # Errors
    /// [`ExpressionError`] with the place.
    pub fn parse(text: &str) -> Result<Self, ExpressionError> {
        if text.len() > LONGEST {
            return Err(ExpressionError::TooLong);
        }
        let tokens = tokens(text)?;
        if tokens.is_empty() {
            return Err(ExpressionError::Empty);
        }
        let mut parser = Parser { tokens: &tokens, at: 0, operands: 0 };
        let expression = parser.sum(0)?;
        match parser.tokens.get(parser.at) {
            None => Ok(expression),
            Some((place, Token::Close)) => Err(ExpressionError::Bracket(*place)),
            Some((place, token)) => Err(ExpressionError::Unexpected { found: token.first(), place: *place }),
        }
    }

    /// The exact value.
    ///
    /// # Errors
    /// [`NumberError::DivisionByZero`].
    pub fn value(&self) -> Result<Fraction, NumberError> {
        self.value_with(&mut |operand| operand.value.clone())
    }

    /// The value with other numbers in the operands' places.
    ///
    /// # Errors
    /// [`NumberError::DivisionByZero`].
    pub fn value_with(&self, number: &mut impl FnMut(&Operand) -> Fraction) -> Result<Fraction, NumberError> {
        match self {
            Expression::Operand(operand) => Ok(number(operand)),
            Expression::Negated(inner) => Ok(&Fraction::from(BigInt::zero()) - &inner.value_with(number)?),
            Expression::Binary(operator, left, right) => {
                let (left, right) = (left.value_with(number)?, right.value_with(number)?);
                match operator {
                    Operator::Add => Ok(&left + &right),
                    Operator::Subtract => Ok(&left - &right),
                    Operator::Multiply => Ok(&left * &right),
                    Operator::Divide => left.divided_by(&right),
                }
            }
        }
    }

    /// True if every operand, every intermediate value and the result are above zero with these numbers.
    pub fn is_positive_with(&self, number: &mut impl FnMut(&Operand) -> Fraction) -> bool {
        fn walk(e: &Expression, number: &mut impl FnMut(&Operand) -> Fraction) -> Option<Fraction> {
            let value = match e {
                Expression::Operand(operand) => number(operand),
                Expression::Negated(_) => return None,
                Expression::Binary(operator, left, right) => {
                    let (left, right) = (walk(left, number)?, walk(right, number)?);
                    match operator {
                        Operator::Add => &left + &right,
                        Operator::Subtract => &left - &right,
                        Operator::Multiply => &left * &right,
                        Operator::Divide => left.divided_by(&right).ok()?,
                    }
                }
            };
            value.numerator().is_positive().then_some(value)
        }
        walk(self, number).is_some()
    }

    /// The numbers, from left to right.
    pub fn operands(&self) -> Vec<&Operand> {
        let mut found = Vec::new();
        self.visit(&mut |operand| found.push(operand));
        found
    }

    fn visit<'a>(&'a self, see: &mut impl FnMut(&'a Operand)) {
        match self {
            Expression::Operand(operand) => see(operand),
            Expression::Negated(inner) => inner.visit(see),
            Expression::Binary(_, left, right) => {
                left.visit(see);
                right.visit(see);
            }
        }
    }

    /// True if it divides anywhere.
    pub fn divides(&self) -> bool {
        match self {
            Expression::Operand(_) => false,
            Expression::Negated(inner) => inner.divides(),
            Expression::Binary(operator, left, right) => {
                *operator == Operator::Divide || left.divides() || right.divides()
            }
        }
    }

    /// Formal equivalence, whatever the numbers are: every number that is an operand of `gold` stands for a
    /// variable, and both are compared as rational functions at three random-looking rational points (`105.0+x` is `x+105`,
    /// `4*14` is not `56`). Operands of equal value are one variable.
    pub fn is_equivalent_to(&self, gold: &Expression) -> bool {
        let variables: Vec<Fraction> = gold.operands().iter().map(|operand| operand.value.clone()).collect();
        // Points far from small integers, so that no two different simple formulas meet there by chance.
        let points = [
            (7_919i64, 613i64, 104_729i64, 97i64),
            (15_485_863, 1_031, 32_452_843, 409),
            (86_028_121, 2_003, 179_424_673, 887),
        ];
        let mut agreed = 0;
        for (numerator, step, denominator, stride) in points {
            let at = |operand: &Operand| match variables.iter().position(|value| *value == operand.value) {
                Some(number) => {
                    let number = number as i64 + 1;
                    let (above, below) = (numerator + number * number * step, denominator + number * stride);
                    Fraction::new(above.into(), below.into()).expect("the denominator is a sum of positive numbers")
                }
                None => operand.value.clone(),
            };
            match (self.value_with(&mut { at }), gold.value_with(&mut { at })) {
                (Ok(ours), Ok(gold)) if ours == gold => agreed += 1,
                _ => return false,
            }
        }
        agreed == points.len()
    }

    /// The text with other numbers; brackets only where they change the value.
    pub fn write_with(&self, text: &mut impl FnMut(&Operand) -> String) -> String {
        self.write(text, 0)
    }

    fn write(&self, text: &mut impl FnMut(&Operand) -> String, around: u8) -> String {
        match self {
            Expression::Operand(operand) => text(operand),
            Expression::Negated(inner) => format!("-{}", inner.write(text, 3)),
            Expression::Binary(operator, left, right) => {
                let (own, right_needs) = match operator {
                    Operator::Add => (1, 1),
                    Operator::Subtract => (1, 2),
                    Operator::Multiply => (2, 2),
                    Operator::Divide => (2, 3),
                };
                let inner = format!("{}{}{}", left.write(text, own), operator.sign(), right.write(text, right_needs));
                if own < around { format!("({inner})") } else { inner }
            }
        }
    }
}

impl fmt::Display for Expression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.write_with(&mut |operand| operand.text.clone()))
    }
}

/// The exact value of a decimal in digits: sign, thousands commas, decimals.
pub fn exact(text: &str) -> Option<Fraction> {
    let negative = text.starts_with(['-', '\u{2212}']);
    let bare = text.trim_start_matches(['-', '+', '\u{2212}']).replace(',', "");
    let (integer, decimals) = bare.split_once('.').unwrap_or((bare.as_str(), ""));
    let digits = format!("{integer}{decimals}");
    if digits.is_empty() || digits.len() > LONGEST || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let value = BigInt::parse_bytes(digits.as_bytes(), 10)?;
    let scale = BigInt::from(10).pow(u32::try_from(decimals.len()).ok()?);
    Fraction::new(if negative { -value } else { value }, scale).ok()
}

/// A value as people write it: a whole number without a point, a finite decimal in full, otherwise `N/D`.
pub fn plain(value: &Fraction) -> String {
    match value.to_decimal() {
        Ok(decimal) => {
            let text = decimal.to_plain();
            text.strip_suffix(".0").map(str::to_owned).unwrap_or(text)
        }
        Err(_) => value.to_string(),
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Token {
    Number(String),
    Operator(Operator),
    Open,
    Close,
}

impl Token {
    fn first(&self) -> char {
        match self {
            Token::Number(text) => text.chars().next().unwrap_or('0'),
            Token::Operator(operator) => operator.sign(),
            Token::Open => '(',
            Token::Close => ')',
        }
    }
}

fn tokens(text: &str) -> Result<Vec<(usize, Token)>, ExpressionError> {
    let characters: Vec<char> = text.chars().collect();
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(&character) = characters.get(at) {
        let place = at + 1;
        let token = match character {
            c if c.is_whitespace() => None,
            '$' | '€' | '£' | '¥' => None,
            '+' => Some(Token::Operator(Operator::Add)),
            '-' | '\u{2212}' | '\u{2013}' => Some(Token::Operator(Operator::Subtract)),
            '*' | '×' | '·' | '\u{22C5}' => Some(Token::Operator(Operator::Multiply)),
            '/' | '÷' => Some(Token::Operator(Operator::Divide)),
            '(' | '[' => Some(Token::Open),
            ')' | ']' => Some(Token::Close),
            c if c.is_ascii_digit() || c == '.' => {
                let start = at;
                let mut point = false;
                while let Some(&c) = characters.get(at) {
                    let comma = c == ',' && is_group(&characters[start..at], &characters[at + 1..]) && !point;
                    if c.is_ascii_digit() || comma || (c == '.' && !point) {
                        point |= c == '.';
                        at += 1;
                    } else {
                        break;
                    }
                }
                let text: String = characters[start..at].iter().collect();
                if !text.bytes().any(|byte| byte.is_ascii_digit()) {
                    return Err(ExpressionError::Unexpected { found: character, place });
                }
                found.push((place, Token::Number(text)));
                continue;
            }
            other => return Err(ExpressionError::Unexpected { found: other, place }),
        };
        found.extend(token.map(|token| (place, token)));
        at += 1;
    }
    Ok(found)
}

/// A comma between one to three digits (or whole groups) and exactly three more.
fn is_group(before: &[char], after: &[char]) -> bool {
    let head = before.rsplit(|c| *c == ',').next().unwrap_or_default();
    let first = before.contains(&',');
    let fits = if first { head.len() == 3 } else { (1..=3).contains(&head.len()) };
    fits && after.iter().take(3).filter(|c| c.is_ascii_digit()).count() == 3
        && !after.get(3).is_some_and(char::is_ascii_digit)
}

struct Parser<'a> {
    tokens: &'a [(usize, Token)],
    at: usize,
    operands: usize,
}

impl Parser<'_> {
    fn sum(&mut self, depth: usize) -> Result<Expression, ExpressionError> {
        let mut left = self.product(depth)?;
        while let Some((_, Token::Operator(operator @ (Operator::Add | Operator::Subtract)))) = self.tokens.get(self.at)
        {
            self.at += 1;
            let right = self.product(depth)?;
            left = Expression::Binary(*operator, Box::new(left), Box::new(right));
        }
        Ok(left)
    }

    fn product(&mut self, depth: usize) -> Result<Expression, ExpressionError> {
        let mut left = self.factor(depth)?;
        while let Some((_, Token::Operator(operator @ (Operator::Multiply | Operator::Divide)))) =
            self.tokens.get(self.at)
        {
            self.at += 1;
            let right = self.factor(depth)?;
            left = Expression::Binary(*operator, Box::new(left), Box::new(right));
        }
        Ok(left)
    }

    fn factor(&mut self, depth: usize) -> Result<Expression, ExpressionError> {
        if depth > DEEPEST {
            return Err(ExpressionError::TooLong);
        }
        let (place, token) = self.tokens.get(self.at).ok_or(ExpressionError::Unfinished)?;
        self.at += 1;
        match token {
            Token::Number(text) => {
                let value = exact(text).ok_or(ExpressionError::Unexpected { found: token.first(), place: *place })?;
                let operand = Operand { text: text.clone(), value, index: self.operands };
                self.operands += 1;
                Ok(Expression::Operand(operand))
            }
            Token::Operator(Operator::Subtract) => Ok(Expression::Negated(Box::new(self.factor(depth + 1)?))),
            Token::Operator(Operator::Add) => self.factor(depth + 1),
            Token::Open => {
                let inner = self.sum(depth + 1)?;
                match self.tokens.get(self.at) {
                    Some((_, Token::Close)) => {
                        self.at += 1;
                        Ok(inner)
                    }
                    Some((place, other)) => Err(ExpressionError::Unexpected { found: other.first(), place: *place }),
                    None => Err(ExpressionError::Bracket(*place)),
                }
            }
            other => Err(ExpressionError::Unexpected { found: other.first(), place: *place }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(text: &str) -> String {
        plain(&Expression::parse(text).unwrap().value().unwrap())
    }

    #[test]
    fn values_are_exact() {
        for (text, expected) in [
            ("5+7", "12"),
            ("(12.46/2)*6", "37.38"),
            ("18.9+8.9", "27.8"),
            ("10/3", "10/3"),
            ("659-1063-1284", "-1688"),
            ("92-(4*9)", "56"),
            ("-(2-5)", "3"),
            ("1,000 × 2 ÷ 4 − 1", "499"),
            ("$1.50*2", "3"),
            (".5+5.", "5.5"),
        ] {
            assert_eq!(value(text), expected, "{text}");
        }
        assert_eq!(Expression::parse("7/0").unwrap().value(), Err(NumberError::DivisionByZero));
    }

    #[test]
    fn hostile_texts_are_errors() {
        for text in ["", " ", "5+", "5 7", "2(3)", "(5", "5)", "x+1", "5**2", "1,00+1", "1.2.3", "5=5", "٥", "."] {
            assert!(Expression::parse(text).is_err(), "{text}");
        }
        for text in ["(".repeat(5_000), "-".repeat(3_000) + "1", "(".repeat(500) + "1", "1+".repeat(3_000)] {
            assert!(Expression::parse(&text).is_err());
        }
    }

    #[test]
    fn equivalence_is_of_the_formula_not_of_the_value() {
        let same = |a: &str, b: &str| Expression::parse(a).unwrap().is_equivalent_to(&Expression::parse(b).unwrap());
        assert!(same("105.0+698.0", "105+698") && same("4+14", "14+4") && same("5*(4+3)", "4*5+5*3"));
        assert!(same("(20-8)-3", "20-(8+3)"));
        assert!(!same("56", "4*14") && !same("4-14", "14-4") && !same("12", "5+7"));
        assert!(!same("2+2", "2*2"));
        assert!(!same("7/(5-5)", "7"));
    }

    #[test]
    fn brackets_are_written_where_needed() {
        for text in ["169-(69+52)", "(9-6)*2", "8/(4/2)", "8/4/2", "1-2-3", "-(1+2)", "2*-3"] {
            let expression = Expression::parse(text).unwrap();
            let again = Expression::parse(&expression.to_string()).unwrap();
            assert_eq!(expression.value(), again.value(), "{text} {expression}");
        }
        assert_eq!(Expression::parse("(88-24)-32").unwrap().to_string(), "88-24-32");
    }
}
