//! Dense products by cublasLt, accumulated in f32.
//!
//! The algorithm of a shape is what the library's heuristic puts first, without those whose parallel parts add into the result in no
//! fixed order. The same shape always gets the same algorithm, so a run repeats exactly; another number of rows may get another one.
//! A step with the fastest of the first eight, timed on an H200, was 0.4 to 2.3 % faster (benches/results/gpu.md), and a choice by time may round differently
//! on each machine.

use std::cell::RefCell;
use std::collections::HashMap;
use std::ffi::c_int;

use super::device::{Address, DenseProduct, DeviceError, Element, Out};
use super::library::{Algorithm, CublasLt, Handle, Heuristic};

// Of cublas_api.h, library_types.h and cublasLt.h.
const COMPUTE_F32: c_int = 68;
const R_32F: c_int = 0;
const R_16F: c_int = 2;
const R_16BF: c_int = 14;
const TRANSPOSE_A: c_int = 3;
const TRANSPOSED: c_int = 1;
const MAX_WORKSPACE: c_int = 1;
const REDUCTIONS: c_int = 3;
/// CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE: parts are stored and then added in order; none at all is always allowed.
const ORDERED: u32 = 2;

/// CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, then of B, C and D.
const ALIGNMENTS: [c_int; 4] = [5, 6, 7, 8];
/// Alignment that the library assumes by default, in bytes.
const ALIGNMENT: u64 = 256;

/// m, n, k, distance of result rows, elements, how the result is stored, what the addresses are multiples of.
type Shape = (usize, usize, usize, usize, Element, Out, u32);

/// Descriptors and algorithm of a shape.
#[derive(Clone, Copy)]
struct Recipe {
    operation: Handle,
    left: Handle,
    right: Handle,
    result: Handle,
    algorithm: Algorithm,
}

/// The library, with a stream and working memory.
pub(crate) struct Products {
    library: CublasLt,
    handle: Handle,
    stream: Handle,
    workspace: Address,
    preference: Handle,
    recipes: RefCell<HashMap<Shape, Recipe>>,
}

fn check(call: &'static str, code: c_int) -> Result<(), DeviceError> {
    let words = match code {
        0 => return Ok(()),
        1 => "CUBLAS_STATUS_NOT_INITIALIZED: the driver may be too old for this library, or memory short",
        3 => "CUBLAS_STATUS_ALLOC_FAILED",
        7 => "CUBLAS_STATUS_INVALID_VALUE",
        8 => "CUBLAS_STATUS_ARCH_MISMATCH",
        13 => "CUBLAS_STATUS_EXECUTION_FAILED",
        14 => "CUBLAS_STATUS_INTERNAL_ERROR",
        15 => "CUBLAS_STATUS_NOT_SUPPORTED",
        _ => "a status of cublas_api.h",
    };
    Err(DeviceError::Call { call, why: format!("{words} ({code})") })
}

impl Products {
    /// Bytes of working memory.
    pub(crate) const WORKSPACE: u64 = 64 << 20;

    /// Creates a handle.
    ///
    /// # Errors
    /// [`DeviceError`] where the library does not work with this device or driver.
    pub(crate) fn new(library: CublasLt, stream: Handle, workspace: Address) -> Result<Products, DeviceError> {
        let null = std::ptr::null_mut();
        let mut made =
            Products { library, handle: null, stream, workspace, preference: null, recipes: RefCell::default() };
        let (library, handle, preference) = (&made.library, &mut made.handle, &mut made.preference);
        let bytes = Products::WORKSPACE;
        // SAFETY: handles to write; attributes of the sizes that the header names.
        unsafe {
            check("cublasLtCreate", (library.create)(handle))?;
            check("cublasLtMatmulPreferenceCreate", (library.preference_create)(preference))?;
            let set = library.preference_set;
            let (b, r) = (std::ptr::from_ref(&bytes).cast(), std::ptr::from_ref(&ORDERED).cast());
            check("cublasLtMatmulPreferenceSetAttribute", set(*preference, MAX_WORKSPACE, b, 8))?;
            check("cublasLtMatmulPreferenceSetAttribute", set(*preference, REDUCTIONS, r, 4))?;
        }
        // Asks for an algorithm once, so that what can not be used is known before anything depends on it.
        let (w, x, y) = (1 << 20, 2 << 20, 3 << 20);
        let (m, n, k, element, out) = (64, 64, 64, Element::Bf16, Out::Elements);
        made.recipe(&DenseProduct { w, x, y, m, n, k, row_y: n, element, out })?;
        Ok(made)
    }

    /// The library's version.
    pub(crate) fn version(&self) -> u64 {
        // SAFETY: no arguments.
        unsafe { (self.library.version)() as u64 }
    }

    fn recipe(&self, p: &DenseProduct) -> Result<Recipe, DeviceError> {
        let alignment = [p.w, p.x, p.y].iter().fold(ALIGNMENT, |a, at| a.min(1 << at.trailing_zeros().min(8))) as u32;
        let shape = (p.m, p.n, p.k, p.row_y, p.element, p.out, alignment);
        if let Some(known) = self.recipes.borrow().get(&shape) {
            return Ok(*known);
        }
        let null = std::ptr::null_mut();
        let mut r = Recipe { operation: null, left: null, right: null, result: null, algorithm: Algorithm::default() };
        match self.complete(p, &shape, &mut r) {
            Ok(()) => {
                self.recipes.borrow_mut().insert(shape, r);
                Ok(r)
            }
            Err(error) => {
                self.destroy(r);
                Err(error)
            }
        }
    }

    /// Makes the descriptors of a shape and chooses its algorithm.
    fn complete(&self, p: &DenseProduct, shape: &Shape, r: &mut Recipe) -> Result<(), DeviceError> {
        let (library, alignment) = (&self.library, shape.6);
        let element = match p.element {
            Element::F32 => R_32F,
            Element::Bf16 => R_16BF,
            Element::F16 => R_16F,
        };
        let stored = if p.out == Out::Elements { element } else { R_32F };
        let mut found = Heuristic::default();
        let mut count = 0;
        let (m, n, k) = (p.m as u64, p.n as u64, p.k as u64);
        // The library's matrices lie in columns: w[n, k] is its k x n, x its k x m, y its n x m.
        // SAFETY: handles to write; the layouts describe the operands.
        unsafe {
            check("cublasLtMatmulDescCreate", (library.operation_create)(&mut r.operation, COMPUTE_F32, R_32F))?;
            let transposed = std::ptr::from_ref(&TRANSPOSED).cast();
            let set = library.operation_set;
            check("cublasLtMatmulDescSetAttribute", set(r.operation, TRANSPOSE_A, transposed, 4))?;
            let layout = library.layout_create;
            check("cublasLtMatrixLayoutCreate", layout(&mut r.left, element, k, n, p.k as i64))?;
            check("cublasLtMatrixLayoutCreate", layout(&mut r.right, element, k, m, p.k as i64))?;
            check("cublasLtMatrixLayoutCreate", layout(&mut r.result, stored, n, m, p.row_y as i64))?;
            for which in ALIGNMENTS {
                let bytes = std::ptr::from_ref(&alignment).cast();
                let set = library.preference_set;
                check("cublasLtMatmulPreferenceSetAttribute", set(self.preference, which, bytes, 4))?;
            }
            let code = (library.heuristic)(
                self.handle,
                r.operation,
                r.left,
                r.right,
                r.result,
                r.result,
                self.preference,
                1,
                &mut found,
                &mut count,
            );
            check("cublasLtMatmulAlgoGetHeuristic", code)?;
        }
        if count < 1 || found.state != 0 {
            let state = found.state;
            let why = format!("no algorithm for m {m}, n {n}, k {k}, {} (state {state})", p.element.name());
            return Err(DeviceError::Call { call: "cublasLtMatmulAlgoGetHeuristic", why });
        }
        r.algorithm = found.algorithm;
        Ok(())
    }

    /// Runs a product.
    ///
    /// # Safety
    /// The addresses are of device memory large enough for the operands.
    pub(crate) unsafe fn run(&self, p: &DenseProduct) -> Result<(), DeviceError> {
        let r = self.recipe(p)?;
        // SAFETY: by the caller.
        unsafe { self.multiply(p, &r) }
    }

    unsafe fn multiply(&self, p: &DenseProduct, r: &Recipe) -> Result<(), DeviceError> {
        let one = 1.0f32;
        let keep = if p.out == Out::Add { 1.0f32 } else { 0.0 };
        // SAFETY: by the caller; the factors are read before the call returns.
        let code = unsafe {
            (self.library.product)(
                self.handle,
                r.operation,
                std::ptr::from_ref(&one).cast(),
                p.w as *const _,
                r.left,
                p.x as *const _,
                r.right,
                std::ptr::from_ref(&keep).cast(),
                p.y as *const _,
                r.result,
                p.y as *mut _,
                r.result,
                &r.algorithm,
                self.workspace as *mut _,
                Products::WORKSPACE as usize,
                self.stream,
            )
        };
        check("cublasLtMatmul", code)
    }
}

impl Products {
    /// Destroys the descriptors that were made for a recipe.
    fn destroy(&self, r: Recipe) {
        // SAFETY: handles that were made here and are not used after.
        unsafe {
            if !r.operation.is_null() {
                (self.library.operation_destroy)(r.operation);
            }
            for layout in [r.left, r.right, r.result].into_iter().filter(|layout| !layout.is_null()) {
                (self.library.layout_destroy)(layout);
            }
        }
    }
}

impl Drop for Products {
    fn drop(&mut self) {
        for (_, recipe) in std::mem::take(self.recipes.get_mut()) {
            self.destroy(recipe);
        }
        let library = &self.library;
        // SAFETY: handles that were made here and are not used after; the device is done with its work.
        unsafe {
            if !self.preference.is_null() {
                (library.preference_destroy)(self.preference);
            }
            if !self.handle.is_null() {
                (library.destroy)(self.handle);
            }
        }
    }
}
