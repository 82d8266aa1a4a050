//! A log's samples as rows of a run.
use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::Answers;
use super::settings::own_name;
use crate::{CHOICES, LogError, LogLikelihood, LogPrompt, LogSample, LogScore};
use earnest_engine::{FinishReason, Timings};
use earnest_results::{FailureKind, Generated, LogCard, SAMPLE_FORMAT, Sample, SampleFailure, Tool};
use earnest_tasks::suite::log::{decide, set_value};
use earnest_tasks::suite::task::{TARGETS, read_again, usual};
use earnest_tasks::suite::{Answered, Budget, ContinuationScore, Item, Likelihoods, Score};

/// Characters beyond which a text of a document is no covariate: passages and solutions.
const LONGEST_COVARIATE: usize = 200;

/// Names of the limit of new tokens in the settings of generation.
const LIMITS: [&str; 6] =
    ["max_gen_toks", "max_tokens", "max_new_tokens", "max_completion_tokens", "generation_size", "max_output_tokens"];

/// Words of tools for a completion that the limit of tokens ended.
const CUT: [&str; 4] = ["length", "max_tokens", "model_length", "max_output_tokens"];

/// Conversion of a log's samples.
pub struct Converter<'a> {
    /// Name of the run.
    pub run: String,
    pub card: &'a LogCard,
    /// Deciding scorer.
    pub deciding: Option<&'a str>,
    /// Field of the documents whose value is the cluster.
    pub cluster: Option<&'a str>,
    /// Expected answers for samples that have none.
    pub answers: Option<&'a Answers>,
}

/// A sample as a row with its question.
#[derive(Debug)]
pub struct Converted {
    pub item: Item,
    pub prompt: Option<String>,
    pub sample: Sample,
    /// True if the document says to which cluster the item belongs.
    pub labelled: bool,
}

impl Converter<'_> {
    pub fn convert(&self, sample: LogSample) -> Converted {
        let LogSample { id, epoch, original, mut document, question, prompt, mut choices, mut targets, .. } = sample;
        let prompt = prompt.map(prompt_text);
        self.add_fields(&id, &mut document);
        let field = field_of(&document, self.cluster.unwrap_or(usual::CLUSTER)).cloned();
        let label = match (&field, self.cluster) {
            // Variants and their original are not independent.
            (None, None) => original.clone(),
            _ => field.as_ref().and_then(usual::label),
        };
        let question = question.or_else(|| text_of_question(&document)).or_else(|| prompt.clone()).unwrap_or_default();
        if targets.is_empty() {
            targets.extend(self.answers.and_then(|answers| answers.get(&id)).map(str::to_owned));
        }
        // In a run of earnest lists are among the covariates.
        if let Some(Value::Object(inner)) = document.get(COVARIATES) {
            let list = |name: &str| inner.get(name).and_then(Value::as_array).map(|list| texts(list));
            choices = list(CHOICES).filter(|choices| !choices.is_empty()).unwrap_or(choices);
            targets = if targets.len() < 2 { list(TARGETS).unwrap_or(targets) } else { targets };
        }
        let task = self.take_task(&mut document);
        let mut covariates = covariates(&mut document, &question, &targets);
        match (self.cluster, &label, &field) {
            (None, ..) => drop(covariates.remove(usual::CLUSTER)),
            // Also where it is the answer.
            (Some(name), Some(_), Some(value)) => drop(covariates.insert(name.to_owned(), value.clone())),
            (Some(_), ..) => {}
        }
        // Also where it is the answer.
        covariates.extend(original.filter(|original| *original != id).map(|id| (usual::PAIR.to_owned(), id.into())));
        let labelled = label.is_some();
        let cluster = label.unwrap_or_else(|| match self.cluster.is_some() || field.is_some() {
            true => usual::own_cluster(&id),
            false => id.clone(),
        });
        if targets.len() > 1 {
            covariates.insert(TARGETS.to_owned(), targets.clone().into());
        }
        if !choices.is_empty() {
            covariates.insert(CHOICES.to_owned(), choices.into());
        }
        let likely = sample.completions.is_empty() && !sample.likelihoods.is_empty();
        // Nothing is generated where continuations are scored; an unknown limit is 0 too.
        let limit = if likely { 0 } else { self.limit() };
        let gold = targets.into_iter().next().unwrap_or_default();
        let mut item = Item {
            cluster,
            covariates,
            budget: Budget { answer: limit, thinking: limit },
            ..Item::plain(id, task, question, gold)
        };
        if likely {
            item.continuations =
                sample.likelihoods.iter().map(|one| one.continuation.clone().unwrap_or_default()).collect();
        }
        let mut completions = sample.completions.into_iter();
        let text = match likely {
            true => Some(likelihoods(&sample.likelihoods)),
            false => completions.next(),
        };
        let cut = sample.finish.as_deref().is_some_and(|word| CUT.contains(&word));
        let failure =
            sample.error.map(|message| SampleFailure { kind: FailureKind::Engine, message, retryable: false });
        let score = match &failure {
            None => self.score(&item, sample.scores, text.as_deref(), completions.collect(), cut),
            Some(_) => None,
        };
        let (tokens, seconds) = (sample.completion_tokens, sample.seconds);
        let completion = text.filter(|_| failure.is_none()).map(|text| generated(text, cut, tokens, seconds));
        let digest = |prompt: &String| earnest_digest::hex(&earnest_digest::sha256(prompt.as_bytes()));
        // The tools' own digests are of different forms of a prompt.
        let prompt_sha256 = prompt.as_ref().map(digest).or(sample.prompt_hash);
        let sample = Sample {
            format: SAMPLE_FORMAT,
            run: self.run.clone(),
            suite: self.card.task.clone(),
            item: item.id.clone(),
            sample: epoch,
            task: item.task.clone(),
            cluster: item.cluster.clone(),
            covariates: item.covariates.clone(),
            gold: item.gold.clone(),
            prompt_sha256: prompt_sha256.unwrap_or_default(),
            prompt_tokens: usize::try_from(sample.prompt_tokens.unwrap_or(0)).unwrap_or(usize::MAX),
            budget: limit,
            max_tokens: limit,
            completion,
            score,
            failure,
        };
        Converted { item, prompt, sample, labelled }
    }

    /// Adds the fields of the user's answers that a document lacks.
    fn add_fields(&self, id: &str, document: &mut Map<String, Value>) {
        for (name, value) in self.answers.and_then(|answers| answers.fields(id)).into_iter().flatten() {
            if !document.contains_key(name) {
                document.insert(name.clone(), value.clone());
            }
        }
    }

    /// Takes the task out of a document: a run of earnest has one in every row.
    fn take_task(&self, document: &mut Map<String, Value>) -> String {
        let own = match self.card.tool {
            Tool::Earnest => document.remove("task"),
            _ => None,
        };
        match own {
            Some(Value::String(task)) => task,
            _ => self.card.task.clone(),
        }
    }

    fn limit(&self) -> usize {
        let limit = LIMITS.iter().find_map(|name| self.card.generation.get(*name)?.as_u64());
        limit.and_then(|limit| usize::try_from(limit).ok()).unwrap_or(0)
    }

    /// The tool's scores, or that of the answer reader where the expected answers are the user's.
    fn score(
        &self,
        item: &Item,
        scores: Vec<LogScore>,
        completion: Option<&str>,
        repeats: Vec<String>,
        truncated: bool,
    ) -> Option<Score> {
        if self.answers.is_some() && self.card.scorers.is_empty() {
            let read = read_again(item, &Answered { completion: completion?, truncated });
            return (!read.scorers.is_empty()).then_some(read);
        }
        if scores.is_empty() {
            return None;
        }
        let mut score = Score::default();
        score.evidence.repeats = repeats;
        for mut one in scores {
            let (name, is_metric) = own_name(self.card.tool, &one.scorer);
            if let (true, Some(number)) = (is_metric, one.number()) {
                score.metrics.insert(name, number);
                continue;
            }
            one.scorer = name.to_owned();
            match (one.number().filter(|number| number.is_finite()), one.value) {
                (Some(number), _) => set_value(&mut score, &one.scorer, number),
                (None, Value::Null) => {}
                (None, value) => {
                    for (part, number) in value.as_object().into_iter().flatten() {
                        if let Some(number) = scalar(number) {
                            set_value(&mut score, &format!("{}.{part}", one.scorer), number);
                        }
                    }
                    score.evidence.values.insert(one.scorer.clone(), value);
                }
            }
            if let Some(explanation) = one.explanation {
                score.evidence.explanations.insert(one.scorer.clone(), explanation);
            }
            score.evidence.readings.insert(one.scorer, one.answer);
        }
        if let Some(deciding) = self.deciding {
            decide(&mut score, deciding);
            // The deciding scorer's reading is the answer, or the one of the scorer that it is a part of.
            let own = score.evidence.readings.remove(deciding);
            let whole = || score.evidence.readings.get(deciding.split_once('.')?.0).cloned();
            score.answer = own.or_else(whole).flatten();
        }
        score.evidence.readings.retain(|_, read| read.is_some());
        Some(score)
    }
}

/// A completion of another tool.
fn generated(text: String, cut: bool, tokens: Option<u64>, seconds: Option<f64>) -> Generated {
    Generated {
        text,
        ids: Vec::new(),
        counted_tokens: tokens.and_then(|tokens| usize::try_from(tokens).ok()).unwrap_or(0),
        finish: if cut { FinishReason::Length } else { FinishReason::Eos },
        cached_tokens: 0,
        timings: Timings { decode_s: seconds.unwrap_or_default(), ..Timings::default() },
    }
}

/// The error of a cluster's field in which no document has a label: none has the field, or it is blank in all.
pub fn no_field(thing: &str, field: &str, document: &Map<String, Value>) -> LogError {
    let fields: Vec<&str> =
        document.iter().filter(|(_, value)| usual::label(value).is_some()).map(|(name, _)| name.as_str()).collect();
    let known = match fields.is_empty() {
        true => "it has no fields".to_owned(),
        false => format!("it has {}", fields.join(", ")),
    };
    LogError::setting(format!("{thing} has no value in {field}, and no other has one"))
        .hint(format!("the setting `cluster` names a field; {known}"))
}

/// A field of a document, or of the covariates that earnest writes into one.
fn field_of<'a>(document: &'a Map<String, Value>, field: &str) -> Option<&'a Value> {
    let inner = || document.get(COVARIATES)?.as_object()?.get(field);
    document.get(field).or_else(inner)
}

fn texts(list: &[Value]) -> Vec<String> {
    list.iter().filter_map(Value::as_str).map(str::to_owned).collect()
}

/// Field of a document with further fields, in lm-eval files that earnest writes.
const COVARIATES: &str = "covariates";

fn scalar(value: &Value) -> Option<f64> {
    match value {
        Value::Number(number) => number.as_f64().filter(|number| number.is_finite()),
        Value::Bool(truth) => Some(f64::from(u8::from(*truth))),
        _ => None,
    }
}

/// Numbers, truth values and short texts of a document, without its question and its answer.
fn covariates(document: &mut Map<String, Value>, question: &str, targets: &[String]) -> BTreeMap<String, Value> {
    let inner = match document.remove(COVARIATES) {
        Some(Value::Object(inner)) => inner,
        Some(other) => Map::from_iter([(COVARIATES.to_owned(), other)]),
        None => Map::new(),
    };
    let is_covariate = |(name, value): &(String, Value)| {
        name != "id"
            && match value {
                Value::Bool(_) | Value::Number(_) => true,
                Value::String(text) => {
                    text.chars().nth(LONGEST_COVARIATE).is_none() && text != question && !targets.contains(text)
                }
                Value::Null | Value::Array(_) | Value::Object(_) => false,
            }
    };
    std::mem::take(document).into_iter().chain(inner).filter(is_covariate).collect()
}

/// The question in a document, under one of its usual names.
fn text_of_question(document: &Map<String, Value>) -> Option<String> {
    let text = |names: &[&str]| names.iter().find_map(|name| document.get(*name)?.as_str());
    Some(usual::asked(text(&usual::BODY), text(&usual::QUESTION)?))
}

/// The prompt as a text; messages as those to an endpoint.
fn prompt_text(prompt: LogPrompt) -> String {
    match prompt {
        LogPrompt::Text(text) => text,
        LogPrompt::Chat(messages) => messages.iter().map(|(role, text)| format!("{role}: {text}\n")).collect(),
    }
}

/// The completion of an item whose continuations were scored; the number of their tokens is not known.
fn likelihoods(found: &[LogLikelihood]) -> String {
    let one = |one: &LogLikelihood| ContinuationScore {
        text: one.continuation.clone().unwrap_or_default(),
        logprob: one.log_likelihood,
        tokens: 0,
    };
    Likelihoods(found.iter().map(one).collect()).to_completion()
}
