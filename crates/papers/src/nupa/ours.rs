//! A run to hold against the paper.
use std::fmt;

use earnest_eval::run::{Manifest, Sample, Status};
use earnest_tasks::suite::Summary;
use earnest_tasks::suite::nupa::{
    Adapter, BudgetRule, Lengths, NupaError, NupaOptions, Profile, PromptStyle, ScoredAnswer, ShorterOperand, Split,
    TaskId, Wording, summarise_answers,
};

/// The profiles in the order of columns: the one that is compared first.
pub(super) const PROFILES: [Profile; 3] = [Profile::Ref, Profile::Strict, Profile::Paper];

/// A run with its judged answers.
#[derive(Debug, Clone)]
pub struct Ours {
    pub(super) manifest: Manifest,
    pub(super) options: NupaOptions,
    answers: Vec<ScoredAnswer>,
    /// Samples without a completion; they are in no mean.
    failed: usize,
    /// Samples whose score lacks a metric; they are in no mean.
    damaged: usize,
}

/// Reason for a run's numbers not being the paper's quantity.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Limit {
    /// Only the first items were asked. This says nothing against lengths that are all asked.
    FirstItems(usize),
    /// Anything else, in words.
    Other(String),
}

impl Limit {
    /// True if cells that were asked in full are the paper's quantity all the same.
    pub(super) fn is_comparable(&self) -> bool {
        matches!(self, Limit::FirstItems(_))
    }
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Limit::FirstItems(count) => write!(f, "was limited to the first {count} items"),
            Limit::Other(text) => f.write_str(text),
        }
    }
}

impl Ours {
    /// An empty one; rows are added by [`Ours::add`].
    ///
    /// # Errors
    /// [`NupaError`] for options that another version wrote.
    pub fn new(manifest: Manifest) -> Result<Self, NupaError> {
        let options = NupaOptions::from_json(&manifest.settings.suite_options)?;
        Ok(Ours { manifest, options, answers: Vec::new(), failed: 0, damaged: 0 })
    }

    /// Adds a row.
    pub fn add(&mut self, sample: &Sample) {
        let (Some(score), Some(completion)) = (&sample.score, &sample.completion) else {
            self.failed += 1;
            return;
        };
        let tokens = completion.ids.len();
        match ScoredAnswer::new(&sample.task, &sample.covariates, score, tokens, sample.truncated()) {
            Ok(answer) => self.answers.extend(answer),
            Err(_) => self.damaged += 1,
        }
    }

    /// The profile whose figures are drawn: the run's own among the paper's, or `strict`.
    pub(super) fn profile(&self) -> Profile {
        if PROFILES.contains(&self.options.profile) { self.options.profile } else { Profile::Strict }
    }

    /// The run's tables as a profile reads its completions.
    pub(super) fn summary(&self, profile: Profile) -> Summary {
        let options = NupaOptions { profile, ..self.options.clone() };
        summarise_answers(&options, self.answers.iter().copied())
    }

    /// Lengths of a task that have samples, among those that satisfy a condition, and their samples.
    pub(super) fn asked(&self, task: TaskId, wanted: impl Fn(usize) -> bool) -> (usize, usize) {
        let mine = self.answers.iter().filter(|answer| answer.task == task && wanted(answer.length));
        let lengths: Vec<usize> = mine.map(|answer| answer.length).collect();
        let distinct: std::collections::BTreeSet<usize> = lengths.iter().copied().collect();
        (distinct.len(), lengths.len())
    }

    /// Reasons for the run's numbers not being the paper's quantity.
    pub(super) fn limits(&self) -> Vec<Limit> {
        let settings = &self.manifest.settings;
        let mut limits = Vec::new();
        let mut says = |when: bool, text: String| limits.extend(when.then_some(Limit::Other(text)));
        says(self.options.split != Split::Test, format!("asks questions of the {} part", self.options.split));
        says(
            self.options.pairs.shorter == ShorterOperand::Any,
            "has second operands of any length, not of at least half the first one's".to_owned(),
        );
        says(
            self.manifest.shard.is_some(),
            self.manifest.shard.map_or_else(String::new, |shard| format!("is part {shard} of a run")),
        );
        says(self.manifest.status != Status::Finished, "is not finished".to_owned());
        says(self.failed > 0, format!("has {} samples without an answer, most likely the longest", self.failed));
        says(
            !matches!(self.options.shots, 0 | 5),
            format!("shows {} worked examples; the paper none or five", self.options.shots),
        );
        says(self.damaged > 0, format!("has {} samples with a damaged score, which are left out", self.damaged));
        limits.extend(settings.limit.map(Limit::FirstItems));
        limits
    }

    /// How the run differs from the published evaluation, though it asks the same.
    pub(super) fn settings(&self) -> Vec<String> {
        let options = &self.options;
        let mut found = Vec::new();
        let mut differs = |when: bool, text: &str| found.extend(when.then(|| text.to_owned()));
        let imported = self.manifest.settings.imported();
        differs(imported, "Completions were made elsewhere: their budget, stops and decoding are not known.");
        differs(
            !imported && options.budget != BudgetRule::Published,
            "More tokens are granted than the published 2 L.",
        );
        differs(
            !imported && options.budget == BudgetRule::Published,
            "The budget is twice each question's own length; the published one was that of the longest in a batch of 64.",
        );
        differs(
            !imported && options.adapter == Adapter::Completion && options.stop_at_newline,
            "Raw completions end at a line break; the published ones went on.",
        );
        differs(options.adapter == Adapter::Chat, "Prompts use a chat template; the paper's open models had none.");
        differs(
            !imported && self.manifest.settings.generation.sampling.is_greedy(),
            "Decoding is greedy; the paper samples with each model's own settings (`--recommended`).",
        );
        differs(!options.pairs.reference, "Questions are drawn without the biases of the authors' generator.");
        differs(
            options.pairs.hard_floats_equal_length,
            "The floats of max_hard and min_hard have equally many decimals.",
        );
        differs(
            options.wording == Wording::Corrected,
            "The min question is spelt `minimal`; this concerns no released task.",
        );
        differs(
            matches!(options.lengths, Lengths::Chosen(_)),
            "Only chosen lengths are asked; the column of lengths says how many of the published ones.",
        );
        if options.per_length < 100 {
            found.push(format!(
                "The paper asks 100 questions of each task and length, this run {}.",
                options.per_length
            ));
        }
        found
    }

    /// True for prompts that ask for the answer alone.
    pub(super) fn direct(&self) -> bool {
        self.options.style == PromptStyle::Direct
    }
}
