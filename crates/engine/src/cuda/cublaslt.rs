//! Dense products by cublasLt, accumulated in f32.
//!
//! The algorithm of a shape is what the library's heuristic puts first, without those whose parallel parts add into the result in no
//! fixed order. The same shape always gets the same algorithm, so a run repeats exactly; another number of rows may get another one.
//! With [`Products::tune`] it is the fastest of the first eight, timed for a range of numbers of rows when the first of them comes, and kept in a file: another
//! machine, and this one without the file, may choose and round differently.

use std::cell::RefCell;
use std::collections::HashMap;
use std::ffi::c_int;
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use super::device::{Address, DenseProduct, DeviceError, Element, Out};
use super::library::{Algorithm, CublasLt, Driver, Handle, Heuristic};

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

/// Algorithms of a shape that are timed, and how often each.
const CANDIDATES: usize = 8;
const REPEATS: usize = 4;

/// Rows of the products whose algorithms are timed together: those of `m`. Requests end one by one, so nearly every step has another number of rows, and each
/// would be timed.
fn range(m: usize) -> usize {
    match m {
        0..=16 => m,
        17..=1024 => m.next_multiple_of(64),
        _ => m.next_multiple_of(256),
    }
}

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
    tuning: Option<Tuning>,
}

/// Choices between a shape's algorithms by their time.
struct Tuning {
    driver: Rc<Driver>,
    events: [Handle; 2],
    /// File of the choices: the words of the shape, with the most rows of its range, a tab, the place of the algorithm in the heuristic's list.
    file: Option<PathBuf>,
    chosen: RefCell<HashMap<String, usize>>,
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

fn check_driver(call: &'static str, code: c_int) -> Result<(), DeviceError> {
    match code {
        0 => Ok(()),
        _ => Err(DeviceError::Call { call, why: format!("the driver answers {code} while products are timed") }),
    }
}

/// Opens the file of choices for another line.
fn append(file: &Path) -> Result<File, DeviceError> {
    let folder = file.parent().map_or(Ok(()), std::fs::create_dir_all);
    let open = || File::options().create(true).append(true).open(file);
    folder.and_then(|()| open()).map_err(|error| unkept(file, &error))
}

fn unkept(file: &Path, error: &std::io::Error) -> DeviceError {
    let why = format!("the choice of an algorithm cannot be kept in {}: {error}", file.display());
    DeviceError::Call { call: "timing matrix products", why }
}

/// Place of the shortest time, the first of equal ones; what is not a number is no time.
fn fastest(times: &[f32]) -> usize {
    let time = |i: &usize| if times[*i].is_nan() { f32::INFINITY } else { times[*i] };
    (0..times.len()).min_by(|a, b| time(a).total_cmp(&time(b))).unwrap_or(0)
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
        let mut made = Products {
            library,
            handle: null,
            stream,
            workspace,
            preference: null,
            recipes: RefCell::default(),
            tuning: None,
        };
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
        made.recipe(&DenseProduct { w, x, y, m, n, k, row_y: n, element, out, scratch: 0 })?;
        Ok(made)
    }

    /// The library's version.
    pub(crate) fn version(&self) -> u64 {
        // SAFETY: no arguments.
        unsafe { (self.library.version)() as u64 }
    }

    /// Times algorithms from now on. Choices are read from and added to `file`.
    pub(crate) fn tune(&mut self, driver: Rc<Driver>, file: Option<PathBuf>) -> Result<(), DeviceError> {
        if let Some(file) = &file {
            // Where choices cannot be kept, the next process would choose, and round, for itself: known before anything is computed.
            append(file)?;
        }
        let mut events = [std::ptr::null_mut(); 2];
        for event in &mut events {
            // SAFETY: a handle to write.
            check_driver("cuEventCreate", unsafe { (driver.event_create)(event, 0) })?;
        }
        let text = file.as_ref().and_then(|file| std::fs::read_to_string(file).ok()).unwrap_or_default();
        // A line that is none is of a choice that is made again.
        let line = |line: &str| {
            let (shape, place) = line.split_once('\t')?;
            Some((shape.to_owned(), place.parse().ok()?))
        };
        let chosen = RefCell::new(text.lines().filter_map(line).collect());
        self.tuning = Some(Tuning { driver, events, file, chosen });
        self.forget_recipes();
        Ok(())
    }

    /// The place of the algorithm to use among those `found` for a shape.
    fn choose(&self, p: &DenseProduct, shape: &Shape, r: &Recipe, found: &[Heuristic]) -> Result<usize, DeviceError> {
        let Some(tuning) = &self.tuning else { return Ok(0) };
        let (m, n, k, row, element, out, alignment) = shape;
        let words = format!("{} {n} {k} {row} {} {out:?} {alignment}", range(*m), element.name());
        if let Some(&place) = tuning.chosen.borrow().get(&words) {
            return Ok(if place < found.len() { place } else { 0 });
        }
        // The result is computed again after this; a sum would be added to more than once, and where no memory is lent for it (models
        // with experts in every layer) it keeps the first algorithm.
        let y = if p.out == Out::Add { p.scratch } else { p.y };
        if y == 0 {
            return Ok(0);
        }
        let mut times = vec![];
        for heuristic in found {
            let recipe = Recipe { algorithm: heuristic.algorithm, ..*r };
            let again = DenseProduct { y, ..*p };
            // SAFETY: the operands of the product that follows.
            times.push(unsafe { self.time(tuning, &again, &recipe)? });
        }
        let fastest = fastest(&times);
        if let Some(file) = &tuning.file {
            writeln!(append(file)?, "{words}\t{fastest}").map_err(|error| unkept(file, &error))?;
        }
        tuning.chosen.borrow_mut().insert(words, fastest);
        Ok(fastest)
    }

    /// Milliseconds of a product by an algorithm, the shortest of some. The working memory is filled before each: a step reads as much between two products
    /// with the same weights, so that they never lie in the second cache.
    unsafe fn time(&self, tuning: &Tuning, p: &DenseProduct, r: &Recipe) -> Result<f32, DeviceError> {
        let (d, [begin, end]) = (&tuning.driver, tuning.events);
        let mut shortest = f32::INFINITY;
        // SAFETY: by the caller; handles of this device.
        unsafe {
            // Its kernels may be loaded now.
            self.multiply(p, r)?;
            for _ in 0..REPEATS {
                let bytes = Products::WORKSPACE as usize;
                check_driver("cuMemsetD8Async", (d.set_bytes)(self.workspace, 0, bytes, self.stream))?;
                check_driver("cuEventRecord", (d.event_record)(begin, self.stream))?;
                self.multiply(p, r)?;
                check_driver("cuEventRecord", (d.event_record)(end, self.stream))?;
                check_driver("cuEventSynchronize", (d.event_synchronize)(end))?;
                let mut milliseconds = 0.0;
                check_driver("cuEventElapsedTime", (d.event_seconds)(&mut milliseconds, begin, end))?;
                shortest = shortest.min(milliseconds);
            }
        }
        Ok(shortest)
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
        let (n, k) = (p.n as u64, p.k as u64);
        // The library's matrices lie in columns: w[n, k] is its k x n, x its k x m, y its n x m.
        // SAFETY: handles to write; the layouts describe the operands.
        unsafe {
            check("cublasLtMatmulDescCreate", (library.operation_create)(&mut r.operation, COMPUTE_F32, R_32F))?;
            let transposed = std::ptr::from_ref(&TRANSPOSED).cast();
            let set = library.operation_set;
            check("cublasLtMatmulDescSetAttribute", set(r.operation, TRANSPOSE_A, transposed, 4))?;
            check("cublasLtMatrixLayoutCreate", (library.layout_create)(&mut r.left, element, k, n, p.k as i64))?;
            for which in ALIGNMENTS {
                let bytes = std::ptr::from_ref(&alignment).cast();
                let set = library.preference_set;
                check("cublasLtMatmulPreferenceSetAttribute", set(self.preference, which, bytes, 4))?;
            }
        }
        let rows = |m: usize, r: &mut Recipe| -> Result<(), DeviceError> {
            let (layout, m) = (library.layout_create, m as u64);
            // SAFETY: handles to write.
            unsafe {
                check("cublasLtMatrixLayoutCreate", layout(&mut r.right, element, k, m, p.k as i64))?;
                check("cublasLtMatrixLayoutCreate", layout(&mut r.result, stored, n, m, p.row_y as i64))
            }
        };
        rows(p.m, r)?;
        if self.tuning.is_none() {
            let found = self.algorithms(p, r, 1)?;
            r.algorithm = found[0].algorithm;
            return Ok(());
        }
        let null = std::ptr::null_mut();
        let mut of_range = Recipe { right: null, result: null, ..*r };
        let found = rows(range(p.m), &mut of_range).and_then(|()| self.algorithms(p, &of_range, CANDIDATES));
        self.destroy(Recipe { operation: null, left: null, ..of_range });
        let found = found?;
        // What is timed must be possible for these rows, too.
        let found: Vec<Heuristic> = found.into_iter().filter(|one| self.can(r, &one.algorithm)).collect();
        if found.is_empty() {
            let found = self.algorithms(p, r, 1)?;
            r.algorithm = found[0].algorithm;
            return Ok(());
        }
        r.algorithm = found[self.choose(p, shape, r, &found)?].algorithm;
        Ok(())
    }

    /// The library's first algorithms for a shape, at most `wanted` and at least one.
    fn algorithms(&self, p: &DenseProduct, r: &Recipe, wanted: usize) -> Result<Vec<Heuristic>, DeviceError> {
        let mut found = [Heuristic::default(); CANDIDATES];
        let mut count = 0;
        // SAFETY: handles that were made; as many results as there is room for.
        let code = unsafe {
            (self.library.heuristic)(
                self.handle,
                r.operation,
                r.left,
                r.right,
                r.result,
                r.result,
                self.preference,
                wanted as c_int,
                found.as_mut_ptr(),
                &mut count,
            )
        };
        check("cublasLtMatmulAlgoGetHeuristic", code)?;
        let usable: Vec<Heuristic> =
            found.iter().take(count.clamp(0, wanted as c_int) as usize).take_while(|f| f.state == 0).copied().collect();
        if usable.is_empty() {
            let (m, n, k, state) = (p.m, p.n, p.k, found[0].state);
            let why = format!("no algorithm for m {m}, n {n}, k {k}, {} (state {state})", p.element.name());
            return Err(DeviceError::Call { call: "cublasLtMatmulAlgoGetHeuristic", why });
        }
        Ok(usable)
    }

    /// True if an algorithm computes a recipe's shape with the working memory that there is.
    fn can(&self, r: &Recipe, algorithm: &Algorithm) -> bool {
        let mut result = Heuristic::default();
        // SAFETY: handles that were made; a result to write.
        let code = unsafe {
            (self.library.algorithm_check)(
                self.handle,
                r.operation,
                r.left,
                r.right,
                r.result,
                r.result,
                algorithm,
                &mut result,
            )
        };
        code == 0 && result.workspace as u64 <= Products::WORKSPACE
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
    fn forget_recipes(&mut self) {
        for (_, recipe) in std::mem::take(self.recipes.get_mut()) {
            self.destroy(recipe);
        }
    }

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
        self.forget_recipes();
        let library = &self.library;
        // SAFETY: handles that were made here and are not used after; the device is done with its work.
        unsafe {
            if let Some(tuning) = &self.tuning {
                for event in tuning.events {
                    (tuning.driver.event_destroy)(event);
                }
            }
            if !self.preference.is_null() {
                (library.preference_destroy)(self.preference);
            }
            if !self.handle.is_null() {
                (library.destroy)(self.handle);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_of_the_shortest_times_wins() {
        assert_eq!(fastest(&[3.0, 1.0, 2.0, 1.0]), 1);
        assert_eq!([1, 16, 17, 64, 65, 512, 1000, 1025, 8000].map(range), [1, 16, 64, 64, 128, 512, 1024, 1280, 8192]);
        assert_eq!((fastest(&[f32::NAN, 7.0]), fastest(&[f32::NAN]), fastest(&[])), (1, 0, 0));
    }
}
