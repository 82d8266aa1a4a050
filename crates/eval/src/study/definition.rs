//! Definition of a study.
use std::path::PathBuf;

use earnest_models::checkpoint::WeightFormat;
use earnest_tasks::suite::ThinkingText;
use earnest_tasks::suite::registry::OptionValues;

use super::formula::Formula;
use super::mistake::Place;
use crate::evaluate::GenerationSettings;
use crate::model::{EndpointRequest, EngineSettings, TrafficSettings};
use crate::prompt::Prompts;

/// Models, tasks with their prompts, and tests. Every model answers every task with each of the task's prompts.
#[derive(Debug, Clone)]
pub struct StudyDefinition {
    /// Name; the report's file has it.
    pub name: String,
    /// File of the definition, for messages.
    pub file: Option<PathBuf>,
    /// In the order of runs and tables.
    pub models: Vec<ModelDefinition>,
    pub tasks: Vec<TaskDefinition>,
    pub compare: Vec<CompareDefinition>,
    pub mixed_models: Vec<MixedModelDefinition>,
}

/// A model of a study.
#[derive(Debug, Clone)]
pub struct ModelDefinition {
    /// Name in tables.
    pub name: String,
    pub reference: ModelReference,
    pub engine: EngineSettings,
    pub traffic: TrafficSettings,
    /// Decoding; the seed is the task's.
    pub generation: GenerationSettings,
    pub thinking_text: ThinkingText,
    pub place: Place,
}

/// A model as it is named.
#[derive(Debug, Clone)]
pub enum ModelReference {
    /// A path, a name of the list of models, `org/repo@commit` or the built-in model.
    Native {
        model: PathBuf,
        weights: WeightFormat,
    },
    /// The same, run by mistral.rs.
    Mistralrs(PathBuf),
    Endpoint(EndpointRequest),
}

/// A task of a study: a suite with its options.
#[derive(Debug, Clone)]
pub struct TaskDefinition {
    /// Name in tables.
    pub name: String,
    pub suite: String,
    pub options: OptionValues,
    /// At least one.
    pub prompts: Vec<Prompts>,
    /// Limit of items; none for all.
    pub limit: Option<usize>,
    /// Samples per item.
    pub samples: u32,
    /// Seed of items and of sampling.
    pub seed: u64,
    pub place: Place,
}

/// Part of a run's coordinates that a comparison varies; the other two are the same on both sides.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Dimension {
    Models,
    Tasks,
    Prompts,
}

impl Dimension {
    /// Names as in a study file.
    pub const NAMES: [(&'static str, Dimension); 3] =
        [("models", Dimension::Models), ("tasks", Dimension::Tasks), ("prompts", Dimension::Prompts)];
}

/// Adjustment of p values for the number of tests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Adjustment {
    Holm,
    None,
}

/// Paired differences.
#[derive(Debug, Clone)]
pub struct CompareDefinition {
    pub between: Dimension,
    /// Name that the others are compared with; none for every pair.
    pub baseline: Option<String>,
    pub adjust: Adjustment,
    /// Only these tasks; all if empty.
    pub tasks: Vec<String>,
    pub place: Place,
}

/// A mixed model over the rows of all runs.
#[derive(Debug, Clone)]
pub struct MixedModelDefinition {
    pub formula: Formula,
    /// Only these tasks; all if empty.
    pub tasks: Vec<String>,
    /// Columns whose numbers are labels.
    pub factors: Vec<String>,
    /// Reference levels by column.
    pub references: Vec<(String, String)>,
    pub place: Place,
}
