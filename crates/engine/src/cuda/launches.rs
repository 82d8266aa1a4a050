//! The kernels of a decoder's step, loaded.

use super::device::{Device, DeviceError, Element, Kernel};
use super::kernels::{Unit, attention_shared};

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
    pub(crate) merge: Kernel,
}

/// Shared memory of `join_norm` for rows of `hidden`, if a kernel has so much without asking.
pub(crate) fn row_shared(hidden: usize) -> Option<u32> {
    let bytes = 4 * hidden;
    (bytes <= 47 * 1024).then_some(bytes as u32)
}

impl Kernels {
    /// For rows of `hidden` and heads of `head` dimensions; `separate_norms` does without the kernel that joins sums and norms.
    pub(crate) fn load(
        device: &mut dyn Device,
        element: Element,
        hidden: usize,
        head: usize,
        separate_norms: bool,
    ) -> Result<Kernels, DeviceError> {
        let layers = device.load(&Unit::layers(element))?;
        let attention = device.load(&Unit::attention(element, head))?;
        let (tall_shared, wide_shared) = attention_shared(head);
        let mut of = |name: &str, shared: u32| device.kernel(layers, name, shared);
        let shared = row_shared(hidden).filter(|_| !separate_norms);
        let join_norm = shared.map(|shared| of("join_norm", shared)).transpose()?;
        let mut of = |name: &str| of(name, 0);
        let kernels = Kernels {
            embed: of("embed")?,
            norm: of("norm")?,
            join: of("join")?,
            join_norm,
            add_bias: of("add_bias")?,
            width_factors: of("width_factors")?,
            place: of("place")?,
            activate: of("activate")?,
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
            merge: device.kernel(attention, "attend_merge", 0)?,
        };
        if element == Element::F32 {
            let plain = device.kernel(attention, "attend_plain", 0)?;
            return Ok(Kernels { tall: plain, wide: plain, ..kernels });
        }
        Ok(Kernels {
            tall: device.kernel(attention, "attend_tall", tall_shared)?,
            wide: device.kernel(attention, "attend_wide", wide_shared)?,
            ..kernels
        })
    }
}
