//! Stored runs as the study's rows: their labels, their answers, and what limits the comparison.
use std::collections::BTreeMap;

use super::{Evaluation, NumberDistribution, StudyRun, paper_name};
use earnest_results::{ComparisonNotice, Mode, Notice, ResultsError, Rows, Status, StoredRun};
use earnest_tasks::suite::gsm_symbolic::{Prompt, describes_questions};
use earnest_tasks::the_first;

/// The rows to analyse.
pub struct Collected {
    pub used: Vec<StudyRun>,
    pub evaluations: Vec<Evaluation>,
    /// Distribution of the integers in the questions of the newest run.
    pub numbers: Option<NumberDistribution>,
}

/// A run and its label in the tables.
pub struct Labelled {
    pub run: StoredRun,
    pub label: String,
    /// True of a run that is asked for by name: it need not be finished.
    pub named: bool,
}

/// Collects for every model and prompt the rows of the newest finished run; `note` gets what is left out, and why.
///
/// # Errors
/// As [`answers`].
pub fn collected(
    mut runs: Vec<Labelled>,
    wanted: &[Prompt],
    note: &mut dyn FnMut(Notice),
) -> Result<Collected, ResultsError> {
    runs.sort_by(|left, right| right.run.manifest.started.cmp(&left.run.manifest.started));
    distinguish(&mut runs, note);
    let mut found: BTreeMap<(String, Prompt), Evaluation> = BTreeMap::new();
    let mut used = Vec::new();
    let mut numbers = None;
    for Labelled { run, label, named } in runs {
        let manifest = &run.manifest;
        if !named && (manifest.status != Status::Finished || manifest.shard.is_some()) {
            note(ComparisonNotice::UnfinishedLeftOut { run: manifest.run.clone() }.into());
            continue;
        }
        let mut prompts = Vec::new();
        for (prompt, evaluation) in answers(&run, &label, wanted)? {
            let key = (label.clone(), prompt);
            if found.contains_key(&key) {
                let (run, model, prompt) = (run.manifest.run.clone(), label.clone(), prompt.to_string());
                note(ComparisonNotice::OlderLeftOut { run, model, prompt }.into());
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

/// Answers of a run to these prompts.
///
/// # Errors
/// Rows that cannot be read, or are none of the study.
pub fn answers(run: &StoredRun, label: &str, wanted: &[Prompt]) -> Result<BTreeMap<Prompt, Evaluation>, ResultsError> {
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
        Some(error) => Err(ResultsError::results(format!("{} cannot be analysed: {error}", run.place))),
        None => Ok(rows),
    }
}

/// Label of a run's model: the paper's name for it, or its own.
pub fn label_of(run: &StoredRun) -> String {
    let name = &run.manifest.model.name;
    match paper_name(name) {
        (Some(name), None) => name.to_owned(),
        _ => name.clone(),
    }
}

/// Makes labels of different models different: by the weight format, else by the beginning of their files' digest. Where the files of a
/// run are not known, as with completions that were imported, the name is all that tells models apart.
fn distinguish(runs: &mut [Labelled], note: &mut dyn FnMut(Notice)) {
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
            note(ComparisonNotice::NamedAlike { model: one.label.clone() }.into());
            reported.push(one.label.clone());
        }
        one.label.push_str(&suffix);
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
