//! A run to hold against the paper.
use crate::run::{Manifest, Sample, Status};
use crate::suite::Summary;
use crate::suite::nupa::{
    Adapter, BudgetRule, JudgedAnswer, Lengths, NupaError, NupaOptions, Profile, PromptStyle, ShorterOperand, Split,
    TaskId, Wording, summarise_answers,
};

/// The profiles in the order of columns: the one that is compared first.
pub(super) const PROFILES: [Profile; 3] = [Profile::Ref, Profile::Strict, Profile::Paper];

/// A run with its judged answers.
#[derive(Debug, Clone)]
pub struct Ours {
    pub(super) manifest: Manifest,
    pub(super) options: NupaOptions,
    answers: Vec<JudgedAnswer>,
    /// Samples without a completion; they are in no mean.
    failed: usize,
}

impl Ours {
    /// An empty one; rows are added by [`Ours::add`].
    ///
    /// # Errors
    /// [`NupaError`] for options that another version wrote.
    pub fn new(manifest: Manifest) -> Result<Self, NupaError> {
        let options = NupaOptions::from_json(&manifest.settings.suite_options)?;
        Ok(Ours { manifest, options, answers: Vec::new(), failed: 0 })
    }

    /// Adds a row.
    pub fn add(&mut self, sample: &Sample) {
        let (Some(verdict), Some(completion)) = (&sample.verdict, &sample.completion) else {
            self.failed += 1;
            return;
        };
        let tokens = completion.ids.len();
        self.answers.extend(JudgedAnswer::new(&sample.task, &sample.covariates, verdict, tokens, sample.truncated()));
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

    /// Why the run's numbers are not the paper's quantity.
    pub(super) fn limits(&self) -> Vec<String> {
        let settings = &self.manifest.settings;
        let mut limits = Vec::new();
        let mut says = |when: bool, text: String| limits.extend(when.then_some(text));
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
        if let Some(limit) = settings.limit {
            says(true, format!("was limited to the first {limit} items"));
        }
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
