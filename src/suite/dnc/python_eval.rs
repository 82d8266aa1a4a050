//! What Python's `eval` says of an equation: the paper's Acc_ans and the reference's recomputed answers depend on its
//! integers, doubles and errors (spec sections 2 and 5). Only arithmetic is understood; nothing is executed.
use num_bigint::BigInt;
use num_integer::Integer;
use num_traits::{One, Signed, ToPrimitive, Zero};

/// A Python number.
#[derive(Debug, Clone, PartialEq)]
pub enum PythonNumber {
    Int(BigInt),
    Float(f64),
}

/// The error that Python raises, by its class.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PythonError {
    Syntax,
    Type,
    Name,
    ZeroDivision,
    /// Overflow, or a power too large to compute, which Python would try.
    Overflow,
}

impl PythonError {
    /// The class as Python spells it.
    pub fn class(self) -> &'static str {
        match self {
            PythonError::Syntax => "SyntaxError",
            PythonError::Type => "TypeError",
            PythonError::Name => "NameError",
            PythonError::ZeroDivision => "ZeroDivisionError",
            PythonError::Overflow => "OverflowError",
        }
    }
}

/// Evaluates.
///
/// # Errors
/// As Python would raise it.
pub fn python_eval(text: &str) -> Result<PythonNumber, PythonError> {
    if text.len() > 4_000 {
        return Err(PythonError::Overflow);
    }
    let tokens = tokens(text.trim_matches([' ', '\t']).trim_end())?;
    let mut parser = Parser { tokens: &tokens, at: 0 };
    let tree = parser.list(0)?;
    if parser.at < tokens.len() {
        return Err(PythonError::Syntax);
    }
    match tree.value()? {
        Value::Number(number) => Ok(number),
        // A tuple or a string evaluates; the comparison of values then fails by type.
        Value::Other => Err(PythonError::Type),
    }
}

/// `abs(a - b) < 0.0001`, with Python's arithmetic.
pub fn python_close(a: &PythonNumber, b: &PythonNumber) -> bool {
    match (a, b) {
        (PythonNumber::Int(a), PythonNumber::Int(b)) => a == b,
        _ => match (float(a), float(b)) {
            (Ok(a), Ok(b)) => (a - b).abs() < 0.0001,
            _ => false,
        },
    }
}

impl PythonNumber {
    /// `str(number)`: doubles in shortest form that reads back, with an exponent below 1e-4 and from 1e16.
    pub fn text(&self) -> String {
        match self {
            PythonNumber::Int(value) => value.to_string(),
            PythonNumber::Float(value) => python_float(*value),
        }
    }
}

fn python_float(value: f64) -> String {
    if value.is_nan() {
        return "nan".into();
    }
    if value.is_infinite() {
        return if value > 0.0 { "inf".into() } else { "-inf".into() };
    }
    let magnitude = value.abs();
    if magnitude != 0.0 && !(1e-4..1e16).contains(&magnitude) {
        let text = format!("{value:e}");
        let (mantissa, exponent) = text.split_once('e').unwrap_or((text.as_str(), "0"));
        let (sign, digits) = exponent.strip_prefix('-').map_or(('+', exponent), |digits| ('-', digits));
        return format!("{mantissa}e{sign}{digits:0>2}");
    }
    format!("{value:?}")
}

#[derive(Debug, Clone, PartialEq)]
enum Token {
    Number(PythonNumber),
    Name,
    Sign(&'static str),
}

const SIGNS: [&str; 12] = ["**", "//", "+", "-", "*", "/", "%", "(", ")", "[", "]", ","];

fn tokens(text: &str) -> Result<Vec<Token>, PythonError> {
    let mut found = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        if matches!(first, ' ' | '\t') {
            rest = &rest[1..];
        } else if let Some(sign) = SIGNS.iter().find(|sign| rest.starts_with(**sign)) {
            found.push(Token::Sign(sign));
            rest = &rest[sign.len()..];
        } else if first.is_ascii_digit() || first == '.' {
            let (number, length) = number(rest)?;
            found.push(Token::Number(number));
            rest = &rest[length..];
        } else if first.is_alphabetic() || first == '_' {
            let end = rest.find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(rest.len());
            found.push(Token::Name);
            rest = &rest[end..];
        } else {
            return Err(PythonError::Syntax);
        }
    }
    Ok(found)
}

/// A literal: digits with single underscores between them, a point, an exponent. Whole numbers other than zero must not begin
/// with a zero; a letter that follows at once is an error.
fn number(text: &str) -> Result<(PythonNumber, usize), PythonError> {
    let bytes = text.as_bytes();
    let digits = |mut at: usize| {
        while bytes.get(at).is_some_and(u8::is_ascii_digit)
            || (bytes.get(at) == Some(&b'_')
                && at > 0
                && bytes[at - 1].is_ascii_digit()
                && bytes.get(at + 1).is_some_and(u8::is_ascii_digit))
        {
            at += 1;
        }
        at
    };
    let whole = digits(0);
    let mut end = whole;
    let mut float = false;
    if bytes.get(end) == Some(&b'.') {
        float = true;
        let first = end + 1;
        end = if bytes.get(first).is_some_and(u8::is_ascii_digit) { digits(first) } else { first };
        if end == 1 {
            return Err(PythonError::Syntax);
        }
    }
    if matches!(bytes.get(end), Some(b'e' | b'E')) {
        let sign = usize::from(matches!(bytes.get(end + 1), Some(b'+' | b'-')));
        if bytes.get(end + 1 + sign).is_some_and(u8::is_ascii_digit) {
            float = true;
            end = digits(end + 1 + sign);
        }
    }
    if text[end..].chars().next().is_some_and(|c| c.is_alphanumeric() || c == '_') {
        return Err(PythonError::Syntax);
    }
    let literal = text[..end].replace('_', "");
    let number = if float {
        PythonNumber::Float(literal.parse().map_err(|_| PythonError::Syntax)?)
    } else {
        if literal.len() > 1 && literal.starts_with('0') && literal.bytes().any(|byte| byte != b'0') {
            return Err(PythonError::Syntax);
        }
        PythonNumber::Int(BigInt::parse_bytes(literal.as_bytes(), 10).ok_or(PythonError::Syntax)?)
    };
    Ok((number, end))
}

#[derive(Debug, Clone)]
enum Tree {
    Number(PythonNumber),
    Name,
    Tuple(Vec<Tree>),
    Bracketed(Vec<Tree>),
    Call(Box<Tree>, Vec<Tree>),
    Unary(&'static str, Box<Tree>),
    Binary(&'static str, Box<Tree>, Box<Tree>),
}

enum Value {
    Number(PythonNumber),
    Other,
}

impl Tree {
    fn value(&self) -> Result<Value, PythonError> {
        match self {
            Tree::Number(number) => Ok(Value::Number(number.clone())),
            Tree::Name => Err(PythonError::Name),
            Tree::Tuple(parts) | Tree::Bracketed(parts) => {
                for part in parts {
                    part.value()?;
                }
                Ok(Value::Other)
            }
            Tree::Call(function, arguments) => {
                function.value()?;
                for argument in arguments {
                    argument.value()?;
                }
                Err(PythonError::Type)
            }
            Tree::Unary(sign, inner) => match inner.value()? {
                Value::Number(number) if *sign == "-" => Ok(Value::Number(match number {
                    PythonNumber::Int(value) => PythonNumber::Int(-value),
                    PythonNumber::Float(value) => PythonNumber::Float(-value),
                })),
                Value::Number(number) => Ok(Value::Number(number)),
                Value::Other => Err(PythonError::Type),
            },
            Tree::Binary(sign, left, right) => match (left.value()?, right.value()?) {
                (Value::Number(left), Value::Number(right)) => Ok(Value::Number(binary(sign, left, right)?)),
                _ => Err(PythonError::Type),
            },
        }
    }
}

fn float(number: &PythonNumber) -> Result<f64, PythonError> {
    match number {
        PythonNumber::Int(value) => value.to_f64().filter(|value| value.is_finite()).ok_or(PythonError::Overflow),
        PythonNumber::Float(value) => Ok(*value),
    }
}

fn binary(sign: &str, left: PythonNumber, right: PythonNumber) -> Result<PythonNumber, PythonError> {
    use PythonNumber::{Float, Int};
    if let (Int(a), Int(b)) = (&left, &right) {
        match sign {
            "+" => return Ok(Int(a + b)),
            "-" => return Ok(Int(a - b)),
            "*" => return Ok(Int(a * b)),
            "/" | "//" | "%" if b.is_zero() => return Err(PythonError::ZeroDivision),
            "//" => return Ok(Int(a.div_floor(b))),
            "%" => return Ok(Int(a.mod_floor(b))),
            "/" => {
                return quotient(a, b).map(Float);
            }
            _ if !b.is_negative() => return power(a, b).map(Int),
            _ => {}
        }
    }
    let (a, b) = (float(&left)?, float(&right)?);
    let value = match sign {
        "+" => a + b,
        "-" => a - b,
        "*" => a * b,
        "/" | "//" | "%" if b == 0.0 => return Err(PythonError::ZeroDivision),
        "/" => a / b,
        "//" => (a / b).floor(),
        "%" => {
            let rest = a % b;
            if rest != 0.0 && (rest < 0.0) != (b < 0.0) { rest + b } else { rest }
        }
        _ if a == 0.0 && b < 0.0 => return Err(PythonError::ZeroDivision),
        // A root of a negative number is complex in Python, and no number that could be compared.
        _ if a < 0.0 && b.fract() != 0.0 => return Err(PythonError::Type),
        _ => {
            let value = a.powf(b);
            if value.is_infinite() && a.is_finite() && b.is_finite() {
                return Err(PythonError::Overflow);
            }
            value
        }
    };
    Ok(Float(value))
}

/// Correctly rounded, as Python divides integers: enough digits of the quotient, a last one that says whether more follow, and
/// one rounding when the text is read.
fn quotient(a: &BigInt, b: &BigInt) -> Result<f64, PythonError> {
    let digits = |value: &BigInt| value.to_string().len() as i64;
    let scale = (40 - digits(a) + digits(b)).max(0);
    let scaled = a.abs() * BigInt::from(10).pow(u32::try_from(scale).map_err(|_| PythonError::Overflow)?);
    let (whole, rest) = scaled.div_rem(&b.abs());
    let sticky = u8::from(!rest.is_zero());
    let sign = if a.is_negative() != b.is_negative() { "-" } else { "" };
    let text = format!("{sign}{whole}{sticky}e{}", -scale - 1);
    text.parse().ok().filter(|value: &f64| value.is_finite()).ok_or(PythonError::Overflow)
}

/// Powers up to a hundred thousand bits; Python would go on for hours.
fn power(base: &BigInt, exponent: &BigInt) -> Result<BigInt, PythonError> {
    let small = base.abs() <= BigInt::one();
    match exponent.to_u32() {
        Some(exponent) if small || base.bits().saturating_mul(u64::from(exponent)) <= 100_000 => Ok(base.pow(exponent)),
        None if small => Ok(if base.is_negative() && exponent.is_even() { BigInt::one() } else { base.clone() }),
        _ => Err(PythonError::Overflow),
    }
}

const DEEPEST: usize = 100;

struct Parser<'a> {
    tokens: &'a [Token],
    at: usize,
}

impl Parser<'_> {
    fn sign(&mut self, signs: &[&'static str]) -> Option<&'static str> {
        match self.tokens.get(self.at) {
            Some(Token::Sign(sign)) if signs.contains(sign) => {
                self.at += 1;
                Some(sign)
            }
            _ => None,
        }
    }

    /// Expressions with commas between them; one alone is itself.
    fn list(&mut self, depth: usize) -> Result<Tree, PythonError> {
        let first = self.sum(depth)?;
        if self.sign(&[","]).is_none() {
            return Ok(first);
        }
        let mut parts = vec![first];
        while self.at < self.tokens.len() && !matches!(self.tokens[self.at], Token::Sign(")" | "]")) {
            parts.push(self.sum(depth)?);
            if self.sign(&[","]).is_none() {
                break;
            }
        }
        Ok(Tree::Tuple(parts))
    }

    fn sum(&mut self, depth: usize) -> Result<Tree, PythonError> {
        let mut left = self.product(depth)?;
        while let Some(sign) = self.sign(&["+", "-"]) {
            left = Tree::Binary(sign, Box::new(left), Box::new(self.product(depth)?));
        }
        Ok(left)
    }

    fn product(&mut self, depth: usize) -> Result<Tree, PythonError> {
        let mut left = self.unary(depth)?;
        while let Some(sign) = self.sign(&["*", "/", "//", "%"]) {
            left = Tree::Binary(sign, Box::new(left), Box::new(self.unary(depth)?));
        }
        Ok(left)
    }

    fn unary(&mut self, depth: usize) -> Result<Tree, PythonError> {
        if depth > DEEPEST {
            return Err(PythonError::Overflow);
        }
        if let Some(sign) = self.sign(&["+", "-"]) {
            return Ok(Tree::Unary(sign, Box::new(self.unary(depth + 1)?)));
        }
        let base = self.atom(depth)?;
        if self.sign(&["**"]).is_some() {
            return Ok(Tree::Binary("**", Box::new(base), Box::new(self.unary(depth + 1)?)));
        }
        Ok(base)
    }

    fn atom(&mut self, depth: usize) -> Result<Tree, PythonError> {
        let token = self.tokens.get(self.at).ok_or(PythonError::Syntax)?;
        self.at += 1;
        let mut tree = match token {
            Token::Number(number) => Tree::Number(number.clone()),
            Token::Name => Tree::Name,
            Token::Sign("(") => self.bracketed(")", depth)?.map_or(Tree::Tuple(Vec::new()), |inner| inner),
            Token::Sign("[") => Tree::Bracketed(self.bracketed("]", depth)?.into_iter().collect()),
            Token::Sign(_) => return Err(PythonError::Syntax),
        };
        // A bracket after a value calls it or takes a part of it; numbers allow neither.
        while let Some(open) = self.sign(&["(", "["]) {
            let close = if open == "(" { ")" } else { "]" };
            let inner = self.bracketed(close, depth)?;
            if open == "[" && inner.is_none() {
                return Err(PythonError::Syntax);
            }
            tree = Tree::Call(Box::new(tree), inner.into_iter().collect());
        }
        Ok(tree)
    }

    fn bracketed(&mut self, close: &'static str, depth: usize) -> Result<Option<Tree>, PythonError> {
        if depth > DEEPEST {
            return Err(PythonError::Overflow);
        }
        if self.sign(&[close]).is_some() {
            return Ok(None);
        }
        let inner = self.list(depth + 1)?;
        self.sign(&[close]).ok_or(PythonError::Syntax)?;
        Ok(Some(inner))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(expression: &str) -> String {
        python_eval(expression).map_or_else(|error| error.class().to_owned(), |number| number.text())
    }

    // CPython 3.11: str(eval(text)), or the class of what it raises.
    #[test]
    fn evaluates_as_cpython_does() {
        for (expression, expected) in [
            ("28/4", "7.0"),
            ("-1/3", "-0.3333333333333333"),
            ("0/5", "0.0"),
            ("1050/65", "16.153846153846153"),
            ("123456789012345678901234567890/7", "1.763668414462081e+28"),
            ("18.9+8.9", "27.799999999999997"),
            ("16.9-8.5", "8.399999999999999"),
            ("147+56", "203"),
            ("248//16", "15"),
            ("-7//2", "-4"),
            ("-7%3", "2"),
            ("5**2", "25"),
            ("2**-1", "0.5"),
            ("-2**2", "-4"),
            ("1_000+1", "1001"),
            ("1e3", "1000.0"),
            ("1e16*1.0", "1e+16"),
            ("1/100000", "1e-05"),
            ("7/0", "ZeroDivisionError"),
            ("5 7 +", "SyntaxError"),
            ("5x7", "SyntaxError"),
            ("5×7", "SyntaxError"),
            ("05+1", "SyntaxError"),
            ("05.5", "5.5"),
            ("00", "0"),
            ("10%", "SyntaxError"),
            ("twelve", "NameError"),
            ("[NUM1]+[NUM2]", "NameError"),
            ("2(3)", "TypeError"),
            // The tuple (1, 1): `000` is a zero.
            ("1,000+1", "TypeError"),
            ("", "SyntaxError"),
            ("$12", "SyntaxError"),
            ("9**9**9**9", "OverflowError"),
            ("1_", "SyntaxError"),
            (" 12 ", "12"),
        ] {
            assert_eq!(text(expression), expected, "{expression}");
        }
        for hostile in ["(".repeat(3_000), "-".repeat(3_000), "[".repeat(2_000) + "1"] {
            assert!(python_eval(&hostile).is_err());
        }
    }
}
