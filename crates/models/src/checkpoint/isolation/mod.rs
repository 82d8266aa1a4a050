//! Bounds for the code of other libraries that a checkpoint's files drive: building the tokenizer, and compiling and rendering the
//! chat template.
//!
//! A template is a program and `tokenizer.json` very nearly one. Fuel, a count of operators and limits on lengths bound most of what
//! they can ask for, and a panic can be caught; but a string that doubles in a loop, a field of 10^9 columns or a deep recursion end
//! in an abort, which no thread survives. Only the death of a process can be an error then, so:
//!
//! ```text
//! program                                    worker: the same executable, memory and time limited
//! Tokenizer::from_folder ── the file ────>   builds the tokenizer and encodes a few texts; ends
//! ChatTemplate::render ── a conversation ─>  renders it; stays for the next one
//! ```
//!
//! * A tokenizer is tried once in a worker and then built again here, because encoding is on the path of every prompt; a digest in the
//!   user's cache saves the second trial of a large file. What passes the trial can only be slow on a particular text, or panic on it,
//!   which [`caught`] turns into an error.
//! * A template is never compiled or rendered in the program itself: what it does may depend on the messages, so no trial shows what it
//!   will do, and rendering it in a process takes 0.2 ms a prompt, in a build without optimisation.
//! * A program opts in by calling [`serve_if_worker`] first in its `main`. In others (tests, programs that use this crate as a library)
//!   the same code runs on a thread with a large stack: bounded in depth, instructions, output and the effect of a panic, but not in
//!   memory.

#[cfg(unix)]
mod cache;
mod caught;
#[cfg(unix)]
mod limits;
#[cfg(not(unix))]
mod nowhere;
#[cfg(unix)]
mod process;
#[cfg(unix)]
mod protocol;
#[cfg(unix)]
mod worker;

pub use caught::caught;
pub(super) use caught::on_thread;
#[cfg(not(unix))]
pub(super) use nowhere::TemplateProcess;
#[cfg(unix)]
pub(super) use process::TemplateProcess;
#[cfg(unix)]
pub use worker::serve_if_worker;

/// Does nothing: there are no workers on this system.
#[cfg(not(unix))]
pub fn serve_if_worker() {}

/// Tries a `tokenizer.json` in a worker, unless it has passed before or this program cannot be one; the error says what is wrong with it.
pub(super) fn try_tokenizer(file: &[u8]) -> Result<(), String> {
    #[cfg(unix)]
    if process::available() {
        let cache = cache::TrialCache::of(file);
        if !cache.has_passed() {
            let begun = std::time::Instant::now();
            process::try_tokenizer(file)?;
            cache.record(begun.elapsed());
        }
    }
    #[cfg(not(unix))]
    drop(file);
    Ok(())
}
