//! Compilation of every kernel without a GPU, with the assembler's report on each.

use super::compile::{compile, version};
use super::device::DeviceError;
use super::embedded;
use super::kernels::{Unit, compiler_options};
use super::library::Compiler;
use super::sources::Sources;

/// The assembler's report on a kernel.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Assembled {
    /// The sources it was compiled with.
    pub unit: String,
    /// Its name.
    pub kernel: String,
    /// Registers of a thread.
    pub registers: u32,
    /// Bytes that did not fit into registers, stored once or more for each thread.
    pub spilled: u32,
    /// Bytes of shared memory, without what a launch adds.
    pub shared: u32,
}

/// Compiles all kernels for an architecture such as `sm_90`.
///
/// # Errors
/// [`DeviceError`] if NVRTC is not there or refuses a source.
pub fn assemble(architecture: &str) -> Result<Vec<Assembled>, DeviceError> {
    let compiler = Compiler::open(13)?;
    let mut options = compiler_options(architecture);
    options.push("--ptxas-options=-v".into());
    let mut all = vec![];
    for unit in Unit::all().into_iter().filter(|unit| unit.target.has(architecture)) {
        let (_, log) = compile(&compiler, &unit.name, &unit.source(&Sources::embedded()), &options)?;
        let found = read(&unit.name, &log);
        if found.is_empty() {
            let log = format!("the compiler says nothing of its kernels: {log}");
            return Err(DeviceError::Kernels { unit: unit.name, log });
        }
        all.extend(found);
    }
    Ok(all)
}

/// Compiles all kernels for an architecture to be embedded in the program: (the compiler's name, the part of `kernels/embedded` before it is
/// compressed).
///
/// # Errors
/// [`DeviceError`] if NVRTC is not there or refuses a source.
pub fn embeddable(architecture: &str) -> Result<(String, Vec<u8>), DeviceError> {
    let compiler = Compiler::open(13)?;
    let options = compiler_options(architecture);
    let sources = Sources::embedded();
    let part = embedded::part(architecture, &mut |unit| {
        compile(&compiler, &unit.name, &unit.source(&sources), &options).map(|compiled| compiled.0)
    })?;
    let name = version(&compiler).map_or("nvrtc".to_owned(), |(major, minor)| format!("nvrtc-{major}.{minor}"));
    Ok((name, part))
}

/// Reads the assembler's words.
fn read(unit: &str, log: &str) -> Vec<Assembled> {
    let number_before = |line: &str, words: &str| {
        let before = line[..line.find(words)?].trim_end();
        before.rsplit([' ', ',']).next()?.parse::<u32>().ok()
    };
    let mut all: Vec<Assembled> = vec![];
    for line in log.lines() {
        if let Some((_, rest)) = line.split_once("Compiling entry function '") {
            let kernel = rest.split('\'').next().unwrap_or_default().trim_start_matches("earnest_").to_owned();
            all.push(Assembled { unit: unit.to_owned(), kernel, registers: 0, spilled: 0, shared: 0 });
        }
        let Some(last) = all.last_mut() else { continue };
        last.spilled = number_before(line, "bytes spill stores").unwrap_or(last.spilled);
        if line.contains("Used ") {
            last.registers = number_before(line, "registers").unwrap_or(0);
            last.shared = number_before(line, "bytes smem").unwrap_or(0);
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_assembler_is_understood() {
        let log = "ptxas info    : 0 bytes gmem\n\
            ptxas info    : Compiling entry function 'earnest_norm' for 'sm_90'\n\
            ptxas info    : Function properties for earnest_norm\n    \
            768 bytes stack frame, 480 bytes spill stores, 484 bytes spill loads\n\
            ptxas info    : Used 29 registers, used 1 barriers, 128 bytes smem\n";
        let norm = Assembled { unit: "u".into(), kernel: "norm".into(), registers: 29, spilled: 480, shared: 128 };
        assert_eq!(read("u", log), [norm]);
    }
}
