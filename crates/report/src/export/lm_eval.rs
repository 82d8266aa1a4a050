//! The results document and the sample lines of lm-evaluation-harness (schema of its release 0.4.13, `result_schema.py`),
//! so that its own tools and those built on it read a run.
use earnest_results::{Manifest, OWN, Origin, Row, Rows, RowsError, Sample, card_of, without_texts};
use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::scores::{Column, Scorer, columns, reading, scorers_of};
use earnest_digest::{hex, sha256};
use earnest_tasks::suite::{ContinuationScore, Likelihoods};

/// A run in this format.
#[derive(Debug, Clone, PartialEq)]
pub struct LmEval {
    /// Folder name of the model, sanitised as the harness does.
    pub folder: String,
    /// `results_<date>.json`.
    pub results_file: String,
    pub results: Value,
    pub samples: Vec<TaskSamples>,
    /// Documents without a score, which have lines and no part in the results.
    pub unscored: usize,
    /// Most samples of a document, whose mean is its score.
    pub repeats: usize,
}

/// Sample lines of a task.
#[derive(Debug, Clone, PartialEq)]
pub struct TaskSamples {
    /// `samples_<task>_<date>.jsonl`.
    pub file: String,
    pub lines: Vec<Value>,
}

/// Counts of one scorer on one task.
#[derive(Debug, Clone, Copy, Default)]
struct Tally {
    items: usize,
    sum: f64,
    squares: f64,
}

impl Tally {
    /// Adds the values of a document's samples; returns the one that its line has.
    fn add(&mut self, values: &[Value]) -> Value {
        let given: Vec<&Value> = values.iter().filter(|value| !value.is_null()).collect();
        let numbers: Option<Vec<f64>> = given.iter().map(|value| value.as_f64()).collect();
        match numbers.as_deref() {
            Some([]) => Value::Null,
            Some(numbers) => {
                let mean = numbers.iter().sum::<f64>() / numbers.len() as f64;
                self.items += 1;
                self.sum += mean;
                self.squares += mean * mean;
                json!(mean)
            }
            // Lists and objects of another tool have no mean.
            None => given.first().map(|value| (*value).clone()).unwrap_or_default(),
        }
    }
}

#[derive(Debug, Default)]
struct Task {
    items: usize,
    shots: usize,
    /// Most continuations of an item; 0 where text is generated.
    continuations: usize,
    /// Scorers in the order of their lines.
    tallies: Vec<(Scorer, Tally)>,
    lines: Vec<Value>,
    hashes: String,
    /// Documents without a score.
    unscored: usize,
}

impl Task {
    fn tally(&mut self, scorer: &Scorer) -> &mut Tally {
        let index = self.tallies.iter().position(|(known, _)| known == scorer).unwrap_or_else(|| {
            self.tallies.push((scorer.clone(), Tally::default()));
            self.tallies.len() - 1
        });
        &mut self.tallies[index].1
    }
}

impl LmEval {
    /// Groups the samples of an item (neighbours in the plan) into one document. Every scorer is a filter of the metric `acc`; `none`
    /// is the suite's deciding scorer, and has the suite's other metrics. Scorers of another tool's log keep their names. The number of
    /// a document is the mean of its samples; `METRIC_repeats` has those of each, where there are several. Errors are standard errors
    /// of the mean over documents, as in the harness. Metrics leave out samples without a score, which are null; `n-samples` has the
    /// remaining number. Without `texts`, questions and prompts are empty. `examples` is the number of worked examples per prompt, for suites whose items do not separate them from the question.
    pub fn new(
        manifest: &Manifest,
        planned: &BTreeMap<String, usize>,
        rows: &dyn Rows,
        texts: bool,
        examples: Option<usize>,
    ) -> Result<Self, RowsError> {
        let mut tasks: BTreeMap<String, Task> = BTreeMap::new();
        let mut group: Vec<Row> = Vec::new();
        let (mut documents, mut repeats) = (0, 0);
        let scorers = scorers_of(manifest);
        rows.walk_asked(&mut |row| {
            if group.first().is_some_and(|first| first.sample.item != row.sample.item) {
                add(&mut tasks, manifest, &scorers, &group, documents, texts, examples);
                documents += 1;
                repeats = repeats.max(group.len());
                group.clear();
            }
            group.push(row.clone());
            Ok(())
        })?;
        if group.is_empty() {
            return Err(RowsError::NoRows);
        }
        add(&mut tasks, manifest, &scorers, &group, documents, texts, examples);
        let unscored = tasks.values().map(|task| task.unscored).sum();
        let date = date(manifest);
        let results = results(manifest, planned, &tasks);
        let samples = tasks.into_iter().map(|(name, task)| TaskSamples {
            file: format!("samples_{}_{date}.jsonl", sanitized(&task_name(manifest, &name))),
            lines: task.lines,
        });
        Ok(LmEval {
            folder: sanitized(&manifest.model.name),
            results_file: format!("results_{date}.json"),
            results,
            samples: samples.collect(),
            unscored,
            repeats: repeats.max(group.len()),
        })
    }
}

/// Adds a document with its samples.
fn add(
    tasks: &mut BTreeMap<String, Task>,
    manifest: &Manifest,
    scorers: &[Scorer],
    group: &[Row],
    number: usize,
    texts: bool,
    examples: Option<usize>,
) {
    let Some(row) = group.first() else { return };
    let first = &row.sample;
    let task = tasks.entry(first.task.clone()).or_default();
    let (samples, of_log): (Vec<&Sample>, bool) =
        (group.iter().map(|row| &row.sample).collect(), manifest.settings.origin() == Origin::Log);
    match samples.iter().any(|sample| sample.score.is_some()) {
        true => task.items += 1,
        false => task.unscored += 1,
    }
    let item = row.asked.as_ref().map(|asked| &asked.item);
    let shots = examples.or_else(|| item.map(|item| item.segments.shots.len())).unwrap_or(0);
    let stop_strings = item.map(|item| item.stop_strings.as_slice()).unwrap_or_default();
    let shown = |text: Option<&str>| text.filter(|_| texts).unwrap_or_default().to_owned();
    let (question, prompt) = (shown(row.question()), shown(row.prompt()));
    task.shots = task.shots.max(shots);
    let doc = doc(first, &question, texts);
    let hash = |text: &str| hex(&sha256(text.as_bytes()));
    let (doc_hash, prompt_hash, target_hash) = (hash(&doc.to_string()), hash(&prompt), hash(&first.gold));
    // Unknown for imported completions.
    let generation = match manifest.settings.origin() {
        Origin::Evaluated => {
            let greedy = manifest.settings.generation.sampling.is_greedy();
            json!({ "until": stop_strings, "max_gen_toks": first.max_tokens, "do_sample": !greedy })
        }
        _ => json!({}),
    };
    // A sample's completion, then those that were scored together with it.
    let completion = |sample: &&Sample| sample.completion.as_ref().map(|completion| completion.text.clone());
    let repeats = samples.iter().filter_map(|sample| sample.score.as_ref()).flat_map(|score| &score.evidence.repeats);
    let responses: Vec<Value> =
        samples.iter().map(|sample| json!(completion(sample))).chain(repeats.map(|text| json!(text))).collect();
    let likelihoods: Vec<Likelihoods> = group.iter().filter_map(|row| row.sample.likelihoods()).collect();
    task.continuations = task.continuations.max(likelihoods.first().map_or(0, |first| first.0.len()));
    let (arguments, responses) = match likelihoods.first() {
        None => (json!({ "gen_args_0": { "arg_0": prompt, "arg_1": generation } }), json!([responses])),
        Some(first) => scored(first, &likelihoods, &|text| json!({ "arg_0": prompt, "arg_1": shown(Some(text)) })),
    };
    let chosen = manifest.settings.chosen_scorer();
    let mut own = own_facts(&samples, of_log);
    let mut columns = columns(&samples, scorers, of_log);
    while let Some((leading, _)) = columns.first() {
        let filter = leading.filter.clone();
        let extracted: Vec<Value> = samples.iter().map(|sample| reading(sample, leading, chosen, of_log)).collect();
        let (metrics, others): (Vec<Column>, Vec<Column>) =
            columns.into_iter().partition(|(scorer, _)| scorer.filter == filter);
        columns = others;
        let mut line = json!({
            "doc_id": number,
            "doc": doc,
            "target": first.gold,
            "arguments": arguments,
            "resps": responses,
            "filtered_resps": extracted,
            "filter": filter,
            "doc_hash": doc_hash,
            "prompt_hash": prompt_hash,
            "target_hash": target_hash,
        });
        // With the first line of a document.
        if let Some(own) = own.take() {
            line[OWN] = own;
        }
        let mut names: Vec<String> = Vec::new();
        let mut set = |name: String, value: Value| {
            line[&name] = value;
            names.push(name);
        };
        for (scorer, values) in metrics {
            let one = task.tally(&scorer).add(&values);
            if values.len() > 1 {
                set(format!("{}_repeats", scorer.metric), json!(values));
            }
            set(scorer.metric, one);
        }
        line["metrics"] = json!(names);
        task.hashes.extend([doc_hash.as_str(), prompt_hash.as_str(), target_hash.as_str()]);
        task.lines.push(line);
    }
}

/// A document as the lines of its scores have it.
fn doc(first: &Sample, question: &str, texts: bool) -> Value {
    let mut doc = Map::new();
    doc.insert("id".into(), json!(first.item));
    doc.insert("question".into(), json!(question));
    doc.insert("answer".into(), json!(first.gold));
    doc.insert("cluster".into(), json!(first.cluster));
    doc.insert(
        "covariates".into(),
        if texts { json!(first.covariates) } else { json!(without_texts(first.covariates.clone())) },
    );
    doc.insert("prompt_ids_sha256".into(), json!(first.prompt_sha256));
    Value::Object(doc)
}

/// Facts of a document's samples that the harness has no place for; none if there are none.
fn own_facts(samples: &[&Sample], of_log: bool) -> Option<Value> {
    let errors: Vec<Option<&str>> =
        samples.iter().map(|sample| sample.failure.as_ref().map(|failure| failure.message.as_str())).collect();
    let explanations: Vec<Value> = samples
        .iter()
        .map(|sample| sample.score.as_ref().map_or(json!({}), |score| json!(score.evidence.explanations)))
        .collect();
    let mut facts = Map::new();
    let readings: Vec<Value> = samples
        .iter()
        .map(|sample| sample.score.as_ref().map_or(json!({}), |score| json!(score.evidence.readings)))
        .collect();
    if of_log && readings.iter().any(|one| one != &json!({})) {
        facts.insert("readings".to_owned(), readings.into());
    }
    if samples.len() > 1 {
        let numbers: Vec<u32> = samples.iter().map(|sample| sample.sample).collect();
        facts.insert("samples".to_owned(), json!(numbers));
    }
    if errors.iter().any(Option::is_some) {
        facts.insert("errors".to_owned(), json!(errors));
    }
    if explanations.iter().any(|one| one != &json!({})) {
        facts.insert("explanations".to_owned(), explanations.into());
    }
    (!facts.is_empty()).then(|| facts.into())
}

/// Returns the arguments and responses of an item whose continuations were scored: an argument for each, and its log-likelihood in each
/// sample. The harness adds whether the continuation is the greedy one, which is not known here.
fn scored(first: &Likelihoods, all: &[Likelihoods], argument: &dyn Fn(&str) -> Value) -> (Value, Value) {
    let one = |(number, score): (usize, &ContinuationScore)| (format!("gen_args_{number}"), argument(&score.text));
    let arguments: Map<String, Value> = first.0.iter().enumerate().map(one).collect();
    let of_index = |index: usize| -> Vec<Value> {
        all.iter().filter_map(|sample| sample.0.get(index)).map(|score| json!([score.logprob, null])).collect()
    };
    (arguments.into(), (0..first.0.len()).map(of_index).collect())
}

fn results(manifest: &Manifest, planned: &BTreeMap<String, usize>, tasks: &BTreeMap<String, Task>) -> Value {
    let settings = &manifest.settings;
    let every = |value: &dyn Fn(&str, &Task) -> Value| -> Value {
        let entries = tasks.iter().map(|(name, task)| (task_name(manifest, name), value(name, task)));
        Value::Object(entries.collect())
    };
    let metrics = every(&|name, task| {
        let mut entry = Map::new();
        entry.insert("name".into(), json!(task_name(manifest, name)));
        entry.insert("alias".into(), json!(format!("{} {name}", settings.suite)));
        entry.insert("sample_len".into(), json!(task.items));
        for (Scorer { filter, metric, .. }, tally) in task.tallies.iter().filter(|(_, tally)| tally.items > 0) {
            let n = tally.items as f64;
            let mean = tally.sum / n;
            entry.insert(format!("{metric},{filter}"), json!(mean));
            // The harness writes "N/A" where an error is not defined.
            let error = match tally.items {
                0 | 1 => json!("N/A"),
                _ => json!(((tally.squares - n * mean * mean).max(0.0) / (n - 1.0) / n).sqrt()),
            };
            entry.insert(format!("{metric}_stderr,{filter}"), error);
        }
        Value::Object(entry)
    });
    let sampling = &settings.generation.sampling;
    let engine = manifest.engine.as_ref();
    let group = settings.suite.replace('-', "_");
    let names: Vec<String> = tasks.keys().map(|name| task_name(manifest, name)).collect();
    json!({
        "results": metrics,
        "group_subtasks": { group: names },
        "configs": every(&|name, task| json!({
            "task": task_name(manifest, name),
            "output_type": match task.continuations {
                0 => "generate_until",
                1 => "loglikelihood",
                _ => "multiple_choice",
            },
            "repeats": settings.samples,
            "metadata_suite": settings.suite,
            "metadata_suite_options": settings.suite_options.to_string(),
        })),
        "versions": every(&|_, _| json!(settings.suite_version)),
        "n-shot": every(&|_, task| json!(task.shots)),
        // Of another tool's metrics it is not known.
        "higher_is_better": every(&|_, _| if settings.origin() == Origin::Log { json!({}) } else { json!({ "acc": true }) }),
        "n-samples": every(&|name, task| json!({
            "original": planned.get(name).copied().unwrap_or(task.items).max(task.items),
            "effective": task.items,
        })),
        "config": {
            "model": "earnest",
            "model_args": format!("pretrained={},prompt={}", manifest.model.name, settings.prompt_mode),
            "model_dtype": engine.map_or_else(String::new, |engine| engine.card.weights_dtype.clone()),
            "model_sha": model_sha(manifest),
            "device": engine.map(|engine| engine.card.devices.join(", ")),
            "batch_size": null,
            "batch_sizes": [],
            "use_cache": null,
            "limit": settings.limit,
            "gen_kwargs": match settings.origin() != Origin::Evaluated {
                true => json!(card_of(settings).map(|card| card.generation)),
                false => json!({
                    "temperature": sampling.temperature,
                    "top_k": sampling.top_k,
                    "top_p": sampling.top_p,
                    "min_p": sampling.min_p,
                    "repetition_penalty": sampling.repetition_penalty,
                    "max_gen_toks": settings.generation.max_tokens,
                }),
            },
            "random_seed": (settings.origin() == Origin::Evaluated).then_some(settings.generation.seed),
        },
        "git_hash": format!("earnest {}", settings.earnest),
        "date": unix_seconds(&manifest.started),
        "model_source": "earnest",
        "model_name": manifest.model.name,
        "model_name_sanitized": sanitized(&manifest.model.name),
        "max_length": manifest.model.context,
        "chat_template_sha": manifest.model.chat_template_sha256,
        "system_instruction": null,
        "fewshot_as_multiturn": false,
        "task_hashes": every(&|_, task| json!(hex(&sha256(task.hashes.as_bytes())))),
        "total_evaluation_time_seconds": manifest.generation_s.to_string(),
        "earnest_run": {
            "run": manifest.run,
            "settings_sha256": manifest.settings_sha256,
            // In the run's order, which objects do not keep, with their names there.
            "scorers": every(&|_, task| task.tallies.iter().map(|(scorer, _)| scorer_name(scorer)).collect()),
        },
    })
}

/// Returns a scorer's key in the results and its name in the run.
fn scorer_name(scorer: &Scorer) -> Value {
    let key = scorer.key();
    let name = if scorer.name.is_empty() { key.clone() } else { scorer.name.clone() };
    json!([key, name])
}

/// Returns the harness's task name, with an underscore between group and task; the task of another tool's log keeps its own.
fn task_name(manifest: &Manifest, task: &str) -> String {
    if manifest.settings.origin() == Origin::Log {
        return task.to_owned();
    }
    format!("{}_{task}", manifest.settings.suite.replace('-', "_"))
}

/// Returns a SHA-256 over the digests of the checkpoint's files, in place of a commit.
fn model_sha(manifest: &Manifest) -> String {
    let files = manifest
        .settings
        .files_of_model()
        .unwrap_or_default()
        .iter()
        .map(|file| format!("{} {}\n", file.sha256, file.name));
    hex(&sha256(files.collect::<String>().as_bytes()))
}

/// Sanitises a name for paths as the harness does: each run of reserved characters becomes `__`.
fn sanitized(name: &str) -> String {
    let mut safe = String::new();
    let mut replaced = false;
    for c in name.chars() {
        let unfit = "\"<>:/|\\?*[]".contains(c);
        match (unfit, replaced) {
            (false, _) => safe.push(c),
            (true, false) => safe.push_str("__"),
            (true, true) => {}
        }
        replaced = unfit;
    }
    fitting(safe)
}

/// Longest part of a file's name that is a name of a model or task, in bytes: with the rest, systems allow 255.
const LONGEST_PART: usize = 180;

/// A part of a file's name that fits: a long one is cut, and the digits of its digest tell it from others.
fn fitting(part: String) -> String {
    match part.as_str() {
        // The folder itself and the one above.
        "." | ".." => part.replace('.', "_"),
        _ if part.len() <= LONGEST_PART => part,
        _ => {
            let digest = hex(&sha256(part.as_bytes()));
            format!("{}-{}", &part[..part.floor_char_boundary(LONGEST_PART - 9)], &digest[..8])
        }
    }
}

/// Fraction of the second in the names of files: manifests have whole seconds.
pub(super) const NO_FRACTION: &str = ".000000";

/// Returns the start of the run in the format of the harness's file names.
fn date(manifest: &Manifest) -> String {
    format!("{}{NO_FRACTION}", sanitized(&manifest.started.trim_end_matches('Z').replace(':', "-")))
}

/// Returns the seconds since 1970 of `YYYY-MM-DDThh:mm:ssZ`; 0 for anything else.
fn unix_seconds(timestamp: &str) -> f64 {
    let part = |range: std::ops::Range<usize>| timestamp.get(range).and_then(|digits| digits.parse::<i64>().ok());
    let parts = [part(0..4), part(5..7), part(8..10), part(11..13), part(14..16), part(17..19)];
    let [Some(year), Some(month), Some(day), Some(hour), Some(minute), Some(second)] = parts else { return 0.0 };
    // Days from the civil calendar (proleptic Gregorian), counted from March so that leap days come last.
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let of_era = year.rem_euclid(400);
    let of_year = (153 * (month + if month > 2 { -3 } else { 9 }) + 2) / 5 + day - 1;
    let days = era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468;
    (days * 86_400 + hour * 3600 + minute * 60 + second) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn continuations_are_arguments_and_log_likelihoods_their_responses() {
        let score = |text: &str, logprob| ContinuationScore { text: text.into(), logprob, tokens: 1 };
        let sample = Likelihoods(vec![score(" 4", -0.5), score(" 5", -2.0)]);
        let (arguments, responses) = scored(&sample, &[sample.clone(), sample.clone()], &|text| json!(["2+2=", text]));
        assert_eq!(arguments, json!({"gen_args_0": ["2+2=", " 4"], "gen_args_1": ["2+2=", " 5"]}));
        assert_eq!(responses, json!([[[-0.5, null], [-0.5, null]], [[-2.0, null], [-2.0, null]]]));
    }

    #[test]
    fn seconds_of_dates() {
        assert_eq!(unix_seconds("1970-01-01T00:00:00Z"), 0.0);
        assert_eq!(unix_seconds("2024-02-29T12:30:15Z"), 1_709_209_815.0);
        assert_eq!(unix_seconds("2026-11-21T05:04:25Z"), 1_795_237_465.0);
        assert_eq!(unix_seconds("yesterday"), 0.0);
    }
}
