//! Tokenizers of number models: digits in groups of one, two or three, everything else by BPE merges learnt from the questions
//! (Number Cookbook, A.4.2).

mod file;
mod hints;
mod number;
mod settings;
mod words;

pub(crate) use file::{BEGIN, END, PAD, SPECIAL};
pub(crate) use hints::{check_hints, hints_before_tokens};
pub use number::NumberTokenizer;
pub use settings::{DigitGroups, TokenizerSettings};
