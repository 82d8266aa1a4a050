//! Errors of the CUDA backend.

use super::device::DeviceError;
use earnest_models::checkpoint::CheckpointError;

/// Reasons why a checkpoint can not be run on a GPU.
#[derive(Debug, thiserror::Error)]
pub enum CudaError {
    /// A file could not be read or does not hold what the config promises.
    #[error(transparent)]
    Checkpoint(#[from] CheckpointError),
    /// The device, its driver or its libraries.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// The kernels copy eight elements at a time.
    #[error(
        "{what} has rows of {width}, which is not a multiple of 8: run this checkpoint with the setting `device = cpu`"
    )]
    Width {
        /// The parameter or head.
        what: String,
        /// Its width.
        width: usize,
    },
    /// A head is wider than the attention kernels support.
    #[error(
        "heads of {0} dimensions are not supported on a GPU (at most 256): run this checkpoint with the setting `device = cpu`"
    )]
    HeadTooWide(usize),
    /// A head is wider than this device's shared memory allows.
    #[error(
        "heads of {head} dimensions need {needed} bytes of shared memory a block and this GPU has {shared}: run this checkpoint with the setting `device = cpu` \
         or on a GPU of a data centre (compute capability 8.0, 9.0 or 10.0)"
    )]
    HeadTooWideHere {
        /// Dimensions of a head.
        head: usize,
        /// Bytes that its attention needs.
        needed: u32,
        /// Bytes that a block of this device can have.
        shared: u32,
    },
    /// The run's settings say that products are cublasLt's, and no library of it can be used; the reasons.
    #[error("matrix products by cublasLt were settled on, and it can not be used: {0}")]
    NoLibrary(String),
    /// A variant whose instructions the device lacks.
    #[error(
        "the variant {name} needs compute capability {}.{}, and {device} has {}.{}: leave it out of the setting `cuda_variant`",
        needed.0, needed.1, found.0, found.1
    )]
    VariantDevice {
        /// Name of the variant.
        name: &'static str,
        /// The compute capability that it needs.
        needed: (u32, u32),
        /// Name of the device.
        device: String,
        /// The compute capability of the device.
        found: (u32, u32),
    },
    /// A variant of products in 16 bits, and a checkpoint that is computed in f32.
    #[error(
        "the variant {name} computes in 16 bits, and this checkpoint is computed in f32: add the setting `dtype = bf16`, or leave it out of the setting `cuda_variant`"
    )]
    VariantElement {
        /// Name of the variant.
        name: &'static str,
    },
    /// Products of 8-bit floats on a device that has none.
    #[error(
        "the setting `compute = fp8` needs compute capability 8.9 or later (Ada, Hopper, Blackwell), and {device} has {}.{}: leave it out, or take the setting `quant = q8_0`",
        found.0, found.1
    )]
    Fp8Device {
        /// Name of the device.
        device: String,
        /// The compute capability of the device.
        found: (u32, u32),
    },
    /// Products of 8-bit floats beside activations in f32.
    #[error(
        "the setting `compute = fp8` rounds activations of 16 bits, and the setting `dtype` is f32: take the setting `dtype = bf16` or f16"
    )]
    Fp8Element,
    /// A feature of the decoder that the kernels do not compute.
    #[error(
        "{architecture} has {feature}, which is not supported on a GPU: run this checkpoint with the setting `device = cpu`"
    )]
    Feature {
        /// The checkpoint's architecture.
        architecture: String,
        /// The feature.
        feature: &'static str,
    },
    /// A value in a weight is not a number.
    #[error(
        "{parameter} of the checkpoint holds {count} values that are not finite: the file is damaged, the training diverged, or f16 is too narrow"
    )]
    NotFinite {
        /// The parameter.
        parameter: String,
        /// Number of such values.
        count: usize,
    },
    /// Nothing is left for keys and values.
    #[error(
        "after the weights ({weights} bytes) and working memory the device has {free} bytes left; keys and values of one block need {needed}"
    )]
    NoRoom {
        /// Bytes of the weights.
        weights: u64,
        /// Bytes left.
        free: u64,
        /// Bytes of a block of 32 positions.
        needed: u64,
    },
    /// The KV memory that was asked for does not hold one block.
    #[error("the setting `kv_memory` of {given} bytes is less than one block of 32 tokens ({needed} bytes)")]
    KvMemory {
        /// Bytes allowed.
        given: u64,
        /// Bytes of a block.
        needed: u64,
    },
}
