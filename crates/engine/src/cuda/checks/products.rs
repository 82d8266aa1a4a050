//! Products against their definition.

use candle_core::quantized::GgmlDType;
use earnest_models::checkpoint::{PartBlockError, dequantise, quantise};

use super::{Outcome, bits, get, put, round, worse};
use crate::cuda::device::{Address, Device, DeviceError, Element, Out};
use crate::cuda::e4m3;
use crate::cuda::kernels::{Kind, Unit};
use crate::cuda::memory::most_tiles;
use crate::cuda::options::{Variant, Variants};
use crate::cuda::products::{Codes, ProductRunner, ProductSettings, SortedRows};
use crate::cuda::weights::{Matrix, Part, repack};

/// Arithmetic of a product.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Case {
    element: Element,
    kind: Kind,
    variants: Variants,
}

impl Case {
    /// Weights of a kind with activations of a type.
    pub(crate) fn new(element: Element, kind: Kind) -> Case {
        Case { element, kind, variants: Variants::NONE }
    }

    /// The same by a variant.
    pub(crate) fn with(self, variant: Variant) -> Case {
        Case { variants: self.variants.with(variant), ..self }
    }

    /// True if the products are those of warp groups.
    pub(super) fn has_wgmma(self) -> bool {
        self.variants.has(Variant::Wgmma)
    }

    /// Name for people.
    pub(super) fn name(self) -> String {
        let variants = self.variants.names().into_iter().map(|name| format!(", {name}")).collect::<String>();
        format!("{}, {}{variants}", self.element.name(), self.kind.name(self.element))
    }

    fn runner(
        self,
        device: &mut dyn Device,
        invariant: bool,
        multiprocessors: usize,
        o: &Operands,
    ) -> Result<ProductRunner, DeviceError> {
        let Case { element, kind, variants } = self;
        let settings = ProductSettings { element, invariant, variants, multiprocessors };
        let mut runner = ProductRunner::new(device, &[kind], &[kind], &settings)?;
        if kind == Kind::E4m3 {
            let (codes, scales) = (put(device, &vec![0u8; o.x.len()])?, put(device, &vec![f32::NAN; o.x.len()])?);
            runner.lend_codes(Codes { codes, scales });
        }
        Ok(runner)
    }
}

/// A product's operands on the device and here.
struct Operands {
    w: Matrix,
    /// The weights that the device's blocks mean.
    exact: Vec<f32>,
    /// The rows that products mean: beside 8-bit floats rounded to such.
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
    let failed = |error: PartBlockError| DeviceError::Call { call: "quantising", why: error.to_string() };
    let values: Vec<f32> = (0..n * k).map(|i| ((i as f32 * 12.9898).sin() * 43_758.547).fract() * 0.2 - 0.05).collect();
    let dtype = match kind {
        Kind::Dense | Kind::E4m3 => None,
        Kind::Q8_0 => Some(GgmlDType::Q8_0),
        Kind::Q4K => Some(GgmlDType::Q4K),
        Kind::Q5K => Some(GgmlDType::Q5K),
        Kind::Q6K => Some(GgmlDType::Q6K),
    };
    let (exact, at) = match dtype {
        None if kind == Kind::E4m3 => {
            let rows = e4m3::pack(&values, k, None);
            (e4m3::unpack(&rows, k), put(device, &rows)?)
        }
        None => {
            let rounded = values.iter().map(|&w| round(element, w)).collect();
            (rounded, put(device, &bits(element, &values))?)
        }
        Some(dtype) => {
            let blocks = quantise(&values, dtype).map_err(failed)?;
            let exact = dequantise(&blocks, dtype).map_err(failed)?.into_iter().map(|w| round(element, w)).collect();
            (exact, put(device, &repack(kind, blocks, k))?)
        }
    };
    let x: Vec<f32> = (0..rows * k).map(|i| round(element, ((i as f32 * 7.31).cos() * 917.3).fract())).collect();
    let x_at = put(device, &bits(element, &x))?;
    let x = if kind == Kind::E4m3 { x.chunks(k).flat_map(in_8_bits).collect() } else { x };
    Ok(Operands { w: Matrix { parts: vec![Part { kind, rows: n, at }], n, k }, exact, x, x_at })
}

/// A row of activations as 8-bit floats have it.
fn in_8_bits(row: &[f32]) -> Vec<f32> {
    let top = row.iter().fold(1e-30f32, |top, x| top.max(x.abs()));
    row.iter().map(|x| e4m3::decode(e4m3::encode(x * (448.0 / top))) * (top / 448.0)).collect()
}

impl Operands {
    /// Largest distance of some rows of a result `[rows, n]` to the definition, to which `plus` is added.
    fn distance(&self, got: &[f32], rows: &[usize], plus: f64) -> f64 {
        let (n, k) = (self.w.n, self.w.k);
        let mut error = 0.0;
        for &row in rows {
            for column in 0..n {
                let w = &self.exact[column * k..(column + 1) * k];
                let x = &self.x[row * k..(row + 1) * k];
                let sum: f64 = x.iter().zip(w).map(|(x, w)| f64::from(*x) * f64::from(*w)).sum();
                // Relative where sums are large: there f32 itself is that coarse.
                let distance = (f64::from(got[row * n + column]) - sum - plus).abs() / sum.abs().max(1.0);
                error = worse(error, distance);
            }
        }
        error
    }
}

/// Products of rows sorted by expert: each has the bits of its own expert's product. Some experts have no row, and one has most.
pub(crate) fn expert_products<D: Device>(device: &mut D, case: Case, tokens: usize) -> Result<Outcome, DeviceError> {
    let Case { element, kind, .. } = case;
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
        let runner = case.runner(device, true, multiprocessors, &o)?;
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
        outcome.error = worse(outcome.error, o.distance(&whole, &[0, tokens - 1], 0.0));
        runner.free(device)?;
    }
    Ok(outcome)
}

/// Products by our own kernels with 1 to `rows` rows, in one go over k and cut into segments: a row's bits are the same in all. Weights
/// that are expanded before are those of the definition, bit for bit.
pub(crate) fn products<D: Device>(
    device: &mut D,
    case: Case,
    (n, k): (usize, usize),
    rows: usize,
) -> Result<Outcome, DeviceError> {
    let Case { element, kind, .. } = case;
    let o = operands(device, element, kind, (n, k), rows)?;
    let mut outcome = Outcome { error: 0.0, same_bits: true };
    for name in ["dequantise", "dequantise_8"].into_iter().filter(|_| ![Kind::Dense, Kind::E4m3].contains(&kind)) {
        let unit = device.load(&Unit::product(element, kind))?;
        let kernel = device.kernel(unit, name, 0)?;
        let to = put(device, &vec![0u16; n * k])?;
        let arguments = [o.w.parts[0].at.into(), (k as i32).into(), to.into()];
        // SAFETY: the kernel's parameters; the result is as large.
        unsafe { device.launch(kernel, [n, k.div_ceil(2048), 1], 256, 0, &arguments)? };
        outcome.same_bits &= get::<u16>(device, to, n * k)? == bits(element, &o.exact);
    }
    // Enough multiprocessors cut k into segments, few do not.
    let sizes = [(1, 999), (9, 1), (30, 999), (64, 1), (129, 999), (250, 1), (rows, 9999), (rows, 1)]
        .map(|(m, n)| (rows.min(m), n));
    let mut all: Vec<Vec<f32>> = vec![];
    for (m, multiprocessors) in sizes {
        let runner = case.runner(device, true, multiprocessors, &o)?;
        let y = put(device, &vec![0f32; m * n])?;
        // SAFETY: operands of `m` rows.
        unsafe { runner.run(device, &o.w, o.x_at, m, y, Out::Floats)? };
        all.push(get(device, y, m * n)?);
        runner.free(device)?;
    }
    let most = &all[sizes.len() - 1];
    outcome.same_bits &= all.iter().all(|few| few.iter().zip(most).all(|(a, b)| a.to_bits() == b.to_bits()));
    outcome.error = o.distance(most, &[0, rows - 6, rows - 1], 0.0);
    Ok(outcome)
}

/// Products by the library with `rows` rows, more than are expanded inside our own: added to what is there, and twice the same bits.
pub(crate) fn library_products<D: Device>(
    device: &mut D,
    case: Case,
    (n, k): (usize, usize),
    rows: usize,
) -> Result<Outcome, DeviceError> {
    let Case { element, kind, .. } = case;
    let o = operands(device, element, kind, (n, k), rows)?;
    let runner = case.runner(device, false, 132, &o)?;
    let mut all: Vec<Vec<f32>> = vec![];
    for _ in 0..2 {
        let y = put(device, &vec![0.5f32; rows * n])?;
        // SAFETY: operands of `rows` rows.
        unsafe { runner.run(device, &o.w, o.x_at, rows, y, Out::Add)? };
        all.push(get(device, y, rows * n)?);
    }
    runner.free(device)?;
    let same_bits = all[0].iter().zip(&all[1]).all(|(a, b)| a.to_bits() == b.to_bits());
    Ok(Outcome { error: o.distance(&all[0], &[0, 127, rows - 1], 0.5), same_bits })
}

/// Rows of activations to 8-bit floats: every code, every middle of two and its neighbours, in a row whose scale is 1; what is not a number, and
/// a row of zeros. The error is the number of wrong codes.
pub(crate) fn codes<D: Device>(device: &mut D, element: Element, wgmma: bool) -> Result<Outcome, DeviceError> {
    let values: Vec<f32> = (0..=0x7e).map(e4m3::decode).collect();
    let middles = values.windows(2).map(|pair| (pair[0] + pair[1]) / 2.0);
    let beside = middles.flat_map(|middle| [middle, middle * 0.992, middle * 1.008]);
    let mut row: Vec<f32> = values.iter().copied().chain(beside).flat_map(|x| [x, -x]).collect();
    row.resize(row.len().next_multiple_of(8), 0.0);
    let k = row.len();
    let mut x: Vec<f32> = [&row[..], &row[..], &vec![0.0; k]].concat();
    x[k + 3] = f32::NAN;
    let x: Vec<f32> = x.into_iter().map(|x| round(element, x)).collect();
    let unit = if wgmma { Unit::wgmma(element, Kind::E4m3) } else { Unit::product(element, Kind::E4m3) };
    let unit = device.load(&unit)?;
    let kernel = device.kernel(unit, "quantise_rows", 0)?;
    let at = put(device, &bits(element, &x))?;
    let (to, scales) = (put(device, &vec![0u8; 3 * k])?, put(device, &[f32::NAN; 3])?);
    // SAFETY: the kernel's parameters; the results are as large.
    unsafe { device.launch(kernel, [3, 1, 1], 256, 0, &[at.into(), (k as i32).into(), to.into(), scales.into()])? };
    let (codes, scales) = (get::<u8>(device, to, 3 * k)?, get::<f32>(device, scales, 3)?);
    let wrong = codes.iter().zip(&x).filter(|(code, x)| **code != e4m3::encode(**x)).count();
    Ok(Outcome { error: wrong as f64, same_bits: scales[..2] == [1.0, 1.0] && scales[2] > 0.0 })
}
