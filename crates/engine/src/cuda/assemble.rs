//! Compilation of every kernel without a GPU, with the assembler's report on each; kernels that have become slow are errors.

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

/// The only kernel that may spill, and bytes of a thread that it may: results used once per part of attention (docs/cuda.md).
const MAY_SPILL: (&str, u32) = ("attend_tall", 768);

/// Compiles all kernels for an architecture such as `sm_90`: the report on each, and what makes some of them slow, which only a person can mend.
///
/// # Errors
/// [`DeviceError`] if NVRTC is not there or refuses a source.
pub fn assemble(architecture: &str) -> Result<(Vec<Assembled>, Vec<String>), DeviceError> {
    let compiler = Compiler::open(13)?;
    let mut options = compiler_options(architecture);
    options.push("--ptxas-options=-v".into());
    let (mut all, mut slow) = (vec![], vec![]);
    for unit in Unit::all().into_iter().filter(|unit| unit.target.has(architecture)) {
        let (_, log) = compile(&compiler, &unit.name, &unit.source(&Sources::embedded()), &options)?;
        let found = read(&unit.name, &log);
        if found.is_empty() {
            let log = format!("the compiler says nothing of its kernels: {log}");
            return Err(DeviceError::Kernels { unit: unit.name, log });
        }
        slow.extend(slowness(&found, &log).into_iter().map(|what| format!("{}: {what}", unit.name)));
        all.extend(found);
    }
    Ok((all, slow))
}

/// Reasons for which right kernels are slow: spilled registers, and products by warp groups that wait for one another. The assembler only notes it.
fn slowness(kernels: &[Assembled], log: &str) -> Vec<String> {
    let (name, most) = MAY_SPILL;
    let allowed = |kernel: &Assembled| if kernel.kernel == name { most } else { 0 };
    let spilled = kernels.iter().filter(|kernel| kernel.spilled > allowed(kernel));
    let spilled = spilled.map(|k| format!("{} spills {} bytes a thread, at most {}", k.kernel, k.spilled, allowed(k)));
    let serialised = log.lines().filter(|line| line.contains("wgmma") && line.contains("serialized"));
    spilled.chain(serialised.map(|line| line.trim().to_owned())).collect()
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

    #[test]
    fn kernels_that_spill_or_wait_for_their_products_are_named() {
        let spills = |kernel: &str, bytes: u32| {
            let log = format!(
                "ptxas info    : Compiling entry function 'earnest_{kernel}' for 'sm_90'\n    \
                 1024 bytes stack frame, {bytes} bytes spill stores, {bytes} bytes spill loads\n\
                 ptxas info    : Used 255 registers\n"
            );
            slowness(&read("u", &log), &log)
        };
        assert_eq!(spills("norm", 4), ["norm spills 4 bytes a thread, at most 0"]);
        assert_eq!(spills("attend_tall", 772), ["attend_tall spills 772 bytes a thread, at most 768"]);
        assert_eq!((spills("norm", 0), spills("attend_tall", 768)), (vec![], vec![]));
        // One of them does not hide the other.
        let log = "ptxas info    : (C7510) Potential Performance Loss: wgmma.mma_async instructions are serialized due to \
                   insufficient register resources for the wgmma pipeline in the function 'earnest_wgmma_192'\n\
                   ptxas info    : Compiling entry function 'earnest_wgmma_192' for 'sm_90a'\n    \
                   8 bytes stack frame, 8 bytes spill stores, 8 bytes spill loads\n";
        let found = slowness(&read("u", log), log);
        assert!(
            found.len() == 2 && found[0].starts_with("wgmma_192 spills 8") && found[1].contains("serialized"),
            "{found:?}"
        );
    }
}
