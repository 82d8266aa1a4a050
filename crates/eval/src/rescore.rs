//! Scoring of stored completions by today's scorers.
use earnest_results::{
    Manifest, Origin, Reporter, RunSettings, SIDE_BY_SIDE, Sample, Stored, folder, no_texts, score_completions, suites,
};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use serde::Serialize;

use earnest_tasks::suite::log::{beside, scorer};
use earnest_tasks::suite::registry::{ProgramsRecord, check_scorer};
use earnest_tasks::suite::{FINAL, Score, Suite};

use crate::EvalError;
use earnest_results::outcomes::are_made_of_outcomes;
use earnest_results::suites::LocalHost;

use earnest_results::store::{BULK_ROWS, Filter, RunRecord, Store};

/// Settings of a rescoring.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RescoreSettings {
    /// Results folder.
    pub results: PathBuf,
    /// Name of the run, or a part of it that no other run has.
    pub run: String,
    /// Deciding scorer; none for the run's own.
    pub chosen: Option<String>,
    /// Store the new scores as another run.
    pub save: bool,
    /// Most samples to list that became right or wrong.
    pub flips: usize,
    /// Host on which model-written programs run.
    pub host: LocalHost,
}

impl RescoreSettings {
    /// Scores a run by its own deciding scorer; stores nothing.
    pub fn new(results: impl Into<PathBuf>, run: impl Into<String>) -> Self {
        let host = LocalHost::default();
        RescoreSettings { results: results.into(), run: run.into(), chosen: None, save: false, flips: 10, host }
    }
}

/// Differences between the stored scores and those of today's scorers.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Rescored {
    pub run: String,
    /// Version of the suite that scored the run, and today's.
    pub version: String,
    pub today: String,
    /// Deciding scorers then and now.
    #[serde(rename = "primary")]
    pub chosen: String,
    #[serde(rename = "primary_now")]
    pub chosen_now: String,
    /// Samples with a completion.
    pub scored: usize,
    /// Samples that the scorer `final` scores now.
    #[serde(skip)]
    pub read: usize,
    pub correct_before: usize,
    pub correct_now: usize,
    /// Scores that differ in something that was there before: answer, scorer, metric, reason.
    pub changed: usize,
    /// Samples in which the scorer `final` reads another answer, or none instead of one.
    pub reread: usize,
    /// Samples that became right, and wrong.
    pub gained: usize,
    pub lost: usize,
    /// Scorers and metrics that changed, with the number of samples.
    #[serde(rename = "rules")]
    pub scorers: BTreeMap<String, usize>,
    /// Scorers that did not exist when the run was scored.
    #[serde(rename = "new_rules")]
    pub new_scorers: BTreeMap<String, NewScorer>,
    /// Metrics that did not exist then.
    pub new_metrics: BTreeSet<String>,
    /// The first samples that became right or wrong.
    pub flips: Vec<Flip>,
    /// Run with the new scores, if they were stored.
    pub saved: Option<String>,
}

/// Counts of a scorer that is new.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct NewScorer {
    /// Samples that it scored.
    pub samples: usize,
    /// Samples that it finds right.
    pub right: usize,
}

/// A sample that became right or wrong.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Flip {
    pub item: String,
    pub sample: u32,
    pub now_correct: bool,
    /// Answer that the deciding scorer extracted then, and now.
    pub extracted_before: Option<String>,
    pub extracted_now: Option<String>,
}

/// Scores the completions of a stored run again; the run itself stays as it is.
///
/// # Errors
/// If the run is of an outcome file and so has no completions, if its suite cannot be built, lacks the scorer, or no longer asks an item of the run.
pub fn rescore(settings: &RescoreSettings, reporter: &mut dyn Reporter) -> Result<Rescored, EvalError> {
    let store = folder::open(&settings.results)?;
    let run = store.run(&settings.run)?;
    if are_made_of_outcomes(store.results()) {
        return Err(no_texts(&run.manifest.run, "there is nothing to score again").into());
    }
    store.check_seal(&run)?;
    let suite_then = folder::suite_on(&settings.host, &store, &run)?;
    let run_settings = with_scorer(&run.manifest.settings, &suite_then, settings.chosen.as_deref())?;
    let chosen = suite_then.scoring.chosen().join(" and ");
    let suite = match settings.chosen {
        Some(_) => {
            let manifest = Manifest { settings: run_settings.clone(), ..run.manifest.clone() };
            folder::suite_on(&settings.host, &store, &RunRecord { manifest, ..run.clone() })?
        }
        None => suite_then,
    };
    let sandbox = suites::start_programs(&suite, reporter)?;
    let mut rescored = Rescored {
        run: run.manifest.run.clone(),
        version: run.manifest.settings.suite_version.clone(),
        today: suite.scoring.version().to_owned(),
        chosen,
        chosen_now: suite.scoring.chosen().join(" and "),
        ..Rescored::default()
    };
    each_rescored(&store, &run, &suite, |before, _, after| {
        rescored.add(before, &after, settings.flips);
        Ok(())
    })?;
    if run.manifest.settings.origin() == Origin::Log && settings.chosen.as_deref() == Some(FINAL) && rescored.read == 0
    {
        let message = format!(
            "no completion of {} can be read: there is none, they are log-likelihoods, or they have no expected answer",
            run.manifest.run
        );
        return Err(EvalError::results(message)
            .hint("if the log has no expected answers, `earnest import PATH --answers FILE` joins them by id"));
    }
    if settings.save {
        rescored.saved = Some(save(&store, &run, run_settings, &suite, sandbox)?);
    }
    Ok(rescored)
}

impl Rescored {
    fn add(&mut self, before: &Sample, after: &Sample, most_flips: usize) {
        let Some(new) = &after.score else { return };
        self.read += usize::from(new.scorers.contains(FINAL));
        // A log may have completions and no scores.
        let none = Score::default();
        let old = before.score.as_ref().unwrap_or(&none);
        self.scored += 1;
        self.correct_before += usize::from(old.correct);
        self.correct_now += usize::from(new.correct);
        self.changed += usize::from(is_changed(old, new, self.chosen == self.chosen_now));
        self.reread += usize::from(old.scorers.contains(FINAL) && final_answer(old) != final_answer(new));
        for (name, matched) in new.scorers.iter() {
            match old.scorers.get(name) {
                Some(before) if before == matched => {}
                Some(_) => *self.scorers.entry(name.to_owned()).or_default() += 1,
                None => {
                    let scorer = self.new_scorers.entry(name.to_owned()).or_default();
                    scorer.samples += 1;
                    scorer.right += usize::from(matched);
                }
            }
        }
        for (name, value) in new.metrics.iter() {
            match old.metrics.get(name) {
                Some(before) if before == value => {}
                Some(_) => *self.scorers.entry(name.to_owned()).or_default() += 1,
                None => drop(self.new_metrics.insert(name.to_owned())),
            }
        }
        if old.correct != new.correct {
            self.gained += usize::from(new.correct);
            self.lost += usize::from(old.correct);
            if self.flips.len() < most_flips {
                self.flips.push(Flip {
                    item: before.item.clone(),
                    sample: before.sample,
                    now_correct: new.correct,
                    extracted_before: old.answer.clone(),
                    extracted_now: new.answer.clone(),
                });
            }
        }
    }
}

/// Returns the answer that the scorer `final` reads.
fn final_answer(score: &Score) -> Option<String> {
    score.by_scorer(FINAL).and_then(|score| score.answer)
}

/// Returns true if a scorer or metric of the old score has another value now. The extracted answer is compared only where the
/// deciding scorer is the same.
fn is_changed(old: &Score, new: &Score, same_scorer: bool) -> bool {
    let mut known = new.clone();
    known.scorers.retain(|name, _| old.scorers.contains(name));
    known.metrics.retain(|name, _| old.metrics.contains(name));
    if same_scorer { !old.agrees_with(&known) } else { known.scorers != old.scorers || known.metrics != old.metrics }
}

/// Returns the settings with another deciding scorer, if one is named.
fn with_scorer(settings: &RunSettings, suite: &Suite, name: Option<&str>) -> Result<RunSettings, EvalError> {
    let mut settings = settings.clone();
    let Some(name) = name else { return Ok(settings) };
    let name = match settings.origin() == Origin::Log {
        true => scorer(name, &suite.scoring.scorers()).unwrap_or(name),
        false => name,
    };
    check_scorer(&settings.suite, name, &suite.scoring.scorers())?;
    if let serde_json::Value::Object(fields) = &mut settings.suite_options {
        fields.insert("profile".into(), name.into());
        // As the suite writes it: its default scorer is left out.
        let written = suites::stored(&settings)?.scoring.options();
        let serde_json::Value::Object(fields) = &mut settings.suite_options else { return Ok(settings) };
        match written.get("profile") {
            Some(chosen) => fields.insert("profile".into(), chosen.clone()),
            None => fields.remove("profile"),
        };
    }
    Ok(settings)
}

/// Calls `each` with every sample in the plan's order: as stored, its index in the plan, and with its new score.
fn each_rescored(
    store: &Store,
    run: &RunRecord,
    suite: &Suite,
    mut each: impl FnMut(&Sample, usize, Sample) -> Result<(), EvalError>,
) -> Result<(), EvalError> {
    let manifest = &run.manifest;
    let (of_log, chosen) = (manifest.settings.origin() == Origin::Log, suite.scoring.chosen().into_iter().next());
    let mut plan = manifest.plan().walk(suite);
    let mut samples = store.samples(run, Filter::default()).indexed();
    loop {
        let mut batch = Vec::new();
        for sample in samples.by_ref().take(SIDE_BY_SIDE) {
            let (position, before) = sample?;
            let planned = plan.find(|planned| planned.index >= position);
            let planned = planned.filter(|planned| planned.index == position && planned.item.id == before.item);
            let Some(planned) = planned else {
                let message =
                    format!("{} has the sample {}, which today's suite does not ask", manifest.run, before.item);
                return Err(EvalError::results(message)
                    .hint("the suite's items have changed since; only an earlier version can score this run"));
            };
            batch.push((position, planned.item, before));
        }
        if batch.is_empty() {
            return Ok(());
        }
        let completions: Vec<Stored<'_>> = batch
            .iter()
            .filter_map(|(_, item, before)| {
                let completion = before.completion.as_ref()?.text.as_str();
                Some(Stored { item, completion, truncated: before.truncated() })
            })
            .collect();
        let mut scores = score_completions(suite, manifest.opened_thinking(), &completions).into_iter();
        for (position, _, before) in &batch {
            let mut after = before.clone();
            if before.completion.is_some() {
                after.score = scores.next();
                if of_log {
                    // The tool's scores stay beside today's.
                    let read = after.score.take().unwrap_or_default();
                    after.score = match &before.score {
                        Some(stored) => Some(beside(stored, &read, chosen)),
                        // Without a score of the tool today's is the only one.
                        None if chosen == Some(FINAL) && read.scorers.contains(FINAL) => {
                            Some(beside(&Score::default(), &read, chosen))
                        }
                        None => None,
                    };
                }
            }
            each(before, *position, after)?;
        }
    }
}

/// Stores the new scores as another run, so that the old ones can still be read; returns its name.
fn save(
    store: &Store,
    run: &RunRecord,
    mut settings: RunSettings,
    suite: &Suite,
    sandbox: Option<ProgramsRecord>,
) -> Result<String, EvalError> {
    settings.suite_version = suite.scoring.version().to_owned();
    settings.earnest = env!("CARGO_PKG_VERSION").to_owned();
    let base = format!("{}-scored", run.manifest.run);
    let (_lock, name) = folder::free_name(store, &base)?;
    let settings_sha256 = settings.sha256();
    let manifest = Manifest { run: name.clone(), settings, settings_sha256, sandbox, ..run.manifest.clone() };
    let planned = manifest.plan().len(suite);
    let target = store.begin(&manifest, planned)?;
    match store.has_questions(run)? {
        true => store.copy_questions(store, run, &target)?,
        false => store.keep_questions(&target, suite, 0..planned)?,
    }
    let mut writer = store.writer(&target).batches_of(BULK_ROWS);
    each_rescored(store, run, suite, |_, index, after| Ok(writer.push(index, Sample { run: name.clone(), ..after })?))?;
    writer.write()?;
    folder::keep_document(store, &target, suite)?;
    Ok(name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::import::{ImportSettings, import};
    use earnest_results::store::Filter;
    use earnest_results::{Until, runs};
    use earnest_tasks::suite::arithmetic_bench::ArithmeticBench;
    use earnest_tasks::suite::{Answered, Item, Items, ThinkingText};
    use std::collections::HashMap;

    #[test]
    fn another_rule_is_compared_and_stored_as_another_run() {
        let folder = tempfile::tempdir().unwrap();
        let (completions, results) = (folder.path().join("completions.jsonl"), folder.path().join("results"));
        let item = ArithmeticBench::new(Default::default()).unwrap().iter().next().unwrap();
        let line = serde_json::json!({ "item": item.id, "completion": item.gold });
        std::fs::write(&completions, line.to_string()).unwrap();
        let imported = import(&ImportSettings::new("arithmetic-bench", completions, "a model", &results), &mut ());
        let run = imported.unwrap().run.manifest.run;
        let settings = RescoreSettings::new(&results, &run);
        let same = rescore(&settings, &mut ()).unwrap();
        assert_eq!((same.scored, same.changed, same.saved), (1, 0, None));
        let settings = RescoreSettings { chosen: Some("final".into()), save: true, ..settings };
        let other = rescore(&settings, &mut ()).unwrap();
        assert_eq!(other.chosen_now, "final");
        let saved = Store::open(&results).unwrap().run(&other.saved.unwrap()).unwrap();
        assert_eq!(saved.manifest.settings.suite_options["profile"], "final");
        let unknown = RescoreSettings { chosen: Some("best".into()), ..settings };
        assert!(matches!(rescore(&unknown, &mut ()), Err(EvalError::Suite(_))));
    }

    /// A run whose thinking, which the budget ended, is part of the answer is scored again, and verified, as it was; with a condition its questions are in another order.
    #[test]
    fn kept_thinking_is_scored_again_as_it_was() {
        let folder = tempfile::tempdir().unwrap();
        let (completions, results) = (folder.path().join("completions.jsonl"), folder.path().join("results"));
        let items = ArithmeticBench::new(Default::default()).unwrap();
        let line = |item: Item| {
            serde_json::json!({ "item": item.id, "completion": format!("<think>\n{}\n", item.gold) }).to_string()
        };
        let lines: Vec<String> = items.iter().take(20).map(line).collect();
        std::fs::write(&completions, lines.join("\n")).unwrap();
        let imported = import(&ImportSettings::new("arithmetic-bench", completions, "a model", &results), &mut ());
        let stripped = imported.unwrap().run;
        let store = Store::open(&results).unwrap();
        let right = |run: &RunRecord| {
            let samples = store.samples(run, Filter::default()).map(|sample| sample.unwrap());
            samples.filter(|sample| sample.score.as_ref().is_some_and(|score| score.correct)).count()
        };
        assert_eq!(right(&stripped), 0);
        let samples = store.samples(&stripped, Filter::default()).map(|sample| sample.unwrap());
        let answered: HashMap<String, Sample> = samples.map(|sample| (sample.item.clone(), sample)).collect();
        let condition = Until { difference_to: "another".to_owned(), within: None };
        for until in [None, Some(condition)] {
            let thinking_text = ThinkingText::Kept;
            let settings = RunSettings { thinking_text, until, ..stripped.manifest.settings.clone() };
            let suite = suites::stored(&settings).unwrap();
            let name = format!("kept-{}", settings.until.is_some());
            let settings_sha256 = settings.sha256();
            let manifest = Manifest { run: name.clone(), settings, settings_sha256, ..stripped.manifest.clone() };
            let planned = manifest.plan().len(&suite);
            let kept = store.begin(&manifest, planned).unwrap();
            store.keep_questions(&kept, &suite, 0..planned).unwrap();
            let mut writer = store.writer(&kept);
            for planned in manifest.plan().walk(&suite) {
                let Some(sample) = answered.get(&planned.item.id) else { continue };
                let completion = &sample.completion.as_ref().unwrap().text;
                let score = Some(suite.score(&planned.item, &Answered { completion, truncated: false }));
                writer.push(planned.index, Sample { run: name.clone(), score, ..sample.clone() }).unwrap();
            }
            writer.write().unwrap();
            let kept = store.run(&name).unwrap();
            assert_eq!(right(&kept), 20);
            let again = rescore(&RescoreSettings::new(&results, &name), &mut ()).unwrap();
            assert_eq!((again.scored, again.changed), (20, 0));
            let verified = runs::verify(&store, &[name], &LocalHost::default(), &mut ()).unwrap();
            assert!(verified.checks.iter().all(|check| check.faults.is_empty()), "{:?}", verified.checks);
        }
    }
}
