//! The report: one HTML file without a network. Tables, plots and a few examples are plain HTML; all samples are packed
//! inside (deflate, base64) and the page's own script unpacks them for search.
//!
//! Samples are two packed parts, columns for lists and filters, and texts; they are ordered by cluster and item, so that similar texts are
//! neighbours and pack well. `report.js` hides and searches. A content security policy forbids connections. Texts of models go through
//! templates that escape or `textContent`, never into markup. A suite's grids become tables, heat maps and curves in the unit that each grid names; other
//! suites' curves are those of the deciding scorer. A paper's own figures come as a [`Chapter`], which the crate that knows the paper makes.

mod chapter;
mod data;
mod differences;
mod figures;
mod html;
mod pack;
mod run;
mod sections;

pub use chapter::Chapter;
pub use differences::comparisons;
pub use figures::{Section, figures, linked_heat};
pub use html::{Frame, Sections, framed, page};
pub use run::{QuestionTexts, ReportRun};
