//! The threads that read and parse data.
use rayon::ThreadPoolBuilder;

/// Starts the threads that read and parse data, or fewer where the system refuses some (a limit of memory or of processes): the library
/// panics at its first use where they cannot be started.
pub fn prepare() {
    if ThreadPoolBuilder::new().build_global().is_ok() {
        return;
    }
    let mut count = std::thread::available_parallelism().map_or(1, usize::from).div_ceil(2);
    while count > 1 {
        if ThreadPoolBuilder::new().num_threads(count).build_global().is_ok() {
            return;
        }
        count /= 2;
    }
    // It fails only where there are threads already.
    let _ = ThreadPoolBuilder::new().num_threads(1).use_current_thread().build_global();
}
