//! Team of threads that compute a step together.
use super::kernels::Isa;
use super::spin_pool::SpinPool;

/// A fixed set of threads that work on the pieces of one job at a time.
///
/// The thread that computes a piece never changes a result: pieces write disjoint outputs and each output is computed in
/// one piece in a fixed order.
pub struct Team {
    /// None for one thread.
    pool: Option<SpinPool>,
    threads: usize,
    isa: Isa,
}

impl Team {
    /// A team of `threads` (at least one) on the best instruction set of the CPU.
    #[cfg(test)]
    pub(crate) fn new(threads: usize) -> Team {
        Team::with_isa(threads, Isa::detect())
    }

    /// A team on a given instruction set, which the CPU must have. Panics if the system refuses a thread.
    #[cfg(test)]
    pub(crate) fn with_isa(threads: usize, isa: Isa) -> Team {
        Team::start(threads, isa).expect("threads can be started")
    }

    /// Starts a team: the thread that calls it later, and helpers.
    ///
    /// # Errors
    /// The system's error when it refuses a thread.
    pub fn start(threads: usize, isa: Isa) -> std::io::Result<Team> {
        let threads = threads.max(1);
        let pool = (threads > 1).then(|| SpinPool::start(threads - 1)).transpose()?;
        Ok(Team { pool, threads, isa })
    }

    /// Number of threads.
    pub fn threads(&self) -> usize {
        self.threads
    }

    /// The instruction set of the kernels.
    pub fn isa(&self) -> Isa {
        self.isa
    }

    /// Runs `job` with all threads awake, so that what it hands to them need not wake them.
    pub fn enter<T>(&self, job: impl FnOnce() -> T) -> T {
        match &self.pool {
            Some(pool) => pool.enter(job),
            None => job(),
        }
    }

    /// Runs `piece(0)` to `piece(count - 1)`, on all threads, and waits for the last.
    pub(crate) fn run(&self, count: usize, piece: &(dyn Fn(usize) + Sync)) {
        match &self.pool {
            Some(pool) if count > 1 => pool.run(count, piece),
            _ => (0..count).for_each(piece),
        }
    }
}
