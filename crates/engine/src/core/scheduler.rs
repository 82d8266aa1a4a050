//! The scheduler: which tokens are computed in the next step.
//!
//! Sequences join and leave at any step. A step computes one token of every decoding sequence and fills the rest of its
//! token budget with prompt chunks. The scheduler owns the blocks: it shares cached prefixes, evicts unused ones and,
//! when even that does not help, preempts the youngest sequence, to be computed again later. It never touches floats,
//! so that its rules can be tested without a model; and since a token's bits do not depend on its batch, none of its
//! decisions can change a result.

use std::collections::VecDeque;

use super::block_pool::{BLOCK_SIZE, BlockPool};
use super::prefix_tree::{Match, PrefixTree, RopeFactors};
use super::prefix_wait::should_wait;

/// Most waiting sequences considered for admission in one step.
const LOOK_AHEAD: usize = 256;

/// Limits of a step and of the KV cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Most tokens in a step; more than `max_batch`, so that prompts make progress beside decoding sequences.
    pub token_budget: usize,
    /// Most sequences running at once.
    pub max_batch: usize,
    /// Blocks of the KV cache.
    pub blocks: usize,
    /// Prompts are looked up in the prefix cache and kept there.
    pub prefix_cache: bool,
}

/// A sequence: tokens and KV blocks.
#[derive(Debug)]
pub(crate) struct Sequence {
    /// Unique number.
    pub(crate) key: u64,
    /// Prompt, then generated tokens.
    pub(crate) tokens: Vec<u32>,
    /// Tokens of the prompt.
    pub(crate) prompt: usize,
    pub(crate) rope_factors: RopeFactors,
    /// Most tokens to read from the prefix cache: those after them are computed, because their logits are wanted.
    pub(crate) shareable: usize,
    /// Tokens whose keys and values are in its blocks.
    pub(crate) computed: usize,
    /// Prompt tokens that came from the cache when it was first admitted.
    pub(crate) cached: Option<usize>,
    /// Block table.
    pub(crate) blocks: Vec<usize>,
}

/// An operation on KV blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BlockOp {
    /// Give a block to a new user. Its old values are never used, but attention may multiply them by zero.
    Clear(usize),
    /// Copy the first `positions` of block `from` to block `to`.
    Copy {
        /// Source.
        from: usize,
        /// Destination, which was cleared before.
        to: usize,
        /// Number of positions.
        positions: usize,
    },
}

/// A run of tokens of a sequence to compute.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Chunk {
    /// Index into the running sequences.
    pub(crate) running: usize,
    /// First token.
    pub(crate) start: usize,
    /// Number of tokens.
    pub(crate) count: usize,
    /// It ends with the last known token: the logits after it give the next one.
    pub(crate) samples: bool,
}

/// Chunks to compute in a step, and block operations before.
#[derive(Debug, Default)]
pub(crate) struct Plan {
    pub(crate) ops: Vec<BlockOp>,
    pub(crate) chunks: Vec<Chunk>,
}

/// Counters since the scheduler was made.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Counters {
    pub(crate) cached_tokens: u64,
    pub(crate) evictions: u64,
    pub(crate) preemptions: u64,
}

/// Continuous batching of sequences.
#[derive(Debug)]
pub(crate) struct Scheduler {
    limits: Limits,
    pool: BlockPool,
    tree: PrefixTree,
    waiting: VecDeque<Sequence>,
    /// In order of admission.
    running: Vec<Sequence>,
    counters: Counters,
}

impl Scheduler {
    pub(crate) fn new(limits: Limits) -> Scheduler {
        Scheduler {
            limits,
            pool: BlockPool::new(limits.blocks),
            tree: PrefixTree::new(),
            waiting: VecDeque::new(),
            running: vec![],
            counters: Counters::default(),
        }
    }

    /// Queues a sequence. It has to fit into the cache alone, its last generated token (which is never read) excepted.
    pub(crate) fn add(&mut self, key: u64, prompt: Vec<u32>, rope_factors: RopeFactors, shareable: usize) {
        debug_assert!(!prompt.is_empty(), "an empty prompt has nothing to compute");
        let length = prompt.len();
        self.waiting.push_back(Sequence {
            key,
            tokens: prompt,
            prompt: length,
            rope_factors,
            shareable,
            computed: 0,
            cached: None,
            blocks: vec![],
        });
    }

    /// Plans a step: an empty plan means that nothing is left to do.
    pub(crate) fn plan(&mut self) -> Plan {
        let mut plan = Plan::default();
        self.allocate_decode_slots(&mut plan);
        let mut budget = self.limits.token_budget;
        let decoding: Vec<usize> = (0..self.running.len()).filter(|&i| self.running[i].pending() == 1).collect();
        for i in decoding {
            budget = budget.saturating_sub(1);
            plan.chunks.push(self.running[i].chunk(i, 1));
        }
        for i in 0..self.running.len() {
            let pending = self.running[i].pending();
            if pending > 1 && budget > 0 {
                let count = pending.min(budget);
                budget -= count;
                plan.chunks.push(self.running[i].chunk(i, count));
            }
        }
        self.admit(&mut budget, &mut plan);
        // Readers of the same blocks next to each other share their loads in attention.
        plan.chunks.sort_by(|a, b| self.running[a.running].blocks.cmp(&self.running[b.running].blocks));
        plan
    }

    /// Allocates a slot for every decoding sequence's next position, preempting sequences if need be.
    fn allocate_decode_slots(&mut self, plan: &mut Plan) {
        let mut i = 0;
        while i < self.running.len() {
            if self.running[i].tokens.len() <= self.running[i].blocks.len() * BLOCK_SIZE {
                i += 1;
            } else if let Some(block) = self.take(plan) {
                self.running[i].blocks.push(block);
            } else {
                // The youngest gives way; if that is this one, it waits for the others to finish.
                let last = self.running.len() - 1;
                self.preempt(last);
            }
        }
    }

    /// Releases a running sequence's blocks and queues it first, to be computed again.
    fn preempt(&mut self, index: usize) {
        let mut sequence = self.running.remove(index);
        self.counters.preemptions += 1;
        sequence.blocks.drain(..).for_each(|b| self.pool.release(b));
        sequence.computed = 0;
        self.waiting.push_front(sequence);
    }

    /// Takes a cleared block, evicting cached prefixes if none is free.
    fn take(&mut self, plan: &mut Plan) -> Option<usize> {
        if self.pool.free() == 0 {
            if !self.tree.evict(&mut self.pool) {
                return None;
            }
            self.counters.evictions += 1;
        }
        let block = self.pool.take()?;
        plan.ops.push(BlockOp::Clear(block));
        Some(block)
    }

    /// Admits waiting sequences while budget, batch and blocks last.
    fn admit(&mut self, budget: &mut usize, plan: &mut Plan) {
        let mut index = 0;
        let mut looked_at = 0;
        while index < self.waiting.len()
            && looked_at < LOOK_AHEAD
            && *budget > 0
            && self.running.len() < self.limits.max_batch
        {
            looked_at += 1;
            let found = self.look_up(index);
            let candidate = &self.waiting[index];
            if self.limits.prefix_cache && should_wait(candidate, found.tokens(), &self.running) {
                index += 1;
                continue;
            }
            // First come, first served: nobody overtakes a sequence that waits for memory.
            let mut reserved = self.reserve(index, &found, plan);
            if reserved.is_none() && self.running.is_empty() {
                // Nothing that runs will free a block. The one to be copied from may be the one that is missing.
                reserved = self.reserve(index, &Match { partial: None, ..found }, plan);
            }
            let Some((blocks, computed)) = reserved else { break };
            let Some(mut sequence) = self.waiting.remove(index) else { break };
            sequence.blocks = blocks;
            sequence.computed = computed;
            let reused = computed.min(sequence.prompt);
            if sequence.cached.is_none() {
                sequence.cached = Some(reused);
                self.counters.cached_tokens += reused as u64;
            }
            let count = sequence.pending().min(*budget);
            *budget -= count;
            plan.chunks.push(sequence.chunk(self.running.len(), count));
            self.running.push(sequence);
        }
    }

    /// Finds the cached prefix of a waiting sequence.
    fn look_up(&mut self, index: usize) -> Match {
        let sequence = &self.waiting[index];
        if self.limits.prefix_cache {
            self.tree.find(sequence.rope_factors, sequence.usable())
        } else {
            Match::default()
        }
    }

    /// Allocates blocks for all tokens that a waiting sequence has now: (blocks, positions already in them). None, with nothing
    /// taken, if too few are free.
    fn reserve(&mut self, index: usize, found: &Match, plan: &mut Plan) -> Option<(Vec<usize>, usize)> {
        let needed = self.waiting[index].tokens.len().div_ceil(BLOCK_SIZE);
        let missing = needed.saturating_sub(found.blocks.len() + self.pool.free());
        if missing > 0 && missing > self.evictable(found) {
            // Evicting what does not suffice would only empty the prefix cache, step after step.
            return None;
        }
        let mut blocks = found.blocks.clone();
        blocks.iter().for_each(|&b| self.pool.share(b));
        // Holding the block to be copied keeps it from being evicted and reused before the copy is done.
        let source = found.partial.map(|p| p.0);
        if let Some(b) = source {
            self.pool.share(b);
        }
        while blocks.len() < needed {
            match self.take(plan) {
                Some(block) => blocks.push(block),
                None => break,
            }
        }
        if let Some(b) = source {
            self.pool.release(b);
        }
        if blocks.len() < needed {
            blocks.into_iter().for_each(|b| self.pool.release(b));
            return None;
        }
        if let Some((from, positions)) = found.partial {
            plan.ops.push(BlockOp::Copy { from, to: blocks[found.blocks.len()], positions });
        }
        Some((blocks, found.tokens()))
    }

    /// Upper bound of the blocks that eviction can free while those of `found` are kept.
    fn evictable(&self, found: &Match) -> usize {
        let unused = |b: &usize| self.pool.references(*b) == 1;
        let kept = found.blocks.iter().chain(found.partial.iter().map(|p| &p.0)).filter(|b| unused(b)).count();
        self.tree.blocks().filter(unused).count() - kept
    }

    /// Records that a plan was computed: its prompts become available to others.
    pub(crate) fn commit(&mut self, plan: &Plan) {
        for chunk in &plan.chunks {
            let s = &mut self.running[chunk.running];
            debug_assert_eq!(s.computed, chunk.start, "a piece was computed out of order");
            s.computed = chunk.start + chunk.count;
            if self.limits.prefix_cache && chunk.start < s.prompt {
                // Only prompts are kept: generated text is hardly ever the beginning of another prompt.
                let full = if s.computed >= s.prompt { s.prompt } else { s.computed / BLOCK_SIZE * BLOCK_SIZE };
                self.tree.insert(s.rope_factors, &s.tokens[..full], &s.blocks, &mut self.pool);
            }
        }
    }

    /// Appends a token or a placeholder to a running sequence.
    pub(crate) fn push(&mut self, running: usize, token: u32) {
        self.running[running].tokens.push(token);
    }

    /// Puts a sampled token into its sequence: in the place of its placeholder, or at the end. `running` is the index of the sequence
    /// when its step was planned.
    pub(crate) fn set_token(&mut self, running: usize, key: u64, placeholder: Option<usize>, token: u32) {
        // Sequences that left since moved it forward; one that was preempted is the first of the queue, or was admitted again.
        let middle = (running + 1).min(self.running.len());
        let (before, after) = self.running.split_at_mut(middle);
        let mut candidates = before.iter_mut().rev().chain(after).chain(&mut self.waiting);
        let Some(sequence) = candidates.find(|s| s.key == key) else { return };
        match placeholder {
            Some(index) => sequence.tokens[index] = token,
            None => sequence.tokens.push(token),
        }
    }

    /// Removes sequences (by key), running or waiting, and returns those that were there.
    pub(crate) fn remove(&mut self, keys: &[u64]) -> Vec<Sequence> {
        let mut removed = vec![];
        let mut keep = Vec::with_capacity(self.running.len());
        for s in self.running.drain(..) {
            if keys.contains(&s.key) { removed.push(s) } else { keep.push(s) }
        }
        self.running = keep;
        let before = self.waiting.len();
        if removed.len() < keys.len() {
            for i in (0..before).rev() {
                if keys.contains(&self.waiting[i].key) {
                    removed.extend(self.waiting.remove(i));
                }
            }
        }
        for s in &removed {
            s.blocks.iter().for_each(|&b| self.pool.release(b));
        }
        removed
    }

    /// Evicts every cached prompt that no sequence uses.
    pub(crate) fn forget_prompts(&mut self) {
        while self.tree.evict(&mut self.pool) {}
    }

    /// The running sequences.
    pub(crate) fn running(&self) -> &[Sequence] {
        &self.running
    }

    /// Number of waiting sequences.
    pub(crate) fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// Counters.
    pub(crate) fn counters(&self) -> Counters {
        self.counters
    }

    /// Numbers of blocks: (in use, of them held by the prefix cache only, total).
    pub(crate) fn blocks(&self) -> (usize, usize, usize) {
        let used = self.pool.total() - self.pool.free();
        let cached = self.tree.blocks().filter(|&b| self.pool.references(b) == 1).count();
        (used, cached, self.pool.total())
    }

    /// Panics if a block is lost, leaked or counted wrongly.
    #[cfg(test)]
    pub(crate) fn check(&self) {
        self.tree.check();
        let mut references = vec![0u32; self.pool.total()];
        self.tree.blocks().for_each(|b| references[b] += 1);
        for s in &self.running {
            assert!(s.computed <= s.tokens.len() && s.computed <= s.blocks.len() * BLOCK_SIZE);
            s.blocks.iter().for_each(|&b| references[b] += 1);
        }
        assert!(self.waiting.iter().all(|s| s.blocks.is_empty() && s.computed == 0));
        for (block, &expected) in references.iter().enumerate() {
            assert_eq!(self.pool.references(block), expected, "block {block}");
        }
        let free = references.iter().filter(|r| **r == 0).count();
        assert_eq!(self.pool.free(), free);
        assert!(self.running.len() <= self.limits.max_batch);
    }
}

impl Sequence {
    /// Tokens that may come from the prefix cache; at least the last one is always computed.
    pub(crate) fn usable(&self) -> &[u32] {
        &self.tokens[..self.shareable.min(self.tokens.len() - 1)]
    }

    /// Tokens not yet computed.
    pub(crate) fn pending(&self) -> usize {
        self.tokens.len() - self.computed
    }

    fn chunk(&self, running: usize, count: usize) -> Chunk {
        Chunk { running, start: self.computed, count, samples: self.computed + count == self.tokens.len() }
    }
}

#[cfg(test)]
mod tests;
