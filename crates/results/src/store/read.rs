//! Reading samples one by one.
use std::collections::VecDeque;

use rusqlite::{OptionalExtension, ToSql, params};

use super::database::{RunRecord, Store, key};
use super::row;
use crate::{RunError, Sample};
use earnest_tasks::anatomy::{ErrorClass, of_sample};

/// Rows per query: few enough for constant memory, many enough that the query costs little.
const PAGE: i64 = 256;

/// Bytes of texts from which on a page has no more rows, because a row may have many megabytes.
const PAGE_BYTES: usize = 16 << 20;

/// Filter of a run's samples. The default matches all.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Filter {
    /// Only this task.
    pub task: Option<String>,
    /// Only this item.
    pub item: Option<String>,
    /// Only samples that are scored (in)correct; samples without a score are neither.
    pub correct: Option<bool>,
    /// Only samples that are not scored correct: wrong answers and failures.
    pub failed: bool,
    /// True for another tool's log: numbers between right and wrong, and samples without one, are no failures.
    pub of_log: bool,
    /// Only samples with this failure class (`wrong`, `empty`, ...).
    pub reason: Option<String>,
    /// Only samples whose completion the token budget ended.
    pub truncated: bool,
    /// Only samples whose completion contains this text; upper and lower case differ.
    pub contains: Option<String>,
    /// Only samples after this index in the plan, for pages of a list.
    pub after: Option<usize>,
    /// Only samples before this index in the plan.
    pub before: Option<usize>,
    /// Only samples that are correct by exactly one of these scorers; both must have scored them.
    pub disagree: Option<[String; 2]>,
    /// Only wrong answers of this class ([`earnest_tasks::anatomy`]).
    pub error: Option<ErrorClass>,
    /// Only samples whose covariates have these values, by name; values are compared as text.
    pub covariates: Vec<(String, String)>,
}

/// Condition on a covariate, by key instead of by path: a path cannot hold a name with a quote.
const HAS_COVARIATE: &str = "EXISTS (SELECT 1 FROM json_each(t.covariates) c WHERE c.key = ? AND \
                             CASE WHEN c.type IN ('true', 'false') THEN c.type ELSE CAST(c.atom AS TEXT) END = ?)";

impl Filter {
    /// True of a sample that satisfies what SQL does not check.
    fn has(&self, sample: &Sample) -> bool {
        self.error.is_none_or(|wanted| {
            let score = sample.score.as_ref();
            let found = score
                .and_then(|score| of_sample(&sample.task, &sample.covariates, &sample.gold, score, sample.truncated()));
            found.is_some_and(|found| found.class == wanted)
        })
    }

    /// True if a condition is on the texts (`t` in SQL).
    fn reads_texts(&self) -> bool {
        self.contains.is_some() || self.disagree.is_some() || !self.covariates.is_empty()
    }

    /// Returns the SQL conditions and their parameters.
    fn sql(&self) -> (String, Vec<&dyn ToSql>) {
        let mut sql = String::new();
        let mut values: Vec<&dyn ToSql> = Vec::new();
        for (condition, value) in [
            (" AND s.task = ?", &self.task),
            (" AND s.item = ?", &self.item),
            (" AND s.verdict_failure = ?", &self.reason),
            (" AND instr(t.completion, ?) > 0", &self.contains),
        ] {
            if let Some(value) = value {
                sql += condition;
                values.push(value);
            }
        }
        for (name, value) in &self.covariates {
            sql += &format!(" AND {HAS_COVARIATE}");
            values.extend([name as &dyn ToSql, value]);
        }
        if let Some([one, other]) = &self.disagree {
            // By key instead of by path: a path cannot hold a name with a quote.
            let score = "(SELECT scorer.value FROM json_each(t.matchers) scorer WHERE scorer.key = ?)";
            sql += &format!(" AND {score} <> {score}");
            values.extend([one as &dyn ToSql, other]);
        }
        match self.correct {
            Some(true) => sql += " AND s.correct = 1",
            Some(false) => sql += " AND s.correct = 0",
            None if self.error.is_some() => sql += " AND s.correct = 0",
            None => {}
        }
        match (self.failed, self.of_log) {
            (true, false) => sql += " AND s.correct IS NOT 1",
            (true, true) => sql += " AND (s.correct IS NULL OR s.verdict_failure IS NOT NULL)",
            (false, _) => {}
        }
        if self.truncated {
            sql += " AND s.finish = 'length'";
        }
        (sql, values)
    }
}

/// A column of samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Named {
    Task,
    Item,
    /// Failure class of wrong answers.
    Reason,
}

impl Store {
    /// True if a sample of the run has this value.
    pub fn has(&self, run: &RunRecord, named: Named, name: &str) -> Result<bool, RunError> {
        let sql =
            format!("SELECT EXISTS (SELECT 1 FROM samples WHERE key >= ? AND key < ? AND {} = ?)", named.column());
        let (start, end) = (key(run.id, 0), key(run.id + 1, 0));
        let parameters: [&dyn ToSql; 3] = [&start, &end, &name];
        let exists = self
            .connection()
            .prepare_cached(&sql)
            .and_then(|mut statement| statement.query_row(parameters, |row| row.get(0)));
        exists.map_err(|source| self.error("read", source))
    }

    /// Returns the distinct values of a run's samples, in alphabetical order.
    pub fn all(&self, run: &RunRecord, named: Named) -> Result<Vec<String>, RunError> {
        let column = named.column();
        let sql = format!(
            "SELECT DISTINCT {column} FROM samples WHERE key >= ? AND key < ? AND {column} IS NOT NULL ORDER BY {column}"
        );
        let read = || -> rusqlite::Result<Vec<String>> {
            let mut statement = self.connection().prepare_cached(&sql)?;
            statement.query_map([key(run.id, 0), key(run.id + 1, 0)], |row| row.get(0))?.collect()
        };
        read().map_err(|source| self.error("read", source))
    }
}

impl Store {
    /// True if a sample of the run has the text of its completion; rows of outcome files have none.
    pub fn has_completions(&self, run: &RunRecord) -> Result<bool, RunError> {
        let sql = "SELECT EXISTS (SELECT 1 FROM texts WHERE key >= ? AND key < ? AND completion <> '')";
        let exists = self
            .connection()
            .prepare_cached(sql)
            .and_then(|mut statement| statement.query_row([key(run.id, 0), key(run.id + 1, 0)], |row| row.get(0)));
        exists.map_err(|source| self.error("read", source))
    }

    /// True if a sample of the run has this value of a covariate, as text.
    pub fn has_covariate(&self, run: &RunRecord, name: &str, value: &str) -> Result<bool, RunError> {
        let sql = format!("SELECT EXISTS (SELECT 1 FROM texts t WHERE t.key >= ? AND t.key < ? AND {HAS_COVARIATE})");
        let (start, end) = (key(run.id, 0), key(run.id + 1, 0));
        let parameters: [&dyn ToSql; 4] = [&start, &end, &name, &value];
        let exists = self
            .connection()
            .prepare_cached(&sql)
            .and_then(|mut statement| statement.query_row(parameters, |row| row.get(0)));
        exists.map_err(|source| self.error("read", source))
    }

    /// Returns the number of samples that satisfy a filter, whatever its `after`.
    pub fn count_of(&self, run: &RunRecord, filter: &Filter) -> Result<usize, RunError> {
        if filter.error.is_some() {
            let all = Filter { after: None, ..filter.clone() };
            return self.samples(run, all).try_fold(0, |count, sample| sample.map(|_| count + 1));
        }
        let (conditions, values) = filter.sql();
        // The narrow rows are counted without the texts.
        let texts = if filter.reads_texts() { " JOIN texts t ON t.key = s.key" } else { "" };
        let sql = format!("SELECT COUNT(*) FROM samples s{texts} WHERE s.key >= ? AND s.key < ?{conditions}");
        let (start, end) = (key(run.id, 0), key(run.id + 1, 0));
        let mut parameters: Vec<&dyn ToSql> = vec![&start, &end];
        parameters.extend(values);
        let count = self
            .connection()
            .prepare_cached(&sql)
            .and_then(|mut statement| statement.query_row(parameters.as_slice(), |row| row.get::<_, i64>(0)));
        count.map(|count| usize::try_from(count).unwrap_or(0)).map_err(|source| self.error("read", source))
    }

    /// Returns of items spread over a run, at most `most` of them, how many another run has too, and of how many both expect the same answer.
    pub fn expected_alike(&self, run: &RunRecord, other: &RunRecord, most: usize) -> Result<(usize, usize), RunError> {
        let read = || -> rusqlite::Result<(usize, usize)> {
            let connection = self.connection();
            let mut next = connection.prepare_cached(
                "SELECT s.item, t.gold FROM samples s JOIN texts t ON t.key = s.key WHERE s.key >= ? AND s.key < ? ORDER BY s.key LIMIT 1",
            )?;
            let mut same = connection.prepare_cached(
                "SELECT t.gold FROM samples s JOIN texts t ON t.key = s.key WHERE s.run = ? AND s.item = ? LIMIT 1",
            )?;
            let (mut found, mut equal) = (0, 0);
            for probe in 0..most {
                let start = key(run.id, run.planned * probe / most);
                let one: Option<(String, String)> =
                    next.query_row([start, key(run.id + 1, 0)], |row| Ok((row.get(0)?, row.get(1)?))).optional()?;
                let Some((item, gold)) = one else { continue };
                let other: Option<String> = same.query_row(params![other.id, item], |row| row.get(0)).optional()?;
                found += usize::from(other.is_some());
                equal += usize::from(other.is_some_and(|other| other == gold));
            }
            Ok((found, equal))
        };
        read().map_err(|source| self.error("read", source))
    }

    /// True if a sample of the run has a score by this name.
    pub fn has_scorer(&self, run: &RunRecord, scorer: &str) -> Result<bool, RunError> {
        let sql = "SELECT EXISTS (SELECT 1 FROM texts t, json_each(t.matchers) scorer WHERE t.key >= ? AND t.key < ? AND scorer.key = ?)";
        let (start, end) = (key(run.id, 0), key(run.id + 1, 0));
        let parameters: [&dyn ToSql; 3] = [&start, &end, &scorer];
        let exists = self
            .connection()
            .prepare_cached(sql)
            .and_then(|mut statement| statement.query_row(parameters, |row| row.get(0)));
        exists.map_err(|source| self.error("read", source))
    }

    /// Returns the names of the scorers of the run's samples, in alphabetical order.
    pub fn scorers(&self, run: &RunRecord) -> Result<Vec<String>, RunError> {
        let sql = "SELECT DISTINCT scorer.key FROM texts t, json_each(t.matchers) scorer WHERE t.key >= ? AND t.key < ? \
                   ORDER BY scorer.key";
        let read = || -> rusqlite::Result<Vec<String>> {
            let mut statement = self.connection().prepare_cached(sql)?;
            statement.query_map([key(run.id, 0), key(run.id + 1, 0)], |row| row.get(0))?.collect()
        };
        read().map_err(|source| self.error("read", source))
    }
}

impl Named {
    fn column(self) -> &'static str {
        match self {
            Named::Task => "task",
            Named::Item => "item",
            Named::Reason => "verdict_failure",
        }
    }
}

/// Samples of a run in the order of its plan, read a page at a time.
pub struct Samples<'a> {
    store: &'a Store,
    run: RunRecord,
    filter: Filter,
    page: VecDeque<(usize, Sample)>,
    /// First edited row after those of the page.
    edited: Option<String>,
    /// Last key that was read.
    after: i64,
    exhausted: bool,
}

impl<'a> Samples<'a> {
    pub(super) fn new(store: &'a Store, run: &RunRecord, filter: Filter) -> Self {
        let after = filter.after.map_or(key(run.id, 0) - 1, |index| key(run.id, index));
        Samples { store, run: run.clone(), filter, page: VecDeque::new(), edited: None, after, exhausted: false }
    }

    /// Returns the samples with their indices in the plan.
    pub fn indexed(self) -> impl Iterator<Item = Result<(usize, Sample), RunError>> + use<'a> {
        let mut samples = self;
        std::iter::from_fn(move || samples.advance())
    }

    fn advance(&mut self) -> Option<Result<(usize, Sample), RunError>> {
        while self.page.is_empty() && !self.exhausted {
            if let Err(source) = self.read_page() {
                self.exhausted = true;
                return Some(Err(self.store.error("read", source)));
            }
        }
        match self.page.pop_front() {
            Some(sample) => Some(Ok(sample)),
            None => self.edited.take().map(|row| Err(self.store.edited(&self.run, row))),
        }
    }

    fn read_page(&mut self) -> rusqlite::Result<()> {
        let (conditions, values) = self.filter.sql();
        let sql = format!(
            "SELECT {}, t.seal FROM samples s JOIN texts t ON t.key = s.key WHERE s.key > ? AND s.key < ?{conditions} \
             ORDER BY s.key LIMIT {PAGE}",
            row::COLUMNS
        );
        let connection = self.store.connection();
        let mut statement = connection.prepare_cached(&sql)?;
        let end = self.filter.before.map_or(key(self.run.id + 1, 0), |index| key(self.run.id, index));
        let mut parameters: Vec<&dyn ToSql> = vec![&self.after, &end];
        parameters.extend(values);
        let (name, suite) = (&self.run.manifest.run, &self.run.manifest.settings.suite);
        let mut rows = statement.query(parameters.as_slice())?;
        let (mut last, mut read, mut bytes) = (self.after, 0, 0);
        while let Some(row) = rows.next()? {
            read += 1;
            let seal: Option<i64> = row.get(row::COLUMN_COUNT + 1)?;
            if seal != Some(row::seal_of(row)?) {
                let (item, sample): (String, i64) = (row.get(1)?, row.get(2)?);
                self.edited = Some(format!("sample {sample} of {item}"));
                break;
            }
            let (key_read, sample) = row::from_row(row, name, suite)?;
            last = key_read;
            let index = usize::try_from(key_read - key(self.run.id, 0)).unwrap_or(0);
            if self.filter.has(&sample) {
                self.page.push_back((index, sample));
                bytes += row::text_bytes(row)?;
                if bytes >= PAGE_BYTES {
                    break;
                }
            }
        }
        drop(rows);
        drop(statement);
        self.after = last;
        self.exhausted = self.edited.is_some() || read < PAGE && bytes < PAGE_BYTES;
        Ok(())
    }
}

impl Iterator for Samples<'_> {
    type Item = Result<Sample, RunError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.advance().map(|placed| placed.map(|(_, sample)| sample))
    }
}
