//! Speeds and lengths of a model's earlier runs, for estimates of the next.
use std::collections::HashMap;

use super::survey::SampleTokens;
use crate::EvalError;
use earnest_results::store::{RunRecord, Store};
use earnest_results::{Expected, Host, Rate, RunSettings, Status, Totals};

/// Answers from which on an unfinished run says something: its time is also that of the answers which were dropped at its end, and its
/// answers are the shortest.
const ENOUGH: usize = 100;

/// Stored runs of a machine, the newest last.
pub(crate) struct Past<'s> {
    store: Option<&'s Store>,
    runs: Vec<RunRecord>,
    /// Sums by run.
    totals: HashMap<i64, Totals>,
}

impl<'s> Past<'s> {
    /// Reads the manifests of the runs that were made on this machine or asked an endpoint.
    pub(crate) fn new(store: Option<&'s Store>) -> Result<Self, EvalError> {
        let here = Host::probe();
        let mut runs = store.map(Store::runs).transpose()?.unwrap_or_default();
        // Rates of other machines do not count; those of endpoints depend on the endpoint alone.
        let comparable =
            |run: &RunRecord| run.manifest.settings.endpoint.is_some() || run.manifest.host.is_as_fast_as(&here);
        runs.retain(|run| run.manifest.generation_s > 0.0 && comparable(run));
        Ok(Past { store, runs, totals: HashMap::new() })
    }

    /// Result of `read` for the newest run of a model that it can use.
    fn newest<T>(
        &mut self,
        settings: &RunSettings,
        mut read: impl FnMut(&RunRecord, &Totals) -> Option<T>,
    ) -> Result<Option<T>, EvalError> {
        let Past { store: Some(store), runs, totals } = self else { return Ok(None) };
        for run in runs.iter().rev().filter(|run| is_of(&run.manifest.settings, settings)) {
            let sums = match totals.get(&run.id) {
                Some(known) => *known,
                None => {
                    let sums = store.aggregate(run)?.totals;
                    totals.insert(run.id, sums);
                    sums
                }
            };
            let answered = sums.recorded - sums.failed;
            if let Some(found) = says_enough(run.manifest.status, answered).then(|| read(run, &sums)).flatten() {
                return Ok(Some(found));
            }
        }
        Ok(None)
    }

    /// Rate of the model in the newest run like this one, else in its newest run of anything.
    pub(crate) fn rate(&mut self, settings: &RunSettings) -> Result<Option<Rate>, EvalError> {
        let alike = self.newest(settings, |run, totals| {
            let alike = is_alike(&run.manifest.settings, settings);
            alike.then(|| Rate::measured(&run.manifest, totals)).flatten()
        })?;
        match alike {
            Some(rate) => Ok(Some(rate)),
            None => self.newest(settings, |run, totals| Rate::measured(&run.manifest, totals)),
        }
    }

    /// Mean new tokens of a sample in the newest run like this one.
    pub(crate) fn new_tokens(&mut self, settings: &RunSettings) -> Result<Option<f64>, EvalError> {
        self.newest(settings, |run, totals| {
            let answered = totals.recorded - totals.failed;
            let alike = answered > 0 && is_alike(&run.manifest.settings, settings);
            alike.then(|| totals.completion_tokens as f64 / answered as f64)
        })
    }

    /// Time that so many samples of these mean tokens take; none if the model has no earlier run.
    pub(super) fn expected(
        &mut self,
        settings: &RunSettings,
        samples: usize,
        tokens: &SampleTokens,
    ) -> Result<Option<Expected>, EvalError> {
        let Some(rate) = self.rate(settings)? else { return Ok(None) };
        let known = self.new_tokens(settings)?;
        let new = known.map_or(tokens.most_new, |mean| mean.min(tokens.most_new));
        let all = |each: f64| (each * samples as f64) as usize;
        let seconds = 3600.0 * rate.hours(all(tokens.prompt), all(new));
        Ok(Some(Expected { seconds, at_most: known.is_none() && tokens.most_new > 0.0, source: rate.source }))
    }
}

/// True if the speed and the lengths of a run with so many answers are those of others.
fn says_enough(status: Status, answered: usize) -> bool {
    status == Status::Finished || answered >= ENOUGH
}

/// True for runs of one model on one engine.
fn is_of(one: &RunSettings, other: &RunSettings) -> bool {
    one.engine == other.engine
        && one.model_files == other.model_files
        && one.weights == other.weights
        && one.endpoint == other.endpoint
}

/// True for runs of one suite whose answers have like lengths: the same form of prompts and thinking.
fn is_alike(one: &RunSettings, other: &RunSettings) -> bool {
    one.suite == other.suite
        && one.prompt_mode == other.prompt_mode
        && one.generation.thinking == other.generation.thinking
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_that_was_stopped_early_says_nothing() {
        assert!(says_enough(Status::Finished, 1) && says_enough(Status::Interrupted, ENOUGH));
        assert!(!says_enough(Status::Interrupted, 2) && !says_enough(Status::Running, 2));
    }
}
