//! Settings of the CPU backend.

/// Settings of [`super::CpuEngine`]. None of them changes a generated token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// Threads that compute; by default one for each core, and never more than that: they would only wait for each other.
    pub threads: Option<usize>,
    /// Bytes for keys and values; by default a quarter of the free memory, at most 4 GiB.
    pub kv_memory: Option<u64>,
    /// Most requests that run at once.
    pub max_batch: usize,
    /// Most tokens computed in one step.
    pub token_budget: usize,
    /// Share common prompt prefixes.
    pub prefix_cache: bool,
    /// Return a hash of every step's logits with each completion (slow; for tests of batch invariance).
    pub trace: bool,
}

impl Default for Options {
    fn default() -> Self {
        Options { threads: None, kv_memory: None, max_batch: 128, token_budget: 512, prefix_cache: true, trace: false }
    }
}

impl Options {
    /// The number of threads that are started.
    pub fn threads(&self) -> usize {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        self.threads.unwrap_or(cores).clamp(1, cores)
    }

    /// Bytes for keys and values.
    pub(crate) fn kv_bytes(&self) -> u64 {
        const MOST: u64 = 4 << 30;
        self.kv_memory.unwrap_or_else(|| available_memory().map_or(MOST / 2, |free| (free / 4).min(MOST)))
    }
}

/// Memory available without swapping in bytes, where the system tells.
fn available_memory() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find(|l| l.starts_with("MemAvailable:"))?;
    let kib: u64 = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(kib * 1024)
}
