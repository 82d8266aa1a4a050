//! `--device`: where the native engine computes.
use super::Exit;
use super::args::EngineArgs;
use super::error::CliError;
use crate::engine::cuda::{self, DeviceError, DeviceInfo};

/// `--device`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeviceArg {
    Auto,
    Cpu,
    /// Number of the GPU.
    Cuda(usize),
}

/// Where the native engine computes, and how; part of a run's settings, by the engine's name.
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

/// Reads `--device`.
pub fn parse(text: &str) -> Result<DeviceArg, String> {
    match text.split_once(':') {
        None if text == "auto" => Ok(DeviceArg::Auto),
        None if text == "cpu" => Ok(DeviceArg::Cpu),
        None if text == "cuda" => Ok(DeviceArg::Cuda(0)),
        Some(("cuda", number)) if number.parse::<u16>().is_ok() => {
            Ok(DeviceArg::Cuda(number.parse::<u16>().map_err(|error| error.to_string())?.into()))
        }
        _ => Err("a device is auto, cpu, cuda or cuda:N".to_owned()),
    }
}

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

    /// What the command line asks for, with what a user should know of it. Where dense products are to be cublasLt's and it can not be
    /// used, our own kernels compute them: that is the arithmetic of `--batch-invariant`, and named so.
    pub fn of(args: &EngineArgs) -> Result<(Device, Option<String>), CliError> {
        if let Some(list) = &args.devices {
            return Err(CliError::usage(format!("--devices {list}: one model on several GPUs is not offered"))
                .help("start one program for each GPU: --device cuda:0 --shard 1/2, --device cuda:1 --shard 2/2"));
        }
        let on_gpu = |index: usize| match args.batch_invariant {
            true => Ok((Device::Cuda { invariant: true }, None)),
            false => cuda::dense_products(index).map(with_products),
        };
        match args.device.unwrap_or(DeviceArg::Auto) {
            DeviceArg::Cpu => Ok((Device::Cpu, None)),
            DeviceArg::Cuda(index) => on_gpu(index).map_err(|error| failure(&error.into())),
            DeviceArg::Auto => Ok(match ready(cuda::devices()) {
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
fn with_products(found: Result<u64, String>) -> (Device, Option<String>) {
    match found {
        Ok(_) => (Device::Cuda { invariant: false }, None),
        Err(why) => {
            let note = format!(
                "cublasLt can not be used ({why}): matrix products run on kernels of our own, which are slower, and the engine is called \
                 {CUDA_INVARIANT}, whose arithmetic this is"
            );
            (Device::Cuda { invariant: true }, Some(note))
        }
    }
}

/// The number of the GPU that the command line names.
pub fn index(args: &EngineArgs) -> usize {
    match args.device {
        Some(DeviceArg::Cuda(index)) => index,
        Some(DeviceArg::Auto | DeviceArg::Cpu) | None => 0,
    }
}

/// A GPU could not be used, and what to do.
pub fn failure(error: &cuda::CudaError) -> CliError {
    let failed = CliError::new(Exit::Engine, format!("cannot compute on a GPU: {error}"));
    match error {
        cuda::CudaError::Device(DeviceError::Library(_)) => failed.help(LIBRARIES),
        cuda::CudaError::Device(DeviceError::NoDevice(_)) => {
            failed.help("`earnest doctor` lists the GPUs that can be used; --device cpu computes without")
        }
        cuda::CudaError::Device(DeviceError::OutOfMemory { .. }) | cuda::CudaError::NoRoom { .. } => {
            failed.help("take a smaller model or --quant q4k, end what else uses the GPU, or --device cpu")
        }
        cuda::CudaError::NoLibrary(_) => failed.help(
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
        Err(DeviceError::Library(why)) if why.contains("could not be opened") => Ready::No,
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
        assert_eq!(parse("auto"), Ok(DeviceArg::Auto));
        assert_eq!(parse("cuda"), Ok(DeviceArg::Cuda(0)));
        assert_eq!(parse("cuda:3"), Ok(DeviceArg::Cuda(3)));
        assert!(["gpu", "cuda:", "cuda:x", "cuda:-1", ""].iter().all(|text| parse(text).is_err()));
        for device in [Device::Cpu, Device::Cuda { invariant: false }, Device::Cuda { invariant: true }] {
            assert_eq!(Device::of_engine(device.engine()), Some(device));
        }
        assert_eq!(Device::of_engine("openai"), None);
    }

    #[test]
    fn a_gpu_is_taken_if_everything_is_there_and_what_is_missing_is_said() {
        assert!(matches!(ready(Ok(vec![gpu((9, 0), Some((13, 0)))])), Ready::Yes));
        assert!(matches!(ready(Ok(vec![])), Ready::No));
        let absent = DeviceError::Library("NVIDIA's driver could not be opened: no such file".into());
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
        assert_eq!(with_products(Ok(130_000)), (Device::Cuda { invariant: false }, None));
        let (device, note) = with_products(Err("libcublasLt.so.13: cublasLtCreate failed: too old (1)".into()));
        assert_eq!(device.engine(), "native-cuda-batch-invariant");
        let note = note.unwrap();
        assert!(note.contains("libcublasLt.so.13: cublasLtCreate failed") && note.contains(device.engine()), "{note}");
    }

    #[test]
    fn failures_say_what_to_do() {
        let error = cuda::CudaError::Device(DeviceError::Library("NVIDIA's driver could not be opened: x".into()));
        let failed = failure(&error);
        assert!(failed.message.contains("driver could not be opened"), "{}", failed.message);
        let text = failure(&cuda::CudaError::NoLibrary("libcublasLt.so.13: too old".into())).message;
        assert!(text.contains("cublasLt") && text.contains("too old"), "{text}");
    }
}
