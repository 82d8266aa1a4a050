//! Import of completions that another engine generated, matched with a suite's items and scored.

mod completions;
mod placement;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::SystemTime;

use earnest_engine::{FinishReason, Sampling, Timings};
use earnest_tasks::suite::registry::{Channel, OptionValues};
use earnest_tasks::suite::{Score, Suite, check_size};

use self::completions::CompletionLine;
use crate::EvalError;
use earnest_results::store::{BULK_ROWS, RunRecord, Store};
use earnest_results::suites::{ConfiguredSuite, LocalHost, start_programs};
use earnest_results::{
    FileRecord, Generated, Generation, Host, IMPORT_ENGINE, MANIFEST_FORMAT, Manifest, Mode, ModeRequest, ModelRecord,
    Plan, PlannedSample, Reporter, RunEvent, RunNotice, RunSettings, SAMPLE_FORMAT, SIDE_BY_SIDE, Sample, Status,
    Stored, SystemPlace, folder, score_completions, timestamp,
};

#[derive(Debug, Clone)]
pub struct ImportSettings {
    /// Name of the suite.
    pub suite: String,
    /// Options of the suite, its seed and prompts among them.
    pub options: OptionValues,
    /// File of completions, a JSON object a line.
    pub completions: PathBuf,
    /// Name of the model that generated them.
    pub model: String,
    /// Form of the prompts; [`ModeRequest::Auto`] is refused, because there is no checkpoint to ask.
    pub prompt: ModeRequest,
    /// Number of items, from the first; none for all.
    pub limit: Option<usize>,
    /// Results folder.
    pub results: PathBuf,
    /// Host on which model-written programs run.
    pub host: LocalHost,
}

impl ImportSettings {
    /// An import for a suite with default options and seed 1, whose prompts were raw texts.
    pub fn new(
        suite: impl Into<String>,
        completions: impl Into<PathBuf>,
        model: impl Into<String>,
        results: impl Into<PathBuf>,
    ) -> Self {
        ImportSettings {
            suite: suite.into(),
            options: OptionValues::new(1, Vec::new()),
            completions: completions.into(),
            model: model.into(),
            prompt: ModeRequest::Raw,
            limit: None,
            results: results.into(),
            host: LocalHost::default(),
        }
    }

    fn mode(&self) -> Result<Mode, EvalError> {
        match self.prompt {
            ModeRequest::Raw => Ok(Mode::Raw),
            ModeRequest::Chat => Ok(Mode::Chat),
            ModeRequest::Auto => {
                Err(EvalError::setting("the setting `prompt = auto` needs a checkpoint, and imported completions have none")
                    .hint("use the setting `prompt = chat` for the answers of a chat, the setting `prompt = raw` for continuations of a \
                           text"))
            }
        }
    }
}

/// An imported run and its store.
pub struct Imported {
    pub store: Store,
    pub run: RunRecord,
    /// Samples in the plan.
    pub planned: usize,
    /// Samples with a completion in the file.
    pub recorded: usize,
}

/// Imports completions as a new run.
///
/// # Errors
/// [`EvalError`]; [`FileError::Line`](earnest_rows::FileError::Line) names the first line that cannot be used. Nothing is stored unless every line is matched.
pub fn import(settings: &ImportSettings, reporter: &mut dyn Reporter) -> Result<Imported, EvalError> {
    if settings.model.trim().is_empty() {
        return Err(EvalError::setting("the setting `name` is empty")
            .hint("name the model that wrote the completions: runs are found by it"));
    }
    let mode = settings.mode()?;
    let ConfiguredSuite { registration, choice } = settings.host.configure(&settings.suite, &settings.options)?;
    let channel = Channel::local(mode);
    let mut suite = choice.suite(channel)?;
    if suite.items.chooser().is_some() {
        return Err(EvalError::setting(format!(
            "completions of {} cannot be imported: it chooses its questions by the answers, so a file has those of another model",
            settings.suite
        ))
        .hint(
            "`earnest profile --base-url URL` asks a model behind an endpoint; `earnest import nupa` and `earnest import arithmetic-bench` read \
             completions of fixed questions",
        ));
    }
    let path = settings.completions.as_path();
    let mut lines = completions::read(path)?;
    for (number, line) in &mut lines {
        if let Some(task) = &mut line.task {
            *task = registration.task(task).map_err(|error| EvalError::line(path, *number, error.message))?;
        }
    }
    let most = lines.iter().map(|(number, line)| (line.sample.saturating_add(1), *number)).max();
    let (samples, most_line) = most.unwrap_or((1, 0));
    let plan = Plan { limit: settings.limit, samples, shard: None };
    if let Some(limit) = settings.limit {
        check_size(|| format!("the setting `limit = {limit}`"), &[limit])?;
    }
    if settings.limit.is_none()
        && let Some(own) = placement::suite_of_file(choice.as_ref(), &suite, channel, path, &lines)?
    {
        reporter.event(&RunEvent::notice(RunNotice::OwnQuestions { items: own.items.len() }));
        suite = own;
    }
    let suite = &suite;
    let items = plan.items(suite);
    check_size(|| format!("\"sample\": {} with {items} items", samples - 1), &[items, samples as usize])
        .map_err(|error| EvalError::line(path, most_line, error))?;
    let lines = placement::place(path, suite, plan, lines)?;
    let (planned, recorded) = (plan.len(suite), lines.len());
    let sandbox = start_programs(suite, reporter)?;
    let manifest = Manifest { sandbox, ..manifest(settings, suite, mode, plan)? };
    let store = Store::create(&settings.results)?;
    let run = write(&store, manifest, suite, plan, &lines)?;
    if recorded < planned {
        let samples = planned - recorded;
        reporter.event(&RunEvent::notice(RunNotice::WithoutCompletion { samples, planned }));
    }
    Ok(Imported { store, run, planned, recorded })
}

/// The manifest of an import, not finished yet.
fn manifest(settings: &ImportSettings, suite: &Suite, mode: Mode, plan: Plan) -> Result<Manifest, EvalError> {
    let path = settings.completions.as_path();
    let failed = |error| EvalError::input(path.display(), error);
    let size = std::fs::metadata(path).map_err(failed)?.len();
    let sha256 = earnest_digest::sha256_file(path, |_| ()).map_err(failed)?;
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let run_settings = RunSettings {
        suite: suite.scoring.name().to_owned(),
        suite_version: suite.scoring.version().to_owned(),
        suite_options: suite.scoring.options(),
        limit: plan.limit,
        samples: plan.samples,
        until: None,
        model_files: vec![FileRecord { name, size, sha256 }],
        weights: None,
        pre_tokenizer: None,
        prompt_mode: mode,
        system: SystemPlace::Own,
        generation: Generation {
            sampling: Sampling::GREEDY,
            seed: settings.options.seed,
            stop_ids: Vec::new(),
            max_tokens: None,
            thinking: false,
        },
        enable_thinking: None,
        thinking_text: Default::default(),
        endpoint: None,
        engine: IMPORT_ENGINE.to_owned(),
        earnest: env!("CARGO_PKG_VERSION").to_owned(),
    };
    let now = timestamp(SystemTime::now());
    Ok(Manifest {
        format: MANIFEST_FORMAT,
        run: run_settings.run_id(&settings.model),
        // Finished only once every row is written: model-written programs run while scoring, and can be interrupted.
        status: Status::Interrupted,
        shard: None,
        settings_sha256: run_settings.sha256(),
        settings: run_settings,
        model: ModelRecord {
            name: settings.model.clone(),
            path: path.display().to_string(),
            format: "completions".to_owned(),
            architecture: "imported".to_owned(),
            context: 0,
            chat_template_sha256: None,
            pinned: None,
            weights: None,
            allowed_config: Vec::new(),
        },
        first_prompt: None,
        engine: None,
        host: Host::probe(),
        started: now.clone(),
        ended: Some(now),
        sandbox: None,
        sessions: 1,
        generation_s: 0.0,
        decision: None,
    })
}

/// Scores the completions and writes them as a new run. `lines` are by index in the plan.
fn write(
    store: &Store,
    mut manifest: Manifest,
    suite: &Suite,
    plan: Plan,
    lines: &BTreeMap<usize, CompletionLine>,
) -> Result<RunRecord, EvalError> {
    let (_lock, name) = folder::free_name(store, &manifest.run)?;
    manifest.run.clone_from(&name);
    let planned = plan.len(suite);
    let run = store.begin(&manifest, planned)?;
    store.keep_questions(&run, suite, lines.keys().copied())?;
    let mut writer = store.writer(&run).batches_of(BULK_ROWS);
    let mut answered = plan.walk(suite).filter_map(|planned| Some((lines.get(&planned.index)?, planned)));
    loop {
        let batch: Vec<_> = answered.by_ref().take(SIDE_BY_SIDE).collect();
        if batch.is_empty() {
            break;
        }
        let completions: Vec<Stored<'_>> = batch
            .iter()
            .map(|(line, planned)| Stored {
                item: &planned.item,
                completion: &line.completion,
                truncated: line.truncated,
            })
            .collect();
        for ((line, planned), score) in batch.iter().zip(score_completions(suite, None, &completions)) {
            writer.push(planned.index, sample(&name, suite, planned, line, score))?;
        }
    }
    writer.write()?;
    drop(writer);
    if lines.len() == planned {
        manifest.status = Status::Finished;
    }
    store.update(run.id, &manifest, planned)?;
    let run = RunRecord { manifest, ..run };
    folder::keep_document(store, &run, suite)?;
    Ok(run)
}

/// The row of an imported completion: text only, without token ids and timings.
fn sample(run: &str, suite: &Suite, planned: &PlannedSample, line: &CompletionLine, score: Score) -> Sample {
    let item = &planned.item;
    Sample {
        format: SAMPLE_FORMAT,
        run: run.to_owned(),
        suite: suite.scoring.name().to_owned(),
        item: item.id.clone(),
        sample: planned.sample,
        task: item.task.clone(),
        cluster: item.cluster.clone(),
        covariates: item.covariates.clone(),
        gold: item.gold.clone(),
        prompt_sha256: String::new(),
        prompt_tokens: 0,
        budget: item.budget.answer,
        max_tokens: item.budget.answer,
        completion: Some(Generated {
            text: line.completion.clone(),
            ids: Vec::new(),
            counted_tokens: 0,
            finish: if line.truncated { FinishReason::Length } else { FinishReason::Eos },
            cached_tokens: 0,
            timings: Timings::default(),
        }),
        score: Some(score),
        failure: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use earnest_rows::FileError;
    use earnest_tasks::suite::Items;

    fn settings(folder: &std::path::Path, lines: &str) -> ImportSettings {
        let completions = folder.join("completions.jsonl");
        std::fs::write(&completions, lines).unwrap();
        ImportSettings::new("arithmetic-bench", completions, "a model", folder.join("results"))
    }

    #[test]
    fn completions_become_a_run() {
        let folder = tempfile::tempdir().unwrap();
        let suite = earnest_tasks::suite::arithmetic_bench::ArithmeticBench::new(Default::default()).unwrap();
        let item = suite.iter().next().unwrap();
        let line = serde_json::json!({ "item": item.id, "completion": item.gold });
        let settings = settings(folder.path(), &format!("\u{feff}{line}\n\n"));
        let imported = import(&settings, &mut ()).unwrap();
        assert_eq!((imported.recorded, imported.planned), (1, suite.len()));
        assert_eq!(imported.run.manifest.status, Status::Interrupted, "only a part of the suite has completions");
        let stored = imported.store.samples(&imported.run, Default::default()).next().unwrap().unwrap();
        assert!(stored.score.unwrap().correct);
        let whole = import(&ImportSettings { limit: Some(1), ..settings }, &mut ()).unwrap();
        assert_eq!(whole.run.manifest.status, Status::Finished);
    }

    #[test]
    fn lines_that_cannot_be_used_are_named_and_nothing_is_stored() {
        let folder = tempfile::tempdir().unwrap();
        for line in [r#"{"completion": "1"}"#, r#"{"item": "no such", "completion": "1"}"#, "{}"] {
            let settings = settings(folder.path(), &format!("\n{line}\n"));
            let error = import(&settings, &mut ()).map(|_| ()).unwrap_err();
            assert!(matches!(error, EvalError::File(FileError::Line { line: 2, .. })), "{error}");
            assert!(!settings.results.exists());
        }
    }

    #[test]
    fn settings_without_sense_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let settings = settings(folder.path(), "");
        for refused in [
            ImportSettings { model: " ".into(), ..settings.clone() },
            ImportSettings { prompt: ModeRequest::Auto, ..settings.clone() },
            ImportSettings { suite: "no such suite".into(), ..settings.clone() },
            settings,
        ] {
            assert!(matches!(import(&refused, &mut ()), Err(EvalError::Setting(_))), "{refused:?}");
        }
    }
}
