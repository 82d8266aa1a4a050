//! The experiment file: TOML to trainings.
use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::cell::{CellChoice, GridCell, NumberStyle, position, size, tokenizer};
use crate::{AdamWSettings, NextTasks, StoredType, TrainError, TrainSettings};

/// Why an experiment can not be run.
#[derive(Debug, thiserror::Error)]
pub enum ExperimentError {
    /// The file, or what it says.
    #[error("{}: {problem}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        problem: String,
    },
    /// A folder of results that is not this experiment's, or damaged.
    #[error("{}: {problem}", path.display())]
    Folder {
        /// The folder or a file in it.
        path: PathBuf,
        /// What is wrong.
        problem: String,
    },
    /// A training failed.
    #[error("{cell}: {source}")]
    Training {
        /// Its name.
        cell: String,
        /// Why.
        source: Box<TrainError>,
    },
    /// A trained model can not be asked.
    #[error("{cell}: {problem}")]
    Evaluation {
        /// Its name.
        cell: String,
        /// Why.
        problem: String,
    },
}

/// An experiment.
#[derive(Debug, Clone, PartialEq)]
pub struct Experiment {
    /// What it is about.
    pub title: String,
    /// Seeds of every training.
    pub seeds: Vec<u64>,
    /// Questions of each task and length that a finished model is asked, of the part `test`.
    pub questions: usize,
    /// The trainings, each once however many grids ask for it.
    pub cells: Vec<GridCell>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    title: String,
    seeds: Vec<u64>,
    #[serde(default = "hundred")]
    questions: usize,
    #[serde(default)]
    training: toml::Table,
    grid: Vec<toml::Table>,
}

fn hundred() -> usize {
    100
}

/// A grid, its own keys over those of `[training]`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Grid {
    name: String,
    #[serde(default)]
    label: String,
    task: Several,
    #[serde(default = "one_digit")]
    tokenizer: Several,
    #[serde(default = "rope")]
    position: Several,
    #[serde(default = "plain")]
    format: Several,
    #[serde(default = "smallest")]
    size: Several,
    /// Tasks after the first ones, and the steps before them.
    #[serde(default)]
    then: Option<Several>,
    #[serde(default)]
    then_after: Option<u64>,
    lengths: Digits,
    #[serde(default)]
    beyond: Option<Digits>,
    #[serde(default)]
    any_shorter_operand: bool,
    #[serde(default = "words")]
    words: usize,
    #[serde(default = "context")]
    context: usize,
    steps: u64,
    #[serde(default = "batch")]
    batch: usize,
    #[serde(default = "rate")]
    learning_rate: f64,
    #[serde(default = "warm_up")]
    warm_up: u64,
    #[serde(default = "clip")]
    clip: f64,
    #[serde(default = "weight_decay")]
    weight_decay: f64,
    #[serde(default = "beta2")]
    beta2: f64,
    #[serde(default = "validate_every")]
    validate_every: u64,
    #[serde(default = "validation")]
    validation: usize,
    #[serde(default = "parts")]
    parts: usize,
    #[serde(default)]
    store: StoredType,
}

/// One text or several; numbers count as texts.
#[derive(Deserialize)]
#[serde(untagged)]
enum Several {
    Number(i64),
    Text(String),
    List(Vec<Several>),
}

impl Several {
    fn values(&self) -> Vec<String> {
        match self {
            Several::Number(number) => vec![number.to_string()],
            Several::Text(text) => vec![text.clone()],
            Several::List(list) => list.iter().flat_map(Several::values).collect(),
        }
    }
}

/// Lengths: a number, a list, or ranges as `"1-4,6"`.
#[derive(Deserialize)]
#[serde(untagged)]
enum Digits {
    Number(usize),
    Text(String),
    List(Vec<usize>),
}

impl Digits {
    fn values(&self) -> Result<Vec<usize>, String> {
        let text = match self {
            Digits::Number(number) => return of_one_up(vec![*number]),
            Digits::List(list) => return of_one_up(list.clone()),
            Digits::Text(text) => text,
        };
        let wrong = || format!("{text:?} are no lengths; write e.g. 1-4,6");
        let mut all = Vec::new();
        for part in text.split(',') {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            let number = |text: &str| text.trim().parse::<usize>().ok().filter(|n| (1..=100_000).contains(n));
            match (number(first), number(last)) {
                (Some(first), Some(last)) if first <= last => all.extend(first..=last),
                _ => return Err(wrong()),
            }
        }
        Ok(all)
    }
}

/// Lengths without 0.
fn of_one_up(lengths: Vec<usize>) -> Result<Vec<usize>, String> {
    match lengths.contains(&0) {
        true => Err("0 is no length; write lengths from 1 up, e.g. 1-4,6".to_owned()),
        false => Ok(lengths),
    }
}

// The command line's defaults.
fn one_digit() -> Several {
    Several::Text("1".into())
}
fn rope() -> Several {
    Several::Text("rope".into())
}
fn plain() -> Several {
    Several::Text("plain".into())
}
fn smallest() -> Several {
    Several::Text("0.3m".into())
}
fn words() -> usize {
    1024
}
fn context() -> usize {
    512
}
fn batch() -> usize {
    128
}
fn rate() -> f64 {
    2e-3
}
fn warm_up() -> u64 {
    100
}
fn clip() -> f64 {
    AdamWSettings::default().clip
}
fn weight_decay() -> f64 {
    AdamWSettings::default().weight_decay
}
fn beta2() -> f64 {
    AdamWSettings::default().beta2
}
fn validate_every() -> u64 {
    250
}
fn validation() -> usize {
    50
}
fn parts() -> usize {
    2
}

impl Experiment {
    /// Reads a file.
    ///
    /// # Errors
    /// [`ExperimentError::File`] with the grid and key that make no sense.
    pub fn read(path: &Path) -> Result<Self, ExperimentError> {
        let failed = |problem: String| ExperimentError::File { path: path.to_owned(), problem };
        let text = std::fs::read_to_string(path).map_err(|error| failed(error.to_string()))?;
        Self::parse(&text).map_err(failed)
    }

    /// Reads a text.
    ///
    /// # Errors
    /// What makes no sense, in a sentence.
    pub fn parse(text: &str) -> Result<Self, String> {
        let written: Written = toml::from_str(text).map_err(|error| error.to_string().trim().to_owned())?;
        if written.seeds.is_empty() || written.grid.is_empty() || written.questions == 0 {
            return Err("it needs at least one seed, one [[grid]] and one question".into());
        }
        if let Some(twice) = repeated(&written.seeds) {
            return Err(format!("seed {twice} is named twice"));
        }
        let mut cells: Vec<GridCell> = Vec::new();
        let mut names: Vec<String> = Vec::new();
        for (number, own) in written.grid.iter().enumerate() {
            let mut table = written.training.clone();
            table.extend(own.clone());
            let shown = own
                .get("name")
                .and_then(toml::Value::as_str)
                .map_or_else(|| format!("grid {}", number + 1), |name| format!("grid {name:?}"));
            let named = |problem: String| format!("{shown}: {problem}");
            let grid: Grid =
                toml::Value::Table(table).try_into().map_err(|error| named(error.to_string().trim().to_owned()))?;
            if names.contains(&grid.name) {
                return Err(named("there is another grid of this name".into()));
            }
            names.push(grid.name.clone());
            for cell in grid.cells(&written.seeds).map_err(named)? {
                match cells.iter_mut().find(|known| known.name() == cell.name()) {
                    Some(known) if known.settings == cell.settings => known.grids.push(grid.name.clone()),
                    Some(known) => {
                        return Err(named(format!(
                            "{} is another training than the one of this name in grid {:?}; give this grid a label",
                            cell.name(),
                            known.grids[0]
                        )));
                    }
                    None => cells.push(cell),
                }
            }
        }
        Ok(Experiment { title: written.title, seeds: written.seeds, questions: written.questions, cells })
    }
}

fn repeated<T: PartialEq>(values: &[T]) -> Option<&T> {
    values.iter().enumerate().find(|(place, value)| values[..*place].contains(value)).map(|(_, value)| value)
}

impl Grid {
    /// The product of the axes; the seed varies slowest, so that the first seed of everything is there first.
    fn cells(&self, seeds: &[u64]) -> Result<Vec<GridCell>, String> {
        let plain_label = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
        if !self.label.chars().all(plain_label) || self.label.starts_with('.') {
            return Err(format!("label {:?}: letters, digits, -, _ and . only", self.label));
        }
        let axes = [&self.task, &self.tokenizer, &self.position, &self.format, &self.size].map(Several::values);
        for (axis, values) in ["task", "tokenizer", "position", "format", "size"].into_iter().zip(&axes) {
            if values.is_empty() {
                return Err(format!("{axis} is an empty list"));
            }
            if let Some(twice) = repeated(values) {
                return Err(format!("{axis}: {twice} is named twice"));
            }
        }
        let [tasks, tokenizers, positions, formats, sizes] = axes;
        let mut cells = Vec::new();
        for &seed in seeds {
            for size in &sizes {
                for task in &tasks {
                    for tokenizer in &tokenizers {
                        for position in &positions {
                            for format in &formats {
                                let choice = CellChoice {
                                    task: task.clone(),
                                    tokenizer: tokenizer.clone(),
                                    position: position.clone(),
                                    format: format.clone(),
                                    size: size.clone(),
                                    label: self.label.clone(),
                                };
                                let settings = self.settings(&choice, seed)?;
                                settings.check().map_err(|error| error.to_string())?;
                                cells.push(GridCell { choice, seed, settings, grids: vec![self.name.clone()] });
                            }
                        }
                    }
                }
            }
        }
        Ok(cells)
    }

    fn settings(&self, choice: &CellChoice, seed: u64) -> Result<TrainSettings, String> {
        Ok(TrainSettings {
            size: size(&choice.size)?,
            position: position(&choice.position)?,
            tokenizer: tokenizer(&choice.tokenizer, self.words)?,
            tasks: choice.task.split(',').map(|task| task.trim().to_owned()).collect(),
            then: match (&self.then, self.then_after) {
                (None, None) => None,
                (Some(tasks), Some(after)) => Some(NextTasks { tasks: tasks.values(), after }),
                _ => return Err("then and then_after go together".into()),
            },
            lengths: self.lengths.values()?,
            beyond: self.beyond.as_ref().map(Digits::values).transpose()?.unwrap_or_default(),
            format: choice.format.parse::<NumberStyle>()?.0,
            any_shorter_operand: self.any_shorter_operand,
            seed,
            batch: self.batch,
            steps: self.steps,
            learning_rate: self.learning_rate,
            warm_up: self.warm_up,
            optimiser: AdamWSettings {
                clip: self.clip,
                weight_decay: self.weight_decay,
                beta2: self.beta2,
                ..AdamWSettings::default()
            },
            validate_every: self.validate_every,
            validation: self.validation,
            context: self.context,
            parts: self.parts,
            stored: self.store,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = r#"
title = "a test"
seeds = [1, 2]

[training]
task = "add_Integer"
lengths = "1-3"
beyond = [4, 5]
steps = 10

[[grid]]
name = "tokenizers"
tokenizer = [1, "3", "3-random"]

[[grid]]
name = "encodings"
position = ["rope", "nope"]
format = ["plain", "reversed+padded"]
"#;

    #[test]
    fn grids_share_trainings() {
        let experiment = Experiment::parse(FILE).unwrap();
        let names: Vec<String> = experiment.cells.iter().map(GridCell::name).collect();
        assert_eq!(names.len(), 2 * (3 + 4 - 1), "{names:?}");
        assert_eq!(names[0], "add_Integer-digits1-rope-plain-0.3m-seed1");
        assert_eq!(experiment.cells[0].grids, ["tokenizers", "encodings"]);
        assert!(names.contains(&"add_Integer-digits3-random-rope-plain-0.3m-seed2".to_owned()));
        let cell = experiment.cells.iter().find(|cell| cell.choice.format == "reversed+padded").unwrap();
        assert_eq!((cell.settings.format.reversal.as_str(), cell.settings.format.zero_padding), ("int", true));
        assert_eq!((&cell.settings.lengths[..], &cell.settings.beyond[..]), (&[1, 2, 3][..], &[4, 5][..]));
    }

    #[test]
    fn what_makes_no_sense_is_named() {
        for (from, to, named) in [
            ("steps = 10", "step = 10", "step"),
            ("seeds = [1, 2]", "seeds = [1, 1]", "seed 1"),
            ("seeds = [1, 2]", "seeds = []", "at least one seed"),
            (r#""3-random""#, r#""4""#, "no tokenizer"),
            (r#""nope""#, r#""learned""#, "no positional encoding"),
            (r#""plain", "#, r#""plain", "plain", "#, "named twice"),
            ("reversed+padded", "backwards", "no format"),
            (r#""add_Integer""#, r#""addd_Integer""#, "addd"),
            (r#"lengths = "1-3""#, r#"lengths = "3-1""#, "no lengths"),
            (r#"lengths = "1-3""#, "lengths = 0", "0 is no length"),
            (r#"lengths = "1-3""#, "lengths = [1, 0]", "0 is no length"),
            (r#"lengths = "1-3""#, "lengths = 500", "no question of these lengths"),
            (r#""3-random""#, "\"3-random\"]\nformat = [\"hinted\"", "random groups"),
            ("beyond = [4, 5]", "beyond = [3]", "length 3"),
            (r#"name = "encodings""#, r#"name = "tokenizers""#, "another grid"),
            (r#"name = "encodings""#, "name = \"encodings\"\nsteps = 20", "label"),
            (r#"name = "encodings""#, "name = \"encodings\"\nlabel = \"../x\"", "letters"),
            (r#"name = "encodings""#, "name = \"encodings\"\nsize = \"2,64,256,3,2\"", "heads"),
        ] {
            let wrong = Experiment::parse(&FILE.replacen(from, to, 1)).unwrap_err();
            assert!(wrong.contains(named), "{to}: {wrong}");
        }
    }
}
