//! CPython as the interpreter: the probe of an executable, and its invocation for a sample.
use std::ffi::{CString, c_char};
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::{Command, Stdio};

use super::HARNESS;
use super::SandboxError;
use super::protocol::Cpython;

const HARNESS_MAIN: &str = include_str!("harness_main.py");

/// Prints JSON: executable, version, and the files that the interpreter maps and imports from, once the modules that
/// programs may use are imported.
const PROBE: &str = r#"
import json, os, platform, sys
import array, cmath, decimal, fractions, math, numbers, random, typing
files = {os.path.dirname(os.__file__), "/etc/ld.so.cache"} | {path for path in sys.path if path}
files.add(os.path.realpath(sys.executable))
try:
    with open("/proc/self/maps") as maps:
        files |= {line.split(None, 5)[5].strip() for line in maps if "/" in line}
except OSError:
    pass
print(json.dumps({
    "executable": os.path.realpath(sys.executable),
    "version": platform.python_implementation() + " " + platform.python_version(),
    "readable": sorted(path for path in files if os.path.exists(path) and path.rstrip("/")),
}))
"#;

/// Largest probe output that is read, in bytes.
const MAX_OUTPUT: u64 = 1 << 20;

/// Runs the probe. It has no limits: the user chose the executable.
pub fn probe(python: &Path) -> Result<Cpython, SandboxError> {
    let failed = |reason: String| SandboxError::Python { python: python.to_owned(), reason };
    let mut child = Command::new(python)
        .args(["-I", "-S", "-B", "-c", PROBE])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .map_err(|error| failed(error.to_string()))?;
    let mut printed = Vec::new();
    let read = child.stdout.take().map(|out| out.take(MAX_OUTPUT).read_to_end(&mut printed));
    // An executable that prints without end would never exit.
    if printed.len() as u64 == MAX_OUTPUT {
        child.kill().ok();
    }
    let status = child.wait().map_err(|error| failed(error.to_string()))?;
    if !status.success() || !matches!(read, Some(Ok(_))) {
        return Err(failed(format!("it cannot import the modules that programs may use ({status})")));
    }
    let cpython: Cpython = serde_json::from_slice(&printed)
        .map_err(|_| failed("its output is not that of a Python interpreter".into()))?;
    if !cpython.version.starts_with("CPython 3.") {
        return Err(failed(format!("it is {}, not CPython 3", cpython.version)));
    }
    Ok(cpython)
}

/// Executable, arguments and environment of a sample's interpreter, allocated before the fork.
pub struct Invocation {
    executable: CString,
    arguments: Vec<CString>,
    environment: Vec<CString>,
}

impl Invocation {
    /// Allocates the arguments; `None` if the path contains a NUL.
    pub fn new(cpython: &Cpython) -> Option<Self> {
        let executable = CString::new(cpython.executable.as_os_str().as_bytes()).ok()?;
        // No -I or -E: the environment holds PYTHONHASHSEED alone, which they would ignore. The empty entry of the search
        // path, the current folder, is removed before anything is imported.
        let script = format!("import sys\nsys.path = [path for path in sys.path if path]\n{HARNESS}\n{HARNESS_MAIN}");
        // The first argument must be the full path: the interpreter locates its library by it.
        let mut arguments = vec![executable.clone()];
        for argument in ["-s", "-S", "-B", "-W", "ignore", "-X", "utf8", "-c", &script] {
            arguments.push(CString::new(argument).ok()?);
        }
        let environment = vec![CString::new("PYTHONHASHSEED=0").ok()?];
        Some(Invocation { executable, arguments, environment })
    }

    /// Replaces the calling process; returns only on failure.
    pub fn execute(&self) {
        let pointers = |texts: &[CString]| -> Vec<*const c_char> {
            texts.iter().map(|text| text.as_ptr()).chain([std::ptr::null()]).collect()
        };
        let (arguments, environment) = (pointers(&self.arguments), pointers(&self.environment));
        // SAFETY: all three are NUL-terminated and outlive the call; both lists end with a null pointer.
        unsafe { libc::execve(self.executable.as_ptr(), arguments.as_ptr(), environment.as_ptr()) };
    }

    /// Standard input of the interpreter: the function's name, a newline, the source.
    pub fn input(source: &str, function: &str) -> Vec<u8> {
        format!("{function}\n{source}").into_bytes()
    }
}
