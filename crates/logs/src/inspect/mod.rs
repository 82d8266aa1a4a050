//! Logs of Inspect: a JSON document, or a zip archive (`.eval`) with the document's header and an entry for every sample.

mod header;
mod sample;

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value};

use super::batches::in_order;
use super::bounded::Memory;
use super::fault::LogFault;
use super::json::{parse, parse_facts, parse_within};
use super::limits::Scorers;
use super::log::{Each, FindOptions, Log, Samples};
use super::records::{too_large, too_long};
use super::sample::LogSample;
use super::scan::{Scanner, Taken};
use super::zip::{Entry, EntryFault, Zip, leads_out, shown, unpack};
use crate::LogError;
use earnest_results::LogCard;
use header::{Declared, Header, check_results};
use sample::Record;

/// Samples of a JSON document.
#[derive(Debug)]
struct Document {
    path: PathBuf,
    longest: u64,
    /// Offset of the list of samples.
    samples: u64,
    order: HashMap<String, u64>,
}

/// Samples of an archive.
#[derive(Debug)]
struct Archive {
    path: PathBuf,
    longest: u64,
    /// Entries of samples in the order of the data set.
    entries: Vec<Entry>,
    order: HashMap<String, u64>,
}

/// True for an archive with the header of a log, also of an unfinished one.
pub(super) fn has_header(zip: &Zip) -> bool {
    zip.entry("header.json").or_else(|| zip.entry("_journal/start.json")).is_some()
}

fn order(header: &Header) -> HashMap<String, u64> {
    header.ids().into_iter().zip(0..).collect()
}

fn no_samples(path: &Path) -> LogError {
    LogError::unread(path, "the log has no samples")
        .hint("the tool writes them unless it is told not to: --log-samples")
}

/// The log in a JSON document.
pub(super) fn document(path: &Path, options: &FindOptions) -> Result<Log, LogError> {
    let mut scanner = Scanner::open(path)?;
    let mut members = Map::new();
    let (mut samples, mut results) = (None, None);
    let mut not_listed = false;
    let mut text = Vec::new();
    let memory = Memory::of_facts();
    scanner.step(b'{')?;
    while let Some(key) = scanner.key()? {
        match key.as_str() {
            "samples" => {
                scanner.peek()?;
                let offset = scanner.offset();
                // Empty lists and null are none.
                if scanner.peek()? == Some(b'[') {
                    scanner.step(b'[')?;
                    if scanner.element()? {
                        samples = Some(offset);
                        scanner.seek(offset)?;
                        scanner.skip()?;
                    }
                } else {
                    not_listed = scanner.peek()? != Some(b'n');
                    scanner.skip()?;
                }
            }
            key if !header::MEMBERS.contains(&key) => scanner.skip()?,
            _ => match scanner.value(&mut text, options.longest)? {
                Taken::TooLong(length) => {
                    return Err(LogError::unread_at(path, key, too_large(length, options.longest)));
                }
                // Apart, because an object of values does not keep the order of its members.
                Taken::Whole if key == "results" => results = Some(std::mem::take(&mut text)),
                Taken::Whole => {
                    let value =
                        parse_within(&text, &memory).map_err(|reason| LogError::unread_at(path, &key, reason))?;
                    members.insert(key, value);
                }
            },
        }
    }
    let declared = Declared { version: members.get("version").cloned().unwrap_or_default() };
    declared.check(path)?;
    let unknown = |error| declared.unknown(path, format!("its header is {}", LogFault::Json(error)));
    let mut header: Header = serde_json::from_value(members.into()).map_err(unknown)?;
    if let Some(text) = results {
        let results: Value = parse_facts(&text).map_err(|reason| LogError::unread_at(path, "results", reason))?;
        check_results(&results).map_err(|what| declared.unknown(path, what))?;
        header.results =
            parse_facts(&text).map_err(|reason| declared.unknown(path, format!("its `results` are {reason}")))?;
    }
    if not_listed {
        return Err(declared.unknown(path, "its `samples` are no list"));
    }
    let samples = samples.ok_or_else(|| no_samples(path))?;
    let mut card = header.card(path)?;
    card.files = vec![path.to_owned()];
    let source = Document { path: path.to_owned(), longest: options.longest, samples, order: order(&header) };
    source.check_scores(&header, path)?;
    finished(card, Box::new(source), options)
}

pub(super) fn archive(path: &Path, options: &FindOptions) -> Result<Log, LogError> {
    let mut zip = Zip::open(path)?;
    let start = zip.entry("header.json").or_else(|| zip.entry("_journal/start.json")).cloned();
    let Some(start) = start else {
        let what = "by its name it is an archive of Inspect, but it has neither header.json nor _journal/start.json: a layout that is not known";
        return Err(LogError::unread(path, what).hint(header::AGAIN));
    };
    let text = zip.read(&start, options.longest)?;
    let whole: Value = parse_facts(&text).map_err(|reason| LogError::unread_at(path, &start.name, reason))?;
    let declared = Declared { version: whole.get("version").cloned().unwrap_or_default() };
    declared.check(path)?;
    check_results(whole.get("results").unwrap_or(&Value::Null)).map_err(|what| declared.unknown(path, what))?;
    let mut header: Header =
        parse_facts(&text).map_err(|reason| declared.unknown(path, format!("its {} is {reason}", start.name)))?;
    drop((whole, text));
    if start.name != "header.json" && header.status.is_none() {
        header.status = Some("started".to_owned());
    }
    let order = order(&header);
    let mut entries: HashMap<&str, &Entry> = HashMap::new();
    for entry in &zip.entries {
        if entry.name.starts_with("samples/") && entry.name.ends_with(".json") || leads_out(&entry.name) {
            entries.insert(&entry.name, entry);
        }
    }
    let mut entries: Vec<Entry> = entries.into_values().cloned().collect();
    entries.sort_by_cached_key(|entry| {
        let name = entry.name.trim_start_matches("samples/").trim_end_matches(".json");
        let (id, epoch) = name.rsplit_once("_epoch_").unwrap_or((name, ""));
        (order.get(id).copied().unwrap_or(u64::MAX), id.to_owned(), epoch.parse::<u64>().unwrap_or(u64::MAX), entry.crc)
    });
    if entries.is_empty() {
        return Err(no_samples(path));
    }
    let mut card = header.card(path)?;
    if let Some(counted) = header.completed().filter(|counted| (entries.len() as u64) < *counted) {
        card.notes.push(format!(
            "the archive has {} of the {counted} samples that were completed: the others are missing",
            entries.len()
        ));
    }
    card.files = vec![path.to_owned()];
    let source = Archive { path: path.to_owned(), longest: options.longest, entries, order };
    source.check_scores(&header, path)?;
    finished(card, Box::new(source), options)
}

/// The log; scorers that the header does not name are those of the first sample that has scores.
fn finished(mut card: LogCard, source: Box<dyn Samples>, options: &FindOptions) -> Result<Log, LogError> {
    if card.scorers.is_empty() {
        let mut scorers = Scorers::default();
        let file = card.files.first().cloned().unwrap_or_default();
        source.walk(&card, &mut |sample| {
            let mut scores = sample.into_iter().flat_map(|sample| sample.scores);
            scores.try_for_each(|score| scorers.add(&score.scorer)).map_err(|reason| LogError::unread(&file, reason))
        })?;
        card.scorers = scorers.into_names();
    }
    Ok(Log { card, source, keep_going: options.keep_going })
}

fn read(text: &[u8], card: &LogCard, order: &HashMap<String, u64>) -> Result<LogSample, LogFault> {
    parse::<Record>(text)?.sample(card, order)
}

/// Texts of a log's samples, one after another.
trait Records {
    /// Reads every sample and hands on what is made of it.
    fn records<T: Send>(
        &self,
        read: &(dyn Fn(&[u8]) -> Result<T, LogFault> + Sync),
        each: &mut dyn FnMut(Result<T, LogError>) -> Result<(), LogError>,
    ) -> Result<(), LogError>;

    /// Checks where the samples have their scores; reads up to the first one with scores, of a log without scorers the first one.
    ///
    /// # Errors
    /// Scores in a layout that is not known, and results by scorers of which no sample that did not fail has a place for scores.
    fn check_scores(&self, header: &Header, path: &Path) -> Result<(), LogError> {
        let mut found = None;
        let walked = self.records(&|text| parse::<Record>(text), &mut |record| {
            // Walking the samples says what is wrong with one.
            let Some(has) = record.ok().and_then(|record| record.has_scores()) else { return Ok(()) };
            let last = has != Ok(false) || !header.has_scorers();
            found = Some(has);
            if last { Err(LogError::setting("the scores were found")) } else { Ok(()) }
        });
        match found {
            Some(Ok(true)) => Ok(()),
            Some(Err(what)) => Err(header.declared().unknown(path, format!("in its samples {what}"))),
            Some(Ok(false)) if header.has_scorers() => walked.and_then(|()| Err(header.no_scores(path))),
            Some(Ok(false)) => Ok(()),
            None => walked,
        }
    }
}

impl Records for Document {
    fn records<T: Send>(
        &self,
        read: &(dyn Fn(&[u8]) -> Result<T, LogFault> + Sync),
        each: &mut dyn FnMut(Result<T, LogError>) -> Result<(), LogError>,
    ) -> Result<(), LogError> {
        let mut scanner = Scanner::open(&self.path)?;
        scanner.seek(self.samples)?;
        scanner.step(b'[')?;
        let mut number = 0;
        let next = || {
            if !scanner.element()? {
                return Ok(None);
            }
            number += 1;
            let mut text = Vec::new();
            let taken = scanner.value(&mut text, self.longest)?;
            let size = text.len() as u64;
            Ok(Some(((number, taken, text), size)))
        };
        let parse = |(number, taken, text): (u64, Taken, Vec<u8>)| {
            let sample = match taken {
                Taken::TooLong(length) => Err(too_long(length, self.longest)),
                Taken::Whole => read(&text),
            };
            sample.map_err(|reason| LogError::unread_at(&self.path, format!("sample {number}"), reason))
        };
        in_order(next, parse, each)
    }
}

impl Samples for Document {
    fn walk(&self, card: &LogCard, each: Each<'_>) -> Result<(), LogError> {
        self.records(&|text| read(text, card, &self.order), each)
    }

    fn sha256(&self) -> Result<String, LogError> {
        earnest_digest::sha256_file(&self.path, |_| ()).map_err(|error| LogError::input(self.path.display(), error))
    }
}

impl Records for Archive {
    fn records<T: Send>(
        &self,
        read: &(dyn Fn(&[u8]) -> Result<T, LogFault> + Sync),
        each: &mut dyn FnMut(Result<T, LogError>) -> Result<(), LogError>,
    ) -> Result<(), LogError> {
        let mut zip = Zip::open(&self.path)?;
        let failed = |entry: &Entry, fault: &dyn std::fmt::Display| {
            LogError::unread_at(&self.path, format!("entry {}", shown(&entry.name)), fault)
        };
        let mut entries = self.entries.iter();
        let next = || {
            let Some(entry) = entries.next() else { return Ok(None) };
            let packed = match leads_out(&entry.name) {
                true => Err(failed(entry, &EntryFault::LeadsOut)),
                false => zip.packed(entry, self.longest),
            };
            Ok(Some(((entry, packed), entry.size.max(entry.packed).min(self.longest))))
        };
        let parse = |(entry, packed): (&Entry, Result<Vec<u8>, LogError>)| {
            let text = packed.and_then(|packed| unpack(packed, entry).map_err(|fault| failed(entry, &fault)))?;
            read(&text).map_err(|fault| failed(entry, &fault))
        };
        in_order(next, parse, each)
    }
}

impl Samples for Archive {
    fn walk(&self, card: &LogCard, each: Each<'_>) -> Result<(), LogError> {
        self.records(&|text| read(text, card, &self.order), each)
    }

    fn sha256(&self) -> Result<String, LogError> {
        // The same content has the same sums, however it is packed.
        let mut sums: Vec<String> =
            self.entries.iter().map(|one| format!("{} {} {:08x}\n", one.name, one.size, one.crc)).collect();
        sums.sort_unstable();
        Ok(earnest_digest::hex(&earnest_digest::sha256(sums.concat().as_bytes())))
    }
}
