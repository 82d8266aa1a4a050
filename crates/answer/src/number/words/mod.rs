//! Number words: numbers to English words, and the words of several languages to numbers.
//!
//! * [`number_words`] and [`exact_words`] write English cardinals, the first with the quirks of the Python package num2words;
//! * [`words_in`] finds the numbers that an English text writes in words, by the grammar of cardinals;
//! * `part` and `value` are for a reader of answers, which is lenient: fractions, dozens, six languages, words beside each other;
//! * `scale` and `wide_number` are for words and characters beside digits.

mod english;
mod language;
mod read;
mod scale;
mod tables;
mod value;
mod wide;
mod write;

pub use language::Language;
pub use read::{WordNumber, words_in};
pub use write::{exact_words, number_words};

pub use scale::{scale, scaled};
pub use tables::{Part, numerals, part};
pub use value::value;
pub use wide::wide_number;
pub use write::bare_words;
