//! Memory of keys and values on the CPU: the layout of a block, and the storage of all blocks.

mod layout;
mod store;

pub(crate) use layout::{BlockLayout, CacheLayout, CacheType, KEY_GROUP, VALUE_PANEL};
pub(crate) use store::KvStore;
