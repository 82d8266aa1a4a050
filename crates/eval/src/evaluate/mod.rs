//! Entry point of evaluations: settings in, a finished run in the store out.
//!
//! [`evaluate`] opens a model, finds or starts the run of its settings, generates the missing samples and stores them. It
//! prints nothing; a [`Reporter`](earnest_results::Reporter) receives events. [`ModelSession`] keeps a model loaded for several runs.

mod begin;
mod detectable;
mod generation;
mod past;
mod rounds;
mod session;
mod settings;
mod survey;
mod until;

pub use generation::{EndOfSequence, GenerationSettings};
pub(crate) use past::Past;
pub use session::{Evaluated, ModelSession, evaluate};
pub use settings::{Decoding, EvaluationSettings, Questions, RunChoice};
pub use survey::Survey;
