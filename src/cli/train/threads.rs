//! What every training sets and says before it begins: threads, memory, a warm-up that is too long.
use crate::cli::printer::Printer;
use earnest_train::Schedule;

/// Parameters from which a part of a batch gains by several threads.
const LARGE: usize = 20_000_000;

/// Chooses the threads of every part of a batch, unless `RAYON_NUM_THREADS` does: one for small models, all cores' share for large
/// ones. candle splits each operation among its threads and spins while it waits, which takes small models most of their time and is worse on a
/// busy machine. Results are the same.
pub fn choose_threads(parts: usize, parameters: usize) {
    keep_freed_memory();
    const VARIABLE: &str = "RAYON_NUM_THREADS";
    if std::env::var_os(VARIABLE).is_none() {
        let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        let threads = if parameters < LARGE { 1 } else { (cores / parts).max(1) };
        // SAFETY: the program's other threads are those for data, which wait for work: nobody reads the environment meanwhile.
        unsafe { std::env::set_var(VARIABLE, threads.to_string()) };
    }
}

/// Keeps the memory that tensors free for the next ones. Otherwise the allocator returns it to the system after every step and the system
/// clears it again, a tenth of the time of a small model.
fn keep_freed_memory() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // SAFETY: changes settings of the allocator; a value that it rejects leaves them as they are.
    unsafe {
        // The largest threshold that the allocator accepts.
        libc::mallopt(libc::M_MMAP_THRESHOLD, 32 << 20);
        libc::mallopt(libc::M_TRIM_THRESHOLD, i32::MAX);
        libc::mallopt(libc::M_TOP_PAD, 64 << 20);
    }
}

/// Warns of a peak learning rate that is never reached.
pub fn warn_of_warm_up(printer: Printer, schedule: Schedule) {
    if let Some(reached) = schedule.below_peak() {
        let Schedule { peak, warm_up, .. } = schedule;
        printer.warning(&format!(
            "the warm-up of {warm_up} steps is longer than the training: the learning rate ends at {reached:.2e} instead of reaching \
             {peak:.2e}; choose a smaller --warm-up"
        ));
    }
}
