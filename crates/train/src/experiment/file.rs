//! Experiment files: TOML that expands to trainings.
use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};
use std::hash::Hash;
use std::path::Path;

use serde::Deserialize;

use super::cell::{CellChoice, GridCell, NumberStyle, position, size, tokenizer};
use super::error::{ExperimentError, ExperimentFileError, GridError};
use crate::toml_place::line_of;
use crate::{AdamWSettings, Criterion, Goal, NextTasks, SplitVersion, StoredType, TrainSettings};
use earnest_digest::toml_file;

/// Most test questions per task and length.
const MOST_QUESTIONS: usize = 1_000_000;

/// Most lengths of a list, repeats counted, and lengths of all trainings together, which are held in memory.
const MOST_LENGTHS: usize = 100_000;
const MOST_LENGTHS_IN_ALL: usize = 10_000_000;

/// Most seeds, grids and trainings of a file.
const MOST_SEEDS: usize = 1_000;
const MOST_GRIDS: usize = 1_000;
const MOST_TRAININGS: usize = 10_000;

/// Experiment: the trainings of one file.
#[derive(Debug, Clone, PartialEq)]
pub struct Experiment {
    pub title: String,
    /// Seeds of every training.
    pub seeds: Vec<u64>,
    /// Test questions per task and length for a trained model.
    pub questions: usize,
    /// Trainings; one that several grids share is listed once.
    pub cells: Vec<GridCell>,
}

/// Content of an experiment file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ExperimentFile {
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

/// Content of a `[[grid]]`, with `[training]` as its defaults, and those of [`TrainSettings`] behind it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Grid {
    name: String,
    #[serde(default)]
    label: String,
    task: OneOrMany,
    tokenizer: Option<OneOrMany>,
    position: Option<OneOrMany>,
    format: Option<OneOrMany>,
    size: Option<OneOrMany>,
    /// Styles of the answers.
    style: Option<Styles>,
    /// Tasks of a second phase, and the steps of the first.
    then: Option<OneOrMany>,
    then_after: Option<u64>,
    lengths: Lengths,
    beyond: Option<Lengths>,
    #[serde(default)]
    any_shorter_operand: bool,
    #[serde(default)]
    splits: SplitVersion,
    words: Option<usize>,
    context: Option<usize>,
    steps: u64,
    /// Criterion that ends a training before, and restarts while it is not reached.
    until: Option<String>,
    restarts: Option<u64>,
    batch: Option<usize>,
    learning_rate: Option<f64>,
    warm_up: Option<u64>,
    clip: Option<f64>,
    weight_decay: Option<f64>,
    beta2: Option<f64>,
    validate_every: Option<u64>,
    validation: Option<usize>,
    parts: Option<usize>,
    #[serde(default)]
    store: StoredType,
}

/// One value or a list; numbers count as text.
#[derive(Deserialize)]
#[serde(untagged)]
enum OneOrMany {
    Number(i64),
    Text(String),
    List(Vec<OneOrMany>),
}

impl OneOrMany {
    fn values(&self) -> Vec<String> {
        match self {
            OneOrMany::Number(number) => vec![number.to_string()],
            OneOrMany::Text(text) => vec![text.clone()],
            OneOrMany::List(list) => list.iter().flat_map(OneOrMany::values).collect(),
        }
    }
}

/// Styles of one model: a list, or joined by commas.
#[derive(Deserialize)]
#[serde(transparent)]
struct Styles(OneOrMany);

impl Styles {
    fn values(&self) -> Vec<String> {
        self.0.values().iter().flat_map(|text| text.split(',').map(str::to_owned).collect::<Vec<_>>()).collect()
    }
}

/// Lengths: a number, a list, or ranges such as `"1-4,6"`.
#[derive(Deserialize)]
#[serde(untagged)]
enum Lengths {
    Number(usize),
    Text(String),
    List(Vec<usize>),
}

impl Lengths {
    fn values(&self) -> Result<Vec<usize>, GridError> {
        let text = match self {
            Lengths::Number(number) => return positive(vec![*number]),
            Lengths::List(list) if list.len() > MOST_LENGTHS => return Err(GridError::ManyLengths(MOST_LENGTHS)),
            Lengths::List(list) => return positive(list.clone()),
            Lengths::Text(text) => text,
        };
        let mut all = Vec::new();
        for part in text.split(',') {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            let number = |text: &str| text.trim().parse::<usize>().ok().filter(|n| (1..=100_000).contains(n));
            match (number(first), number(last)) {
                (Some(first), Some(last)) if last.saturating_sub(first) >= MOST_LENGTHS - all.len() => {
                    return Err(GridError::ManyLengths(MOST_LENGTHS));
                }
                (Some(first), Some(last)) if first <= last => all.extend(first..=last),
                _ => return Err(GridError::Lengths(text.clone())),
            }
        }
        Ok(all)
    }
}

/// Checks that no length is 0.
fn positive(lengths: Vec<usize>) -> Result<Vec<usize>, GridError> {
    if lengths.contains(&0) { Err(GridError::ZeroLength) } else { Ok(lengths) }
}

impl Experiment {
    /// Reads an experiment file.
    ///
    /// # Errors
    /// [`ExperimentError::Read`], [`ExperimentError::File`].
    pub fn read(path: &Path) -> Result<Self, ExperimentError> {
        let text = earnest_digest::input::read_text(path, earnest_digest::input::MOST_SETTINGS)
            .map_err(|source| ExperimentError::Read { path: path.to_owned(), source })?;
        Self::parse(&text).map_err(|source| ExperimentError::File { path: path.to_owned(), source })
    }

    /// Parses the text of an experiment file.
    ///
    /// # Errors
    /// [`ExperimentFileError`] with the first defect.
    pub fn parse(text: &str) -> Result<Self, ExperimentFileError> {
        let file: ExperimentFile =
            toml_file::read(text).map_err(|error| ExperimentFileError::Toml(error.sentence()))?;
        if file.seeds.is_empty() || file.grid.is_empty() || file.questions == 0 {
            return Err(ExperimentFileError::Empty);
        }
        for (key, count, most) in [("seeds", file.seeds.len(), MOST_SEEDS), ("[[grid]]", file.grid.len(), MOST_GRIDS)] {
            if count > most {
                let line = line_of(text, None, key.trim_matches(['[', ']']));
                return Err(ExperimentFileError::TooMany { line, key, count, most });
            }
        }
        if file.questions > MOST_QUESTIONS {
            let (line, count) = (line_of(text, None, "questions"), file.questions);
            return Err(ExperimentFileError::Questions { line, count, most: MOST_QUESTIONS });
        }
        if let Some(&seed) = repeated(&file.seeds) {
            return Err(ExperimentFileError::RepeatedSeed(seed));
        }
        let mut cells = Cells::default();
        let mut names = HashSet::new();
        for (number, own) in file.grid.iter().enumerate() {
            let mut table = file.training.clone();
            table.extend(own.clone());
            add_grid(table, &file.seeds, file.questions, &mut names, &mut cells).map_err(|source| {
                let line = line_of(text, Some(("grid", number)), source.key());
                let name = own.get("name").and_then(toml::Value::as_str);
                let grid = name.map_or_else(|| (number + 1).to_string(), |name| format!("{name:?}"));
                ExperimentFileError::Grid { line, grid, source: Box::new(source) }
            })?;
        }
        Ok(Experiment { title: file.title, seeds: file.seeds, questions: file.questions, cells: cells.all })
    }
}

/// Adds a grid's name to `names` and its trainings to `cells`; a training that is there already gets the grid's name.
fn add_grid(
    table: toml::Table,
    seeds: &[u64],
    questions: usize,
    names: &mut HashSet<String>,
    cells: &mut Cells,
) -> Result<(), GridError> {
    let grid: Grid = toml_file::from_table(table)?;
    if !names.insert(grid.name.clone()) {
        return Err(GridError::RepeatedName);
    }
    cells.expanded = cells.expanded.saturating_add(grid.trainings(seeds.len()));
    if cells.expanded > MOST_TRAININGS {
        return Err(GridError::TooMany { trainings: cells.expanded, most: MOST_TRAININGS });
    }
    let lengths = grid.lengths.values()?.len()
        + grid.beyond.as_ref().map_or(Ok(0), |beyond| beyond.values().map(|all| all.len()))?;
    cells.lengths = cells.lengths.saturating_add(lengths.saturating_mul(grid.trainings(seeds.len())));
    if cells.lengths > MOST_LENGTHS_IN_ALL {
        return Err(GridError::ManyLengthsInAll { lengths: cells.lengths, most: MOST_LENGTHS_IN_ALL });
    }
    for cell in grid.cells(seeds)? {
        cell.settings.check_questions("questions", questions)?;
        match cells.by_name.entry(cell.name()) {
            Entry::Vacant(free) => {
                free.insert(cells.all.len());
                cells.all.push(cell);
            }
            Entry::Occupied(known) => {
                let known = &mut cells.all[*known.get()];
                if known.settings != cell.settings {
                    return Err(GridError::NameConflict { cell: cell.name(), other: known.grids[0].clone() });
                }
                known.grids.push(grid.name.clone());
            }
        }
    }
    Ok(())
}

/// Trainings of the grids so far.
#[derive(Default)]
struct Cells {
    all: Vec<GridCell>,
    /// Indices into them.
    by_name: HashMap<String, usize>,
    /// Trainings that the grids expand to, those that they share counted each time.
    expanded: usize,
    /// Lengths of all of them.
    lengths: usize,
}

/// Returns the first value that occurs twice.
fn repeated<T: Eq + Hash>(values: &[T]) -> Option<&T> {
    let mut known = HashSet::new();
    values.iter().find(|value| !known.insert(*value))
}

impl Grid {
    /// Values of the axes: task, tokenizer, position, format and size.
    fn axes(&self) -> [Vec<String>; 5] {
        let values = |axis: &Option<OneOrMany>, default: &str| {
            axis.as_ref().map_or_else(|| vec![default.to_owned()], OneOrMany::values)
        };
        [
            self.task.values(),
            values(&self.tokenizer, "1"),
            values(&self.position, "rope"),
            values(&self.format, "plain"),
            values(&self.size, "0.3m"),
        ]
    }

    /// Number of trainings with so many seeds.
    fn trainings(&self, seeds: usize) -> usize {
        self.axes().iter().fold(seeds, |product, values| product.saturating_mul(values.len()))
    }

    /// Expands the axes to trainings. The seed varies slowest, so that every training runs with the first seed first.
    fn cells(&self, seeds: &[u64]) -> Result<Vec<GridCell>, GridError> {
        let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
        if !self.label.chars().all(allowed) || self.label.starts_with('.') {
            return Err(GridError::Label(self.label.clone()));
        }
        let axes = self.axes();
        for (axis, values) in ["task", "tokenizer", "position", "format", "size"].into_iter().zip(&axes) {
            if values.is_empty() {
                return Err(GridError::EmptyAxis(axis));
            }
            if let Some(value) = repeated(values) {
                return Err(GridError::RepeatedValue { axis, value: value.clone() });
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
                                settings.check()?;
                                cells.push(GridCell { choice, seed, settings, grids: vec![self.name.clone()] });
                            }
                        }
                    }
                }
            }
        }
        Ok(cells)
    }

    fn settings(&self, choice: &CellChoice, seed: u64) -> Result<TrainSettings, GridError> {
        let defaults = TrainSettings::default();
        Ok(TrainSettings {
            size: size(&choice.size)?,
            position: position(&choice.position)?,
            tokenizer: tokenizer(&choice.tokenizer, self.words.unwrap_or(defaults.tokenizer.words))?,
            tasks: choice.task.split(',').map(|task| task.trim().to_owned()).collect(),
            styles: match &self.style {
                None => defaults.styles,
                Some(styles) => styles.values().iter().map(|style| style.parse()).collect::<Result<_, _>>()?,
            },
            then: match (&self.then, self.then_after) {
                (None, None) => None,
                (Some(tasks), Some(after)) => Some(NextTasks { tasks: tasks.values(), after }),
                _ => return Err(GridError::ThenWithoutAfter),
            },
            lengths: self.lengths.values()?,
            beyond: self.beyond.as_ref().map(Lengths::values).transpose()?.unwrap_or_default(),
            format: choice.format.parse::<NumberStyle>()?.0,
            any_shorter_operand: self.any_shorter_operand,
            splits: self.splits,
            seed,
            batch: self.batch.unwrap_or(defaults.batch),
            steps: self.steps,
            until: match (&self.until, self.restarts) {
                (None, None) => None,
                (Some(text), restarts) => {
                    let Goal { accuracy, every_length } = text.parse()?;
                    Some(Criterion { accuracy, every_length, restarts: restarts.unwrap_or_default() })
                }
                (None, Some(_)) => return Err(GridError::RestartsWithoutCriterion),
            },
            learning_rate: self.learning_rate.unwrap_or(defaults.learning_rate),
            warm_up: self.warm_up.unwrap_or(defaults.warm_up),
            optimiser: AdamWSettings {
                clip: self.clip.unwrap_or(defaults.optimiser.clip),
                weight_decay: self.weight_decay.unwrap_or(defaults.optimiser.weight_decay),
                beta2: self.beta2.unwrap_or(defaults.optimiser.beta2),
                ..defaults.optimiser
            },
            validate_every: self.validate_every.unwrap_or(defaults.validate_every),
            validation: self.validation.unwrap_or(defaults.validation),
            context: self.context.unwrap_or(defaults.context),
            parts: self.parts.unwrap_or(defaults.parts),
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
    fn the_number_of_trainings_is_bounded() {
        let many = |count: usize| (0..count).map(|n| n.to_string()).collect::<Vec<_>>().join(", ");
        let error = |text: String| Experiment::parse(&text).unwrap_err().to_string();
        let seeds = error(FILE.replacen("seeds = [1, 2]", &format!("seeds = [{}]", many(100_000)), 1));
        assert!(seeds.contains("seeds has 100000 entries, more than 1000"), "{seeds}");
        let grids: String = (0..20_000).map(|n| format!("[[grid]]\nname = \"g{n}\"\n")).collect();
        let grids = error(format!("{FILE}\n{grids}"));
        assert!(grids.contains("[[grid]] has 20002 entries, more than 1000"), "{grids}");
        let text = FILE.replacen("seeds = [1, 2]", &format!("seeds = [{}]", many(1000)), 1);
        let product = error(text.replacen(
            "tokenizer = [1,",
            "size = [\"0.3m\", \"2,64,128,2,2\", \"3,64,128,2,2\", \"4,64,128,2,2\"]\ntokenizer = [1,",
            1,
        ));
        assert!(product.contains("12000 trainings, more than 10000"), "{product}");
    }

    #[test]
    fn bounds_name_their_line_and_number() {
        for (from, to, named) in [
            (
                "steps = 10",
                "steps = 9223372036854775807",
                "line 9, grid \"tokenizers\": steps: 9223372036854775807 is more than",
            ),
            (
                "seeds = [1, 2]",
                "seeds = [1, 2]\nquestions = 1000001",
                "line 4, questions: 1000001 is more than 1000000",
            ),
            (
                "beyond = [4, 5]",
                "beyond = [4, 5, 6, 7, 8, 9, 10, 11]\nvalidation = 1000000",
                "1000000 questions for each of 1 tasks and 11 lengths are 11000000, more than 10000000",
            ),
            (
                "steps = 10",
                "steps = 99999999999999999999",
                "line 9, column 9, training.steps: 99999999999999999999 is too large",
            ),
            ("steps = 10", "steps = 10\nbatch = 5000", "line 10, grid \"tokenizers\": batch: 5000 is more than 4096"),
            (
                r#"lengths = "1-3""#,
                r#"lengths = "1-100000,1-3""#,
                "line 7, grid \"tokenizers\": lengths and beyond may have",
            ),
            ("steps = 10", "steps = 10\nuntil = \"accuracy 95 %\"\nrestarts = 101", "restarts: 101 is more than 100"),
        ] {
            let text = FILE.replacen(from, to, 1);
            let error = Experiment::parse(&text).unwrap_err().to_string();
            assert!(error.contains(named), "{to}: {error}");
        }
    }

    #[test]
    fn defects_are_named() {
        for (from, to, named) in [
            ("steps = 10", "step = 10", "step"),
            ("seeds = [1, 2]", "seeds = [1, 1]", "seed 1"),
            ("seeds = [1, 2]", "seeds = []", "at least one seed"),
            (r#""3-random""#, r#""4""#, "unknown tokenizer"),
            (r#""nope""#, r#""learned""#, "unknown positional encoding"),
            (r#""plain", "#, r#""plain", "plain", "#, "named twice"),
            ("reversed+padded", "backwards", "unknown format"),
            (r#""add_Integer""#, r#""addd_Integer""#, "addd"),
            (r#"lengths = "1-3""#, r#"lengths = "3-1""#, "invalid lengths"),
            (r#"lengths = "1-3""#, "lengths = 0", "0 is not a length"),
            (r#"lengths = "1-3""#, "lengths = [1, 0]", "0 is not a length"),
            (r#"lengths = "1-3""#, "lengths = 500", "no question of these lengths"),
            (r#""3-random""#, "\"3-random\"]\nformat = [\"hinted\"", "random groups"),
            ("beyond = [4, 5]", "beyond = [3]", "length 3"),
            ("steps = 10", "steps = 10\nuntil = \"accuracy 120 %\"", "not a criterion"),
            ("steps = 10", "steps = 10\nrestarts = 1", "until"),
            (r#"name = "encodings""#, r#"name = "tokenizers""#, "another grid"),
            (r#"name = "encodings""#, "name = \"encodings\"\nsteps = 20", "label"),
            (r#"name = "encodings""#, "name = \"encodings\"\nlabel = \"../x\"", "letters"),
            (r#"name = "encodings""#, "name = \"encodings\"\nsize = \"2,64,256,3,2\"", "heads"),
        ] {
            let error = Experiment::parse(&FILE.replacen(from, to, 1)).unwrap_err().to_string();
            assert!(error.contains(named), "{to}: {error}");
        }
    }
}
