//! The CUDA backend: the engine on an NVIDIA GPU; docs/cuda.md describes it.
//!
//! `library` opens the driver, the compiler and cublasLt when the program runs, so it is built and started without any of them.
//! `kernels` are CUDA C++ sources, compiled for the device by `compile`; `gpu` is the device; `executor` the forward pass of a step
//! on a device, and `backend` joins it to the engine core; `checks` are single kernels against their
//! definitions. In tests, `twin` runs the same kernels on the CPU.

mod assemble;
mod attention_plan;
mod backend;
mod checks;
mod compile;
mod cublaslt;
mod device;
mod e4m3;
mod embedded;
mod error;
mod executor;
mod features;
mod forward;
mod gpu;
mod graphs;
mod kernels;
mod launches;
mod library;
mod memory;
mod mixture;
mod options;
mod packing;
mod peaks;
mod products;
mod profile;
mod profiled;
mod sources;
#[cfg(test)]
mod twin;
#[cfg(test)]
mod twin_barriers;
#[cfg(test)]
mod twin_fp8;
#[cfg(test)]
mod twin_races;
#[cfg(test)]
mod twin_tests;
#[cfg(test)]
mod twin_variants;
mod weights;
mod work;

pub use assemble::{Assembled, assemble, embeddable};
pub use backend::{CudaBackend, CudaEngine};
pub use checks::{BrokenCheck, CheckError, KernelCheck, check_kernels};
pub use device::{Clock, DeviceError, DeviceInfo};
pub use error::CudaError;
pub use gpu::{cublaslt_version, devices};
pub use options::{Options, UnknownVariant, VARIANTS, Variant, VariantCard, Variants};
pub use peaks::{Peaks, peaks};
pub use profile::{HostTime, Profile, ProfileRow, Profiler};
pub use sources::modified_kernels;
