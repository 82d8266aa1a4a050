//! Measurements of the engine itself, on workloads that look like evaluations.

mod memory;
mod quality;
mod throughput;
mod workload;

pub use memory::peak_memory;
pub use quality::{Agreement, Answer, Prompt, agreement, answer_all};
pub use throughput::{BenchError, Measurement, Repetition, measure};
pub use workload::{Workload, WorkloadKind, distinct_prefix_tokens};
