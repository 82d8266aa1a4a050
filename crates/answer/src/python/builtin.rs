//! The builtin functions that calculate.
use num_bigint::BigInt;
use num_integer::Integer;
use num_traits::{One, Signed, ToPrimitive, Zero};

use super::error::PythonError;
use super::evaluate::Evaluator;
use super::number::{PythonNumber, magnitude, rounded, rounded_to_integer, truncated};
use super::operate::operate;
use super::sequence::{elements, elements_in_any_order, length, less, set, sorted};
use super::token::{parsed_float, parsed_integer, radix};
use super::tree::Operator;
use super::value::{PythonValue, Range};

/// The arguments of a call.
#[derive(Default)]
pub(super) struct Arguments {
    pub positional: Vec<PythonValue>,
    pub named: Vec<(String, PythonValue)>,
}

impl Arguments {
    /// The argument of a function that takes one, without a name.
    fn one(self) -> Result<PythonValue, PythonError> {
        let [argument] = self.bound([""], 1)?;
        argument.ok_or(PythonError::Type)
    }

    /// The argument of a type, which may be left out.
    fn optional(self) -> Result<Option<PythonValue>, PythonError> {
        let [argument] = self.bound([""], 0)?;
        Ok(argument)
    }

    /// The arguments by position or by name (`""` has none); so many at least.
    fn bound<const N: usize>(self, names: [&str; N], required: usize) -> Result<[Option<PythonValue>; N], PythonError> {
        if self.positional.len() > N {
            return Err(PythonError::Type);
        }
        let mut found = [const { None }; N];
        for (index, value) in self.positional.into_iter().enumerate() {
            found[index] = Some(value);
        }
        for (name, value) in self.named {
            let index = names.iter().position(|known| *known == name).ok_or(PythonError::Type)?;
            if found[index].replace(value).is_some() {
                return Err(PythonError::Type);
            }
        }
        if found[..required].iter().any(Option::is_none) { Err(PythonError::Type) } else { Ok(found) }
    }

    /// An argument that is only given by its name; `None` is as good as nothing.
    fn take(&mut self, name: &str) -> Option<PythonValue> {
        let index = self.named.iter().position(|(known, _)| known == name)?;
        Some(self.named.remove(index).1)
    }
}

pub(super) fn builtin(name: &str) -> Option<PythonValue> {
    NAMES.binary_search(&name).ok().map(|index| PythonValue::Builtin(NAMES[index]))
}

/// Calls a builtin.
pub(super) fn call(
    name: &'static str,
    arguments: Arguments,
    evaluator: &mut Evaluator<'_>,
) -> Result<PythonValue, PythonError> {
    match name {
        "abs" | "bin" | "hex" | "oct" | "bool" | "complex" | "divmod" | "float" | "int" | "pow" | "round" => {
            of_numbers(name, arguments, evaluator)
        }
        "chr" | "eval" | "ord" | "print" | "repr" | "str" => of_texts(name, arguments, evaluator),
        _ => of_collections(name, arguments, evaluator),
    }
}

/// Calls a builtin that makes or calculates a number.
fn of_numbers(
    name: &'static str,
    arguments: Arguments,
    evaluator: &mut Evaluator<'_>,
) -> Result<PythonValue, PythonError> {
    match name {
        "abs" => {
            let number = arguments.one()?.number().ok_or(PythonError::Type)?;
            magnitude(&number).map(PythonValue::Number)
        }
        "bin" | "hex" | "oct" => in_radix(name, &arguments.one()?.integer()?),
        "bool" => Ok(PythonValue::Bool(arguments.optional()?.is_some_and(|value| value.is_true()))),
        "complex" => complex(arguments),
        "divmod" => {
            let [a, b] = arguments.bound(["", ""], 2)?.map(Option::unwrap_or_default);
            let part = |operator, evaluator: &mut Evaluator<'_>| operate(operator, &a, &b, &mut evaluator.budget);
            if matches!(a, PythonValue::Text(_)) {
                return Err(PythonError::Type);
            }
            let quotient = part(Operator::FloorDivide, evaluator)?;
            Ok(PythonValue::Tuple(vec![quotient, part(Operator::Modulo, evaluator)?]))
        }
        "float" => match arguments.optional()? {
            None => Ok(0.0.into()),
            Some(PythonValue::Text(text)) => parsed_float(&text).map(PythonValue::from),
            Some(value) => value.number().ok_or(PythonError::Type)?.float().map(PythonValue::from),
        },
        "int" => integer(arguments),
        "pow" => power(arguments, evaluator),
        "round" => round(arguments),
        _ => Err(PythonError::Unsupported),
    }
}

/// Calls a builtin that makes, reads or writes a text.
fn of_texts(
    name: &'static str,
    arguments: Arguments,
    evaluator: &mut Evaluator<'_>,
) -> Result<PythonValue, PythonError> {
    match name {
        "chr" => {
            let code = arguments.one()?.integer()?;
            let code = code.to_i32().ok_or(PythonError::Overflow)?;
            let code = u32::try_from(code).ok().filter(|code| *code <= 0x10_ffff).ok_or(PythonError::Value)?;
            char::from_u32(code).map(|found| PythonValue::Text(found.to_string())).ok_or(PythonError::Unsupported)
        }
        "eval" => match arguments.one()? {
            PythonValue::Text(text) => evaluator.evaluate_text(&text),
            PythonValue::None | PythonValue::Bool(_) | PythonValue::Number(_) => Err(PythonError::Type),
            _ => Err(PythonError::Unsupported),
        },
        "ord" => match arguments.one()? {
            PythonValue::Text(text) => match (text.chars().next(), text.chars().nth(1)) {
                (Some(character), None) => Ok(i64::from(character as u32).into()),
                _ => Err(PythonError::Type),
            },
            _ => Err(PythonError::Type),
        },
        // Nothing is shown: the value alone counts.
        "print" => {
            let known = |name: &str| matches!(name, "sep" | "end" | "file" | "flush");
            let named = arguments.named.iter().all(|(name, _)| known(name));
            if named { Ok(PythonValue::None) } else { Err(PythonError::Type) }
        }
        "repr" => arguments.one()?.literal().map(PythonValue::Text),
        // An encoding would be of bytes.
        "str" => {
            let [value, encoding, errors] = arguments.bound(["object", "encoding", "errors"], 0)?;
            match value {
                _ if encoding.is_some() || errors.is_some() => Err(PythonError::Type),
                None => Ok("".into()),
                Some(value) => value.text().map(PythonValue::Text),
            }
        }
        _ => Err(PythonError::Unsupported),
    }
}

/// Calls a builtin that makes a collection or goes over one.
fn of_collections(
    name: &'static str,
    arguments: Arguments,
    evaluator: &mut Evaluator<'_>,
) -> Result<PythonValue, PythonError> {
    let budget = &mut evaluator.budget;
    match name {
        "all" => {
            Ok(PythonValue::Bool(elements_in_any_order(arguments.one()?, budget)?.iter().all(PythonValue::is_true)))
        }
        "any" => {
            Ok(PythonValue::Bool(elements_in_any_order(arguments.one()?, budget)?.iter().any(PythonValue::is_true)))
        }
        "dict" if arguments.named.is_empty() => match arguments.optional()? {
            None => Ok(PythonValue::Dictionary(Vec::new())),
            Some(pairs @ PythonValue::Dictionary(_)) => Ok(pairs),
            Some(_) => Err(PythonError::Unsupported),
        },
        "enumerate" => {
            let [values, start] = arguments.bound(["iterable", "start"], 1)?;
            let start = start.map_or_else(|| Ok(BigInt::zero()), |start| start.integer())?;
            let values = elements(values.unwrap_or_default(), budget)?.into_iter().enumerate();
            let pairs = values.map(|(at, value)| PythonValue::Tuple(vec![(&start + at).into(), value]));
            Ok(PythonValue::Iterator(pairs.collect()))
        }
        "filter" => {
            let [function, values] = arguments.bound(["", ""], 2)?.map(Option::unwrap_or_default);
            let mut kept = Vec::new();
            for value in elements(values, budget)? {
                let passes = match &function {
                    PythonValue::None => value.is_true(),
                    function => evaluator.call_with(function, vec![value.clone()])?.is_true(),
                };
                if passes {
                    kept.push(value);
                }
            }
            Ok(PythonValue::Iterator(kept))
        }
        "len" => length(&arguments.one()?).map(PythonValue::from),
        "list" => match arguments.optional()? {
            None => Ok(PythonValue::List(Vec::new())),
            Some(values) => elements(values, budget).map(PythonValue::List),
        },
        "map" => map(arguments, evaluator),
        "max" | "min" => extreme(name == "max", arguments, evaluator),
        "range" => range(arguments),
        "reversed" => match arguments.one()? {
            PythonValue::Set(_) | PythonValue::Iterator(_) => Err(PythonError::Type),
            values => {
                let mut values = elements(values, budget)?;
                values.reverse();
                Ok(PythonValue::Iterator(values))
            }
        },
        "set" => match arguments.optional()? {
            None => Ok(PythonValue::Set(Vec::new())),
            Some(values) => {
                let values = elements_in_any_order(values, budget)?;
                set(values, budget)
            }
        },
        "sorted" => {
            let mut arguments = arguments;
            let key = arguments.take("key").unwrap_or_default();
            let reverse = arguments.take("reverse").map_or(Ok(BigInt::zero()), |reverse| reverse.integer())?;
            let values = elements_in_any_order(arguments.one()?, budget)?;
            let keyed = evaluator.keyed(&key, values)?;
            sorted(keyed, !reverse.is_zero(), &mut evaluator.budget).map(PythonValue::List)
        }
        "sum" => sum(arguments, evaluator),
        "tuple" => match arguments.optional()? {
            None => Ok(PythonValue::Tuple(Vec::new())),
            Some(values) => elements(values, budget).map(PythonValue::Tuple),
        },
        "zip" if arguments.named.is_empty() => {
            let columns = arguments
                .positional
                .into_iter()
                .map(|values| elements(values, budget))
                .collect::<Result<Vec<_>, _>>()?;
            let rows = columns.iter().map(Vec::len).min().unwrap_or(0);
            let row = |at: usize| PythonValue::Tuple(columns.iter().map(|column| column[at].clone()).collect());
            Ok(PythonValue::Iterator((0..rows).map(row).collect()))
        }
        // An instance of an exception is a value like another, but no number.
        _ => Err(PythonError::Unsupported),
    }
}

fn in_radix(name: &str, value: &BigInt) -> Result<PythonValue, PythonError> {
    let (prefix, radix) = match name {
        "bin" => ("0b", 2),
        "oct" => ("0o", 8),
        _ => ("0x", 16),
    };
    let sign = if value.is_negative() { "-" } else { "" };
    Ok(PythonValue::Text(format!("{sign}{prefix}{}", value.magnitude().to_str_radix(radix))))
}

fn complex(arguments: Arguments) -> Result<PythonValue, PythonError> {
    let parts = arguments.bound(["real", "imag"], 0)?;
    if parts.iter().flatten().any(|part| matches!(part, PythonValue::Text(_))) {
        // Of one text alone its notation would have to be read.
        return Err(if parts[1].is_some() { PythonError::Type } else { PythonError::Unsupported });
    }
    let part = |part: &Option<PythonValue>| match part {
        None => Ok((0.0, 0.0)),
        Some(value) => match value.number().ok_or(PythonError::Type)? {
            PythonNumber::Complex(real, imaginary) => Ok((real, imaginary)),
            real => real.float().map(|real| (real, 0.0)),
        },
    };
    let ((a, b), (c, d)) = (part(&parts[0])?, part(&parts[1])?);
    Ok(PythonValue::Number(PythonNumber::Complex(a - d, b + c)))
}

fn integer(arguments: Arguments) -> Result<PythonValue, PythonError> {
    let [value, base] = arguments.bound(["", "base"], 0)?;
    let base = base.map(|base| base.integer()).transpose()?;
    if value.is_none() && base.is_some() {
        return Err(PythonError::Type);
    }
    let base = base.map(|base| radix(&base)).transpose()?;
    match (value, base) {
        (None, None) => Ok(0.into()),
        (Some(PythonValue::Text(text)), base) => parsed_integer(&text, base.unwrap_or(10)).map(PythonValue::from),
        (Some(value), None) => truncated(&value.number().ok_or(PythonError::Type)?).map(PythonValue::from),
        _ => Err(PythonError::Type),
    }
}

fn map(arguments: Arguments, evaluator: &mut Evaluator<'_>) -> Result<PythonValue, PythonError> {
    let mut values = arguments.positional.into_iter();
    let (Some(function), true) = (values.next(), arguments.named.is_empty()) else { return Err(PythonError::Type) };
    let columns = values.map(|values| elements(values, &mut evaluator.budget)).collect::<Result<Vec<_>, _>>()?;
    let rows = columns.iter().map(Vec::len).min().ok_or(PythonError::Type)?;
    let results =
        (0..rows).map(|at| evaluator.call_with(&function, columns.iter().map(|column| column[at].clone()).collect()));
    results.collect::<Result<Vec<_>, _>>().map(PythonValue::Iterator)
}

fn extreme(largest: bool, mut arguments: Arguments, evaluator: &mut Evaluator<'_>) -> Result<PythonValue, PythonError> {
    let key = arguments.take("key").unwrap_or_default();
    let default = arguments.take("default");
    let several = arguments.positional.len() > 1;
    if !arguments.named.is_empty() || arguments.positional.is_empty() || several && default.is_some() {
        return Err(PythonError::Type);
    }
    let values = if several {
        arguments.positional
    } else {
        elements_in_any_order(arguments.positional.remove(0), &mut evaluator.budget)?
    };
    let mut best: Option<(PythonValue, PythonValue)> = None;
    for (key, value) in evaluator.keyed(&key, values)? {
        let better = match &best {
            None => true,
            Some((best, _)) if largest => less(best, &key)?,
            Some((best, _)) => less(&key, best)?,
        };
        if better {
            best = Some((key, value));
        }
    }
    best.map(|(_, value)| value).or(default).ok_or(PythonError::Value)
}

fn power(arguments: Arguments, evaluator: &mut Evaluator<'_>) -> Result<PythonValue, PythonError> {
    let [base, exponent, modulus] = arguments.bound(["base", "exp", "mod"], 2)?.map(Option::unwrap_or_default);
    if modulus == PythonValue::None {
        return operate(Operator::Power, &base, &exponent, &mut evaluator.budget);
    }
    let (base, exponent, modulus) = (base.integer()?, exponent.integer()?, modulus.integer()?);
    if modulus.is_zero() {
        return Err(PythonError::Value);
    }
    let words = 1 + modulus.bits().max(base.bits()) / 64;
    evaluator.budget.spend((1 + exponent.bits() / 16).saturating_mul(words * words))?;
    let base = if exponent.is_negative() {
        // The inverse, which only a base without a common divisor has.
        if modulus.abs().is_one() {
            return Ok(0.into());
        }
        base.modinv(&modulus).ok_or(PythonError::Value)?
    } else {
        base
    };
    Ok(base.modpow(&exponent.abs(), &modulus).mod_floor(&modulus).into())
}

fn range(arguments: Arguments) -> Result<PythonValue, PythonError> {
    let [first, second, step] = arguments.bound(["", "", ""], 1)?;
    let first = first.unwrap_or_default().integer()?;
    let step = step.map_or(Ok(BigInt::one()), |step| step.integer())?;
    let (start, stop) = match second {
        Some(second) => (first, second.integer()?),
        None => (BigInt::zero(), first),
    };
    if step.is_zero() { Err(PythonError::Value) } else { Ok(PythonValue::Range(Box::new(Range { start, stop, step }))) }
}

fn round(arguments: Arguments) -> Result<PythonValue, PythonError> {
    let [number, places] = arguments.bound(["number", "ndigits"], 1)?.map(Option::unwrap_or_default);
    let number =
        number.number().filter(|number| !matches!(number, PythonNumber::Complex(..))).ok_or(PythonError::Type)?;
    if places == PythonValue::None {
        return rounded_to_integer(&number).map(PythonValue::from);
    }
    let places = places.integer()?;
    let far = if places.is_negative() { i64::MIN } else { i64::MAX };
    rounded(&number, places.to_i64().unwrap_or(far)).map(PythonValue::Number)
}

fn sum(arguments: Arguments, evaluator: &mut Evaluator<'_>) -> Result<PythonValue, PythonError> {
    let [values, start] = arguments.bound(["", "start"], 1)?;
    let start = start.unwrap_or_else(|| 0.into());
    if matches!(start, PythonValue::Text(_)) {
        return Err(PythonError::Type);
    }
    let values = values.unwrap_or_default();
    let whole = |value: &PythonValue| matches!(value.number(), Some(PythonNumber::Int(_)));
    let in_any_order = matches!(&values, PythonValue::Set(parts) if parts.iter().all(whole));
    let values = if in_any_order {
        elements_in_any_order(values, &mut evaluator.budget)?
    } else {
        elements(values, &mut evaluator.budget)?
    };
    values.iter().try_fold(start, |sum, value| operate(Operator::Add, &sum, value, &mut evaluator.budget))
}

/// Every name of Python 3.11's builtins, in order.
const NAMES: [&str; 148] = [
    "ArithmeticError",
    "AssertionError",
    "AttributeError",
    "BaseException",
    "BaseExceptionGroup",
    "BlockingIOError",
    "BrokenPipeError",
    "BufferError",
    "BytesWarning",
    "ChildProcessError",
    "ConnectionAbortedError",
    "ConnectionError",
    "ConnectionRefusedError",
    "ConnectionResetError",
    "DeprecationWarning",
    "EOFError",
    "Ellipsis",
    "EncodingWarning",
    "EnvironmentError",
    "Exception",
    "ExceptionGroup",
    "FileExistsError",
    "FileNotFoundError",
    "FloatingPointError",
    "FutureWarning",
    "GeneratorExit",
    "IOError",
    "ImportError",
    "ImportWarning",
    "IndentationError",
    "IndexError",
    "InterruptedError",
    "IsADirectoryError",
    "KeyError",
    "KeyboardInterrupt",
    "LookupError",
    "MemoryError",
    "ModuleNotFoundError",
    "NameError",
    "NotADirectoryError",
    "NotImplemented",
    "NotImplementedError",
    "OSError",
    "OverflowError",
    "PendingDeprecationWarning",
    "PermissionError",
    "ProcessLookupError",
    "RecursionError",
    "ReferenceError",
    "ResourceWarning",
    "RuntimeError",
    "RuntimeWarning",
    "StopAsyncIteration",
    "StopIteration",
    "SyntaxError",
    "SyntaxWarning",
    "SystemError",
    "SystemExit",
    "TabError",
    "TimeoutError",
    "TypeError",
    "UnboundLocalError",
    "UnicodeDecodeError",
    "UnicodeEncodeError",
    "UnicodeError",
    "UnicodeTranslateError",
    "UnicodeWarning",
    "UserWarning",
    "ValueError",
    "Warning",
    "ZeroDivisionError",
    "__build_class__",
    "__import__",
    "abs",
    "aiter",
    "all",
    "anext",
    "any",
    "ascii",
    "bin",
    "bool",
    "breakpoint",
    "bytearray",
    "bytes",
    "callable",
    "chr",
    "classmethod",
    "compile",
    "complex",
    "copyright",
    "credits",
    "delattr",
    "dict",
    "dir",
    "divmod",
    "enumerate",
    "eval",
    "exec",
    "exit",
    "filter",
    "float",
    "format",
    "frozenset",
    "getattr",
    "globals",
    "hasattr",
    "hash",
    "help",
    "hex",
    "id",
    "input",
    "int",
    "isinstance",
    "issubclass",
    "iter",
    "len",
    "license",
    "list",
    "locals",
    "map",
    "max",
    "memoryview",
    "min",
    "next",
    "object",
    "oct",
    "open",
    "ord",
    "pow",
    "print",
    "property",
    "quit",
    "range",
    "repr",
    "reversed",
    "round",
    "set",
    "setattr",
    "slice",
    "sorted",
    "staticmethod",
    "str",
    "sum",
    "super",
    "tuple",
    "type",
    "vars",
    "zip",
];
