//! Attention over a paged KV cache, for any mix of prefill and decode tokens.
//!
//! Positions are cut into blocks of [`BLOCK`]. A query walks its sequence's blocks in order and folds each into a
//! running softmax (maximum, sum, weighted values); what happens within a block is a fixed chain of operations on that
//! query. Neighbouring queries that read the same physical block (tokens of one sequence, or readers of a shared
//! prefix) share its loads, which changes the speed and not one bit of the result.

use std::cell::RefCell;

use super::lanes::{LANES, Lanes, for_each_isa};
use super::math;
use super::shared::SharedMut;
use super::tile::{Rows, tile, tiles, with_rows};
use crate::engine::native::kv::{BLOCK, BlockLayout};
use crate::engine::native::team::Team;

/// Most query rows (tokens times heads of a group) that one piece of work holds.
const ROWS: usize = 48;

/// Distance between query rows in the scratch buffer: wider than any head, and no power of two, so that rows do not
/// compete for the same cache sets.
const QUERY_STRIDE: usize = MAX_HEAD_DIM + LANES;

/// Most query heads that may share a key head.
pub(crate) const MAX_GROUP: usize = ROWS;

/// Widest supported head.
pub(crate) const MAX_HEAD_DIM: usize = 256;

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
    pub(crate) layer: usize,
    pub(crate) heads: usize,
    pub(crate) scale: f32,
    pub(crate) softcap: Option<f32>,
    pub(crate) window: Option<usize>,
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
unsafe impl Sync for BlockPointer {}

struct Scratch {
    /// `[ROWS, QUERY_STRIDE]`
    queries: Vec<f32>,
    /// `[ROWS, BLOCK]`: scores, then probabilities.
    scores: Vec<f32>,
    /// `[ROWS, MAX_HEAD_DIM]`: weighted values so far.
    values: Vec<f32>,
    maximum: [f32; ROWS],
    sum: [f32; ROWS],
    /// Sixteen are read at a time.
    correction: [f32; ROWS + LANES],
}

thread_local! {
    static SCRATCH: RefCell<Scratch> = RefCell::new(Scratch {
        queries: vec![0.0; ROWS * QUERY_STRIDE],
        scores: vec![0.0; ROWS * BLOCK],
        values: vec![0.0; ROWS * MAX_HEAD_DIM],
        maximum: [0.0; ROWS],
        sum: [0.0; ROWS],
        correction: [0.0; ROWS + LANES],
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
        a.tokens.iter().all(|t| a.tables[t.sequence as usize].len() > t.position as usize / BLOCK),
        "a query's block is not in its table"
    );
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
            unsafe { attend_on(team.isa(), a, tokens, head, scratch, out.pointer()) }
        });
    });
}

for_each_isa! {
    fn attend_on(a: &Attention<'_>, tokens: std::ops::Range<usize>, head: usize, scratch: &mut Scratch, out: *mut f32)
        => body
}

/// Tokens of a piece that read the same block: first row, rows, block.
type Run = (usize, usize, BlockPointer);

#[inline(always)]
unsafe fn body<L: Lanes>(
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
    s.maximum[..rows].fill(f32::NEG_INFINITY);
    s.sum[..rows].fill(0.0);
    s.values[..rows * MAX_HEAD_DIM].fill(0.0);

    let first_visible = |position: u32| a.window.map_or(0, |w| (position as usize + 1).saturating_sub(w));
    let last = query.iter().map(|t| t.position as usize / BLOCK).max().unwrap_or(0);
    let first = query.iter().map(|t| first_visible(t.position) / BLOCK).min().unwrap_or(0);
    let mut runs: Vec<Run> = Vec::with_capacity(query.len());
    for block in first..=last {
        runs.clear();
        for (i, t) in query.iter().enumerate() {
            if t.position as usize / BLOCK < block || first_visible(t.position) / BLOCK > block {
                continue;
            }
            let pointer = a.tables[t.sequence as usize][block];
            match runs.last_mut() {
                Some((start, count, p)) if *p == pointer && *start + *count == i * group => *count += group,
                _ => runs.push((i * group, group, pointer)),
            }
        }
        for &(start, count, BlockPointer(pointer)) in &runs {
            unsafe {
                let keys = pointer.add(a.layout.keys(a.layer, head));
                let values = pointer.add(a.layout.values(a.layer, head));
                // Positions after the last one that a row sees are masked for all: no key or value is read for them.
                let readers = &query[start / group..(start + count) / group];
                let last = readers.iter().map(|t| t.position as usize).max().unwrap_or(0);
                let used = BLOCK.min(last + 1 - block * BLOCK);
                score::<L>(s, start, count, d, keys, used);
                for row in start..start + count {
                    let position = query[row / group].position as usize;
                    let visible = first_visible(position as u32).max(block * BLOCK)..=position;
                    let slope = a.slopes.get(head * group + row % group).copied();
                    top::<L>(s, row, a, block * BLOCK, visible, slope);
                }
                fold::<L>(s, start, count);
                weigh::<L>(s, start, count, d, values, used);
            }
        }
    }
    for row in 0..rows {
        let target = (tokens.start + row / group) * a.heads * d + (head * group + row % group) * d;
        unsafe { divide::<L>(s.values.as_ptr().add(row * MAX_HEAD_DIM), d, s.sum[row], out.add(target)) };
    }
}

/// `out = values / sum`. A zero has no sign: whether masked positions were added as zeros or left out must not show.
#[inline(always)]
unsafe fn divide<L: Lanes>(values: *const f32, d: usize, sum: f32, out: *mut f32) {
    let whole = d / LANES * LANES;
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

/// Scores of rows `start..start + count` against the first `used` (at least) of the block's keys.
#[inline(always)]
unsafe fn score<L: Lanes>(s: &mut Scratch, start: usize, count: usize, d: usize, keys: *const f32, used: usize) {
    for (offset, rows) in tiles(count, L::TILE_ROWS) {
        let row = start + offset;
        unsafe {
            let q = Rows { first: s.queries.as_ptr().add(row * QUERY_STRIDE), row: QUERY_STRIDE, column: 1 };
            let target = s.scores.as_mut_ptr().add(row * BLOCK);
            with_rows!(rows, L, R => {
                if L::TILE_PANELS == 2 && used > LANES {
                    let mut acc = [[L::zero(); 2]; R];
                    tile::<L, f32, R, 2>(d, q, [keys, keys.add(d * LANES)], &mut acc);
                    for (r, [left, right]) in acc.into_iter().enumerate() {
                        left.store(target.add(r * BLOCK));
                        right.store(target.add(r * BLOCK + LANES));
                    }
                } else {
                    for panel in 0..used.div_ceil(LANES) {
                        let mut acc = [[L::zero(); 1]; R];
                        tile::<L, f32, R, 1>(d, q, [keys.add(panel * d * LANES)], &mut acc);
                        for (r, [only]) in acc.into_iter().enumerate() {
                            only.store(target.add(r * BLOCK + panel * LANES));
                        }
                    }
                }
            });
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
    unsafe {
        let p = s.scores.as_mut_ptr().add(row * BLOCK);
        let scale = L::splat(a.scale);
        let mut v = [L::zero(); BLOCK / LANES];
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
        if *visible.start() > block_start || *visible.end() + 1 < block_start + BLOCK {
            for i in 0..BLOCK {
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
            let p = s.scores.as_mut_ptr().add(row * BLOCK);
            let shift = L::splat(s.maximum[row]);
            let mut total = L::zero();
            for i in 0..BLOCK / LANES {
                let e = math::exp(L::load(p.add(i * LANES)).sub(shift));
                e.store(p.add(i * LANES));
                total = total.add(e);
            }
            s.sum[row] = s.sum[row].mul_add(s.correction[row], total.sum());
        }
    }
}

/// Adds the first `used` of the block's values, weighted, to rows `start..start + count`.
#[inline(always)]
unsafe fn weigh<L: Lanes>(s: &mut Scratch, start: usize, count: usize, d: usize, values: *const f32, used: usize) {
    let panels = d.div_ceil(LANES);
    for (offset, rows) in tiles(count, L::TILE_ROWS) {
        let row = start + offset;
        unsafe {
            let p = Rows { first: s.scores.as_ptr().add(row * BLOCK), row: BLOCK, column: 1 };
            let target = s.values.as_mut_ptr().add(row * MAX_HEAD_DIM);
            let mut panel = 0;
            while panel < panels {
                let source = values.add(panel * BLOCK * LANES);
                let pair = L::TILE_PANELS == 2 && panel + 1 < panels;
                with_rows!(rows, L, R => {
                    if pair {
                        let mut acc = [[L::zero(); 2]; R];
                        for r in 0..R {
                            let c = L::splat(s.correction[row + r]);
                            let t = target.add(r * MAX_HEAD_DIM + panel * LANES);
                            acc[r] = [L::load(t).mul(c), L::load(t.add(LANES)).mul(c)];
                        }
                        tile::<L, f32, R, 2>(used, p, [source, source.add(BLOCK * LANES)], &mut acc);
                        for (r, [left, right]) in acc.into_iter().enumerate() {
                            let t = target.add(r * MAX_HEAD_DIM + panel * LANES);
                            left.store(t);
                            right.store(t.add(LANES));
                        }
                    } else {
                        let mut acc = [[L::zero(); 1]; R];
                        for r in 0..R {
                            let c = L::splat(s.correction[row + r]);
                            acc[r] = [L::load(target.add(r * MAX_HEAD_DIM + panel * LANES)).mul(c)];
                        }
                        tile::<L, f32, R, 1>(used, p, [source], &mut acc);
                        for (r, [only]) in acc.into_iter().enumerate() {
                            only.store(target.add(r * MAX_HEAD_DIM + panel * LANES));
                        }
                    }
                });
                panel += if pair { 2 } else { 1 };
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checkpoint::alibi_slopes;
    use crate::engine::native::kernels::lanes::Isa;
    use crate::engine::native::kernels::testing::noise;

    /// A cache of one layer holding `length` positions of each sequence; the first `shared` positions' blocks are the
    /// same memory in all of them.
    struct Cache {
        layout: BlockLayout,
        blocks: Vec<Vec<f32>>,
        tables: Vec<Vec<BlockPointer>>,
        keys: Vec<Vec<f32>>,
        values: Vec<Vec<f32>>,
    }

    fn cache(layout: BlockLayout, sequences: usize, length: usize, shared_blocks: usize) -> Cache {
        let width = layout.kv_heads * layout.head_dim;
        let per_sequence = length.div_ceil(BLOCK);
        let mut c = Cache { layout, blocks: vec![], tables: vec![], keys: vec![], values: vec![] };
        for s in 0..sequences {
            let (mut k, mut v) = (noise(length * width, 10 + s as u64), noise(length * width, 90 + s as u64));
            if s > 0 {
                let n = (shared_blocks * BLOCK * width).min(k.len());
                k[..n].copy_from_slice(&c.keys[0][..n]);
                v[..n].copy_from_slice(&c.values[0][..n]);
            }
            for b in 0..per_sequence {
                let mut block = vec![0f32; layout.floats()];
                for slot in 0..BLOCK.min(length - b * BLOCK) {
                    let at = (b * BLOCK + slot) * width;
                    for h in 0..layout.kv_heads {
                        let r = at + h * layout.head_dim..at + (h + 1) * layout.head_dim;
                        unsafe { layout.write(block.as_mut_ptr(), 0, h, slot, &k[r.clone()], &v[r]) };
                    }
                }
                c.blocks.push(block);
            }
            c.keys.push(k);
            c.values.push(v);
        }
        for s in 0..sequences {
            let own = |b: usize| if b < shared_blocks { b } else { s * per_sequence + b };
            c.tables.push((0..per_sequence).map(|b| BlockPointer(c.blocks[own(b)].as_ptr())).collect());
        }
        c
    }

    #[expect(clippy::too_many_arguments, reason = "an independent formula, everything explicit")]
    fn reference(
        c: &Cache,
        seq: usize,
        position: usize,
        q: &[f32],
        heads: usize,
        scale: f64,
        cap: Option<f32>,
        window: Option<usize>,
        slopes: &[f32],
    ) -> Vec<f64> {
        let (d, kv) = (c.layout.head_dim, c.layout.kv_heads);
        let mut out = vec![];
        for h in 0..heads {
            let kh = h / (heads / kv);
            let from = window.map_or(0, |w| (position + 1).saturating_sub(w));
            let scores: Vec<f64> = (from..=position)
                .map(|p| {
                    let k = &c.keys[seq][(p * kv + kh) * d..][..d];
                    let s: f64 = (0..d).map(|i| f64::from(q[h * d + i]) * f64::from(k[i])).sum::<f64>() * scale;
                    let capped = cap.map_or(s, |c| f64::from(c) * (s / f64::from(c)).tanh());
                    capped - slopes.get(h).map_or(0.0, |slope| f64::from(*slope) * (position - p) as f64)
                })
                .collect();
            let top = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            let weights: Vec<f64> = scores.iter().map(|s| (s - top).exp()).collect();
            let total: f64 = weights.iter().sum();
            for i in 0..d {
                let sum: f64 = (from..=position)
                    .zip(&weights)
                    .map(|(p, w)| w * f64::from(c.values[seq][(p * kv + kh) * d + i]))
                    .sum();
                out.push(sum / total);
            }
        }
        out
    }

    #[test]
    fn attention_matches_the_formula_and_ignores_neighbours() {
        for (heads, kv_heads, d, cap, window, alibi) in [
            (4, 2, 16, None, None, false),
            (4, 4, 24, Some(5.0), None, false),
            (6, 1, 64, None, Some(16), false),
            (3, 3, 80, None, Some(70), false),
            (8, 1, 256, Some(50.0), Some(33), false),
            (8, 2, 32, None, None, true),
            (6, 3, 40, None, Some(50), true),
        ] {
            let slopes = if alibi { alibi_slopes(heads) } else { Vec::new() };
            let layout = BlockLayout { layers: 1, kv_heads, head_dim: d };
            let c = cache(layout, 5, 100, 2);
            let mut tokens: Vec<QueryToken> = vec![];
            for (sequence, positions) in [(0, 0..1), (0, 31..34), (1, 63..66), (2, 99..100), (3, 99..100), (4, 20..90)]
            {
                tokens.extend(positions.map(|position| QueryToken { position, sequence }));
            }
            let row = heads * d + 7;
            let queries = noise(tokens.len() * row, 77);
            let scale = 1.0 / (d as f32).sqrt() * 3.0;
            let run = |team: &Team, tokens: &[QueryToken], queries: &[f32]| {
                let mut out = vec![0f32; tokens.len() * heads * d];
                let a = Attention {
                    layout,
                    layer: 0,
                    heads,
                    scale,
                    softcap: cap,
                    window,
                    slopes: &slopes,
                    tokens,
                    tables: &c.tables,
                    queries,
                    query_row: row,
                };
                attend(team, &a, &mut out);
                out
            };
            let all = run(&Team::new(1), &tokens, &queries);
            for (i, t) in tokens.iter().enumerate() {
                let q = &queries[i * row..(i + 1) * row];
                let expected = reference(
                    &c,
                    t.sequence as usize,
                    t.position as usize,
                    q,
                    heads,
                    scale.into(),
                    cap,
                    window,
                    &slopes,
                );
                let got = &all[i * heads * d..(i + 1) * heads * d];
                for (e, g) in expected.iter().zip(got) {
                    assert!((e - f64::from(*g)).abs() < 1e-5, "{t:?} {e} {g}");
                }
                let alone = run(&Team::new(1), &tokens[i..=i], q);
                assert!(alone.iter().zip(got).all(|(a, b)| a.to_bits() == b.to_bits()), "{t:?} moves with its batch");
            }
            for isa in Isa::all() {
                for threads in [1, 2] {
                    let other = run(&Team::with_isa(threads, isa), &tokens, &queries);
                    assert!(all.iter().zip(&other).all(|(a, b)| a.to_bits() == b.to_bits()), "{}", isa.name());
                }
            }
        }
    }
}
