//! Settings of the CUDA backend, and variants of its computation: compiled in, tested, and off by default.

use std::path::PathBuf;
use std::str::FromStr;

/// Settings of [`super::CudaEngine`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// Number of the GPU.
    pub device: usize,
    /// Bytes for keys and values; by default most of what the weights leave free.
    pub kv_memory: Option<u64>,
    /// Most requests that run at once; by default as many as the device's memory is for.
    pub max_batch: Option<usize>,
    /// Most tokens computed in one step.
    pub token_budget: usize,
    /// Share common prompt beginnings.
    pub prefix_cache: bool,
    /// The bits of a request's logits depend on nothing but the request: all products by our own kernels.
    pub batch_invariant: bool,
    /// Return a hash of every step's logits with each completion (slow; for tests of batch invariance).
    pub trace: bool,
    /// Record steps that only decode, and launch each as one CUDA graph.
    pub graphs: bool,
    /// Norms apart from the sums before them, as for rows that do not fit into a block's shared memory.
    #[cfg(test)]
    pub separate_norms: bool,
    /// Variants of the computation.
    pub variants: Variants,
    /// Folder for compiled kernels; none keeps nothing.
    pub kernel_cache: Option<PathBuf>,
}

/// Bytes of a device from which on more requests run at once: 1,024 rows fill the tiles of products that 512 leave half empty.
const LARGE: u64 = 70 << 30;

impl Options {
    /// Requests that run at once on a device of so many bytes.
    pub(crate) fn requests(&self, memory: u64) -> usize {
        self.max_batch.unwrap_or(if memory >= LARGE { 1024 } else { 512 })
    }

    /// True if no product is cublasLt's.
    pub(crate) fn own_products(&self) -> bool {
        self.batch_invariant || self.variants.has(Variant::Wgmma)
    }
}

impl Default for Options {
    fn default() -> Self {
        Options {
            device: 0,
            kv_memory: None,
            max_batch: None,
            token_budget: 8192,
            prefix_cache: true,
            batch_invariant: false,
            trace: false,
            graphs: true,
            #[cfg(test)]
            separate_norms: false,
            variants: Variants::NONE,
            kernel_cache: kernel_cache(),
        }
    }
}

/// Default folder for compiled kernels: `kernels` in `EARNEST_CACHE`, `XDG_CACHE_HOME/earnest` or `~/.cache/earnest`.
fn kernel_cache() -> Option<PathBuf> {
    let variable = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    variable("EARNEST_CACHE")
        .or_else(|| variable("XDG_CACHE_HOME").map(|cache| cache.join("earnest")))
        .or_else(|| std::env::home_dir().map(|home| home.join(".cache/earnest")))
        .map(|folder| folder.join("kernels"))
}

/// A variant of the computation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Variant {
    /// Products by warp groups.
    Wgmma,
}

/// Entry of [`VARIANTS`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
pub struct VariantCard {
    /// The variant.
    #[serde(skip)]
    pub variant: Variant,
    /// Value of `--cuda-variant`.
    pub name: &'static str,
    /// Difference from the default.
    pub changes: &'static str,
    /// True if every result has the bits of the default. Another arithmetic is another engine to a run.
    pub same_bits: bool,
    /// The only compute capability that has the instructions; none for all.
    pub capability: Option<(u32, u32)>,
}

/// Every variant.
pub static VARIANTS: [VariantCard; 1] = [VariantCard {
    variant: Variant::Wgmma,
    name: "wgmma",
    changes: "all products by our own kernels, those of dense weights by Hopper's instructions for warp groups (wgmma)",
    same_bits: false,
    capability: Some((9, 0)),
}];

/// A set of variants.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
pub struct Variants(u8);

impl Variants {
    /// The default computation.
    pub const NONE: Variants = Variants(0);

    /// True if the set has the variant.
    pub const fn has(self, variant: Variant) -> bool {
        self.0 & (1 << variant as u8) != 0
    }

    /// Returns the set with the variant.
    #[must_use]
    pub const fn with(self, variant: Variant) -> Variants {
        Variants(self.0 | (1 << variant as u8))
    }

    /// Returns the variants of both sets.
    #[must_use]
    pub const fn and(self, other: Variants) -> Variants {
        Variants(self.0 & other.0)
    }

    /// Returns the variants of either set.
    #[must_use]
    pub const fn or(self, other: Variants) -> Variants {
        Variants(self.0 | other.0)
    }

    /// True if no variant is chosen.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Cards of the chosen variants, in the order of the table.
    pub fn cards(self) -> impl Iterator<Item = &'static VariantCard> {
        VARIANTS.iter().filter(move |card| self.has(card.variant))
    }

    /// Returns the chosen variants that keep the default's bits, or those that do not.
    #[must_use]
    pub fn of_bits(self, same: bool) -> Variants {
        self.cards().filter(|card| card.same_bits == same).fold(Variants::NONE, |set, card| set.with(card.variant))
    }

    /// Names of the chosen variants.
    pub fn names(self) -> Vec<&'static str> {
        self.cards().map(|card| card.name).collect()
    }
}

/// A name that no variant has.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("there is no variant {name:?}; there are {}", VARIANTS.map(|card| card.name).join(", "))]
pub struct UnknownVariant {
    name: String,
}

impl FromStr for Variants {
    type Err = UnknownVariant;

    /// Reads names separated by commas.
    fn from_str(text: &str) -> Result<Variants, UnknownVariant> {
        text.split(',').map(str::trim).try_fold(Variants::NONE, |set, name| {
            let card = VARIANTS.iter().find(|card| card.name == name);
            card.map(|card| set.with(card.variant)).ok_or_else(|| UnknownVariant { name: name.to_owned() })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_and_an_unknown_one_is_answered_with_those_there_are() {
        let one: Variants = " wgmma".parse().unwrap();
        assert_eq!((one.names(), one.of_bits(false), one.of_bits(true)), (vec!["wgmma"], one, Variants::NONE));
        assert!(one.has(Variant::Wgmma) && !one.is_empty());
        let error = "wgmma,fast".parse::<Variants>().unwrap_err().to_string();
        assert!(error.contains("\"fast\"") && VARIANTS.iter().all(|card| error.contains(card.name)), "{error}");
        assert!("".parse::<Variants>().is_err());
    }

    #[test]
    fn large_devices_run_more_requests_at_once() {
        let options = Options::default();
        assert_eq!((options.requests(40 << 30), options.requests(79 << 30)), (512, 1024));
        assert_eq!(Options { max_batch: Some(7), ..options }.requests(140 << 30), 7);
    }
}
