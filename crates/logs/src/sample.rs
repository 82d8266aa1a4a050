//! Samples of a log.
use serde_json::{Map, Value};

/// Field with the choices of a multiple-choice question, in exports and in covariates.
pub(crate) const CHOICES: &str = "choices";

/// One answer to one document: a repeat or epoch where the tool scores each, else all repeats together.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct LogSample {
    /// Id of the document: its own `id` where it has one, else the tool's index.
    pub id: String,
    /// Index of the document in the tool's data set, where the log has one.
    pub index: Option<u64>,
    /// Repeat, from 0.
    pub epoch: u32,
    /// The document's own fields and metadata.
    pub document: Map<String, Value>,
    /// Id of the document's original; its own for an original, and none where the log does not tell them apart.
    pub original: Option<String>,
    /// The question as text, without few-shot examples where the log has it apart.
    pub question: Option<String>,
    /// The prompt that was sent.
    pub prompt: Option<LogPrompt>,
    /// Choices of a multiple-choice question.
    pub choices: Vec<String>,
    /// Expected answers; the first is the one shown. For multiple choice the text or letter that the tool recorded.
    pub targets: Vec<String>,
    /// Completions; several where the tool scored several repeats together.
    pub completions: Vec<String>,
    /// Log-likelihoods of continuations.
    pub likelihoods: Vec<LogLikelihood>,
    /// Scores in the order of [`earnest_results::LogCard::scorers`]; a scorer without a score of this sample is left out.
    pub scores: Vec<LogScore>,
    /// The sample's error, if it failed.
    pub error: Option<String>,
    /// Reason for the end of generation, in the tool's word (`stop`, `length`).
    pub finish: Option<String>,
    pub prompt_tokens: Option<u64>,
    pub completion_tokens: Option<u64>,
    /// Time of generation in seconds.
    pub seconds: Option<f64>,
    /// Hashes of the document and of the prompt that the tool computed.
    pub document_hash: Option<String>,
    pub prompt_hash: Option<String>,
}

#[derive(Debug, Clone, PartialEq)]
pub enum LogPrompt {
    Text(String),
    /// Role and text of each message.
    Chat(Vec<(String, String)>),
}

/// Log-likelihood of a continuation.
#[derive(Debug, Clone, PartialEq)]
pub struct LogLikelihood {
    pub continuation: Option<String>,
    /// Natural logarithm.
    pub log_likelihood: f64,
    /// True if every token was the most likely one.
    pub greedy: Option<bool>,
}

/// A score of a sample by one scorer.
#[derive(Debug, Clone, PartialEq)]
pub struct LogScore {
    pub scorer: String,
    /// As the tool stored it: a number, `"C"`, a list, an object.
    pub value: Value,
    /// The answer that the scorer read.
    pub answer: Option<String>,
    pub explanation: Option<String>,
}

impl LogScore {
    /// The score as a number: numbers and booleans as they are, `C`, `P`, `I` and `N` of Inspect as 1, 0.5, 0 and 0, as it reads
    /// other texts: `yes` and `true` are 1, `no` and `false` 0, and written numbers what they say. Lists, objects and other texts are
    /// none.
    pub fn number(&self) -> Option<f64> {
        match &self.value {
            Value::Number(number) => number.as_f64(),
            Value::Bool(value) => Some(f64::from(u8::from(*value))),
            Value::String(grade) => match grade.as_str() {
                "C" => Some(1.0),
                "P" => Some(0.5),
                "I" | "N" => Some(0.0),
                text if ["yes", "true"].iter().any(|word| text.eq_ignore_ascii_case(word)) => Some(1.0),
                text if ["no", "false"].iter().any(|word| text.eq_ignore_ascii_case(word)) => Some(0.0),
                text => text.parse().ok().filter(|number: &f64| number.is_finite()),
            },
            _ => None,
        }
    }
}

impl LogSample {
    /// Estimated memory of the sample in bytes: its texts, its document and its scores.
    pub(crate) fn memory(&self) -> usize {
        let prompt = match &self.prompt {
            None => 0,
            Some(LogPrompt::Text(text)) => text.len(),
            Some(LogPrompt::Chat(messages)) => messages.iter().map(|(role, text)| 48 + role.len() + text.len()).sum(),
        };
        self.stored() + self.question.as_ref().map_or(0, String::len) + prompt
    }

    /// Estimated memory of it without its question and its prompt, which are packed and stored once for a document.
    pub(super) fn stored(&self) -> usize {
        let length = |text: &Option<String>| text.as_ref().map_or(0, String::len);
        let score =
            |score: &LogScore| 200 + memory_of(&score.value) + length(&score.answer) + length(&score.explanation);
        let scores: usize = self.scores.iter().map(score).sum();
        let likelihoods: usize = self.likelihoods.iter().map(|one| 48 + length(&one.continuation)).sum();
        let lists = [&self.completions, &self.choices, &self.targets].into_iter().flatten().map(|text| 24 + text.len());
        let own = self.id.len() + length(&self.error) + length(&self.finish);
        own + scores + likelihoods + memory_of_members(&self.document) + lists.sum::<usize>()
    }
}

/// Estimated memory of the members of an object.
fn memory_of_members(members: &Map<String, Value>) -> usize {
    members.iter().map(|(name, value)| 160 + name.len() + memory_of(value)).sum()
}

/// Estimated memory of a value in bytes beside its own place.
pub(crate) fn memory_of(value: &Value) -> usize {
    match value {
        Value::String(text) => text.len(),
        Value::Array(values) => values.iter().map(|value| 32 + memory_of(value)).sum(),
        Value::Object(members) => memory_of_members(members),
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
    }
}
