//! Prompts of a pack.
use std::collections::HashMap;

use serde::{Deserialize, Serialize};

use super::skeleton::{Pieces, Skeleton};
use super::{Entry, PACK_ITEMS};
use earnest_tasks::suite::Item;

/// Prompts as skeletons around the pieces of their items.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Prompts {
    /// Slots of items with a prompt in the pack, ascending.
    slots: Vec<usize>,
    /// Skeleton of each, by index.
    framed: Vec<usize>,
    skeletons: Vec<Skeleton>,
}

impl Prompts {
    /// Packs the prompts; none if no item has one.
    pub(super) fn of(entries: &[Entry]) -> Option<Self> {
        let mut prompts = Prompts::default();
        let mut known: HashMap<Skeleton, usize> = HashMap::new();
        for Entry { index, item, prompt } in entries {
            let Some(prompt) = prompt else { continue };
            let next = known.len();
            let skeleton = Skeleton::of(prompt, &Pieces::of_prompt(&item.segments));
            let number = *known.entry(skeleton).or_insert_with_key(|skeleton| {
                prompts.skeletons.push(skeleton.clone());
                next
            });
            prompts.slots.push(index % PACK_ITEMS);
            prompts.framed.push(number);
        }
        (!prompts.slots.is_empty()).then_some(prompts)
    }

    /// Returns the prompt of the item at a slot of the pack.
    pub(super) fn of_item(&self, slot: usize, item: &Item) -> Option<String> {
        let index = self.slots.binary_search(&slot).ok()?;
        self.skeletons.get(*self.framed.get(index)?)?.text(&Pieces::of_prompt(&item.segments))
    }
}
