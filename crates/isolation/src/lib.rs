//! Bounds for the code of other libraries that untrusted files drive: building a checkpoint's tokenizer, and compiling and rendering the
//! templates of checkpoints and of task files.
//!
//! A template is a program and `tokenizer.json` very nearly one. Fuel, a count of operators and limits on lengths bound most of what
//! they can ask for, and a panic can be caught; but a string that doubles in a loop, a field of 10^9 columns or a deep recursion end
//! in an abort, which no thread survives. Only the death of a process can be an error then, so:
//!
//! ```text
//! program                                    worker: the same executable, memory and time limited
//! Limited::ask ── the settings of a job ──>  begins the job
//!              ── a request ──────────────>  answers it; stays for the next one
//! ```
//!
//! * A program opts in by calling [`serve_if_worker`] first in its `main`, with the jobs that it can do. In others (tests, programs that
//!   use these crates as libraries) the same code runs in the program itself: bounded in depth, instructions, output and the effect of
//!   a panic, but not in memory.
//! * A job calls what may nest deeply [`on_thread`], and checks its templates with [`check_template`] and [`Output`].

mod caught;
mod job;
mod limited;
#[cfg(unix)]
mod limits;
#[cfg(not(unix))]
mod nowhere;
#[cfg(unix)]
mod process;
#[cfg(unix)]
mod protocol;
mod template;
#[cfg(unix)]
mod worker;

pub use caught::{caught, on_thread};
pub use job::{Answerer, CpuTime, Ended, Job};
pub use limited::Limited;
pub use template::{Output, TooLarge, check_template};

/// Serves as a worker and never returns, if the process was started as one for one of these jobs; otherwise records that this program
/// can do them. It must come before anything else in `main` that reads arguments.
pub fn serve_if_worker(jobs: &[&'static Job]) {
    #[cfg(unix)]
    worker::serve_if_worker(jobs);
    #[cfg(not(unix))]
    drop(jobs);
}
