//! Collections to draw from.
use num_bigint::BigInt;
use num_traits::{Signed, ToPrimitive, Zero};

use super::expression::Function;
use super::value::{EvalError, Number, Value};
use earnest_answer::number::words::bare_words;

/// Most things a collection can hold.
pub(super) const MOST: usize = 1_000_000;

fn wrong(what: impl Into<String>) -> EvalError {
    EvalError::Type(what.into())
}

pub(super) fn limited(items: Vec<Value>) -> Result<Vec<Value>, EvalError> {
    if items.len() > MOST { Err(EvalError::TooLarge) } else { Ok(items) }
}

/// The collection that a function makes.
pub(super) fn pool(function: Function, arguments: &[Value]) -> Result<Vec<Value>, EvalError> {
    match function {
        Function::Range => match arguments {
            [end] => whole_steps(&Value::int(0), end, &Value::int(1)),
            [from, end] => whole_steps(from, end, &Value::int(1)),
            [from, end, step] => whole_steps(from, end, step),
            _ => Err(wrong("range takes one to three numbers")),
        },
        // A draw of so many random numbers from a to b - 1, of which one is taken, is one draw from a to b - 1.
        Function::RandInt => match arguments {
            [from, end, _] | [from, end] => whole_steps(from, end, &Value::int(1)),
            _ => Err(wrong("np.random.randint takes two numbers and how many")),
        },
        Function::Arange | Function::Frange => match arguments {
            [from, end, step] => steps(function, from, end, step),
            _ => Err(wrong("a range of floats takes beginning, end and step")),
        },
        Function::NumbersWithin => match arguments {
            [from, to] => {
                let (Some(from), Some(to)) = (small(from), small(to)) else {
                    return Err(wrong("numbers_within takes two whole numbers from 0 to 999"));
                };
                let word = |number: u32| Value::Item(bare_words(number as usize).into(), Box::new(Value::int(number)));
                Ok((from..=to).map(word).collect())
            }
            _ => Err(wrong("numbers_within takes two numbers")),
        },
        Function::List | Function::ShuffleList => match arguments {
            [Value::List(items)] => Ok(items.clone()),
            _ => Err(wrong("list takes a collection")),
        },
        Function::FixFloats => match arguments {
            [Value::List(items)] => items.iter().map(|item| Ok(item.number()?.round(Some(2))?.into())).collect(),
            _ => Err(wrong("fix_floats takes a collection")),
        },
        other => Err(wrong(format!("{other:?} is not a collection"))),
    }
}

fn small(value: &Value) -> Option<u32> {
    match value.number() {
        Ok(Number::Int(value)) => value.to_u32().filter(|value| *value <= 999),
        _ => None,
    }
}

/// Whole numbers from `from` towards `end`, which is not reached.
fn whole_steps(from: &Value, end: &Value, step: &Value) -> Result<Vec<Value>, EvalError> {
    let whole = |value: &Value| match value.number()? {
        Number::Int(value) => Ok(value),
        _ => Err(wrong("range takes whole numbers")),
    };
    let (from, end, step) = (whole(from)?, whole(end)?, whole(step)?);
    if step.is_zero() {
        return Err(wrong("the step of a range is 0"));
    }
    let reach = if step.is_positive() { &end - &from } else { &from - &end };
    if !reach.is_positive() {
        return Ok(Vec::new());
    }
    let count: BigInt = (reach - 1) / step.abs() + 1;
    let count = count.to_usize().filter(|count| *count <= MOST).ok_or(EvalError::TooLarge)?;
    Ok((0..count).map(|index| Value::Int(&from + &step * index)).collect())
}

/// `np.arange`: from + i step, as many as numpy makes; whole numbers stay whole. `frange` makes floats always.
fn steps(function: Function, from: &Value, end: &Value, step: &Value) -> Result<Vec<Value>, EvalError> {
    let numbers = [from.number()?, end.number()?, step.number()?];
    let all_whole = numbers.iter().all(|number| matches!(number, Number::Int(_)));
    if all_whole && function == Function::Arange {
        return whole_steps(from, end, step);
    }
    let [from, end, step] = [numbers[0].float()?, numbers[1].float()?, numbers[2].float()?];
    let count = ((end - from) / step).ceil();
    if step == 0.0 || !count.is_finite() {
        return Err(wrong("the step of a range is 0"));
    }
    if count > MOST as f64 {
        return Err(EvalError::TooLarge);
    }
    let count = count.max(0.0) as usize;
    let step = if count > 1 { from + step - from } else { step };
    Ok((0..count).map(|index| Value::Float(from + index as f64 * step)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(function: Function, arguments: &[Value]) -> Vec<String> {
        pool(function, arguments).unwrap().iter().map(Value::to_string).collect()
    }

    #[test]
    fn ranges_end_before_their_end() {
        let int = |value: i64| Value::int(value);
        assert_eq!(numbers(Function::Range, &[int(10), int(31), int(10)]), ["10", "20", "30"]);
        assert_eq!(numbers(Function::Range, &[int(3), int(1), int(-1)]), ["3", "2"]);
        assert!(numbers(Function::Range, &[int(3), int(3)]).is_empty());
        assert!(pool(Function::Range, &[int(3), int(5), int(0)]).is_err());
        let quarter = [Value::Float(11.25), int(12), Value::Float(0.25)];
        assert_eq!(numbers(Function::Arange, &quarter), ["11.25", "11.5", "11.75"]);
        assert_eq!(numbers(Function::Frange, &[int(7), int(8), Value::Float(0.5)]), ["7.0", "7.5"]);
        assert_eq!(numbers(Function::NumbersWithin, &[int(4), int(5)]), ["4", "5"]);
        assert!(pool(Function::Arange, &[Value::Float(0.0), int(1), Value::Float(0.0)]).is_err());
    }

    #[test]
    fn floats_are_fixed_to_two_decimals() {
        let drifting = pool(Function::Arange, &[Value::Float(2.27), Value::Float(3.2), Value::Float(0.26)]).unwrap();
        assert_eq!(numbers(Function::FixFloats, &[Value::List(drifting)]), ["2.27", "2.53", "2.79", "3.05"]);
    }
}
