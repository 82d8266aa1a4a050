//! Reports on stored runs: documents, text, pages, comparisons and exports.

pub(crate) mod compare;
mod document;
mod error;
pub mod export;
mod first;
mod grid;
mod kept;
mod log_document;
mod number;
mod offered;
pub mod page;
pub mod plot;
mod profile;
mod question;
mod rows;
mod table;
mod text;
mod wrap;

pub use compare::{
    Comparison, Difference, FittedModel, Flip, PairedModel, RuleDifference, Scores, Sequential, compare,
    comparison_figure, differing_settings, own_settings, p_sentence, p_text,
};
pub(crate) use compare::{adjust, pilot_items};
pub use document::{Document, FailureGroup, REPORT_FORMAT};
pub use error::ReportError;
pub use grid::text as grid_text;
pub(crate) use log_document::LogSums;
pub use number::{ends, fixed, p_decimals, with_commas};
pub use offered::{quoted, results_option};
pub use rows::{Row, Rows, StoredRows, WithoutTexts};
pub use table::{Align, Table};
pub use text::{Detail, percent, render, warnings};
pub use wrap::{wrap, wrap_lines};
