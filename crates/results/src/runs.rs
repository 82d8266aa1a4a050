//! Lists and checks of the runs of a results folder.
use crate::label::labels_in_suites;
use crate::{Document, Manifest, Origin, Reporter, ResultsError, Status, folder, started};

use serde::Serialize;

use earnest_stats::Estimate;
use earnest_tasks::suite::Suite;

use crate::outcomes::are_made_of_outcomes;
use crate::store::{RunLock, RunRecord, Store};
use crate::suites::LocalHost;

/// A run in a list.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RunEntry {
    pub run: String,
    /// `finished`, `interrupted`, `working`, or `partial` for an import whose file lacked samples.
    pub status: &'static str,
    /// Start; that of a log as the log says it, none if it says nothing.
    pub started: Option<String>,
    pub suite: String,
    pub model: String,
    /// Samples with a row.
    pub recorded: usize,
    /// Samples in the plan.
    pub planned: usize,
    pub failed: usize,
    pub truncated: usize,
    pub correct: usize,
    /// Samples with a score.
    #[serde(rename = "judged")]
    pub scored: usize,
    /// Deciding scorers.
    #[serde(rename = "primary")]
    pub chosen: Vec<String>,
    /// True if earlier answers chose the questions: there is no accuracy.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub adaptive: bool,
    /// Accuracy, 0 to 1, with its 95 % interval as on the run's own screen, else that of Wilson for clusters of items, and its
    /// cluster-robust standard error.
    pub accuracy: Option<f64>,
    pub low: Option<f64>,
    pub high: Option<f64>,
    pub standard_error: Option<f64>,
    /// Tokens of all prompts and completions.
    pub prompt_tokens: u64,
    pub completion_tokens: u64,
    /// As [`device_seconds`].
    pub device_seconds: f64,
    /// Settings in which this run differs from the others of its suite and model; none for the only one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// Origin of the answers; tokens of imported ones are unknown.
    #[serde(skip)]
    pub origin: Origin,
}

/// Returns the seconds of generation, without loading, times the number of devices; an endpoint counts as one device.
pub fn device_seconds(manifest: &Manifest) -> f64 {
    let devices = manifest.engine.as_ref().map_or(1, |engine| engine.card.devices.len().max(1));
    manifest.generation_s * devices as f64
}

/// Lists the runs of a store, the newest last.
pub fn list(store: &Store) -> Result<Vec<RunEntry>, ResultsError> {
    let runs = store.runs()?;
    let labels = labels_in_suites(&runs.iter().map(|run| &run.manifest).collect::<Vec<_>>());
    let with_label = |(run, label): (RunRecord, String)| {
        let label = Some(label).filter(|label| !label.is_empty());
        entry(store, run).map(|entry| RunEntry { label, ..entry })
    };
    runs.into_iter().zip(labels).map(with_label).collect()
}

fn entry(store: &Store, run: RunRecord) -> Result<RunEntry, ResultsError> {
    store.check_seal(&run)?;
    let sums = store.aggregate(&run)?;
    let mut accuracy = sums.accuracy();
    let mut standard_error = sums.standard_error;
    let device_seconds = device_seconds(&run.manifest);
    let chosen = folder::chosen_scorers(store, &run)?;
    if run.manifest.settings.origin() == Origin::Log {
        // The deciding scorer may give fractions, or no numbers at all.
        accuracy = mean_of_log(store, &run, chosen.first())?;
        standard_error = None;
    }
    let adaptive = run.manifest.settings.is_adaptive();
    if adaptive {
        (accuracy, standard_error) = (None, None);
    } else if run.manifest.settings.origin() != Origin::Log {
        accuracy = accuracy.map(|own| as_on_its_screen(store, &run, sums.scored, own)).transpose()?;
    }
    let status = match run.manifest.status {
        Status::Finished => "finished",
        _ if RunLock::is_taken(store.results(), &run.manifest.run)? => "working",
        _ if run.manifest.settings.origin() != Origin::Evaluated => "partial",
        // A killed process leaves the status `running`.
        Status::Running | Status::Interrupted => "interrupted",
    };
    let origin = run.manifest.settings.origin();
    Ok(RunEntry {
        chosen,
        origin,
        adaptive,
        label: None,
        status,
        started: started(&run.manifest),
        suite: run.manifest.settings.suite,
        model: run.manifest.model.name,
        run: run.manifest.run,
        recorded: sums.totals.recorded,
        planned: run.planned,
        failed: sums.totals.failed,
        truncated: sums.totals.truncated,
        correct: sums.correct,
        scored: sums.scored,
        accuracy: accuracy.map(|accuracy| accuracy.value),
        low: accuracy.map(|accuracy| accuracy.low),
        high: accuracy.map(|accuracy| accuracy.high),
        standard_error,
        prompt_tokens: sums.totals.prompt_tokens,
        completion_tokens: sums.totals.completion_tokens,
        device_seconds,
    })
}

/// The accuracy with the interval that the run's own screen has for it: the suite knows which items count as independent. As it is where
/// the screen has no such number.
fn as_on_its_screen(store: &Store, run: &RunRecord, scored: usize, own: Estimate) -> Result<Estimate, ResultsError> {
    let Some(document) = Document::kept(store, run)? else { return Ok(own) };
    let Some(all) = document.overall() else { return Ok(own) };
    let shown = document.main_value(all).map(|(_, value)| value);
    let same = shown.filter(|value| all.n == scored && (value.estimate - own.value).abs() < 1e-9);
    Ok(same.map_or(own, |value| Estimate { value: own.value, low: value.low, high: value.high }))
}

/// Mean of a log's deciding scorer with its interval, as in the run's document; none without numbers.
fn mean_of_log(store: &Store, run: &RunRecord, chosen: Option<&String>) -> Result<Option<Estimate>, ResultsError> {
    let document = folder::document(store, run)?;
    let Some((all, chosen)) = document.summary.rows.last().zip(chosen) else { return Ok(None) };
    let value = all.values.iter().find(|(name, _)| name == chosen).map(|(_, value)| value);
    Ok(value.map(|value| Estimate { value: value.estimate, low: value.low, high: value.high }))
}

/// Results of a verification.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Verification {
    /// The file itself, then each run.
    pub checks: Vec<Check>,
    /// Runs that were not scored again, because the suite's scorers have changed since.
    pub outdated: Vec<OutdatedRun>,
    /// Runs that were not scored again, because their suite cannot be built: they were checked against their stored questions.
    pub without_suite: Vec<String>,
    /// True for results made of outcome files, which have neither questions nor completions: their rows are read and nothing else.
    pub is_of_outcomes: bool,
}

/// Faults of the file or of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Check {
    /// Path of the file, or name of the run.
    pub name: String,
    /// A sentence each; empty if everything is whole.
    pub faults: Vec<String>,
}

/// A run that another version of its suite scored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutdatedRun {
    pub run: String,
    /// Version of the suite that scored it, and today's.
    pub version: String,
    pub today: String,
}

impl Verification {
    /// Returns the number of damaged runs; the file itself counts as one.
    pub fn damaged(&self) -> usize {
        self.checks.iter().filter(|check| !check.faults.is_empty()).count()
    }
}

/// Verifies the file and these runs, or all of them if none is named: structure, every row, its score by today's scorers, stored
/// questions and results. Model-written programs run by the policy of the host.
pub fn verify(
    store: &Store,
    names: &[String],
    host: &LocalHost,
    reporter: &mut dyn Reporter,
) -> Result<Verification, ResultsError> {
    let mut faults = store.integrity()?;
    let strays = store.strays()?;
    if strays > 0 {
        faults.push(format!("{strays} rows belong to no run"));
    }
    let mut verification =
        Verification { is_of_outcomes: are_made_of_outcomes(store.results()), ..Verification::default() };
    verification.checks.push(Check { name: store.path().display().to_string(), faults });
    let runs = match names {
        [] => store.runs()?,
        _ => names.iter().map(|name| store.run(name)).collect::<Result<_, _>>()?,
    };
    for run in runs {
        let suite = match verification.is_of_outcomes {
            true => Ok(None),
            false => folder::known_suite(host, store, &run, reporter),
        };
        let suite = match suite {
            Ok(suite) => suite,
            // The other runs are verified all the same.
            Err(error) => {
                let help = error.help().map_or_else(String::new, |help| format!("; {help}"));
                let faults = vec![format!("it cannot be checked: {error}{help}")];
                verification.checks.push(Check { name: run.manifest.run, faults });
                continue;
            }
        };
        if suite.is_none() && run.manifest.settings.origin() != Origin::Log && !verification.is_of_outcomes {
            verification.without_suite.push(run.manifest.run.clone());
        }
        let mut faults = store.examine(&run, suite.as_ref())?;
        faults.extend(document_fault(store, &run, suite.as_ref()));
        let version = &run.manifest.settings.suite_version;
        if let Some(today) = suite.as_ref().map(|suite| suite.scoring.version()).filter(|today| version != today) {
            verification.outdated.push(OutdatedRun {
                run: run.manifest.run.clone(),
                version: version.clone(),
                today: today.to_owned(),
            });
        }
        verification.checks.push(Check { name: run.manifest.run, faults });
    }
    Ok(verification)
}

/// Describes the fault of a stored document; one of another version of earnest may differ from today's.
fn document_fault(store: &Store, run: &RunRecord, suite: Option<&Suite>) -> Option<String> {
    let settings = &run.manifest.settings;
    let kept = match Document::kept(store, run) {
        Ok(kept) => kept?,
        Err(error) => return Some(error.to_string()),
    };
    let same = |suite: &&Suite| {
        suite.scoring.version() == settings.suite_version && settings.earnest == env!("CARGO_PKG_VERSION")
    };
    let today = Document::stored(store, run, suite.filter(same)?).ok()?;
    // As text, in which NaN equals itself.
    let text = |document: &Document| serde_json::to_string(document).unwrap_or_default();
    (text(&kept) != text(&today)).then(|| "the stored results are not those of the rows".to_owned())
}
