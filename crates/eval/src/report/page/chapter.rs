//! Figures that another room drew from the report's runs.
use crate::report::plot::Figure;

/// A paper's figures drawn from the runs of a report, under a heading of their own. Whoever knows the paper makes them;
/// the page's choice of models applies to rows that are called like a model, or end with its name.
#[derive(Debug, Clone, PartialEq)]
pub struct Chapter {
    /// Fit for a link within the page.
    pub id: String,
    pub title: String,
    /// What is drawn and how to read it.
    pub lead: String,
    /// What must be known of single figures, a sentence each.
    pub notes: Vec<String>,
    pub figures: Vec<Figure>,
}
