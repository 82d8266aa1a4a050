//! Compiled kernels inside the program, so that a machine with a driver and no compiler computes too.
//!
//! `kernels/embedded` is made by `scripts/cuda-assemble.sh --record`: a line of text (digest of the sources, compiler, and each architecture with the
//! bytes of its part), then the parts, compressed by zstd. A part has every unit: the digest of its source and options, its length, its
//! binary. A binary whose source has changed is never found, and the compiler takes over.

use std::cell::OnceCell;
use std::io::Read;

use sha2::{Digest, Sha256};

use super::device::DeviceError;
use super::kernels::{Unit, compiler_options};
use super::sources::Sources;

static FILE: &[u8] = include_bytes!("kernels/embedded");

/// Bytes of a digest.
const DIGEST: usize = 32;

/// Architectures of the parts; a binary runs on later devices of its family, so the first one serves 8.6 and 8.9 too.
pub(crate) const ARCHITECTURES: [&str; 4] = ["sm_80", "sm_90", "sm_100", "sm_120"];

/// The embedded part for a device.
pub(crate) struct Embedded {
    architecture: &'static str,
    compiler: &'static str,
    part: &'static [u8],
    /// The part, expanded when the first binary is asked for; empty if it is damaged.
    binaries: OnceCell<Vec<u8>>,
}

impl Embedded {
    /// Finds the part for a compute capability.
    pub(crate) fn find(capability: (u32, u32)) -> Option<Embedded> {
        let (line, mut parts) = split()?;
        let mut words = line.split(' ').skip(1);
        let compiler = words.next()?;
        let wanted = architecture_for(capability)?;
        for word in words {
            let (architecture, bytes) = word.split_once(':')?;
            let (part, rest) = parts.split_at_checked(bytes.parse().ok()?)?;
            if architecture == wanted {
                return Some(Embedded { architecture, compiler, part, binaries: OnceCell::new() });
            }
            parts = rest;
        }
        None
    }

    /// Architecture that the binaries were compiled for, e.g. `sm_90`.
    pub(crate) fn architecture(&self) -> &'static str {
        self.architecture
    }

    /// Name of the compiler, e.g. `nvrtc-12.9`.
    pub(crate) fn compiler(&self) -> &'static str {
        self.compiler
    }

    /// Returns a unit's binary; none if its source is not the one that was compiled.
    pub(crate) fn binary(&self, unit: &Unit, sources: &Sources) -> Option<&[u8]> {
        let wanted = key(unit, sources, self.architecture);
        let mut rest = &self.binaries.get_or_init(|| expand(self.part).unwrap_or_default())[..];
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

/// The architecture whose binaries a device runs: the nearest older one of its family.
pub(crate) fn architecture_for((major, minor): (u32, u32)) -> Option<&'static str> {
    let number = |name: &str| name.strip_prefix("sm_").and_then(|n| n.parse::<u32>().ok()).unwrap_or(u32::MAX);
    let fits = |name: &&str| number(name) / 10 == major && number(name) <= 10 * major + minor;
    ARCHITECTURES.into_iter().filter(fits).max_by_key(|name| number(name))
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
    for unit in Unit::all() {
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

    #[test]
    fn every_kernel_is_embedded_as_its_source_is_now() {
        for capability in [(8, 0), (8, 6), (8, 9), (9, 0), (10, 0), (12, 0)] {
            let embedded = Embedded::find(capability).expect("a part for every architecture");
            for unit in Unit::all() {
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
        assert_eq!(architecture_for((8, 9)), Some("sm_80"));
        assert_eq!(architecture_for((10, 3)), Some("sm_100"));
        assert_eq!(architecture_for((12, 1)), Some("sm_120"));
        assert_eq!(architecture_for((13, 0)), None);
    }

    #[test]
    fn a_part_is_read_as_it_was_written() {
        let bytes = part("sm_80", &mut |unit| Ok(unit.name.clone().into_bytes())).unwrap();
        let read = Embedded { architecture: "sm_80", compiler: "none", part: &[], binaries: OnceCell::from(bytes) };
        let unit = Unit::attention(Element::Bf16, 128);
        assert_eq!(read.binary(&unit, &Sources::embedded()), Some(unit.name.as_bytes()));
        let other = Embedded { architecture: "sm_90", ..read };
        assert_eq!(other.binary(&unit, &Sources::embedded()), None, "compiled with other options");
    }
}
