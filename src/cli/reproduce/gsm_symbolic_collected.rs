//! The runs that the GSM-Symbolic study is compared with, as the command line names them.
use std::path::Path;

use super::gsm_symbolic_args::GsmSymbolicArgs;
use super::gsm_symbolic_args::StudyModel;
use super::gsm_symbolic_runs::Executed;
use crate::cli::error::CliError;
use crate::cli::printer::Printer;
use earnest_eval::model;
use earnest_papers::gsm_symbolic::{Collected, Labelled, answers, collected, label_of, paper_name};
use earnest_results::{ModelRecord, ResultsError, RunError, StoredRun};
use earnest_tasks::suite::gsm_symbolic::Prompt;

/// Collects for every model and prompt the rows of the newest finished run. Runs named on the command line need not be finished.
/// With `--run`, only the study's own runs count.
pub(super) fn collect(
    args: &GsmSymbolicArgs,
    executed: Option<&[Executed]>,
    printer: Printer,
) -> Result<Collected, CliError> {
    let runs = match executed {
        Some(executed) => of_study(args, executed)?,
        None => stored(args, printer)?,
    };
    Ok(collected(runs, &args.chosen_prompts(), &mut |note| printer.remark(&note.to_string()))?)
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
        if answers(run, &model.name, &Prompt::ALL)?.is_empty() {
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
            let label = at_path.map_or_else(|| label_of(&run), |model| model.name.clone());
            Labelled { run, label, named: explicit }
        })
        .collect();
    labelled.extend(joined.into_iter().map(|(model, run)| {
        if run.manifest.settings.suite != args.suite {
            printer.remark(&format!("{} is a run of {}", run.place, run.manifest.settings.suite));
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
