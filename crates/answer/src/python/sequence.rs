//! Values that have elements.
use std::cmp::Ordering;

use num_bigint::BigInt;
use num_traits::{Signed, ToPrimitive};

use super::budget::Budget;
use super::error::PythonError;
use super::number::PythonNumber;
use super::value::{PythonValue, offset};

/// The elements in the order of an iteration. CPython's order of a set comes from hashes and is not followed.
pub(super) fn elements(value: PythonValue, budget: &mut Budget) -> Result<Vec<PythonValue>, PythonError> {
    match value {
        PythonValue::Set(parts) if parts.len() > 1 => {
            budget.spend(parts.len() as u64)?;
            Err(PythonError::Unsupported)
        }
        other => elements_in_any_order(other, budget),
    }
}

/// The elements, for what does not depend on their order.
pub(super) fn elements_in_any_order(value: PythonValue, budget: &mut Budget) -> Result<Vec<PythonValue>, PythonError> {
    match value {
        PythonValue::List(parts)
        | PythonValue::Tuple(parts)
        | PythonValue::Set(parts)
        | PythonValue::Iterator(parts) => {
            budget.spend(parts.len() as u64)?;
            Ok(parts)
        }
        PythonValue::Text(text) => {
            budget.spend(text.len() as u64)?;
            Ok(text.chars().map(|character| PythonValue::Text(character.to_string())).collect())
        }
        PythonValue::Dictionary(pairs) => {
            budget.spend(pairs.len() as u64)?;
            Ok(pairs.into_iter().map(|(key, _)| key).collect())
        }
        PythonValue::Range(range) => {
            let length = range.length().to_u64().ok_or(PythonError::Limit)?;
            budget.spend(length)?;
            Ok((0..length).map(|at| PythonValue::from(&range.start + &range.step * at)).collect())
        }
        _ => Err(PythonError::Type),
    }
}

/// `len(value)`.
pub(super) fn length(value: &PythonValue) -> Result<BigInt, PythonError> {
    Ok(match value {
        PythonValue::List(parts) | PythonValue::Tuple(parts) | PythonValue::Set(parts) => parts.len().into(),
        PythonValue::Text(text) => text.chars().count().into(),
        PythonValue::Dictionary(pairs) => pairs.len().into(),
        PythonValue::Range(range) => {
            let length = range.length();
            if length > BigInt::from(i64::MAX) {
                return Err(PythonError::Overflow);
            }
            length
        }
        _ => return Err(PythonError::Type),
    })
}

/// Checks that a value may stand in a set or be a key.
pub(super) fn hashable(value: &PythonValue) -> Result<(), PythonError> {
    match value {
        PythonValue::List(_) | PythonValue::Set(_) | PythonValue::Dictionary(_) => Err(PythonError::Type),
        PythonValue::Tuple(parts) => parts.iter().try_for_each(hashable),
        _ => Ok(()),
    }
}

/// The set of some elements.
pub(super) fn set(parts: Vec<PythonValue>, budget: &mut Budget) -> Result<PythonValue, PythonError> {
    let mut different: Vec<PythonValue> = Vec::new();
    for part in parts {
        hashable(&part)?;
        if !contains(&different, &part, budget)? {
            different.push(part);
        }
    }
    Ok(PythonValue::Set(different))
}

/// The dictionary of some pairs; of equal keys the first one stays, with the last value.
pub(super) fn dictionary(
    pairs: Vec<(PythonValue, PythonValue)>,
    budget: &mut Budget,
) -> Result<PythonValue, PythonError> {
    let mut different: Vec<(PythonValue, PythonValue)> = Vec::new();
    for (key, value) in pairs {
        hashable(&key)?;
        budget.spend(different.len() as u64)?;
        match different.iter_mut().find(|(other, _)| equal(other, &key)) {
            Some((_, old)) => *old = value,
            None => different.push((key, value)),
        }
    }
    Ok(PythonValue::Dictionary(different))
}

/// True if one of the values is equal to another.
pub(super) fn contains(parts: &[PythonValue], value: &PythonValue, budget: &mut Budget) -> Result<bool, PythonError> {
    budget.spend(parts.len() as u64)?;
    Ok(parts.iter().any(|part| equal(part, value)))
}

/// `left == right`.
pub(super) fn equal(left: &PythonValue, right: &PythonValue) -> bool {
    use PythonValue::{Dictionary, List, Range, Set, Tuple};
    if let (Some(left), Some(right)) = (left.number(), right.number()) {
        return left.equals(&right);
    }
    match (left, right) {
        (List(a), List(b)) | (Tuple(a), Tuple(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| equal(a, b)),
        (Set(a), Set(b)) => a.len() == b.len() && a.iter().all(|part| b.iter().any(|other| equal(part, other))),
        (Dictionary(a), Dictionary(b)) => {
            let has = |(key, value): &(PythonValue, PythonValue)| {
                b.iter().any(|(other, held)| equal(key, other) && equal(value, held))
            };
            a.len() == b.len() && a.iter().all(has)
        }
        (Range(a), Range(b)) => {
            let length = a.length();
            let empty = length < 1.into();
            length == b.length() && (empty || a.start == b.start && (length == 1.into() || a.step == b.step))
        }
        (PythonValue::Iterator(_), PythonValue::Iterator(_)) => false,
        _ => left == right,
    }
}

/// The order of two values, or none where they have one but are not ordered (`nan`).
pub(super) fn order(left: &PythonValue, right: &PythonValue) -> Result<Option<Ordering>, PythonError> {
    if let (Some(left), Some(right)) = (left.number(), right.number()) {
        if matches!(left, PythonNumber::Complex(..)) || matches!(right, PythonNumber::Complex(..)) {
            return Err(PythonError::Type);
        }
        return Ok(left.order(&right));
    }
    match (left, right) {
        (PythonValue::Text(a), PythonValue::Text(b)) => Ok(Some(a.cmp(b))),
        (PythonValue::List(a), PythonValue::List(b)) | (PythonValue::Tuple(a), PythonValue::Tuple(b)) => {
            match a.iter().zip(b).find(|(a, b)| !equal(a, b)) {
                Some((a, b)) => order(a, b),
                None => Ok(Some(a.len().cmp(&b.len()))),
            }
        }
        (PythonValue::Set(_), PythonValue::Set(_)) => Err(PythonError::Unsupported),
        _ => Err(PythonError::Type),
    }
}

/// True if the first value is less than the second.
pub(super) fn less(left: &PythonValue, right: &PythonValue) -> Result<bool, PythonError> {
    Ok(order(left, right)? == Some(Ordering::Less))
}

/// `sorted(values)`: stable, by the values beside them.
pub(super) fn sorted(
    keyed: Vec<(PythonValue, PythonValue)>,
    reverse: bool,
    budget: &mut Budget,
) -> Result<Vec<PythonValue>, PythonError> {
    budget.spend(keyed.len() as u64 * 4)?;
    let keyed: Vec<_> = if reverse { keyed.into_iter().rev().collect() } else { keyed };
    let mut failure = None;
    let mut indices: Vec<usize> = (0..keyed.len()).collect();
    indices.sort_by(|a, b| {
        order(&keyed[*a].0, &keyed[*b].0)
            .unwrap_or_else(|error| {
                failure = Some(error);
                None
            })
            .unwrap_or(Ordering::Equal)
    });
    if let Some(error) = failure {
        return Err(error);
    }
    // CPython's order of what has none (`nan`) is that of its merges.
    if keyed.iter().any(|(key, _)| order(key, key) == Ok(None)) {
        return Err(PythonError::Unsupported);
    }
    if reverse {
        indices.reverse();
    }
    Ok(indices.into_iter().map(|index| keyed[index].1.clone()).collect())
}

/// `value[index]`.
pub(super) fn item(value: &PythonValue, index: &PythonValue) -> Result<PythonValue, PythonError> {
    match value {
        PythonValue::List(parts) | PythonValue::Tuple(parts) => {
            offset(&index.integer()?, parts.len()).map(|at| parts[at].clone()).ok_or(PythonError::Index)
        }
        PythonValue::Text(text) if text.is_ascii() => {
            let at = offset(&index.integer()?, text.len()).ok_or(PythonError::Index)?;
            Ok(PythonValue::Text(text[at..=at].to_owned()))
        }
        PythonValue::Text(text) => {
            let at = offset(&index.integer()?, text.chars().count()).ok_or(PythonError::Index)?;
            text.chars().nth(at).map(|character| PythonValue::Text(character.to_string())).ok_or(PythonError::Index)
        }
        PythonValue::Dictionary(pairs) => {
            hashable(index)?;
            pairs.iter().find(|(key, _)| equal(key, index)).map(|(_, value)| value.clone()).ok_or(PythonError::Key)
        }
        PythonValue::Range(range) => {
            let (index, length) = (index.integer()?, range.length());
            let at = if index.is_negative() { &index + &length } else { index };
            let inside = !at.is_negative() && at < length;
            if inside { Ok((&range.start + &range.step * at).into()) } else { Err(PythonError::Index) }
        }
        // `list[int]` names a type.
        PythonValue::Builtin("list" | "tuple" | "set" | "frozenset" | "dict" | "type" | "enumerate") => {
            Err(PythonError::Unsupported)
        }
        _ => Err(PythonError::Type),
    }
}

/// `value[start:stop:step]`.
pub(super) fn slice(value: &PythonValue, bounds: [Option<BigInt>; 3]) -> Result<PythonValue, PythonError> {
    let [start, stop, step] = bounds;
    let step = step.unwrap_or_else(|| 1.into());
    if step == 0.into() {
        let sliced = matches!(value, PythonValue::List(_) | PythonValue::Tuple(_) | PythonValue::Text(_));
        return Err(if sliced { PythonError::Value } else { PythonError::Type });
    }
    let ends = |length: usize| -> (BigInt, BigInt) {
        let length = BigInt::from(length);
        let back = step.is_negative();
        let (lowest, highest) = if back { (BigInt::from(-1), &length - 1) } else { (BigInt::from(0), length.clone()) };
        let clamped = |bound: Option<BigInt>, default: &BigInt| match bound {
            None => default.clone(),
            Some(bound) if bound.is_negative() => (bound + &length).max(lowest.clone()),
            Some(bound) => bound.min(highest.clone()),
        };
        let (first, last) = if back { (&highest, &lowest) } else { (&lowest, &highest) };
        (clamped(start.clone(), first), clamped(stop.clone(), last))
    };
    let indices = |length: usize| -> Vec<usize> {
        let (mut at, stop) = ends(length);
        let mut found = Vec::new();
        while if step.is_negative() { at > stop } else { at < stop } {
            found.extend(at.to_usize());
            at += &step;
        }
        found
    };
    let picked = |parts: &[PythonValue]| indices(parts.len()).into_iter().map(|at| parts[at].clone()).collect();
    match value {
        PythonValue::List(parts) => Ok(PythonValue::List(picked(parts))),
        PythonValue::Tuple(parts) => Ok(PythonValue::Tuple(picked(parts))),
        PythonValue::Text(text) if text.is_ascii() && step == 1.into() => {
            let (start, stop) = ends(text.len());
            let range = start.to_usize().zip(stop.to_usize()).map(|(start, stop)| start..stop);
            Ok(range.and_then(|range| text.get(range)).unwrap_or_default().into())
        }
        PythonValue::Text(text) => {
            let characters: Vec<char> = text.chars().collect();
            Ok(PythonValue::Text(indices(characters.len()).into_iter().map(|at| characters[at]).collect()))
        }
        PythonValue::Range(_) => Err(PythonError::Unsupported),
        _ => Err(PythonError::Type),
    }
}
