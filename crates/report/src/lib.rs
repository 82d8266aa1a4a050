//! Comparisons, numeracy profiles, reports, figures and exports of stored runs.
//!
//! [`compare`](mod@compare) reads stored runs and compares them item by item, [`study`] compares the runs of a study, [`profile`] shows digit limits; [`page`]
//! and [`render`] make a report of a run, [`plot`] its figures, [`export`] its rows in other tools' formats.

mod bars;
pub mod compare;
mod error;
pub mod export;
mod first;
mod grid;
pub mod marks;
pub mod markup;
mod options;
pub mod page;
pub(crate) mod paired;
pub mod plot;
pub mod profile;
pub mod study;
mod table;
mod text;
mod wrap;

pub use error::ReportError;
pub use grid::text as grid_text;
pub use options::{in_folder, keys, options};
pub use paired::{
    Comparison, Difference, FittedModel, Flip, PairedModel, ScorerDifference, Sequential, compare, comparison_figure,
    differing_settings, own_settings, p_sentence, p_text,
};
pub(crate) use paired::{adjust, pilot_items};
pub use table::{Align, Table};
pub use text::{Detail, percent, render, sampling, warnings};
pub use wrap::{prose, text_width, wrap, wrap_lines};
