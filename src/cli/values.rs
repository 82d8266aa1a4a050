//! Types and parsers of option values.
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};

pub use earnest_eval::prompt::Prompts;
pub use earnest_models::memory::ByteSize;
pub use earnest_tasks::suite::LengthList as Lengths;

/// A count with its noun, e.g. `1 prompt` or `3 prompts`.
pub fn counted(n: usize, noun: &str) -> String {
    if n == 1 { format!("1 {noun}") } else { format!("{n} {noun}s") }
}

/// Parser of an option that takes one of a few names: each with its help (or none) and its value.
pub fn one_of<T: Copy + Send + Sync + 'static>(
    values: &'static [(&'static str, &'static str, T)],
) -> impl TypedValueParser<Value = T> {
    let shown = values.iter().map(|(name, help, _)| match *help {
        "" => PossibleValue::new(*name),
        help => PossibleValue::new(*name).help(help),
    });
    PossibleValuesParser::new(shown).map(|name| {
        let chosen = values.iter().find(|(known, ..)| *known == name);
        chosen.expect("clap accepts the listed names only").2
    })
}
