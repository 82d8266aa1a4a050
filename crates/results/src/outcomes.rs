//! Outcome files: ids and scores of finished runs as Parquet, without questions, prompts and completions, so that results can be
//! published where their texts cannot. A folder of them is read as a results folder.
use std::borrow::Cow;
use std::path::{Path, PathBuf};

use earnest_digest::input;
use earnest_engine::{FinishReason, Timings};
use earnest_tasks::suite::{FailureClass, Score};
use serde_json::{Map, Value};

use crate::store::{BULK_ROWS, FILE_NAME, RunRecord, SCHEMA_VERSION, Store};
use crate::{Generated, MANIFEST, Manifest, ResultsError, SAMPLE_FORMAT, Sample, Status};
use earnest_rows::ParquetFile;

/// Name under which a file has the run's summary.
pub const SUMMARY: &str = "earnest.summary";
/// Name under which a file has facts about the questions, which a paper's comparison takes from their texts.
pub const QUESTIONS: &str = "earnest.questions";
/// Ending of the file names.
const ENDING: &str = "parquet";

/// Returns the folder with the results of `folder`: itself, or, if it has outcome files and no results, the cached results made of
/// them.
///
/// # Errors
/// Outcome files that cannot be read, a cache that cannot be written.
pub fn results_of(folder: &Path) -> Result<Cow<'_, Path>, ResultsError> {
    if folder.join(FILE_NAME).exists() {
        return Ok(Cow::Borrowed(folder));
    }
    let files = outcome_files(folder)?;
    if files.is_empty() {
        return Ok(Cow::Borrowed(folder));
    }
    // Cached results of another format would be refused.
    let mut names = format!("{} {SCHEMA_VERSION}\n", env!("CARGO_PKG_VERSION"));
    for file in &files {
        let sha256 =
            earnest_digest::sha256_file(file, |_| ()).map_err(|error| ResultsError::input(file.display(), error))?;
        names.push_str(&sha256);
    }
    let digest = earnest_digest::hex(&earnest_digest::sha256(names.as_bytes()));
    let cache = cache();
    let made = cache.join(&digest[..16]);
    if !made.join(FILE_NAME).exists() {
        make(&files, &cache, &made)?;
    }
    Ok(Cow::Owned(made))
}

/// Folder of the results made of outcome files.
fn cache() -> PathBuf {
    earnest_digest::cache_folder().unwrap_or_else(std::env::temp_dir).join("outcomes")
}

/// True for results made of outcome files, whose samples have no texts.
pub fn are_made_of_outcomes(results: &Path) -> bool {
    results.starts_with(cache())
}

/// Files of a folder with the manifest of a run, by name.
fn outcome_files(folder: &Path) -> Result<Vec<PathBuf>, ResultsError> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Ok(Vec::new()) };
    let paths = entries.flatten().map(|entry| entry.path());
    let mut files: Vec<PathBuf> =
        paths.filter(|path| path.extension().is_some_and(|ending| ending == ENDING)).collect();
    files.sort();
    let mut found = Vec::new();
    for path in files {
        let file = ParquetFile::open(&path)?;
        if file.note(MANIFEST).is_some() && file.note(SUMMARY).is_some() {
            found.push(path);
        }
    }
    Ok(found)
}

/// Makes results of outcome files under a name of its own, which becomes final once they are complete.
fn make(files: &[PathBuf], cache: &Path, made: &Path) -> Result<(), ResultsError> {
    let failed = |error| ResultsError::input(cache.display(), error);
    std::fs::create_dir_all(cache).map_err(failed)?;
    let part = made.with_extension(format!("{}.part", std::process::id()));
    let written = (|| -> Result<(), ResultsError> {
        let store = Store::create(&part)?;
        files.iter().try_for_each(|path| add(&store, path))
    })();
    // Another process may have been faster; its results are the same.
    let moved = written.and_then(|()| match std::fs::rename(&part, made) {
        Err(_) if made.join(FILE_NAME).exists() => Ok(()),
        renamed => renamed.map_err(failed),
    });
    if moved.is_err() || part.exists() {
        // The error is that of writing; what is left over is removed as far as possible.
        let _ = std::fs::remove_dir_all(&part);
    }
    moved
}

/// Adds the run of an outcome file.
fn add(store: &Store, path: &Path) -> Result<(), ResultsError> {
    let damaged = |what: &str| {
        ResultsError::unread(path, what.to_owned())
            .hint("`earnest export RUN --format parquet --outcomes -o FILE` writes such files")
    };
    let file = ParquetFile::open(path)?;
    let note = |name: &str| file.note(name).ok_or_else(|| damaged(&format!("it has no {name}")));
    let manifest: Manifest = serde_json::from_str(&note(MANIFEST)?)
        .map_err(|error| damaged(&format!("its manifest cannot be read: {error}")))?;
    if store.exactly(&manifest.run)?.is_some() {
        return Err(damaged(&format!("another file of the folder has the run {} too", manifest.run)));
    }
    let unfinished = Manifest { status: Status::Interrupted, ..manifest.clone() };
    let record = store.begin(&unfinished, file.len())?;
    let mut writer = store.writer(&record).batches_of(BULK_ROWS);
    file.rows::<ResultsError>(path, &|_, _| true, &mut |number, row| {
        let sample = sample(&manifest, &row)
            .ok_or_else(|| ResultsError::unread_at(path, format!("row {number}"), "it is no outcome of a sample"))?;
        // The plan's order is the file's.
        Ok(writer.push(number as usize - 1, sample)?)
    })?;
    writer.write()?;
    drop(writer);
    store.update(record.id, &manifest, file.len())?;
    let record = RunRecord { manifest, ..record };
    store.keep_summary(&record, &note(SUMMARY)?)?;
    if let Some(facts) = file.note(QUESTIONS) {
        let place = facts_file(store.results(), &record.manifest.run);
        std::fs::write(&place, facts).map_err(|error| ResultsError::input(place.display(), error))?;
    }
    Ok(())
}

/// A row as a sample; none if a column is missing or of another kind.
fn sample(manifest: &Manifest, row: &Map<String, Value>) -> Option<Sample> {
    let text = |name: &str| Some(row.get(name)?.as_str()?.to_owned());
    let count = |name: &str| usize::try_from(row.get(name)?.as_u64()?).ok();
    let named = |prefix: &str| {
        let of = move |(name, value): (&String, &Value)| Some((name.strip_prefix(prefix)?.to_owned(), value.clone()));
        row.iter().filter(|(_, value)| !value.is_null()).filter_map(of).collect::<Vec<(String, Value)>>()
    };
    let score = match row.get("correct")? {
        Value::Null => None,
        correct => {
            let mut score = Score { correct: correct.as_bool()?, ..Score::default() };
            for (name, value) in named("matcher_") {
                score.scorers.insert(name, value.as_bool()?);
            }
            for (name, value) in named("metric_") {
                score.metrics.insert(name, value.as_f64()?);
            }
            score.answer = text("extracted");
            score.failure = row.get("failure")?.as_str().map(FailureClass::from);
            Some(score)
        }
    };
    let finish: Option<FinishReason> = serde_json::from_value(row.get("finish")?.clone()).ok()?;
    Some(Sample {
        format: SAMPLE_FORMAT,
        run: manifest.run.clone(),
        suite: text("suite")?,
        item: text("item")?,
        sample: u32::try_from(count("sample")?).ok()?,
        task: text("task")?,
        cluster: text("cluster")?,
        covariates: named("covariate_").into_iter().collect(),
        gold: text("gold").unwrap_or_default(),
        prompt_sha256: String::new(),
        prompt_tokens: count("prompt_tokens")?,
        budget: count("budget")?,
        max_tokens: count("max_tokens")?,
        completion: finish.map(|finish| Generated {
            text: String::new(),
            ids: Vec::new(),
            counted_tokens: count("completion_tokens").unwrap_or(0),
            finish,
            cached_tokens: 0,
            timings: Timings::default(),
        }),
        score,
        failure: None,
    })
}

fn facts_file(results: &Path, run: &str) -> PathBuf {
    results.join(format!("{run}.questions.json"))
}

/// Facts about the questions of a run that came from an outcome file with them.
pub(crate) fn facts(results: &Path, run: &str) -> Option<Value> {
    serde_json::from_slice(&input::read(&facts_file(results, run), input::MOST_DOCUMENT).ok()?).ok()
}
