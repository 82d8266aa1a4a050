//! Sandbox for model-written Python: each program runs in a child of a worker process without environment, open files, file
//! system or network, under a memory limit and a time limit. `docs/sandbox.md` describes the guarantees.
//!
//! ```text
//! calling process               worker (the same executable)            a sample's process
//! Pool::run ── request ──────>  a fresh interpreter, modules
//!                               imported; forks ───────────────────>    limits itself, runs, writes its answer
//!              <── outcome ───  kills it when its time is over
//! ```
//!
//! A worker is the same executable started again: [`serve_if_worker`] must be the first call in its `main`.

mod attempts;
mod confine;
mod cpython;
#[cfg(feature = "python")]
mod embedded;
#[cfg(not(feature = "python"))]
#[path = "not_built.rs"]
mod embedded;
mod error;
mod limits;
mod outcome;
mod pool;
mod process;
mod protocol;
#[cfg(feature = "python")]
mod rounding;
mod settings;
mod worker;

pub use attempts::{ATTEMPTS, succeeding_attempts};
pub use confine::{Confinement, Missing, Part};
pub use error::SandboxError;
pub use outcome::{Exception, Number, Outcome};
pub use pool::{Pool, Report};
pub use settings::{CommandError, SandboxCommand, Settings};
pub use worker::serve_if_worker;

/// Harness that both interpreters run.
const HARNESS: &str = include_str!("harness.py");
