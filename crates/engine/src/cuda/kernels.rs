//! The sources of the kernels, and which of them a model needs.

use super::device::Element;
use super::e4m3;
use super::sources::Sources;

const COMMON: &str = include_str!("kernels/common.cuh");
const BLOCKS: &str = include_str!("kernels/blocks.cuh");
const LAYERS: &str = include_str!("kernels/layers.cu");
const EXPERTS: &str = include_str!("kernels/experts.cu");
const CHOICE: &str = include_str!("kernels/choice.cu");
const ATTENTION: &str = include_str!("kernels/attention.cu");
const PRODUCTS_CUH: &str = include_str!("kernels/products.cuh");
const PRODUCT: &str = include_str!("kernels/product.cu");
const E4M3: &str = include_str!("kernels/e4m3.cuh");
const WARP_GROUPS: &str = include_str!("kernels/warp_groups.cuh");
const WGMMA: &str = include_str!("kernels/wgmma.cu");

/// Names and texts of all files.
pub(crate) const FILES: [(&str, &str); 11] = [
    ("common.cuh", COMMON),
    ("blocks.cuh", BLOCKS),
    ("layers.cu", LAYERS),
    ("experts.cu", EXPERTS),
    ("choice.cu", CHOICE),
    ("attention.cu", ATTENTION),
    ("products.cuh", PRODUCTS_CUH),
    ("product.cu", PRODUCT),
    ("e4m3.cuh", E4M3),
    ("warp_groups.cuh", WARP_GROUPS),
    ("wgmma.cu", WGMMA),
];

/// Storage format of a matrix on the device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Kind {
    /// Elements.
    Dense,
    Q8_0,
    Q4K,
    Q5K,
    Q6K,
    /// 8-bit floats, whose products take activations of the same type.
    E4m3,
}

impl Kind {
    /// WEIGHTS of the kernels.
    pub(crate) fn number(self) -> u32 {
        match self {
            Kind::Dense => 0,
            Kind::Q8_0 => 1,
            Kind::Q4K => 2,
            Kind::Q5K => 3,
            Kind::Q6K => 4,
            Kind::E4m3 => 5,
        }
    }

    /// The kind of a number of [`number`](Kind::number).
    pub(crate) fn of_number(number: u32) -> Option<Kind> {
        [Kind::Dense, Kind::Q8_0, Kind::Q4K, Kind::Q5K, Kind::Q6K, Kind::E4m3]
            .into_iter()
            .find(|kind| kind.number() == number)
    }

    /// Bytes of a row of `k` weights on the device (blocks.cuh).
    pub(crate) fn row_bytes(self, k: usize, element: Element) -> u64 {
        let k = k as u64;
        match self {
            Kind::Dense => k * element.size_bytes(),
            Kind::Q8_0 => (k + k / 32 * 2).next_multiple_of(16),
            Kind::Q4K => k / 256 * 144,
            Kind::Q5K => k / 256 * 176,
            Kind::Q6K => k / 256 * 224,
            Kind::E4m3 => e4m3::row_bytes(k as usize) as u64,
        }
    }

    pub(crate) fn name(self, element: Element) -> &'static str {
        match self {
            Kind::Dense => element.name(),
            Kind::Q8_0 => "q8_0",
            Kind::Q4K => "q4k",
            Kind::Q5K => "q5k",
            Kind::Q6K => "q6k",
            Kind::E4m3 => "e4m3",
        }
    }
}

/// Devices that have a unit's instructions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Target {
    /// Every supported device.
    Any,
    /// Compute capability 8.9 and later: products of 8-bit floats.
    Fp8,
    /// Compute capability 9.0: instructions of warp groups, which no other family has.
    WarpGroups,
}

impl Target {
    /// True if a unit is compiled for an architecture such as `sm_90` or `sm_90a`, which has what 9.0 has alone.
    pub(crate) fn has(self, architecture: &str) -> bool {
        match self {
            Target::Any => !architecture.ends_with('a'),
            Target::Fp8 => architecture_number(architecture).is_some_and(|number| number >= 89),
            Target::WarpGroups => architecture == WARP_GROUPS_ARCHITECTURE,
        }
    }
}

/// The number of an architecture such as `sm_90`; none for `sm_90a`.
pub(crate) fn architecture_number(architecture: &str) -> Option<u32> {
    architecture.strip_prefix("sm_")?.parse().ok()
}

/// Architecture of [`Target::WarpGroups`].
const WARP_GROUPS_ARCHITECTURE: &str = "sm_90a";

/// Kernels that are compiled together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Unit {
    /// For messages and file names.
    pub(crate) name: String,
    defines: Vec<(&'static str, u32)>,
    sources: Vec<&'static str>,
    pub(crate) target: Target,
}

impl Unit {
    /// Everything between products, mixtures of experts, and sampling.
    pub(crate) fn layers(element: Element) -> Unit {
        Unit {
            name: format!("layers-{}", element.name()),
            defines: vec![("ELEMENT", element.number())],
            sources: vec![COMMON, BLOCKS, LAYERS, EXPERTS, CHOICE],
            target: Target::Any,
        }
    }

    /// Attention for heads of `head` dimensions; in f32 the same for all.
    pub(crate) fn attention(element: Element, head: usize) -> Unit {
        let head = if element == Element::F32 { 256 } else { padded_head(head) };
        Unit {
            name: format!("attention-{}-{head}", element.name()),
            defines: vec![("ELEMENT", element.number()), ("HEAD", head as u32)],
            sources: vec![COMMON, ATTENTION],
            target: Target::Any,
        }
    }

    /// Products with one kind of weights.
    pub(crate) fn product(element: Element, kind: Kind) -> Unit {
        Unit {
            name: format!(
                "product-{}-{}",
                element.name(),
                if kind == Kind::Dense { "dense" } else { kind.name(element) }
            ),
            defines: vec![("ELEMENT", element.number()), ("WEIGHTS", kind.number())],
            sources: match kind {
                Kind::E4m3 => vec![COMMON, BLOCKS, PRODUCTS_CUH, E4M3, PRODUCT],
                _ => vec![COMMON, BLOCKS, PRODUCTS_CUH, PRODUCT],
            },
            target: if kind == Kind::E4m3 { Target::Fp8 } else { Target::Any },
        }
    }

    /// Products by warp groups, with dense weights or 8-bit floats.
    pub(crate) fn wgmma(element: Element, kind: Kind) -> Unit {
        let mut unit = Unit::product(element, kind);
        unit.name = unit.name.replacen("product", "wgmma", 1);
        unit.sources.pop();
        unit.sources.extend([WARP_GROUPS, WGMMA]);
        unit.target = Target::WarpGroups;
        unit
    }

    /// The same products of rows sorted by expert.
    #[must_use]
    pub(crate) fn of_experts(mut self) -> Unit {
        self.name.push_str("-experts");
        self.defines.push(("EXPERTS", 1));
        self
    }

    /// Architecture that it is compiled for on a device whose own is given.
    pub(crate) fn architecture<'a>(&self, device: &'a str) -> &'a str {
        if self.target == Target::WarpGroups { WARP_GROUPS_ARCHITECTURE } else { device }
    }

    fn define(&self, name: &str) -> u32 {
        self.defines.iter().find(|define| define.0 == name).map_or(0, |define| define.1)
    }

    /// Type of activations.
    pub(crate) fn element(&self) -> Element {
        match self.define("ELEMENT") {
            1 => Element::Bf16,
            2 => Element::F16,
            _ => Element::F32,
        }
    }

    /// Kind of the weights of a unit of products.
    pub(crate) fn kind(&self) -> Kind {
        Kind::of_number(self.define("WEIGHTS")).unwrap_or(Kind::Dense)
    }

    /// Texts of its files inside the program.
    #[cfg(test)]
    pub(crate) fn texts(&self) -> &[&'static str] {
        &self.sources
    }

    /// The source that a compiler gets.
    pub(crate) fn source(&self, sources: &Sources) -> String {
        let defines = self.defines.iter().map(|(name, value)| format!("#define {name} {value}\n"));
        defines.chain(self.sources.iter().map(|own| sources.text(own).to_owned())).collect()
    }

    /// Every unit that some model may need, for assembling them all.
    pub(crate) fn all() -> Vec<Unit> {
        let mut all = vec![];
        for element in [Element::F32, Element::Bf16, Element::F16] {
            all.push(Unit::layers(element));
            let heads: &[usize] = if element == Element::F32 { &[256] } else { &[32, 64, 96, 128, 160, 192, 224, 256] };
            all.extend(heads.iter().map(|&head| Unit::attention(element, head)));
            let kinds = [Kind::Dense, Kind::Q8_0, Kind::Q4K, Kind::Q5K, Kind::Q6K, Kind::E4m3];
            for kind in kinds.into_iter().filter(|kind| element != Element::F32 || *kind == Kind::Dense) {
                all.extend([Unit::product(element, kind), Unit::product(element, kind).of_experts()]);
            }
            for kind in WGMMA_KINDS.into_iter().filter(|_| element != Element::F32) {
                all.extend([Unit::wgmma(element, kind), Unit::wgmma(element, kind).of_experts()]);
            }
        }
        all
    }
}

/// Options of the compiler for an architecture such as `sm_90`; part of what names a cached kernel.
pub(crate) fn compiler_options(architecture: &str) -> Vec<String> {
    vec![format!("--gpu-architecture={architecture}"), "--std=c++17".into(), "--diag-suppress=177".into()]
}

/// Columns that the attention kernels lay a head out for.
pub(crate) fn padded_head(head: usize) -> usize {
    head.next_multiple_of(32)
}

/// Rows of an item of attend_tall.
pub(crate) fn tall_rows(head: usize) -> usize {
    if padded_head(head) > 192 { 32 } else { 64 }
}

/// Rows of an item of attend_wide.
pub(crate) const WIDE_ROWS: usize = 16;

/// Warps of an item of attend_wide.
const WIDE_WARPS: usize = 8;

/// Threads of attend_wide.
pub(crate) const WIDE_THREADS: u32 = 32 * WIDE_WARPS as u32;

/// Most experts of a mixture, and most of a token (experts.cu).
pub(crate) const MOST_EXPERTS: usize = 1024;
pub(crate) const MOST_CHOSEN: usize = 32;

/// Rows of a tile of the product in f32.
pub(crate) const PLAIN_ROWS: usize = 32;

/// Positions of a part of attention.
pub(crate) const PART: usize = 128;

/// Threads of attend_tall.
pub(crate) fn tall_threads(head: usize) -> u32 {
    2 * tall_rows(head) as u32
}

/// Dynamic shared memory of attend_tall and attend_wide in bytes.
pub(crate) fn attention_shared(head: usize) -> (u32, u32) {
    let row = (padded_head(head) + 8) * 2;
    let tall = (tall_rows(head) + 2 * PART) * row;
    let wide = (WIDE_ROWS + 2 * PART) * row + WIDE_ROWS * (PART + 8) * 2 + WIDE_WARPS * WIDE_ROWS * 4;
    (tall as u32, wide as u32)
}

/// Part of a product's result that a block computes: rows of x, rows of w, and what a launch needs for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Tile {
    pub(crate) rows: usize,
    pub(crate) columns: usize,
    pub(crate) threads: u32,
    /// Bytes of dynamic shared memory.
    pub(crate) shared: u32,
}

/// Tiles of product.cu (`product_8` to `product_128`), in ascending order.
pub(crate) const PRODUCTS: [Tile; 5] = [
    product_tile(64, 8, 128),
    product_tile(64, 16, 128),
    product_tile(64, 32, 128),
    product_tile(64, 64, 128),
    product_tile(128, 128, 256),
];

/// The same for 8-bit floats, which take more registers.
pub(crate) const E4M3_PRODUCTS: [Tile; 5] =
    [PRODUCTS[0], PRODUCTS[1], PRODUCTS[2], PRODUCTS[3], product_tile(64, 128, 256)];

/// Kinds of weights of wgmma.cu.
pub(crate) const WGMMA_KINDS: [Kind; 2] = [Kind::Dense, Kind::E4m3];

/// Tiles of wgmma.cu (`wgmma_8` to `wgmma_192`), in ascending order; experts have no products of 192 rows.
pub(crate) const WGMMA_PRODUCTS: [Tile; 6] = [
    wgmma_tile(1, 8, 6),
    wgmma_tile(1, 16, 6),
    wgmma_tile(1, 32, 6),
    wgmma_tile(1, 64, 4),
    wgmma_tile(2, 128, 4),
    wgmma_tile(2, 192, 4),
];

/// The same for 8-bit floats.
pub(crate) const E4M3_WGMMA_PRODUCTS: [Tile; 5] =
    [WGMMA_PRODUCTS[0], WGMMA_PRODUCTS[1], WGMMA_PRODUCTS[2], WGMMA_PRODUCTS[3], wgmma_tile(2, 96, 4)];

/// Length of a segment of k in products.cuh.
pub(crate) const SEGMENT: usize = 1024;

/// Rows of 128 bytes and 16 between them, in three stages.
const fn product_tile(columns: u32, rows: u32, threads: u32) -> Tile {
    Tile { rows: rows as usize, columns: columns as usize, threads, shared: 3 * (columns + rows) * (128 + 16) }
}

/// Rows of 128 bytes in some stages, beginning at a multiple of 1024.
const fn wgmma_tile(groups: u32, rows: u32, stages: u32) -> Tile {
    let columns = 64 * groups;
    Tile {
        rows: rows as usize,
        columns: columns as usize,
        threads: 128 * groups,
        shared: stages * (columns + rows) * 128 + 1024,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn constants_are_those_of_the_sources() {
        for (source, line) in [
            (ATTENTION, format!("#define PART {PART}\n")),
            (ATTENTION, format!("#define WIDE_ROWS {WIDE_ROWS}\n")),
            (ATTENTION, "#define PAD 8\n".into()),
            (ATTENTION, format!("#define BLOCK {}\n", crate::core::BLOCK_SIZE)),
            (PRODUCTS_CUH, format!("#define SEGMENT {SEGMENT}\n")),
            (PRODUCT, "#define STAGES 3\n".into()),
            (PRODUCT, "#define STEP 64\n".into()),
            (WGMMA, "#define STEP 64\n".into()),
            (BLOCKS, format!("#define KIND_E4M3 {}\n", Kind::E4m3.number())),
            (BLOCKS, format!("(k + {}) / {} * 4 + 15", e4m3::GROUP - 1, e4m3::GROUP)),
            (PRODUCT, format!("#define STEP {}\n", e4m3::GROUP)),
            (WGMMA, format!("#define STEP {}\n", e4m3::GROUP)),
            (EXPERTS, format!("#define MOST_EXPERTS {MOST_EXPERTS}\n")),
            (EXPERTS, format!("#define MOST_CHOSEN {MOST_CHOSEN}\n")),
            (ATTENTION, format!("#define WIDE_WARPS {WIDE_WARPS}\n")),
        ] {
            assert!(source.contains(&line), "{line}");
        }
        let calls = |source: &str| {
            let arguments = source.lines().filter_map(|line| line.strip_prefix("PRODUCT(")?.strip_suffix(')'));
            let numbers = |call: &str| call.split(", ").filter_map(|n| n.parse().ok()).collect::<Vec<u32>>();
            arguments.map(numbers).collect::<Vec<_>>()
        };
        // Columns, rows, warps along each; groups of warps, rows, stages. Tiles of 8-bit floats come before those that they stand for.
        let product: Vec<Tile> =
            calls(PRODUCT).iter().map(|call| product_tile(call[0], call[1], 32 * call[2] * call[3])).collect();
        let wgmma: Vec<Tile> = calls(WGMMA).iter().map(|call| wgmma_tile(call[0], call[1], call[2])).collect();
        assert_eq!(product, [&E4M3_PRODUCTS[..], &PRODUCTS[4..]].concat());
        assert_eq!(wgmma, [&E4M3_WGMMA_PRODUCTS[..], &WGMMA_PRODUCTS[4..]].concat());
        // What an A100 and an H100 offer a block, and what other devices do.
        for (head, most) in [(16, 99), (64, 99), (80, 99), (96, 99), (128, 99), (160, 163), (192, 163), (256, 163)] {
            let (tall, wide) = attention_shared(head);
            assert_eq!(tall.max(wide) <= 99 * 1024, most == 99, "{head}: {tall} {wide}");
            assert!(tall.max(wide) <= most * 1024, "{head}: {tall} {wide}");
        }
        assert!(
            [&PRODUCTS[..], &WGMMA_PRODUCTS, &E4M3_PRODUCTS, &E4M3_WGMMA_PRODUCTS]
                .concat()
                .iter()
                .all(|tile| tile.shared <= 163 * 1024)
        );
        assert_eq!(PRODUCTS.iter().filter(|tile| tile.shared <= 99 * 1024).count(), 4);
        // One that every device has.
        assert!(PRODUCTS[0].shared <= 48 * 1024);
    }
}
