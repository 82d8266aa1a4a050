//! A run to compare with the paper.
use earnest_results::{Manifest, Origin, Sample, Status};
use earnest_tasks::{agreeing, counted, the_first};
use std::fmt;

use earnest_tasks::suite::Summary;
use earnest_tasks::suite::nupa::{
    Adapter, BudgetRule, Lengths, NupaError, NupaOptions, PromptStyle, ScoredAnswer, Scorer, ShorterOperand, Split,
    TaskId, Wording, summarise_answers,
};

/// Scorers in the order of columns; the first one is compared with the published numbers.
pub(super) const SCORERS: [Scorer; 3] = [Scorer::Ref, Scorer::Strict, Scorer::Paper];

/// A run with its scored answers.
#[derive(Debug, Clone)]
pub struct EvaluatedRun {
    pub(super) manifest: Manifest,
    pub(super) options: NupaOptions,
    answers: Vec<ScoredAnswer>,
    /// Samples without a completion, which are excluded from means.
    failed: usize,
    /// Samples whose score lacks a metric, which are excluded from means.
    damaged: usize,
}

/// Reason for a run's numbers not being comparable with the paper's, as a predicate of the run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Limit {
    /// Only the first items were evaluated. Cells whose lengths are complete remain comparable.
    FirstItems(usize),
    /// Anything else, in words.
    Other(String),
}

impl Limit {
    /// True if complete cells are comparable all the same.
    pub(super) fn is_comparable(&self) -> bool {
        matches!(self, Limit::FirstItems(_))
    }
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Limit::FirstItems(count) => write!(f, "was limited to {}", the_first(*count, "item")),
            Limit::Other(text) => f.write_str(text),
        }
    }
}

impl EvaluatedRun {
    /// A run without rows yet; see [`EvaluatedRun::add`].
    ///
    /// # Errors
    /// [`NupaError`] for options written by another version.
    pub fn new(manifest: Manifest) -> Result<Self, NupaError> {
        let options = NupaOptions::from_json(&manifest.settings.suite_options)?;
        Ok(EvaluatedRun { manifest, options, answers: Vec::new(), failed: 0, damaged: 0 })
    }

    pub fn add(&mut self, sample: &Sample) {
        let (Some(score), Some(completion)) = (&sample.score, &sample.completion) else {
            self.failed += 1;
            return;
        };
        let tokens = completion.tokens();
        match ScoredAnswer::new(&sample.task, &sample.covariates, score, tokens, sample.truncated()) {
            Ok(answer) => self.answers.extend(answer),
            Err(_) => self.damaged += 1,
        }
    }

    /// Scorer whose figures are drawn: the run's own if it is one of the paper's, otherwise `strict`.
    pub(super) fn scorer(&self) -> Scorer {
        if SCORERS.contains(&self.options.scorer) { self.options.scorer } else { Scorer::Strict }
    }

    /// The run's summary under a scorer.
    pub(super) fn summary(&self, scorer: Scorer) -> Summary {
        let options = NupaOptions { scorer, ..self.options.clone() };
        summarise_answers(&options, self.answers.iter().copied())
    }

    /// Number of lengths of a task that have samples, among those that satisfy a condition, and number of their samples.
    pub(super) fn asked(&self, task: TaskId, wanted: impl Fn(usize) -> bool) -> (usize, usize) {
        let mine = self.answers.iter().filter(|answer| answer.task == task && wanted(answer.length));
        let lengths: Vec<usize> = mine.map(|answer| answer.length).collect();
        let distinct: std::collections::BTreeSet<usize> = lengths.iter().copied().collect();
        (distinct.len(), lengths.len())
    }

    /// Reasons for the run's numbers not being comparable with the paper's.
    pub(super) fn limits(&self) -> Vec<Limit> {
        let settings = &self.manifest.settings;
        let mut limits = Vec::new();
        let mut add = |when: bool, text: String| limits.extend(when.then_some(Limit::Other(text)));
        add(self.options.split != Split::Test, format!("asks questions of the {} split", self.options.split));
        add(
            self.options.pairs.shorter == ShorterOperand::Any,
            "has second operands of any length, not of at least half the first one's".to_owned(),
        );
        add(
            self.manifest.shard.is_some(),
            self.manifest.shard.map_or_else(String::new, |shard| format!("is shard {shard} of a run")),
        );
        add(self.manifest.status != Status::Finished, "is not finished".to_owned());
        add(
            self.failed > 0,
            format!(
                "has {} without an answer, most likely {}",
                counted(self.failed, "sample"),
                agreeing(self.failed, "a long one", "the longest")
            ),
        );
        add(
            !matches!(self.options.shots, 0 | 5),
            format!("shows {}; the paper none or five", counted(self.options.shots, "worked example")),
        );
        add(self.damaged > 0, format!("has {} with a damaged score, left out", counted(self.damaged, "sample")));
        limits.extend(settings.limit.map(Limit::FirstItems));
        limits
    }

    /// Differences in settings from the published evaluation that leave its numbers comparable.
    pub(super) fn settings(&self) -> Vec<String> {
        let options = &self.options;
        let mut found = Vec::new();
        let mut differs = |when: bool, text: &str| found.extend(when.then(|| text.to_owned()));
        let imported = self.manifest.settings.origin() != Origin::Evaluated;
        differs(imported, "Completions were generated elsewhere; their budget, stop strings and sampling are unknown.");
        differs(
            !imported && options.budget != BudgetRule::Published,
            "The token budget is larger than the published 2 L.",
        );
        differs(
            !imported && options.budget == BudgetRule::Published,
            "The budget is twice each question's own length; the published one was twice the longest in a batch of 64.",
        );
        differs(
            !imported && options.adapter == Adapter::Completion && options.stop_at_newline,
            "Raw completions stop at a line break; the published ones did not.",
        );
        differs(options.adapter == Adapter::Chat, "Prompts use a chat template; the paper's open models had none.");
        differs(
            !imported && self.manifest.settings.generation.sampling.is_greedy(),
            "Decoding is greedy; the paper samples with each model's own settings (the setting `recommended`).",
        );
        differs(!options.pairs.reference, "Questions are sampled without the biases of the authors' generator.");
        differs(
            options.pairs.hard_floats_equal_length,
            "The floats of max_hard and min_hard have equal numbers of decimals.",
        );
        differs(
            options.wording == Wording::Corrected,
            "The min question is spelt `minimal`; no released task is affected.",
        );
        differs(
            matches!(options.lengths, Lengths::Chosen(_)),
            "Only selected lengths are asked; the column `lengths` shows how many of the published ones.",
        );
        if options.per_length < 100 {
            found.push(format!(
                "The paper asks 100 questions of each task and length, this run {}.",
                options.per_length
            ));
        }
        found
    }

    /// True for prompts that ask for the answer only.
    pub(super) fn direct(&self) -> bool {
        self.options.style == PromptStyle::Direct
    }
}
