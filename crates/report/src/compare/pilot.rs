//! Pilots: two runs of the same questions, from which a study is designed.
use std::collections::BTreeSet;

use serde::Serialize;

use super::{check_pair, read_questions};
use crate::ReportError;
use crate::paired::read_alike;
use crate::pilot_items;
use earnest_results::Notice;
use earnest_results::scores::{CompareSettings, scores};
use earnest_results::store::Store;
use earnest_stats::design::{VarianceParts, pilot_parts};

/// A pilot: two runs of the same questions, and how much their differences vary.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Pilot {
    pub runs: [String; 2],
    pub questions: usize,
    pub templates: usize,
    /// Accuracy of the first run, the mean over its questions.
    pub accuracy: f64,
    /// Difference of the second run.
    pub difference: f64,
    pub parts: VarianceParts,
    /// False if every question was asked once: the part of the samples is then in that of the questions.
    pub repeated: bool,
}

/// Returns the pilot of two stored runs; `warn` gets what may make it another's.
///
/// # Errors
/// The runs have no items in common, or all in one cluster.
pub fn pilot(store: &Store, names: [&str; 2], mut warn: &mut impl FnMut(Notice)) -> Result<Pilot, ReportError> {
    let runs = [store.run(names[0])?, store.run(names[1])?];
    check_pair(&runs[0], &runs[1], &mut warn)?;
    let [first, second] = &runs;
    let settings = CompareSettings::default();
    let mut scores = [scores(store, first, &settings, &mut warn)?, scores(store, second, &settings, &mut warn)?];
    read_alike(&mut scores);
    read_questions(store, &runs, &mut scores, &mut warn);
    let runs = runs.map(|run| run.manifest.run);
    if let Some((name, _)) = runs.iter().zip(&scores).find(|(_, scores)| !scores.counts_right_answers()) {
        let message = format!("{name} is no pilot: its scores are not right and wrong");
        return Err(
            ReportError::setting(message).hint("import its log with the setting `scorer` and a scorer of 0 and 1")
        );
    }
    let items = pilot_items(&scores[0], &scores[1]);
    if items.is_empty() {
        return Err(ReportError::setting(format!("{} and {} have no items in common", runs[0], runs[1])));
    }
    if items.iter().all(|item| item.first.0 * item.second.1 == item.second.0 * item.first.1) {
        let message = format!(
            "{} and {} do not differ in a single question, so they do not tell how differences vary",
            runs[0], runs[1]
        );
        return Err(ReportError::setting(message)
            .hint(
                "take a pilot of other runs, or state the setting `accuracy`, the setting `intercept_sd` and the setting `slope_sd`",
            ));
    }
    let share = |(right, all): (u32, u32)| f64::from(right) / f64::from(all);
    let mean = |sum: f64| sum / items.len() as f64;
    let accuracy = mean(items.iter().map(|item| share(item.first)).sum());
    let difference = mean(items.iter().map(|item| share(item.second) - share(item.first)).sum());
    let templates = items.iter().map(|item| item.cluster).collect::<BTreeSet<u64>>().len();
    let (parts, repeated) = pilot_parts(&items)
        .map_err(|error| ReportError::setting(format!("{} and {} are no pilot: {error}", runs[0], runs[1])))?;
    Ok(Pilot { runs, questions: items.len(), templates, accuracy, difference, parts, repeated })
}
