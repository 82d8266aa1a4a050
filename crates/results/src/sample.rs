//! Samples: the rows that are stored and exported.
use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use earnest_engine::{FinishReason, Timings};
use earnest_tasks::suite::{Likelihoods, Score};

/// Version of [`Sample`]'s form. A reader refuses rows of another version.
pub const SAMPLE_FORMAT: u32 = 1;

/// A sample of an item: prompt, completion and score.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Sample {
    /// [`SAMPLE_FORMAT`] of the writer.
    pub format: u32,
    /// Name of the run.
    pub run: String,
    /// Name of the suite.
    pub suite: String,
    /// Id of the item.
    pub item: String,
    /// Sample number of the item, from 0.
    pub sample: u32,
    pub task: String,
    pub cluster: String,
    pub covariates: BTreeMap<String, serde_json::Value>,
    /// Exact answer.
    pub gold: String,
    /// SHA-256 over the prompt's ids, each as four little-endian bytes; empty if the prompt could not be rendered.
    pub prompt_sha256: String,
    /// Number of prompt tokens, BOS included.
    pub prompt_tokens: usize,
    /// Token budget of the suite or of `--max-tokens`.
    pub budget: usize,
    /// The budget clipped to the context.
    pub max_tokens: usize,
    /// Completion; none if the sample failed.
    pub completion: Option<Generated>,
    /// Score; none if the sample failed.
    #[serde(rename = "verdict")]
    pub score: Option<Score>,
    /// Failure; none if the sample has a completion.
    pub failure: Option<SampleFailure>,
}

/// A completion.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Generated {
    /// Text without special tokens, cut before the stop string.
    pub text: String,
    /// Generated token ids, including a stop id.
    pub ids: Vec<u32>,
    /// Number of generated tokens by the usage of an endpoint that returns no ids, else 0.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub counted_tokens: usize,
    pub finish: FinishReason,
    /// Number of prompt tokens from the prefix cache. Depends on earlier requests.
    pub cached_tokens: usize,
    pub timings: Timings,
}

impl Generated {
    /// Returns the number of generated tokens, 0 where it is unknown.
    pub fn tokens(&self) -> usize {
        if self.ids.is_empty() { self.counted_tokens } else { self.ids.len() }
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
fn is_zero(count: &usize) -> bool {
    *count == 0
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SampleFailure {
    pub kind: FailureKind,
    /// Message for people.
    pub message: String,
    /// True if another attempt or other engine settings may succeed; continuing the run generates such samples again.
    pub retryable: bool,
}

/// Kinds of [`SampleFailure`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FailureKind {
    /// The chat template or the tokenizer failed.
    Prompt,
    /// The prompt fills the model's context.
    BeyondContext,
    /// The engine rejected the request.
    Refused,
    /// The engine failed, also on a retry where one was possible.
    Engine,
}

impl Sample {
    /// The prompt, where a suite asks one question under several; its items then begin with the prompt, which is the task.
    pub fn prompt(&self) -> Option<&str> {
        self.prompted().map(|_| self.task.as_str())
    }

    /// The question: the item without its prompt, so that one question under several prompts is one.
    pub fn question(&self) -> &str {
        self.prompted().unwrap_or(&self.item)
    }

    fn prompted(&self) -> Option<&str> {
        let asks_prompts = ["gsm-symbolic", "gsm-mini"].contains(&self.suite.as_str());
        self.item.strip_prefix(&self.task).filter(|_| asks_prompts)?.strip_prefix('/')
    }

    /// Returns the names of the reproducible fields that differ between two rows of equal settings. Timings, cached tokens, the
    /// run's name and the format version are not compared.
    pub fn differences(&self, other: &Sample) -> Vec<&'static str> {
        let text = |sample: &Self| sample.completion.as_ref().map(|completion| completion.text.clone());
        let ids = |sample: &Self| sample.completion.as_ref().map(|completion| completion.ids.clone());
        let finish = |sample: &Self| sample.completion.as_ref().map(|completion| completion.finish);
        let score = |one: &Self, other: &Self| match (&one.score, &other.score) {
            (Some(one), Some(other)) => one.agrees_with(other),
            (one, other) => one.is_none() && other.is_none(),
        };
        let compared = [
            ("suite", self.suite == other.suite),
            ("item", self.item == other.item),
            ("sample number", self.sample == other.sample),
            ("task", self.task == other.task),
            ("cluster", self.cluster == other.cluster),
            ("covariates", self.covariates == other.covariates),
            ("expected answer", self.gold == other.gold),
            ("prompt", (&self.prompt_sha256, self.prompt_tokens) == (&other.prompt_sha256, other.prompt_tokens)),
            ("token budget", (self.budget, self.max_tokens) == (other.budget, other.max_tokens)),
            ("completion", text(self) == text(other)),
            ("token ids", ids(self) == ids(other)),
            ("finish reason", finish(self) == finish(other)),
            ("score", score(self, other)),
            ("failure", self.failure == other.failure),
        ];
        compared.into_iter().filter(|(_, same)| !same).map(|(name, _)| name).collect()
    }

    /// Returns the log-likelihoods of given continuations, where they are the completion: no token was generated, nor could be.
    pub fn likelihoods(&self) -> Option<Likelihoods> {
        let completion =
            self.completion.as_ref().filter(|completion| completion.ids.is_empty() && self.max_tokens == 0)?;
        Likelihoods::parse(&completion.text)
    }

    /// Returns the completion for people: its text, or a line for each continuation that was scored; empty if the sample failed.
    pub fn completion_text(&self) -> String {
        match (self.likelihoods(), &self.completion) {
            (Some(likelihoods), _) => shown(&likelihoods),
            (None, Some(completion)) => completion.text.clone(),
            (None, None) => String::new(),
        }
    }

    /// True if the token budget ended the completion.
    pub fn truncated(&self) -> bool {
        self.completion.as_ref().is_some_and(|completion| completion.finish == FinishReason::Length)
    }

    /// True if the context clipped the token budget.
    pub fn clipped(&self) -> bool {
        self.max_tokens < self.budget
    }
}

/// Lists log-likelihoods, tokens and continuations; the largest log-likelihood is marked.
fn shown(likelihoods: &Likelihoods) -> String {
    let best = likelihoods.best(|score| score.logprob);
    let numbers: Vec<(String, String)> = likelihoods
        .0
        .iter()
        .map(|score| {
            let tokens = match score.tokens {
                // Not known of another tool's.
                0 => String::new(),
                1 => "1 token ".to_owned(),
                tokens => format!("{tokens} tokens"),
            };
            (format!("{:.3}", score.logprob), tokens)
        })
        .collect();
    let width = |of: fn(&(String, String)) -> usize| numbers.iter().map(of).max().unwrap_or(0);
    let (logprobs, tokens) = (width(|row| row.0.len()), width(|row| row.1.len()));
    let line = |(index, (logprob, count)): (usize, &(String, String))| {
        let mark = if best == Some(index) { '*' } else { ' ' };
        // Quoted, because spaces at the ends and line breaks belong to a continuation.
        format!("{mark} {logprob:>logprobs$}  {count:>tokens$}  {:?}", likelihoods.0[index].text)
    };
    numbers.iter().enumerate().map(line).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use earnest_tasks::suite::ContinuationScore;

    #[test]
    fn likelihoods_are_lines_with_the_largest_marked() {
        let score = |text: &str, logprob, tokens| ContinuationScore { text: text.into(), logprob, tokens };
        let likelihoods = Likelihoods(vec![score(" 4", -12.25, 1), score(" \n5", -0.5, 10)]);
        let mut sample: Sample = serde_json::from_value(serde_json::json!({
            "format": 1, "run": "r", "suite": "s", "item": "i", "sample": 0, "task": "t", "cluster": "c", "covariates": {},
            "gold": "1", "prompt_sha256": "", "prompt_tokens": 1, "budget": 0, "max_tokens": 0, "verdict": null, "failure": null,
            "completion": {"text": likelihoods.to_completion(), "ids": [], "finish": "eos", "cached_tokens": 0,
                "timings": Timings::default()},
        }))
        .unwrap();
        assert_eq!(sample.likelihoods(), Some(likelihoods));
        assert_eq!(sample.completion_text(), "  -12.250   1 token   \" 4\"\n*  -0.500  10 tokens  \" \\n5\"");
        // A model may write the same.
        sample.max_tokens = 64;
        assert_eq!(sample.likelihoods(), None);
        assert!(sample.completion_text().starts_with("[{"));
    }

    #[test]
    fn a_question_under_several_prompts_is_one() {
        let of = |suite: &str, task: &str, item: &str| -> Sample {
            serde_json::from_value(serde_json::json!({
                "format": 1, "run": "r", "suite": suite, "item": item, "sample": 0, "task": task, "cluster": "c",
                "covariates": {}, "gold": "1", "prompt_sha256": "", "prompt_tokens": 1, "budget": 0, "max_tokens": 0,
                "verdict": null, "failure": null, "completion": null,
            }))
            .unwrap()
        };
        let [one, other] = ["gsm", "simple-nl"].map(|prompt| of("gsm-symbolic", prompt, &format!("{prompt}/main/7/3")));
        assert_eq!((one.question(), other.question()), ("main/7/3", "main/7/3"));
        assert_eq!((one.prompt(), other.prompt()), (Some("gsm"), Some("simple-nl")));
        // An item of another suite that begins with its task has no prompt.
        let sums = of("arithmetic-bench", "add", "add/3/1");
        assert_eq!((sums.question(), sums.prompt()), ("add/3/1", None));
    }
}
