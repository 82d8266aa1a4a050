//! Memory files: TOML that lists kinds of perceptrons and the facts that they learn.
use std::collections::HashMap;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::facts::{Source, UnknownSource, shape};
use super::recipe::Recipe;
use super::results::KindSettings;
use crate::memorise::MAX_DIGITS;
use crate::toml_place::{at, line_of};
use earnest_digest::toml_file::{self, TomlError};

/// Most trainings of a file: kinds times seeds.
const MOST_TRAININGS: usize = 10_000;

/// Most parameters of a perceptron: with the optimiser's, some gigabytes.
const MOST_PARAMETERS: usize = 100_000_000;

/// Memory file: kinds of perceptrons, each trained with every seed.
#[derive(Debug, Clone, PartialEq)]
pub struct MemoryFile {
    pub title: String,
    /// Kinds, in order.
    pub kinds: Vec<KindSettings>,
}

/// Reason why a memory file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum MemoryFileError {
    /// The file cannot be read.
    #[error("cannot read {}: {source}", path.display())]
    Read {
        /// Path of the file.
        path: PathBuf,
        /// Error of the operating system.
        source: std::io::Error,
    },
    /// The text is not TOML, or a top-level key is missing or unknown.
    #[error("{0}")]
    Toml(String),
    /// There is nothing to train.
    #[error("a memory file needs at least one [[experiment]]")]
    Empty,
    /// An experiment is invalid.
    #[error("{}experiment {experiment}: {source}", at(*line))]
    Experiment {
        /// Line of the key that is wrong, else of the experiment.
        line: Option<usize>,
        /// Quoted name of the experiment, or its number.
        experiment: String,
        /// The defect.
        source: Box<MemoryExperimentError>,
    },
}

/// Defect of an experiment.
#[derive(Debug, thiserror::Error)]
pub enum MemoryExperimentError {
    /// A key is missing, unknown or of another type.
    #[error("{}", .0.sentence())]
    Toml(#[from] TomlError),
    #[error("learn: {0}")]
    Source(#[from] UnknownSource),
    /// A setting makes no sense.
    #[error("{setting} {problem}")]
    Setting {
        /// Name of the setting.
        setting: &'static str,
        problem: String,
    },
    /// Two different trainings would have the same name.
    #[error("{name} is in {other:?} too, with other settings; give one of them a label")]
    NameConflict {
        /// Name of the kind.
        name: String,
        /// Name of the other experiment.
        other: String,
    },
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FileContent {
    title: String,
    #[serde(default)]
    training: toml::Table,
    experiment: Vec<toml::Table>,
}

/// Content of an `[[experiment]]`, with `[training]` as its defaults.
#[derive(Deserialize)]
struct Experiment {
    name: String,
    #[serde(default)]
    label: String,
    seeds: Vec<u64>,
    /// Sources of each phase.
    learn: Vec<String>,
    #[serde(default)]
    digits: Vec<usize>,
    width: Vec<usize>,
    #[serde(flatten)]
    recipe: toml::Table,
}

impl MemoryFile {
    /// Reads a memory file.
    ///
    /// # Errors
    /// [`MemoryFileError`].
    pub fn read(path: &Path) -> Result<Self, MemoryFileError> {
        let text = earnest_digest::input::read_text(path, earnest_digest::input::MOST_SETTINGS)
            .map_err(|source| MemoryFileError::Read { path: path.to_owned(), source })?;
        Self::parse(&text)
    }

    /// Parses the text of a memory file.
    ///
    /// # Errors
    /// [`MemoryFileError`] with the first defect.
    pub fn parse(text: &str) -> Result<Self, MemoryFileError> {
        let file: FileContent = toml_file::read(text).map_err(|error| MemoryFileError::Toml(error.sentence()))?;
        if file.experiment.is_empty() {
            return Err(MemoryFileError::Empty);
        }
        let mut kinds = Kinds::default();
        for (number, own) in file.experiment.iter().enumerate() {
            let mut table = file.training.clone();
            table.extend(own.clone());
            add_experiment(table, &mut kinds).map_err(|source| {
                let name = own.get("name").and_then(toml::Value::as_str);
                let experiment = name.map_or_else(|| (number + 1).to_string(), |name| format!("{name:?}"));
                let key = if let MemoryExperimentError::Setting { setting, .. } = &source { setting } else { "name" };
                let line = line_of(text, Some(("experiment", number)), key);
                MemoryFileError::Experiment { line, experiment, source: Box::new(source) }
            })?;
        }
        Ok(MemoryFile { title: file.title, kinds: kinds.all })
    }

    /// Number of trainings.
    pub fn trainings(&self) -> usize {
        self.kinds.iter().map(|kind| kind.seeds.len()).sum()
    }
}

/// Kinds of the experiments so far.
#[derive(Default)]
struct Kinds {
    all: Vec<KindSettings>,
    /// Experiments by the name of a kind.
    experiments: HashMap<String, String>,
    trainings: usize,
}

fn add_experiment(table: toml::Table, kinds: &mut Kinds) -> Result<(), MemoryExperimentError> {
    let experiment: Experiment = toml_file::from_table(table)?;
    let recipe: Recipe = toml_file::from_table(experiment.recipe)?;
    let wrong = |setting, problem: &str| Err(MemoryExperimentError::Setting { setting, problem: problem.to_owned() });
    if let Some((setting, problem)) = recipe.defect() {
        return wrong(setting, problem);
    }
    let mut seeds = experiment.seeds.clone();
    seeds.sort_unstable();
    seeds.dedup();
    if seeds.is_empty() || seeds.len() < experiment.seeds.len() {
        return wrong("seeds", "must be at least one, and each only once");
    }
    if seeds.contains(&recipe.trial_seed) {
        return wrong("seeds", "must not contain trial_seed: the learning rate would be chosen by a result");
    }
    if !experiment.label.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') {
        return wrong("label", "may have letters, digits and _ only");
    }
    let phases: Vec<Vec<Source>> = experiment
        .learn
        .iter()
        .map(|phase| phase.split('+').map(|name| name.trim().parse()).collect())
        .collect::<Result<_, UnknownSource>>()?;
    let sources: Vec<Source> = phases.iter().flatten().copied().collect();
    if sources.is_empty() {
        return wrong("learn", "must have at least one source: pi, e or table");
    }
    let table = sources.contains(&Source::Table);
    if table && sources.iter().any(|source| *source != Source::Table) {
        return wrong("learn", "cannot have the table beside digits, whose outputs are others");
    }
    if experiment.digits.iter().any(|digits| !(2..=MAX_DIGITS).contains(digits)) {
        return wrong("digits", &format!("must be 2 to {MAX_DIGITS}"));
    }
    let digits = match (table, &experiment.digits[..]) {
        (true, []) => vec![0],
        (true, _) => return wrong("digits", "has no meaning for the table"),
        (false, []) => return wrong("digits", "must have at least one number of digits"),
        (false, digits) => digits.to_vec(),
    };
    if experiment.width.is_empty() || experiment.width.iter().any(|width| !(1..=4096).contains(width)) {
        return wrong("width", "must have at least one number from 1 to 4096");
    }
    let own = digits.len().saturating_mul(experiment.width.len()).saturating_mul(experiment.seeds.len());
    kinds.trainings = kinds.trainings.saturating_add(own);
    if kinds.trainings > MOST_TRAININGS {
        let problem =
            format!("make {} trainings so far, with digits and width; {MOST_TRAININGS} are possible", kinds.trainings);
        return wrong("seeds", &problem);
    }
    for &digits in &digits {
        for &width in &experiment.width {
            let mut kind = KindSettings {
                experiment: experiment.name.clone(),
                label: experiment.label.clone(),
                learn: experiment.learn.clone(),
                digits,
                width,
                parameters: 0,
                seeds: experiment.seeds.clone(),
                recipe: recipe.clone(),
            };
            kind.parameters = shape(&kind.sources(), digits, width, recipe.hidden_layers).parameters();
            if kind.parameters > MOST_PARAMETERS {
                let problem = format!("{width} makes {} parameters, more than {MOST_PARAMETERS}", kind.parameters);
                return wrong("width", &problem);
            }
            if let Some(other) = kinds.experiments.insert(kind.name(), kind.experiment.clone()) {
                return Err(MemoryExperimentError::NameConflict { name: kind.name(), other });
            }
            kinds.all.push(kind);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = r#"
title = "a test"

[training]
seeds = [1, 2]
rates = [0.01, 0.03]
batch = 1000
cycle = 100
patience = 2
gain = 0.01
most_cycles = 5

[[experiment]]
name = "capacity"
learn = ["pi"]
digits = [100, 1000]
width = [8, 16]

[[experiment]]
name = "table"
learn = ["table"]
width = [6]
hidden_layers = 1
seeds = [7]
"#;

    #[test]
    fn experiments_are_products_and_override_the_training() {
        let file = MemoryFile::parse(FILE).unwrap();
        let names: Vec<String> = file.kinds.iter().map(KindSettings::name).collect();
        assert_eq!(names, ["pi-100-2x8", "pi-100-2x16", "pi-1000-2x8", "pi-1000-2x16", "table-1x6"]);
        let parameters: Vec<usize> = file.kinds.iter().map(|kind| kind.parameters).collect();
        assert_eq!(parameters, [330, 778, 410, 938, 247]);
        assert_eq!((file.trainings(), &file.kinds[4].seeds[..]), (9, &[7][..]));
    }

    #[test]
    fn the_number_of_trainings_is_bounded() {
        let seeds: Vec<String> = (1..=100_000).map(|seed| seed.to_string()).collect();
        let many = FILE.replacen("seeds = [7]", &format!("seeds = [{}]", seeds.join(", ")), 1);
        let error = MemoryFile::parse(&many).unwrap_err().to_string();
        assert!(error.contains("100008 trainings") && error.contains("10000 are possible"), "{error}");
        let more: String = (0..3_000)
            .map(|n| format!("[[experiment]]\nname = \"e{n}\"\nlabel = \"l{n}\"\nlearn = [\"table\"]\nwidth = [6]\n"))
            .collect();
        assert_eq!(MemoryFile::parse(&format!("{FILE}\n{more}")).unwrap().kinds.len(), 3_005);
    }

    #[test]
    fn defects_are_named() {
        for (from, to, named) in [
            ("learn = [\"pi\"]", "learn = [\"phi\"]", "phi"),
            ("learn = [\"pi\"]", "learn = []", "learn"),
            ("learn = [\"pi\"]", "learn = [\"pi+table\"]", "beside digits"),
            ("digits = [100, 1000]", "digits = [1]", "digits"),
            ("digits = [100, 1000]", "", "digits"),
            ("hidden_layers = 1", "hidden_layers = 0", "hidden_layers"),
            ("hidden_layers = 1", "hiden_layers = 1", "hiden_layers"),
            ("hidden_layers = 1", "hidden_layers = 1000000000", "at most 64"),
            ("seeds = [7]", "seeds = [0]", "trial_seed"),
            ("seeds = [7]", "seeds = [7, 7]", "only once"),
            ("seeds = [7]", "digits = [100]", "no meaning"),
            ("width = [8, 16]", "width = [0]", "width"),
            ("width = [8, 16]", "width = [8, 8]", "pi-100-2x8"),
            ("cycle = 100", "", "cycle"),
        ] {
            let error = MemoryFile::parse(&FILE.replacen(from, to, 1)).unwrap_err().to_string();
            assert!(error.contains(named), "{to}: {error}");
        }
        let layers = FILE.replacen("batch = 1000", "batch = 1000\nhidden_layers = 60", 1);
        let error =
            MemoryFile::parse(&layers.replacen("width = [8, 16]", "width = [4096]", 1)).unwrap_err().to_string();
        assert!(error.contains("parameters, more than 100000000"), "{error}");
    }
}
