//! A GPU behind [`Device`]: NVIDIA's driver, kernels of our own, cublasLt for dense products.

use std::cell::{Cell, RefCell};
use std::collections::{HashMap, HashSet};
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::path::PathBuf;
use std::rc::Rc;

use super::compile::KernelCompiler;
use super::cublaslt::Products;
use super::device::{Address, Argument, Clock, DenseProduct, Device, DeviceError, DeviceInfo, Kernel, Mark, Recording};
use super::error::CudaError;
use super::kernels::Unit;
use super::library::{CublasLt, Driver, Handle};

/// Lowest major compute capability: bf16 matrix instructions and copies in the background (Ampere).
const LOWEST: u32 = 8;

// Of cuda.h.
const OUT_OF_MEMORY: c_int = 2;
const DEVICE_UNAVAILABLE: c_int = 46;
const COMPUTE_MODE: c_int = 20;
const MULTIPROCESSORS: c_int = 16;
const MAJOR: c_int = 75;
const MINOR: c_int = 76;
const SHARED_OPTIN: c_int = 97;
const MAX_DYNAMIC_SHARED: c_int = 8;
const STREAM_NON_BLOCKING: u32 = 1;
const EVENT_WITH_TIMING: u32 = 0;
const CAPTURE_THREAD_LOCAL: c_int = 1;
const EVENT_WITHOUT_TIMING: u32 = 2;

/// A GPU.
pub(crate) struct Gpu {
    driver: Rc<Driver>,
    index: usize,
    number: c_int,
    /// The device's primary context, which the libraries use too.
    context: Handle,
    stream: Handle,
    events: [Handle; 2],
    /// Events that note times, by their numbers; made when they are first used.
    stamps: RefCell<Vec<Handle>>,
    compiler: KernelCompiler,
    modules: Vec<(Handle, String)>,
    allocated: RefCell<HashSet<Address>>,
    host: RefCell<Vec<*mut c_void>>,
    products: Option<Products>,
    /// Errors of the libraries that were tried, if none works.
    refused: Vec<String>,
    loaded: HashMap<String, usize>,
    /// Graphs that were recorded.
    graphs: RefCell<HashSet<u64>>,
    /// Names of the kernels, for errors.
    names: HashMap<u64, String>,
    /// Latest launch, which an error may belong to.
    last: RefCell<Launched>,
    /// `EARNEST_CUDA_SYNC`: waits after every launch, so that an error is that launch's.
    waits: bool,
    /// Launches are kept for a record instead of being done.
    recording: Cell<bool>,
}

/// What a device was asked to compute last, for the errors that a driver reports later.
#[derive(Default)]
struct Launched {
    /// Launches and products so far.
    count: u64,
    kernel: u64,
    grid: [usize; 3],
    block: u32,
    /// A product by cublasLt instead of a kernel: m, n, k.
    product: Option<[usize; 3]>,
    /// A recorded step.
    graph: bool,
}

/// Variable that has the host wait after every launch.
const WAITS: &str = "EARNEST_CUDA_SYNC";

/// Lists the driver's devices.
///
/// # Errors
/// [`DeviceError`] if there is no driver or it can not be used.
pub fn devices() -> Result<Vec<DeviceInfo>, DeviceError> {
    let driver = start_driver()?;
    let count = count(&driver)?;
    let mut all = vec![];
    for index in 0..count {
        let number = number(&driver, index)?;
        let mut total = 0usize;
        // SAFETY: an integer to write.
        check(&driver, "cuDeviceTotalMem", unsafe { (driver.device_memory)(&mut total, number) })?;
        let mut info = describe(&driver, index, number)?;
        // Free memory is known only to who opens the device, which takes memory and time.
        (info.free, info.total) = (total as u64, total as u64);
        KernelCompiler::new(info.capability, info.driver.0, None)?.describe(&mut info);
        let library = CublasLt::each(info.driver.0).find_map(|(_, library)| library.ok());
        // SAFETY: no arguments.
        info.cublaslt = library.map(|library| unsafe { (library.version)() } as u64);
        all.push(info);
    }
    Ok(all)
}

fn start_driver() -> Result<Driver, DeviceError> {
    let driver = Driver::open()?;
    // SAFETY: flags must be 0.
    match unsafe { (driver.init)(0) } {
        0 => Ok(driver),
        // CUDA_ERROR_NO_DEVICE
        100 => Err(DeviceError::NoDevice(format!("NVIDIA's driver finds no usable GPU: {}", words(&driver, 100)))),
        code => Err(DeviceError::Call { call: "cuInit", why: words(&driver, code) }),
    }
}

fn count(driver: &Driver) -> Result<usize, DeviceError> {
    let mut count = 0;
    // SAFETY: an integer to write.
    check(driver, "cuDeviceGetCount", unsafe { (driver.device_count)(&mut count) })?;
    Ok(count.max(0) as usize)
}

fn number(driver: &Driver, index: usize) -> Result<c_int, DeviceError> {
    let mut number = 0;
    // SAFETY: an integer to write.
    check(driver, "cuDeviceGet", unsafe { (driver.device_get)(&mut number, index as c_int) })?;
    Ok(number)
}

fn words(driver: &Driver, code: c_int) -> String {
    let text = |get: unsafe extern "C" fn(c_int, *mut *const c_char) -> c_int| {
        let mut pointer = std::ptr::null();
        // SAFETY: a pointer to write; what it points to is a constant of the driver.
        unsafe {
            (get(code, &mut pointer) == 0 && !pointer.is_null())
                .then(|| CStr::from_ptr(pointer).to_string_lossy().into_owned())
        }
    };
    let name = text(driver.error_name).unwrap_or_else(|| format!("error {code}"));
    match text(driver.error_string) {
        Some(words) => format!("{words} ({name})"),
        None => name,
    }
}

fn check(driver: &Driver, call: &'static str, code: c_int) -> Result<(), DeviceError> {
    if code == 0 { Ok(()) } else { Err(DeviceError::Call { call, why: words(driver, code) }) }
}

fn describe(driver: &Driver, index: usize, number: c_int) -> Result<DeviceInfo, DeviceError> {
    let attribute = |which: c_int| {
        let mut value = 0;
        // SAFETY: an integer to write.
        check(driver, "cuDeviceGetAttribute", unsafe { (driver.device_attribute)(&mut value, which, number) })?;
        Ok::<u32, DeviceError>(value.max(0) as u32)
    };
    let mut name = [0 as c_char; 256];
    // SAFETY: the length is the array's; the driver ends the name with zero.
    check(driver, "cuDeviceGetName", unsafe { (driver.device_name)(name.as_mut_ptr(), 255, number) })?;
    let mut version = 0;
    // SAFETY: an integer to write.
    check(driver, "cuDriverGetVersion", unsafe { (driver.driver_version)(&mut version) })?;
    Ok(DeviceInfo {
        index,
        // SAFETY: the last of 256 characters is zero in any case.
        name: unsafe { CStr::from_ptr(name.as_ptr()) }.to_string_lossy().into_owned(),
        capability: (attribute(MAJOR)?, attribute(MINOR)?),
        multiprocessors: attribute(MULTIPROCESSORS)?,
        free: 0,
        total: 0,
        shared: attribute(SHARED_OPTIN)?,
        driver: (version as u32 / 1000, version as u32 % 1000 / 10),
        compiler: None,
        embedded: None,
        modified: None,
        cublaslt: None,
    })
}

fn no_such_device(index: usize, count: usize) -> String {
    match count {
        0 => format!("there is no cuda:{index}: the driver finds no GPU"),
        1 => format!("there is no cuda:{index}: the driver finds 1 GPU, cuda:0"),
        _ => format!("there is no cuda:{index}: the driver finds {count} GPUs, cuda:0 to cuda:{}", count - 1),
    }
}

/// Message for a device that can not be used.
fn unusable(driver: &Driver, info: &DeviceInfo, number: c_int, code: c_int) -> String {
    let mut mode = 0;
    // SAFETY: an integer to write.
    let known = unsafe { (driver.device_attribute)(&mut mode, COMPUTE_MODE, number) } == 0;
    let (name, words) = (&info.name, words(driver, code));
    match (code, mode) {
        (DEVICE_UNAVAILABLE, 2) if known => {
            format!("cuda:{} ({name}) is in compute mode Prohibited (nvidia-smi -c): {words}", info.index)
        }
        (DEVICE_UNAVAILABLE, 3) if known => format!(
            "cuda:{} ({name}) is in compute mode Exclusive_Process and another process uses it (nvidia-smi names it): {words}",
            info.index
        ),
        (OUT_OF_MEMORY, _) => {
            format!("cuda:{} ({name}) has no memory left for another process: {words}", info.index)
        }
        _ => format!("cuda:{} ({name}) can not be used: {words}", info.index),
    }
}

/// Returns the version of the cublasLt that computes dense products on a device. Opens the device.
///
/// # Errors
/// [`CudaError::NoLibrary`] if no cublasLt works with it, [`CudaError::Device`] if the device can not be used.
pub fn cublaslt_version(index: usize) -> Result<u64, CudaError> {
    Gpu::open(index, None, true)?.cublaslt_version()
}

impl Gpu {
    /// Opens a device. `folder` keeps compiled kernels; `library` allows cublasLt.
    pub(crate) fn open(index: usize, folder: Option<PathBuf>, library: bool) -> Result<Gpu, DeviceError> {
        let driver = Rc::new(start_driver()?);
        let count = count(&driver)?;
        if index >= count {
            return Err(DeviceError::NoDevice(no_such_device(index, count)));
        }
        let number = number(&driver, index)?;
        let info = describe(&driver, index, number)?;
        let (major, minor) = info.capability;
        if major < LOWEST {
            return Err(DeviceError::NoDevice(format!(
                "{} has compute capability {major}.{minor}; {LOWEST}.0 is needed (Ampere or newer)",
                info.name
            )));
        }
        let mut context = std::ptr::null_mut();
        // SAFETY: a handle to write.
        match unsafe { (driver.context_retain)(&mut context, number) } {
            0 => {}
            code => return Err(DeviceError::NoDevice(unusable(&driver, &info, number, code))),
        }
        let compiler = KernelCompiler::new(info.capability, info.driver.0, folder)?;
        let mut gpu = Gpu {
            driver,
            index,
            number,
            context,
            stream: std::ptr::null_mut(),
            events: [std::ptr::null_mut(); 2],
            stamps: RefCell::default(),
            compiler,
            modules: vec![],
            allocated: RefCell::default(),
            host: RefCell::default(),
            products: None,
            refused: vec![],
            loaded: HashMap::new(),
            graphs: RefCell::default(),
            names: HashMap::new(),
            last: RefCell::default(),
            recording: Cell::new(false),
            waits: std::env::var_os(WAITS).is_some_and(|value| value != "0" && !value.is_empty()),
        };
        gpu.enter()?;
        let d = Rc::clone(&gpu.driver);
        // SAFETY: handles to write.
        unsafe {
            check(&d, "cuStreamCreate", (d.stream_create)(&mut gpu.stream, STREAM_NON_BLOCKING))?;
            for event in &mut gpu.events {
                check(&d, "cuEventCreate", (d.event_create)(event, EVENT_WITHOUT_TIMING))?;
            }
        }
        if library {
            gpu.find_library(info.driver.0)?;
        }
        Ok(gpu)
    }

    /// Opens the first cublasLt that works here, and keeps the errors of those that do not.
    fn find_library(&mut self, driver: u32) -> Result<(), DeviceError> {
        let workspace = self.allocate(Products::WORKSPACE, "working memory of matrix products")?;
        let mut missing = None;
        for (name, library) in CublasLt::each(driver) {
            match library.and_then(|library| Products::new(library, self.stream, workspace)) {
                Ok(products) => {
                    self.products = Some(products);
                    return Ok(());
                }
                Err(error @ DeviceError::LibraryMissing { .. }) => {
                    missing.get_or_insert(error.to_string());
                }
                Err(error) => self.refused.push(format!("{name}: {error}")),
            }
        }
        // One that is not there is no news if another one was found but failed.
        if self.refused.is_empty() {
            self.refused.extend(missing);
        }
        self.free(workspace)
    }

    /// Version of the cublasLt in use.
    ///
    /// # Errors
    /// [`CudaError::NoLibrary`] if there is none.
    pub(crate) fn cublaslt_version(&self) -> Result<u64, CudaError> {
        let version = self.products.as_ref().map(Products::version);
        version.ok_or_else(|| CudaError::NoLibrary(self.refused.join("; ")))
    }

    /// Loads the binary inside the program, or where there is none that the driver takes, the compiler's.
    fn module(&self, unit: &Unit) -> Result<Handle, DeviceError> {
        let load = |binary: &[u8]| {
            let mut module = std::ptr::null_mut();
            // SAFETY: a whole binary of the compiler's.
            match unsafe { (self.driver.module_load)(&mut module, binary.as_ptr().cast()) } {
                0 => Ok(module),
                code => Err(words(&self.driver, code)),
            }
        };
        // In memory of its own, as a compiler's is: inside the part it begins anywhere, and drivers may expect a multiple of 8.
        let embedded = self.compiler.embedded(unit).map(<[u8]>::to_vec);
        let refused = match embedded.map(|binary| load(&binary)) {
            Some(Ok(module)) => return Ok(module),
            Some(Err(why)) => format!("; the driver refuses those inside the program: {why}"),
            None => String::new(),
        };
        let failed = |log: String| DeviceError::Kernels { unit: unit.name.clone(), log };
        let binary = self.compiler.binary(unit).map_err(|error| match error {
            DeviceError::Kernels { log, .. } => failed(log + &refused),
            DeviceError::LibraryMissing { .. } if !refused.is_empty() => failed(format!("{error}{refused}")),
            error => error,
        })?;
        load(&binary).map_err(|why| {
            let (major, minor) = self.compiler.version().unwrap_or_default();
            let architecture = self.compiler.architecture();
            failed(format!(
                "{why}; they were compiled for {architecture} by NVRTC {major}.{minor}, and a driver loads nothing of a newer CUDA than its \
                 own{refused}"
            ))
        })
    }

    fn check(&self, call: &'static str, code: c_int) -> Result<(), DeviceError> {
        check(&self.driver, call, code)
    }

    /// Checks a call that waits for the device: its error may be that of any launch before.
    fn check_work(&self, call: &'static str, code: c_int) -> Result<(), DeviceError> {
        self.check(call, code).map_err(|error| self.at_fault(error, !self.waits))
    }

    /// Checks a launch, and with [`WAITS`] its work.
    fn check_launch(&self, call: &'static str, code: c_int) -> Result<(), DeviceError> {
        self.check_work(call, code)?;
        // What is recorded is not done yet, and a wait would end the record.
        if self.waits && !self.recording.get() {
            // SAFETY: a handle of this device.
            let code = unsafe { (self.driver.stream_synchronize)(self.stream) };
            return self.check_work("cuStreamSynchronize", code);
        }
        Ok(())
    }

    /// Notes what is launched.
    fn note(&self, launched: Launched) {
        let mut last = self.last.borrow_mut();
        *last = Launched { count: last.count + 1, ..launched };
    }

    /// Adds what was launched to an error.
    fn at_fault(&self, error: DeviceError, any: bool) -> DeviceError {
        let DeviceError::Call { call, why } = error else { return error };
        let last = self.last.borrow();
        let what = match (last.product, self.names.get(&last.kernel)) {
            (Some([m, n, k]), _) => format!("the product by cublasLt with m {m}, n {n}, k {k}"),
            _ if last.graph => "a recorded step".to_owned(),
            (None, Some(name)) => {
                let ([x, y, z], block) = (last.grid, last.block);
                format!("{name} with {x} x {y} x {z} blocks of {block} threads")
            }
            (None, None) => return DeviceError::Call { call, why },
        };
        let place = match any {
            false => format!("in {what}"),
            true => format!("in one of {} launches, of which the last was {what}; {WAITS}=1 finds which", last.count),
        };
        DeviceError::Call { call, why: format!("{why}, {place}") }
    }
}

impl Device for Gpu {
    fn info(&self) -> Result<DeviceInfo, DeviceError> {
        let mut info = describe(&self.driver, self.index, self.number)?;
        let (mut free, mut total) = (0usize, 0usize);
        // SAFETY: integers to write; the context is this thread's.
        self.check("cuMemGetInfo", unsafe { (self.driver.memory_info)(&mut free, &mut total) })?;
        (info.free, info.total) = (free as u64, total as u64);
        self.compiler.describe(&mut info);
        info.cublaslt = self.products.as_ref().map(Products::version);
        Ok(info)
    }

    fn enter(&self) -> Result<(), DeviceError> {
        // SAFETY: the context lives as long as this.
        self.check("cuCtxSetCurrent", unsafe { (self.driver.context_set)(self.context) })
    }

    fn allocate(&self, bytes: u64, what: &'static str) -> Result<Address, DeviceError> {
        let mut at = 0;
        // SAFETY: an address to write.
        match unsafe { (self.driver.memory_allocate)(&mut at, bytes.max(1) as usize) } {
            OUT_OF_MEMORY => Err(DeviceError::OutOfMemory { bytes, what }),
            code => {
                self.check("cuMemAlloc", code)?;
                self.allocated.borrow_mut().insert(at);
                Ok(at)
            }
        }
    }

    fn free(&self, at: Address) -> Result<(), DeviceError> {
        // SAFETY: the address came from `allocate`; the stream has no more work that uses it.
        unsafe {
            self.check_work("cuStreamSynchronize", (self.driver.stream_synchronize)(self.stream))?;
            self.check("cuMemFree", (self.driver.memory_free)(at))?;
        }
        self.allocated.borrow_mut().remove(&at);
        Ok(())
    }

    fn host_memory(&self, bytes: usize) -> Result<*mut u8, DeviceError> {
        let mut at = std::ptr::null_mut();
        // SAFETY: a pointer to write.
        self.check("cuMemHostAlloc", unsafe { (self.driver.host_allocate)(&mut at, bytes.max(1), 0) })?;
        self.host.borrow_mut().push(at);
        Ok(at.cast())
    }

    fn upload(&self, to: Address, from: &[u8]) -> Result<(), DeviceError> {
        // A driver need not take the address of an empty list.
        if from.is_empty() {
            return Ok(());
        }
        // SAFETY: the bytes are there until the stream came by, for which this waits.
        unsafe {
            self.check_work(
                "cuMemcpyHtoDAsync",
                (self.driver.copy_to_device)(to, from.as_ptr().cast(), from.len(), self.stream),
            )?;
            self.check_work("cuStreamSynchronize", (self.driver.stream_synchronize)(self.stream))
        }
    }

    unsafe fn send(&self, to: Address, from: *const u8, bytes: usize) -> Result<(), DeviceError> {
        // SAFETY: by the caller.
        self.check_work("cuMemcpyHtoDAsync", unsafe {
            (self.driver.copy_to_device)(to, from.cast(), bytes, self.stream)
        })
    }

    unsafe fn receive(&self, from: Address, to: *mut u8, bytes: usize) -> Result<(), DeviceError> {
        // SAFETY: by the caller.
        self.check_work("cuMemcpyDtoHAsync", unsafe { (self.driver.copy_to_host)(to.cast(), from, bytes, self.stream) })
    }

    fn copy(&self, from: Address, to: Address, bytes: u64) -> Result<(), DeviceError> {
        if bytes == 0 {
            return Ok(());
        }
        // SAFETY: allocated memory.
        let code = unsafe { (self.driver.copy_on_device)(to, from, bytes as usize, self.stream) };
        self.check_work("cuMemcpyDtoDAsync", code)
    }

    fn zero(&self, at: Address, bytes: u64) -> Result<(), DeviceError> {
        // SAFETY: allocated memory.
        self.check_work("cuMemsetD8Async", unsafe { (self.driver.set_bytes)(at, 0, bytes as usize, self.stream) })
    }

    fn mark(&self, slot: usize) -> Result<Mark, DeviceError> {
        // SAFETY: handles of this device.
        self.check_work("cuEventRecord", unsafe { (self.driver.event_record)(self.events[slot], self.stream) })?;
        Ok(Mark(slot as u64))
    }

    fn wait(&self, mark: Mark) -> Result<(), DeviceError> {
        // SAFETY: a handle of this device.
        self.check_work("cuEventSynchronize", unsafe { (self.driver.event_synchronize)(self.events[mark.0 as usize]) })
    }

    fn stamp(&self, number: usize) -> Result<(), DeviceError> {
        let mut stamps = self.stamps.borrow_mut();
        while stamps.len() <= number {
            let mut event = std::ptr::null_mut();
            // SAFETY: a handle to write.
            self.check("cuEventCreate", unsafe { (self.driver.event_create)(&mut event, EVENT_WITH_TIMING) })?;
            stamps.push(event);
        }
        // SAFETY: handles of this device.
        self.check_work("cuEventRecord", unsafe { (self.driver.event_record)(stamps[number], self.stream) })
    }

    fn seconds(&self, from: usize, to: usize) -> Result<f64, DeviceError> {
        let stamps = self.stamps.borrow();
        let (Some(&from), Some(&to)) = (stamps.get(from), stamps.get(to)) else {
            return Err(DeviceError::Call { call: "cuEventElapsedTime", why: "no such time was noted".into() });
        };
        let mut milliseconds = 0f32;
        // SAFETY: a float to write, events of this device.
        let code = unsafe { (self.driver.event_seconds)(&mut milliseconds, from, to) };
        self.check("cuEventElapsedTime", code)?;
        Ok(f64::from(milliseconds) / 1e3)
    }

    fn clock(&self) -> Clock {
        Clock::DeviceEvents
    }

    fn load(&mut self, unit: &Unit) -> Result<usize, DeviceError> {
        if let Some(&known) = self.loaded.get(&unit.name) {
            return Ok(known);
        }
        let module = self.module(unit)?;
        self.modules.push((module, unit.name.clone()));
        self.loaded.insert(unit.name.clone(), self.modules.len() - 1);
        Ok(self.modules.len() - 1)
    }

    fn kernel(&mut self, unit: usize, name: &str, shared: u32) -> Result<Kernel, DeviceError> {
        let (module, unit) = &self.modules[unit];
        let failed = |log: String| DeviceError::Kernels { unit: unit.clone(), log };
        let symbol = CString::new(format!("earnest_{name}")).map_err(|_| failed("a name with a zero byte".into()))?;
        let mut function = std::ptr::null_mut();
        // SAFETY: a handle to write, a name that ends with zero.
        let code = unsafe { (self.driver.module_function)(&mut function, *module, symbol.as_ptr()) };
        if code != 0 {
            return Err(failed(format!("{name}: {}", words(&self.driver, code))));
        }
        if shared > 48 * 1024 {
            // SAFETY: a function of this device.
            let code = unsafe { (self.driver.function_set)(function, MAX_DYNAMIC_SHARED, shared as c_int) };
            if code != 0 {
                return Err(failed(format!(
                    "{name} with {shared} bytes of shared memory: {}",
                    words(&self.driver, code)
                )));
            }
        }
        self.names.insert(function as u64, name.to_owned());
        Ok(Kernel(function as u64))
    }

    unsafe fn launch(
        &self,
        kernel: Kernel,
        grid: [usize; 3],
        block: u32,
        shared: u32,
        arguments: &[Argument],
    ) -> Result<(), DeviceError> {
        if grid.contains(&0) {
            return Ok(());
        }
        // The driver reads as many bytes as the parameter has, from the low end.
        assert!(arguments.len() <= 24, "a kernel has at most 24 parameters");
        let mut pointers: [*mut c_void; 24] = [std::ptr::null_mut(); 24];
        for (pointer, argument) in pointers.iter_mut().zip(arguments) {
            *pointer = std::ptr::from_ref(&argument.0).cast_mut().cast();
        }
        let [x, y, z] = grid.map(|n| n as u32);
        self.note(Launched { kernel: kernel.0, grid, block, ..Launched::default() });
        // SAFETY: by the caller; the driver copies the arguments before it returns.
        self.check_launch("cuLaunchKernel", unsafe {
            (self.driver.launch)(
                kernel.0 as Handle,
                x,
                y,
                z,
                block,
                1,
                1,
                shared,
                self.stream,
                pointers.as_mut_ptr(),
                std::ptr::null_mut(),
            )
        })
    }

    fn record(&self) -> Result<(), DeviceError> {
        // SAFETY: a handle of this device.
        let code = unsafe { (self.driver.capture_begin)(self.stream, CAPTURE_THREAD_LOCAL) };
        self.check("cuStreamBeginCapture", code)?;
        self.recording.set(true);
        Ok(())
    }

    fn recorded(&self) -> Result<Recording, DeviceError> {
        let (mut graph, mut ready) = (std::ptr::null_mut(), std::ptr::null_mut());
        let d = &self.driver;
        self.recording.set(false);
        // SAFETY: handles to write; the graph is not used after it was made ready.
        unsafe {
            self.check("cuStreamEndCapture", (d.capture_end)(self.stream, &mut graph))?;
            let code = (d.graph_instantiate)(&mut ready, graph, 0);
            (d.graph_destroy)(graph);
            self.check("cuGraphInstantiateWithFlags", code)?;
        }
        self.graphs.borrow_mut().insert(ready as u64);
        Ok(Recording(ready as u64))
    }

    unsafe fn replay(&self, recording: Recording) -> Result<(), DeviceError> {
        self.note(Launched { graph: true, ..Launched::default() });
        // SAFETY: by the caller.
        self.check_launch("cuGraphLaunch", unsafe { (self.driver.graph_launch)(recording.0 as Handle, self.stream) })
    }

    fn forget(&self, recording: Recording) -> Result<(), DeviceError> {
        self.graphs.borrow_mut().remove(&recording.0);
        // SAFETY: a handle of this device, not used after; the stream has done its work.
        unsafe {
            self.check_work("cuStreamSynchronize", (self.driver.stream_synchronize)(self.stream))?;
            self.check("cuGraphExecDestroy", (self.driver.graph_exec_destroy)(recording.0 as Handle))
        }
    }

    fn has_dense_product(&self) -> bool {
        self.products.is_some()
    }

    unsafe fn dense_product(&self, product: &DenseProduct) -> Result<(), DeviceError> {
        match &self.products {
            Some(products) => {
                let shape = Some([product.m, product.n, product.k]);
                self.note(Launched { product: shape, ..Launched::default() });
                // SAFETY: by the caller.
                let asked = unsafe { products.run(product) };
                asked.map_err(|error| self.at_fault(error, !self.waits))?;
                self.check_launch("cublasLtMatmul", 0)
            }
            None => Err(DeviceError::Call { call: "cublasLtMatmul", why: "cublasLt was not opened".into() }),
        }
    }
}

impl Drop for Gpu {
    fn drop(&mut self) {
        // All that was made here is given back, in the order in which it is used: another model may need the memory at once. The
        // primary context is not: it is the process's, cublasLt keeps its kernels in it beyond the life of our handle, and one that
        // was destroyed below a library leaves it unusable. The end of the process releases it. A failure here concerns nobody.
        let d = Rc::clone(&self.driver);
        // SAFETY: handles of this device, none used after; nothing frees or unloads before the stream has done its work.
        unsafe {
            (d.context_set)(self.context);
            if !self.stream.is_null() {
                (d.stream_synchronize)(self.stream);
            }
            self.products = None;
            for &graph in self.graphs.borrow().iter() {
                (d.graph_exec_destroy)(graph as Handle);
            }
            for at in self.allocated.borrow().iter() {
                (d.memory_free)(*at);
            }
            for at in self.host.borrow().iter() {
                (d.host_free)(*at);
            }
            for (module, _) in &self.modules {
                (d.module_unload)(*module);
            }
            for event in self.events.iter().chain(self.stamps.borrow().iter()).filter(|event| !event.is_null()) {
                (d.event_destroy)(*event);
            }
            if !self.stream.is_null() {
                (d.stream_destroy)(self.stream);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_that_no_gpu_has_is_answered_with_those_there_are() {
        assert_eq!(no_such_device(9, 2), "there is no cuda:9: the driver finds 2 GPUs, cuda:0 to cuda:1");
        assert_eq!(no_such_device(1, 1), "there is no cuda:1: the driver finds 1 GPU, cuda:0");
        assert!(no_such_device(0, 0).ends_with("no GPU"));
    }
}
