//! From tokens to an expression, by Python 3.11's grammar.
use std::sync::Arc;

use thiserror::Error;

use super::error::PythonError;
use super::token::{Token, tokens};
use super::tree::{Argument, Clause, Collected, Comparison, Lambda, Operator, Prefix, Tree};
use super::value::PythonValue;

/// Expressions within each other that are read; of brackets CPython reads 200.
const DEEPEST: usize = 50;

const KEYWORDS: [&str; 32] = [
    "and", "as", "assert", "async", "await", "break", "class", "continue", "def", "del", "elif", "else", "except",
    "finally", "for", "from", "global", "if", "import", "in", "is", "lambda", "nonlocal", "not", "or", "pass", "raise",
    "return", "try", "while", "with", "yield",
];

/// Reads an expression, or several with commas between them.
pub(super) fn parse(text: &str) -> Result<Tree, PythonError> {
    let tokens = tokens(text);
    let mut parser = Parser { tokens: &tokens, at: 0, depth: 0, brackets: Brackets::Dropped };
    let first = parser.expression()?;
    let tree = if parser.peek_sign(",") {
        let mut parts = vec![first];
        while parser.sign(",") && parser.begins_expression() {
            parts.push(parser.expression()?);
        }
        Tree::Tuple(parts)
    } else {
        first
    };
    while parser.tokens.get(parser.at) == Some(&Token::Newline) {
        parser.at += 1;
    }
    if parser.at < tokens.len() { Err(parser.unexpected()) } else { Ok(tree) }
}

/// Bytes of the longest text of [`parse_one`].
const LONGEST: usize = 50_000;

/// Tokens of the longest expression that [`parse_one`] reads: a chain of operators may become a tree as deep as it is long.
const MOST_TOKENS: usize = 2_000;

/// Brackets around an expression: in the tree or not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Brackets {
    Kept,
    Dropped,
}

/// Reason for a text being no single expression.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ParseError {
    #[error("the expression is longer than {LONGEST} characters")]
    TooLong,
    #[error("the expression has more than {MOST_TOKENS} parts")]
    TooManyParts,
    #[error("expressions are nested more than {DEEPEST} deep")]
    TooDeep,
    #[error("the expression ends too early")]
    EndsEarly,
    /// Text that is no token.
    #[error("`{0}` cannot be read")]
    NoToken(String),
    #[error("`{0}` is not expected here")]
    Unexpected(String),
}

/// Reads a single expression on one line.
///
/// # Errors
/// The first thing that is not expected.
pub fn parse_one(text: &str, brackets: Brackets) -> Result<Tree, ParseError> {
    if text.len() > LONGEST {
        return Err(ParseError::TooLong);
    }
    let tokens = tokens(text);
    if tokens.len() > MOST_TOKENS {
        return Err(ParseError::TooManyParts);
    }
    let mut parser = Parser { tokens: &tokens, at: 0, depth: 0, brackets };
    match parser.expression() {
        Ok(tree) if parser.at == tokens.len() => Ok(tree),
        Err(PythonError::Recursion) => Err(ParseError::TooDeep),
        _ => Err(parser.surprise()),
    }
}

struct Parser<'a> {
    tokens: &'a [Token],
    at: usize,
    depth: usize,
    brackets: Brackets,
}

impl Parser<'_> {
    /// The error of the token at which reading stopped.
    fn surprise(&self) -> ParseError {
        let shown = match self.tokens.get(self.at) {
            None | Some(Token::Newline) => return ParseError::EndsEarly,
            Some(Token::Invalid(rest)) if rest.is_empty() => return ParseError::EndsEarly,
            Some(Token::Invalid(rest)) => {
                return ParseError::NoToken(rest.chars().take_while(|c| !c.is_whitespace()).take(20).collect());
            }
            Some(Token::Number(number)) => number.text().unwrap_or_default(),
            Some(Token::Text(text)) => text.clone(),
            Some(Token::UnsupportedText) => "a text of this kind".to_owned(),
            Some(Token::Name(name)) => name.clone(),
            Some(Token::Sign(sign)) => (*sign).to_owned(),
            Some(Token::Indent) => "white space".to_owned(),
        };
        ParseError::Unexpected(shown)
    }

    fn unexpected(&self) -> PythonError {
        if self.tokens.get(self.at) == Some(&Token::Indent) { PythonError::Indentation } else { PythonError::Syntax }
    }

    fn peek_sign(&self, sign: &str) -> bool {
        matches!(self.tokens.get(self.at), Some(Token::Sign(found)) if *found == sign)
    }

    fn sign(&mut self, sign: &str) -> bool {
        let found = self.peek_sign(sign);
        self.at += usize::from(found);
        found
    }

    fn expect(&mut self, sign: &str) -> Result<(), PythonError> {
        if self.sign(sign) { Ok(()) } else { Err(self.unexpected()) }
    }

    fn peek_word(&self, word: &str) -> bool {
        matches!(self.tokens.get(self.at), Some(Token::Name(found)) if found == word)
    }

    fn word(&mut self, word: &str) -> bool {
        let found = self.peek_word(word);
        self.at += usize::from(found);
        found
    }

    /// A name that is no keyword.
    fn name(&mut self) -> Result<String, PythonError> {
        match self.tokens.get(self.at) {
            Some(Token::Name(name)) if !is_reserved(name) => {
                self.at += 1;
                Ok(name.clone())
            }
            _ => Err(self.unexpected()),
        }
    }

    /// True if an expression can begin here; what closes, separates or ends a list cannot.
    fn begins_expression(&self) -> bool {
        !matches!(
            self.tokens.get(self.at),
            None | Some(Token::Newline | Token::Sign(")" | "]" | "}" | "," | "=" | ":"))
        )
    }

    fn deeper<T>(&mut self, read: impl FnOnce(&mut Self) -> Result<T, PythonError>) -> Result<T, PythonError> {
        if self.depth >= DEEPEST {
            return Err(PythonError::Recursion);
        }
        self.depth += 1;
        let found = read(self);
        self.depth -= 1;
        found
    }

    fn expression(&mut self) -> Result<Tree, PythonError> {
        self.deeper(|parser| {
            if parser.word("lambda") {
                return parser.lambda();
            }
            let first = parser.disjunction()?;
            if !parser.word("if") {
                return Ok(first);
            }
            let condition = parser.disjunction()?;
            if !parser.word("else") {
                return Err(parser.unexpected());
            }
            let otherwise = parser.expression()?;
            Ok(Tree::Conditional(Box::new([condition, first, otherwise])))
        })
    }

    /// An expression, or `name := expression`.
    fn assignment(&mut self) -> Result<Tree, PythonError> {
        if matches!(self.tokens.get(self.at + 1), Some(Token::Sign(":="))) {
            let name = self.name()?;
            self.at += 1;
            return Ok(Tree::Assigned(name, Box::new(self.expression()?)));
        }
        self.expression()
    }

    /// An element of a list: also `*iterable`.
    fn element(&mut self) -> Result<Tree, PythonError> {
        if self.sign("*") {
            return Ok(Tree::Starred(Box::new(self.binary(0)?)));
        }
        self.assignment()
    }

    fn lambda(&mut self) -> Result<Tree, PythonError> {
        let (mut names, mut defaults) = (Vec::new(), Vec::new());
        while !self.sign(":") {
            let name = self.name()?;
            if names.contains(&name) {
                return Err(PythonError::Syntax);
            }
            names.push(name);
            if self.sign("=") {
                defaults.push(self.expression()?);
            } else if !defaults.is_empty() {
                return Err(PythonError::Syntax);
            }
            if !self.sign(",") {
                self.expect(":")?;
                break;
            }
        }
        let body = self.expression()?;
        Ok(Tree::Lambda(Arc::new(Lambda { names, defaults, body })))
    }

    fn disjunction(&mut self) -> Result<Tree, PythonError> {
        let mut parts = vec![self.conjunction()?];
        while self.word("or") {
            parts.push(self.conjunction()?);
        }
        Ok(if parts.len() == 1 { parts.remove(0) } else { Tree::Or(parts) })
    }

    fn conjunction(&mut self) -> Result<Tree, PythonError> {
        let mut parts = vec![self.inversion()?];
        while self.word("and") {
            parts.push(self.inversion()?);
        }
        Ok(if parts.len() == 1 { parts.remove(0) } else { Tree::And(parts) })
    }

    fn inversion(&mut self) -> Result<Tree, PythonError> {
        let mut prefixes = Vec::new();
        while self.word("not") {
            prefixes.push(Prefix::Not);
        }
        let inner = self.comparison()?;
        Ok(if prefixes.is_empty() { inner } else { Tree::Prefixed(prefixes, Box::new(inner)) })
    }

    fn comparison(&mut self) -> Result<Tree, PythonError> {
        let first = self.binary(0)?;
        let mut others = Vec::new();
        while let Some(comparison) = self.compares() {
            others.push((comparison, self.binary(0)?));
        }
        Ok(if others.is_empty() { first } else { Tree::Compared(Box::new(first), others) })
    }

    fn compares(&mut self) -> Option<Comparison> {
        if let Some((_, comparison)) = Comparison::WRITTEN.into_iter().find(|(sign, _)| self.peek_sign(sign)) {
            self.at += 1;
            return Some(comparison);
        }
        if self.peek_word("not") {
            let in_follows = matches!(self.tokens.get(self.at + 1), Some(Token::Name(name)) if name == "in");
            self.at += if in_follows { 2 } else { 0 };
            return in_follows.then_some(Comparison::NotIn);
        }
        if self.word("is") {
            return Some(if self.word("not") { Comparison::IsNot } else { Comparison::Is });
        }
        self.word("in").then_some(Comparison::In)
    }

    /// Operators that bind at least so strongly.
    fn binary(&mut self, weakest: u8) -> Result<Tree, PythonError> {
        let first = self.factor()?;
        let mut applied = Vec::new();
        while let Some(Token::Sign(sign)) = self.tokens.get(self.at) {
            let Some((operator, strength)) = Operator::of(sign).filter(|(_, strength)| *strength >= weakest) else {
                break;
            };
            self.at += 1;
            applied.push((operator, self.binary(strength + 1)?));
        }
        Ok(if applied.is_empty() { first } else { Tree::Operated(Box::new(first), applied) })
    }

    fn factor(&mut self) -> Result<Tree, PythonError> {
        let mut prefixes = Vec::new();
        loop {
            let signs = [("+", Prefix::Plus), ("-", Prefix::Minus), ("~", Prefix::Invert)];
            let Some((_, prefix)) = signs.into_iter().find(|(sign, _)| self.peek_sign(sign)) else { break };
            self.at += 1;
            prefixes.push(prefix);
        }
        let mut inner = self.primary()?;
        if self.sign("**") {
            let exponent = self.deeper(Self::factor)?;
            inner = Tree::Operated(Box::new(inner), vec![(Operator::Power, exponent)]);
        }
        Ok(if prefixes.is_empty() { inner } else { Tree::Prefixed(prefixes, Box::new(inner)) })
    }

    fn primary(&mut self) -> Result<Tree, PythonError> {
        let mut tree = self.atom()?;
        // Calls, items and attributes of each other are as deep as they are many.
        let mut trailers = 0;
        loop {
            tree = if self.sign("(") {
                Tree::Call(Box::new(tree), self.arguments()?)
            } else if self.sign("[") {
                Tree::Item(Box::new(tree), Box::new(self.subscript()?))
            } else if self.sign(".") {
                Tree::Attribute(Box::new(tree), self.name()?)
            } else {
                return Ok(tree);
            };
            trailers += 1;
            if self.depth + trailers > DEEPEST {
                return Err(PythonError::Recursion);
            }
        }
    }

    fn arguments(&mut self) -> Result<Vec<Argument>, PythonError> {
        let mut arguments: Vec<Argument> = Vec::new();
        let mut named = false;
        while !self.sign(")") {
            if self.peek_sign("**") {
                return self.dictionary_argument();
            }
            let argument = if self.sign("*") {
                Argument::Unpacked(self.expression()?)
            } else if matches!(self.tokens.get(self.at + 1), Some(Token::Sign("="))) {
                let name = self.name()?;
                self.at += 1;
                if arguments.iter().any(|other| matches!(other, Argument::ByName(taken, _) if *taken == name)) {
                    return Err(PythonError::Syntax);
                }
                named = true;
                Argument::ByName(name, self.expression()?)
            } else {
                let value = self.assignment()?;
                if named {
                    return Err(PythonError::Syntax);
                }
                match self.clauses()? {
                    // A generator stands alone, unless it has brackets of its own.
                    Some(_) if !arguments.is_empty() || !self.peek_sign(")") => return Err(PythonError::Syntax),
                    Some(clauses) => {
                        Argument::Positional(Tree::Comprehension(Collected::Iterator, Box::new(value), clauses))
                    }
                    None => Argument::Positional(value),
                }
            };
            arguments.push(argument);
            if !self.sign(",") {
                self.expect(")")?;
                break;
            }
        }
        Ok(arguments)
    }

    /// `**mapping`: read, never evaluated.
    fn dictionary_argument(&mut self) -> Result<Vec<Argument>, PythonError> {
        while self.sign("**") {
            self.expression()?;
            if !self.sign(",") {
                break;
            }
        }
        self.expect(")")?;
        Ok(vec![Argument::Positional(Tree::Unsupported)])
    }

    fn subscript(&mut self) -> Result<Tree, PythonError> {
        let mut parts = vec![self.slice()?];
        let mut tuple = false;
        while self.sign(",") {
            tuple = true;
            if self.peek_sign("]") {
                break;
            }
            parts.push(self.slice()?);
        }
        self.expect("]")?;
        let starred = matches!(parts[0], Tree::Starred(_));
        Ok(if tuple || starred { Tree::Tuple(parts) } else { parts.remove(0) })
    }

    fn slice(&mut self) -> Result<Tree, PythonError> {
        let start = if self.peek_sign(":") { None } else { Some(self.element()?) };
        if !self.sign(":") {
            return start.ok_or(PythonError::Syntax);
        }
        if matches!(start, Some(Tree::Starred(_) | Tree::Assigned(..))) {
            return Err(PythonError::Syntax);
        }
        let stop = if self.begins_expression() { Some(self.expression()?) } else { None };
        let step = if self.sign(":") && self.begins_expression() { Some(self.expression()?) } else { None };
        Ok(Tree::Slice(Box::new([start, stop, step])))
    }

    fn atom(&mut self) -> Result<Tree, PythonError> {
        let token = self.tokens.get(self.at).ok_or(PythonError::Syntax)?;
        let tree = match token {
            Token::Number(number) => Tree::Constant(PythonValue::Number(number.clone())),
            Token::Text(_) | Token::UnsupportedText => return Ok(self.strings()),
            Token::Name(name) => match name.as_str() {
                "True" => Tree::Constant(PythonValue::Bool(true)),
                "False" => Tree::Constant(PythonValue::Bool(false)),
                "None" => Tree::Constant(PythonValue::None),
                "__debug__" => Tree::Constant(PythonValue::Bool(true)),
                _ => return self.name().map(Tree::Name),
            },
            Token::Sign("...") => Tree::Constant(PythonValue::Ellipsis),
            Token::Sign("(") => {
                self.at += 1;
                return self.round_brackets();
            }
            Token::Sign("[") => {
                self.at += 1;
                return self.square_brackets();
            }
            Token::Sign("{") => {
                self.at += 1;
                return self.curly_brackets();
            }
            _ => return Err(self.unexpected()),
        };
        self.at += 1;
        Ok(tree)
    }

    /// Strings one after the other are one.
    fn strings(&mut self) -> Tree {
        let mut text = Some(String::new());
        loop {
            match self.tokens.get(self.at) {
                Some(Token::Text(part)) => text = text.map(|text| text + part),
                Some(Token::UnsupportedText) => text = None,
                _ => break,
            }
            self.at += 1;
        }
        text.map_or(Tree::Unsupported, |text| Tree::Constant(PythonValue::Text(text)))
    }

    fn round_brackets(&mut self) -> Result<Tree, PythonError> {
        if self.sign(")") {
            return Ok(Tree::Tuple(Vec::new()));
        }
        let first = self.element()?;
        if let Some(clauses) = self.clauses()? {
            self.expect(")")?;
            return comprehension(Collected::Iterator, first, clauses);
        }
        if self.sign(")") {
            return match (first, self.brackets) {
                (Tree::Starred(_), _) => Err(PythonError::Syntax),
                (first, Brackets::Kept) => Ok(Tree::Bracketed(Box::new(first))),
                (first, Brackets::Dropped) => Ok(first),
            };
        }
        self.elements(first, ")").map(Tree::Tuple)
    }

    fn square_brackets(&mut self) -> Result<Tree, PythonError> {
        if self.sign("]") {
            return Ok(Tree::List(Vec::new()));
        }
        let first = self.element()?;
        if let Some(clauses) = self.clauses()? {
            self.expect("]")?;
            return comprehension(Collected::List, first, clauses);
        }
        self.elements(first, "]").map(Tree::List)
    }

    fn elements(&mut self, first: Tree, close: &'static str) -> Result<Vec<Tree>, PythonError> {
        let mut parts = vec![first];
        while self.sign(",") && !self.peek_sign(close) {
            parts.push(self.element()?);
        }
        self.expect(close)?;
        Ok(parts)
    }

    fn curly_brackets(&mut self) -> Result<Tree, PythonError> {
        if self.sign("}") {
            return Ok(Tree::Dictionary(Vec::new()));
        }
        if self.peek_sign("**") {
            return self.unpacked_dictionary();
        }
        let first = self.element()?;
        if self.sign(":") {
            return self.dictionary(first);
        }
        if let Some(clauses) = self.clauses()? {
            self.expect("}")?;
            return comprehension(Collected::Set, first, clauses);
        }
        self.elements(first, "}").map(Tree::Set)
    }

    fn dictionary(&mut self, first: Tree) -> Result<Tree, PythonError> {
        if matches!(first, Tree::Starred(_) | Tree::Assigned(..)) {
            return Err(PythonError::Syntax);
        }
        let mut pairs = vec![(first, self.expression()?)];
        if self.clauses()?.is_some() {
            self.expect("}")?;
            return Ok(Tree::Unsupported);
        }
        while self.sign(",") && !self.peek_sign("}") {
            if self.peek_sign("**") {
                return self.unpacked_dictionary();
            }
            let key = self.expression()?;
            self.expect(":")?;
            pairs.push((key, self.expression()?));
        }
        self.expect("}")?;
        Ok(Tree::Dictionary(pairs))
    }

    /// A dictionary with `**mapping` from here on: read, never evaluated.
    fn unpacked_dictionary(&mut self) -> Result<Tree, PythonError> {
        while !self.sign("}") {
            if self.sign("**") {
                self.binary(0)?;
            } else {
                self.expression()?;
                self.expect(":")?;
                self.expression()?;
            }
            if !self.sign(",") {
                self.expect("}")?;
                break;
            }
        }
        Ok(Tree::Unsupported)
    }

    /// The clauses of a comprehension, if one begins here.
    fn clauses(&mut self) -> Result<Option<Vec<Clause>>, PythonError> {
        let mut clauses = Vec::new();
        while self.word("for") {
            let bracket = [("(", ")"), ("[", "]")].into_iter().find(|(open, _)| self.sign(open));
            let mut names = vec![self.name()?];
            let mut unpacked = matches!(bracket, Some(("[", _)));
            while self.sign(",") {
                unpacked = true;
                if self.peek_word("in") || self.peek_sign(")") || self.peek_sign("]") {
                    break;
                }
                names.push(self.name()?);
            }
            if let Some((_, close)) = bracket {
                self.expect(close)?;
            }
            if !self.word("in") {
                return Err(self.unexpected());
            }
            let iterable = self.disjunction()?;
            let mut conditions = Vec::new();
            while self.word("if") {
                conditions.push(self.disjunction()?);
            }
            clauses.push(Clause { names, unpacked, iterable, conditions });
        }
        Ok((!clauses.is_empty()).then_some(clauses))
    }
}

fn comprehension(collected: Collected, element: Tree, clauses: Vec<Clause>) -> Result<Tree, PythonError> {
    if matches!(element, Tree::Starred(_)) {
        return Err(PythonError::Syntax);
    }
    Ok(Tree::Comprehension(collected, Box::new(element), clauses))
}

fn is_reserved(name: &str) -> bool {
    KEYWORDS.contains(&name) || matches!(name, "True" | "False" | "None")
}
