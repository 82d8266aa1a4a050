//! Single kernels against what they are defined to compute, on any device: on a GPU by `earnest dev kernels`, in tests on their twins.

use candle_core::quantized::{GgmlDType, QTensor};
use candle_core::{Device as CandleDevice, Tensor};

use super::attention_plan::{AttentionPlan, Setting};
use super::device::{Address, Argument, Device, DeviceError, Element, Out};
use super::error::CudaError;
use super::gpu::Gpu;
use super::kernels::{Kind, Unit, attention_shared, tall_threads};
use super::memory::most_tiles;
use super::options::{Options, Variants};
use super::products::{ProductRunner, ProductSettings, SortedRows};
use super::weights::{Matrix, Part, repack};
use crate::core::Piece;
use crate::core::sampler::{sample, uniform};
use crate::cpu::kernels::Isa;
use crate::{Sampling, SamplingKey};
use earnest_models::checkpoint::alibi_slopes;

/// Result of a check.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct KernelCheck {
    /// Name of the kernels and sizes.
    pub name: String,
    /// Largest distance of a result to its definition in double precision.
    pub error: f64,
    /// Largest distance allowed.
    pub tolerance: f64,
    /// Results whose bits have to be the same, in other arrangements of the work or by other kernels, are.
    pub same_bits: bool,
    /// The error is within the tolerance and the bits are the same.
    pub passed: bool,
}

/// Result of one kernel's check, before it is compared with a tolerance.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Outcome {
    pub(crate) error: f64,
    pub(crate) same_bits: bool,
}

impl Outcome {
    fn check(self, name: String, tolerance: f64) -> KernelCheck {
        // Not a number is no pass.
        let passed = self.error <= tolerance && self.same_bits;
        let error = if self.error.is_finite() { self.error } else { f64::MAX };
        KernelCheck { name, error, tolerance, same_bits: self.same_bits, passed }
    }
}

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

/// All storage formats of a matrix.
pub(crate) const KINDS: [Kind; 5] = [Kind::Dense, Kind::Q8_0, Kind::Q4K, Kind::Q5K, Kind::Q6K];

/// Tolerances of attention and of products: results of attention are rounded to bf16, those of products are not.
const ATTENTION_TOLERANCE: f64 = 0.012;
const PRODUCT_TOLERANCE: f64 = 1e-3;

/// Runs every check on a GPU.
///
/// # Errors
/// [`CudaError`] if the GPU can not be used or a kernel fails; a wrong result is no error but a check that has not passed.
pub fn check_kernels(index: usize) -> Result<Vec<KernelCheck>, CudaError> {
    let gpu = &mut Gpu::open(index, Options::default().kernel_cache, true)?;
    let shared = gpu.info()?.shared;
    let mut all = vec![];
    for shape in &SHAPES {
        let (tall, wide) = attention_shared(shape.dim);
        let Shape { element, alibi, dim, group, kv_heads, softcap, window, chunk, sinks } = *shape;
        let name = format!(
            "attention in {}, heads of {dim}, {group} a key, {kv_heads} keys{}{}{}{}{}",
            if element == Element::F16 { "f16" } else { "bf16" },
            if alibi { ", ALiBi" } else { "" },
            softcap.map_or(String::new(), |c| format!(", capped at {c}")),
            window.map_or(String::new(), |w| format!(", window {w}")),
            chunk.map_or(String::new(), |n| format!(", chunks of {n}")),
            if sinks { ", sinks" } else { "" },
        );
        if tall.max(wide) <= shared {
            all.push(attention(gpu, shape, &mut |_, _| {})?.check(name, ATTENTION_TOLERANCE));
        }
    }
    for element in [Element::Bf16, Element::F16] {
        for kind in KINDS {
            for (n, k, rows) in [(72, 1280, 70), (264, 4096, 300)] {
                let sizes = format!("{n} x {k}, {}, {}", element.name(), kind.name(element));
                let outcome = products(gpu, element, kind, (n, k), rows)?;
                all.push(outcome.check(format!("own products, 1 to {rows} rows, {sizes}"), PRODUCT_TOLERANCE));
                if gpu.has_dense_product() {
                    let outcome = library_products(gpu, element, kind, (n, k), 300)?;
                    let how = if kind == Kind::Dense { "" } else { ", expanded" };
                    all.push(outcome.check(format!("cublasLt{how}, 300 rows, {sizes}"), PRODUCT_TOLERANCE));
                }
            }
            let outcome = expert_products(gpu, element, kind, 100)?;
            let name = format!("products of 70 experts, 300 rows, {}, {}", element.name(), kind.name(element));
            all.push(outcome.check(name, PRODUCT_TOLERANCE));
        }
    }
    // A draw on the border of two tokens may fall either way where 2^x has other last bits.
    let (different, draws) = choices(gpu)?;
    let outcome = Outcome { error: different as f64 / draws as f64, same_bits: true };
    all.push(outcome.check(format!("{draws} draws by temperature, top-k, top-p and min-p"), 0.02));
    Ok(all)
}

/// Uploads a list.
pub(crate) fn put<T: Copy>(device: &dyn Device, list: &[T]) -> Result<Address, DeviceError> {
    // SAFETY: plain numbers.
    let bytes = unsafe { std::slice::from_raw_parts(list.as_ptr().cast::<u8>(), size_of_val(list)) };
    let at = device.allocate(bytes.len() as u64, "a check")?;
    device.upload(at, bytes)?;
    Ok(at)
}

/// Reads a list back, after all work asked for.
pub(crate) fn get<T: Copy>(device: &dyn Device, at: Address, count: usize) -> Result<Vec<T>, DeviceError> {
    let bytes = count * size_of::<T>();
    let host = device.host_memory(bytes)?;
    // SAFETY: memory of the size, aligned for any number, read after the device came by.
    unsafe {
        device.receive(at, host, bytes)?;
        device.wait(device.mark(0)?)?;
        Ok(std::slice::from_raw_parts(host.cast::<T>(), count).to_vec())
    }
}

/// Numbers in -1..1, as bf16 has them.
fn noise(seed: &mut u64, n: usize) -> Vec<f32> {
    (0..n)
        .map(|_| {
            *seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            half::bf16::from_f32((*seed >> 40) as f32 / (1u64 << 23) as f32 - 1.0).to_f32()
        })
        .collect()
}

fn round(element: Element, x: f32) -> f32 {
    match element {
        Element::F32 => x,
        Element::Bf16 => half::bf16::from_f32(x).to_f32(),
        Element::F16 => half::f16::from_f32(x).to_f32(),
    }
}

/// As 16-bit elements.
fn bits(element: Element, list: &[f32]) -> Vec<u16> {
    let one = |&x: &f32| match element {
        Element::F16 => half::f16::from_f32(x).to_bits(),
        Element::Bf16 | Element::F32 => half::bf16::from_f32(x).to_bits(),
    };
    list.iter().map(one).collect()
}

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
    let wide_8 = device.kernel(unit, "attend_wide_8", wide_shared)?;
    let merge = device.kernel(unit, "attend_merge", 0)?;
    let mut seed = 1u64;
    // Lengths of the sequences, of which the last is a prompt's piece of 20 tokens.
    let (lengths, piece) = ([300usize, 140, 270], 20usize);
    let blocks_of = |s: usize, b: usize| if b < 4 { b } else { 4 + s * 8 + b };
    let total = 4 + 3 * 8 + 12;
    let size = kv_heads * 32 * dim;
    let (mut k_cache, mut v_cache) = (vec![f32::NAN; total * size], vec![f32::NAN; total * size]);
    // keys[s][head][position]
    let mut keys = vec![vec![vec![vec![0f32; dim]; 320]; kv_heads]; 3];
    let mut values = keys.clone();
    for s in 0..3 {
        for head in 0..kv_heads {
            for p in 0..lengths[s] {
                let (key, value) = if p < 128 && s > 0 {
                    (keys[0][head][p].clone(), values[0][head][p].clone())
                } else {
                    (noise(&mut seed, dim), noise(&mut seed, dim))
                };
                let at = (blocks_of(s, p / 32) * kv_heads + head) * 32 * dim + p % 32 * dim;
                k_cache[at..at + dim].copy_from_slice(&key);
                v_cache[at..at + dim].copy_from_slice(&value);
                (keys[s][head][p], values[s][head][p]) = (key, value);
            }
        }
    }
    let tokens = 2 + piece;
    let queries: Vec<f32> = noise(&mut seed, tokens * heads * dim).iter().map(|x| x * 2.0).collect();
    let place = |t: usize| if t < 2 { (t, lengths[t] - 1) } else { (2, lengths[2] - piece + t - 2) };
    let positions: Vec<i32> = (0..tokens).map(|t| place(t).1 as i32).collect();
    let mut tables: Vec<i32> = vec![];
    let mut starts = vec![];
    for (s, length) in lengths.iter().enumerate() {
        starts.push(tables.len());
        tables.extend((0..length.div_ceil(32)).map(|b| blocks_of(s, b) as i32));
    }
    let pieces = [
        Piece { token: 0, position: lengths[0] - 1, count: 1, table: starts[0] },
        Piece { token: 1, position: lengths[1] - 1, count: 1, table: starts[1] },
        Piece { token: 2, position: lengths[2] - piece, count: piece, table: starts[2] },
    ];
    let elements = |v: &[f32]| bits(shape.element, v);
    let slopes = if shape.alibi { alibi_slopes(heads) } else { vec![0.0; heads] };
    let slopes_at = if shape.alibi { put(device, &slopes)? } else { 0 };
    let sinks: Vec<f32> = (0..heads).map(|h| h as f32 * 0.7 - 0.5).collect();
    let sinks_at = if shape.sinks { put(device, &sinks)? } else { 0 };
    let q = put(device, &elements(&queries))?;
    let (k, v) = (put(device, &elements(&k_cache))?, put(device, &elements(&v_cache))?);
    let (table_at, position_at) = (put(device, &tables)?, put(device, &positions)?);
    let state = put(device, &vec![f32::NAN; 64 * heads * (dim + 2)])?;
    let mut first: Option<Vec<u16>> = None;
    let mut outcome = Outcome { error: 0.0, same_bits: true };
    // Shared and cut, neither, everything as rows of attend_tall, shared and gone on from, and twice with eight warps.
    let arrangements = [(132, 64), (132, 0), (0, 0), (132, 64), (0, 64), (0, 64), (132, 64)];
    for (arrangement, (multiprocessors, states)) in arrangements.into_iter().enumerate() {
        before(device, arrangement);
        let (wide, threads) = if arrangement > 4 { (wide_8, 256) } else { (wide, 128) };
        let setting = Setting { heads, kv_heads, head_dim: dim, multiprocessors, states };
        let mut plan = AttentionPlan::new(&pieces, &tables, &setting);
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
        let out = put(device, &vec![0x7fc0u16; tokens * heads * dim])?;
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
            device.launch(wide, grid(&plan.wide), threads, wide_shared, &arguments(wide_items))?;
            device.launch(merge, [plan.merges.len() / 3, heads, 1], 128, 0, &merges)?;
        }
        let got = get::<u16>(device, out, tokens * heads * dim)?;
        if let Some(first) = &first {
            outcome.same_bits &= *first == got;
            continue;
        }
        for t in 0..tokens {
            let (s, position) = place(t);
            for (h, &slope) in slopes.iter().enumerate() {
                let (at, head) = ((t * heads + h) * dim, h / group);
                let q = &queries[at..at + dim];
                let (k, v, sink) = (&keys[s][head], &values[s][head], shape.sinks.then_some(sinks[h]));
                let expected = attention_by_definition(q, k, v, shape, position, slope, sink);
                for (d, e) in expected.iter().enumerate() {
                    let value = match shape.element {
                        Element::F16 => half::f16::from_bits(got[at + d]).to_f32(),
                        _ => half::bf16::from_bits(got[at + d]).to_f32(),
                    };
                    let distance = (f64::from(value) - e).abs();
                    outcome.error = worse(outcome.error, distance);
                }
            }
        }
        first = Some(got);
    }
    Ok(outcome)
}

/// The larger one; what is not a number is larger than all.
fn worse(a: f64, b: f64) -> f64 {
    if a.is_nan() || b.is_nan() { f64::NAN } else { a.max(b) }
}

/// A product's operands on the device and here.
struct Operands {
    w: Matrix,
    /// The weights that the device's blocks mean, and rounded to elements.
    exact: Vec<f32>,
    x: Vec<f32>,
    x_at: Address,
}

fn operands(
    device: &dyn Device,
    element: Element,
    kind: Kind,
    (n, k): (usize, usize),
    rows: usize,
) -> Result<Operands, DeviceError> {
    let failed = |error: candle_core::Error| DeviceError::Call { call: "quantising", why: error.to_string() };
    let values: Vec<f32> = (0..n * k).map(|i| ((i as f32 * 12.9898).sin() * 43_758.547).fract() * 0.2 - 0.05).collect();
    let dtype = match kind {
        Kind::Dense => None,
        Kind::Q8_0 => Some(GgmlDType::Q8_0),
        Kind::Q4K => Some(GgmlDType::Q4K),
        Kind::Q5K => Some(GgmlDType::Q5K),
        Kind::Q6K => Some(GgmlDType::Q6K),
    };
    let (exact, at) = match dtype {
        None => (values.clone(), put(device, &bits(element, &values))?),
        Some(dtype) => {
            let tensor = Tensor::from_slice(&values, n * k, &CandleDevice::Cpu).map_err(failed)?;
            let quantised = QTensor::quantize(&tensor, dtype).map_err(failed)?;
            let exact = quantised.dequantize(&CandleDevice::Cpu).and_then(|t| t.to_vec1::<f32>()).map_err(failed)?;
            let blocks = quantised.data().map_err(failed)?.into_owned();
            (exact, put(device, &repack(kind, blocks, k))?)
        }
    };
    let x: Vec<f32> = (0..rows * k).map(|i| round(element, ((i as f32 * 7.31).cos() * 917.3).fract())).collect();
    let x_at = put(device, &bits(element, &x))?;
    Ok(Operands { w: Matrix { parts: vec![Part { kind, rows: n, at }], n, k }, exact, x, x_at })
}

impl Operands {
    /// Largest distance of some rows of a result `[rows, n]` to the definition, to which `plus` is added.
    fn distance(&self, element: Element, got: &[f32], rows: &[usize], plus: f64) -> f64 {
        let (n, k) = (self.w.n, self.w.k);
        let mut error = 0.0;
        for &row in rows {
            for column in 0..n {
                let w = &self.exact[column * k..(column + 1) * k];
                let sum: f64 = self.x[row * k..(row + 1) * k]
                    .iter()
                    .zip(w)
                    .map(|(x, w)| f64::from(*x) * f64::from(round(element, *w)))
                    .sum();
                // Relative where sums are large: there f32 itself is that coarse.
                let distance = (f64::from(got[row * n + column]) - sum - plus).abs() / sum.abs().max(1.0);
                error = worse(error, distance);
            }
        }
        error
    }
}

fn runner(
    device: &mut dyn Device,
    element: Element,
    kind: Kind,
    invariant: bool,
    multiprocessors: usize,
) -> Result<ProductRunner, DeviceError> {
    let settings = ProductSettings { element, invariant, variants: Variants::NONE, multiprocessors };
    ProductRunner::new(device, &[kind], &[kind], &settings)
}

/// Products of rows sorted by expert: each has the bits of its own expert's product. Some experts have no row, and one has most.
pub(crate) fn expert_products<D: Device>(
    device: &mut D,
    element: Element,
    kind: Kind,
    tokens: usize,
) -> Result<Outcome, DeviceError> {
    let (experts, per_token, n, k) = (70usize, 3usize, 24usize, 1280usize);
    let o = operands(device, element, kind, (experts * n, k), tokens)?;
    let of = |expert: usize| {
        let at = o.w.parts[0].at + (expert * n) as u64 * kind.row_bytes(k, element);
        Matrix { parts: vec![Part { kind, rows: n, at }], n, k }
    };
    let chosen: Vec<i32> = (0..tokens).flat_map(|t| [2, 3 + (t % 5) as i32, 20 + (t * 7 % 50) as i32]).collect();
    let pairs = tokens * per_token;
    let unit = device.load(&Unit::layers(element))?;
    let (sort, cut) = (device.kernel(unit, "sort_pairs", 0)?, device.kernel(unit, "expert_tiles", 0)?);
    let chosen_at = put(device, &chosen)?;
    let [starts, order, places] =
        [put(device, &vec![-1i32; experts + 1])?, put(device, &vec![-1i32; pairs])?, put(device, &vec![-1i32; pairs])?];
    let arguments = [chosen_at.into(), (pairs as i32).into(), starts.into(), order.into(), places.into()];
    // SAFETY: the kernel's parameters, lists of the sizes that it writes.
    unsafe { device.launch(sort, [experts, 1, 1], 256, 0, &arguments)? };
    let mut expected: Vec<i32> = (0..pairs as i32).collect();
    expected.sort_by_key(|&pair| (chosen[pair as usize], pair));
    let mut outcome = Outcome { error: 0.0, same_bits: get::<i32>(device, order, pairs)? == expected };
    let places = get::<i32>(device, places, pairs)?;
    outcome.same_bits &= expected.iter().enumerate().all(|(row, &pair)| places[pair as usize] == row as i32);
    for multiprocessors in [1, 9999] {
        let runner = runner(device, element, kind, true, multiprocessors)?;
        let alone: Vec<Vec<f32>> = (0..experts)
            .map(|expert| {
                let y = put(device, &vec![0f32; tokens * n])?;
                // SAFETY: operands of `tokens` rows.
                unsafe { runner.run(device, &of(expert), o.x_at, tokens, y, Out::Floats)? };
                get(device, y, tokens * n)
            })
            .collect::<Result<_, DeviceError>>()?;
        let tile = runner.expert_tile(pairs, experts)?;
        let most = most_tiles(pairs, experts, tile);
        let tiles = put(device, &vec![0i32; 3 * most])?;
        let arguments =
            [starts.into(), (experts as i32).into(), (tile as i32).into(), (most as i32).into(), tiles.into()];
        let y = put(device, &vec![f32::NAN; pairs * n])?;
        let sorted = SortedRows { rows: pairs, tiles, most_tiles: most, order, per_token };
        // SAFETY: as above.
        unsafe {
            device.launch(cut, [1, 1, 1], 256, 0, &arguments)?;
            runner.run_experts(device, &of(0), o.x_at, &sorted, tile, y, Out::Floats)?;
        }
        let got = get::<f32>(device, y, pairs * n)?;
        for (row, &pair) in expected.iter().enumerate() {
            let (token, expert) = (pair as usize / per_token, chosen[pair as usize] as usize);
            let expected = &alone[expert][token * n..(token + 1) * n];
            let got = &got[row * n..(row + 1) * n];
            outcome.same_bits &= got.iter().zip(expected).all(|(a, b)| a.to_bits() == b.to_bits());
        }
        // What the parts are compared with is right itself.
        let mut whole = vec![0f32; tokens * experts * n];
        for (expert, answers) in alone.iter().enumerate() {
            for (token, answer) in answers.chunks_exact(n).enumerate() {
                whole[(token * experts + expert) * n..][..n].copy_from_slice(answer);
            }
        }
        outcome.error = worse(outcome.error, o.distance(element, &whole, &[0, tokens - 1], 0.0));
        runner.free(device)?;
    }
    Ok(outcome)
}

/// Products by our own kernels with 1 to `rows` rows, in one go over k and cut into segments: a row's bits are the same in all. Weights
/// that are expanded before are those of the definition, bit for bit.
pub(crate) fn products<D: Device>(
    device: &mut D,
    element: Element,
    kind: Kind,
    (n, k): (usize, usize),
    rows: usize,
) -> Result<Outcome, DeviceError> {
    let o = operands(device, element, kind, (n, k), rows)?;
    let mut outcome = Outcome { error: 0.0, same_bits: true };
    for name in ["dequantise", "dequantise_8"].into_iter().filter(|_| kind != Kind::Dense) {
        let unit = device.load(&Unit::product(element, kind))?;
        let kernel = device.kernel(unit, name, 0)?;
        let to = put(device, &vec![0u16; n * k])?;
        let arguments = [o.w.parts[0].at.into(), (k as i32).into(), to.into()];
        // SAFETY: the kernel's parameters; the result is as large.
        unsafe { device.launch(kernel, [n, k.div_ceil(2048), 1], 256, 0, &arguments)? };
        outcome.same_bits &= get::<u16>(device, to, n * k)? == bits(element, &o.exact);
    }
    // Enough multiprocessors cut k into segments, few do not.
    let sizes = [(1, 999), (9, 1), (30, 999), (64, 1), (rows, 9999), (rows, 1)];
    let mut all: Vec<Vec<f32>> = vec![];
    for (m, multiprocessors) in sizes {
        let runner = runner(device, element, kind, true, multiprocessors)?;
        let y = put(device, &vec![0f32; m * n])?;
        // SAFETY: operands of `m` rows.
        unsafe { runner.run(device, &o.w, o.x_at, m, y, Out::Floats)? };
        all.push(get(device, y, m * n)?);
        runner.free(device)?;
    }
    let most = &all[sizes.len() - 1];
    outcome.same_bits &= all.iter().all(|few| few.iter().zip(most).all(|(a, b)| a.to_bits() == b.to_bits()));
    outcome.error = o.distance(element, most, &[0, rows - 6, rows - 1], 0.0);
    Ok(outcome)
}

/// Products by the library with `rows` rows, more than are expanded inside our own: added to what is there, and twice the same bits.
pub(crate) fn library_products<D: Device>(
    device: &mut D,
    element: Element,
    kind: Kind,
    (n, k): (usize, usize),
    rows: usize,
) -> Result<Outcome, DeviceError> {
    let o = operands(device, element, kind, (n, k), rows)?;
    let runner = runner(device, element, kind, false, 132)?;
    let mut all: Vec<Vec<f32>> = vec![];
    for _ in 0..2 {
        let y = put(device, &vec![0.5f32; rows * n])?;
        // SAFETY: operands of `rows` rows.
        unsafe { runner.run(device, &o.w, o.x_at, rows, y, Out::Add)? };
        all.push(get(device, y, rows * n)?);
    }
    runner.free(device)?;
    let same_bits = all[0].iter().zip(&all[1]).all(|(a, b)| a.to_bits() == b.to_bits());
    Ok(Outcome { error: o.distance(element, &all[0], &[0, 127, rows - 1], 0.5), same_bits })
}

/// Draws on the device under many settings: how many differ from the CPU's, and of how many.
pub(crate) fn choices<D: Device>(device: &mut D) -> Result<(usize, usize), DeviceError> {
    let unit = device.load(&Unit::layers(Element::F32))?;
    let kernel = device.kernel(unit, "choose", 0)?;
    let vocab = 1537;
    // Many ties, as 16-bit logits have them.
    let row =
        |r: u64| (0..vocab).map(|i| ((i * 7919 + r as usize * 131) % 257) as f32 / 24.0 - 4.0).collect::<Vec<f32>>();
    let mut settings = vec![];
    for top_k in [0, 2, 3, 40, 5000] {
        for top_p in [1.0, 0.9, 0.35, 0.01] {
            for min_p in [0.0, 0.2] {
                settings.push(Sampling { temperature: 0.8, top_k, top_p, min_p, repetition_penalty: 1.0 });
            }
        }
    }
    let draws: Vec<(usize, u64)> = (0..settings.len()).flat_map(|s| (0..6u64).map(move |step| (s, step))).collect();
    let key = SamplingKey([3; 32]);
    let mut metadata: Vec<u8> = vec![];
    for &(s, step) in &draws {
        let s = &settings[s];
        metadata.extend(uniform(key, step).to_ne_bytes());
        metadata.extend(s.temperature.to_ne_bytes());
        metadata.extend((-1i32).to_ne_bytes());
        metadata.extend((s.top_k as i32).to_ne_bytes());
        metadata.extend([s.top_p, s.min_p, 0.0].iter().flat_map(|x| x.to_ne_bytes()));
    }
    let rows: Vec<f32> = draws.iter().flat_map(|&(_, step)| row(step)).collect();
    let (logits, metadata) = (put(device, &rows)?, put(device, &metadata)?);
    let (chosen, sampled) = (put(device, &vec![0i32; 4 * draws.len()])?, put(device, &vec![0i32; draws.len()])?);
    let arguments = [logits.into(), (vocab as i32).into(), metadata.into(), chosen.into(), sampled.into()];
    // SAFETY: the kernel's parameters, as many rows as draws.
    unsafe { device.launch(kernel, [draws.len(), 1, 1], 512, 0, &arguments)? };
    let (chosen, sampled) = (get::<i32>(device, chosen, 4 * draws.len())?, get::<i32>(device, sampled, draws.len())?);
    let different = draws
        .iter()
        .enumerate()
        .filter(|&(i, &(s, step))| {
            let expected = sample(Isa::detect(), &row(step), &[], &settings[s], key, step, 0).map(|c| c.token as i32);
            expected.is_none_or(|token| (chosen[4 * i], sampled[i]) != (token, token))
        })
        .count();
    Ok((different, draws.len()))
}
