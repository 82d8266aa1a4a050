//! Attention against its formula.

use super::*;
use crate::cpu::kernels::lanes::Isa;
use crate::cpu::kernels::testing::noise;
use crate::cpu::kv::CacheLayout;
use earnest_models::checkpoint::alibi_slopes;

/// A cache line: blocks begin on one.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
struct Line([f32; LANES]);

fn empty_block(layout: BlockLayout) -> Vec<Line> {
    empty(layout.floats())
}

fn empty(floats: usize) -> Vec<Line> {
    assert!(floats.is_multiple_of(LANES));
    vec![Line([0.0; LANES]); floats / LANES]
}

fn floats(block: &[Line]) -> &[f32] {
    // SAFETY: lines are floats without gaps.
    unsafe { std::slice::from_raw_parts(block.as_ptr().cast(), block.len() * LANES) }
}

fn floats_mut(block: &mut [Line]) -> &mut [f32] {
    // SAFETY: lines are floats without gaps.
    unsafe { std::slice::from_raw_parts_mut(block.as_mut_ptr().cast(), block.len() * LANES) }
}

/// A cache of one layer holding `length` positions of each sequence; the first `shared` positions' blocks are the
/// same memory in all of them.
struct Cache {
    layout: BlockLayout,
    blocks: Vec<Vec<Line>>,
    tables: Vec<Vec<BlockPointer>>,
    keys: Vec<Vec<f32>>,
    values: Vec<Vec<f32>>,
}

fn cache(layout: BlockLayout, sequences: usize, length: usize, shared_blocks: usize) -> Cache {
    let width = layout.kv_heads * layout.head_dim;
    let per_sequence = length.div_ceil(BLOCK_SIZE);
    let mut c = Cache { layout, blocks: vec![], tables: vec![], keys: vec![], values: vec![] };
    for s in 0..sequences {
        let (mut k, mut v) = (noise(length * width, 10 + s as u64), noise(length * width, 90 + s as u64));
        if s > 0 {
            let n = (shared_blocks * BLOCK_SIZE * width).min(k.len());
            k[..n].copy_from_slice(&c.keys[0][..n]);
            v[..n].copy_from_slice(&c.values[0][..n]);
        }
        for b in 0..per_sequence {
            let mut block = empty_block(layout);
            for slot in 0..BLOCK_SIZE.min(length - b * BLOCK_SIZE) {
                let at = (b * BLOCK_SIZE + slot) * width;
                for h in 0..layout.kv_heads {
                    let r = at + h * layout.head_dim..at + (h + 1) * layout.head_dim;
                    // SAFETY: the block has the size of the layout, and the CPU has these instructions.
                    unsafe {
                        write_kv(Isa::detect(), layout, block.as_mut_ptr().cast(), h, slot, &k[r.clone()], &v[r])
                    };
                }
            }
            c.blocks.push(block);
        }
        c.keys.push(k);
        c.values.push(v);
    }
    for s in 0..sequences {
        let own = |b: usize| if b < shared_blocks { b } else { s * per_sequence + b };
        c.tables.push((0..per_sequence).map(|b| BlockPointer(c.blocks[own(b)].as_ptr().cast())).collect());
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
    chunk: Option<usize>,
    sinks: &[f32],
    slopes: &[f32],
) -> Vec<f64> {
    let (d, kv) = (c.layout.head_dim, c.layout.kv_heads);
    let mut out = vec![];
    for h in 0..heads {
        let kh = h / (heads / kv);
        let from = window.map_or(0, |w| (position + 1).saturating_sub(w));
        let from = chunk.map_or(from, |chunk| from.max(position - position % chunk));
        let scores: Vec<f64> = (from..=position)
            .map(|p| {
                let k = &c.keys[seq][(p * kv + kh) * d..][..d];
                let s: f64 = (0..d).map(|i| f64::from(q[h * d + i]) * f64::from(k[i])).sum::<f64>() * scale;
                let capped = cap.map_or(s, |c| f64::from(c) * (s / f64::from(c)).tanh());
                capped - slopes.get(h).map_or(0.0, |slope| f64::from(*slope) * (position - p) as f64)
            })
            .collect();
        let sink = sinks.get(h).map_or(f64::NEG_INFINITY, |s| f64::from(*s));
        let top = scores.iter().copied().fold(sink, f64::max);
        let weights: Vec<f64> = scores.iter().map(|s| (s - top).exp()).collect();
        let total: f64 = weights.iter().sum::<f64>() + (sink - top).exp();
        for i in 0..d {
            let sum: f64 =
                (from..=position).zip(&weights).map(|(p, w)| w * f64::from(c.values[seq][(p * kv + kh) * d + i])).sum();
            out.push(sum / total);
        }
    }
    out
}

#[test]
fn attention_matches_the_formula_and_ignores_neighbours() {
    for (cache_type, (heads, kv_heads, d, cap, window, chunk, sunk, alibi)) in [
        (4, 2, 16, None, None, None, false, false),
        (4, 4, 24, Some(5.0), None, None, false, false),
        (6, 1, 64, None, Some(16), None, false, false),
        (3, 3, 80, None, Some(70), None, false, false),
        (8, 1, 256, Some(50.0), Some(33), None, false, false),
        (8, 2, 32, None, None, None, false, true),
        (6, 3, 40, None, Some(50), None, false, true),
        // The widest head, chunks on and off the border of blocks, and sinks.
        (2, 1, 512, None, None, None, false, false),
        (4, 2, 24, None, None, Some(1), false, false),
        (4, 2, 24, None, None, Some(32), false, false),
        (4, 2, 24, None, None, Some(45), false, false),
        (6, 2, 16, None, None, None, true, false),
        (6, 2, 40, None, Some(1), None, true, false),
        (6, 2, 40, None, Some(17), None, true, false),
    ]
    .into_iter()
    .flat_map(|case| [(CacheType::F32, case), (CacheType::Bf16, case), (CacheType::Int8, case)])
    {
        let slopes = if alibi { alibi_slopes(heads) } else { Vec::new() };
        // Below, among and above the scores.
        let sinks: Vec<f32> = if sunk { (0..heads).map(|h| h as f32 * 2.0 - 4.0).collect() } else { Vec::new() };
        let layout = BlockLayout { cache: cache_type, kv_heads, head_dim: d, start: 0 };
        let c = cache(layout, 5, 100, 2);
        let mut tokens: Vec<QueryToken> = vec![];
        for (sequence, positions) in [(0, 0..1), (0, 31..34), (1, 63..66), (2, 99..100), (3, 99..100), (4, 20..90)] {
            tokens.extend(positions.map(|position| QueryToken { position, sequence }));
        }
        let row = heads * d + 7;
        let queries = noise(tokens.len() * row, 77);
        let scale = 1.0 / (d as f32).sqrt() * 3.0;
        let run = |team: &Team, tokens: &[QueryToken], queries: &[f32]| {
            let mut out = vec![0f32; tokens.len() * heads * d];
            let a = Attention {
                layout,
                heads,
                scale,
                softcap: cap,
                window,
                chunk,
                sinks: &sinks,
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
            let (sequence, position) = (t.sequence as usize, t.position as usize);
            let expected =
                reference(&c, sequence, position, q, heads, scale.into(), cap, window, chunk, &sinks, &slopes);
            let got = &all[i * heads * d..(i + 1) * heads * d];
            match cache_type {
                CacheType::F32 => {
                    for (e, g) in expected.iter().zip(got) {
                        assert!((e - f64::from(*g)).abs() < 1e-5, "{t:?} {e} {g}");
                    }
                }
                CacheType::Bf16 | CacheType::Int8 => {
                    let most = if cache_type == CacheType::Int8 { 0.03 } else { 0.01 };
                    let size = |v: &mut dyn Iterator<Item = f64>| v.map(|x| x * x).sum::<f64>().sqrt();
                    let error = size(&mut expected.iter().zip(got).map(|(e, g)| e - f64::from(*g)));
                    let all = size(&mut expected.iter().copied());
                    assert!(error < most * all, "{t:?} heads of {d}: {error} of {all}");
                }
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

#[test]
fn blocks_of_bytes_and_of_bf16_have_the_same_bits_on_every_unit_and_copies_hold_the_positions_they_should() {
    for (cache, d) in [CacheType::Int8, CacheType::Bf16].into_iter().flat_map(|c| [8, 24, 64, 80, 256].map(|d| (c, d)))
    {
        let layout = CacheLayout::new(cache, [(2, d), (1, d + 8)].into_iter());
        let fill = |isa: Isa, count: usize| {
            let mut block = empty(layout.floats());
            for slot in 0..count {
                for (layer, head) in [(0, 0), (0, 1), (1, 0)] {
                    let seed = (slot * 4 + layer * 2 + head) as u64;
                    let place = layout.layer(layer);
                    let (key, value) = (noise(place.head_dim, seed), noise(place.head_dim, seed + 1000));
                    // SAFETY: the block has the size of the layout, and the CPU has these instructions.
                    unsafe { write_kv(isa, place, block.as_mut_ptr().cast(), head, slot, &key, &value) };
                }
            }
            floats(&block).iter().map(|x| x.to_bits()).collect::<Vec<u32>>()
        };
        let full = fill(Isa::detect(), BLOCK_SIZE);
        for isa in Isa::all() {
            assert_eq!(full, fill(isa, BLOCK_SIZE), "{} writes other bytes", isa.name());
        }
        let mut source = empty(layout.floats());
        for (x, bits) in floats_mut(&mut source).iter_mut().zip(&full) {
            *x = f32::from_bits(*bits);
        }
        for count in [0, 1, 3, 15, 16, 17, 31, 32] {
            let mut copy = empty(layout.floats());
            layout.copy_positions(floats(&source), floats_mut(&mut copy), count);
            let bits: Vec<u32> = floats(&copy).iter().map(|x| x.to_bits()).collect();
            assert_eq!(bits, fill(Isa::detect(), count), "{count} positions, heads of {d}");
        }
    }
}

#[test]
fn keys_and_values_that_are_not_finite_show_in_bytes_too() {
    let (d, heads) = (40, 2);
    let layout = BlockLayout { cache: CacheType::Int8, kv_heads: 1, head_dim: d, start: 0 };
    for bad in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
        for (in_key, at) in [(true, 3), (true, 35), (false, 3), (false, 35)] {
            let mut block = empty_block(layout);
            for slot in 0..2 {
                let (mut key, mut value) = (noise(d, slot), noise(d, slot + 9));
                if slot == 1 {
                    if in_key { key[at] = bad } else { value[at] = bad }
                }
                let p = block.as_mut_ptr().cast();
                // SAFETY: the block has the size of the layout, and the CPU has these instructions.
                unsafe { write_kv(Isa::detect(), layout, p, 0, slot as usize, &key, &value) };
            }
            let tables = [vec![BlockPointer(block.as_ptr().cast())]];
            let queries = noise(heads * d, 5);
            for isa in Isa::all() {
                let mut out = vec![0f32; heads * d];
                let a = Attention {
                    layout,
                    heads,
                    scale: 0.1,
                    softcap: None,
                    window: None,
                    chunk: None,
                    sinks: &[],
                    slopes: &[],
                    tokens: &[QueryToken { position: 1, sequence: 0 }],
                    tables: &tables,
                    queries: &queries,
                    query_row: heads * d,
                };
                attend(&Team::with_isa(1, isa), &a, &mut out);
                assert!(
                    out.iter().all(|x| x.is_nan()),
                    "{bad} in the {} is hidden",
                    if in_key { "key" } else { "value" }
                );
            }
        }
    }
}

#[test]
fn bf16_attention_is_that_in_f32_with_rounded_keys_and_values() {
    let (heads, kv_heads, d) = (6, 2, 40);
    let outputs = [CacheType::F32, CacheType::Bf16].map(|cache_type| {
        let layout = BlockLayout { cache: cache_type, kv_heads, head_dim: d, start: 0 };
        let mut block = empty_block(layout);
        for slot in 0..BLOCK_SIZE {
            for head in 0..kv_heads {
                let round = |seed| -> Vec<f32> {
                    let exact = noise(d, (slot * 9 + head * 2) as u64 + seed);
                    if cache_type == CacheType::Bf16 {
                        return exact;
                    }
                    exact.into_iter().map(|x| bf16::from_f32(x).to_f32()).collect()
                };
                let p = block.as_mut_ptr().cast();
                // SAFETY: the block has the size of the layout, and the CPU has these instructions.
                unsafe { write_kv(Isa::detect(), layout, p, head, slot, &round(0), &round(1)) };
            }
        }
        let tables = [vec![BlockPointer(block.as_ptr().cast())]];
        let tokens: Vec<QueryToken> = (0..32).map(|position| QueryToken { position, sequence: 0 }).collect();
        let queries = noise(tokens.len() * heads * d, 5);
        let mut out = vec![0f32; queries.len()];
        let a = Attention {
            layout,
            heads,
            scale: 0.3,
            softcap: None,
            window: None,
            chunk: None,
            sinks: &[],
            slopes: &[],
            tokens: &tokens,
            tables: &tables,
            queries: &queries,
            query_row: heads * d,
        };
        attend(&Team::new(1), &a, &mut out);
        out.into_iter().map(f32::to_bits).collect::<Vec<_>>()
    });
    assert!(outputs[0] == outputs[1]);
}
