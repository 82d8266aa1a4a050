//! The threads that read and parse data.
use std::io;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{Builder, JoinHandle, available_parallelism};

use rayon::{ThreadBuilder, ThreadPoolBuilder};

use crate::EvalError;

/// A thread that waits for its work, and ends where none comes.
struct Waiting {
    give: Sender<ThreadBuilder>,
    thread: JoinHandle<()>,
}

/// Starts the threads that read and parse data, or fewer where the system refuses some (a limit of memory or of processes).
///
/// The library makes its threads once: where one of them does not start, it keeps the failure and panics at its first use. So threads are
/// started first, and those that there are become the library's.
///
/// # Errors
/// Not one of them starts.
pub fn prepare() -> Result<(), EvalError> {
    let waiting = as_many(wanted(), start).map_err(failed)?;
    let count = waiting.len();
    let mut waiting = waiting.into_iter();
    let pool = ThreadPoolBuilder::new().num_threads(count).spawn_handler(|work| {
        let given = waiting.next().is_some_and(|thread| thread.give.send(work).is_ok());
        if given { Ok(()) } else { Err(io::Error::other("it ended early")) }
    });
    pool.build_global().map_err(|error| failed(io::Error::other(error)))
}

/// Number of threads: what the library's own setting says, or one for each processor.
fn wanted() -> usize {
    let setting = std::env::var("RAYON_NUM_THREADS").ok().and_then(|text| text.parse().ok()).filter(|&count| count > 0);
    setting.unwrap_or_else(|| available_parallelism().map_or(1, usize::from))
}

fn start() -> io::Result<Waiting> {
    let (give, take): (_, Receiver<ThreadBuilder>) = channel();
    let work = move || {
        if let Ok(work) = take.recv() {
            work.run();
        }
    };
    Ok(Waiting { give, thread: Builder::new().spawn(work)? })
}

/// So many threads; where one is refused, half of those that there are, so that room is left for what else the command starts.
///
/// # Errors
/// The first is refused.
fn as_many(wanted: usize, mut start: impl FnMut() -> io::Result<Waiting>) -> io::Result<Vec<Waiting>> {
    let mut started = vec![start()?];
    while started.len() < wanted {
        let Ok(thread) = start() else {
            for Waiting { give, thread } in started.split_off(started.len().div_ceil(2)) {
                drop(give);
                // It did nothing that could have failed.
                let _ = thread.join();
            }
            break;
        };
        started.push(thread);
    }
    Ok(started)
}

fn failed(error: io::Error) -> EvalError {
    EvalError::thread("read data", error)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Threads of a system that refuses the next after so many.
    fn system(most: usize) -> impl FnMut() -> io::Result<Waiting> {
        let mut started = 0;
        move || {
            started += 1;
            if started > most { Err(io::ErrorKind::WouldBlock.into()) } else { start() }
        }
    }

    #[test]
    fn threads_that_are_refused_are_done_without() {
        let count = |wanted, most| as_many(wanted, system(most)).map(|threads| threads.len()).ok();
        assert_eq!(
            [count(4, 9), count(4, 3), count(9, 5), count(4, 1), count(4, 0)],
            [Some(4), Some(2), Some(3), Some(1), None]
        );
    }
}
