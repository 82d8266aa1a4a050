//! Sections of the report as HTML.

mod examples;
mod figures;
mod format;
mod provenance;
mod summary;
mod tables;

pub use examples::examples;
pub use figures::{chapter, figures, folded, grouped, groups, remarks};
pub use provenance::provenance;
pub use summary::summary;
pub use tables::tables;

const WRITES: &str = "writing to a String cannot fail";
