//! Verification of the results file and of runs.
use crate::{Manifest, Origin, RunError, Status, score_completion};
use std::collections::BTreeMap;

use rusqlite::types::ValueRef;

use super::database::{RunRecord, Store, key, word};
use super::row;
use crate::outcomes::are_made_of_outcomes;
use earnest_tasks::suite::Suite;

/// Number of rows shown per fault.
const SHOWN: usize = 3;

/// Fault of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    NoText,
    Unreadable,
    NotPlanned,
    Inconsistent,
    Score,
    Edited,
    Question,
}

/// Rows with the same fault.
#[derive(Debug, Default)]
struct Group {
    count: usize,
    first: Vec<String>,
}

impl Group {
    fn add(&mut self, sample: String) {
        self.count += 1;
        if self.first.len() < SHOWN {
            self.first.push(sample);
        }
    }

    fn sentence(&self, kind: Kind) -> String {
        let description = match kind {
            Kind::NoText => "have no text",
            Kind::Unreadable => "cannot be read",
            Kind::NotPlanned => "are not in the run's plan, or have another expected answer",
            Kind::Inconsistent => "are inconsistent: tokens, score, failure or run do not match the text",
            Kind::Edited => "were edited in the file after they were written, or have no seal",
            Kind::Question => "have no readable question, or not that of the suite in the same version",
            Kind::Score => "have a score that the suite in the same version does not give",
        };
        let more = if self.count > self.first.len() { ", ..." } else { "" };
        format!("rows that {description}: {}: {}{more}", self.count, self.first.join(", "))
    }
}

impl Store {
    /// Returns the faults of SQLite's integrity check, empty if there are none. Reads the whole file.
    pub fn integrity(&self) -> Result<Vec<String>, RunError> {
        let read = || -> rusqlite::Result<Vec<String>> {
            let mut statement = self.connection().prepare("PRAGMA integrity_check(20)")?;
            statement.query_map([], |row| row.get(0))?.collect()
        };
        let mut faults = read().map_err(|source| self.error("read", source))?;
        faults.retain(|line| line != "ok");
        Ok(faults)
    }

    /// Returns the faults of a run, in one pass over rows and plan: unreadable, unplanned, inconsistent and edited rows (by their
    /// seals), scores that `suite` (that of the manifest) does not reproduce,
    /// missing rows of a finished run, and an edited manifest or list of runs.
    ///
    /// Scores and stored questions are compared with the suite's only if its version is the run's. Without a suite, rows are
    /// compared with the stored questions. Only a repeat of the run can verify completions.
    pub fn examine(&self, run: &RunRecord, suite: Option<&Suite>) -> Result<Vec<String>, RunError> {
        self.check(run, suite).map_err(|source| self.error("read", source))
    }

    fn check(&self, run: &RunRecord, suite: Option<&Suite>) -> rusqlite::Result<Vec<String>> {
        let manifest = &run.manifest;
        let mut questions = self.questions(run);
        let mut faults = Vec::new();
        if manifest.settings.sha256() != manifest.settings_sha256 {
            faults.push("the settings in the manifest do not match its hash: it was edited".to_owned());
        }
        let samples = manifest.settings.samples.max(1) as usize;
        // Outcome files have no questions.
        let has_texts = !are_made_of_outcomes(self.results());
        let listed = self.inconsistent_columns(run, suite)?;
        if !listed.is_empty() {
            faults.push(format!("{} in the list of runs differs from the manifest: it was edited", listed.join(", ")));
        }
        if listed.is_empty() && run.edited {
            faults.push("the manifest or the summary was edited in the file after it was written".to_owned());
        }
        let same_scorers = suite.filter(|suite| suite.scoring.version() == manifest.settings.suite_version);
        let mut kinds: BTreeMap<Kind, Group> = BTreeMap::new();
        let mut note = |kind, sample: String| kinds.entry(kind).or_default().add(sample);
        let narrow =
            row::NARROW.split(", ").map(|column| format!("s.{}", column.trim())).collect::<Vec<_>>().join(", ");
        let sql = format!(
            "SELECT {}, s.run, t.seal, s.seal, {narrow} FROM samples s LEFT JOIN texts t ON t.key = s.key WHERE s.key >= ? AND \
             s.key < ? ORDER BY s.key",
            row::COLUMNS
        );
        let mut statement = self.connection().prepare_cached(&sql)?;
        let mut rows = statement.query([key(run.id, 0), key(run.id + 1, 0)])?;
        let mut plan = suite.map(|suite| manifest.plan().walk(suite)).into_iter().flatten().peekable();
        let mut count = 0;
        while let Some(row) = rows.next()? {
            count += 1;
            let index = usize::try_from(row.get::<_, i64>(0)? - key(run.id, 0)).unwrap_or(0);
            let name = || match (row.get::<_, String>(1), row.get::<_, i64>(2)) {
                (Ok(item), Ok(sample)) => format!("sample {sample} of {item}"),
                _ => format!("sample at index {index}"),
            };
            while plan.next_if(|planned| planned.index < index).is_some() {}
            // The format is the first column of the texts and never null.
            if row.get_ref(17)? == ValueRef::Null {
                note(Kind::NoText, name());
                continue;
            }
            let seal: Option<i64> = row.get(row::COLUMN_COUNT + 2)?;
            let narrow: Option<i64> = row.get(row::COLUMN_COUNT + 3)?;
            let now = row::seal_from(row, row::COLUMN_COUNT + 4, row::NARROW_COUNT)?;
            if seal != Some(row::seal_of(row)?) || narrow != Some(now) {
                note(Kind::Edited, name());
            }
            let sample = match row::from_row(row, &manifest.run, &manifest.settings.suite) {
                Ok((_, sample)) => sample,
                Err(error) => {
                    note(Kind::Unreadable, format!("{} ({error})", name()));
                    continue;
                }
            };
            if !has_texts {
                continue;
            }
            let of_suite = plan.peek().filter(|planned| planned.index == index).map(|planned| &planned.item);
            let stored = questions.at(index);
            let of_store = stored.as_ref().ok().and_then(Option::as_ref).map(|stored| &stored.item);
            let (asked, number) = (if suite.is_some() { of_suite } else { of_store }, index % samples);
            let asked = asked
                .filter(|item| item.id == sample.item && number == sample.sample as usize && item.gold == sample.gold);
            let Some(asked) = asked else {
                note(if suite.is_none() && stored.is_err() { Kind::Question } else { Kind::NotPlanned }, name());
                continue;
            };
            if of_store.is_none() || same_scorers.is_some() && of_store.is_some_and(|item| item != asked) {
                note(Kind::Question, name());
            }
            let tokens = sample.completion.as_ref().map(|completion| completion.tokens() as i64);
            let (completed, scored) = (sample.completion.is_some(), sample.score.is_some());
            let answered = match manifest.settings.origin() == Origin::Log {
                // A log can have scores without completions, and completions without scores.
                true => sample.failure.is_none() || !completed && !scored,
                false => completed == scored && completed != sample.failure.is_some(),
            };
            let consistent = answered
                && tokens == row.get(row::COLUMN_COUNT)?
                && row.get::<_, i64>(row::COLUMN_COUNT + 1)? == run.id;
            if !consistent {
                note(Kind::Inconsistent, name());
            }
            if let (Some(suite), Some(completion), Some(score)) = (same_scorers, &sample.completion, &sample.score) {
                let opened = manifest.opened_thinking();
                let today = score_completion(suite, asked, opened, &completion.text, sample.truncated());
                if !today.agrees_with(score) {
                    note(Kind::Score, name());
                }
            }
        }
        faults.extend(kinds.into_iter().map(|(kind, group)| group.sentence(kind)));
        let planned = suite.map_or(run.planned, |suite| manifest.plan().len(suite));
        if manifest.status == Status::Finished && count != planned {
            faults.push(format!("the run is marked as finished, but has {count} of {planned} rows"));
        }
        Ok(faults)
    }

    /// Returns the names of the columns of `runs` that differ from the manifest.
    fn inconsistent_columns(&self, run: &RunRecord, suite: Option<&Suite>) -> rusqlite::Result<Vec<&'static str>> {
        // Another version of the suite may have another number of items.
        let same_scorers = suite.filter(|suite| suite.scoring.version() == run.manifest.settings.suite_version);
        let planned = same_scorers.is_some_and(|suite| run.manifest.plan().len(suite) != run.planned);
        const COLUMNS: [&str; 7] = ["name", "settings_sha256", "suite", "model", "status", "started", "ended"];
        let sql = format!("SELECT {}, manifest FROM runs WHERE id = ?", COLUMNS.join(", "));
        self.connection().prepare_cached(&sql)?.query_row([run.id], |row| {
            let text: String = row.get(COLUMNS.len())?;
            let Ok(manifest) = serde_json::from_str::<Manifest>(&text) else { return Ok(vec!["manifest"]) };
            let expected = [
                Some(manifest.run.as_str()),
                Some(manifest.settings_sha256.as_str()),
                Some(manifest.settings.suite.as_str()),
                Some(manifest.model.name.as_str()),
                Some(word(manifest.status)),
                Some(manifest.started.as_str()),
                manifest.ended.as_deref(),
            ];
            let mut differing: Vec<&'static str> = Vec::new();
            differing.extend(planned.then_some("planned"));
            for (index, (name, expected)) in COLUMNS.into_iter().zip(expected).enumerate() {
                if row.get_ref(index)?.as_str_or_null()? != expected {
                    differing.push(name);
                }
            }
            Ok(differing)
        })
    }

    /// Returns the number of rows that belong to no run and of texts without a row.
    pub fn strays(&self) -> Result<usize, RunError> {
        let sql = "SELECT (SELECT count(*) FROM samples WHERE key / 4294967296 NOT IN (SELECT id FROM runs)) + \
                   (SELECT count(*) FROM texts WHERE key NOT IN (SELECT key FROM samples)) + \
                   (SELECT count(*) FROM asked WHERE key / 4294967296 NOT IN (SELECT id FROM runs))";
        let count = self.connection().query_row(sql, [], |row| row.get::<_, i64>(0));
        let count = count.map_err(|source| self.error("read", source))?;
        debug_assert_eq!(key(1, 0), 4_294_967_296);
        Ok(usize::try_from(count).unwrap_or(0))
    }
}
