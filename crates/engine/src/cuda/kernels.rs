//! The sources of the kernels, and which of them a model needs.

use super::device::Element;
use super::sources::Sources;

const COMMON: &str = include_str!("kernels/common.cuh");
const BLOCKS: &str = include_str!("kernels/blocks.cuh");
const LAYERS: &str = include_str!("kernels/layers.cu");
const EXPERTS: &str = include_str!("kernels/experts.cu");
const CHOICE: &str = include_str!("kernels/choice.cu");
const ATTENTION: &str = include_str!("kernels/attention.cu");
const PRODUCT: &str = include_str!("kernels/product.cu");

/// Names and texts of all files.
pub(crate) const FILES: [(&str, &str); 7] = [
    ("common.cuh", COMMON),
    ("blocks.cuh", BLOCKS),
    ("layers.cu", LAYERS),
    ("experts.cu", EXPERTS),
    ("choice.cu", CHOICE),
    ("attention.cu", ATTENTION),
    ("product.cu", PRODUCT),
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
        }
    }

    /// The kind of a number of [`number`](Kind::number).
    pub(crate) fn of_number(number: u32) -> Option<Kind> {
        [Kind::Dense, Kind::Q8_0, Kind::Q4K, Kind::Q5K, Kind::Q6K].into_iter().find(|kind| kind.number() == number)
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
        }
    }

    pub(crate) fn name(self, element: Element) -> &'static str {
        match self {
            Kind::Dense => element.name(),
            Kind::Q8_0 => "q8_0",
            Kind::Q4K => "q4k",
            Kind::Q5K => "q5k",
            Kind::Q6K => "q6k",
        }
    }
}

/// Kernels that are compiled together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Unit {
    /// For messages and file names.
    pub(crate) name: String,
    defines: Vec<(&'static str, u32)>,
    sources: Vec<&'static str>,
}

impl Unit {
    /// Everything between products, mixtures of experts, and sampling.
    pub(crate) fn layers(element: Element) -> Unit {
        Unit {
            name: format!("layers-{}", element.name()),
            defines: vec![("ELEMENT", element.number())],
            sources: vec![COMMON, BLOCKS, LAYERS, EXPERTS, CHOICE],
        }
    }

    /// Attention for heads of `head` dimensions; in f32 the same for all.
    pub(crate) fn attention(element: Element, head: usize) -> Unit {
        let head = if element == Element::F32 { 256 } else { padded_head(head) };
        Unit {
            name: format!("attention-{}-{head}", element.name()),
            defines: vec![("ELEMENT", element.number()), ("HEAD", head as u32)],
            sources: vec![COMMON, ATTENTION],
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
            sources: vec![COMMON, BLOCKS, PRODUCT],
        }
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

    /// Products of rows sorted by expert with one kind of weights.
    pub(crate) fn experts(element: Element, kind: Kind) -> Unit {
        let mut unit = Unit::product(element, kind);
        unit.name = unit.name.replacen("product", "experts", 1);
        unit.defines.push(("EXPERTS", 1));
        unit
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
            let kinds = [Kind::Dense, Kind::Q8_0, Kind::Q4K, Kind::Q5K, Kind::Q6K];
            for kind in kinds.into_iter().filter(|kind| element != Element::F32 || *kind == Kind::Dense) {
                all.extend([Unit::product(element, kind), Unit::experts(element, kind)]);
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

/// Most warps of an item of attend_wide.
const MOST_WARPS: usize = 8;

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
    let wide = (WIDE_ROWS + 2 * PART) * row + WIDE_ROWS * (PART + 8) * 2 + MOST_WARPS * WIDE_ROWS * 4;
    (tall as u32, wide as u32)
}

/// The kernels of product.cu by their rows: (rows of a tile, columns, threads, dynamic shared memory, name).
pub(crate) const PRODUCTS: [(usize, usize, u32, u32, &str); 5] = [
    (8, 64, 128, product_shared(64, 8), "product_8"),
    (16, 64, 128, product_shared(64, 16), "product_16"),
    (32, 64, 128, product_shared(64, 32), "product_32"),
    (64, 64, 128, product_shared(64, 64), "product_64"),
    (128, 128, 256, product_shared(128, 128), "product_128"),
];

/// Length of a segment of k in product.cu.
pub(crate) const SEGMENT: usize = 1024;

const fn product_shared(columns: u32, rows: u32) -> u32 {
    3 * (columns + rows) * (64 + 8) * 2
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
            (PRODUCT, format!("#define SEGMENT {SEGMENT}\n")),
            (PRODUCT, "#define STAGES 3\n".into()),
            (PRODUCT, "#define STEP 64\n".into()),
            (EXPERTS, format!("#define MOST_EXPERTS {MOST_EXPERTS}\n")),
            (EXPERTS, format!("#define MOST_CHOSEN {MOST_CHOSEN}\n")),
            (ATTENTION, format!("WIDE(attend_wide_8, {MOST_WARPS})\n")),
        ] {
            assert!(source.contains(&line), "{line}");
        }
        for (rows, columns, threads, _, name) in PRODUCTS {
            let call = PRODUCT.lines().find(|l| l.starts_with(&format!("PRODUCT({name},"))).unwrap();
            let numbers: Vec<usize> =
                call[8 + name.len() + 1..call.len() - 1].split(", ").map(|n| n.trim().parse().unwrap()).collect();
            assert_eq!(
                (numbers[0], numbers[1], numbers[2] * numbers[3] * 32),
                (columns, rows, threads as usize),
                "{name}"
            );
        }
        // What an A100 and an H100 offer a block, and what other devices do.
        for (head, most) in [(16, 99), (64, 99), (80, 99), (96, 99), (128, 99), (160, 163), (192, 163), (256, 163)] {
            let (tall, wide) = attention_shared(head);
            assert_eq!(tall.max(wide) <= 99 * 1024, most == 99, "{head}: {tall} {wide}");
            assert!(tall.max(wide) <= most * 1024, "{head}: {tall} {wide}");
        }
        assert!(PRODUCTS.iter().all(|p| p.3 <= 163 * 1024));
        assert_eq!(PRODUCTS.iter().filter(|p| p.3 <= 99 * 1024).count(), 4);
        // One that every device has.
        assert!(PRODUCTS[0].3 <= 48 * 1024);
    }
}
