//! Reads a rule's text. Rules are part of this program and tested against CPython, so errors are plain texts.
use num_bigint::BigInt;

use super::program::{Action, Builtin, Expression, Function, Method, Operator, Program, Statement, Value};

/// Parses a rule's text.
pub(super) fn parse(source: &str) -> Result<Program, String> {
    let lines: Vec<Line> = source
        .lines()
        .enumerate()
        .filter(|(_, text)| !text.trim().is_empty())
        .map(|(index, text)| {
            let indent = text.len() - text.trim_start().len();
            Ok(Line {
                number: index + 1,
                indent,
                tokens: tokens(text).map_err(|e| format!("line {}: {e}", index + 1))?,
            })
        })
        .collect::<Result<_, String>>()?;
    let names: Vec<String> = lines
        .iter()
        .filter(|line| line.starts_with("def"))
        .filter_map(|line| match line.tokens.get(1) {
            Some(Token::Name(name)) => Some(name.clone()),
            _ => None,
        })
        .collect();
    let mut parser = Parser { lines: &lines, next: 0, functions: &names };
    let mut functions = Vec::new();
    while parser.next < lines.len() {
        functions.push(parser.function()?);
    }
    Ok(Program { functions })
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Token {
    Name(String),
    Number(BigInt),
    Text(String),
    Sign(&'static str),
}

struct Line {
    number: usize,
    indent: usize,
    tokens: Vec<Token>,
}

impl Line {
    fn starts_with(&self, word: &str) -> bool {
        matches!(self.tokens.first(), Some(Token::Name(name)) if name == word)
    }
}

const SIGNS: [&str; 20] =
    ["==", "!=", "<=", ">=", "//", "=", "<", ">", "+", "-", "*", "%", "(", ")", "[", "]", ":", ",", ".", "/"];

fn tokens(text: &str) -> Result<Vec<Token>, String> {
    let mut found = Vec::new();
    let mut rest = text.trim();
    while let Some(first) = rest.chars().next() {
        let taken = |accept: fn(char) -> bool| rest.find(|c| !accept(c)).unwrap_or(rest.len());
        let length = if first.is_ascii_digit() {
            let length = taken(|c| c.is_ascii_digit());
            found.push(Token::Number(BigInt::parse_bytes(&rest.as_bytes()[..length], 10).ok_or("a number")?));
            length
        } else if first.is_ascii_alphabetic() {
            let length = taken(|c| c.is_ascii_alphanumeric() || c == '_');
            found.push(Token::Name(rest[..length].into()));
            length
        } else if let Some(quoted) = rest.strip_prefix('\'') {
            let end = quoted.find('\'').ok_or("a text without its closing quote")?;
            found.push(Token::Text(quoted[..end].into()));
            end + 2
        } else {
            let sign = SIGNS.into_iter().find(|sign| rest.starts_with(sign));
            let sign = sign.ok_or_else(|| format!("unknown sign `{first}`"))?;
            found.push(Token::Sign(sign));
            sign.len()
        };
        rest = rest[length..].trim_start();
    }
    Ok(found)
}

struct Parser<'a> {
    lines: &'a [Line],
    next: usize,
    functions: &'a [String],
}

impl Parser<'_> {
    fn function(&mut self) -> Result<Function, String> {
        let line = &self.lines[self.next];
        self.next += 1;
        let mut cursor = Cursor { tokens: &line.tokens, at: 0, line: line.number, functions: self.functions };
        cursor.word("def")?;
        let name = cursor.name()?;
        cursor.sign("(")?;
        let mut locals = Vec::new();
        while !cursor.accept(")") {
            locals.push(cursor.name()?);
            cursor.accept(",");
        }
        cursor.sign(":")?;
        let parameters = locals.len();
        let body = self.block(line.indent, &mut locals)?;
        Ok(Function { name, parameters, locals, body })
    }

    fn block(&mut self, outer: usize, locals: &mut Vec<String>) -> Result<Vec<Statement>, String> {
        let mut statements = Vec::new();
        while let Some(line) = self.lines.get(self.next).filter(|line| line.indent > outer) {
            self.next += 1;
            let mut cursor = Cursor { tokens: &line.tokens, at: 0, line: line.number, functions: self.functions };
            let action = if line.starts_with("while") || line.starts_with("if") {
                cursor.at = 1;
                let condition = cursor.expression(locals)?;
                cursor.sign(":")?;
                let body = self.block(line.indent, locals)?;
                if line.starts_with("if") { Action::If(condition, body) } else { Action::While(condition, body) }
            } else if line.starts_with("return") {
                cursor.at = 1;
                Action::Return(cursor.expression(locals)?)
            } else {
                let name = cursor.name()?;
                cursor.sign("=")?;
                let value = cursor.expression(locals)?;
                let slot = locals.iter().position(|local| *local == name).unwrap_or_else(|| {
                    locals.push(name);
                    locals.len() - 1
                });
                Action::Assign(slot, value)
            };
            cursor.end()?;
            statements.push(Statement { line: line.number, action });
        }
        Ok(statements)
    }
}

struct Cursor<'a> {
    tokens: &'a [Token],
    at: usize,
    line: usize,
    functions: &'a [String],
}

impl Cursor<'_> {
    fn problem<T>(&self, expected: &str) -> Result<T, String> {
        Err(format!("line {}: expected {expected} at token {}", self.line, self.at + 1))
    }

    fn accept(&mut self, sign: &str) -> bool {
        let found = matches!(self.tokens.get(self.at), Some(Token::Sign(other)) if *other == sign);
        self.at += usize::from(found);
        found
    }

    fn accept_word(&mut self, word: &str) -> bool {
        let found = matches!(self.tokens.get(self.at), Some(Token::Name(other)) if other == word);
        self.at += usize::from(found);
        found
    }

    fn sign(&mut self, sign: &'static str) -> Result<(), String> {
        if self.accept(sign) { Ok(()) } else { self.problem(sign) }
    }

    fn word(&mut self, word: &'static str) -> Result<(), String> {
        if self.accept_word(word) { Ok(()) } else { self.problem(word) }
    }

    fn name(&mut self) -> Result<String, String> {
        match self.tokens.get(self.at) {
            Some(Token::Name(name)) => {
                self.at += 1;
                Ok(name.clone())
            }
            _ => self.problem("a name"),
        }
    }

    fn end(&self) -> Result<(), String> {
        if self.at == self.tokens.len() { Ok(()) } else { self.problem("the end of the line") }
    }

    fn expression(&mut self, locals: &[String]) -> Result<Expression, String> {
        let mut left = self.conjunction(locals)?;
        while self.accept_word("or") {
            left = Expression::Binary(Operator::Or, Box::new((left, self.conjunction(locals)?)));
        }
        Ok(left)
    }

    fn conjunction(&mut self, locals: &[String]) -> Result<Expression, String> {
        let mut left = self.comparison(locals)?;
        while self.accept_word("and") {
            left = Expression::Binary(Operator::And, Box::new((left, self.comparison(locals)?)));
        }
        Ok(left)
    }

    fn comparison(&mut self, locals: &[String]) -> Result<Expression, String> {
        use Operator::{Equal, Greater, GreaterEqual, Less, LessEqual, NotEqual};
        let left = self.sum(locals)?;
        match [Equal, NotEqual, LessEqual, GreaterEqual, Less, Greater].into_iter().find(|op| self.accept(op.symbol()))
        {
            Some(operator) => Ok(Expression::Binary(operator, Box::new((left, self.sum(locals)?)))),
            None => Ok(left),
        }
    }

    fn sum(&mut self, locals: &[String]) -> Result<Expression, String> {
        let mut left = self.product(locals)?;
        while let Some(operator) =
            [Operator::Add, Operator::Subtract].into_iter().find(|operator| self.accept(operator.symbol()))
        {
            left = Expression::Binary(operator, Box::new((left, self.product(locals)?)));
        }
        Ok(left)
    }

    fn product(&mut self, locals: &[String]) -> Result<Expression, String> {
        let mut left = self.unary(locals)?;
        while let Some(operator) = [Operator::Multiply, Operator::FloorDivide, Operator::Modulo]
            .into_iter()
            .find(|operator| self.accept(operator.symbol()))
        {
            left = Expression::Binary(operator, Box::new((left, self.unary(locals)?)));
        }
        Ok(left)
    }

    fn unary(&mut self, locals: &[String]) -> Result<Expression, String> {
        if self.accept("-") {
            return Ok(match self.unary(locals)? {
                Expression::Constant(Value::Integer(value)) => Expression::Constant(Value::Integer(-value)),
                other => Expression::Negative(Box::new(other)),
            });
        }
        self.postfix(locals)
    }

    fn arguments(&mut self, locals: &[String]) -> Result<Vec<Expression>, String> {
        let mut arguments = Vec::new();
        while !self.accept(")") {
            arguments.push(self.expression(locals)?);
            self.accept(",");
        }
        Ok(arguments)
    }

    fn postfix(&mut self, locals: &[String]) -> Result<Expression, String> {
        let mut value = self.atom(locals)?;
        loop {
            if self.accept(".") {
                let name = self.name()?;
                let method = Method::NAMED.into_iter().find(|(known, _)| *known == name);
                let Some((_, method)) = method else { return self.problem("a method that rules may use") };
                self.sign("(")?;
                value = Expression::Method(Box::new(value), method, self.arguments(locals)?);
            } else if self.accept("[") {
                let from = match self.accept(":") {
                    true => None,
                    false => {
                        let index = self.expression(locals)?;
                        if self.accept("]") {
                            value = Expression::Index(Box::new((value, index)));
                            continue;
                        }
                        self.sign(":")?;
                        Some(Box::new(index))
                    }
                };
                let to = if self.accept("]") {
                    None
                } else {
                    let to = self.expression(locals)?;
                    self.sign("]")?;
                    Some(Box::new(to))
                };
                value = Expression::Slice(Box::new(value), from, to);
            } else {
                return Ok(value);
            }
        }
    }

    fn atom(&mut self, locals: &[String]) -> Result<Expression, String> {
        let token = self.tokens.get(self.at).cloned();
        self.at += 1;
        match token {
            Some(Token::Number(value)) => Ok(Expression::Constant(Value::Integer(value))),
            Some(Token::Text(text)) => Ok(Expression::Constant(Value::Text(text))),
            Some(Token::Sign("(")) => {
                let inner = self.expression(locals)?;
                self.sign(")")?;
                Ok(Expression::Parenthesised(Box::new(inner)))
            }
            Some(Token::Name(name)) if self.accept("(") => {
                let arguments = self.arguments(locals)?;
                if let Some(index) = self.functions.iter().position(|function| *function == name) {
                    return Ok(Expression::Call(index, arguments));
                }
                match Builtin::NAMED.into_iter().find(|(known, _)| *known == name) {
                    Some((_, builtin)) => Ok(Expression::Builtin(builtin, arguments)),
                    None => self.problem("a function that the rule defines or a known builtin"),
                }
            }
            Some(Token::Name(name)) => match locals.iter().position(|local| *local == name) {
                Some(slot) => Ok(Expression::Local(slot)),
                None => self.problem("a variable that has a value"),
            },
            _ => self.problem("a value"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refuses_what_rules_may_not_use() {
        for source in [
            "def f(a):\n    return open(a)\n",
            "def f(a):\n    return a.upper()\n",
            "def f(a):\n    return b\n",
            "def f(a):\n    return a +\n",
            "def f(a):\n    return a b\n",
            "def f(a):\n    return 'x\n",
            "def f(a):\n    return a @ a\n",
            "x = 1\n",
        ] {
            assert!(parse(source).is_err(), "{source}");
        }
    }

    #[test]
    fn precedence_follows_python() {
        let program = parse("def f(a):\n    return a + 2 * 3 == 7 or a != 1 and a > 2\n").unwrap();
        let Action::Return(Expression::Binary(Operator::Or, sides)) = &program.functions[0].body[0].action else {
            panic!("not a disjunction")
        };
        assert!(matches!(sides.0, Expression::Binary(Operator::Equal, _)));
        assert!(matches!(sides.1, Expression::Binary(Operator::And, _)));
    }
}
