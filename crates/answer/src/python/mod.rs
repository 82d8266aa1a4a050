//! Python's expressions: tokens, tree, numbers with their operators, and a bounded evaluator.
//!
//! The evaluator is what the `eval` of a published program makes of a predicted equation, and what executes the lines of
//! NUPA's rules, whose variables, functions and methods are a [`Scope`]. The templates of GSM-Symbolic are read by the same
//! parser and have values of their own above its tree.
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
pub use evaluate::{Scope, evaluate, python_close, python_eval};
pub use number::PythonNumber;
pub use value::PythonValue;

pub use arithmetic::calculate;
pub use number::{float_text, four_decimals, rounded};
pub use parse::{Brackets, ParseError, parse_one};
pub use token::{parsed_float, parsed_integer};
pub use tree::{Argument, Comparison, Operator, Prefix, Tree};
pub use unicode::{decimal_digits, is_blank, is_space, pattern};
