//! Writing of outcome files, which [`earnest_results::outcomes`] reads.
use std::io::Write;
use std::path::Path;

use serde_json::Value;

use super::{Columns, write_notes};
use crate::ReportError;
use earnest_results::outcomes::{QUESTIONS, SUMMARY};
use earnest_results::{RowsError, Status, StoredRun, WithoutTexts};

/// Outcomes of a finished run.
pub struct Outcomes<'a> {
    run: &'a StoredRun,
    summary: String,
}

impl<'a> Outcomes<'a> {
    /// Takes the outcomes of a run.
    ///
    /// # Errors
    /// An unfinished run.
    pub fn of(run: &'a StoredRun) -> Result<Self, ReportError> {
        if run.manifest.status != Status::Finished {
            let message = format!("{} is not finished, and outcome files are of finished runs", run.place);
            return Err(ReportError::results(message).hint(format!("earnest resume {}", run.manifest.run)));
        }
        Ok(Outcomes { run, summary: run.document()?.summary_json() })
    }

    /// Writes the file and returns the number of rows. `questions` are facts about their texts, which the file does not have.
    pub fn write(self, questions: Option<&Value>, out: impl Write + Send) -> Result<usize, RowsError> {
        let rows = WithoutTexts(self.run);
        let (columns, _) = Columns::survey(&rows)?;
        let mut manifest = self.run.manifest.clone();
        manifest.first_prompt = None;
        manifest.model.path = file_name(&manifest.model.path);
        without_folders(&mut manifest.settings.suite_options);
        let mut notes = vec![(SUMMARY, self.summary)];
        notes.extend(questions.map(|facts| (QUESTIONS, facts.to_string())));
        write_notes(&rows, &columns.of_outcomes(&manifest.settings.suite), &manifest, notes, out)
    }
}

fn file_name(path: &str) -> String {
    Path::new(path).file_name().map_or_else(|| path.to_owned(), |name| name.to_string_lossy().into_owned())
}

/// Shortens absolute paths to the names of their files: they say nothing on another machine.
fn without_folders(value: &mut Value) {
    match value {
        Value::String(text) if Path::new(text.as_str()).is_absolute() => *text = file_name(text),
        Value::Array(values) => values.iter_mut().for_each(without_folders),
        Value::Object(fields) => fields.values_mut().for_each(without_folders),
        _ => {}
    }
}
