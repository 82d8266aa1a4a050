//! Writing of a log as a run, in one transaction.
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;

use super::convert::{Converted, Converter, no_field};
use super::in_flight::{Held, InFlight, send_samples};
use super::settings::own_name;
use super::size::{PackRoom, Rows};
use crate::{Log, LogError, LogSample, Refused, some_of};
use earnest_results::store::{Entry, Filter, PACK_ITEMS, Pack, RunRecord, Store};
use earnest_results::{LogCard, LogSums, Sample};
use earnest_tasks::suite::{Item, Score, check_size};

/// Batches that wait between two threads.
const WAITING: usize = 1;
/// Counts of a written log.
#[derive(Default)]
pub(super) struct Written {
    pub items: usize,
    pub samples: usize,
    /// Documents with an id that an earlier one has.
    pub renamed: usize,
    /// Documents whose prompts were left out and whose questions were cut, because those of their neighbours are too long.
    pub without_prompt: usize,
    pub cut_questions: usize,
    /// Samples without a score by the deciding scorer, and those of them that failed in the tool.
    pub without_score: usize,
    pub failed: usize,
    /// Scorers of which a sample has a score.
    pub given: BTreeSet<String>,
    /// Samples with a completion and without an expected answer, and those with one.
    pub without_answer: usize,
    pub with_answer: usize,
    /// Documents that say to which cluster they belong, those that do not, and the first of these.
    pub labelled: usize,
    pub without_label: usize,
    first_without: Option<Item>,
    /// Scorers that gave texts which are no number, each with the first one.
    pub texts: BTreeMap<String, String>,
    pub refused: Refused,
    /// Sums over the samples; none where a scorer's numbers were changed afterwards.
    pub sums: Option<LogSums>,
}

/// Reason for a log not having been written.
#[derive(Debug)]
pub(super) enum Unwritten {
    Error(LogError),
    /// A document has so many repeats, more than were planned.
    Repeats(u32),
}

impl<E: Into<LogError>> From<E> for Unwritten {
    fn from(error: E) -> Self {
        Unwritten::Error(error.into())
    }
}

/// Rows and questions that are ready to be written.
#[derive(Default)]
struct Batch<'b> {
    /// Index in the plan, row, and the memory that it holds until it is with the writer.
    rows: Vec<(usize, Sample, Held<'b>)>,
    packs: Vec<Pack>,
}

/// Reads, converts and writes the samples, each in a thread of its own; `samples` is the number of repeats that were planned.
pub(super) fn write(
    store: &Store,
    run: &RunRecord,
    log: &Log,
    converter: &Converter<'_>,
    samples: u32,
) -> Result<Written, Unwritten> {
    let (to_convert, read) = sync_channel(WAITING);
    let (to_write, converted) = sync_channel(WAITING);
    let budget = &InFlight::default();
    thread::scope(|scope| {
        let failed = |error| LogError::thread("import a log", error);
        let reader = move || send_samples(log, budget, to_convert);
        let reader = thread::Builder::new().spawn_scoped(scope, reader).map_err(failed)?;
        let packer = move || Placing::new(converter, samples).convert_all(read, &to_write);
        let packer = thread::Builder::new().spawn_scoped(scope, packer).map_err(failed)?;
        let mixed = store_batches(store, run, converted, samples);
        let placed = packer.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        let refused = reader.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        let ((kinds, sums), written, refused) = first_error(mixed, placed, refused)?;
        let changed = one_kind_each(store, run, &kinds)?;
        Ok(Written { sums: (!changed).then_some(sums), refused, ..written })
    })
}

/// The results of the threads, or the error of the one that stopped first: the others found their neighbour gone.
fn first_error(
    mixed: Result<(Kinds, LogSums), LogError>,
    placed: Result<Written, Unwritten>,
    refused: Result<Refused, LogError>,
) -> Result<((Kinds, LogSums), Written, Refused), Unwritten> {
    let is_gone = |error: &LogError| matches!(error, LogError::Gone);
    match (mixed, placed, refused) {
        (Ok(mixed), Ok(placed), Ok(refused)) => Ok((mixed, placed, refused)),
        (Err(error), ..) => Err(error.into()),
        (_, Err(error), Ok(_)) => Err(error),
        (_, Err(error), Err(gone)) if is_gone(&gone) => Err(error),
        (_, _, Err(error)) => Err(error.into()),
    }
}

/// True if a name is that of a scorer, or of one of its parts (`grades.form` of `grades`).
fn is_of(name: &str, scorer: &str) -> bool {
    name.strip_prefix(scorer).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

/// Scorers of a log's results by which no sample has a score.
pub(super) fn without_scores<'a>(card: &'a LogCard, given: &'a BTreeSet<String>) -> impl Iterator<Item = &'a String> {
    card.scorers.iter().filter(|scorer| !given.iter().any(|name| is_of(scorer, name)))
}

/// The error of a log whose samples have scores by none of the scorers of its results.
fn other_scorers(card: &LogCard, given: &BTreeSet<String>) -> LogError {
    let message = format!(
        "its results have scores by {}, but its samples by {}: it is a layout that is not known, or one of them was changed",
        some_of(card.scorers.iter()),
        some_of(given.iter())
    );
    LogError::unread(card.files.first().cloned().unwrap_or_default(), message).hint(
        "docs/logs.md has the layouts that are read; a table of the samples can be imported with the \
         setting `columns = id=...,score=...`",
    )
}

/// A document of the log.
struct Document {
    number: usize,
    /// Repeats that were read.
    repeats: Vec<u32>,
    /// Number of documents with its id.
    namesakes: u32,
}

/// Number after that in the name of a document that shares its id with others.
fn next_number(name: &str, id: &str) -> u32 {
    let number = name.strip_prefix(id).and_then(|rest| rest.strip_prefix('#')?.parse::<u32>().ok());
    number.map_or(2, |number| number + 1)
}

/// Assignment of indices in the plan: documents in the log's order, their repeats side by side.
struct Placing<'a> {
    converter: &'a Converter<'a>,
    samples: u32,
    /// Documents by the hash of their id.
    known: HashMap<u64, Document>,
    entries: Vec<Entry>,
    room: PackRoom,
    written: Written,
}

impl<'a> Placing<'a> {
    fn new(converter: &'a Converter<'a>, samples: u32) -> Self {
        Placing {
            converter,
            samples,
            known: HashMap::new(),
            entries: Vec::new(),
            room: PackRoom::default(),
            written: Written::default(),
        }
    }

    fn convert_all<'b>(
        mut self,
        read: Receiver<Vec<(LogSample, Held<'b>)>>,
        to: &SyncSender<Batch<'b>>,
    ) -> Result<Written, Unwritten> {
        let gone = |_| LogError::Gone;
        for samples in read {
            let mut batch = Batch::default();
            for (sample, held) in samples {
                self.put(sample, held, &mut batch)?;
            }
            to.send(batch).map_err(gone)?;
        }
        let mut rest = Batch::default();
        self.pack(&mut rest);
        to.send(rest).map_err(gone)?;
        if let (Some(field), 0, Some(first)) =
            (self.converter.cluster, self.written.labelled, self.written.first_without.take())
        {
            let card = self.converter.card;
            let file = card.files.first().map(|file| format!(" ({})", file.display())).unwrap_or_default();
            let thing = format!("the document {} of {}{file}", first.id, card.task);
            return Err(no_field(&thing, field, &first.covariates.into_iter().collect()).into());
        }
        let Written { given, .. } = &self.written;
        let card = self.converter.card;
        if !given.is_empty() && !card.scorers.is_empty() && without_scores(card, given).count() == card.scorers.len() {
            return Err(other_scorers(card, given).into());
        }
        (self.written.without_prompt, self.written.cut_questions) = (self.room.without_prompt, self.room.cut_questions);
        Ok(self.written)
    }

    /// Puts a sample into the batch that is written next.
    fn put<'b>(&mut self, sample: LogSample, held: Held<'b>, batch: &mut Batch<'b>) -> Result<(), Unwritten> {
        if sample.epoch >= self.samples {
            return Err(Unwritten::Repeats(sample.epoch.saturating_add(1)));
        }
        for score in sample.scores.iter().filter(|score| score.number().is_none()) {
            if let (Some(text), false) = (score.value.as_str(), self.written.texts.contains_key(&score.scorer)) {
                self.written.texts.insert(score.scorer.clone(), text.to_owned());
            }
        }
        let by_chosen = self.take_names(&sample);
        let (id, epoch) = (sample.id.clone(), sample.epoch);
        let Converted { mut item, prompt, sample: mut row, labelled } = self.converter.convert(sample);
        let (name, number, is_next) = self.document(&id, epoch);
        let place = || format!("the sample {id} with {} epochs", self.samples);
        check_size(place, &[number + 1, self.samples as usize]).map_err(LogError::from)?;
        if row.item != name {
            if !labelled {
                // With what marks it as its own.
                item.cluster = format!("{name}{}", &item.cluster[item.id.len()..]);
                row.cluster.clone_from(&item.cluster);
            }
            item.id.clone_from(&name);
            row.item = name;
        }
        if is_next {
            self.written.labelled += usize::from(labelled);
            self.written.without_label += usize::from(!labelled);
            if !labelled && self.written.first_without.is_none() {
                self.written.first_without = Some(item.clone());
            }
            if self.entries.len() == PACK_ITEMS {
                self.pack(batch);
            }
            let prompt = self.room.fit(&mut item, prompt).map_err(|reason| {
                LogError::unread(self.converter.card.files.first().cloned().unwrap_or_default(), reason)
            })?;
            self.entries.push(Entry { index: self.written.items, item, prompt });
            self.written.items += 1;
        }
        self.written.samples += 1;
        self.written.without_score += usize::from(row.score.is_none() || by_chosen == Some(false));
        self.written.failed += usize::from(row.failure.is_some());
        self.written.without_answer += usize::from(row.completion.is_some() && row.gold.is_empty());
        self.written.with_answer += usize::from(!row.gold.is_empty());
        batch.rows.push((number * self.samples as usize + row.sample as usize, row, held));
        Ok(())
    }

    /// Takes the names of the scorers that have a score of the sample; true if the deciding one is among them, none if there is none.
    fn take_names(&mut self, sample: &LogSample) -> Option<bool> {
        let Converter { card, deciding, .. } = self.converter;
        let mut by_chosen = false;
        for score in sample.scores.iter().filter(|score| !score.value.is_null()) {
            let (name, _) = own_name(card.tool, &score.scorer);
            by_chosen |= deciding.is_some_and(|deciding| is_of(deciding, name));
            if !self.written.given.contains(name) {
                self.written.given.insert(name.to_owned());
            }
        }
        deciding.filter(|_| !card.scorers.is_empty()).map(|_| by_chosen)
    }

    /// Id of the sample's document in the run, its number, and true for its first sample. A document that has this repeat already is
    /// another one with the same id, and gets a number.
    fn document(&mut self, id: &str, epoch: u32) -> (String, usize, bool) {
        let mut name = id.to_owned();
        loop {
            let mut hasher = DefaultHasher::new();
            name.hash(&mut hasher);
            match self.known.get_mut(&hasher.finish()) {
                None => {
                    // Without repeats there is nothing to remember of them.
                    let repeats = if self.samples > 1 { vec![epoch] } else { Vec::new() };
                    let number = self.written.items;
                    self.known.insert(hasher.finish(), Document { number, repeats, namesakes: 1 });
                    self.written.renamed += usize::from(name != id);
                    return (name, number, true);
                }
                Some(known) if self.samples > 1 && !known.repeats.contains(&epoch) => {
                    known.repeats.push(epoch);
                    return (name, known.number, false);
                }
                // A repeat of a namesake finds it under the same number.
                Some(known) => {
                    known.namesakes += 1;
                    let number = if self.samples > 1 { 2 } else { known.namesakes };
                    name = format!("{id}#{}", number.max(next_number(&name, id)));
                }
            }
        }
    }

    fn pack(&mut self, batch: &mut Batch<'_>) {
        self.room.empty();
        if let Some(first) = self.entries.first() {
            batch.packs.push(Pack::of(first.index / PACK_ITEMS, &self.entries));
            self.entries.clear();
        }
    }
}

/// Kinds of numbers that a scorer gave: right and wrong, and others.
type Kinds = BTreeMap<String, [bool; 2]>;

/// Writes what comes; returns the kinds of every scorer's numbers, and the sums.
fn store_batches(
    store: &Store,
    run: &RunRecord,
    batches: Receiver<Batch<'_>>,
    repeats: u32,
) -> Result<(Kinds, LogSums), LogError> {
    let mut sums = LogSums::new(repeats);
    let mut kinds = Kinds::new();
    let mut note = |score: &Score| {
        for (index, names) in
            [score.scorers.names().collect::<Vec<_>>(), score.metrics.names().collect()].into_iter().enumerate()
        {
            for name in names {
                match kinds.get_mut(name) {
                    Some(kinds) => kinds[index] = true,
                    None => drop(kinds.insert(name.to_owned(), [index == 0, index == 1])),
                }
            }
        }
    };
    let mut out = Rows::of(store, run);
    for Batch { rows, packs } in batches {
        packs.into_iter().for_each(|pack| out.writer.push_pack(pack));
        for (index, row, _held) in rows {
            row.score.iter().for_each(&mut note);
            sums.add(index, &row);
            out.push(index, row)?;
        }
    }
    out.writer.write()?;
    Ok((kinds, sums))
}

/// Makes metrics of scores that are fractions in other samples, so that a scorer is one thing throughout; returns true
/// if there were some.
fn one_kind_each(store: &Store, run: &RunRecord, kinds: &Kinds) -> Result<bool, LogError> {
    let mixed: Vec<&str> =
        kinds.iter().filter(|(_, kinds)| **kinds == [true, true]).map(|(name, _)| name.as_str()).collect();
    if mixed.is_empty() {
        return Ok(false);
    }
    let mut rows = Rows::of(store, run);
    for row in store.samples(run, Filter::default()).indexed() {
        let (index, mut row) = row?;
        let Some(score) = &mut row.score else { continue };
        let mut changed = false;
        for name in &mixed {
            if let Some(right) = score.scorers.remove(name) {
                score.metrics.insert(*name, f64::from(u8::from(right)));
                changed = true;
            }
        }
        if changed {
            rows.push(index, row)?;
        }
    }
    rows.writer.write()?;
    Ok(true)
}
