//! Samples as flat rows: columns and cells.
use std::collections::{BTreeMap, BTreeSet};

use earnest_tasks::suite::FailureClass;
use earnest_tasks::suite::profile::NAME;
use serde_json::Value;

use earnest_results::{LogNames, Row, Rows, RowsError, Sample};

/// Type of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    Truth,
    Integer,
    Number,
    Text,
    /// A list of token ids.
    Ids,
}

/// A value of a column.
#[derive(Debug, Clone, PartialEq)]
pub enum Cell<'a> {
    Empty,
    Truth(bool),
    Integer(i64),
    Number(f64),
    Text(std::borrow::Cow<'a, str>),
    Ids(&'a [u32]),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Column {
    pub name: String,
    pub kind: Kind,
    source: Source,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Source {
    Fixed(usize),
    Question,
    Prompt,
    /// A fact of the log, the same in every row.
    Log(String),
    Evidence,
    Covariate(String),
    Scorer(String),
    Metric(String),
}

/// Columns of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Columns(pub Vec<Column>);

type Take = for<'a> fn(&'a Sample) -> Cell<'a>;

/// Columns of every run, in order.
const FIXED: [(&str, Kind, Take); 26] = [
    ("run", Kind::Text, |s| text(&s.run)),
    ("suite", Kind::Text, |s| text(&s.suite)),
    ("item", Kind::Text, |s| text(&s.item)),
    ("sample", Kind::Integer, |s| Cell::Integer(i64::from(s.sample))),
    ("task", Kind::Text, |s| text(&s.task)),
    ("cluster", Kind::Text, |s| text(&s.cluster)),
    ("gold", Kind::Text, |s| text(&s.gold)),
    ("prompt_sha256", Kind::Text, |s| text(&s.prompt_sha256)),
    ("prompt_tokens", Kind::Integer, |s| integer(s.prompt_tokens)),
    ("budget", Kind::Integer, |s| integer(s.budget)),
    ("max_tokens", Kind::Integer, |s| integer(s.max_tokens)),
    ("completion", Kind::Text, |s| s.completion.as_ref().map_or(Cell::Empty, |c| text(&c.text))),
    ("completion_ids", Kind::Ids, |s| s.completion.as_ref().map_or(Cell::Empty, |c| Cell::Ids(&c.ids))),
    ("completion_tokens", Kind::Integer, |s| s.completion.as_ref().map_or(Cell::Empty, |c| integer(c.tokens()))),
    ("finish", Kind::Text, |s| s.completion.as_ref().map_or(Cell::Empty, |c| word(&c.finish))),
    ("cached_tokens", Kind::Integer, |s| s.completion.as_ref().map_or(Cell::Empty, |c| integer(c.cached_tokens))),
    ("queued_s", Kind::Number, |s| s.completion.as_ref().map_or(Cell::Empty, |c| Cell::Number(c.timings.queued_s))),
    ("prefill_s", Kind::Number, |s| s.completion.as_ref().map_or(Cell::Empty, |c| Cell::Number(c.timings.prefill_s))),
    ("decode_s", Kind::Number, |s| s.completion.as_ref().map_or(Cell::Empty, |c| Cell::Number(c.timings.decode_s))),
    ("correct", Kind::Truth, |s| s.score.as_ref().map_or(Cell::Empty, |v| Cell::Truth(v.correct))),
    ("extracted", Kind::Text, |s| maybe(s.score.as_ref().and_then(|v| v.answer.as_deref()))),
    ("failure", Kind::Text, |s| maybe(s.score.as_ref().and_then(|v| v.failure.as_ref()).map(FailureClass::as_str))),
    ("truncated", Kind::Truth, |s| s.completion.as_ref().map_or(Cell::Empty, |_| Cell::Truth(s.truncated()))),
    ("clipped", Kind::Truth, |s| Cell::Truth(s.clipped())),
    ("error_kind", Kind::Text, |s| s.failure.as_ref().map_or(Cell::Empty, |f| word(&f.kind))),
    ("error", Kind::Text, |s| maybe(s.failure.as_ref().map(|f| f.message.as_str()))),
];

fn text(text: &str) -> Cell<'_> {
    Cell::Text(text.into())
}

fn maybe(text: Option<&str>) -> Cell<'_> {
    text.map_or(Cell::Empty, |text| Cell::Text(text.into()))
}

fn integer<'a>(value: usize) -> Cell<'a> {
    i64::try_from(value).map_or(Cell::Empty, Cell::Integer)
}

/// Returns the JSON name of a unit variant.
fn word<'a>(value: &impl serde::Serialize) -> Cell<'a> {
    match serde_json::to_value(value) {
        Ok(Value::String(word)) => Cell::Text(word.into()),
        _ => Cell::Empty,
    }
}

impl Columns {
    /// Determines the columns in one pass over the rows: the fixed ones, question and prompt if a row has them, of a log `log_model`,
    /// `log_primary`, `log_planned` and `evidence` (readings, explanations and scores that are no numbers, as JSON), then `covariate_...`, `matcher_...`, `metric_...`, each in alphabetical order. A covariate with values of several types becomes a
    /// number or text. Also returns the number of rows.
    pub fn survey(rows: &dyn Rows) -> Result<(Self, usize), RowsError> {
        let mut covariates: BTreeMap<String, Kind> = BTreeMap::new();
        let mut scorers = BTreeSet::new();
        let mut metrics = BTreeSet::new();
        let mut count = 0;
        let (mut question, mut prompt) = (false, false);
        rows.walk_asked(&mut |row| {
            count += 1;
            question |= row.question().is_some();
            prompt |= row.prompt().is_some();
            let sample = &row.sample;
            for (name, value) in sample.covariates.iter().filter(|(_, value)| !value.is_null()) {
                let kind = kind(value);
                match covariates.get_mut(name) {
                    Some(known) => *known = common(*known, kind),
                    None => {
                        covariates.insert(name.clone(), kind);
                    }
                }
            }
            if let Some(score) = &sample.score {
                add_names(&mut scorers, score.scorers.names());
                add_names(&mut metrics, score.metrics.names());
            }
            Ok(())
        })?;
        let fixed = FIXED.iter().enumerate().map(|(index, (name, kind, _))| Column {
            name: (*name).to_owned(),
            kind: *kind,
            source: Source::Fixed(index),
        });
        let texts = [(question, "question", Source::Question), (prompt, "prompt", Source::Prompt)];
        let texts = texts.into_iter().filter(|(known, ..)| *known);
        let texts = texts.map(|(_, name, source)| Column { name: name.to_owned(), kind: Kind::Text, source });
        let of_log = log_columns(rows.log());
        let covariates = covariates.into_iter().map(|(name, kind)| Column {
            name: format!("covariate_{name}"),
            kind,
            source: Source::Covariate(name),
        });
        let scorers = scorers.into_iter().map(|name| Column {
            name: format!("matcher_{name}"),
            kind: Kind::Truth,
            source: Source::Scorer(name),
        });
        let metrics = metrics.into_iter().map(|name| Column {
            name: format!("metric_{name}"),
            kind: Kind::Number,
            source: Source::Metric(name),
        });
        Ok((Columns(fixed.chain(texts).chain(of_log).chain(covariates).chain(scorers).chain(metrics).collect()), count))
    }
}

fn log_columns(log: Option<LogNames>) -> Vec<Column> {
    let Some(log) = log else { return Vec::new() };
    let fact = |name: &str, value| Column { name: name.to_owned(), kind: Kind::Text, source: Source::Log(value) };
    let evidence = Column { name: "evidence".to_owned(), kind: Kind::Text, source: Source::Evidence };
    let chosen = log.chosen.map(|chosen| fact("log_primary", chosen));
    let planned = log.planned.map(|planned| fact("log_planned", planned.to_string()));
    [fact("log_model", log.model)].into_iter().chain(chosen).chain(planned).chain([evidence]).collect()
}

fn add_names<'a>(known: &mut BTreeSet<String>, names: impl Iterator<Item = &'a str>) {
    for name in names {
        if !known.contains(name) {
            known.insert(name.to_owned());
        }
    }
}

/// Fixed columns of outcome files: ids and results, no text.
const OUTCOMES: [&str; 13] = [
    "run",
    "suite",
    "item",
    "sample",
    "task",
    "cluster",
    "prompt_tokens",
    "budget",
    "max_tokens",
    "completion_tokens",
    "finish",
    "correct",
    "failure",
];

/// Columns with numbers of questions and answers.
const ANSWERS: [&str; 2] = ["gold", "extracted"];

impl Columns {
    /// The columns of an outcome file: ids, results, covariates, scorers and metrics. Runs of the numeracy profile, whose questions are the program's own, keep
    /// the numbers that were expected and read: the classes of errors come from them.
    pub(crate) fn of_outcomes(mut self, suite: &str) -> Self {
        self.0.retain(|column| match &column.source {
            Source::Fixed(_) if ANSWERS.contains(&column.name.as_str()) => suite == NAME,
            Source::Fixed(_) => OUTCOMES.contains(&column.name.as_str()),
            Source::Covariate(_) | Source::Scorer(_) | Source::Metric(_) => true,
            Source::Question | Source::Prompt | Source::Log(_) | Source::Evidence => false,
        });
        self
    }
}

impl Column {
    /// Returns the value of a row.
    pub fn cell<'a>(&self, row: &'a Row) -> Cell<'a> {
        let sample = &row.sample;
        let score = sample.score.as_ref();
        match &self.source {
            Source::Fixed(index) => FIXED.get(*index).map_or(Cell::Empty, |(_, _, take)| take(sample)),
            Source::Question => maybe(row.question()),
            Source::Prompt => maybe(row.prompt()),
            Source::Log(value) => Cell::Text(value.clone().into()),
            Source::Evidence => match score.map(|score| &score.evidence).filter(|evidence| !evidence.is_empty()) {
                Some(evidence) => serde_json::to_string(evidence).map_or(Cell::Empty, |text| Cell::Text(text.into())),
                None => Cell::Empty,
            },
            Source::Covariate(name) => {
                sample.covariates.get(name).map_or(Cell::Empty, |value| covariate(value, self.kind))
            }
            Source::Scorer(name) => score.and_then(|score| score.scorers.get(name)).map_or(Cell::Empty, Cell::Truth),
            Source::Metric(name) => score.and_then(|score| score.metrics.get(name)).map_or(Cell::Empty, Cell::Number),
        }
    }
}

fn kind(value: &Value) -> Kind {
    match value {
        Value::Bool(_) => Kind::Truth,
        Value::Number(number) if number.is_i64() => Kind::Integer,
        Value::Number(_) => Kind::Number,
        _ => Kind::Text,
    }
}

fn common(one: Kind, other: Kind) -> Kind {
    match (one, other) {
        (one, other) if one == other => one,
        (Kind::Integer, Kind::Number) | (Kind::Number, Kind::Integer) => Kind::Number,
        _ => Kind::Text,
    }
}

fn covariate(value: &Value, kind: Kind) -> Cell<'_> {
    match (kind, value) {
        (_, Value::Null) => Cell::Empty,
        (Kind::Truth, Value::Bool(value)) => Cell::Truth(*value),
        (Kind::Integer, Value::Number(number)) => number.as_i64().map_or(Cell::Empty, Cell::Integer),
        (Kind::Number, Value::Number(number)) => number.as_f64().map_or(Cell::Empty, Cell::Number),
        (_, Value::String(words)) => text(words),
        (_, other) => Cell::Text(other.to_string().into()),
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use earnest_engine::{FinishReason, Timings};
    use earnest_results::{FailureKind, Generated, SAMPLE_FORMAT, SampleFailure};
    use earnest_tasks::suite::Score;

    /// A row with hostile texts.
    pub fn sample(number: u32, completion: Option<&str>) -> Sample {
        let score = completion.map(|text| Score {
            correct: text == "42",
            answer: (text == "42").then(|| text.to_owned()),
            scorers: [("boundary", text == "42"), ("compat", true)].into(),
            metrics: [("digit_match", 0.5)].into(),
            failure: (text != "42").then_some(FailureClass::Wrong),
            ..Score::default()
        });
        Sample {
            format: SAMPLE_FORMAT,
            run: "run".into(),
            suite: "sums".into(),
            item: format!("sums/{}", number / 2),
            sample: number % 2,
            task: ["add", "mul"][(number / 2 % 2) as usize].into(),
            cluster: "c".into(),
            covariates: [("length".to_owned(), Value::from(number)), ("b".to_owned(), Value::from("1"))].into(),
            gold: "42".into(),
            prompt_sha256: "00".into(),
            prompt_tokens: 3,
            budget: 9,
            max_tokens: 9,
            completion: completion.map(|text| Generated {
                text: text.into(),
                ids: vec![number; (number % 3) as usize],
                counted_tokens: 0,
                finish: FinishReason::Eos,
                cached_tokens: 0,
                timings: Timings { queued_s: 0.0, prefill_s: 0.25, decode_s: 0.5 },
            }),
            score,
            failure: completion.is_none().then(|| SampleFailure {
                kind: FailureKind::BeyondContext,
                message: "no, \"room\"".into(),
                retryable: false,
            }),
        }
    }

    #[test]
    fn kinds_are_settled_over_all_rows() {
        let mut rows = vec![sample(0, Some("42")), sample(1, None)];
        rows[0].covariates.insert("mixed".into(), Value::from(1));
        rows[1].covariates.insert("mixed".into(), Value::from(0.5));
        rows[0].covariates.insert("odd".into(), Value::from(true));
        rows[1].covariates.insert("odd".into(), serde_json::json!([1]));
        let (columns, count) = Columns::survey(&rows).unwrap();
        assert_eq!(count, 2);
        let column = |name: &str| columns.0.iter().find(|column| column.name == name).unwrap();
        assert_eq!(column("covariate_mixed").kind, Kind::Number);
        assert_eq!(column("covariate_mixed").cell(&Row::from(rows[0].clone())), Cell::Number(1.0));
        assert_eq!(column("covariate_odd").cell(&Row::from(rows[0].clone())), Cell::Text("true".into()));
        assert_eq!(column("matcher_compat").cell(&Row::from(rows[1].clone())), Cell::Empty);
        assert_eq!(column("error_kind").cell(&Row::from(rows[1].clone())), Cell::Text("beyond_context".into()));
        assert_eq!(column("finish").cell(&Row::from(rows[0].clone())), Cell::Text("eos".into()));
        let mut names: Vec<&str> = columns.0.iter().map(|column| column.name.as_str()).collect();
        let all = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), all);
    }
}
