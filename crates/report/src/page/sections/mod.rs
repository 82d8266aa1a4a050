//! Sections of the report as HTML.

mod differences;
mod examples;
mod figures;
mod format;
mod heat;
mod provenance;
mod summary;
mod tables;

pub use differences::differences;
pub use examples::examples;
pub use figures::{chapter, figures, folded, grouped, remarks};
pub use heat::{further_heat, heat};
pub use provenance::provenance;
pub use summary::{headline, key, notes, title, verdicts};
pub use tables::tables;

const WRITES: &str = "writing to a String cannot fail";
