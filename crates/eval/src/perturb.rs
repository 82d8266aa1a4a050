//! Perturbation of any set of questions: JSON lines, a JSON array, and the other formats of `earnest_rows`.
use std::collections::{BTreeMap, HashSet};
use std::io::Write;
use std::path::{Path, PathBuf};

use earnest_digest::input;
use serde_json::Value;

use earnest_tasks::suite::dnc::{
    self, Annotations, Asked, Context, DonorPool, Fields, Kind, Malformed, Mode, Problem, RowError, SetRow,
    has_program, malformed_rows, read_annotations, records, reference_perturb_all,
};
use earnest_tasks::suite::registry::{Row, RowSource};

use crate::EvalError;
use earnest_results::{FilesNotice, Reporter, RunEvent};

/// Largest set of questions in bytes, which is held in memory with what is made of it: 100,000 questions of 1 KiB.
const MOST_SET: u64 = 100 << 20;

/// Settings of a perturbation.
#[derive(Debug, Clone)]
pub struct PerturbSettings {
    pub questions: QuestionSource,
    /// Fields of a row; none for the usual names.
    pub fields: Fields,
    /// File of Logic and Order annotations.
    pub annotations: Option<PathBuf>,
    pub kinds: Vec<Kind>,
    /// Perturbations as intended, or bit for bit as the authors' program makes them.
    pub mode: Mode,
    /// Seed of random perturbations; below 2^32 for [`Mode::Reference`].
    pub seed: u64,
    /// Draws of each random perturbation; 1 for [`Mode::Reference`].
    pub draws: u32,
    /// Write questions that a perturbation does not fit unperturbed, instead of leaving them out.
    pub keep_ineligible: bool,
    /// Leave malformed rows out with a warning, instead of refusing the file.
    pub skip_malformed: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum QuestionSource {
    File(PathBuf),
    StandardInput,
}

impl QuestionSource {
    fn name(&self) -> String {
        match self {
            QuestionSource::File(path) => path.display().to_string(),
            QuestionSource::StandardInput => "standard input".to_owned(),
        }
    }

    /// Reads JSON as it is written; rows of other formats as JSON lines, with their places.
    ///
    /// # Errors
    /// [`EvalError`] if the file cannot be read, or a row of another format is bad and not to be skipped.
    fn read(&self, skip_bad_rows: bool) -> Result<Content, EvalError> {
        let failed = |error| EvalError::input(self.name(), error);
        match self {
            QuestionSource::File(path)
                if path.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("toml")) =>
            {
                let message = format!("{} is a task file, and perturb reads questions", path.display());
                Err(EvalError::setting(message).hint(
                    "give it the file under [questions], and name its columns with the setting `question_field` and the setting `answer_field`",
                ))
            }
            QuestionSource::File(path) if !earnest_rows::is_plain_json(path) => other_format(path, skip_bad_rows),
            QuestionSource::File(path) => Ok(Content::json(input::read(path, MOST_SET).map_err(failed)?)),
            QuestionSource::StandardInput => {
                Ok(Content::json(input::read_stream(std::io::stdin().lock(), MOST_SET).map_err(failed)?))
            }
        }
    }
}

/// Text of a set of questions.
struct Content {
    bytes: Vec<u8>,
    /// Place of each row, where the rows were converted to JSON lines.
    places: Option<Vec<String>>,
    /// Rows that could not be read: their number, and messages about some of them.
    skipped: (usize, Vec<String>),
}

impl Content {
    fn json(bytes: Vec<u8>) -> Self {
        Content { bytes, places: None, skipped: (0, Vec::new()) }
    }
}

/// Reads CSV, TSV, Parquet and compressed files as JSON lines. Numbers stay as they are written.
fn other_format(path: &Path, skip_bad_rows: bool) -> Result<Content, EvalError> {
    let source = RowSource { paths: vec![path.to_owned()], skip_bad_rows, ..RowSource::default() };
    let rows = earnest_rows::read(&source)?;
    let (mut bytes, mut places) = (Vec::new(), Vec::with_capacity(rows.len()));
    for number in 0..rows.len() {
        let row = rows.row(number).map_err(|error| EvalError::setting(error.to_string()))?;
        bytes.extend(json_line(&row).into_bytes());
        if bytes.len() as u64 > MOST_SET {
            let message =
                format!("{}: its rows have more than {} MiB, which is the limit", path.display(), MOST_SET >> 20);
            return Err(EvalError::setting(message).hint("perturb a part of them at a time"));
        }
        // Without the file's name, which messages add.
        places.push(row.place.rsplit(", ").next().unwrap_or_default().to_owned());
    }
    let (count, messages) = rows.skipped();
    Ok(Content { bytes, places: Some(places), skipped: (count, messages.to_vec()) })
}

/// The row as JSON on a line.
fn json_line(row: &Row) -> String {
    let members = row.values.iter().map(|(column, value)| {
        let value = row.written.get(column).cloned().unwrap_or_else(|| value.to_string());
        format!("{}: {value}", Value::from(column.as_str()))
    });
    format!("{{{}}}\n", members.collect::<Vec<_>>().join(", "))
}

impl PerturbSettings {
    /// One draw of these kinds with seed 1; malformed rows are refused, ineligible questions left out.
    pub fn new(questions: QuestionSource, kinds: Vec<Kind>) -> Self {
        PerturbSettings {
            questions,
            fields: Fields::default(),
            annotations: None,
            kinds,
            mode: Mode::Fixed,
            seed: 1,
            draws: 1,
            keep_ineligible: false,
            skip_malformed: false,
        }
    }

    /// The seed of the authors' program.
    fn reference_seed(&self) -> Result<u32, EvalError> {
        match u32::try_from(self.seed) {
            Ok(seed) if self.draws <= 1 => Ok(seed),
            _ => Err(EvalError::setting(
                "the setting `mode = reference` takes a setting `seed` below 4294967296 and one draw",
            )),
        }
    }
}

/// Perturbed questions.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PerturbedSet {
    /// Questions that were read.
    pub questions: usize,
    /// Rows as JSON lines, by kind in the order of the settings.
    pub rows: Vec<String>,
    /// Perturbed rows of each kind.
    pub perturbed: BTreeMap<Kind, usize>,
    /// Questions that a kind does not fit, by kind and reason.
    pub ineligible: BTreeMap<(Kind, String), usize>,
}

impl PerturbedSet {
    /// Writes the rows.
    pub fn write(&self, out: &mut dyn Write) -> std::io::Result<()> {
        for row in &self.rows {
            out.write_all(row.as_bytes())?;
            out.write_all(b"\n")?;
        }
        Ok(())
    }

    fn add(&mut self, kind: Kind, row: String) {
        *self.perturbed.entry(kind).or_default() += 1;
        self.rows.push(row);
    }

    fn add_ineligible(&mut self, settings: &PerturbSettings, kind: Kind, row: &SetRow, why: &str) {
        // Rows name their operands; reasons are counted without.
        let reason = match why.split_once("operand ") {
            Some(("", rest)) => format!("an operand{}", rest.find(' ').map_or("", |at| &rest[at..])),
            _ => why.to_owned(),
        };
        *self.ineligible.entry((kind, reason)).or_default() += 1;
        if settings.keep_ineligible {
            self.rows.push(row.unperturbed(kind, settings.mode, settings.seed, why));
        }
    }
}

/// Perturbs every question by every kind.
///
/// # Errors
/// If the settings exclude each other, a file cannot be read, or rows are malformed and not to be skipped.
pub fn perturb(settings: &PerturbSettings, reporter: &mut dyn Reporter) -> Result<PerturbedSet, EvalError> {
    let reference_seed = match settings.mode {
        Mode::Reference => Some(settings.reference_seed()?),
        Mode::Fixed => None,
    };
    let mut malformed = Vec::new();
    let rows = read_questions(settings, &mut malformed, reporter)?;
    let annotations = match &settings.annotations {
        Some(path) => read_annotation_file(path, &rows, &mut malformed)?,
        None => Annotations::default(),
    };
    if !malformed.is_empty() {
        let problems = malformed_rows(&malformed);
        if !settings.skip_malformed {
            return Err(
                EvalError::setting(problems).hint("mend them, or leave them out with the setting `malformed = skip`")
            );
        }
        let rows = malformed.len();
        reporter.event(&RunEvent::notice(FilesNotice::MalformedLeftOut { rows, problems }));
    }
    let problems: Vec<&Problem> = rows.iter().map(|row| &row.problem).collect();
    let donors = DonorPool::new(problems.iter().copied()).statements();
    let mut set = PerturbedSet { questions: rows.len(), ..PerturbedSet::default() };
    for &kind in &settings.kinds {
        if let Some(seed) = reference_seed.filter(|_| has_program(kind)) {
            let (perturbed, ineligible) = reference_perturb_all(kind, problems.iter().copied(), seed);
            for (index, found) in &perturbed {
                set.add(kind, rows[*index].perturbed(found, settings.mode, settings.seed, 0));
            }
            for index in ineligible {
                set.add_ineligible(settings, kind, &rows[index], "the reference's filter leaves it out");
            }
            continue;
        }
        for row in &rows {
            for draw in 0..if kind.is_random() { settings.draws } else { 1 } {
                let context =
                    Context { seed: settings.seed, draw, donors: &donors, annotations: &annotations, describes: true };
                match dnc::perturb(kind, &row.problem, context) {
                    Ok(found) => set.add(kind, row.perturbed(&found, settings.mode, settings.seed, draw)),
                    Err(reason) => {
                        if draw == 0 {
                            set.add_ineligible(settings, kind, row, &reason.to_string());
                        }
                        break;
                    }
                }
            }
        }
    }
    Ok(set)
}

fn read_questions(
    settings: &PerturbSettings,
    malformed: &mut Vec<(String, Malformed)>,
    reporter: &mut dyn Reporter,
) -> Result<Vec<SetRow>, EvalError> {
    let name = settings.questions.name();
    let Content { bytes, places, skipped } = settings.questions.read(settings.skip_malformed)?;
    if skipped.0 > 0 {
        let (rows, problems) = skipped;
        reporter.event(&RunEvent::notice(FilesNotice::UnreadableLeftOut { rows, problems }));
    }
    let records = records(&bytes).map_err(|error| {
        EvalError::setting(format!("{name}: {error}"))
            .hint("perturb reads JSON lines, a JSON array, CSV, TSV and Parquet, files also compressed with gzip")
    })?;
    let mut rows: Vec<SetRow> = Vec::new();
    let mut ids = HashSet::new();
    for (at, mut record) in records.into_rows().into_iter().enumerate() {
        if let Some(place) = places.as_ref().and_then(|places| places.get(at)) {
            record.place.clone_from(place);
        }
        let row = record.value.and_then(|value| match value {
            Value::Object(row) => settings.fields.read(&record.place, &row, record.text),
            _ => Err(RowError::NotAnObject),
        });
        let row = row.map_err(|error| error.to_string()).and_then(|row| match ids.insert(row.problem.id.clone()) {
            true => Ok(row),
            false if row.has_id() => Err(format!("another row has the id {} too", row.problem.id)),
            false => Err("another row asks the same, and neither has an id".to_owned()),
        });
        match row {
            Ok(row) => rows.push(row),
            Err(why) => malformed.push((name.clone(), Malformed { place: record.place, why })),
        }
    }
    Ok(rows)
}

fn read_annotation_file(
    path: &Path,
    rows: &[SetRow],
    malformed: &mut Vec<(String, Malformed)>,
) -> Result<Annotations, EvalError> {
    let name = path.display().to_string();
    let bytes = input::read(path, MOST_SET).map_err(|error| EvalError::input(&name, error))?;
    let questions: BTreeMap<&str, &Problem> = rows.iter().map(|row| (row.problem.id.as_str(), &row.problem)).collect();
    let question = |id: &str| questions.get(id).map_or(Asked::Nowhere, |problem| Asked::Here(problem));
    let (annotations, bad) =
        read_annotations(&bytes, question).map_err(|error| EvalError::setting(format!("{name}: {error}")))?;
    malformed.extend(bad.into_iter().map(|row| (name.clone(), row)));
    Ok(annotations)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(path: &Path, rows: &str) -> PerturbSettings {
        std::fs::write(path, rows).unwrap();
        PerturbSettings::new(QuestionSource::File(path.to_owned()), vec![Kind::Verbosity])
    }

    #[test]
    fn questions_are_perturbed_or_counted() {
        let folder = tempfile::tempdir().unwrap();
        let rows = "{\"question\": \"Tom has 3 apples and eats 2 of them. How many are left?\"}\n{\"question\": \"How many?\"}\n";
        let settings = settings(&folder.path().join("questions.jsonl"), rows);
        let set = perturb(&settings, &mut ()).unwrap();
        assert_eq!((set.questions, set.rows.len(), set.perturbed[&Kind::Verbosity]), (2, 1, 1));
        assert_eq!(set.ineligible.values().sum::<usize>(), 1);
        let kept = perturb(&PerturbSettings { keep_ineligible: true, ..settings }, &mut ()).unwrap();
        assert_eq!((kept.rows.len(), kept.perturbed), (2, set.perturbed));
    }

    #[test]
    fn tables_are_read_as_their_rows_are_written() {
        let folder = tempfile::tempdir().unwrap();
        let table = "id,question,answer,price\nq1,Tom has 3 apples and eats 2 of them. How many are left?,1,1.50\n";
        let settings = settings(&folder.path().join("questions.csv"), table);
        let set = perturb(&settings, &mut ()).unwrap();
        let row: Value = serde_json::from_str(&set.rows[0]).unwrap();
        assert_eq!((&row["pair"], &row["price"], &row["answer"]), (&"q1".into(), &"1.50".into(), &"1".into()));
        std::fs::write(folder.path().join("questions.csv"), "id,question\nq1,\n").unwrap();
        let error = perturb(&settings, &mut ()).unwrap_err();
        assert!(error.to_string().contains("line 2"), "{error}");
        let task = PerturbSettings::new(QuestionSource::File("task.toml".into()), vec![Kind::Verbosity]);
        assert!(perturb(&task, &mut ()).unwrap_err().to_string().contains("is a task file"));
    }

    #[test]
    fn malformed_rows_and_impossible_settings_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("questions.jsonl");
        let settings = settings(&path, "[5]");
        assert!(matches!(perturb(&settings, &mut ()), Err(EvalError::Setting(_))));
        let skipped = perturb(&PerturbSettings { skip_malformed: true, ..settings.clone() }, &mut ()).unwrap();
        assert_eq!(skipped, PerturbedSet::default());
        let twice = PerturbSettings { mode: Mode::Reference, draws: 2, ..settings.clone() };
        assert!(perturb(&twice, &mut ()).is_err());
    }
}
