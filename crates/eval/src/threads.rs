//! The threads that read and parse data.
use rayon::ThreadPoolBuilder;

/// Under a limit of memory, sees that the threads that read and parse data can be started, or fewer: the library panics at its first use
/// where the system refuses one. Without a limit nothing is tried, because it takes time.
pub fn prepare() {
    let limits = std::fs::read_to_string("/proc/self/limits").unwrap_or_default();
    let memory = limits.lines().find_map(|line| line.strip_prefix("Max address space"));
    if memory.is_none_or(|limit| limit.trim_start().starts_with("unlimited"))
        || ThreadPoolBuilder::new().build().is_ok()
    {
        return;
    }
    let mut count = std::thread::available_parallelism().map_or(1, usize::from).div_ceil(2);
    while count > 1 && ThreadPoolBuilder::new().num_threads(count).build().is_err() {
        count /= 2;
    }
    let pool = ThreadPoolBuilder::new().num_threads(count);
    let pool = if count == 1 { pool.use_current_thread() } else { pool };
    // It fails only where there is a pool already.
    let _ = pool.build_global();
}
