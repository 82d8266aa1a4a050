//! Perturbed questions and their edits.
use serde::{Deserialize, Serialize};

use super::kind::Kind;
use super::problem::Problem;

/// Text that an edit changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Field {
    Body,
    Question,
}

/// A replacement.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Edit {
    pub field: Field,
    /// Byte offset in the original text.
    pub start: usize,
    /// The former text; empty where something was added.
    pub from: String,
    pub to: String,
}

/// A perturbed question, with what changed and why it was eligible.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Perturbed {
    pub kind: Kind,
    /// The question after the perturbation.
    pub problem: Problem,
    pub edits: Vec<Edit>,
    /// Reason for the question being eligible.
    pub reason: String,
    /// Author, for perturbations that people annotate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provenance: Option<String>,
}

/// Carries edits out, from the right so that offsets stay true; edits of one field must not overlap.
pub fn apply(problem: &Problem, edits: &[Edit]) -> Problem {
    let mut after = problem.clone();
    let mut edits: Vec<&Edit> = edits.iter().collect();
    edits.sort_by_key(|edit| std::cmp::Reverse((edit.field, edit.start)));
    for edit in edits {
        let text = match edit.field {
            Field::Body => &mut after.body,
            Field::Question => &mut after.question,
        };
        text.replace_range(edit.start..edit.start + edit.from.len(), &edit.to);
    }
    after
}

/// The edits of a question that was written anew: each text that differs, whole.
pub fn rewritten(before: &Problem, after: &Problem) -> Vec<Edit> {
    let texts = [(Field::Body, &before.body, &after.body), (Field::Question, &before.question, &after.question)];
    texts
        .into_iter()
        .filter(|(_, from, to)| from != to)
        .map(|(field, from, to)| Edit { field, start: 0, from: from.clone(), to: to.clone() })
        .collect()
}
