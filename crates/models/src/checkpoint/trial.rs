//! Trials of tokenizers, and the jobs of this crate's workers.
//!
//! * A tokenizer is tried once in a worker and then built again here, because encoding is on the path of every prompt; a digest in the
//!   user's cache saves the second trial of a large file. What passes the trial can only be slow on a particular text, or panic on it,
//!   which [`earnest_isolation::caught`] turns into an error.
//! * A template is never compiled or rendered in the program itself: what it does may depend on the messages, so no trial shows what it
//!   will do, and rendering it in a process takes 0.2 ms a prompt, in a build without optimisation.
use earnest_isolation::{Answerer, CpuTime, Job, Limited};

use super::chat;
use super::tokenizer::{self, fault::TokenizerFault};
use super::trial_cache::TrialCache;

/// Memory for a tokenizer's trial, in bytes, and for each byte of its file. One of 262,144 tokens takes 11 bytes for each of 24 MB.
const MEMORY: u64 = 512 << 20;
const MEMORY_PER_BYTE: u64 = 96;

/// Time for a tokenizer's trial, and for each MiB of its file. The same one takes 5 s in a build without optimisation.
const SECONDS: u64 = 20;
const SECONDS_PER_MIB: u64 = 2;

/// Trial of a tokenizer, whose file is the request; the answer is what is wrong with it, empty if nothing is.
static JOB: Job = Job { name: "tokenizer", begin };

fn begin(_: &[u8]) -> Answerer {
    Box::new(|file| tokenizer::try_file(file).err().map(|fault| fault.to_string()).unwrap_or_default().into_bytes())
}

/// Serves as a worker for a checkpoint's tokenizer or template and never returns, if the process was started as one; otherwise records
/// that this program can be one. It must come before anything else in `main` that reads arguments.
pub fn serve_if_worker() {
    earnest_isolation::serve_if_worker(&[&JOB, &chat::engine::JOB]);
}

/// Tries a `tokenizer.json` in a worker, unless it has passed before or this program cannot be one.
pub(super) fn try_tokenizer(file: &[u8]) -> Result<(), TokenizerFault> {
    if !Limited::has_process(&JOB) {
        return Ok(());
    }
    let cache = TrialCache::of(file);
    if cache.has_passed() {
        return Ok(());
    }
    let begun = std::time::Instant::now();
    let size = file.len() as u64;
    let worker = Limited::new(&JOB, Vec::new(), MEMORY + MEMORY_PER_BYTE * size);
    let time = CpuTime::Each(SECONDS + SECONDS_PER_MIB * (size >> 20));
    let wrong = worker.ask(file, time).map_err(|end| TokenizerFault::Ended(end.words))?;
    if !wrong.is_empty() {
        return Err(TokenizerFault::Said(String::from_utf8_lossy(&wrong).into_owned()));
    }
    cache.record(begun.elapsed());
    Ok(())
}
