//! Expressions: Python's syntax and precedence, as far as templates need them.
use super::tokens::{Token, tokenise};
use super::value::{Operator, Value};

/// An expression.
#[derive(Debug, Clone, PartialEq)]
pub enum Expression {
    Literal(Value),
    /// A template variable, by its place among the variables.
    Variable(usize),
    Negate(Box<Expression>),
    Not(Box<Expression>),
    Binary(Arithmetic, Box<Expression>, Box<Expression>),
    /// A chain such as `a < b < c`.
    Compare(Box<Expression>, Vec<(Comparison, Expression)>),
    And(Box<Expression>, Box<Expression>),
    Or(Box<Expression>, Box<Expression>),
    /// `then if condition else otherwise`
    Conditional {
        condition: Box<Expression>,
        then: Box<Expression>,
        otherwise: Box<Expression>,
    },
    Call(Function, Vec<Expression>),
    Index(Box<Expression>, Box<Expression>),
    Slice(Box<Expression>, Option<Box<Expression>>, Option<Box<Expression>>),
    List(Vec<Expression>),
    /// `(text, value)`
    Pair(Box<Expression>, Box<Expression>),
}

/// An arithmetic operator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Arithmetic(pub(super) Operator);

/// Comparisons.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Comparison {
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    Equal,
    NotEqual,
}

/// Functions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Function {
    Int,
    Float,
    Abs,
    Min,
    Max,
    Round,
    Fraction,
    IsInt,
    Divides,
    FormatFrac,
    Range,
    List,
    Sample,
    SampleSequential,
    NumbersWithin,
    Arange,
    Frange,
    FixFloats,
    ShuffleList,
    RandInt,
}

impl Function {
    fn named(name: &str) -> Option<Function> {
        Some(match name {
            "int" => Function::Int,
            "float" => Function::Float,
            "abs" => Function::Abs,
            "min" => Function::Min,
            "max" => Function::Max,
            "round" => Function::Round,
            "Fraction" => Function::Fraction,
            "is_int" => Function::IsInt,
            "divides" => Function::Divides,
            "format_frac" => Function::FormatFrac,
            "range" => Function::Range,
            "list" => Function::List,
            "sample" => Function::Sample,
            "sample_sequential" => Function::SampleSequential,
            "numbers_within" => Function::NumbersWithin,
            "np.arange" => Function::Arange,
            "frange" => Function::Frange,
            "fix_floats" => Function::FixFloats,
            "shuffle_list" => Function::ShuffleList,
            "np.random.randint" => Function::RandInt,
            _ => return None,
        })
    }
}

/// Brackets and operators within each other; a hostile file must not exhaust the stack.
const DEEPEST: usize = 64;

/// Words and signs of one expression: chains of operators nest as deep as they are long.
const LONGEST: usize = 2_000;

/// Parses an expression; `resolve` says what a name stands for.
///
/// # Errors
/// What cannot be understood, in words.
pub(super) fn parse(text: &str, resolve: &dyn Fn(&str) -> Option<Expression>) -> Result<Expression, String> {
    let tokens = tokenise(text)?;
    if tokens.len() > LONGEST {
        return Err(format!("the expression has more than {LONGEST} parts"));
    }
    let mut parser = Parser { tokens: &tokens, at: 0, depth: 0, resolve };
    let expression = parser.conditional()?;
    match parser.peek() {
        None => Ok(expression),
        Some(token) => Err(format!("{} is not expected here", spelt(token))),
    }
}

fn spelt(token: &Token) -> String {
    match token {
        Token::Int(text) | Token::Name(text) => format!("`{text}`"),
        Token::Float(value) => format!("`{value}`"),
        Token::Text(text) => format!("{text:?}"),
        Token::Sign(sign) => format!("`{sign}`"),
    }
}

struct Parser<'a> {
    tokens: &'a [Token],
    at: usize,
    depth: usize,
    resolve: &'a dyn Fn(&str) -> Option<Expression>,
}

type Parsed = Result<Expression, String>;

impl Parser<'_> {
    fn peek(&self) -> Option<&Token> {
        self.tokens.get(self.at)
    }

    fn takes(&mut self, sign: &str) -> bool {
        let found = matches!(self.peek(), Some(Token::Sign(found)) if *found == sign);
        self.at += usize::from(found);
        found
    }

    fn takes_word(&mut self, word: &str) -> bool {
        let found = matches!(self.peek(), Some(Token::Name(found)) if found == word);
        self.at += usize::from(found);
        found
    }

    fn expect(&mut self, sign: &str) -> Result<(), String> {
        if self.takes(sign) {
            return Ok(());
        }
        Err(match self.peek() {
            Some(token) => format!("`{sign}` is expected before {}", spelt(token)),
            None => format!("`{sign}` is missing at the end"),
        })
    }

    fn conditional(&mut self) -> Parsed {
        self.depth += 1;
        if self.depth > DEEPEST {
            return Err(format!("brackets are nested more than {DEEPEST} deep"));
        }
        let then = self.disjunction()?;
        let parsed = if self.takes_word("if") {
            let condition = Box::new(self.disjunction()?);
            if !self.takes_word("else") {
                return Err("`if` needs `else`".to_owned());
            }
            let otherwise = Box::new(self.conditional()?);
            Expression::Conditional { condition, then: Box::new(then), otherwise }
        } else {
            then
        };
        self.depth -= 1;
        Ok(parsed)
    }

    fn disjunction(&mut self) -> Parsed {
        let mut left = self.conjunction()?;
        while self.takes_word("or") {
            left = Expression::Or(Box::new(left), Box::new(self.conjunction()?));
        }
        Ok(left)
    }

    fn conjunction(&mut self) -> Parsed {
        let mut left = self.negation()?;
        while self.takes_word("and") {
            left = Expression::And(Box::new(left), Box::new(self.negation()?));
        }
        Ok(left)
    }

    fn negation(&mut self) -> Parsed {
        let mut negations = 0;
        while self.takes_word("not") {
            negations += 1;
        }
        let mut inner = self.comparison()?;
        for _ in 0..negations {
            inner = Expression::Not(Box::new(inner));
        }
        Ok(inner)
    }

    fn comparison(&mut self) -> Parsed {
        let first = self.sum()?;
        let mut chain = Vec::new();
        loop {
            let comparison = match self.peek() {
                Some(Token::Sign("<")) => Comparison::Less,
                Some(Token::Sign("<=")) => Comparison::LessOrEqual,
                Some(Token::Sign(">")) => Comparison::Greater,
                Some(Token::Sign(">=")) => Comparison::GreaterOrEqual,
                Some(Token::Sign("==")) => Comparison::Equal,
                Some(Token::Sign("!=")) => Comparison::NotEqual,
                _ => break,
            };
            self.at += 1;
            chain.push((comparison, self.sum()?));
        }
        Ok(if chain.is_empty() { first } else { Expression::Compare(Box::new(first), chain) })
    }

    fn sum(&mut self) -> Parsed {
        let mut left = self.product()?;
        loop {
            let operator = match self.peek() {
                Some(Token::Sign("+")) => Operator::Add,
                Some(Token::Sign("-")) => Operator::Subtract,
                _ => return Ok(left),
            };
            self.at += 1;
            left = Expression::Binary(Arithmetic(operator), Box::new(left), Box::new(self.product()?));
        }
    }

    fn product(&mut self) -> Parsed {
        let mut left = self.unary()?;
        loop {
            let operator = match self.peek() {
                Some(Token::Sign("*")) => Operator::Multiply,
                Some(Token::Sign("/")) => Operator::Divide,
                Some(Token::Sign("//")) => Operator::FloorDivide,
                Some(Token::Sign("%")) => Operator::Remainder,
                _ => return Ok(left),
            };
            self.at += 1;
            left = Expression::Binary(Arithmetic(operator), Box::new(left), Box::new(self.unary()?));
        }
    }

    fn unary(&mut self) -> Parsed {
        let mut negative = false;
        loop {
            if self.takes("-") {
                negative = !negative;
            } else if !self.takes("+") {
                break;
            }
        }
        let inner = self.power()?;
        Ok(if negative { Expression::Negate(Box::new(inner)) } else { inner })
    }

    fn power(&mut self) -> Parsed {
        let base = self.postfix()?;
        if !self.takes("**") {
            return Ok(base);
        }
        self.depth += 1;
        if self.depth > DEEPEST {
            return Err(format!("powers are nested more than {DEEPEST} deep"));
        }
        let exponent = self.unary()?;
        self.depth -= 1;
        Ok(Expression::Binary(Arithmetic(Operator::Power), Box::new(base), Box::new(exponent)))
    }

    fn postfix(&mut self) -> Parsed {
        let mut inner = self.atom()?;
        while self.takes("[") {
            if self.takes(":") {
                let end = if self.takes("]") { None } else { Some(Box::new(self.closed("]")?)) };
                inner = Expression::Slice(Box::new(inner), None, end);
                continue;
            }
            let index = self.conditional()?;
            if self.takes(":") {
                let end = if self.takes("]") { None } else { Some(Box::new(self.closed("]")?)) };
                inner = Expression::Slice(Box::new(inner), Some(Box::new(index)), end);
            } else {
                self.expect("]")?;
                inner = Expression::Index(Box::new(inner), Box::new(index));
            }
        }
        Ok(inner)
    }

    fn closed(&mut self, sign: &str) -> Parsed {
        let inner = self.conditional()?;
        self.expect(sign)?;
        Ok(inner)
    }

    fn atom(&mut self) -> Parsed {
        let Some(token) = self.tokens.get(self.at) else { return Err("the expression ends too early".to_owned()) };
        self.at += 1;
        match token {
            Token::Int(text) => match text.parse() {
                Ok(value) => Ok(Expression::Literal(Value::Int(value))),
                Err(_) => Err(format!("{text} is no number")),
            },
            Token::Float(value) => Ok(Expression::Literal(Value::Float(*value))),
            Token::Text(text) => Ok(Expression::Literal(Value::text(text))),
            Token::Sign("(") => self.bracketed(),
            // A set of one value, as a few #answer lines write it, stands for the value.
            Token::Sign("{") => self.closed("}"),
            Token::Sign("[") => Ok(Expression::List(self.arguments("]")?)),
            Token::Sign(sign) => Err(format!("`{sign}` is not expected here")),
            Token::Name(name) => match name.as_str() {
                "True" => Ok(Expression::Literal(Value::Bool(true))),
                "False" => Ok(Expression::Literal(Value::Bool(false))),
                _ if self.takes("(") => {
                    let function = Function::named(name).ok_or_else(|| format!("there is no function {name}"))?;
                    Ok(Expression::Call(function, self.arguments(")")?))
                }
                _ => (self.resolve)(name).ok_or_else(|| format!("{name} is not defined")),
            },
        }
    }

    /// `(a)` or the pair `(a, b)`, after the opening bracket.
    fn bracketed(&mut self) -> Parsed {
        let mut items = self.arguments(")")?;
        match (items.pop(), items.pop(), items.is_empty()) {
            (Some(only), None, _) => Ok(only),
            (Some(second), Some(first), true) => Ok(Expression::Pair(Box::new(first), Box::new(second))),
            _ => Err("brackets hold one value, or a text and its value".to_owned()),
        }
    }

    /// Values up to the closing sign, separated by commas; one may follow the last.
    fn arguments(&mut self, close: &str) -> Result<Vec<Expression>, String> {
        let mut items = Vec::new();
        loop {
            if self.takes(close) {
                return Ok(items);
            }
            items.push(self.conditional()?);
            if !self.takes(",") {
                self.expect(close)?;
                return Ok(items);
            }
        }
    }
}
