//! Memory of what is about to be written: the rows that wait, and the documents of a pack, which is held as a whole.
use std::collections::BTreeMap;

use serde_json::Value;

use crate::fault::LogFault;
use crate::{LONGEST_SAMPLE_TEXT, LogError, memory_of};
use earnest_results::Sample;
use earnest_results::store::{BULK_ROWS, PACK_ITEMS, RunRecord, SampleWriter, Store};
use earnest_tasks::suite::Item;

/// Bytes of rows from which on they are written, however few they are.
const ROWS_BYTES: usize = 16 << 20;

/// Bytes of the prompts and questions of one pack. Beyond them prompts are left out, and questions cut to so many bytes.
const PACK_BYTES: usize = 160 << 20;
const CUT_QUESTION: usize = 10_000;
/// Bytes of what cannot be cut in a pack: ids, answers, choices, fields.
const PACK_FACTS: usize = 64 << 20;

/// Writer of rows that does not let many large ones wait.
pub(super) struct Rows<'a> {
    pub writer: SampleWriter<'a>,
    /// Bytes of the rows since the last ones were written for their size.
    bytes: usize,
}

impl<'a> Rows<'a> {
    pub fn of(store: &'a Store, run: &RunRecord) -> Self {
        Rows { writer: store.writer(run).batches_of(BULK_ROWS), bytes: 0 }
    }

    /// Adds the sample at this index in the plan.
    pub fn push(&mut self, index: usize, row: Sample) -> Result<(), LogError> {
        self.bytes += row_bytes(&row);
        self.writer.push(index, row)?;
        if self.bytes >= ROWS_BYTES {
            self.bytes = 0;
            self.writer.write()?;
        }
        Ok(())
    }
}

/// Estimated memory of a row in bytes.
fn row_bytes(row: &Sample) -> usize {
    let evidence = row.score.iter().map(|score| &score.evidence).map(|evidence| {
        let texts = evidence.repeats.iter().chain(evidence.explanations.values());
        let read = evidence.readings.values().flatten();
        texts.chain(read).map(String::len).sum::<usize>() + evidence.values.values().map(memory_of).sum::<usize>()
    });
    let completion = row.completion.as_ref().map_or(0, |completion| completion.text.len());
    let failure = row.failure.as_ref().map_or(0, |failure| failure.message.len());
    completion + failure + row.gold.len() + fields_bytes(&row.covariates) + evidence.sum::<usize>()
}

/// Estimated memory of covariates in bytes.
fn fields_bytes(fields: &BTreeMap<String, Value>) -> usize {
    fields.iter().map(|(name, value)| 120 + name.len() + memory_of(value)).sum()
}

#[derive(Debug, Default)]
pub(super) struct PackRoom {
    /// Bytes of questions and prompts, and of the other parts of the documents.
    texts: usize,
    facts: usize,
    /// Documents whose prompts were left out, and those whose questions were cut.
    pub without_prompt: usize,
    pub cut_questions: usize,
}

impl PackRoom {
    /// Begins another pack.
    pub fn empty(&mut self) {
        (self.texts, self.facts) = (0, 0);
    }

    /// Returns the prompt, if there is room for it; a question for which there is none is cut.
    ///
    /// # Errors
    /// The reason, where there is no room for the rest of the document.
    pub fn fit(&mut self, item: &mut Item, prompt: Option<String>) -> Result<Option<String>, LogFault> {
        let continuations: usize = item.continuations.iter().map(|text| 24 + text.len()).sum();
        self.facts += item.gold.len() + item.id.len() + continuations + fields_bytes(&item.covariates);
        if self.facts > PACK_FACTS {
            let id = item.id.chars().take(60).collect();
            return Err(LogFault::FullPack { documents: PACK_ITEMS, id, mib: PACK_FACTS >> 20 });
        }
        let question = &mut item.segments.question;
        let is_too_long = |texts: usize, text: &str| {
            text.len() > LONGEST_SAMPLE_TEXT || text.len() > CUT_QUESTION && texts + text.len() > PACK_BYTES
        };
        if is_too_long(self.texts, question) {
            question.truncate(question.floor_char_boundary(CUT_QUESTION));
            question.push_str("...");
            // Its memory would be kept with the pack otherwise.
            question.shrink_to_fit();
            self.cut_questions += 1;
        }
        self.texts += question.len();
        if prompt.as_ref().is_some_and(|prompt| is_too_long(self.texts, prompt)) {
            self.without_prompt += 1;
            return Ok(None);
        }
        self.texts += prompt.as_ref().map_or(0, String::len);
        Ok(prompt)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pack_has_room_for_so_much() {
        let mut room = PackRoom { texts: PACK_BYTES - 30_000, ..PackRoom::default() };
        let mut fit = |question: usize, prompt: usize| {
            let mut item = Item::plain("i", "t", "q".repeat(question), "g");
            let prompt = room.fit(&mut item, Some("p".repeat(prompt))).unwrap();
            (item.segments.question.len(), prompt.map(|prompt| prompt.len()))
        };
        assert_eq!(fit(10, 10), (10, Some(10)));
        assert_eq!(fit(10, 40_000), (10, None));
        assert_eq!(fit(40_000, 10), (10_003, Some(10)));
        assert_eq!((room.without_prompt, room.cut_questions), (1, 1));
        room.empty();
        let mut item = Item::plain("i", "t", "q".repeat(40_000), "g");
        assert_eq!(room.fit(&mut item, None).unwrap(), None);
        assert_eq!(item.segments.question.len(), 40_000);
        let mut item = Item::plain("i", "t", "q".repeat(LONGEST_SAMPLE_TEXT + 1), "g");
        assert_eq!(room.fit(&mut item, Some("p".repeat(LONGEST_SAMPLE_TEXT + 1))).unwrap(), None);
        assert_eq!((item.segments.question.len(), room.without_prompt, room.cut_questions), (10_003, 2, 2));
        room.facts = PACK_FACTS;
        assert!(room.fit(&mut item, None).unwrap_err().to_string().contains("before i take more than 64 MiB"));
    }
}
