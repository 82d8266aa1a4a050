//! Results of a memory file, and what they say about stored information.
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::facts::Source;
use super::recipe::{CycleRecall, Ending, Recipe};
use crate::experiment::SeedMean;

/// Version of [`MemoryResults`]'s JSON format.
pub const MEMORY_FORMAT: u32 = 1;

/// Bits per decimal digit.
const BITS_PER_DIGIT: f64 = std::f64::consts::LOG2_10;

/// Kind of perceptron: everything but the seed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct KindSettings {
    /// Name of the experiment.
    pub experiment: String,
    /// Distinguishes kinds of the same sources and sizes; may be empty.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub label: String,
    /// Sources of each phase, joined by `+`.
    pub learn: Vec<String>,
    /// Digits of each constant; 0 for the table.
    pub digits: usize,
    /// Units of each hidden layer.
    pub width: usize,
    /// Number of parameters, biases included.
    pub parameters: usize,
    pub seeds: Vec<u64>,
    /// Training recipe.
    pub recipe: Recipe,
}

impl KindSettings {
    /// Returns the name of the kind's files: `pi-then-e-100-2x32`.
    pub fn name(&self) -> String {
        let label = if self.label.is_empty() { String::new() } else { format!("{}-", self.label) };
        let digits = if self.digits == 0 { String::new() } else { format!("-{}", self.digits) };
        let learn = self.learn.join("-then-").replace('+', "-with-").replace(' ', "");
        format!("{label}{learn}{digits}-{}x{}", self.recipe.hidden_layers, self.width)
    }

    /// Returns the sources of all phases, each once.
    pub(super) fn sources(&self) -> Vec<Source> {
        let mut all = Vec::new();
        for source in (0..self.learn.len()).flat_map(|phase| self.sources_of(phase)) {
            if !all.contains(&source) {
                all.push(source);
            }
        }
        all
    }

    /// Returns the sources of a phase. Names were checked when the file was read.
    pub(super) fn sources_of(&self, phase: usize) -> Vec<Source> {
        self.learn[phase].split('+').filter_map(|name| name.trim().parse().ok()).collect()
    }
}

/// Short training with one learning rate.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Trial {
    /// Peak learning rate.
    pub rate: f64,
    /// Recall after one cycle of the first phase; `None` if it diverged.
    pub recall: Option<CycleRecall>,
}

/// Search of the learning rate.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Search {
    /// All trials.
    pub trials: Vec<Trial>,
    /// Rate of the trial with the lowest cross-entropy.
    pub rate: f64,
}

/// Recall of one source.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SourceRecall {
    /// Name of the source.
    pub source: String,
    /// Number of facts.
    pub facts: usize,
    #[serde(flatten)]
    pub recall: CycleRecall,
}

/// Phase of a training.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PhaseResult {
    /// Recall of the phase's facts after every cycle.
    pub cycles: Vec<CycleRecall>,
    /// Number of the cycle whose weights were kept, from 1.
    pub kept: usize,
    /// Reason for the end.
    pub ending: Ending,
    /// Recall of every source of the network with the kept weights, also of those that are not learnt in this phase.
    pub recall: Vec<SourceRecall>,
}

/// Trained perceptron.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MemoryModel {
    pub seed: u64,
    /// Phases in order.
    pub phases: Vec<PhaseResult>,
}

/// Results of one kind.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct KindResults {
    #[serde(flatten)]
    pub settings: KindSettings,
    /// Search of the learning rate.
    pub search: Search,
    /// Models, in order of seeds; those that are not trained yet are missing.
    pub models: Vec<MemoryModel>,
}

/// Results of a memory file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MemoryResults {
    /// [`MEMORY_FORMAT`].
    pub format: u32,
    /// Title of the file.
    pub title: String,
    /// Number of trainings in the file.
    pub planned: usize,
    /// Kinds, in order.
    pub kinds: Vec<KindResults>,
}

/// Reason why results cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum MemoryResultsError {
    /// The text is not such a file.
    #[error("it is not a file of memory results: {0}")]
    Json(#[from] serde_json::Error),
    /// Another version of the format.
    #[error("it has format {0}, this program reads {MEMORY_FORMAT}; write it again with `earnest train memory`")]
    Format(u32),
    /// The file cannot be read.
    #[error("cannot read it: {0}")]
    Read(#[from] std::io::Error),
}

/// Recall of one source by a kind after a phase, over seeds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Stored {
    /// Share of facts recalled.
    pub right: SeedMean,
    /// Bits per parameter as Arithmetic-Bench counts them: log2(10) for every digit recalled.
    pub gross: SeedMean,
    /// The same net of the digits that a guess gets right, one in ten.
    pub net: SeedMean,
    /// Information per parameter: log2(10) minus the cross-entropy, summed over all digits.
    pub information: SeedMean,
}

impl KindResults {
    /// Returns the recall of a source after a phase, counted from 0; `None` without models or without such a source.
    pub fn stored(&self, phase: usize, source: &str) -> Option<Stored> {
        let parameters = self.settings.parameters as f64;
        let recalls: Vec<&SourceRecall> = self
            .models
            .iter()
            .filter_map(|model| model.phases.get(phase)?.recall.iter().find(|recall| recall.source == source))
            .collect();
        let over = |value: &dyn Fn(&SourceRecall) -> f64| {
            SeedMean::of(&recalls.iter().map(|recall| value(recall)).collect::<Vec<f64>>())
        };
        let right = |recall: &SourceRecall| recall.recall.right as f64;
        let digits = |recall: &SourceRecall| recall.facts as f64;
        Some(Stored {
            right: over(&|recall| right(recall) / digits(recall))?,
            gross: over(&|recall| right(recall) * BITS_PER_DIGIT / parameters)?,
            net: over(&|recall| (right(recall) - 0.1 * digits(recall)) * BITS_PER_DIGIT / parameters)?,
            information: over(&|recall| digits(recall) * (BITS_PER_DIGIT - recall.recall.bits) / parameters)?,
        })
    }

    /// Number of models that recall all facts of all sources at the end.
    pub fn perfect(&self) -> usize {
        let perfect = |model: &&MemoryModel| {
            let recall = model.phases.last().map(|phase| &phase.recall);
            recall.is_some_and(|recall| recall.iter().all(|source| source.recall.right == source.facts))
        };
        self.models.iter().filter(perfect).count()
    }

    /// Cycles of all models and phases: the least and the most.
    pub fn cycles(&self) -> Option<(usize, usize)> {
        let all = || self.models.iter().flat_map(|model| &model.phases).map(|phase| phase.cycles.len());
        Some((all().min()?, all().max()?))
    }

    /// Number of phases of all models that ended for this reason.
    pub fn ended(&self, ending: Ending) -> usize {
        self.models.iter().flat_map(|model| &model.phases).filter(|phase| phase.ending == ending).count()
    }
}

impl MemoryResults {
    /// Formats the results as JSON with one kind per line.
    pub fn to_text(&self) -> String {
        let kinds: Vec<String> = self
            .kinds
            .iter()
            .map(|kind| format!("    {}", serde_json::to_string(kind).expect("numbers and text are JSON")))
            .collect();
        let (title, planned) = (serde_json::json!(self.title), self.planned);
        let filled = if kinds.is_empty() { "[]".to_owned() } else { format!("[\n{}\n  ]", kinds.join(",\n")) };
        format!(
            "{{\n  \"format\": {},\n  \"title\": {title},\n  \"planned\": {planned},\n  \"kinds\": {filled}\n}}\n",
            self.format
        )
    }

    /// Parses the text of a results file.
    ///
    /// # Errors
    /// [`MemoryResultsError`].
    pub fn parse(text: &str) -> Result<Self, MemoryResultsError> {
        #[derive(Deserialize)]
        struct Header {
            format: u32,
        }
        let Header { format } = serde_json::from_str(text)?;
        if format != MEMORY_FORMAT {
            return Err(MemoryResultsError::Format(format));
        }
        Ok(serde_json::from_str(text)?)
    }

    /// Reads a results file.
    ///
    /// # Errors
    /// [`MemoryResultsError`].
    pub fn read(path: &Path) -> Result<Self, MemoryResultsError> {
        Self::parse(&earnest_digest::input::read_text(path, earnest_digest::input::MOST_DOCUMENT)?)
    }

    pub fn of<'a>(&'a self, experiment: &'a str) -> impl Iterator<Item = &'a KindResults> {
        self.kinds.iter().filter(move |kind| kind.settings.experiment == experiment)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind() -> KindResults {
        let recipe: Recipe = serde_json::from_value(serde_json::json!({
            "rates": [0.01], "batch": 10, "cycle": 10, "patience": 1, "gain": 0.01, "most_cycles": 1
        }))
        .unwrap();
        let settings = KindSettings {
            experiment: "forgetting".into(),
            label: String::new(),
            learn: vec!["pi".into(), "e + pi".into()],
            digits: 100,
            width: 8,
            parameters: 100,
            seeds: vec![1, 2],
            recipe,
        };
        let recall = |source: &str, right, bits| SourceRecall {
            source: source.into(),
            facts: 100,
            recall: CycleRecall { right, bits },
        };
        let model = |seed, right, bits| MemoryModel {
            seed,
            phases: vec![PhaseResult {
                cycles: vec![CycleRecall { right, bits }],
                kept: 1,
                ending: Ending::MostCycles,
                recall: vec![recall("pi", right, bits), recall("e", 100, 0.0)],
            }],
        };
        let trial = Trial { rate: 0.01, recall: None };
        let search = Search { trials: vec![trial], rate: 0.01 };
        KindResults { settings, search, models: vec![model(1, 50, 2.0), model(2, 70, 1.0)] }
    }

    #[test]
    fn information_is_counted_three_ways() {
        let kind = kind();
        let stored = kind.stored(0, "pi").unwrap();
        assert!((stored.right.mean - 0.6).abs() < 1e-12);
        // 60 digits of 3.32193 bits in 100 parameters; 10 of them are luck.
        assert!((stored.gross.mean - 1.993_157).abs() < 1e-6, "{stored:?}");
        assert!((stored.net.mean - 1.660_964).abs() < 1e-6, "{stored:?}");
        assert!((stored.information.mean - 1.821_928).abs() < 1e-6, "{stored:?}");
        // A difference of 20 digits between two seeds: ±10 digits is the standard error, 12.706 the quantile.
        let interval = stored.right.interval().unwrap();
        assert!((interval.high - (0.6 + 0.1 * 12.706_205)).abs() < 1e-6, "{interval:?}");
        assert_eq!(kind.stored(0, "table"), None);
        assert_eq!(kind.stored(1, "pi"), None);
        assert_eq!((kind.perfect(), kind.cycles(), kind.ended(Ending::MostCycles)), (0, Some((1, 1)), 2));
        assert_eq!(kind.settings.name(), "pi-then-e-with-pi-100-2x8");
        assert_eq!(kind.settings.sources().len(), 2);
    }

    #[test]
    fn results_are_read_as_they_were_written() {
        let results =
            MemoryResults { format: MEMORY_FORMAT, title: "a \"test\"".into(), planned: 2, kinds: vec![kind()] };
        assert_eq!(MemoryResults::parse(&results.to_text()).unwrap(), results);
        let empty = MemoryResults { kinds: Vec::new(), ..results };
        assert_eq!(MemoryResults::parse(&empty.to_text()).unwrap(), empty);
        let later = empty.to_text().replace("\"format\": 1", "\"format\": 2");
        assert!(MemoryResults::parse(&later).unwrap_err().to_string().contains("format 2"));
    }
}
