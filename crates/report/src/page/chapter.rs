//! Chapters of additional figures.
use crate::plot::Figure;

/// A paper's figures from the runs of a report, as a separate section. The page's selection of models applies to rows whose name
/// is a model's or ends with it.
#[derive(Debug, Clone, PartialEq)]
pub struct Chapter {
    /// Anchor within the page.
    pub id: String,
    pub title: String,
    /// Introduction with reading instructions.
    pub lead: String,
    /// Notes on single figures, a sentence each.
    pub notes: Vec<String>,
    pub figures: Vec<Figure>,
}
