//! Examining the file and the rows of a run.
use super::read::Filter;
use super::store::{RunRecord, Store, key};
use crate::run::{RunError, Status};
use crate::suite::Suite;

/// Most faults that are listed of one kind.
const SHOWN: usize = 5;

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

    /// What is wrong with a run: rows that the plan does not have, rows without text, missing rows of a finished run, a
    /// manifest that was edited. `suite` is that of the manifest. Rows are read once, in step with the plan.
    pub fn examine(&self, run: &RunRecord, suite: &dyn Suite) -> Result<Vec<String>, RunError> {
        let manifest = &run.manifest;
        let mut faults = Vec::new();
        if manifest.settings.sha256() != manifest.settings_sha256 {
            faults.push("the settings in the manifest are not those of its hash: it was edited".to_owned());
        }
        let mut strangers = Vec::new();
        let mut rows = 0;
        let mut plan = manifest.plan().walk(suite).peekable();
        for sample in self.samples(run, Filter::default()).placed() {
            let (place, sample) = sample?;
            rows += 1;
            while plan.peek().is_some_and(|planned| planned.index < place) {
                plan.next();
            }
            let fits = plan.peek().is_some_and(|planned| {
                planned.index == place
                    && planned.item.id == sample.item
                    && planned.sample == sample.sample
                    && planned.item.gold == sample.gold
            });
            if !fits {
                strangers.push(format!("sample {} of {}", sample.sample, sample.item));
            }
        }
        let count = self.count(run)?;
        if count != rows {
            faults.push(format!("{} of {count} rows have no text", count.saturating_sub(rows)));
        }
        if !strangers.is_empty() {
            let first = strangers[..strangers.len().min(SHOWN)].join(", ");
            faults.push(format!("{} rows are not in the run's plan, or have another answer: {first}", strangers.len()));
        }
        let planned = manifest.plan().len(suite);
        if manifest.status == Status::Finished && count != planned {
            faults.push(format!("the run is called finished, but has {count} of {planned} rows"));
        }
        Ok(faults)
    }

    /// Rows that belong to no run.
    pub fn strays(&self) -> Result<usize, RunError> {
        let sql = "SELECT (SELECT count(*) FROM samples WHERE key / 4294967296 NOT IN (SELECT id FROM runs)) + \
                   (SELECT count(*) FROM texts WHERE key NOT IN (SELECT key FROM samples))";
        let count = self.connection().query_row(sql, [], |row| row.get::<_, i64>(0));
        let count = count.map_err(|source| self.error("read", source))?;
        debug_assert_eq!(key(1, 0), 4_294_967_296);
        Ok(usize::try_from(count).unwrap_or(0))
    }
}
