//! Matrix products: cublasLt for dense weights, our own kernels for quantised ones and wherever a row's bits must not depend on its
//! batch.

use std::collections::HashMap;

use super::device::{Address, Argument, DenseProduct, Device, DeviceError, Element, Kernel, Out};
use super::kernels::{
    E4M3_PRODUCTS, E4M3_WGMMA_PRODUCTS, Kind, PLAIN_ROWS, PRODUCTS, SEGMENT, Tile, Unit, WGMMA_KINDS, WGMMA_PRODUCTS,
};
use super::options::{Variant, Variants};
use super::weights::{Matrix, Part};

/// Most rows for which quantised weights are expanded inside the product; with more it is cheaper to expand them once before.
const FEW_ROWS: usize = 256;

/// Bytes of sums of segments, where blocks share k.
const PARTIAL: u64 = 128 << 20;

/// Bytes of weights that are expanded at a time.
const EXPANDED: u64 = 256 << 20;

/// The kernels for one kind of weights.
struct Kernels {
    /// Those whose shared memory the device has, in ascending order; empty in f32.
    tiles: Vec<(Tile, Kernel)>,
    add_segments: Option<Kernel>,
    plain: Option<Kernel>,
    dequantise: Option<Kernel>,
    /// Kernel that quantises activations, for weights in 8-bit floats.
    quantise: Option<Kernel>,
}

/// Memory for activations in 8-bit floats: codes, and a scale for each row.
#[derive(Clone, Copy)]
pub(crate) struct Codes {
    pub(crate) codes: Address,
    pub(crate) scales: Address,
}

/// Rows sorted by expert, as kernels/experts.cu leaves them.
#[derive(Clone, Copy)]
pub(crate) struct SortedRows {
    pub(crate) rows: usize,
    /// Tiles of rows of one expert, and the most that there can be; see [`ProductRunner::expert_tile`].
    pub(crate) tiles: Address,
    pub(crate) most_tiles: usize,
    /// The pair of each row, if the operand has a row for each token, and the number of pairs of a token.
    pub(crate) order: Address,
    pub(crate) per_token: usize,
}

/// Settings of a [`ProductRunner`].
#[derive(Clone, Copy)]
pub(crate) struct ProductSettings {
    pub(crate) element: Element,
    /// Bits of a row that do not depend on the batch.
    pub(crate) invariant: bool,
    pub(crate) variants: Variants,
    pub(crate) multiprocessors: usize,
}

/// Computes products on a device.
pub(crate) struct ProductRunner {
    element: Element,
    invariant: bool,
    codes: Option<Codes>,
    kernels: HashMap<Kind, Kernels>,
    expert_kernels: HashMap<Kind, Kernels>,
    multiprocessors: usize,
    partial: Address,
    expanded: Address,
}

impl ProductRunner {
    /// For matrices held as `kinds`, and those of experts held as `expert_kinds`.
    pub(crate) fn new(
        device: &mut dyn Device,
        kinds: &[Kind],
        expert_kinds: &[Kind],
        settings: &ProductSettings,
    ) -> Result<ProductRunner, DeviceError> {
        let &ProductSettings { element, invariant, variants, multiprocessors } = settings;
        let (mut kernels, mut expert_kernels) = (HashMap::new(), HashMap::new());
        let library = device.has_dense_product();
        let shared = device.info()?.shared;
        let mut load = |kind: Kind, experts: bool| {
            let wgmma = WGMMA_KINDS.contains(&kind) && element != Element::F32 && variants.has(Variant::Wgmma);
            let unit = if wgmma { Unit::wgmma(element, kind) } else { Unit::product(element, kind) };
            let unit = device.load(&if experts { unit.of_experts() } else { unit })?;
            let mut of = |name: &str, shared| device.kernel(unit, name, shared);
            if element == Element::F32 {
                let plain = Some(of(if experts { "experts_plain" } else { "product_plain" }, 0)?);
                return Ok(Kernels { tiles: vec![], add_segments: None, plain, dequantise: None, quantise: None });
            }
            let prefix = match (wgmma, experts) {
                (false, false) => "product",
                (false, true) => "experts",
                (true, false) => "wgmma",
                (true, true) => "wgmma_experts",
            };
            let all = match (wgmma, kind) {
                (false, Kind::E4m3) => &E4M3_PRODUCTS[..],
                (false, _) => &PRODUCTS[..],
                (true, Kind::E4m3) => &E4M3_WGMMA_PRODUCTS[..],
                (true, _) if experts => &WGMMA_PRODUCTS[..5],
                (true, _) => &WGMMA_PRODUCTS[..],
            };
            let mut load_tile = |tile: &Tile| {
                let kernel = of(&format!("{prefix}_{}", tile.rows), tile.shared)?;
                Ok::<_, DeviceError>((*tile, kernel))
            };
            let tiles = all.iter().filter(|tile| tile.shared <= shared).map(&mut load_tile);
            Ok::<_, DeviceError>(Kernels {
                tiles: tiles.collect::<Result<_, _>>()?,
                add_segments: Some(of("add_segments", 0)?),
                plain: None,
                dequantise: match kind {
                    Kind::Dense | Kind::E4m3 => None,
                    _ if experts => None,
                    _ => Some(of("dequantise_8", 0)?),
                },
                quantise: if kind == Kind::E4m3 { Some(of("quantise_rows", 0)?) } else { None },
            })
        };
        for &kind in kinds {
            if kind == Kind::Dense && library && !invariant {
                continue;
            }
            kernels.insert(kind, load(kind, false)?);
        }
        for &kind in expert_kinds {
            expert_kernels.insert(kind, load(kind, true)?);
        }
        let quantised = kinds.iter().any(|kind| ![Kind::Dense, Kind::E4m3].contains(kind));
        let partial = if (kernels.is_empty() && expert_kernels.is_empty()) || element == Element::F32 {
            0
        } else {
            device.allocate(PARTIAL, "sums of matrix products")?
        };
        let expands = quantised && library && !invariant;
        let expanded = if expands { device.allocate(EXPANDED, "expanded weights")? } else { 0 };
        Ok(ProductRunner {
            element,
            invariant,
            codes: None,
            kernels,
            expert_kernels,
            multiprocessors,
            partial,
            expanded,
        })
    }

    /// The library computes nothing.
    pub(crate) fn is_invariant(&self, device: &dyn Device) -> bool {
        self.invariant || !device.has_dense_product()
    }

    /// Lends memory for activations in 8-bit floats, as many as any product has.
    pub(crate) fn lend_codes(&mut self, codes: Codes) {
        self.codes = Some(codes);
    }

    /// Rounds `rows` rows of `k` elements to 8-bit floats where some part of a product is in them.
    ///
    /// # Safety
    /// `x` is of device memory, and the memory of [`lend_codes`](ProductRunner::lend_codes) large enough for as many rows.
    unsafe fn quantise(
        &self,
        device: &dyn Device,
        kernels: &HashMap<Kind, Kernels>,
        w: &Matrix,
        x: Address,
        rows: usize,
    ) -> Result<(), DeviceError> {
        let kernel = w.parts.iter().find_map(|part| kernels.get(&part.kind)?.quantise);
        let Some(kernel) = kernel else { return Ok(()) };
        let Codes { codes, scales } = self.lent()?;
        let arguments = [x.into(), (w.k as i32).into(), codes.into(), scales.into()];
        // SAFETY: by the caller.
        unsafe { device.launch(kernel, [rows, 1, 1], 256, 0, &arguments) }
    }

    fn lent(&self) -> Result<Codes, DeviceError> {
        let why = || "no memory was lent for activations; please report this".to_owned();
        self.codes.ok_or_else(|| DeviceError::Call { call: "a product of 8-bit floats", why: why() })
    }

    /// Returns the operand of a product, and the scales that its kernel needs if it is in 8-bit floats.
    fn operand(&self, kernels: &Kernels, x: Address) -> Result<(Address, Option<Argument>), DeviceError> {
        if kernels.quantise.is_none() {
            return Ok((x, None));
        }
        let Codes { codes, scales } = self.lent()?;
        Ok((codes, Some(scales.into())))
    }

    /// Gives its working memory back.
    pub(crate) fn free(self, device: &dyn Device) -> Result<(), DeviceError> {
        [self.partial, self.expanded].into_iter().filter(|at| *at != 0).try_for_each(|at| device.free(at))
    }

    /// Name of the library or kernels that compute dense products, for people.
    pub(crate) fn describe(&self, device: &dyn Device) -> &'static str {
        if self.is_invariant(device) { "own" } else { "cublasLt" }
    }

    /// `y[m, n] (+)= x[m, k] w[n, k]^T`; rows of `y` are `w.n` apart.
    ///
    /// # Safety
    /// `x` and `y` are of device memory large enough for `m` rows.
    pub(crate) unsafe fn run(
        &self,
        device: &dyn Device,
        w: &Matrix,
        x: Address,
        m: usize,
        y: Address,
        out: Out,
    ) -> Result<(), DeviceError> {
        let size = if out == Out::Elements { self.element.size_bytes() } else { 4 };
        // SAFETY: by the caller.
        unsafe { self.quantise(device, &self.kernels, w, x, m)? };
        let mut column = 0;
        for part in &w.parts {
            let y = y + column * size;
            // SAFETY: by the caller; a part's columns lie inside a row.
            unsafe { self.part(device, part, w.k, x, m, y, w.n, out)? };
            column += part.rows as u64;
        }
        Ok(())
    }

    #[expect(clippy::too_many_arguments, reason = "the operands of a product")]
    unsafe fn part(
        &self,
        device: &dyn Device,
        part: &Part,
        k: usize,
        x: Address,
        m: usize,
        y: Address,
        row_y: usize,
        out: Out,
    ) -> Result<(), DeviceError> {
        let library = !self.is_invariant(device);
        let element = self.element;
        let product = DenseProduct { w: part.at, x, y, m, n: part.rows, k, row_y, element, out };
        if part.kind == Kind::Dense && library {
            // SAFETY: by the caller.
            return unsafe { device.dense_product(&product) };
        }
        // SAFETY: by the caller.
        unsafe {
            match &self.kernels[&part.kind] {
                Kernels { plain: Some(plain), .. } => self.plain(device, *plain, &product),
                Kernels { dequantise: Some(dequantise), .. } if library && m > FEW_ROWS => {
                    self.expand(device, *dequantise, part, &product)
                }
                kernels => self.own(device, kernels, &product),
            }
        }
    }

    unsafe fn plain(&self, device: &dyn Device, kernel: Kernel, p: &DenseProduct) -> Result<(), DeviceError> {
        let grid = [p.m.div_ceil(32), p.n.div_ceil(32), 1];
        let arguments = [
            p.w.into(),
            p.x.into(),
            p.y.into(),
            (p.m as i32).into(),
            (p.n as i32).into(),
            (p.k as i32).into(),
            (p.row_y as i32).into(),
            number(p.out).into(),
        ];
        // SAFETY: by the caller.
        unsafe { device.launch(kernel, grid, 256, 0, &arguments) }
    }

    unsafe fn own(&self, device: &dyn Device, kernels: &Kernels, p: &DenseProduct) -> Result<(), DeviceError> {
        let &(Tile { rows, columns, threads, shared }, kernel) =
            tile_for(&kernels.tiles, p.m).ok_or(DeviceError::SharedMemory)?;
        let tiles = [p.m.div_ceil(rows), p.n.div_ceil(columns)];
        let segments = self.segments(tiles, p.m, p.n, p.k);
        let grid = [tiles[0], tiles[1], segments];
        let [m, n, k, row_y] = [p.m, p.n, p.k, p.row_y].map(|n| Argument::from(n as i32));
        let (x, scales) = self.operand(kernels, p.x)?;
        let arguments = [p.w.into(), x.into(), p.y.into(), self.partial.into(), m, n, k, row_y, number(p.out).into()];
        let arguments: Vec<Argument> = arguments.into_iter().chain(scales).collect();
        // SAFETY: by the caller; the partial sums fit.
        unsafe { device.launch(kernel, grid, threads, shared, &arguments)? };
        match kernels.add_segments.filter(|_| segments > 1) {
            None => Ok(()),
            Some(add) => {
                let grid = [p.m, p.n.div_ceil(256), 1];
                let count = Argument::from(segments as i32);
                let arguments = [self.partial.into(), count, m, n, p.y.into(), row_y, number(p.out).into()];
                // SAFETY: as above.
                unsafe { device.launch(add, grid, 256, 0, &arguments) }
            }
        }
    }

    /// Rows of a tile for `pairs` rows of `experts` experts: the fewest that hold the rows of most experts. The bits are the same in all.
    pub(crate) fn expert_tile(&self, pairs: usize, experts: usize) -> Result<usize, DeviceError> {
        if self.element == Element::F32 {
            return Ok(PLAIN_ROWS);
        }
        // Tiles are shared by all parts of a matrix, however they are held.
        let has = |kernels: &Kernels, rows: usize| kernels.tiles.iter().any(|(tile, _)| tile.rows == rows);
        let mut all = self.expert_kernels.values();
        let first = all.next().map(|kernels| &kernels.tiles[..]).unwrap_or_default();
        let mut rows: Vec<usize> = first.iter().map(|(tile, _)| tile.rows).collect();
        for kernels in all {
            rows.retain(|&rows| has(kernels, rows));
        }
        let fits = rows.iter().find(|&rows| rows * experts >= pairs).or(rows.last());
        fits.copied().ok_or(DeviceError::SharedMemory)
    }

    /// `y[r, n] = x[source(r), k] w[expert(r), n, k]^T` for rows sorted by expert, in tiles of `tile` rows.
    ///
    /// # Safety
    /// `x`, `y` and the lists of `sorted` are of device memory large enough for its rows.
    #[expect(clippy::too_many_arguments, reason = "the operands of a product")]
    pub(crate) unsafe fn run_experts(
        &self,
        device: &dyn Device,
        w: &Matrix,
        x: Address,
        sorted: &SortedRows,
        tile: usize,
        y: Address,
        out: Out,
    ) -> Result<(), DeviceError> {
        let size = if out == Out::Elements { self.element.size_bytes() } else { 4 };
        let [m, k, row_y] = [sorted.rows, w.k, w.n].map(|n| Argument::from(n as i32));
        // SAFETY: by the caller.
        unsafe { self.quantise(device, &self.expert_kernels, w, x, sorted.rows / sorted.per_token)? };
        let mut column = 0;
        for part in &w.parts {
            let (y, rows) = (y + column * size, part.rows);
            column += rows as u64;
            let stride = rows as u64 * part.kind.row_bytes(w.k, self.element);
            let kernels = &self.expert_kernels[&part.kind];
            let n = Argument::from(rows as i32);
            let [at, tiles, order] = [part.at, sorted.tiles, sorted.order].map(Argument::from);
            let (per_token, out) = (Argument::from(sorted.per_token as i32), Argument::from(number(out)));
            if let Some(plain) = kernels.plain {
                let arguments = [at, stride.into(), tiles, order, per_token, x.into(), y.into(), n, k, row_y, out];
                // SAFETY: by the caller.
                unsafe { device.launch(plain, [sorted.most_tiles, rows.div_ceil(32), 1], 256, 0, &arguments)? };
                continue;
            }
            let &(Tile { columns, threads, shared, .. }, kernel) =
                kernels.tiles.iter().find(|(of, _)| of.rows == tile).ok_or(DeviceError::SharedMemory)?;
            let grid = [sorted.most_tiles, rows.div_ceil(columns)];
            let segments = self.segments(grid, sorted.rows, rows, w.k);
            let partial = self.partial.into();
            let (x, scales) = self.operand(kernels, x)?;
            let arguments =
                [at, stride.into(), tiles, order, per_token, x.into(), y.into(), partial, m, n, k, row_y, out];
            let arguments: Vec<Argument> = arguments.into_iter().chain(scales).collect();
            // SAFETY: by the caller; the partial sums fit.
            unsafe {
                device.launch(kernel, [grid[0], grid[1], segments], threads, shared, &arguments)?;
                if let Some(add) = kernels.add_segments.filter(|_| segments > 1) {
                    let arguments = [partial, Argument::from(segments as i32), m, n, y.into(), row_y, out];
                    device.launch(add, [sorted.rows, rows.div_ceil(256), 1], 256, 0, &arguments)?;
                }
            }
        }
        Ok(())
    }

    /// Blocks that share k: its segments where too few tiles would fill the device and the sums have room, else 1.
    fn segments(&self, tiles: [usize; 2], m: usize, n: usize, k: usize) -> usize {
        let segments = k.div_ceil(SEGMENT);
        let room = (segments * m * n * 4) as u64 <= PARTIAL;
        if tiles[0] * tiles[1] < 2 * self.multiprocessors && room { segments } else { 1 }
    }

    /// Expands weights to elements, some rows at a time, and multiplies with those.
    unsafe fn expand(
        &self,
        device: &dyn Device,
        dequantise: Kernel,
        part: &Part,
        p: &DenseProduct,
    ) -> Result<(), DeviceError> {
        let size = if p.out == Out::Elements { self.element.size_bytes() } else { 4 };
        let most = (EXPANDED / (p.k as u64 * self.element.size_bytes())) as usize / 64 * 64;
        let mut first = 0;
        while first < part.rows {
            let n = most.max(1).min(part.rows - first);
            let w = part.at + first as u64 * part.kind.row_bytes(p.k, self.element);
            let arguments = [w.into(), (p.k as i32).into(), self.expanded.into()];
            let slice = DenseProduct { w: self.expanded, y: p.y + first as u64 * size, n, ..*p };
            // SAFETY: by the caller; `most` rows fit into the memory for expanded weights.
            unsafe {
                device.launch(dequantise, [n, p.k.div_ceil(2048), 1], 256, 0, &arguments)?;
                device.dense_product(&slice)?;
            }
            first += n;
        }
        Ok(())
    }
}

/// The tile for `m` rows of tiles in ascending order; the bits are the same in all. The smallest that holds every row, so that weights are read
/// once. Beyond the largest, whichever of the large ones computes fewest rows that are not there: 193 rows are two tiles of 128 and not two
/// of 192. The larger one on ties, for it reads weights less often, which is also why much smaller ones are no choice.
fn tile_for(tiles: &[(Tile, Kernel)], m: usize) -> Option<&(Tile, Kernel)> {
    let (largest, _) = tiles.last()?;
    let is_large = |tile: &Tile| tile.columns == largest.columns && 2 * tile.rows > largest.rows;
    let computed = |tile: &Tile| m.div_ceil(tile.rows) * tile.rows;
    let large = tiles.iter().rev().filter(|(tile, _)| is_large(tile));
    tiles.iter().find(|(tile, _)| tile.rows >= m).or(large.min_by_key(|(tile, _)| computed(tile)))
}

/// OUT_* of the kernels.
fn number(out: Out) -> i32 {
    match out {
        Out::Elements => 0,
        Out::Floats => 1,
        Out::Add => 2,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_rows_get_the_large_tile_that_computes_fewest_rows_in_vain() {
        let rows = |tiles: &[Tile], m| {
            let tiles: Vec<_> = tiles.iter().map(|tile| (*tile, Kernel(0))).collect();
            tile_for(&tiles, m).unwrap().0.rows
        };
        let chosen = |tiles: &[Tile]| [1, 9, 128, 129, 192, 193, 256, 257, 384, 8192].map(|m| rows(tiles, m));
        assert_eq!(chosen(&WGMMA_PRODUCTS), [8, 16, 128, 192, 192, 128, 128, 192, 192, 128]);
        // One large tile: never many small ones, each of which would read all weights.
        assert_eq!(chosen(&E4M3_WGMMA_PRODUCTS), [8, 16, 96, 96, 96, 96, 96, 96, 96, 96]);
        assert_eq!(chosen(&PRODUCTS)[2..], [128; 8]);
        assert_eq!(chosen(&E4M3_PRODUCTS)[2..], [128; 8]);
        // Devices without the shared memory for 128 rows.
        assert_eq!(chosen(&PRODUCTS[..4])[2..], [64; 8]);
        assert!(tile_for(&[], 1).is_none());
    }
}
