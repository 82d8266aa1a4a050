//! The kernels on the CPU: the sources that run on a GPU, compiled as C++ with tests/cuda_twin/twin.h, behind [`Device`].
//!
//! Memory ends where the next page must not be touched, and begins as NaN, so that a kernel that reads or writes beyond its operands
//! ends the test, and one that uses what nobody wrote fails it.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::ffi::{CStr, CString, c_char, c_void};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Instant;

use libloading::Library;
use sha2::{Digest, Sha256};

use super::device::{
    Address, Argument, Clock, DenseProduct, Device, DeviceError, DeviceInfo, Element, Kernel, Mark, Out, Recording,
};
use super::kernels::Unit;
use super::sources::Sources;

/// The emulation's state is one per library: launches take turns.
static TURN: Mutex<()> = Mutex::new(());

type Run = unsafe extern "C" fn(*const c_void, *const u32, u32, u32, *mut *mut c_void, i32);

/// Turns the race check on for every twin (tests/cuda_twin/races.cpp).
const RACES: &str = "EARNEST_TWIN_RACES";

type BeginRaces = unsafe extern "C" fn(*const c_char, *const Region, usize, *const u64, usize);
type Races = unsafe extern "C" fn() -> *const c_char;

/// Memory of the device as the race check takes it.
#[repr(C)]
struct Region {
    start: Address,
    bytes: u64,
    what: *const c_char,
}

/// Memory that was allocated: its pages, and what for.
struct Allocation {
    pages: *mut c_void,
    room: usize,
    bytes: u64,
    what: CString,
}

pub(crate) struct Twin {
    /// A library for dense products is there.
    pub(crate) library: bool,
    /// Slightly wrong results of cuBLASLt.
    pub(crate) skewed: bool,
    /// Order of a block's threads: 0, 1 or 2.
    pub(crate) order: i32,
    /// Bytes that it has.
    pub(crate) total: u64,
    /// Compute capability.
    pub(crate) capability: (u32, u32),
    /// Shared memory that a block may have.
    pub(crate) shared: u32,
    /// A launch with a race fails.
    pub(crate) races: bool,
    /// Changes the source of a unit before it is compiled, to plant errors.
    pub(crate) planted: Option<Plant>,
    used: Cell<u64>,
    units: Vec<Library>,
    loaded: HashMap<String, usize>,
    kernels: Vec<(usize, *const c_void, CString)>,
    memory: RefCell<HashMap<Address, Allocation>>,
    stamps: RefCell<HashMap<usize, Instant>>,
    host: RefCell<Vec<Box<[u8]>>>,
    /// Launches of the recording under way.
    recording: RefCell<Option<Vec<Work>>>,
    recorded: RefCell<Vec<Vec<Work>>>,
}

/// A change of a source.
pub(crate) type Plant = Box<dyn Fn(String) -> String>;

/// Recorded work.
enum Work {
    Launch(Kernel, [usize; 3], u32, u32, Vec<Argument>),
    Product(DenseProduct),
}

/// The C++ compiler's name, if there is one.
pub(crate) fn compiler() -> Option<&'static str> {
    static FOUND: OnceLock<Option<String>> = OnceLock::new();
    FOUND
        .get_or_init(|| {
            let named = std::env::var("CXX").ok();
            let works = |name: &String| Command::new(name).arg("--version").output().is_ok_and(|o| o.status.success());
            named.into_iter().chain(["c++", "g++", "clang++"].map(String::from)).find(works)
        })
        .as_deref()
}

/// True, with a message, where the twin can not run.
pub(crate) fn skipped() -> bool {
    let can = cfg!(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")));
    if can && compiler().is_some() {
        return false;
    }
    eprintln!("skipped: the twin of the CUDA kernels needs a C++ compiler (c++, g++ or clang++) on Linux");
    true
}

impl Twin {
    pub(crate) fn new() -> Twin {
        Twin {
            library: true,
            skewed: false,
            order: 0,
            total: 1 << 30,
            capability: (9, 0),
            shared: 163 * 1024,
            races: std::env::var_os(RACES).is_some_and(|value| value != "0"),
            planted: None,
            used: Cell::new(0),
            units: vec![],
            loaded: HashMap::new(),
            kernels: vec![],
            memory: RefCell::default(),
            stamps: RefCell::default(),
            host: RefCell::default(),
            recording: RefCell::default(),
            recorded: RefCell::default(),
        }
    }

    /// Place of a variable of a loaded unit's source.
    pub(crate) fn variable(&self, unit: usize, name: &str) -> *mut i32 {
        // SAFETY: the caller knows its type.
        unsafe { *self.units[unit].get::<*mut i32>(name).expect("the source has the variable") }
    }

    /// Tells the race check of a launch.
    ///
    /// # Safety
    /// The unit was built with the race check.
    unsafe fn begin_races(&self, unit: &Library, name: &CStr, arguments: &[Argument]) {
        let memory = self.memory.borrow();
        let region = |(&start, of): (&Address, &Allocation)| Region {
            start,
            bytes: of.bytes.next_multiple_of(16),
            what: of.what.as_ptr(),
        };
        let mut regions: Vec<Region> = memory.iter().map(region).collect();
        regions.sort_by_key(|region| region.start);
        let values: Vec<u64> = arguments.iter().map(|argument| argument.0).collect();
        // SAFETY: by the caller; the lists are copied.
        unsafe {
            let begin = unit.get::<BeginRaces>("earnest_races_launch").expect("the unit was built with the check");
            begin(name.as_ptr(), regions.as_ptr(), regions.len(), values.as_ptr(), values.len());
        }
    }
}

/// The race of the last launch as an error.
///
/// # Safety
/// The unit was built with the race check.
unsafe fn race(unit: &Library) -> Result<(), DeviceError> {
    // SAFETY: by the caller; the text ends with NUL.
    let found = unsafe {
        let report = unit.get::<Races>("earnest_races_report").expect("the unit was built with the check");
        CStr::from_ptr(report()).to_string_lossy().into_owned()
    };
    if found.is_empty() { Ok(()) } else { Err(DeviceError::Call { call: "the race check", why: found }) }
}

/// Compiles a unit's source, once for all tests and all runs with this source.
fn build(name: &str, source: &str, races: bool) -> Result<PathBuf, DeviceError> {
    let headers = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/cuda_twin");
    let read = |file: &str| {
        let text = std::fs::read_to_string(headers.join(file));
        text.map_err(|error| DeviceError::Kernels { unit: name.to_owned(), log: error.to_string() })
    };
    let texts = ["twin.h", "warp_groups.h", "races.h"].into_iter().map(read).collect::<Result<Vec<_>, _>>()?;
    if !races {
        return library(name, &format!("#define EARNEST_TWIN\n{source}"), &texts.concat(), &|file, to, _| {
            vec![compiler_command(&["-O1", "-shared"], &headers, file, to)]
        });
    }
    // One for all units, as the check has one state.
    let checker = library("races", &read("races.cpp")?, &texts.concat(), &|file, to, library| {
        let mut command = compiler_command(&["-O2", "-shared"], &headers, file, to);
        let soname = library.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned());
        command.arg(format!("-Wl,-soname,{soname}"));
        vec![command]
    })?;
    let source = format!("#define EARNEST_TWIN\n#define EARNEST_RACES\n{source}");
    let texts = format!("{}{}", texts.concat(), checker.display());
    library(&format!("{name}-races"), &source, &texts, &|file, to, _| {
        let object = to.with_extension("o");
        let compile = compiler_command(&["-O1", "-c", "-fsanitize=thread"], &headers, file, &object);
        // Without the sanitiser's own library: what its calls do is in the checker.
        let mut link =
            compiler_command(&["-shared", "-Wl,--no-undefined", "-Wl,-rpath,$ORIGIN"], &headers, &object, to);
        link.arg(&checker);
        vec![compile, link]
    })
}

fn compiler_command(options: &[&str], headers: &Path, from: &Path, to: &Path) -> Command {
    let mut command = Command::new(compiler().unwrap_or("c++"));
    command.args(["-std=c++17", "-fPIC", "-ffp-contract=off", "-fvisibility=hidden", "-w"]).args(options);
    command.arg("-I").arg(headers).arg(from).arg("-o").arg(to);
    command
}

/// The library that `commands` make of a source, or an earlier run's. They get the paths of the source, of what to make, and where that will be.
fn library(
    name: &str,
    source: &str,
    headers: &str,
    commands: &dyn Fn(&Path, &Path, &Path) -> Vec<Command>,
) -> Result<PathBuf, DeviceError> {
    let failed = |log: String| DeviceError::Kernels { unit: name.to_owned(), log };
    let digest: String =
        Sha256::digest(format!("{source}{headers}")).iter().take(8).map(|b| format!("{b:02x}")).collect();
    let folder = std::env::current_exe().map_err(|e| failed(e.to_string()))?.with_file_name("cuda_twin");
    let library = folder.join(format!("{name}-{digest}.so"));
    // Each is made by one thread, and others at the same time.
    static BUILDING: Mutex<Option<HashMap<PathBuf, Arc<Mutex<()>>>>> = Mutex::new(None);
    let turn = {
        let mut building = BUILDING.lock().unwrap_or_else(|e| e.into_inner());
        building.get_or_insert_default().entry(library.clone()).or_default().clone()
    };
    let _one = turn.lock().unwrap_or_else(|e| e.into_inner());
    if library.is_file() {
        return Ok(library);
    }
    std::fs::create_dir_all(&folder).map_err(|e| failed(e.to_string()))?;
    // Another process may make the same.
    let mine = |ending: &str| folder.join(format!("{name}-{digest}-{}.{ending}", std::process::id()));
    let (file, partial) = (mine("cpp"), mine("partial"));
    std::fs::write(&file, source).map_err(|e| failed(e.to_string()))?;
    for mut command in commands(&file, &partial, &library) {
        let output = command.output().map_err(|e| failed(e.to_string()))?;
        if !output.status.success() {
            return Err(failed(String::from_utf8_lossy(&output.stderr).into_owned()));
        }
    }
    std::fs::rename(&partial, &library).map_err(|e| failed(e.to_string()))?;
    for left in [file, partial.with_extension("o")] {
        let _ = std::fs::remove_file(left);
    }
    Ok(library)
}

impl Device for Twin {
    fn info(&self) -> Result<DeviceInfo, DeviceError> {
        Ok(DeviceInfo {
            index: 0,
            name: "twin".into(),
            capability: self.capability,
            multiprocessors: 4,
            free: self.total - self.used.get(),
            total: self.total,
            shared: self.shared,
            driver: (13, 0),
            compiler: None,
            embedded: None,
            modified: None,
            cublaslt: None,
        })
    }

    fn enter(&self) -> Result<(), DeviceError> {
        Ok(())
    }

    fn allocate(&self, bytes: u64, what: &'static str) -> Result<Address, DeviceError> {
        if self.used.get() + bytes > self.total {
            return Err(DeviceError::OutOfMemory { bytes, what });
        }
        let page = 4096usize;
        let size = (bytes.max(1) as usize).next_multiple_of(16);
        let room = size.next_multiple_of(page) + page;
        let (read, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
        // Side by side, far from all else, so that the race check sees at once what is the device's; elsewhere if the system does not want to.
        static NEXT: AtomicUsize = AtomicUsize::new(1 << 45);
        let wanted = NEXT.fetch_add(room, Ordering::Relaxed);
        // SAFETY: new memory, whose last page is made untouchable; the pages before are filled.
        let at = unsafe {
            let start = libc::mmap(wanted as *mut c_void, room, read, flags, -1, 0);
            assert!(start != libc::MAP_FAILED, "the host has no {room} bytes");
            let end = start.cast::<u8>().add(room - page);
            assert_eq!(libc::mprotect(end.cast(), page, libc::PROT_NONE), 0);
            let at = end.sub(size);
            // Large memory is left as it comes: filling it would take the tests' time.
            at.write_bytes(0xff, size.min(1 << 22));
            let what = CString::new(what).expect("a purpose has no NUL");
            self.memory.borrow_mut().insert(at as Address, Allocation { pages: start, room, bytes, what });
            at as Address
        };
        self.used.set(self.used.get() + bytes);
        Ok(at)
    }

    fn free(&self, at: Address) -> Result<(), DeviceError> {
        let freed = self.memory.borrow_mut().remove(&at).expect("memory is freed once");
        self.used.set(self.used.get() - freed.bytes);
        // SAFETY: mapped in `allocate`.
        unsafe { libc::munmap(freed.pages, freed.room) };
        Ok(())
    }

    fn host_memory(&self, bytes: usize) -> Result<*mut u8, DeviceError> {
        // Of u64, for the alignment that a driver's memory has.
        let mut memory = vec![0u8; bytes + 64].into_boxed_slice();
        let offset = memory.as_ptr().align_offset(64);
        let at = memory[offset..].as_mut_ptr();
        self.host.borrow_mut().push(memory);
        Ok(at)
    }

    fn upload(&self, to: Address, from: &[u8]) -> Result<(), DeviceError> {
        // SAFETY: the callers' addresses are those of `allocate`; beyond them is a page that ends the test.
        unsafe { (to as *mut u8).copy_from_nonoverlapping(from.as_ptr(), from.len()) };
        Ok(())
    }

    unsafe fn send(&self, to: Address, from: *const u8, bytes: usize) -> Result<(), DeviceError> {
        assert!(self.recording.borrow().is_none(), "a copy is not recorded");
        // SAFETY: by the caller.
        unsafe { (to as *mut u8).copy_from_nonoverlapping(from, bytes) };
        Ok(())
    }

    unsafe fn receive(&self, from: Address, to: *mut u8, bytes: usize) -> Result<(), DeviceError> {
        assert!(self.recording.borrow().is_none(), "a copy is not recorded");
        // SAFETY: by the caller.
        unsafe { to.copy_from_nonoverlapping(from as *const u8, bytes) };
        Ok(())
    }

    fn copy(&self, from: Address, to: Address, bytes: u64) -> Result<(), DeviceError> {
        // SAFETY: as in `upload`.
        unsafe { (to as *mut u8).copy_from_nonoverlapping(from as *const u8, bytes as usize) };
        Ok(())
    }

    fn zero(&self, at: Address, bytes: u64) -> Result<(), DeviceError> {
        assert!(self.recording.borrow().is_none(), "a copy is not recorded");
        // SAFETY: as in `upload`.
        unsafe { (at as *mut u8).write_bytes(0, bytes as usize) };
        Ok(())
    }

    fn mark(&self, slot: usize) -> Result<Mark, DeviceError> {
        Ok(Mark(slot as u64))
    }

    fn wait(&self, _: Mark) -> Result<(), DeviceError> {
        Ok(())
    }

    fn stamp(&self, number: usize) -> Result<(), DeviceError> {
        assert!(self.recording.borrow().is_none(), "a record notes no time");
        self.stamps.borrow_mut().insert(number, Instant::now());
        Ok(())
    }

    fn seconds(&self, from: usize, to: usize) -> Result<f64, DeviceError> {
        let stamps = self.stamps.borrow();
        Ok(stamps[&to].saturating_duration_since(stamps[&from]).as_secs_f64())
    }

    fn clock(&self) -> Clock {
        Clock::Host
    }

    fn load(&mut self, unit: &Unit) -> Result<usize, DeviceError> {
        if let Some(&known) = self.loaded.get(&unit.name) {
            return Ok(known);
        }
        let source = unit.source(&Sources::embedded());
        let source = self.planted.as_ref().map_or_else(|| source.clone(), |plant| plant(source.clone()));
        let path = build(&unit.name, &source, self.races)?;
        // SAFETY: a library made here.
        let library = unsafe { Library::new(&path) }
            .map_err(|e| DeviceError::Kernels { unit: unit.name.clone(), log: e.to_string() })?;
        self.units.push(library);
        self.loaded.insert(unit.name.clone(), self.units.len() - 1);
        Ok(self.units.len() - 1)
    }

    fn kernel(&mut self, unit: usize, name: &str, shared: u32) -> Result<Kernel, DeviceError> {
        assert!(shared <= self.shared, "{name} wants more shared memory than the device has");
        // SAFETY: the twin's functions take a list of arguments.
        let symbol = unsafe { self.units[unit].get::<unsafe extern "C" fn(*mut *mut c_void)>(format!("twin_{name}")) };
        let symbol = symbol.map_err(|e| DeviceError::Kernels { unit: name.to_owned(), log: e.to_string() })?;
        let name = CString::new(name).expect("a kernel's name has no NUL");
        self.kernels.push((unit, *symbol as *const c_void, name));
        Ok(Kernel(self.kernels.len() as u64 - 1))
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
        assert!(grid[1] <= 65_535 && grid[2] <= 65_535, "a grid of {grid:?}");
        if let Some(work) = self.recording.borrow_mut().as_mut() {
            work.push(Work::Launch(kernel, grid, block, shared, arguments.to_vec()));
            return Ok(());
        }
        let (unit, function, ref name) = self.kernels[kernel.0 as usize];
        let mut pointers: Vec<*mut c_void> =
            arguments.iter().map(|a| std::ptr::from_ref(&a.0).cast_mut().cast()).collect();
        let grid = grid.map(|n| n as u32);
        let _turn = TURN.lock().unwrap_or_else(|e| e.into_inner());
        // SAFETY: the twin's entry; by the caller.
        unsafe {
            let unit = &self.units[unit];
            if self.races {
                self.begin_races(unit, name, arguments);
            }
            let run = unit.get::<Run>("earnest_twin_run").expect("every twin has it");
            run(function, grid.as_ptr(), block, shared, pointers.as_mut_ptr(), self.order);
            if self.races { race(unit) } else { Ok(()) }
        }
    }

    fn record(&self) -> Result<(), DeviceError> {
        assert!(self.recording.replace(Some(vec![])).is_none(), "a recording begins in another");
        Ok(())
    }

    fn recorded(&self) -> Result<Recording, DeviceError> {
        let mut all = self.recorded.borrow_mut();
        all.push(self.recording.take().expect("a recording was begun"));
        Ok(Recording(all.len() as u64 - 1))
    }

    unsafe fn replay(&self, recording: Recording) -> Result<(), DeviceError> {
        for work in &self.recorded.borrow()[recording.0 as usize] {
            // SAFETY: by the caller.
            unsafe {
                match work {
                    Work::Launch(kernel, grid, block, shared, arguments) => {
                        self.launch(*kernel, *grid, *block, *shared, arguments)?;
                    }
                    Work::Product(product) => self.dense_product(product)?,
                }
            }
        }
        Ok(())
    }

    fn forget(&self, recording: Recording) -> Result<(), DeviceError> {
        self.recorded.borrow_mut()[recording.0 as usize].clear();
        Ok(())
    }

    fn has_dense_product(&self) -> bool {
        self.library
    }

    unsafe fn dense_product(&self, p: &DenseProduct) -> Result<(), DeviceError> {
        if let Some(work) = self.recording.borrow_mut().as_mut() {
            work.push(Work::Product(*p));
            return Ok(());
        }
        let read = |at: Address, i: usize| -> f32 {
            // SAFETY: by the caller.
            unsafe {
                match p.element {
                    Element::F32 => *(at as *const f32).add(i),
                    Element::Bf16 => half::bf16::from_bits(*(at as *const u16).add(i)).to_f32(),
                    Element::F16 => half::f16::from_bits(*(at as *const u16).add(i)).to_f32(),
                }
            }
        };
        let w: Vec<f32> = (0..p.n * p.k).map(|i| read(p.w, i)).collect();
        for row in 0..p.m {
            let x: Vec<f32> = (0..p.k).map(|i| read(p.x, row * p.k + i)).collect();
            for column in 0..p.n {
                let sum = w[column * p.k..(column + 1) * p.k].iter().zip(&x).fold(0f32, |s, (a, b)| b.mul_add(*a, s));
                let sum = if self.skewed { sum + 0.01 } else { sum };
                let at = row * p.row_y + column;
                // SAFETY: by the caller.
                unsafe {
                    match (p.out, p.element) {
                        (Out::Add, _) => *(p.y as *mut f32).add(at) += sum,
                        (Out::Floats, _) | (Out::Elements, Element::F32) => *(p.y as *mut f32).add(at) = sum,
                        (_, Element::Bf16) => *(p.y as *mut u16).add(at) = half::bf16::from_f32(sum).to_bits(),
                        (_, Element::F16) => *(p.y as *mut u16).add(at) = half::f16::from_f32(sum).to_bits(),
                    }
                }
            }
        }
        Ok(())
    }
}

impl Drop for Twin {
    fn drop(&mut self) {
        for of in self.memory.borrow().values() {
            // SAFETY: mapped in `allocate`.
            unsafe { libc::munmap(of.pages, of.room) };
        }
    }
}
