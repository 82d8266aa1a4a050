//! The KV cache: where keys and values live, who uses which block, and which prompts are already there.

mod layout;
mod pool;
mod prefix_tree;
mod store;

pub(crate) use layout::{BLOCK, BlockLayout, CacheType, KEY_GROUP, VALUE_PANEL};
pub(crate) use pool::BlockPool;
pub(crate) use prefix_tree::{Match, PrefixTree, Root, common_prefix};
pub(crate) use store::KvStore;
