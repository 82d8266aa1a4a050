//! Measurements of the engine itself, on workloads that look like evaluations.

mod device;
mod golden;
mod latency;
mod memory;
mod quality;
mod sweep;
mod throughput;
mod workload;

pub use device::{
    Cost, DecodeResult, Machine, PrefillResult, SharedResult, SharedWorkload, decoding_tokens, measure_decoding,
    measure_prefill, measure_shared,
};
pub use golden::{
    GoldenResult, Recorded, RecordedError, compare, distributions, error_of_spread, random_prompts, record,
};
pub use latency::{
    Ended, Latency, LatencyPass, LatencyPlan, LatencyPrompt, LatencyResults, ModeResult, PassEvent, PassStage, Spread,
    measure_latency,
};
pub use memory::peak_memory;
pub use quality::{Agreement, Answer, Prompt, agreement, answer_all};
pub use sweep::{Load, LoadMeasurement, Roofline, Space, TokenCost, measure_load};
pub use throughput::{Asked, BenchError, Measurement, Repetition, Worked, measure, work_through};
pub use workload::{Workload, WorkloadKind, distinct_prefix_tokens};
