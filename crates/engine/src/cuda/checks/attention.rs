//! Attention against its definition.

use super::{Outcome, bits, get, noise, put, worse};
use crate::core::Piece;
use crate::cuda::attention_plan::{AttentionPlan, Setting};
use crate::cuda::device::{Address, Argument, Device, DeviceError, Element};
use crate::cuda::kernels::{Unit, WIDE_THREADS, attention_shared, tall_threads};
use earnest_models::checkpoint::alibi_slopes;

/// Heads and options of an attention.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Shape {
    pub(crate) element: Element,
    pub(crate) alibi: bool,
    pub(crate) dim: usize,
    pub(crate) group: usize,
    pub(crate) kv_heads: usize,
    pub(crate) softcap: Option<f32>,
    pub(crate) window: Option<usize>,
    pub(crate) chunk: Option<usize>,
    pub(crate) sinks: bool,
}

const PLAIN: Shape = Shape {
    element: Element::Bf16,
    alibi: false,
    dim: 64,
    group: 1,
    kv_heads: 1,
    softcap: None,
    window: None,
    chunk: None,
    sinks: false,
};

impl Shape {
    fn scale(&self) -> f32 {
        1.0 / (self.dim as f32).sqrt()
    }
}

/// The shapes that are checked: heads from 64 to 256, groups that fill a tile and that do not, both types of 16 bits, every mask and sinks.
pub(crate) const SHAPES: [Shape; 12] = [
    Shape { group: 3, ..PLAIN },
    Shape { dim: 80, kv_heads: 2, ..PLAIN },
    Shape { dim: 96, group: 4, window: Some(70), ..PLAIN },
    Shape { dim: 128, group: 4, kv_heads: 2, ..PLAIN },
    Shape { dim: 128, group: 7, window: Some(150), ..PLAIN },
    Shape { dim: 256, group: 2, softcap: Some(5.0), window: Some(200), ..PLAIN },
    Shape { group: 20, softcap: Some(2.0), ..PLAIN },
    Shape { element: Element::F16, group: 3, ..PLAIN },
    Shape { element: Element::F16, alibi: true, dim: 160, group: 2, ..PLAIN },
    Shape { alibi: true, dim: 192, group: 2, softcap: Some(5.0), window: Some(150), ..PLAIN },
    Shape { group: 8, window: Some(128), sinks: true, ..PLAIN },
    Shape { dim: 128, group: 5, chunk: Some(100), sinks: true, ..PLAIN },
];

/// Attention by its definition, in double precision, for one token and head.
fn attention_by_definition(
    q: &[f32],
    keys: &[Vec<f32>],
    values: &[Vec<f32>],
    shape: &Shape,
    position: usize,
    slope: f32,
    sink: Option<f32>,
) -> Vec<f64> {
    let seen = shape.window.map_or(0, |w| (position + 1).saturating_sub(w));
    let first = seen.max(shape.chunk.map_or(0, |n| position / n * n));
    let scores: Vec<f64> = (first..=position)
        .map(|p| {
            let dot: f64 = q.iter().zip(&keys[p]).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum();
            let x = dot * f64::from(shape.scale());
            shape.softcap.map_or(x, |c| f64::from(c) * (x / f64::from(c)).tanh())
                - f64::from(slope) * (position - p) as f64
        })
        .collect();
    let sink = sink.map_or(f64::NEG_INFINITY, f64::from);
    let top = scores.iter().copied().fold(sink, f64::max);
    let weights: Vec<f64> = scores.iter().map(|s| (s - top).exp()).collect();
    let total = weights.iter().sum::<f64>() + (sink - top).exp();
    (0..q.len())
        .map(|d| weights.iter().zip(&values[first..]).map(|(w, v)| w * f64::from(v[d])).sum::<f64>() / total)
        .collect()
}

/// Lengths of the sequences, of which the last is a prompt's piece of so many tokens, and all tokens.
const LENGTHS: [usize; 3] = [300, 140, 270];
const PIECE: usize = 20;
const TOKENS: usize = 2 + PIECE;

/// Sequence and position of a token.
fn place(token: usize) -> (usize, usize) {
    if token < 2 { (token, LENGTHS[token] - 1) } else { (2, LENGTHS[2] - PIECE + token - 2) }
}

/// Block of the cache for a block of a sequence; the first four are of all sequences.
fn block_of(sequence: usize, block: usize) -> usize {
    if block < 4 { block } else { 4 + sequence * 8 + block }
}

/// Queries, keys and values of three sequences that share their first 128 positions.
struct Sequences {
    queries: Vec<f32>,
    /// By sequence, head and position.
    keys: Vec<Vec<Vec<Vec<f32>>>>,
    values: Vec<Vec<Vec<Vec<f32>>>>,
    k_cache: Vec<f32>,
    v_cache: Vec<f32>,
    tables: Vec<i32>,
    pieces: [Piece; 3],
}

impl Sequences {
    fn new(shape: &Shape) -> Sequences {
        let Shape { dim, group, kv_heads, .. } = *shape;
        let mut seed = 1u64;
        let total = 4 + 3 * 8 + 12;
        let size = kv_heads * 32 * dim;
        let (mut k_cache, mut v_cache) = (vec![f32::NAN; total * size], vec![f32::NAN; total * size]);
        let mut keys = vec![vec![vec![vec![0f32; dim]; 320]; kv_heads]; 3];
        let mut values = keys.clone();
        for s in 0..3 {
            for head in 0..kv_heads {
                for p in 0..LENGTHS[s] {
                    let (key, value) = if p < 128 && s > 0 {
                        (keys[0][head][p].clone(), values[0][head][p].clone())
                    } else {
                        (noise(&mut seed, dim), noise(&mut seed, dim))
                    };
                    let at = (block_of(s, p / 32) * kv_heads + head) * 32 * dim + p % 32 * dim;
                    k_cache[at..at + dim].copy_from_slice(&key);
                    v_cache[at..at + dim].copy_from_slice(&value);
                    (keys[s][head][p], values[s][head][p]) = (key, value);
                }
            }
        }
        let queries = noise(&mut seed, TOKENS * group * kv_heads * dim).iter().map(|x| x * 2.0).collect();
        let mut tables: Vec<i32> = vec![];
        let mut starts = vec![];
        for (s, length) in LENGTHS.iter().enumerate() {
            starts.push(tables.len());
            tables.extend((0..length.div_ceil(32)).map(|b| block_of(s, b) as i32));
        }
        let pieces = [
            Piece { token: 0, position: LENGTHS[0] - 1, count: 1, table: starts[0] },
            Piece { token: 1, position: LENGTHS[1] - 1, count: 1, table: starts[1] },
            Piece { token: 2, position: LENGTHS[2] - PIECE, count: PIECE, table: starts[2] },
        ];
        Sequences { queries, keys, values, k_cache, v_cache, tables, pieces }
    }

    /// The largest distance of a result to the definition.
    fn error(&self, shape: &Shape, slopes: &[f32], sinks: &[f32], got: &[u16]) -> f64 {
        let (dim, heads) = (shape.dim, slopes.len());
        let mut error = 0.0;
        for token in 0..TOKENS {
            let (s, position) = place(token);
            for (h, &slope) in slopes.iter().enumerate() {
                let (at, head) = ((token * heads + h) * dim, h / shape.group);
                let q = &self.queries[at..at + dim];
                let (k, v, sink) = (&self.keys[s][head], &self.values[s][head], shape.sinks.then_some(sinks[h]));
                let expected = attention_by_definition(q, k, v, shape, position, slope, sink);
                for (d, e) in expected.iter().enumerate() {
                    let value = match shape.element {
                        Element::F16 => half::f16::from_bits(got[at + d]).to_f32(),
                        _ => half::bf16::from_bits(got[at + d]).to_f32(),
                    };
                    error = worse(error, (f64::from(value) - e).abs());
                }
            }
        }
        error
    }
}

/// Three sequences that share their first 128 positions: single tokens in all arrangements, and a prompt's piece. `before` hears of
/// each arrangement.
pub(crate) fn attention<D: Device>(
    device: &mut D,
    shape: &Shape,
    before: &mut dyn FnMut(&mut D, usize),
) -> Result<Outcome, DeviceError> {
    let Shape { dim, group, kv_heads, .. } = *shape;
    let heads = group * kv_heads;
    let unit = device.load(&Unit::attention(shape.element, dim))?;
    let (tall_shared, wide_shared) = attention_shared(dim);
    let tall = device.kernel(unit, "attend_tall", tall_shared)?;
    let wide = device.kernel(unit, "attend_wide", wide_shared)?;
    let merge = device.kernel(unit, "attend_merge", 0)?;
    let sequences = Sequences::new(shape);
    let Sequences { queries, k_cache, v_cache, tables, pieces, .. } = &sequences;
    let positions: Vec<i32> = (0..TOKENS).map(|token| place(token).1 as i32).collect();
    let elements = |v: &[f32]| bits(shape.element, v);
    let slopes = if shape.alibi { alibi_slopes(heads) } else { vec![0.0; heads] };
    let slopes_at = if shape.alibi { put(device, &slopes)? } else { 0 };
    let sinks: Vec<f32> = (0..heads).map(|h| h as f32 * 0.7 - 0.5).collect();
    let sinks_at = if shape.sinks { put(device, &sinks)? } else { 0 };
    let q = put(device, &elements(queries))?;
    let (k, v) = (put(device, &elements(k_cache))?, put(device, &elements(v_cache))?);
    let (table_at, position_at) = (put(device, tables)?, put(device, &positions)?);
    let state = put(device, &vec![f32::NAN; 64 * heads * (dim + 2)])?;
    let mut first: Option<Vec<u16>> = None;
    let mut outcome = Outcome { error: 0.0, same_bits: true };
    // Shared and cut, neither, everything as rows of attend_tall, shared and gone on from.
    let arrangements = [(132, 64), (132, 0), (0, 0), (132, 64), (0, 64)];
    for (arrangement, (multiprocessors, states)) in arrangements.into_iter().enumerate() {
        before(device, arrangement);
        let setting = Setting { heads, kv_heads, head_dim: dim, multiprocessors, states };
        let mut plan = AttentionPlan::new(pieces, tables, &setting);
        if arrangement == 0 {
            // Else this would be the same arrangement as the next.
            outcome.same_bits &= plan.merges.len() == 6 && !plan.tall.is_empty();
        }
        if arrangement == 4 {
            let goes_on = |item: &[i32]| item[7] < -1;
            outcome.same_bits &= plan.merges.is_empty() && plan.wide.chunks(8).any(goes_on);
            plan.pad();
        }
        if arrangement == 3 {
            plan.tall.append(&mut plan.wide);
        }
        let out = put(device, &vec![0x7fc0u16; TOKENS * heads * dim])?;
        let arguments = |items: Address| -> [Argument; 17] {
            [
                q.into(),
                k.into(),
                v.into(),
                items.into(),
                table_at.into(),
                position_at.into(),
                slopes_at.into(),
                sinks_at.into(),
                out.into(),
                state.into(),
                (dim as i32).into(),
                (group as i32).into(),
                (kv_heads as i32).into(),
                shape.scale().into(),
                shape.softcap.unwrap_or(0.0).into(),
                (shape.window.unwrap_or(0) as i32).into(),
                (shape.chunk.unwrap_or(0) as i32).into(),
            ]
        };
        let (tall_items, wide_items) = (put(device, &plan.tall)?, put(device, &plan.wide)?);
        let merges = [
            state.into(),
            put(device, &plan.merges)?.into(),
            put(device, &plan.slots)?.into(),
            sinks_at.into(),
            out.into(),
            (dim as i32).into(),
            (heads as i32).into(),
        ];
        let grid = |items: &[i32]| [items.len() / 8, kv_heads, 1];
        // SAFETY: the kernels' parameters, of the sizes that they describe.
        unsafe {
            device.launch(tall, grid(&plan.tall), tall_threads(dim), tall_shared, &arguments(tall_items))?;
            device.launch(wide, grid(&plan.wide), WIDE_THREADS, wide_shared, &arguments(wide_items))?;
            device.launch(merge, [plan.merges.len() / 3, heads, 1], 128, 0, &merges)?;
        }
        let got = get::<u16>(device, out, TOKENS * heads * dim)?;
        if let Some(first) = &first {
            outcome.same_bits &= *first == got;
            continue;
        }
        outcome.error = worse(outcome.error, sequences.error(shape, &slopes, &sinks, &got));
        first = Some(got);
    }
    Ok(outcome)
}
