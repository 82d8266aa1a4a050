//! A question with its exact answer.
use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::registry::Mode;

/// A question.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Item {
    /// Stable and unique within the suite: the same question under the same options always has the same id.
    pub id: String,
    /// The task it belongs to.
    pub task: String,
    /// Items with the same cluster are not independent (same template, same source question); the statistics know.
    pub cluster: String,
    /// Numbers and labels that analyses use, e.g. `length`.
    pub covariates: BTreeMap<String, serde_json::Value>,
    /// The pieces of the prompt.
    pub segments: Segments,
    /// The exact answer, in the suite's canonical form.
    pub gold: String,
    /// Token budget of a completion.
    pub budget: Budget,
    /// The completion ends at the first of these strings.
    pub stop_strings: Vec<String>,
    /// The stop string stays in the completion, as its end; otherwise the completion ends before it.
    #[serde(default)]
    pub keep_stop: bool,
    /// Continuations whose log-likelihoods are the completion ([`super::Likelihoods`]); empty where text is generated.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub continuations: Vec<String>,
}

impl Item {
    /// A question with the usual budgets, whose answer does not depend on other questions; the caller changes what is special.
    pub fn plain(
        id: impl Into<String>,
        task: impl Into<String>,
        question: impl Into<String>,
        gold: impl Into<String>,
    ) -> Self {
        let id = id.into();
        Item {
            cluster: id.clone(),
            id,
            task: task.into(),
            covariates: BTreeMap::new(),
            segments: Segments::question(question),
            gold: gold.into(),
            budget: Budget { answer: 512, thinking: 16_384 },
            stop_strings: Vec::new(),
            keep_stop: false,
            continuations: Vec::new(),
        }
    }
}

/// The pieces of a prompt, before `prompt` turns them into text and token ids.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Segments {
    /// A system message.
    pub system: Option<String>,
    /// Worked examples.
    pub shots: Vec<Shot>,
    /// The question itself.
    pub question: String,
    /// The exact raw text, where a suite prescribes every byte; without it, raw prompts join the pieces by newlines.
    pub raw: Option<String>,
    /// The question itself, where the prompt shows placeholders for its numbers or a template around it. No part of the prompt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unmasked: Option<String>,
    /// Value of the chat template's thinking switch for this prompt, where there is one; none leaves it to the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thinking: Option<bool>,
    /// Form of this prompt, where a suite asks in several; none is that of the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<Mode>,
}

/// A worked example.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Shot {
    pub question: String,
    pub answer: String,
}

impl Segments {
    /// A bare question.
    pub fn question(text: impl Into<String>) -> Self {
        Segments { question: text.into(), ..Segments::default() }
    }

    /// The question itself, with its numbers: what two runs share that ask the same under different options.
    pub fn content(&self) -> &str {
        self.unmasked.as_deref().unwrap_or(&self.question)
    }

    /// True if both have the same prompt; [`Segments::unmasked`] is no part of it.
    pub fn has_prompt_of(&self, other: &Segments) -> bool {
        let prompt = |of: &Segments| Segments { unmasked: None, ..of.clone() };
        prompt(self) == prompt(other)
    }

    /// The system message and the question: what an answer may repeat. Worked examples are left out.
    pub fn asked(&self) -> Cow<'_, str> {
        match &self.system {
            Some(system) => Cow::Owned(format!("{system}\n{}", self.question)),
            None => Cow::Borrowed(&self.question),
        }
    }
}

/// Token budgets for generation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Budget {
    /// For ordinary models.
    pub answer: usize,
    /// For models that think first.
    pub thinking: usize,
}
