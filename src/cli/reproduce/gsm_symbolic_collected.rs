//! The rows that the GSM-Symbolic study is compared with: runs, their labels, what limits the comparison.
use crate::cli::values::the_first;
use std::collections::BTreeMap;
use std::path::Path;

use super::gsm_symbolic_args::GsmSymbolicArgs;
use super::gsm_symbolic_args::StudyModel;
use super::gsm_symbolic_runs::Executed;
use crate::cli::Exit;
use crate::cli::error::CliError;
use crate::cli::printer::Printer;
use earnest_eval::model;
use earnest_papers::gsm_symbolic::{Evaluation, NumberDistribution, StudyRun, paper_name};
use earnest_results::{Mode, ModelRecord, ResultsError, Rows, RunError, Status, StoredRun};
use earnest_tasks::suite::gsm_symbolic::{Prompt, describes_questions};

/// The rows to analyse.
pub(super) struct Collected {
    pub(super) used: Vec<StudyRun>,
    pub(super) evaluations: Vec<Evaluation>,
    /// Distribution of the integers in the questions of the newest run.
    pub(super) numbers: Option<NumberDistribution>,
}

/// A run and its label in the tables.
struct Labelled {
    run: StoredRun,
    label: String,
    /// True if the command line names the run.
    named: bool,
}

/// Collects for every model and prompt the rows of the newest finished run. Runs named on the command line need not be finished.
/// With `--run`, only the study's own runs count.
pub(super) fn collect(
    args: &GsmSymbolicArgs,
    executed: Option<&[Executed]>,
    printer: Printer,
) -> Result<Collected, CliError> {
    let mut runs = match executed {
        Some(executed) => of_study(args, executed)?,
        None => stored(args, printer)?,
    };
    runs.sort_by(|left, right| right.run.manifest.started.cmp(&left.run.manifest.started));
    distinguish(&mut runs, printer);
    let wanted = args.chosen_prompts();
    let mut found: BTreeMap<(String, Prompt), Evaluation> = BTreeMap::new();
    let mut used = Vec::new();
    let mut numbers = None;
    for Labelled { run, label, named } in runs {
        let manifest = &run.manifest;
        if !named && (manifest.status != Status::Finished || manifest.shard.is_some()) {
            printer.message(&format!(
                "{} is left out because it is unfinished or a part; name it to include it",
                manifest.run
            ));
            continue;
        }
        let mut prompts = Vec::new();
        for (prompt, evaluation) in rows(&run, &label, &wanted)? {
            let key = (label.clone(), prompt);
            if found.contains_key(&key) {
                let name = &run.manifest.run;
                printer.message(&format!("{name} is left out for {label} on {prompt}: there is a newer finished run"));
                continue;
            }
            found.insert(key, evaluation);
            prompts.push(prompt);
        }
        if !prompts.is_empty() {
            let limits = limits(&run, &label);
            let questions = questions(&run);
            numbers = numbers.or_else(|| numbers_of(&run));
            used.push(StudyRun { run: run.manifest.run.clone(), model: label, prompts, questions, limits });
        }
    }
    Ok(Collected { used, evaluations: found.into_values().collect(), numbers })
}

/// The runs that the command itself executed or found finished.
fn of_study(args: &GsmSymbolicArgs, executed: &[Executed]) -> Result<Vec<Labelled>, CliError> {
    let folder = &args.compared.results.folder;
    let open = |own: &Executed| {
        Ok(Labelled { run: StoredRun::open(folder, &own.run)?, label: own.model.clone(), named: true })
    };
    executed.iter().map(open).collect()
}

/// Stored runs: those of the command line, or all of the suite, and those that --with joins.
fn stored(args: &GsmSymbolicArgs, printer: Printer) -> Result<Vec<Labelled>, CliError> {
    let runs = args.compared.shown(&args.suite, printer)?;
    let (mut joined, mut at_paths) = (Vec::new(), Vec::new());
    for model in &args.with {
        match joined_run(args, model, &runs)? {
            Some(run) => joined.push((model, run)),
            None => at_paths.push(model),
        }
    }
    if let Some(unknown) = at_paths.iter().find(|model| !runs.iter().any(|run| is_of(&run.manifest.model, &model.path)))
    {
        let path = unknown.path.display();
        return Err(CliError::usage(format!(
            "--with {}={path}: there is no run {path}, and no run of a model at this path",
            unknown.name
        ))
        .help("`earnest runs list` shows the runs; FOLDER/RUN names one of another results folder"));
    }
    for (model, run) in &joined {
        let wanted = rows(run, &model.name, &Prompt::ALL)?;
        if wanted.is_empty() {
            return Err(CliError::usage(format!(
                "--with {}: {} has no answers to the study's prompts ({})",
                model.name,
                run.place,
                Prompt::ALL.map(Prompt::name).join(", ")
            )));
        }
    }
    let explicit = !args.compared.runs.is_empty();
    let others = runs.into_iter().filter(|run| !joined.iter().any(|(_, own)| own.place == run.place));
    let mut labelled: Vec<Labelled> = others
        .map(|run| {
            let at_path = at_paths.iter().find(|model| is_of(&run.manifest.model, &model.path));
            let label = at_path.map_or_else(|| label(&run), |model| model.name.clone());
            Labelled { run, label, named: explicit }
        })
        .collect();
    labelled.extend(joined.into_iter().map(|(model, run)| {
        if run.manifest.settings.suite != args.suite {
            printer.message(&format!("{} is a run of {}", run.place, run.manifest.settings.suite));
        }
        let name = paper_name(&model.name).0.map_or_else(|| model.name.clone(), str::to_owned);
        Labelled { run, label: name, named: true }
    }));
    Ok(labelled)
}

/// The run that --with names: of the results folder, or `FOLDER/RUN`; none if it is the path of a model.
fn joined_run(args: &GsmSymbolicArgs, model: &StudyModel, runs: &[StoredRun]) -> Result<Option<StoredRun>, CliError> {
    if runs.iter().any(|run| run.manifest.model.path == model.path.display().to_string()) {
        return Ok(None);
    }
    let folder = &args.compared.results.folder;
    let name = model.path.display().to_string();
    match model.path.parent().filter(|parent| !parent.as_os_str().is_empty()) {
        // A results folder; the path of a checkpoint is none.
        Some(parent) if earnest_results::folder::has_results(parent)? && !model.path.exists() => {
            let name = model.path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
            Ok(Some(StoredRun::open(parent, &name)?))
        }
        Some(_) => Ok(None),
        None if model.path.exists() || !earnest_results::folder::has_results(folder)? => Ok(None),
        None => Ok(StoredRun::open(folder, &name).map(Some).or_else(|error| match error {
            ResultsError::Run(RunError::NoRun { .. }) => Ok(None),
            error => Err(error),
        })?),
    }
}

/// Answers of a run to these prompts.
fn rows(run: &StoredRun, label: &str, wanted: &[Prompt]) -> Result<BTreeMap<Prompt, Evaluation>, CliError> {
    let mut rows: BTreeMap<Prompt, Evaluation> = BTreeMap::new();
    let mut problem = None;
    run.walk(&mut |sample| {
        if let Ok(prompt) = sample.task.parse::<Prompt>()
            && wanted.contains(&prompt)
        {
            let evaluation = rows.entry(prompt).or_insert_with(|| Evaluation::new(label, prompt));
            if let Err(error) = evaluation.add(&sample) {
                problem.get_or_insert(error);
            }
        }
        Ok(())
    })?;
    match problem {
        Some(error) => Err(CliError::new(Exit::Results, format!("{} cannot be analysed: {error}", run.place))),
        None => Ok(rows),
    }
}

/// Label of a run's model: the paper's name for it, or its own.
fn label(run: &StoredRun) -> String {
    let name = &run.manifest.model.name;
    match paper_name(name) {
        (Some(name), None) => name.to_owned(),
        _ => name.clone(),
    }
}

/// Makes labels of different models different: by the weight format, else by the beginning of their files' digest. Where the files of a
/// run are not known, as with completions that were imported, the name is all that tells models apart.
fn distinguish(runs: &mut [Labelled], printer: Printer) {
    let files = |one: &Labelled| {
        let files = one.run.manifest.settings.files_of_model()?;
        Some(files.iter().map(|file| file.sha256.clone()).collect::<Vec<String>>())
    };
    let weights = |one: &Labelled| one.run.manifest.settings.weights.as_ref().map(ToString::to_string);
    let differs = |one: &Labelled, other: &Labelled, how: &dyn Fn(&Labelled, &Labelled) -> bool| {
        one.label == other.label && files(one).is_some() && files(other).is_some() && how(one, other)
    };
    let mut suffixes: Vec<String> = vec![String::new(); runs.len()];
    for (one, suffix) in runs.iter().zip(&mut suffixes) {
        if runs.iter().any(|other| differs(one, other, &|one, other| weights(one) != weights(other))) {
            suffix.push_str(&weights(one).map_or_else(|| ", as stored".to_owned(), |format| format!(", {format}")));
        }
        if runs.iter().any(|other| differs(one, other, &|one, other| files(one) != files(other))) {
            let digest = earnest_digest::sha256(files(one).unwrap_or_default().concat().as_bytes());
            suffix.push_str(&format!(" ({})", &earnest_digest::hex(&digest)[..6]));
        }
    }
    let mut reported: Vec<String> = Vec::new();
    for (one, suffix) in runs.iter_mut().zip(suffixes).filter(|(_, suffix)| !suffix.is_empty()) {
        if !reported.contains(&one.label) {
            printer.message(&format!(
                "different models are named {0}; they are labelled by their weights or files, or by --with NAME=RUN",
                one.label
            ));
            reported.push(one.label.clone());
        }
        one.label.push_str(&suffix);
    }
}

/// True if a run's model is the one at this path. Names count only if the paths cannot be compared: folders of different models often
/// have the same name.
fn is_of(record: &ModelRecord, path: &Path) -> bool {
    if path.display().to_string() == record.path {
        return true;
    }
    match (path.canonicalize(), Path::new(&record.path).canonicalize()) {
        (Ok(given), Ok(recorded)) => given == recorded,
        (Ok(_), Err(_)) => model::short_name(path) == record.name,
        // A path that does not exist names no model.
        (Err(_), _) => false,
    }
}

/// Sentences about the questions of a run: the published ones, or others.
fn questions(run: &StoredRun) -> Vec<String> {
    if run.manifest.settings.suite == "gsm-mini" {
        return vec!["The questions are drawn from 16 templates of earnest, not from the paper's.".to_owned()];
    }
    // Without its data an unfinished run has no summary.
    let notes = run.document().map(|document| document.summary.notes).unwrap_or_default();
    notes.into_iter().filter(|note| describes_questions(note)).collect()
}

/// Differences between a run and the paper's.
fn limits(run: &StoredRun, label: &str) -> Vec<String> {
    let (manifest, settings) = (&run.manifest, &run.manifest.settings);
    let mut limits = Vec::new();
    if settings.suite != "gsm-symbolic" {
        limits.push(format!("asks {}, not the paper's questions", settings.suite));
    }
    if let Some(limit) = settings.limit {
        limits.push(format!("was limited to {}", the_first(limit, "item")));
    }
    let option = |name: &str| settings.suite_options.get(name).filter(|value| !value.is_null());
    if let Some(instances) = option("instances").and_then(serde_json::Value::as_u64).filter(|count| *count < 50) {
        limits.push(format!("asks {instances} of the 50 variants of a template"));
    }
    if option("templates").is_some() {
        limits.push("asks some of the 100 templates".to_owned());
    }
    if option("trailing_space").and_then(serde_json::Value::as_str) == Some("trim") {
        limits.push("sends prompts without the study's final space".to_owned());
    }
    if let Some(tokens) = settings.generation.max_tokens.filter(|tokens| *tokens != 1024) {
        limits.push(format!("ends answers after {tokens} tokens; the study after 1024"));
    }
    if manifest.status != Status::Finished {
        limits.push("is not finished".to_owned());
    }
    if let (Some(name), Some(quantised)) = paper_name(&manifest.model.name) {
        limits.push(format!("is a quantised model ({quantised}), not {name} itself"));
    } else if manifest.model.is_gguf() && paper_name(label).0.is_some() {
        limits.push(format!("is from a GGUF file ({}); the study used half precision", manifest.model.format));
    } else if let Some(quantisation) = manifest.model.published_quantisation() {
        limits.push(format!("has quantised weights ({quantisation}); the study used half precision"));
    }
    if let Some(weights) = &settings.weights {
        limits.push(format!("computes with other numbers than the file's ({weights})"));
    }
    if settings.prompt_mode != Mode::Raw {
        limits.push("uses a chat template; the study sends bare prompts".to_owned());
    }
    if !settings.generation.sampling.is_greedy() {
        limits.push("samples; the study is greedy".to_owned());
    }
    if settings.samples > 1 {
        limits.push(format!("asks every item {} times; all answers are analysed as rows", settings.samples));
    }
    limits
}

/// Distribution of the integers in a run's questions; none if neither the questions nor the data are at hand.
pub fn numbers_of(run: &StoredRun) -> Option<NumberDistribution> {
    if let Some(facts) = run.question_facts() {
        return serde_json::from_value(facts).ok();
    }
    // In a chat prompt the question's text contains the worked examples, whose numbers do not count.
    if run.manifest.settings.prompt_mode != Mode::Raw {
        return None;
    }
    let mut first = None;
    let mut questions: Vec<(Option<String>, String)> = Vec::new();
    run.each_item(|item| {
        // All prompts have the same questions.
        if *first.get_or_insert_with(|| item.task.clone()) == item.task {
            let set = item.covariates.get("set").and_then(serde_json::Value::as_str).map(str::to_owned);
            questions.push((set, item.segments.question));
        }
    })
    .ok()?;
    let asked = questions.iter().map(|(set, question)| (set.as_deref(), question.as_str()));
    Some(NumberDistribution::of_questions(asked))
}
