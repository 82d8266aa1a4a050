//! Devices of the native engine.
use std::str::FromStr;

use earnest_engine::cuda::{self, CudaError, DeviceError, DeviceInfo, Variant, Variants};

use super::EngineSettings;
use crate::EvalError;
use earnest_results::{Notice, Teller};

/// A requested device.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
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
        /// Digest of the kernels' sources if they are not the program's (`EARNEST_KERNELS`).
        kernels: Option<String>,
    },
}

const CPU: &str = "native";
const CUDA_INVARIANT: &str = "native-cuda-batch-invariant";
/// Between an engine's name and the digest of modified kernels.
const KERNELS: &str = "+kernels-";

/// Arithmetics on a GPU: name of the engine, batch invariance, variants. One name for each, so that rows of different ones never mix.
/// The variants with other bits are of products by cublasLt, which batch invariance does without, or, `wgmma`, batch-invariant.
const ARITHMETICS: [(&str, bool, Variants); 3] = [
    ("native-cuda-cublaslt", false, Variants::NONE),
    (CUDA_INVARIANT, true, Variants::NONE),
    ("native-cuda-batch-invariant-wgmma", true, OWN_PRODUCTS),
];

/// The variants with other bits that compute no product by cublasLt.
const OWN_PRODUCTS: Variants = Variants::NONE.with(Variant::Wgmma);

/// Returns the arithmetic of a choice: batch invariance, and the variants with other bits that it has.
fn arithmetic(batch_invariant: bool, chosen: Variants) -> (bool, Variants) {
    let own = chosen.and(OWN_PRODUCTS);
    if batch_invariant || !own.is_empty() { (true, own) } else { (false, chosen.of_bits(false)) }
}

impl Device {
    /// Returns the engine's name in a run's settings.
    pub fn engine(&self) -> String {
        let Device::Cuda { invariant, variants, kernels } = self else { return CPU.to_owned() };
        let named = ARITHMETICS.iter().find(|(_, of, with)| (of, with) == (invariant, variants));
        let name = named.expect("every arithmetic that can be chosen has a name").0;
        kernels.as_ref().map_or_else(|| name.to_owned(), |digest| format!("{name}{KERNELS}{digest}"))
    }

    /// Returns the device of a native engine by name.
    pub fn of_engine(name: &str) -> Option<Device> {
        if name == CPU {
            return Some(Device::Cpu);
        }
        let (name, kernels) = match name.split_once(KERNELS) {
            Some((name, digest)) => (name, Some(digest.to_owned())),
            None => (name, None),
        };
        let &(_, invariant, variants) = ARITHMETICS.iter().find(|named| named.0 == name)?;
        Some(Device::Cuda { invariant, variants, kernels })
    }

    /// Checks that the kernels at hand are those that the engine is named after.
    ///
    /// # Errors
    /// Kernels that were changed since, or a folder of `EARNEST_KERNELS` that is incomplete.
    pub(super) fn check_kernels(&self) -> Result<(), EvalError> {
        let Device::Cuda { kernels, .. } = self else { return Ok(()) };
        let found = modified_kernels()?;
        let name = |digest: &Option<String>| {
            digest.as_ref().map_or("the program's".to_owned(), |digest| format!("modified, with the digest {digest}"))
        };
        if *kernels == found {
            return Ok(());
        }
        Err(EvalError::setting(format!(
            "this run was computed with other kernels: its are {}, and those at hand are {}",
            name(kernels),
            name(&found)
        ))
        .hint("EARNEST_KERNELS names the folder of modified kernels; a new run may use any"))
    }

    /// Returns the device for these settings, with a note if it is not the expected one. Without cublasLt, the batch-invariant
    /// kernels compute all products.
    pub fn choose(settings: &EngineSettings) -> Result<(Device, Option<DeviceNote>), EvalError> {
        if settings.device == DeviceChoice::Cpu {
            return Ok((Device::Cpu, None));
        }
        let kernels = modified_kernels()?;
        let (invariant, variants) = arithmetic(settings.batch_invariant, settings.cuda_variants);
        let on_gpu = |index: usize| match invariant {
            true => Ok((Device::Cuda { invariant, variants, kernels: kernels.clone() }, None)),
            false => with_cublaslt(cuda::cublaslt_version(index), variants, kernels.clone()),
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
    /// NVRTC is missing and the program has no kernels for the GPU; its name.
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
                write!(f, "the GPU is not used: {reason}; the setting `device = cpu` suppresses this message")
            }
            DeviceNote::NoCublasLt(reason) => write!(
                f,
                "cublasLt is not usable ({reason}): matrix products run on earnest's own, slower kernels, and the engine is \
                 {CUDA_INVARIANT}"
            ),
            DeviceNote::NoCompiler(name) => {
                write!(f, "{name} is not used: its kernels have to be compiled, and NVRTC was not found ({LIBRARIES})")
            }
            DeviceNote::TooOld(name) => {
                write!(f, "{name} is not used: it is older than Ampere (compute capability 8.0)")
            }
            DeviceNote::Driver(reason) => write!(f, "the GPU is not used: {reason}; `earnest doctor` shows details"),
        }
    }
}

impl From<DeviceNote> for Notice {
    fn from(note: DeviceNote) -> Self {
        Notice::told(Teller::Device, note.to_string())
    }
}

/// Returns the digest of modified kernels, if `EARNEST_KERNELS` names any.
fn modified_kernels() -> Result<Option<String>, EvalError> {
    cuda::modified_kernels().map_err(|error| {
        EvalError::setting(error.to_string())
            .hint("a folder of kernels has every file of crates/engine/src/cuda/kernels, under the same name")
    })
}

/// Selects the arithmetic on a GPU by the availability of cublasLt (its version, or the error).
fn with_cublaslt(
    version: Result<u64, CudaError>,
    variants: Variants,
    kernels: Option<String>,
) -> Result<(Device, Option<DeviceNote>), CudaError> {
    match version {
        Ok(_) => Ok((Device::Cuda { invariant: false, variants, kernels }, None)),
        Err(CudaError::NoLibrary(reason)) => {
            let own = Device::Cuda { invariant: true, variants: Variants::NONE, kernels };
            Ok((own, Some(DeviceNote::NoCublasLt(reason))))
        }
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
            failed.hint("`earnest doctor` lists the usable GPUs; the setting `device = cpu` computes without one")
        }
        CudaError::Device(DeviceError::OutOfMemory { .. }) | CudaError::NoRoom { .. } => {
            failed.hint(format!(
                "choose a smaller model, the setting `quant = q4k` or the setting `device = cpu`, or stop other programs on the GPU; \
                 {LARGER_THAN_A_GPU}"
            ))
        }
        CudaError::NoLibrary(_) => failed.hint(
            "a run that started with cublasLt needs it to continue; EARNEST_CUDA_LIBRARIES sets where to look for it; a new run \
             with the setting `batch_invariant` does not need it",
        ),
        _ => failed,
    }
}

/// Next step for a model that does not fit one GPU.
pub const LARGER_THAN_A_GPU: &str = "a model larger than one GPU is served by vLLM or SGLang on all of them, e.g. `vllm serve MODEL \
                                     --tensor-parallel-size 2`, and evaluated there: `earnest run SUITE --engine openai --base-url \
                                     http://127.0.0.1:8000/v1 --tokenizer MODEL`";

const LIBRARIES: &str = "a GPU needs NVIDIA's driver, and cublasLt of CUDA 12 or 13 on the library path or in \
                         EARNEST_CUDA_LIBRARIES, and NVRTC where the program has no kernels for it; `earnest doctor` lists what \
                         is installed; the setting `device = cpu` computes without a GPU";

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
        Ok([first, ..]) if !first.has_kernels() => Availability::Unusable(DeviceNote::NoCompiler(first.name.clone())),
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
            embedded: None,
            modified: None,
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
        let on_gpu = |invariant, variants, kernels: Option<&str>| Device::Cuda {
            invariant,
            variants,
            kernels: kernels.map(str::to_owned),
        };
        assert_eq!((Device::Cpu.engine(), Device::of_engine("native")), ("native".to_owned(), Some(Device::Cpu)));
        assert_eq!(Device::of_engine("native+kernels-0123456789ab"), None);
        for (name, invariant, variants) in ARITHMETICS {
            for (digest, suffix) in [(None, ""), (Some("0123456789ab"), "+kernels-0123456789ab")] {
                let (device, engine) = (on_gpu(invariant, variants, digest), format!("{name}{suffix}"));
                assert_eq!((device.engine(), Device::of_engine(&engine)), (engine.clone(), Some(device)));
            }
        }
        let all = cuda::VARIANTS.iter().fold(Variants::NONE, |set, card| set.with(card.variant));
        for one in cuda::VARIANTS.iter().map(|card| Variants::NONE.with(card.variant)).chain([all]) {
            for batch_invariant in [false, true] {
                let (invariant, variants) = arithmetic(batch_invariant, one);
                assert!(!on_gpu(invariant, variants, None).engine().is_empty());
            }
        }
        assert_eq!(arithmetic(false, all), (true, Variants::NONE.with(Variant::Wgmma)));
        assert_eq!(arithmetic(true, Variants::NONE), (true, Variants::NONE));
        assert_eq!(Device::of_engine("native+kernels-0123456789ab"), None);
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
        let with_kernels = DeviceInfo { embedded: Some("sm_90 by nvrtc-12.9".into()), ..gpu((9, 0), None) };
        assert_eq!(availability(Ok(vec![with_kernels])), Availability::Usable);
        assert_eq!(unusable((9, 0), None), Availability::Unusable(DeviceNote::NoCompiler("G".into())));
        assert_eq!(unusable((7, 5), Some((12, 0))), Availability::Unusable(DeviceNote::TooOld("G".into())));
    }

    #[test]
    fn without_cublaslt_the_engine_has_the_name_of_its_arithmetic() {
        let with = |version, variants| with_cublaslt(version, variants, Some("ab".to_owned())).unwrap();
        let (device, note) = with(Ok(130_000), Variants::NONE);
        assert_eq!((device.engine().as_str(), note), ("native-cuda-cublaslt+kernels-ab", None));
        let missing = CudaError::NoLibrary("libcublasLt.so.13: too old".into());
        let (device, note) = with_cublaslt(Err(missing), Variants::NONE, None).unwrap();
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
