//! Prefix cache: prompts whose keys and values are in KV blocks, as a tree over token ids.
//!
//! A node is one block's worth of tokens after its parent's. Full nodes (32 tokens) are shared by reference; what is
//! left of a match inside a node is shared by copying positions, so a common prefix is never computed twice, whatever
//! its length. The tree holds a reference to each of its blocks; a block that nobody else uses can be evicted, leaves
//! first, the least recently used one first.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

use super::block_pool::{BLOCK_SIZE, BlockPool};

/// Rope factors of a sequence in long-rope models. Keys of the two sets must never meet, so each has a tree of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RopeFactors {
    /// For sequences within the original context, and all sequences of other models.
    Short,
    /// For sequences that may grow beyond it.
    Long,
}

/// Cached prefix of a prompt: blocks and token count.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Match {
    /// Full blocks, to be shared.
    pub(crate) blocks: Vec<usize>,
    /// A block whose first positions follow, and how many of them, to be copied.
    pub(crate) partial: Option<(usize, usize)>,
}

impl Match {
    /// Tokens covered.
    pub(crate) fn tokens(&self) -> usize {
        self.blocks.len() * BLOCK_SIZE + self.partial.map_or(0, |p| p.1)
    }
}

type NodeId = usize;

#[derive(Debug)]
struct Node {
    tokens: Vec<u32>,
    /// Block of the keys and values; none in the roots.
    block: Option<usize>,
    parent: NodeId,
    children: BTreeMap<Vec<u32>, NodeId>,
    last_used: u64,
}

/// Tree over the tokens of cached prompts, with a root for each [`RopeFactors`].
#[derive(Debug)]
pub(crate) struct PrefixTree {
    nodes: Vec<Option<Node>>,
    vacant: Vec<NodeId>,
    /// Leaves by age.
    leaves: BTreeSet<(u64, NodeId)>,
    clock: u64,
}

impl PrefixTree {
    pub(crate) fn new() -> PrefixTree {
        let root = |id| Some(Node { tokens: vec![], block: None, parent: id, children: BTreeMap::new(), last_used: 0 });
        PrefixTree { nodes: vec![root(0), root(1)], vacant: vec![], leaves: BTreeSet::new(), clock: 0 }
    }

    fn node(&self, id: NodeId) -> &Node {
        self.nodes[id].as_ref().expect("ids of removed nodes are not kept")
    }

    fn node_mut(&mut self, id: NodeId) -> &mut Node {
        self.nodes[id].as_mut().expect("ids of removed nodes are not kept")
    }

    /// Finds the longest cached prefix of `tokens` and marks it as used now. References are the caller's to add.
    pub(crate) fn find(&mut self, factors: RopeFactors, tokens: &[u32]) -> Match {
        self.clock += 1;
        let mut found = Match::default();
        let mut at = factors as usize;
        let mut rest = tokens;
        while rest.len() >= BLOCK_SIZE {
            let Some(&child) = self.node(at).children.get(&rest[..BLOCK_SIZE]) else { break };
            found.blocks.push(self.touch(child));
            at = child;
            rest = &rest[BLOCK_SIZE..];
        }
        if let Some((child, common)) = self.closest_child(at, &rest[..rest.len().min(BLOCK_SIZE)]) {
            found.partial = Some((self.touch(child), common));
        }
        found
    }

    /// The child that shares the most leading tokens (at least one) with `key`.
    fn closest_child(&self, at: NodeId, key: &[u32]) -> Option<(NodeId, usize)> {
        let children = &self.node(at).children;
        // In lexicographic order the longest common beginning is with a neighbour.
        let before = children.range::<[u32], _>((Bound::Unbounded, Bound::Included(key))).next_back();
        let after = children.range::<[u32], _>((Bound::Included(key), Bound::Unbounded)).next();
        let common = |(tokens, &id): (&Vec<u32>, &NodeId)| (id, common_prefix(tokens, key));
        let best = [before, after].into_iter().flatten().map(common).max_by_key(|c| c.1);
        best.filter(|c| c.1 > 0)
    }

    fn touch(&mut self, id: NodeId) -> usize {
        let clock = self.clock;
        let node = self.node_mut(id);
        let before = std::mem::replace(&mut node.last_used, clock);
        let block = node.block.expect("only roots have no block");
        if self.leaves.remove(&(before, id)) {
            self.leaves.insert((clock, id));
        }
        block
    }

    /// Records that `blocks` hold the keys and values of `tokens` (the last block perhaps in part). The tree takes a
    /// reference to each block that it did not know; where it knows the tokens already it keeps its own block.
    pub(crate) fn insert(&mut self, factors: RopeFactors, tokens: &[u32], blocks: &[usize], pool: &mut BlockPool) {
        self.clock += 1;
        let mut at = factors as usize;
        for (chunk, &block) in tokens.chunks(BLOCK_SIZE).zip(blocks) {
            if let Some(&known) = self.node(at).children.get(chunk) {
                self.touch(known);
                at = known;
                continue;
            }
            if chunk.len() < BLOCK_SIZE && self.closest_child(at, chunk).is_some_and(|c| c.1 == chunk.len()) {
                return;
            }
            pool.share(block);
            at = self.add(at, chunk.to_vec(), block);
        }
    }

    fn add(&mut self, parent: NodeId, tokens: Vec<u32>, block: usize) -> NodeId {
        let clock = self.clock;
        let id = self.vacant.pop().unwrap_or(self.nodes.len());
        let node =
            Node { tokens: tokens.clone(), block: Some(block), parent, children: BTreeMap::new(), last_used: clock };
        if id == self.nodes.len() {
            self.nodes.push(Some(node));
        } else {
            self.nodes[id] = Some(node);
        }
        let above = self.node_mut(parent);
        above.children.insert(tokens, id);
        let age = above.last_used;
        self.leaves.remove(&(age, parent));
        self.leaves.insert((clock, id));
        id
    }

    /// Removes the least recently used leaf that only the tree uses. False if there is none.
    pub(crate) fn evict(&mut self, pool: &mut BlockPool) -> bool {
        let unused = |&&(_, id): &&(u64, NodeId)| self.node(id).block.is_some_and(|b| pool.references(b) == 1);
        let Some(&(age, id)) = self.leaves.iter().find(unused) else { return false };
        self.leaves.remove(&(age, id));
        let node = self.nodes[id].take().expect("a leaf exists");
        self.vacant.push(id);
        pool.release(node.block.expect("only roots have no block"));
        let above = self.node_mut(node.parent);
        above.children.remove(&node.tokens);
        if above.children.is_empty() && above.block.is_some() {
            let age = above.last_used;
            self.leaves.insert((age, node.parent));
        }
        true
    }

    /// Blocks that the tree holds.
    pub(crate) fn blocks(&self) -> impl Iterator<Item = usize> + '_ {
        self.nodes.iter().flatten().filter_map(|n| n.block)
    }

    /// Number of nodes (without the roots).
    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.nodes.len() - self.vacant.len() - 2
    }

    /// Panics if the tree contradicts itself.
    #[cfg(test)]
    pub(crate) fn check(&self) {
        let mut leaves = BTreeSet::new();
        for (id, node) in self.nodes.iter().enumerate().filter_map(|(i, n)| n.as_ref().map(|n| (i, n))) {
            for (tokens, &child) in &node.children {
                assert_eq!(&self.node(child).tokens, tokens);
                assert_eq!(self.node(child).parent, id);
                assert!(id < 2 || node.tokens.len() == BLOCK_SIZE, "a partial node has children");
            }
            if id >= 2 {
                assert_eq!(self.node(node.parent).children.get(&node.tokens), Some(&id));
                assert!((1..=BLOCK_SIZE).contains(&node.tokens.len()) && node.block.is_some());
                if node.children.is_empty() {
                    leaves.insert((node.last_used, id));
                }
            }
        }
        assert_eq!(leaves, self.leaves);
        assert_eq!(self.blocks().count(), self.len());
    }
}

/// Length of the common prefix.
pub(crate) fn common_prefix(a: &[u32], b: &[u32]) -> usize {
    a.iter().zip(b).take_while(|(x, y)| x == y).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tokens(n: usize, tail: u32) -> Vec<u32> {
        (0..n as u32).map(|i| if i as usize + 3 >= n { tail * 100 + i } else { i }).collect()
    }

    #[test]
    fn a_match_shares_full_blocks_and_copies_the_rest() {
        let mut pool = BlockPool::new(10);
        let mut tree = PrefixTree::new();
        let first = tokens(70, 1);
        let blocks: Vec<usize> = (0..3).map(|_| pool.take().unwrap()).collect();
        tree.insert(RopeFactors::Short, &first, &blocks, &mut pool);
        tree.check();
        assert_eq!(
            tree.find(RopeFactors::Short, &tokens(70, 2)),
            Match { blocks: blocks[..2].to_vec(), partial: Some((blocks[2], 3)) }
        );
        assert_eq!(tree.find(RopeFactors::Short, &first).tokens(), 70);
        assert_eq!(
            tree.find(RopeFactors::Short, &first[..40]),
            Match { blocks: vec![blocks[0]], partial: Some((blocks[1], 8)) }
        );
        assert_eq!(tree.find(RopeFactors::Short, &first[..5]), Match { blocks: vec![], partial: Some((blocks[0], 5)) });
        assert_eq!(tree.find(RopeFactors::Short, &[999]), Match::default());
        assert_eq!(tree.find(RopeFactors::Long, &first), Match::default());
    }

    #[test]
    fn eviction_takes_the_oldest_leaf_that_nobody_uses() {
        let mut pool = BlockPool::new(4);
        let mut tree = PrefixTree::new();
        let (a, b) = (tokens(64, 1), tokens(32, 2));
        let blocks: Vec<usize> = (0..3).map(|_| pool.take().unwrap()).collect();
        tree.insert(RopeFactors::Short, &a, &blocks[..2], &mut pool);
        tree.insert(RopeFactors::Short, &b, &blocks[2..], &mut pool);
        assert!(!tree.evict(&mut pool), "all blocks have users");
        blocks.iter().for_each(|&x| pool.release(x));
        tree.find(RopeFactors::Short, &a);
        assert!(tree.evict(&mut pool));
        tree.check();
        assert_eq!((tree.find(RopeFactors::Short, &a).tokens(), pool.free()), (64, 2));
        assert!(tree.evict(&mut pool) && tree.evict(&mut pool) && !tree.evict(&mut pool));
        assert_eq!((tree.len(), pool.free()), (0, 4));
        tree.check();
    }
}
