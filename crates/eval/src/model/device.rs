//! Devices of the native engine.
use std::str::FromStr;

use earnest_engine::cuda::{self, CudaError, DeviceError, DeviceInfo, Variant, Variants};

use super::EngineSettings;
use crate::EvalError;

/// A requested device.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum DeviceChoice {
    /// A usable GPU, else the CPU.
    #[default]
    Auto,
    Cpu,
    /// A GPU by index.
    Cuda(usize),
}

impl DeviceChoice {
    /// Returns the index of the GPU; 0 by default.
    pub fn index(self) -> usize {
        match self {
            DeviceChoice::Cuda(index) => index,
            DeviceChoice::Auto | DeviceChoice::Cpu => 0,
        }
    }
}

/// An unknown device name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("a device is auto, cpu, cuda or cuda:N")]
pub struct UnknownDevice;

impl FromStr for DeviceChoice {
    type Err = UnknownDevice;

    fn from_str(text: &str) -> Result<Self, UnknownDevice> {
        match (text, text.strip_prefix("cuda:")) {
            ("auto", _) => Ok(DeviceChoice::Auto),
            ("cpu", _) => Ok(DeviceChoice::Cpu),
            ("cuda", _) => Ok(DeviceChoice::Cuda(0)),
            (_, Some(number)) => {
                number.parse::<u16>().map(|index| DeviceChoice::Cuda(index.into())).map_err(|_| UnknownDevice)
            }
            _ => Err(UnknownDevice),
        }
    }
}

/// Device and arithmetic of the native engine; its name is part of a run's settings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Device {
    Cpu,
    Cuda {
        /// Batch-invariant kernels for all matrix products; otherwise cublasLt computes the dense ones.
        invariant: bool,
        /// The chosen variants whose results have other bits.
        variants: Variants,
    },
}

const CUDA_INVARIANT: &str = "native-cuda-batch-invariant";

/// One name for each arithmetic, so that rows of different ones never mix. The variants with other bits are of products by cublasLt,
/// which batch invariance does without.
const ARITHMETICS: [(&str, Device); 6] = [
    ("native", Device::Cpu),
    ("native-cuda-cublaslt", Device::cublaslt(Variants::NONE)),
    (CUDA_INVARIANT, Device::invariant()),
    ("native-cuda-cublaslt-tuned", Device::cublaslt(Variants::NONE.with(Variant::TunedProducts))),
    ("native-cuda-cublaslt-fused-dequantise", Device::cublaslt(Variants::NONE.with(Variant::FusedDequantise))),
    (
        "native-cuda-cublaslt-tuned-fused-dequantise",
        Device::cublaslt(Variants::NONE.with(Variant::TunedProducts).with(Variant::FusedDequantise)),
    ),
];

impl Device {
    /// Returns the engine's name in a run's settings.
    pub fn engine(&self) -> &'static str {
        let named = ARITHMETICS.iter().find(|(_, device)| device == self);
        named.expect("every arithmetic that can be chosen has a name").0
    }

    const fn cublaslt(variants: Variants) -> Device {
        Device::Cuda { invariant: false, variants }
    }

    const fn invariant() -> Device {
        Device::Cuda { invariant: true, variants: Variants::NONE }
    }

    /// Returns the device of a native engine by name.
    pub fn of_engine(name: &str) -> Option<Device> {
        ARITHMETICS.into_iter().find_map(|(of, device)| (of == name).then_some(device))
    }

    /// Returns the device for these settings, with a note if it is not the expected one. Without cublasLt, the batch-invariant
    /// kernels compute all products.
    pub fn choose(settings: &EngineSettings) -> Result<(Device, Option<DeviceNote>), EvalError> {
        let other_bits = settings.cuda_variants.of_bits(false);
        let on_gpu = |index: usize| match settings.batch_invariant {
            true => Ok((Device::invariant(), None)),
            false => with_cublaslt(cuda::cublaslt_version(index), other_bits),
        };
        match settings.device {
            DeviceChoice::Cpu => Ok((Device::Cpu, None)),
            DeviceChoice::Cuda(index) => on_gpu(index).map_err(|error| device_error(&error)),
            DeviceChoice::Auto => Ok(match availability(cuda::devices()) {
                Availability::Usable => {
                    on_gpu(0).unwrap_or_else(|error| (Device::Cpu, Some(DeviceNote::Failed(error.to_string()))))
                }
                Availability::None => (Device::Cpu, None),
                Availability::Unusable(note) => (Device::Cpu, Some(note)),
            }),
        }
    }
}

/// Note for the user on an unexpected device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DeviceNote {
    /// The GPU failed; the reason.
    Failed(String),
    /// cublasLt is not usable; the reason.
    NoCublasLt(String),
    /// NVRTC is missing; the GPU's name.
    NoCompiler(String),
    /// The GPU is older than compute capability 8.0; its name.
    TooOld(String),
    /// The driver does not work; the reason.
    Driver(String),
}

impl std::fmt::Display for DeviceNote {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            DeviceNote::Failed(reason) => {
                write!(f, "the GPU is not used: {reason}; --device cpu suppresses this message")
            }
            DeviceNote::NoCublasLt(reason) => write!(
                f,
                "cublasLt is not usable ({reason}): matrix products run on earnest's own, slower kernels, and the engine is \
                 {CUDA_INVARIANT}"
            ),
            DeviceNote::NoCompiler(name) => {
                write!(f, "{name} is not used: its kernels need NVRTC, which was not found ({LIBRARIES})")
            }
            DeviceNote::TooOld(name) => {
                write!(f, "{name} is not used: it is older than Ampere (compute capability 8.0)")
            }
            DeviceNote::Driver(reason) => write!(f, "the GPU is not used: {reason}; `earnest doctor` shows details"),
        }
    }
}

/// Selects the arithmetic on a GPU by the availability of cublasLt (its version, or the error).
fn with_cublaslt(
    version: Result<u64, CudaError>,
    other_bits: Variants,
) -> Result<(Device, Option<DeviceNote>), CudaError> {
    match version {
        Ok(_) => Ok((Device::cublaslt(other_bits), None)),
        Err(CudaError::NoLibrary(reason)) => Ok((Device::invariant(), Some(DeviceNote::NoCublasLt(reason)))),
        Err(error) => Err(error),
    }
}

/// Returns the error of an unusable GPU, with the next step.
pub fn device_error(error: &CudaError) -> EvalError {
    let failed = EvalError::engine(format!("cannot compute on a GPU: {error}"));
    match error {
        CudaError::Device(DeviceError::LibraryMissing { .. } | DeviceError::LibraryTooOld { .. }) => {
            failed.hint(LIBRARIES)
        }
        CudaError::Device(DeviceError::NoDevice(_)) => {
            failed.hint("`earnest doctor` lists the usable GPUs; --device cpu computes without one")
        }
        CudaError::Device(DeviceError::OutOfMemory { .. }) | CudaError::NoRoom { .. } => {
            failed.hint("choose a smaller model, --quant q4k or --device cpu, or stop other programs on the GPU")
        }
        CudaError::NoLibrary(_) => failed.hint(
            "a run that started with cublasLt needs it to continue; EARNEST_CUDA_LIBRARIES sets where to look for it; a new run \
             with --batch-invariant does not need it",
        ),
        _ => failed,
    }
}

const LIBRARIES: &str = "a GPU needs NVIDIA's driver, and NVRTC and cublasLt of CUDA 12 or 13 on the library path or in \
                         EARNEST_CUDA_LIBRARIES; `earnest doctor` lists what is installed; --device cpu computes without a GPU";

/// Availability of the first GPU.
#[derive(Debug, PartialEq, Eq)]
enum Availability {
    Usable,
    /// No GPU, or no driver.
    None,
    /// A GPU that lacks something.
    Unusable(DeviceNote),
}

fn availability(devices: Result<Vec<DeviceInfo>, DeviceError>) -> Availability {
    match devices.as_deref() {
        Ok([first, ..]) if first.compiler.is_none() => {
            Availability::Unusable(DeviceNote::NoCompiler(first.name.clone()))
        }
        Ok([first, ..]) if first.capability.0 < 8 => Availability::Unusable(DeviceNote::TooOld(first.name.clone())),
        Ok([_, ..]) => Availability::Usable,
        // Without a driver there is no GPU to speak of; a broken driver deserves a note.
        Ok([]) | Err(DeviceError::NoDevice(_) | DeviceError::LibraryMissing { .. }) => Availability::None,
        Err(error) => Availability::Unusable(DeviceNote::Driver(error.to_string())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gpu(capability: (u32, u32), compiler: Option<(u32, u32)>) -> DeviceInfo {
        DeviceInfo {
            index: 0,
            name: "G".into(),
            capability,
            multiprocessors: 1,
            free: 1,
            total: 1,
            shared: 1,
            driver: (13, 0),
            compiler,
            cublaslt: None,
        }
    }

    #[test]
    fn devices_are_read_and_named() {
        let choice = str::parse::<DeviceChoice>;
        assert_eq!(choice("auto"), Ok(DeviceChoice::Auto));
        assert_eq!(choice("cuda"), Ok(DeviceChoice::Cuda(0)));
        assert_eq!(choice("cuda:3"), Ok(DeviceChoice::Cuda(3)));
        assert!(["gpu", "cuda:", "cuda:x", "cuda:-1", ""].iter().all(|text| choice(text).is_err()));
        for (name, device) in ARITHMETICS {
            assert_eq!((device.engine(), Device::of_engine(name)), (name, Some(device)));
        }
        let all = cuda::VARIANTS.iter().fold(Variants::NONE, |set, card| set.with(card.variant));
        for one in cuda::VARIANTS.iter().map(|card| Variants::NONE.with(card.variant)).chain([all]) {
            assert!(!Device::cublaslt(one.of_bits(false)).engine().is_empty());
        }
        assert_eq!(Device::of_engine("openai"), None);
    }

    #[test]
    fn missing_parts_of_a_gpu_are_named() {
        assert_eq!(availability(Ok(vec![gpu((9, 0), Some((13, 0)))])), Availability::Usable);
        assert_eq!(availability(Ok(vec![])), Availability::None);
        let absent = DeviceError::LibraryMissing { library: "NVIDIA's driver", why: "no such file".into() };
        assert_eq!(availability(Err(absent)), Availability::None);
        assert_eq!(availability(Err(DeviceError::NoDevice("no device".into()))), Availability::None);
        let broken = DeviceError::Call { call: "cuInit", why: "the driver does not fit (803)".into() };
        let reason = broken.to_string();
        assert_eq!(availability(Err(broken)), Availability::Unusable(DeviceNote::Driver(reason)));
        let unusable = |capability, compiler| availability(Ok(vec![gpu(capability, compiler)]));
        assert_eq!(unusable((9, 0), None), Availability::Unusable(DeviceNote::NoCompiler("G".into())));
        assert_eq!(unusable((7, 5), Some((12, 0))), Availability::Unusable(DeviceNote::TooOld("G".into())));
    }

    #[test]
    fn without_cublaslt_the_engine_has_the_name_of_its_arithmetic() {
        let tuned = Variants::NONE.with(Variant::TunedProducts);
        assert_eq!(with_cublaslt(Ok(130_000), Variants::NONE).unwrap(), (Device::cublaslt(Variants::NONE), None));
        assert_eq!(with_cublaslt(Ok(130_000), tuned).unwrap().0.engine(), "native-cuda-cublaslt-tuned");
        let missing = CudaError::NoLibrary("libcublasLt.so.13: too old".into());
        let (device, note) = with_cublaslt(Err(missing), tuned).unwrap();
        assert_eq!(device.engine(), "native-cuda-batch-invariant");
        assert_eq!(note, Some(DeviceNote::NoCublasLt("libcublasLt.so.13: too old".into())));
    }

    #[test]
    fn failures_have_a_next_step() {
        let missing = CudaError::Device(DeviceError::LibraryMissing { library: "NVIDIA's driver", why: "x".into() });
        let no_library = CudaError::NoLibrary("libcublasLt.so.13: too old".into());
        for error in [missing, no_library] {
            let failed = device_error(&error);
            assert!(failed.to_string().contains(&error.to_string()) && failed.help().is_some(), "{failed}");
        }
    }
}
