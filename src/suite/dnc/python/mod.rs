//! A bounded evaluator of Python expressions: what the reference's `eval` makes of a predicted equation (spec sections 2 and 5).
//!
//! The paper's programs hand model output to CPython's `eval`. Here it is parsed and calculated over plain values (numbers, texts,
//! lists, tuples, sets, dictionaries) with the builtin functions that calculate. Nothing is executed, and nothing outside the
//! expression can be reached: files, modules and attributes other than those of numbers do not exist. Time, memory and stack are
//! bounded ([`PythonError::Limit`]); what is beyond them, and what is not covered ([`PythonError::Unsupported`]: formatted
//! strings, bytes, methods of texts and lists), counts as an equation that is wrong.
mod arithmetic;
mod budget;
mod builtin;
mod complex;
mod error;
mod evaluate;
mod number;
mod operate;
mod parse;
mod sequence;
mod token;
mod tree;
mod unicode;
mod value;

pub use error::PythonError;
pub use evaluate::{python_close, python_eval};
pub use number::PythonNumber;
pub use value::PythonValue;

pub(super) use arithmetic::calculate;
pub(super) use number::{four_decimals, rounded};
pub(super) use token::{parsed_float, parsed_integer};
pub(super) use tree::Operator;
pub(super) use unicode::is_space;
