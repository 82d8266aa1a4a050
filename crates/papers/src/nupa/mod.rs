//! The Number Cookbook's NUPA Test: Tables 3 and 7 to 10 and Figures 2 and 5 to 8.

mod compare;
mod document;
mod figures;
mod ours;
mod plan;
mod published;
mod section3;
mod text;

pub use compare::{Against, compare};
pub use document::{NUPA_COMPARISON_FORMAT, NupaCell, NupaComparison, NupaFigure, NupaRun, NupaTable, Quantity};
pub use figures::figures;
pub use ours::Ours;
pub use plan::{NupaPlan, NupaPlanRow, Rate, Tokens, plan};
pub use section3::{
    SECTION_3_FORMAT, Section3, Section3Cell, Section3Curve, Section3Figure, Section3Finding, Section3Ours, Verdict,
    drawings, render_section_3, section_3,
};
pub use text::{render, render_plan};

const PAPER: &str = "Number Cookbook: Number Understanding of Language Models and How to Improve It (ICLR 2025)";
