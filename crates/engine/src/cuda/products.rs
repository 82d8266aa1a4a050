//! Matrix products: cublasLt for dense weights, our own kernels for quantised ones and wherever a row's bits must not depend on its
//! batch.

use std::collections::HashMap;

use super::device::{Address, Argument, DenseProduct, Device, DeviceError, Element, Kernel, Out};
use super::kernels::{Kind, PRODUCTS, SEGMENT, Unit};
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

/// Computes products on a device.
pub(crate) struct ProductRunner {
    element: Element,
    invariant: bool,
    kernels: HashMap<Kind, Kernels>,
    multiprocessors: usize,
    partial: Address,
    expanded: Address,
}

impl ProductRunner {
    /// For matrices held as `kinds`. `invariant` asks for bits that do not depend on the batch.
    pub(crate) fn new(
        device: &mut dyn Device,
        element: Element,
        kinds: &[Kind],
        invariant: bool,
        multiprocessors: usize,
    ) -> Result<ProductRunner, DeviceError> {
        let mut kernels = HashMap::new();
        let library = device.has_dense_product();
        let shared = device.info()?.shared;
        for &kind in kinds {
            if kind == Kind::Dense && library && !invariant {
                continue;
            }
            let unit = device.load(&Unit::product(element, kind))?;
            let mut of = |name: &str, shared| device.kernel(unit, name, shared);
            kernels.insert(
                kind,
                if element == Element::F32 {
                    let plain = Some(of("product_plain", 0)?);
                    Kernels { tiles: vec![], add_segments: None, plain, dequantise: None }
                } else {
                    Kernels {
                        tiles: (0..PRODUCTS.len())
                            .filter(|&i| PRODUCTS[i].3 <= shared)
                            .map(|i| Ok((i, of(PRODUCTS[i].4, PRODUCTS[i].3)?)))
                            .collect::<Result<_, DeviceError>>()?,
                        add_segments: Some(of("add_segments", 0)?),
                        plain: None,
                        dequantise: if kind == Kind::Dense { None } else { Some(of("dequantise", 0)?) },
                    }
                },
            );
        }
        let quantised = kinds.iter().any(|k| *k != Kind::Dense);
        let partial = if kernels.is_empty() || element == Element::F32 {
            0
        } else {
            device.allocate(PARTIAL, "sums of matrix products")?
        };
        let expanded =
            if quantised && library && !invariant { device.allocate(EXPANDED, "expanded weights")? } else { 0 };
        Ok(ProductRunner { element, invariant, kernels, multiprocessors, partial, expanded })
    }

    /// The library computes nothing.
    pub(crate) fn is_invariant(&self, device: &dyn Device) -> bool {
        self.invariant || !device.has_dense_product()
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
        let product = DenseProduct { w: part.at, x, y, m, n: part.rows, k, row_y, element: self.element, out };
        if part.kind == Kind::Dense && library {
            // SAFETY: by the caller.
            return unsafe { device.dense_product(&product) };
        }
        // SAFETY: by the caller.
        unsafe {
            match &self.kernels[&part.kind] {
                Kernels { plain: Some(plain), .. } => self.plain(device, *plain, &product),
                kernels @ Kernels { dequantise: Some(dequantise), .. } if library && m > FEW_ROWS => {
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
        let segments = p.k.div_ceil(SEGMENT);
        // Too few tiles to fill the device: blocks of their own for the segments of k, where the sums have room.
        let cut = segments > 1
            && tiles[0] * tiles[1] < 2 * self.multiprocessors
            && (segments * p.m * p.n * 4) as u64 <= PARTIAL;
        let grid = [tiles[0], tiles[1], if cut { segments } else { 1 }];
        let [m, n, k, row_y] = [p.m, p.n, p.k, p.row_y].map(|n| Argument::from(n as i32));
        let arguments = [p.w.into(), p.x.into(), p.y.into(), self.partial.into(), m, n, k, row_y, number(p.out).into()];
        // SAFETY: by the caller; the partial sums fit.
        unsafe { device.launch(kernel, grid, threads, shared, &arguments)? };
        match kernels.add_segments.filter(|_| cut) {
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
