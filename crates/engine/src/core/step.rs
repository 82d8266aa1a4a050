//! One step: the tokens to compute, where their keys and values go, and the rows of logits that are wanted.

use std::ops::Range;

use super::block_pool::BLOCK_SIZE;
use super::prefix_tree::RopeFactors;
use super::scheduler::{BlockOp, Chunk, Sequence};
use crate::{Sampling, SamplingKey};

/// Marks a token of a sequence that is sampled in a step in flight; the lower bits are its row there.
pub(super) const PLACEHOLDER: u32 = 1 << 31;

/// A run of tokens of one sequence: a chunk of its prompt, or the token that it decodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Piece {
    /// Index of the first token in the step.
    pub token: usize,
    /// Position of the first token in the sequence.
    pub position: usize,
    /// Number of tokens.
    pub count: usize,
    /// Start of the sequence's block table in [`Step::block_tables`].
    pub table: usize,
}

/// The input of a backend's forward pass.
#[derive(Debug, Default)]
pub struct Step {
    /// Token ids. A negative number `-1 - row` is the token sampled from `row` of the step before.
    pub token_ids: Vec<i32>,
    /// Position of each token in its sequence.
    pub positions: Vec<i32>,
    /// Slot of each token's key and value: `block * BLOCK_SIZE + offset`.
    pub slot_mapping: Vec<i32>,
    /// Runs of tokens in their order, one for each sequence.
    pub pieces: Vec<Piece>,
    /// Rope factors of each piece's sequence.
    pub rope_factors: Vec<RopeFactors>,
    /// Block tables of all pieces, one after the other.
    pub block_tables: Vec<i32>,
    /// First blocks of all running sequences, also of those that have no piece.
    pub live: Vec<i32>,
    /// Operations on blocks before the tokens are computed, in order.
    pub block_ops: Vec<BlockOp>,
    /// Indices of the tokens whose logits are wanted, ascending.
    pub logits_indices: Vec<i32>,
    /// Sampling metadata of each row of logits.
    pub sampling: Vec<SamplingMetadata>,
    /// Tokens that repetition penalties apply to ([`SamplingMetadata::seen`]).
    pub seen_tokens: Vec<u32>,
}

/// Sampling metadata of a row of logits.
#[derive(Debug, Clone, PartialEq)]
pub struct SamplingMetadata {
    /// A token is sampled from the row.
    pub sampled: bool,
    /// Temperature and filters.
    pub sampling: Sampling,
    /// Key of the request's random numbers.
    pub key: SamplingKey,
    /// Index of the token in the completion, which selects the random number.
    pub index: u64,
    /// Number of most probable tokens whose log-probabilities are wanted; 0 for none.
    pub top_logprobs: usize,
    /// Range in [`Step::seen_tokens`] of the sequence's tokens so far; empty without a repetition penalty.
    pub seen: Range<usize>,
    /// Token whose log-probability is wanted: the next one of the prompt.
    pub target: Option<u32>,
    /// A hash of the logits is wanted.
    pub hash: bool,
    /// The logits are wanted themselves; the backend need not sample.
    pub return_logits: bool,
}

impl Step {
    /// Number of tokens.
    pub fn tokens(&self) -> usize {
        self.token_ids.len()
    }

    /// Blocks of a piece's sequence, in order of position.
    pub fn block_table(&self, piece: usize) -> &[i32] {
        let end = self.pieces.get(piece + 1).map_or(self.block_tables.len(), |next| next.table);
        &self.block_tables[self.pieces[piece].table..end]
    }

    /// Tokens that a row's repetition penalty applies to.
    pub fn seen(&self, row: &SamplingMetadata) -> &[u32] {
        &self.seen_tokens[row.seen.clone()]
    }

    /// Empties all lists and keeps their memory.
    pub(super) fn clear(&mut self) {
        self.token_ids.clear();
        self.positions.clear();
        self.slot_mapping.clear();
        self.pieces.clear();
        self.rope_factors.clear();
        self.block_tables.clear();
        self.live.clear();
        self.block_ops.clear();
        self.logits_indices.clear();
        self.sampling.clear();
        self.seen_tokens.clear();
    }

    /// Appends a chunk of a sequence and returns the index of its first token.
    pub(super) fn push(&mut self, sequence: &Sequence, chunk: &Chunk) -> usize {
        let first = self.token_ids.len();
        let table = self.block_tables.len();
        self.pieces.push(Piece { token: first, position: chunk.start, count: chunk.count, table });
        self.rope_factors.push(sequence.rope_factors);
        self.block_tables.extend(sequence.blocks.iter().map(|&block| block as i32));
        for position in chunk.start..chunk.start + chunk.count {
            let token = sequence.tokens[position];
            let known = token & PLACEHOLDER == 0;
            self.token_ids.push(if known { token as i32 } else { -1 - (token ^ PLACEHOLDER) as i32 });
            self.positions.push(position as i32);
            let block = sequence.blocks[position / BLOCK_SIZE];
            self.slot_mapping.push((block * BLOCK_SIZE + position % BLOCK_SIZE) as i32);
        }
        first
    }
}
