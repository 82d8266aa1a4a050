//! Attention over a paged KV cache, for any mix of prefill and decode tokens.
//!
//! Positions are cut into blocks of [`BLOCK_SIZE`]. A query walks its sequence's blocks in order and folds each into a
//! running softmax (maximum, sum, weighted values); what happens within a block is a fixed chain of operations on that
//! query. Neighbouring queries that read the same physical block (tokens of one sequence, or readers of a shared
//! prefix) share its loads, which changes the speed and not one bit of the result.

use std::cell::RefCell;

use half::bf16;

use super::int8::{Int8Isa, Int8Unit, ROW_WORDS, for_each_unit};
use super::lanes::{Isa, LANES, Lanes, for_each_isa};
use super::math;
use super::shared::SharedMut;
use super::tile::{Bf16, PanelElement};
use crate::core::BLOCK_SIZE;
use crate::cpu::kv::{BlockLayout, CacheType};
use crate::cpu::team::Team;

mod int8;
mod exact;

#[cfg(test)]
mod tests;

/// Most query rows (tokens times heads of a group) that one piece of work holds.
const ROWS: usize = 48;

/// Distance between query rows in the scratch buffer: wider than any head, and no power of two, so that rows do not
/// compete for the same cache sets.
const QUERY_STRIDE: usize = MAX_HEAD_DIM + LANES;

/// Distance between rows of weighted values, for the same reason.
const VALUE_STRIDE: usize = QUERY_STRIDE;

/// Most query heads that may share a key head.
pub(crate) const MAX_GROUP: usize = ROWS;

/// Widest supported head.
pub(crate) const MAX_HEAD_DIM: usize = 512;

/// One query token.
#[derive(Debug, Clone, Copy)]
pub(crate) struct QueryToken {
    /// Its position in its sequence.
    pub(crate) position: u32,
    /// Index into [`Attention::tables`].
    pub(crate) sequence: u32,
}

/// One layer's attention of a step.
pub(crate) struct Attention<'a> {
    pub(crate) layout: BlockLayout,
    pub(crate) heads: usize,
    pub(crate) scale: f32,
    pub(crate) softcap: Option<f32>,
    pub(crate) window: Option<usize>,
    /// Chunked attention: a query sees keys of its own chunk of so many positions.
    pub(crate) chunk: Option<usize>,
    /// An extra score of each head, whose probability goes to no value; empty for none.
    pub(crate) sinks: &'a [f32],
    /// ALiBi: what each head subtracts from a score for every position between query and key; empty for none.
    pub(crate) slopes: &'a [f32],
    pub(crate) tokens: &'a [QueryToken],
    /// First element of each block of each sequence, in order of position.
    pub(crate) tables: &'a [Vec<BlockPointer>],
    /// `[tokens, row]` where a row begins with the query heads: `[heads, head_dim]`, rotary applied.
    pub(crate) queries: &'a [f32],
    pub(crate) query_row: usize,
}

/// A block's storage, read by all threads during attention.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct BlockPointer(pub(crate) *const f32);

// SAFETY: blocks are written between the parallel parts of a step only.
unsafe impl Send for BlockPointer {}
// SAFETY: as above; shared, they are only read.
unsafe impl Sync for BlockPointer {}

struct Scratch {
    /// `[ROWS, QUERY_STRIDE]`
    queries: Vec<f32>,
    /// `[ROWS, BLOCK_SIZE]`: scores, then probabilities.
    scores: Vec<f32>,
    /// `[ROWS, VALUE_STRIDE]`: weighted values so far.
    values: Vec<f32>,
    maximum: [f32; ROWS],
    sum: [f32; ROWS],
    /// Sixteen are read at a time.
    correction: [f32; ROWS + LANES],
    /// `[ROWS, QUERY_WORDS]`: int8 queries.
    query_words: Vec<i32>,
    /// `[ROWS, WEIGHT_WORDS]`: probabilities times the scales of values, in int8.
    weight_words: Vec<i32>,
}

/// Words of a row of int8 queries, as wide as heads may be.
const QUERY_WORDS: usize = MAX_HEAD_DIM / super::int8::GROUP * ROW_WORDS;

/// Words of a row's weights of a block: the codes, their scale, and room up to a whole number of vectors.
const WEIGHT_WORDS: usize = 12;

/// Element type of keys and values: their layout in a block, and the products with them.
trait Format {
    type L: Lanes;

    /// Turns the gathered queries of so many rows into what [`score`](Self::score) reads.
    unsafe fn prepare(s: &mut Scratch, rows: usize, d: usize);

    /// Scores of rows `start..start + count` against the first `used` (at least) of the block's keys.
    unsafe fn score(s: &mut Scratch, start: usize, count: usize, d: usize, keys: *const f32, used: usize);

    /// Adds the first `used` of the block's values, weighted, to rows `start..start + count`.
    unsafe fn weigh(s: &mut Scratch, start: usize, count: usize, d: usize, values: *const f32, used: usize);
}

/// Writes one position's key and value to its block.
///
/// # Safety
/// `block` points to a block of the layout that nobody reads; two threads may write different positions or heads at once.
pub(crate) unsafe fn write_kv(
    isa: Isa,
    layout: BlockLayout,
    block: *mut f32,
    head: usize,
    slot: usize,
    key: &[f32],
    value: &[f32],
) {
    // SAFETY: as this function's: a block of this layout that nobody else touches, and a CPU with these instructions.
    unsafe {
        match layout.cache {
            CacheType::F32 => layout.write(block, head, slot, key, value, |x| x),
            CacheType::Bf16 => {
                layout.write(block.cast::<u16>(), head, slot, key, value, |x| bf16::from_f32(x).to_bits())
            }
            CacheType::Int8 => {
                let (keys, values) = (block.add(layout.keys(head)), block.add(layout.values(head)));
                int8::write(Int8Isa::best(isa), keys, values, slot, key, value);
            }
        }
    }
}

thread_local! {
    static SCRATCH: RefCell<Scratch> = RefCell::new(Scratch {
        queries: vec![0.0; ROWS * QUERY_STRIDE],
        scores: vec![0.0; ROWS * BLOCK_SIZE],
        values: vec![0.0; ROWS * VALUE_STRIDE],
        maximum: [0.0; ROWS],
        sum: [0.0; ROWS],
        correction: [0.0; ROWS + LANES],
        query_words: vec![0; ROWS * QUERY_WORDS],
        weight_words: vec![0; ROWS * WEIGHT_WORDS],
    });
}

/// Computes `out[tokens, heads * head_dim]`.
pub(crate) fn attend(team: &Team, a: &Attention<'_>, out: &mut [f32]) {
    let (d, kv_heads) = (a.layout.head_dim, a.layout.kv_heads);
    let group = a.heads / kv_heads;
    assert!((1..=ROWS).contains(&group) && d <= MAX_HEAD_DIM, "{group} heads share a key of width {d}");
    assert!(out.len() == a.tokens.len() * a.heads * d, "output of attention does not fit");
    assert!(a.queries.len() == a.tokens.len() * a.query_row && a.query_row >= a.heads * d, "queries do not fit");
    assert!(
        a.tokens.iter().all(|t| a.tables[t.sequence as usize].len() > t.position as usize / BLOCK_SIZE),
        "a query's block is not in its table"
    );
    assert!(a.sinks.is_empty() || a.sinks.len() == a.heads, "a sink for every head");
    assert!(a.slopes.is_empty() || a.slopes.len() == a.heads, "a slope for every head");
    let per_piece = ROWS / group;
    let spans = a.tokens.len().div_ceil(per_piece);
    let out = SharedMut::new(out);
    team.run(spans * kv_heads, &|piece| {
        let (span, head) = (piece / kv_heads, piece % kv_heads);
        let tokens = span * per_piece..((span + 1) * per_piece).min(a.tokens.len());
        SCRATCH.with_borrow_mut(|scratch| {
            // SAFETY: the team's instruction set was detected; sizes were checked above; a piece writes only its own
            // tokens' and heads' part of the output; block pointers come from the KV store and outlive the step.
            unsafe {
                match a.layout.cache {
                    CacheType::F32 => attend_on(team.isa(), a, tokens, head, scratch, out.pointer()),
                    CacheType::Bf16 => attend_bf16_on(team.isa(), a, tokens, head, scratch, out.pointer()),
                    CacheType::Int8 => {
                        attend_int8_on(Int8Isa::best(team.isa()), a, tokens, head, scratch, out.pointer());
                    }
                }
            }
        });
    });
}

for_each_isa! {
    fn attend_on(a: &Attention<'_>, tokens: std::ops::Range<usize>, head: usize, scratch: &mut Scratch, out: *mut f32)
        => exact_body, f32
}

for_each_isa! {
    fn attend_bf16_on(a: &Attention<'_>, tokens: std::ops::Range<usize>, head: usize, scratch: &mut Scratch, out: *mut f32)
        => exact_body, Bf16
}

for_each_unit! {
    fn attend_int8_on(
        a: &Attention<'_>, tokens: std::ops::Range<usize>, head: usize, scratch: &mut Scratch, out: *mut f32
    ) => int8_body
}

#[inline(always)]
unsafe fn exact_body<L: Lanes, E: PanelElement>(
    a: &Attention<'_>,
    tokens: std::ops::Range<usize>,
    head: usize,
    scratch: &mut Scratch,
    out: *mut f32,
) {
    // SAFETY: as `body`'s, which are this function's.
    unsafe { body::<exact::Exact<L, E>>(a, tokens, head, scratch, out) }
}

#[inline(always)]
unsafe fn int8_body<U: Int8Unit>(
    a: &Attention<'_>,
    tokens: std::ops::Range<usize>,
    head: usize,
    scratch: &mut Scratch,
    out: *mut f32,
) {
    // SAFETY: as `body`'s, which are this function's.
    unsafe { body::<int8::Int8<U>>(a, tokens, head, scratch, out) }
}

/// Tokens of a piece that read the same block: first row, rows, block.
type Run = (usize, usize, BlockPointer);

#[inline(always)]
unsafe fn body<F: Format>(
    a: &Attention<'_>,
    tokens: std::ops::Range<usize>,
    head: usize,
    s: &mut Scratch,
    out: *mut f32,
) {
    let d = a.layout.head_dim;
    let group = a.heads / a.layout.kv_heads;
    let query = &a.tokens[tokens.clone()];
    let rows = query.len() * group;
    for (i, t) in tokens.clone().enumerate() {
        for g in 0..group {
            let source = t * a.query_row + (head * group + g) * d;
            let target = (i * group + g) * QUERY_STRIDE;
            s.queries[target..target + d].copy_from_slice(&a.queries[source..source + d]);
        }
    }
    // SAFETY: the queries of `rows` rows were just copied, and the caller has the instructions.
    unsafe { F::prepare(s, rows, d) };
    if a.sinks.is_empty() {
        s.maximum[..rows].fill(f32::NEG_INFINITY);
        s.sum[..rows].fill(0.0);
    } else {
        // As if a first key with this score and a value of zero had been folded in.
        for row in 0..rows {
            s.maximum[row] = a.sinks[head * group + row % group];
            s.sum[row] = 1.0;
        }
    }
    s.values[..rows * VALUE_STRIDE].fill(0.0);

    let first_visible = |position: u32| {
        let position = position as usize;
        let of_window = a.window.map_or(0, |w| (position + 1).saturating_sub(w));
        of_window.max(a.chunk.map_or(0, |chunk| position / chunk * chunk))
    };
    let last = query.iter().map(|t| t.position as usize / BLOCK_SIZE).max().unwrap_or(0);
    let first = query.iter().map(|t| first_visible(t.position) / BLOCK_SIZE).min().unwrap_or(0);
    let mut runs: Vec<Run> = Vec::with_capacity(query.len());
    for block in first..=last {
        runs.clear();
        for (i, t) in query.iter().enumerate() {
            if t.position as usize / BLOCK_SIZE < block || first_visible(t.position) / BLOCK_SIZE > block {
                continue;
            }
            let pointer = a.tables[t.sequence as usize][block];
            match runs.last_mut() {
                Some((start, count, p)) if *p == pointer && *start + *count == i * group => *count += group,
                _ => runs.push((i * group, group, pointer)),
            }
        }
        for &(start, count, BlockPointer(pointer)) in &runs {
            // SAFETY: the caller's blocks have this layout; the head is below its count, and rows below those of the
            // scratch buffers.
            unsafe {
                let keys = pointer.add(a.layout.keys(head));
                let values = pointer.add(a.layout.values(head));
                // Positions after the last one that a row sees are masked for all: no key or value is read for them.
                let readers = &query[start / group..(start + count) / group];
                let last = readers.iter().map(|t| t.position as usize).max().unwrap_or(0);
                let used = BLOCK_SIZE.min(last + 1 - block * BLOCK_SIZE);
                F::score(s, start, count, d, keys, used);
                for row in start..start + count {
                    let position = query[row / group].position as usize;
                    let visible = first_visible(position as u32).max(block * BLOCK_SIZE)..=position;
                    let slope = a.slopes.get(head * group + row % group).copied();
                    top::<F::L>(s, row, a, block * BLOCK_SIZE, visible, slope);
                }
                fold::<F::L>(s, start, count);
                F::weigh(s, start, count, d, values, used);
            }
        }
    }
    for row in 0..rows {
        let target = (tokens.start + row / group) * a.heads * d + (head * group + row % group) * d;
        // SAFETY: the caller has room for the heads of its tokens, of which this is one of `d` values.
        unsafe { divide::<F::L>(s.values.as_ptr().add(row * VALUE_STRIDE), d, s.sum[row], out.add(target)) };
    }
}

/// `out = values / sum`. A zero has no sign: whether masked positions were added as zeros or left out must not show.
#[inline(always)]
unsafe fn divide<L: Lanes>(values: *const f32, d: usize, sum: f32, out: *mut f32) {
    let whole = d / LANES * LANES;
    // SAFETY: the caller has `d` values at both pointers; `whole` is at most `d`.
    unsafe {
        let divisor = L::splat(sum);
        for i in (0..whole).step_by(LANES) {
            L::load(values.add(i)).div(divisor).add(L::zero()).store(out.add(i));
        }
        for i in whole..d {
            *out.add(i) = *values.add(i) / sum + 0.0;
        }
    }
}

/// Turns a row's products into scores (scaled, capped, masked) and raises the row's maximum to theirs.
#[inline(always)]
unsafe fn top<L: Lanes>(
    s: &mut Scratch,
    row: usize,
    a: &Attention<'_>,
    block_start: usize,
    visible: std::ops::RangeInclusive<usize>,
    slope: Option<f32>,
) {
    // SAFETY: a row of scores has BLOCK_SIZE values, and the caller has the instructions.
    unsafe {
        let p = s.scores.as_mut_ptr().add(row * BLOCK_SIZE);
        let scale = L::splat(a.scale);
        let mut v = [L::zero(); BLOCK_SIZE / LANES];
        for (i, v) in v.iter_mut().enumerate() {
            *v = L::load(p.add(i * LANES)).mul(scale);
            if let Some(cap) = a.softcap {
                *v = math::softcap(*v, L::splat(cap));
            }
        }
        if let Some(slope) = slope {
            // Positions are exact in f32; the penalty of a key depends on its distance alone, never on the batch.
            let position = *visible.end() as f32;
            for (i, v) in v.iter_mut().enumerate() {
                let mut penalty = [0f32; LANES];
                for (lane, penalty) in penalty.iter_mut().enumerate() {
                    *penalty = slope * (position - (block_start + i * LANES + lane) as f32);
                }
                *v = v.sub(L::load(penalty.as_ptr()));
            }
        }
        for (i, v) in v.iter().enumerate() {
            v.store(p.add(i * LANES));
        }
        if *visible.start() > block_start || *visible.end() + 1 < block_start + BLOCK_SIZE {
            for i in 0..BLOCK_SIZE {
                if !visible.contains(&(block_start + i)) {
                    *p.add(i) = f32::NEG_INFINITY;
                }
            }
            for (i, v) in v.iter_mut().enumerate() {
                *v = L::load(p.add(i * LANES));
            }
        }
        let mut top = v[0];
        for &x in &v[1..] {
            top = top.max(x);
        }
        let (before, block_top) = (s.maximum[row], top.largest());
        let after = if before > block_top { before } else { block_top };
        // The difference from the maximum before; e^0 is exactly 1, e^-inf exactly 0.
        s.correction[row] = if before == after { 0.0 } else { before - after };
        s.maximum[row] = after;
    }
}

/// Turns scores of rows `start..start + count` into probabilities relative to their maximum, and differences from the maximum
/// before into the factors that correct what was summed up with it.
#[inline(always)]
unsafe fn fold<L: Lanes>(s: &mut Scratch, start: usize, count: usize) {
    // SAFETY: the buffers have LANES values after the last row, and the caller has the instructions.
    unsafe {
        // Sixteen rows at a time; the scratch buffer has room for what follows the last one.
        for row in (start..start + count).step_by(LANES) {
            let p = s.correction.as_mut_ptr().add(row);
            let mut factors = [0f32; LANES];
            math::exp(L::load(p)).store(factors.as_mut_ptr());
            let rows = LANES.min(start + count - row);
            s.correction[row..row + rows].copy_from_slice(&factors[..rows]);
        }
        for row in start..start + count {
            let p = s.scores.as_mut_ptr().add(row * BLOCK_SIZE);
            let shift = L::splat(s.maximum[row]);
            let mut total = L::zero();
            for i in 0..BLOCK_SIZE / LANES {
                let e = math::exp(L::load(p.add(i * LANES)).sub(shift));
                e.store(p.add(i * LANES));
                total = total.add(e);
            }
            s.sum[row] = s.sum[row].mul_add(s.correction[row], total.sum());
        }
    }
}
