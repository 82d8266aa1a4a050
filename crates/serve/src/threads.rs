//! Threads for work that takes long.
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::runtime::{Builder, Runtime};

/// Time for which a thread without work stays, in which no server runs longer.
const FOR_EVER: Duration = Duration::from_secs(10 * 365 * 24 * 3600);

/// Makes a runtime of one thread for all connections, and `count` for work that takes long. All are started at once, because the
/// library panics where the system refuses one later.
///
/// # Errors
/// Those of the system, which may allow too little memory or too few processes.
pub fn runtime(count: usize) -> io::Result<Runtime> {
    let gate = Arc::new(Mutex::new(()));
    let wait = || {
        let gate = Arc::clone(&gate);
        move || drop(gate.lock().unwrap_or_else(PoisonError::into_inner))
    };
    let closed = gate.lock().unwrap_or_else(PoisonError::into_inner);
    // Tried with others first: each stays until all are there.
    let tried: io::Result<Vec<_>> = (0..count).map(|_| std::thread::Builder::new().spawn(wait())).collect();
    drop(closed);
    for thread in tried? {
        // It does nothing that could panic.
        let _ = thread.join();
    }
    let runtime = Builder::new_current_thread()
        .enable_io()
        .enable_time()
        .max_blocking_threads(count)
        .thread_keep_alive(FOR_EVER)
        .build()?;
    let closed = gate.lock().unwrap_or_else(PoisonError::into_inner);
    for _ in 0..count {
        drop(runtime.spawn_blocking(wait()));
    }
    drop(closed);
    Ok(runtime)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_threads_are_there_at_once() {
        let runtime = runtime(3).unwrap();
        let all = Arc::new(std::sync::Barrier::new(3));
        let work = || {
            let all = Arc::clone(&all);
            runtime.spawn_blocking(move || all.wait())
        };
        let tasks = [work(), work(), work()];
        runtime.block_on(async {
            for task in tasks {
                task.await.unwrap();
            }
        });
    }
}
