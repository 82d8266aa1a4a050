//! Questions of a suite, and lists of them.
use super::{Chooser, Item};

/// Questions with exact answers, in an order that does not change.
pub trait Items: Send + Sync {
    /// The items, lazily and always the same for the same options. `--limit N` is `take(N)`, so any beginning of the sequence is a small
    /// picture of the whole: items come round-robin over tasks, and of each task in an order that spreads over its lengths.
    fn iter(&self) -> Box<dyn Iterator<Item = Item> + Send + '_>;

    /// Reason for the items having ended before their number: a file that could not be read to its end. None before that.
    fn unread(&self) -> Option<String> {
        None
    }

    /// Number of items.
    fn len(&self) -> usize;

    /// True if there are none.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Chooser of the items, where later ones depend on the scores of earlier ones; [`Items::iter`] are then those of its first round.
    fn chooser(&self) -> Option<Box<dyn Chooser + '_>> {
        None
    }
}

/// Items in memory.
#[derive(Debug, Clone, Default)]
pub struct ItemList {
    pub items: Vec<Item>,
    /// Reason for there being no more, if they should be.
    pub unread: Option<String>,
}

impl Items for ItemList {
    fn iter(&self) -> Box<dyn Iterator<Item = Item> + Send + '_> {
        Box::new(self.items.iter().cloned())
    }

    fn unread(&self) -> Option<String> {
        self.unread.clone()
    }

    fn len(&self) -> usize {
        self.items.len()
    }
}
