//! Executes a rule and, if wanted, writes down what every executed line does.
use std::borrow::Cow;
use std::cmp::Ordering;
use std::fmt::Write as _;

use num_bigint::BigInt;
use num_integer::Integer as _;
use num_traits::{ToPrimitive, Zero};

use super::program::{Action, Builtin, Expression, Function, Method, Operator, Program, Statement, Value};

/// More executed lines than any rule needs on operands of 100 digits.
const LINE_LIMIT: usize = 1_000_000;

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
}

impl<'a> Machine<'a> {
    /// A machine that writes a trace only if `traced`.
    pub(super) fn new(program: &'a Program, traced: bool) -> Self {
        Machine { program, trace: traced.then(String::new), lines: Vec::new(), executed: 0, line: 0 }
    }

    /// Runs the rule. Gives the answer, the trace and the numbers of the executed lines (both empty unless traced).
    pub(super) fn run(mut self, operands: Vec<Value>) -> Result<(String, String, Vec<usize>), RuleError> {
        if let (Some(trace), Some(function)) = (&mut self.trace, self.program.functions.first()) {
            for (name, operand) in function.locals.iter().zip(&operands) {
                let _ = writeln!(trace, "{name} = {operand}");
            }
        }
        match self.call(0, operands)? {
            Value::Text(answer) => Ok((answer, self.trace.unwrap_or_default(), self.lines)),
            other => self.problem(format!("the rule returned {other} instead of a text")),
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

    fn call(&mut self, function: usize, arguments: Vec<Value>) -> Result<Value, RuleError> {
        let program = self.program;
        let Some(function) = program.functions.get(function).filter(|f| f.parameters == arguments.len()) else {
            return self.problem("a call with the wrong number of operands");
        };
        let mut frame: Vec<Option<Value>> = arguments.into_iter().map(Some).collect();
        frame.resize(function.locals.len(), None);
        match self.block(function, &mut frame, &function.body)? {
            Some(value) => Ok(value),
            None => self.problem(format!("{} ended without a result", function.name)),
        }
    }

    /// Executes statements; a value means that one of them returned it.
    fn block(
        &mut self,
        function: &Function,
        frame: &mut Vec<Option<Value>>,
        statements: &[Statement],
    ) -> Result<Option<Value>, RuleError> {
        for statement in statements {
            match &statement.action {
                Action::Assign(slot, expression) => {
                    let (value, shown) = self.step(statement.line, frame, expression)?;
                    let name = &function.locals[*slot];
                    match shown {
                        Some(shown) if shown == value.to_string() => self.write(format_args!("{name} = {value}")),
                        Some(shown) => self.write(format_args!("{name} = {shown} = {value}")),
                        None => {}
                    }
                    frame[*slot] = Some(value);
                }
                Action::Return(expression) => {
                    let (value, shown) = self.step(statement.line, frame, expression)?;
                    match shown {
                        Some(shown) if shown == value.to_string() => self.write(format_args!("return {value}")),
                        Some(shown) => self.write(format_args!("return {shown} = {value}")),
                        None => {}
                    }
                    return Ok(Some(value));
                }
                Action::If(condition, body) => {
                    if self.condition("if", statement.line, frame, condition)?
                        && let Some(value) = self.block(function, frame, body)?
                    {
                        return Ok(Some(value));
                    }
                }
                Action::While(condition, body) => {
                    while self.condition("while", statement.line, frame, condition)? {
                        if let Some(value) = self.block(function, frame, body)? {
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
        frame: &[Option<Value>],
        expression: &Expression,
    ) -> Result<(Value, Option<String>), RuleError> {
        self.line = line;
        self.executed += 1;
        if self.executed > LINE_LIMIT {
            return self.problem("the rule does not end");
        }
        let shown = if self.trace.is_some() {
            self.lines.push(line);
            let mut text = String::new();
            self.show(frame, expression, &mut text)?;
            Some(text)
        } else {
            None
        };
        let value = self.evaluate(frame, expression)?.into_owned();
        self.line = line;
        Ok((value, shown))
    }

    fn condition(
        &mut self,
        keyword: &str,
        line: usize,
        frame: &[Option<Value>],
        expression: &Expression,
    ) -> Result<bool, RuleError> {
        match self.step(line, frame, expression)? {
            (Value::Bool(value), shown) => {
                if let Some(shown) = shown {
                    self.write(format_args!("{keyword} {shown}: {}", Value::Bool(value)));
                }
                Ok(value)
            }
            (other, _) => self.problem(format!("{other} is not a condition")),
        }
    }

    /// Writes an expression with values for variables. An element or a slice of a variable is shown as what it is,
    /// since repeating a long number to point at one digit would fill the context window.
    fn show(&mut self, frame: &[Option<Value>], expression: &Expression, out: &mut String) -> Result<(), RuleError> {
        match expression {
            Expression::Constant(value) => out.push_str(&value.to_string()),
            Expression::Local(_) => out.push_str(&self.evaluate(frame, expression)?.to_string()),
            Expression::Index(sides) if matches!(sides.0, Expression::Local(_)) => {
                out.push_str(&self.evaluate(frame, expression)?.to_string());
            }
            Expression::Slice(container, ..) if matches!(**container, Expression::Local(_)) => {
                out.push_str(&self.evaluate(frame, expression)?.to_string());
            }
            Expression::Binary(operator, sides) => {
                self.show(frame, &sides.0, out)?;
                out.push(' ');
                out.push_str(operator.symbol());
                out.push(' ');
                self.show(frame, &sides.1, out)?;
            }
            Expression::Index(sides) => {
                self.show(frame, &sides.0, out)?;
                out.push('[');
                self.show(frame, &sides.1, out)?;
                out.push(']');
            }
            Expression::Slice(container, from, to) => {
                self.show(frame, container, out)?;
                out.push('[');
                if let Some(from) = from {
                    self.show(frame, from, out)?;
                }
                out.push(':');
                if let Some(to) = to {
                    self.show(frame, to, out)?;
                }
                out.push(']');
            }
            Expression::Call(function, arguments) => {
                let program = self.program;
                out.push_str(&program.functions[*function].name);
                self.show_arguments(frame, arguments, out)?;
            }
            Expression::Builtin(builtin, arguments) => {
                let name = Builtin::NAMED.into_iter().find(|(_, other)| other == builtin).map_or("", |(name, _)| name);
                out.push_str(name);
                self.show_arguments(frame, arguments, out)?;
            }
            Expression::Method(object, method, arguments) => {
                self.show(frame, object, out)?;
                let name = Method::NAMED.into_iter().find(|(_, other)| other == method).map_or("", |(name, _)| name);
                out.push('.');
                out.push_str(name);
                self.show_arguments(frame, arguments, out)?;
            }
            Expression::Parenthesised(inner) => {
                out.push('(');
                self.show(frame, inner, out)?;
                out.push(')');
            }
            Expression::Negative(inner) => {
                out.push('-');
                self.show(frame, inner, out)?;
            }
        }
        Ok(())
    }

    fn show_arguments(
        &mut self,
        frame: &[Option<Value>],
        arguments: &[Expression],
        out: &mut String,
    ) -> Result<(), RuleError> {
        out.push('(');
        for (position, argument) in arguments.iter().enumerate() {
            if position > 0 {
                out.push_str(", ");
            }
            self.show(frame, argument, out)?;
        }
        out.push(')');
        Ok(())
    }

    fn evaluate<'v>(
        &mut self,
        frame: &'v [Option<Value>],
        expression: &'v Expression,
    ) -> Result<Cow<'v, Value>, RuleError> {
        let owned = |value| Ok(Cow::Owned(value));
        match expression {
            Expression::Constant(value) => Ok(Cow::Borrowed(value)),
            Expression::Local(slot) => match &frame[*slot] {
                Some(value) => Ok(Cow::Borrowed(value)),
                None => self.problem("a variable is read before it has a value"),
            },
            Expression::Parenthesised(inner) => self.evaluate(frame, inner),
            Expression::Negative(inner) => match &*self.evaluate(frame, inner)? {
                Value::Integer(value) => owned(Value::Integer(-value)),
                other => self.problem(format!("{other} has no negative")),
            },
            Expression::Binary(operator @ (Operator::Or | Operator::And), sides) => {
                match &*self.evaluate(frame, &sides.0)? {
                    Value::Bool(left) if *left == (*operator == Operator::Or) => owned(Value::Bool(*left)),
                    Value::Bool(_) => self.evaluate(frame, &sides.1),
                    other => self.problem(format!("{other} is not a condition")),
                }
            }
            Expression::Binary(operator, sides) => {
                let left = self.evaluate(frame, &sides.0)?;
                let right = self.evaluate(frame, &sides.1)?;
                self.binary(*operator, &left, &right).map(Cow::Owned)
            }
            Expression::Index(sides) => {
                let container = self.evaluate(frame, &sides.0)?;
                let index = self.position(frame, &sides.1)?;
                let length = length_of(&container);
                let place = if index < 0 { index + length as i64 } else { index };
                let found = usize::try_from(place).ok().and_then(|place| match &*container {
                    Value::Text(text) => text.get(place..place + 1).map(String::from),
                    Value::List(items) => items.get(place).cloned(),
                    _ => None,
                });
                match found {
                    Some(text) => owned(Value::Text(text)),
                    None => self.problem(format!("{container} has no element {index}")),
                }
            }
            Expression::Slice(container, from, to) => {
                let container = self.evaluate(frame, container)?;
                let Value::Text(text) = &*container else { return self.problem("only texts are sliced") };
                let mut bound = |bound: &'v Option<Box<Expression>>, default: usize| match bound {
                    None => Ok(default),
                    Some(bound) => {
                        let bound = self.position(frame, bound)?;
                        let place = if bound < 0 { bound + text.len() as i64 } else { bound };
                        Ok(place.clamp(0, text.len() as i64) as usize)
                    }
                };
                let (from, to) = (bound(from, 0)?, bound(to, text.len())?);
                owned(Value::Text(text.get(from..to.max(from)).unwrap_or_default().into()))
            }
            Expression::Call(function, arguments) => {
                let arguments = self.values(frame, arguments)?;
                let program = self.program;
                let name = &program.functions[*function].name;
                let shown = self.trace.is_some().then(|| {
                    let arguments: Vec<String> = arguments.iter().map(Value::to_string).collect();
                    format!("{name}({})", arguments.join(", "))
                });
                if let Some(shown) = &shown {
                    self.write(format_args!("enter {shown}"));
                }
                let value = self.call(*function, arguments)?;
                if let Some(shown) = &shown {
                    self.write(format_args!("exit {shown} = {value}"));
                }
                owned(value)
            }
            Expression::Builtin(builtin, arguments) => {
                let arguments = self.values(frame, arguments)?;
                self.builtin(*builtin, &arguments).map(Cow::Owned)
            }
            Expression::Method(object, method, arguments) => {
                let object = self.evaluate(frame, object)?;
                let arguments = self.values(frame, arguments)?;
                self.method(&object, *method, &arguments).map(Cow::Owned)
            }
        }
    }

    fn values(&mut self, frame: &[Option<Value>], expressions: &[Expression]) -> Result<Vec<Value>, RuleError> {
        expressions.iter().map(|expression| Ok(self.evaluate(frame, expression)?.into_owned())).collect()
    }

    fn position(&mut self, frame: &[Option<Value>], expression: &Expression) -> Result<i64, RuleError> {
        match &*self.evaluate(frame, expression)? {
            Value::Integer(value) => match value.to_i64() {
                Some(value) => Ok(value),
                None => self.problem(format!("{value} is not a position")),
            },
            other => self.problem(format!("{other} is not a position")),
        }
    }

    fn binary(&self, operator: Operator, left: &Value, right: &Value) -> Result<Value, RuleError> {
        let ordering = match (left, right) {
            (Value::Integer(a), Value::Integer(b)) => Some(a.cmp(b)),
            (Value::Text(a), Value::Text(b)) => Some(a.cmp(b)),
            _ => None,
        };
        let compared = |test: fn(Ordering) -> bool| ordering.map(|ordering| Value::Bool(test(ordering)));
        let result = match (operator, left, right) {
            (Operator::Equal, ..) => compared(Ordering::is_eq),
            (Operator::NotEqual, ..) => compared(Ordering::is_ne),
            (Operator::Less, ..) => compared(Ordering::is_lt),
            (Operator::LessEqual, ..) => compared(Ordering::is_le),
            (Operator::Greater, ..) => compared(Ordering::is_gt),
            (Operator::GreaterEqual, ..) => compared(Ordering::is_ge),
            (Operator::Add, Value::Text(a), Value::Text(b)) => Some(Value::Text(format!("{a}{b}"))),
            (Operator::FloorDivide | Operator::Modulo, _, Value::Integer(b)) if b.is_zero() => {
                return self.problem("division by zero");
            }
            (_, Value::Integer(a), Value::Integer(b)) => match operator {
                Operator::Add => Some(Value::Integer(a + b)),
                Operator::Subtract => Some(Value::Integer(a - b)),
                Operator::Multiply => Some(Value::Integer(a * b)),
                Operator::FloorDivide => Some(Value::Integer(a.div_floor(b))),
                Operator::Modulo => Some(Value::Integer(a.mod_floor(b))),
                _ => None,
            },
            _ => None,
        };
        match result {
            Some(value) => Ok(value),
            None => self.problem(format!("{left} {} {right} is not defined", operator.symbol())),
        }
    }

    fn builtin(&self, builtin: Builtin, arguments: &[Value]) -> Result<Value, RuleError> {
        match (builtin, arguments) {
            (Builtin::Len, [value @ (Value::Text(_) | Value::List(_))]) => {
                Ok(Value::Integer(BigInt::from(length_of(value))))
            }
            (Builtin::Int, [Value::Text(text)]) => match BigInt::parse_bytes(text.as_bytes(), 10) {
                Some(value) => Ok(Value::Integer(value)),
                None => self.problem(format!("'{text}' is not an integer")),
            },
            (Builtin::Str, [Value::Integer(value)]) => Ok(Value::Text(value.to_string())),
            (Builtin::Max, [a, b]) => {
                let first = self.binary(Operator::GreaterEqual, a, b)? == Value::Bool(true);
                Ok(if first { a.clone() } else { b.clone() })
            }
            _ => self.problem("a builtin with operands it does not take"),
        }
    }

    fn method(&self, object: &Value, method: Method, arguments: &[Value]) -> Result<Value, RuleError> {
        let Value::Text(text) = object else { return self.problem(format!("{object} has no methods")) };
        let width = |value: &BigInt| value.to_usize().filter(|width| *width <= LINE_LIMIT).unwrap_or(0);
        Ok(match (method, arguments) {
            (Method::Split, [Value::Text(separator)]) if !separator.is_empty() => {
                Value::List(text.split(separator.as_str()).map(String::from).collect())
            }
            (Method::LeftStrip, [Value::Text(set)]) => Value::Text(text.trim_start_matches(|c| set.contains(c)).into()),
            (Method::RightStrip, [Value::Text(set)]) => Value::Text(text.trim_end_matches(|c| set.contains(c)).into()),
            (Method::ZeroFill, [Value::Integer(to)]) => {
                Value::Text(format!("{}{text}", "0".repeat(width(to).saturating_sub(text.len()))))
            }
            (Method::LeftJustify, [Value::Integer(to), Value::Text(fill)]) => {
                Value::Text(format!("{text}{}", fill.repeat(width(to).saturating_sub(text.len()))))
            }
            (Method::Replace, [Value::Text(from), Value::Text(to)]) if !from.is_empty() => {
                Value::Text(text.replace(from.as_str(), to))
            }
            _ => return self.problem("a method with operands it does not take"),
        })
    }
}

fn length_of(value: &Value) -> usize {
    match value {
        Value::Text(text) => text.len(),
        Value::List(items) => items.len(),
        _ => 0,
    }
}
