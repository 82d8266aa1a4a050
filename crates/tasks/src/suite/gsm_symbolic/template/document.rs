//! A template file.
use std::collections::HashMap;

use serde::Deserialize;

use super::constants::constant;
use super::evaluate::{Precision, Scope};
use super::expression::{Expression, Function, parse};
use super::fault::{TemplateError, TemplateFault};
use super::render::Piece;
use super::value::Value;

/// A template: texts with places, what is drawn for them, and what must hold.
#[derive(Debug, Clone, PartialEq)]
pub struct Template {
    /// Its number among the templates; the rows' `id`.
    pub id: u32,
    /// The GSM8K test question (from 0) that it was made from; our own templates have their own number.
    pub original_id: u32,
    pub original_question: String,
    /// Without calculator marks.
    pub original_answer: String,
    /// Names of the variables, by index.
    pub names: Vec<String>,
    pub(super) draws: Vec<Draw>,
    pub(super) conditions: Vec<Condition>,
    /// The value that `#answer` names: a check only, the answer is what follows `####`.
    pub(super) check: Option<Expression>,
    pub(super) question: Vec<Piece>,
    pub(super) answer: Vec<Piece>,
    /// Indices of the variables that the question prints.
    pub(super) asked: Vec<usize>,
    /// The expressions of the final line of the answer.
    pub(super) finals: Vec<Expression>,
}

/// One line of `#init:`.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Draw {
    /// The variables it sets, by index.
    pub targets: Vec<usize>,
    pub pool: Vec<Value>,
    /// Neighbours in the list, which goes round, instead of any members.
    pub sequential: bool,
}

/// One line of `#conditions:`.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Condition {
    pub text: String,
    pub expression: Expression,
    /// The variables it reads.
    pub reads: Vec<usize>,
}

fn at(place: impl Into<String>) -> impl FnOnce(TemplateFault) -> TemplateError {
    let place = place.into();
    move |fault| TemplateError { place, fault }
}

#[derive(Deserialize)]
struct File {
    question: String,
    answer: String,
    id_orig: u32,
    id_shuffled: u32,
    question_annotated: String,
    answer_annotated: String,
}

/// The parts of `question_annotated`.
#[derive(Default)]
struct Sections<'a> {
    question: &'a str,
    init: Vec<&'a str>,
    conditions: Vec<&'a str>,
    answer: Option<&'a str>,
}

impl Template {
    /// Reads a template file (JSON with the six keys of the published ones).
    ///
    /// # Errors
    /// The first thing that cannot be understood, with its line.
    pub fn parse(json: &str) -> Result<Template, TemplateError> {
        let file: File =
            serde_json::from_str(json).map_err(|error| at("the file")(TemplateFault::File(error.to_string())))?;
        let sections = sections(&file.question_annotated)?;
        let mut template = Template {
            id: file.id_shuffled,
            original_id: file.id_orig,
            original_question: file.question,
            original_answer: without_marks(&file.answer),
            names: Vec::new(),
            draws: Vec::new(),
            conditions: Vec::new(),
            check: None,
            question: Vec::new(),
            answer: Vec::new(),
            asked: Vec::new(),
            finals: Vec::new(),
        };
        for line in &sections.init {
            template.define(line).map_err(at(format!("#init line `{line}`")))?;
        }
        let indices: HashMap<&str, usize> =
            template.names.iter().enumerate().map(|(index, name)| (name.as_str(), index)).collect();
        let variable = |name: &str| indices.get(name).map(|&index| Expression::Variable(index));
        let mut conditions = Vec::new();
        for line in &sections.conditions {
            let expression = parse(line, &variable).map_err(at(format!("#conditions line `{line}`")))?;
            let mut reads = Vec::new();
            expression.reads(&mut reads);
            conditions.push(Condition { text: (*line).to_owned(), expression, reads });
        }
        let check = sections.answer.map(|line| parse(line, &variable).map_err(at(format!("#answer `{line}`"))));
        let check = check.transpose()?;
        let question = Piece::question(sections.question, &indices)?;
        let answer = Piece::answer(&file.answer_annotated, &variable)?;
        let finals = Piece::finals(&answer).ok_or_else(|| at("answer_annotated")(TemplateFault::NoFinalLine))?;
        let mut asked: Vec<usize> = question.iter().filter_map(Piece::index).collect();
        asked.sort_unstable();
        asked.dedup();
        (template.conditions, template.check) = (conditions, check);
        (template.question, template.answer, template.asked, template.finals) = (question, answer, asked, finals);
        Ok(template)
    }

    /// The conditions as written.
    pub fn conditions(&self) -> impl Iterator<Item = &str> {
        self.conditions.iter().map(|condition| condition.text.as_str())
    }

    /// Adds the variables of an `#init` line.
    fn define(&mut self, line: &str) -> Result<(), TemplateFault> {
        let (left, right) = line.split_once('=').ok_or(TemplateFault::NoAssignment)?;
        let mut targets = Vec::new();
        for name in left.split(',').map(|name| name.trim().trim_start_matches('$').trim()) {
            if !name.starts_with(|c: char| c.is_alphabetic() || c == '_')
                || !name.chars().all(|c| c.is_alphanumeric() || c == '_')
            {
                return Err(TemplateFault::NotAName(name.to_owned()));
            }
            // A later definition replaces an earlier one, as an assignment does.
            match self.names.iter().position(|known| known == name) {
                Some(index) if targets.contains(&index) => return Err(TemplateFault::DefinedTwice(name.to_owned())),
                Some(index) => {
                    let single = |draw: &Draw| draw.targets == [index];
                    if !self.draws.iter().any(single) {
                        return Err(TemplateFault::DefinedTwice(name.to_owned()));
                    }
                    self.draws.retain(|draw| !single(draw));
                    targets.push(index);
                }
                None => {
                    targets.push(self.names.len());
                    self.names.push(name.to_owned());
                }
            }
        }
        let list = |name: &str| constant(name).map(Expression::Literal);
        let expression = parse(right, &list)?;
        let scope = Scope { variables: &[], precision: Precision::Python };
        let value = |expression: &Expression| scope.value(expression).map_err(TemplateFault::from);
        let (pool, count, sequential) = match &expression {
            Expression::Call(function @ (Function::Sample | Function::SampleSequential), arguments) => {
                let (pool, count) = match arguments.as_slice() {
                    [pool] => (value(pool)?, 1),
                    [pool, count] => {
                        let count = value(count)?.to_string();
                        (value(pool)?, count.parse().map_err(|_| TemplateFault::NotACount(count))?)
                    }
                    _ => return Err(TemplateFault::Sample),
                };
                (pool, count, *function == Function::SampleSequential)
            }
            // A collection by itself: one of its members is drawn.
            other => (value(other)?, targets.len(), false),
        };
        let Value::List(pool) = pool else { return Err(TemplateFault::NoCollection) };
        if count != targets.len() {
            return Err(TemplateFault::OtherCount { draws: count, variables: targets.len() });
        }
        if pool.len() < count || pool.is_empty() {
            return Err(TemplateFault::TooFewThings { draws: count, things: pool.len() });
        }
        self.draws.push(Draw { targets, pool, sequential });
        Ok(())
    }
}

impl Expression {
    /// The variables it reads, each once, ascending.
    fn reads(&self, found: &mut Vec<usize>) {
        self.walk(found);
        found.sort_unstable();
        found.dedup();
    }

    pub(super) fn walk(&self, found: &mut Vec<usize>) {
        match self {
            Expression::Literal(_) => {}
            Expression::Variable(index) => found.push(*index),
            Expression::Negate(inner) | Expression::Not(inner) => inner.walk(found),
            Expression::Binary(_, a, b)
            | Expression::And(a, b)
            | Expression::Or(a, b)
            | Expression::Index(a, b)
            | Expression::Pair(a, b) => {
                a.walk(found);
                b.walk(found);
            }
            Expression::Compare(first, chain) => {
                first.walk(found);
                chain.iter().for_each(|(_, right)| right.walk(found));
            }
            Expression::Conditional { condition, then, otherwise } => {
                [condition, then, otherwise].iter().for_each(|inner| inner.walk(found));
            }
            Expression::Call(_, items) | Expression::List(items) => items.iter().for_each(|item| item.walk(found)),
            Expression::Slice(inner, from, to) => {
                inner.walk(found);
                from.iter().chain(to).for_each(|bound| bound.walk(found));
            }
        }
    }
}

fn sections(text: &str) -> Result<Sections<'_>, TemplateError> {
    let mut sections = Sections::default();
    let start = text.find("\n#").ok_or_else(|| at("question_annotated")(TemplateFault::NoInit))?;
    sections.question = text[..start].trim_end();
    let mut current = "";
    for line in text[start..].lines().map(str::trim).filter(|line| !line.is_empty()) {
        if let Some(header) = line.strip_prefix('#') {
            let end = header.find([':', '=']).unwrap_or(header.len());
            current = header[..end].trim();
            let rest = header.get(end + 1..).unwrap_or_default().trim();
            match current {
                "init" | "conditions" => {}
                "answer" => sections.answer = Some(rest).filter(|rest| !rest.is_empty()),
                other => {
                    let unknown = TemplateFault::UnknownSection(other.to_owned());
                    return Err(at(format!("question_annotated line `{line}`"))(unknown));
                }
            }
            continue;
        }
        let item = line.strip_prefix('-').map(str::trim);
        match (current, item) {
            ("init", Some(item)) => sections.init.push(item),
            ("conditions", Some(item)) => sections.conditions.push(item),
            ("answer", None) if sections.answer.is_none() => sections.answer = Some(line),
            _ => {
                return Err(at(format!("question_annotated line `{line}`"))(TemplateFault::NoDash));
            }
        }
    }
    if sections.init.is_empty() {
        return Err(at("question_annotated")(TemplateFault::EmptyInit));
    }
    Ok(sections)
}

/// GSM8K's calculator marks, `<<6*2=12>>`, removed.
pub(super) fn without_marks(text: &str) -> String {
    let mut result = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, mark)) = rest.split_once("<<") {
        let Some((_, after)) = mark.split_once(">>") else { break };
        result.push_str(before);
        rest = after;
    }
    result.push_str(rest);
    result
}
