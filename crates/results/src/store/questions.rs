//! Questions and prompts of stored runs, in packs that runs share.
use std::collections::{BTreeMap, BTreeSet};
use std::iter;
use std::ops::Range;
use std::path::Path;

use rayon::prelude::*;
use rusqlite::types::ValueRef;
use rusqlite::{OptionalExtension, Transaction, params};

use super::database::{PLAN_END, RunRecord, Store, key};
use super::pack::{Entry, PACK_ITEMS, Pack, PackDamage, Packed, Page};
use super::row::seal;
use crate::{RunError, Sample};
use earnest_tasks::suite::{Item, Suite};

/// Packs that are searched at once, on all cores.
const PACKS_AT_ONCE: usize = 64;

/// A stored question with its prompt.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredQuestion {
    pub item: Item,
    /// Text of the prompt; none for imported completions and prompts that could not be rendered.
    pub prompt: Option<String>,
}

impl From<Entry> for StoredQuestion {
    fn from(Entry { item, prompt, .. }: Entry) -> Self {
        StoredQuestion { item, prompt }
    }
}

/// Questions of a run, read a pack at a time.
pub struct StoredQuestions<'a> {
    store: &'a Store,
    run: RunRecord,
    samples: usize,
    /// Last pack that was read, by number; none in it if the run has no such pack.
    last: Option<(usize, Option<Page>)>,
}

impl StoredQuestions<'_> {
    /// Returns the question of the sample at this index in the plan; none where the run has no questions, as those of outcome
    /// files.
    pub fn at(&mut self, index: usize) -> Result<Option<StoredQuestion>, RunError> {
        let index = index / self.samples;
        let number = index / PACK_ITEMS;
        if self.last.as_ref().is_none_or(|(last, _)| *last != number) {
            self.last = Some((number, self.store.page(&self.run, number)?));
        }
        let page = self.last.as_ref().and_then(|(_, page)| page.as_ref());
        Ok(page.and_then(|page| page.at(index)).map(|(item, prompt)| StoredQuestion { item: item.clone(), prompt }))
    }

    /// Returns the question at this index if it belongs to the row, with the prompt only if it was rendered.
    pub fn of_sample(&mut self, index: usize, sample: &Sample) -> Result<Option<StoredQuestion>, RunError> {
        let question = self.at(index)?.filter(|question| question.item.id == sample.item);
        Ok(question.map(|question| match sample.prompt_sha256.is_empty() {
            true => StoredQuestion { prompt: None, ..question },
            false => question,
        }))
    }

    /// Returns all questions in the suite's order.
    pub fn all(self) -> impl Iterator<Item = Result<StoredQuestion, RunError>> {
        let (numbers, failed) = match self.store.packs(&self.run) {
            Ok(numbers) => (numbers, None),
            Err(error) => (BTreeMap::new(), Some(Err(error))),
        };
        let questions = numbers.into_keys().flat_map(move |number| match self.store.page(&self.run, number) {
            Ok(page) => page.iter().flat_map(Page::entries).map(|entry| Ok(entry.into())).collect(),
            Err(error) => vec![Err(error)],
        });
        failed.into_iter().chain(questions)
    }
}

/// Items of a run in the order of its plan, read a pack at a time from a file of their own.
pub struct StoredItems {
    store: Store,
    run: RunRecord,
    /// Numbers of the packs that are left, the last one first.
    packs: Vec<usize>,
    page: std::vec::IntoIter<Item>,
}

impl StoredItems {
    /// Opens the run's file again, so that the items can be read while it is written.
    pub fn open(results: &Path, run: &RunRecord) -> Result<Self, RunError> {
        let store = Store::open(results)?;
        let packs = store.packs(run)?.into_keys().rev().collect();
        Ok(StoredItems { store, run: run.clone(), packs, page: Vec::new().into_iter() })
    }
}

impl Iterator for StoredItems {
    type Item = Result<Item, RunError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(item) = self.page.next() {
                return Some(Ok(item));
            }
            match self.store.page(&self.run, self.packs.pop()?) {
                Ok(page) => self.page = page.into_iter().flat_map(Page::into_items).collect::<Vec<_>>().into_iter(),
                Err(error) => return Some(Err(error)),
            }
        }
    }
}

/// Returns the seal of a run's link to a pack. Contents are compared with their digests when they are opened.
fn seal_of(pack: &Pack) -> i64 {
    let prompts = pack.prompts.as_ref().map_or(ValueRef::Null, |prompts| ValueRef::Blob(&prompts.sha256));
    let [number, items] = [pack.number, pack.items].map(|count| ValueRef::Integer(count as i64));
    seal([number, items, ValueRef::Blob(&pack.questions.sha256), prompts])
}

impl Store {
    pub fn questions(&self, run: &RunRecord) -> StoredQuestions<'_> {
        let samples = run.manifest.settings.samples.max(1) as usize;
        StoredQuestions { store: self, run: run.clone(), samples, last: None }
    }

    /// True if the question of every row is stored.
    pub fn has_questions(&self, run: &RunRecord) -> Result<bool, RunError> {
        let packs = self.packs(run)?;
        let samples = run.manifest.settings.samples.max(1) as usize;
        let read = || -> rusqlite::Result<bool> {
            let sql = "SELECT DISTINCT (key - ?1) / ?3 FROM samples WHERE key >= ?1 AND key < ?2";
            let mut statement = self.connection().prepare_cached(sql)?;
            let range = params![key(run.id, 0), key(run.id + 1, 0), (samples * PACK_ITEMS) as i64];
            let mut numbers = statement.query_map(range, |row| row.get::<_, i64>(0))?;
            let known = |number: i64| usize::try_from(number).is_ok_and(|number| packs.contains_key(&number));
            numbers.try_fold(true, |whole, number| Ok(whole && known(number?)))
        };
        read().map_err(|source| self.error("read", source))
    }

    /// Returns ranges of the plan, in its order, outside of which no question has a text, so that only these need to be read; the whole plan
    /// where not all questions are stored.
    pub fn ranges_asking(&self, run: &RunRecord, text: &str) -> Result<Vec<Range<usize>>, RunError> {
        if !self.has_questions(run)? {
            return Ok(iter::once(0..PLAN_END).collect());
        }
        let samples = run.manifest.settings.samples.max(1) as usize;
        let mut ranges = Vec::new();
        let numbers: Vec<usize> = self.packs(run)?.into_keys().collect();
        for numbers in numbers.chunks(PACKS_AT_ONCE) {
            let packs = numbers.iter().map(|number| self.pack(run, *number)).collect::<Result<Vec<_>, _>>()?;
            let found: Vec<Option<Result<bool, PackDamage>>> =
                packs.par_iter().map(|pack| Some(pack.as_ref()?.questions.has(text))).collect();
            for (number, found) in numbers.iter().zip(found) {
                let found = found.unwrap_or(Ok(false));
                if found.map_err(|damage| self.unreadable_questions(run, damage.to_string()))? {
                    let start = number * PACK_ITEMS * samples;
                    ranges.push(start..start + PACK_ITEMS * samples);
                }
            }
        }
        Ok(ranges)
    }

    /// Stores the questions at these indices in the plan, with their neighbours of the same pack, for a run whose prompts are
    /// unknown, such as an imported one.
    pub fn keep_questions(
        &self,
        run: &RunRecord,
        suite: &Suite,
        indices: impl Iterator<Item = usize>,
    ) -> Result<(), RunError> {
        let plan = run.manifest.plan();
        let samples = plan.samples.max(1) as usize;
        let numbers: BTreeSet<usize> = indices.map(|index| index / samples / PACK_ITEMS).collect();
        let Some(last) = numbers.last() else { return Ok(()) };
        let mut entries: Vec<Entry> = Vec::new();
        for (index, item) in plan.asked(suite).take_while(|(index, _)| index / PACK_ITEMS <= *last) {
            if !numbers.contains(&(index / PACK_ITEMS)) {
                continue;
            }
            if entries.first().is_some_and(|first| first.index / PACK_ITEMS != index / PACK_ITEMS) {
                self.keep_pack(run, &std::mem::take(&mut entries))?;
            }
            entries.push(Entry { index, item, prompt: None });
        }
        self.keep_pack(run, &entries)
    }

    fn keep_pack(&self, run: &RunRecord, entries: &[Entry]) -> Result<(), RunError> {
        let Some(first) = entries.first() else { return Ok(()) };
        self.write_pack(run, &Pack::of(first.index / PACK_ITEMS, entries))
    }

    fn write_pack(&self, run: &RunRecord, pack: &Pack) -> Result<(), RunError> {
        let write = || -> rusqlite::Result<()> {
            let transaction = self.transaction()?;
            self.insert_pack(run.id, pack)?;
            transaction.map_or(Ok(()), Transaction::commit)
        };
        write().map_err(|source| self.error("write", source))
    }

    /// Copies the questions and prompts of a run to one with the same settings; packs that are incomplete in both are merged.
    pub fn copy_questions(&self, from: &Store, run: &RunRecord, target: &RunRecord) -> Result<(), RunError> {
        let mine = self.packs(target)?;
        for (number, items) in from.packs(run)? {
            let Some(mut pack) = from.pack(run, number)? else { continue };
            if mine.contains_key(&number) {
                let mut entries: BTreeMap<usize, Entry> = BTreeMap::new();
                for page in [self.page(target, number)?, from.page(run, number)?].into_iter().flatten() {
                    entries.extend(page.entries().map(|entry| (entry.index, entry)));
                }
                if entries.len() == mine[&number] {
                    continue;
                }
                if entries.len() > items {
                    pack = Pack::of(number, &entries.into_values().collect::<Vec<_>>());
                }
            }
            self.write_pack(target, &pack)?;
        }
        Ok(())
    }

    /// Returns the number of items in each pack of a run, by number of the pack.
    pub(crate) fn packs(&self, run: &RunRecord) -> Result<BTreeMap<usize, usize>, RunError> {
        let read = || -> rusqlite::Result<BTreeMap<usize, usize>> {
            let mut statement =
                self.connection().prepare_cached("SELECT key, items FROM asked WHERE key >= ? AND key < ?")?;
            let count = |number: i64| usize::try_from(number).unwrap_or(0);
            let rows = statement.query_map([key(run.id, 0), key(run.id + 1, 0)], |row| {
                Ok((count(row.get::<_, i64>(0)? - key(run.id, 0)), count(row.get(1)?)))
            })?;
            rows.collect()
        };
        read().map_err(|source| self.error("read", source))
    }

    /// Writes a pack within the caller's transaction; replaces the run's pack of the same number.
    pub(super) fn insert_pack(&self, run: i64, pack: &Pack) -> rusqlite::Result<()> {
        let questions = self.insert_once(&pack.questions)?;
        let prompts = pack.prompts.as_ref().map(|prompts| self.insert_once(prompts)).transpose()?;
        self.connection()
            .prepare_cached(
                "INSERT OR REPLACE INTO asked (key, items, questions, prompts, seal) VALUES (?, ?, ?, ?, ?)",
            )?
            .execute(params![key(run, pack.number), pack.items as i64, questions, prompts, seal_of(pack)])
            .map(drop)
    }

    /// Returns the id of this content, written unless another run has it.
    fn insert_once(&self, packed: &Packed) -> rusqlite::Result<i64> {
        let mut known = self.connection().prepare_cached("SELECT id FROM packs WHERE sha256 = ?")?;
        if let Some(id) = known.query_row([packed.sha256], |row| row.get(0)).optional()? {
            return Ok(id);
        }
        let mut insert = self.connection().prepare_cached("INSERT INTO packs (sha256, content) VALUES (?, ?)")?;
        insert.insert(params![packed.sha256, packed.bytes])
    }

    /// Deletes packs that no run uses.
    pub(super) fn drop_unused_packs(&self) -> rusqlite::Result<()> {
        let sql = "DELETE FROM packs WHERE id NOT IN (SELECT questions FROM asked UNION SELECT prompts FROM asked \
                   WHERE prompts IS NOT NULL)";
        self.connection().execute(sql, []).map(drop)
    }

    fn page(&self, run: &RunRecord, number: usize) -> Result<Option<Page>, RunError> {
        let Some(pack) = self.pack(run, number)? else { return Ok(None) };
        let page = Page::open(number, &pack.questions, pack.prompts.as_ref());
        page.map(Some).map_err(|damage| self.unreadable_questions(run, damage.to_string()))
    }

    fn pack(&self, run: &RunRecord, number: usize) -> Result<Option<Pack>, RunError> {
        // None inside for a pack that the run has and the file lacks.
        type Sealed = (Pack, Option<i64>);
        let read = || -> rusqlite::Result<Option<Option<Sealed>>> {
            let mut statement = self.connection().prepare_cached(
                "SELECT a.items, q.sha256, q.content, p.sha256, p.content, a.prompts, a.seal FROM asked a \
                 LEFT JOIN packs q ON q.id = a.questions LEFT JOIN packs p ON p.id = a.prompts WHERE a.key = ?",
            )?;
            let pack = |row: &rusqlite::Row<'_>| {
                let part = |index: usize| -> rusqlite::Result<Option<Packed>> {
                    let Some(sha256) = row.get::<_, Option<[u8; 32]>>(index)? else { return Ok(None) };
                    Ok(Some(Packed { sha256, bytes: row.get(index + 1)? }))
                };
                let (questions, prompts) = (part(1)?, part(3)?);
                let lacks_prompts = prompts.is_none() && row.get::<_, Option<i64>>(5)?.is_some();
                let items = usize::try_from(row.get::<_, i64>(0)?).unwrap_or(0);
                let seal: Option<i64> = row.get(6)?;
                let pack = questions.map(|questions| Pack { number, items, questions, prompts });
                Ok(pack.filter(|_| !lacks_prompts).map(|pack| (pack, seal)))
            };
            statement.query_row([key(run.id, number)], pack).optional()
        };
        match read().map_err(|source| self.error("read", source))? {
            None => Ok(None),
            Some(Some((pack, seal))) if seal == Some(seal_of(&pack)) => Ok(Some(pack)),
            Some(Some(_)) => Err(self.edited(run, format!("the link to the questions of pack {number}"))),
            Some(None) => Err(self.unreadable_questions(run, format!("pack {number} is missing from the file"))),
        }
    }

    fn unreadable_questions(&self, run: &RunRecord, reason: String) -> RunError {
        let run = run.manifest.run.clone();
        RunError::Unreadable { part: "the questions", path: self.path().to_owned(), run, reason }
    }
}
