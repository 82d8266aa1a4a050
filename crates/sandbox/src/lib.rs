//! Model-written Python, run where it can do no harm: in a child of a worker process that has no environment, no open
//! files, no file system, no network, little memory and little time. `docs/sandbox.md` says what that covers.
//!
//! ```text
//! our process                   worker (our program again)              a sample's process
//! Pool::run ── request ──────>  a fresh interpreter, modules
//!                               imported; forks ───────────────────>    limits itself, runs, writes its answer
//!              <── outcome ───  kills it when its time is over
//! ```
//!
//! A worker is the same program started again: [`serve_if_worker`] must be the first thing that its `main` does.

mod attempts;
mod confine;
mod cpython;
mod embedded;
mod error;
mod limits;
mod outcome;
mod pool;
mod process;
mod protocol;
mod rounding;
mod settings;
mod worker;

pub use attempts::ATTEMPTS;
pub use confine::Confinement;
pub use error::SandboxError;
pub use outcome::{Exception, Number, Outcome};
pub use pool::{Pool, Report};
pub use settings::Settings;
pub use worker::serve_if_worker;
