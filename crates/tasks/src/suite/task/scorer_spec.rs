//! Scorers in a task file: the name of a kind, or a table with its options.
use std::fmt;

use serde::de::value::MapAccessDeserializer;
use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ScorerKind {
    Final,
    Number,
    Exact,
    Contains,
    Regex,
    Choice,
    Python,
    Expression,
    Likelihood,
    Perplexity,
}

impl ScorerKind {
    /// All of them.
    pub const ALL: [ScorerKind; 10] = [
        ScorerKind::Final,
        ScorerKind::Number,
        ScorerKind::Exact,
        ScorerKind::Contains,
        ScorerKind::Regex,
        ScorerKind::Choice,
        ScorerKind::Python,
        ScorerKind::Expression,
        ScorerKind::Likelihood,
        ScorerKind::Perplexity,
    ];

    /// Its name in task files.
    pub fn name(self) -> &'static str {
        match self {
            ScorerKind::Final => "final",
            ScorerKind::Number => "number",
            ScorerKind::Exact => "exact",
            ScorerKind::Contains => "contains",
            ScorerKind::Regex => "regex",
            ScorerKind::Choice => "choice",
            ScorerKind::Python => "python",
            ScorerKind::Expression => "expression",
            ScorerKind::Likelihood => "likelihood",
            ScorerKind::Perplexity => "perplexity",
        }
    }

    /// True if it scores log-likelihoods of given texts instead of a completion.
    pub fn is_likelihood(self) -> bool {
        matches!(self, ScorerKind::Likelihood | ScorerKind::Perplexity)
    }
}

/// A scorer: the name of a kind, or a table with its options.
#[derive(Debug, Clone, PartialEq)]
pub struct ScorerSpec(pub ScorerOptions);

/// Table of a scorer. Which options a kind has is checked when it is made.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ScorerOptions {
    /// Name of its score, by default that of the kind.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// `final`: expected answers that are no numbers are compared as texts, instead of being errors.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub texts: Option<bool>,
    /// `final` with `texts`: only an answer that is a number, or marks one (`#### 18`), is one; no number is looked for in others.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub plain: Option<bool>,
    /// `number`: largest absolute and relative difference, or number of significant digits that agree.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tolerance: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub relative: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub digits: Option<usize>,
    /// `exact`, `contains`, `regex`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ignore_case: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ignore_punctuation: Option<bool>,
    /// `regex`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pattern: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub group: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub take: Option<Take>,
    /// `python`: the function to call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub function: Option<String>,
    /// `likelihood`, `perplexity`: text between the prompt and what is scored.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delimiter: Option<String>,
    /// `likelihood`: what is scored of a choice.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub of: Option<Scored>,
}

/// Match of a pattern that counts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Take {
    #[default]
    First,
    Last,
}

/// Part of a choice whose log-likelihood counts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Scored {
    #[default]
    Text,
    Letter,
}

impl ScorerSpec {
    /// A scorer of a kind with its usual options.
    pub fn of(kind: ScorerKind) -> Self {
        ScorerSpec(ScorerOptions { kind: Some(kind.name().to_owned()), ..ScorerOptions::default() })
    }
}

impl Serialize for ScorerSpec {
    fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(to)
    }
}

impl<'de> Deserialize<'de> for ScorerSpec {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct NameOrTable;
        impl<'de> Visitor<'de> for NameOrTable {
            type Value = ScorerSpec;
            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("the name of a scorer, or a table with its kind and options")
            }
            fn visit_str<E: serde::de::Error>(self, kind: &str) -> Result<ScorerSpec, E> {
                Ok(ScorerSpec(ScorerOptions { kind: Some(kind.to_owned()), ..ScorerOptions::default() }))
            }
            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<ScorerSpec, A::Error> {
                ScorerOptions::deserialize(MapAccessDeserializer::new(map)).map(ScorerSpec)
            }
        }
        from.deserialize_any(NameOrTable)
    }
}
