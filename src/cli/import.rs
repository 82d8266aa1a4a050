//! `earnest import`: completions of other engines become a run.
use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::time::SystemTime;

use serde::Deserialize;

use super::catalogue::{Channel, Choice, GivenQuestion};
use super::error::CliError;
use super::printer::Printer;
use super::result_args::ImportArgs;
use super::{Exit, catalogue, results};
use earnest_engine::{FinishReason, Sampling, Timings};
use earnest_eval::evaluate::free_name;
use earnest_eval::prompt::{Mode, ModeRequest, SystemPlace};
use earnest_eval::run::store::{BULK_ROWS, RunRecord, Store};
use earnest_eval::run::{
    FileRecord, Generated, Generation, Host, IMPORT_ENGINE, MANIFEST_FORMAT, Manifest, ModelRecord, Plan,
    PlannedSample, RunSettings, SAMPLE_FORMAT, SIDE_BY_SIDE, Sample, Status, Stored, score_completions, timestamp,
};
use earnest_tasks::suite::{Item, Score, Suite};

/// How imported prompts count as written where `--prompt` does not say: as raw text.
const MODE: Mode = Mode::Raw;

/// A line of the file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    #[serde(alias = "id")]
    item: Option<String>,
    task: Option<String>,
    a: Option<String>,
    b: Option<String>,
    completion: String,
    #[serde(default)]
    sample: u32,
    #[serde(default)]
    truncated: bool,
}

/// Imports.
pub fn execute(args: &ImportArgs, printer: Printer) -> Result<Exit, CliError> {
    if args.name.trim().is_empty() {
        return Err(
            CliError::usage("--name is empty").help("name the model that wrote the completions: runs are found by it")
        );
    }
    let prompts = args.prompt.clone().unwrap_or_default();
    let mode = match prompts.mode {
        None => MODE,
        Some(ModeRequest::Raw) => Mode::Raw,
        Some(ModeRequest::Chat) => Mode::Chat,
        Some(ModeRequest::Auto) => {
            return Err(CliError::usage("--prompt auto asks a checkpoint, and completions have none")
                .help("say --prompt chat for answers of a chat, --prompt raw for continuations of a text"));
        }
    };
    let chosen = catalogue::choose(args.suite.name, &args.suite.options, args.seed.seed, &prompts)?;
    let channel = Channel::local(mode);
    let suite = chosen.suite(channel)?;
    let mut lines = read(&args.completions)?;
    for (number, line) in &mut lines {
        if let Some(task) = &mut line.task {
            *task = chosen.task(task).map_err(|error| wrong(&args.completions, *number, error.message))?;
        }
    }
    let samples = lines.iter().map(|(_, line)| line.sample.saturating_add(1)).max().unwrap_or(1);
    let plan = Plan { limit: args.limit, samples, shard: None };
    let own = match args.limit {
        None => own_questions(chosen.choice.as_ref(), suite.as_ref(), channel, &args.completions, &lines)?,
        Some(_) => None,
    };
    if let Some(own) = &own {
        printer.message(&format!(
            "the operands are not all among the drawn questions: the run consists of the file's own {}",
            own.len()
        ));
    }
    let suite = own.unwrap_or(suite);
    let places = place(&args.completions, suite.as_ref(), plan, lines)?;
    let manifest = manifest(args, suite.as_ref(), mode, plan, places.len())?;
    let store = results::create(&args.results.folder, printer)?;
    let run = keep(&store, manifest, suite.as_ref(), plan, &places)?;
    let planned = plan.len(suite.as_ref());
    if places.len() < planned {
        printer.warning(&format!("{} of {planned} samples have no completion in the file", planned - places.len()));
    }
    let run = store.run(&run)?;
    let document = results::document(&store, &run)?;
    results::present(document, args.json, None, printer)?;
    Ok(Exit::Success)
}

fn wrong(path: &Path, line: usize, reason: impl std::fmt::Display) -> CliError {
    CliError::usage(format!("{} line {line}: {reason}", path.display()))
}

fn read(path: &Path) -> Result<Vec<(usize, Line)>, CliError> {
    let failed = |error: std::io::Error| CliError::usage(format!("cannot read {}: {error}", path.display()));
    let mut lines = Vec::new();
    for (number, line) in BufReader::new(File::open(path).map_err(failed)?).lines().enumerate() {
        let line = line.map_err(failed)?;
        // Some editors put a mark of the encoding before everything.
        let line = if number == 0 { line.trim_start_matches('\u{feff}') } else { &line };
        if line.trim().is_empty() {
            continue;
        }
        let parsed: Line = serde_json::from_str(line).map_err(|error| {
            wrong(path, number + 1, error).help("`earnest import --help` shows what a line looks like")
        })?;
        lines.push((number + 1, parsed));
    }
    if lines.is_empty() {
        return Err(CliError::usage(format!("{} has no completions", path.display())));
    }
    Ok(lines)
}

/// The suite of the file's own questions, where its lines name operands (no items) and the suite draws not all of them: a
/// published data set, say. None where the drawn questions do, or the suite cannot be asked others.
fn own_questions(
    choice: &dyn Choice,
    suite: &dyn Suite,
    channel: Channel,
    path: &Path,
    lines: &[(usize, Line)],
) -> Result<Option<Box<dyn Suite>>, CliError> {
    let mut questions: Vec<GivenQuestion> = Vec::new();
    let mut numbers: Vec<usize> = Vec::new();
    let mut missing = HashSet::new();
    for (number, line) in lines {
        let (None, Some(task), Some(a)) = (&line.item, &line.task, &line.a) else { return Ok(None) };
        let question = GivenQuestion { task: task.clone(), a: a.clone(), b: line.b.clone() };
        if missing.insert(question.clone()) {
            questions.push(question);
            numbers.push(*number);
        }
    }
    let own = match choice.given(channel, &questions) {
        Ok(own) => own,
        Err(all) => {
            // One by one, so that the first line with a question that is none can be named.
            for (question, number) in questions.iter().zip(&numbers) {
                choice
                    .given(channel, std::slice::from_ref(question))
                    .map_err(|error| wrong(path, *number, error.message))?;
            }
            return Err(all.into());
        }
    };
    for item in suite.items() {
        let Some(a) = operand(&item, "a") else { continue };
        let b = operand(&item, "b");
        missing.remove(&GivenQuestion { task: item.task, a, b });
        if missing.is_empty() {
            return Ok(None);
        }
    }
    Ok(own)
}

/// Finds the sample that each line answers.
fn place(
    path: &Path,
    suite: &dyn Suite,
    plan: Plan,
    lines: Vec<(usize, Line)>,
) -> Result<BTreeMap<usize, Line>, CliError> {
    let mut by_id: HashMap<String, usize> = HashMap::new();
    let mut asked: Vec<(String, Option<String>, Option<String>)> = Vec::new();
    let mut by_operands: HashMap<(String, String, Option<String>), Vec<usize>> = HashMap::new();
    for (place, item) in suite.items().take(plan.items(suite)).enumerate() {
        let (a, b) = (operand(&item, "a"), operand(&item, "b"));
        if let Some(a) = &a {
            by_operands.entry((item.task.clone(), a.clone(), b.clone())).or_default().push(place);
        }
        by_id.insert(item.id, place);
        asked.push((item.task, a, b));
    }
    let mut found: BTreeMap<usize, Line> = BTreeMap::new();
    for (number, line) in lines {
        let places = match (&line.item, &line.task, &line.a) {
            (Some(id), _, _) => by_id.get(id).map(std::slice::from_ref).unwrap_or_default(),
            (None, Some(task), Some(a)) => {
                by_operands.get(&(task.clone(), a.clone(), line.b.clone())).map(Vec::as_slice).unwrap_or_default()
            }
            _ => {
                return Err(wrong(
                    path,
                    number,
                    "name the \"item\", or the \"task\" with its operand \"a\" (and \"b\")",
                ));
            }
        };
        if let (Some(id), Some((task, a, b))) = (&line.item, places.first().and_then(|&place| asked.get(place))) {
            let own_task = Some(task.clone());
            let contradicted = [("task", &line.task, &own_task), ("a", &line.a, a), ("b", &line.b, b)]
                .into_iter()
                .find(|(_, given, own)| given.is_some() && given != own);
            if let Some((name, given, own)) = contradicted {
                let value = |value: &Option<String>| value.clone().unwrap_or_else(|| "nothing".to_owned());
                let problem =
                    format!("{id} has {} as its \"{name}\" under these options, not {}", value(own), value(given));
                return Err(wrong(path, number, problem).help(
                    "the options of the items, --seed among them, must be those of the questions that were asked",
                ));
            }
        }
        let place_of = |place: usize| place * plan.samples as usize + line.sample as usize;
        // The same operands can be drawn twice; such items are filled in order.
        let free = places.iter().map(|&place| place_of(place)).find(|place| !found.contains_key(place));
        match free {
            Some(place) => drop(found.insert(place, line)),
            None if places.is_empty() => {
                let what = line.item.as_deref().or(line.task.as_deref()).unwrap_or_default();
                return Err(wrong(
                    path,
                    number,
                    format!("{} asks no such item ({what}) under these options", suite.name()),
                )
                .help("the options of the items (`earnest suites` lists them) must be those of the questions"));
            }
            None => {
                return Err(wrong(
                    path,
                    number,
                    "this sample was answered by an earlier line; number them with \"sample\"",
                ));
            }
        }
    }
    Ok(found)
}

fn operand(item: &Item, name: &str) -> Option<String> {
    Some(item.covariates.get(name)?.as_str()?.to_owned())
}

fn manifest(args: &ImportArgs, suite: &dyn Suite, mode: Mode, plan: Plan, rows: usize) -> Result<Manifest, CliError> {
    let failed =
        |error: std::io::Error| CliError::usage(format!("cannot read {}: {error}", args.completions.display()));
    let size = std::fs::metadata(&args.completions).map_err(failed)?.len();
    let sha256 = earnest_digest::sha256_file(&args.completions, |_| ()).map_err(failed)?;
    let name = args.completions.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let settings = RunSettings {
        suite: suite.name().to_owned(),
        suite_version: suite.version().to_owned(),
        suite_options: suite.options(),
        limit: plan.limit,
        samples: plan.samples,
        model_files: vec![FileRecord { name, size, sha256 }],
        weights: None,
        prompt_mode: mode,
        system: SystemPlace::Own,
        generation: Generation {
            sampling: Sampling::GREEDY,
            seed: args.seed.seed,
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
    let whole = rows == plan.len(suite);
    Ok(Manifest {
        format: MANIFEST_FORMAT,
        run: settings.run_id(&args.name),
        status: if whole { Status::Finished } else { Status::Interrupted },
        shard: None,
        settings_sha256: settings.sha256(),
        settings,
        model: ModelRecord {
            name: args.name.clone(),
            path: args.completions.display().to_string(),
            format: "completions".to_owned(),
            architecture: "imported".to_owned(),
            context: 0,
            chat_template_sha256: None,
            pinned: None,
            weights: None,
        },
        first_prompt: None,
        engine: None,
        host: Host::probe(),
        started: now.clone(),
        ended: Some(now),
        sessions: 1,
        generation_s: 0.0,
    })
}

fn keep(
    store: &Store,
    mut manifest: Manifest,
    suite: &dyn Suite,
    plan: Plan,
    lines: &BTreeMap<usize, Line>,
) -> Result<String, CliError> {
    let (_lock, name) = free_name(store, &manifest.run)?;
    manifest.run.clone_from(&name);
    // Whole only once every row is written: programs are run to judge them, and that can be interrupted.
    let status = std::mem::replace(&mut manifest.status, Status::Interrupted);
    let run = store.begin(&manifest, plan.len(suite))?;
    store.keep_questions(&run, suite)?;
    let mut writer = store.writer(&run).batches_of(BULK_ROWS);
    let mut answered = plan.walk(suite).filter_map(|planned| Some((lines.get(&planned.index)?, planned)));
    loop {
        let read: Vec<_> = answered.by_ref().take(SIDE_BY_SIDE).collect();
        if read.is_empty() {
            break;
        }
        let stored: Vec<Stored<'_>> = read
            .iter()
            .map(|(line, planned)| Stored {
                item: &planned.item,
                completion: &line.completion,
                truncated: line.truncated,
            })
            .collect();
        for ((line, planned), score) in read.iter().zip(score_completions(suite, None, &stored)) {
            writer.push(planned.index, imported(&name, suite, planned, line, score))?;
        }
    }
    writer.write()?;
    drop(writer);
    manifest.status = status;
    store.update(run.id, &manifest, plan.len(suite))?;
    results::conclude(store, &RunRecord { manifest, ..run }, suite)?;
    Ok(name)
}

/// The row of a completion that another engine generated.
fn imported(run: &str, suite: &dyn Suite, planned: &PlannedSample, line: &Line, score: Score) -> Sample {
    let item = &planned.item;
    Sample {
        format: SAMPLE_FORMAT,
        run: run.to_owned(),
        suite: suite.name().to_owned(),
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
            // The file has text only.
            ids: Vec::new(),
            finish: if line.truncated { FinishReason::Length } else { FinishReason::Eos },
            cached_tokens: 0,
            timings: Timings::default(),
        }),
        score: Some(score),
        failure: None,
    }
}
