//! Kernels compiled by NVRTC, kept on disk by architecture, compiler and source.

use std::ffi::{CStr, CString, c_char};
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use super::device::{DeviceError, DeviceInfo};
use super::embedded::Embedded;
use super::kernels::{Unit, compiler_options};
use super::library::Compiler;
use super::sources::Sources;

/// Bytes of the digest before a cached binary.
const DIGEST: usize = 32;

/// Prefix of the option that asks for portable code (PTX), which the driver compiles.
const PORTABLE: &[u8] = b"--gpu-architecture=compute_";

/// Compiles units for one architecture.
pub(crate) struct KernelCompiler {
    architecture: String,
    /// Folder for compiled binaries; none keeps nothing.
    folder: Option<PathBuf>,
    compiler: Result<Compiler, DeviceError>,
    sources: Sources,
    embedded: Option<Embedded>,
}

impl KernelCompiler {
    /// Creates a compiler for a compute capability and a driver of this major version of CUDA.
    ///
    /// # Errors
    /// [`DeviceError::KernelFile`] if the folder of `EARNEST_KERNELS` lacks a file.
    pub(crate) fn new(
        capability: (u32, u32),
        driver: u32,
        folder: Option<PathBuf>,
    ) -> Result<KernelCompiler, DeviceError> {
        let compiler = Compiler::open(driver);
        let known = compiler.as_ref().map(architectures).unwrap_or_default();
        let (sources, embedded) = (Sources::from_environment()?, Embedded::find(capability));
        Ok(KernelCompiler { architecture: architecture(capability, &known), folder, compiler, sources, embedded })
    }

    /// Adds what it knows of the kernels to a device's description.
    pub(crate) fn describe(&self, info: &mut DeviceInfo) {
        info.compiler = self.version();
        info.modified = self.sources.modified().map(str::to_owned);
        let embedded = self.embedded.as_ref().filter(|_| info.modified.is_none());
        info.embedded = embedded.map(|embedded| format!("{} by {}", embedded.architecture(), embedded.compiler()));
    }

    /// Returns a unit's binary inside the program, if there is one for this device and source.
    pub(crate) fn embedded(&self, unit: &Unit) -> Option<&[u8]> {
        self.embedded.as_ref()?.binary(unit, &self.sources)
    }

    /// Target architecture, e.g. `sm_90`.
    pub(crate) fn architecture(&self) -> &str {
        &self.architecture
    }

    /// The compiler's version.
    pub(crate) fn version(&self) -> Option<(u32, u32)> {
        version(self.compiler.as_ref().ok()?)
    }

    /// Returns a unit's binary (cubin), from the folder or compiled now.
    pub(crate) fn binary(&self, unit: &Unit) -> Result<Vec<u8>, DeviceError> {
        let source = unit.source(&self.sources);
        let compiler = self.compiler.as_ref().map_err(DeviceError::clone)?;
        let version = version(compiler).unwrap_or_default();
        let architecture = unit.architecture(&self.architecture);
        let options = compiler_options(architecture);
        let key = Sha256::digest(format!("{version:?}\n{options:?}\n{source}"));
        let short: String = key.iter().take(12).map(|b| format!("{b:02x}")).collect();
        let path = self.folder.as_ref().map(|f| f.join(format!("{}-{architecture}-{short}.cubin", unit.name)));
        if let Some(binary) = path.as_deref().and_then(read) {
            return Ok(binary);
        }
        let binary = compile(compiler, &unit.name, &source, &options)?.0;
        if let Some(path) = &path {
            keep(path, &binary);
        }
        Ok(binary)
    }
}

/// Architectures that the compiler knows, e.g. 90.
fn architectures(compiler: &Compiler) -> Vec<u32> {
    let mut count = 0;
    // SAFETY: an integer to write, then as many as it says.
    unsafe {
        if (compiler.architectures)(&mut count) != 0 || count <= 0 {
            return vec![];
        }
        let mut list = vec![0; count as usize];
        match (compiler.architecture_list)(list.as_mut_ptr()) {
            0 => list.into_iter().map(|a| a as u32).collect(),
            _ => vec![],
        }
    }
}

/// The architecture for a device: its own or the nearest older one of its family, whose binaries it runs; of a family that the
/// compiler is too old for, the newest it knows, as portable code (PTX) that the driver compiles.
fn architecture((major, minor): (u32, u32), known: &[u32]) -> String {
    let own = 10 * major + minor;
    let newest = |of: &dyn Fn(u32) -> bool| known.iter().copied().filter(|&a| a <= own && of(a)).max();
    match (newest(&|a| a / 10 == major), newest(&|_| true)) {
        (Some(binary), _) => format!("sm_{binary}"),
        (None, Some(portable)) => format!("compute_{portable}"),
        // The compiler will say what it thinks of it.
        (None, None) => format!("sm_{own}"),
    }
}

/// The compiler's version.
pub(crate) fn version(compiler: &Compiler) -> Option<(u32, u32)> {
    let (mut major, mut minor) = (0, 0);
    // SAFETY: two integers to write.
    let code = unsafe { (compiler.version)(&mut major, &mut minor) };
    (code == 0).then_some((major as u32, minor as u32))
}

/// Reads a kept binary, if it is whole.
fn read(path: &Path) -> Option<Vec<u8>> {
    let bytes = std::fs::read(path).ok()?;
    let (digest, binary) = bytes.split_at_checked(DIGEST)?;
    (Sha256::digest(binary).as_slice() == digest).then(|| binary.to_vec())
}

/// Keeps a binary. A folder that can not be written only costs the next start its time.
fn keep(path: &Path, binary: &[u8]) {
    let Some(folder) = path.parent() else { return };
    let mut bytes = Sha256::digest(binary).to_vec();
    bytes.extend_from_slice(binary);
    // Under a name of its own first: another process may read at the same time.
    let partial = path.with_extension(format!("{}.partial", std::process::id()));
    let written = std::fs::create_dir_all(folder).and_then(|()| std::fs::write(&partial, bytes));
    if written.and_then(|()| std::fs::rename(&partial, path)).is_err() {
        let _ = std::fs::remove_file(&partial);
    }
}

/// Compiles a source: (binary, the compiler's log).
pub(crate) fn compile(
    compiler: &Compiler,
    name: &str,
    source: &str,
    options: &[String],
) -> Result<(Vec<u8>, String), DeviceError> {
    let failed = |log: String| DeviceError::Kernels { unit: name.to_owned(), log };
    let words = |code: i32| {
        // SAFETY: the answer is a constant string of the library.
        let text = unsafe { CStr::from_ptr((compiler.error_string)(code)) };
        text.to_string_lossy().into_owned()
    };
    let text = CString::new(source).map_err(|_| failed("the source holds a zero byte".into()))?;
    let file = CString::new(format!("{name}.cu")).map_err(|_| failed("the name holds a zero byte".into()))?;
    let options: Vec<CString> = options.iter().filter_map(|o| CString::new(o.as_str()).ok()).collect();
    let pointers: Vec<*const c_char> = options.iter().map(|o| o.as_ptr()).collect();
    let mut program = std::ptr::null_mut();
    // SAFETY: strings end with zero and outlive the calls; sizes are those the library names; the program is destroyed once, at the end.
    unsafe {
        let code = (compiler.create)(&mut program, text.as_ptr(), file.as_ptr(), 0, std::ptr::null(), std::ptr::null());
        if code != 0 {
            return Err(failed(words(code)));
        }
        let code = (compiler.compile)(program, pointers.len() as i32, pointers.as_ptr());
        let mut size = 0;
        let mut log = String::new();
        if (compiler.log_size)(program, &mut size) == 0 && size > 1 {
            let mut bytes = vec![0u8; size];
            if (compiler.log)(program, bytes.as_mut_ptr().cast()) == 0 {
                log = String::from_utf8_lossy(&bytes[..size - 1]).trim().to_owned();
            }
        }
        let mut binary = Err(failed(if log.is_empty() { words(code) } else { format!("{}: {log}", words(code)) }));
        if code == 0 {
            let portable = options.iter().any(|o| o.to_bytes().starts_with(PORTABLE));
            let (size_of, get) = match portable {
                // A text that ends with zero, as the driver wants it.
                true => (compiler.portable_size, compiler.portable),
                false => (compiler.binary_size, compiler.binary),
            };
            let mut size = 0;
            let got = size_of(program, &mut size);
            let mut bytes = vec![0u8; size];
            binary = if got == 0 && size > 0 && get(program, bytes.as_mut_ptr().cast()) == 0 {
                Ok((bytes, log))
            } else {
                Err(failed(format!("no binary for {options:?}: {}", words(got))))
            };
        }
        (compiler.destroy)(&mut program);
        binary
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_gets_binaries_of_its_family_or_portable_code() {
        let twelve = [50, 60, 70, 75, 80, 86, 87, 89, 90];
        assert_eq!(architecture((9, 0), &twelve), "sm_90");
        assert_eq!(architecture((8, 9), &twelve), "sm_89");
        assert_eq!(architecture((8, 8), &twelve), "sm_87");
        assert_eq!(architecture((10, 3), &[80, 90, 100, 120]), "sm_100");
        assert_eq!(architecture((12, 0), &twelve), "compute_90");
        assert_eq!(architecture((7, 5), &[80, 90]), "sm_75");
        assert!(compiler_options("compute_90")[0].as_bytes().starts_with(PORTABLE));
    }

    #[test]
    fn a_kept_binary_is_read_back_and_a_damaged_one_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("deep").join("a.cubin");
        keep(&path, b"binary");
        assert_eq!(read(&path).unwrap(), b"binary");
        let mut bytes = std::fs::read(&path).unwrap();
        *bytes.last_mut().unwrap() ^= 1;
        std::fs::write(&path, bytes).unwrap();
        assert_eq!(read(&path), None);
        std::fs::write(&path, b"short").unwrap();
        assert_eq!(read(&path), None);
        assert_eq!(std::fs::read_dir(path.parent().unwrap()).unwrap().count(), 1, "no partial file is left");
    }
}
