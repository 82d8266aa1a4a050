//! Devices of the native engine.
use std::str::FromStr;

use earnest_engine::cuda::{self, CudaError, DeviceError, DeviceInfo};

use super::EngineSettings;
use crate::EvalError;

/// A device as the user names it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum DeviceChoice {
    /// A GPU that is ready, else the CPU.
    #[default]
    Auto,
    Cpu,
    /// Number of the GPU.
    Cuda(usize),
}

impl DeviceChoice {
    /// Number of the GPU; 0 where none is named.
    pub fn index(self) -> usize {
        match self {
            DeviceChoice::Cuda(index) => index,
            DeviceChoice::Auto | DeviceChoice::Cpu => 0,
        }
    }
}

/// A text that names no device.
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

/// Device and arithmetic of the native engine; part of a run's settings, by the engine's name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Device {
    Cpu,
    Cuda {
        /// All products are our own kernels', so the bits of a request do not depend on its batch; else the dense ones are cublasLt's.
        invariant: bool,
    },
}

// One name for each arithmetic: rows of different ones never mix.
const CPU: &str = "native";
const CUDA: &str = "native-cuda-cublaslt";
const CUDA_INVARIANT: &str = "native-cuda-batch-invariant";

impl Device {
    /// The engine's name in a run's settings.
    pub fn engine(&self) -> &'static str {
        match self {
            Device::Cpu => CPU,
            Device::Cuda { invariant: false } => CUDA,
            Device::Cuda { invariant: true } => CUDA_INVARIANT,
        }
    }

    /// The device of an engine of this name, if it is the native one.
    pub fn of_engine(name: &str) -> Option<Device> {
        [Device::Cpu, Device::Cuda { invariant: false }, Device::Cuda { invariant: true }]
            .into_iter()
            .find(|device| device.engine() == name)
    }

    /// The device that the settings ask for, with a note for the user where it is not the obvious one. Where dense products are to
    /// be cublasLt's and it cannot be used, our own kernels compute them: that is the arithmetic of `batch_invariant`, and named so.
    pub fn choose(settings: &EngineSettings) -> Result<(Device, Option<String>), EvalError> {
        let on_gpu = |index: usize| match settings.batch_invariant {
            true => Ok((Device::Cuda { invariant: true }, None)),
            false => with_products(cuda::cublaslt_version(index)),
        };
        match settings.device {
            DeviceChoice::Cpu => Ok((Device::Cpu, None)),
            DeviceChoice::Cuda(index) => on_gpu(index).map_err(|error| device_error(&error)),
            DeviceChoice::Auto => Ok(match ready(cuda::devices()) {
                Ready::Yes => on_gpu(0).unwrap_or_else(|error| {
                    (Device::Cpu, Some(format!("the GPU is not used: {error}; --device cpu leaves this message out")))
                }),
                Ready::No => (Device::Cpu, None),
                Ready::Almost(why) => (Device::Cpu, Some(why)),
            }),
        }
    }
}

/// The device for what was found: cublasLt's version, or why it can not be used.
fn with_products(found: Result<u64, CudaError>) -> Result<(Device, Option<String>), CudaError> {
    match found {
        Ok(_) => Ok((Device::Cuda { invariant: false }, None)),
        Err(CudaError::NoLibrary(why)) => {
            let note = format!(
                "cublasLt can not be used ({why}): matrix products run on kernels of our own, which are slower, and the engine is called \
                 {CUDA_INVARIANT}, whose arithmetic this is"
            );
            Ok((Device::Cuda { invariant: true }, Some(note)))
        }
        Err(error) => Err(error),
    }
}

/// The error of a GPU that could not be used, with the next step.
pub fn device_error(error: &CudaError) -> EvalError {
    let failed = EvalError::engine(format!("cannot compute on a GPU: {error}"));
    match error {
        CudaError::Device(DeviceError::LibraryMissing { .. } | DeviceError::LibraryTooOld { .. }) => {
            failed.hint(LIBRARIES)
        }
        CudaError::Device(DeviceError::NoDevice(_)) => {
            failed.hint("`earnest doctor` lists the GPUs that can be used; --device cpu computes without")
        }
        CudaError::Device(DeviceError::OutOfMemory { .. }) | CudaError::NoRoom { .. } => {
            failed.hint("take a smaller model or --quant q4k, end what else uses the GPU, or --device cpu")
        }
        CudaError::NoLibrary(_) => failed.hint(
            "a run that began with cublasLt needs it to its end; EARNEST_CUDA_LIBRARIES names folders with it; a new run with \
             --batch-invariant does without",
        ),
        _ => failed,
    }
}

const LIBRARIES: &str = "a GPU needs NVIDIA's driver and the libraries NVRTC and cublasLt of CUDA 12 or 13 where the system finds them \
                         or in EARNEST_CUDA_LIBRARIES; `earnest doctor` says what is there; --device cpu computes without";

enum Ready {
    Yes,
    No,
    /// There is a GPU, but something is missing.
    Almost(String),
}

fn ready(found: Result<Vec<DeviceInfo>, DeviceError>) -> Ready {
    match found.as_deref() {
        Ok([first, ..]) if first.compiler.is_none() => Ready::Almost(format!(
            "{} is not used: its kernels need NVRTC, which was not found ({LIBRARIES})",
            first.name
        )),
        Ok([first, ..]) if first.capability.0 < 8 => {
            Ready::Almost(format!("{} is not used: it is older than Ampere (compute capability 8.0)", first.name))
        }
        Ok([_, ..]) => Ready::Yes,
        Ok([]) | Err(DeviceError::NoDevice(_)) => Ready::No,
        // No driver is no GPU; a driver that is there and does not work is worth a word.
        Err(DeviceError::LibraryMissing { .. }) => Ready::No,
        Err(why) => Ready::Almost(format!("the GPU is not used: {why}; `earnest doctor` says what is there")),
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
        for device in [Device::Cpu, Device::Cuda { invariant: false }, Device::Cuda { invariant: true }] {
            assert_eq!(Device::of_engine(device.engine()), Some(device));
        }
        assert_eq!(Device::of_engine("openai"), None);
    }

    #[test]
    fn a_gpu_is_taken_if_everything_is_there_and_what_is_missing_is_said() {
        assert!(matches!(ready(Ok(vec![gpu((9, 0), Some((13, 0)))])), Ready::Yes));
        assert!(matches!(ready(Ok(vec![])), Ready::No));
        let absent = DeviceError::LibraryMissing { library: "NVIDIA's driver", why: "no such file".into() };
        assert!(matches!(ready(Err(absent)), Ready::No));
        assert!(matches!(ready(Err(DeviceError::NoDevice("no device".into()))), Ready::No));
        let broken = DeviceError::Call { call: "cuInit", why: "the driver does not fit (803)".into() };
        let Ready::Almost(why) = ready(Err(broken)) else { panic!("a broken driver") };
        assert!(why.contains("803") && why.contains("doctor"), "{why}");
        let Ready::Almost(why) = ready(Ok(vec![gpu((9, 0), None)])) else { panic!("no compiler") };
        assert!(why.contains("NVRTC") && why.contains("EARNEST_CUDA_LIBRARIES"), "{why}");
        let Ready::Almost(why) = ready(Ok(vec![gpu((7, 5), Some((12, 0)))])) else { panic!("too old") };
        assert!(why.contains("Ampere"), "{why}");
    }

    #[test]
    fn without_cublaslt_the_engine_has_the_name_of_its_arithmetic_and_says_why() {
        assert_eq!(with_products(Ok(130_000)).unwrap(), (Device::Cuda { invariant: false }, None));
        let (device, note) =
            with_products(Err(CudaError::NoLibrary("libcublasLt.so.13: cublasLtCreate failed: too old (1)".into())))
                .unwrap();
        assert_eq!(device.engine(), "native-cuda-batch-invariant");
        let note = note.unwrap();
        assert!(note.contains("libcublasLt.so.13: cublasLtCreate failed") && note.contains(device.engine()), "{note}");
    }

    #[test]
    fn failures_say_what_to_do() {
        let error = CudaError::Device(DeviceError::LibraryMissing { library: "NVIDIA's driver", why: "x".into() });
        let failed = device_error(&error);
        assert!(failed.to_string().contains("driver could not be opened"), "{}", failed.to_string());
        let text = device_error(&CudaError::NoLibrary("libcublasLt.so.13: too old".into())).to_string();
        assert!(text.contains("cublasLt") && text.contains("too old"), "{text}");
    }
}
