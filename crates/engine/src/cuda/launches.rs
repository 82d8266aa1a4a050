//! The kernels of a decoder's step, loaded.

use super::device::{Device, DeviceError, Element, Kernel};
use super::kernels::{Unit, attention_shared};
use super::options::{Variant, Variants};

/// Kernels by their names in the sources.
pub(crate) struct Kernels {
    pub(crate) embed: Kernel,
    pub(crate) norm: Kernel,
    pub(crate) join: Kernel,
    pub(crate) join_norm: Option<Kernel>,
    pub(crate) add_bias: Kernel,
    pub(crate) width_factors: Kernel,
    pub(crate) place: Kernel,
    pub(crate) activate: Kernel,
    /// Elements of a thread of `activate`.
    pub(crate) activate_each: usize,
    pub(crate) route: Kernel,
    pub(crate) sort_pairs: Kernel,
    pub(crate) expert_tiles: Kernel,
    pub(crate) activate_experts: Kernel,
    pub(crate) combine: Kernel,
    pub(crate) copy_blocks: Kernel,
    pub(crate) cap_logits: Kernel,
    pub(crate) choose: Kernel,
    pub(crate) tall: Kernel,
    pub(crate) wide: Kernel,
    /// Threads of `wide`.
    pub(crate) wide_threads: u32,
    pub(crate) merge: Kernel,
}

/// Shared memory of `join_norm` for rows of `hidden`, if a kernel has so much without asking.
pub(crate) fn row_shared(hidden: usize) -> Option<u32> {
    let bytes = 4 * hidden;
    (bytes <= 47 * 1024).then_some(bytes as u32)
}

impl Kernels {
    /// For rows of `hidden` and heads of `head` dimensions.
    pub(crate) fn load(
        device: &mut dyn Device,
        element: Element,
        hidden: usize,
        head: usize,
        variants: Variants,
    ) -> Result<Kernels, DeviceError> {
        let layers = device.load(&Unit::layers(element))?;
        let attention = device.load(&Unit::attention(element, head))?;
        let (tall_shared, wide_shared) = attention_shared(head);
        let mut of = |name: &str, shared: u32| device.kernel(layers, name, shared);
        let fused = variants.has(Variant::FusedNorms);
        let join_norm = row_shared(hidden).filter(|_| fused).map(|shared| of("join_norm", shared)).transpose()?;
        let (activate, activate_each) = if fused { ("activate_8", 8) } else { ("activate", 1) };
        let mut of = |name: &str| of(name, 0);
        let kernels = Kernels {
            embed: of("embed")?,
            norm: of("norm")?,
            join: of("join")?,
            join_norm,
            add_bias: of("add_bias")?,
            width_factors: of("width_factors")?,
            place: of("place")?,
            activate: of(activate)?,
            activate_each,
            route: of("route")?,
            sort_pairs: of("sort_pairs")?,
            expert_tiles: of("expert_tiles")?,
            activate_experts: of("activate_experts")?,
            combine: of("combine")?,
            copy_blocks: of("copy_blocks")?,
            cap_logits: of("cap_logits")?,
            choose: of("choose")?,
            tall: Kernel(0),
            wide: Kernel(0),
            wide_threads: 128,
            merge: device.kernel(attention, "attend_merge", 0)?,
        };
        if element == Element::F32 {
            let plain = device.kernel(attention, "attend_plain", 0)?;
            return Ok(Kernels { tall: plain, wide: plain, ..kernels });
        }
        let (wide, wide_threads) = wide_kernel(variants);
        Ok(Kernels {
            tall: device.kernel(attention, "attend_tall", tall_shared)?,
            wide: device.kernel(attention, wide, wide_shared)?,
            wide_threads,
            ..kernels
        })
    }
}

/// Name and threads of the kernel for few queries.
pub(crate) fn wide_kernel(variants: Variants) -> (&'static str, u32) {
    if variants.has(Variant::AttentionWarps) { ("attend_wide_8", 256) } else { ("attend_wide", 128) }
}
