//! Which tokens are computed in the next step.
//!
//! Sequences join and leave at any step. A step computes one token of every decoding sequence and fills the rest of its
//! token budget with prompt chunks. The scheduler owns the blocks: it shares cached prefixes, evicts unused ones and,
//! when even that does not help, sets the youngest sequence back to be computed again later. It never touches floats,
//! so that its rules can be tested without a model; and since a token's bits do not depend on its batch, none of its
//! decisions can change a result.

use std::collections::{HashMap, VecDeque};

use super::kv::{BLOCK, BlockPool, Match, PrefixTree, Root};
use super::prefix_wait::should_wait;

/// Waiting sequences that are looked at in one step; those beyond it keep their order.
const LOOK_AHEAD: usize = 256;

/// What the scheduler may use.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    /// Most tokens in a step.
    pub(crate) token_budget: usize,
    /// Most sequences running at once.
    pub(crate) max_batch: usize,
    /// Blocks of the cache.
    pub(crate) blocks: usize,
    /// Look prompts up in the prefix tree, and keep them there.
    pub(crate) prefix_cache: bool,
}

/// A sequence as the scheduler sees it.
#[derive(Debug)]
pub(crate) struct Sequence {
    /// The caller's number for it.
    pub(crate) key: u64,
    /// Prompt, then generated tokens.
    pub(crate) tokens: Vec<u32>,
    pub(crate) prompt: usize,
    pub(crate) root: Root,
    /// Use cached positions (not if the logits of all of them are wanted).
    pub(crate) read_cache: bool,
    /// Tokens whose keys and values are in its blocks.
    pub(crate) computed: usize,
    /// Prompt tokens that came from the cache when it was first admitted.
    pub(crate) cached: Option<usize>,
    pub(crate) blocks: Vec<usize>,
}

/// Something to do with blocks before the step's tokens are computed, in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BlockOp {
    Clear(usize),
    Copy { from: usize, to: usize, positions: usize },
}

/// A piece of a sequence to compute.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Entry {
    /// Index into the running sequences.
    pub(crate) running: usize,
    /// First token.
    pub(crate) start: usize,
    /// Number of tokens.
    pub(crate) count: usize,
    /// The piece ends with the last known token: its logits give the next one.
    pub(crate) samples: bool,
}

/// A step.
#[derive(Debug, Default)]
pub(crate) struct Plan {
    pub(crate) ops: Vec<BlockOp>,
    pub(crate) entries: Vec<Entry>,
}

/// Counters.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Counters {
    pub(crate) cached_tokens: u64,
    pub(crate) evictions: u64,
    pub(crate) preemptions: u64,
}

/// The scheduler.
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

    /// Queues a sequence. It must fit into the cache alone, its last generated token (which is never read) excepted.
    pub(crate) fn add(&mut self, key: u64, prompt: Vec<u32>, root: Root, read_cache: bool) {
        debug_assert!(!prompt.is_empty(), "an empty prompt has nothing to compute");
        let length = prompt.len();
        self.waiting.push_back(Sequence {
            key,
            tokens: prompt,
            prompt: length,
            root,
            read_cache,
            computed: 0,
            cached: None,
            blocks: vec![],
        });
    }

    /// Plans a step: an empty plan means that nothing is left to do.
    pub(crate) fn plan(&mut self) -> Plan {
        let mut plan = Plan::default();
        self.make_room_for_decoding(&mut plan);
        let mut budget = self.limits.token_budget;
        let decoding: Vec<usize> = (0..self.running.len()).filter(|&i| self.running[i].pending() == 1).collect();
        for i in decoding {
            budget = budget.saturating_sub(1);
            plan.entries.push(self.running[i].entry(i, 1));
        }
        for i in 0..self.running.len() {
            let pending = self.running[i].pending();
            if pending > 1 && budget > 0 {
                let count = pending.min(budget);
                budget -= count;
                plan.entries.push(self.running[i].entry(i, count));
            }
        }
        self.admit(&mut budget, &mut plan);
        // Readers of the same blocks next to each other share their loads in attention.
        plan.entries.sort_by(|a, b| self.running[a.running].blocks.cmp(&self.running[b.running].blocks));
        plan
    }

    /// Gives every decoding sequence a place for its next position, setting sequences back if need be.
    fn make_room_for_decoding(&mut self, plan: &mut Plan) {
        let mut i = 0;
        while i < self.running.len() {
            if self.running[i].tokens.len() <= self.running[i].blocks.len() * BLOCK {
                i += 1;
            } else if let Some(block) = self.take(plan) {
                self.running[i].blocks.push(block);
            } else {
                // The youngest gives way; if that is this one, it waits for the others to finish.
                let last = self.running.len() - 1;
                self.set_back(last);
            }
        }
    }

    /// Releases a running sequence's blocks and queues it first, to be computed again.
    fn set_back(&mut self, index: usize) {
        let mut sequence = self.running.remove(index);
        self.counters.preemptions += 1;
        sequence.blocks.drain(..).for_each(|b| self.pool.release(b));
        sequence.computed = 0;
        self.waiting.push_front(sequence);
    }

    /// A cleared block, evicting cached prefixes if none is free.
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
            if self.limits.prefix_cache && candidate.read_cache && should_wait(candidate, found.tokens(), &self.running)
            {
                index += 1;
                continue;
            }
            // First come, first served: nobody overtakes a sequence that waits for memory.
            let Some((blocks, computed)) = self.reserve(index, &found, plan) else { break };
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
            plan.entries.push(sequence.entry(self.running.len(), count));
            self.running.push(sequence);
        }
    }

    /// What of a waiting sequence is cached; at least its last token is always computed.
    fn look_up(&mut self, index: usize) -> Match {
        let sequence = &self.waiting[index];
        if self.limits.prefix_cache && sequence.read_cache {
            self.tree.find(sequence.root, &sequence.tokens[..sequence.tokens.len() - 1])
        } else {
            Match::default()
        }
    }

    /// Blocks for all tokens that a waiting sequence has now: (blocks, positions already in them). None, with nothing
    /// taken, if they can not be had.
    fn reserve(&mut self, index: usize, found: &Match, plan: &mut Plan) -> Option<(Vec<usize>, usize)> {
        let needed = self.waiting[index].tokens.len().div_ceil(BLOCK);
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

    /// At most how many blocks eviction can free while those of `found` are kept.
    fn evictable(&self, found: &Match) -> usize {
        let unused = |b: &usize| self.pool.references(*b) == 1;
        let kept = found.blocks.iter().chain(found.partial.iter().map(|p| &p.0)).filter(|b| unused(b)).count();
        self.tree.blocks().filter(unused).count() - kept
    }

    /// Records that a plan was computed: its prompts become available to others.
    pub(crate) fn commit(&mut self, plan: &Plan) {
        for entry in &plan.entries {
            let s = &mut self.running[entry.running];
            debug_assert_eq!(s.computed, entry.start, "a piece was computed out of order");
            s.computed = entry.start + entry.count;
            if self.limits.prefix_cache && entry.start < s.prompt {
                // Only prompts are kept: generated text is hardly ever the beginning of another prompt.
                let full = if s.computed >= s.prompt { s.prompt } else { s.computed / BLOCK * BLOCK };
                self.tree.insert(s.root, &s.tokens[..full], &s.blocks, &mut self.pool);
            }
        }
    }

    /// Appends a generated token.
    pub(crate) fn push(&mut self, running: usize, token: u32) {
        self.running[running].tokens.push(token);
    }

    /// Puts tokens that are known now into their sequences, by key: in the place of a placeholder or, without one, at the end.
    pub(crate) fn settle(&mut self, tokens: &HashMap<u64, (Option<usize>, u32)>) {
        if tokens.is_empty() {
            return;
        }
        for s in self.running.iter_mut().chain(&mut self.waiting) {
            match tokens.get(&s.key) {
                None => {}
                Some((Some(place), token)) => s.tokens[*place] = *token,
                Some((None, token)) => s.tokens.push(*token),
            }
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

    /// Gives up every cached prompt that no sequence uses.
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

    pub(crate) fn counters(&self) -> Counters {
        self.counters
    }

    /// (in use, of them kept by the prefix tree only, in all)
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
            assert!(s.computed <= s.tokens.len() && s.computed <= s.blocks.len() * BLOCK);
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
    /// Tokens not yet computed.
    pub(crate) fn pending(&self) -> usize {
        self.tokens.len() - self.computed
    }

    fn entry(&self, running: usize, count: usize) -> Entry {
        Entry { running, start: self.computed, count, samples: self.computed + count == self.tokens.len() }
    }
}

#[cfg(test)]
mod tests;
