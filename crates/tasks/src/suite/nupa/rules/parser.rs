//! Reads a rule's text. Rules are part of this program and tested against CPython, so errors are plain texts.
use super::program::{Action, Builtin, Expression, Function, Method, Operator, Program, Statement, Value};
use earnest_answer::python::{
    self, Argument, Brackets, Comparison, Prefix, PythonNumber, PythonValue, Tree, parse_one,
};

/// Parses a rule's text.
pub(super) fn parse(source: &str) -> Result<Program, String> {
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
    let headers = lines.iter().filter_map(|line| line.text.strip_prefix("def "));
    let names: Vec<String> = headers.filter_map(|header| Some(header.split_once('(')?.0.to_owned())).collect();
    let mut parser = Parser { lines: &lines, next: 0, functions: &names };
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
    fn problem(&self, what: impl std::fmt::Display) -> String {
        format!("line {}: {what}", self.number)
    }

    /// The text between a keyword and the colon at the end.
    fn header(&self, keyword: &str) -> Option<&'a str> {
        self.text.strip_prefix(keyword)?.strip_suffix(':')
    }
}

struct Parser<'a> {
    lines: &'a [Line<'a>],
    next: usize,
    functions: &'a [String],
}

impl Parser<'_> {
    fn function(&mut self) -> Result<Function, String> {
        let line = &self.lines[self.next];
        self.next += 1;
        let header = line.header("def ").ok_or_else(|| line.problem("expected a function"))?;
        let Tree::Call(name, arguments) = parse_one(header, Brackets::Kept).map_err(|what| line.problem(what))? else {
            return Err(line.problem("expected a function"));
        };
        let parameter = |argument: &Argument| match argument {
            Argument::Positional(Tree::Name(name)) => Ok(name.clone()),
            _ => Err(line.problem("expected parameters")),
        };
        let Tree::Name(name) = *name else { return Err(line.problem("expected the function's name")) };
        let mut locals = arguments.iter().map(parameter).collect::<Result<Vec<String>, _>>()?;
        let parameters = locals.len();
        let body = self.block(line.indent, &mut locals)?;
        Ok(Function { name, parameters, locals, body })
    }

    fn block(&mut self, outer: usize, locals: &mut Vec<String>) -> Result<Vec<Statement>, String> {
        let mut statements = Vec::new();
        while let Some(line) = self.lines.get(self.next).filter(|line| line.indent > outer) {
            self.next += 1;
            let action = if let Some(condition) = line.header("while ") {
                let condition = self.expression(line, condition, locals)?;
                Action::While(condition, self.block(line.indent, locals)?)
            } else if let Some(condition) = line.header("if ") {
                let condition = self.expression(line, condition, locals)?;
                Action::If(condition, self.block(line.indent, locals)?)
            } else if let Some(value) = line.text.strip_prefix("return ") {
                Action::Return(self.expression(line, value, locals)?)
            } else {
                let (name, value) = line.text.split_once(" = ").ok_or_else(|| line.problem("expected a statement"))?;
                let value = self.expression(line, value, locals)?;
                let slot = locals.iter().position(|local| local == name).unwrap_or_else(|| {
                    locals.push(name.to_owned());
                    locals.len() - 1
                });
                Action::Assign(slot, value)
            };
            statements.push(Statement { line: line.number, action });
        }
        Ok(statements)
    }

    fn expression(&self, line: &Line<'_>, text: &str, locals: &[String]) -> Result<Expression, String> {
        let scope = Scope { functions: self.functions, locals };
        parse_one(text, Brackets::Kept).and_then(|tree| scope.lower(&tree)).map_err(|what| line.problem(what))
    }
}

/// The names that an expression may use.
struct Scope<'a> {
    functions: &'a [String],
    locals: &'a [String],
}

impl Scope<'_> {
    /// Turns Python's tree into a rule's expression.
    fn lower(&self, tree: &Tree) -> Result<Expression, String> {
        let boxed = |tree: &Tree| self.lower(tree).map(Box::new);
        let pair = |first: &Tree, second: &Tree| Ok::<_, String>(Box::new((self.lower(first)?, self.lower(second)?)));
        Ok(match tree {
            Tree::Constant(PythonValue::Number(PythonNumber::Int(value))) => {
                Expression::Constant(Value::Integer(value.clone()))
            }
            Tree::Constant(PythonValue::Text(text)) => Expression::Constant(Value::Text(text.clone())),
            Tree::Name(name) => match self.locals.iter().position(|local| local == name) {
                Some(slot) => Expression::Local(slot),
                None => return Err(format!("{name} has no value")),
            },
            Tree::Bracketed(inner) => Expression::Parenthesised(boxed(inner)?),
            Tree::Prefixed(prefixes, inner) if prefixes == &[Prefix::Minus] => match self.lower(inner)? {
                Expression::Constant(Value::Integer(value)) => Expression::Constant(Value::Integer(-value)),
                other => Expression::Negative(Box::new(other)),
            },
            Tree::Operated(first, others) => {
                others.iter().try_fold(self.lower(first)?, |left, (operator, right)| {
                    let sides = Box::new((left, self.lower(right)?));
                    Ok::<_, String>(Expression::Binary(arithmetic(*operator)?, sides))
                })?
            }
            Tree::Compared(first, others) => match &others[..] {
                [(comparison, second)] => Expression::Binary(compared(*comparison)?, pair(first, second)?),
                _ => return Err("expected one comparison".to_owned()),
            },
            Tree::And(parts) => self.joined(Operator::And, parts)?,
            Tree::Or(parts) => self.joined(Operator::Or, parts)?,
            Tree::Item(container, index) => match &**index {
                Tree::Slice(bounds) => {
                    let [from, to, None] = &**bounds else { return Err("expected no step".to_owned()) };
                    let bound = |bound: &Option<Tree>| bound.as_ref().map(boxed).transpose();
                    Expression::Slice(boxed(container)?, bound(from)?, bound(to)?)
                }
                index => Expression::Index(pair(container, index)?),
            },
            Tree::Call(function, arguments) => self.call(function, arguments)?,
            _ => return Err("expected an expression that rules may use".to_owned()),
        })
    }

    fn joined(&self, operator: Operator, parts: &[Tree]) -> Result<Expression, String> {
        let mut parts = parts.iter().map(|part| self.lower(part));
        let first = parts.next().ok_or("expected a condition")??;
        parts.try_fold(first, |left, right| Ok(Expression::Binary(operator, Box::new((left, right?)))))
    }

    fn call(&self, function: &Tree, arguments: &[Argument]) -> Result<Expression, String> {
        let arguments = arguments.iter().map(|argument| match argument {
            Argument::Positional(value) => self.lower(value),
            _ => Err("expected positional arguments".to_owned()),
        });
        let arguments = arguments.collect::<Result<Vec<_>, String>>()?;
        match function {
            Tree::Name(name) => {
                if let Some(index) = self.functions.iter().position(|function| function == name) {
                    return Ok(Expression::Call(index, arguments));
                }
                let builtin = Builtin::NAMED.into_iter().find(|(known, _)| known == name);
                let (_, builtin) = builtin.ok_or_else(|| format!("{name} is not a function that rules may use"))?;
                Ok(Expression::Builtin(builtin, arguments))
            }
            Tree::Attribute(object, name) => {
                let method = Method::NAMED.into_iter().find(|(known, _)| known == name);
                let (_, method) = method.ok_or_else(|| format!("{name} is not a method that rules may use"))?;
                Ok(Expression::Method(Box::new(self.lower(object)?), method, arguments))
            }
            _ => Err("expected the name of a function".to_owned()),
        }
    }
}

fn arithmetic(operator: python::Operator) -> Result<Operator, String> {
    Ok(match operator {
        python::Operator::Add => Operator::Add,
        python::Operator::Subtract => Operator::Subtract,
        python::Operator::Multiply => Operator::Multiply,
        python::Operator::FloorDivide => Operator::FloorDivide,
        python::Operator::Modulo => Operator::Modulo,
        other => return Err(format!("{other:?} is not an operator of rules")),
    })
}

fn compared(comparison: Comparison) -> Result<Operator, String> {
    Ok(match comparison {
        Comparison::Equal => Operator::Equal,
        Comparison::NotEqual => Operator::NotEqual,
        Comparison::Less => Operator::Less,
        Comparison::LessOrEqual => Operator::LessEqual,
        Comparison::Greater => Operator::Greater,
        Comparison::GreaterOrEqual => Operator::GreaterEqual,
        other => return Err(format!("{other:?} is not a comparison of rules")),
    })
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
