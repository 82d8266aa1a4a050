//! The GSM-Symbolic re-evaluation: Tables 2 to 15, Figures 1 to 11 and Listing 6 compared with stored runs.
//!
//! [`Evaluation`]s (a model's answers to a prompt) become [`Analysis`] values (accuracies and mixed models, every fit with
//! the rule for artefacts), these a [`Study`] (selection, both Holm directions, the tables), and that text, JSON and
//! drawings. [`collected`] alone reads stored runs.

mod analysis;
mod beside;
mod chapter;
mod collected;
mod drawing;
mod effect;
mod evaluation;
mod figures;
mod formula;
mod listing;
mod models;
mod numbers;
mod page;
mod plan;
mod pooled;
pub mod published;
mod remarks;
mod result_table;
mod study;
mod text;
mod variant_tables;

pub use analysis::{Accuracies, Analysis, analyse};
pub use chapter::chapters;
pub use collected::{Collected, Labelled, answers, collected, label_of, numbers_of};
pub use drawing::{drawings, drawings_of};
pub use effect::{Effect, Lme4Fit, ModelFit};
pub use evaluation::{ErrorClass, Evaluation, Observation, ObservationError};
pub use formula::FormulaFit;
pub use listing::{OptimiserRow, OptimiserStudy};
pub use models::{paper_name, paper_order};
pub use numbers::NumberDistribution;
pub use page::page;
pub use plan::{Assumptions, PlannedRun, PromptSize, StudyPlan, plan};
pub use pooled::{Pooled, PooledModel, PooledOddsRatio};
pub use remarks::{Claim, recommendations};
pub use result_table::{Cell, Column, Kind, ResultRow, ResultTable};
pub use study::{STUDY_FORMAT, Study, StudyRun, selected};
pub use text::{TableModels, render_plan, render_summary, render_tables};
