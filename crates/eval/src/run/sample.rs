//! One question asked once: the row that is stored and exported.
use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use earnest_engine::{FinishReason, Timings};
use earnest_tasks::suite::Score;

/// Version of [`Sample`]'s form. A reader refuses rows of a later version.
pub const SAMPLE_FORMAT: u32 = 1;

/// What names a sample within its run: the item's id and the sample number.
pub type SampleKey = (String, u32);

/// A question, how it was put, what came back and how it was scored.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Sample {
    /// [`SAMPLE_FORMAT`] of the writer.
    pub format: u32,
    /// The run's id.
    pub run: String,
    /// The suite's name.
    pub suite: String,
    /// The item's id.
    pub item: String,
    /// 0, 1, ... when every item is asked several times.
    pub sample: u32,
    pub task: String,
    pub cluster: String,
    pub covariates: BTreeMap<String, serde_json::Value>,
    /// The exact answer.
    pub gold: String,
    /// SHA-256 over the prompt's ids, each as four little-endian bytes; empty if the prompt could not be rendered.
    pub prompt_sha256: String,
    /// Prompt tokens, BOS included.
    pub prompt_tokens: usize,
    /// New tokens that the suite (or `--max-tokens`) grants.
    pub budget: usize,
    /// New tokens that were allowed: less than `budget` where the context has less room.
    pub max_tokens: usize,
    /// What came back; none if the sample failed.
    pub completion: Option<Generated>,
    /// The score; none if the sample failed.
    #[serde(rename = "verdict")]
    pub score: Option<Score>,
    /// Why there is no completion.
    pub failure: Option<SampleFailure>,
}

/// What a model answered.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Generated {
    /// The text, special tokens skipped, cut before the stop string.
    pub text: String,
    /// The generated ids, a stop id included.
    pub ids: Vec<u32>,
    pub finish: FinishReason,
    /// Prompt tokens that were not computed but read from the prefix cache. Depends on what ran before.
    pub cached_tokens: usize,
    /// Where the time went.
    pub timings: Timings,
}

/// Why a sample has no completion.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SampleFailure {
    pub kind: FailureKind,
    /// In words, with the numbers.
    pub message: String,
    /// True if the same question may be answered another time or with other engine settings; such samples are asked
    /// again when the run is continued.
    pub retryable: bool,
}

/// Kinds of [`SampleFailure`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FailureKind {
    /// The chat template or the tokenizer refused it.
    Prompt,
    /// The prompt leaves no room in the model's context.
    BeyondContext,
    /// The engine refused the request.
    Refused,
    /// The engine gave up on the request, also at the second try where one made sense.
    Engine,
}

impl Sample {
    /// The sample's name within the run.
    pub fn key(&self) -> SampleKey {
        (self.item.clone(), self.sample)
    }

    /// What two rows of the same settings may not differ in but do, by name. Timings and cached tokens depend on what ran
    /// before, and the run's name and the form's version on who wrote the row: they are not compared.
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
            ("verdict", score(self, other)),
            ("failure", self.failure == other.failure),
        ];
        compared.into_iter().filter(|(_, same)| !same).map(|(name, _)| name).collect()
    }

    /// True if the token budget ended the completion: the answer may be cut.
    pub fn truncated(&self) -> bool {
        self.completion.as_ref().is_some_and(|completion| completion.finish == FinishReason::Length)
    }

    /// True if the context had less room than the budget grants.
    pub fn clipped(&self) -> bool {
        self.max_tokens < self.budget
    }
}
