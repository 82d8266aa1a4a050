//! Single kernels against what they are defined to compute, on any device: on a GPU by `earnest-dev kernels`, in tests on their twins.

mod attention;
mod choices;
mod products;

use super::device::{Address, Device, DeviceError, Element};
use super::gpu::Gpu;
use super::kernels::{Kind, attention_shared};
use super::options::{Options, VARIANTS, Variant};

pub(crate) use attention::{SHAPES, Shape, attention};
pub(crate) use choices::choices;
pub(crate) use products::{Case, codes, expert_products, library_products, products};

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

/// All storage formats of a matrix.
pub(crate) const KINDS: [Kind; 5] = [Kind::Dense, Kind::Q8_0, Kind::Q4K, Kind::Q5K, Kind::Q6K];

/// Tolerances of attention and of products: results of attention are rounded to bf16, those of products are not.
const ATTENTION_TOLERANCE: f64 = 0.012;
const PRODUCT_TOLERANCE: f64 = 1e-3;

/// Tolerance of products of 8-bit floats: Hopper is said to add them with about 14 bits within the 128 columns that are added in f32, each of which
/// may lose an 8,192nd of the sum so far.
const FP8_TOLERANCE: f64 = 0.02;

/// Body of a check.
type Run = Box<dyn FnOnce(&mut Gpu) -> Result<Outcome, DeviceError>>;

/// A check of some kernels that has not run yet.
struct Planned {
    name: String,
    tolerance: f64,
    run: Run,
}

impl Planned {
    fn new(
        name: String,
        tolerance: f64,
        run: impl FnOnce(&mut Gpu) -> Result<Outcome, DeviceError> + 'static,
    ) -> Planned {
        Planned { name, tolerance, run: Box::new(run) }
    }
}

/// A check that the device could not end. What was launched before is lost with it: the process can compute nothing more there.
#[derive(Debug, thiserror::Error)]
#[error("{name}: {error}")]
pub struct BrokenCheck {
    /// Index of the check in the list of all.
    pub index: usize,
    /// Name of the check.
    pub name: String,
    /// The device's error.
    pub error: DeviceError,
}

/// Reasons why checks end early.
#[derive(Debug, thiserror::Error)]
pub enum CheckError {
    /// The GPU cannot be used at all.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// A check broke; those after it can be made by a new process.
    #[error(transparent)]
    Broken(#[from] BrokenCheck),
}

/// Runs the checks from the one at `first` on a GPU, and tells `done` of each as it ends; those of cublasLt's products with `library`.
///
/// # Errors
/// [`CheckError`] if the GPU can not be used or a check breaks; a wrong result is no error but a check that has not passed.
pub fn check_kernels(
    index: usize,
    first: usize,
    library: bool,
    done: &mut dyn FnMut(&KernelCheck),
) -> Result<(), CheckError> {
    let gpu = &mut Gpu::open(index, Options::default().kernel_cache, library)?;
    for (index, Planned { name, tolerance, run }) in plan(gpu)?.into_iter().enumerate().skip(first) {
        match run(gpu) {
            Ok(outcome) => done(&outcome.check(name, tolerance)),
            Err(error) => return Err(BrokenCheck { index, name, error }.into()),
        }
    }
    Ok(())
}

/// Every check that a device can run.
fn plan(gpu: &Gpu) -> Result<Vec<Planned>, DeviceError> {
    let info = gpu.info()?;
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
        if tall.max(wide) <= info.shared {
            all.push(Planned::new(name, ATTENTION_TOLERANCE, move |gpu| attention(gpu, shape, &mut |_, _| {})));
        }
    }
    for element in [Element::Bf16, Element::F16] {
        for kind in KINDS {
            own_products(&mut all, Case::new(element, kind), PRODUCT_TOLERANCE);
            let sizes: &[(usize, usize)] = if gpu.has_dense_product() { &[(72, 1280), (264, 4096)] } else { &[] };
            for &(n, k) in sizes {
                let how = if kind == Kind::Dense { "" } else { ", expanded" };
                let name = format!("cublasLt{how}, 300 rows, {n} x {k}, {}, {}", element.name(), kind.name(element));
                let run = move |gpu: &mut Gpu| library_products(gpu, Case::new(element, kind), (n, k), 300);
                all.push(Planned::new(name, PRODUCT_TOLERANCE, run));
            }
        }
        let wgmma = runs(Variant::Wgmma, info.capability);
        if wgmma {
            own_products(&mut all, Case::new(element, Kind::Dense).with(Variant::Wgmma), PRODUCT_TOLERANCE);
        }
        let fp8 = Case::new(element, Kind::E4m3);
        for case in [fp8, fp8.with(Variant::Wgmma)].into_iter().take(1 + usize::from(wgmma)) {
            if info.capability >= (8, 9) {
                let name = format!("activations to 8-bit floats, {}", case.name());
                all.push(Planned::new(name, 0.0, move |gpu| codes(gpu, element, case.has_wgmma())));
                own_products(&mut all, case, FP8_TOLERANCE);
            }
        }
    }
    // A draw on the border of two tokens may fall either way where 2^x has other last bits.
    all.push(Planned::new("draws by temperature, top-k, top-p and min-p".to_owned(), 0.02, |gpu| {
        let (different, draws) = choices(gpu)?;
        Ok(Outcome { error: different as f64 / draws as f64, same_bits: true })
    }));
    Ok(all)
}

/// Adds checks of our own products, and of those of experts.
fn own_products(all: &mut Vec<Planned>, case: Case, tolerance: f64) {
    for (n, k, rows) in [(72, 1280, 70), (264, 4096, 300)] {
        let name = format!("own products, 1 to {rows} rows, {n} x {k}, {}", case.name());
        all.push(Planned::new(name, tolerance, move |gpu| products(gpu, case, (n, k), rows)));
    }
    let name = format!("products of 70 experts, 300 rows, {}", case.name());
    all.push(Planned::new(name, tolerance, move |gpu| expert_products(gpu, case, 100)));
}

/// True if a device has a variant's instructions.
fn runs(variant: Variant, capability: (u32, u32)) -> bool {
    let card = VARIANTS.iter().find(|card| card.variant == variant);
    card.is_none_or(|card| card.capability.is_none_or(|needed| needed == capability))
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

/// Rounds numbers to 16-bit elements.
fn bits(element: Element, list: &[f32]) -> Vec<u16> {
    let one = |&x: &f32| match element {
        Element::F16 => half::f16::from_f32(x).to_bits(),
        Element::Bf16 | Element::F32 => half::bf16::from_f32(x).to_bits(),
    };
    list.iter().map(one).collect()
}

/// The larger one; what is not a number is larger than all.
fn worse(a: f64, b: f64) -> f64 {
    if a.is_nan() || b.is_nan() { f64::NAN } else { a.max(b) }
}
