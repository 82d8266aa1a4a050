//! The threads that compute a step together.

use rayon::prelude::*;

use super::kernels::Isa;

/// A fixed set of threads that work on the pieces of one job at a time.
///
/// Which thread computes a piece never changes a result: pieces write disjoint outputs and each output is computed in
/// one piece in a fixed order.
pub(crate) struct Team {
    pool: Option<rayon::ThreadPool>,
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

    /// Starts a team. An error if the system refuses a thread.
    pub(crate) fn start(threads: usize, isa: Isa) -> Result<Team, rayon::ThreadPoolBuildError> {
        let threads = threads.max(1);
        let pool = if threads == 1 {
            None
        } else {
            let name = |i| format!("earnest-{i}");
            Some(rayon::ThreadPoolBuilder::new().num_threads(threads).thread_name(name).build()?)
        };
        Ok(Team { pool, threads, isa })
    }

    /// Number of threads.
    pub(crate) fn threads(&self) -> usize {
        self.threads
    }

    /// The instruction set of the kernels.
    pub(crate) fn isa(&self) -> Isa {
        self.isa
    }

    /// Runs `job` inside the team, so that the [`run`](Team::run) calls in it need no hand-over.
    pub(crate) fn enter<T: Send>(&self, job: impl FnOnce() -> T + Send) -> T {
        match &self.pool {
            Some(pool) => pool.install(job),
            None => job(),
        }
    }

    /// Runs `piece(0)` to `piece(count - 1)`, on all threads, and waits for the last.
    pub(crate) fn run(&self, count: usize, piece: &(dyn Fn(usize) + Sync)) {
        match &self.pool {
            Some(pool) if count > 1 => pool.install(|| (0..count).into_par_iter().with_max_len(1).for_each(piece)),
            _ => (0..count).for_each(piece),
        }
    }
}
