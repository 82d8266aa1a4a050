//! Peak performance of a device, measured: a large copy, a large product.

use super::device::{Address, Clock, DenseProduct, Device, DeviceError, Element, Out};
use super::error::CudaError;
use super::gpu::Gpu;
use super::kernels::Kind;
use super::options::{Options, Variants};
use super::products::{ProductRunner, ProductSettings};
use super::weights::{Matrix, Part, element_of};
use earnest_models::checkpoint::Checkpoint;

/// Measured ceilings of a device.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct Peaks {
    /// Clock of the measurement.
    pub clock: Clock,
    /// Bytes a second, read and written, of a copy inside the device's memory.
    pub bytes_per_s: f64,
    /// Bytes of that copy.
    pub copy_bytes: u64,
    /// Operations a second of a product of two square matrices, a multiplication and an addition being two.
    pub operations_per_s: f64,
    /// Rows of those matrices.
    pub product_rows: usize,
    /// Type of those matrices.
    pub product_type: &'static str,
    /// `cublasLt`, or `own` where there is none.
    pub product_by: &'static str,
    /// Seconds between two notes of the clock around nothing: so much of every launch's time in a profile is the clock's.
    pub note_s: f64,
}

/// Bytes of the copy, if the device's memory has room for two of them many times over.
const COPY: u64 = 1 << 30;

/// Rows of the largest product.
const MOST_ROWS: usize = 8192;

/// Seconds that one product of the measurement takes at least, unless it has [`MOST_ROWS`].
const LONG_ENOUGH: f64 = 2e-3;

/// Measurements of each kind, of which the best counts.
const ROUNDS: usize = 3;

/// Measures a GPU in the type that a checkpoint is computed in, with cublasLt wherever it can be used. The memory is given back.
///
/// # Errors
/// [`CudaError`] if the GPU can not be used.
pub fn peaks(index: usize, checkpoint: &Checkpoint) -> Result<Peaks, CudaError> {
    let element = element_of(checkpoint)?;
    let mut gpu = Gpu::open(index, Options::default().kernel_cache, true)?;
    Ok(measure(&mut gpu, element)?)
}

/// Measures any device.
pub(crate) fn measure(device: &mut dyn Device, element: Element) -> Result<Peaks, DeviceError> {
    device.enter()?;
    let (bytes_per_s, copy_bytes) = copying(device)?;
    let product_by = if device.has_dense_product() { "cublasLt" } else { "own" };
    let runner = match product_by {
        "own" => {
            let multiprocessors = device.info()?.multiprocessors as usize;
            let settings = ProductSettings { element, invariant: true, variants: Variants::NONE, multiprocessors };
            Some(ProductRunner::new(device, &[Kind::Dense], &[], &settings)?)
        }
        _ => None,
    };
    let mut rows = 64;
    let operations_per_s = loop {
        let seconds = multiplying(device, element, rows, runner.as_ref())?;
        if seconds >= LONG_ENOUGH || rows >= MOST_ROWS {
            break 2.0 * (rows as f64).powi(3) / seconds;
        }
        rows *= 2;
    };
    if let Some(runner) = runner {
        runner.free(device)?;
    }
    let mut note_s = f64::INFINITY;
    for _ in 0..20 {
        note_s = seconds(device, 0, &mut || Ok(()))?.min(note_s);
    }
    let (clock, product_type) = (device.clock(), element.name());
    Ok(Peaks { clock, bytes_per_s, copy_bytes, operations_per_s, product_rows: rows, product_type, product_by, note_s })
}

/// Seconds of some work, by the device's clock.
fn seconds(
    device: &dyn Device,
    times: usize,
    work: &mut dyn FnMut() -> Result<(), DeviceError>,
) -> Result<f64, DeviceError> {
    device.stamp(0)?;
    for _ in 0..times {
        work()?;
    }
    device.stamp(1)?;
    device.wait(device.mark(0)?)?;
    // A clock too coarse for the work must not give infinite peaks.
    Ok((device.seconds(0, 1)? / times.max(1) as f64).max(1e-9))
}

/// Seconds of the fastest round of some work, after one to warm up.
fn best(device: &dyn Device, work: &mut dyn FnMut() -> Result<(), DeviceError>) -> Result<f64, DeviceError> {
    let once = seconds(device, 1, work)?;
    let times = ((5e-3 / once).ceil() as usize).clamp(1, 20);
    (0..ROUNDS).try_fold(f64::INFINITY, |best, _| Ok(seconds(device, times, work)?.min(best)))
}

/// Bytes a second of a copy, read and written, and the copy's bytes.
fn copying(device: &dyn Device) -> Result<(f64, u64), DeviceError> {
    let bytes = COPY.min(device.info()?.free / 32) / 4096 * 4096;
    let from = device.allocate(bytes, "measuring the memory")?;
    let to = device.allocate(bytes, "measuring the memory")?;
    device.zero(from, bytes)?;
    let seconds = best(device, &mut || device.copy(from, to, bytes))?;
    device.free(from)?;
    device.free(to)?;
    Ok((2.0 * bytes as f64 / seconds, bytes))
}

/// Seconds of a product of square matrices. Their values are random: zeros draw less power and are multiplied faster.
fn multiplying(
    device: &dyn Device,
    element: Element,
    rows: usize,
    runner: Option<&ProductRunner>,
) -> Result<f64, DeviceError> {
    let bytes = (rows * rows) as u64 * element.size_bytes();
    let fill = |seed: u64| -> Result<Address, DeviceError> {
        let at = device.allocate(bytes, "measuring products")?;
        let block = noise(element, seed, (rows * rows).min(1 << 20));
        for first in (0..bytes).step_by(block.len()) {
            let length = block.len().min((bytes - first) as usize);
            device.upload(at + first, &block[..length])?;
        }
        Ok(at)
    };
    let (w, x) = (fill(1)?, fill(2)?);
    let y = device.allocate(bytes, "measuring products")?;
    let out = Out::Elements;
    let product = DenseProduct { w, x, y, m: rows, n: rows, k: rows, row_y: rows, element, out };
    let matrix = Matrix { parts: vec![Part { kind: Kind::Dense, rows, at: w }], n: rows, k: rows };
    let seconds = best(device, &mut || {
        // SAFETY: three square matrices of so many rows.
        unsafe {
            match runner {
                None => device.dense_product(&product),
                Some(runner) => runner.run(device, &matrix, x, rows, y, Out::Elements),
            }
        }
    })?;
    [w, x, y].into_iter().try_for_each(|at| device.free(at))?;
    Ok(seconds)
}

/// Random elements between 1 and 2, with either sign, as they lie in memory.
fn noise(element: Element, seed: u64, count: usize) -> Vec<u8> {
    let mut state = seed;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 32) as u32
    };
    match element {
        Element::F32 => (0..count).flat_map(|_| (next() & 0x807f_ffff | 0x3f80_0000).to_ne_bytes()).collect(),
        Element::Bf16 => (0..count).flat_map(|_| ((next() >> 16) as u16 & 0x807f | 0x3f80).to_ne_bytes()).collect(),
        Element::F16 => (0..count).flat_map(|_| ((next() >> 16) as u16 & 0x83ff | 0x3c00).to_ne_bytes()).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cuda::twin::{Twin, skipped};

    #[test]
    fn a_copy_and_a_product_are_measured_and_their_memory_is_given_back() {
        if skipped() {
            return;
        }
        for library in [true, false] {
            let mut twin = Twin::new();
            twin.library = library;
            let free = twin.info().unwrap().free;
            let peaks = measure(&mut twin, Element::Bf16).unwrap();
            assert_eq!((peaks.clock, peaks.product_type), (Clock::Host, "bf16"));
            assert_eq!(peaks.product_by, if library { "cublasLt" } else { "own" });
            // One core of a CPU: between 10 MB and 1 TB, and between 1 million and 1 trillion operations, a second.
            assert!((1e7..1e12).contains(&peaks.bytes_per_s), "{peaks:?}");
            assert!((1e6..1e12).contains(&peaks.operations_per_s), "{peaks:?}");
            assert!((1e-9..1e-2).contains(&peaks.note_s), "{peaks:?}");
            assert_eq!(twin.info().unwrap().free, free);
        }
    }

    #[test]
    fn random_elements_are_finite_in_every_type() {
        let bits = |element| noise(element, 3, 1000);
        let bf16 = bits(Element::Bf16);
        let values = bf16.chunks(2).map(|b| half::bf16::from_ne_bytes([b[0], b[1]]).to_f32());
        assert!(values.clone().all(|x| (1.0..2.0).contains(&x.abs())) && values.clone().any(|x| x < 0.0));
        let f16 = bits(Element::F16);
        assert!(f16.chunks(2).all(|b| (1.0..2.0).contains(&half::f16::from_ne_bytes([b[0], b[1]]).to_f32().abs())));
        let f32s = bits(Element::F32);
        assert!(
            f32s.chunks(4).all(|b| (1.0..2.0).contains(&f32::from_ne_bytes(b.try_into().unwrap()).abs())),
            "as many bits"
        );
    }
}
