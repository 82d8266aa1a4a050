//! The Number Cookbook's NUPA Test: Tables 3 and 7 to 10 and Figures 2 and 5 to 8.

mod compare;
mod document;
mod figures;
mod plan;
mod published;
mod run;
mod section3;
mod text;

pub use compare::{ReferenceRow, UnknownRow, compare};
pub use document::{
    FigureMetric, NUPA_COMPARISON_FORMAT, NupaCell, NupaComparison, NupaFigure, NupaRun, NupaTable, Quantity,
};
pub use figures::figures;
pub use plan::{NupaPlan, NupaPlanRow, Rate, TokenCounter, plan};
pub use run::EvaluatedRun;
pub use section3::{
    ClaimForm, ClaimOutcome, Family, FineTunedResult, GATE, LengthCount, MARGIN, SECTION_3_FORMAT, Section3,
    Section3Cell, Section3Curve, Section3Figure, Section3Finding, Section3Result, XAxis, drawings, render_section_3,
    section_3,
};
pub use text::{render, render_plan};

const PAPER: &str = "Number Cookbook: Number Understanding of Language Models and How to Improve It (ICLR 2025)";
