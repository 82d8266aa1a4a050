//! The report: one HTML file without a network. Tables, plots and a few examples are plain HTML; all samples are packed
//! inside (deflate, base64) and the page's own script unpacks them for search.

mod chapter;
mod data;
mod figures;
mod html;
mod pack;
mod run;
mod sections;

pub use chapter::Chapter;
pub use figures::figures;
pub use html::page;
pub use run::ReportRun;
