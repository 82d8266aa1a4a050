//! Analysis of a study's finished runs: accuracies, paired differences, mixed models.
use std::collections::{BTreeMap, HashMap};

use earnest_stats::{Estimate, Z95, clustered_wilson};
use serde::Serialize;

use super::mixed_model::MixedModelResult;
use crate::ReportError;
use crate::compare::{common_scorer, paired};
use crate::study::mixed_model;
use crate::{Comparison, Difference, adjust};
use earnest_eval::study::{Adjustment, CompareDefinition, Dimension, PlannedRun, StudyOutcome, StudyPlan};
use earnest_results::Totals;
use earnest_results::folder::chosen_scorers;
use earnest_results::scores::CompareSettings;
use earnest_results::store::{Filter, RunRecord, Store};

/// Results of a study as one document.
#[derive(Debug, Serialize)]
pub struct StudyResults {
    /// Version of the document.
    pub format: u32,
    pub study: String,
    /// In the order of the plan.
    pub runs: Vec<RunResult>,
    pub comparisons: Vec<Family>,
    pub mixed_models: Vec<MixedModelResult>,
    /// Remarks on the comparisons.
    pub notes: Vec<String>,
    /// File of the report, if it was written.
    pub report: Option<String>,
}

/// Place of a run in the study.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Coordinates {
    pub model: String,
    pub task: String,
    pub prompt: String,
}

impl Coordinates {
    /// Coordinates of a planned run.
    pub fn of(plan: &StudyPlan, run: PlannedRun) -> Self {
        Coordinates {
            model: plan.model(run).name.clone(),
            task: plan.task(run).name.clone(),
            prompt: plan.prompts(run).to_string(),
        }
    }

    /// Name in one dimension.
    pub fn along(&self, dimension: Dimension) -> &str {
        match dimension {
            Dimension::Models => &self.model,
            Dimension::Tasks => &self.task,
            Dimension::Prompts => &self.prompt,
        }
    }
}

#[derive(Debug, Serialize)]
pub struct RunResult {
    #[serde(flatten)]
    pub place: Coordinates,
    /// `finished`, `failed`, `not run`, `left out` or `not reached`.
    pub status: &'static str,
    /// Name of the stored run.
    pub run: Option<String>,
    pub error: Option<String>,
    pub totals: Option<Totals>,
    /// Scorer of the accuracy: the run's own, or where the runs of its task have different ones that of all of them.
    pub scorer: Option<String>,
    /// Share of right answers among the scored samples, with its cluster-robust 95 % interval.
    pub accuracy: Option<f64>,
    pub low: Option<f64>,
    pub high: Option<f64>,
    /// Samples with a score.
    pub scored: usize,
}

/// Paired differences of one `[[compare]]`, adjusted together.
#[derive(Debug, Serialize)]
pub struct Family {
    pub between: Dimension,
    pub baseline: Option<String>,
    pub adjust: Adjustment,
    /// Number of p values that are adjusted together: those of this comparison that exist. 0 without adjustment.
    pub family_size: usize,
    pub differences: Vec<PairedDifference>,
}

/// Difference between two runs of a study, `run - baseline`.
#[derive(Debug, Serialize)]
pub struct PairedDifference {
    pub baseline: Coordinates,
    pub run: Coordinates,
    pub difference: Difference,
}

impl StudyResults {
    /// Sums and compares the finished runs. Parts of runs (`--shard`) are summed, not compared.
    ///
    /// # Errors
    /// If rows cannot be read.
    pub fn new(plan: &StudyPlan, outcome: &StudyOutcome, store: Option<&Store>) -> Result<Self, ReportError> {
        let mut results = StudyResults {
            format: 1,
            study: plan.definition.name.clone(),
            runs: outcome
                .runs
                .iter()
                .map(|(run, end)| RunResult {
                    place: Coordinates::of(plan, *run),
                    status: end.word(),
                    run: None,
                    error: None,
                    totals: None,
                    scorer: None,
                    accuracy: None,
                    low: None,
                    high: None,
                    scored: 0,
                })
                .collect(),
            comparisons: Vec::new(),
            mixed_models: Vec::new(),
            notes: plan.notes.clone(),
            report: None,
        };
        for (run, error) in outcome.failures() {
            let place = Coordinates::of(plan, run);
            results.runs.iter_mut().filter(|result| result.place == place).for_each(|result| {
                result.error = Some(error.to_string());
            });
        }
        let Some(store) = store else { return Ok(results) };
        let finished: Vec<(PlannedRun, &RunRecord)> = outcome.finished().collect();
        let scorers = Scorers::of(plan, &finished, store, &mut results.notes)?;
        for ((planned, end), result) in outcome.runs.iter().zip(&mut results.runs) {
            let Some(record) = end.run() else { continue };
            let sums = store.aggregate(record)?;
            let (scored, accuracy) = match scorers.common(*planned) {
                Some(scorer) => accuracy_by(store, record, scorer)?,
                None => (sums.scored, sums.accuracy().filter(|_| sums.scored > 0)),
            };
            result.run = Some(record.manifest.run.clone());
            result.totals = Some(sums.totals);
            result.scorer = match scorers.common(*planned) {
                Some(scorer) => Some(scorer.to_owned()),
                None => Some(chosen_scorers(store, record)?.join(" and ")).filter(|own| !own.is_empty()),
            };
            result.scored = scored;
            result.accuracy = accuracy.map(|accuracy| accuracy.value);
            (result.low, result.high) = (accuracy.map(|one| one.low), accuracy.map(|one| one.high));
        }
        if plan.settings.shard.is_some() {
            return Ok(results);
        }
        for compare in &plan.definition.compare {
            let family = family(plan, compare, (&finished, &scorers), store, &mut results.notes)?;
            results.comparisons.push(family);
        }
        let mut said = std::collections::HashSet::new();
        results.notes.retain(|note| said.insert(note.clone()));
        for definition in &plan.definition.mixed_models {
            results.mixed_models.push(mixed_model::fit_runs(plan, definition, (&finished, &scorers), store)?);
        }
        Ok(results)
    }
}

/// Scorers by which all runs of a task are read, by the task's index, where their own ones differ.
pub(super) struct Scorers(BTreeMap<usize, String>);

impl Scorers {
    /// Finds them, and says which they are.
    fn of(
        plan: &StudyPlan,
        finished: &[(PlannedRun, &RunRecord)],
        store: &Store,
        notes: &mut Vec<String>,
    ) -> Result<Self, ReportError> {
        let mut scorers = BTreeMap::new();
        for (task, definition) in plan.definition.tasks.iter().enumerate() {
            let runs: Vec<&RunRecord> =
                finished.iter().filter(|(run, _)| run.task == task).map(|(_, record)| *record).collect();
            let Some(scorer) = common_scorer(store, &runs)? else { continue };
            let mut own: Vec<String> = Vec::new();
            for run in runs {
                let names = chosen_scorers(store, run)?.join(" and ");
                if !own.contains(&names) {
                    own.push(names);
                }
            }
            notes.push(format!(
                "{}: the own scorers of its runs differ ({}), so all are scored by {scorer} here; lines of single runs have their own.",
                definition.name,
                own.join(", ")
            ));
            scorers.insert(task, scorer);
        }
        Ok(Scorers(scorers))
    }

    /// Scorer of a run instead of its own.
    pub(super) fn common(&self, run: PlannedRun) -> Option<&str> {
        self.0.get(&run.task).map(String::as_str)
    }
}

/// Number of samples that a scorer scored, and their accuracy with its cluster-robust interval.
fn accuracy_by(store: &Store, run: &RunRecord, scorer: &str) -> Result<(usize, Option<Estimate>), ReportError> {
    let mut numbers: HashMap<String, u64> = HashMap::new();
    let (mut right, mut clusters) = (Vec::new(), Vec::new());
    for sample in store.samples(run, Filter::default()) {
        let sample = sample?;
        let Some(is_right) = sample.score.as_ref().and_then(|score| score.scorers.get(scorer)) else { continue };
        let next = numbers.len() as u64;
        right.push(f64::from(u8::from(is_right)));
        clusters.push(*numbers.entry(sample.cluster).or_insert(next));
    }
    Ok((right.len(), clustered_wilson(&right, &clusters, Z95)))
}

/// All differences of a comparison: pairs of runs that differ in one dimension alone.
fn family(
    plan: &StudyPlan,
    compare: &CompareDefinition,
    (finished, scorers): (&[(PlannedRun, &RunRecord)], &Scorers),
    store: &Store,
    notes: &mut Vec<String>,
) -> Result<Family, ReportError> {
    let wanted = |run: &PlannedRun| compare.tasks.is_empty() || compare.tasks.contains(&plan.task(*run).name);
    let placed: Vec<(Coordinates, &RunRecord, Option<&str>)> = finished
        .iter()
        .filter(|(run, _)| wanted(run))
        .map(|(run, record)| (Coordinates::of(plan, *run), *record, scorers.common(*run)))
        .collect();
    let others = Dimension::NAMES.map(|(_, dimension)| dimension);
    let fixed = |place: &Coordinates| -> Vec<String> {
        let others = others.iter().filter(|dimension| **dimension != compare.between);
        others.map(|dimension| place.along(*dimension).to_owned()).collect()
    };
    // Grouped by the other two coordinates, in the order of tasks, prompts and models.
    type Group<'a> = Vec<&'a (Coordinates, &'a RunRecord, Option<&'a str>)>;
    let mut groups: Vec<(Vec<String>, Group<'_>)> = Vec::new();
    for one in &placed {
        let key = fixed(&one.0);
        match groups.iter_mut().find(|(known, _)| *known == key) {
            Some((_, group)) => group.push(one),
            None => groups.push((key, vec![one])),
        }
    }
    let mut differences = Vec::new();
    for (_, group) in &mut groups {
        let baselines: Vec<usize> = match &compare.baseline {
            Some(name) => {
                // The baseline first, the others as they are.
                group.sort_by_key(|(place, ..)| place.along(compare.between) != name);
                let has = group.first().is_some_and(|(place, ..)| place.along(compare.between) == name);
                if has { vec![0] } else { Vec::new() }
            }
            None => (0..group.len().saturating_sub(1)).collect(),
        };
        for first in baselines {
            let (baseline, record, scorer) = group[first];
            for (place, other, theirs) in &group[first + 1..] {
                let names = [record.manifest.run.clone(), other.manifest.run.clone()];
                let chosen = scorer.filter(|scorer| *theirs == Some(*scorer)).map(str::to_owned);
                let settings = CompareSettings { chosen, ..CompareSettings::default() };
                match paired(store, &names, &settings, &mut |notice| notes.push(notice.to_string())) {
                    Ok(found) => differences.extend(found.into_iter().map(|comparison| {
                        notes.extend(remark(baseline, place, &comparison));
                        let (baseline, run) = (baseline.clone(), place.clone());
                        PairedDifference { baseline, run, difference: comparison.overall }
                    })),
                    // Runs of different suites have no items in common.
                    Err(ReportError::Setting(problem)) => notes.push(problem.to_string()),
                    Err(error) => return Err(error),
                }
            }
        }
    }
    for one in &mut differences {
        (one.difference.p_holm, one.difference.p_bh, one.difference.family_of) = (None, None, None);
    }
    let mut family_size = 0;
    if compare.adjust == Adjustment::Holm {
        adjust("differences", differences.iter_mut().map(|one| &mut one.difference).collect());
        family_size = differences.iter().filter(|one| one.difference.p.is_some()).count();
    }
    let (between, baseline) = (compare.between, compare.baseline.clone());
    Ok(Family { between, baseline, adjust: compare.adjust, family_size, differences })
}

/// A reason for which a difference is not what it seems.
fn remark(baseline: &Coordinates, run: &Coordinates, comparison: &Comparison) -> Option<String> {
    let both = format!("{} and {}", name(baseline), name(run));
    let [mine, theirs] = comparison.chosen.each_ref().map(|names| names.join(" and "));
    (mine != theirs).then(|| format!("{both} have different scorers ({mine} and {theirs}) and none in common"))
}

/// A run in words.
fn name(place: &Coordinates) -> String {
    format!("{} on {} ({})", place.model, place.task, place.prompt)
}
