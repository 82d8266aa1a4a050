//! Measured throughput, for the costs of plans.
use serde::Serialize;

use super::{Host, Manifest, Totals};

/// Throughput in tokens per second.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Rate {
    /// Prompt tokens per second, those from the prefix cache included.
    pub prompt_tokens_per_second: f64,
    /// New tokens per second; equal to the rate of prompt tokens where only the total is known.
    pub new_tokens_per_second: f64,
    /// Source of the numbers, for people.
    pub source: String,
}

impl Rate {
    /// One rate for prompt and new tokens together.
    pub fn together(tokens_per_second: f64, source: String) -> Self {
        Rate { prompt_tokens_per_second: tokens_per_second, new_tokens_per_second: tokens_per_second, source }
    }

    /// Hours for these numbers of prompt and new tokens.
    pub fn hours(&self, prompt: usize, new: usize) -> f64 {
        (prompt as f64 / self.prompt_tokens_per_second + new as f64 / self.new_tokens_per_second) / 3600.0
    }

    /// Description of the rate and its source.
    pub fn describe(&self) -> String {
        let Rate { prompt_tokens_per_second: prompt, new_tokens_per_second: new, source } = self;
        if prompt == new {
            format!("{new:.0} tokens/s, prompt and new tokens together ({source})")
        } else {
            format!("{prompt:.0} prompt tokens/s and {new:.0} new tokens/s ({source})")
        }
    }

    /// Rate of a stored run; `None` if it measured none. Prompt tokens from the prefix cache count as processed, because a plan counts
    /// them too and a similar run has a similar hit rate.
    pub fn measured(manifest: &Manifest, totals: &Totals) -> Option<Self> {
        let tokens = totals.prompt_tokens.saturating_add(totals.completion_tokens) as f64;
        let tokens_per_second = tokens / manifest.generation_s;
        (tokens > 0.0 && tokens_per_second.is_finite()).then(|| {
            let (samples, seconds) = (totals.recorded - totals.failed, manifest.generation_s);
            let plural = if samples == 1 { "" } else { "s" };
            let elsewhere = match manifest.host.is_as_fast_as(&Host::probe()) {
                true => String::new(),
                false => format!(" on another machine ({})", manifest.host.cpu.as_deref().unwrap_or("unknown CPU")),
            };
            let source =
                format!("measured in run {}: {samples} sample{plural} in {seconds:.1} s{elsewhere}", manifest.run);
            Rate::together(tokens_per_second, source)
        })
    }
}
