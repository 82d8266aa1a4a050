//! Logs of lighteval: a results document, and for each task a Parquet file of details with a row for every document.
use std::collections::HashSet;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::{Map, Value};

use super::fault::LogFault;
use super::identity::short;
use super::json::{Ordered, add, content, count, id_text, is_not_finite, messages, number, parse_facts, plain, texts};
use super::limits::{Scorers, check_copies, check_figures};
use super::lm_eval::{question, stamp};
use super::log::{Each, FindOptions, Log, Samples};
use super::open::read_whole;
use super::sample::{LogLikelihood, LogPrompt, LogSample, LogScore};
use super::secrets::without_secrets;
use crate::LogError;
use earnest_results::{LogCard, LogStatus, Reported, Tool};
use earnest_rows::ParquetFile;

/// Columns of the details.
const COLUMNS: [&str; 3] = ["doc", "metric", "model_response"];

/// Members of a response that are used. Token ids and logits are most of a file.
const RESPONSE: [&str; 5] = ["text", "text_post_processed", "logprobs", "argmax_logits_eq_gold", "input"];

/// True for the columns of details; some versions write them as `__doc__`.
pub(super) fn are_details(columns: &[&str]) -> bool {
    COLUMNS.iter().all(|wanted| columns.iter().any(|column| column.trim_matches('_') == *wanted))
}

/// Some of the columns that details had before.
const EARLIER: [&str; 3] = ["full_prompt", "num_effective_few_shots", "metrics"];

/// True for the columns of details in an earlier layout.
pub(super) fn are_earlier_details(columns: &[&str]) -> bool {
    EARLIER.iter().all(|wanted| columns.contains(wanted))
}

/// True for the name that the tool gives to details: `details_TASK_TIME.parquet`.
pub(super) fn is_name_of_details(path: &Path) -> bool {
    let name = path.file_name().and_then(OsStr::to_str).unwrap_or_default();
    name.starts_with("details_") && stamp(path).is_some()
}

#[derive(Debug, Default, Deserialize)]
struct Results {
    #[serde(default)]
    config_general: Map<String, Value>,
    #[serde(default)]
    results: Ordered<Ordered<Value>>,
    #[serde(default)]
    versions: Map<String, Value>,
    #[serde(default)]
    config_tasks: Map<String, Value>,
    #[serde(default)]
    summary_tasks: Map<String, Value>,
}

/// A results document in its file.
#[derive(Debug)]
pub(super) struct ResultsFile {
    pub path: PathBuf,
    results: Results,
}

impl ResultsFile {
    pub fn read(path: &Path, longest: u64) -> Result<Self, LogError> {
        let text = read_whole(path, longest)?;
        let results = parse_facts(&text).map_err(|reason| LogError::unread(path, reason))?;
        Ok(ResultsFile { path: path.to_owned(), results })
    }
}

/// True if details are of the run of a results document: of its time, and of its model where the folders say it.
pub(super) fn is_of(results: &Path, details: &Path) -> bool {
    stamp(results) == stamp(details)
        && match (below(results, "results"), below(details, "details")) {
            (Some((_, mine)), Some((_, theirs))) => mine.parent() == theirs.parent().and_then(Path::parent),
            _ => true,
        }
}

/// The folder that has a folder of this name, and the path below that.
fn below(path: &Path, name: &str) -> Option<(PathBuf, PathBuf)> {
    let folder = path.ancestors().skip(1).find(|folder| folder.file_name() == Some(OsStr::new(name)))?;
    Some((folder.parent()?.to_owned(), path.strip_prefix(folder).ok()?.to_owned()))
}

/// The results document of details, where the tool writes it.
pub(super) fn results_of(details: &Path) -> Option<PathBuf> {
    let (root, below) = below(details, "details")?;
    let model = below.parent()?.parent()?;
    Some(root.join("results").join(model).join(format!("results_{}.json", stamp(details)?)))
}

/// The folder of the details of a results document, where the tool writes them.
pub(super) fn details_of(results: &Path) -> Option<PathBuf> {
    let (root, below) = below(results, "results")?;
    Some(root.join("details").join(below.parent()?).join(stamp(results)?))
}

/// Task of a file of details as the results name it. Some systems cannot have `|` in the names of files.
fn task_of(path: &Path, results: Option<&Results>) -> Option<String> {
    let name = path.file_name()?.to_str()?;
    let name = name.strip_suffix(".parquet").unwrap_or(name).strip_prefix("details_")?;
    let name = match stamp(path) {
        Some(stamp) => name.get(..name.len().checked_sub(stamp.len())?)?.trim_end_matches('_'),
        None => name,
    };
    let alike =
        |text: &str| -> String { text.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect() };
    let tasks = results.iter().flat_map(|results| results.results.0.iter().map(|(task, _)| task));
    let known = tasks.into_iter().find(|task| *task == name || alike(task) == alike(name));
    Some(known.map_or(name, |task| task.as_str()).to_owned())
}

#[derive(Debug)]
struct Source {
    path: PathBuf,
}

/// The log of a file of details with its results, if there are any.
pub(super) fn log(path: &Path, results: Option<&ResultsFile>, options: &FindOptions) -> Result<Log, LogError> {
    let of = results.map(|file| &file.results);
    let Some(task) = task_of(path, of).or_else(|| options.task.clone()) else {
        return Err(LogError::unread(path, "its name does not say which task it is of")
            .hint("name the task: the setting `task = TASK`"));
    };
    let named = of.and_then(model_name).or_else(|| options.model.clone());
    let Some(model) = named else {
        let message = "its results file (results_TIME.json of the same time) is missing, and with it the model's name";
        let hint = "import the folder that has both `results` and `details`, or name the model: the setting `model_name = NAME`";
        return Err(LogError::unread(path, message).hint(hint));
    };
    let status = if results.is_some() { LogStatus::Finished } else { LogStatus::Unknown };
    let mut card = LogCard::new(Tool::Lighteval, model, task, status);
    card.files = std::iter::once(path.to_owned()).chain(results.map(|file| file.path.clone())).collect();
    let results_path = results.map(|file| file.path.clone()).unwrap_or_default();
    match of {
        Some(results) => fill(&mut card, results).map_err(|reason| LogError::unread(&results_path, reason))?,
        None => {
            card.notes.push("the results file is missing: settings and the tool's own figures are unknown".to_owned())
        }
    }
    let file = ParquetFile::open(path)?;
    if !are_details(&file.columns()) {
        return Err(LogError::unread(
            path,
            "it has not the columns doc, metric and model_response of lighteval's details",
        ));
    }
    let metric = file.columns().into_iter().find(|column| column.trim_matches('_') == "metric").unwrap_or("metric");
    let mut scorers = Scorers::default();
    let mut names = card.scorers.iter().map(String::as_str).chain(file.members(metric));
    names.try_for_each(|name| scorers.add(name)).map_err(|reason| LogError::unread(path, reason))?;
    card.scorers = scorers.into_names();
    let rows = file.len();
    if let Some(counted) = card.planned.filter(|counted| rows < *counted) {
        card.notes.push(format!("the details have {rows} of the {counted} documents that the results are about"));
    }
    Ok(Log { card, source: Box::new(Source { path: path.to_owned() }), keep_going: options.keep_going })
}

fn model_name(results: &Results) -> Option<String> {
    let general = &results.config_general;
    let config = general.get("model_config");
    let text = |value: Option<&Value>| value.and_then(Value::as_str).filter(|text| !text.is_empty()).map(str::to_owned);
    let name = text(config.and_then(|config| config.get("model_name"))).or_else(|| text(general.get("model_name")))?;
    let revision = text(config.and_then(|config| config.get("revision"))).filter(|revision| revision != "main");
    Some(match revision {
        Some(revision) => format!("{}@{revision}", short(&name)),
        None => short(&name),
    })
}

/// Fills in what the results say.
///
/// # Errors
/// The reason, where they say too much.
fn fill(card: &mut LogCard, results: &Results) -> Result<(), LogFault> {
    let general = &results.config_general;
    let task = card.task.clone();
    card.tool_version =
        general.get("lighteval_sha").and_then(Value::as_str).filter(|sha| sha.len() > 1).map(str::to_owned);
    if let Some(Value::Object(config)) = general.get("model_config") {
        let mut config = without_secrets(config);
        if let Some(Value::Object(generation)) = config.remove("generation_parameters") {
            card.generation = generation.into_iter().filter(|(_, value)| !value.is_null()).collect();
        }
        card.model_details = config.into_iter().filter(|(_, value)| !value.is_null()).collect();
    }
    for key in ["model_sha", "model_dtype", "model_size"] {
        add(&mut card.model_details, key, general.get(key));
    }
    let config = results.config_tasks.get(&task).and_then(Value::as_object);
    for (name, value) in config.map(without_secrets).into_iter().flatten() {
        add(&mut card.task_details, &name, Some(&value));
    }
    for key in ["max_samples", "num_fewshot_seeds"] {
        add(&mut card.task_details, key, general.get(key));
    }
    let of_task = |key: &str| config.and_then(|config| config.get(key));
    if let Some(size) = of_task("generation_size").and_then(Value::as_i64).filter(|size| *size > 0) {
        card.generation.entry("generation_size").or_insert_with(|| size.into());
    }
    if let Some(stop) = of_task("stop_sequence").filter(|stop| stop.as_array().is_some_and(|stop| !stop.is_empty())) {
        card.generation.entry("stop_sequence").or_insert_with(|| stop.clone());
    }
    let small = |value: Option<&Value>| count(value).and_then(|value| u32::try_from(value).ok());
    let last = task.rsplit('|').next().and_then(|number| number.parse().ok());
    card.few_shot = small(of_task("num_fewshots").or_else(|| of_task("num_fewshot"))).or(last);
    card.repeats = small(of_task("num_samples").and_then(|samples| match samples {
        Value::Array(counts) => counts.iter().max_by_key(|count| count.as_u64()),
        one => Some(one),
    }));
    let version = results.versions.get(&task).or_else(|| of_task("version"));
    card.task_version = version.filter(|version| !version.is_null()).map(plain);
    let hashes = results.summary_tasks.get(&task).and_then(|summary| summary.get("hashes"));
    card.task_hash = hashes.and_then(|hashes| hashes.get("hash_examples")).and_then(Value::as_str).map(str::to_owned);
    add(&mut card.task_details, "hashes", hashes);
    let documents = of_task("effective_num_docs").and_then(Value::as_i64).and_then(|count| usize::try_from(count).ok());
    card.planned = documents.filter(|documents| *documents > 0);
    let entries = results.results.get(&task).map(|entries| entries.0.as_slice()).unwrap_or_default();
    check_figures(entries.len())?;
    let metrics: HashSet<&str> = entries.iter().map(|(name, _)| name.as_str()).collect();
    let mut scorers = Scorers::default();
    for (metric, value) in entries {
        let of = metric.strip_suffix("_stderr").filter(|of| metrics.contains(of));
        let scorer = of.unwrap_or(metric).to_owned();
        if of.is_none() {
            scorers.add(metric)?;
        }
        card.reported.push(Reported {
            scorer,
            reducer: None,
            metric: metric.clone(),
            value: value.clone(),
            samples: card.planned,
        });
    }
    card.scorers = scorers.into_names();
    Ok(())
}

impl Source {
    /// True if every document has an id of its own, and no two the same.
    fn own_ids(&self, file: &ParquetFile) -> Result<bool, LogError> {
        let mut ids = HashSet::new();
        let mut own = true;
        let wanted = |column: &str, member: Option<&str>| {
            column.trim_matches('_') == "doc" && member.is_none_or(|member| member == "specific")
        };
        file.rows::<LogError>(&self.path, &wanted, &mut |_, mut row| {
            let id = take(&mut row, "doc").get("specific").and_then(|specific| specific.get("id")).and_then(id_text);
            own = own && id.is_some_and(|id| ids.insert(earnest_digest::sha256(id.as_bytes())));
            Ok(())
        })?;
        Ok(own)
    }
}

/// A column, whose name may have underscores around it.
fn take(row: &mut Map<String, Value>, name: &str) -> Value {
    let other = format!("__{name}__");
    row.remove(name).or_else(|| row.remove(&other)).unwrap_or(Value::Null)
}

impl Samples for Source {
    fn walk(&self, card: &LogCard, each: Each<'_>) -> Result<(), LogError> {
        let file = ParquetFile::open(&self.path)?;
        let own_ids = self.own_ids(&file)?;
        let wanted = |column: &str, member: Option<&str>| match (column.trim_matches('_'), member) {
            ("model_response", Some(member)) => RESPONSE.contains(&member),
            (column, None) => COLUMNS.contains(&column),
            (_, Some(_)) => true,
        };
        file.rows::<LogError>(&self.path, &wanted, &mut |number, row| {
            let sample = sample(row, card, own_ids);
            each(sample.map_err(|reason| LogError::unread_at(&self.path, format!("row {number}"), reason)))
        })
    }

    fn sha256(&self) -> Result<String, LogError> {
        earnest_digest::sha256_file(&self.path, |_| ()).map_err(|error| LogError::input(self.path.display(), error))
    }
}

fn sample(mut row: Map<String, Value>, card: &LogCard, own_ids: bool) -> Result<LogSample, LogFault> {
    let doc = take(&mut row, "doc");
    let response = take(&mut row, "model_response");
    let mut metrics = match take(&mut row, "metric") {
        Value::Object(metrics) => metrics,
        Value::Null => return Err(LogFault::Without { whose: "it", what: "scores" }),
        _ => return Err(LogFault::Metric),
    };
    let specific = match doc.get("specific") {
        Some(Value::Object(specific)) => specific.clone(),
        _ => Map::new(),
    };
    let index =
        doc.get("id").and_then(number).filter(|index| *index >= 0.0 && index.fract() == 0.0).map(|index| index as u64);
    let own = specific.get("id").and_then(id_text).filter(|_| own_ids);
    let Some(id) = own.or_else(|| doc.get("id").and_then(id_text)) else {
        return Err(LogFault::Without { whose: "the document", what: "id" });
    };
    let choices = texts(doc.get("choices").unwrap_or(&Value::Null));
    let gold = |choice: &Value| choice.as_u64().and_then(|choice| choices.get(usize::try_from(choice).ok()?)).cloned();
    let targets = match doc.get("gold_index") {
        Some(Value::Array(indices)) => indices.iter().filter_map(gold).collect(),
        Some(choice) => gold(choice).into_iter().collect(),
        None => Vec::new(),
    };
    let query = doc.get("query").and_then(Value::as_str).map(str::to_owned);
    let list = |key: &str| response.get(key).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let greedy = list("argmax_logits_eq_gold");
    let likelihoods: Vec<LogLikelihood> = list("logprobs")
        .iter()
        .enumerate()
        .filter_map(|(choice, value)| {
            Some(LogLikelihood {
                continuation: choices.get(choice).cloned(),
                log_likelihood: number(value)?,
                greedy: greedy.get(choice).and_then(Value::as_bool),
            })
        })
        .collect();
    let answer = list("text_post_processed").first().and_then(Value::as_str).map(str::to_owned);
    check_copies("the answer", answer.as_ref().map_or(0, String::len), card.scorers.len())?;
    let mut scores = Vec::new();
    for scorer in &card.scorers {
        match metrics.remove(scorer) {
            None | Some(Value::Null) => {}
            Some(value) if is_not_finite(&value) => {
                return Err(LogFault::NoMean { scorer: scorer.clone(), value: plain(&value) });
            }
            Some(value) => {
                scores.push(LogScore { scorer: scorer.clone(), value, answer: answer.clone(), explanation: None });
            }
        }
    }
    let prompt = match response.get("input") {
        Some(Value::String(text)) => Some(LogPrompt::Text(text.clone())),
        Some(list @ Value::Array(_)) => {
            messages(list).map(LogPrompt::Chat).or_else(|| Some(LogPrompt::Text(content(list))))
        }
        _ => query.clone().map(LogPrompt::Text),
    };
    Ok(LogSample {
        id,
        index,
        question: question(&specific).or(query),
        prompt,
        choices: if likelihoods.is_empty() { Vec::new() } else { choices },
        targets,
        completions: list("text").iter().filter_map(Value::as_str).map(str::to_owned).collect(),
        likelihoods,
        scores,
        document: specific,
        ..LogSample::default()
    })
}
