//! Analysis of a study's finished runs: accuracies, paired differences, mixed models.
use serde::Serialize;

use super::definition::{Adjustment, CompareDefinition, Dimension};
use super::mixed_model::{self, MixedModelResult};
use super::outcome::StudyOutcome;
use super::{PlannedRun, StudyPlan};
use crate::EvalError;
use crate::compare::{CompareSettings, paired};
use crate::report::{Comparison, Difference, adjust};
use crate::run::Totals;
use crate::run::store::{RunRecord, Store};

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

/// Result of a run.
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
    pub fn new(plan: &StudyPlan, outcome: &StudyOutcome, store: Option<&Store>) -> Result<Self, EvalError> {
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
        for ((_, end), result) in outcome.runs.iter().zip(&mut results.runs) {
            let Some(record) = end.run() else { continue };
            let sums = store.aggregate(record)?;
            let accuracy = sums.accuracy().filter(|_| sums.scored > 0);
            result.run = Some(record.manifest.run.clone());
            result.totals = Some(sums.totals);
            result.scored = sums.scored;
            result.accuracy = accuracy.map(|accuracy| accuracy.value);
            (result.low, result.high) = (accuracy.map(|one| one.low), accuracy.map(|one| one.high));
        }
        if plan.settings.shard.is_some() {
            return Ok(results);
        }
        let finished: Vec<(PlannedRun, &RunRecord)> = outcome.finished().collect();
        for compare in &plan.definition.compare {
            let family = family(plan, compare, &finished, store, &mut results.notes)?;
            results.comparisons.push(family);
        }
        let mut said = std::collections::HashSet::new();
        results.notes.retain(|note| said.insert(note.clone()));
        for definition in &plan.definition.mixed_models {
            results.mixed_models.push(mixed_model::fit_runs(plan, definition, &finished, store)?);
        }
        Ok(results)
    }
}

/// All differences of a comparison: pairs of runs that differ in one dimension alone.
fn family(
    plan: &StudyPlan,
    compare: &CompareDefinition,
    finished: &[(PlannedRun, &RunRecord)],
    store: &Store,
    notes: &mut Vec<String>,
) -> Result<Family, EvalError> {
    let wanted = |run: &PlannedRun| compare.tasks.is_empty() || compare.tasks.contains(&plan.task(*run).name);
    let placed: Vec<(Coordinates, &RunRecord)> = finished
        .iter()
        .filter(|(run, _)| wanted(run))
        .map(|(run, record)| (Coordinates::of(plan, *run), *record))
        .collect();
    let others = Dimension::NAMES.map(|(_, dimension)| dimension);
    let fixed = |place: &Coordinates| -> Vec<String> {
        let others = others.iter().filter(|dimension| **dimension != compare.between);
        others.map(|dimension| place.along(*dimension).to_owned()).collect()
    };
    // Grouped by the other two coordinates, in the order of tasks, prompts and models.
    type Group<'a> = Vec<&'a (Coordinates, &'a RunRecord)>;
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
                group.sort_by_key(|(place, _)| place.along(compare.between) != name);
                let has = group.first().is_some_and(|(place, _)| place.along(compare.between) == name);
                if has { vec![0] } else { Vec::new() }
            }
            None => (0..group.len().saturating_sub(1)).collect(),
        };
        for first in baselines {
            let (baseline, record) = group[first];
            for (place, other) in &group[first + 1..] {
                let names = [record.manifest.run.clone(), other.manifest.run.clone()];
                match paired(store, &names, &CompareSettings::default(), &mut |text| notes.push(text)) {
                    Ok(found) => differences.extend(found.into_iter().map(|comparison| {
                        notes.extend(remark(baseline, place, &comparison));
                        let (baseline, run) = (baseline.clone(), place.clone());
                        PairedDifference { baseline, run, difference: comparison.overall }
                    })),
                    // Runs of different suites have no items in common.
                    Err(EvalError::Setting(problem)) => notes.push(problem.to_string()),
                    Err(error) => return Err(error),
                }
            }
        }
    }
    for one in &mut differences {
        one.difference.p_holm = None;
    }
    if compare.adjust == Adjustment::Holm {
        adjust(differences.iter_mut().map(|one| &mut one.difference).collect());
    }
    Ok(Family { between: compare.between, baseline: compare.baseline.clone(), adjust: compare.adjust, differences })
}

/// A reason for which a difference is not what it seems.
fn remark(baseline: &Coordinates, run: &Coordinates, comparison: &Comparison) -> Option<String> {
    let both = format!("{} and {}", name(baseline), name(run));
    let [mine, theirs] = comparison.primary.each_ref().map(|rules| rules.join(" and "));
    (mine != theirs).then(|| format!("{both} are scored by different rules ({mine} and {theirs})"))
}

/// A run in words.
fn name(place: &Coordinates) -> String {
    format!("{} on {} ({})", place.model, place.task, place.prompt)
}
