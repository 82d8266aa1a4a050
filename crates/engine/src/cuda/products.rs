//! Matrix products: cublasLt for dense weights, our own kernels for quantised ones and wherever a row's bits must not depend on its
//! batch.

use std::collections::HashMap;

use super::device::{Address, Argument, DenseProduct, Device, DeviceError, Element, Kernel, Out};
use super::kernels::{Kind, PLAIN_ROWS, PRODUCTS, SEGMENT, Unit};
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
    /// Those of [`PRODUCTS`] whose shared memory the device has, by their place there; empty in f32.
    tiles: Vec<(usize, Kernel)>,
    add_segments: Option<Kernel>,
    plain: Option<Kernel>,
    dequantise: Option<Kernel>,
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
    /// Quantised weights are never expanded before a product.
    fused: bool,
    scratch: Address,
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
        let dequantise = if variants.has(Variant::VectorDequantise) { "dequantise_8" } else { "dequantise" };
        let mut load = |kind: Kind, experts: bool| {
            let unit = if experts { Unit::experts(element, kind) } else { Unit::product(element, kind) };
            let unit = device.load(&unit)?;
            let mut of = |name: &str, shared| device.kernel(unit, name, shared);
            if element == Element::F32 {
                let plain = Some(of(if experts { "experts_plain" } else { "product_plain" }, 0)?);
                return Ok(Kernels { tiles: vec![], add_segments: None, plain, dequantise: None });
            }
            let mut tile = |i: usize| {
                let (rows, _, _, shared, name) = PRODUCTS[i];
                let kernel = if experts { of(&format!("experts_{rows}"), shared)? } else { of(name, shared)? };
                Ok::<_, DeviceError>((i, kernel))
            };
            let tiles = (0..PRODUCTS.len()).filter(|&i| PRODUCTS[i].3 <= shared).map(&mut tile);
            Ok::<_, DeviceError>(Kernels {
                tiles: tiles.collect::<Result<_, _>>()?,
                add_segments: Some(of("add_segments", 0)?),
                plain: None,
                dequantise: if kind == Kind::Dense || experts { None } else { Some(of(dequantise, 0)?) },
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
        let quantised = kinds.iter().any(|k| *k != Kind::Dense);
        let partial = if (kernels.is_empty() && expert_kernels.is_empty()) || element == Element::F32 {
            0
        } else {
            device.allocate(PARTIAL, "sums of matrix products")?
        };
        let fused = variants.has(Variant::FusedDequantise);
        let expands = quantised && library && !invariant && !fused;
        let expanded = if expands { device.allocate(EXPANDED, "expanded weights")? } else { 0 };
        Ok(ProductRunner {
            element,
            invariant,
            fused,
            scratch: 0,
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

    /// Lends memory for results that nobody reads, as large as the residual stream, while nothing else uses it.
    pub(crate) fn lend(&mut self, scratch: Address) {
        self.scratch = scratch;
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
        let (element, scratch) = (self.element, self.scratch);
        let product = DenseProduct { w: part.at, x, y, m, n: part.rows, k, row_y, element, out, scratch };
        if part.kind == Kind::Dense && library {
            // SAFETY: by the caller.
            return unsafe { device.dense_product(&product) };
        }
        // SAFETY: by the caller.
        unsafe {
            match &self.kernels[&part.kind] {
                Kernels { plain: Some(plain), .. } => self.plain(device, *plain, &product),
                kernels @ Kernels { dequantise: Some(dequantise), .. } if library && !self.fused && m > FEW_ROWS => {
                    let _ = kernels;
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
        // The smallest tile with a place for every row, else the largest there is: the bits are the same in all.
        let fits = kernels.tiles.iter().find(|t| PRODUCTS[t.0].0 >= p.m).or(kernels.tiles.last());
        let Some(&(which, kernel)) = fits else {
            return Err(DeviceError::SharedMemory);
        };
        let (rows, columns, threads, shared, _) = PRODUCTS[which];
        let tiles = [p.m.div_ceil(rows), p.n.div_ceil(columns)];
        let segments = self.segments(tiles, p.m, p.n, p.k);
        let grid = [tiles[0], tiles[1], segments];
        let [m, n, k, row_y] = [p.m, p.n, p.k, p.row_y].map(|n| Argument::from(n as i32));
        let arguments = [p.w.into(), p.x.into(), p.y.into(), self.partial.into(), m, n, k, row_y, number(p.out).into()];
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
        let tiles = self.expert_kernels.values().next().map(|kernels| &kernels.tiles[..]).unwrap_or_default();
        let rows = |tile: &(usize, Kernel)| PRODUCTS[tile.0].0;
        let fits = tiles.iter().find(|tile| rows(tile) * experts >= pairs).or(tiles.last());
        fits.map(rows).ok_or(DeviceError::SharedMemory)
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
            let &(which, kernel) =
                kernels.tiles.iter().find(|t| PRODUCTS[t.0].0 == tile).ok_or(DeviceError::SharedMemory)?;
            let (_, columns, threads, shared, _) = PRODUCTS[which];
            let grid = [sorted.most_tiles, rows.div_ceil(columns)];
            let segments = self.segments(grid, sorted.rows, rows, w.k);
            let partial = self.partial.into();
            let arguments =
                [at, stride.into(), tiles, order, per_token, x.into(), y.into(), partial, m, n, k, row_y, out];
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

/// OUT_* of the kernels.
fn number(out: Out) -> i32 {
    match out {
        Out::Elements => 0,
        Out::Floats => 1,
        Out::Add => 2,
    }
}
