//! Types and parsers of option values.
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};

use earnest_report::{text_width, wrap};

pub use earnest_eval::prompt::Prompts;
pub use earnest_models::memory::ByteSize;
pub use earnest_tasks::suite::LengthList as Lengths;
pub use earnest_tasks::{agreeing, counted, the_first};

/// A line with a name, padded to so many columns, and its value. Wrapped at a known width; what it continues with stands under the
/// value's beginning.
pub fn named(name: &str, columns: usize, value: &str, width: Option<usize>) -> String {
    let name = format!("{name}{}", " ".repeat(columns.saturating_sub(text_width(name))));
    match width {
        Some(width) if text_width(&name) + text_width(value) > width => wrap(value, width, &name),
        _ => format!("{name}{value}\n"),
    }
}

/// An entry of a list for terminals that are too narrow for its table: a name, and below it its paragraphs.
pub fn card(name: &str, paragraphs: impl IntoIterator<Item = String>, width: usize) -> String {
    paragraphs.into_iter().fold(format!("{name}\n"), |card, text| card + &wrap(&text, width, "  "))
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
