//! Measurements of the engine itself, on workloads that look like evaluations.

mod memory;
mod throughput;
mod workload;

pub use memory::peak_memory;
pub use throughput::{BenchError, Measurement, Repetition, measure};
pub use workload::{Workload, WorkloadKind, distinct_prefix_tokens};
