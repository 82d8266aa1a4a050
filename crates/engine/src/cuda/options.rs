//! Settings of the CUDA backend.

use std::path::PathBuf;

/// Settings of [`super::CudaEngine`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// Number of the GPU.
    pub device: usize,
    /// Bytes for keys and values; by default most of what the weights leave free.
    pub kv_memory: Option<u64>,
    /// Most requests that run at once.
    pub max_batch: usize,
    /// Most tokens computed in one step.
    pub token_budget: usize,
    /// Share common prompt beginnings.
    pub prefix_cache: bool,
    /// The bits of a request's logits depend on nothing but the request: all products by our own kernels.
    pub batch_invariant: bool,
    /// Return a hash of every step's logits with each completion (slow; for tests of batch invariance).
    pub trace: bool,
    /// Folder for compiled kernels; none keeps nothing.
    pub kernel_cache: Option<PathBuf>,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            device: 0,
            kv_memory: None,
            max_batch: 512,
            token_budget: 8192,
            prefix_cache: true,
            batch_invariant: false,
            trace: false,
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
