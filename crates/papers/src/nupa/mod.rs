//! The Number Cookbook's NUPA Test: Tables 3 and 7 to 10 and Figures 2 and 5 to 8.

mod compare;
mod document;
mod figures;
mod inference_tables;
mod plan;
mod published;
mod run;
#[cfg(feature = "train")]
mod section3;
mod text;
mod training_tables;

pub use compare::{ReferenceRow, UnknownRow, compare};
pub use document::{
    FigureMetric, NUPA_COMPARISON_FORMAT, NupaCell, NupaComparison, NupaFigure, NupaRun, NupaTable, Quantity,
};
pub use figures::figures;
pub use inference_tables::{
    FigureRow, InferenceTime, PublishedRuleFollowing, TABLE_3_METHODS, TABLE_19_COLUMNS, figure_rows,
    published_digit_limit, published_inference_times, published_models, published_range_accuracy,
    published_rule_following, published_rule_length, published_rule_lengths,
};
pub use plan::{NupaPlan, NupaPlanRow, Rate, TokenCounter, plan};
pub use run::EvaluatedRun;
#[cfg(feature = "train")]
pub use section3::{
    ClaimForm, ClaimOutcome, Family, FineTunedResult, GATE, LengthCount, MARGIN, SECTION_3_FORMAT, Section3,
    Section3Cell, Section3Curve, Section3Figure, Section3Finding, Section3Result, XAxis, drawings, render_section_3,
    section_3,
};
pub use text::{render, render_plan};
pub use training_tables::{PublishedTraining, published_trainings};

const PAPER: &str = "Number Cookbook: Number Understanding of Language Models and How to Improve It (ICLR 2025)";
