//! What a run shows, as a document and as text. Reads the stored rows, never the engine.

mod document;
mod grid;
mod table;
mod text;

pub use document::{Document, FailureGroup, REPORT_FORMAT};
pub use table::{Align, Table};
pub use text::render;
