//! The operators between values.
use num_bigint::BigInt;
use num_traits::ToPrimitive;

use super::arithmetic::calculate;
use super::budget::Budget;
use super::error::PythonError;
use super::number::PythonNumber;
use super::sequence::{contains, elements_in_any_order, equal, hashable, order};
use super::tree::{Comparison, Operator, Prefix};
use super::value::PythonValue;

/// `left operator right`.
pub(super) fn operate(
    operator: Operator,
    left: &PythonValue,
    right: &PythonValue,
    budget: &mut Budget,
) -> Result<PythonValue, PythonError> {
    use PythonValue::{Bool, Dictionary, List, Set, Text, Tuple};
    if let (Bool(a), Bool(b)) = (left, right) {
        match operator {
            Operator::BitAnd => return Ok(Bool(a & b)),
            Operator::BitOr => return Ok(Bool(a | b)),
            Operator::BitXor => return Ok(Bool(a ^ b)),
            _ => {}
        }
    }
    if let (Some(left), Some(right)) = (left.number(), right.number()) {
        let found = PythonValue::Number(calculate(operator, &left, &right)?);
        budget.spend(found.size())?;
        return Ok(found);
    }
    match (operator, left, right) {
        (Operator::Add, List(a), List(b)) => joined(a, b, budget).map(List),
        (Operator::Add, Tuple(a), Tuple(b)) => joined(a, b, budget).map(Tuple),
        (Operator::Add, Text(a), Text(b)) => {
            budget.spend((a.len() + b.len()) as u64)?;
            Ok(Text(format!("{a}{b}")))
        }
        (Operator::Multiply, List(_) | Tuple(_) | Text(_), times) => repeated(left, &times.integer()?, budget),
        (Operator::Multiply, times, List(_) | Tuple(_) | Text(_)) => repeated(right, &times.integer()?, budget),
        // `%` fills a text in.
        (Operator::Modulo, Text(_), _) => Err(PythonError::Unsupported),
        (Operator::Subtract | Operator::BitAnd | Operator::BitOr | Operator::BitXor, Set(a), Set(b)) => {
            budget.spend((a.len() * b.len()) as u64)?;
            Ok(Set(of_sets(operator, a, b)))
        }
        (Operator::BitOr, Dictionary(_), Dictionary(_)) => Err(PythonError::Unsupported),
        // A union of types.
        (Operator::BitOr, PythonValue::Builtin(_), _) | (Operator::BitOr, _, PythonValue::Builtin(_)) => {
            Err(PythonError::Unsupported)
        }
        _ => Err(PythonError::Type),
    }
}

fn joined(a: &[PythonValue], b: &[PythonValue], budget: &mut Budget) -> Result<Vec<PythonValue>, PythonError> {
    budget.spend(a.iter().chain(b).map(PythonValue::size).sum())?;
    Ok(a.iter().chain(b).cloned().collect())
}

fn repeated(value: &PythonValue, times: &BigInt, budget: &mut Budget) -> Result<PythonValue, PythonError> {
    let times = u64::try_from(times.to_i64().ok_or(PythonError::Overflow)?).unwrap_or(0);
    // An empty value repeated is empty however often.
    if !value.is_true() {
        return Ok(value.clone());
    }
    let size = if let PythonValue::Text(text) = value { text.len() as u64 } else { value.size() };
    budget.spend(size.saturating_mul(times))?;
    let times = usize::try_from(times).map_err(|_| PythonError::Limit)?;
    let parts = |parts: &[PythonValue]| std::iter::repeat_n(parts, times).flatten().cloned().collect();
    Ok(match value {
        PythonValue::List(inner) => PythonValue::List(parts(inner)),
        PythonValue::Tuple(inner) => PythonValue::Tuple(parts(inner)),
        PythonValue::Text(text) => PythonValue::Text(text.repeat(times)),
        other => other.clone(),
    })
}

fn of_sets(operator: Operator, a: &[PythonValue], b: &[PythonValue]) -> Vec<PythonValue> {
    let of = |parts: &[PythonValue], others: &[PythonValue], shared: bool| -> Vec<PythonValue> {
        parts.iter().filter(|part| others.iter().any(|other| equal(part, other)) == shared).cloned().collect()
    };
    match operator {
        Operator::Subtract => of(a, b, false),
        Operator::BitAnd => of(a, b, true),
        Operator::BitXor => [of(a, b, false), of(b, a, false)].concat(),
        _ => [a.to_vec(), of(b, a, false)].concat(),
    }
}

/// `prefix value`.
pub(super) fn prefixed(prefix: Prefix, value: &PythonValue) -> Result<PythonValue, PythonError> {
    if prefix == Prefix::Not {
        return Ok(PythonValue::Bool(!value.is_true()));
    }
    let number = value.number().ok_or(PythonError::Type)?;
    Ok(PythonValue::Number(match (prefix, number) {
        (Prefix::Minus, PythonNumber::Int(value)) => PythonNumber::Int(-value),
        (Prefix::Minus, PythonNumber::Float(value)) => PythonNumber::Float(-value),
        (Prefix::Minus, PythonNumber::Complex(real, imaginary)) => PythonNumber::Complex(-real, -imaginary),
        (Prefix::Invert, PythonNumber::Int(value)) => PythonNumber::Int(!value),
        (Prefix::Invert, _) => return Err(PythonError::Type),
        (_, number) => number,
    }))
}

/// `left comparison right`.
pub(super) fn compared(
    comparison: Comparison,
    left: &PythonValue,
    right: &PythonValue,
    budget: &mut Budget,
) -> Result<bool, PythonError> {
    budget.spend(left.size().min(right.size()))?;
    Ok(match comparison {
        Comparison::Equal => equal(left, right),
        Comparison::NotEqual => !equal(left, right),
        Comparison::Less => order(left, right)?.is_some_and(std::cmp::Ordering::is_lt),
        Comparison::LessOrEqual => order(left, right)?.is_some_and(std::cmp::Ordering::is_le),
        Comparison::Greater => order(left, right)?.is_some_and(std::cmp::Ordering::is_gt),
        Comparison::GreaterOrEqual => order(left, right)?.is_some_and(std::cmp::Ordering::is_ge),
        Comparison::In => is_in(left, right, budget)?,
        Comparison::NotIn => !is_in(left, right, budget)?,
        Comparison::Is => same(left, right)?,
        Comparison::IsNot => !same(left, right)?,
    })
}

fn is_in(value: &PythonValue, container: &PythonValue, budget: &mut Budget) -> Result<bool, PythonError> {
    match (value, container) {
        (PythonValue::Text(part), PythonValue::Text(text)) => Ok(text.contains(part.as_str())),
        (_, PythonValue::Text(_)) => Err(PythonError::Type),
        // A set is looked for as a frozen one, which no set here has.
        (PythonValue::Set(_), PythonValue::Set(_)) => Ok(false),
        (_, PythonValue::Set(parts)) => {
            hashable(value)?;
            contains(parts, value, budget)
        }
        (_, PythonValue::Dictionary(_)) => {
            hashable(value)?;
            contains(&elements_in_any_order(container.clone(), budget)?, value, budget)
        }
        _ => contains(&elements_in_any_order(container.clone(), budget)?, value, budget),
    }
}

/// `left is right`, where it does not depend on how CPython stores values.
fn same(left: &PythonValue, right: &PythonValue) -> Result<bool, PythonError> {
    use PythonValue::{Bool, Builtin, Ellipsis, None, Number};
    match (left, right) {
        (None | Ellipsis | Bool(_) | Builtin(_), _) | (_, None | Ellipsis | Bool(_) | Builtin(_)) => Ok(left == right),
        // Small integers exist once.
        (Number(PythonNumber::Int(a)), Number(PythonNumber::Int(b))) => {
            let small = (-5..=256).any(|small| *a == BigInt::from(small));
            if small || a != b { Ok(a == b) } else { Err(PythonError::Unsupported) }
        }
        (Number(a), Number(b)) if std::mem::discriminant(a) != std::mem::discriminant(b) => Ok(false),
        _ if std::mem::discriminant(left) != std::mem::discriminant(right) || !equal(left, right) => Ok(false),
        _ => Err(PythonError::Unsupported),
    }
}
