//! The threads that read and parse data.
use std::io;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{Builder, available_parallelism};

use rayon::{ThreadBuilder, ThreadPoolBuilder};

use crate::EvalError;

/// Starts the threads that read and parse data, or fewer where the system refuses some (a limit of memory or of processes).
///
/// The library makes its threads once: where one of them does not start, it keeps the failure and panics at its first use. So threads are
/// started first, and those that there are become the library's.
///
/// # Errors
/// Not one of them starts.
pub fn prepare() -> Result<(), EvalError> {
    let mut started: Vec<Sender<ThreadBuilder>> = Vec::new();
    for _ in 0..wanted() {
        let (give, take): (_, Receiver<ThreadBuilder>) = channel();
        let worker = move || {
            if let Ok(work) = take.recv() {
                work.run();
            }
        };
        match Builder::new().spawn(worker) {
            Ok(_) => started.push(give),
            // Half of them leave room for what else the command starts.
            Err(_) if !started.is_empty() => {
                started.truncate(started.len().div_ceil(2));
                break;
            }
            Err(error) => return Err(failed(error)),
        }
    }
    let mut waiting = started.iter();
    let pool = ThreadPoolBuilder::new().num_threads(started.len()).spawn_handler(|work| {
        let given = waiting.next().is_some_and(|thread| thread.send(work).is_ok());
        if given { Ok(()) } else { Err(io::Error::other("it ended early")) }
    });
    pool.build_global().map_err(|error| failed(io::Error::other(error)))
}

/// Number of threads: what the library's own setting says, or one for each processor.
fn wanted() -> usize {
    let setting = std::env::var("RAYON_NUM_THREADS").ok().and_then(|text| text.parse().ok()).filter(|&count| count > 0);
    setting.unwrap_or_else(|| available_parallelism().map_or(1, usize::from))
}

fn failed(error: io::Error) -> EvalError {
    EvalError::thread("read data", error)
}
