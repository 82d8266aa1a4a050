//! Interface of a device: memory, copies, kernels. A GPU is one ([`super::gpu`]); in tests the kernels run on the CPU.

use super::kernels::Unit;

/// An address in the device's memory. Zero is none.
pub(crate) type Address = u64;

/// Failures of a device.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum DeviceError {
    /// A library of CUDA is not installed, or the system can not open it.
    #[error("{library} could not be opened: {why}")]
    LibraryMissing {
        /// Name of the library, for people.
        library: &'static str,
        /// The system's words.
        why: String,
    },
    /// A library of CUDA lacks a function that is needed.
    #[error("a library of CUDA is too old: it lacks {function} ({why})")]
    LibraryTooOld {
        /// Name of the function.
        function: &'static str,
        /// The system's words.
        why: String,
    },
    /// No such device, or it can not be used.
    #[error("{0}")]
    NoDevice(String),
    /// Memory could not be had.
    #[error("the device has no {bytes} bytes left ({what})")]
    OutOfMemory {
        /// Size of the allocation.
        bytes: u64,
        /// Purpose of the allocation.
        what: &'static str,
    },
    /// A kernel could not be compiled or loaded.
    #[error("kernels {unit} could not be made: {log}")]
    Kernels {
        /// Name of the unit.
        unit: String,
        /// The compiler's words.
        log: String,
    },
    /// A file of the folder of `EARNEST_KERNELS` can not be read.
    #[error("the kernels of EARNEST_KERNELS are incomplete: {} can not be read: {why}", path.display())]
    KernelFile {
        /// Path of the file.
        path: std::path::PathBuf,
        /// The system's words.
        why: String,
    },
    /// No tile of a matrix product fits the device's shared memory.
    #[error("the device has too little shared memory for any product")]
    SharedMemory,
    /// A call failed.
    #[error("{call} failed: {why}")]
    Call {
        /// The function of the driver or library.
        call: &'static str,
        /// Its words.
        why: String,
    },
}

/// A kernel that is ready to be launched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Kernel(pub(crate) u64);

/// Clock of the times of a device's work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Clock {
    /// Events in the device's own work.
    DeviceEvents,
    /// The host's clock around calls that end when their work does: the kernels run on the CPU, in tests.
    Host,
}

/// A point in the device's work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Mark(pub(crate) u64);

/// Work that was recorded, to be done again and again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Recording(pub(crate) u64);

/// A kernel's argument, as it lies in memory.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Argument(pub(crate) u64);

impl From<u64> for Argument {
    fn from(x: u64) -> Argument {
        Argument(x)
    }
}

impl From<i32> for Argument {
    fn from(x: i32) -> Argument {
        Argument(u64::from(x as u32))
    }
}

impl From<f32> for Argument {
    fn from(x: f32) -> Argument {
        Argument(u64::from(x.to_bits()))
    }
}

/// Storage of a product's result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Out {
    /// As elements.
    Elements,
    /// As f32.
    Floats,
    /// Added to f32.
    Add,
}

/// `y[m, n] = x[m, k] w[n, k]^T`, everything row-major, `w` and `x` of elements; rows of `y` are `row_y` apart.
#[derive(Debug, Clone, Copy)]
pub(crate) struct DenseProduct {
    pub(crate) w: Address,
    pub(crate) x: Address,
    pub(crate) y: Address,
    pub(crate) m: usize,
    pub(crate) n: usize,
    pub(crate) k: usize,
    pub(crate) row_y: usize,
    pub(crate) element: Element,
    pub(crate) out: Out,
}

/// Type of activations, cache and dense weights.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Element {
    F32,
    Bf16,
    F16,
}

impl Element {
    /// Bytes of an element.
    pub(crate) fn size_bytes(self) -> u64 {
        match self {
            Element::F32 => 4,
            Element::Bf16 | Element::F16 => 2,
        }
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Element::F32 => "f32",
            Element::Bf16 => "bf16",
            Element::F16 => "f16",
        }
    }

    /// ELEMENT of the kernels.
    pub(crate) fn number(self) -> u32 {
        match self {
            Element::F32 => 0,
            Element::Bf16 => 1,
            Element::F16 => 2,
        }
    }
}

/// Description of a device, for people and the manifest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeviceInfo {
    /// Number of the device.
    pub index: usize,
    /// E.g. `NVIDIA H200`.
    pub name: String,
    /// Major and minor compute capability, e.g. (9, 0).
    pub capability: (u32, u32),
    /// Streaming multiprocessors.
    pub multiprocessors: u32,
    /// Bytes of its memory that are free.
    pub free: u64,
    /// Bytes of its memory.
    pub total: u64,
    /// Most shared memory of a block, in bytes.
    pub shared: u32,
    /// Newest CUDA version that the driver speaks, e.g. (13, 0).
    pub driver: (u32, u32),
    /// The compiler's version; none if NVRTC is not there.
    pub compiler: Option<(u32, u32)>,
    /// Architecture and compiler of the kernels inside the program that it runs; none if they have to be compiled.
    pub embedded: Option<String>,
    /// Digest of the kernels' sources if they are not those of the program (`EARNEST_KERNELS`).
    pub modified: Option<String>,
    /// cublasLt's version; none if it is not there.
    pub cublaslt: Option<u64>,
}

impl DeviceInfo {
    /// True if there are kernels for it: inside the program, or by the compiler.
    pub fn has_kernels(&self) -> bool {
        self.compiler.is_some() || self.embedded.is_some()
    }
}

/// A device, used by one thread at a time. Work is done in the order in which it is asked for.
pub(crate) trait Device {
    /// Describes the device.
    fn info(&self) -> Result<DeviceInfo, DeviceError>;

    /// Makes the calling thread one that may use it.
    fn enter(&self) -> Result<(), DeviceError>;

    /// Memory of its own, not initialised, aligned to 256 bytes.
    fn allocate(&self, bytes: u64, what: &'static str) -> Result<Address, DeviceError>;

    /// Gives memory back after all work asked for so far.
    fn free(&self, at: Address) -> Result<(), DeviceError>;

    /// Memory of the host that [`send`](Device::send) and [`receive`](Device::receive) may use; freed with the device.
    fn host_memory(&self, bytes: usize) -> Result<*mut u8, DeviceError>;

    /// Copies to the device; `from` may be reused at once.
    fn upload(&self, to: Address, from: &[u8]) -> Result<(), DeviceError>;

    /// Copies from host memory to the device in its turn.
    ///
    /// # Safety
    /// `from` is of [`host_memory`](Device::host_memory) and its `bytes` are not changed until the device came by.
    unsafe fn send(&self, to: Address, from: *const u8, bytes: usize) -> Result<(), DeviceError>;

    /// Copies to host memory in its turn.
    ///
    /// # Safety
    /// `to` is of [`host_memory`](Device::host_memory) and its `bytes` are not used until the device came by.
    unsafe fn receive(&self, from: Address, to: *mut u8, bytes: usize) -> Result<(), DeviceError>;

    /// Copies inside the device's memory, in its turn.
    fn copy(&self, from: Address, to: Address, bytes: u64) -> Result<(), DeviceError>;

    /// Fills with zeros, in its turn.
    fn zero(&self, at: Address, bytes: u64) -> Result<(), DeviceError>;

    /// A mark after all work asked for so far; `slot` is 0 or 1, and a slot's mark replaces its earlier one.
    fn mark(&self, slot: usize) -> Result<Mark, DeviceError>;

    /// Waits until the device came by a mark.
    fn wait(&self, mark: Mark) -> Result<(), DeviceError>;

    /// Notes the time at which the device comes by, under a number; a number's later note replaces its earlier one.
    fn stamp(&self, number: usize) -> Result<(), DeviceError>;

    /// Seconds between two notes of [`stamp`](Device::stamp) that the device came by.
    fn seconds(&self, from: usize, to: usize) -> Result<f64, DeviceError>;

    /// Clock of the notes.
    fn clock(&self) -> Clock;

    /// Compiles kernels, or takes them from the cache; the answer names them to [`kernel`](Device::kernel).
    fn load(&mut self, unit: &Unit) -> Result<usize, DeviceError>;

    /// A kernel of a loaded unit, to be launched with at most `shared` bytes of dynamic shared memory.
    fn kernel(&mut self, unit: usize, name: &str, shared: u32) -> Result<Kernel, DeviceError>;

    /// Launches.
    ///
    /// # Safety
    /// The arguments are those of the kernel, and its reads and writes lie in allocated memory.
    unsafe fn launch(
        &self,
        kernel: Kernel,
        grid: [usize; 3],
        block: u32,
        shared: u32,
        arguments: &[Argument],
    ) -> Result<(), DeviceError>;

    /// Begins to record: until [`recorded`](Device::recorded) launches and dense products are not done but kept.
    fn record(&self) -> Result<(), DeviceError>;

    /// Ends what [`record`](Device::record) began.
    fn recorded(&self) -> Result<Recording, DeviceError>;

    /// Does recorded work.
    ///
    /// # Safety
    /// What was to be upheld for each launch still is.
    unsafe fn replay(&self, recording: Recording) -> Result<(), DeviceError>;

    /// Drops recorded work, once it is done.
    fn forget(&self, recording: Recording) -> Result<(), DeviceError>;

    /// A library for dense products is there.
    fn has_dense_product(&self) -> bool;

    /// A dense product by the library.
    ///
    /// # Safety
    /// The addresses are of allocated memory large enough for the operands.
    unsafe fn dense_product(&self, product: &DenseProduct) -> Result<(), DeviceError>;
}
