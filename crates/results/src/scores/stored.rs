//! Scores of a stored run.
use crate::{
    ComparisonNotice, Decision, Notice, Origin, Parts, ResultsError, RunSettings, card_of, check_filter, folder, named,
    suites,
};

use super::Scores;
use crate::store::{Filter, RunRecord, Store};

/// Settings of a comparison.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct CompareSettings {
    /// Scorer whose numbers are compared; none for the own one of each run, or where these differ one that all have.
    pub chosen: Option<String>,
    /// Field of the questions that is their cluster; none for the stored clusters.
    pub cluster: Option<String>,
    /// The only task.
    pub task: Option<String>,
}

/// Reads the scores of a run by item; `warn` gets the number of samples without one.
///
/// # Errors
/// If there is no such scorer or task, or the rows cannot be read.
pub fn scores(
    store: &Store,
    run: &RunRecord,
    settings: &CompareSettings,
    warn: &mut impl FnMut(Notice),
) -> Result<Scores, ResultsError> {
    store.check_seal(run)?;
    let name = &run.manifest.run;
    let own = folder::chosen_scorers(store, run)?;
    let of_tool = run.manifest.settings.origin() == Origin::Log;
    let mut scores = Scores::chosen_by(own.clone()).clustered_by(settings.cluster.clone());
    scores.has_condition = run.manifest.settings.until.is_some();
    scores.ended_early = run.manifest.decision.as_ref().is_some_and(Decision::is_early);
    if of_tool {
        let tool = card_of(&run.manifest.settings).map(|card| card.tool);
        scores = scores.of_log(tool).by_scorer(own.first().cloned());
    }
    if let Some(wanted) = &settings.chosen {
        let scorers = match of_tool {
            true => suites::stored(&run.manifest.settings)?.scoring.scorers().into_iter().map(str::to_owned).collect(),
            false => store.scorers(run)?,
        };
        let names: Vec<&str> = scorers.iter().map(String::as_str).collect();
        let parts = || -> Result<Parts, ResultsError> {
            let mut parts = Parts::default();
            if of_tool {
                store.samples(run, Filter::default()).try_for_each(|sample| sample.map(|sample| parts.add(&sample)))?;
            }
            Ok(parts)
        };
        scores = scores.by_scorer(Some(named(name, wanted, &names, own.first().map(String::as_str), parts)?));
    }
    let filter = match &settings.task {
        Some(_) => check_filter(store, run, Filter { task: settings.task.clone(), ..Filter::default() })?,
        None => Filter::default(),
    };
    for sample in store.samples(run, filter) {
        scores.add(&sample?);
    }
    if scores.without_score > 0 {
        warn(ComparisonNotice::WithoutAnswer { run: name.clone(), samples: scores.without_score }.into());
    }
    Ok(scores)
}

/// Returns the scores of a run by item, for items of these settings.
pub fn answers(
    store: &Store,
    run: &RunRecord,
    settings: &RunSettings,
    mut warn: &mut impl FnMut(Notice),
) -> Result<Scores, ResultsError> {
    let mut scores = scores(store, run, &CompareSettings::default(), &mut warn)?;
    if scores.lacks_questions() && !settings.has_items_of(&run.manifest.settings) {
        folder::each_item(store, run, |item| scores.read_question(&item))?;
    }
    Ok(scores)
}
