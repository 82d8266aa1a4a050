//! The study's five prompts: eight worked examples and the question, to the byte.
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// Placeholder of the question in a prompt's text.
const PLACE: &str = "<Question here>";

/// A prompt of the study.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Prompt {
    /// Listing 1: chains of thought, as GSM-Symbolic and the lm-evaluation-harness ask.
    Gsm,
    /// Listing 2: calculations under a line of words.
    SimpleNl,
    /// Listing 3: given, to find, solution.
    StructuredNl,
    /// Listing 4: a Python function.
    SimpleCode,
    /// Listing 5: a Python function with given, to find and solution as comments.
    StructuredCode,
}

/// Treatment of white space at a prompt's end. The study's three text prompts end with a space, after which models whose
/// tokens begin with a space write unusual tokens or nothing at all.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TrailingSpace {
    /// As in the study.
    #[default]
    Keep,
    /// The prompt ends with its last visible character.
    Trim,
}

impl Prompt {
    /// All, in the paper's order.
    pub const ALL: [Prompt; 5] =
        [Prompt::Gsm, Prompt::SimpleNl, Prompt::StructuredNl, Prompt::SimpleCode, Prompt::StructuredCode];

    /// Worked examples in each of them.
    pub const EXAMPLES: usize = 8;

    /// Its name on the command line and as an item's task.
    pub fn name(self) -> &'static str {
        match self {
            Prompt::Gsm => "gsm",
            Prompt::SimpleNl => "simple-nl",
            Prompt::StructuredNl => "structured-nl",
            Prompt::SimpleCode => "simple-code",
            Prompt::StructuredCode => "structured-code",
        }
    }

    /// True if the answer is a Python function.
    pub fn is_code(self) -> bool {
        matches!(self, Prompt::SimpleCode | Prompt::StructuredCode)
    }

    fn text(self) -> &'static str {
        match self {
            Prompt::Gsm => include_str!("../../../../../prompts/gsm-symbolic/gsm.txt"),
            Prompt::SimpleNl => include_str!("../../../../../prompts/gsm-symbolic/simple-nl.txt"),
            Prompt::StructuredNl => include_str!("../../../../../prompts/gsm-symbolic/structured-nl.txt"),
            Prompt::SimpleCode => include_str!("../../../../../prompts/gsm-symbolic/simple-code.txt"),
            Prompt::StructuredCode => include_str!("../../../../../prompts/gsm-symbolic/structured-code.txt"),
        }
    }

    /// The whole prompt for a question, whose characters all stand for themselves.
    pub fn render(self, question: &str, space: TrailingSpace) -> String {
        let (before, after) = self.text().rsplit_once(PLACE).unwrap_or((self.text(), ""));
        let prompt = format!("{before}{question}{after}");
        match space {
            TrailingSpace::Keep => prompt,
            TrailingSpace::Trim => prompt.trim_end().to_owned(),
        }
    }

    /// SHA-256, in hexadecimal, of the prompt with `<Question here>` as its question.
    pub fn sha256(self, space: TrailingSpace) -> String {
        earnest_digest::hex(&earnest_digest::sha256(self.render(PLACE, space).as_bytes()))
    }
}

impl fmt::Display for Prompt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// No prompt has this name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a prompt; there are gsm, simple-nl, structured-nl, simple-code and structured-code")]
pub struct UnknownPrompt(pub String);

impl FromStr for Prompt {
    type Err = UnknownPrompt;

    fn from_str(name: &str) -> Result<Self, UnknownPrompt> {
        Prompt::ALL.into_iter().find(|prompt| prompt.name() == name).ok_or_else(|| UnknownPrompt(name.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prompts_are_the_studys_to_the_byte() {
        let expected = [
            (2532, 27, "38bf4008f683e02ec6f4f5fd227bdb85a4dedbe6bd2fb89e1818d617fb866bca"),
            (2601, 78, "85781abb5b447fed9e73b5a7bb05f045efc4300b47da2568ce9e9f17f8dc1a23"),
            (4175, 138, "14581c730034416db4118a46d9ae315594244f0112bd3849d486a999396432d2"),
            (4104, 115, "988bb1d06415806833955a88312b6096299c175bd9e1a22822402c3eb3ec17b0"),
            (5721, 147, "a14a59c046985eec1d1b91f1a4be02342140661d4733c2b88fa4785b956de920"),
        ];
        for (prompt, (bytes, lines, sha256)) in Prompt::ALL.into_iter().zip(expected) {
            let text = prompt.render(PLACE, TrailingSpace::Keep);
            let counts = (text.len(), text.matches('\n').count());
            assert_eq!((counts, prompt.sha256(TrailingSpace::Keep).as_str()), ((bytes, lines), sha256), "{prompt}");
            assert!(text.is_ascii() && !text.contains('\t') && !text.contains('\r'));
        }
    }

    #[test]
    fn ends_are_kept_or_trimmed() {
        let end = |prompt: Prompt, space| prompt.render("What is {x}, <Question here>?", space);
        assert!(
            end(Prompt::Gsm, TrailingSpace::Keep)
                .ends_with("Q: What is {x}, <Question here>?\nA: Let's think step by step. ")
        );
        assert!(end(Prompt::Gsm, TrailingSpace::Trim).ends_with("Let's think step by step."));
        for prompt in [Prompt::SimpleNl, Prompt::StructuredNl] {
            assert!(end(prompt, TrailingSpace::Keep).ends_with("?\nA: "));
            assert!(end(prompt, TrailingSpace::Trim).ends_with("?\nA:"));
        }
        for prompt in [Prompt::SimpleCode, Prompt::StructuredCode] {
            let [kept, trimmed] = [TrailingSpace::Keep, TrailingSpace::Trim].map(|space| end(prompt, space));
            assert!(kept.ends_with("?\n\nA:\ndef solution():"));
            assert_eq!(kept, trimmed);
        }
    }

    #[test]
    fn names_are_read_back() {
        for prompt in Prompt::ALL {
            assert_eq!(prompt.name().parse(), Ok(prompt));
        }
        assert!("all".parse::<Prompt>().is_err());
    }
}
