//! Sections of the report, as data for their templates.

mod differences;
mod examples;
mod figures;
mod format;
mod heat;
mod provenance;
mod summary;
mod tables;

pub use differences::differences;
pub use examples::samples;
pub use figures::{chapter, figures, grouped};
pub use heat::{further_heat, heat};
pub use provenance::provenance;
pub use summary::{notes, results, title};
pub use tables::tables;
