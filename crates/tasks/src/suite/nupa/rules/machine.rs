//! Executes a rule and, if wanted, writes down what every executed line does.
use std::fmt::Write as _;

use earnest_answer::python::{Argument, Prefix, PythonError, PythonNumber, PythonValue, Scope, Tree, evaluate};
use num_bigint::BigInt;
use num_traits::{Signed, ToPrimitive};

use super::program::{Action, Function, Program, Statement};

/// More executed lines than any rule needs on operands of 100 digits.
const LINE_LIMIT: usize = 1_000_000;

/// Longest text that a method fills up to.
const WIDEST: usize = 100_000;

/// Error of a rule's execution.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line} of the rule: {problem}")]
pub struct RuleError {
    line: usize,
    problem: String,
}

/// An execution.
pub(super) struct Machine<'a> {
    program: &'a Program,
    trace: Option<String>,
    lines: Vec<usize>,
    executed: usize,
    line: usize,
    /// Error within a function that an expression calls.
    failure: Option<RuleError>,
}

/// Variables of a function, in the order in which they got their first value.
type Locals<'a> = Vec<(&'a str, PythonValue)>;

impl<'a> Machine<'a> {
    /// A machine that writes a trace only if `traced`.
    pub(super) fn new(program: &'a Program, traced: bool) -> Self {
        let trace = traced.then(String::new);
        Machine { program, trace, lines: Vec::new(), executed: 0, line: 0, failure: None }
    }

    /// Runs the rule. Gives the answer, the trace and the numbers of the executed lines (both empty unless traced).
    pub(super) fn run(mut self, operands: Vec<PythonValue>) -> Result<(String, String, Vec<usize>), RuleError> {
        let Some(function) = self.program.functions.first() else { return self.problem("it has no function") };
        for (name, operand) in function.parameters.iter().zip(&operands) {
            self.write_effect(&format!("{name} = "), None, operand)?;
        }
        match self.call(function, operands)? {
            PythonValue::Text(answer) => Ok((answer, self.trace.unwrap_or_default(), self.lines)),
            _ => self.problem("the rule returned something other than a text"),
        }
    }

    fn problem<T>(&self, problem: impl Into<String>) -> Result<T, RuleError> {
        Err(RuleError { line: self.line, problem: problem.into() })
    }

    fn write(&mut self, text: std::fmt::Arguments<'_>) {
        if let Some(trace) = &mut self.trace {
            let _ = trace.write_fmt(text);
            trace.push('\n');
        }
    }

    /// Writes what a line does: what stands before its expression, the expression with values, and its value.
    fn write_effect(&mut self, before: &str, shown: Option<&str>, value: &PythonValue) -> Result<(), RuleError> {
        if self.trace.is_none() {
            return Ok(());
        }
        let value = self.literal(value)?;
        match shown.filter(|shown| **shown != value) {
            Some(shown) => self.write(format_args!("{before}{shown} = {value}")),
            None => self.write(format_args!("{before}{value}")),
        }
        Ok(())
    }

    fn literal(&self, value: &PythonValue) -> Result<String, RuleError> {
        value.literal().or_else(|error| self.problem(format!("a value that cannot be written ({error})")))
    }

    fn call(&mut self, function: &'a Function, arguments: Vec<PythonValue>) -> Result<PythonValue, RuleError> {
        if function.parameters.len() != arguments.len() {
            return self.problem(format!(
                "{} takes {} operands, not {}",
                function.name,
                function.parameters.len(),
                arguments.len()
            ));
        }
        let mut locals: Locals<'a> = function.parameters.iter().map(String::as_str).zip(arguments).collect();
        match self.block(&mut locals, &function.body)? {
            Some(value) => Ok(value),
            None => self.problem(format!("{} ended without a result", function.name)),
        }
    }

    /// Executes statements; a value means that one of them returned it.
    fn block(
        &mut self,
        locals: &mut Locals<'a>,
        statements: &'a [Statement],
    ) -> Result<Option<PythonValue>, RuleError> {
        for statement in statements {
            match &statement.action {
                Action::Assign(name, expression) => {
                    let (value, shown) = self.step(statement.line, locals, expression)?;
                    self.write_effect(&format!("{name} = "), shown.as_deref(), &value)?;
                    match locals.iter_mut().find(|(known, _)| known == name) {
                        Some((_, old)) => *old = value,
                        None => locals.push((name, value)),
                    }
                }
                Action::Return(expression) => {
                    let (value, shown) = self.step(statement.line, locals, expression)?;
                    self.write_effect("return ", shown.as_deref(), &value)?;
                    return Ok(Some(value));
                }
                Action::If(condition, body) => {
                    if self.condition("if", statement.line, locals, condition)?
                        && let Some(value) = self.block(locals, body)?
                    {
                        return Ok(Some(value));
                    }
                }
                Action::While(condition, body) => {
                    while self.condition("while", statement.line, locals, condition)? {
                        if let Some(value) = self.block(locals, body)? {
                            return Ok(Some(value));
                        }
                    }
                }
            }
        }
        Ok(None)
    }

    /// Evaluates the expression of a line; with a trace, also its text with values in the place of variables.
    fn step(
        &mut self,
        line: usize,
        locals: &Locals<'a>,
        expression: &Tree,
    ) -> Result<(PythonValue, Option<String>), RuleError> {
        self.line = line;
        self.executed += 1;
        if self.executed > LINE_LIMIT {
            return self.problem("the rule does not end");
        }
        let traced = self.trace.is_some();
        if traced {
            self.lines.push(line);
        }
        let shown = traced.then(|| written(locals, expression));
        let found = evaluate(expression, &mut Frame { machine: self, locals });
        self.line = line;
        match found {
            Ok(value) => Ok((value, shown)),
            Err(error) => match self.failure.take() {
                Some(within) => Err(within),
                None => self.problem(format!("`{}` raises {error}", written(locals, expression))),
            },
        }
    }

    fn condition(
        &mut self,
        keyword: &str,
        line: usize,
        locals: &Locals<'a>,
        expression: &Tree,
    ) -> Result<bool, RuleError> {
        let (value, shown) = self.step(line, locals, expression)?;
        let PythonValue::Bool(holds) = value else { return self.problem("the condition is neither true nor false") };
        if let Some(shown) = shown {
            self.write(format_args!("{keyword} {shown}: {}", if holds { "True" } else { "False" }));
        }
        Ok(holds)
    }
}

/// The names of a line: variables, the rule's functions, methods of texts.
struct Frame<'m, 'a> {
    machine: &'m mut Machine<'a>,
    locals: &'m Locals<'a>,
}

impl Scope for Frame<'_, '_> {
    fn value(&self, name: &str) -> Option<&PythonValue> {
        value_of(self.locals, name)
    }

    fn has_function(&self, name: &str) -> bool {
        self.machine.program.functions.iter().any(|function| function.name == name)
    }

    fn call(&mut self, name: &str, arguments: Vec<PythonValue>) -> Result<PythonValue, PythonError> {
        let program = self.machine.program;
        let function = program.functions.iter().find(|function| function.name == name).ok_or(PythonError::Name)?;
        let called = arguments.iter().map(PythonValue::literal).collect::<Result<Vec<_>, _>>()?.join(", ");
        self.machine.write(format_args!("enter {name}({called})"));
        match self.machine.call(function, arguments) {
            Ok(value) => {
                let result = value.literal()?;
                self.machine.write(format_args!("exit {name}({called}) = {result}"));
                Ok(value)
            }
            Err(failure) => {
                self.machine.failure = Some(failure);
                // Never seen: the line of the failure is named instead.
                Err(PythonError::Unsupported)
            }
        }
    }

    fn method(
        &self,
        of: &PythonValue,
        name: &str,
        arguments: &[PythonValue],
    ) -> Option<Result<PythonValue, PythonError>> {
        let PythonValue::Text(text) = of else { return None };
        Some(method(text, name, arguments))
    }
}

fn value_of<'v>(locals: &'v Locals<'_>, name: &str) -> Option<&'v PythonValue> {
    locals.iter().find(|(known, _)| *known == name).map(|(_, value)| value)
}

/// The variables of a line alone.
struct Variables<'m, 'a>(&'m Locals<'a>);

impl Scope for Variables<'_, '_> {
    fn value(&self, name: &str) -> Option<&PythonValue> {
        value_of(self.0, name)
    }
}

/// The methods of texts that rules use.
fn method(text: &str, name: &str, arguments: &[PythonValue]) -> Result<PythonValue, PythonError> {
    use PythonNumber::Int;
    use PythonValue::{List, Number, Text};
    let missing = |width: &BigInt| {
        let width = if width.is_negative() { Some(0) } else { width.to_usize() };
        let width = width.filter(|width| *width <= WIDEST).ok_or(PythonError::Limit)?;
        Ok(width.saturating_sub(text.chars().count()))
    };
    Ok(match (name, arguments) {
        ("split", [Text(separator)]) if !separator.is_empty() => {
            List(text.split(separator.as_str()).map(PythonValue::from).collect())
        }
        ("lstrip", [Text(set)]) => text.trim_start_matches(|c| set.contains(c)).into(),
        ("rstrip", [Text(set)]) => text.trim_end_matches(|c| set.contains(c)).into(),
        ("zfill", [Number(Int(width))]) => Text(format!("{}{text}", "0".repeat(missing(width)?))),
        ("ljust", [Number(Int(width)), Text(fill)]) if fill.len() == 1 => {
            Text(format!("{text}{}", fill.repeat(missing(width)?)))
        }
        ("replace", [Text(from), Text(to)]) if !from.is_empty() => Text(text.replace(from.as_str(), to)),
        _ => return Err(PythonError::Unsupported),
    })
}

/// An expression with values for variables. An element or a slice of a variable is shown as what it is, since repeating a
/// long number to point at one digit would fill the context window. What has no value is shown as it is written.
fn written(locals: &Locals<'_>, expression: &Tree) -> String {
    let show = |tree: &Tree| written(locals, tree);
    let joined = |parts: &[Tree], word: &str| parts.iter().map(show).collect::<Vec<_>>().join(word);
    match expression {
        Tree::Constant(value) => value.literal().unwrap_or_default(),
        Tree::Name(name) => value_of(locals, name).and_then(|v| v.literal().ok()).unwrap_or_else(|| name.clone()),
        Tree::Bracketed(inner) => format!("({})", show(inner)),
        Tree::Prefixed(prefixes, inner) => {
            let sign = |prefix: &Prefix| match prefix {
                Prefix::Plus => "+",
                Prefix::Minus => "-",
                Prefix::Invert => "~",
                Prefix::Not => "not ",
            };
            format!("{}{}", prefixes.iter().map(sign).collect::<String>(), show(inner))
        }
        Tree::Operated(first, others) => others
            .iter()
            .fold(show(first), |left, (operator, right)| format!("{left} {} {}", operator.sign(), show(right))),
        Tree::Compared(first, others) => others
            .iter()
            .fold(show(first), |left, (comparison, right)| format!("{left} {} {}", comparison.sign(), show(right))),
        Tree::And(parts) => joined(parts, " and "),
        Tree::Or(parts) => joined(parts, " or "),
        Tree::Item(container, index) => {
            let part = matches!(**container, Tree::Name(_)).then(|| evaluate(expression, &mut Variables(locals)));
            match part.and_then(|part| part.ok()?.literal().ok()) {
                Some(part) => part,
                None => format!("{}[{}]", show(container), show(index)),
            }
        }
        Tree::Slice(bounds) => {
            let [from, to, _] = &**bounds;
            let bound = |bound: &Option<Tree>| bound.as_ref().map(show).unwrap_or_default();
            format!("{}:{}", bound(from), bound(to))
        }
        Tree::Call(function, arguments) => {
            let function = match &**function {
                Tree::Name(name) => name.clone(),
                function => show(function),
            };
            let arguments = arguments.iter().map(|argument| match argument {
                Argument::Positional(value) | Argument::ByName(_, value) | Argument::Unpacked(value) => show(value),
            });
            format!("{function}({})", arguments.collect::<Vec<_>>().join(", "))
        }
        Tree::Attribute(object, name) => format!("{}.{name}", show(object)),
        _ => "...".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::parser::parse;
    use super::*;

    fn error(source: &str) -> String {
        let program = parse(source).unwrap();
        Machine::new(&program, false).run(vec!["12".into()]).unwrap_err().to_string()
    }

    #[test]
    fn what_a_line_may_not_do_is_an_error_of_that_line() {
        for (source, expected) in [
            ("def f(a):\n    return open(a)\n", "line 2 of the rule: `open('12')` raises Unsupported"),
            ("def f(a):\n    return a.upper()\n", "line 2 of the rule: `'12'.upper()` raises Unsupported"),
            ("def f(a):\n    return b\n", "line 2 of the rule: `b` raises NameError"),
            ("def f(a):\n    return a @ a\n", "line 2 of the rule: `'12' @ '12'` raises TypeError"),
            ("def f(a):\n    b = a[5]\n    return b\n", "line 2 of the rule: `'12'[5]` raises IndexError"),
            ("def f(a):\n    while a:\n        a = a\n", "the condition is neither true nor false"),
            ("def f(a):\n    while a != '':\n        a = a\n", "the rule does not end"),
            ("def f(a):\n    return int(a)\n", "the rule returned something other than a text"),
            (
                "def f(a):\n    return g(a)\ndef g(a):\n    return a.zfill(9**9)\n",
                "line 4 of the rule: `'12'.zfill(9 ** 9)`",
            ),
            ("def f(a):\n    return g()\ndef g(a):\n    return a\n", "line 2 of the rule: g takes 1 operands, not 0"),
        ] {
            let found = error(source);
            assert!(found.contains(expected), "{found}");
        }
    }
}
