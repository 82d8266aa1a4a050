//! The task file: what a user of the program writes, as TOML.
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::keys;
use super::scorer_spec::ScorerSpec;
use crate::suite::quoted::{LONGEST_QUOTED, shortened, some_of};
use crate::suite::registry::{Mode, OptionError, RowSource};
use earnest_digest::toml_file;

/// A task file. What is not given has a default or is found out from the questions.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Definition {
    /// Name of the task, by default that of the file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub licence: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// Scorers, the first of which decides unless `primary` names another one.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub scorers: Vec<ScorerSpec>,
    /// Scorer that decides.
    #[serde(rename = "primary", skip_serializing_if = "Option::is_none")]
    pub chosen: Option<String>,
    pub questions: Questions,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prompt: Option<Prompt>,
    /// Further prompts by name, for `--prompt NAME`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub prompts: BTreeMap<String, Prompt>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub examples: Option<Examples>,
    #[serde(skip_serializing_if = "GenerationSpec::is_default")]
    pub generation: GenerationSpec,
}

/// Questions: their files, and the columns or expressions that say what is what.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Questions {
    /// Files or patterns, relative to the task file.
    #[serde(skip_serializing_if = "Texts::is_empty")]
    pub path: Texts,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub format: Option<String>,
    /// Columns of a CSV or TSV file whose first line is a row.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub columns: Vec<String>,
    /// SHA-256 of each file, to be sure of the data.
    #[serde(skip_serializing_if = "Texts::is_empty")]
    pub sha256: Texts,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub question: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answer: Option<String>,
    /// Worked solution, from which the answer is read where there is no answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub solution: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cluster: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pair: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task: Option<String>,
    /// A column with a list, an expression for a list, or one column or expression a choice.
    #[serde(skip_serializing_if = "Texts::is_empty")]
    pub choices: Texts,
    /// Form of the answer of a question with choices.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gold: Option<GoldForm>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub covariates: Option<Covariates>,
}

impl Questions {
    /// The rows of these files.
    pub(super) fn rows(&self, paths: Vec<PathBuf>, skip_bad_rows: bool) -> RowSource {
        RowSource { paths, format: self.format.clone(), columns: self.columns.clone(), skip_bad_rows }
    }
}

/// Form in which the right choice is named.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum GoldForm {
    /// Its index, from 0.
    Index,
    /// Its letter or label.
    Letter,
    Text,
}

/// Covariates of an item.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged, expecting = "a list of columns, or a table of names with a column or expression each")]
pub enum Covariates {
    Columns(Vec<String>),
    Expressions(BTreeMap<String, String>),
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Prompt {
    /// Text of the question, with `{{ column }}`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub template: Option<String>,
    /// System message.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub system: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mode: Option<PromptMode>,
}

/// Form of the prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PromptMode {
    Auto,
    Chat,
    Raw,
}

/// Worked examples before the question.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Examples {
    /// The examples themselves, each with the columns of a question.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub list: Vec<serde_json::Map<String, serde_json::Value>>,
    /// File to take them from; without list and file they come from the questions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub format: Option<String>,
    /// Columns of a CSV or TSV file whose first line is a row.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub columns: Vec<String>,
    /// SHA-256 of the file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sha256: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub count: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub draw: Option<Draw>,
    /// Text of an example's answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answer: Option<String>,
    /// Text between examples in raw prompts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub separator: Option<String>,
}

/// Choice of the examples.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Draw {
    /// The first ones of the file.
    #[default]
    First,
    /// Drawn by `--seed`, the same for all items.
    Seed,
}

/// Budget and end of completions.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct GenerationSpec {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_tokens: Option<usize>,
    /// Budget of models that think first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub thinking_tokens: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stop: Option<Vec<String>>,
}

impl GenerationSpec {
    fn is_default(&self) -> bool {
        *self == GenerationSpec::default()
    }
}

/// One text or a list of them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged, expecting = "a text or a list of texts")]
pub enum Texts {
    #[default]
    None,
    One(String),
    Many(Vec<String>),
}

impl Texts {
    /// True without any.
    pub fn is_empty(&self) -> bool {
        self.all().is_empty()
    }

    /// All of them.
    pub fn all(&self) -> &[String] {
        match self {
            Texts::None => &[],
            Texts::One(text) => std::slice::from_ref(text),
            Texts::Many(texts) => texts,
        }
    }
}

impl Definition {
    /// Reads a task file.
    ///
    /// # Errors
    /// If it is no TOML, or has a key or value that is unknown; the error names file, line and the nearest known key.
    pub fn parse(text: &str, path: &Path) -> Result<Self, OptionError> {
        toml_file::read(text).map_err(|error| keys::explained(error, path))
    }

    /// The prompt of this name: by default `[prompt]`, or the only one of `[prompts]`.
    ///
    /// # Errors
    /// If there is no such prompt, or several and none is named.
    pub fn prompt(&self, name: Option<&str>) -> Result<Prompt, OptionError> {
        let names: Vec<&str> = self.prompts.keys().map(String::as_str).collect();
        match name {
            Some(name) => self.prompts.get(name).cloned().ok_or_else(|| {
                let error =
                    OptionError::usage(format!("the task file has no prompt {}", shortened(name, LONGEST_QUOTED)));
                match names.len() {
                    0 => error.help(
                        "the setting `prompt` takes auto, chat or raw; [prompts.NAME] in a task file defines more",
                    ),
                    _ => error.help(format!("the setting `prompt` takes auto, chat or raw, and of {}", some_of(names))),
                }
            }),
            None => match (&self.prompt, &names[..]) {
                (Some(prompt), _) => Ok(prompt.clone()),
                (None, []) => Ok(Prompt::default()),
                (None, [only]) => Ok(self.prompts[*only].clone()),
                (None, _) => {
                    Err(OptionError::usage("the task file has several prompts and no [prompt], which is the default")
                        .help(format!("the setting `prompt` takes one of {}", some_of(names))))
                }
            },
        }
    }
}

impl PromptMode {
    /// The mode; none where the checkpoint decides.
    pub fn mode(self) -> Option<Mode> {
        match self {
            PromptMode::Auto => None,
            PromptMode::Chat => Some(Mode::Chat),
            PromptMode::Raw => Some(Mode::Raw),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::scorer_spec::{ScorerKind, Take};
    use super::*;

    fn parse(text: &str) -> Result<Definition, OptionError> {
        Definition::parse(text, Path::new("sums.toml"))
    }

    #[test]
    fn a_file_is_read_and_survives_the_manifest() {
        let text = r##"
            name = "sums"
            version = "2"
            scorers = ["final", { name = "last", kind = "regex", pattern = '#### (.*)', take = "last" }]
            [questions]
            path = ["a.jsonl", "b/*.jsonl"]
            choices = ["A", "B"]
            covariates = ["level"]
            [prompts.short]
            template = "{{ question }}"
            [examples]
            count = 2
            draw = "seed"
            list = [{ question = "1+1", answer = 2 }]
            [generation]
            stop = ["\n\n"]
        "##;
        let read = parse(text).unwrap();
        assert_eq!(read.scorers[0], ScorerSpec::of(ScorerKind::Final));
        assert_eq!(read.scorers[1].0.take, Some(Take::Last));
        assert_eq!(read.questions.path.all(), ["a.jsonl", "b/*.jsonl"]);
        assert_eq!(read.prompt(None).unwrap().template.as_deref(), Some("{{ question }}"));
        let stored: Definition = serde_json::from_value(serde_json::to_value(&read).unwrap()).unwrap();
        assert_eq!(stored, read);
    }

    #[test]
    fn unknown_keys_are_answered_with_the_nearest_known_one() {
        for (text, line, key, nearest) in [
            ("nme = \"x\"", 1, "nme", "name"),
            ("name = \"x\"\n[questions]\nanswr = \"y\"", 3, "answr", "answer"),
            ("license = \"x\"", 1, "license", "licence"),
            ("[prompts.a]\ntemplat = \"x\"", 2, "templat", "template"),
            ("scorers = [\"final\",\n{ kind = \"regex\", patern = \"x\" }]", 2, "patern", "pattern"),
        ] {
            let error = parse(text).unwrap_err();
            assert!(error.message.starts_with(&format!("sums.toml, line {line}")), "{error}");
            assert!(error.message.contains(key), "{error}");
            assert!(error.help.as_ref().unwrap().contains(nearest), "{error:?}");
        }
    }

    #[test]
    fn wrong_values_are_named_with_their_line() {
        for text in ["name = 3", "[questions]\npath = 3", "[examples]\ndraw = \"last\"", "name = ", "a b"] {
            let error = parse(text).unwrap_err();
            assert!(error.message.starts_with("sums.toml, line "), "{error}");
        }
    }

    #[test]
    fn prompts_go_by_name() {
        let several = parse("[prompts.a]\n[prompts.b]").unwrap();
        assert!(several.prompt(None).unwrap_err().help.unwrap().contains("a, b"));
        assert!(several.prompt(Some("b")).is_ok());
        assert!(several.prompt(Some("c")).unwrap_err().help.unwrap().contains("of a, b"));
        assert!(parse("").unwrap().prompt(Some("x")).is_err());
    }
}
