//! Styles of answers.
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::TrainError;
use super::stream::TextPair;
use super::task::TrainingQuestion;
use earnest_tasks::suite::nupa::rule;

/// What a model is asked, and how it answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AnswerStyle {
    /// The question, answered at once.
    #[default]
    Question,
    /// The question with its rule as a program, answered with the trace of the program (Number Cookbook, section 4: RF-CoT). The prompt is that
    /// of `earnest run nupa --style rule-following` without a chat template.
    RuleFollowing,
}

impl AnswerStyle {
    /// Both styles.
    pub const ALL: [AnswerStyle; 2] = [AnswerStyle::Question, AnswerStyle::RuleFollowing];

    /// Returns true for the style that files without one have.
    pub(crate) fn is_question(&self) -> bool {
        *self == AnswerStyle::Question
    }

    /// Returns prompt and answer in this style, given those of the question.
    ///
    /// # Errors
    /// [`TrainError::Setting`] if the question's task has no rule.
    pub(crate) fn pair(self, question: &TrainingQuestion, text: TextPair) -> Result<TextPair, TrainError> {
        if self.is_question() {
            return Ok(text);
        }
        let failed = |problem: String| TrainError::Setting { setting: "style", problem };
        let TrainingQuestion::Nupa(question) = question else {
            return Err(failed("only tasks of the NUPA Test have rules to follow".to_owned()));
        };
        let rule = rule(question.task).map_err(|error| failed(error.to_string()))?;
        let answer = rule.trace(question).map_err(|error| failed(error.to_string()))?;
        Ok(TextPair { prompt: rule.prompt(&text.prompt), answer })
    }
}

impl fmt::Display for AnswerStyle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            AnswerStyle::Question => "question",
            AnswerStyle::RuleFollowing => "rule-following",
        })
    }
}

/// Text that is not a style.
#[derive(Debug, thiserror::Error)]
#[error("{0:?} is not a style; there are question and rule-following")]
pub struct UnknownStyle(String);

impl FromStr for AnswerStyle {
    type Err = UnknownStyle;

    fn from_str(text: &str) -> Result<Self, UnknownStyle> {
        let known = AnswerStyle::ALL.into_iter().find(|style| style.to_string() == text.trim());
        known.ok_or_else(|| UnknownStyle(text.to_owned()))
    }
}
