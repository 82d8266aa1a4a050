//! Section 3 of the Number Cookbook, on trained models: Tables 12 to 18 and Figures 4 and 9 to 18 compared with an experiment.

mod document;
mod figures;
mod findings;
mod fine_tuned;
mod tables;
mod text;

pub use document::{
    ClaimForm, ClaimOutcome, Family, GATE, MARGIN, SECTION_3_FORMAT, Section3, Section3Cell, Section3Curve,
    Section3Figure, Section3Finding, Section3Result, XAxis,
};
pub use figures::drawings;
pub use fine_tuned::{FineTunedResult, LengthCount};
pub use text::render_section_3;

use earnest_train::FineTuned;
use earnest_train::experiment::ExperimentResults;

/// Compares an experiment and trainings of adapters with section 3.
pub fn section_3(results: &ExperimentResults, fine_tuned: &[FineTuned], source: &str) -> Section3 {
    let tables = tables::cells(results, fine_tuned);
    Section3 {
        format: SECTION_3_FORMAT,
        paper: super::PAPER.to_owned(),
        source: source.to_owned(),
        title: results.title.clone(),
        planned: results.planned,
        models: results.models.len(),
        seeds: results.seeds.clone(),
        questions: results.questions,
        scale: document::scale(results),
        cells: tables,
        findings: findings::findings(results),
        fine_tuned: fine_tuned::fine_tuned_results(fine_tuned),
        figures: figures::figures(results),
        in_train: document::in_train(results),
        caveats: document::caveats(results),
    }
}
