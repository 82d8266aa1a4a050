//! Shared questions of `earnest profile --compare`: found among the stored runs, or asked of both models.
use std::path::Path;

use earnest_eval::evaluate::{Evaluated, EvaluationSettings, ModelSession, Questions};
use earnest_report::profile::{NumeracyProfile, SharedAnswers, shared_questions};
use earnest_results::store::{FILE_NAME, RunRecord, Store};
use earnest_results::suites::LocalHost;
use earnest_results::{RunSettings, Status};
use earnest_tasks::counted;
use earnest_tasks::suite::profile::{FEWEST_OF_SKILL, NAME, ProfileOptions, ProfileSuite, SHARED_OF_SKILL};
use earnest_tasks::suite::{Scoring, Suite};

use super::error::CliError;
use super::events::Reporters;
use super::printer::Printer;
use super::profile::ProfileArgs;
use super::run::{Stored, settings_of};
use super::{offered, results};

/// Answers to shared questions, and the two runs that have them.
pub(super) struct Shared {
    pub(super) answers: SharedAnswers,
    pub(super) runs: [String; 2],
}

/// A model that is asked, without its weights.
struct Opened {
    model: ModelSession,
    settings: EvaluationSettings,
}

/// Finds or gets the answers of both models to so many shared questions. None, with a warning that says why, where a model cannot be asked; none without a
/// question to ask.
///
/// # Errors
/// If an engine fails while it is asked, or is interrupted: the same command goes on.
pub(super) fn shared_answers(
    args: &ProfileArgs,
    questions: usize,
    runs: [&RunRecord; 2],
    profiles: [&NumeracyProfile; 2],
    printer: Printer,
) -> Result<Option<Shared>, CliError> {
    let folder = &args.results.folder;
    if questions == 0 {
        return Ok(None);
    }
    if (1..FEWEST_OF_SKILL).contains(&questions) {
        let message = format!("--questions {questions} is too few for a skill");
        return Err(
            CliError::usage(message).help(format!("a skill gets {FEWEST_OF_SKILL} to {SHARED_OF_SKILL}; 0 asks none"))
        );
    }
    if let Some(open) = profiles.iter().find(|profile| !profile.finished) {
        printer.warning(&offered::here(&format!(
            "{} is not finished, so that no shared questions are asked; `earnest resume {0}` finishes it",
            open.run
        )));
        return Ok(None);
    }
    if !profiles[0].asks_as(profiles[1]) {
        // The comparison says how the two are asked alike.
        printer.warning(
            "the two profiles are of other versions, so that no shared questions are asked; the comparison is by the stored answers",
        );
        return Ok(None);
    }
    let (seed, shared) = shared_questions(profiles[0], profiles[1], questions);
    if shared.is_empty() {
        return Ok(None);
    }
    let mut options = Vec::with_capacity(runs.len());
    for (run, profile) in runs.into_iter().zip(profiles) {
        let of_profile = ProfileOptions::from_json(&run.manifest.settings.suite_options)?;
        // The screening is not asked again: each skill has the form that it had.
        let mut forms = profile.asked_form().map_or_else(|| of_profile.forms.clone(), |form| vec![form]);
        let mut shared = shared.clone();
        for of in &mut shared {
            let Some(form) = profile.form_of(&of.task).filter(|form| Some(form) != forms.first()) else { continue };
            of.form = Some(form.to_string());
            if !forms.contains(&form) {
                forms.push(form);
            }
        }
        options.push(ProfileOptions { forms, ..of_profile.with_shared(seed, shared) });
    }
    let store = results::open(folder, printer)?;
    let mut found = Vec::with_capacity(runs.len());
    for (run, options) in runs.into_iter().zip(&options) {
        found.push(finished(&store, run, options)?);
    }
    if found.iter().any(Option::is_none) && !folder.join(FILE_NAME).exists() {
        printer.warning(&format!(
            "{} has rows of runs and takes no new ones, so that no shared questions are asked; the comparison is by the stored answers",
            folder.display()
        ));
        return Ok(None);
    }
    // The file of results is the session's while it runs.
    drop(store);
    let mut opened = Vec::with_capacity(runs.len());
    for ((run, options), found) in runs.into_iter().zip(&options).zip(&found) {
        // All are opened before the first is asked.
        opened.push(match found {
            Some(_) => None,
            None => match open(args, run, options, folder) {
                Ok(opened) => Some(opened),
                Err(error) => {
                    cannot_ask(run, &error, printer);
                    return Ok(None);
                }
            },
        });
    }
    let asked: usize = shared.iter().map(|of| of.count).sum();
    for (index, opened) in opened.into_iter().enumerate() {
        let Some(Opened { mut model, settings }) = opened else { continue };
        let run = runs[index];
        printer.message(&format!(
            "asking {} at most {} that {} gets, too ({} of 2)",
            run.manifest.model.name,
            counted(asked, "question"),
            runs[1 - index].manifest.model.name,
            index + 1
        ));
        let mut reporters = Reporters::new(printer, args.events.as_deref())?;
        let evaluated = model.evaluate(&settings, &mut reporters);
        // The progress display ends before anything else is printed.
        drop(reporters);
        let Evaluated { run, .. } = evaluated?;
        found[index] = Some(run);
    }
    let [Some(one), Some(other)] = &found[..] else { return Ok(None) };
    let store = results::open(folder, printer)?;
    let answers = SharedAnswers::read(&store, [one, other])?;
    Ok(Some(Shared { answers, runs: [one, other].map(|run| run.manifest.run.clone()) }))
}

/// Says that a model cannot be asked, and what is shown instead.
fn cannot_ask(run: &RunRecord, error: &CliError, printer: Printer) {
    printer.warning(&format!(
        "{} cannot be asked shared questions: {}; the comparison is by the stored answers, as `--questions 0` asks for",
        run.manifest.model.name, error.message
    ));
    let model = match &run.manifest.settings.endpoint {
        Some(endpoint) => &endpoint.base_url,
        None => &run.manifest.model.path,
    };
    let name = &run.manifest.run;
    printer.remark(&format!("{name} was made with {model}; the same command asks it once it is there as it was"));
}

/// Opens the model of a profile as it was asked, and checks that it is the same.
fn open(args: &ProfileArgs, run: &RunRecord, options: &ProfileOptions, folder: &Path) -> Result<Opened, CliError> {
    let manifest = &run.manifest;
    let stored = Stored { run: &manifest.settings, model: &manifest.model, moved: None };
    let settings = EvaluationSettings {
        questions: Questions::Suite(Suite::new(ProfileSuite::new(options.clone())?)),
        engine: args.engine.settings()?,
        traffic: args.traffic.settings(),
        ..settings_of(&stored, &args.hub.settings(), &LocalHost::default(), folder)?
    };
    settings.check()?;
    let mut model = ModelSession::open(&settings)?;
    let found = model.survey(&settings, None, &mut ())?.settings;
    if !is_same_model(&found, &manifest.settings) {
        let others: Vec<String> = other_settings(&manifest.settings, &found);
        let message = format!("it is not as it was in {}: {}", manifest.run, others.join(", "));
        return Err(CliError::usage(message));
    }
    Ok(Opened { model, settings })
}

/// Fields of settings that the questions decide, not the model, and the version of the program.
const OF_QUESTIONS: [&str; 4] = ["suite_options", "suite_version", "system", "earnest"];

fn other_settings(one: &RunSettings, other: &RunSettings) -> Vec<String> {
    let is_of_model = |name: &str| !OF_QUESTIONS.iter().any(|field| name.split('.').next() == Some(field));
    let changes = one.changes(other).into_iter().map(|change| change.name);
    let mut others: Vec<String> = changes.filter(|name| is_of_model(name)).collect();
    for name in &mut others {
        if name == "model_files" {
            *name = "the content of its files".to_owned();
        }
    }
    others
}

fn is_same_model(one: &RunSettings, other: &RunSettings) -> bool {
    other_settings(one, other).is_empty()
}

/// The finished run of these questions by the model of a profile.
fn finished(store: &Store, profile: &RunRecord, options: &ProfileOptions) -> Result<Option<RunRecord>, CliError> {
    let suite = ProfileSuite::new(options.clone())?;
    let (wanted, version, of_profile) = (options.to_json(), suite.version(), &profile.manifest.settings);
    let is_wanted = |run: &RunRecord| {
        let settings = &run.manifest.settings;
        run.manifest.status == Status::Finished
            && settings.suite == NAME
            && settings.suite_options == wanted
            && settings.suite_version == version
            && is_same_model(settings, of_profile)
    };
    Ok(store.runs()?.into_iter().rfind(is_wanted))
}
