//! Export of a stored run to the files of lm-evaluation-harness.
use earnest_results::{
    FilesNotice, ModeRequest, Origin, Reporter, Row, Rows, RowsError, RunEvent, Sample, StoredRun, card_of, suites,
};
use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};

use earnest_tasks::suite::{Item, registry};
use serde_json::Value;

use super::LmEval;
use super::lm_eval::NO_FRACTION;
use crate::ReportError;
use earnest_eval::prompt::{Prompter, Remote};
use earnest_results::output::write_file;
use earnest_results::store::StoredQuestion;

impl LmEval {
    /// Converts a stored run to the documents of lm-evaluation-harness. Prompts of runs without questions, such as those of outcome files,
    /// are joined from the suite's items, with a warning.
    pub fn of(run: &StoredRun, texts: bool, reporter: &mut dyn Reporter) -> Result<Self, ReportError> {
        let from_suite;
        let rows: &dyn Rows = if run.has_questions()? {
            run
        } else {
            let mut items = HashMap::new();
            run.each_item(|item| drop(items.insert(item.id.clone(), item)))?;
            reporter.event(&RunEvent::notice(FilesNotice::PromptsRebuilt));
            from_suite = RowsOfItems { run, items };
            &from_suite
        };
        let suite = registry::find(&run.manifest.settings.suite);
        let examples = suite.map(|suite| suite.card().examples_in_text).filter(|&examples| examples > 0);
        let document = LmEval::new(&run.manifest, &items_by_task(run)?, rows, texts, examples)?;
        if document.unscored > 0 {
            let documents = document.unscored;
            reporter.event(&RunEvent::notice(FilesNotice::DocumentsUnscored { documents }));
        }
        if document.repeats > 1 {
            let samples = document.repeats;
            reporter.event(&RunEvent::notice(FilesNotice::MeansOfSamples { samples }));
        }
        Ok(document)
    }

    /// Writes the results and samples into the model's folder under `output`; returns that folder. Where files of another run have
    /// the same time in their names, the time of these gets another fraction.
    pub fn write(&mut self, output: &Path) -> Result<PathBuf, RowsError> {
        let folder = output.join(&self.folder);
        std::fs::create_dir_all(&folder).map_err(|source| RowsError::Write { path: folder.clone(), source })?;
        if let Some(fraction) = (0..1_000_000).find(|fraction| self.is_free(&folder, *fraction)) {
            self.results_file = with_fraction(&self.results_file, fraction);
            self.samples.iter_mut().for_each(|task| task.file = with_fraction(&task.file, fraction));
        }
        let failed = |error: serde_json::Error| RowsError::Format { format: "lm-eval", reason: error.to_string() };
        write_file(&folder.join(&self.results_file), |out| {
            serde_json::to_writer_pretty(out, &self.results).map_err(failed)
        })?;
        for task in &self.samples {
            write_file(&folder.join(&task.file), |out| {
                task.lines.iter().try_for_each(|line| {
                    serde_json::to_writer(&mut *out, line).map_err(failed)?;
                    out.write_all(b"\n").map_err(|error| failed(serde_json::Error::io(error)))
                })
            })?;
        }
        Ok(folder)
    }

    /// True if no file of another run has its names with this fraction of the second.
    fn is_free(&self, folder: &Path, fraction: u32) -> bool {
        let results = folder.join(with_fraction(&self.results_file, fraction));
        match std::fs::read(&results) {
            Ok(text) => {
                let known: Value = serde_json::from_slice(&text).unwrap_or_default();
                known["earnest_run"]["run"] == self.results["earnest_run"]["run"]
            }
            Err(_) => {
                let names = self.samples.iter().map(|task| with_fraction(&task.file, fraction));
                !results.exists() && !names.map(|name| folder.join(name)).any(|path| path.exists())
            }
        }
    }
}

/// Returns the number of the suite's items by task, including those that the run did not ask; of the run's items alone where
/// the suite cannot be built.
fn items_by_task(run: &StoredRun) -> Result<BTreeMap<String, usize>, ReportError> {
    let mut items: BTreeMap<String, usize> = BTreeMap::new();
    let mut count = |task: &str| *items.entry(task.to_owned()).or_default() += 1;
    match suites::stored(&run.manifest.settings) {
        Ok(_) if run.manifest.settings.origin() == Origin::Log => {
            run.each_item(|item| count(&item.task))?;
            let planned = card_of(&run.manifest.settings).and_then(|card| card.planned);
            if let (Some(planned), [only]) = (planned, &mut items.values_mut().collect::<Vec<_>>()[..]) {
                **only = planned.max(**only);
            }
        }
        Ok(suite) => suite.items.iter().for_each(|item| count(&item.task)),
        Err(_) => run.each_item(|item| count(&item.task))?,
    }
    Ok(items)
}

/// The name of a file with another fraction of the second in its time.
fn with_fraction(name: &str, fraction: u32) -> String {
    match name.rsplit_once(NO_FRACTION) {
        Some((head, tail)) => format!("{head}.{fraction:06}{tail}"),
        None => name.to_owned(),
    }
}

/// Rows of a run without questions, with its suite's items.
struct RowsOfItems<'a> {
    run: &'a StoredRun,
    items: HashMap<String, Item>,
}

impl RowsOfItems<'_> {
    /// The question, with its segments joined as raw text for its prompt.
    fn question(&self, sample: &Sample) -> Option<StoredQuestion> {
        let item = self.items.get(&sample.item)?.clone();
        let plain = Prompter::new(&Remote::Text, ModeRequest::Raw).and_then(|plain| plain.text(&item.segments));
        Some(StoredQuestion { item, prompt: plain.ok() })
    }
}

impl Rows for RowsOfItems<'_> {
    fn walk(&self, row: &mut dyn FnMut(Sample) -> Result<(), RowsError>) -> Result<(), RowsError> {
        self.run.walk(row)
    }

    fn walk_asked(&self, row: &mut dyn FnMut(&Row) -> Result<(), RowsError>) -> Result<(), RowsError> {
        self.run.walk(&mut |sample| {
            let asked = self.question(&sample);
            row(&Row { sample, asked })
        })
    }
}
