//! Parser of a rule's text.
use super::program::{Action, Function, Program, Statement};
use earnest_answer::python::{Argument, Brackets, ParseError, Tree, parse_one};

/// Error of a rule's text. Rules are part of this program and tested against CPython.
#[derive(Debug, thiserror::Error)]
#[error("line {line}: {fault}")]
pub(super) struct SourceError {
    line: usize,
    fault: Fault,
}

#[derive(Debug, thiserror::Error)]
enum Fault {
    #[error("expected {0}")]
    Expected(&'static str),
    #[error(transparent)]
    Expression(#[from] ParseError),
}

/// Parses a rule's text.
pub(super) fn parse(source: &str) -> Result<Program, SourceError> {
    let lines: Vec<Line<'_>> = source
        .lines()
        .enumerate()
        .filter(|(_, text)| !text.trim().is_empty())
        .map(|(index, text)| Line {
            number: index + 1,
            indent: text.len() - text.trim_start().len(),
            text: text.trim(),
        })
        .collect();
    let mut parser = Parser { lines: &lines, next: 0 };
    let mut functions = Vec::new();
    while parser.next < lines.len() {
        functions.push(parser.function()?);
    }
    Ok(Program { functions })
}

struct Line<'a> {
    number: usize,
    indent: usize,
    text: &'a str,
}

impl<'a> Line<'a> {
    fn error(&self, fault: impl Into<Fault>) -> SourceError {
        SourceError { line: self.number, fault: fault.into() }
    }

    fn expected(&self, what: &'static str) -> SourceError {
        self.error(Fault::Expected(what))
    }

    /// The text between a keyword and the colon at the end.
    fn header(&self, keyword: &str) -> Option<&'a str> {
        self.text.strip_prefix(keyword)?.strip_suffix(':')
    }

    fn expression(&self, text: &str) -> Result<Tree, SourceError> {
        parse_one(text, Brackets::Kept).map_err(|error| self.error(error))
    }
}

struct Parser<'a> {
    lines: &'a [Line<'a>],
    next: usize,
}

impl Parser<'_> {
    fn function(&mut self) -> Result<Function, SourceError> {
        let line = &self.lines[self.next];
        self.next += 1;
        let header = line.header("def ").ok_or_else(|| line.expected("a function"))?;
        let Tree::Call(name, arguments) = line.expression(header)? else {
            return Err(line.expected("a function"));
        };
        let parameter = |argument: &Argument| match argument {
            Argument::Positional(Tree::Name(name)) => Ok(name.clone()),
            _ => Err(line.expected("parameters")),
        };
        let Tree::Name(name) = *name else { return Err(line.expected("the function's name")) };
        let parameters = arguments.iter().map(parameter).collect::<Result<Vec<String>, _>>()?;
        Ok(Function { name, parameters, body: self.block(line.indent)? })
    }

    fn block(&mut self, outer: usize) -> Result<Vec<Statement>, SourceError> {
        let mut statements = Vec::new();
        while let Some(line) = self.lines.get(self.next).filter(|line| line.indent > outer) {
            self.next += 1;
            let action = if let Some(condition) = line.header("while ") {
                let condition = line.expression(condition)?;
                Action::While(condition, self.block(line.indent)?)
            } else if let Some(condition) = line.header("if ") {
                let condition = line.expression(condition)?;
                Action::If(condition, self.block(line.indent)?)
            } else if let Some(value) = line.text.strip_prefix("return ") {
                Action::Return(line.expression(value)?)
            } else {
                let (name, value) = line.text.split_once(" = ").ok_or_else(|| line.expected("a statement"))?;
                Action::Assign(name.to_owned(), line.expression(value)?)
            };
            statements.push(Statement { line: line.number, action });
        }
        Ok(statements)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_rule_is_refused() {
        for source in
            ["def f(a):\n    return a +\n", "def f(a):\n    return a b\n", "def f(a):\n    return 'x\n", "x = 1\n"]
        {
            assert!(parse(source).is_err(), "{source}");
        }
    }
}
