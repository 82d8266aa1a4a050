//! Size of a run before its weights are loaded.
use super::session::{ModelSession, resolve_settings, suite};
use super::{Decoding, EvaluationSettings};
use crate::EvalError;
use crate::prompt::{PromptError, Prompter};
use earnest_results::store::Store;
use earnest_results::{Generation, Plan, Reporter, RunSettings};
use earnest_tasks::suite::Suite;

/// Items whose prompts are counted. The first ones of a suite are a small picture of all, so they are like the others.
const COUNTED: usize = 64;

/// Bytes of a token, where the tokenizer is an endpoint's.
const BYTES_PER_TOKEN: f64 = 4.0;

/// Size of a run, and the part of it that is done.
#[derive(Debug, Clone, PartialEq)]
pub struct Survey {
    /// Settings that identify the run.
    pub settings: RunSettings,
    /// The stored run with these settings.
    pub run: Option<String>,
    /// Samples of the plan.
    pub planned: usize,
    /// Samples that need not be generated any more.
    pub settled: usize,
    /// Mean tokens of a prompt.
    pub prompt_tokens: f64,
    /// Mean limit of new tokens.
    pub most_new_tokens: f64,
    /// False if prompt tokens are estimated from bytes, because the endpoint has the tokenizer.
    pub counted: bool,
}

impl ModelSession {
    /// Returns the size of a run. Loads no weights and asks no model; files are hashed, because they are part of a run's identity.
    ///
    /// # Errors
    /// As [`ModelSession::evaluate`], before it loads.
    pub fn survey(
        &mut self,
        settings: &EvaluationSettings,
        store: Option<&Store>,
        reporter: &mut dyn Reporter,
    ) -> Result<Survey, EvalError> {
        settings.check()?;
        let ModelSession { model, files, .. } = self;
        let source = model.prompt_source();
        let prompter = Prompter::new(source.as_ref(), settings.prompt)?;
        let suite = &suite(settings, model.as_ref(), &prompter)?;
        let run_settings = resolve_settings(settings, suite, model.as_ref(), files, &prompter, reporter)?;
        let generation = match &settings.decoding {
            Decoding::Asked(_) => &run_settings.generation,
            Decoding::Stored(stored) => stored,
        };
        let context = model.record().context;
        let tokens = SampleTokens::of_first(&settings.plan, suite, &prompter, generation, context)?;
        let planned = settings.plan.len(suite);
        let stored = match store {
            Some(store) => store.with_settings(&run_settings.sha256())?,
            None => Vec::new(),
        };
        let run = stored.into_iter().rfind(|run| run.manifest.shard == settings.plan.shard);
        let settled = match (store, &run) {
            (Some(store), Some(run)) => store.progress(run)?.settled(),
            _ => 0,
        };
        Ok(Survey {
            settings: run_settings,
            run: run.map(|run| run.manifest.run),
            planned,
            settled,
            prompt_tokens: tokens.prompt,
            most_new_tokens: tokens.most_new,
            counted: source.tokenises(),
        })
    }
}

/// Mean tokens of a sample.
#[derive(Debug, Clone, PartialEq)]
pub struct SampleTokens {
    /// Tokens of its prompt.
    pub(super) prompt: f64,
    /// Limit of its new tokens.
    pub(super) most_new: f64,
}

impl SampleTokens {
    /// Counts the tokens of a plan's first items in a context of so many tokens (0: unknown).
    pub(super) fn of_first(
        plan: &Plan,
        suite: &Suite,
        prompter: &Prompter<'_>,
        generation: &Generation,
        context: usize,
    ) -> Result<Self, PromptError> {
        let context = if context == 0 { usize::MAX } else { context };
        let (mut items, mut prompt, mut most_new) = (0_usize, 0.0, 0.0);
        for (_, item) in plan.asked(suite).take(COUNTED) {
            let rendered = prompter.render(&item.segments)?;
            let estimate = rendered.text.len() as f64 / BYTES_PER_TOKEN;
            let tokens = if prompter.source().tokenises() { rendered.ids.len() as f64 } else { estimate.ceil() };
            items += 1;
            prompt += tokens;
            if item.continuations.is_empty() {
                most_new += generation.room(item.budget, tokens as usize, context).max_tokens as f64;
            } else {
                // Continuations are read, not generated.
                prompt += item.continuations.iter().map(|text| text.len() as f64 / BYTES_PER_TOKEN).sum::<f64>();
            }
        }
        let mean = |sum: f64| sum / items.max(1) as f64;
        Ok(SampleTokens { prompt: mean(prompt), most_new: mean(most_new) })
    }
}
