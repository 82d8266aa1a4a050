//! A row's parts: question, answer and the rest, by the task file or by usual names of columns.
use std::cell::LazyCell;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Display;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Number, Value};

use super::choices::Choices;
use super::definition::{Covariates, Questions, Texts};
use super::template::{Context, Expr, Templates};
use super::usual;
use super::wrong::Wrong;

/// Number of a variant, beside the id of its template.
const INSTANCE: &str = "instance";

/// Characters beyond which a text is no covariate unless the task file names it: passages and solutions.
const LONGEST: usize = 200;

/// A value that cannot be used, and the part that it should have been.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, thiserror::Error)]
#[error("{part}: {message}")]
pub(super) struct Problem {
    /// E.g. `answer`.
    pub part: &'static str,
    pub message: String,
}

impl Problem {
    /// A problem of a part, with its reason in words: problems come from another process, too.
    pub(super) fn new(part: &'static str, reason: impl Display) -> Self {
        Problem { part, message: reason.to_string() }
    }
}

/// Parts that a problem can name.
const PARTS: [&str; 11] =
    ["answer", "question", "choices", "covariates", "id", "cluster", "pair", "prompt", "solution", "system", "task"];

impl<'de> Deserialize<'de> for Problem {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        struct Said {
            part: String,
            message: String,
        }
        let Said { part, message } = Said::deserialize(from)?;
        let known = PARTS.into_iter().find(|known| *known == part);
        let part = known.ok_or_else(|| D::Error::custom(format!("there is no part {part}")))?;
        Ok(Problem { part, message })
    }
}

/// Columns and expressions of a task.
pub(super) struct Columns {
    question: Option<Expr>,
    answer: Option<Expr>,
    solution: Option<Expr>,
    id: Option<Expr>,
    cluster: Option<Expr>,
    pair: Option<Expr>,
    task: Option<Expr>,
    choices: Vec<Expr>,
    /// The choices are one column or expression each.
    single: bool,
    covariates: Option<Vec<(String, Expr)>>,
    /// Columns that these use.
    used: BTreeSet<String>,
}

/// Parts that a row must have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Needs {
    /// All columns that the task file names.
    All,
    /// None: an example has what its templates use.
    Present,
}

/// Parts of a row.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Parts {
    pub question: Option<String>,
    pub answer: Option<Value>,
    pub solution: Option<String>,
    pub id: Option<String>,
    pub cluster: Option<String>,
    pub pair: Option<String>,
    pub task: Option<String>,
    /// System message of a row of its own.
    pub system: Option<String>,
    pub choices: Option<Choices>,
    pub covariates: BTreeMap<String, Value>,
}

/// Reason for a value having no text.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum NoText {
    #[error("the number {0} has more digits than JSON readers keep; write it as a text")]
    LostDigits(Number),
    #[error("it is empty")]
    Empty,
    #[error("it is {0}, not a text or number")]
    Type(&'static str),
}

/// Text of a value.
///
/// # Errors
/// For lists, objects, nothing, and numbers that lost digits when they were read.
pub(super) fn text(value: &Value) -> Result<String, NoText> {
    match value {
        Value::String(text) => Ok(text.clone()),
        Value::Bool(truth) => Ok(truth.to_string()),
        Value::Number(number) if number.is_f64() && number.as_f64().is_some_and(|number| number.abs() >= 9e15) => {
            Err(NoText::LostDigits(number.clone()))
        }
        Value::Number(number) => Ok(number.to_string()),
        Value::Null => Err(NoText::Empty),
        Value::Array(_) => Err(NoText::Type("a list")),
        Value::Object(_) => Err(NoText::Type("an object")),
    }
}

impl Columns {
    /// Compiles the columns of a task file.
    ///
    /// # Errors
    /// The text that is no template, and the reason.
    pub(super) fn new(questions: &Questions, templates: &mut Templates) -> Result<Self, Wrong> {
        let mut used = BTreeSet::new();
        let mut expr = |text: &String| {
            let found = templates.expr(text).map_err(|error| Wrong::new(text.as_str(), error))?;
            used.extend(templates.columns(&found));
            Ok::<Expr, Wrong>(found)
        };
        let mut one = |text: &Option<String>| text.as_ref().map(&mut expr).transpose();
        let (question, answer, solution) =
            (one(&questions.question)?, one(&questions.answer)?, one(&questions.solution)?);
        let (id, cluster, pair, task) =
            (one(&questions.id)?, one(&questions.cluster)?, one(&questions.pair)?, one(&questions.task)?);
        let choices = questions.choices.all().iter().map(&mut expr).collect::<Result<Vec<_>, _>>()?;
        let covariates = match &questions.covariates {
            None => None,
            Some(Covariates::Columns(names)) => {
                Some(names.iter().map(|name| (name.clone(), Expr::Column(name.clone()))).collect())
            }
            Some(Covariates::Expressions(all)) => {
                let all = all.iter().map(|(name, text)| Ok((name.clone(), expr(text)?)));
                Some(all.collect::<Result<Vec<_>, Wrong>>()?)
            }
        };
        let single = matches!(questions.choices, Texts::Many(_));
        Ok(Columns { question, answer, solution, id, cluster, pair, task, choices, single, covariates, used })
    }

    /// Takes a row of so many bytes apart.
    ///
    /// # Errors
    /// A column that is not there, and a value of the wrong type.
    pub(super) fn parts(
        &self,
        templates: &Templates,
        row: &Map<String, Value>,
        written: &BTreeMap<String, String>,
        needs: Needs,
        bytes: usize,
    ) -> Result<Parts, Problem> {
        // Most tasks have columns only, and a million rows.
        let context = LazyCell::new(|| Context::new(row.iter().map(|(name, value)| (name.as_str(), value)), bytes));
        let value_of = |expr: &Expr| match expr {
            Expr::Column(name) if row.contains_key(name) => Ok(row[name].clone()),
            expr => templates.value(expr, row, &context),
        };
        let mut used: BTreeSet<&str> = self.used.iter().map(String::as_str).collect();
        let mut find = |part: &'static str, given: &Option<Expr>, usual: &[&str]| -> Result<Option<Value>, Problem> {
            let found = match given {
                Some(Expr::Column(name)) if written.contains_key(name) => Some(written[name].as_str().into()),
                Some(expr) => match value_of(expr) {
                    Ok(value) => Some(value),
                    Err(_) if needs == Needs::Present => None,
                    Err(error) => return Err(Problem::new(part, error)),
                },
                None => {
                    let name = usual.iter().find(|name| row.get(**name).is_some_and(|value| !value.is_null()));
                    name.and_then(|name| row.get_key_value(*name)).map(|(name, value)| {
                        used.insert(name);
                        written.get(name).map_or_else(|| value.clone(), |text| text.as_str().into())
                    })
                }
            };
            Ok(found.filter(|value| !value.is_null()))
        };
        let words = |part: &'static str, value: Option<Value>| {
            value.map(|value| text(&value).map_err(|reason| Problem::new(part, reason))).transpose()
        };
        let body =
            if self.question.is_none() { words("question", find("question", &None, &usual::BODY)?)? } else { None };
        let question = words("question", find("question", &self.question, &usual::QUESTION)?)?;
        let question = match (body, question) {
            (Some(body), Some(question)) => Some(usual::asked(Some(&body), &question)),
            (None, question) => question,
            (Some(_), None) => None,
        };
        let answer = find("answer", &self.answer, &usual::ANSWER)?;
        let solution = words("solution", find("solution", &self.solution, &usual::SOLUTION)?)?;
        let id = words("id", find("id", &self.id, &usual::ID)?)?;
        let cluster = words("cluster", find("cluster", &self.cluster, &[usual::CLUSTER])?)?;
        let cluster = cluster.filter(|cluster| usual::label(&cluster.as_str().into()).is_some());
        // Variants of one template, as GSM-Symbolic's files number them.
        let is_numbered =
            self.id.is_none() && usual::ID.iter().any(|name| *name != INSTANCE && row.contains_key(*name));
        let instance = if is_numbered { words("id", find("id", &None, &[INSTANCE])?)? } else { None };
        let (id, cluster) = match (id, instance) {
            (Some(template), Some(instance)) => (Some(format!("{template}/{instance}")), cluster.or(Some(template))),
            (id, _) => (id, cluster),
        };
        let pair = words("pair", find("pair", &self.pair, &[usual::PAIR])?)?;
        let task = words("task", find("task", &self.task, &["task"])?)?;
        let system = words("system", find("system", &None, &["system"])?)?;
        let choices = if self.single {
            let one = |expr: &Expr| {
                let value = value_of(expr).map_err(|error| Problem::new("choices", error))?;
                text(&value).map_err(|reason| Problem::new("choices", reason))
            };
            let texts = self.choices.iter().map(one).collect::<Result<_, _>>()?;
            Some(Choices::new(texts, Vec::new()).map_err(|error| Problem::new("choices", error))?)
        } else {
            let found = find("choices", &self.choices.first().cloned(), &["choices", "options", "endings"])?;
            let read = |value| Choices::read(&value).map_err(|error| Problem::new("choices", error));
            found.map(read).transpose()?
        };
        let mut covariates: BTreeMap<String, Value> = match &self.covariates {
            _ if needs == Needs::Present => BTreeMap::new(),
            Some(all) => {
                let value = |(name, expr): &(String, Expr)| {
                    value_of(expr).map(|value| (name.clone(), value)).map_err(|error| Problem::new("covariates", error))
                };
                all.iter()
                    .map(value)
                    .filter(|found| !matches!(found, Ok((_, Value::Null))))
                    .collect::<Result<_, _>>()?
            }
            None => {
                let others = row.iter().filter(|(name, value)| !used.contains(name.as_str()) && is_covariate(value));
                others.map(|(name, value)| (name.clone(), value.clone())).collect()
            }
        };
        // Comparisons have a row for each kind of perturbation, whichever covariates the task file names.
        if let Some(kind @ Value::String(_)) = row.get(usual::PERTURBATION) {
            covariates.insert(usual::PERTURBATION.to_owned(), kind.clone());
        }
        Ok(Parts { question, answer, solution, id, cluster, pair, task, system, choices, covariates })
    }
}

/// True for numbers, truth values and short texts.
fn is_covariate(value: &Value) -> bool {
    match value {
        Value::Bool(_) | Value::Number(_) => true,
        Value::String(text) => text.chars().nth(LONGEST).is_none(),
        Value::Null | Value::Array(_) | Value::Object(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn parts(questions: Questions, row: Value) -> Result<Parts, Problem> {
        let mut templates = Templates::new();
        let columns = Columns::new(&questions, &mut templates).unwrap();
        columns.parts(&templates, row.as_object().unwrap(), &BTreeMap::new(), Needs::All, 0)
    }

    #[test]
    fn variants_are_named_by_their_template_and_number() {
        let of = |row: Value| {
            let found = parts(Questions::default(), row).unwrap();
            (found.id.unwrap(), found.cluster)
        };
        let row = json!({"id": 3, "instance": 0, "question": "1+1", "answer": 2});
        assert_eq!(of(row), ("3/0".to_owned(), Some("3".to_owned())));
        assert_eq!(of(json!({"instance": 4, "question": "1+1", "answer": 2})), ("4".to_owned(), None));
        let blank = json!({"id": 3, "instance": 0, "question": "1+1", "answer": 2, "cluster": " "});
        assert_eq!(of(blank).1.as_deref(), Some("3"));
    }

    #[test]
    fn usual_names_are_found_and_the_rest_are_covariates() {
        let row =
            json!({"problem": "1+1", "gold": 2, "level": 3, "why": "x".repeat(300), "id": 7, "list": [1], "n": null});
        let found = parts(Questions::default(), row).unwrap();
        assert_eq!((found.question.as_deref(), found.answer), (Some("1+1"), Some(json!(2))));
        assert_eq!(found.id.as_deref(), Some("7"));
        assert_eq!(found.covariates, BTreeMap::from([("level".to_owned(), json!(3))]));
        let svamp = json!({"Body": "Tom has 3 pens.", "Question": "How many?", "Answer": 3.0});
        assert_eq!(parts(Questions::default(), svamp).unwrap().question.unwrap(), "Tom has 3 pens. How many?");
    }

    #[test]
    fn named_columns_must_be_there() {
        let named = || Questions { answer: Some("result".into()), ..Questions::default() };
        let error = parts(named(), json!({"question": "x", "answer": 1})).unwrap_err();
        assert_eq!(error.part, "answer");
        assert!(error.message.contains("no column result"), "{error:?}");
        assert_eq!(parts(named(), json!({"question": "x", "result": null})).unwrap().answer, None);
        let list = parts(Questions::default(), json!({"question": ["x"]})).unwrap_err();
        assert!(list.message.contains("list"));
        let long = parts(Questions::default(), json!({"question": 1e300})).unwrap_err();
        assert!(long.message.contains("write it as a text"), "{long:?}");
    }

    #[test]
    fn covariates_and_choices_by_name() {
        let questions = Questions {
            choices: Texts::Many(vec!["A".into(), "{{ B + '!' }}".into()]),
            covariates: Some(Covariates::Expressions([("length".into(), "{{ question | length }}".into())].into())),
            ..Questions::default()
        };
        let found = parts(questions, json!({"question": "abc", "A": "x", "B": "y", "answer": "B"})).unwrap();
        assert_eq!(found.covariates, BTreeMap::from([("length".to_owned(), json!(3))]));
        assert_eq!(found.choices.unwrap().texts, ["x", "y!"]);
    }
}
