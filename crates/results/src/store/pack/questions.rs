//! Items of a pack, by column, with shared parts stored once.
use std::collections::{BTreeMap, HashMap};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::skeleton::{Pieces, Skeleton};
use super::{Entry, PACK_ITEMS, PackDamage};
use earnest_tasks::suite::registry::Mode;
use earnest_tasks::suite::{Budget, Item, Segments, Shot};

/// Columns of items, with one entry per item except for [`Questions::frames`].
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Questions {
    /// Slots in the pack.
    slots: Vec<usize>,
    ids: Vec<String>,
    tasks: Vec<String>,
    clusters: Vec<String>,
    /// Token budgets: answer, thinking.
    budgets: Vec<[usize; 2]>,
    /// Frame of each item, by index.
    framed: Vec<usize>,
    /// Parts that items share.
    frames: Vec<Frame>,
    /// Question, expected answer and covariates, together because they repeat each other's digits.
    texts: Vec<(String, String, BTreeMap<String, Value>)>,
    /// [`Segments::unmasked`] by index of the item.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    unmasked: BTreeMap<usize, String>,
    /// [`Item::continuations`] by index of the item.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    continuations: BTreeMap<usize, Vec<String>>,
}

/// Prompt parts and stop strings around a question.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
struct Frame {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    system: Option<String>,
    /// Questions and answers of worked examples.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    shots: Vec<(String, String)>,
    /// Prescribed raw text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    raw: Option<Skeleton>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    stop_strings: Vec<String>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    keep_stop: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    thinking: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    mode: Option<Mode>,
}

impl Frame {
    fn of(item: &Item) -> Self {
        let segments = &item.segments;
        Frame {
            system: segments.system.clone(),
            shots: segments.shots.iter().map(|shot| (shot.question.clone(), shot.answer.clone())).collect(),
            raw: segments.raw.as_ref().map(|raw| Skeleton::of(raw, &Pieces::of_raw(segments))),
            stop_strings: item.stop_strings.clone(),
            keep_stop: item.keep_stop,
            thinking: segments.thinking,
            mode: segments.mode,
        }
    }

    fn segments(&self, question: String, unmasked: Option<String>) -> Option<Segments> {
        let shots = self.shots.iter().cloned().map(|(question, answer)| Shot { question, answer }).collect();
        let (thinking, mode) = (self.thinking, self.mode);
        let mut segments =
            Segments { system: self.system.clone(), shots, question, raw: None, unmasked, thinking, mode };
        if let Some(raw) = &self.raw {
            segments.raw = Some(raw.text(&Pieces::of_raw(&segments))?);
        }
        Some(segments)
    }
}

impl Questions {
    pub(super) fn of(entries: &[Entry]) -> Self {
        let mut columns = Questions::default();
        let mut known: HashMap<Frame, usize> = HashMap::new();
        for Entry { index, item, .. } in entries {
            let next = known.len();
            let frame = *known.entry(Frame::of(item)).or_insert_with_key(|frame| {
                columns.frames.push(frame.clone());
                next
            });
            let unmasked = item.segments.unmasked.clone();
            columns.unmasked.extend(unmasked.map(|text| (columns.slots.len(), text)));
            if !item.continuations.is_empty() {
                columns.continuations.insert(columns.slots.len(), item.continuations.clone());
            }
            columns.slots.push(index % PACK_ITEMS);
            columns.ids.push(item.id.clone());
            columns.tasks.push(item.task.clone());
            columns.clusters.push(item.cluster.clone());
            columns.budgets.push([item.budget.answer, item.budget.thinking]);
            columns.framed.push(frame);
            columns.texts.push((item.segments.question.clone(), item.gold.clone(), item.covariates.clone()));
        }
        columns
    }

    /// Returns the items with their indices in the suite's order.
    pub(super) fn items(mut self, number: usize) -> Result<Vec<(usize, Item)>, PackDamage> {
        let count = self.slots.len();
        let columns = [
            self.ids.len(),
            self.tasks.len(),
            self.clusters.len(),
            self.budgets.len(),
            self.framed.len(),
            self.texts.len(),
        ];
        if columns.iter().any(|&column| column != count) {
            return Err(PackDamage::Columns);
        }
        let indices = self.slots.into_iter().map(|slot| number * PACK_ITEMS + slot);
        let names = self.ids.into_iter().zip(self.tasks).zip(self.clusters);
        let frames = self.framed.into_iter().map(|frame| self.frames.get(frame)).zip(self.budgets);
        let items = indices.zip(names).zip(frames).zip(self.texts);
        items
            .enumerate()
            .map(
                |(
                    at,
                    (((index, ((id, task), cluster)), (frame, [answer, thinking])), (question, gold, covariates)),
                )| {
                    let frame = frame.ok_or(PackDamage::Frame)?;
                    let segments = frame.segments(question, self.unmasked.remove(&at)).ok_or(PackDamage::Piece)?;
                    let budget = Budget { answer, thinking };
                    let (stop_strings, keep_stop) = (frame.stop_strings.clone(), frame.keep_stop);
                    let continuations = self.continuations.remove(&at).unwrap_or_default();
                    let item = Item {
                        id,
                        task,
                        cluster,
                        covariates,
                        segments,
                        gold,
                        budget,
                        stop_strings,
                        keep_stop,
                        continuations,
                    };
                    Ok((index, item))
                },
            )
            .collect()
    }
}
