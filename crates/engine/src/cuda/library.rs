//! CUDA's libraries, opened when they are needed. The functions and numbers are those of cuda.h, nvrtc.h and cublasLt.h, whose
//! interfaces NVIDIA keeps stable; there are some sixty, and the program needs nothing of CUDA to be built or started.

use std::ffi::{c_char, c_int, c_uint, c_void};
use std::mem::ManuallyDrop;
use std::path::{Path, PathBuf};

use libloading::Library;

use super::device::DeviceError;

/// Folders to look for libraries in before the system's, separated as in PATH.
pub(crate) const FOLDERS: &str = "EARNEST_CUDA_LIBRARIES";

/// Opens the first library of `names` that is there; `library` is its name for people.
fn open(library: &'static str, names: &[&str]) -> Result<Library, DeviceError> {
    let folders: Vec<PathBuf> =
        std::env::var_os(FOLDERS).map(|v| std::env::split_paths(&v).collect()).unwrap_or_default();
    // Toolkits, and where containers get the driver.
    let usual = [
        "/usr/local/cuda/lib64",
        "/usr/local/cuda/targets/x86_64-linux/lib",
        "/usr/local/nvidia/lib64",
        "/usr/lib/wsl/lib",
    ]
    .map(PathBuf::from);
    let named = folders.iter().flat_map(|f| names.iter().map(|n| f.join(n)));
    let plain = names.iter().map(PathBuf::from);
    let known = usual.iter().flat_map(|f| names.iter().map(|n| f.join(n)));
    let mut first = None;
    for path in named.chain(plain).chain(known) {
        open_beside(&path);
        // SAFETY: these are libraries of the system or of folders that the user names; opening them runs their initialisers, as linking
        // against them would.
        match unsafe { Library::new(&path) } {
            Ok(opened) => return Ok(opened),
            Err(error) => {
                let why = std::error::Error::source(&error).map_or_else(|| error.to_string(), ToString::to_string);
                first.get_or_insert(why);
            }
        }
    }
    Err(DeviceError::LibraryMissing { library, why: first.unwrap_or_default() })
}

/// NVRTC opens a library of its own by name. Where the system does not look for that, it has to be open already: it lies beside.
fn open_beside(path: &Path) {
    let is_compiler = path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("libnvrtc.so"));
    let Some(folder) = path.parent().filter(|folder| is_compiler && !folder.as_os_str().is_empty()) else { return };
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        if entry.file_name().to_string_lossy().starts_with("libnvrtc-builtins.so") {
            // SAFETY: as for the libraries themselves; it must stay open as long as the compiler, which is to the end.
            if let Ok(library) = unsafe { Library::new(entry.path()) } {
                std::mem::forget(library);
            }
        }
    }
}

/// Declares a table of functions that are looked up by name in a library.
macro_rules! functions {
    ($(#[$meta:meta])* $table:ident { $($name:ident = $symbol:literal: fn($($argument:ty),* $(,)?) -> $answer:ty;)* }) => {
        $(#[$meta])*
        pub(crate) struct $table {
            $(pub(crate) $name: unsafe extern "C" fn($($argument),*) -> $answer,)*
            // Never closed: these libraries start threads and leave handlers for the end of the process, and another user of them in
            // this process (cublasLt is one of the driver's) may not be done.
            _library: ManuallyDrop<Library>,
        }

        impl $table {
            fn of(library: Library) -> Result<$table, DeviceError> {
                $(
                    // SAFETY: the symbol has this signature in the library's header.
                    let $name = unsafe { library.get::<unsafe extern "C" fn($($argument),*) -> $answer>($symbol.as_bytes()) }
                        .map(|symbol| *symbol)
                        .map_err(|error| DeviceError::LibraryTooOld { function: $symbol, why: error.to_string() })?;
                )*
                Ok($table { $($name,)* _library: ManuallyDrop::new(library) })
            }
        }
    };
}

pub(crate) type Handle = *mut c_void;

functions! {
    /// The driver's interface (cuda.h). Answers are CUresult.
    Driver {
        init = "cuInit": fn(c_uint) -> c_int;
        driver_version = "cuDriverGetVersion": fn(*mut c_int) -> c_int;
        error_name = "cuGetErrorName": fn(c_int, *mut *const c_char) -> c_int;
        error_string = "cuGetErrorString": fn(c_int, *mut *const c_char) -> c_int;
        device_count = "cuDeviceGetCount": fn(*mut c_int) -> c_int;
        device_get = "cuDeviceGet": fn(*mut c_int, c_int) -> c_int;
        device_name = "cuDeviceGetName": fn(*mut c_char, c_int, c_int) -> c_int;
        device_attribute = "cuDeviceGetAttribute": fn(*mut c_int, c_int, c_int) -> c_int;
        device_memory = "cuDeviceTotalMem_v2": fn(*mut usize, c_int) -> c_int;
        context_retain = "cuDevicePrimaryCtxRetain": fn(*mut Handle, c_int) -> c_int;
        context_set = "cuCtxSetCurrent": fn(Handle) -> c_int;
        memory_info = "cuMemGetInfo_v2": fn(*mut usize, *mut usize) -> c_int;
        memory_allocate = "cuMemAlloc_v2": fn(*mut u64, usize) -> c_int;
        memory_free = "cuMemFree_v2": fn(u64) -> c_int;
        host_allocate = "cuMemHostAlloc": fn(*mut *mut c_void, usize, c_uint) -> c_int;
        host_free = "cuMemFreeHost": fn(*mut c_void) -> c_int;
        copy_to_device = "cuMemcpyHtoDAsync_v2": fn(u64, *const c_void, usize, Handle) -> c_int;
        copy_to_host = "cuMemcpyDtoHAsync_v2": fn(*mut c_void, u64, usize, Handle) -> c_int;
        copy_on_device = "cuMemcpyDtoDAsync_v2": fn(u64, u64, usize, Handle) -> c_int;
        set_bytes = "cuMemsetD8Async": fn(u64, u8, usize, Handle) -> c_int;
        stream_create = "cuStreamCreate": fn(*mut Handle, c_uint) -> c_int;
        stream_synchronize = "cuStreamSynchronize": fn(Handle) -> c_int;
        stream_destroy = "cuStreamDestroy_v2": fn(Handle) -> c_int;
        event_create = "cuEventCreate": fn(*mut Handle, c_uint) -> c_int;
        event_record = "cuEventRecord": fn(Handle, Handle) -> c_int;
        event_synchronize = "cuEventSynchronize": fn(Handle) -> c_int;
        event_seconds = "cuEventElapsedTime": fn(*mut f32, Handle, Handle) -> c_int;
        event_destroy = "cuEventDestroy_v2": fn(Handle) -> c_int;
        module_load = "cuModuleLoadData": fn(*mut Handle, *const c_void) -> c_int;
        module_unload = "cuModuleUnload": fn(Handle) -> c_int;
        module_function = "cuModuleGetFunction": fn(*mut Handle, Handle, *const c_char) -> c_int;
        function_set = "cuFuncSetAttribute": fn(Handle, c_int, c_int) -> c_int;
        capture_begin = "cuStreamBeginCapture_v2": fn(Handle, c_int) -> c_int;
        capture_end = "cuStreamEndCapture": fn(Handle, *mut Handle) -> c_int;
        graph_instantiate = "cuGraphInstantiateWithFlags": fn(*mut Handle, Handle, u64) -> c_int;
        graph_destroy = "cuGraphDestroy": fn(Handle) -> c_int;
        graph_launch = "cuGraphLaunch": fn(Handle, Handle) -> c_int;
        graph_exec_destroy = "cuGraphExecDestroy": fn(Handle) -> c_int;
        launch = "cuLaunchKernel": fn(
            Handle, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, Handle, *mut *mut c_void, *mut *mut c_void,
        ) -> c_int;
    }
}

functions! {
    /// The compiler (nvrtc.h). Answers are nvrtcResult.
    Compiler {
        version = "nvrtcVersion": fn(*mut c_int, *mut c_int) -> c_int;
        error_string = "nvrtcGetErrorString": fn(c_int) -> *const c_char;
        create = "nvrtcCreateProgram": fn(
            *mut Handle, *const c_char, *const c_char, c_int, *const *const c_char, *const *const c_char,
        ) -> c_int;
        compile = "nvrtcCompileProgram": fn(Handle, c_int, *const *const c_char) -> c_int;
        log_size = "nvrtcGetProgramLogSize": fn(Handle, *mut usize) -> c_int;
        log = "nvrtcGetProgramLog": fn(Handle, *mut c_char) -> c_int;
        architectures = "nvrtcGetNumSupportedArchs": fn(*mut c_int) -> c_int;
        architecture_list = "nvrtcGetSupportedArchs": fn(*mut c_int) -> c_int;
        binary_size = "nvrtcGetCUBINSize": fn(Handle, *mut usize) -> c_int;
        binary = "nvrtcGetCUBIN": fn(Handle, *mut c_char) -> c_int;
        portable_size = "nvrtcGetPTXSize": fn(Handle, *mut usize) -> c_int;
        portable = "nvrtcGetPTX": fn(Handle, *mut c_char) -> c_int;
        destroy = "nvrtcDestroyProgram": fn(*mut Handle) -> c_int;
    }
}

/// cublasLtMatmulAlgo_t.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Algorithm {
    data: [u64; 8],
}

/// cublasLtMatmulHeuristicResult_t.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Heuristic {
    pub(crate) algorithm: Algorithm,
    pub(crate) workspace: usize,
    pub(crate) state: c_int,
    waves: f32,
    reserved: [c_int; 4],
}

functions! {
    /// Matrix products (cublasLt.h). Answers are cublasStatus_t.
    CublasLt {
        version = "cublasLtGetVersion": fn() -> usize;
        create = "cublasLtCreate": fn(*mut Handle) -> c_int;
        destroy = "cublasLtDestroy": fn(Handle) -> c_int;
        operation_create = "cublasLtMatmulDescCreate": fn(*mut Handle, c_int, c_int) -> c_int;
        operation_set = "cublasLtMatmulDescSetAttribute": fn(Handle, c_int, *const c_void, usize) -> c_int;
        operation_destroy = "cublasLtMatmulDescDestroy": fn(Handle) -> c_int;
        layout_create = "cublasLtMatrixLayoutCreate": fn(*mut Handle, c_int, u64, u64, i64) -> c_int;
        layout_destroy = "cublasLtMatrixLayoutDestroy": fn(Handle) -> c_int;
        preference_create = "cublasLtMatmulPreferenceCreate": fn(*mut Handle) -> c_int;
        preference_set = "cublasLtMatmulPreferenceSetAttribute": fn(Handle, c_int, *const c_void, usize) -> c_int;
        preference_destroy = "cublasLtMatmulPreferenceDestroy": fn(Handle) -> c_int;
        heuristic = "cublasLtMatmulAlgoGetHeuristic": fn(
            Handle, Handle, Handle, Handle, Handle, Handle, Handle, c_int, *mut Heuristic, *mut c_int,
        ) -> c_int;
        product = "cublasLtMatmul": fn(
            Handle, Handle, *const c_void, *const c_void, Handle, *const c_void, Handle, *const c_void, *const c_void, Handle,
            *mut c_void, Handle, *const Algorithm, *mut c_void, usize, Handle,
        ) -> c_int;
    }
}

impl Driver {
    /// The driver of this machine.
    pub(crate) fn open() -> Result<Driver, DeviceError> {
        open("NVIDIA's driver", &["libcuda.so.1", "libcuda.so", "nvcuda.dll"]).and_then(Driver::of)
    }
}

/// Names of a library by the major version of CUDA that they belong to; none for a name without.
type Versions = [(Option<u32>, &'static str)];

const COMPILERS: &Versions = &[
    (Some(13), "libnvrtc.so.13"),
    (Some(12), "libnvrtc.so.12"),
    (None, "libnvrtc.so"),
    (Some(13), "nvrtc64_130_0.dll"),
    (Some(12), "nvrtc64_120_0.dll"),
];

const CUBLASLT: &Versions = &[
    (Some(13), "libcublasLt.so.13"),
    (Some(12), "libcublasLt.so.12"),
    (None, "libcublasLt.so"),
    (Some(13), "cublasLt64_13.dll"),
    (Some(12), "cublasLt64_12.dll"),
];

/// The names in the order in which a driver of this major version of CUDA may take them: a driver runs what is as old as itself or
/// older. What is newer comes last, for drivers with NVIDIA's package for forward compatibility.
fn by_driver(driver: u32, versions: &Versions) -> Vec<&'static str> {
    let mut names: Vec<(bool, &'static str)> =
        versions.iter().map(|&(major, name)| (major.is_some_and(|major| major > driver), name)).collect();
    names.sort_by_key(|name| name.0);
    names.into_iter().map(|name| name.1).collect()
}

impl Compiler {
    /// The newest compiler of this machine whose kernels a driver of this major version of CUDA loads.
    pub(crate) fn open(driver: u32) -> Result<Compiler, DeviceError> {
        open("the compiler of kernels (NVRTC)", &by_driver(driver, COMPILERS)).and_then(Compiler::of)
    }
}

impl CublasLt {
    /// The cublasLts of this machine, each with its name, those that fit the driver first. They are large, so each is opened when
    /// it is asked for.
    pub(crate) fn each(driver: u32) -> impl Iterator<Item = (&'static str, Result<CublasLt, DeviceError>)> {
        by_driver(driver, CUBLASLT).into_iter().map(|name| (name, open(name, &[name]).and_then(CublasLt::of)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_driver_is_offered_what_it_can_run_first() {
        let names = |driver| by_driver(driver, CUBLASLT).into_iter().filter(|n| n.contains(".so")).collect::<Vec<_>>();
        assert_eq!(names(13), ["libcublasLt.so.13", "libcublasLt.so.12", "libcublasLt.so"]);
        assert_eq!(names(14), names(13));
        assert_eq!(names(12), ["libcublasLt.so.12", "libcublasLt.so", "libcublasLt.so.13"]);
    }

    #[test]
    fn structures_have_the_sizes_of_the_header() {
        assert_eq!((size_of::<Algorithm>(), size_of::<Heuristic>()), (64, 96));
        assert_eq!(std::mem::offset_of!(Heuristic, state), 72);
    }
}
