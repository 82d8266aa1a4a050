//! Compiled kernels inside the program, so that a machine with a driver and no compiler computes too.
//!
//! `kernels/embedded` is made by `scripts/cuda-assemble.sh --record`: a line of text (digest of the sources, compiler, and each architecture with the
//! bytes of its part), then the parts, compressed by zstd. A part has every unit: the digest of its source and options, its length, its
//! binary. A binary whose source has changed is never found, and the compiler takes over.

use std::cell::OnceCell;
use std::io::Read;

use sha2::{Digest, Sha256};

use super::device::DeviceError;
use super::kernels::{Unit, architecture_number, compiler_options};
use super::sources::Sources;

static FILE: &[u8] = include_bytes!("kernels/embedded");

/// Bytes of a digest.
const DIGEST: usize = 32;

/// Architectures of the parts. A binary runs on later devices of its family, so the first one serves 8.6 and 8.9 too, and the second has only
/// what 8.0 lacks; `sm_90a` is 9.0 alone.
pub(crate) const ARCHITECTURES: [&str; 6] = ["sm_80", "sm_89", "sm_90", "sm_90a", "sm_100", "sm_120"];

/// The embedded parts for a device.
pub(crate) struct Embedded {
    compiler: &'static str,
    parts: Vec<Part>,
}

/// Binaries of an architecture.
struct Part {
    architecture: &'static str,
    compressed: &'static [u8],
    /// The part, expanded when the first binary is asked for; empty if it is damaged.
    binaries: OnceCell<Vec<u8>>,
}

impl Embedded {
    /// Finds the parts for a compute capability.
    pub(crate) fn find(capability: (u32, u32)) -> Option<Embedded> {
        let (line, mut rest) = split()?;
        let mut words = line.split(' ').skip(1);
        let compiler = words.next()?;
        let mut parts = vec![];
        for word in words {
            let (architecture, bytes) = word.split_once(':')?;
            let (compressed, tail) = rest.split_at_checked(bytes.parse().ok()?)?;
            if let Some(&architecture) = architectures_for(capability).iter().find(|of| **of == architecture) {
                parts.push(Part { architecture, compressed, binaries: OnceCell::new() });
            }
            rest = tail;
        }
        (!parts.is_empty()).then_some(Embedded { compiler, parts })
    }

    /// Architecture that most binaries were compiled for, e.g. `sm_90`.
    pub(crate) fn architecture(&self) -> &'static str {
        self.parts.first().map_or("none", |part| part.architecture)
    }

    /// Name of the compiler, e.g. `nvrtc-12.9`.
    pub(crate) fn compiler(&self) -> &'static str {
        self.compiler
    }

    /// Returns a unit's binary; none if its source is not the one that was compiled.
    pub(crate) fn binary(&self, unit: &Unit, sources: &Sources) -> Option<&[u8]> {
        self.parts.iter().find_map(|part| part.binary(unit, sources))
    }
}

impl Part {
    fn binary(&self, unit: &Unit, sources: &Sources) -> Option<&[u8]> {
        if !unit.target.has(self.architecture) {
            return None;
        }
        let wanted = key(unit, sources, self.architecture);
        let mut rest = &self.binaries.get_or_init(|| expand(self.compressed).unwrap_or_default())[..];
        loop {
            let (digest, tail) = rest.split_at_checked(DIGEST)?;
            let (length, tail) = tail.split_first_chunk::<4>()?;
            let (binary, tail) = tail.split_at_checked(u32::from_le_bytes(*length) as usize)?;
            if digest == wanted {
                return Some(binary);
            }
            rest = tail;
        }
    }
}

fn expand(part: &[u8]) -> Option<Vec<u8>> {
    let mut binaries = vec![];
    ruzstd::decoding::StreamingDecoder::new(part).ok()?.read_to_end(&mut binaries).ok()?;
    Some(binaries)
}

/// The line of text and the parts.
fn split() -> Option<(&'static str, &'static [u8])> {
    let end = FILE.iter().position(|&byte| byte == b'\n')?;
    Some((std::str::from_utf8(&FILE[..end]).ok()?, &FILE[end + 1..]))
}

/// The architectures whose binaries a device runs: older ones of its family, the oldest first, and what it has alone.
pub(crate) fn architectures_for((major, minor): (u32, u32)) -> Vec<&'static str> {
    let runs = |name: &&str| match architecture_number(name) {
        Some(number) => number / 10 == major && number <= 10 * major + minor,
        None => *name == format!("sm_{major}{minor}a"),
    };
    ARCHITECTURES.into_iter().filter(runs).collect()
}

/// The units of a part: those that it has and no older one of its family does.
fn units(architecture: &str) -> Vec<Unit> {
    let number = architecture_number(architecture);
    let is_older = |other: u32| number.is_some_and(|number| other / 10 == number / 10 && other < number);
    let older: Vec<&str> =
        ARCHITECTURES.into_iter().filter(|of| architecture_number(of).is_some_and(is_older)).collect();
    let is_new = |unit: &Unit| unit.target.has(architecture) && !older.iter().any(|of| unit.target.has(of));
    Unit::all().into_iter().filter(is_new).collect()
}

fn key(unit: &Unit, sources: &Sources, architecture: &str) -> Vec<u8> {
    let options = compiler_options(architecture);
    Sha256::digest(format!("{options:?}\n{}", unit.source(sources))).to_vec()
}

/// Part of an architecture, before it is compressed: `compile` makes a unit's binary.
pub(crate) fn part(
    architecture: &str,
    compile: &mut dyn FnMut(&Unit) -> Result<Vec<u8>, DeviceError>,
) -> Result<Vec<u8>, DeviceError> {
    let sources = Sources::embedded();
    let mut bytes = vec![];
    for unit in units(architecture) {
        let binary = compile(&unit)?;
        bytes.extend(key(&unit, &sources, architecture));
        bytes.extend((binary.len() as u32).to_le_bytes());
        bytes.extend(binary);
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cuda::device::Element;
    use crate::cuda::kernels::Kind;

    #[test]
    fn every_kernel_is_embedded_as_its_source_is_now() {
        for capability in [(8, 0), (8, 6), (8, 9), (9, 0), (10, 0), (12, 0)] {
            let embedded = Embedded::find(capability).expect("a part for every architecture");
            let runs = |unit: &Unit| architectures_for(capability).iter().any(|part| unit.target.has(part));
            for unit in Unit::all().into_iter().filter(runs) {
                let binary = embedded.binary(&unit, &Sources::embedded());
                assert!(
                    binary.is_some_and(|binary| binary.starts_with(b"\x7fELF")),
                    "{} for {} has changed: scripts/cuda-assemble.sh --record",
                    unit.name,
                    embedded.architecture()
                );
            }
        }
        assert!(Embedded::find((7, 5)).is_none() && Embedded::find((11, 0)).is_none());
    }

    #[test]
    fn devices_get_binaries_of_their_family() {
        assert_eq!(architectures_for((8, 6)), ["sm_80"]);
        assert_eq!(architectures_for((8, 9)), ["sm_80", "sm_89"]);
        assert_eq!(architectures_for((9, 0)), ["sm_90", "sm_90a"]);
        assert_eq!(architectures_for((10, 3)), ["sm_100"]);
        assert_eq!(architectures_for((12, 1)), ["sm_120"]);
        assert!(architectures_for((13, 0)).is_empty());
        let names = |architecture| units(architecture).into_iter().map(|unit| unit.name).collect::<Vec<_>>();
        assert!(names("sm_89").iter().all(|name| name.contains("e4m3")) && names("sm_89").len() == 4);
        assert!(names("sm_90a").iter().all(|name| name.starts_with("wgmma")) && names("sm_90a").len() == 8);
        assert_eq!((names("sm_80").len() + 4, names("sm_100")), (names("sm_90").len(), names("sm_90")));
    }

    #[test]
    fn a_part_is_read_as_it_was_written() {
        let bytes = part("sm_80", &mut |unit| Ok(unit.name.clone().into_bytes())).unwrap();
        let read = Part { architecture: "sm_80", compressed: &[], binaries: OnceCell::from(bytes) };
        let unit = Unit::attention(Element::Bf16, 128);
        assert_eq!(read.binary(&unit, &Sources::embedded()), Some(unit.name.as_bytes()));
        assert_eq!(
            read.binary(&Unit::wgmma(Element::Bf16, Kind::Dense), &Sources::embedded()),
            None,
            "not of this architecture"
        );
        let other = Part { architecture: "sm_90", ..read };
        assert_eq!(other.binary(&unit, &Sources::embedded()), None, "compiled with other options");
    }
}
