//! Packs: compressed questions and prompts of neighbouring items.

mod prompts;
mod questions;
mod skeleton;

use std::io::{self, BufWriter, Read, Write};

use flate2::Compression;
use flate2::read::DeflateDecoder;
use flate2::write::DeflateEncoder;
use serde::Serialize;
use serde::de::DeserializeOwned;
use sha2::{Digest, Sha256};

use earnest_tasks::suite::Item;
use prompts::Prompts;
use questions::Questions;

/// Items per pack: enough that shared examples cost nothing, few enough that a pack is read in a millisecond.
pub const PACK_ITEMS: usize = 512;

/// Compression level that keeps up with bulk writing; the highest one saves 5 % more.
const LEVEL: u32 = 4;

/// Questions and prompts of a run's items `number * PACK_ITEMS ..`.
#[derive(Debug, Clone)]
pub struct Pack {
    /// Number of the pack within the run.
    pub(super) number: usize,
    /// Number of items: fewer than [`PACK_ITEMS`] at the end of a run and in parts of it.
    pub(super) items: usize,
    pub(super) questions: Packed,
    /// None if the prompts are unknown.
    pub(super) prompts: Option<Packed>,
}

/// Bytes that are compressed at a time, so that the text of a pack is never held as a whole.
const PIECE: usize = 1 << 18;

/// Digest and compression of a text as it is written.
#[derive(Debug)]
struct Packing {
    digest: Sha256,
    encoder: DeflateEncoder<Vec<u8>>,
}

impl Write for Packing {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.encoder.write_all(bytes)?;
        self.digest.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Compressed content and its digest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Packed {
    /// SHA-256 of the content before compression.
    pub(super) sha256: [u8; 32],
    pub(super) bytes: Vec<u8>,
}

/// An item of a pack.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    /// Index of the item in the suite's order, from 0.
    pub index: usize,
    pub item: Item,
    /// Text of the prompt.
    pub prompt: Option<String>,
}

impl Pack {
    /// Returns the number of the pack.
    pub fn number(&self) -> usize {
        self.number
    }

    /// Packs items in ascending order of their indices.
    pub fn of(number: usize, entries: &[Entry]) -> Self {
        // One after the other: each is another copy of the texts.
        let questions = Packed::of(&Questions::of(entries));
        let prompts = Prompts::of(entries).map(|prompts| Packed::of(&prompts));
        Pack { number, items: entries.len(), questions, prompts }
    }
}

/// Damage of a pack.
#[derive(Debug, thiserror::Error)]
pub(super) enum PackDamage {
    #[error(transparent)]
    Compression(#[from] io::Error),
    #[error("its digest does not match")]
    Digest,
    #[error(transparent)]
    Json(#[from] serde_json::Error),
    #[error("its columns differ in length")]
    Columns,
    #[error("it lacks what is around a question")]
    Frame,
    #[error("it lacks a piece of a prompt")]
    Piece,
}

/// A decompressed pack; prompts are assembled on demand.
#[derive(Debug)]
pub(super) struct Page {
    items: Vec<(usize, Item)>,
    prompts: Option<Prompts>,
}

impl Page {
    /// Unpacks [`Pack::of`].
    ///
    /// # Errors
    /// The damage.
    pub fn open(number: usize, questions: &Packed, prompts: Option<&Packed>) -> Result<Self, PackDamage> {
        let items = questions.content::<Questions>()?.items(number)?;
        let prompts = prompts.map(Packed::content::<Prompts>).transpose()?;
        Ok(Page { items, prompts })
    }

    /// Returns the item at this index in the suite's order, with its prompt.
    pub(super) fn at(&self, position: usize) -> Option<(&Item, Option<String>)> {
        let index = self.items.binary_search_by_key(&position, |(position, _)| *position).ok()?;
        let item = &self.items[index].1;
        let prompt = self.prompts.as_ref().and_then(|prompts| prompts.of_item(position % PACK_ITEMS, item));
        Some((item, prompt))
    }

    /// Returns the items without their prompts.
    pub(super) fn into_items(self) -> impl Iterator<Item = Item> {
        self.items.into_iter().map(|(_, item)| item)
    }

    /// Returns all entries.
    pub(super) fn entries(&self) -> impl Iterator<Item = Entry> {
        let prompt = |index: usize, item: &Item| self.prompts.as_ref()?.of_item(index % PACK_ITEMS, item);
        self.items.iter().map(move |(index, item)| Entry {
            index: *index,
            item: item.clone(),
            prompt: prompt(*index, item),
        })
    }
}

impl Packed {
    fn of(content: &impl Serialize) -> Self {
        let encoder = DeflateEncoder::new(Vec::new(), Compression::new(LEVEL));
        let mut json = BufWriter::with_capacity(PIECE, Packing { digest: Sha256::new(), encoder });
        serde_json::to_writer(&mut json, content).expect("questions have string keys only, so they serialise");
        let Packing { digest, encoder } = json.into_inner().expect("writing to a Vec cannot fail");
        let bytes = encoder.finish().expect("writing to a Vec cannot fail");
        Packed { sha256: digest.finalize().into(), bytes }
    }

    /// Decompresses the content and checks its digest.
    fn content<T: DeserializeOwned>(&self) -> Result<T, PackDamage> {
        Ok(serde_json::from_slice(&self.json()?)?)
    }

    fn json(&self) -> Result<Vec<u8>, PackDamage> {
        let mut json = Vec::new();
        DeflateDecoder::new(self.bytes.as_slice()).read_to_end(&mut json)?;
        if earnest_digest::sha256(&json) != self.sha256 {
            return Err(PackDamage::Digest);
        }
        Ok(json)
    }

    /// True if a text stands in the content; false only where none of its strings has it.
    pub(super) fn has(&self, text: &str) -> Result<bool, PackDamage> {
        let written = serde_json::to_string(text)?;
        let json = self.json()?;
        Ok(String::from_utf8_lossy(&json).contains(&written[1..written.len() - 1]))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use earnest_tasks::suite::{Budget, Segments, Shot};

    use super::*;

    fn entry(index: usize) -> Entry {
        let shots =
            (0..8).map(|n| Shot { question: format!("{n} + {n} = ?\n"), answer: (2 * n).to_string() }).collect();
        let question = format!("\"{index}\" \u{1f600}\t+ 1 = ?");
        let segments = Segments { system: Some("Add.".into()), shots, ..Segments::question(question) };
        let turns: String =
            segments.shots.iter().map(|shot| format!("<u>{}<a>{}", shot.question.trim(), shot.answer)).collect();
        let prompt = format!("<s>Add.{turns}<u>{}<a>", segments.question);
        let covariates = BTreeMap::from([("length".to_owned(), index.into()), ("x".to_owned(), 0.1.into())]);
        let item = Item {
            id: format!("sums/{index}"),
            task: ["small", "large"][index % 2].into(),
            cluster: format!("c{}", index / 4),
            covariates,
            segments,
            gold: (index + 1).to_string(),
            budget: Budget { answer: index, thinking: 10 },
            stop_strings: vec!["\n".into()],
            keep_stop: index.is_multiple_of(3),
            continuations: (0..index % 3).map(|choice| format!(" {choice}")).collect(),
        };
        Entry { index, item, prompt: (!index.is_multiple_of(5)).then_some(prompt) }
    }

    #[test]
    fn items_and_prompts_come_back_from_few_bytes() {
        let entries: Vec<Entry> =
            (PACK_ITEMS..2 * PACK_ITEMS).filter(|index| !index.is_multiple_of(7)).map(entry).collect();
        let pack = Pack::of(1, &entries);
        let page = Page::open(1, &pack.questions, pack.prompts.as_ref()).unwrap();
        assert_eq!(page.entries().collect::<Vec<_>>(), entries);
        let (item, prompt) = page.at(PACK_ITEMS).unwrap();
        assert_eq!((item, prompt), (&entries[0].item, entries[0].prompt.clone()));
        assert!(page.at(7 * 80).is_none() && page.at(0).is_none());
        let prompts: usize = entries.iter().filter_map(|entry| entry.prompt.as_ref()).map(String::len).sum();
        let packed = pack.prompts.as_ref().unwrap().bytes.len();
        assert!(packed < prompts / 50, "{packed} bytes of {prompts}");
        assert!(pack.questions.bytes.len() < 40 * entries.len(), "{} bytes", pack.questions.bytes.len());
        assert_eq!(Pack::of(1, &entries).questions, pack.questions);
    }

    #[test]
    fn hidden_numbers_come_back() {
        let entries: Vec<Entry> = (0..4)
            .map(|index| {
                let mut entry = entry(index);
                entry.item.segments.unmasked = index.is_multiple_of(2).then(|| format!("{index} apples"));
                entry
            })
            .collect();
        let pack = Pack::of(0, &entries);
        let page = Page::open(0, &pack.questions, pack.prompts.as_ref()).unwrap();
        assert_eq!(page.entries().collect::<Vec<_>>(), entries);
    }

    #[test]
    fn damage_is_noticed() {
        let pack = Pack::of(0, &[entry(1)]);
        let cut = Packed { bytes: pack.questions.bytes[..20].to_vec(), ..pack.questions.clone() };
        let other = Packed { sha256: [0; 32], ..pack.questions.clone() };
        for damaged in [cut, other] {
            assert!(Page::open(0, &damaged, None).is_err());
        }
        assert!(Page::open(0, &pack.questions, Some(&pack.questions)).is_err(), "questions are no prompts");
        assert!(Page::open(0, &pack.questions, None).unwrap().at(1).unwrap().1.is_none());
    }
}
