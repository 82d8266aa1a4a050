//! Examining the file and the rows of a run.
use std::collections::BTreeMap;

use rusqlite::types::ValueRef;

use super::database::{RunRecord, Store, key, word};
use super::row;
use crate::run::{Manifest, RunError, Status, judge};
use crate::suite::Suite;

/// Most rows that are named of one kind.
const SHOWN: usize = 3;

/// What can be wrong with a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    NoText,
    Unreadable,
    Stranger,
    Contradictory,
    Verdict,
    Edited,
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
        let what = match kind {
            Kind::NoText => "have no text",
            Kind::Unreadable => "cannot be read",
            Kind::Stranger => "are not in the run's plan, or have another answer",
            Kind::Contradictory => "contradict themselves: tokens, verdict, failure or run are not those of the text",
            Kind::Edited => "are not as they were written: they were edited in the file",
            Kind::Verdict => "have a verdict that today's scoring of the same version does not give",
        };
        let more = if self.count > self.first.len() { ", ..." } else { "" };
        format!("rows that {what}: {}: {}{more}", self.count, self.first.join(", "))
    }
}

impl Store {
    /// Faults of the file as SQLite sees them; none if it is whole. Reads everything.
    pub fn integrity(&self) -> Result<Vec<String>, RunError> {
        let read = || -> rusqlite::Result<Vec<String>> {
            let mut statement = self.connection().prepare("PRAGMA integrity_check(20)")?;
            statement.query_map([], |row| row.get(0))?.collect()
        };
        let mut found = read().map_err(|source| self.error("read", source))?;
        found.retain(|line| line != "ok");
        Ok(found)
    }

    /// What is wrong with a run, rows read once, in step with the plan: rows that cannot be read or have no text, that the
    /// plan does not have, whose numbers contradict their text, whose verdict is not what `suite` (that of the manifest)
    /// says of their completion today, that are not as they were written (of rows since version 3 of the tables, which have a
    /// seal); missing rows of a finished run; a manifest that was edited, or that the list's columns contradict.
    ///
    /// Verdicts are judged again only if the suite's version is the run's. That prompts and completions are what the model
    /// was asked and said only a repeat of the run can show.
    pub fn examine(&self, run: &RunRecord, suite: &dyn Suite) -> Result<Vec<String>, RunError> {
        self.check(run, suite).map_err(|source| self.error("read", source))
    }

    fn check(&self, run: &RunRecord, suite: &dyn Suite) -> rusqlite::Result<Vec<String>> {
        let manifest = &run.manifest;
        let mut faults = Vec::new();
        if manifest.settings.sha256() != manifest.settings_sha256 {
            faults.push("the settings in the manifest are not those of its hash: it was edited".to_owned());
        }
        let listed = self.contradictions(run, suite)?;
        if !listed.is_empty() {
            faults.push(format!("{} in the list of runs differs from the manifest: it was edited", listed.join(", ")));
        }
        let same_rules = suite.version() == manifest.settings.suite_version;
        let mut kinds: BTreeMap<Kind, Group> = BTreeMap::new();
        let mut note = |kind, sample: String| kinds.entry(kind).or_default().add(sample);
        let sql = format!(
            "SELECT {}, s.completion_tokens, s.run, t.seal FROM samples s LEFT JOIN texts t ON t.key = s.key WHERE s.key >= ? AND \
             s.key < ? ORDER BY s.key",
            row::COLUMNS
        );
        let mut statement = self.connection().prepare_cached(&sql)?;
        let mut rows = statement.query([key(run.id, 0), key(run.id + 1, 0)])?;
        let mut plan = manifest.plan().walk(suite).peekable();
        let mut count = 0;
        while let Some(row) = rows.next()? {
            count += 1;
            let place = usize::try_from(row.get::<_, i64>(0)? - key(run.id, 0)).unwrap_or(0);
            let name = || match (row.get::<_, String>(1), row.get::<_, i64>(2)) {
                (Ok(item), Ok(sample)) => format!("sample {sample} of {item}"),
                _ => format!("place {place}"),
            };
            while plan.next_if(|planned| planned.index < place).is_some() {}
            // The format is the first of the text's columns and never empty.
            if row.get_ref(17)? == ValueRef::Null {
                note(Kind::NoText, name());
                continue;
            }
            let seal: Option<i64> = row.get(row::COLUMN_COUNT + 2)?;
            if seal.is_some_and(|seal| row::seal_of(row).is_ok_and(|now| now != seal)) {
                note(Kind::Edited, name());
            }
            let sample = match row::from_row(row, &manifest.run, &manifest.settings.suite) {
                Ok((_, sample)) => sample,
                Err(error) => {
                    note(Kind::Unreadable, format!("{} ({error})", name()));
                    continue;
                }
            };
            let planned = plan.peek().filter(|planned| {
                planned.index == place
                    && planned.item.id == sample.item
                    && planned.sample == sample.sample
                    && planned.item.gold == sample.gold
            });
            let Some(planned) = planned else {
                note(Kind::Stranger, name());
                continue;
            };
            let tokens = sample.completion.as_ref().map(|completion| completion.ids.len() as i64);
            let whole = sample.completion.is_some() == sample.verdict.is_some()
                && sample.completion.is_some() != sample.failure.is_some()
                && tokens == row.get(row::COLUMN_COUNT)?
                && row.get::<_, i64>(row::COLUMN_COUNT + 1)? == run.id;
            if !whole {
                note(Kind::Contradictory, name());
            }
            if let (true, Some(completion), Some(verdict)) = (same_rules, &sample.completion, &sample.verdict) {
                let opened = manifest.opened_thinking();
                let today = judge(suite, &planned.item, opened, &completion.text, sample.truncated());
                if !today.agrees_with(verdict) {
                    note(Kind::Verdict, name());
                }
            }
        }
        faults.extend(kinds.into_iter().map(|(kind, group)| group.sentence(kind)));
        let planned = manifest.plan().len(suite);
        if manifest.status == Status::Finished && count != planned {
            faults.push(format!("the run is called finished, but has {count} of {planned} rows"));
        }
        Ok(faults)
    }

    /// The columns of `runs` that are not what the manifest beside them says, by name.
    fn contradictions(&self, run: &RunRecord, suite: &dyn Suite) -> rusqlite::Result<Vec<&'static str>> {
        // Unknown in runs that only an earlier version wrote; another version of the suite may ask another number.
        let same_rules = suite.version() == run.manifest.settings.suite_version;
        let planned = same_rules && run.planned.is_some_and(|planned| planned != run.manifest.plan().len(suite));
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
            for (place, (name, expected)) in COLUMNS.into_iter().zip(expected).enumerate() {
                if row.get_ref(place)?.as_str_or_null()? != expected {
                    differing.push(name);
                }
            }
            Ok(differing)
        })
    }

    /// Rows that belong to no run, and texts without a row.
    pub fn strays(&self) -> Result<usize, RunError> {
        let sql = "SELECT (SELECT count(*) FROM samples WHERE key / 4294967296 NOT IN (SELECT id FROM runs)) + \
                   (SELECT count(*) FROM texts WHERE key NOT IN (SELECT key FROM samples))";
        let count = self.connection().query_row(sql, [], |row| row.get::<_, i64>(0));
        let count = count.map_err(|source| self.error("read", source))?;
        debug_assert_eq!(key(1, 0), 4_294_967_296);
        Ok(usize::try_from(count).unwrap_or(0))
    }
}
