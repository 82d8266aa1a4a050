//! Rows taken apart by a task file, where its templates cannot harm the program.
//!
//! A task file with templates is read in a limited process (`earnest-isolation`): one for all its rows, which come in batches. Without
//! templates there is nothing that could get out of hand, and rows are taken apart here.
use std::collections::BTreeMap;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use earnest_isolation::{CpuTime, Ended, Limited};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::columns::{Columns, Needs, Parts, Problem};
use super::definition::{Covariates, Definition, GoldForm, Prompt, Questions};
use super::reader_job::{self, JOB};
use super::template::{Context, Expr, Templates};
use super::wrong::Wrong;
use crate::suite::registry::{Host, HostError, Row, Rows};

/// Memory for the templates of a task file, in bytes, as for those of checkpoints.
const MEMORY: u64 = 1 << 30;

/// Processor time for the templates of a task file, in seconds. An ordinary template takes some 4 microseconds a row and pass; its fuel ends
/// most loops within 0.1 s.
fn seconds(rows: u64) -> u64 {
    // A millisecond a row, so that few slow rows end soon; for many rows no more than a few times what an ordinary template takes.
    (6 + rows / 1_000).min(12.max(rows / 60_000))
}

/// Rows of one request to the process, and the bytes after which a request is sent with fewer.
pub(super) const BATCH: usize = 256;
const BATCH_BYTES: usize = 1 << 20;

/// Sources of a row's parts that a task file names.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(super) struct Sources {
    questions: Questions,
    question: Option<String>,
    system: Option<String>,
    example_answer: Option<String>,
}

impl Sources {
    pub(super) fn of(definition: &Definition, prompt: &Prompt) -> Self {
        Sources {
            questions: definition.questions.clone(),
            question: prompt.template.clone(),
            system: prompt.system.clone(),
            example_answer: definition.examples.as_ref().and_then(|examples| examples.answer.clone()),
        }
    }

    /// Texts that are templates.
    fn templates(&self) -> Vec<&String> {
        let Questions { question, answer, solution, id, cluster, pair, task, choices, covariates, .. } =
            &self.questions;
        let columns = [question, answer, solution, id, cluster, pair, task].into_iter().flatten().chain(choices.all());
        let covariates = match covariates {
            Some(Covariates::Expressions(all)) => Some(all.values()),
            Some(Covariates::Columns(_)) | None => None,
        };
        let expressions = columns.chain(covariates.into_iter().flatten()).filter(|text| Templates::is_template(text));
        expressions.chain([&self.question, &self.system, &self.example_answer].into_iter().flatten()).collect()
    }
}

/// Parts of a row to read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Wanted {
    /// The parts alone.
    Parts,
    /// Its parts, and the texts of question and system message.
    Item,
    /// Those parts that it has, and the texts of question and answer.
    Example,
}

/// A row, taken apart. Texts are those of templates; none where the task file has no such template or it was not wanted.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Taken {
    pub parts: Parts,
    pub question: Option<Result<String, Problem>>,
    pub system: Option<Result<String, Problem>>,
    pub answer: Option<Result<String, Problem>>,
}

/// Compiled columns and templates.
pub(super) struct Compiled {
    templates: Templates,
    columns: Columns,
    question: Option<Expr>,
    system: Option<Expr>,
    example_answer: Option<Expr>,
}

impl Compiled {
    /// Compiles them.
    ///
    /// # Errors
    /// The text of the task file that is wrong, and the reason.
    pub(super) fn new(sources: &Sources) -> Result<Self, Wrong> {
        let mut templates = Templates::new();
        let columns = Columns::new(&sources.questions, &mut templates)?;
        let mut compiled = |text: &Option<String>| {
            let made = |text: &String| templates.text(text).map_err(|error| Wrong::new(text.as_str(), error));
            text.as_ref().map(made).transpose()
        };
        let (question, system, example_answer) =
            (compiled(&sources.question)?, compiled(&sources.system)?, compiled(&sources.example_answer)?);
        Ok(Compiled { templates, columns, question, system, example_answer })
    }

    /// Takes a row of so many bytes apart.
    ///
    /// # Errors
    /// The part that is missing or wrong. Errors of the texts are in them.
    pub(super) fn take(
        &self,
        row: &Map<String, Value>,
        written: &BTreeMap<String, String>,
        wanted: Wanted,
        bytes: usize,
    ) -> Result<Taken, Problem> {
        let needs = if wanted == Wanted::Example { Needs::Present } else { Needs::All };
        let parts = self.columns.parts(&self.templates, row, written, needs, bytes)?;
        let text = |part: &'static str, expr: &Option<Expr>, wanted: bool| match expr {
            Some(Expr::Text(name)) if wanted => {
                let rendered = self.templates.render(name, &context(row, &parts, bytes));
                Some(rendered.map_err(|error| Problem::new(part, error)))
            }
            _ => None,
        };
        let question = text("prompt", &self.question, wanted != Wanted::Parts);
        let system = text("system", &self.system, wanted == Wanted::Item);
        let answer = text("answer", &self.example_answer, wanted == Wanted::Example);
        Ok(Taken { question, system, answer, parts })
    }
}

/// Variables of a template: the columns, and the parts of the question by their own names.
fn context(row: &Map<String, Value>, parts: &Parts, bytes: usize) -> Context {
    let mut extra: BTreeMap<&str, Value> = BTreeMap::new();
    extra.extend(parts.question.as_ref().map(|text| ("question", Value::from(text.as_str()))));
    extra.extend(parts.answer.as_ref().map(|answer| ("answer", answer.clone())));
    extra.extend(parts.solution.as_ref().map(|text| ("solution", Value::from(text.as_str()))));
    if let Some(choices) = &parts.choices {
        extra.insert("choices", choices.texts.clone().into());
        extra.insert("lettered", choices.lettered().into());
    }
    let row = row.iter().map(|(name, value)| (name.as_str(), value));
    Context::new(row.chain(extra.iter().map(|(name, value)| (*name, value))), bytes)
}

/// A limit of a task file's templates that was reached: no row can be asked.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub(super) struct LimitReached(String);

/// A row with what was taken of it, or the reason for its not being read, which names it.
pub(super) type Found<'a> = Result<(&'a Row, Result<Taken, Problem>), HostError>;

/// Takes rows apart.
pub(super) struct RowReader {
    how: How,
    /// The only template, if there is one alone, to say where it is.
    pub only_template: Option<String>,
    /// Form of the answers of questions with choices.
    pub gold: Option<GoldForm>,
    has_question: bool,
}

enum How {
    Here(Box<Compiled>),
    Limited {
        process: Limited,
        /// Rows that were asked for, which determine the time.
        rows: AtomicU64,
        /// The limit that was reached: it is not tried again.
        reached: OnceLock<LimitReached>,
    },
}

/// Reason for a task file's columns and templates not being usable.
pub(super) enum Unusable {
    Text(Wrong),
    /// A limit was reached when they were compiled.
    Limit(LimitReached),
}

impl Unusable {
    /// The reason alone.
    pub(super) fn reason(self) -> String {
        match self {
            Unusable::Text(wrong) => wrong.reason,
            Unusable::Limit(limit) => limit.to_string(),
        }
    }
}

impl RowReader {
    /// Compiles the columns and templates of a task file.
    ///
    /// # Errors
    /// What is wrong with them.
    pub(super) fn new(sources: &Sources, host: &dyn Host) -> Result<Self, Unusable> {
        let templates = sources.templates();
        let how = if templates.is_empty() {
            How::Here(Box::new(Compiled::new(sources).map_err(Unusable::Text)?))
        } else {
            let settings = serde_json::to_vec(sources).map_err(|error| Unusable::Text(Wrong::new("", error)))?;
            let process = host.limited(&JOB, settings, MEMORY);
            let compiled = process.ask(&[], CpuTime::InAll(seconds(0)));
            let compiled = compiled.and_then(|answer| reader_job::compiled(&answer));
            let end = |end: Ended| Unusable::Limit(LimitReached(format!("compiling the templates {end}")));
            compiled.map_err(end)?.map_err(Unusable::Text)?;
            How::Limited { process, rows: AtomicU64::new(0), reached: OnceLock::new() }
        };
        let only_template = match templates[..] {
            [only] => Some(only.clone()),
            _ => None,
        };
        Ok(RowReader { how, only_template, gold: sources.questions.gold, has_question: sources.question.is_some() })
    }

    /// True if there is a template for the question.
    pub(super) fn has_question(&self) -> bool {
        self.has_question
    }

    /// Rows that are best asked for together.
    pub(super) fn batch(&self) -> usize {
        match self.how {
            How::Here(_) => 1,
            How::Limited { .. } => BATCH,
        }
    }

    /// Calls `each` with these rows in their order, taken apart; rows that cannot be read are errors, whose text names them.
    ///
    /// # Errors
    /// A limit that the templates reach.
    pub(super) fn each(
        &self,
        rows: &dyn Rows,
        numbers: impl IntoIterator<Item = usize>,
        wanted: Wanted,
        mut each: impl FnMut(usize, Found<'_>),
    ) -> Result<(), LimitReached> {
        let mut batch: Vec<(usize, Row)> = Vec::new();
        let mut bytes = 0;
        let flush = |batch: &mut Vec<(usize, Row)>, each: &mut dyn FnMut(usize, Found<'_>)| {
            let taken = self.take(batch.iter().map(|(_, row)| row), wanted)?;
            for ((number, row), taken) in batch.iter().zip(taken) {
                each(*number, Ok((row, taken)));
            }
            batch.clear();
            Ok(())
        };
        for number in numbers {
            match rows.row(number) {
                Ok(row) => {
                    bytes += length(&row);
                    batch.push((number, row));
                }
                Err(error) => {
                    flush(&mut batch, &mut each)?;
                    each(number, Err(error));
                }
            }
            if batch.len() >= self.batch() || bytes >= BATCH_BYTES {
                flush(&mut batch, &mut each)?;
                bytes = 0;
            }
        }
        flush(&mut batch, &mut each)
    }

    /// Takes rows apart.
    ///
    /// # Errors
    /// A limit that the templates reach.
    pub(super) fn take<'a>(
        &self,
        rows: impl Iterator<Item = &'a Row>,
        wanted: Wanted,
    ) -> Result<Vec<Result<Taken, Problem>>, LimitReached> {
        let (process, asked, reached) = match &self.how {
            How::Here(compiled) => {
                return Ok(rows.map(|row| compiled.take(&row.values, &row.written, wanted, 0)).collect());
            }
            How::Limited { process, rows, reached } => (process, rows, reached),
        };
        if let Some(reached) = reached.get() {
            return Err(reached.clone());
        }
        let rows: Vec<&Row> = rows.collect();
        let mut taken = Vec::with_capacity(rows.len());
        let mut most = rows.len();
        while taken.len() < rows.len() {
            let rest = &rows[taken.len()..];
            let rest = &rest[..most.min(rest.len())];
            let all = asked.fetch_add(rest.len() as u64, Ordering::Relaxed) + rest.len() as u64;
            let time = CpuTime::InAll(seconds(all));
            let answer = process.ask(&reader_job::request(rest, wanted), time);
            match answer.and_then(|answer| reader_job::taken(&answer, rest.len())) {
                Ok(some) => taken.extend(some),
                // Once more, row by row, to say which one it is.
                Err(Ended { by_time: false, .. }) if rest.len() > 1 => most = 1,
                Err(end) => {
                    let on = if rest.len() > 1 { " and the next" } else { "" };
                    let limit = LimitReached(format!("{}{on}: rendering the templates {end}", rest[0].place));
                    return Err(reached.get_or_init(|| limit).clone());
                }
            }
        }
        Ok(taken)
    }
}

/// Length of a row's texts in bytes, about: those of lists and objects are not counted.
fn length(row: &Row) -> usize {
    row.values.values().map(|value| value.as_str().map_or(8, str::len)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_rows_have_little_time_each() {
        assert_eq!(seconds(0), 6);
        assert_eq!(seconds(3_000), 9);
        assert_eq!(seconds(200_000), 12);
        // Four passes over a million rows.
        assert_eq!(seconds(4_000_000), 66);
    }
}
