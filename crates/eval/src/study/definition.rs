//! Definition of a study.
use std::path::PathBuf;

use earnest_models::checkpoint::WeightFormat;
use earnest_tasks::suite::ThinkingText;
use earnest_tasks::suite::registry::OptionValues;

use super::mistake::Place;
use crate::evaluate::GenerationSettings;
use crate::model::{EndpointRequest, EngineSettings, TrafficSettings};
use crate::prompt::Prompts;
use earnest_stats::mixed::Formula;

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
    /// Entries of `--allow-config` for this model alone.
    pub allow_config: Vec<String>,
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
    /// Checkpoint that mistral.rs runs.
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
    /// None for the maximal model that the design supports.
    pub formula: Option<Formula>,
    /// Only these tasks; all if empty.
    pub tasks: Vec<String>,
    /// Columns whose numbers are labels.
    pub factors: Vec<String>,
    /// Reference levels by column.
    pub references: Vec<(String, String)>,
    pub place: Place,
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::study::StudyError;

    fn parse(text: &str) -> Result<StudyDefinition, StudyError> {
        let engine = EngineSettings { threads: Some(3), ..EngineSettings::default() };
        StudyDefinition::parse(text, Path::new("folder/mine.toml"), &engine)
    }

    #[test]
    fn every_key_arrives() {
        let study = parse(
            r#"
            samples = 2
            limit = 50
            prompts = ["chat", "raw"]
            generation = { temperature = 0.5, top_k = 5, thinking = "on" }
            [models.b]
            model = "org/name"
            quant = "q4k"
            kv-memory = "1GiB"
            device = "cpu"
            allow_config = ["twist", "tokenizer.ggml.pre=smollm"]
            generation = { temperature = 1 }
            [models.a]
            endpoint = "http://127.0.0.1:1/v1"
            model = "x"
            api = "chat"
            concurrency = 2
            [tasks.t]
            suite = "gsm-mini"
            options = { per_template = 2 }
            prompts = "raw,gsm"
            seed = 7
            [tasks.own]
            file = "q.jsonl"
            [[compare]]
            between = "tasks"
            adjust = "none"
            [[mixed_model]]
            formula = "correct ~ model + (1 | item)"
            factors = ["model"]
            reference = { model = "a" }
            "#,
        )
        .unwrap();
        assert_eq!(study.name, "mine");
        // In the order of the file.
        let [b, a] = study.models.as_slice() else { panic!("{study:?}") };
        assert_eq!((b.name.as_str(), b.place.line), ("b", Some(6)));
        assert_eq!((b.engine.threads, b.engine.kv_memory), (Some(3), Some(1 << 30)));
        assert_eq!((b.generation.temperature, b.generation.top_k), (Some(1.0), Some(5)));
        assert_eq!((b.allow_config.join(" ").as_str(), a.allow_config.len()), ("twist tokenizer.ggml.pre=smollm", 0));
        assert!(matches!(&b.reference, ModelReference::Native { weights, .. } if weights.quant.is_some()));
        assert!(matches!(&a.reference, ModelReference::Endpoint(request) if request.model.as_deref() == Some("x")));
        assert_eq!((a.traffic.concurrency, a.generation.temperature), (2, Some(0.5)));
        let [task, own] = study.tasks.as_slice() else { panic!("{study:?}") };
        assert_eq!((task.seed, task.samples, task.limit), (7, 2, Some(50)));
        assert_eq!(task.prompts.iter().map(Prompts::to_string).collect::<Vec<_>>(), ["raw,gsm"]);
        assert_eq!(task.options.parsed::<usize>("per-template"), Ok(Some(2)));
        assert_eq!((own.suite.as_str(), own.prompts.len()), ("task", 2));
        assert_eq!(own.options.path("file"), Some(Path::new("folder/q.jsonl")));
        assert_eq!((study.compare[0].between, study.compare[0].adjust), (Dimension::Tasks, Adjustment::None));
        assert_eq!(study.mixed_models[0].references, [("model".to_owned(), "a".to_owned())]);
    }

    #[test]
    fn what_excludes_each_other_is_refused() {
        let one = |text: &str| parse(text).unwrap_err().to_string();
        let endpoint = one("[models.a]\nendpoint = \"u\"\nquant = \"q4k\"\n[tasks.t]\nsuite = \"nupa\"\n");
        assert!(endpoint.contains("line 3, models.a.quant: quant is for models that run here"), "{endpoint}");
        let file = one("[models.a]\nmodel = \"built-in\"\n[tasks.t]\nsuite = \"nupa\"\nfile = \"q.jsonl\"\n");
        assert!(file.contains("line 5, tasks.t.file: file is for your own questions"), "{file}");
        let options = "options = { data = \"d\", revision = \"r\" }";
        let both = one(&format!("[models.a]\nmodel = \"built-in\"\n[tasks.t]\nsuite = \"gsm-symbolic\"\n{options}\n"));
        assert!(both.contains("exclude each other"), "{both}");
    }
}
