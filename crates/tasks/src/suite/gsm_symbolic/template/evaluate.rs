//! The value of an expression: as Python computes it, or exactly.
use std::cmp::Ordering;

use super::rational::{self, Rational};
use num_bigint::BigInt;
use num_traits::{Signed, ToPrimitive, Zero};

use super::expression::{Expression, Function};
use super::pools;
use super::value::{EvalError, Number, Value};
use earnest_answer::python::{Comparison, Operator};

/// Arithmetic of an evaluation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Precision {
    /// As Python does: `/` between whole numbers is floating point, and `int` cuts 28.999999999999996 to 28.
    Python,
    /// Without floating point: every number is a fraction, floats count as the decimals they are written as.
    Exact,
}

/// Variables and the way to compute with them.
#[derive(Debug, Clone, Copy)]
pub struct Scope<'a> {
    /// By index; none where nothing is drawn yet.
    pub variables: &'a [Option<Value>],
    pub precision: Precision,
}

fn wrong(what: impl Into<String>) -> EvalError {
    EvalError::Type(what.into())
}

impl Scope<'_> {
    /// Evaluates.
    ///
    /// # Errors
    /// Divisions by zero, values of the wrong kind, numbers that outgrow all bounds.
    pub fn value(&self, expression: &Expression) -> Result<Value, EvalError> {
        match expression {
            Expression::Literal(value) => Ok(self.seen(value)),
            Expression::Variable(index) => match self.variables.get(*index) {
                Some(Some(value)) => Ok(self.seen(value)),
                _ => Err(wrong("a variable has no value yet")),
            },
            Expression::Negate(inner) => {
                let zero = Number::Int(BigInt::ZERO);
                Ok(match self.value(inner)?.number()? {
                    // 0 - 0.0 would lose the sign that Python prints.
                    Number::Float(value) => Value::Float(-value),
                    number => zero.apply(Operator::Subtract, number, self.exact())?.into(),
                })
            }
            Expression::Not(inner) => Ok(Value::Bool(!self.truth(inner)?)),
            Expression::Binary(operator, left, right) => {
                self.binary(*operator, &self.value(left)?, &self.value(right)?)
            }
            Expression::Compare(first, chain) => {
                let mut left = self.value(first)?;
                for (comparison, right) in chain {
                    let right = self.value(right)?;
                    if !compare(&left, *comparison, &right)? {
                        return Ok(Value::Bool(false));
                    }
                    left = right;
                }
                Ok(Value::Bool(true))
            }
            Expression::And(left, right) => {
                let left = self.value(left)?;
                if left.truth()? { self.value(right) } else { Ok(left) }
            }
            Expression::Or(left, right) => {
                let left = self.value(left)?;
                if left.truth()? { Ok(left) } else { self.value(right) }
            }
            Expression::Conditional { condition, then, otherwise } => {
                self.value(if self.truth(condition)? { then } else { otherwise })
            }
            Expression::Call(function, arguments) => {
                let arguments = arguments.iter().map(|argument| self.value(argument)).collect::<Result<Vec<_>, _>>()?;
                self.call(*function, &arguments)
            }
            Expression::Index(inner, index) => self.index(&self.value(inner)?, &self.value(index)?),
            Expression::Slice(inner, from, to) => {
                let Value::List(items) = self.value(inner)? else { return Err(wrong("only lists can be cut")) };
                let bound = |bound: &Option<Box<Expression>>, open: usize| match bound {
                    None => Ok(open),
                    Some(bound) => Ok(index_or_count(&self.value(bound)?, items.len())?.min(items.len())),
                };
                let (from, to) = (bound(from, 0)?, bound(to, items.len())?);
                Ok(Value::List(items.get(from..to.max(from)).unwrap_or_default().to_vec()))
            }
            Expression::List(items) => {
                Ok(Value::List(items.iter().map(|item| self.value(item)).collect::<Result<_, _>>()?))
            }
            Expression::Pair(text, value) => {
                Ok(Value::Item(self.value(text)?.shown().into(), Box::new(self.value(value)?)))
            }
        }
    }

    /// Evaluates a condition.
    ///
    /// # Errors
    /// As [`Scope::value`].
    pub fn truth(&self, expression: &Expression) -> Result<bool, EvalError> {
        self.value(expression)?.truth()
    }

    fn exact(&self) -> bool {
        self.precision == Precision::Exact
    }

    /// A literal or a drawn value, as this precision sees it.
    fn seen(&self, value: &Value) -> Value {
        match value {
            Value::Float(_) if self.exact() => value.exact().map_or_else(|| value.clone(), Value::Ratio),
            Value::Item(text, inner) if self.exact() => Value::Item(text.clone(), Box::new(self.seen(inner))),
            Value::List(items) if self.exact() => Value::List(items.iter().map(|item| self.seen(item)).collect()),
            value => value.clone(),
        }
    }

    fn binary(&self, operator: Operator, left: &Value, right: &Value) -> Result<Value, EvalError> {
        match (left.bare(), operator, right.bare()) {
            (Value::Text(a), Operator::Add, Value::Text(b)) => Ok(Value::text(&format!("{a}{b}"))),
            (Value::List(a), Operator::Add, Value::List(b)) => {
                pools::limited(a.iter().chain(b).cloned().collect()).map(Value::List)
            }
            (Value::List(items), Operator::Multiply, times) | (times, Operator::Multiply, Value::List(items)) => {
                let times = index_or_count(times, usize::MAX)?;
                if items.len().saturating_mul(times) > pools::MOST {
                    return Err(EvalError::TooLarge);
                }
                Ok(Value::List(items.iter().cloned().cycle().take(items.len() * times).collect()))
            }
            (left, _, right) => Ok(left.number()?.apply(operator, right.number()?, self.exact())?.into()),
        }
    }

    /// `list[i]`; the parts of an item: its text and its value; the letters of a text.
    fn index(&self, inner: &Value, index: &Value) -> Result<Value, EvalError> {
        let outside = || wrong("an index is outside");
        match inner {
            Value::Item(text, value) => match index_or_count(index, 2)? {
                0 => Ok(Value::Text(text.clone())),
                1 => Ok((**value).clone()),
                _ => Err(outside()),
            },
            Value::List(items) => items.get(index_or_count(index, items.len())?).cloned().ok_or_else(outside),
            Value::Text(text) => {
                let letter = text.chars().nth(index_or_count(index, text.chars().count())?).ok_or_else(outside)?;
                Ok(Value::text(&letter.to_string()))
            }
            other => Err(wrong(format!("{} has no parts", other.kind()))),
        }
    }

    fn call(&self, function: Function, arguments: &[Value]) -> Result<Value, EvalError> {
        let number = |index: usize| arguments.get(index).ok_or_else(|| wrong("an argument is missing"))?.number();
        let counts = |least: usize, most: usize| {
            if (least..=most).contains(&arguments.len()) {
                return Ok(());
            }
            Err(wrong(format!("{function:?} takes {least} to {most} values, not {}", arguments.len())))
        };
        match function {
            Function::Int => {
                counts(1, 1)?;
                Ok(Value::Int(number(0)?.truncate()?))
            }
            Function::Float => {
                counts(1, 1)?;
                Ok(if self.exact() { number(0)?.into() } else { Value::Float(number(0)?.float()?) })
            }
            Function::Abs => {
                counts(1, 1)?;
                Ok(match number(0)? {
                    Number::Int(value) => Value::Int(value.abs()),
                    Number::Float(value) => Value::Float(value.abs()),
                    Number::Ratio(value) => Value::Ratio(value.abs()),
                })
            }
            Function::Min | Function::Max => {
                counts(2, usize::MAX)?;
                let wanted = if function == Function::Min { Ordering::Less } else { Ordering::Greater };
                let mut best = number(0)?;
                for value in &arguments[1..] {
                    let value = value.number()?;
                    if value.compare(&best) == Some(wanted) {
                        best = value;
                    }
                }
                Ok(best.into())
            }
            Function::Round => {
                counts(1, 2)?;
                let places = match arguments.get(1) {
                    Some(places) => {
                        Some(u32::try_from(index_or_count(places, usize::MAX)?).map_err(|_| EvalError::TooLarge)?)
                    }
                    None => None,
                };
                Ok(number(0)?.round(places)?.into())
            }
            Function::Fraction => {
                counts(1, 2)?;
                let rational = |index: usize| match number(index)? {
                    Number::Int(value) => Ok(Rational::from(value)),
                    Number::Ratio(value) => Ok(value),
                    Number::Float(value) if arguments.len() == 1 => {
                        rational::from_float(value).ok_or_else(|| wrong("Fraction of no finite number"))
                    }
                    Number::Float(_) => Err(wrong("Fraction takes no floats")),
                };
                let numerator = rational(0)?;
                let denominator = if arguments.len() == 2 { rational(1)? } else { Rational::from(BigInt::from(1)) };
                if denominator.is_zero() {
                    return Err(EvalError::DivisionByZero);
                }
                Ok(Value::Ratio(numerator / denominator))
            }
            Function::IsInt => {
                counts(1, 1)?;
                Ok(Value::Bool(number(0)?.is_whole()))
            }
            Function::Divides => {
                counts(2, 2)?;
                let rest = number(0)?.apply(Operator::Modulo, number(1)?, self.exact())?;
                Ok(Value::Bool(rest.compare(&Number::Int(BigInt::ZERO)) == Some(Ordering::Equal)))
            }
            Function::FormatFrac => {
                counts(1, 1)?;
                let value =
                    arguments.first().and_then(Value::exact).ok_or_else(|| wrong("format_frac of no number"))?;
                Ok(Value::text(&mixed(&value)))
            }
            Function::Sample | Function::SampleSequential => {
                Err(wrong("sample can only stand at the beginning of a definition"))
            }
            pool => {
                counts(1, 3)?;
                pools::pool(pool, arguments).map(Value::List)
            }
        }
    }
}

/// A mixed number: `3 1/2`, `1/2`, `3`.
fn mixed(value: &Rational) -> String {
    let (whole, rest) = (value.to_integer(), value.fract());
    match (whole.is_zero(), rest.is_zero()) {
        (_, true) => whole.to_string(),
        (true, false) => rest.to_string(),
        (false, false) => format!("{whole} {}", rest.abs()),
    }
}

/// A value as an index or a count; negative ones count from the end of `length` things.
fn index_or_count(value: &Value, length: usize) -> Result<usize, EvalError> {
    let outside = || wrong("an index or a count is no sensible whole number");
    let Number::Int(value) = value.number()? else { return Err(outside()) };
    if !value.is_negative() {
        return value.to_usize().ok_or_else(outside);
    }
    if length == usize::MAX {
        return Err(outside());
    }
    (BigInt::from(length) + value).to_usize().ok_or_else(outside)
}

fn compare(left: &Value, comparison: Comparison, right: &Value) -> Result<bool, EvalError> {
    let order = match (left.bare(), right.bare()) {
        (Value::Text(a), Value::Text(b)) => Some(a.cmp(b)),
        (Value::Text(_), _) | (_, Value::Text(_)) => match comparison {
            Comparison::Equal => return Ok(false),
            Comparison::NotEqual => return Ok(true),
            _ => return Err(wrong(format!("{} and {} have no order", left.kind(), right.kind()))),
        },
        (a, b) => a.number()?.compare(&b.number()?),
    };
    Ok(match comparison {
        Comparison::Less => order == Some(Ordering::Less),
        Comparison::LessOrEqual => matches!(order, Some(Ordering::Less | Ordering::Equal)),
        Comparison::Greater => order == Some(Ordering::Greater),
        Comparison::GreaterOrEqual => matches!(order, Some(Ordering::Greater | Ordering::Equal)),
        Comparison::Equal => order == Some(Ordering::Equal),
        Comparison::NotEqual => order != Some(Ordering::Equal),
        other => return Err(wrong(format!("{other:?} is not a comparison of templates"))),
    })
}

#[cfg(test)]
mod tests {
    use super::super::expression::parse;
    use super::super::fault::TemplateFault;
    use super::*;

    fn eval(text: &str, precision: Precision) -> Result<String, TemplateFault> {
        let x = |name: &str| (name == "x").then_some(Expression::Variable(0));
        let expression = parse(text, &x)?;
        let item = Value::Item("two thirds".into(), Box::new(Value::ratio(2, 3)));
        let scope = Scope { variables: &[Some(item)], precision };
        Ok(scope.value(&expression)?.to_string())
    }

    fn python(text: &str) -> String {
        eval(text, Precision::Python).unwrap_or_else(|error| format!("error: {error}"))
    }

    #[test]
    fn arithmetic_is_pythons() {
        // Each right side is what CPython 3.11 prints.
        for (text, value) in [
            ("7 / 2", "3.5"),
            ("6 / 2", "3.0"),
            ("-7 // 2", "-4"),
            ("-7 % 3", "2"),
            ("7 % -3", "-2"),
            ("-7.5 // 2", "-4.0"),
            ("-7.5 % 2", "0.5"),
            ("1 // 0.1", "9.0"),
            ("2 ** 10", "1024"),
            ("2 ** -1", "0.5"),
            ("-2 ** 2", "-4"),
            ("2 ** 3 ** 2", "512"),
            ("int(0.29 * 100)", "28"),
            ("int(-3.9)", "-3"),
            ("round(2.5)", "2"),
            ("round(3.5)", "4"),
            ("round(-2.5)", "-2"),
            ("round(2.675, 2)", "2.67"),
            ("round(0.125, 2)", "0.12"),
            ("round(7, 2)", "7"),
            ("Fraction(6, 4)", "3/2"),
            ("Fraction(6, 3)", "2"),
            ("Fraction(1, 3) * 3", "1"),
            ("Fraction(1, 3) + 0.5", "0.8333333333333333"),
            ("Fraction(7, 2) // 1", "3"),
            ("Fraction(-7, 2) % 2", "1/2"),
            ("Fraction(1, 2) < 0.5", "False"),
            ("Fraction(1, 2) == 0.5", "True"),
            ("Fraction(1, 10) == 0.1", "False"),
            ("1 < 2 < 3", "True"),
            ("1 < 3 < 2", "False"),
            ("not 1 == 2 and 3", "3"),
            ("0 or 5", "5"),
            ("4 if 1 > 2 else 5 if 0 else 6", "6"),
            ("is_int(0.1 + 0.2 + 0.7)", "True"),
            ("is_int(0.5)", "False"),
            ("divides(12, 4)", "True"),
            ("divides(12, 5)", "False"),
            ("divides(6.25, 0.25)", "True"),
            ("'week' == \"week\"", "True"),
            ("'a' == 1", "False"),
            ("[1, 2, 3][:2]", "[1, 2]"),
            ("([1] + [2]) * 2", "[1, 2, 1, 2]"),
            ("{2 + 3}", "5"),
            ("x", "2/3"),
            ("x[1] * 3", "2"),
            ("x[0][0]", "t"),
            ("1 - x", "1/3"),
            ("10 * x", "20/3"),
            ("int(10 * x)", "6"),
            ("format_frac(Fraction(7, 2))", "3 1/2"),
            ("100000000000000000000 // 3", "33333333333333333333"),
            ("1e16 + 1", "1e+16"),
            ("True + 1", "2"),
            ("min(3, 2.5) + max(1, 2)", "4.5"),
        ] {
            assert_eq!(python(text), value, "{text}");
        }
    }

    #[test]
    fn exact_arithmetic_has_no_rounding() {
        for (text, value) in [
            ("int(0.29 * 100)", "29"),
            ("7 / 2", "7/2"),
            ("0.1 + 0.2", "3/10"),
            ("1 // 0.1", "10"),
            ("round(2.675, 2)", "67/25"),
            ("2 ** -1", "1/2"),
            ("1.1 * 1.1", "121/100"),
        ] {
            assert_eq!(eval(text, Precision::Exact).unwrap(), value, "{text}");
        }
    }

    #[test]
    fn mistakes_are_errors_not_panics() {
        for text in [
            "1 / 0",
            "1 % 0.0",
            "0 ** -1",
            "Fraction(1, 0)",
            "10 ** 100000",
            "9 ** 9 ** 9",
            "2 ** (2 ** 20)",
            "int('a')",
            "'a' + 1",
            "'a' < 1",
            "[1][5]",
            "[1][-2]",
            "x[2]",
            "range(10 ** 9)",
            "[1] * 10 ** 9",
            "1 +",
            "(1, 2, 3)",
            "foo(1)",
            "y",
            "1 2",
            "f(x",
            "1 if 2",
            "sample([1])",
            "int()",
            "round(1, -1)",
            "1e400 // 1e-400",
        ] {
            assert!(eval(text, Precision::Python).is_err(), "{text} is {}", python(text));
        }
        let deep = format!("{}1{}", "(".repeat(500), ")".repeat(500));
        assert!(eval(&deep, Precision::Python).is_err());
        assert!(eval(&"1+".repeat(100_000), Precision::Python).is_err());
        assert!(eval(&"-".repeat(1_000_000), Precision::Python).is_err());
    }
}
